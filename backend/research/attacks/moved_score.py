"""H5: a Host moves the scores of people of its choice by a constant. Plays that Host; the Guest and the auditor are as they are shipped.

The constant stays within what the model can give, so that range and canary say nothing when the score comes. Afterwards an auditor
recomputes a secret sample from both halves: the Host shows its true records there, for it can explain at most its dither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from backend.crypto.interface import KeySide
from backend.crypto.paillier.keys import KEY_BITS_FLOOR
from backend.crypto.rlwe.parameters import parameters_for
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.privacy.halves import GuestHalf
from backend.privacy.re_performance import RePerformed, re_perform
from backend.protocols.host import HostParty
from backend.protocols.host_half import HostHalf
from backend.protocols.scoring.guest import ScoringClient
from backend.protocols.scoring.statement import load_statement
from backend.protocols.terms.noise import HostNoise
from backend.protocols.terms.records import Flags
from backend.research.attacks.keys import honest_keys
from backend.research.attacks.result import AttackOutcome, count
from backend.research.attacks.setup import HOST, MODEL_ID, PEOPLE, AttackSetup, attack_setup
from backend.store.accountant import Accountant, Limits
from backend.store.database import Database
from backend.store.journal import Journal
from backend.store.request_log import RequestLog
from backend.store.schema import LoggedRow
from backend.trees.ensemble import Layout
from backend.trees.serialization import dump_guest

LOGIT = 0.5  # by which a score is moved
MOVED = 400  # people: a sample of a tenth misses all of them once in 10^18
WITH_CANARY = 40  # people who are scored under Paillier, where every score has a canary


def run(seed: int, key_bits: int = KEY_BITS_FLOOR, people: int = PEOPLE, targets: int = MOVED) -> AttackOutcome:
    """Move the scores of `targets` people up by half a logit; who is found out has moved nobody, although it shows afterwards only."""
    setup = attack_setup(people)
    rows = setup.draw_people(np.random.default_rng(seed), targets)
    table = setup.guest.take(rows)
    compiled = setup.compiled()
    largest = compiled.largest << 1
    key = RlweKeySide(RlweSecretKey.generate(parameters_for(1, compiled.folding.n_entries, largest)))
    audits: dict[bool, RePerformed] = {}

    def move(audited: bool) -> tuple[int, int]:
        moved, performed = score_moved(setup, table, key)
        audits[audited] = performed
        return (0 if audited and performed.differences else moved), targets

    off = count(move, False)
    on = count(move, True)
    few = setup.guest.take(rows[:WITH_CANARY])
    intact, _ = score_moved(setup, few, honest_keys(key_bits).guest)
    return AttackOutcome(
        off,
        on,
        chance=0.0,
        setting={"people": targets, "key_bits": key_bits},
        rates={
            "taken_with_canary": intact / len(few.ids),
            "recomputed": audits[True].scores / targets,
            "found": len(audits[True].differences) / max(1, audits[True].scores),
        },
    )


def score_moved(setup: AttackSetup, table: PartyTable, key: KeySide) -> tuple[int, RePerformed]:
    """Score people at a Host that moves each of them; return how many scores the Guest takes, and what an auditor finds."""
    host = MovingHost(setup, key)
    journal = Journal(Database())
    run = journal.run("moved")
    with setup.session(host) as session:
        client = ScoringClient(
            setup.guest.party, MODEL_ID, setup.compiled(), table, key, session, canary=key.scheme == "paillier", run=run
        )
        try:
            scored = client.score()
        except SecurityError:
            return 0, RePerformed(0, 0, (), ())
    half = host.half(())
    text = journal.stated_answer(run.batch(0).request)
    if text is None:
        statements = {}
    else:
        statements = {run.batch(0).request: load_statement(text)}
    guest = GuestHalf(setup.guest.party, {MODEL_ID: dump_guest(setup.rounded())}, statements)
    return len(scored.units) - len(scored.refused), re_perform(guest, [half])


class MovingHost(HostParty):
    """A Host that adds a constant to every score beside its dither, and shows an auditor what it would have added honestly."""

    def __init__(self, setup: AttackSetup, key: KeySide) -> None:
        super().__init__(
            HOST,
            setup.host,
            setup.federation.party(HOST).features,
            setup.host_store(),
            key_floor=min(key.bits, KEY_BITS_FLOOR),
            accountant=Accountant(Database(), Limits(0)),
            requests=RequestLog(Database()),
            approvals="none",
        )
        self._shown = self._gate.noise
        constant = round(LOGIT * 2 ** setup.rounded().score_bits)
        object.__setattr__(self._gate, "noise", _Moving(self._dither, self._store.secret, constant))

    def half(self, rows: Sequence[LoggedRow]) -> HostHalf:
        """Made with honest noise."""
        object.__setattr__(self._gate, "noise", self._shown)
        return super().half(rows)


class _Moving(HostNoise):
    """Dither that is moved by a constant."""

    def __init__(self, width: float, secret: Callable[[str], bytes], constant: int) -> None:
        super().__init__(width, secret)
        self._constant = constant

    def dithers(self, structure: str, layout: Layout, people: Sequence[str], has_record: Flags, half: int) -> list[int]:
        """Return honest numbers and the constant."""
        numbers = super().dithers(structure, layout, people, has_record, half)
        return [number + self._constant for number in numbers]
