"""What goes wrong, as a problem body (RFC 9457): a code, a type that a program can branch on, and words without anybody's data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from email.utils import format_datetime
from math import ceil
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from backend.errors import (
    ApprovalPending,
    GlassleafError,
    HostBusy,
    ModelError,
    ParameterError,
    PartyUnreachable,
    SampleError,
    SecurityError,
    StoreError,
)

MEDIA_TYPE = "application/problem+json"
TITLES = {
    "approval": (202, "The model waits for an approval"),
    "token": (401, "A token is needed"),
    "forbidden": (403, "The token does not reach so far"),
    "unknown": (404, "There is no such thing"),
    "method": (405, "This address knows no such method"),
    "key-reused": (409, "The key stood for another request"),
    "too-large": (413, "The request is too large"),
    "unusable": (422, "The request cannot be used"),
    "budget": (429, "A Host's budget is spent"),
    "host": (503, "A Host does not answer"),
    "busy": (503, "A Host has too much to do"),
    "deadline": (503, "The deadline has passed"),
    "refused": (503, "A Host refused"),
    "internal": (500, "Something went wrong inside Glassleaf"),
}
"""Type → its code and title."""
KINDS: Mapping[type[GlassleafError], str] = {
    ModelError: "unknown",
    PartyUnreachable: "host",
    SampleError: "unusable",
    ParameterError: "unusable",
    ApprovalPending: "approval",
    HostBusy: "busy",
    SecurityError: "refused",
}
"""What an error is; the first that fits."""
REPEAT = {"host": "5", "approval": "60"}  # seconds after which asking again makes sense


@dataclass
class Problem(Exception):  # noqa: N818 - reads as what it is
    """A request that gets no answer.

    Attributes
    ----------
    kind : str
        One of :data:`TITLES`.
    detail : str
        What, and what to do.
    more : mapping of str to Any
        Members of its own kind, e.g. ``date`` of a budget.
    """

    kind: str
    detail: str
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The code."""
        return TITLES[self.kind][0]

    def response(self) -> JSONResponse:
        """The body with its code."""
        status, title = TITLES[self.kind]
        body = {"type": f"urn:glassleaf:problem:{self.kind}", "title": title, "status": status, "detail": self.detail}
        return JSONResponse({**body, **self.more}, status, dict(self.headers), MEDIA_TYPE)


def budget_spent(detail: str, day: date) -> Problem:
    """Nobody who was asked about can be answered about before, at the latest, `day` (UTC)."""
    again = format_datetime(datetime.combine(day, time(), UTC), usegmt=True)
    return Problem("budget", detail, {"date": day.isoformat()}, {"Retry-After": again})


def problem_of(error: GlassleafError) -> Problem:
    """What an error of the services is to a program."""
    if isinstance(error, StoreError):
        return Problem("internal", "The store cannot be used; whoever operates this server finds more in its log.")
    kind = next((kind for known, kind in KINDS.items() if isinstance(error, known)), "internal")
    wait = str(ceil(error.wait)) if isinstance(error, HostBusy) else REPEAT.get(kind, "")
    headers = {"Retry-After": wait} if wait else {}
    return Problem(kind, str(error), headers=headers)


async def answer_problem(_: Request, error: Exception) -> JSONResponse:
    """For FastAPI: a problem that was raised."""
    if isinstance(error, Problem):
        return error.response()
    return problem_of(error if isinstance(error, GlassleafError) else GlassleafError()).response()


async def answer_unusable(_: Request, error: Exception) -> JSONResponse:
    """For FastAPI: a request of another form. Where in it, and why; what stood there is not repeated."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    if any(one["type"] == "too_long" and one["loc"][-1] == "people" for one in found):
        return Problem("too-large", "More people than one request may have; score them as a file.").response()
    errors = [{"where": ".".join(map(str, one["loc"])), "why": one["msg"]} for one in found]
    return Problem(
        "unusable", "The request has not the form that /openapi.json describes.", {"errors": errors}
    ).response()


async def answer_http(_: Request, error: Exception) -> JSONResponse:
    """For FastAPI: an unknown address or method."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        return Problem("method", "See /openapi.json.", headers=error.headers or {}).response()
    return Problem("unknown", "There is nothing at this address; see /openapi.json.").response()
