"""Two models side by side: quality, size, what they use, how groups fare, which findings they have, how they were made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import session
from app.panels import charts, evidence, frame, lines, links, offers, palette, release, sidebar, verdict
from app.texts import Texts, bare, label, markdown, number, percent, wrap
from app.user_jobs import Work
from app.view_models import View
from backend.i18n import Catalogue
from backend.services.fairness import REFERENCE_GROUP, measure_in_words, widest
from backend.services.model_card import parameters_in_words

if TYPE_CHECKING:
    from backend.fairness.evidence import Evidence
    from backend.jobs import Job
    from backend.reports.model_comparison import OutcomePair, QualityFigure, Shift, SideBySide
    from backend.results import ModelRecord
    from backend.services.compliance import Finding
    from backend.services.lifecycle import ModelState
    from backend.services.model_difference import ModelDifference

SIZES = ("trees", "leaves", "splits", "hidden_splits", "depth", "used", "offered", "released")
FEATURES_DRAWN = 12  # features drawn; the table holds all
LINE_LETTERS = 44  # letters of a bar's words on a phone
BAR_PIXELS = 9  # pixels: the thickness of a bar
FIRST_MODEL_OPACITY = 0.4  # opacity of the first model's bar


def alone(t: Texts) -> None:
    """There is no second model: say how to come by one."""
    st.info(t("compare_models.alone"), icon=":material/compare_arrows:")
    with st.container(horizontal=True):
        links.page("train", t("train.title"), "model_training")
        links.page("compliance", t("compliance.title"), "gavel")


def choose(
    t: Texts,
    view: View,
    others: Sequence[ModelRecord],
    states: Mapping[str, ModelState],
    key: str,
    swap: Callable[[], None],
) -> None:
    """Draw the second model, relatives first, by the name and state it has in the model picker; a button makes it the first."""
    by_id = {record.id: record for record in others}

    def named(model_id: str) -> str:
        record = by_id[model_id]
        # What tells models apart comes first: a phone shows no more.
        words = [sidebar.named(t, record, states[model_id])]
        if record.retrained_from == view.record.id:
            words.append(t("compare_models.replaces"))
        elif view.record.retrained_from == record.id:
            words.append(t("compare_models.replaced"))
        words.append(frame.quality(t, record, t.unit(view.federation.label)))
        if states[model_id].name:  # else it is called after that moment
            words.append(session.made(record))
        return " · ".join(words)

    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(t("compare_models.beside"), list(by_id), key=key, format_func=named, width=520)
        st.button(t("compare_models.swap"), icon=":material/swap_horiz:", key="compare_swap", on_click=swap)


def headline(t: Texts, view: View, comparison: SideBySide) -> None:
    """Draw which of the two is better, what is true of each, fact by fact, and on whom that rests."""
    judge = session.service().verdicts
    both = []
    for side in (comparison.before, comparison.after):
        both.append((called(t, view, side.record), judge.of(side.record.id)))
    verdict.which(t, comparison.changes, both)
    basis(t, view, comparison)


def details(t: Texts, view: View, comparison: SideBySide) -> None:
    """Draw what each uses, its size, and how groups fare."""
    frame.fold(t("comparison.numbers"), "123", "compare_numbers_box", partial(numbers, t, comparison))
    frame.fold(
        t("comparison.importance_title"),
        "bar_chart",
        "compare_importance_box",
        partial(importance, t, view, comparison),
    )
    frame.fold(
        t("comparison.outcomes_title"),
        "groups",
        "compare_outcomes_box",
        partial(outcomes, t, view, comparison),
    )


def basis(t: Texts, view: View, comparison: SideBySide) -> None:
    """Draw what was left out of the second model, and on whom the comparison rests."""
    parts = []
    if comparison.without:
        features = t.listed([evidence.brief(t, view, name) for name in comparison.without])
        parts.append(t("comparison.without", n=len(comparison.without), features=features))
    if comparison.paired_on:
        parts.append(t("comparison.paired", n=f"{comparison.paired_on:,}"))
    else:
        if comparison.same_people:
            same = "comparison.same_people"
        else:
            same = "comparison.other_people"
        parts.append(t(same, n=f"{comparison.before.record.metrics.n:,}"))
    st.caption(t.joined(*parts))


def _signed(value: float) -> str:
    """Return a difference in the figure's own digits, with its sign."""
    return f"{'−' if value < 0 else '+'}{_digits(abs(value))}"


