"""Bodies of requests: JSON within bounds, without repeated names."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from json import JSONDecodeError
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from backend.remark import Remark
from backend.server.problems import Problem
from backend.services.online import RepeatedNameError, json_values


class CheckedRequest(Request):
    """A request whose body is read by :func:`json_values`."""

    async def json(self) -> Any:
        """Return the body as Python's own values.

        Raises
        ------
        JSONDecodeError
            It is no JSON: FastAPI answers with the place.
        Problem
            It cannot be read at all.
        """
        try:
            return json_values((await self.body()).decode())
        except JSONDecodeError:
            raise
        except UnicodeDecodeError:
            raise Problem("unusable", Remark("body_not_utf8")) from None
        except RepeatedNameError as error:
            raise Problem("unusable", Remark("body_repeats_name", {"name": error.name})) from None
        except (RecursionError, ValueError):  # a number of 4,300 digits is a ValueError
            raise Problem("unusable", Remark("body_beyond_bounds")) from None


class CheckedRoute(APIRoute):
    """An address whose requests are :class:`CheckedRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()

        async def checked(request: Request) -> Response:
            return await answer(CheckedRequest(request.scope, request.receive))

        return checked
