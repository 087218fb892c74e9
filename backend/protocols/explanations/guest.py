"""The Guest's side of reasons, person by person: who holds a record, terms through the chain, a ranking with the last Host.

It learns the names of the largest contributions of one person, or sums over many people; never one person's contribution.

1. Guest → each Host: the people, the shape, the Host's own shares of cover. Each Host → Guest: whose records it holds, and about
   whom its budget is exhausted.
2. Guest → first Host → … → last Host: one person's encrypted terms, multiplied by every Host's factors.
3. Guest ↔ last Host: the ranking's four messages; or, when a cohort's last person is through, its encrypted sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgpack
import numpy as np
from numpy.typing import NDArray

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.data.table import PartyTable
from backend.errors import QuestionRefused
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
from backend.protocols.explanations.opening import values_alike
from backend.protocols.ranking.guest import RankingGuest
from backend.protocols.ranking.shape import RankingShape
from backend.protocols.scoring.guest import OnStage, Timings, ignore_stages, refusals
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import HeldRecords, OfferKey
from backend.store.journal import Journal, Run

WHOLE = -1  # stands for the question about all people in the journal; they are numbered from 0


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
    run : Run, optional
        The journal of names: what is sent of a person is written down before, the names after.
    journal : Journal, optional
        Where it is written down with which values terms were made; without one, an auditor finds fault with them.
    """

    def __init__(
        self,
        session: Session,
        guest: str,
        model_id: str,
        compiled: CompiledTerms,
        key: ReasonKey,
        on_stage: OnStage = ignore_stages,
        run: Run | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._run, self._journal = run, journal
        self._session, self._guest, self._model_id, self._compiled = session, guest, model_id, compiled
        self._key, self._on_stage = key, on_stage
        self._timings = Timings()
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
        compiled, shape, name = self._compiled, self._compiled.shape(count), self._session.name
        encryption = encryption_of(self._key, compiled, shape)
        request = "" if self._run is None else self._run.batch(WHOLE).request
        for host in compiled.chain:
            sizes = compiled.shares_of(host), shape.features, shape.value_bits
            self._session.send(host, AskReasons(name, self._model_id, people.ids, count, *sizes, request))
        refused = self._refused(len(people.ids), " for its reasons")
        names: list[tuple[tuple[str, str], ...] | None] = []
        for i in range(len(people.ids)):
            if i in refused:
                names.append(None)
                continue
            known = None if self._run is None else self._run.batch(i).answer
            if known is not None:
                names.append(tuple((party, feature) for party, feature in msgpack.unpackb(known)))
                continue
            found = self._named(people, i, encryption, shape.ranking)
            if self._run is not None:
                self._run.answered(i, msgpack.packb(found))
            names.append(found)
        self._on_stage("done", self._guest, len(people.ids))
        return Named(names, refused, encryption.ciphertexts, self._timings.seconds)

    def _named(
        self, people: PartyTable, i: int, encryption: TermEncryption, shape: RankingShape
    ) -> tuple[tuple[str, str], ...]:
        """Steps 2 and 3 for one person."""
        try:
            self._send(people, i, encryption)
            return self._ranked(RankingGuest(encryption.opened, shape), i)
        except QuestionRefused:
            if self._run is not None:
                self._run.drop(i)
            raise

    def sums(self, people: PartyTable) -> Summed:
        """Sums of contributions over a cohort, columns ``(n,)`` each; whom a Host does not know goes its default sides."""
        compiled, shape, name, n = self._compiled, self._compiled.shape(1), self._session.name, len(people.ids)
        encryption = encryption_of(self._key, compiled, shape, n)
        for host in compiled.chain:
            sizes = compiled.shares_of(host), shape.features, shape.value_bits
            self._session.send(host, AskCohort(name, self._model_id, people.ids, *sizes))
        self._refused(n)
        for i in range(n):
            self._send(people, i, encryption)
        self._on_stage("weigh", self._last, n)
        answer = self._session.expect_each(ContributionSums, [self._last])[self._last]
        sums = np.array(encryption.sums(answer.sums), dtype=np.float64) / float(1 << shape.scale)
        return Summed(compiled.items, sums, n, n * compiled.error_bound)

    def _refused(self, n: int, purpose: str = "") -> dict[int, str]:
        """Step 1's answers: who is refused, and why."""
        answers = self._session.expect_each(HeldRecords, self._compiled.chain)
        return {i: why for host, answer in answers.items() for i, why in refusals(host, answer, n, purpose).items()}

    def _send(self, people: PartyTable, i: int, encryption: TermEncryption) -> None:
        """Step 2, the Guest's part."""
        self._session.check()
        self._on_stage("encrypt", self._guest, i)
        with self._timings.measured("encrypt", self._guest):
            sent = () if self._run is None else self._run.batch(i).sent
            person = people.take(np.array([i], dtype=np.intp)).columns
            terms_enc = sent[0] if sent else encryption.encrypted(person)
            # before they can be sent, by whomever: an auditor may draw any terms that have left
            if self._journal is not None and not sent and isinstance(self._key, PaillierKeySide):
                self._journal.state(terms_enc, values_alike(self._compiled.model, person))
            if self._run is not None and not sent:
                terms_enc = self._run.sending(i, 0, terms_enc)
        self._session.send(self._first, ReasonTerms(self._session.name, i, terms_enc))

    def _ranked(self, ranking: RankingGuest, i: int) -> tuple[tuple[str, str], ...]:
        """Step 3 for one person."""
        session, host = self._session, self._last
        self._on_stage("weigh", host, i)
        session.send(host, OpenRanking(session.name, ranking.open()))
        with self._timings.measured("weigh", host):
            shares = session.expect_each(MaskedContributions, [host])[host].shares
        self._on_stage("rank", host, i)
        with self._timings.measured("rank", host):
            session.send(host, ChooseLabels(session.name, ranking.choose(shares)))
            largest = ranking.names(session.expect_each(GarbledRanking, [host])[host].circuit)
        return tuple(sorted((self._compiled.items[k] for k in largest), key=lambda item: item[1]))
