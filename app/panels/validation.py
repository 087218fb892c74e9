"""The validation suite on a page: the verdict, every test with its worst figure, and how much room each has left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import charts, evidence, frame, palette, policies
from app.texts import Texts, markdown, number, percent
from app.view_models import View
from backend.services.validation import (
    MOST_ROOM,
    about_in_words,
    by_day,
    headroom_used,
    limit_in_words,
    seen_in_words,
    value_in_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from backend.data.dictionary import Feature
    from backend.results import ModelRecord
    from backend.services.validation import Again, Judged, Tested, Validation, Verdict

VERDICT_ICONS = {
    "pass": ":material/check_circle:",
    "undecided": ":material/help:",
    "warn": ":material/warning:",
    "fail": ":material/cancel:",
    "not_provided": ":material/remove:",
    "off": ":material/toggle_off:",
    "incomplete": ":material/pending:",
}
WORST_FIRST: tuple[Verdict, ...] = ("fail", "warn", "undecided", "not_provided", "off", "pass")
NO_CHOICE = ""


def setup(t: Texts, view: View, models: Sequence[ModelRecord]) -> tuple[str, str]:
    """The challenger's id and the feature that tells the time; empty = none."""
    record = view.record
    others = []
    for m in models:
        if (m.federation, m.task) == (record.federation, record.task) and m.id != record.id:
            others.append(m.id)
    challenger_column, time_column = st.columns(2, gap="large")
    with challenger_column:
        challenger = st.selectbox(
            t("validation.challenger_label"),
            [NO_CHOICE, *others],
            format_func=lambda model_id: model_id or t("validation.challenger_none"),
            key="validation_challenger",
            help=t("validation.challenger_help"),
        )
    features = {feature.name: feature for _, feature in view.federation.features()}
    with time_column:
        time = st.selectbox(
            t("validation.time_label"),
            [NO_CHOICE, *features],
            format_func=lambda name: t.brief(features[name]) if name else t("validation.time_none"),
            key="validation_time",
        )
    return challenger or NO_CHOICE, time or NO_CHOICE


def basis(t: Texts, view: View, validation_run: Validation) -> None:
    """Draw what the suite was run on, and what an operator changed."""
    st.caption(
        t(
            "validation.sentence",
            passed=validation_run.count("pass"),
            undecided=validation_run.count("undecided"),
            warned=validation_run.count("warn"),
            failed=validation_run.count("fail"),
            missing=validation_run.count("not_provided"),
            off=validation_run.count("off"),
            n=f"{validation_run.n:,}",
            cutoff=policies.measured_at(t, validation_run.cutoff, validation_run.policy),
        )
    )
    for test in validation_run.off:
        words = {"test": t(f"validation.test_{test.id}"), "because": markdown(test.because)}
        st.warning(t("validation.switched_off", **words), icon=VERDICT_ICONS["off"])
    if validation_run.tightened:
        st.caption(
            t(
                "validation.tightened",
                listed=t.listed([t(f"validation.measure_{name}") for name in validation_run.tightened]),
            )
        )
    if validation_run.unexamined:
        st.warning(
            t("validation.unexamined", listed=columns(t, view, validation_run.unexamined)),
            icon=":material/visibility_off:",
        )
    answered_before(t, view, validation_run.again)
    if validation_run.without_decisions:
        st.caption(t("validation.without_decisions", listed=columns(t, view, validation_run.without_decisions)))
    st.caption(
        t("validation.made", version=validation_run.version, made=validation_run.made[:16].replace("T", " ") + " UTC")
    )


def answered_before(t: Texts, view: View, again: Again) -> None:
    """Draw a sentence for each day on which Hosts gave answers that were taken again."""
    for day, keys in by_day(again).items():
        st.caption(t("validation.answered", day=day, listed=columns(t, view, keys)))


def columns(t: Texts, view: View, keys: Iterable[tuple[str, str]]) -> str:
    """Features of parties, each by its meaning and whose it is, as Markdown."""
    meanings = ((evidence.plain(t, view, feature), t.party(view.federation, party)) for party, feature in keys)
    return t.listed([markdown(t.noted(meaning, party)) for meaning, party in meanings])


def tests(t: Texts, view: View, validation_run: Validation) -> None:
    """Draw every test with its verdict, worst figure and thresholds; those that pass, and where tests come from, one press away."""
    passed = [test for test in validation_run.tests if test.verdict == "pass"]
    others = _worst_first([test for test in validation_run.tests if test.verdict != "pass"])
    if others:
        table(t, view, others, "validation.tests")
    if passed:
        box = frame.box(t("validation.passed", n=len(passed)), "check_circle", "validation_passed")
        if box is not None:
            with box:
                table(t, view, passed, "validation.passed_table")
    sources(t, [*others, *passed], "validation")


