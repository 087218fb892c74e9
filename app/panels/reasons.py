"""Why this score: a question to all parties, its progress, the names that came back, the notice; what each party learned by it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from app.panels import frame, palette, person, run
from app.texts import Texts, markdown, percent, size
from app.view_models import View, explained
from backend.services.reasons import FORMATS as NOTICE_FORMATS
from backend.services.reasons import methods, said_at_once, why_blocked

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from streamlit.delta_generator import DeltaGenerator

    from backend.data.dictionary import Feature
    from backend.data.table import SampleSheet
    from backend.jobs import Job
    from backend.results import ScoreBatch
    from backend.services.reasons import Against, PersonReasons, Reason, Reasons

MIME = {"txt": "text/plain", "html": "text/html", "pdf": "application/pdf"}


class ReasonsForm(NamedTuple):
    """Where reasons are drawn, whom the person is to be compared with, and whether the button was pressed."""

    place: DeltaGenerator
    against: Against
    pressed: bool


def fits(view: View, done: ScoreBatch, sheet: SampleSheet | None, job: Job[Reasons] | None) -> bool:
    """Return whether reasons can be asked for now: of the person who was scored, while no others are being found."""
    same = sheet is not None and tuple(sheet.ids) == tuple(score.id for score in done.scores)
    return can_be_asked(view) and same and done.scores[0].scored and not (job is not None and job.state == "running")


def form(t: Texts, view: View, done: ScoreBatch, job: Job[Reasons] | None, *, enabled: bool) -> ReasonsForm:
    """Draw what asks for reasons: in a closed box below them once they were found."""
    place = st.container()
    offered = methods(view.model)
    if not can_be_asked(view):
        st.caption(t("reasons.unfit"))
        return ReasonsForm(place, offered[0], pressed=False)
    known = job is not None and job.result is not None and explained(job.result, done) is not None
    if known:
        box = frame.box(t("reasons.again"), "tune", "reasons_again")
    else:
        box = st.container()
    if box is None:
        return ReasonsForm(place, offered[0], pressed=False)
    with box:
        if not enabled and not (job is not None and job.state == "running"):
            st.caption(t("reasons.stale"))
        against = _compared(t, view)
        pressed = st.button(
            t("reasons.ask"), icon=":material/help:", disabled=not enabled, key="reasons_go", help=t("reasons.ask_help")
        )
    return ReasonsForm(place, against, pressed)


def can_be_asked(view: View) -> bool:
    """Return whether the model is one that reasons are given for."""
    return view.task == "binary" and view.model.outputs.aggregation == "sum" and bool(_hosts(view))


def _compared(t: Texts, view: View) -> Against:
    """Whom the person is to be compared with, if there is a choice."""
    offered = methods(view.model)
    if len(offered) == 1:
        st.caption(t(f"compared.only_{offered[0]}"))
        return offered[0]
    chosen: Against = st.selectbox(
        t("compared.title"),
        offered,
        format_func=lambda one: t(f"compared.{one}"),
        key="reasons_against",
        help=t("compared.help"),
    )
    return chosen


def draw(
    t: Texts,
    view: View,
    done: ScoreBatch,
    job: Job[Reasons] | None,
    own: pd.Series[Any] | None,
    notice: Callable[[Reasons, str, str, str], bytes] | None,
    redraw: Callable[[], None],
    again: Callable[[], None] | None = None,
) -> None:
    """Draw the job as it is: running, stopped, or its answer if it is about this score.

    `own` are the Guest's values of the person; `notice` draws a notice, None if the score decides nothing.
    """
    if job is None:
        return
    if job.state == "running":
        frame.follow(t, job, lambda stage: t(f"stage.{stage}"), "reasons", redraw)
    elif job.result is None:
        run.ended(t, job, again=again)
    elif (found := explained(job.result, done)) is not None:
        if _of_another_line(found, done):
            st.info(t("compared.other_cutoff", cutoff=percent(found.cutoff)))
            return
        _answer(t, view, found, own, notice)


def _answer(
    t: Texts,
    view: View,
    found: Reasons,
    own: pd.Series[Any] | None,
    notice: Callable[[Reasons, str, str, str], bytes] | None,
) -> None:
    about = found.people[0]
    if about.problems:
        frame.problems(t, about.problems)
        return
    st.markdown(t("reasons.sentence", n=len(about.merged)) if about.reasons else t("reasons.none"))
    if about.reasons:
        with st.container(key="reasons_listed"):  # small enough that four stand on the first screen
            st.markdown("\n".join(_line(t, view, merged, own) for merged in about.merged))
    st.caption(t(f"compared.said_{found.against}", people=f"{found.compared:,}"))
    for reason in about.reasons:
        if reason.blockers:
            words = {"meaning": markdown(t.meaning(view.model.feature(reason.feature)))}
            st.error(
                t("reasons.blocker", **words, why=markdown(why_blocked(reason.blockers, t))),
                icon=":material/block:",
                title=t("reasons.blocker_title"),
            )
    if notice is not None:
        _notice(t, found, about, notice)


def _line(t: Texts, view: View, merged: Sequence[Reason], own: pd.Series[Any] | None) -> str:
    """One reason: what it means, who holds it, on which side the person is, and whether the model works against the expectation."""
    against = any({reason.expected, reason.learned} == {"up", "down"} for reason in merged)
    features = [view.model.feature(reason.feature) for reason in merged]
    parties = dict.fromkeys(reason.party for reason in merged)
    values = [_value(t, view, *pair, own) for pair in zip(features, merged, strict=True)]
    comma = t("words.comma")
    line = t(
        "reasons.line",
        meaning=markdown(said_at_once([t.meaning(feature) for feature in features], t)),
        feature=markdown(comma.join(reason.feature for reason in merged)),
        party=comma.join(palette.name(t, view.federation, party) for party in parties),
        way=t(f"reasons.side_{merged[0].side or 'none'}"),
        value=t("reasons.value_own", value=comma.join(values)) if all(values) else "",
    )
    return f"- {line}" + (f" :material/warning: {t('reasons.against')}" if against else "")


def _value(t: Texts, view: View, feature: Feature, reason: Reason, own: pd.Series[Any] | None) -> str:
    """The person's value if the Guest holds it; a Host's stays there."""
    if reason.party != view.model.guest or own is None or feature.name not in own:
        return ""
    return markdown(person.shown(t, feature, own[feature.name]))


def _notice(t: Texts, found: Reasons, about: PersonReasons, notice: Callable[[Reasons, str, str, str], bytes]) -> None:
    if about.score.decision != "decline":
        st.caption(f":material/description: {t('reasons.notice_accepted')}")
        return
    if not about.reasons:
        return
    st.markdown(t("reasons.notice_blocked" if about.blocked else "reasons.notice"))
    with st.container(horizontal=True):
        for kind in NOTICE_FORMATS:
            st.download_button(
                t(f"reasons.file_{kind}"),
                partial(notice, found, about.score.id, t.language, kind),
                f"glassleaf-notice.{kind}",
                MIME[kind],
                icon=":material/block:" if about.blocked else ":material/download:",
                on_click="ignore",
                key=f"notice_{kind}",
            )


def _of_another_line(found: Reasons, done: ScoreBatch) -> bool:
    """Return whether they compare with people who were only just approved at a line that has moved since."""
    return found.against == "approved" and found.cutoff != done.cutoff


def learned(t: Texts, view: View, done: ScoreBatch, job: Job[Reasons] | None) -> None:
    """Draw what each party knows by the reasons that it did not know by the score; nothing if there are none of this score."""
    if job is not None and job.result is not None:
        found = explained(job.result, done)
    else:
        found = None
    if found is None or _of_another_line(found, done):
        return
    frame.section(t, "reasons.learned", "reasons")
    guest = view.model.guest
    hosts = _hosts(view)
    st.markdown(t("words.says", who=palette.name(t, view.federation, guest), said=t("reasons.learned_guest")))
    for host in hosts:
        st.markdown(t("words.says", who=palette.name(t, view.federation, host), said=t("reasons.learned_host")))
    cost = t(
        "reasons.cost",
        features=f"{found.features:,}",
        seconds=t.duration(found.seconds),
        ciphertexts=f"{found.ciphertexts:,}",
        cipher=frame.cipher(t, found.cipher, found.key_bits),
        bytes=size(sum(entry.bytes for entry in found.transcript)),
    )
    st.markdown(f":material/lock: {cost}", help=t("reasons.cost_help"))


def _hosts(view: View) -> list[str]:
    """Hosts that own a split of the model."""
    owners = {split.owner for tree in view.model.trees for split in tree.splits.values()}
    return [host for host in view.model.hosts if host in owners]
