"""First checks of every request: the name it came to, the caller, its size; and that no unexpected text of it is logged."""

from __future__ import annotations

import logging
import re
import time
import traceback
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.remark import Remark
from backend.server.problems import Problem, preferred_language

MAX_BODY = 1_000_000  # bytes
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PORT = re.compile(rb":\d+$")
_log = logging.getLogger("glassleaf")


class Guard:
    """Reads no body of an unknown caller, and refuses one of more than :data:`MAX_BODY` bytes, whatever length it announces.

    Parameters
    ----------
    is_known : callable
        Returns whether a request is of a known caller: all others get the answer to a request without a body.
    local_only : bool
        Refuse requests to another name than this machine's own: a page in a user's browser could give its own name this address.
    answered : callable
        Told the code of every answer.
    """

    def __init__(
        self,
        app: ASGIApp,
        is_known: Callable[[Scope], bool],
        local_only: bool = False,
        answered: Callable[[int], object] = lambda code: None,
    ) -> None:
        self._app = app
        self._known = is_known
        self._local_only = local_only
        self._answered = answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it; count and log the answer by its code alone."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                seconds = round(time.perf_counter() - began, 4)
                self._answered(message["status"])
                _log.info("A request was answered.", extra={"code": message["status"], "seconds": seconds})
            await send(message)

        await self._passed(scope, receive, answer)

    async def _passed(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        host = _PORT.sub(b"", headers.get(b"host", b"")).decode("latin-1")
        language = preferred_language(headers.get(b"accept-language", b"").decode("latin-1"))
        if self._local_only and host not in LOCAL:
            await Problem("forbidden", Remark("only_this_machine")).response(language)(scope, receive, send)
            return
        messages: list[Message] = []
        size = 0
        more = self._known(scope)
        if not more:
            messages.append({"type": "http.request", "body": b"", "more_body": False})
        while more:
            message = await receive()
            messages.append(message)
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
            if size > MAX_BODY:
                why = Remark("body_too_large", {"limit": MAX_BODY})
                await Problem("too-large", why).response(language)(scope, receive, send)
                return
        messages.reverse()

        async def read() -> Message:
            return messages.pop() if messages else await receive()

        try:
            await self._app(scope, read, send)
        except Exception as error:  # its text may hold data
            where = "".join(traceback.format_tb(error.__traceback__))
            _log.error("A request failed: %s\n%s", type(error).__name__, where)
            await Problem("internal", Remark("server_failed")).response(language)(scope, receive, send)
