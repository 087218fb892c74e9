"""Less discriminatory alternatives: the form that searches, the frontier with its numbers, one model opened, and the choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import streamlit as st

from app import session
from app.errors import Problem
from app.panels import charts, disparity, evidence, frame, links, offers, palette, policies, reviews, run
from app.texts import Texts, label, markdown, percent
from backend.results import NOBODY
from backend.services.alternatives import AlternativesRequest
from backend.services.fairness import REFERENCE_GROUP

if TYPE_CHECKING:
    from app.view_models import View
    from backend.jobs import Job
    from backend.services.alternatives import DecidedModels, IntervalFigure, Opened, Point, Search, Tried

DEPTHS = tuple(range(1, 9))
LAMBDAS = (0.0, 1.0, 5.0, 20.0, 100.0)
PLACE = "alternatives"
FEATURES_SHOWN = 5  # features of an opened model
MODEL_ROWS = ("accepted", "gap", "ratio", "auc_together", "gap_together")  # of an opened model, below AUC and KS


@dataclass(frozen=True)
class Searching:
    """What is known of searches from a model, and what can be done.

    Attributes
    ----------
    expected : str
        Constraints by the dictionary's expected directions.
    start : callable
        Takes an :class:`AlternativesRequest`.
    opened : callable
        Takes an attribute and a model's name.
    choose : callable
        Takes an attribute, a model's name and a reason; may be refused.
    attempt : callable
        Takes the words for success, and what may be refused.
    """

    offer: offers.Offer
    searches: tuple[Search, ...]
    expected: str
    start: Callable[[AlternativesRequest], Job[Search]]
    opened: Callable[[str, str], Opened]
    choose: Callable[[str, str, str], object]
    attempt: Callable[[str, Callable[[], object]], None]


def panel(t: Texts, view: View, work: Searching, outcome: tuple[bool, Problem] | None) -> None:
    """Draw the form, and below it the last search by the attribute that is chosen."""
    searches = {search.attribute: search for search in work.searches}
    if searches:
        frame.section(t, "lda.title")
    frame.outcome(t, outcome)
    with st.expander(t("lda.form"), icon=":material/manage_search:", expanded=work.offer.here, key="lda_form"):
        st.markdown(t("lda.why"))
        if view.task != "binary" or view.record.algorithm not in ("secureboost", "forest", "fl-dt"):
            st.caption(f":material/info: {t('lda.not_for')}")
            return
        offers.form(t, view, work.offer, partial(request, t, view, work.expected), work.start, _done)
    if searches:
        attribute = next(iter(searches))
        if len(searches) > 1:
            attribute = st.selectbox(
                t("lda.shown"), list(searches), format_func=lambda name: evidence.plain(t, view, name), key="lda_shown"
            )
        result(t, view, work, searches[attribute])


def request(t: Texts, view: View, expected: str) -> AlternativesRequest:
    """What is varied, how many models that makes, and how long they may take."""
    flagged = list(dict.fromkeys(finding.feature for finding in view.compliance.findings))
    every = list(dict.fromkeys((*flagged, *(feature.name for _, feature in view.federation.features()))))
    words = partial(evidence.plain, t, view)
    models_column, gap_column = st.columns(2, gap="large")
    attribute = models_column.selectbox(t("lda.attribute"), every, format_func=words, key="lda_attribute")
    offered = [feature.name for _, feature in view.model.dictionary]
    dropped = models_column.multiselect(
        t("lda.without"),
        offered,
        default=[attribute] if attribute in offered else [],
        format_func=words,
        key=f"lda_without_{attribute}",
        help=t("lda.without_help"),
        placeholder=t("lda.no_feature"),
    )
    sets = tuple((name,) for name in dropped) + ((tuple(dropped),) if len(dropped) > 1 else ())
    parameters = view.record.parameters
    directed = bool(expected and "constraints" in parameters) and models_column.toggle(
        t("lda.expected"), key="lda_expected", help=t("lda.expected_help")
    )
    depths: Sequence[int] = models_column.pills(
        t("parameter.depth"),
        DEPTHS,
        selection_mode="multi",
        default=[int(str(parameters["depth"]))],
        key="lda_depths",
    )
    lambdas: Sequence[float] = ()
    if "reg_lambda" in parameters:
        lambdas = models_column.pills(
            t("parameter.reg_lambda"), LAMBDAS, selection_mode="multi", default=[], key="lda_lambdas"
        )
    with gap_column:
        entry = evidence.named(view, attribute)
        usual = _compared_with(view, attribute)
        reference = disparity.reference(t, entry and entry[1], f"lda_{attribute}", usual)
        cutoff = run.cutoff(t, session.policy(view), "lda_cutoff")
        tolerance = st.number_input(
            t("lda.tolerance"), 0.0, 0.1, AlternativesRequest.tolerance, 0.001, format="%.3f", key="lda_tolerance"
        )
    search_request = AlternativesRequest(
        view.record.id,
        attribute,
        sets,
        (expected,) if directed else (),
        tuple(depths),
        tuple(lambdas),
        () if cutoff is None else (cutoff,),
        tolerance,
        reference=reference,
    )
    first_settings = (parameters.get("constraints"), parameters["depth"], parameters.get("reg_lambda"))
    varied = zip(
        first_settings, (search_request.constraints, search_request.depths, search_request.lambdas), strict=True
    )
    count = prod(len({value, *others}) for value, others in varied) * len({(), *sets})
    st.caption(t("lda.takes", n=count, seconds=t.about(view.record.seconds * count)))
    return search_request


def _compared_with(view: View, attribute: str) -> str:
    """Return the group that outcomes by an attribute were compared with, so that all gaps of a page have one reference; empty if none."""
    measured = [row for f in view.compliance.findings if f.feature == attribute for row in f.disparities or ()]
    return next((row.about.en for row in measured if row.measure == f"selection rate, {REFERENCE_GROUP}"), "")


def _done(t: Texts, view: View, job: Job[Any]) -> None:
    if job.result is None:
        run.ended(t, job, "lda.cancelled")
        return
    st.info(t("lda.done", n=len(job.result.tried)), icon=":material/check_circle:")


def result(t: Texts, view: View, work: Searching, search: Search) -> None:
    """Draw the frontier at a decision, its table, one model opened, and the choice."""
    decided = search.decisions[0]
    if len(search.decisions) > 1:
        at = st.segmented_control(
            t("score.cutoff"),
            [d.cutoff for d in search.decisions],
            default=decided.cutoff,
            required=True,
            key="lda_decision",
            format_func=percent,
        )
        decided = next(d for d in search.decisions if d.cutoff == at)
    sentence = _sentence(t, view, search, decided)
    frame.chart(t, _frontier(t, search, decided), sentence, _twin(t, view, search, decided), "lda_frontier")
    checked = search.source == "validation"
    line = t("policy.measured", cutoff=policies.measured_at(t, decided.cutoff, decided.policy))
    st.caption(t.joined(line, t("lda.limits"), t("lda.other_records") if checked else ""))
    if search.choice:
        choice = {name: markdown(value) for name, value in vars(search.choice).items()}
        choice["time"] = search.choice.time[:16].replace("T", " ")
        if search.choice.person == NOBODY:
            key = "lda.chosen_nobody"
        else:
            key = "lda.chosen"
        st.info(t(key, **choice), icon=":material/how_to_reg:")
    names = [tried.name for tried in search.tried]
    best = next((point.name for point in decided.narrower()), names[0])
    name = st.selectbox(
        t("lda.open"),
        names,
        index=names.index(best),
        format_func=lambda name: f"{name} · {settings(t, view, search, search.of(name))}",
        key=f"lda_open_{search.attribute}",
    )
    _one(t, view, work, search, decided, name)


def _one(t: Texts, view: View, work: Searching, search: Search, decided: DecidedModels, name: str) -> None:
    """Draw one model next to the one in use, what it leans on, and the form that takes it."""
    opened = work.opened(search.attribute, name)
    first = decided.points[0]
    point = next(p for p in decided.points if p.name == name)
    table_column, choice_column = st.columns(2, gap="large")
    with table_column:
        rows = {
            t("figure.auc"): (first.auc, point.auc),
            t("figure.ks"): (first.ks, point.ks),
        }
        table = {
            t("card.fact"): [*rows, *(t(f"lda.{row}") for row in MODEL_ROWS)],
            t("lda.this"): [
                *(f"{a.value:.4f}" for a, _ in rows.values()),
                percent(first.accepted),
                _gap(t, search, first),
                _ratio(first),
                "–",
                "–",
            ],
            name: [
                *(f"{b.value:.4f}" for _, b in rows.values()),
                percent(point.accepted),
                _gap(t, search, point),
                _ratio(point),
                _together(point.auc_together, "{:+.4f}", 1),
                _together(point.gap_together, "{:+.1f}", 100),
            ],
        }
        frame.table(table, t("lda.open"))
    with choice_column:
        leading = sorted(opened.importance, key=lambda row: -row.gain_share)[:FEATURES_SHOWN]
        shares = [t.noted(evidence.plain(t, view, row.feature), percent(row.gain_share)) for row in leading]
        st.markdown(t("lda.leans", features=t.listed([markdown(share) for share in shares])))
        if opened.registered:
            links.to_model(opened.record.id, t("lda.to_model"))
        st.warning(t("document.lda_warning"), icon=":material/gavel:")
        field = f"lda_reason_{search.attribute}"
        reviews.emptied("lda_choose", field)
        reason = st.text_input(t("lda.reason"), key=field)
        if name == search.tried[0].name:
            words = t("lda.keep")
        else:
            words = t("lda.take", name=name)
        if st.button(words, icon=":material/how_to_reg:", key="lda_choose"):
            choose = partial(work.choose, search.attribute, name, reason)
            work.attempt(t("lda.taken"), reviews.emptying("lda_choose", choose))


def settings(t: Texts, view: View, search: Search, tried: Tried) -> str:
    """Return what sets a model apart from the first one."""
    first = search.tried[0]
    if tried.without:
        changes = [t("lda.told_without", features=t.listed([evidence.plain(t, view, f) for f in tried.without]))]
    else:
        changes = []
    changes += [t("lda.told_constraints")] if tried.constraints != first.constraints else []
    changes += [t("lda.told_depth", depth=tried.depth)] if tried.depth != first.depth else []
    changes += (
        [f"λ {tried.reg_lambda:g}"] if tried.reg_lambda is not None and tried.reg_lambda != first.reg_lambda else []
    )
    return t("words.comma").join(changes) or t("lda.itself")


def _sentence(t: Texts, view: View, search: Search, decided: DecidedModels) -> str:
    """Return what the search found among the alternatives that could be compared, and how many could not."""
    others = decided.points[1:]
    without = sum(point.gap is None for point in others)
    if without < len(others):
        sentences = [_compared(t, view, search, decided, len(others) - without)]
    else:
        sentences = []
    return t.joined(*sentences, *([t("lda.uncompared", n=without, tried=str(len(others)))] if without else []))


def _compared(t: Texts, view: View, search: Search, decided: DecidedModels, tried: int) -> str:
    narrower = decided.narrower()
    first = decided.points[0]
    words = {"feature": markdown(evidence.plain(t, view, search.attribute)), "tolerance": f"{search.tolerance:g}"}
    words |= {
        "tried": str(tried),
        "reference": markdown(_named(t, search, search.groups[search.reference])),
    }
    words |= {"gap": markdown(_gap(t, search, first)), "n": f"{search.n:,}"}
    words |= {"part": t("score.part_validation" if search.source == "validation" else "score.part_test")}
    if not narrower:
        return t("lda.none_found", **words)
    best = narrower[0]
    sure = sum(point.sure for point in narrower)
    words |= {
        "best": best.name,
        "best_gap": markdown(_gap(t, search, best)),
        "change": f"{best.auc_change.value:+.4f}".replace("-", "−"),
    }
    return t("lda.found", **words, narrower=str(len(narrower)), sure=str(sure))


def _frontier(t: Texts, search: Search, decided: DecidedModels) -> go.Figure:
    """Width of the gap across, AUC upwards, each with its interval; the frontier joined."""
    points = [point for point in decided.points if point.gap is not None]
    ahead = sorted((p for p in points if p.frontier), key=_width)
    first_name = search.tried[0].name
    figure = charts.figure(380, top=30)
    line = {"color": palette.INK, "width": 1}
    x = [_width(p) for p in ahead]
    y = [p.auc.value for p in ahead]
    figure.add_scatter(x=x, y=y, mode="lines", line=line, name=t("lda.frontier"), hoverinfo="skip")
    _dots(t, figure, search, [p for p in points if p.name == first_name], "first", "diamond")
    _dots(t, figure, search, [p for p in ahead if p.name != first_name], "ahead", "circle")
    _dots(t, figure, search, [p for p in points if not p.frontier and p.name != first_name], "behind", "circle-open")
    figure.update_xaxes(title_text=t("lda.axis_gap"), rangemode="tozero")
    figure.update_yaxes(title_text="AUC")
    return figure


def _dots(t: Texts, figure: go.Figure, search: Search, points: Sequence[Point], kind: str, symbol: str) -> None:
    if not points:
        return
    bars = {"thickness": 1, "width": 3, "color": palette.FAINT, "type": "data", "symmetric": False}
    x = [_width(p) for p in points]
    y = [p.auc.value for p in points]
    ends = [_ends(p) for p in points]
    lower = [abs(low - at) for (low, _), at in zip(ends, x, strict=True)]
    upper = [abs(high - at) for (_, high), at in zip(ends, x, strict=True)]
    above = [p.auc.high - p.auc.value for p in points]
    below = [p.auc.value - p.auc.low for p in points]
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers+text",
        text=[p.name for p in points],
        textposition="top right",
        marker={"symbol": symbol, "size": 10, "color": palette.INK},
        error_x={**bars, "array": upper, "arrayminus": lower},
        error_y={**bars, "array": above, "arrayminus": below},
        name=t(f"lda.dot_{kind}"),
        hovertext=[f"<b>{p.name}</b><br>{label(_gap(t, search, p))}<br>AUC {p.auc.value:.4f}" for p in points],
        hoverinfo="text",
    )


def _ends(point: Point) -> tuple[float, float]:
    """Return the least and the largest width of the gap, in points; from 0 if it may point either way."""
    if point.gap is None:
        return 0.0, 0.0
    low = 100 * point.gap.low
    high = 100 * point.gap.high
    return (0.0 if low * high <= 0 else min(abs(low), abs(high))), max(abs(low), abs(high))


def _width(point: Point) -> float:
    return 100 * abs(point.gap.value) if point.gap else 0.0


def _twin(t: Texts, view: View, search: Search, decided: DecidedModels) -> dict[str, list[str]]:
    points = decided.points
    return {
        t("lda.model"): [p.name for p in points],
        t("lda.settings"): [settings(t, view, search, search.of(p.name)) for p in points],
        "AUC": [f"{p.auc.value:.4f} [{p.auc.low:.4f}, {p.auc.high:.4f}]" for p in points],
        t("lda.change"): [
            f"{p.auc_change.value:+.4f} [{p.auc_change.low:+.4f}, {p.auc_change.high:+.4f}]" for p in points
        ],
        "KS": [f"{p.ks.value:.4f} [{p.ks.low:.4f}, {p.ks.high:.4f}]" for p in points],
        t("lda.accepted"): [percent(p.accepted) for p in points],
        t("lda.gap"): [_gap(t, search, p) for p in points],
        t("lda.ratio"): [_ratio(p) for p in points],
        t("lda.auc_together"): [_together(p.auc_together, "{:+.4f}", 1) for p in points],
        t("lda.gap_together"): [_together(p.gap_together, "{:+.1f}", 100) for p in points],
        t("lda.frontier"): [t("lda.frontier") if p.frontier else "–" for p in points],
    }


def _together(figure: IntervalFigure | None, form: str, unit: int) -> str:
    """Return a change with the interval that holds together with all others; none for the first model, or if it was not measured."""
    if figure is None:
        return "–"
    value, low, high = (form.format(unit * end).replace("-", "−") for end in (figure.value, figure.low, figure.high))
    return f"{value} [{low}, {high}]"


def _gap(t: Texts, search: Search, point: Point) -> str:
    """Return the widest gap in points with its interval, and whose it is."""
    if point.gap is None:
        return t("lda.not_measured")
    ends = (f"{100 * value:+.1f}" for value in (point.gap.value, point.gap.low, point.gap.high))
    value, low, high = (end.replace("-", "−") for end in ends)
    return t("lda.gap_is", group=_named(t, search, point.group), value=value, low=low, high=high)


def _ratio(point: Point) -> str:
    if point.ratio is None:
        return "–"
    return f"{point.ratio.value:.3f} [{point.ratio.low:.3f}, {point.ratio.high:.3f}]"


def _named(t: Texts, search: Search, group: Any) -> str:
    return t.text(search.group_in_words(group))
