"""The attack lab for a user: which demonstrations there are, and runs of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from backend.errors import Cancelled
from backend.jobs import Job, work
from backend.research.attacks.lab import ATTACKS, Attack, run_all
from backend.research.attacks.result import ALPHA, AttackResult, followed, text_of, works

__all__ = ["ALPHA", "Attack", "AttackResult", "AttackRuns", "text_of", "works"]


class AttackRuns:
    """Runs attacks without and with the defence, on synthetic people."""

    @staticmethod
    def all() -> tuple[Attack, ...]:
        """Return the demonstrations of the attack lab, in the order of docs/attacks.md."""
        return tuple(ATTACKS.values())

    @staticmethod
    def run(
        names: Sequence[str], seed: int = 0, on_attack: Callable[[Attack], None] = lambda attack: None
    ) -> tuple[AttackResult, ...]:
        """Run some demonstrations, or all if none is named; `on_attack` is called before each.

        Raises
        ------
        ParameterError
            There is no attack of that name.
        """
        return run_all(names, seed, on_attack)

    @staticmethod
    def start(
        names: Sequence[str], seed: int = 0, earlier_results: Sequence[AttackResult] = ()
    ) -> Job[tuple[AttackResult, ...]]:
        """Run demonstrations one after the other in the background; ``job.result`` holds those that are through.

        ``job.stage`` is the attack's text and how many of its measurements were begun: ``a2_key:0`` while it is set up.

        Parameters
        ----------
        earlier_results : sequence of AttackResult, optional
            Of earlier runs: they stay in the result until the same attack is through again.
        """

        def run(job: Job[tuple[AttackResult, ...]]) -> tuple[AttackResult, ...]:
            results = {result.id: result for result in earlier_results}
            job.result = tuple(results.values())
            for index, name in enumerate(names):
                if job.cancelled():
                    raise Cancelled("attacks_stopped")
                with ExitStack() as part, followed(_stages(job, name, index, part)):
                    results |= {result.id: result for result in run_all([name], seed)}
                    job.result = tuple(results.values())
                job.at("done", "", index + 1)
            return tuple(results.values())

        return Job(run, len(names), size=" ".join(names)).start()


def _stages(job: Job[Any], name: str, index: int, part: ExitStack) -> Callable[[], None]:
    """Notes that an attack is set up, and, whenever it is called, that its next measurement begins."""
    counter = itertools.count()

    def note() -> None:
        part.close()
        number = next(counter)
        job.at(f"{text_of(name)}:{number}", "", index)
        if name in ATTACKS and number < ATTACKS[name].measurements:
            measurements = job.total * ATTACKS[name].measurements
            place = index * ATTACKS[name].measurements + number
            part.enter_context(work.part(place / measurements, (place + 1) / measurements))

    note()
    return note