def _digits(value: float) -> str:
    """Four decimals below 1, as the report has them: with fewer, two rounded figures would not differ by their rounded difference."""
    if abs(value) < 1:
        return f"{value:.4f}".replace("-", "−")
    return number(value)


def pairing(
    t: Texts, view: View, comparison: SideBySide, work: Work, begin: Callable[[], Job[ModelDifference]]
) -> None:
    """Draw a button that lets both score the same people, if both were tested on them and it was not done yet."""
    if comparison.same_people and not comparison.paired_on:
        offers.button(t, view, work, "compare_models.pair", begin)


def open_full(t: Texts, view: View, comparison: SideBySide) -> None:
    """To the comparison on a page of its own, and to the second model."""
    both = {"model": comparison.before.record.id, "other": comparison.after.record.id}
    with st.container(horizontal=True):
        links.page("compare_models", t("comparison.open"), "compare_arrows", both)
        links.to_model(
            both["other"], t("comparison.open_second", model=called(t, view, comparison.after.record)), "home"
        )


def to_both(t: Texts, view: View, comparison: SideBySide) -> None:
    """To either model, by its name."""
    with st.container(horizontal=True):
        for key, side in (("first", comparison.before), ("second", comparison.after)):
            words = t(f"comparison.open_{key}", model=called(t, view, side.record))
            links.to_model(side.record.id, words, "home")


def called(t: Texts, view: View, record: ModelRecord) -> str:
    """Return what a model of the same federation is called."""
    state = session.service().models.states()[record.id]
    return frame.model_name(t, record, view.federation, state.name)


def numbers(t: Texts, comparison: SideBySide) -> None:
    """Draw every figure of quality and size as a table."""
    sizes = comparison.before.sizes, comparison.after.sizes
    rows = []
    for f in comparison.figures:
        rows.append((t(f"figure.{f.name}"), _digits(f.before), _digits(f.after), _between(t, f)))
    for name in SIZES:
        first = getattr(sizes[0], name)
        second = getattr(sizes[1], name)
        rows.append((t(f"sizes.{name}"), f"{first:,}", f"{second:,}", _change(first, second)))
    _table(t, ("figure", "first", "second", "difference"), rows, "comparison.numbers")


def _between(t: Texts, figure: QualityFigure) -> str:
    if figure.after != figure.before:
        change = _signed(figure.after - figure.before)
    else:
        change = "0"
    if math.isnan(figure.low):
        return change
    return t("compliance.interval", value=change, low=_signed(figure.low), high=_signed(figure.high))


def _change(first: float, second: float) -> str:
    change = second - first
    if change == 0:
        return "0"
    return ("+" if change > 0 else "−") + bare(abs(change))


def importance(t: Texts, view: View, comparison: SideBySide) -> None:
    """Draw paired bars: each feature's share of the gain in the first model, pale, and in the second."""
    if not comparison.shifts:
        st.info(t("comparison.no_shift"), icon=":material/search_off:")
        return
    largest = max(comparison.shifts, key=lambda shift: abs(shift.change))
    sentence = t(
        "comparison.importance" if None not in (largest.before, largest.after) else "comparison.importance_out",
        feature=evidence.brief(t, view, largest.feature),
        before=_share(t, largest.before),
        after=_share(t, largest.after),
    )
    if len(comparison.shifts) > FEATURES_DRAWN:
        sentence = t.joined(sentence, t("report.first", n=FEATURES_DRAWN))
    twin: frame.Columns = {
        t("features.meaning"): [evidence.plain(t, view, s.feature) for s in comparison.shifts],
        t("words.party"): [palette.plain(t, view.federation, s.party) for s in comparison.shifts],
        t("comparison.first"): [_share(t, s.before) for s in comparison.shifts],
        t("comparison.second"): [_share(t, s.after) for s in comparison.shifts],
    }
    frame.chart(
        t, _paired(t, view, comparison.shifts[:FEATURES_DRAWN], sentence), sentence, twin, "comparison_importance"
    )


def _share(t: Texts, share: float | None) -> str:
    if share is None:
        return t("comparison.not_given")
    return percent(share)


