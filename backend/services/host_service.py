"""A Host at its own company, as a process: its records, its store and its keys, answering over the link until it is stopped."""

from __future__ import annotations

import json
import logging
import signal
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import date
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import FrameType

from pydantic import TypeAdapter, ValidationError

from backend.crypto.paillier.bin_products import BinProducts
from backend.crypto.workers import Workers, cores
from backend.data.federation import capped
from backend.data.held import HeldColumns
from backend.data.party_file import check_party
from backend.data.row_groups import DatabaseTable, read_database
from backend.data.table import PartyTable, records_version
from backend.data.table_file import Reading, read_table_file, with_marks
from backend.errors import FederationError, StoreError
from backend.link.agreement import Agreement, asks_for_sums, dictionary_hash, floors_of
from backend.link.config import HostConfig, load_config
from backend.link.identity import load_identity
from backend.link.peers import LinkSettings
from backend.link.wire import LinkWire
from backend.ops.atomic_file import held_alone, write_whole
from backend.ops.webhook import Webhook
from backend.protocols.approvals.messages import REASONS, SCORING
from backend.protocols.explanations.messages import AskCohort, AskReasons
from backend.protocols.host import HostParty
from backend.protocols.lanes import SIZES, LaneSize
from backend.protocols.scoring.dither import DITHER
from backend.protocols.scoring.messages import DecisionVectors
from backend.protocols.terms.approvals import Agreed, Approvals
from backend.protocols.terms.prices import book_approved
from backend.protocols.transport.message import Lane
from backend.protocols.transport.transcript import OwnTranscript
from backend.remark import Remark
from backend.services.host_codes import log_unseen_codes
from backend.services.host_live import LiveFile
from backend.services.host_operation import HostOperation
from backend.services.host_operator import DRAINING, limits_of
from backend.services.roles import OPERATOR
from backend.services.system_user import system_user
from backend.store.accountant import Accountant
from backend.store.approvals import MAX_PER_DAY, Approval
from backend.store.audit_log import LINKS, AuditLog
from backend.store.database import Database
from backend.store.party_store import PartyStore
from backend.store.receipts import Receipts
from backend.store.request_log import RequestLog
from backend.store.retention import expire

POOL = 2048  # obfuscators kept ready
DAY_SECONDS = 24 * 3600.0
LINK_CHECK_SECONDS = 60.0  # seconds until a link that is down is looked at again
_Accounts: TypeAdapter[dict[str, tuple[str, str]]] = TypeAdapter(dict[str, tuple[str, str]])
ACCOUNTS = "accounts.json"  # in the folder of the Host's keys: Guest → its name, and which database has its account
ENDING_SECONDS = 30.0  # seconds for open work to end after a stop
SILENT_AFTER_SECONDS = 5.0  # seconds without a message after which a conversation is not waited for
POLL_SECONDS = 0.05  # seconds
WAKE = 0.5  # seconds after which a signal is handled that came in an unlucky moment
_log = logging.getLogger("glassleaf")


