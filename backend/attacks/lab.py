"""The attacks by their row in SECURITY.md, and the one way to run them. Each plays every party it needs; nothing is sent to a real one.

The seed draws data and what an attacker chooses. Keys and obfuscators come from the operating system, as they are shipped, so that rates
near chance differ from run to run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backend.attacks import (
    bad_key,
    chain,
    crafted_weights,
    differencing,
    exponents,
    garbled_filter,
    host_reaction,
    one_round,
    raw_curve,
    riac_labels,
    score_names_path,
    short_key,
    unrefreshed_reply,
)
from backend.attacks.result import AttackOutcome, AttackResult, Severity, text_of
from backend.errors import ParameterError


@dataclass(frozen=True)
class Attack:
    """One demonstration.

    Attributes
    ----------
    id : str
        Row of SECURITY.md.
    name : str
    severity : {"critical", "high", "medium", "by design"}
    measure : callable
        Seed → AttackOutcome.
    """

    id: str
    name: str
    severity: Severity
    measure: Callable[[int], AttackOutcome]

    @property
    def text(self) -> str:
        """Beginning of its keys in the catalogues' section ``attack``."""
        return text_of(self.id)

    def run(self, seed: int) -> AttackResult:
        """Without the defence and, where it is shipped, with it."""
        return AttackResult(self.id, self.name, self.severity, self.measure(seed))


ATTACKS = {
    attack.id: attack
    for attack in (
        Attack("A1", "Unrefreshed reply", "critical", unrefreshed_reply.run),
        Attack("A2", "Bad ciphertext", "high", bad_key.run_ciphertexts),
        Attack("A2-key", "Bad key", "high", bad_key.run_key),
        Attack("A3", "Chain leak", "critical", chain.run),
        Attack("A4", "Exponent leak", "critical", exponents.run),
        Attack("A5", "The score names the path", "high", score_names_path.run),
        Attack("A6", "Crafted weights", "critical", crafted_weights.run),
        Attack("A7", "Host reaction", "medium", host_reaction.run),
        Attack("A8", "Differencing", "high", differencing.run),
        Attack("A9", "Short keys", "critical", short_key.run),
        Attack("T1", "RIAC", "critical", riac_labels.run),
        Attack("T2", "Garbled Bloom filter as printed", "high", garbled_filter.run),
        Attack("T3", "Raw X25519", "medium", raw_curve.run),
        Attack("T5", "One round in the clear", "by design", one_round.run),
    )
}


def run_all(
    names: Sequence[str] = (), seed: int = 0, on_attack: Callable[[Attack], None] = lambda attack: None
) -> tuple[AttackResult, ...]:
    """Run attacks one after the other, in the order of SECURITY.md.

    Parameters
    ----------
    names : sequence of str
        Ids; none = all.
    seed : int
        At least 0.
    on_attack : callable
        Told each attack before it runs.

    Raises
    ------
    ParameterError
        A name is unknown.
    """
    unknown = [name for name in names if name not in ATTACKS]
    if unknown:
        raise ParameterError(f"{', '.join(unknown)} was asked for; the attacks are {', '.join(ATTACKS)}.")
    results = []
    for attack in ATTACKS.values():
        if not names or attack.id in names:
            on_attack(attack)
            results.append(attack.run(seed))
    return tuple(results)
