"""A6: leaf weights 2^j read every answer of a Host from one score. Plays a Guest that departs from the protocol; the Host is a real one.

Dither does not help: weights that start above it are read as well. Nor can the Host tell, since weights are encrypted. It keeps a secret
sample of what it was sent, and an auditor has the Guest open that: a ciphertext opens in one way only, so the weights show. A Guest that
crafts one person's weights is caught as often as rows are kept; one that reads many people is caught for sure. What it has read it knows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backend.attacks.keys import honest, matches
from backend.attacks.result import AttackOutcome, attempt
from backend.attacks.setup import HOST, MODEL_ID, PEOPLE, AttackSetup, scene
from backend.crypto.paillier.keys import KEY_BITS_FLOOR
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.privacy.request_audit import Replayed, replay
from backend.protocols.host import HostParty
from backend.protocols.scoring.dither import headroom
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores
from backend.protocols.scoring.opening import open_vector
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.messages import HeldRecords, OfferKey
from backend.trees.serialization import dump_guest

HONEST = 30  # people whom an honest Guest scores before an audit
BEYOND = (
    headroom(SecureBoostParameters().score_bits).bit_length() + 1
)  # bits below the weights, so that dither carries into none of them


def run(
    seed: int,
    key_bits: int = KEY_BITS_FLOOR,
    people: int = PEOPLE,
    targets: int = 4,
    campaign: int = 100,
    trees: int = SecureBoostParameters().trees,
) -> AttackOutcome:
    """Read the Host's whole decision vector of `targets` people, each from one reply; then of `campaign` people before an audit.

    A Guest that is caught counts as one that has read nothing: it answers by what is usual.
    """
    stage, key = scene(people, trees), honest(key_bits).guest
    draw = np.random.default_rng(seed)
    few, many = (draw.choice(len(stage.guest.ids), n, replace=False) for n in (targets, campaign))
    usual = stage.keep.mean(axis=0)  # how often each entry is kept: a guess without any score
    host = stage.host_party(simulated=False, key_bits=key_bits)

    def read() -> tuple[int, int]:
        return matches(crafted(stage, host, key, few), stage.keep[few])

    found: list[Replayed] = []

    def read_before_an_audit() -> tuple[int, int]:
        watching = stage.host_party(simulated=False, key_bits=key_bits)
        digits = crafted(stage, watching, key, many)
        found.append(audited(stage, watching, key))
        return matches((usual > 0.5).tolist() * campaign if found[0].problems else digits, stage.keep[many])

    setting = {"key_bits": key_bits, "people": targets, "entries": stage.keep.shape[1], "campaign": campaign}
    off, on = attempt(read), attempt(read_before_an_audit)
    rates = {
        "caught_one": len(found[0].problems) / campaign,
        "honest_accused": accused(stage, key, many[:HONEST], key_bits),
    }
    return AttackOutcome(off, on, chance=float(np.maximum(usual, 1 - usual).mean()), setting=setting, rates=rates)


def crafted(stage: AttackSetup, host: HostParty, key: PaillierKeySide, chosen: NDArray[np.intp]) -> list[bool]:
    """What the digits of some people's scores say about every entry."""
    entries, n, ids = stage.keep.shape[1], len(chosen), stage.guest.take(chosen).ids
    weights = [1 << (BEYOND + j) for j in range(entries)]
    with stage.session(host) as session:
        session.send(HOST, OfferKey(session.name, key.scheme, key.offer()))
        vectors = key.public.dump(key.encrypt_numbers(weights * n))
        session.send(HOST, DecisionVectors(session.name, MODEL_ID, ids, entries, 1, vectors))
        session.expect_each(HeldRecords, [HOST])
        scores = session.expect_each(EncryptedScores, [HOST])[HOST].scores
    digits = (score + (1 << (BEYOND - 1)) for score in key.decrypt(scores, n))  # dither may be below 0
    return [bool(score >> (BEYOND + j) & 1) for score in digits for j in range(entries)]


def audited(stage: AttackSetup, host: HostParty, key: PaillierKeySide) -> Replayed:
    """What an auditor finds in the Host's sample."""
    half = dump_guest(stage.rounded(SecureBoostParameters().score_bits))
    rows = [] if host.requests is None else host.requests.rows()
    floor = min(key.bits, KEY_BITS_FLOOR)
    return replay(rows, lambda row: open_vector(key, row.vector), half, host.registered(MODEL_ID), floor)


def accused(stage: AttackSetup, key: PaillierKeySide, chosen: NDArray[np.intp], key_bits: int) -> float:
    """Share of an honest Guest's requests that an audit objects to."""
    host = stage.host_party(simulated=False, key_bits=key_bits)
    compiled = stage.compiled(SecureBoostParameters().score_bits)
    stage.score(compiled, stage.guest.take(chosen), key, host, canary=True)
    found = audited(stage, host, key)
    return len(found.problems) / max(1, found.rows)
