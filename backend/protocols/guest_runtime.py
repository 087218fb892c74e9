"""One federation as its Guest runs it: keys, table, journal and wire. Where Hosts are makes no difference to it.

A Host is reached by messages only. What only who operates the Hosts can see or do goes through :class:`HostsOperator`: in a simulation
the same user, otherwise other companies, and then it is not available here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.paillier.keys import KEY_BITS_FLOOR
from backend.crypto.signing import SigningKey
from backend.crypto.workers import Workers
from backend.data.federation import Federation, Measure
from backend.data.table import OwnRecords, PartyTable, read_labels, read_times, read_weights
from backend.errors import ApprovalPending, GlassleafError, NotAvailable, PartyUnreachable, SecurityError
from backend.protocols.approvals.guest import ask, training_terms
from backend.protocols.approvals.messages import NOT_MEASURED, AskApproval, AskTraining
from backend.protocols.audit_head.protocol import ask_heads, report_head
from backend.protocols.explanations.opening import TermsOpening
from backend.protocols.group_sums.disclosure_bound import NAMED
from backend.protocols.guest import GuestParty
from backend.protocols.guest_keys import GuestKeys
from backend.protocols.host_half import HostHalf
from backend.protocols.imports.messages import KeepImport
from backend.protocols.purposes.protocol import state_purpose
from backend.protocols.scoring.host import PersonAtHost
from backend.protocols.scoring.opening import Opening, open_vector
from backend.protocols.sealing.guest import release
from backend.protocols.training.algorithms import Parameters
from backend.protocols.training.guest import draw_name
from backend.protocols.training.messages import ModelKept
from backend.protocols.transport.channel import TIMEOUT, Session, await_links
from backend.protocols.transport.messages import ConversationReceipt, OfferKey
from backend.protocols.transport.transcript import TranscribedWire, TranscriptEntry
from backend.protocols.transport.wire import LinkState, new_conversation
from backend.remark import Remark
from backend.store.accountant import Accountant
from backend.store.audit_log import AuditLog, Head
from backend.store.database import Database
from backend.store.journal import Journal
from backend.store.receipts import Stated
from backend.store.request_log import RequestLog
from backend.store.schema import KeptHead, LoggedRow
from backend.trees.ensemble import GuestModel, HostModel, Registered
from backend.trees.serialization import dump_host

STARTING = 45.0  # seconds after the start within which links to other companies are waited for
# a conversation's name, the Guest's own messages, and Host → its receipt and key
OnReceipts = Callable[[str, Sequence[Stated], Mapping[str, tuple[ConversationReceipt, str]]], None]
AskedTraining = tuple[
    Parameters, Collection[str], float
]  # what operators are asked to allow: how, without what, at which share
WITNESS_TIMEOUT = 5.0  # seconds that a Host gets to report which head it keeps
HEAD_TIMEOUT = 0.5  # seconds that a Host gets to confirm a head; a busy one reads it when it is done


@dataclass(frozen=True)
class PoolLevel:
    """How many obfuscators a party has ready, and how many it keeps."""

    party: str
    ready: int
    target: int


class HostsOperator:
    """Whoever operates the Hosts. The Guest's work never asks for it, but for what a simulation shows or measures.

    This one stands for Hosts at their own companies, of which nothing of it is available here; a simulation's can do all of it.
    """

    simulated = False

    def dither(self, host: str) -> float:
        """Width on a logit of what a Host adds to scores."""
        raise NotAvailable(host, Remark("its_dither"))

    def logged(self, host: str) -> tuple[RequestLog | None, Callable[[str], Registered]]:
        """Its sample of requests, and model → what the Guest has told of its partial model."""
        raise NotAvailable(host, Remark("its_sample"))

    def half(self, host: str, rows: Sequence[LoggedRow]) -> HostHalf:
        """What it hands an auditor who recomputes scores: of its own sample, and of `rows` of other Hosts' samples."""
        raise NotAvailable(host, Remark("its_sample"))

    def account(self, host: str) -> Accountant:
        """The account of its answers."""
        raise NotAvailable(host, Remark("its_account"))

    def capacity(self, host: str, model_id: str) -> float:
        """What all answers about a model can tell about one record at most, bits."""
        raise NotAvailable(host, Remark("its_capacity"))

    def structure(self, host: str, model_id: str) -> str:
        """Under which name its account has a model."""
        raise NotAvailable(host, Remark("its_account"))

    def decision(self, host: str, model_id: str, person: str) -> PersonAtHost:
        """What it holds about one person, and which entries it keeps."""
        raise NotAvailable(host, Remark("its_view_of_a_person"))

    def database(self, host: str) -> Database:
        """What it keeps."""
        raise NotAvailable(host, Remark("its_database"))

    def leave_uncounted(self, host: str, conversation: str) -> None:
        """Have one conversation take nothing off budgets; a Host of another company counts every question."""

    def play(self, host: str, conversation: str, guest: str, table: PartyTable) -> None:
        """Put other records in the place of its own, in one conversation."""
        raise NotAvailable(host, Remark("its_records_replaced"))

    def pool_levels(self) -> tuple[PoolLevel, ...]:
        """Of every Host, as far as the Guest knows."""
        return ()

    def stop(self, host: str | None = None) -> None:
        """Take one Host down, or all."""
        raise NotAvailable(host or "Host", Remark("its_stop"))

    def close(self) -> None:
        """Stop all that run here and close what they keep."""


