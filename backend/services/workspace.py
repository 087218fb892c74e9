"""What lies below a home: the federations that it knows and, for each, the running parties and the Guest's stores."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from backend.atomic_file import write_whole
from backend.data.federation import Federation, load_federation
from backend.errors import FederationError

if TYPE_CHECKING:
    from backend.crypto.signing import SigningKey
    from backend.protocols.simulation.simulator import FederationRuntime
    from backend.store.audit_log import AuditLog
    from backend.store.measurements import Measurements
    from backend.store.party_store import PartyStore
    from backend.store.reviews import Reviews

S = TypeVar("S")


class Workspace:
    """Federations, runtimes and stores of a home; safe to use from several threads.

    Parameters
    ----------
    home : Path
    key_floor : int or None
        Shortest key, bits; None = the usual one.
    pools : bool
        Whether obfuscators are made in the background.
    on_key : callable
        Told (federation, cipher, bits) of every key that a Guest makes.
    """

    def __init__(
        self,
        home: Path,
        key_floor: int | None = None,
        pools: bool = True,
        on_key: Callable[[str, str, int], None] = lambda federation, cipher, bits: None,
    ) -> None:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.home, self._key_floor, self._pools, self._on_key = home, key_floor, pools, on_key
        self._runtimes: dict[str, tuple[object, FederationRuntime]] = {}
        self._stores: dict[tuple[type[Any], str], Any] = {}
        self._signing_keys: dict[str, SigningKey] = {}
        self._loaded: dict[Path, tuple[int, Federation]] = {}
        self._lock = threading.RLock()

    def add(self, path: Path) -> Federation:
        """Check a federation file and remember it under its name; raises FederationError where another has the name."""
        federation = load_federation(path)
        with self._lock:
            self.check_name(federation.name, federation.folder)
            known = {**self._known(), federation.name: str(federation.folder.resolve())}
            write_whole(self.home / "federations.json", json.dumps(known, indent=1, sort_keys=True).encode())
        return federation

    def check_name(self, name: str, folder: Path) -> None:
        """Raise FederationError where another federation than the one in `folder` has the name."""
        there = self._known().get(name)
        if there and Path(there) != folder.resolve() and Path(there).exists():
            raise FederationError(
                f"{folder}, field name: {name!r} is already the name of the federation in {there}. Give this one another name."
            )

    def _known(self) -> dict[str, str]:
        file = self.home / "federations.json"
        known: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
        return known

    def federations(self) -> list[Federation]:
        """Every remembered federation whose file is still there."""
        return [self._load(Path(folder)) for folder in self._known().values() if _is_there(folder)]

    def federation(self, name: str) -> Federation:
        """One federation; raises FederationError where the name is unknown."""
        known = self._known()
        if name not in known or not _is_there(known[name]):
            raise FederationError(
                f"There is no federation {name!r}; known are: {', '.join(sorted(known)) or 'none'}. "
                "Make one with `glassleaf init`, or run `glassleaf demo`."
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
        from backend.crypto.paillier.keys import KEY_BITS_FLOOR  # noqa: PLC0415 (a list of models starts no party)
        from backend.protocols.simulation.simulator import FederationRuntime  # noqa: PLC0415

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
                self.home / "parties" / name,
                key_floor=self._key_floor or KEY_BITS_FLOOR,
                pools=self._pools,
                on_key=partial(self._on_key, name),
            )
            self._runtimes[name] = (stamp, runtime)
            return runtime

    def warm_up(self, name: str, bits: int) -> None:
        """Make the Guest's key and start all pools in the background; a second call does nothing."""
        with self._lock:
            runtime = self.runtime(name)
            if bits in runtime.warmed:
                return
            runtime.warmed.add(bits)
        threading.Thread(target=runtime.warm_up, args=(bits,), name="warm-up", daemon=True).start()

    def guest_store(self, federation: str) -> PartyStore:
        """Where the Guest keeps its partial models and records."""
        from backend.store.party_store import PartyStore  # noqa: PLC0415 (the services are imported without a database)

        return self._open(PartyStore, federation)

    def audit_log(self, federation: str) -> AuditLog:
        """What was done with a federation's models, in the Guest's folder."""
        from backend.store.audit_log import AuditLog  # noqa: PLC0415 (as above)

        return self._open(AuditLog, federation)

    def reviews(self, federation: str) -> Reviews:
        """What people decided about a federation's models, in the Guest's folder."""
        from backend.store.reviews import Reviews  # noqa: PLC0415 (as above)

        return self._open(Reviews, federation)

    def measurements(self, federation: str) -> Measurements:
        """What was measured as evidence about a federation's models, in the Guest's folder."""
        from backend.store.measurements import Measurements  # noqa: PLC0415 (as above)

        return self._open(Measurements, federation)

    def signing_key(self, federation: str) -> SigningKey:
        """What the Guest signs with: made at the first use, and kept in its folder."""
        from backend.crypto.signing import SigningKey  # noqa: PLC0415 (a list of models signs nothing)
        from backend.store.key_file import kept_key  # noqa: PLC0415 (as above)

        with self._lock:
            if federation not in self._signing_keys:
                file = self._guest_folder(federation) / "signing.key"
                numbers, new = kept_key(file, lambda: SigningKey.generate().to_numbers())
                self._signing_keys[federation] = SigningKey.from_numbers(numbers)
                if new:
                    self._on_key(federation, "ed25519", 256)
            return self._signing_keys[federation]

    def _guest_folder(self, federation: str) -> Path:
        return self.home / "parties" / federation / self.federation(federation).guest.name

    def _open(self, store: Callable[[Path], S], federation: str) -> S:
        """The Guest's store of one kind, opened once."""
        with self._lock:
            key = cast(type[Any], store), federation
            if key not in self._stores:
                self._stores[key] = store(self._guest_folder(federation))
            return cast(S, self._stores[key])

    def close(self) -> None:
        """Stop all Hosts and background threads."""
        with self._lock:
            for _, runtime in self._runtimes.values():
                runtime.close()
            for store in self._stores.values():
                store.close()
            self._runtimes.clear()
            self._stores.clear()


def _is_there(folder: str) -> bool:
    return (Path(folder) / "federation.toml").exists()
