"""Proves an imported model on the federation's own rows: its partial models in the clear beside the undivided model and the library.

Runs where a simulation's tables all lie. It tells the Guest how far the scores are apart, and of a Host's column no more than its name.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from backend.data.csv_file import listed, read_csv, shown
from backend.data.dictionary import Feature
from backend.data.federation import Federation
from backend.data.missing import looks_missing
from backend.data.table import PartyTable, read_table
from backend.errors import FederationError, ModelError
from backend.evaluation.performance import performance
from backend.jobs import work
from backend.protocols.training.guest import MIN_ROWS
from backend.results import JOINT
from backend.trees.ensemble import GuestTree, Split
from backend.trees.importers.partition import PartialModels
from backend.trees.importers.whole import WholeModel, WholeSplit, leaves_of
from backend.trees.metrics import measure

MAX_ROWS = 5000  # spread over the joint records
MAX_CELLS = 20_000_000  # of the model's columns held at once: 160 MB
PIECE = 250  # rows between two looks at the cancel flag
READ = 0.5  # share of a proof that is done once tables and library are through; measured with 30 and with 300 trees
FLOAT32 = 2.0**-24  # relative error of one addition in XGBoost
CHANCE = 0.5  # AUC of a model that knows nothing

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Proof:
    """What was shown of an imported model.

    Attributes
    ----------
    rows : int
        Records that every owner of a split holds and that were scored in all ways, at most :data:`MAX_ROWS`.
    against : str
        Library and version that scored them, too; empty where it is not installed.
    difference, bound : float
        Margins differ by no more than the first, and may by the second (docs/import.md).
    auc : float
        Of these records; NaN for a number.
    notes : tuple of str
        What whoever imports should know of file and records.
    """

    rows: int
    against: str
    difference: float
    bound: float
    auc: float
    notes: tuple[str, ...]


def prove(
    federation: Federation,
    file: Path,
    read: WholeModel,
    parts: PartialModels,
    labels: Floats,
    *,
    given: Collection[str] = (),
    label_is: str | None = None,
    on_rows: Callable[[int, int], None] = lambda done, rows: None,
) -> Proof:
    """Score records in all ways and compare.

    Parameters
    ----------
    read : WholeModel
        As the file has it; in `parts` its scores may be turned round and its classes in another order.
    labels : ndarray of float64
        Of the Guest's records.
    given : collection of str
        Features whose category texts the user gave.
    label_is : str, optional
        What the user says that a higher score speaks for.
    on_rows : callable, optional
        Told how many rows are through, and of how many.

    Raises
    ------
    ModelError
        Scores differ by more than the bound, rank people the wrong way round, or categories and cells do not meet.
    FederationError
        Too few records are held by every owner of a split, or they have one label.
    """
    tables = {federation.guest.name: read_table(federation, federation.guest.name)}
    tables |= {host: read_table(federation, host) for host in {split.owner for split in _splits(parts)} - {*tables}}
    rows = _joint_rows(federation, tables, labels, min(MAX_ROWS, max(MIN_ROWS, MAX_CELLS // len(read.features))))
    columns, notes = _columns(federation, file.name, read, parts, given)
    ids = [tables[federation.guest.name].ids[row] for row in rows]
    rows_of = {party: np.array([table.row_of[i] for i in ids], dtype=np.intp) for party, table in tables.items()}
    values = np.full((len(rows), len(read.features)), np.nan)
    for i, (party, column) in columns.items():
        values[:, i] = column[rows_of[party]]
    on_rows(0, len(rows))
    work.reached(READ / 2)
    against, theirs, more = library_margins(file, read, values)
    work.reached(READ)
    pieces = []
    for start in range(0, len(rows), PIECE):
        piece = slice(start, start + PIECE)
        own = {party: table.take(rows_of[party][piece]) for party, table in tables.items()}
        margins = read.margins(values[piece]), parts.whole.margins(values[piece]), margins_in_the_clear(parts, own)
        pieces.append(margins)
        done = min(piece.stop, len(rows))
        on_rows(done, len(rows))
        work.reached(READ + (1 - READ) * done / len(rows))
    undivided, ours, walked = map(np.concatenate, zip(*pieces, strict=True))
    rounding, quantised = _rounding(read), (read.trees_an_output + 1) * 2.0 ** -(parts.guest.score_bits + 1)
    difference = _difference(file.name, "the undivided model", ours, walked, quantised + rounding)
    if theirs is not None:
        difference += _difference(file.name, against, undivided, theirs, rounding)
    auc, ranked = _ranking(federation, file.name, parts, labels[rows], ours, label_is)
    notes = [*parts.whole.notes, *notes, *more, *ranked, *_gaps(federation, read, tables[federation.guest.name])]
    return Proof(len(rows), against, difference, quantised + 2 * rounding, auc, tuple(notes))


def library_margins(file: Path, read: WholeModel, values: Floats) -> tuple[str, Floats | None, list[str]]:
    """Margins by the library that wrote the file, ``(n, outputs.count)``; none where it is not installed or refuses, which is said.

    scikit-learn is not asked: its own object is a pickle.
    """
    library = next((name for name in LIBRARIES if read.made_by.startswith(name)), "")
    if not library or find_spec(library.lower()) is None:
        return "", None, []
    try:
        name, raw = LIBRARIES[library](file.read_bytes(), values)
    except ValueError as error:
        return "", None, [f"{library} is installed and cannot score this file ({str(error).splitlines()[0][:200]})."]
    return name, raw.astype(np.float64).reshape(len(values), -1) * read.raw_scale, []


def _by_xgboost(data: bytes, values: Floats) -> tuple[str, NDArray[Any]]:
    import xgboost  # noqa: PLC0415 - not among the requirements

    booster = xgboost.Booster(model_file=bytearray(data))
    names, kinds = booster.feature_names, booster.feature_types
    matrix = xgboost.DMatrix(values, feature_names=names, feature_types=kinds, enable_categorical=True)
    return f"XGBoost {xgboost.__version__}", np.asarray(booster.predict(matrix, output_margin=True))


def _by_lightgbm(data: bytes, values: Floats) -> tuple[str, NDArray[Any]]:
    import lightgbm  # noqa: PLC0415 - as above

    try:
        booster = lightgbm.Booster(model_str=data.decode("utf-8"))
        raw = booster.predict(values, raw_score=True, num_iteration=-1)
    except lightgbm.basic.LightGBMError as error:
        raise ValueError(str(error)) from error
    return f"LightGBM {lightgbm.__version__}", np.asarray(raw)


LIBRARIES = {"XGBoost": _by_xgboost, "LightGBM": _by_lightgbm}


def margins_in_the_clear(parts: PartialModels, tables: Mapping[str, PartyTable]) -> Floats:
    """Every party's rules on its own columns, ``(n, outputs.count)``: the integers of Fed-EINI, without ciphertexts and messages."""
    model, unit = parts.guest, 2.0**-parts.guest.score_bits
    rules = {model.guest: model.rules} | {host: own.rules for host, own in parts.hosts.items()}
    n = len(tables[model.guest].ids)
    units = np.tile(np.rint(np.array(model.base_scores) / unit), (n, 1))
    for t, tree in enumerate(model.trees):

        def goes_left(i: int, rows: NDArray[np.intp], t: int = t, tree: GuestTree = tree) -> NDArray[np.bool_]:
            owner = tree.splits[i].owner
            rule = rules[owner][t, i]
            return rule.goes_left(tables[owner].columns[rule.feature][rows])

        at = leaves_of(tree.nodes, goes_left, n)
        nothing = (0.0,) * model.outputs.count
        weights = [nothing if isinstance(node, Split) else model.weights_of(t, node) for node in tree.nodes]
        units += np.rint(np.array(weights) / unit)[at]
    return units * unit


