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


def fits(view: View, batch: ScoreBatch, sheet: SampleSheet | None, job: Job[Reasons] | None) -> bool:
    """Return whether reasons can be asked for now: of the person who was scored, while no others are being found."""
    same = sheet is not None and tuple(sheet.ids) == tuple(score.id for score in batch.scores)
    return can_be_asked(view) and same and batch.scores[0].scored and not (job is not None and job.state == "running")


def form(t: Texts, view: View, batch: ScoreBatch, job: Job[Reasons] | None, *, enabled: bool) -> ReasonsForm:
    """Draw what asks for reasons: in a closed box below them once they were found."""
    place = st.container()
    offered = methods(view.model)
    if not can_be_asked(view):
        st.caption(t("reasons.unfit"))
        return ReasonsForm(place, offered[0], pressed=False)
    explained_already = job is not None and job.result is not None and explained(job.result, batch) is not None
    if explained_already:
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
    against: Against = st.selectbox(
        t("compared.title"),
        offered,
        format_func=lambda way: t(f"compared.{way}"),
        key="reasons_against",
        help=t("compared.help"),
    )
    return against


def draw(
    t: Texts,
    view: View,
    batch: ScoreBatch,
    job: Job[Reasons] | None,
    guest_values: pd.Series[Any] | None,
    notice: Callable[[Reasons, str, str, str], bytes] | None,
    redraw: Callable[[], None],
    again: Callable[[], None] | None = None,
) -> None:
    """Draw the job as it is: running, stopped, or its answer if it is about this score.

    `guest_values` are the Guest's values of the person; `notice` draws a notice, None if the score decides nothing.
    """
    if job is None:
        return
    if job.state == "running":
        frame.follow(t, job, lambda stage: t(f"stage.{stage}"), "reasons", redraw)
    elif job.result is None:
        run.ended(t, job, again=again)
    elif (reasons := explained(job.result, batch)) is not None:
        if _of_another_line(reasons, batch):
            st.info(t("compared.other_cutoff", cutoff=percent(reasons.cutoff)))
            return
        _answer(t, view, reasons, guest_values, notice)


def _answer(
    t: Texts,
    view: View,
    reasons: Reasons,
    guest_values: pd.Series[Any] | None,
    notice: Callable[[Reasons, str, str, str], bytes] | None,
) -> None:
    about = reasons.people[0]
    if about.problems:
        frame.problems(t, about.problems)
        return
    st.markdown(t("reasons.sentence", n=len(about.merged)) if about.reasons else t("reasons.none"))
    if about.reasons:
        with st.container(key="reasons_listed"):  # small enough that four fit the first screen
            st.markdown("\n".join(_line(t, view, merged, guest_values) for merged in about.merged))
    st.caption(t(f"compared.said_{reasons.against}", people=f"{reasons.compared:,}"))
    for reason in about.reasons:
        if reason.blockers:
            words = {"meaning": markdown(t.meaning(view.model.feature(reason.feature)))}
            st.error(
                t("reasons.blocker", **words, why=markdown(why_blocked(reason.blockers, t))),
                icon=":material/block:",
                title=t("reasons.blocker_title"),
            )
    if notice is not None:
        _notice(t, reasons, about, notice)


def _line(t: Texts, view: View, merged: Sequence[Reason], guest_values: pd.Series[Any] | None) -> str:
    """Return one reason: what it means, who holds it, on which side the person is, and whether the model works against the expectation."""
    against = any({reason.expected, reason.learned} == {"up", "down"} for reason in merged)
    features = [view.model.feature(reason.feature) for reason in merged]
    parties = dict.fromkeys(reason.party for reason in merged)
    values = []
    for pair in zip(features, merged, strict=True):
        values.append(_value(t, view, *pair, guest_values))
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


def _value(t: Texts, view: View, feature: Feature, reason: Reason, guest_values: pd.Series[Any] | None) -> str:
    """Return the person's value if the Guest holds it; a Host's stays there."""
    if reason.party != view.model.guest or guest_values is None or feature.name not in guest_values:
        return ""
    return markdown(person.shown(t, feature, guest_values[feature.name]))


def _notice(
    t: Texts, reasons: Reasons, about: PersonReasons, notice: Callable[[Reasons, str, str, str], bytes]
) -> None:
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
                partial(notice, reasons, about.score.id, t.language, kind),
                f"glassleaf-notice.{kind}",
                MIME[kind],
                icon=":material/block:" if about.blocked else ":material/download:",
                on_click="ignore",
                key=f"notice_{kind}",
            )


def _of_another_line(reasons: Reasons, batch: ScoreBatch) -> bool:
    """Return whether they compare with people who were only just approved at a line that has moved since."""
    return reasons.against == "approved" and reasons.cutoff != batch.cutoff


def learned(t: Texts, view: View, batch: ScoreBatch, job: Job[Reasons] | None) -> None:
    """Draw what each party knows by the reasons that it did not know by the score; nothing if this score has no reasons."""
    if job is not None and job.result is not None:
        reasons = explained(job.result, batch)
    else:
        reasons = None
    if reasons is None or _of_another_line(reasons, batch):
        return
    frame.section(t, "reasons.learned", "reasons")
    guest = view.model.guest
    hosts = _hosts(view)
    st.markdown(t("words.says", who=palette.name(t, view.federation, guest), said=t("reasons.learned_guest")))
    for host in hosts:
        st.markdown(t("words.says", who=palette.name(t, view.federation, host), said=t("reasons.learned_host")))
    cost = t(
        "reasons.cost",
        features=f"{reasons.features:,}",
        seconds=t.duration(reasons.seconds),
        ciphertexts=f"{reasons.ciphertexts:,}",
        cipher=frame.cipher(t, reasons.cipher, reasons.key_bits),
        bytes=size(sum(entry.bytes for entry in reasons.transcript)),
    )
    st.markdown(f":material/lock: {cost}", help=t("reasons.cost_help"))


def _hosts(view: View) -> list[str]:
    """Hosts that own a split of the model."""
    owners = {split.owner for tree in view.model.trees for split in tree.splits.values()}
    return [host for host in view.model.hosts if host in owners]
