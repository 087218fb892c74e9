"""The parties' own code for reasons, under each cipher, run by an operator who holds all records: for measuring, not for secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import PublicSide
from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide, PaillierPublicSide
from backend.crypto.plain import PlainKeySide, PlainPublicSide
from backend.crypto.rlwe.product_parameters import keys_for
from backend.crypto.rlwe.residues import ResidueKeySide, ResiduePublicSide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.protocols.explanations.encryption import PersonEncryption, ReasonKey, TermEncryption, encryption_of
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.host_factors import CompiledFactors, Decided
from backend.protocols.explanations.shape import ReasonShape
from backend.protocols.explanations.weighting import PersonWeighting, Weighting, weighting_of
from backend.protocols.ranking.guest import RankingGuest
from backend.protocols.ranking.shape import OTHER, OWN
from backend.trees.shap import shap_values
from bench.alignment import Meter
from bench.cases import Case

NAMES = 4


@dataclass(frozen=True)
class Parties:
    """A case with what reasons need of it, compiled once."""

    case: Case
    terms: CompiledTerms
    factors: list[CompiledFactors]

    @classmethod
    def of(cls, case: Case) -> Parties:
        """Compile both sides."""
        terms = CompiledTerms(case.model)
        steps = case.guest.folding.steps
        factors = [CompiledFactors(case.partial_models[s.host], s, terms.shares_of(s.host)) for s in steps]
        return cls(case, terms, factors)

    @property
    def shape(self) -> ReasonShape:
        """Of a request for :data:`NAMES` names."""
        return self.terms.shape(NAMES)

    def record(self, party: str, sample: str) -> tuple[dict[str, NDArray[Any]], bool]:
        """One person's columns at a party, ``(1,)`` each, and whether it holds a record."""
        table = self.case.tables[party]
        at = table.row_of.get(sample, -1)
        return dict(table.take(np.array([max(at, 0)])).columns), at >= 0

    def plain(self, samples: Sequence[str]) -> NDArray[np.float64]:
        """SHAP values ``(n, features)`` in the protocol's order, from all parties' columns."""
        names, values = shap_values(self.case.model, *self.case.together(samples), len(samples))
        return values[:, [names.index(feature) for _, feature in self.terms.items]]