def _paired(t: Texts, view: View, shifts: Sequence[Shift], sentence: str) -> str:
    looks = {FIRST_MODEL_OPACITY: t("comparison.first_pale"), 1.0: t("comparison.second_full")}
    parts = lines.legend(
        [
            (f'stroke="{palette.INK}" stroke-width="{BAR_PIXELS}" opacity="{opacity}"', name)
            for opacity, name in looks.items()
        ]
    )
    y = charts.LINE * (len(looks) + 1)
    largest = max(share or 0.0 for shift in shifts for share in (shift.before, shift.after)) or 1.0
    for shift in shifts:
        sign = palette.mark(view.federation, shift.party)
        words = f"{sign.glyph} {wrap(evidence.plain(t, view, shift.feature), LINE_LETTERS, 2)}"
        change = f"{label(_share(t, shift.before))} → {label(_share(t, shift.after))}"
        for line in f"{words}  {change}".split("<br>"):
            parts.append(f'<text y="{y + charts.TEXT}" text-anchor="start">{line}</text>')
            y += charts.LINE
        for share, opacity in ((shift.before, FIRST_MODEL_OPACITY), (shift.after, 1.0)):
            width = 100 * (share or 0.0) / largest
            y += 2
            parts.append(
                f'<rect y="{y}" width="{width:.2f}%" height="{BAR_PIXELS}" fill="{sign.colour}" opacity="{opacity}"/>'
            )
            y += BAR_PIXELS
        y += 10
    return charts.svg(parts, y, sentence)


def outcomes(t: Texts, view: View, comparison: SideBySide) -> None:
    """Draw decisions by group in both, each with interval and number of records; or that they were not measured."""
    if not comparison.outcomes:
        st.markdown(t("comparison.no_outcomes"))
        return
    alone: list[str] = []
    for feature in dict.fromkeys(pair.feature for pair in comparison.outcomes):
        pairs = [pair for pair in comparison.outcomes if pair.feature == feature]
        if all(pair.before is None or pair.after is None for pair in pairs):
            alone.append(feature)
        else:
            _of_feature(t, view, feature, pairs)
    if alone:
        names = t.listed([evidence.brief(t, view, feature) for feature in alone])
        box = frame.box(t("comparison.measured_in_one", features=names), "looks_one", "measured_in_one")
        if box is not None:
            with box:
                for feature in alone:
                    _of_feature(t, view, feature, [pair for pair in comparison.outcomes if pair.feature == feature])
    st.caption(t("comparison.outcomes_note"))


def _of_feature(t: Texts, view: View, feature: str, pairs: Sequence[OutcomePair]) -> None:
    """Draw how far apart the groups of a feature are in both models, their acceptance, and all rates one press away."""
    st.markdown(_apart(t, view, feature, pairs))
    _rates(t, [pair for pair in pairs if pair.either.measure == "selection rate"], f"accepted_{feature}")
    rates = frame.box(t("compliance.all_rates"), "table", f"both_rates_{feature}")
    if rates is not None:
        with rates:
            _rates(t, pairs, f"all_{feature}")


def _rates(t: Texts, pairs: Sequence[OutcomePair], place: str) -> None:
    rows = []
    for pair in pairs:
        rows.append(
            (
                measure_in_words(t, pair.either.measure),
                evidence.group(t, pair.either),
                _measured(t, pair.before),
                _measured(t, pair.after),
            )
        )
    with st.container(key=f"cards_{place}"):  # on a phone a card each
        _table(t, ("rate", "group", "first", "second"), rows, "compliance.outcomes")


def _apart(t: Texts, view: View, feature: str, pairs: Sequence[OutcomePair]) -> str:
    """Return the gap between the groups' shares of acceptance, before and after."""
    words = evidence.brief(t, view, feature)
    furthest = widest([pair.either for pair in pairs])
    reference = next((p.either for p in pairs if p.either.measure == f"selection rate, {REFERENCE_GROUP}"), None)
    if furthest is None or reference is None:  # suppressed
        return t("comparison.by_feature", feature=words)
    pair = next(pair for pair in pairs if pair.either is furthest)
    first = _measured(t, pair.before)
    second = _measured(t, pair.after)
    groups = {"group": evidence.group(t, furthest), "reference": evidence.group(t, reference)}
    return t("comparison.gap", feature=words, **groups, before=first, after=second)


