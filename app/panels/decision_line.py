"""Where the line is chosen by looking: what acceptance, outcomes and profit would be along it; and the policy that is proposed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.panels import charts, disparity, evidence, frame, lines
from app.texts import Texts, amount, bare, markdown, number, percent
from app.view_models import View
from backend.services.fairness import BY_CUTOFF
from backend.services.policies import (
    MARKS,
    TREATMENTS,
    Costs,
    Frontier,
    LinePoint,
    PointScale,
    Policy,
    PolicyStanding,
    Treatments,
    at_line,
    most_profitable,
)

if TYPE_CHECKING:
    from backend.fairness.evidence import Evidence

TABLE_ROWS = 19  # of the table under the chart
NO_REFERRAL = 0  # percent of the slider for classes at which no person is referred


def costs(t: Texts) -> Costs | None:
    """Draw where gain and loss are given; return them, or None if nothing was given."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        gain = st.number_input(
            t("decide.gain"), min_value=0.0, value=0.0, key="decide_gain", help=t("decide.costs_help")
        )
        loss = st.number_input(t("decide.loss"), min_value=0.0, value=0.0, key="decide_loss")
    return Costs(gain, loss) if gain > 0 or loss > 0 else None


def bands(t: Texts, standing: PolicyStanding, view: View) -> Policy:
    """Draw the lines of a proposal, starting from today's; return the policy that they make."""
    now = standing.policy
    if view.task == "classes":
        if now.refer_at is None:
            usual = NO_REFERRAL
        else:
            usual = round(100 * now.refer_at)
        at = st.slider(
            t("decide.refer_classes"),
            NO_REFERRAL,
            99,
            usual,
            format="%d %%",
            key="decide_refer",
            help=t("decide.refer_classes_help"),
        )
        return Policy("classes", decline_at=None, refer_at=None if at == NO_REFERRAL else at / 100)
    if view.task == "number":
        return _number_bands(t, now)
    usual = min(99, max(1, round(100 * now.cutoff)))
    refer_at = now.refer_at
    low, high = st.slider(
        t("decide.lines"),
        1,
        99,
        (usual if refer_at is None else min(usual, max(1, round(100 * refer_at))), usual),
        format="%d %%",
        key="decide_lines",
        help=t("decide.lines_help"),
    )
    return Policy(decline_at=high / 100, refer_at=None if low == high else low / 100)


def _number_bands(t: Texts, now: Policy) -> Policy:
    """Draw the lines of a model of a number, on its own scale."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        side = st.segmented_control(
            t("decide.declines"),
            ["above", "below"],
            default=now.declines,
            required=True,
            format_func=lambda name: t(f"decide.declines_{name}"),
            key="decide_declines",
        )
        line = st.number_input(t("decide.decline_number"), value=now.decline_at, key="decide_decline")
        refer = st.number_input(
            t("decide.refer_number"), value=now.refer_at, key="decide_refer_number", help=t("decide.refer_number_help")
        )
    return Policy("number", decline_at=line, refer_at=refer, declines="below" if side == "below" else "above")


def points(t: Texts, now: PointScale | None) -> PointScale | None:
    """Draw whether a score has points, and which odds they stand for."""
    with_points = st.toggle(t("decide.points"), now is not None, key="decide_points", help=t("policy.points_help"))
    if not with_points:
        return None
    usual = now or PointScale()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        base = st.number_input(t("decide.base_points"), 0, 10_000, usual.base_points, key="decide_base")
        odds = st.number_input(t("decide.base_odds"), 0.001, 1e6, usual.base_odds, key="decide_odds", format="%g")
        double = st.number_input(t("decide.double"), 1, 1000, usual.double, key="decide_double")
    scale = PointScale(int(base), float(odds), int(double))
    st.caption(t("decide.points_sentence", base=scale.base_points, odds=bare(scale.base_odds), double=scale.double))
    return scale


def treatments(t: Texts, now: Treatments) -> Treatments:
    """Draw what happens to whom something is unusual about."""
    by_mark: dict[str, Any] = {}
    for start in range(0, len(MARKS), 3):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            for mark in MARKS[start : start + 3]:
                by_mark[mark] = st.selectbox(
                    t(f"policy.unusual_{mark}"),
                    TREATMENTS,
                    TREATMENTS.index(now.of(mark)),
                    format_func=lambda name: t(f"policy.treat_{name}"),
                    key=f"decide_treat_{mark}",
                )
    return Treatments(**by_mark)


def line_of(policy: Policy) -> float | None:
    """Return the line that a chart shows of a policy; None if it draws none."""
    if policy.task == "classes":
        return policy.refer_at
    return policy.decline_at


def draw(t: Texts, frontier: Frontier, standing: PolicyStanding, proposal: Policy) -> None:
    """Draw acceptance, outcomes and profit along the line: today's, the one that waits, and the one that is looked at."""
    task = proposal.task
    text_of = percent if task != "number" else number
    looked_at = line_of(proposal)
    now = line_of(standing.policy)
    sentences = []
    if looked_at is not None:
        values = _values(task, at_line(frontier.points, looked_at), text_of(looked_at))
        sentences.append(t(f"decide.sentence_{task}", **values))
    if now is not None:
        values = _values(task, at_line(frontier.points, now), text_of(now))
        sentences.append(t(f"decide.now_{task}", **values))
    part = t(f"score.part_{frontier.part}")
    sentences.append(t("decide.measured_on", n=f"{frontier.people:,}", part=part))
    sentence = t.joined(*sentences)
    verticals = _verticals(t, standing, looked_at)
    table = partial(_table, t, frontier, task)
    frame.chart(t, _curves(t, frontier, task, verticals, sentence), sentence, table, "decide")
    best = most_profitable(frontier.points)
    if best is None or looked_at is None:
        return
    here = at_line(frontier.points, looked_at)
    words = t("decide.profit", best=percent(best.cutoff), profit=amount(best.profit, ""), here=amount(here.profit, ""))
    frame.chart(t, _profits(t, frontier, verticals, words), words, table, "decide_profit")


