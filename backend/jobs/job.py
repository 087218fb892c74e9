"""Long work in the background: progress to look at, a way to stop it, and an error that can be shown."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, cast

from backend.errors import Cancelled, GlassleafError
from backend.jobs import work
from backend.jobs.eta import Eta
from backend.remark import Remark

if TYPE_CHECKING:
    from backend.protocols.training.parameters import TreeProgress
    from backend.protocols.transport.transcript import TranscriptEntry
    from backend.remark import Remark

T = TypeVar("T")
State = Literal["running", "done", "failed", "cancelled"]
_log = logging.getLogger("glassleaf")


@dataclass(frozen=True)
class Waits:
    """The Hosts for which work waits now. It continues by itself once they answer.

    Attributes
    ----------
    kind : {"busy", "down"}
        The Hosts have too much to do, or cannot be reached.
    why : Remark
        The Hosts' own words, or why they cannot be reached.
    """

    kind: Literal["busy", "down"]
    hosts: tuple[str, ...]
    why: Remark


class Job(Generic[T]):
    """One piece of work in a separate thread.

    Attributes
    ----------
    state : {"running", "done", "failed", "cancelled"}
    stage, party : str
        The present stage, and the party that works on it.
    done, total : int
        Trees or samples.
    through : int
        The highest value of `done` so far: some stages of a round count again.
    points : tuple of TreeProgress
        Training curve so far.
    result : T or None
        The result of a finished job; some jobs show a part of it while they run.
    failure : GlassleafError or None
        The error that stopped the job, as a code; never a traceback.
    eta : Eta
        The share of the work that is done, and the seconds until its end.
    size : str
        What makes this work longer or shorter than other work of its kind, e.g. the number of people.
    waits : Waits or None
        The Hosts for which the job waits now.
    silence : Silence or None
        The parties that have not answered for a while.
    """

    def __init__(
        self,
        run: Callable[[Job[T]], T],
        total: int,
        clock: Callable[[], float] = time.perf_counter,
        *,
        size: str = "",
    ) -> None:
        self.state: State = "running"
        self.stage = "start"
        self.party = ""
        self.done = 0
        self.through = 0
        self.total = total
        self.points: tuple[TreeProgress, ...] = ()
        self.result: T | None = None
        self.failure: GlassleafError | None = None
        self.waits: Waits | None = None
        self.silence: work.Silence | None = None
        self.read_transcript: Callable[[], tuple[TranscriptEntry, ...]] = tuple
        self._work = run
        self._clock = clock
        self.eta = Eta(clock)
        self.size = size
        self._shares_are_reported = False
        self._stop = threading.Event()
        self._began = clock()
        self._ended: float | None = None
        self._at_end: list[Callable[[], object]] = []
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="glassleaf-job", daemon=True)

    def start(self) -> Job[T]:
        """Start the thread."""
        self._thread.start()
        return self

    @classmethod
    def ended(cls, result: T | None, state: State, failure: GlassleafError | None = None) -> Job[T]:
        """Return a job that ended before this process began, with its result or the error that stopped it."""
        job = cls(lambda _: cast(T, result), 0)
        job.result = result
        job.state = state
        job.failure = failure
        job._ended = job._clock()
        if state == "cancelled":
            job.cancel()
        return job

    def keep_transcript(self, transcript: tuple[TranscriptEntry, ...]) -> None:
        """Show the messages of a conversation that has ended."""
        self.read_transcript = lambda: transcript

    @property
    def transcript(self) -> tuple[TranscriptEntry, ...]:
        """Messages so far."""
        return self.read_transcript()

    @property
    def seconds(self) -> float:
        """Time since the start, or from start to end."""
        return (self._ended or self._clock()) - self._began

    @property
    def seconds_ago(self) -> float:
        """Time since the end; 0 while it runs."""
        if self._ended is None:
            return 0.0
        return self._clock() - self._ended

    def then(self, act: Callable[[], object]) -> None:
        """Call `act` once the work has ended, in its thread; at once if it has ended."""
        with self._lock:
            has_ended = self._ended is not None
            if not has_ended:
                self._at_end.append(act)
        if has_ended:
            act()

    def cancel(self) -> None:
        """Ask the work to stop; it does at its next message or tree."""
        self._stop.set()

    def cancelled(self) -> bool:
        """Return whether the job was asked to stop."""
        return self._stop.is_set()

    def wait(self, timeout: float | None = None) -> Job[T]:
        """Wait for the end."""
        self._thread.join(timeout)
        return self

    def get(self) -> T:
        """Wait for the end and return the result, or raise the error that stopped the job."""
        self._thread.join()
        if self.failure is not None:
            raise self.failure
        return cast(T, self.result)

    def at(self, stage: str, party: str = "", done: int | None = None) -> None:
        """Note the present stage, its party, and the trees or samples that are done."""
        self.stage = stage
        self.party = party
        if done is not None:
            self.done = done
            self.through = max(self.through, done)
            self._count()

    def begin_again(self) -> None:
        """Restart the count of the present work, e.g. for another model. If it is a part of the whole, the parts before it stay done."""
        self.points = ()
        self.done = 0
        self.through = 0
        if work.begins():
            self.eta.begin_again()

    def tree_grown(self, progress: TreeProgress) -> None:
        """Note a tree."""
        self.points = (*self.points, progress)
        self.done = self.through = progress.tree
        self._count()

    def _count(self) -> None:
        """Report the share by the number of pieces, as if all took equally long, unless the work reports its own shares."""
        if self.total > 1 and not self._shares_are_reported:
            self.eta.reached(self.through / self.total)

    def _reached(self, share: float) -> None:
        if not self._shares_are_reported:
            self._shares_are_reported = True
            if self.eta.share:  # pieces were counted before
                self.eta.begin_again()
        self.eta.reached(share)

    def _silent(self, silence: work.Silence | None) -> None:
        self.silence = silence

    def check(self) -> None:
        """Raise Cancelled if the job was asked to stop."""
        if self.cancelled():
            raise Cancelled("stopped_by_user")

    def _run(self) -> None:
        state: State = "failed"
        try:
            with work.watched(self.check, self._reached, self._silent):
                self.result = self._work(self)
            state = "done"
        except Cancelled as stopped:
            self.failure = stopped
            state = "cancelled"
        except GlassleafError as error:
            self.failure = error
        except Exception as error:  # shown without its text, which may hold data
            _log.error("Job failed: %s\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))
            self.failure = GlassleafError("job_failed_inside", kind=type(error).__name__)
        with self._lock:
            self._ended = self._clock()
            self.state = state
        for act in self._at_end:
            try:
                act()
            except GlassleafError as error:  # only the note of the end failed; the work is done
                _log.warning("The end of a job could not be noted: %s", error)
