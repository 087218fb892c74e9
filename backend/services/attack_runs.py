"""The attack lab for a user: which demonstrations there are, and runs of them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence

from backend.errors import Cancelled
from backend.jobs import Job
from backend.privacy.attacks.lab import ATTACKS, Attack, run_all
from backend.privacy.attacks.result import ALPHA, AttackResult, followed, text_of, works

__all__ = ["ALPHA", "Attack", "AttackResult", "AttackRuns", "text_of", "works"]


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
    def start(
        names: Sequence[str],
        seed: int = 0,
        took: Mapping[str, float] | None = None,
        before: Sequence[AttackResult] = (),
    ) -> Job[tuple[AttackResult, ...]]:
        """Run demonstrations one after the other in the background; ``job.result`` holds those that are through.

        ``job.stage`` is the attack's text and how many of its measurements were begun: ``a2_key:0`` while it is set up.

        Parameters
        ----------
        before : sequence of AttackResult, optional
            Of earlier runs: they stay in the result until the same attack is through again.
        took : mapping of str to float, optional
            Attack → seconds that it took the last time, for an estimate; the job notes the same of this time.
        """
        known = took or {}

        def run(job: Job[tuple[AttackResult, ...]]) -> tuple[AttackResult, ...]:
            done = {result.id: result for result in before}
            job.result = tuple(done.values())
            for index, name in enumerate(names):
                if job.cancelled():
                    raise Cancelled("The attacks were stopped; those that had run are kept.")
                began, rest = time.perf_counter(), [known.get(other) for other in names[index:]]
                seconds = [one for one in rest if one is not None]
                job.pace.expect(sum(seconds) if len(seconds) == len(rest) else None)
                with followed(_stages(job, name, index)):
                    done |= {result.id: result for result in run_all([name], seed)}
                job.result = tuple(done.values())
                job.took[name] = time.perf_counter() - began
                job.at("done", "", index + 1)
            return tuple(done.values())

        return Job(run, len(names), course=" ".join(names)).start()  # other attacks take other times


def _stages(job: Job[tuple[AttackResult, ...]], name: str, index: int) -> Callable[[], None]:
    """Notes that an attack is set up, and, whenever it is called, that a further measurement begins."""
    begun = itertools.count()

    def note() -> None:
        job.at(f"{text_of(name)}:{next(begun)}", "", index)

    note()
    return note
