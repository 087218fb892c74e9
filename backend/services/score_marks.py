"""Marks of people with unusual values, as the Guest sees them before scoring, and how a policy treats them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from backend.data.dictionary import Kind
from backend.data.id_forms import MIN_STOPPED_PEOPLE
from backend.data.table import PartyTable
from backend.policy.bands import MARKS, Mark, Policy
from backend.remark import Remark
from backend.results import JOINT, ModelRecord, Score
from backend.services.registry import Registry
from backend.services.workspace import Workspace
from backend.trees.ensemble import GuestModel


@dataclass(frozen=True)
class SeenValues:
    """The Guest's values that a model was trained on.

    Attributes
    ----------
    ranges : dict of str to (float, float)
        Numeric feature that the model uses → smallest and largest value.
    categories : dict of str to frozenset of str
        Categorical feature that the model uses → its codes.
    """

    ranges: Mapping[str, tuple[float, float]]
    categories: Mapping[str, frozenset[str]]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the Guest's features that the model uses."""
        return (*self.ranges, *self.categories)


def seen_of(workspace: Workspace, models: Registry, record: ModelRecord) -> SeenValues:
    """Return the Guest's values that a model of the registry was trained on."""

    def read() -> SeenValues:
        table = workspace.runtime(record.federation).table
        part_of = models.part_of(record)
        ids = [i for i, part in part_of.items() if part in ("training", JOINT) and i in table.row_of]
        rows = np.array([table.row_of[i] for i in ids], dtype=np.intp)
        imported = JOINT in part_of.values()
        return seen_values(models.partial_model(record), table.take(rows), imported=imported)

    return models.derived("seen", record, read)


def seen_values(model: GuestModel, trained: PartyTable, *, imported: bool = False) -> SeenValues:
    """Return what the Guest's features of a model were in the records that it was trained on.

    An `imported` model was trained on other records: it knows the codes that its splits name, and no others.
    """
    used_features = set()
    for tree in model.trees:
        for split in tree.splits.values():
            if split.owner == model.guest:
                used_features.add(split.feature)
    ranges = {}
    categories = {}
    for party, feature in model.dictionary:
        if party != model.guest or feature.name not in used_features:
            continue
        column = trained.columns[feature.name]
        if feature.kind is Kind.CATEGORICAL:
            # A code is known if a training record had it, or if a split names it.
            split_codes = model.known_codes.get(feature.name, frozenset())
            in_records = frozenset(code for code in column.tolist() if code is not None)
            if imported and split_codes:
                categories[feature.name] = split_codes
            else:
                categories[feature.name] = in_records | split_codes
        else:
            present = column[~np.isnan(column)]
            if len(present):
                ranges[feature.name] = (float(present.min()), float(present.max()))
            else:
                ranges[feature.name] = (-np.inf, np.inf)
    return SeenValues(ranges, categories)


def guest_marks(trained_values: SeenValues, guest_rows: PartyTable) -> dict[int, tuple[Mark, ...]]:
    """Return row → marks of the people whose own values at the Guest are unusual: known before any Host is asked."""
    n = len(guest_rows.ids)
    missing = np.zeros(n, dtype=np.bool_)
    outside = np.zeros(n, dtype=np.bool_)
    unseen = np.zeros(n, dtype=np.bool_)
    for name, (low, high) in trained_values.ranges.items():
        column = guest_rows.columns[name].astype(np.float64)
        missing |= np.isnan(column)
        with np.errstate(invalid="ignore"):
            outside |= (column < low) | (column > high)
    for name, codes in trained_values.categories.items():
        for row, code in enumerate(guest_rows.columns[name].tolist()):
            if code is None:
                missing[row] = True
            elif codes and code not in codes:
                unseen[row] = True
    flags: dict[Mark, NDArray[np.bool_]] = {
        "unseen_category": unseen,
        "out_of_range": outside,
        "missing_value": missing,
    }
    marked = np.flatnonzero(unseen | outside | missing).tolist()
    marks_of = {}
    for row in marked:
        marks_of[row] = tuple(mark for mark in MARKS if mark in flags and flags[mark][row])
    return marks_of


def host_mark(not_held_by: tuple[str, ...], chain: tuple[str, ...]) -> tuple[Mark, ...]:
    """Return the mark of a person whom no Host of the chain, or not every one, has a record of."""
    if not not_held_by:
        return ()
    if len(not_held_by) == len(chain):
        return ("no_host",)
    return ("some_hosts",)


@dataclass
class HeldCount:
    """How many people of a table were scored, and how many of them one of the `hosts` that were asked holds."""

    hosts: int
    scored: int = 0
    n_held: int = 0

    def add(self, scores: Sequence[Score]) -> None:
        """Count more people."""
        answered = [score for score in scores if score.scored]
        self.scored += len(answered)
        self.n_held += sum(len(score.not_held_by) < self.hosts for score in answered)

    def notes(self) -> tuple[Remark, ...]:
        """Return a note if of ten or more people fewer than half are held by any Host."""
        if self.scored < MIN_STOPPED_PEOPLE or 2 * self.n_held >= self.scored:
            return ()
        return (Remark("few_held", {"n": self.n_held, "rows": self.scored}),)


def few_held(scores: Sequence[Score], hosts: int) -> tuple[Remark, ...]:
    """Return a note if of ten or more people fewer than half are held by any of the `hosts` that were asked."""
    count = HeldCount(hosts)
    count.add(scores)
    return count.notes()


def with_what_if(score: Score, cutoff: float | None) -> Score:
    """Return a score with what another cut-off would say; the decision stays the policy's."""
    if cutoff is None or not score.scored or not score.band:
        return replace(score, what_if="") if score.what_if else score
    return replace(score, what_if="decline" if score.probability >= cutoff else "accept")


def refused_score(sample_id: str, policy: Policy, marks: tuple[Mark, ...], not_held_by: tuple[str, ...] = ()) -> Score:
    """Return the result of a person whom the policy refuses."""
    nan = float("nan")
    refused_marks = tuple(Remark(f"mark_{mark}") for mark in marks if policy.treatments.of(mark) == "refuse")
    return Score(
        sample_id,
        "refused",
        (Remark("refused_by_policy", {"version": policy.version, "marks": refused_marks}),),
        nan,
        nan,
        "refuse",
        (),
        "",
        nan,
        nan,
        nan,
        0,
        not_held_by,
        marks=marks,
        policy=policy.version,
    )