def _values(task: str, point: LinePoint, line: str) -> dict[str, str]:
    """Return what a sentence says of one line."""
    text_of = percent if task != "number" else number
    if math.isnan(point.outcome):
        outcome = "–"
    else:
        outcome = text_of(point.outcome)
    return {"line": line, "accepted": percent(point.accepted), "outcome": outcome}


def _verticals(t: Texts, standing: PolicyStanding, looked_at: float | None) -> list[tuple[float, str, str, int]]:
    """Return the lines that are drawn upright: place, name, dash and width."""
    verticals = []
    now = line_of(standing.policy)
    if now is not None:
        verticals.append((now, t("decide.today"), "dash", 2))
    if standing.proposed is None:
        waiting = None
    else:
        waiting = line_of(standing.proposed.policy)
    if waiting is not None:
        verticals.append((waiting, t("decide.waiting"), "dashdot", 2))
    if looked_at is not None and looked_at not in (now, waiting):
        verticals.append((looked_at, t("decide.looked_at"), "solid", 1))
    return verticals


def _across(t: Texts, frontier: Frontier, task: str) -> lines.Axis:
    if task != "number":
        return lines.between(t("decide.line_axis"), 0.0, 1.0, lines.share)
    return lines.rounded(t("decide.line_axis"), [point.cutoff for point in frontier.points], bare)


def _upright(verticals: Sequence[tuple[float, str, str, int]], low: float, high: float) -> list[lines.Line]:
    return [lines.Line([at, at], [low, high], name, dash=dash, width=width) for at, name, dash, width in verticals]


def _curves(
    t: Texts, frontier: Frontier, task: str, verticals: Sequence[tuple[float, str, str, int]], sentence: str
) -> charts.Drawing:
    """Return acceptance along the line, and as a second curve the share of bad or wrong outcomes."""
    across = [point.cutoff for point in frontier.points]
    curves = [lines.Line(across, [point.accepted for point in frontier.points], t(f"decide.accepted_{task}"), width=3)]
    if task != "number":
        measured = [point for point in frontier.points if not math.isnan(point.outcome)]
        outcomes = [point.outcome for point in measured]
        curves.append(
            lines.Line([point.cutoff for point in measured], outcomes, t(f"decide.outcome_{task}"), dash="dot")
        )
    text_of = percent if task != "number" else number
    hover = []
    for point in frontier.points:
        if math.isnan(point.outcome):
            outcome = "–"
        else:
            outcome = text_of(point.outcome)
        words = [text_of(point.cutoff), f"{t(f'decide.accepted_{task}')}: {percent(point.accepted)}"]
        words.append(f"{t(f'decide.outcome_{task}')}: {outcome}")
        hover.append((point.cutoff, "\n".join(words)))
    return lines.drawing(
        [*curves, *_upright(verticals, 0.0, 1.0)],
        _across(t, frontier, task),
        lines.between(t("decide.share"), 0.0, 1.0, lines.share),
        sentence,
        hover,
    )