def _worst_first(tests: Sequence[Tested]) -> list[Tested]:
    return sorted(tests, key=lambda test: WORST_FIRST.index(test.verdict))


def table(t: Texts, view: View, rows_tested: Sequence[Tested], name: str) -> None:
    """Draw a row for each test, on a phone a card: verdict, worst figure with its thresholds; `name` is a text's key."""
    features = {}
    for _, feature in (*view.model.dictionary, *view.federation.features()):
        features[feature.name] = feature
    rows = {
        t("validation.head_test"): [_named(t, test) for test in rows_tested],
        t("validation.head_figure"): [_worst(t, view, features, test) for test in rows_tested],
    }
    with st.container(key=f"cards_{name.replace('.', '_')}"):
        frame.table(rows, t(name))


def sources(t: Texts, rows_tested: Sequence[Tested], place: str) -> None:
    """Draw where each test comes from, one press away."""
    box = frame.box(t("validation.sources"), "menu_book", f"{place}_sources")
    if box is not None:
        rows = {
            t("validation.head_test"): [markdown(t(f"validation.test_{test.id}")) for test in rows_tested],
            t("validation.head_source"): [markdown(t.text(test.source)) for test in rows_tested],
        }
        with box:
            frame.table(rows, t("validation.sources"))


def _named(t: Texts, test: Tested) -> str:
    verdict = f"{VERDICT_ICONS[test.verdict]} {t(f'validation.verdict_{test.verdict}')}"
    floor = f" · {t('validation.floor')}" if test.floor else ""
    name = markdown(t(f"validation.test_{test.id}"))
    return f"**{name}** · {verdict}{floor}  \n{t(f'validation.what_{test.id}')}"


def _worst(t: Texts, view: View, features: Mapping[str, Feature], test: Tested) -> str:
    if test.verdict == "off":
        return markdown(test.because)
    if test.missing:
        return t(f"validation.missing_{test.missing}")
    judged = test.figures[0]
    words = markdown(f"{_about(t, view, features, judged)}: {value_in_words(t, judged.figure, number)}")
    limits = limit_in_words(t, judged.figure.measure, judged.sense, judged.warn, judged.fail)
    if len(test.figures) == 1:
        more = ""
    else:
        more = t("validation.compared", n=len(test.figures))
    return (
        f"{t.noted(words, more)}  \n{limits}{seen_in_words(t, judged.figure.measure, judged.sense, judged.shows_from)}"
    )


def _about(t: Texts, view: View, features: Mapping[str, Feature], judged: Judged) -> str:
    figure = judged.figure
    feature = features.get(figure.feature)
    codes = t.codes(feature) if feature else {}
    if figure.measure == "cramers_v" and figure.group in features:
        codes = {figure.group: t.brief(features[figure.group])}
    feature_name = t.brief(feature) if feature else figure.feature
    return about_in_words(
        t, figure, feature_name, t.party(view.federation, figure.party) if figure.party else "", codes
    )


def headroom(t: Texts, validation_run: Validation) -> None:
    """Draw how much of the room to failing each test has used up."""
    measured = []
    for test in validation_run.tests:
        rooms = [room for judged in test.figures if (room := headroom_used(judged)) is not None]
        if rooms:
            measured.append((test, *rooms[0]))
    if not measured:
        return
    measured.sort(key=lambda row: (WORST_FIRST.index(row[0].verdict), -row[1]))
    failing = sum(test.verdict == "fail" for test, *_ in measured)
    colours = {"fail": charts.theme().warning, "warn": charts.theme().doubt, "undecided": charts.theme().doubt}
    bars = [
        charts.Bar(
            t(f"validation.test_{test.id}"),
            f"{_room(share)} · {t(f'validation.verdict_{test.verdict}')}",
            share,
            palette.Mark(colours[test.verdict], "circle", "") if test.verdict in colours else palette.NOBODY,
            low=best,
            high=worst,
        )
        for test, share, best, worst in measured
    ]
    sentence = t("validation.chart_sentence", failing=failing, n=len(measured))
    twin: frame.Columns = {
        t("validation.head_test"): [t(f"validation.test_{test.id}") for test, *_ in measured],
        t("validation.head_group"): [t(f"validation.group_{test.group}") for test, *_ in measured],
        t("validation.used"): [_room(share) for _, share, *_ in measured],
        t("validation.head_verdict"): [t(f"validation.verdict_{test.verdict}") for test, *_ in measured],
    }
    frame.chart(t, charts.bars(bars, sentence, 1.0), sentence, twin, "validation_room")


def _room(share: float) -> str:
    """Return how much of the room to failing is used up; a bar ends at twice the room."""
    if share >= MOST_ROOM:
        return f"≥ {percent(share)}"
    return percent(share)
