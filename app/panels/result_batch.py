"""The answer about a file of people: what was unusual, their histogram, and their scores in a table to sort."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from app import errors, session
from app.panels import charts, frame, palette, result_person, standing
from app.texts import Texts, amount, markdown, number
from app.view_models import Speed, View
from backend.i18n import joined
from backend.remark import Remark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from backend.results import Score, ScoreBatch

HISTOGRAM_BINS = 20  # of a histogram
OWN_MARKS = ("out_of_range", "missing_value")  # marks that no remark says
BARS_DRAWN = 12  # classes, or ranges of a number, in the picture


def unusual(t: Texts, view: View, batch: ScoreBatch) -> None:
    """Draw what was not scored or not understood, with the number of people, the worst first."""
    lines = []
    for status, icon in (("failed", "error"), ("refused", "block")):
        rows = [score for score in batch.scores if score.status == status]
        if rows:
            lines.append(f":material/{icon}: {t(f'people.{status}', n=len(rows), people=f'{len(rows):,}')}")
    absent = Counter(host for score in batch.scores if score.scored for host in score.not_held_by)
    for host, n in absent.most_common():
        words = t("people.absent", n=n, people=f"{n:,}", host=palette.name(t, view.federation, host))
        lines.append(f":material/person_off: {words}")
    marks = Counter(mark for score in batch.scores for mark in score.marks if mark in OWN_MARKS)
    for mark, n in marks.most_common():
        words = t("people.marked", n=n, people=f"{n:,}", mark=t(f"policy.mark_{mark}"))
        lines.append(f":material/rule: {words}")
    counted = {_of_code(note) for note in batch.notes}
    for note in batch.notes:
        if note.code == "codes_not_listed" and note.values["name"] in counted:
            continue  # the rows that have the code are counted
        lines.append(f":material/help: {_worded(t, note)}")
    marked = sum(bool(score.problems or score.remarks or score.marks) for score in batch.scores)
    if not lines and not marked:
        st.success(t("people.nothing_unusual", n=len(batch.scores)), icon=":material/check_circle:")
        return
    heading = t("people.unusual", n=marked, marked=f"{marked:,}", people=f"{len(batch.scores):,}")
    if lines:
        st.warning("  \n".join(lines), icon=":material/report:", title=heading)
    else:
        st.warning(heading, icon=":material/report:")


def _of_code(note: Remark) -> str:
    """Return of which column rows have a code that the model does not know, if a note counts them."""
    example = note.values.get("example")
    if isinstance(example, Remark) and example.code.startswith("code_"):
        return example.column
    return ""


def _worded(t: Texts, remark: Remark) -> str:
    return markdown(errors.worded(t, remark, partial(session.host_title, t)))


def draw(t: Texts, view: View, batch: ScoreBatch, took: Speed) -> None:
    """Draw what became of the people in figures, and how fast."""
    good = [score for score in batch.scores if score.scored]
    with st.grid("auto", min_column_width=115):
        st.metric(t("score.scored"), f"{len(good):,}", border=True)
        if view.task == "binary":
            decisions = Counter(score.decision for score in good)
            st.metric(t("people.accepted"), f"{decisions['accept']:,}", border=True)
            st.metric(t("policy.referred"), f"{decisions['refer']:,}", help=t("policy.referred_help"), border=True)
            st.metric(t("score.declined"), f"{decisions['decline']:,}", help=t("glossary.cutoff"), border=True)
        elif view.task == "number" and good:
            mean = sum(score.margin for score in good) / len(good)
            st.metric(t("score.mean"), amount(mean, t.unit(view.federation.label)), border=True)
        st.metric(t("score.failed"), f"{len(batch.scores) - len(good):,}", help=t("score.failed_help"), border=True)
        st.metric(t("score.a_second"), number(took.a_second), help=t("score.a_second_help"), border=True)
    st.markdown(sentence(t, view, batch))


def sentence(t: Texts, view: View, batch: ScoreBatch) -> str:
    """Return what became of many people, as Markdown."""
    good = [score for score in batch.scores if score.scored]
    absent = sum(bool(score.not_held_by) for score in good)
    per = t.duration(batch.seconds / max(len(good), 1))
    understood_in_part = sum(score.status == "partial" for score in good)
    words = [
        t(
            "score.batch_sentence",
            n=len(good),
            people=f"{len(good):,}",
            absent=absent,
            partial=understood_in_part,
            per=per,
        )
    ]
    if view.task == "classes" and good:
        counts = Counter(score.predicted for score in good).most_common()
        words.append(t("score.batch_classes", listed=t.listed([f"{markdown(c)} {n:,}" for c, n in counts])))
    return t.joined(*words)


def histogram(t: Texts, view: View, batch: ScoreBatch) -> None:
    """Draw how many of these people have which probability, class or value; nothing if no person was scored."""
    good = [score for score in batch.scores if score.scored]
    if not good:
        return
    words = t("people.histogram", n=len(good), people=f"{len(good):,}")
    if view.task == "binary":
        edges = [100 * edge for edge in np.linspace(0.0, 1.0, HISTOGRAM_BINS + 1)]
        counts = np.histogram([100 * score.probability for score in good], edges)[0].tolist()
        line = 100 * (batch.cutoff if batch.what_if is None else batch.what_if)
        drawing = standing.bars_by_probability(t, edges, counts, line, None, words)
        names = [f"{low:.0f}–{high:.0f}\u00a0%" for low, high in pairwise(edges)]
    else:
        names, counts = _by_class(good) if view.task == "classes" else _by_value(t, view, good)
        rows = []
        for name, n in zip(names, counts, strict=True):
            rows.append((f"{name}: {n:,}", float(n), palette.INK))
        drawing = charts.lying(rows, max(*counts, 1), words)
    column = {"binary": "score.probability", "classes": "score.class", "number": "score.value"}[view.task]
    frame.chart(t, drawing, words, {t(column): names, t("score.people"): counts}, "people")


def _by_class(good: Sequence[Score]) -> tuple[list[str], list[int]]:
    counts = Counter(score.predicted for score in good).most_common(BARS_DRAWN)
    return [name for name, _ in counts], [n for _, n in counts]


def _by_value(t: Texts, view: View, good: Sequence[Score]) -> tuple[list[str], list[int]]:
    unit = t.unit(view.federation.label)
    counts, edges = np.histogram([score.margin for score in good], BARS_DRAWN)
    names = []
    for low, high in pairwise(edges.tolist()):
        names.append(f"{amount(low, unit)} – {amount(high, unit)}")
    return names, counts.tolist()


def table(t: Texts, view: View, batch: ScoreBatch) -> None:
    """Draw the scores as a table that a click on a head sorts, in the file's order at first."""
    columns: dict[str, tuple[Sequence[object], object]] = {}
    columns[t("score.id")] = [score.id for score in batch.scores], st.column_config.TextColumn(width=100)
    for name, (cell, look) in _cells(t, view, batch.scores).items():
        columns[t(f"score.{name}")] = [cell(score) if score.scored else None for score in batch.scores], look
    notes = [_note(t, view, score) for score in batch.scores]
    columns[t("score.note")] = notes, st.column_config.TextColumn(width=320)
    frame.dressed(columns, "people_scores", t("score.table"))


