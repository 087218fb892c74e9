"""Where the line is chosen by looking: what acceptance, bad rate and profit would be along the cut-off."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import disparity, frame, lines
from app.texts import Texts, amount, markdown, percent
from app.view_models import View
from backend.services.policies import Costs, LinePoint, Policy, PolicyStanding, at_line, frontier, most_profitable

if TYPE_CHECKING:
    from backend.evaluation.performance import Performance
    from backend.fairness.evidence import Evidence

STEP = 5  # percent between two rows of the table under the chart


def costs(t: Texts) -> Costs | None:
    """Draw where gain and loss are given; return them, or None if nothing was given."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        gain = st.number_input(
            t("decide.gain"), min_value=0.0, value=0.0, key="decide_gain", help=t("decide.costs_help")
        )
        loss = st.number_input(t("decide.loss"), min_value=0.0, value=0.0, key="decide_loss")
    return Costs(gain, loss) if gain > 0 or loss > 0 else None


def points_of(part: Performance, given: Costs | None) -> tuple[LinePoint, ...]:
    """Return what each measured cut-off means; empty if the model has no two outcomes."""
    measured = part.separation
    if measured is None or not sum(part.counts):
        return ()
    base_rate = part.counts[1] / sum(part.counts)
    return frontier(measured.cutoffs, measured.true_positive, measured.false_positive, base_rate, given)


def draw(t: Texts, points: Sequence[LinePoint], standing: PolicyStanding, chosen: float) -> None:
    """Draw acceptance and bad rate along the cut-off, with today's line and the one that is looked at."""
    point = at_line(points, chosen)
    now = at_line(points, standing.policy.cutoff)
    sentence = t(
        "decide.sentence",
        line=percent(chosen),
        accepted=percent(point.accepted),
        bad=_share(point.bad_rate),
        now=percent(standing.policy.cutoff),
        now_accepted=percent(now.accepted),
        now_bad=_share(now.bad_rate),
    )
    st.markdown(sentence)
    frame.chart(
        t, _curves(t, points, standing.policy.cutoff, chosen, sentence), sentence, lambda: _table(t, points), "decide"
    )
    best = most_profitable(points)
    if best is not None:
        words = t(
            "decide.profit", best=percent(best.cutoff), profit=amount(best.profit, ""), here=amount(point.profit, "")
        )
        st.markdown(words)


def _share(value: float) -> str:
    return "–" if math.isnan(value) else percent(value)


def _curves(t: Texts, points: Sequence[LinePoint], now: float, chosen: float, sentence: str) -> str:
    across = [point.cutoff for point in points]
    accepted = [point.accepted for point in points]
    bad = [0.0 if math.isnan(point.bad_rate) else point.bad_rate for point in points]
    hover = []
    for point in points:
        words = f"{t('card.cutoff')} {percent(point.cutoff)}\n{t('decide.accepted')}: {percent(point.accepted)}\n"
        hover.append((point.cutoff, f"{words}{t('decide.bad_rate')}: {_share(point.bad_rate)}"))
    return lines.drawing(
        [
            lines.Line(across, accepted, t("decide.accepted"), width=3),
            lines.Line(across, bad, t("decide.bad_rate"), dash="dot"),
            lines.Line([now, now], [0.0, 1.0], t("decide.today"), dash="dash"),
            lines.Line([chosen, chosen], [0.0, 1.0], t("decide.looked_at"), width=2),
        ],
        lines.between(t("card.cutoff"), 0.0, 1.0, lines.share),
        lines.between(t("decide.share"), 0.0, 1.0, lines.share),
        sentence,
        hover,
    )


def _table(t: Texts, points: Sequence[LinePoint]) -> frame.Columns:
    """Return a row every few percent of the cut-off."""
    rows = [at_line(points, step / 100) for step in range(STEP, 100, STEP)]
    rows = list(dict.fromkeys(rows))
    columns = {
        t("card.cutoff"): [percent(row.cutoff) for row in rows],
        t("decide.accepted"): [percent(row.accepted) for row in rows],
        t("decide.bad_rate"): [_share(row.bad_rate) for row in rows],
    }
    if not math.isnan(rows[0].profit):
        columns[t("decide.profit_head")] = [amount(row.profit, "") for row in rows]
    return columns


def by_group(t: Texts, view: View, measured: Mapping[str, Sequence[Evidence]]) -> None:
    """Draw what was measured of groups along the cut-off; if nothing was, say where it is measured."""
    if not measured:
        st.caption(f":material/groups: {t('decide.no_groups')}")
        return
    for feature, rows in measured.items():
        st.markdown(f"**{markdown(t.meaning(view.model.feature(feature)))}**")
        disparity.across(t, rows, f"decide_{feature}")


def bands(t: Texts, standing: PolicyStanding) -> Policy:
    """Draw the lines and points of a proposal, starting from today's; return the policy that they make."""
    usual = min(99, max(1, round(100 * standing.policy.cutoff)))
    before = standing.policy.refer_at
    low, high = st.slider(
        t("decide.lines"),
        1,
        99,
        (usual if before is None else min(usual, max(1, round(100 * before))), usual),
        format="%d %%",
        key="decide_lines",
        help=t("decide.lines_help"),
    )
    return Policy(
        decline_at=high / 100,
        refer_at=None if low == high else low / 100,
        points=standing.policy.points,
        treatments=standing.policy.treatments,
    )
