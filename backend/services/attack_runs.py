"""The attack lab for a user: which demonstrations there are, and runs of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backend.attacks.lab import ATTACKS, Attack, run_all
from backend.attacks.result import AttackResult, text_of, works
from backend.errors import Cancelled
from backend.jobs import Job

__all__ = ["Attack", "AttackResult", "AttackRuns", "works"]


class AttackRuns:
    """Runs attacks without and with the defence, on synthetic people."""

    @staticmethod
    def all() -> tuple[Attack, ...]:
        """The demonstrations of the attack lab, in the order of docs/attacks.md."""
        return tuple(ATTACKS.values())

    @staticmethod
    def run(
        names: Sequence[str], seed: int = 0, on_attack: Callable[[Attack], None] = lambda attack: None
    ) -> tuple[AttackResult, ...]:
        """Run some demonstrations, or all where none is named; `on_attack` is called before each.

        Raises
        ------
        ParameterError
            There is no attack of that name.
        """
        return run_all(names, seed, on_attack)

    @staticmethod
    def start(names: Sequence[str], seed: int = 0) -> Job[tuple[AttackResult, ...]]:
        """Run demonstrations one after the other in the background; ``job.result`` holds those that are through."""

        def work(job: Job[tuple[AttackResult, ...]]) -> tuple[AttackResult, ...]:
            done: tuple[AttackResult, ...] = ()
            for index, name in enumerate(names):
                if job.cancelled():
                    raise Cancelled("The attacks were stopped; those that had run are kept.")
                job.at(text_of(name), "", index)
                job.result = done = (*done, *run_all([name], seed))
            return done

        return Job(work, len(names)).start()
