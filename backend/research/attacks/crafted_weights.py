"""A6: leaf weights 2^j read every answer of a Host from one score. Plays a malicious Guest; the Host is a real one.

Dither does not help: weights above its range are read all the same. Nor can the Host notice, since weights are encrypted. It logs a secret
sample of the requests, and an auditor has the Guest open it: a ciphertext opens in one way only, so the weights show. A Guest that crafts
one person's weights is caught with the sampling rate; one that reads many people is caught almost surely. What it has read it keeps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backend.crypto.paillier.keys import KEY_BITS_FLOOR
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.privacy.request_audit import Replayed, replay
from backend.protocols.host import HostParty
from backend.protocols.scoring.dither import headroom
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores
from backend.protocols.scoring.opening import open_vector
from backend.protocols.transport.messages import HeldRecords, OfferKey
from backend.research.attacks.keys import honest_keys, matches
from backend.research.attacks.result import AttackOutcome, count
from backend.research.attacks.setup import HOST, MODEL_ID, PARAMETERS, PEOPLE, AttackSetup, attack_setup
from backend.trees.serialization import dump_guest

HONEST = 30  # people whom an honest Guest scores before an audit
# bits left free below the weights, so that dither carries into none of them
BEYOND = headroom(PARAMETERS.score_bits).bit_length() + 1


def run(
    seed: int, key_bits: int = KEY_BITS_FLOOR, people: int = PEOPLE, targets: int = 4, campaign: int = 100
) -> AttackOutcome:
    """Read the Host's whole decision vector of `targets` people, each from one reply; then of `campaign` people before an audit.

    A Guest that is caught counts as one that has read nothing: it guesses by frequency.
    """
    setup = attack_setup(people)
    key = honest_keys(key_bits).guest
    draw = np.random.default_rng(seed)
    few = setup.draw_people(draw, targets)
    many = setup.draw_people(draw, campaign)
    frequency = setup.keep.mean(axis=0)  # with which each entry is kept: a guess without any score
    audits: list[Replayed] = []

    def read() -> tuple[int, int]:
        host = setup.host_party(simulated=False, key_bits=key_bits)
        return matches(crafted(setup, host, key, few), setup.keep[few])

    def read_before_an_audit() -> tuple[int, int]:
        host = setup.host_party(simulated=False, key_bits=key_bits)
        digits = crafted(setup, host, key, many)
        audits.append(audited(setup, host, key))
        return matches((frequency > 0.5).tolist() * campaign if audits[0].problems else digits, setup.keep[many])

    off = count(read)
    on = count(read_before_an_audit)
    host = setup.host_party(simulated=False, key_bits=key_bits)
    setup.score(setup.compiled(), setup.guest.take(many[:HONEST]), key, host, canary=True)
    honest = audited(setup, host, key)
    return AttackOutcome(
        off,
        on,
        chance=float(np.maximum(frequency, 1 - frequency).mean()),
        setting={"key_bits": key_bits, "people": targets, "entries": setup.keep.shape[1], "campaign": campaign},
        rates={
            "caught_one": len(audits[0].problems) / campaign,
            "honest_accused": len(honest.problems) / max(1, honest.rows),
        },
    )


def crafted(setup: AttackSetup, host: HostParty, key: PaillierKeySide, rows: NDArray[np.intp]) -> list[bool]:
    """Every entry as read from the binary digits of some people's scores."""
    entries = setup.keep.shape[1]
    n = len(rows)
    ids = setup.guest.take(rows).ids
    weights = [1 << (BEYOND + j) for j in range(entries)]
    with setup.session(host) as session:
        session.send(HOST, OfferKey(session.name, key.scheme, key.offer()))
        vectors = key.public.dump(key.encrypt_numbers(weights * n))
        session.send(HOST, DecisionVectors(session.name, MODEL_ID, ids, entries, 1, vectors))
        session.expect_each(HeldRecords, [HOST])
        scores = session.expect_each(EncryptedScores, [HOST])[HOST].scores
    digits = (score + (1 << (BEYOND - 1)) for score in key.decrypt(scores, n))  # dither may be below 0
    return [bool(score >> (BEYOND + j) & 1) for score in digits for j in range(entries)]


def audited(setup: AttackSetup, host: HostParty, key: PaillierKeySide) -> Replayed:
    """What an auditor finds in the Host's sample."""
    partial_model = dump_guest(setup.rounded())
    rows = [] if host.requests is None else host.requests.rows()
    floor = min(key.bits, KEY_BITS_FLOOR)
    return replay(rows, lambda row: open_vector(key, row.vector), partial_model, host.registered(MODEL_ID), floor)
