"""The attacks by their row in docs/attacks.md, and how to run them. Each plays every party it needs; nothing is sent to a real one.

The seed draws data and what an attacker chooses. Keys and obfuscators come from the operating system, as they are shipped, so that rates
near chance differ from run to run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from backend.errors import ParameterError
from backend.privacy.attacks.result import AttackOutcome, AttackResult, AttackRow


@dataclass(frozen=True)
class Attack(AttackRow):
    """One demonstration: a row of docs/attacks.md, and seed → what it measures.

    Attributes
    ----------
    parts : tuple of float
        Seconds of its setup and of each of its measurements, beside each other; measured once in processor time.
    """

    measure: Callable[[int], AttackOutcome]
    parts: tuple[float, ...]

    def run(self, seed: int) -> AttackResult:
        """Without the defence and, where it is shipped, with it."""
        return AttackResult(self.id, self.name, self.severity, self.measure(seed))


def _code(module: str, function: str = "run") -> Callable[[int], AttackOutcome]:
    """An attack's own code; imported when it runs, because it plays every party and brings phe and flint."""

    def measure(seed: int) -> AttackOutcome:
        outcome: AttackOutcome = getattr(import_module(f"backend.privacy.attacks.{module}"), function)(seed)
        return outcome

    return measure


ATTACKS = {
    attack.id: attack
    for attack in (
        Attack("A1", "Unrefreshed reply", "critical", _code("unrefreshed_reply"), (2.13, 0.21, 0.22)),
        Attack("A2", "Bad ciphertext", "high", _code("bad_key", "run_ciphertexts"), (0.1, 1.44, 0.05)),
        Attack("A2-key", "Bad key", "high", _code("bad_key", "run_key"), (0.1, 0.11, 0.04)),
        Attack("A3", "Chain leak", "critical", _code("phe_leaks", "run_chain"), (0.85, 0.01, 0.23)),
        Attack("A4", "Exponent leak", "critical", _code("phe_leaks", "run_exponents"), (0.01, 1.38, 0.05)),
        Attack(
            "A5",
            "The score identifies the path",
            "high",
            _code("score_identifies_path"),
            (2.59, 0.26, 0.25, 0.22, 0.24, 0.31, 0.8),
        ),
        Attack("A6", "Crafted weights", "critical", _code("crafted_weights"), (0.01, 0.21, 13.35)),
        Attack("A7", "Host reaction", "medium", _code("host_reaction"), (5.11, 1.06, 0.52)),
        Attack("A8", "Differencing", "high", _code("differencing"), (0.01, 0.04, 0.06, 0.07, 0.17, 0.71, 0.28)),
        Attack("A9", "Short keys", "critical", _code("short_key"), (0.12, 0.01, 0.66)),
        Attack(
            "P1",
            "The same group, one row changed",
            "high",
            _code("second_question", "run_changed_row"),
            (0.01, 1.96, 0.87),
        ),
        Attack(
            "P2",
            "The same trees under another id",
            "high",
            _code("second_question", "run_other_id"),
            (0.01, 2.96, 0.91),
        ),
        Attack("P3", "A rewritten audit log", "high", _code("forged_evidence", "run_log"), (0.01, 0.88, 1.08)),
        Attack(
            "P4",
            "A flood over the auditor's sample",
            "medium",
            _code("forged_evidence", "run_flood"),
            (0.01, 0.11, 0.33),
        ),
        Attack(
            "P5",
            "Another dither at every training",
            "medium",
            _code("second_question", "run_dither"),
            (0.06, 0.01, 0.01),
        ),
        Attack("P10", "Crafted terms of reasons", "critical", _code("crafted_terms"), (0.62, 2.16, 2.07)),
        Attack("T1", "RIAC", "critical", _code("riac_labels"), (0.49, 0.54, 2.27)),
        Attack(
            "T2", "Garbled Bloom filter as printed", "high", _code("garbled_filter"), (0.01, 0.03, 0.02, 0.03, 0.02)
        ),
        Attack("T3", "Raw X25519", "medium", _code("raw_curve"), (0.02, 0.06, 0.02)),
        Attack("T4", "Labels from shared nodes", "high", _code("shared_nodes"), (0.25, 5.46, 3.53)),
        Attack("T5", "One round in the clear", "by design", _code("one_round"), (0.03, 0.01, 0.81)),
        Attack("H1", "More than one stump", "high", _code("more_than_a_stump"), (2.5, 0.1, 0.1)),
        Attack("H2", "One group, every answer", "high", _code("cohort_digits"), (2.5, 0.01, 0.3)),
        Attack("H3", "Finer ranks than approved", "high", _code("finer_ranks"), (0.3, 0.2, 0.2)),
        Attack("H4", "Stolen labels", "high", _code("label_theft"), (0.5, 0.1, 0.02)),
        Attack("H5", "A moved score", "high", _code("moved_score"), (2.5, 1.0, 1.0)),
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
