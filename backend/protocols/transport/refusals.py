"""An error at a Host becomes a refusal on the wire, and the refusal an error at the Guest: code and values, no sentence."""

from __future__ import annotations

from dataclasses import replace

from backend.errors import ApprovalDenied, GlassleafError, HostBusy, HostRefused, ParameterError, QuestionRefused
from backend.protocols.transport.codec import encode
from backend.protocols.transport.messages import Refusal
from backend.remark import Remark

# code → state of the approval; the Guest reads these as ApprovalDenied
ENDED_APPROVALS = {"approval_denied": "denied", "approval_withdrawn": "withdrawn"}


def refusal(conversation: str, error: GlassleafError) -> Refusal:
    """Return the message by which a Host reports an error to the Guest.

    Examples
    --------
    >>> refusal("c", HostBusy("lane_full", 0.5, seconds=0.5)).wait
    0.5
    """
    wait = error.wait if isinstance(error, HostBusy) else 0.0
    why = error.remarks[0]
    message = Refusal(conversation, why, isinstance(error, QuestionRefused), wait)
    try:
        encode(message)
    except ParameterError:  # a list of thousands of names, say; the Guest still has to get an answer
        return replace(message, why=Remark("reason_too_long", {"code": why.code}))
    return message


def refused(host: str, message: Refusal) -> HostRefused | QuestionRefused:
    """Return the error that a Host's refusal is at the Guest; `host` is the party that the wire proves to have sent it."""
    why = message.why
    if message.wait > 0:
        return HostBusy("host_refused", message.wait, host, why=why)
    if message.final:
        return QuestionRefused("host_refused", host=host, why=why)
    if why.code in ENDED_APPROVALS:
        day = str(why.values["day"])
        reason = str(why.values["reason"])
        return ApprovalDenied(host, ENDED_APPROVALS[why.code], day, reason)
    return HostRefused("host_refused", host=host, why=why)
