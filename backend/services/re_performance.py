"""Re-performance for a user: a Guest's half of a sample, and what an auditor finds with the halves of all parties."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

from backend.errors import GlassleafError, ModelError
from backend.privacy.halves import GuestHalf, Place, load_guest_half
from backend.privacy.re_performance import RePerformed, re_perform
from backend.protocols.explanations.statement import CohortStatement, NamesStatement, load_cohort, load_names
from backend.protocols.group_sums.statement import GroupStatement, load_groups, name_of_sums
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.host_half import HostHalf, HostRow, HostSums, load_half, rows_of
from backend.protocols.scoring.opening import Opening, open_vector
from backend.protocols.scoring.packing import canaries
from backend.protocols.scoring.statement import ScoreStatement, load_statement
from backend.store.accountant import COHORT, REASONS, SCORE
from backend.store.party_store import PartyStore
from backend.trees.serialization import load_guest

__all__ = ["RePerformed", "guest_half", "re_perform_all", "re_perform_files"]


def guest_half(runtime: GuestRuntime, store: PartyStore, halves: Sequence[HostHalf]) -> GuestHalf:
    """Return the Guest's half of the samples that Hosts hand over: what it stated when it had the answers, and openings.

    Parameters
    ----------
    store : PartyStore
        The Guest's, which hands over its partial models.
    """
    half = _Half(runtime, store)
    for of_host in halves:
        for row in of_host.rows:
            half.take_row(of_host.host, row)
        for sums in of_host.sums:
            half.take_sums(of_host.host, sums)
    return half.whole()


class _Half:
    """The Guest's half, as far as it was put together."""

    def __init__(self, runtime: GuestRuntime, store: PartyStore) -> None:
        self._runtime = runtime
        self._store = store
        self._models: dict[str, str] = {}
        self._trees: dict[str, int] = {}
        self._registered: dict[str, dict[str, str]] = {}
        self._scores: dict[str, ScoreStatement] = {}
        self._names: dict[str, NamesStatement] = {}
        self._cohorts: dict[str, CohortStatement] = {}
        self._groups: dict[str, GroupStatement] = {}
        self._canaries: dict[Place, tuple[int, ...]] = {}
        self._opened: dict[tuple[str, int], Opening] = {}

    def whole(self) -> GuestHalf:
        """Return it."""
        return GuestHalf(
            self._runtime.guest.name,
            self._models,
            self._scores,
            self._canaries,
            self._opened,
            self._names,
            self._cohorts,
            self._groups,
            self._registered,
        )

    def take_row(self, host: str, row: HostRow) -> None:
        """Add what there is about one person: the statement, and what came to the Host."""
        self._take_model(row.model_id)
        if row.kind == SCORE and row.request not in self._scores:
            text = self._stated(row.request)
            if text is not None:
                self._scores[row.request] = load_statement(text)
        if row.kind == REASONS and row.request not in self._names:
            text = self._stated(row.request)
            if text is not None:
                self._names[row.request] = load_names(text)
        if not row.vector or row.model_id not in self._models:
            return
        # What was not made under a key of this Guest stays closed; the auditor counts it as such.
        with suppress(GlassleafError):
            key = self._runtime.keys.of(row.public_key)
            if row.kind == SCORE:
                trees = self._trees_of(row.model_id)
                numbers = canaries(key.seed, row.model_id, (row.person,), trees)[:, 0]
                self._canaries[row.request, row.place] = tuple(numbers.tolist())
            self._opened[host, row.number] = open_vector(key, row.vector)

    def take_sums(self, host: str, sums: HostSums) -> None:
        """Add what there is about one question about sums."""
        if sums.kind == COHORT:
            self._take_model(sums.model_id)
            text = self._stated(sums.request)
            if text is not None:
                self._cohorts[sums.request] = load_cohort(text)
            return
        about = sums.about
        for feature in about["features"]:
            name = name_of_sums(sums.request, host, about["source"], feature, about["most"], about["least"])
            text = self._stated(name)
            if text is not None:
                self._groups[name] = load_groups(text)

    def _take_model(self, model_id: str) -> None:
        if model_id not in self._models:
            with suppress(ModelError):
                self._models[model_id] = self._store.artefact(model_id)
                record = self._store.record(model_id)
                if record is None:
                    self._registered[model_id] = {}
                else:
                    self._registered[model_id] = json.loads(record)["host_hashes"]

    def _trees_of(self, model_id: str) -> int:
        """Return how many trees a model has, which is read of it once."""
        if model_id not in self._trees:
            self._trees[model_id] = len(load_guest(self._models[model_id]).trees)
        return self._trees[model_id]

    def _stated(self, name: str) -> str | None:
        journal = self._runtime.journal
        if journal is None:
            return None
        return journal.stated_answer(name)


def re_perform_all(runtime: GuestRuntime, store: PartyStore) -> RePerformed:
    """Recompute what is in the samples of all Hosts (simulation)."""
    first_halves = {host: runtime.operator.half(host, ()) for host in runtime.hosts}
    halves = []
    for host in runtime.hosts:
        rows_of_others = []
        for other_host, half in first_halves.items():
            if other_host != host:
                rows_of_others += rows_of(half)
        halves.append(runtime.operator.half(host, rows_of_others))
    return re_perform(guest_half(runtime, store, halves), halves, runtime.keys.floor)


def re_perform_files(half: str, samples: Sequence[str]) -> RePerformed:
    """Recompute the answers of which the Guest's half and the Hosts' samples are at hand, as text; needs no federation.

    Raises
    ------
    SecurityError
        If one of them cannot be read.
    """
    return re_perform(load_guest_half(half), [load_half(text) for text in samples])
