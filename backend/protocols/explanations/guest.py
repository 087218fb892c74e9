"""How the Guest asks for reasons, person by person: who holds a record, terms through the chain, a ranking with the last Host.

It learns the names of the largest contributions of one person, or sums over many people; never one person's contribution.

1. Guest → each Host: the people, the shape, the Host's own shares of cover. Each tells whom it holds, and about whom
its budget is exhausted.
2. Guest → first Host → … → last Host: one person's encrypted terms, multiplied by every Host's factors.
3. Guest ↔ last Host: the ranking's four messages; or, when a cohort's last person is through, its encrypted sums.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.data.table import PartyTable
from backend.protocols.explanations.encryption import ReasonKey, TermEncryption, encryption_of
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.messages import (
    AskCohort,
    AskReasons,
    ChooseLabels,
    ContributionSums,
    GarbledRanking,
    MaskedContributions,
    OpenRanking,
    ReasonTerms,
)
from backend.protocols.ranking.guest import RankingGuest
from backend.protocols.scoring.messages import HeldRecords
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import OfferKey
from backend.protocols.transport.packing import from_bitmap

OnStage = Callable[[str, str, int], None]  # stage, party at work, people done


def _quietly(stage: str, party: str, done: int) -> None:
    """Nobody follows."""


@dataclass(frozen=True)
class Named:
    """Names of reasons of some people.

    Attributes
    ----------
    names : list of tuple of (str, str), or None
        Per person, party and feature of the largest contributions above 0, by name and never by size; None where a Host refused.
    refused : dict of int to str
        Person → why.
    ciphertexts : int
        That the Guest encrypts a person.
    seconds : dict of (str, str) to float
        By stage and party.
    """

    names: list[tuple[tuple[str, str], ...] | None]
    refused: dict[int, str]
    ciphertexts: int
    seconds: dict[tuple[str, str], float]


@dataclass(frozen=True)
class Summed:
    """Contributions added up over a cohort.

    Attributes
    ----------
    items : tuple of (str, str)
        Party and feature.
    sums : ndarray of float64
        ``(items,)``, in the margin's unit.
    people : int
    error_bound : float
        How far a sum may be off.
    """

    items: tuple[tuple[str, str], ...]
    sums: NDArray[np.float64]
    people: int
    error_bound: float


class ReasonsClient:
    """One conversation about one model.

    Parameters
    ----------
    session : Session
    guest : str
    model_id : str
    compiled : CompiledTerms
    key : KeySide or ResidueKeySide
        Paillier's or RLWE's, or plaintext for sums.
    on_stage : callable
    """

    def __init__(
        self,
        session: Session,
        guest: str,
        model_id: str,
        compiled: CompiledTerms,
        key: ReasonKey,
        on_stage: OnStage = _quietly,
    ) -> None:
        self._session, self._guest, self._model_id, self._compiled = session, guest, model_id, compiled
        self._key, self._on_stage = key, on_stage
        self._seconds: dict[tuple[str, str], float] = {}
        self._first, self._last = compiled.chain[0], compiled.chain[-1]
        for host in compiled.chain:
            session.send(host, OfferKey(session.name, key.scheme, key.offer()))

    def names(self, people: PartyTable, count: int) -> Named:
        """Names of up to `count` reasons of every person, columns ``(n,)`` each.

        Raises
        ------
        ParameterError
            The key is none that names are ranked under, or too short.
        SecurityError, PartyUnreachable, Cancelled
            See :meth:`backend.protocols.transport.channel.Session.expect`.
        """
        compiled, shape = self._compiled, self._compiled.shape(count)
        encryption = encryption_of(self._key, compiled, shape)
        for host in compiled.chain:
            shares = compiled.shares_of(host)
            self._session.send(
                host,
                AskReasons(
                    self._session.name, self._model_id, people.ids, count, shares, shape.features, shape.value_bits
                ),
            )
        refused = self._held(len(people.ids))
        found: list[tuple[tuple[str, str], ...] | None] = []
        for i in range(len(people.ids)):
            if i in refused:
                found.append(None)
                continue
            self._send(people, i, encryption)
            found.append(self._ranked(RankingGuest(encryption.opened, shape.ranking), i))
        self._on_stage("done", self._guest, len(people.ids))
        return Named(found, refused, encryption.ciphertexts, self._seconds)

    def sums(self, people: PartyTable) -> Summed:
        """Sums of contributions over a cohort, columns ``(n,)`` each; whom a Host does not know goes its default sides."""
        compiled, shape = self._compiled, self._compiled.shape(1)
        encryption = encryption_of(self._key, compiled, shape, len(people.ids))
        for host in compiled.chain:
            shares = compiled.shares_of(host)
            self._session.send(
                host,
                AskCohort(self._session.name, self._model_id, people.ids, shares, shape.features, shape.value_bits),
            )
        self._held(len(people.ids))
        for i in range(len(people.ids)):
            self._send(people, i, encryption)
        self._on_stage("weigh", self._last, len(people.ids))
        answer = self._session.expect_each(ContributionSums, [self._last])[self._last]
        sums = np.array(encryption.sums(answer.sums), dtype=np.float64) / float(1 << shape.scale)
        return Summed(compiled.items, sums, len(people.ids), len(people.ids) * compiled.error_bound)

    def _held(self, n: int) -> dict[int, str]:
        """Step 1's answers: who is refused, and why."""
        refused: dict[int, str] = {}
        for host, answer in self._session.expect_each(HeldRecords, self._compiled.chain).items():
            if answer.spent:
                why = (
                    f"The budget is spent at {host}, which answers {answer.budget} time(s) in {answer.days} days about one person and "
                    f"model for its reasons. Wait, or ask {host} for a larger budget."
                )
                refused |= {int(i): why for i in np.flatnonzero(from_bitmap(answer.spent, n))}
        return refused

    def _send(self, people: PartyTable, i: int, encryption: TermEncryption) -> None:
        """Step 2, the Guest's part."""
        self._session.check()
        self._on_stage("encrypt", self._guest, i)
        began = time.perf_counter()
        one = people.take(np.array([i], dtype=np.intp))
        terms_enc = encryption.encrypted(one.columns)
        self._add("encrypt", self._guest, began)
        self._session.send(self._first, ReasonTerms(self._session.name, i, terms_enc))

    def _ranked(self, ranking: RankingGuest, i: int) -> tuple[tuple[str, str], ...]:
        """Step 3 for one person."""
        host, name = self._last, self._session.name
        self._on_stage("weigh", host, i)
        self._session.send(host, OpenRanking(name, ranking.open()))
        began = time.perf_counter()
        shares = self._session.expect_each(MaskedContributions, [host])[host].shares
        self._add("weigh", host, began)
        self._on_stage("rank", host, i)
        began = time.perf_counter()
        self._session.send(host, ChooseLabels(name, ranking.choose(shares)))
        places = ranking.names(self._session.expect_each(GarbledRanking, [host])[host].circuit)
        self._add("rank", host, began)
        return tuple(sorted((self._compiled.items[p] for p in places), key=lambda item: item[1]))

    def _add(self, stage: str, party: str, began: float) -> None:
        self._seconds[stage, party] = self._seconds.get((stage, party), 0.0) + time.perf_counter() - began
