"""The Guest's side of reasons, person by person: who holds a record, terms through the chain, a ranking with the last Host.

It learns the names of the largest contributions of one person, or sums over many people; never one person's contribution.

1. Guest → each Host: the people, the shape, the Host's own shares of cover. Each Host → Guest: whose records it holds, and about
   whom its budget is exhausted; for names, each but the last also random bits, under which it will pass on who is above its medians.
2. Guest → first Host → … → last Host: one person's encrypted terms, multiplied by every Host's factors.
3. Guest ↔ last Host: the ranking's four messages; or, when a cohort's last person is through, its encrypted sums.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgpack
import numpy as np
from numpy.typing import NDArray

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.data.medians import sides
from backend.data.table import PartyTable
from backend.errors import QuestionRefused, SecurityError
from backend.protocols.explanations.encryption import PersonEncryption, ReasonKey, TermEncryption, encryption_of
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
from backend.protocols.explanations.shape import ReasonShape
from backend.protocols.explanations.statement import CohortStatement, NamesStatement
from backend.protocols.ranking.guest import RankingGuest
from backend.protocols.ranking.shape import OWN
from backend.protocols.scoring.guest import OnStage, Timings, ignore_stages, refusals
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import Acknowledge, HeldRecords, OfferKey
from backend.protocols.transport.packing import from_bitmap
from backend.remark import Remark
from backend.store.journal import Journal, Run
from backend.trees.ensemble import Columns
from backend.trees.shap import largest_contributions

WHOLE = -1  # stands for the question about all people in the journal; they are numbered from 0


@dataclass(frozen=True)
class Named:
    """Names of reasons of some people.

    Attributes
    ----------
    names : list of tuple of (str, str), or None
        Per person, party and feature of the largest contributions above 0, by name and never by size; None if a Host refused. Each value
        is on the side asked about, and with all features of its reason at the medians the score would be lower; or no side was asked about.
    refused : dict of int to str
        Person → why.
    ciphertexts : int
        That the Guest encrypts a person.
    seconds : dict of (str, str) to float
        By stage and party.
    """

    names: list[tuple[tuple[str, str], ...] | None]
    refused: dict[int, Remark]
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
    key : KeySide or ResidueKeySide
        Paillier's or RLWE's, or plaintext for sums.
    run : Run, optional
        The journal of the question. For names: what is sent of a person is written down before, the names after. For sums: their request's
        name before, the sums as they came after.
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
        self._run = run
        self._journal = journal
        self._session = session
        self._guest = guest
        self._model_id = model_id
        self._compiled = compiled
        self._key = key
        self._on_stage = on_stage
        self._timings = Timings()
        self._first = compiled.chain[0]
        self._last = compiled.chain[-1]
        for host in compiled.chain:
            session.send(host, OfferKey(session.name, key.scheme, key.offer()))

    def names(
        self,
        people: PartyTable,
        count: int,
        below: Collection[str] = (),
        groups: tuple[int, ...] = (),
        sideless: Collection[str] = (),
    ) -> Named:
        """Return the names of up to `count` reasons of every person, columns ``(n,)`` each.

        Parameters
        ----------
        below : collection of str
            Features that may be named if the value is below its median; all others may be if it is above. No Host learns them.
        groups : tuple of int
            The reason of each item, if several items are one reason (:class:`ReasonShape`).
        sideless : collection of str
            Features that may be named on either side of the median: codes, and features that must not be left out. No Host learns them.

        Raises
        ------
        ParameterError
            Names cannot be ranked under this kind of key, or it is too short.
        SecurityError, PartyUnreachable, Cancelled
            See :meth:`backend.protocols.transport.channel.Session.expect`.
        """
        compiled = self._compiled
        shape = self._compiled.shape(count, groups)
        name = self._session.name
        encryption = PersonEncryption(self._key, compiled, shape)
        if self._run is None:
            request = ""
        else:
            request = self._run.batch(WHOLE).request
        for host in compiled.chain:
            sizes = compiled.shares_of(host), shape.features, shape.value_bits
            question = AskReasons(name, self._model_id, people.ids, *sizes, names=count, request=request, groups=groups)
            self._session.send(host, question)
        answers = self._session.expect_each(HeldRecords, compiled.chain)
        refused = _refused(answers, len(people.ids))
        masks = {host: answer.masks for host, answer in answers.items()}
        sides_of_people = self._sides(people, below, sideless, masks)
        names: list[tuple[tuple[str, str], ...] | None] = []
        for i in range(len(people.ids)):
            if i in refused:
                names.append(None)
                continue
            if self._run is None:
                stored_names = None
            else:
                stored_names = self._run.batch(i).answer
            if stored_names is not None:
                named_features = []
                for party, feature in msgpack.unpackb(stored_names):
                    named_features.append((party, feature))
            else:
                ranking = RankingGuest(encryption.opened, shape.ranking, sides_of_people[i])
                named_features = self._named(people, i, encryption, ranking)
                if self._run is not None:
                    self._run.answered(i, msgpack.packb(named_features))
            names.append(tuple(named_features))
        self._on_stage("done", self._guest, len(people.ids))
        if self._run is not None:
            # Stored before the names are returned: an auditor may draw any of them.
            about = count, groups, tuple(sorted(below)), tuple(sorted(sideless))
            self._run.state(request, self._statement(people, *about, names).dump())
        return Named(names, refused, encryption.ciphertexts, self._timings.seconds)

    def _statement(
        self,
        people: PartyTable,
        count: int,
        groups: tuple[int, ...],
        below: tuple[str, ...],
        sideless: tuple[str, ...],
        names: Sequence[tuple[tuple[str, str], ...] | None],
    ) -> NamesStatement:
        """Return the statement for an auditor about names."""
        compiled = self._compiled
        number_of = {item: i for i, item in enumerate(compiled.items)}
        numbers_of_names = tuple(
            None if names_of_person is None else tuple(number_of[item] for item in names_of_person)
            for names_of_person in names
        )
        background = compiled.background
        guest_columns = self._own_columns(people)
        return NamesStatement(
            self._model_id, background, count, groups, below, sideless, guest_columns, numbers_of_names
        )

    def _own_columns(self, people: PartyTable) -> Columns:
        """Return this party's values that the model uses."""
        features = [feature for _, feature in self._compiled.items[: self._compiled.own]]
        return {name: people.columns[name] for name in features}

    def _sides(
        self, people: PartyTable, below: Collection[str], sideless: Collection[str], masks: Mapping[str, bytes]
    ) -> NDArray[np.bool_]:
        """Return ``(people, 4, features)``: shares of above and of below (or a Host's masks), whether below is asked about, or no side."""
        compiled = self._compiled
        n = len(people.ids)
        out = np.zeros((n, OWN, len(compiled.items)), dtype=bool)
        names = [feature for _, feature in compiled.items]
        out[:, :2, : compiled.own] = sides(names[: compiled.own], people.columns, compiled.model.medians, n).transpose(
            2, 1, 0
        )
        begin = compiled.own
        for host in compiled.chain[:-1]:
            n_features = sum(party == host for party, _ in compiled.items)
            bits = from_bitmap(masks[host], n * n_features * 2).reshape(n, n_features, 2)
            out[:, :2, begin : begin + n_features] = bits.transpose(0, 2, 1)
            begin += n_features
        out[:, 2] = [name in below for name in names]
        out[:, 3] = [name in sideless for name in names]
        return out

    def _named(
        self, people: PartyTable, i: int, encryption: PersonEncryption, ranking: RankingGuest
    ) -> list[tuple[str, str]]:
        """Steps 2 and 3 for one person: party and feature of each name."""
        try:
            self._send(people, i, encryption, self._run)
            return self._ranked(ranking, i)
        except QuestionRefused:
            if self._run is not None:
                self._run.drop(i)
            raise

    def sums(self, people: PartyTable) -> Summed:
        """Sums of contributions over a cohort, columns ``(n,)`` each; whom a Host does not know goes its default sides.

        A question that was broken off is asked again under its request's name: it was counted once, and has one answer.

        Raises
        ------
        QuestionRefused
            If the question has no answer any more. The journal has forgotten it.
        SecurityError, PartyUnreachable, Cancelled
            See :meth:`backend.protocols.transport.channel.Session.expect`.
        """
        compiled = self._compiled
        shape = compiled.shape(1)
        n = len(people.ids)
        encryption = encryption_of(self._key, compiled, shape, n)
        if self._run is None:
            sums_enc = None
        else:
            sums_enc = self._run.batch(WHOLE).answer
        if sums_enc is None:
            sums_enc = self._asked_sums(people, shape, encryption)
        units = encryption.sums(sums_enc, n)
        sums = np.array(units, dtype=np.float64) / float(1 << shape.scale)
        # the last Host hides what lies below 2^-ROUNDED_BITS
        error_bound = n * compiled.error_bound + 2.0 ** (shape.noise_bits - shape.scale)
        # A Host that moves contributions is noticed if one is larger than the model can give.
        bounds = largest_contributions(compiled.model.trees, [feature for _, feature in compiled.items])
        if (np.abs(sums) > n * bounds + error_bound).any():
            raise SecurityError("impossible_sums")
        if self._run is not None:
            statement = CohortStatement(self._model_id, self._own_columns(people), tuple(units), compiled.background)
            self._run.state(self._run.batch(WHOLE).request, statement.dump())
        return Summed(compiled.items, sums, n, error_bound)

    def _asked_sums(self, people: PartyTable, shape: ReasonShape, encryption: TermEncryption) -> bytes:
        """Steps 1 to 3 of a cohort: return its encrypted sums."""
        chain = self._compiled.chain
        name = self._session.name
        n = len(people.ids)
        if self._run is None:
            request = ""
        else:
            request = self._run.batch(WHOLE).request
        for host in chain:
            shares = self._compiled.shares_of(host)
            question = AskCohort(name, self._model_id, people.ids, shares, shape.features, shape.value_bits, request)
            self._session.send(host, question)
        try:
            _refused(self._session.expect_each(HeldRecords, chain), n)
            for i in range(0, n, encryption.together):
                self._send(people, i, encryption, None)
            self._on_stage("weigh", self._last, n)
            sums_enc = self._session.expect_each(ContributionSums, [self._last])[self._last].sums
        except QuestionRefused:
            if self._run is not None:
                self._run.drop(WHOLE)
            raise
        if self._run is not None:
            self._run.answered(WHOLE, sums_enc)
            self._session.send(self._last, Acknowledge(name, (request,)))
        return sums_enc

    def _send(self, people: PartyTable, i: int, encryption: TermEncryption | PersonEncryption, run: Run | None) -> None:
        """Step 2, the Guest's part; written into the run, if there is one."""
        self._session.check()
        self._on_stage("encrypt", self._guest, i)
        with self._timings.measured("encrypt", self._guest):
            sent = () if run is None else run.batch(i).sent
            some = np.arange(i, min(i + encryption.together, len(people.ids)), dtype=np.intp)
            person = people.take(some).columns
            if sent:
                terms_enc = sent[0]
            else:
                terms_enc = encryption.encrypted(person, len(some))
            # before they can be sent, by whomever: an auditor may draw any terms that have left
            if self._journal is not None and not sent and isinstance(self._key, PaillierKeySide):
                self._journal.state(terms_enc, values_alike(self._compiled.model, person))
            if run is not None and not sent:
                terms_enc = run.sending(i, 0, terms_enc)
        self._session.send(self._first, ReasonTerms(self._session.name, i, terms_enc))

    def _ranked(self, ranking: RankingGuest, i: int) -> list[tuple[str, str]]:
        """Step 3 for one person."""
        session = self._session
        host = self._last
        self._on_stage("weigh", host, i)
        session.send(host, OpenRanking(session.name, ranking.open()))
        with self._timings.measured("weigh", host):
            shares = session.expect_each(MaskedContributions, [host])[host].shares
        self._on_stage("rank", host, i)
        with self._timings.measured("rank", host):
            session.send(host, ChooseLabels(session.name, ranking.choose(shares)))
            largest = ranking.names(session.expect_each(GarbledRanking, [host])[host].circuit)
        named_features = [self._compiled.items[k] for k in largest]
        return sorted(named_features, key=lambda item: item[1])


def _refused(answers: Mapping[str, HeldRecords], n: int) -> dict[int, Remark]:
    """Step 1's answers: who is refused, and why."""
    return {i: why for host, answer in answers.items() for i, why in refusals(host, answer, n, reasons=True).items()}
