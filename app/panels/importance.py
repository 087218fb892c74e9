"""What matters most, by feature and by party: bars by the chosen measure, with whiskers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, cast

import streamlit as st

from app import view_models
from app.panels import charts, controls, frame, palette
from app.panels.charts import Bar
from app.panels.importance_directions import DIRECTION_SIGNS, explained
from app.texts import Texts, markdown, percent
from app.view_models import View
from backend.services.explanation import MEASURES, Permuted, SteadyImportance
from backend.services.explanation import Measure as ImportanceMeasure

if TYPE_CHECKING:
    from backend.explain.direction import LearnedDirection

WORTH: Final = "worth"  # this measure and the next ask the Hosts
SHAP: Final = "shap"
FEATURES_DRAWN = 12

Measure = ImportanceMeasure | Literal["worth", "shap"]
Rows = Sequence[SteadyImportance | Permuted]


def chosen(t: Texts, view: View) -> tuple[Measure, bool]:
    """Which measure, and whether all used features are drawn."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        measure = controls.choice(
            t("importance.measure"),
            (*MEASURES, WORTH, SHAP),
            "importance_measure",
            lambda key: t(f"importance.{key}" if key in (WORTH, SHAP) else f"words.{key}"),
            default="gain",
            help=t("importance.measure_help"),
        )
        n_used = len(view_models.used(view.importance))
        everything = n_used <= FEATURES_DRAWN or st.toggle(
            t("importance.all", n=n_used), key="importance_all", persist_state="session"
        )
    return cast(Measure, measure), everything


def term(measure: str) -> str:
    """Return the glossary's word for a measure."""
    return {"splits": "tree", WORTH: "permutation"}.get(measure, measure)


def parties(view: View, rows: Sequence[Permuted]) -> tuple[Permuted, ...]:
    """Return each party's whole: what was measured of all its features together, or of the one it has in use."""
    rows_of_parties = []
    for party in (view.model.guest, *view.model.hosts):
        of_party = [row for row in rows if row.party == party]
        together = [row for row in of_party if not row.feature]
        rows_of_parties += together or (of_party if len(of_party) == 1 else [])
    return tuple(sorted(rows_of_parties, key=lambda row: -row.fall))


def by_feature(t: Texts, view: View, measure: str, rows: Rows, everything: bool) -> None:
    """Draw bars by feature, longest first; arrow and words say the direction, a red mark a contradiction."""
    ordered = _ordered(view, rows)
    learned = {direction.feature: direction for direction in view.directions}
    sentence = _sentence(t, view, measure, ordered, learned)
    bars = ordered if everything else ordered[:FEATURES_DRAWN]
    legend = []
    for party in dict.fromkeys(row.party for row in bars):
        legend.append(palette.name(t, view.federation, party))
    words = dict.fromkeys(learned[row.feature].learned for row in bars if row.feature in learned)
    legend += [
        f"{DIRECTION_SIGNS[word]} {frame.direction(t, view.task, word)}" for word in DIRECTION_SIGNS if word in words
    ]
    st.markdown(f"{sentence}  \n:small[{'  '.join(legend)}]")
    frame.drawing(
        charts.bars([_bar(t, view, row, learned.get(row.feature)) for row in bars], sentence), "importance_bars"
    )
    frame.table_twin(t, lambda: _twin(t, view, ordered, learned), sentence, "importance_bars")


def _ordered(view: View, rows: Rows) -> Rows:
    """Return the rows of features in use, the largest first."""
    in_use = {row.feature for row in view_models.used(view.importance)}
    return sorted((row for row in rows if row.feature in in_use), key=lambda row: -_value(row))


def by_party(t: Texts, view: View, measure: str, rows: Rows) -> None:
    """Draw each party's part of the whole."""
    hosts = [row for row in rows if row.party != view.model.guest]
    if measure == WORTH:
        dearest = max(rows, key=_value)
        sentence = t(
            "importance.party_worth",
            party=palette.name(t, view.federation, dearest.party),
            fall=_words(dearest),
            quality=_quality(view),
        )
    elif hosts:
        share = percent(sum(_value(row) for row in hosts))
        sentence = t("importance.party_sentence", share=share, measure=t(f"importance.of_{measure}"))
    else:
        sentence = t("importance.alone")
    counts = {share.party: share for share in view_models.shares(view)}
    twin: frame.Columns = {
        t("words.party"): [palette.plain(t, view.federation, row.party) for row in rows],
        t("words.features"): [counts[row.party].features for row in rows],
        t("words.used"): [counts[row.party].used for row in rows],
        t(f"importance.column_{measure}"): [_words(row) for row in rows],
        t("importance.interval"): [_ends(row) for row in rows],
    }
    bars = []
    for row in rows:
        title = t.party(view.federation, row.party)
        hover = f"{title}\n{_words(row)}{_within(t, row)}"
        mark = palette.mark(view.federation, row.party)
        bars.append(Bar(title, _words(row), _value(row), mark, hover, row.low, row.high))
    frame.chart(t, charts.bars(bars, sentence), sentence, twin, "importance_party")