def _cells(t: Texts, view: View, scores: Sequence[Score]) -> Mapping[str, tuple[Callable[[Score], object], object]]:
    """Return the columns by what is predicted: how each is read out of a score, and how it is drawn."""
    cells: dict[str, tuple[Callable[[Score], object], object]] = {}
    small = st.column_config.TextColumn(width=100)
    if view.task == "number":
        cells["value"] = (lambda score: score.margin), st.column_config.NumberColumn(format="%.4g", width=100)
    else:
        if view.task == "binary":
            cells["decision"] = (lambda score: t(f"score.{score.decision}")), small
        else:
            cells["predicted"] = (lambda score: score.predicted), small
        percents = st.column_config.NumberColumn(format="%.1f %%", width=90)
        cells["probability"] = (lambda score: 100 * score.probability), percents
    if any(score.points is not None for score in scores):
        cells["points"] = (lambda score: score.points), st.column_config.NumberColumn(width=80)
    if view.model.outputs.aggregation == "sum":
        cells["guest_part"] = (lambda score: result_person.margin(t, view, score.guest_part, True)), small
        cells["hosts_part"] = (lambda score: result_person.margin(t, view, score.hosts_part, True)), small
    return cells


def _note(t: Texts, view: View, score: Score) -> str:
    title = partial(session.host_title, t)
    if not score.scored:
        return joined(*(errors.worded(t, remark, title) for remark in score.problems))
    notes = []
    for remark in score.remarks:
        if remark.code == "not_held":
            hosts = [t.party(view.federation, host) for host in score.not_held_by]
            notes.append(t("score.not_held_short", hosts=t.listed(hosts)))
        else:
            notes.append(errors.worded(t, remark, title))
    notes += [t(f"policy.mark_{mark}") for mark in score.marks if mark in OWN_MARKS]
    return joined(*notes)