@dataclass(frozen=True)
class ReasonPipeline:
    """From the Guest to the last Host and back, under one key.

    Attributes
    ----------
    cipher : {"paillier", "rlwe", "none"}
    bits : int
        Of the key.
    key_bytes : int
        Of the public key, once for every Host.
    of_person : PersonEncryption and list of PersonWeighting, optional
        For names: contributions and drops; none for a cohort.
    """

    parties: Parties
    cipher: str
    bits: int
    key_bytes: int
    encryption: TermEncryption
    weightings: list[Weighting]
    of_person: tuple[PersonEncryption, list[PersonWeighting]] | None

    @classmethod
    def under(cls, parties: Parties, bits: int, people: int = 0) -> ReasonPipeline:
        """Under Paillier with tables for obfuscators, or RLWE where `bits` is 0; for names, or for a cohort of so many people."""
        if not bits:
            sets = keys_for(parties.shape.load(parties.terms.rows, people))
            residues = ResidueKeySide([RlweKeySide(RlweSecretKey.generate(p)) for p in sets])
            return cls._of(parties, "rlwe", residues, ResiduePublicSide(residues.offer()), people)
        secret = PaillierSecretKey.generate(bits, floor=min(bits, 2048))
        key = PaillierKeySide(secret)
        public = PaillierPublicSide(secret.public)
        for pool in (key.obfuscators, public.obfuscators):
            pool.take(1)
        return cls._of(parties, "paillier", key, public, people)

    @classmethod
    def plain(cls, parties: Parties, people: int) -> ReasonPipeline:
        """A cohort in plaintext."""
        return cls._of(parties, "none", PlainKeySide(), PlainPublicSide(), people)

    @classmethod
    def _of(cls, parties: Parties, cipher: str, key: ReasonKey, side: PublicSide, people: int) -> ReasonPipeline:
        both = zip(parties.factors, parties.case.plans, strict=True)
        weightings = [weighting_of(side, factors, parties.shape, plan, people) for factors, plan in both]
        encryption = encryption_of(key, parties.terms, parties.shape, people)
        of_person = None
        if not people:
            both = zip(parties.factors, parties.case.plans, strict=True)
            ways = [PersonWeighting(side, factors, parties.shape, plan) for factors, plan in both]
            of_person = PersonEncryption(key, parties.terms, parties.shape), ways
        return cls(parties, cipher, key.bits, len(key.offer()) * len(weightings), encryption, weightings, of_person)

    def contributions(self, samples: Sequence[str], meter: Meter, before: Any = None) -> Any:
        """Contributions of people who share a message, encrypted, as the last Host holds them; added to those `before`."""
        columns = [self.parties.record(self.parties.case.model.guest, sample)[0] for sample in samples]
        table = {name: np.concatenate([one[name] for one in columns]) for name in columns[0]}
        sent = meter.sent("guest", meter.timed("guest", self.encryption.encrypted, table, len(samples)))
        for factors, weighting in zip(self.parties.factors, self.weightings, strict=True):
            records = [self.parties.record(factors.step.host, sample) for sample in samples]
            kept = np.concatenate([meter.timed("host", factors.decide, *record) for record in records], axis=1)
            if weighting is not self.weightings[-1]:
                sent = meter.sent("host", meter.timed("host", weighting.passed_on, sent, kept))
        return meter.timed("host", self.weightings[-1].values, sent, kept, before)

    def named(self, sample: str) -> tuple[Meter, Meter]:
        """Reasons of one person; what the contributions cost, and what the ranking does."""
        weighting = Meter()
        ranking = Meter()
        shape = self.parties.shape
        if self.of_person is None:
            raise ValueError("this pipeline is for cohorts; make one for names")
        person, ways = self.of_person
        record = self.parties.record
        columns, _ = record(self.parties.case.model.guest, sample)
        sent = weighting.sent("guest", weighting.timed("guest", person.encrypted, columns))
        for factors, way in zip(self.parties.factors, ways, strict=True):
            decided = weighting.timed("host", Decided.of, factors, way.drop_factors, *record(factors.step.host, sample))
            if way is not ways[-1]:
                sent = weighting.sent("host", weighting.timed("host", way.passed_on, sent, decided))
        held = weighting.timed("host", ways[-1].values, sent, decided)
        n = sum(shape.features)
        asked = np.zeros((OWN, n), dtype=bool)
        asked[3] = True  # whatever side a value is on, so that names are those of the largest contributions
        guest = RankingGuest(person.opened, shape.ranking, asked)
        host = ways[-1].ranking(held, np.zeros((OTHER, n), dtype=bool), shape)
        shares = ranking.sent("host", ranking.timed("host", host.share, ranking.sent("guest", guest.open())))
        choices = ranking.sent("guest", ranking.timed("guest", guest.choose, shares))
        ranking.timed("guest", guest.names, ranking.sent("host", ranking.timed("host", host.garble, choices)))
        return weighting, ranking

    def summed(self, samples: Sequence[str], meter: Meter) -> NDArray[np.float64]:
        """Contributions of a cohort, ``(features,)``, in the margin's unit."""
        held = None
        for start in range(0, len(samples), self.encryption.together):
            held = self.contributions(samples[start : start + self.encryption.together], meter, held)
        people = len(samples)
        # nothing is hidden, so that sums can be compared
        sent = meter.sent("host", meter.timed("host", self.weightings[-1].sums, held, people, lambda _: 0))
        numbers: list[int] = meter.timed("guest", self.encryption.sums, sent, people)
        return np.array(numbers, dtype=np.float64) / float(1 << self.parties.shape.scale)
