"""State of a Host's process for its operator while it answers: links and open work, in a file next to the keys; and requests to stop.

The process that answers and the console are two. Neither ids nor values are in the file.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from backend.errors import ParameterError
from backend.ops.atomic_file import write_whole
from backend.protocols.alignment.host import ALIGNMENT_KINDS
from backend.protocols.explanations.host import REASONS_KINDS
from backend.protocols.group_sums.host import GROUP_KINDS
from backend.protocols.host import HostParty
from backend.protocols.host_state import Running
from backend.protocols.imports.host import IMPORT_KINDS
from backend.protocols.scoring.host import SCORING_KINDS
from backend.protocols.scoring.permuted_values_host import PERMUTED_KINDS
from backend.protocols.sealing.host import SEALING_KINDS
from backend.protocols.training.host import TRAINING_KINDS
from backend.protocols.transport.wire import LinkState

# Work as an operator calls it → the kinds of messages that ask for it.
WORK_KINDS = {
    "alignment": tuple(ALIGNMENT_KINDS),
    "training": (*TRAINING_KINDS, *SEALING_KINDS),
    "import": tuple(IMPORT_KINDS),
    "scoring": tuple(SCORING_KINDS),
    "reasons": tuple(REASONS_KINDS),
    "measuring": (*GROUP_KINDS, *PERMUTED_KINDS),
}
LIVE_FILE = "live.json"
STOP = "stop-"
FRESH_SECONDS = 5.0  # after that the process counts as gone
TOUCH_SECONDS = 1.0  # between two signs of life
SHOWN_SECONDS = 10.0  # without a message after which work is not shown as running


@dataclass(frozen=True)
class HostLive:
    """State of a Host's process.

    Attributes
    ----------
    links : dict of str to LinkState
        Peer → its link.
    running : tuple of Running
        Open conversations in which something came lately.
    """

    links: dict[str, LinkState]
    running: tuple[Running, ...]


class LiveFile:
    """The side of the process that answers.

    Parameters
    ----------
    folder : Path
        Of the Host's keys.
    links : callable
        Peer → its link, now.
    """

    def __init__(self, folder: Path, links: Callable[[], dict[str, LinkState]]) -> None:
        self._folder = folder
        self._links = links
        self._written = b""
        self._touched = 0.0

    def update(self, party: HostParty) -> None:
        """Write the state of the process, and stop what its operator asked to stop; a folder that cannot be written shows nothing."""
        with suppress(OSError):
            for stop_file in self._folder.glob(f"{STOP}*"):
                party.stop(stop_file.name.removeprefix(STOP))
                stop_file.unlink(missing_ok=True)
            links = {name: link.plain() for name, link in self._links().items()}
            # Rounded, so that the file changes only if something happened.
            running = []
            for entry in party.running(SHOWN_SECONDS):
                running.append(entry._replace(quiet=0.0)._asdict())
            document = json.dumps({"links": links, "running": running}).encode()
            now = time.monotonic()
            if document != self._written:
                # It is written twice a second: the disk is for what is booked.
                write_whole(self._folder / LIVE_FILE, document, lasting=False)
                self._written = document
                self._touched = now
            elif now > self._touched + TOUCH_SECONDS:
                os.utime(self._folder / LIVE_FILE)
                self._touched = now

    def close(self) -> None:
        """Delete the file: the process has ended."""
        with suppress(OSError):
            (self._folder / LIVE_FILE).unlink(missing_ok=True)


def read_live(folder: Path) -> HostLive | None:
    """Return the state of the process of the Host with these keys; None if none runs."""
    file = folder / LIVE_FILE
    try:
        if time.time() - file.stat().st_mtime > FRESH_SECONDS:
            return None
        document = json.loads(file.read_bytes())
        links = {name: LinkState.read(link) for name, link in document["links"].items()}
        return HostLive(links, tuple(Running(**entry) for entry in document["running"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def ask_stop(folder: Path, id_: str) -> None:
    """Have the process answer nothing more of the conversation with that :attr:`Running.id`.

    Raises
    ------
    ParameterError
        The conversation is not open.
    """
    live = read_live(folder)
    if live is None or id_ not in {entry.id for entry in live.running}:
        raise ParameterError("work_not_running")
    (folder / f"{STOP}{id_}").touch()
