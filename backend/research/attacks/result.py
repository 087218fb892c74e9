"""What a demonstration of the attack lab measures, and when an attack counts as working. Knows no party."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec

from backend.jobs import work

P = ParamSpec("P")
Severity = Literal["critical", "high", "medium", "by design"]
# an attack works when guessing would succeed as often with at most this probability (one-sided binomial test)
ALPHA = 1e-9
_on_count: ContextVar[Callable[[], None] | None] = ContextVar("on_count", default=None)


@dataclass(frozen=True)
class SuccessCount:
    """How often the attacker succeeded on one side of a demonstration.

    Attributes
    ----------
    right, trials : int
        What the attacker got right, of how much: bits, labels, people.
    seconds : float
        The attacker's work and that of the parties it queries.
    """

    right: int
    trials: int
    seconds: float

    @property
    def rate(self) -> float:
        """0 … 1."""
        return self.right / self.trials

    def beats(self, chance: float) -> bool:
        """Whether guessing that is right with probability `chance` would seldom do as well (:data:`ALPHA`)."""
        from scipy.special import bdtrc  # noqa: PLC0415 - slow to import, and few runs need it

        return self.right > 0 and bool(bdtrc(self.right - 1, self.trials, chance) <= ALPHA)


@dataclass(frozen=True)
class AttackOutcome:
    """What an attack's code measures.

    Attributes
    ----------
    off : SuccessCount
        Without the defence.
    on : SuccessCount or None
        Against what is shipped; None if no defence is shipped yet, so that `off` is what is shipped.
    chance : float
        Success rate of guessing, 0 … 1.
    setting : mapping of str to int
        Sizes: ``key_bits`` and the like.
    rates : mapping of str to float
        Further success rates, 0 … 1.
    numbers : mapping of str to float
        Further measurements: counts, bits, seconds, AUCs.
    optional : bool
        The defence is shipped, but off until somebody switches it on.
    """

    off: SuccessCount
    on: SuccessCount | None
    chance: float
    setting: Mapping[str, int]
    rates: Mapping[str, float] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    optional: bool = False


@dataclass(frozen=True)
class AttackRow:
    """One row of docs/attacks.md; ``-key`` and the like in its id where a row holds two attacks."""

    id: str
    name: str
    severity: Severity

    @property
    def text(self) -> str:
        """Beginning of its keys in the catalogues' section ``attack``."""
        return text_of(self.id)


@dataclass(frozen=True)
class AttackResult(AttackRow):
    """One row, measured."""

    outcome: AttackOutcome

    @property
    def defence_off(self) -> float:
        """Success rate without the defence, 0 … 1."""
        return self.outcome.off.rate

    @property
    def defence_on(self) -> float | None:
        """Success rate against what is shipped; None if no defence is shipped yet."""
        if self.outcome.on is None:
            return None
        return self.outcome.on.rate

    @property
    def chance(self) -> float:
        """Success rate of guessing, 0 … 1."""
        return self.outcome.chance

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        off = self.outcome.off
        on = self.outcome.on
        return {
            "id": self.id,
            "name": self.name,
            "severity": self.severity,
            "defence_shipped": on is not None,
            "defence_optional": self.outcome.optional,
            "defence_off": off.rate,
            "defence_on": self.defence_on,
            "chance": self.chance,
            "works": works(self),
            "trials_off": off.trials,
            "trials_on": None if on is None else on.trials,
            "seconds_off": off.seconds,
            "seconds_on": None if on is None else on.seconds,
            "setting": dict(self.outcome.setting),
            "rates": dict(self.outcome.rates),
            "numbers": dict(self.outcome.numbers),
        }


def text_of(id_: str) -> str:
    """``A2-key`` → ``a2_key``."""
    return id_.lower().replace("-", "_")


def works(result: AttackResult) -> bool:
    """Whether the attack beats guessing against what is shipped (:data:`ALPHA`), with its defence switched on."""
    shipped = result.outcome.on or result.outcome.off
    return shipped.beats(result.chance)


@contextmanager
def followed(on_count: Callable[[], None]) -> Iterator[None]:
    """Within, `on_count` is called before each measurement of this thread."""
    token = _on_count.set(on_count)
    try:
        yield
    finally:
        _on_count.reset(token)


def count(attack: Callable[P, tuple[int, int]], *args: P.args, **kwargs: P.kwargs) -> SuccessCount:
    """Run one side: `attack`, called with what follows, returns how much it got right, and of how much."""
    work.check()
    counter = _on_count.get()
    if counter is not None:
        counter()
    began = time.perf_counter()
    right, trials = attack(*args, **kwargs)
    return SuccessCount(right, trials, time.perf_counter() - began)