class GuestRuntime:
    """Everything a Guest needs to train and to score.

    Parameters
    ----------
    home : Path
        The parties' stores lie below it, one folder each.
    key_floor : int
        Shortest key, bits; lower only in tests.
    pools : bool
        Whether obfuscators are made in the background.
    on_key : callable
        Called with (cipher, bits or degree) of every key that the Guest makes.
    journal : Journal, optional
        The Guest's; without one, what is broken off is asked again.
    on_approval : callable
        Called, once each, with what a Host's operator allows the Guest, or that it waits for it.
    witnesses : mapping of str to str
        Host → public key under which it signs receipts of a conversation; empty in a simulation, whose transcript shows all.
    on_receipts : callable
        Called, where Hosts sign what they sent and took, at the end of each conversation: its name, the Guest's own messages, and
        Host → receipt and key.
    workers : Workers, optional
        Who encrypts in training; default one process a core of this machine.
    named : float, optional
        Share of a group's people whom the Hosts let sums name at most; 0 = not limited. By default as simulated Hosts have it.
    """

    def __init__(
        self,
        federation: Federation,
        home: Path,
        wire: TranscribedWire,
        operator: HostsOperator,
        *,
        key_floor: int = KEY_BITS_FLOOR,
        pools: bool = True,
        on_key: Callable[[str, int], None] = lambda cipher, bits: None,
        journal: Journal | None = None,
        on_approval: Callable[[dict[str, Any]], None] = lambda decided: None,
        witnesses: Mapping[str, str] = MappingProxyType({}),
        on_close: Callable[[], None] = lambda: None,
        links: Callable[[], dict[str, LinkState]] = dict,
        on_receipts: OnReceipts | None = None,
        workers: Workers | None = None,
        named_share: float | None = None,
    ) -> None:
        self.federation = federation
        self.journal = journal
        if named_share is not None:
            self.named = named_share
        elif federation.synthetic:
            self.named = 0.0
        else:
            self.named = NAMED
        self._on_approval = on_approval
        self._known_approvals = set[tuple[str, int, str]]()
        self._on_receipts = on_receipts
        self._wire = wire
        self.operator = operator
        self._witnesses = witnesses
        self._on_close = on_close
        self.links = links  # Host → its link; empty in a simulation, which has none
        self._records = OwnRecords(federation, federation.guest.name)
        self.guest = GuestParty(federation, self._records)
        self.warmed: set[int] = set()  # key sizes whose pools were started
        self.keys = GuestKeys(home / federation.guest.name, key_floor, pools, on_key, workers)
        self._began = time.monotonic()
        self._reported: dict[str, Head] = {}  # what each Host has confirmed of the audit log

    @property
    def table(self) -> PartyTable:
        """The Guest's records, read when they are first asked for; raises FederationError with every problem of the file."""
        return self._records()

    @property
    def simulated(self) -> bool:
        """Whether whoever uses this operates the Hosts, too."""
        return self.operator.simulated

    def labels(self) -> NDArray[np.float64]:
        """The Guest's labels, in the order of its table."""
        return read_labels(self.federation)

    def times(self) -> NDArray[np.str_] | None:
        """When each of the Guest's records is from, in the order of its table; None without a time column."""
        return read_times(self.federation)

    def weights(self, column: str, exclude: Collection[str] = ()) -> NDArray[np.float64] | None:
        """How much each of the Guest's records counts, in the order of its table; None without a column."""
        if column:
            return read_weights(self.federation, column, exclude)
        return None

    def dither(self, chain: Sequence[str]) -> float:
        """Width on a logit of the dither that scores through these Hosts get: the widest that one of them asks for."""
        return max((self.operator.dither(host) for host in chain), default=0.0)

    def decision(self, host: str, model_id: str, person: str) -> PersonAtHost:
        """What a Host holds about one synthetic person and which entries it keeps; for demonstrations alone.

        Raises SecurityError if the people of this federation are not synthetic, or the Host owns no split of the model.
        """
        if not self.federation.synthetic:
            raise SecurityError("people_not_synthetic", host=host, federation=self.federation.name)
        return self.operator.decision(host, model_id, person)

    def open_request(self, row: LoggedRow) -> Opening:
        """The Guest opens a request for an auditor; raises SecurityError if it was not made under a key of this Guest."""
        return open_vector(self.keys.of(row.public_key), row.vector)

    def open_terms(self, public_key: bytes, terms: bytes) -> TermsOpening:
        """The Guest opens terms of reasons for an auditor, and states with which values it made them; raises as the above."""
        if self.journal is None:
            raise SecurityError("terms_not_journaled")
        return TermsOpening(open_vector(self.keys.of(public_key), terms), self.journal.stated(terms))

    def warm_up(self, bits: int) -> None:
        """Make the key and have every Host start its pool, before the first sample comes; a Host that is down is left out."""
        key = self.keys.pair("paillier", bits)
        try:
            session = self.open_session(self.hosts)
        except PartyUnreachable:  # there are no links to be had
            return
        for host in self.hosts:
            with suppress(PartyUnreachable):
                session.send(host, OfferKey(session.name, key.scheme, key.offer()))
        session.close()

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names, in chain order."""
        return tuple(h.name for h in self.federation.hosts)

    def open_session(
        self,
        hosts: tuple[str, ...],
        cancelled: Callable[[], bool] = lambda: False,
        *,
        counted: bool = True,
        timeout: float = TIMEOUT,
        purpose: Measure | None = None,
    ) -> Session:
        """Begin a training, a scoring or, with a `purpose`, a measurement.

        One that is not `counted` takes nothing off the budgets of simulated Hosts and gets no dither; others count whatever they answer.

        Raises
        ------
        NotAgreed
            A Host has not agreed to the purpose.
        """
        self._await_links(hosts, cancelled)
        session = Session(self._wire, new_conversation(), hosts, cancelled, timeout, self._witnesses, self._ended)
        if not counted:
            for host in hosts:
                self.operator.leave_uncounted(host, session.name)
        if purpose is not None:
            try:
                state_purpose(session, purpose)
            except GlassleafError:
                session.close()
                raise
        return session

    def _await_links(self, hosts: Sequence[str], cancelled: Callable[[], bool]) -> None:
        """When this process has just begun, links to other companies come up one by one; later a Host that is down is down."""
        if not self.simulated:
            await_links(lambda: self.down(hosts), self._began + STARTING, cancelled)

    def _ended(
        self, name: str, transcript: Sequence[TranscriptEntry], receipts: Mapping[str, ConversationReceipt]
    ) -> None:
        if self._on_receipts is not None and (self._witnesses or any(self._decides(host) for host in self.hosts)):
            own_entries = [
                (entry.sender, entry.receiver, entry.kind, entry.bytes, 0.0)
                for entry in transcript
                if self.guest.name in (entry.sender, entry.receiver)
                and entry.bytes  # without bytes it is the link's own word
            ]
            self._on_receipts(
                name, own_entries, {host: (entry, self._witnesses[host]) for host, entry in receipts.items()}
            )

    def _decides(self, host: str) -> bool:
        """Whether its operator is asked: by default at a real Host, and not in a simulation."""
        approval = self.federation.party(host).approval
        return approval == "ask" or (approval is None and not self.simulated)

    def ask_approval(
        self,
        session: Session,
        hosts: Sequence[str],
        model_id: str,
        purpose: str,
        rows: int,
        identified: tuple[float, float] = NOT_MEASURED,
    ) -> None:
        """Ask those of `hosts` whose operators decide whether a model may be used, before any person is counted.

        `identified` is the share of scores that fit one path only, and the largest share that was allowed. Raises as
        :func:`backend.protocols.approvals.guest.ask`.
        """
        question = AskApproval(session.name, model_id, purpose, rows, *identified)
        self._ask_operators(session, dict.fromkeys(hosts, question))

    def ask_training(
        self, session: Session, parameters: Parameters, exclude: Collection[str], most_named: float = 0.05
    ) -> None:
        """The same for a training, of all Hosts of the conversation; raises as :meth:`ask_approval`."""
        draw = draw_name(self.table.ids, session.hosts, parameters.seed, self.times())
        self._ask_operators(session, training_terms(session, parameters, self.federation, exclude, draw, most_named))

    def open_model(
        self,
        hosts: tuple[str, ...],
        training_terms: AskedTraining,
        sealed_as: str,
        released_as: str,
        model: GuestModel,
        identified: float,
    ) -> dict[str, str]:
        """Have the Hosts open the halves that they keep sealed; return the hashes of what they keep.

        `training_terms` are those of :meth:`ask_training`: a half whose approval a Host's operator has withdrawn stays sealed. Raises as
        :func:`backend.protocols.sealing.guest.release`.
        """
        session = self.open_session(hosts, counted=False)
        try:
            self.ask_training(session, *training_terms)
            return release(session, sealed_as, released_as, model, identified)
        finally:
            session.close()

    def _ask_operators(self, session: Session, questions: Mapping[str, AskTraining | AskApproval]) -> None:
        deciding = {}
        for host, question in questions.items():
            if self._decides(host):
                deciding[host] = question
        try:
            for grant in ask(session, self.guest.name, deciding) if deciding else ():
                terms = {}
                for name, value in asdict(grant).items():
                    if name != "conversation":
                        terms[name] = value
                self._note_approval(grant.host, grant.number, "granted", terms)
        except ApprovalPending as waits:
            self.note_waiting(waits)
            raise

    def note_waiting(self, waits: ApprovalPending) -> None:
        """A Host's operator has not decided yet: the Guest's log says so, once."""
        terms = {"host": waits.host, "number": waits.number, "since": waits.since.isoformat()}
        self._note_approval(waits.host, waits.number, "waiting", terms)

    def _note_approval(self, host: str, number: int, state: str, terms: dict[str, Any]) -> None:
        if (host, number, state) not in self._known_approvals:
            self._known_approvals.add((host, number, state))
            self._on_approval({**terms, "state": state})

    def play(self, session: Session, host: str, table: PartyTable) -> None:
        """Let the user play a simulated Host in one conversation."""
        self.operator.play(host, session.name, self.guest.name, table)

    def keep_partial_models(self, model_id: str, partial_models: Mapping[str, HostModel]) -> dict[str, str]:
        """Send the Hosts their halves of an imported model; return the hashes of what they keep.

        Raises
        ------
        ApprovalPending
            If a Host's operator has not decided yet about the import; send them again later.
        HostRefused
            If one does not allow it.
        """
        session = self.open_session(tuple(partial_models), counted=False)
        try:
            for host, part in partial_models.items():
                session.send(host, KeepImport(session.name, model_id, dump_host(part)))
            answers = session.expect_each(ModelKept, tuple(partial_models))
        finally:
            session.close()
        return {host: answers[host].content_hash for host in partial_models}

    def tell_audit_head(self, log: AuditLog, key: SigningKey) -> None:
        """Report to every Host that is up where the Guest's audit log stands; one at work for somebody else is not waited for.

        Raises
        ------
        SecurityError
            A Host refuses the log: it does not continue what the Host keeps. The other Hosts were told.
        PartyUnreachable
            A Host has not confirmed it within :data:`HEAD_TIMEOUT`; the next report goes back to where it was.
        """
        refused = list[SecurityError]()
        silent = list[PartyUnreachable]()
        for host in self._up():
            session = self.open_session((host,), timeout=HEAD_TIMEOUT)
            try:
                self._reported[host] = report_head(session, host, log, key, self._reported.get(host))
            except SecurityError as error:
                self._reported.pop(host, None)  # asked next time
                refused.append(error)
            except PartyUnreachable as error:
                silent.append(error)
            finally:
                session.close()
        if refused or silent:
            raise (*refused, *silent)[0]

    def audit_heads(self) -> dict[str, list[KeptHead]]:
        """Host → every head of the Guest's audit log that it keeps; those that are down, or busy for longer, are left out."""
        heads: dict[str, list[KeptHead]] = {}
        with suppress(PartyUnreachable):  # there are no links to be had
            self._await_links(self.hosts, lambda: False)
        for host in self._up():
            session = self.open_session((host,), timeout=WITNESS_TIMEOUT)
            try:
                heads[host] = ask_heads(session, host)
            except PartyUnreachable:
                continue
            finally:
                session.close()
        return heads

    def down(self, hosts: Sequence[str]) -> tuple[str, ...]:
        """Those of `hosts` that cannot be reached at this moment."""
        return tuple(host for host in hosts if not self._wire.is_up(host))

    def _up(self) -> tuple[str, ...]:
        try:
            return tuple(host for host in self.hosts if self._wire.is_up(host))
        except PartyUnreachable:  # there are no links to be had
            return ()

    def pools(self) -> tuple[PoolLevel, ...]:
        """Fill level of every party's pool; the Guest's for the key used last."""
        return (PoolLevel(self.guest.name, *self.keys.level()), *self.operator.pool_levels())

    def close(self) -> None:
        """Stop simulated Hosts and the background threads."""
        self.operator.close()
        self.keys.close()
        self._on_close()
