"""Long work in the background: progress to look at, a way to stop it, and an error that can be shown."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, cast

from backend.errors import Cancelled, GlassleafError

if TYPE_CHECKING:
    from backend.protocols.training.parameters import TreeProgress
    from backend.protocols.transport.channel import TranscriptEntry

T = TypeVar("T")
State = Literal["running", "done", "failed", "cancelled"]
_log = logging.getLogger("glassleaf")


class Job(Generic[T]):
    """One piece of work in a thread of its own.

    Attributes
    ----------
    state : {"running", "done", "failed", "cancelled"}
    stage, party : str
        What is being done now, and by whom.
    done, total : int
        Trees or samples.
    points : tuple of TreeProgress
        Training curve so far.
    result : T or None
        Of a finished job; some show a part of it while they run.
    error : str or None
        What, where and what to do; never a traceback.
    failure : GlassleafError or None
        What `error` is the text of.
    """

    def __init__(self, work: Callable[[Job[T]], T], total: int) -> None:
        self.state: State = "running"
        self.stage, self.party = "start", ""
        self.done, self.total = 0, total
        self.points: tuple[TreeProgress, ...] = ()
        self.result: T | None = None
        self.error: str | None = None
        self.failure: GlassleafError | None = None
        self.read_transcript: Callable[[], tuple[TranscriptEntry, ...]] = tuple
        self._work = work
        self._stop = threading.Event()
        self._began = time.perf_counter()
        self._ended: float | None = None
        self._thread = threading.Thread(target=self._run, name="glassleaf-job", daemon=True)

    def start(self) -> Job[T]:
        """Start the thread."""
        self._thread.start()
        return self

    def keep_transcript(self, transcript: tuple[TranscriptEntry, ...]) -> None:
        """The messages of a conversation that has ended."""
        self.read_transcript = lambda: transcript

    @property
    def transcript(self) -> tuple[TranscriptEntry, ...]:
        """Messages so far."""
        return self.read_transcript()

    @property
    def seconds(self) -> float:
        """Time since the start, or from start to end."""
        return (self._ended or time.perf_counter()) - self._began

    def cancel(self) -> None:
        """Ask the work to stop; it does at its next message or tree."""
        self._stop.set()

    def cancelled(self) -> bool:
        """Whether it was asked to stop."""
        return self._stop.is_set()

    def wait(self, timeout: float | None = None) -> Job[T]:
        """Wait for the end."""
        self._thread.join(timeout)
        return self

    def get(self) -> T:
        """Wait for the end and return the result, or raise what stopped it."""
        self._thread.join()
        if self.failure is not None:
            raise self.failure
        return cast(T, self.result)

    def at(self, stage: str, party: str = "", done: int | None = None) -> None:
        """Note where the work stands."""
        self.stage, self.party = stage, party
        if done is not None:
            self.done = done

    def tree_grown(self, progress: TreeProgress) -> None:
        """Note a tree."""
        self.points = (*self.points, progress)
        self.done = progress.tree

    def _run(self) -> None:
        try:
            self.result = self._work(self)
            self.state = "done"
        except Cancelled as stopped:
            self.failure, self.error, self.state = stopped, str(stopped), "cancelled"
        except GlassleafError as error:
            self.failure, self.error, self.state = error, str(error), "failed"
        except Exception as error:  # shown without its text, which may hold data
            _log.error("Job failed: %s\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))
            self.error = (
                f"Something went wrong inside Glassleaf ({type(error).__name__}). Nothing was stored; try again, "
                "and if it stays, report it with the log of this session."
            )
            self.failure, self.state = GlassleafError(self.error), "failed"
        finally:
            self._ended = time.perf_counter()
