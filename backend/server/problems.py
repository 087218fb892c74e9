"""Errors as problem bodies (RFC 9457): a type that a program can branch on, and a sentence in the reader's language."""

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
    AmbiguousFile,
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
from backend.remark import Remark

MEDIA_TYPE = "application/problem+json"
STATUSES = {
    "approval": 202,
    "token": 401,
    "forbidden": 403,
    "unknown": 404,
    "method": 405,
    "key-reused": 409,
    "too-large": 413,
    "unusable": 422,
    "budget": 429,
    "host": 503,
    "busy": 503,
    "deadline": 503,
    "refused": 503,
    "internal": 500,
}
"""Kind of problem → its HTTP status."""
KINDS: Mapping[type[GlassleafError], str] = {
    ModelError: "unknown",
    PartyUnreachable: "host",
    SampleError: "unusable",
    AmbiguousFile: "unusable",
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
        One of :data:`STATUSES`.
    detail : tuple of Remark
        What, and what to do; the first one's code is the problem's type.
    more : mapping of str to Any
        Members of its own kind, e.g. ``date`` of a budget.
    """

    kind: str
    detail: tuple[Remark, ...] | Remark
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.detail, Remark):  # one is as good as several
            self.detail = (self.detail,)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Return what is said, as a tuple."""
        if isinstance(self.detail, tuple):
            return self.detail
        return (self.detail,)

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        return STATUSES[self.kind]

    def response(self, language: str = "en") -> JSONResponse:
        """Return the body, worded in a language, with its status."""
        body = {
            "type": f"urn:glassleaf:problem:{self.remarks[0].code}",
            "title": Remark(f"problem_{self.kind.replace('-', '_')}").sentence(language),
            "status": self.status,
            "detail": " ".join(remark.sentence(language) for remark in self.remarks),
            **self.more,
        }
        headers = {"Content-Language": language, "Vary": "Accept-Language", **self.headers}
        return JSONResponse(body, self.status, headers, MEDIA_TYPE)


def preferred_language(accepted: str) -> str:
    """Return the language of an Accept-Language header that we speak and that it weighs most; English if it names none.

    Examples
    --------
    >>> preferred_language("fr, zh-CN;q=0.8, en;q=0.5")
    'zh'
    """
    weights = {"en": 0.0, "zh": 0.0}
    for part in accepted.split(","):
        name, _, parameter = part.partition(";")
        language = name.strip().lower().partition("-")[0]
        try:
            if parameter:
                weight = float(parameter.strip().removeprefix("q="))
            else:
                weight = 1.0
        except ValueError:
            continue
        if language in weights:
            weights[language] = max(weights[language], weight)
    return "zh" if weights["zh"] > weights["en"] else "en"


def budget_spent(why: str | Remark, day: date) -> Problem:
    """Return the problem that no person of a request can be answered about before, at the latest, `day` (UTC)."""
    again = format_datetime(datetime.combine(day, time(), UTC), usegmt=True)
    remark = Remark("budget_spent_for_all", {"why": why, "day": day})
    return Problem("budget", remark, {"date": day.isoformat()}, {"Retry-After": again})


def problem_of(error: GlassleafError) -> Problem:
    """Return what an error of the services is to a program."""
    if isinstance(error, StoreError):
        return Problem("internal", Remark("server_store_unusable"))
    kind = next((kind for known_class, kind in KINDS.items() if isinstance(error, known_class)), "internal")
    if isinstance(error, HostBusy):
        wait = str(ceil(error.wait))
    else:
        wait = REPEAT.get(kind, "")
    headers = {"Retry-After": wait} if wait else {}
    return Problem(kind, error.remarks, headers=headers)


def language_of(request: Request) -> str:
    """Return the language that a request's reader prefers."""
    return preferred_language(request.headers.get("accept-language", ""))


async def answer_problem(request: Request, error: Exception) -> JSONResponse:
    """For FastAPI: answer a problem that was raised."""
    if isinstance(error, GlassleafError):
        error = problem_of(error)
    if not isinstance(error, Problem):
        error = Problem("internal", Remark("server_failed"))
    return error.response(language_of(request))


async def answer_unusable(request: Request, error: Exception) -> JSONResponse:
    """For FastAPI: answer a request of another form. It names where and why; what stood there is not repeated."""
    if isinstance(error, RequestValidationError):
        form_errors = error.errors()
    else:
        form_errors = []
    language = language_of(request)
    if any(form_error["type"] == "too_long" and form_error["loc"][-1] == "people" for form_error in form_errors):
        return Problem("too-large", Remark("too_many_people")).response(language)
    errors = [{"where": ".".join(map(str, form_error["loc"])), "why": form_error["msg"]} for form_error in form_errors]
    return Problem("unusable", Remark("request_of_other_form"), {"errors": errors}).response(language)


async def answer_http(request: Request, error: Exception) -> JSONResponse:
    """For FastAPI: answer an unknown address or method, or a body that cannot be read."""
    language = language_of(request)
    if isinstance(error, HTTPException) and isinstance(error.__cause__, Problem):
        return error.__cause__.response(language)
    if isinstance(error, HTTPException) and error.status_code == 405:
        return Problem("method", Remark("method_unknown"), headers=error.headers or {}).response(language)
    return Problem("unknown", Remark("address_unknown")).response(language)
