"""Proves an imported model on the federation's own rows: its partial models in the clear against the undivided model and the library.

Runs where a simulation's tables all lie. It tells the Guest how far the scores are apart, and of a Host's column no more than its name.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from backend.data.csv_file import read_csv, shown
from backend.data.dictionary import Feature
from backend.data.federation import Federation
from backend.data.missing import looks_missing
from backend.data.table import PartyTable, read_table
from backend.errors import FederationError, ModelError
from backend.evaluation.performance import performance
from backend.jobs import work
from backend.protocols.training.guest import MIN_ROWS
from backend.protocols.transport.codec import RemarkOnWire
from backend.remark import Remark
from backend.results import JOINT
from backend.trees.ensemble import GuestTree, Split
from backend.trees.importers.partition import PartialModels, is_whole
from backend.trees.importers.whole import WholeModel, WholeSplit, WholeTree, leaves_of
from backend.trees.metrics import measure

MAX_ROWS = 5000  # spread over the joint records
MAX_CELLS = 20_000_000  # of the model's columns held at once: 160 MB
PIECE_ROWS = 250  # rows between two looks at the cancel flag
READ_SHARE = (
    0.5  # share of a proof that is done once tables and library are through; measured with 30 and with 300 trees
)
FLOAT32 = 2.0**-24  # relative error of one addition in XGBoost
TELLING_ROWS = 200  # records that reach a split, from which on an empty side tells something
TELLING_SHARE = 0.05  # of the cover
# Mean share of records on another side than the covers say, from which on zeros are tried as missing values.
ZERO_GAP = 0.02
CHECKED_ROWS = 2_000  # of the proof
CHANCE = 0.5  # AUC of a model that knows nothing

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Proof:
    """The proof of an imported model.

    Attributes
    ----------
    rows : int
        Records that every owner of a split holds and that were scored in all ways, at most :data:`MAX_ROWS`.
    against : str
        Library and version that scored them, too; empty if it is not installed.
    difference, bound : float
        Margins differ by no more than the first, and may by the second (docs/import.md).
    auc : float
        Of these records; NaN for a number.
    notes : tuple of Remark
        Notes on file and records for the person who imports.
    """

    rows: int
    against: str
    difference: float
    bound: float
    auc: float
    notes: tuple[RemarkOnWire, ...]


def prove(
    federation: Federation,
    file: Path,
    read: WholeModel,
    parts: PartialModels,
    labels: Floats,
    *,
    user_categories: Collection[str] = (),
    label_is: str | None = None,
    on_rows: Callable[[int, int], None] = lambda n_done, rows: None,
) -> Proof:
    """Score records in all ways and compare.

    Parameters
    ----------
    read : WholeModel
        As the file has it; in `parts` its scores may be turned round and its classes in another order.
    labels : ndarray of float64
        Of the Guest's records.
    user_categories : collection of str
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
    owners = {split.owner for split in _splits(parts)}
    for host in owners - {*tables}:
        tables[host] = read_table(federation, host)
    rows = _joint_rows(federation, tables, labels, min(MAX_ROWS, max(MIN_ROWS, MAX_CELLS // len(read.features))))
    columns, notes = _columns(federation, file.name, read, parts, user_categories)
    ids = [tables[federation.guest.name].ids[row] for row in rows]
    rows_of = {}
    for party, table in tables.items():
        rows_of[party] = np.array([table.row_of[i] for i in ids], dtype=np.intp)
    values = np.full((len(rows), len(read.features)), np.nan)
    for i, (party, column) in columns.items():
        values[:, i] = column[rows_of[party]]
    on_rows(0, len(rows))
    work.reached(READ_SHARE / 2)
    against, theirs, more = library_margins(file, read, values)
    work.reached(READ_SHARE)
    pieces = []
    for start in range(0, len(rows), PIECE_ROWS):
        piece = slice(start, start + PIECE_ROWS)
        piece_tables = {party: table.take(rows_of[party][piece]) for party, table in tables.items()}
        margins = (
            read.margins(values[piece]),
            parts.whole_model.margins(values[piece]),
            margins_in_the_clear(parts, piece_tables),
        )
        pieces.append(margins)
        rows_done = min(piece.stop, len(rows))
        on_rows(rows_done, len(rows))
        work.reached(READ_SHARE + (1 - READ_SHARE) * rows_done / len(rows))
    undivided, ours, walked = map(np.concatenate, zip(*pieces, strict=True))
    rounding = _rounding(read)
    quantised = (read.trees_an_output + 1) * 2.0 ** -(parts.guest.score_bits + 1)
    difference = _difference(file.name, Remark("the_undivided_model"), ours, walked, quantised + rounding)
    if theirs is not None:
        difference += _difference(file.name, against, undivided, theirs, rounding)
    auc, ranked = _ranking(federation, file.name, parts, labels[rows], ours, label_is)
    checked = values[:: max(1, len(values) // CHECKED_ROWS)]
    unlike = [*_empty_sides(read, checked), *_zeros_missing(read, checked)]
    notes = [
        *parts.whole_model.notes,
        *notes,
        *more,
        *ranked,
        *unlike,
        *_gaps(federation, read, tables[federation.guest.name]),
    ]
    return Proof(len(rows), against, difference, quantised + 2 * rounding, auc, tuple(notes))


def _empty_sides(read: WholeModel, values: Floats) -> list[Remark]:
    """Return a note on features whose cells cannot be what the model was trained on, by the covers that the file has.

    A split that many records reach and that sends none of them to a side where training had a good part was made on other numbers:
    logarithms, shares in place of percent, labels that were encoded otherwise. Populations shift, too, so that it is only said.
    """
    empty_splits: dict[int, int] = {}
    for tree in read.trees:

        def goes_left(i: int, rows: NDArray[np.intp], tree: WholeTree = tree) -> NDArray[np.bool_]:
            split = cast("WholeSplit", tree[i])
            left_mask = split.goes_left(values[rows, split.feature])
            covers = tree[split.left].cover, tree[split.right].cover
            counts = int(left_mask.sum()), int((~left_mask).sum())
            if len(rows) >= TELLING_ROWS and any(
                count == 0 and cover > TELLING_SHARE * sum(covers) for count, cover in zip(counts, covers, strict=True)
            ):
                empty_splits[split.feature] = empty_splits.get(split.feature, 0) + 1
            return left_mask

        leaves_of(tree, goes_left, len(values))
    columns = [Remark("splits_on", {"name": shown(read.features[i]), "n": n}) for i, n in sorted(empty_splits.items())]
    if columns:
        return [Remark("cells_unlike_training", {"columns": tuple(columns)})]
    return []


def _zeros_missing(read: WholeModel, values: Floats) -> list[Remark]:
    """Return a note if the file's covers fit far better once every 0 is a missing value, as XGBoost's ``missing=0`` made it in training."""
    splits = [node for tree in read.trees for node in tree if isinstance(node, WholeSplit)]
    numbers = sorted({split.feature for split in splits if split.threshold is not None})
    zeros = np.zeros(values.shape, dtype=np.bool_)
    zeros[:, numbers] = values[:, numbers] == 0
    gap = _cover_gap(read, values)
    if not zeros.any() or gap < ZERO_GAP:
        return []
    gap_without_zeros = _cover_gap(read, np.where(zeros, np.nan, values))
    if 2 * gap_without_zeros > gap:
        return []
    columns = tuple(shown(read.features[i]) for i in np.flatnonzero(zeros.any(axis=0)))
    return [Remark("zeros_seem_missing", {"columns": columns, "gap": gap, "without": gap_without_zeros})]


def _cover_gap(read: WholeModel, values: Floats) -> float:
    """Return by how much the shares of records that go left differ from those of the covers, 0..1: mean of all splits that many reach."""
    gaps = []
    for tree in read.trees:

        def goes_left(i: int, rows: NDArray[np.intp], tree: WholeTree = tree) -> NDArray[np.bool_]:
            split = cast("WholeSplit", tree[i])
            left_mask = split.goes_left(values[rows, split.feature])
            covers = tree[split.left].cover + tree[split.right].cover
            if len(rows) >= TELLING_ROWS and covers > 0:
                gaps.append(abs(float(left_mask.mean()) - tree[split.left].cover / covers))
            return left_mask

        leaves_of(tree, goes_left, len(values))
    return float(np.mean(gaps)) if gaps else 0.0


def library_margins(file: Path, read: WholeModel, values: Floats) -> tuple[str, Floats | None, list[Remark]]:
    """Margins by the library that wrote the file, ``(n, outputs.count)``; none if it is not installed or refuses, which is said.

    scikit-learn is not asked: its own object is a pickle.
    """
    library = next((name for name in LIBRARIES if read.made_by.startswith(name)), "")
    if not library or find_spec(library.lower()) is None:
        return "", None, []
    try:
        name, raw = LIBRARIES[library](file.read_bytes(), values)
    except ValueError as error:
        reason = str(error).splitlines()[0][:200]
        return "", None, [Remark("library_cannot_score", {"library": library, "reason": reason})]
    return name, raw.astype(np.float64).reshape(len(values), -1) * read.raw_scale, []


def _by_xgboost(data: bytes, values: Floats) -> tuple[str, NDArray[Any]]:
    import xgboost  # noqa: PLC0415 - not among the requirements

    booster = xgboost.Booster(model_file=bytearray(data))
    names = booster.feature_names
    kinds = booster.feature_types
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
    """Return every party's rules on its own columns, ``(n, outputs.count)``: the integers of Fed-EINI, without ciphertexts and messages."""
    model = parts.guest
    unit = 2.0**-parts.guest.score_bits
    rules = {model.guest: model.rules} | {host: host_model.rules for host, host_model in parts.hosts.items()}
    n = len(tables[model.guest].ids)
    units = np.tile(np.rint(np.array(model.base_scores) / unit), (n, 1))
    for t, tree in enumerate(model.trees):

        def goes_left(i: int, rows: NDArray[np.intp], t: int = t, tree: GuestTree = tree) -> NDArray[np.bool_]:
            owner = tree.splits[i].owner
            rule = rules[owner][t, i]
            return rule.goes_left(tables[owner].columns[rule.feature][rows])

        at = leaves_of(tree.nodes, goes_left, n)
        nothing = (0.0,) * model.outputs.count
        weights = []
        for node in tree.nodes:
            weights.append(nothing if isinstance(node, Split) else model.weights_of(t, node))
        units += np.rint(np.array(weights) / unit)[at]
    return units * unit


def _splits(parts: PartialModels) -> list[Split]:
    return [split for tree in parts.guest.trees for split in tree.splits.values()]


def _joint_rows(
    federation: Federation, tables: Mapping[str, PartyTable], labels: Floats, limit: int
) -> NDArray[np.intp]:
    """Return the Guest's rows that all owners hold, at most `limit` of them."""
    guest = tables[federation.guest.name]
    joint_rows = []
    for row, sample_id in enumerate(guest.ids):
        if all(sample_id in table.row_of for table in tables.values()):
            joint_rows.append(row)
    if len(joint_rows) < MIN_ROWS or len(np.unique(labels[joint_rows])) < 2:
        raise FederationError("too_few_records_to_prove", found=len(joint_rows), least=MIN_ROWS)
    return np.array(joint_rows, dtype=np.intp)[
        np.unique(np.linspace(0, len(joint_rows) - 1, min(len(joint_rows), limit)).astype(np.intp))
    ]


def _columns(
    federation: Federation, file: str, read: WholeModel, parts: PartialModels, user_categories: Collection[str]
) -> tuple[dict[int, tuple[str, Floats]], list[Remark]]:
    """Columns of the model that a split asks about, from the cells as they are written: owner, and numbers or codes."""
    holders = {feature.name: (party, feature) for party, feature in federation.features()}
    texts = {party.name: read_csv(federation.folder / party.file) for party in federation.parties}
    columns = {}
    notes: list[Remark] = []
    for i in sorted({node.feature for tree in read.trees for node in tree if isinstance(node, WholeSplit)}):
        work.check()
        party, feature = holders[read.features[i]]
        cells = texts[party].cells(feature.name)
        codes = parts.codes.get(feature.name)
        if codes is None:
            columns[i] = party, _numbers(cells, feature)
            continue
        is_guest = party == federation.guest.name
        _refuse_unmet(file, cells, feature, codes, from_user=feature.name in user_categories, is_guest=is_guest)
        code_of = {cell: codes.get("" if cell in feature.missing else cell, np.nan) for cell in set(cells)}
        columns[i] = party, np.array([code_of[cell] for cell in cells], dtype=np.float64)
        strange = sorted({cell for cell in code_of if cell and cell not in feature.missing} - codes.keys())
        if strange:
            note = {"name": shown(feature.name)}
            if party == federation.guest.name:
                cells_shown = tuple(shown(text) for text in strange)
                notes.append(Remark("texts_not_in_model_listed", {**note, "texts": cells_shown}))
            else:
                notes.append(Remark("texts_not_in_model", note))
    return columns, notes


def _numbers(cells: Sequence[str], feature: Feature) -> Floats:
    """Cells as numbers, read here on their own, so that a fault of the tables' reading shows."""
    boolean = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
    gone = {_number(text) for text in feature.missing}
    number_of = {}
    for cell in set(cells):
        number = boolean.get(cell.casefold(), _number(cell))
        is_missing = cell in feature.missing or number in gone
        number_of[cell] = np.nan if is_missing else number
    return np.array([number_of[cell] for cell in cells], dtype=np.float64)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _refuse_unmet(
    file: str, cells: Sequence[str], feature: Feature, codes: Mapping[str, int], *, from_user: bool, is_guest: bool
) -> None:
    """Refuse categories that no cell has, if this shows that cells and categories are written in different ways.

    Only the Guest's own cells are shown (`is_guest`).
    """
    where = {"file": file, "feature": shown(feature.name)}
    blank = [cell for cell in cells if not cell or cell in feature.missing]
    cell_texts = set(cells) - set(blank)
    if cell_texts and not cell_texts & codes.keys():
        texts = tuple(shown(text) for text in codes)
        raise ModelError("no_cell_in_categories", **where, categories=texts)
    # numbers that no cell has, and cells that are not among these numbers: places in a list, or labels that were encoded otherwise
    numbers = [*cell_texts, *filter(None, codes)]
    if not from_user and cell_texts - codes.keys() and {*codes} - cell_texts - {""} and all(map(is_whole, numbers)):
        known_numbers = tuple(sorted(cell_texts, key=int)) if is_guest else Remark("other_numbers")
        raise ModelError("category_codes_unproven", **where, codes=tuple(filter(None, codes)), known=known_numbers)
    odd = [text for text in codes if text and looks_missing(text) and text not in cell_texts]
    if odd and blank and not from_user and "" not in codes:
        raise ModelError("category_may_be_missing", **where, category=shown(odd[0]))


def _rounding(read: WholeModel) -> float:
    """Return the largest error of a library's margin by its own rounding: float32 sums, and the logit of a float32 probability."""
    if read.outputs.link == "logistic":
        base = max(abs(score) for score in read.base_scores)
    else:
        base = 0.0
    return (read.trees_an_output + 4) * FLOAT32 * read.reach + 4 * FLOAT32 * float(np.exp(min(base, 20.0)))


def _difference(file: str, reference: str | Remark, ours: Floats, theirs: Floats, tolerance: float) -> float:
    if ours.shape != theirs.shape:
        n_outputs = theirs.shape[1]
        expected = ours.shape[1]
        raise ModelError("import_of_other_outputs", file=file, other=reference, found=n_outputs, expected=expected)
    apart = np.abs(ours - theirs).max(axis=1)
    worst = float(apart.max())
    if not worst <= tolerance:
        differ = int((~(apart <= tolerance)).sum())
        raise ModelError(
            "import_scores_differ",
            file=file,
            other=reference,
            found=differ,
            records=len(apart),
            difference=worst,
            allowed=tolerance,
        )
    return worst


def _ranking(
    federation: Federation, file: str, parts: PartialModels, labels: Floats, margins: Floats, label_is: str | None
) -> tuple[float, list[Remark]]:
    """AUC on the federation's labels; raises ModelError if the model surely ranks the wrong way round."""
    outputs = parts.guest.outputs
    label = federation.label
    auc = measure(labels, margins, JOINT, outputs).auc
    if not auc < CHANCE:
        return auc, []
    auc_figure = performance(labels, margins, outputs, JOINT).figure("auc")
    surely = auc_figure is not None and auc_figure.high < CHANCE
    figure = f"AUC {auc:.4f}" + (f" (95 %: {auc_figure.low:.4f} … {auc_figure.high:.4f})" if auc_figure else "")
    if not surely or label_is is not None:
        return auc, [Remark("ranks_by_chance", {"figure": figure})]
    where = {"file": file, "figure": figure, "chance": CHANCE}
    if label.task == "classes":
        classes = tuple(shown(name) for name in label.classes)
        raise ModelError("classes_in_other_order", **where, classes=classes)
    other_label = next(iter(sorted(label_texts(federation) - {label.positive})), "")
    raise ModelError(
        "scores_wrong_way_round",
        **where,
        positive=shown(label.positive),
        other=shown(other_label),
        positive_option=shlex.quote(label.positive),
        other_option=shlex.quote(other_label),
    )


def label_texts(federation: Federation) -> set[str]:
    """Return the different cells of the label's column."""
    return set(read_csv(federation.folder / federation.guest.file).cells(federation.label.column))


def _gaps(federation: Federation, read: WholeModel, guest: PartyTable) -> list[Remark]:
    """Return notes if training seems to have met no missing value: values filled in then are not filled in here."""
    owner = {feature.name: party for party, feature in federation.features()}
    names = [read.features[i] for i in sorted(read.gapless) if read.features[i] in owner]
    missing_counts = {name: int(pd.isna(guest.columns[name]).sum()) for name in names if name in guest.columns}
    empty = [Remark("missing_in_records", {"name": shown(name), "n": n}) for name, n in missing_counts.items() if n]
    others = [shown(name) for name in names if owner[name] != federation.guest.name]
    if not empty and not others:
        return []
    notes = [Remark("trained_without_gaps", {"names": tuple(shown(name) for name in names)})]
    if empty:
        notes.append(Remark("missing_at_guest", {"columns": tuple(empty)}))
    return notes
