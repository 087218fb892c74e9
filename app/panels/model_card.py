"""A model's card: on whom it was measured, its figures with intervals, and how stable its predictions are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from app import view_models
from app.panels import charts, controls, evidence, frame, lines, palette, parties
from app.texts import Texts, amount, bare, markdown, number, percent
from app.view_models import View
from backend.i18n import Catalogue
from backend.services.model_card import parameters_in_words

if TYPE_CHECKING:
    from backend.evaluation.performance import Estimate, Stability
    from backend.results import ModelRecord
    from backend.services.model_card import ModelCard, Performance

SMALL_PSI = 0.1  # PSI, by the trade's convention (Siddiqi 2006), which the caption names
FIGURE_TILES = {
    "binary": ("auc", "ks", "brier", "log_loss"),
    "classes": ("accuracy", "auc", "log_loss"),
    "number": ("rmse", "mae", "r2"),
}
PART_DASHES = {"test": "dot", "validation": "dash", "training": "solid"}


def identity(t: Texts, view: View, card: ModelCard) -> None:
    """Draw whose data, when, by which algorithm with which parameters."""
    record = card.record
    federation = view.federation
    holders = [party for party, _ in view.model.dictionary]
    who = [
        t("card.party", party=palette.name(t, federation, party), n=holders.count(party))
        for party in (view.model.guest, *view.model.hosts)
    ]
    people = sum(record.parts.values())
    st.markdown(
        t(
            "card.data",
            federation=markdown(t.federation(federation)),
            people=f"{people:,}",
            label=markdown(t.label(federation)),
            who=t.listed(who),
        )
    )
    icon, grown = _grown(t, record)
    hover = t(f"algorithm.hover_{view_models.algorithm(record)}")
    words = t("words.about", what=markdown(frame.algorithm(t, record)), said=grown)
    st.markdown(f":material/{icon}: {words}", help=hover)
    if record.alignment is not None and record.hosts:
        st.markdown(
            f":material/join_inner: {parties.aligned(t, federation, record.alignment)}",
            help=t(f"alignment.what_{record.alignment.method}"),
        )
    hosts = ((t("card.host_hash", party=t.party(federation, host)), h[:16]) for host, h in record.host_hashes.items())
    facts = {
        t("card.id"): record.id,
        t("card.algorithm"): frame.algorithm(t, record),
        t("card.size"): t(
            "card.size_is", trees=f"{record.n_trees:,}", leaves=f"{record.n_leaves:,}", depth=record.depth
        ),
        t("card.made"): record.created[:16].replace("T", " ") + " UTC",
        t("card.took"): t.duration(record.seconds),
        t("card.rows"): t.listed([f"{_part(t, part)} {count:,}" for part, count in record.parts.items()]),
        t("card.left_out"): t("words.comma").join(evidence.plain(t, view, name) for name in record.exclude)
        or t("card.nothing"),
        t("card.hash"): record.content_hash[:16],
        **dict(hosts),
    }
    table = {
        t("card.fact"): [markdown(fact) for fact in facts],
        t("card.is"): [markdown(value) for value in facts.values()],
    }
    frame.table(table, t("card.identity"))
    box = frame.box(t("card.parameters"), "tune", "card_parameters_box")
    if box is not None:
        parameters = {name: str(value) for name, value in record.parameters.items()}
        in_words = parameters_in_words(Catalogue(t.language), parameters, record.cipher, record.key_bits)
        values = {t("card.fact"): list(in_words), t("card.is"): list(in_words.values())}
        with box:
            frame.data(values, "card_parameters", t("card.parameters"))


def _grown(t: Texts, record: ModelRecord) -> tuple[str, str]:
    """Icon and sentence: what could be read while the model was made."""
    name = view_models.algorithm(record)
    if name == view_models.IMPORTED:
        return "upload_file", t("card.grown_elsewhere")
    if name == "opboost":
        return "blur_on", t("card.grown_ranks", epsilon=bare(float(str(record.parameters["epsilon"]))))
    if record.cipher == "none":
        return "science", t("card.grown_plain")
    words = frame.cipher(t, record.cipher, record.key_bits)
    return "lock", t("card.grown_cipher", cipher=words, secret=t(f"algorithm.secret_{name}"))


def part(t: Texts, card: ModelCard) -> Performance:
    """Return which part of the data is shown; the one to believe comes first."""
    names = [performance.part for performance in card.parts]
    if len(names) == 1:
        return card.parts[0]
    part_name = controls.choice(
        t("card.part"), names, "card_part", lambda name: _part(t, name), help=t("glossary.parts")
    )
    return next((performance for performance in card.parts if performance.part == part_name), card.parts[0])


def figures(t: Texts, view: View, card: ModelCard, performance: Performance) -> None:
    """Draw the figures with their intervals, and where the scores came from."""
    if performance.figures:
        first = performance.figures[0]
    else:
        first = None
    if first is None:
        st.info(t("card.nobody"), icon=":material/groups:")
        return
    st.markdown(
        t(
            "card.sentence",
            n=performance.n,
            people=f"{performance.n:,}",
            part=_part(t, performance.part),
            figure=_name(t, first),
            value=_value(t, view, first, first.value),
            low=_value(t, view, first, first.low),
            high=_value(t, view, first, first.high),
        )
    )
    with st.container(horizontal=True):
        for estimate in (e for e in performance.figures if e.name in FIGURE_TILES[view.task]):
            st.metric(
                _name(t, estimate),
                _value(t, view, estimate, estimate.value),
                help=frame.about(t, view.task, estimate.name),
                border=True,
                delta=_interval(t, view, estimate),
                delta_color="off",
                delta_arrow="off",
            )
    title = t("card.all_figures", n=len(performance.figures))
    box = frame.box(title, "table", "card_figures_box")
    if box is not None:
        table: frame.Columns = {
            t("card.figure"): [_name(t, e) for e in performance.figures],
            t("importance.value"): [_value(t, view, e, e.value) for e in performance.figures],
            t("importance.interval"): [_interval(t, view, e) for e in performance.figures],
        }
        with box:
            frame.data(table, "card_figures", title)
    st.caption(
        f":material/error_med: {t.joined(t('card.interval'), t(f'card.source_{card.sources[performance.part]}'))}",
        help=t.joined(t("glossary.bootstrap"), t("card.interval_help")),
    )
    if card.record.weights:
        st.caption(f":material/balance: {t('card.weighted', column=markdown(card.record.weights))}")
    if performance.part != card.parts[0].part:
        st.caption(f":material/warning: {t(f'card.seen_{performance.part}')}")


def stability(t: Texts, view: View, shifts: Sequence[Stability]) -> None:
    """Draw how far predictions of the other parts are from those of the training rows."""
    worst = max(shifts, key=lambda shift: shift.psi - shift.chance)
    moved = [shift for shift in shifts if shift.moved]
    words = {"part": _part(t, worst.part), "psi": number(worst.psi), "chance": number(worst.chance)}
    if not moved:
        reading = "stable"
    elif max(shift.psi for shift in moved) < SMALL_PSI:
        reading = "moved_little"
    else:
        reading = "moved"
    sentence = t(f"card.{reading}", **words)
    twin: frame.Columns = {
        t("card.part"): [_part(t, shift.part) for shift in shifts],
        t("importance.people"): [f"{shift.n:,}" for shift in shifts],
        "PSI": [number(shift.psi) for shift in shifts],
        t("card.chance"): [number(shift.chance) for shift in shifts],
        t("card.reading"): [t("card.is_moved" if shift.moved else "card.is_stable") for shift in shifts],
    }
    frame.chart(t, _shares(t, view, shifts, worst, sentence), sentence, twin, "card_stability")
    st.caption(f":material/info: {t('card.stability_caption')}")


def _shares(t: Texts, view: View, shifts: Sequence[Stability], worst: Stability, sentence: str) -> charts.Drawing:
    """Return the shares of each bin in the part that all are compared with, and in every other."""
    names = _bins(view, worst)
    by_part = {_part(t, worst.reference): (worst.reference, [first for first, _ in worst.shares])}
    for shift in shifts:
        if len(shift.shares) == len(names):
            by_part[_part(t, shift.part)] = (shift.part, [second for _, second in shift.shares])
    title = t("card.bin_class" if view.task == "classes" else "card.bin")
    across = lines.Axis(title, 0.5, len(names) + 0.5, dict(enumerate(names, 1)))
    down = lines.rounded("", [0.0, *(value for _, values in by_part.values() for value in values)], lines.share)
    hover = []
    for at, bin_name in enumerate(names):
        shares = [f"{name}: {percent(values[at])}" for name, (_, values) in by_part.items()]
        hover.append((at + 1, "\n".join([bin_name, *shares])))
    parts = [
        lines.Line(range(1, len(names) + 1), values, name, dash=PART_DASHES.get(part, "dashdot"), dots=True)
        for name, (part, values) in by_part.items()
    ]
    return lines.drawing(parts, across, down, sentence, hover)


def _bins(view: View, shift: Stability) -> list[str]:
    if view.task == "classes" and len(shift.shares) == len(view.model.outputs.classes):
        return list(view.model.outputs.classes)
    return [str(i + 1) for i in range(len(shift.shares))]


def _part(t: Texts, name: str) -> str:
    return t(f"card.part_{name}")


def _interval(t: Texts, view: View, estimate: Estimate) -> str:
    return f"{_value(t, view, estimate, estimate.low)} … {_value(t, view, estimate, estimate.high)}"


def _name(t: Texts, estimate: Estimate) -> str:
    return t(f"figure.{estimate.name}")


def _value(t: Texts, view: View, estimate: Estimate, value: float) -> str:
    if estimate.name == "accuracy":
        return percent(value)
    if estimate.name in ("rmse", "mae"):
        return markdown(amount(value, t.unit(view.federation.label)))
    return number(value)
