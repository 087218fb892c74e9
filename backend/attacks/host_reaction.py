"""A7: a Host answers with one of the Guest's ciphertexts, made loud, and watches the decision. Plays that Host; the Guest is honest.

The Guest's leaf weight, or the 0 in its place, times a large number drowns the rest of the score: the decision tells its sign. A Guest
that checks what came back decides nothing. A Host that adds the loud number to the true sum still learns from the Guest's stopping
whether it was 0, one bit for every time that it is caught or lucky. One that adds the number as it is stays within what is
possible, so that only the canary above every score tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from backend.attacks.keys import Keys, honest, matches
from backend.attacks.result import AttackOutcome, attempt
from backend.attacks.setup import HOST, PEOPLE, AttackSetup, scene
from backend.crypto.paillier.keys import KEY_BITS_FLOOR, PaillierPublicKey
from backend.errors import SecurityError
from backend.protocols.host import HostParty
from backend.protocols.host_state import MemoryStore
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import HeldRecords
from backend.protocols.transport.packing import to_bitmap
from backend.store.query_budget import QueryBudget
from backend.trees.ensemble import Columns

LOUD = 1 << 40  # times a leaf weight of one unit is more than any score
OFFSET = LOUD // 2  # taken off, so that a 0 is decided like a weight below it
TRIES = 20  # scorings in which the Host adds to the true sum


def run(
    seed: int,
    key_bits: int = KEY_BITS_FLOOR,
    people: int = PEOPLE,
    targets: int = 40,
    trees: int = SecureBoostParameters().trees,
) -> AttackOutcome:
    """Tell for `targets` people whether one entry of the Guest's decision vector is above 0, each from one decision."""
    stage, keys = scene(people, trees), honest(key_bits)
    chosen = np.random.default_rng(seed).choice(len(stage.guest.ids), targets, replace=False)
    model = stage.rounded(SecureBoostParameters().score_bits)
    entries = CompiledGuest(model).encode(stage.guest.take(chosen).columns, targets)[1]
    entry = int(np.abs((entries > 0).mean(axis=0) - 0.5).argmin())
    above = entries[:, entry] > 0
    share = float(above.mean())

    def watch(compiled: CompiledGuest, canary: bool) -> tuple[int, int]:
        host = TamperingHost(stage, entry, keys.host.key)
        try:
            units = stage.score(compiled, stage.guest.take(chosen), keys.guest, host, canary=canary)
        except SecurityError:  # nothing was decided: the Host says what is more frequent
            return matches([share > 0.5] * targets, above)
        return matches([margin > 0 for margin in compiled.margins(units)[:, 0]], above)

    compiled, tried, weighs = CompiledGuest(model), chosen[:TRIES], entries[:TRIES, entry] != 0
    loud = stopped(stage, keys, compiled, tried, entry, LOUD, canary=True)
    quiet = tried[weighs]  # people whose scores a Host changes by adding the entry as it is
    rates = {"told_by_stopping": float((loud == weighs).mean()), "caught": float(loud.mean())}
    for name, canary in (("range", False), ("canary", True)):
        rates[f"quiet_caught_{name}"] = float(stopped(stage, keys, compiled, quiet, entry, 1, canary=canary).mean())
    return AttackOutcome(
        attempt(watch, Trusting(model), False),
        attempt(watch, compiled, True),
        chance=max(share, 1 - share),
        setting={"key_bits": key_bits, "people": targets},
        rates=rates,
    )


class Trusting(CompiledGuest):
    """A Guest that takes every score for what the model gives."""

    def impossible(self, units: object, columns: Columns, dither: int = 0) -> NDArray[np.bool_]:
        """None is."""
        return np.zeros(len(next(iter(columns.values()))), dtype=bool)


class TamperingHost(HostParty):
    """A Host that returns one entry of every sample, made loud, in place of the sum or added to it.

    Parameters
    ----------
    entry : int
        Which.
    key : PaillierPublicKey
        The Guest's, as it was offered.
    times : int
        How often the entry counts.
    added : bool
    """

    def __init__(
        self, stage: AttackSetup, entry: int, key: PaillierPublicKey, times: int = LOUD, added: bool = False
    ) -> None:
        store = MemoryStore()
        store.texts.update(stage.kept())
        budget = QueryBudget(limit=0)  # it has no reason to count
        super().__init__(HOST, stage.host, (), store, key_floor=min(key.bits, KEY_BITS_FLOOR), budget=budget)
        self._entry, self._key, self._times, self._added = entry, key, times, added

    def answer(self, sender: str, message: Message) -> Iterator[tuple[str, Message]]:
        """Tamper with decision vectors only."""
        if not isinstance(message, DecisionVectors):
            yield from super().answer(sender, message)
            return
        n, key = len(message.ids), self._key
        entries = key.load(message.vectors, n * message.entries)[self._entry :: message.entries]
        loud = [gmpy2.powmod(c, self._times, key.n2) for c in entries]
        if self._added:
            for receiver, answer in super().answer(sender, message):
                yield receiver, self._with(answer, loud) if isinstance(answer, EncryptedScores) else answer
            return
        shift = key.encrypt_with(-OFFSET, mpz(1))
        yield sender, HeldRecords(message.conversation, to_bitmap(np.ones(n, dtype=bool)))
        yield sender, EncryptedScores(message.conversation, key.dump(c * shift % key.n2 for c in loud))

    def _with(self, answer: EncryptedScores, loud: list[mpz]) -> EncryptedScores:
        sums = self._key.load(answer.scores, len(loud))
        return replace(answer, scores=self._key.dump(c * d % self._key.n2 for c, d in zip(sums, loud, strict=True)))


def stopped(
    stage: AttackSetup,
    keys: Keys,
    compiled: CompiledGuest,
    people: NDArray[np.intp],
    entry: int,
    times: int,
    *,
    canary: bool,
) -> NDArray[np.bool_]:
    """``(n,)``: for whom the Guest stops when a Host adds an entry to the true sum, one person a scoring."""
    found = []
    for person in people:
        host = TamperingHost(stage, entry, keys.host.key, times, added=True)
        try:
            stage.score(compiled, stage.guest.take(np.array([person])), keys.guest, host, canary=canary)
            found.append(False)
        except SecurityError:
            found.append(True)
    return np.array(found, dtype=bool)