def _splits(parts: PartialModels) -> list[Split]:
    return [split for tree in parts.guest.trees for split in tree.splits.values()]


def _joint_rows(
    federation: Federation, tables: Mapping[str, PartyTable], labels: Floats, limit: int
) -> NDArray[np.intp]:
    """The Guest's rows that all owners hold, at most so many of them."""
    guest = tables[federation.guest.name]
    held = [row for row, i in enumerate(guest.ids) if all(i in table.row_of for table in tables.values())]
    if len(held) < MIN_ROWS or len(np.unique(labels[held])) < 2:
        raise FederationError(
            f"{len(held)} records are held by every party that owns a split; at least {MIN_ROWS}, with more than one "
            "label, are needed to prove and measure the model. Check that the files use the same ids."
        )
    return np.array(held, dtype=np.intp)[
        np.unique(np.linspace(0, len(held) - 1, min(len(held), limit)).astype(np.intp))
    ]


def _columns(
    federation: Federation, file: str, read: WholeModel, parts: PartialModels, given: Collection[str]
) -> tuple[dict[int, tuple[str, Floats]], list[str]]:
    """Columns of the model that a split asks about, from the cells as they are written: owner, and numbers or codes."""
    held = {feature.name: (party, feature) for party, feature in federation.features()}
    texts = {party.name: read_csv(federation.folder / party.file) for party in federation.parties}
    columns, notes = {}, []
    for i in sorted({node.feature for tree in read.trees for node in tree if isinstance(node, WholeSplit)}):
        work.check()
        party, feature = held[read.features[i]]
        cells = texts[party].cells(feature.name)
        codes = parts.codes.get(feature.name)
        if codes is None:
            columns[i] = party, _numbers(cells, feature)
            continue
        _refuse_unmet(file, cells, feature, codes, feature.name in given)
        known = {cell: codes.get("" if cell in feature.missing else cell, np.nan) for cell in set(cells)}
        columns[i] = party, np.array([known[cell] for cell in cells], dtype=np.float64)
        strange = sorted({cell for cell in known if cell and cell not in feature.missing} - codes.keys())
        if strange:
            column, own = shown(feature.name), listed([shown(text) for text in strange], 3)
            notes.append(
                f"Column {column} holds texts that are none of the model's categories ({own}): they count as missing."
                if party == federation.guest.name
                else f"Column {column} holds texts that are none of the model's categories: they count as missing."
            )
    return columns, notes


