"""The federations that a home knows, and for each its running runtime and the Guest's store."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from backend.atomic_file import write_whole
from backend.data.federation import Federation, load_federation
from backend.errors import FederationError
from backend.protocols.simulation.simulator import FederationRuntime
from backend.store.audit_log import AuditLog
from backend.store.measurements import Measurements
from backend.store.party_store import PartyStore
from backend.store.reviews import Reviews


class Workspace:
    """What is below a home; safe to use from several threads.

    Parameters
    ----------
    home : Path
    key_floor : int
        Shortest key, bits.
    pools : bool
        Whether obfuscators are made in the background.
    on_key : callable
        Told (federation, cipher, bits) of every key that a Guest makes.
    """

    def __init__(
        self,
        home: Path,
        key_floor: int,
        pools: bool,
        on_key: Callable[[str, str, int], None] = lambda federation, cipher, bits: None,
    ) -> None:
        self._home, self._key_floor, self._pools = home, key_floor, pools
        self._runtimes: dict[str, tuple[object, FederationRuntime]] = {}
        self._stores: dict[str, PartyStore] = {}
        self._logs: dict[str, AuditLog] = {}
        self._reviews: dict[str, Reviews] = {}
        self._measurements: dict[str, Measurements] = {}
        self._on_key = on_key
        self._loaded: dict[Path, tuple[int, Federation]] = {}
        self._lock = threading.RLock()

    def add(self, path: Path) -> Federation:
        """Check a federation file and remember it under its name; raises FederationError where another has the name."""
        federation = load_federation(path)
        with self._lock:
            self.check_name(federation.name, federation.folder)
            known = {**self._known(), federation.name: str(federation.folder.resolve())}
            write_whole(self._home / "federations.json", json.dumps(known, indent=1, sort_keys=True).encode())
        return federation

    def check_name(self, name: str, folder: Path) -> None:
        """Raise FederationError where another federation than the one in `folder` has the name."""
        there = self._known().get(name)
        if there and Path(there) != folder.resolve() and Path(there).exists():
            raise FederationError(
                f"{folder}, field name: {name!r} is already the name of the federation in {there}. Give this one another name."
            )

    def _known(self) -> dict[str, str]:
        file = self._home / "federations.json"
        known: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
        return known

    def all(self) -> list[Federation]:
        """Every remembered federation whose file is still there."""
        return [self._load(Path(folder)) for folder in self._known().values() if _is_there(folder)]

    def federation(self, name: str) -> Federation:
        """One federation; raises FederationError where the name is unknown."""
        known = self._known()
        if name not in known or not _is_there(known[name]):
            raise FederationError(
                f"There is no federation {name!r}; known are: {', '.join(sorted(known)) or 'none'}. "
                "Make one with `python -m backend init`, or run `python -m backend demo`."
            )
        return self._load(Path(known[name]))

    def _load(self, folder: Path) -> Federation:
        """A federation file that was checked before, read again only when it has changed."""
        stamp = (folder / "federation.toml").stat().st_mtime_ns
        if folder not in self._loaded or self._loaded[folder][0] != stamp:
            self._loaded[folder] = stamp, load_federation(folder, check_tables=False)
        return self._loaded[folder][1]

    def runtime(self, name: str) -> FederationRuntime:
        """The running federation; set up again when one of its files has changed."""
        with self._lock:
            federation = self.federation(name)
            files = [federation.folder / "federation.toml", *(federation.folder / p.file for p in federation.parties)]
            stamp = tuple((f.stat().st_mtime_ns, f.stat().st_size) for f in files)
            if name in self._runtimes and self._runtimes[name][0] == stamp:
                return self._runtimes[name][1]
            if name in self._runtimes:
                self._runtimes.pop(name)[1].close()
            runtime = FederationRuntime(
                federation,
                self._parties(name),
                key_floor=self._key_floor,
                pools=self._pools,
                on_key=partial(self._on_key, name),
            )
            self._runtimes[name] = (stamp, runtime)
            return runtime

    def guest_store(self, federation: str) -> PartyStore:
        """Where the Guest keeps its halves and records."""
        with self._lock:
            if federation not in self._stores:
                folder = self._parties(federation) / self.federation(federation).guest.name
                self._stores[federation] = PartyStore(folder)
            return self._stores[federation]

    def audit_log(self, federation: str) -> AuditLog:
        """What was done with a federation's models, in the Guest's folder."""
        with self._lock:
            if federation not in self._logs:
                folder = self._parties(federation) / self.federation(federation).guest.name
                self._logs[federation] = AuditLog(folder)
            return self._logs[federation]

    def reviews(self, federation: str) -> Reviews:
        """What people decided about a federation's models, in the Guest's folder."""
        with self._lock:
            if federation not in self._reviews:
                folder = self._parties(federation) / self.federation(federation).guest.name
                self._reviews[federation] = Reviews(folder)
            return self._reviews[federation]

    def measurements(self, federation: str) -> Measurements:
        """What was measured as evidence about a federation's models, in the Guest's folder."""
        with self._lock:
            if federation not in self._measurements:
                folder = self._parties(federation) / self.federation(federation).guest.name
                self._measurements[federation] = Measurements(folder)
            return self._measurements[federation]

    def _parties(self, federation: str) -> Path:
        return self._home / "parties" / federation

    def close(self) -> None:
        """Stop all Hosts and background threads."""
        with self._lock:
            for _, runtime in self._runtimes.values():
                runtime.close()
            for store in self._stores.values():
                store.close()
            for log in self._logs.values():
                log.close()
            for measurements in self._measurements.values():
                measurements.close()
            self._measurements.clear()
            for reviews in self._reviews.values():
                reviews.close()
            self._runtimes.clear()
            self._stores.clear()
            self._logs.clear()
            self._reviews.clear()


def _is_there(folder: str) -> bool:
    return (Path(folder) / "federation.toml").exists()
