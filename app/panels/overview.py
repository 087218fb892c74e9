"""A model on one screen: what it does for whom, how far it has come, what the Guest learns of a person, what to do next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from app import view_models
from app.panels import frame, links
from app.texts import Texts, markdown, percent
from app.view_models import View
from backend.services.roles import REGULATOR
from backend.services.system_user import system_user

if TYPE_CHECKING:
    from backend.services.lifecycle import Standing

ACTIONS = {  # what can be done next: icon, page
    "score": ("lock", "score"),
    "review": ("gavel", "compliance"),
    "protected": ("visibility", "privacy"),
    "report": ("description", "report"),
}


def sentence(t: Texts, view: View) -> None:
    """Draw what it predicts, for whom, with whose data."""
    federation = view.federation
    hosts = view.model.hosts
    values = {
        "label": markdown(t.label(federation)),
        "guest": markdown(t.party(federation, view.model.guest)),
        "hosts": t.listed([markdown(t.party(federation, host)) for host in hosts]),
    }
    st.markdown(f"## {t('overview.sentence' if hosts else 'overview.sentence_alone', **values)}", anchors=False)


def named(t: Texts, standing: Standing) -> None:
    """Draw what it is called, who answers for it, what is worth knowing; nothing if none of this was given."""
    model = standing.model
    # Until an owner is named, it is the user of this computer, which tells a reader nothing.
    has_owner = model.owner not in ("", system_user())
    if has_owner:
        owner = t("overview.owned", owner=markdown(model.owner))
    else:
        owner = ""
    parts = [
        f"**{markdown(t.model(model.name))}**" if model.name else "",
        owner,
        markdown(" ".join(model.note.split())),
    ]
    if any(parts):
        st.markdown(f":material/label: {' · '.join(filter(None, parts))}")


def bar(t: Texts, standing: Standing, n_questions: int, manage: Callable[[], None]) -> None:
    """In use? Approved? What waits for an answer? And the way to change it."""
    model = standing.model
    approval = standing.approval
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.badge(t(f"states.{model.state}"), icon=f":material/{frame.STATE_ICONS[model.state]}:", color="blue")
        if approval is None:
            st.badge(t("states.unapproved"), icon=":material/gpp_maybe:", color="gray")
        else:
            by = {"person": markdown(approval.person), "day": approval.time[:10]}
            st.badge(t("states.approved_by", **by), icon=":material/verified:", color="green")
        if n_questions:
            st.badge(t("questions.open_n", n=n_questions), icon=":material/contact_support:", color="orange")
        st.button(t("states.manage"), icon=":material/tune:", type="tertiary", key="manage", on_click=manage)


def actions(t: Texts, role: str, undecided: int) -> None:
    """Draw one main action a role, and two more."""
    review = ("review", t("overview.do_review", n=undecided) if undecided else t("overview.do_reviewed"))
    protected = ("protected", t("overview.do_protected"))
    if role == REGULATOR:
        offered = (review, ("report", t("overview.do_report")), protected)
    else:
        offered = (("score", t("overview.do_score")), review, protected)
    with st.container(horizontal=True, gap="small"):
        for name, words in offered:
            icon, target = ACTIONS[name]
            if name == offered[0][0]:
                kind = frame.emphasis()
            else:
                kind = "secondary"
            if st.button(words, icon=f":material/{icon}:", type=kind, key=f"do_{name}"):
                links.go(target)


def figures(t: Texts, view: View) -> None:
    """Draw how good it is, in a line, and the way to more."""
    record = view.record
    metrics = view.record.metrics
    figure_texts = (
        f"**{t(f'figure.{name}')} {markdown(frame.figure(metrics, name, t.unit(view.federation.label)))}**"
        for name in view_models.FIGURES[view.task]
    )
    parts = [*figure_texts, t("overview.trees", n=record.n_trees, trees=f"{record.n_trees:,}")]
    if view.task == "binary":
        parts.append(t("overview.rate", rate=percent(record.positive_rate)))
    where = t("overview.tested" if metrics.part == "test" else "overview.not_tested")
    parts.append(t("overview.measured", people=f"{metrics.n:,}", where=where))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(" · ".join(parts), width="content")
        links.page("model_card", t("model_card.title"), "fact_check")


def privacy(t: Texts, view: View) -> None:
    """Draw what the Guest learns of each person, and what stays with the Hosts."""
    shares = view_models.shares(view)
    if len(shares) == 1:
        st.markdown(f":material/lock: {t('overview.alone')}")
        return
    kind = view_models.released(view)
    numbers = {"classes": len(view.model.outputs.classes), "median": len(view.model.trees)}.get(kind, 1)
    hidden = sum(share.splits for share in shares[1:])
    splits = sum(share.splits for share in shares)
    at_hosts = t("overview.hidden", hidden=f"{hidden:,}", splits=f"{splits:,}")
    learned = t(f"overview.private_{kind}", numbers=f"{numbers:,}")
    st.markdown(f":material/lock: {t.joined(learned, at_hosts, t('overview.clear'))}")