def _measured(t: Texts, row: Evidence | None) -> str:
    if row is None:
        return t("comparison.not_measured")
    figure = evidence.figure(t, row)
    if row.value is None:
        return figure
    return t("comparison.of_n", value=figure, count=f"{row.n:,}")


def leaks(t: Texts, comparison: SideBySide) -> None:
    """Draw what scores of both give away, as it was measured before each was registered."""
    for name, side in (("first", comparison.before), ("second", comparison.after)):
        st.markdown(f"**{t(f'comparison.{name}')}** · {release.sentence(t, side.record)}")
    if not comparison.leaks:
        return
    rows = []
    for leak in comparison.leaks:
        if leak.name in ("named", "without_dither"):
            text_of = percent
        else:
            text_of = "{:g}".format
        rows.append((t(f"document.leaks_{leak.name}"), text_of(leak.before), text_of(leak.after)))
    _table(t, ("score", "first", "second"), rows, "comparison.leaks_title")
    st.caption(t("document.leak_note"))


def findings(t: Texts, view: View, comparison: SideBySide) -> None:
    """Draw which rules speak of which features, in either model."""
    if not comparison.findings:
        st.markdown(t("comparison.no_findings"))
        return
    gone = sum(pair.after is None for pair in comparison.findings)
    fewer = t("comparison.gone", n=gone) if gone else ""
    st.markdown(t.joined(t("comparison.findings", n=len(comparison.findings)), fewer))
    columns = {
        t("comparison.feature"): [evidence.plain(t, view, pair.either.feature) for pair in comparison.findings],
        t("comparison.rule"): [t.text(pair.either.title) for pair in comparison.findings],
        t("comparison.status"): [t(f"compliance.{pair.either.status}") for pair in comparison.findings],
        t("comparison.first"): [_use(t, pair.before) for pair in comparison.findings],
        t("comparison.second"): [_use(t, pair.after) for pair in comparison.findings],
    }
    frame.rows(t, columns, "comparison_findings", t("comparison.findings_title"))


def _use(t: Texts, finding: Finding | None) -> str:
    if finding is None:
        return t("comparison.no_finding")
    return t("comparison.use", n=finding.usage.splits, gain=percent(finding.usage.gain_share))


def made(t: Texts, view: View, comparison: SideBySide) -> None:
    """Draw how the two were made: what each party learned in training, and every parameter that differs."""
    records = comparison.before.record, comparison.after.record
    rows = [
        (t("comparison.created"), *(record.created[:16].replace("T", " ") + " UTC" for record in records)),
        (t("comparison.algorithm"), *(markdown(frame.algorithm(t, record)) for record in records)),
        (t("comparison.grown_on"), *(_cipher(t, record) for record in records)),
    ]
    for difference in comparison.differences:
        if difference.name != "algorithm":
            values = zip(records, (difference.before, difference.after), strict=True)
            rows.append(
                (_name(t, difference.name), *(_value(t, view, record, difference.name, v) for record, v in values))
            )
    _table(t, ("made", "first", "second"), rows, "comparison.made_title")


def _cipher(t: Texts, record: ModelRecord) -> str:
    key = f"engine.label_{record.cipher}"
    if t.has(key):
        return frame.cipher(t, record.cipher, record.key_bits)
    return t("comparison.as_ranks")


def _name(t: Texts, name: str) -> str:
    """Return what was chosen: parties and features in this page's words, a parameter in the Train page's."""
    if t.has(f"comparison.{name}"):
        return t(f"comparison.{name}")
    [text] = parameters_in_words(Catalogue(t.language), {name: ""}, "", 0)
    return text


def _value(t: Texts, view: View, record: ModelRecord, name: str, value: str) -> str:
    if name == "exclude":
        if value:
            return t.listed([evidence.brief(t, view, part) for part in value.split(", ")])
        return "–"
    if name == "hosts":
        if value:
            return t.listed([markdown(t.party(view.federation, host)) for host in value.split(", ")])
        return "–"
    [text] = parameters_in_words(Catalogue(t.language), {name: value}, record.cipher, record.key_bits).values()
    return markdown(text)


def _table(t: Texts, heads: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    names = [t(f"comparison.{head}") for head in heads]
    frame.table(dict(zip(names, zip(*rows, strict=True), strict=True)), t(title))
