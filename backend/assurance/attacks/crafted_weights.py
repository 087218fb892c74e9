"""A6: leaf weights 2^j read every answer of a Host from one score. Plays a Guest that departs from the protocol; the Host is a real one."""

from __future__ import annotations

import numpy as np

from backend.assurance.attacks.keys import honest, matches
from backend.assurance.attacks.result import Outcome, attempt
from backend.assurance.attacks.scene import HOST, MODEL_ID, PEOPLE, scene
from backend.crypto.paillier import KEY_BITS_FLOOR
from backend.protocols.messages import DecisionVectors, EncryptedScores, HeldRecords, OfferKey
from backend.protocols.training.parameters import SecureBoostParameters


def run(
    seed: int,
    key_bits: int = KEY_BITS_FLOOR,
    people: int = PEOPLE,
    targets: int = 4,
    trees: int = SecureBoostParameters().trees,
) -> Outcome:
    """Read the Host's whole decision vector of `targets` people, each from one reply."""
    stage, key = scene(people, trees), honest(key_bits).guest
    chosen = np.random.default_rng(seed).choice(len(stage.guest.ids), targets, replace=False)
    entries = stage.keep.shape[1]
    weights = [1 << j for j in range(entries)]

    def read() -> tuple[int, int]:
        ids = stage.guest.take(chosen).ids
        with stage.talk(stage.host_party(simulated=False, key_bits=key_bits)) as talk:
            talk.send(HOST, OfferKey(talk.name, key.scheme, key.offer()))
            vectors = key.public.dump(key.encrypt_numbers(weights * targets))
            talk.send(HOST, DecisionVectors(talk.name, MODEL_ID, ids, entries, 1, vectors))
            talk.expect_each(HeldRecords, [HOST])
            scores = talk.expect_each(EncryptedScores, [HOST])[HOST].scores
        digits = [bool(score >> j & 1) for score in key.decrypt(scores, targets) for j in range(entries)]
        return matches(digits, stage.keep[chosen])

    usual = stage.keep.mean(axis=0)  # how often each entry is kept: a guess without any score
    setting = {"key_bits": key_bits, "people": targets, "entries": entries}
    return Outcome(attempt(read), None, chance=float(np.maximum(usual, 1 - usual).mean()), setting=setting)