class HostService:
    """One Host, from its ``host.toml``.

    Raises
    ------
    FederationError
        The configuration or the records cannot be used, or the dictionary is not what the agreement names.
    SecurityError, ParameterError
        See :class:`backend.link.wire.LinkWire`; or the port of ``ops`` is taken.
    """

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        self._stopped = threading.Event()
        self._ending = threading.Event()
        self._closed = threading.Event()  # stop() was called, perhaps before the wire was open
        table, records = read_source(config)
        keys = config.path(config.keys)
        identity = load_identity(keys)
        webhook = config.webhook_url()
        self.database = Database(config.store_url())
        self.wire = LinkWire(config.party, config.path(config.agreement), keys, LinkSettings.of(config))
        self.operation = HostOperation(self.wire, self.database)
        self._live = LiveFile(keys, self.wire.links)
        self._webhook = Webhook(webhook)
        drained = keys / DRAINING
        store = PartyStore(self.database)
        try:
            log_unseen_codes(table, store)
            check_dictionary(config, self.wire.agreement)
            check_account(keys / ACCOUNTS, self.wire.agreement, self.database)
            limits = limits_of(config, self.wire.agreement, len(table.ids))
            accountant = Accountant(self.database, limits, records)
            self.party = HostParty(
                config.party,
                table,
                config.features(),
                store,
                key_floor=key_floor_of(config, self.wire.agreement),
                pool=POOL,
                tables=keys,
                products=BinProducts(workers_of(config)),
                accountant=accountant,
                requests=RequestLog(self.database),
                dither=dither_of(config, self.wire.agreement),
                measures=config.limits.measures,
                lanes=lanes_of(config),
                signing=identity.signing,
                receipts=Receipts(self.database),
                approvals=Approvals(
                    config.party,
                    self.database,
                    identity.signing,
                    agreed=agreed_models(self.wire.agreement, store),
                    volume=partial(agreed_volume, self.wire.agreement),
                    charge=partial(book_approved, accountant),
                    on_waiting=self._tell_operator,
                ),
                floors=floors_of(self.wire.agreement),
                sums=asks_for_sums(self.wire.agreement),
                draining=lambda: self._ending.is_set() or drained.exists(),
                served=self.operation.served,
            )
            self.operation.watch(self.party)
            self.operation.show(config.ops)
        except BaseException:
            self.wire.shut_down()
            self.database.close()
            raise

    def __repr__(self) -> str:
        return f"HostService({self.config.party})"

    def serve(self) -> None:
        """Answer until :meth:`stop`.

        The thread that calls this waits for no message: a signal that comes just before a wait without end is handled after it.
        """
        threading.Thread(target=self._expire_daily, name="retention", daemon=True).start()
        try:
            self._note_start()
            self.wire.open()
            if self._closed.is_set():
                self.wire.close()
            _log.info("The Host answers over its link; figures are shown on port %d.", self.operation.port)
            with ThreadPoolExecutor(1, thread_name_prefix="serving") as pool:
                serving = pool.submit(self.party.serve, OwnTranscript(self.wire))
                while not wait([serving], WAKE).done:
                    self._live.update(self.party)
                serving.result()
        finally:
            self._stopped.set()
            self._live.close()
            self._webhook.close()
            self.operation.close()
            self.wire.shut_down()
            self.database.close()

    def _tell_operator(self, request: Approval) -> None:
        """Send the operator's webhook that a request waits."""
        party = self.config.party
        waits = Remark("request_waits", {"party": party, "guest": request.guest, "number": request.number})
        self._webhook.send(waits, party=party, guest=request.guest, number=request.number, purpose=request.purpose)

    def _note_start(self) -> None:
        """Log that this process begins: what was open before has ended, and who compares logs can see why."""
        try:
            AuditLog(self.database).add(LINKS, {}, system_user(), OPERATOR)
        except StoreError as error:  # it answers nothing then, and says why
            _log.warning("That the Host begins was not logged: %s", error)

    def stop(self) -> None:
        """Take nothing more; what is being answered is answered."""
        self._closed.set()
        self.wire.close()

    def end(self) -> None:
        """Take on nothing new, let open work end for :data:`ENDING_SECONDS` seconds at most, then stop; a second time, stop at once."""
        if self._ending.is_set():
            self.stop()
            return
        self._ending.set()
        threading.Thread(target=self._end_work, name="ending", daemon=True).start()

    def _end_work(self) -> None:
        until = time.monotonic() + ENDING_SECONDS
        while (
            self.party.open_work(SILENT_AFTER_SECONDS)
            and time.monotonic() < until
            and not self._stopped.wait(POLL_SECONDS)
        ):
            pass
        self.stop()

    def stop_on_signals(self) -> None:
        """SIGTERM and SIGINT have it :meth:`end` (main thread only)."""

        def stop(number: int, frame: FrameType | None) -> None:
            self.end()

        for which in (signal.SIGTERM, signal.SIGINT):
            signal.signal(which, stop)

    def _expire_daily(self) -> None:
        """While the link is up, since the Guest's clock agrees then: one a month ahead would forget for good who was asked about."""
        guest = self.wire.peer(self.wire.agreement.guest.name)
        while not self._stopped.wait(self._expired() if guest.is_attached else LINK_CHECK_SECONDS):
            pass

    def _expired(self) -> float:
        """Seconds until the next time."""
        try:
            expire(self.database)
        except StoreError as error:  # no work waits for it
            _log.warning("What is too old was not deleted: %s", error)
        return DAY_SECONDS


def host_service(path: Path) -> HostService:
    """Return the Host whose ``host.toml`` this is."""
    return HostService(load_config(path))


def read_source(config: HostConfig) -> tuple[PartyTable, str]:
    """Return the Host's records, and their version: a hash.

    Raises
    ------
    FederationError
        With every problem of the table.
    SecurityError
        The file with the database's URL can be read by others.
    """
    source = config.source
    features = config.features()
    if source.kind == "sql":
        names = tuple(feature.name for feature in features)
        text, version = read_database(DatabaseTable(config.source_url(), source.table, source.id, names))
    else:
        path = config.path(source.file)
        text = read_table_file(path, path.name, Reading(encoding=source.encoding))
        if source.decimal:
            text = with_marks(text, (), source.decimal)
        # The same bytes read in another way are other records.
        version = sha256(path.read_bytes() + f"{source.encoding}{source.decimal}".encode()).hexdigest()
    read = check_party(text, source.id, features)
    if read.problems:
        raise FederationError(problems=capped(read.problems))
    return PartyTable(config.party, read.ids, HeldColumns(read.columns)), records_version(version, features)