def _numbers(cells: Sequence[str], feature: Feature) -> Floats:
    """Cells as numbers, read here on their own, so that a fault of the tables' reading shows."""
    boolean = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
    gone = {_number(text) for text in feature.missing}
    known = {cell: boolean.get(cell.casefold(), _number(cell)) for cell in set(cells)}
    return np.array(
        [np.nan if cell in feature.missing or known[cell] in gone else known[cell] for cell in cells], dtype=np.float64
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _refuse_unmet(file: str, cells: Sequence[str], feature: Feature, codes: Mapping[str, int], given: bool) -> None:
    """Refuse categories that no cell has where that shows that cells and categories are written in different ways."""
    where = f"{file}, feature {shown(feature.name)}"
    blank = [cell for cell in cells if not cell or cell in feature.missing]
    held = set(cells) - set(blank)
    if held and not held & codes.keys():
        raise ModelError(
            f"{where}: no cell of the column is one of the model's categories {listed([shown(text) for text in codes], 5)}, "
            "so all would count as missing. Give the federation's texts in the order of the model's codes (--categories)."
        )
    odd = [text for text in codes if text and looks_missing(text) and text not in held]
    if odd and blank and not given and "" not in codes:
        raise ModelError(
            f"{where}: the model has a category {shown(odd[0])}, which no cell is, and the column has empty cells: were those this "
            "category in training? Give the texts in the order of the model's codes (--categories), with null in its place if "
            "they were, or with the text if not."
        )


def _rounding(read: WholeModel) -> float:
    """How far a library's own rounding may take its margin from the exact one: float32 sums, and the logit of a float32 probability."""
    base = max(abs(score) for score in read.base_scores) if read.outputs.link == "logistic" else 0.0
    return (read.trees_an_output + 4) * FLOAT32 * read.reach + 4 * FLOAT32 * float(np.exp(min(base, 20.0)))


def _difference(file: str, other: str, ours: Floats, theirs: Floats, allowed: float) -> float:
    if ours.shape != theirs.shape:
        raise ModelError(
            f"{file}: found {theirs.shape[1]} outputs by {other}, expected {ours.shape[1]}. It is not imported."
        )
    apart = np.abs(ours - theirs).max(axis=1)
    worst = float(apart.max())
    if not worst <= allowed:
        raise ModelError(
            f"{file}: {int((~(apart <= allowed)).sum()):,} of {len(apart):,} records score otherwise than by {other}, by up to "
            f"{worst:.3g} where {allowed:.1g} is allowed. It is not imported: please report it with the library's version."
        )
    return worst


def _ranking(
    federation: Federation, file: str, parts: PartialModels, labels: Floats, margins: Floats, label_is: str | None
) -> tuple[float, list[str]]:
    """AUC on the federation's labels; raises ModelError where the model surely ranks the wrong way round."""
    outputs, label = parts.guest.outputs, federation.label
    auc = measure(labels, margins, JOINT, outputs).auc
    if not auc < CHANCE:
        return auc, []
    found = performance(labels, margins, outputs, JOINT).figure("auc")
    surely = found is not None and found.high < CHANCE
    figure = f"AUC {auc:.4f}" + (f" (95 % interval {found.low:.4f} to {found.high:.4f})" if found else "")
    if not surely or label_is is not None:
        return auc, [f"On the federation's labels the model has {figure}: it ranks people no better than chance does."]
    if label.task == "classes":
        raise ModelError(
            f"{file}: found {figure} on the federation's labels, expected more than {CHANCE:g}. The classes may have "
            f"been numbered in another order than {listed([shown(name) for name in label.classes], 5)}: train on the label's texts, "
            "or list 'classes' in the order of the model's numbers in the federation file."
        )
    other = next(iter(sorted(label_texts(federation) - {label.positive})), "the other outcome")
    raise ModelError(
        f"{file}: found {figure} on the federation's labels, expected more than {CHANCE:g}: taken to speak for {shown(label.positive)}, "
        f"its scores are the wrong way round. Say which label its positive class is: --label-is {shlex.quote(other)} if a higher score "
        f"speaks for {shown(other)} (scores are then turned round), --label-is {shlex.quote(label.positive)} if it does speak for "
        f"{shown(label.positive)} and the model is as bad as that."
    )


def label_texts(federation: Federation) -> set[str]:
    """The different cells of the label's column."""
    return set(read_csv(federation.folder / federation.guest.file).cells(federation.label.column))


def _gaps(federation: Federation, read: WholeModel, guest: PartyTable) -> list[str]:
    """Notes where training seems to have met no missing value: what was filled in then is not filled in here."""
    owner = {feature.name: party for party, feature in federation.features()}
    names = [read.features[i] for i in sorted(read.gapless) if read.features[i] in owner]
    own = {name: int(pd.isna(guest.columns[name]).sum()) for name in names if name in guest.columns}
    empty = [f"{shown(name)} in {count:,} records" for name, count in own.items() if count]
    others = [shown(name) for name in names if owner[name] != federation.guest.name]
    if not empty and not others:
        return []
    return [
        f"The model seems to have been trained without a missing value of {listed([shown(name) for name in names], 5)}. "
        "Where one is missing, the score takes a way that the library chose without data. If training filled such cells in, fill "
        "them in alike.",
        *([f"Missing at the Guest: {listed(empty, 5)}."] if empty else []),
    ]
