"""A7: a Host answers with one of the Guest's ciphertexts, scaled up, and watches the decision. Plays that Host; the Guest is honest.

The Guest's leaf weight, or the 0 in its place, times a large number swamps the rest of the score: the decision shows its sign. A Guest
that checks the reply decides nothing. A Host that adds the scaled number to the true sum still learns from the Guest's abort whether it
was 0, one bit for every time that it is caught or lucky. One that adds the number unscaled stays within the range of possible scores, so
that only the canary above every score reveals it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from backend.crypto.paillier.keys import KEY_BITS_FLOOR, PaillierPublicKey
from backend.errors import SecurityError
from backend.protocols.host import HostParty
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import HeldRecords
from backend.protocols.transport.packing import to_bitmap
from backend.research.attacks.keys import honest_keys, matches
from backend.research.attacks.result import AttackOutcome, count
from backend.research.attacks.setup import HOST, PEOPLE, AttackSetup, attack_setup
from backend.trees.ensemble import Columns, GuestModel

LOUD = 1 << 40  # times a leaf weight of one unit is more than any score
OFFSET = LOUD // 2  # subtracted, so that a 0 is decided like a weight below it
ADDED = (1 << 20) + 1  # times an entry that is added to the true sum: odd, so that no width of a sum drops it
WIDE = 2000  # bits of a sum that a Guest without the check reads: all that a plaintext has
TRIES = 20  # scorings in which the Host adds to the true sum


def run(seed: int, key_bits: int = KEY_BITS_FLOOR, people: int = PEOPLE, targets: int = 40) -> AttackOutcome:
    """Find out for `targets` people whether one entry of the Guest's decision vector is above 0, each from one decision."""
    setup = attack_setup(people)
    keys = honest_keys(key_bits)
    people_rows = setup.draw_people(np.random.default_rng(seed), targets)
    compiled = setup.compiled()
    entries = compiled.encode(setup.guest.take(people_rows).columns, targets)[1]
    entry = int(np.abs((entries > 0).mean(axis=0) - 0.5).argmin())
    above = entries[:, entry] > 0
    share = float(above.mean())

    def score(guest: CompiledGuest, rows: NDArray[np.intp], host: HostParty, canary: bool) -> list[int] | None:
        """Units, or None if the Guest aborts."""
        try:
            return setup.score(guest, setup.guest.take(rows), keys.guest, host, canary=canary).units
        except SecurityError:
            return None

    def watch(guest: CompiledGuest, canary: bool) -> tuple[int, int]:
        units = score(guest, people_rows, TamperingHost(setup, entry, keys.host.key), canary)
        if units is None:  # nothing was decided: the Host guesses by frequency
            return matches([share > 0.5] * targets, above)
        return matches([margin > 0 for margin in guest.margins(units)[:, 0]], above)

    def aborts(rows: NDArray[np.intp], times: int, canary: bool) -> NDArray[np.bool_]:
        """Return for each person whether the Guest aborts when the Host adds to the true sum, one person per scoring."""
        hosts = (TamperingHost(setup, entry, keys.host.key, times, adds_to_score=True) for _ in rows)
        units = [score(compiled, rows[[i]], host, canary) for i, host in enumerate(hosts)]
        return np.array([units_of_person is None for units_of_person in units], dtype=bool)

    tried = people_rows[:TRIES]
    nonzero = entries[:TRIES, entry] != 0
    # adding 0 once changes no score
    loud = aborts(tried, ADDED, True)
    quiet = tried[nonzero]
    rates = {
        "told_by_stopping": float((loud == nonzero).mean()),
        "caught": float(loud.mean()),
        "quiet_caught_range": float(aborts(quiet, 1, False).mean()),
        "quiet_caught_canary": float(aborts(quiet, 1, True).mean()),
    }
    return AttackOutcome(
        count(watch, UncheckedGuest(setup.rounded()), False),
        count(watch, compiled, True),
        chance=max(share, 1 - share),
        setting={"key_bits": key_bits, "people": targets},
        rates=rates,
    )


class UncheckedGuest(CompiledGuest):
    """A Guest that accepts every score, as wide as it comes, bound to no request."""

    def __init__(self, model: GuestModel) -> None:
        super().__init__(model)
        self._bound_leaves = self._bound_leaves[:0]
        self.bound_entries = self.bound_entries[:0]

    def sum_bits(self, canary: bool) -> int:
        """All of a plaintext."""
        return WIDE

    def impossible(self, units: object, columns: Columns, dither: int = 0) -> NDArray[np.bool_]:
        """None is."""
        return np.zeros(len(next(iter(columns.values()))), dtype=bool)


class TamperingHost(HostParty):
    """A Host that returns one `entry` of every sample, multiplied by `times`, in place of the sum or added to it.

    Parameters
    ----------
    key : PaillierPublicKey
        The Guest's, as it was offered.
    """

    def __init__(
        self, setup: AttackSetup, entry: int, key: PaillierPublicKey, times: int = LOUD, adds_to_score: bool = False
    ) -> None:
        floor = min(key.bits, KEY_BITS_FLOOR)
        super().__init__(HOST, setup.host, (), setup.host_store(), key_floor=floor, approvals="none")
        self._entry = entry
        self._key = key
        self._times = times
        self._added = adds_to_score

    def answer(self, sender: str, message: Message) -> Iterator[tuple[str, Message]]:
        """Tamper with decision vectors only."""
        if not isinstance(message, DecisionVectors):
            yield from super().answer(sender, message)
            return
        n = len(message.ids)
        key = self._key
        entries = key.load(message.vectors, n * message.entries)[self._entry :: message.entries]
        scaled = [gmpy2.powmod(c, self._times, key.n2) for c in entries]
        if self._added:
            for receiver, answer in super().answer(sender, message):
                if isinstance(answer, EncryptedScores):
                    sums = key.load(answer.scores, n)
                    products = (c * d % key.n2 for c, d in zip(sums, scaled, strict=True))
                    answer = replace(answer, scores=key.dump(products))  # noqa: PLW2901 - passed on, tampered with
                yield receiver, answer
            return
        shift = key.encrypt_with(-OFFSET, mpz(1))
        yield sender, HeldRecords(message.conversation, to_bitmap(np.ones(n, dtype=bool)))
        yield sender, EncryptedScores(message.conversation, key.dump(c * shift % key.n2 for c in scaled))