def check_dictionary(config: HostConfig, agreement: Agreement) -> None:
    """Raise FederationError if the Host would disclose other features than it has signed."""
    agreed = set()
    for p in agreement.purposes:
        if config.party in p.dictionaries:
            agreed.add(p.dictionaries[config.party])
    disclosed_hash = dictionary_hash(config.features())
    if agreed != {disclosed_hash}:
        raise FederationError(
            "dictionary_not_agreed",
            dictionary=config.source.dictionary,
            hash=disclosed_hash,
            agreed=tuple(sorted(agreed)),
            host=config.party,
        )


def check_account(file: Path, agreement: Agreement, database: Database) -> None:
    """Note which database counts what a Guest is answered; raise FederationError if that is another one.

    One Host, by its keys, has one account of all its Guests, each by its certificates: with a database for each agreement no limit over
    all Guests would hold, and a second one of one Guest, or another name for it, would let each person be asked about twice.
    """
    if database.in_memory:  # forgotten with the process, which has no other
        return
    guest = agreement.guest
    account = guest.name, sha256(PartyStore(database).secret("account")).hexdigest()
    with held_alone(file.with_name(f"{file.name}.lock")):
        try:
            if file.exists():
                accounts = _Accounts.validate_json(file.read_bytes())
            else:
                accounts = {}
        except ValidationError as error:
            raise FederationError("accounts_file_damaged", file=file) from error
        for other_guest, store in accounts.values():
            if store != account[1]:
                raise FederationError("counted_in_other_database", guest=other_guest, file=file)
        if guest.spiffe not in accounts:
            write_whole(file, json.dumps(accounts | {guest.spiffe: account}).encode())
        name, _ = accounts.get(guest.spiffe, account)
    if name != guest.name:
        raise FederationError("counted_under_other_name", guest=guest.name, name=name)


def dither_of(config: HostConfig, agreement: Agreement) -> float:
    """Return the widest of what the Host adds and what the agreement asks for."""
    if config.limits.dither is None:
        host_dither = DITHER
    else:
        host_dither = config.limits.dither
    return max(host_dither, *(purpose.floors.dither for purpose in agreement.purposes))


def agreed_models(agreement: Agreement, store: PartyStore) -> Agreed:
    """Return which models the agreement lists by :meth:`backend.store.party_store.PartyStore.agreed_name`: no operator is asked for them.

    For scores and for reasons, as far as a purpose that lists the model allows their messages; measuring and training are asked for.
    """

    def agreed(approval: Approval) -> tuple[date, int] | None:
        kinds = _kinds(approval.purpose)
        name = store.agreed_name(approval.subject)
        listing = [
            purpose for purpose in agreement.purposes if name in purpose.models and not kinds.isdisjoint(purpose.kinds)
        ]
        limits = [
            (min(purpose.valid_until, agreement.valid_until), purpose.rows_per_day or MAX_PER_DAY)
            for purpose in listing
        ]
        return max(limits, default=None)

    return agreed


def agreed_volume(agreement: Agreement, purpose: str) -> int:
    """People a day that may be asked about for scores, reasons or one purpose of measuring, under all grants; 0 = not limited.

    The sum over the agreement's purposes that allow the message.
    """
    kinds = _kinds(purpose)
    limits = []
    for agreed_purpose in agreement.purposes:
        if not kinds or not kinds.isdisjoint(agreed_purpose.kinds):
            limits.append(agreed_purpose.rows_per_day)
    return sum(limits) if all(limits) else 0


def _kinds(purpose: str) -> set[str]:
    """Return the messages that ask for something without a purpose of measuring; empty if there are none."""
    asked_by = {SCORING: (DecisionVectors,), REASONS: (AskReasons, AskCohort)}
    return {kind.__name__ for kind in asked_by.get(purpose, ())}


def key_floor_of(config: HostConfig, agreement: Agreement) -> int:
    """Return the shortest Paillier key that the Host takes, bits."""
    return max(config.limits.key_bits, *(purpose.floors.key_bits for purpose in agreement.purposes))


def workers_of(config: HostConfig) -> Workers:
    """Return who does its long work."""
    settings = config.workers
    return Workers(settings.jobs or cores(), settings.backend, settings.scheduler).connected()


def lanes_of(config: HostConfig) -> Mapping[Lane, LaneSize]:
    """Return the size of each lane, as ``host.toml`` says."""
    settings = {Lane.ONLINE: config.lanes.online, Lane.BULK: config.lanes.bulk, Lane.TRAINING: config.lanes.training}
    return {
        lane: LaneSize(lane_settings.workers, lane_settings.queue, SIZES[lane].again)
        for lane, lane_settings in settings.items()
    }