def _profits(
    t: Texts, frontier: Frontier, verticals: Sequence[tuple[float, str, str, int]], sentence: str
) -> charts.Drawing:
    across = [point.cutoff for point in frontier.points]
    profits = [point.profit for point in frontier.points]
    up = lines.rounded(t("decide.profit_head"), [0.0, *profits], bare)
    hover = []
    for point in frontier.points:
        hover.append((point.cutoff, f"{percent(point.cutoff)}\n{t('decide.profit_head')}: {amount(point.profit, '')}"))
    curves = [lines.Line(across, profits, t("decide.profit_head"), width=3), *_upright(verticals, up.low, up.high)]
    return lines.drawing(curves, _across(t, frontier, "binary"), up, sentence, hover)


def _table(t: Texts, frontier: Frontier, task: str) -> frame.Columns:
    """Return some rows along the line."""
    step = max(1, len(frontier.points) // TABLE_ROWS)
    rows = frontier.points[step - 1 :: step]
    text_of: Callable[[float], str] = percent if task != "number" else number
    columns = {
        t("decide.line_axis"): [text_of(row.cutoff) for row in rows],
        t(f"decide.accepted_{task}"): [percent(row.accepted) for row in rows],
        t(f"decide.outcome_{task}"): ["–" if math.isnan(row.outcome) else text_of(row.outcome) for row in rows],
    }
    if not math.isnan(rows[0].profit):
        columns[t("decide.profit_head")] = [amount(row.profit, "") for row in rows]
    return columns


def by_group(
    t: Texts, view: View, measured: Mapping[str, Sequence[Evidence]], standing: PolicyStanding, proposal: Policy
) -> None:
    """Draw acceptance by group along the cut-off, where it was measured; if it was not, say where to measure it."""
    if not measured:
        st.caption(f":material/groups: {t('decide.no_groups')}")
        return
    verticals = _verticals(t, standing, line_of(proposal))
    for feature, rows in measured.items():
        rates = []
        for row in rows:
            if row.measure == BY_CUTOFF and row.cutoff is not None and row.value is not None:
                rates.append(row)
        st.markdown(f"**{markdown(evidence.plain(t, view, feature))}**")
        if not rates:
            st.caption(t("decide.group_not_along"))
            continue
        sentence = disparity.range_sentence(t, rows) or t("decide.groups")
        frame.chart(
            t,
            _group_curves(t, rates, verticals, sentence),
            sentence,
            partial(_group_table, t, rates),
            f"decide_{feature}",
        )


def _groups(t: Texts, rates: Sequence[Evidence]) -> dict[str, list[Evidence]]:
    """Return group → its acceptance, lowest cut-off first."""
    by_group: dict[str, list[Evidence]] = {}
    for row in sorted(rates, key=lambda row: row.cutoff or 0.0):
        by_group.setdefault(t.text(row.about), []).append(row)
    return by_group


def _group_curves(
    t: Texts, rates: Sequence[Evidence], verticals: Sequence[tuple[float, str, str, int]], sentence: str
) -> charts.Drawing:
    curves = []
    hover: dict[float, list[str]] = {}
    dashes = tuple(lines.DASHES)
    for place, (name, rows) in enumerate(_groups(t, rates).items()):
        cutoffs = [row.cutoff or 0.0 for row in rows]
        shares = [row.value or 0.0 for row in rows]
        curves.append(lines.Line(cutoffs, shares, name, dash=dashes[place % len(dashes)], dots=True))
        for cutoff, share in zip(cutoffs, shares, strict=True):
            hover.setdefault(cutoff, [percent(cutoff)]).append(f"{name}: {percent(share)}")
    words = [(cutoff, "\n".join(texts)) for cutoff, texts in sorted(hover.items())]
    return lines.drawing(
        [*curves, *_upright(verticals, 0.0, 1.0)],
        lines.between(t("decide.line_axis"), 0.0, 1.0, lines.share),
        lines.between(t("decide.accepted_binary"), 0.0, 1.0, lines.share),
        sentence,
        words,
    )


def _group_table(t: Texts, rates: Sequence[Evidence]) -> frame.Columns:
    cutoffs = sorted({row.cutoff or 0.0 for row in rates})
    columns = {t("decide.line_axis"): [percent(cutoff) for cutoff in cutoffs]}
    for name, rows in _groups(t, rates).items():
        shares = {row.cutoff: percent(row.value or 0.0) for row in rows}
        columns[markdown(name)] = [shares.get(cutoff, "–") for cutoff in cutoffs]
    return columns
