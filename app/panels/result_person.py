"""One person's answer: a probability and a decision, a class or a value, and who contributed what to it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import charts, frame, palette, policies
from app.texts import Texts, amount, markdown, percent, signed
from app.view_models import View, scale

if TYPE_CHECKING:
    from backend.results import Score, ScoreBatch

CLASSES_DRAWN = 12  # classes in the picture; the table holds all


def draw(t: Texts, view: View, batch: ScoreBatch) -> None:
    """Draw one person's answer: what is predicted and decided, in figures and in a sentence."""
    score = batch.scores[0]
    first, *others = _tiles(t, view, score)
    title, figure, about = first
    st.metric(title, figure, help=about or None)
    with st.grid("auto", min_column_width=120):
        for title, figure, about in others:
            st.metric(title, figure, help=about or None)
    st.markdown(sentence(t, view, batch))
    for words in (policies.reasons_of(t, score), policies.what_if(t, score)):
        if words:
            st.info(words, icon=":material/rule:")
    if score.not_held_by:
        hosts = t.listed([palette.name(t, view.federation, host) for host in score.not_held_by])
        st.info(t("score.not_held", n=len(score.not_held_by), hosts=hosts), icon=":material/person_off:")
    for remark in score.remarks:
        if remark.code != "not_held":
            st.warning(frame.explained(t, remark), icon=":material/help:")


def computed(t: Texts, view: View, batch: ScoreBatch) -> None:
    """Draw how the answer comes about: the other classes, and who contributed what."""
    score = batch.scores[0]
    if view.task == "classes":
        _classes(t, view, score)
    _contribution(t, view, score)


def _tiles(t: Texts, view: View, score: Score) -> list[tuple[str, str, str]]:
    """Name, figure and explanation; the decision comes first."""
    chance = t("score.probability"), percent(score.probability), _chance(t, view)
    if view.task == "classes":
        return [(t("score.predicted"), score.predicted, t("glossary.predicted")), chance]
    if view.task == "number":
        value, off = _amounts(t, view, score)
        return [(t("score.value"), value, ""), (t("score.off"), off, t("glossary.rmse"))]
    tiles = [(t("score.decision"), frame.decision(t, score), t("glossary.cutoff")), chance]
    if score.points is not None:
        tiles.append((t("score.points"), f"{score.points:,}", t("policy.points_help")))
    return tiles


def sentence(t: Texts, view: View, batch: ScoreBatch) -> str:
    """Return the answer in a sentence, as Markdown."""
    score = batch.scores[0]
    words = {"id": markdown(score.id), "label": markdown(t.label(view.federation))}
    words["probability"] = percent(score.probability)
    if view.task == "binary":
        words["relation"] = t("score.above" if score.probability >= batch.cutoff else "score.below")
        words["cutoff"] = percent(batch.cutoff)
        return t("score.sentence", **words)
    if view.task == "classes":
        return t("score.sentence_classes", **words, predicted=markdown(score.predicted))
    value, off = _amounts(t, view, score)
    return t("score.sentence_number", **words, value=markdown(value), off=markdown(off))


def _amounts(t: Texts, view: View, score: Score) -> tuple[str, str]:
    """Return what is predicted, and by how much such predictions are off, in the label's unit."""
    unit = t.unit(view.federation.label)
    return amount(score.margin, unit), amount(view.record.metrics.rmse, unit)


def _chance(t: Texts, view: View) -> str:
    """Return what a model's probabilities are."""
    return t({"log_odds": "glossary.probability", "class_score": "glossary.softmax"}.get(scale(view), "glossary.share"))


def _classes(t: Texts, view: View, score: Score) -> None:
    """Draw the probability of every class, likeliest first."""
    probabilities = zip(view.model.outputs.classes, score.predictions, strict=True)
    rows = sorted(probabilities, key=lambda row: -row[1])
    first = rows[0]
    second = rows[1]
    sentence = t(
        "score.classes_sentence",
        first=markdown(first[0]),
        second=markdown(second[0]),
        gap=percent(first[1] - second[1]),
    )
    bars = [
        charts.Bar(name, percent(share), share, hover=f"{name}: {percent(share)}")
        for name, share in rows[:CLASSES_DRAWN]
    ]
    twin = {t("score.class"): [name for name, _ in rows], t("score.probability"): [percent(share) for _, share in rows]}
    frame.section(t, "score.classes", "predicted")
    frame.chart(t, charts.bars(bars, sentence), sentence, twin, "class_shares")


def _contribution(t: Texts, view: View, score: Score) -> None:
    """Draw base, the Guest's part and the Hosts' part of the score, if it is a sum."""
    frame.section(t, "score.contribution", "log_odds" if scale(view) == "log_odds" else None)
    if math.isnan(score.base):
        st.info(t("score.no_parts"), icon=":material/call_split:")
        return
    if abs(score.guest_part) >= abs(score.hosts_part):
        larger = "guest"
    else:
        larger = "hosts"
    sentence = t(
        "score.contribution_number" if view.task == "number" else "score.contribution_sentence",
        base=margin(t, view, score.base, False),
        guest=margin(t, view, score.guest_part, True),
        hosts=margin(t, view, score.hosts_part, True),
        total=margin(t, view, score.margin, False),
        larger=t(f"score.larger_{larger}"),
    )
    if score.predicted:
        sentence = t.joined(t("score.contribution_class", predicted=markdown(score.predicted)), sentence)
    steps = [
        ("base", 0.0, score.base, palette.NOBODY, False),
        ("guest_part", score.base, score.guest_part, palette.GUEST, True),
        ("hosts_part", score.base + score.guest_part, score.hosts_part, palette.NOBODY, True),
        ("total", 0.0, score.margin, palette.NOBODY, False),
    ]
    names = [t(f"score.{name}") for name, *_ in steps]
    figures = [margin(t, view, length, change) for _, _, length, _, change in steps]
    bars = [
        charts.Bar(name, words, start + length, mark, f"{name}: {words}", start=start)
        for name, words, (_, start, length, mark, _) in zip(names, figures, steps, strict=True)
    ]
    twin = {t("score.part_of"): names, _axis(t, view): figures}
    frame.chart(t, charts.bars(bars, sentence), sentence, twin, "contribution")
    st.caption(f":material/lock: {t('score.together')}")


def _axis(t: Texts, view: View) -> str:
    """Return what the parts are measured in."""
    title = t(f"score.axis_{scale(view)}")
    return t.noted(title, t.unit(view.federation.label) if view.task == "number" else "")


def margin(t: Texts, view: View, value: float, change: bool) -> str:
    """Return a margin or, with its sign, a change of it, in the words of the model's scale."""
    kind = scale(view)
    if kind in ("log_odds", "class_score"):
        return signed(value)
    plus = "+" if change and value >= 0 else ""
    if kind in ("share", "class_share"):
        text = percent(value)
    else:
        text = amount(value, t.unit(view.federation.label))
    return plus + text.replace("-", "−")