def whiskers(t: Texts, view: View, measure: str, rows: Rows, agreement: float) -> None:
    """Draw what the whiskers mean here, and whether two halves of the trees tell the same story."""
    if measure == WORTH:
        first = next((row for row in rows if isinstance(row, Permuted)), None)
        if first is not None:
            words = t("importance.whiskers_worth", n=f"{first.n:,}", repeats=first.repeats)
            st.caption(f":material/error_med: {words}", help=t("glossary.permutation"))
        return
    if all(row.low is None for row in rows):
        st.caption(f":material/error_med: {t('importance.whiskers_none')}")
        return
    grown = {"forest": "forest", view_models.IMPORTED: "imported"}.get(view_models.algorithm(view.record), "boosted")
    words = t(f"importance.whiskers_{grown}")
    if not math.isnan(agreement):
        words = t.joined(words, t("importance.agreement", rank=f"{agreement:+.2f}".replace("-", "−")))
    st.caption(f":material/error_med: {words}", help=t("glossary.stability"))


def _value(row: SteadyImportance | Permuted) -> float:
    return row.fall if isinstance(row, Permuted) else row.share


def _words(row: SteadyImportance | Permuted) -> str:
    if isinstance(row, Permuted):
        return _fall(row.fall)
    return percent(row.share)


def _fall(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _ends(row: SteadyImportance | Permuted) -> str:
    if row.low is None or row.high is None:
        return "–"
    show = _fall if isinstance(row, Permuted) else percent
    return f"{show(row.low)} … {show(row.high)}"


def _within(t: Texts, row: SteadyImportance | Permuted) -> str:
    if row.low is None:
        return ""
    return f"\n{t('importance.interval')}: {_ends(row)}"


def _quality(view: View) -> str:
    return "R²" if view.task == "number" else "AUC"


def _sentence(t: Texts, view: View, measure: str, rows: Rows, learned: dict[str, LearnedDirection]) -> str:
    if not rows:
        return t("importance.no_split")
    top = [markdown(t.brief(view.model.feature(row.feature))) for row in rows[:2]]
    if measure == WORTH:
        sure = sum(row.low is not None and row.low > 0 for row in rows)
        words = {"top": top[0], "fall": _words(rows[0]), "within": _ends(rows[0]), "quality": _quality(view)}
        return t("importance.worth_sentence", n=len(rows), sure=sure, **words)
    against = ""
    if view.task != "classes":
        stated = any(d.expected != "none" for d in learned.values())
        contradicting = sum(d.contradicts for d in learned.values())
        if stated:
            against = t("importance.against", n=contradicting)
        else:
            against = t("compliance.nothing_expected")
    share = percent(sum(_value(row) for row in rows[:2]))
    return t(
        "importance.sentence", top=t.listed(top), share=share, measure=t(f"importance.of_{measure}"), against=against
    )


def _bar(t: Texts, view: View, row: SteadyImportance | Permuted, direction: LearnedDirection | None) -> Bar:
    meaning = t.meaning(view.model.feature(row.feature))
    party = t.party(view.federation, row.party)
    importance = next(r for r in view.importance if r.feature == row.feature)
    hover = t("importance.hover", splits=importance.splits, trees=importance.trees, share=_words(row)) + _within(t, row)
    if direction:
        sign = DIRECTION_SIGNS.get(direction.learned, "–")
    else:
        sign = ""
    return Bar(
        words=meaning,
        mark=palette.mark(view.federation, row.party),
        figures=f"{sign} {_words(row)}",
        value=_value(row),
        hover="\n".join([meaning, party, hover, *([explained(t, view, direction.learned)] if direction else [])]),
        low=row.low,
        high=row.high,
        warning=t("importance.against_short") if direction is not None and direction.contradicts else "",
    )


def _twin(t: Texts, view: View, rows: Rows, learned: dict[str, LearnedDirection]) -> frame.Columns:
    importance = {row.feature: row for row in view.importance}
    table: dict[str, list[str]] = {
        t("features.meaning"): [t.meaning(view.model.feature(row.feature)) for row in rows],
        t("words.party"): [palette.plain(t, view.federation, row.party) for row in rows],
    }
    if any(isinstance(row, Permuted) for row in rows):
        table[t("importance.column_worth")] = [_words(row) for row in rows]
    return table | {
        t("importance.interval"): [_ends(row) for row in rows],
        t("words.gain"): [percent(importance[row.feature].gain_share) for row in rows],
        t("words.splits"): [percent(importance[row.feature].split_share) for row in rows],
        t("words.cover"): [percent(importance[row.feature].cover_share) for row in rows],
        t("features.learned"): [
            frame.direction(t, view.task, learned[row.feature].learned) if row.feature in learned else "–"
            for row in rows
        ],
    }
