"""The attacks by their row in docs/attacks.md, and how to run them. Each plays every party it needs; nothing is sent to a real one.

The seed draws data and what an attacker chooses. Keys and obfuscators come from the operating system, as they are shipped, so that rates
near chance differ from run to run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from backend.errors import ParameterError
from backend.research.attacks.result import AttackOutcome, AttackResult, AttackRow


@dataclass(frozen=True)
class Attack(AttackRow):
    """One demonstration: a row of docs/attacks.md, and seed → what it measures.

    Attributes
    ----------
    measurements : int
        How often it measures, its setup among them.
    """

    measure: Callable[[int], AttackOutcome]
    measurements: int

    def run(self, seed: int) -> AttackResult:
        """Without the defence and, where it is shipped, with it."""
        return AttackResult(self.id, self.name, self.severity, self.measure(seed))


def _code(module: str, function: str = "run") -> Callable[[int], AttackOutcome]:
    """An attack's own code; imported when it runs, because it plays every party and brings phe and flint."""

    def measure(seed: int) -> AttackOutcome:
        outcome: AttackOutcome = getattr(import_module(f"backend.research.attacks.{module}"), function)(seed)
        return outcome

    return measure


ATTACKS = {
    attack.id: attack
    for attack in (
        Attack("A1", "Unrefreshed reply", "critical", _code("unrefreshed_reply"), 3),
        Attack("A2", "Bad ciphertext", "high", _code("bad_key", "run_ciphertexts"), 3),
        Attack("A2-key", "Bad key", "high", _code("bad_key", "run_key"), 3),
        Attack("A3", "Chain leak", "critical", _code("phe_leaks", "run_chain"), 3),
        Attack("A4", "Exponent leak", "critical", _code("phe_leaks", "run_exponents"), 3),
        Attack(
            "A5",
            "The score identifies the path",
            "high",
            _code("score_identifies_path"),
            7,
        ),
        Attack("A6", "Crafted weights", "critical", _code("crafted_weights"), 3),
        Attack("A7", "Host reaction", "medium", _code("host_reaction"), 3),
        Attack("A8", "Differencing", "high", _code("differencing"), 7),
        Attack("A9", "Short keys", "critical", _code("short_key"), 3),
        Attack(
            "P1",
            "The same group, one row changed",
            "high",
            _code("second_question", "run_changed_row"),
            3,
        ),
        Attack(
            "P2",
            "The same trees under another id",
            "high",
            _code("second_question", "run_other_id"),
            3,
        ),
        Attack("P3", "A rewritten audit log", "high", _code("forged_evidence", "run_log"), 3),
        Attack(
            "P4",
            "A flood over the auditor's sample",
            "medium",
            _code("forged_evidence", "run_flood"),
            3,
        ),
        Attack(
            "P5",
            "Another dither at every training",
            "medium",
            _code("second_question", "run_dither"),
            3,
        ),
        Attack("P10", "Crafted terms of reasons", "critical", _code("crafted_terms"), 3),
        Attack("T1", "RIAC", "critical", _code("riac_labels"), 3),
        Attack("T2", "Garbled Bloom filter as printed", "high", _code("garbled_filter"), 5),
        Attack("T3", "Raw X25519", "medium", _code("raw_curve"), 3),
        Attack("T4", "Labels from shared nodes", "high", _code("shared_nodes"), 3),
        Attack("T5", "One round in the clear", "by design", _code("one_round"), 3),
        Attack("H1", "More than one stump", "high", _code("more_than_a_stump"), 3),
        Attack("H2", "One group, every answer", "high", _code("cohort_digits"), 3),
        Attack("H3", "Finer ranks than approved", "high", _code("finer_ranks"), 3),
        Attack("H4", "Stolen labels", "high", _code("label_theft"), 3),
        Attack("H5", "A moved score", "high", _code("moved_score"), 3),
    )
}


def run_all(
    names: Sequence[str] = (), seed: int = 0, on_attack: Callable[[Attack], None] = lambda attack: None
) -> tuple[AttackResult, ...]:
    """Run attacks one after the other, in the order of docs/attacks.md.

    Parameters
    ----------
    names : sequence of str
        Ids; none = all.
    seed : int
        At least 0.
    on_attack : callable
        Called with each attack before it runs.

    Raises
    ------
    ParameterError
        A name is unknown.
    """
    unknown = [name for name in names if name not in ATTACKS]
    if unknown:
        raise ParameterError("unknown_attack", attacks=tuple(unknown), known=tuple(ATTACKS))
    results = []
    for attack in ATTACKS.values():
        if not names or attack.id in names:
            on_attack(attack)
            results.append(attack.run(seed))
    return tuple(results)
