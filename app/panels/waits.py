"""What waits for a Host's operator, or was denied: for whom, since when, why, and what to do; it is no error."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from app import session
from app.texts import UNBROKEN, Texts, markdown
from backend.errors import ApprovalDenied, ApprovalPending, GlassleafError
from backend.jobs import Job, Silence, Waits


def draw(t: Texts, why: GlassleafError | None, again: Callable[[], None] | None = None) -> bool:
    """The panel, with a button where `again` asks the same once more; False, and nothing, if it ended for another reason."""
    if isinstance(why, ApprovalPending):
        words = {"host": _name(t, why.host), "number": why.number}
        past = datetime.now(UTC) - why.since
        title = t("waits.title", **words, past=t.past(past.total_seconds()))
        text = t("waits.ask", **words)
        st.info(text, icon=":material/hourglass_top:", title=title)
    elif isinstance(why, ApprovalDenied):
        host = _name(t, why.host)
        reason = markdown(why.reason)
        text = f"{t('waits.because', day=why.day, reason=reason)}\n\n{t('waits.change', host=host)}"
        st.info(text, icon=":material/block:", title=t(f"waits.{why.state}", host=host))
    else:
        return False
    if again is not None and st.button(t("waits.again"), icon=":material/refresh:", key="waits_again"):
        again()
        session.rerun()
    return True


def state(t: Texts, job: Job[Any]) -> str:
    """Return who holds work up, in a few words: an operator who has to decide, or a Host; empty if the work is not held up."""
    if isinstance(job.failure, ApprovalPending):
        return t("waits.tray", host=_name(t, job.failure.host))
    if job.waits is not None:
        late = job.waits.hosts
    elif job.silence is not None:
        late = job.silence.parties
    else:
        late = ()
    if job.state != "running" or not late or job.cancelled():
        return ""
    return t(
        f"pause.tray_{'silent' if job.waits is None else 'waits'}", hosts=t.listed([_name(t, host) for host in late])
    )


def pause(t: Texts, why: Waits | None) -> None:
    """For whom work under way waits at this moment; nothing if it does not."""
    if why is not None:
        hosts = t.listed([_name(t, host) for host in why.hosts])
        if why.kind == "busy":
            text = t("pause.busy", hosts=hosts)
        else:
            text = t("pause.down", hosts=hosts)
        st.info(text, icon=":material/hourglass_top:")


def silence(t: Texts, who: Silence | None) -> None:
    """Draw who has not answered for a while, and for how long; nothing if no party is late."""
    if who is not None:
        hosts = t.listed([_name(t, host) for host in who.parties])
        seconds = f"{int(who.seconds)}{UNBROKEN}{t('words.s')}"
        st.markdown(f":material/hourglass_top: {t('pause.silent', hosts=hosts, seconds=seconds)}")


def _name(t: Texts, host: str) -> str:
    return markdown(session.host_title(t, host))
