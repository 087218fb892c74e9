"""H2: one question about the mean of a group reads every answer of the Host about each of its people. Plays a malicious Guest.

The Guest multiplies the numbers of person i by 2^i, so that each sum over the group spells out, digit by digit, who was kept. It only has
to announce numbers long enough for that. A Host that opens sums of whatever width was announced exists only here; the Host that is asked
with the defence is a real one, with its usual limits.
"""

from __future__ import annotations

import numpy as np

from backend.errors import HostRefused
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.messages import MIN_PEOPLE, AskCohort
from backend.protocols.transport.messages import HeldRecords, OfferKey
from backend.remark import Remark
from backend.research.attacks.keys import honest_keys, matches
from backend.research.attacks.result import AttackOutcome, count
from backend.research.attacks.setup import HOST, MODEL_ID, PEOPLE, AttackSetup, attack_setup

ANSWERS = 19  # of the Host about a person, that are read
LONG = 148  # bits of a value that are announced; an honest one has some 60


def run(seed: int, key_bits: int = 2048, people: int = PEOPLE, group: int = MIN_PEOPLE) -> AttackOutcome:
    """Read :data:`ANSWERS` answers of the Host about each person of one group; a Guest that is refused guesses by frequency."""
    setup = attack_setup(people)
    rows = setup.draw_people(np.random.default_rng(seed), group)
    share = setup.keep.mean(axis=0)
    entries = np.argsort(np.abs(share - 0.5))[:ANSWERS]  # those that are hardest to guess
    answers = setup.keep[rows][:, entries]
    usual = share[entries] > 0.5
    refused: list[str] = []

    def opened_whole() -> tuple[int, int]:
        # The sum over the group of 2^i for each person whom the Host keeps.
        sums = [sum(1 << i for i in range(group) if answers[i, entry]) for entry in range(ANSWERS)]
        digits = [bool(sums[entry] >> i & 1) for i in range(group) for entry in range(ANSWERS)]
        return matches(digits, answers)

    def asked_of_a_real_host() -> tuple[int, int]:
        refused.append(refusal(setup, key_bits, tuple(setup.guest.take(rows).ids)))
        if not refused[0]:
            return opened_whole()
        return matches(usual.tolist() * group, answers)

    off = count(opened_whole)
    on = count(asked_of_a_real_host)
    return AttackOutcome(
        off,
        on,
        chance=float(np.maximum(share[entries], 1.0 - share[entries]).mean()),
        setting={"people": people, "group": group, "answers": ANSWERS, "bits": LONG},
        rates={"refused": float(bool(refused[0]))},
    )


def refusal(setup: AttackSetup, key_bits: int, ids: tuple[str, ...]) -> str:
    """Ask a real Host for sums over a group of numbers that are too long; return the code of its refusal, "" if it answers."""
    host = setup.host_party(simulated=False, key_bits=key_bits)
    key = honest_keys(key_bits).guest
    terms = CompiledTerms(setup.rounded())
    shape = terms.shape(1)
    with setup.session(host) as session:
        session.send(HOST, OfferKey(session.name, key.scheme, key.offer()))
        session.send(HOST, AskCohort(session.name, MODEL_ID, ids, terms.shares_of(HOST), shape.features, LONG))
        try:
            session.expect(HeldRecords)
        except HostRefused as error:
            why = error.values["why"]
            return why.code if isinstance(why, Remark) else error.code
    return ""
