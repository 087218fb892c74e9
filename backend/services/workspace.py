"""The contents of a home: the federations that it knows and, for each, the running parties and the Guest's stores."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.data.federation import Federation, load_federation
from backend.errors import FederationError, GlassleafError, StoreError
from backend.i18n import Text
from backend.remark import Remark

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from backend.crypto.signing import SigningKey
    from backend.crypto.workers import Workers
    from backend.protocols.guest_runtime import GuestRuntime
    from backend.protocols.transport.messages import ConversationReceipt
    from backend.store.audit_log import AuditLog
    from backend.store.database import Database
    from backend.store.decisions import Decisions
    from backend.store.journal import Journal
    from backend.store.measurements import Measurements
    from backend.store.model_states import ModelStates
    from backend.store.party_store import PartyStore
    from backend.store.policies import Policies
    from backend.store.receipts import Stated
    from backend.store.reviews import Reviews
    from backend.store.sealed_models import SealedModels

_log = logging.getLogger("glassleaf")
NO_FEDERATION = Text("none", "无")
CLOSING_SECONDS = 2.0  # seconds that an errand under way has to end before what it needs is closed


class Workspace:
    """Federations, runtimes and stores of a home; safe to use from several threads.

    Parameters
    ----------
    key_floor : int or None
        Shortest key, bits; None = the usual one.
    pools : bool
        Whether obfuscators are made in the background, and Hosts get the audit log's head there.
    on_key : callable
        Told (federation, cipher, bits) of every key that a Guest makes.
    on_expired : callable
        Told (federation, party → table → rows) what was deleted because its time was over.
    on_approval : callable
        Told (federation, what) of what a Host's operator allows the Guest, or that it waits for it.
    on_links : callable
        Called with the federation whose links this process has from now on, or with conversations that another process left open.
    workers : Workers, optional
        Who does the Guest's and simulated Hosts' long work; default one process a core of this machine.
    """

    def __init__(
        self,
        home: Path,
        key_floor: int | None = None,
        pools: bool = True,
        on_key: Callable[[str, str, int], None] = lambda federation, cipher, bits: None,
        on_expired: Callable[[str, dict[str, dict[str, int]]], None] = lambda federation, deleted: None,
        on_approval: Callable[[str, dict[str, Any]], None] = lambda federation, decision: None,
        on_links: Callable[[str, Collection[str]], None] = lambda federation, conversations: None,
        workers: Workers | None = None,
    ) -> None:
        self.home = home
        self._key_floor = key_floor
        self._pools = pools
        self._on_key = on_key
        self._on_expired = on_expired
        self._expired = dict[str, date]()
        self._on_approval = on_approval
        self._on_links = on_links
        self._workers = workers
        self._runtimes: dict[str, tuple[object, GuestRuntime]] = {}
        self._databases: dict[Path, Database] = {}
        self._signing_keys: dict[str, SigningKey] = {}
        self._loaded: dict[Path, tuple[int, Federation]] = {}
        self._lock = threading.RLock()  # held while the log gets an entry; never taken within a transaction
        self._opening = threading.Lock()
        self._errands: dict[str, Callable[[], object]] = {}
        self._runner: threading.Thread | None = None

    def add(self, path: Path) -> Federation:
        """Check a federation file and remember it under its name; raises FederationError if another has the name."""
        from backend.store.schema import FederationRow  # noqa: PLC0415 (as below)

        federation = load_federation(path)
        folder = federation.folder.resolve()
        with self.home_database().write() as session:
            self.check_name(federation.name, folder)
            # a home that is moved takes its contents along
            inside = folder.is_relative_to(self.home.resolve())
            if inside:
                stored_path = str(folder.relative_to(self.home.resolve()))
            else:
                stored_path = str(folder)
            session.merge(FederationRow(name=federation.name, folder=stored_path))
        return federation

    def check_name(self, name: str, folder: Path) -> None:
        """Raise FederationError if another federation than the one in `folder` has the name."""
        stored_folder = self._known().get(name)
        if stored_folder is not None and stored_folder.resolve() != folder.resolve() and stored_folder.exists():
            raise FederationError(
                "federation_name_taken", folder=str(folder), there=str(stored_folder), federation=name
            )

    def _known(self) -> dict[str, Path]:
        from sqlalchemy import select  # noqa: PLC0415 (the services are imported without a database)

        from backend.store.schema import FederationRow  # noqa: PLC0415 (as above)

        def read(session: Session) -> dict[str, Path]:
            rows = session.scalars(select(FederationRow).order_by(FederationRow.name))
            return {row.name: self.home / row.folder for row in rows}

        return self.home_database().kept("federations", read)  # asked for by nearly everything, and seldom changed

    def federations(self) -> list[Federation]:
        """Return every remembered federation that is there and can be used; see :meth:`broken` for the others."""
        tried = (self._try(name, folder) for name, folder in self._known().items())
        return [federation for federation in tried if isinstance(federation, Federation)]

    def has_beside(self, demo: str) -> bool:
        """Return whether the home has another federation than the `demo`, even one whose folder is not there at the moment."""
        return bool(self._known().keys() - {demo})

    def others_than(self, demo: str) -> tuple[str, ...]:
        """Return the federations of a home that does not have the `demo`; empty if it has it.

        One whose folder is not there at the moment is still a bank's own.
        """
        folders = self._known()
        return () if demo in folders else tuple(folders)

    def broken(self) -> dict[str, FederationError]:
        """Return the federations that are there but cannot be used: name → its folder, and why it cannot."""
        errors = {}
        for name, folder in self._known().items():
            why = self._try(name, folder)
            if isinstance(why, GlassleafError):
                place = Remark("federation_not_usable", {"folder": str(folder)})
                errors[name] = FederationError(problems=[place, *why.remarks])
        return errors

    def _try(self, name: str, folder: Path) -> Federation | GlassleafError | None:
        """Return a federation whose file can be read and whose Guest's database can be opened."""
        try:
            federation = self._load(folder)
            if federation is not None:
                self.database(name)
            return federation
        except GlassleafError as error:
            return error
        except Exception as error:  # whatever loading raises: the other federations go on
            _log.exception("A federation cannot be loaded")
            return FederationError("federation_failed_to_load", federation=name, kind=type(error).__name__)

    def federation(self, name: str) -> Federation:
        """One federation; raises FederationError if the name is unknown or its file cannot be used."""
        folders = self._known()
        if name in folders:
            loaded = self._load(folders[name])
        else:
            loaded = None
        if loaded is None:
            raise FederationError("unknown_federation", federation=name, known=tuple(sorted(folders)) or NO_FEDERATION)
        return loaded

    def _load(self, folder: Path) -> Federation | None:
        """Return a federation file that was checked before, read again only when it has changed; None if it is not there."""
        try:
            stamp = (folder / "federation.toml").stat().st_mtime_ns
        except (FileNotFoundError, NotADirectoryError):
            return None
        if folder not in self._loaded or self._loaded[folder][0] != stamp:
            self._loaded[folder] = stamp, load_federation(folder, check_tables=False)
        return self._loaded[folder][1]

    def runtime(self, name: str) -> GuestRuntime:
        """Return the running federation. It is set up again after a file has changed or a key was rotated.

        What is older than its period is deleted once a day.
        """
        from backend.crypto.paillier.keys import KEY_BITS_FLOOR  # noqa: PLC0415 (a list of models starts no party)
        from backend.store.key_file import retired_keys  # noqa: PLC0415

        with self._lock:
            federation = self.federation(name)
            files = [federation.folder / "federation.toml", *(federation.folder / p.file for p in federation.here)]
            read = tuple((f.stat().st_mtime_ns, f.stat().st_size) for f in files)
            stamp = read, retired_keys(self.guest_folder(name))
            if name in self._runtimes and self._runtimes[name][0] == stamp:
                self._expire_daily(name)
                return self._runtimes[name][1]
            if name in self._runtimes:
                self._runtimes.pop(name)[1].close()
            options: dict[str, Any] = {
                "key_floor": self._key_floor or KEY_BITS_FLOOR,
                "pools": self._pools,
                "on_key": partial(self._on_key, name),
                "journal": self.journal(name),
                "on_approval": partial(self._on_approval, name),
                "on_receipts": partial(self.keep_receipts, name),
                "workers": self._workers,
            }
            runtime = self._started(federation, options)
            self._runtimes[name] = (stamp, runtime)
            self._expire_daily(name)
            return runtime

    def _started(self, federation: Federation, options: dict[str, Any]) -> GuestRuntime:
        """Return the Guest with its Hosts: simulated here, or at their own companies."""
        home = self.home / "parties" / federation.name
        if federation.link is not None:
            from backend.services.linked import linked_runtime  # noqa: PLC0415 (extra link)

            return linked_runtime(federation, home, options, partial(self._on_links, federation.name))
        from backend.protocols.simulation.simulator import FederationRuntime  # noqa: PLC0415 (as above)
        from backend.research.baselines.host import WALK_KINDS  # noqa: PLC0415 (as above)

        return FederationRuntime(federation, home, **options, kinds=WALK_KINDS)

    def keep_receipts(
        self,
        name: str,
        conversation: str,
        guest_statements: Sequence[Stated],
        of_hosts: Mapping[str, tuple[ConversationReceipt, str]],
    ) -> None:
        """Keep what the Guest sent and took in a conversation, under its signature, and what Hosts state of theirs."""
        from backend.protocols.transport.receipts import MAX_STATED, sign_receipt  # noqa: PLC0415 (as below)
        from backend.store.receipts import Receipt, Receipts  # noqa: PLC0415 (the services are imported without a database)

        guest = self.federation(name).guest.name
        key = self.signing_key(name)
        receipts = Receipts(self.database(name))
        mine = sign_receipt(conversation, guest, guest_statements[:MAX_STATED], key)
        try:
            receipts.keep(Receipt(conversation, guest, "", mine.entries, "", key.public, mine.signature))
            for host, (stated, public) in of_hosts.items():
                receipts.keep(Receipt(conversation, host, guest, stated.entries, "", public, stated.signature))
        except StoreError as error:  # the work is done
            _log.warning("Receipts of %s were not kept: %s", name, error)

    def _expire_daily(self, name: str) -> None:
        if self._expired.get(name) != datetime.now(UTC).date():
            try:
                self.expire(name)
            except StoreError as error:  # no work waits for it
                _log.warning("What is too old in %s was not deleted: %s", name, error)

    def expire(self, name: str) -> dict[str, dict[str, int]]:
        """Delete what is older than its table's period at every party; returns party → table → rows, if there were any."""
        from backend.store.retention import expire  # noqa: PLC0415 (the services are imported without a database)

        self._expired[name] = datetime.now(UTC).date()
        expired = {party: expire(database) for party, database in self.databases(name).items()}
        deleted = {party: tables for party, tables in expired.items() if tables}
        if deleted:
            self._on_expired(name, deleted)
        return deleted

    def databases(self, name: str) -> dict[str, Database]:
        """Return each party's database; Hosts' only for the operator of a simulation."""
        runtime = self.runtime(name)
        hosts = runtime.hosts if runtime.simulated else ()
        return {runtime.guest.name: self.database(name), **{host: runtime.operator.database(host) for host in hosts}}

    def warm_up(self, name: str, bits: int) -> None:
        """Make the Guest's key and start all pools in the background; a second call does nothing."""
        with self._lock:
            runtime = self.runtime(name)
            if bits in runtime.warmed:
                return
            runtime.warmed.add(bits)
        threading.Thread(target=runtime.warm_up, args=(bits,), name="warm-up", daemon=True).start()

    def run_errand(self, name: str, act: Callable[[], object]) -> None:
        """Have `act` done, by one thread in the background if there is one, so that no caller waits for a Host; once for each name."""
        if not self._pools:
            act()
            return
        with self._lock:
            self._errands[name] = act
            if self._runner is None or not self._runner.is_alive():
                self._runner = threading.Thread(target=self._run_errands, name="errands", daemon=True)
                self._runner.start()

    def _run_errands(self) -> None:
        while True:
            with self._lock:
                if not self._errands:
                    self._runner = None
                    return
                act = self._errands.pop(next(iter(self._errands)))
            try:
                act()
            except GlassleafError as error:
                _log.warning("What was to be done in the background failed: %s", error)

    def await_errands(self, seconds: float) -> None:
        """Wait at most so long until all errands are done."""
        with self._lock:
            runner = self._runner
        if runner is not None:
            runner.join(seconds)

    def database(self, federation: str) -> Database:
        """Return the Guest's database, opened once."""
        from backend.store.database import party_database  # noqa: PLC0415 (as below)

        folder = self.guest_folder(federation)
        return self._opened(folder, lambda: party_database(folder, federation, folder.name))

    def guest_store(self, federation: str) -> PartyStore:
        """Return the store of the Guest's partial models and records."""
        from backend.store.party_store import PartyStore  # noqa: PLC0415 (the services are imported without a database)

        return PartyStore(self.database(federation))

    def audit_log(self, federation: str) -> AuditLog:
        """Return the audit log of a federation."""
        from backend.store.audit_log import AuditLog  # noqa: PLC0415 (as above)

        return AuditLog(self.database(federation))

    def reviews(self, federation: str) -> Reviews:
        """Return the reviews of a federation's models."""
        from backend.store.reviews import Reviews  # noqa: PLC0415 (as above)

        return Reviews(self.database(federation))

    def model_states(self, federation: str) -> ModelStates:
        """Return the names and states of a federation's models."""
        from backend.store.model_states import ModelStates  # noqa: PLC0415 (as above)

        return ModelStates(self.database(federation))

    def policies(self, federation: str) -> Policies:
        """Return the policies of a federation's models."""
        from backend.store.policies import Policies  # noqa: PLC0415 (as above)

        return Policies(self.database(federation))

    def sealed_models(self, federation: str) -> SealedModels:
        """Return the models of a federation that were trained and not released."""
        from backend.store.sealed_models import SealedModels  # noqa: PLC0415 (as above)

        return SealedModels(self.database(federation))

    def decisions(self, federation: str) -> Decisions:
        """Return what the Guest remembers of its scores."""
        from backend.store.decisions import Decisions  # noqa: PLC0415 (as above)

        return Decisions(self.database(federation))

    def measurements(self, federation: str) -> Measurements:
        """Return the stored measurements of a federation's models."""
        from backend.store.measurements import Measurements  # noqa: PLC0415 (as above)

        return Measurements(self.database(federation))

    def journal(self, federation: str) -> Journal:
        """Return the journal of the Guest's questions whose answers were not delivered yet."""
        from backend.store.journal import Journal  # noqa: PLC0415 (as above)

        return Journal(self.database(federation))

    def home_database(self) -> Database:
        """Return the home's own database, opened once: which federations there are, and its users' jobs."""
        from backend.store.database import Database  # noqa: PLC0415 (as above)

        return self._opened(self.home, lambda: Database(self.home))

    def _opened(self, folder: Path, open_: Callable[[], Database]) -> Database:
        with self._opening:
            if folder not in self._databases:
                self._databases[folder] = open_()
            return self._databases[folder]

    def signing_key(self, federation: str) -> SigningKey:
        """Return the key that the Guest signs with: made at the first use, and stored in its folder."""
        from backend.crypto.signing import SigningKey  # noqa: PLC0415 (a list of models signs nothing)
        from backend.store.key_file import kept_key  # noqa: PLC0415 (as above)

        with self._lock:
            if federation not in self._signing_keys:
                file = self.guest_folder(federation) / "signing.key"
                numbers, new = kept_key(file, lambda: SigningKey.generate().to_numbers())
                self._signing_keys[federation] = SigningKey.from_numbers(numbers)
                if new:
                    self._on_key(federation, "ed25519", 256)
            return self._signing_keys[federation]

    def guest_folder(self, federation: str) -> Path:
        """Return the folder of the Guest's database and keys."""
        return self.home / "parties" / federation / self.federation(federation).guest.name

    def close(self) -> None:
        """Stop all Hosts and background threads."""
        with self._lock:
            self._errands.clear()
        self.await_errands(CLOSING_SECONDS)
        with self._lock:
            for _, runtime in self._runtimes.values():
                runtime.close()
            for database in self._databases.values():
                database.close()
            self._runtimes.clear()
            self._databases.clear()
