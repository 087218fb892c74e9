"""P10: crafted terms of reasons read answers of a Host from one reply, before anything is ranked. Plays a malicious Guest.

The Guest encrypts a multiple of T/2^b for an entry with one Host feature, chosen so that the Host's 0/1 moves the sum by 0 or by one high
bit of the plaintext modulus T. A blind that is 64 bits longer than an honest sum does not reach these bits. A blind that is uniform
modulo T does, and nothing is left to read. The blind that falls short exists only here.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from backend.crypto.rlwe.parameters import RlweParameters, residues_for
from backend.crypto.rlwe.residues import ResidueKeySide, ResiduePublicSide, Weighed
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.host_factors import CompiledFactors
from backend.protocols.explanations.shape import ReasonShape
from backend.protocols.explanations.weighting import RlweWeighting
from backend.protocols.ranking.shape import SLACK_BITS
from backend.protocols.scoring.fed_eini import host_plan
from backend.research.attacks.keys import matches
from backend.research.attacks.result import AttackOutcome, count
from backend.research.attacks.setup import HOST, PEOPLE, AttackSetup, attack_setup
from backend.trees.folding import fold_structure
from backend.trees.serialization import load_host

CLAIMED_BITS = range(40, 100)  # of a value, which the Guest states: it takes what leaves most of the modulus free


def run(seed: int, people: int = PEOPLE, targets: int = 30) -> AttackOutcome:
    """Read as many of the Host's answers about each of `targets` people as one reply holds."""
    setup = attack_setup(people)
    crafting = Crafting(setup)
    rows = setup.draw_people(np.random.default_rng(seed), targets)
    truth = np.array([crafting.truth(row) for row in rows.tolist()])
    everybody = np.array([crafting.truth(row) for row in range(min(1000, len(setup.host.ids)))]).mean(axis=0)

    def read(reply_of: str) -> tuple[int, int]:
        return matches([bit for row in rows.tolist() for bit in crafting.read(row, reply_of)], truth)

    return AttackOutcome(
        count(read, "short"),
        count(read, "shipped"),
        chance=float(np.maximum(everybody, 1 - everybody).mean()),
        setting={"people": targets, "answers": truth.shape[1], "spare_bits": crafting.spare},
    )


class Crafting:
    """A Guest that crafts terms, and the shipped Host that multiplies them.

    Attributes
    ----------
    spare : int
        Bits of T above those of an honest blinded number.
    """

    def __init__(self, setup: AttackSetup) -> None:
        self._setup = setup
        model = setup.model
        compiled = CompiledTerms(model)
        self._rows = compiled.rows
        self._shape = max((replace(compiled.shape(1), value_bits=bits) for bits in CLAIMED_BITS), key=self._spare)
        folding = fold_structure(model.skeletons, model.guest, model.hosts)
        self._step = folding.steps[0]
        self._factors = CompiledFactors(load_host(setup.partial_model), self._step, compiled.shares_of(HOST))
        self._key = ResidueKeySide([RlweKeySide(RlweSecretKey.generate(p)) for p in self._sets(self._shape)])
        self._side = ResiduePublicSide(self._key.offer())
        self._weighting = RlweWeighting(self._side, self._factors, self._shape, host_plan(folding, 0), 0)
        self.spare = self._spare(self._shape)
        self._base = self._shape.ranking.slot - 1
        self._chosen = self._choose()
        self._terms, self._known = self._craft()

    def _sets(self, shape: ReasonShape) -> tuple[RlweParameters, ...]:
        return residues_for(shape.load(self._rows))

    def _spare(self, shape: ReasonShape) -> int:
        return prod(p.plain_modulus for p in self._sets(shape)).bit_length() - shape.ranking.slot

    def truth(self, row: int) -> list[bool]:
        """The Host's 0/1 that the attack is after, of one person."""
        holds = self._kept(row)[:, 0]
        return [bool(holds[m]) for read in self._chosen.values() for m in read]

    def read(self, row: int, reply_of: str) -> list[bool]:
        """The same as the Guest reads it from a reply that is blinded as "shipped", or by a "short" blind."""
        values = self._weighting.values(self._key.encrypt(self._terms), self._kept(row))
        lift = [1 << (self._shape.ranking.width - 1)] * self._shape.ranking.n
        if reply_of == "shipped":
            reply = self._weighting.blinded(values, lift)[0]
        else:
            reply = self._short(values, lift)
        numbers = self._key.decrypt(reply, self._shape.ranking.n)
        bits = []
        for feature, read in self._chosen.items():
            high = (numbers[feature] - self._known[feature]) % self._key.modulus >> self._base
            bits += [bool(high >> i & 1) for i in range(len(read))]
        return bits

    def _kept(self, row: int) -> NDArray[np.bool_]:
        columns = self._setup.host.take(np.array([row], dtype=np.intp)).columns
        return self._factors.decide(columns, True)

    def _short(self, values: Weighed, lift: list[int]) -> bytes:
        """A reply whose blinds are 64 bits longer than an honest number, and no longer."""
        blinds = [secrets.randbits(self._shape.ranking.width + SLACK_BITS) for _ in lift]
        return self._side.reply(values, len(lift), [a + r for a, r in zip(lift, blinds, strict=True)])

    def _choose(self) -> dict[int, list[int]]:
        """Per Host feature, by its position among all: factors of entries with no other Host feature, on different splits."""
        entries, features = self._factors.where
        alone = np.bincount(entries, minlength=len(self._step.host_conditions)) == 1
        factors_of: dict[int, list[int]] = defaultdict(list)
        used_splits: set[frozenset[tuple[int, int]]] = set()
        for m, (entry, feature) in enumerate(zip(entries.tolist(), features.tolist(), strict=True)):
            splits = frozenset((t, i) for t, i, _ in self._step.host_conditions[entry])
            position = self._shape.features[0] + feature
            if alone[entry] and splits not in used_splits and len(factors_of[position]) < self.spare:
                used_splits.add(splits)
                factors_of[position].append(m)
        return {position: read for position, read in sorted(factors_of.items()) if read}

    def _craft(self) -> tuple[NDArray[np.object_], dict[int, int]]:
        """Terms as they are laid out in slots, and per feature what the sum is where every answer is 0."""
        entries, _ = self._factors.where
        size = len(entries)
        modulus, ties = (self._key.modulus, self._shape.ranking.tie_bits)
        yes, no = (self._factors.own(np.full((size, 1), bit))[0, :, 0].tolist() for bit in (True, False))
        terms = np.zeros((self._shape.ranking.n, self._rows), dtype=object)
        base_sums: dict[int, int] = {}
        for feature, read in self._chosen.items():
            base_sums[feature] = 0
            for i, m in enumerate(read):
                unit = pow((yes[m] - no[m]) << ties, -1, modulus)
                term = (unit << (self._base + i)) % modulus
                terms[feature, int(entries[m]) * len(self._factors.points)] = term
                base_sums[feature] += (no[m] << ties) * term
        return terms, base_sums
