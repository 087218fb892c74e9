"""A Host: answers messages with its own columns and thresholds. Never sees a label or a leaf weight, never sends a threshold."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from backend.crypto.interface import PublicSide
from backend.crypto.paillier.bin_products import BinProducts
from backend.crypto.paillier.keys import KEY_BITS_FLOOR
from backend.crypto.pool import Pool
from backend.crypto.registry import open_offer
from backend.crypto.signing import SigningKey
from backend.data.dictionary import Feature
from backend.data.federation import MEASURES
from backend.data.table import PartyTable
from backend.errors import GlassleafError, HostBusy, HostRefused, PartyUnreachable, SecurityError, StoreError
from backend.protocols.alignment.host import ALIGNMENT_KINDS
from backend.protocols.approvals.host import ApprovalRequests
from backend.protocols.audit_head.messages import AskAuditHeads, KeepAuditHead
from backend.protocols.audit_head.protocol import MAX_ENTRIES, keep_head, kept_heads
from backend.protocols.explanations.host import REASONS_KINDS
from backend.protocols.group_sums.host import GROUP_KINDS
from backend.protocols.host_half import HostHalf, host_half, is_current, sampled_rows
from backend.protocols.host_state import Answer, Handlers, HostModels, HostSession, HostSessions, Running
from backend.protocols.imports.host import IMPORT_KINDS
from backend.protocols.lanes import SIZES, Lanes, LaneSize
from backend.protocols.purposes.messages import StatePurpose
from backend.protocols.purposes.protocol import answer_purpose, check_purpose
from backend.protocols.scoring.dither import DITHER
from backend.protocols.scoring.host import SCORING_KINDS, PersonAtHost, decision
from backend.protocols.scoring.messages import DecisionVectors
from backend.protocols.scoring.permuted_values_host import PERMUTED_KINDS
from backend.protocols.sealing.host import SEALING_KINDS
from backend.protocols.terms.approvals import Approvals
from backend.protocols.terms.floors import Floors
from backend.protocols.terms.gate import Gate
from backend.protocols.terms.noise import HostNoise
from backend.protocols.terms.permit import Kinds
from backend.protocols.terms.prices import book_approved, facts_of_table
from backend.protocols.training.host import TRAINING_KINDS
from backend.protocols.training.messages import ModelKept
from backend.protocols.training.wrong_answers import WrongAnswerHandler
from backend.protocols.transport.message import Lane, Message
from backend.protocols.transport.messages import (
    Acknowledge,
    ConversationReceipt,
    EndConversation,
    HeldRecords,
    OfferKey,
    Refusal,
)
from backend.protocols.transport.receipts import MAX_STATED, sign_receipt
from backend.protocols.transport.refusals import refusal
from backend.protocols.transport.transcript import TranscribedWire
from backend.protocols.transport.wire import Delivery
from backend.store.accountant import Accountant
from backend.store.database import Database
from backend.store.party_store import PartyStore
from backend.store.receipts import Receipt, Receipts, Stated
from backend.store.request_log import RequestLog
from backend.store.schema import LoggedRow
from backend.trees.ensemble import Registered

_log = logging.getLogger("glassleaf")

DRAINED = 60.0  # seconds after which a Guest asks again
STORE_WAIT = 30.0  # seconds after which a Guest asks again
SECONDS_DECIMALS = 2  # of the seconds in a receipt: more would reveal how much was computed about a person
KEYS_KEPT = 4  # public keys whose obfuscator pools are kept


class Served(NamedTuple):
    """A message that was answered or refused, as the Host's operator may count it: neither whom nor what it is about.

    Attributes
    ----------
    seconds : float
        Until the last answer was sent.
    refused : str
        The type of the error; empty if it was answered.
    people : (int, int, int)
        Where scores are asked for: about whom it answers, of whom it holds no record, of whom a limit is reached.
    """

    kind: str
    conversation: str
    seconds: float
    refused: str = ""
    people: tuple[int, int, int] = (0, 0, 0)


class HostParty:
    """One Host.

    Parameters
    ----------
    simulated : bool
        A simulated Host also answers plaintext, and lets the user play its records; a real one refuses both.
    key_floor : int
        Shortest key accepted, bits.
    pool : int
        Obfuscators kept ready per key.
    tables : Path, optional
        Folder where tables for obfuscators are kept between runs.
    products : BinProducts, optional
        Who multiplies ciphertexts in training.
    accountant : Accountant, optional
        How often it answers about a person. Without one, a simulated Host does not count, a real one counts in memory.
    requests : RequestLog, optional
        Where it keeps a sample of requests for an auditor. Without one, a simulated Host keeps none, a real one keeps them in memory.
    dither : float, optional
        Width on a logit of what it adds to scores; 0 = nothing. By default a simulated Host adds nothing, a real one
        :data:`backend.protocols.scoring.dither.DITHER`.
    measures : collection of str, optional
        Purposes of measuring that it agrees to (:data:`backend.data.federation.MEASURES`). By default a simulated Host agrees to all, and
        needs none stated; a real one to none.
    lanes : mapping of Lane to LaneSize
        How much it takes on at once.
    signing : SigningKey, optional
        Under which it states, at the end of a conversation, what it sent and took; without one it states nothing.
    receipts : Receipts, optional
        Where it keeps what it stated.
    approvals : Approvals or "none", optional
        Whom it asks before a training or a model is answered. By default a simulated Host asks nobody, and a real one an operator whose
        decisions are kept in memory.
    floors : Floors, optional
        What it insists on; by default as real people need it.
    sums : bool
        Whether its operator decides about sums by group, too.
    draining : callable
        Whether it takes on no new conversation.
    kinds : Kinds
        More kinds of message that it answers, each with its rule and its handler (examples/host_handler.py); to a simulated Host come
        those of :data:`backend.research.baselines.host.WALK_KINDS`, which show its choices.
    served : callable
        Told of every message that was answered or refused.
    """

    def __init__(
        self,
        name: str,
        table: PartyTable,
        features: Sequence[Feature],
        store: PartyStore,
        *,
        simulated: bool = False,
        key_floor: int = KEY_BITS_FLOOR,
        pool: int = 0,
        tables: Path | None = None,
        products: BinProducts | None = None,
        accountant: Accountant | None = None,
        requests: RequestLog | None = None,
        dither: float | None = None,
        measures: Collection[str] | None = None,
        lanes: Mapping[Lane, LaneSize] = SIZES,
        signing: SigningKey | None = None,
        receipts: Receipts | None = None,
        approvals: Approvals | Literal["none"] | None = None,
        floors: Floors | None = None,
        sums: bool = False,
        draining: Callable[[], bool] = lambda: False,
        kinds: Kinds = MappingProxyType({}),
        served: Callable[[Served], None] = lambda _: None,
    ) -> None:
        self.name = name
        self._served = served
        self._draining = draining
        self._lane_sizes = lanes
        self._signing = signing
        self._receipts = receipts
        self._lanes: Lanes | None = None
        if measures is not None or simulated:
            self._measures = measures
        else:
            self._measures = ()
        self._store = store
        self._simulated = simulated
        self._key_floor = key_floor
        self._pool = pool
        self._tables = tables
        self._products = products
        if accountant is not None or simulated:
            self.accountant = accountant
        else:
            self.accountant = Accountant(Database())
        if requests is not None or simulated:
            self.requests = requests
        else:
            self.requests = RequestLog(Database())
        if dither is not None:
            self._dither = dither
        elif simulated:
            self._dither = 0.0
        else:
            self._dither = DITHER
        self._opening = threading.Lock()
        self._ciphers: OrderedDict[tuple[str, bytes], tuple[PublicSide, Pool[Any]]] = OrderedDict()
        self._sessions = HostSessions(broken_off=self._state)
        self._partial_models = HostModels(name, store)
        if approvals is None and not simulated and self.accountant is not None:
            charge = partial(book_approved, self.accountant)
            approvals = Approvals(name, Database(), SigningKey.generate(), charge=charge)
        self.approvals = approvals if isinstance(approvals, Approvals) else None
        facts = facts_of_table([feature.name for feature in features], table.ids)
        self._gate = Gate(
            table,
            {feature.name: feature for feature in features},
            facts,
            _with_more(_all_kinds(), kinds),
            floors or Floors(),
            self._partial_models,
            self._sessions,
            HostNoise(self._dither, store.secret),
            self.accountant,
            self.approvals,
            self.requests,
            sums,
            simulated,
        )
        self._approvals = ApprovalRequests(self.approvals, self._partial_models, self._sessions, facts)
        self._handlers = self._all_handlers()

    def _all_handlers(self) -> Handlers:
        """Return who answers messages that read no record, by class of message."""
        protocols = (
            self._approvals,
            WrongAnswerHandler(self.name, self._sessions, self.approvals.log if self.approvals else None),
        )
        handlers: Handlers = {
            OfferKey: self._offer_key,
            StatePurpose: self._state_purpose,
            KeepAuditHead: self._keep_audit_head,
            AskAuditHeads: self._ask_audit_heads,
            Acknowledge: self._acknowledge,
            EndConversation: self._end,
        }
        for protocol in protocols:
            handlers |= protocol.handlers()
        return handlers

    def serve(self, wire: TranscribedWire) -> None:
        """Answer messages until the mailbox is closed: those of a conversation in order, conversations beside each other.

        A message that cannot be answered gets a refusal, never silence.
        """
        lanes = self._lanes = Lanes(partial(self._work_on, wire), self.name, self._lane_sizes)
        try:
            while wire.is_up(self.name):
                try:
                    delivery = wire.receive()
                except SecurityError as error:
                    # not a message at all: there is no conversation to answer in
                    _log.warning("%s: %s", self.name, error)
                    continue
                if delivery is None:
                    break
                try:
                    lanes.put(delivery)
                except HostBusy as error:
                    self._refuse(wire, delivery, error)
                    message = delivery.message
                    self._served(Served(type(message).__name__, message.conversation, 0.0, type(error).__name__))
        finally:
            lanes.close()
            self._sessions.end_all()
            with self._opening:
                for _, pool in self._ciphers.values():
                    pool.close()

    def _work_on(self, wire: TranscribedWire, delivery: Delivery) -> None:
        """Answer one message; whatever ends the thread in between takes the Host down, so that nobody waits for it."""
        wire.take(delivery)
        try:
            self._serve_one(wire, delivery)
        except BaseException as error:  # its text may hold data, its type not
            _log.error("%s stopped: an internal error (%s)", self.name, type(error).__name__)
            wire.close()
        finally:
            wire.rest(delivery.message.conversation)

    def _serve_one(self, wire: TranscribedWire, delivery: Delivery) -> None:
        sender = delivery.sender
        message = delivery.message
        stated: list[Stated] = [(sender, self.name, type(message).__name__, delivery.bytes, 0.0)]
        session = self._session(sender, message)
        came = time.perf_counter()
        began = came
        refused = ""
        people = (0, 0, 0)
        try:
            for receiver, answer in self.answer(sender, message):
                if isinstance(answer, ModelKept):
                    self._note_model(sender, message, answer)
                worked = time.perf_counter() - began
                size = wire.send(receiver, answer)
                stated.append((self.name, receiver, type(answer).__name__, size, round(worked, SECONDS_DECIMALS)))
                began = time.perf_counter()
                if isinstance(message, DecisionVectors) and isinstance(answer, HeldRecords):
                    people = _counts(answer, len(message.ids))
        except StoreError as error:  # its text names what a Guest need not know
            refused = type(error).__name__
            _log.error("%s: %s", self.name, error)
            stated += self._refuse(wire, delivery, HostBusy("no_store", STORE_WAIT))
        except GlassleafError as error:
            refused = type(error).__name__
            stated += self._refuse(wire, delivery, error)
        except Exception as error:
            refused = type(error).__name__
            # a fault of ours must not silence the Host; its text may hold data, its type not
            stated += self._refuse(wire, delivery, HostRefused("internal_error", kind=refused))
        seconds = time.perf_counter() - came
        self._served(Served(type(message).__name__, message.conversation, seconds, refused, people))
        if session is None:
            session = self._session(sender, message)
            if session is not None:  # the message has opened it
                session.note(type(message).__name__)
        if self._signing is not None and session is not None:
            if isinstance(message, EndConversation) and message.broken_off:
                # The Guest has not said how it ended: the receipt has no end, and nobody waits for it.
                self._state(message.conversation, session)
                return
            session.stated += stated[: MAX_STATED - len(session.stated)]
            if isinstance(message, EndConversation):
                receipt = self._state(message.conversation, session)
                if receipt is not None:
                    with suppress(PartyUnreachable):  # it did not wait
                        wire.send(session.guest, receipt)

    def _note_model(self, sender: str, message: Message, answer: ModelKept) -> None:
        """Allow scores with a model that was trained just now, if the operator allowed them together with the training."""
        session = self._session(sender, message)
        if session is not None:
            self._approvals.note_model(session, answer.model_id)

    def _state(self, conversation: str, session: HostSession) -> ConversationReceipt | None:
        """Sign and store the messages that were sent and taken in an ended conversation; None if this Host makes no statement."""
        if self._signing is None or not session.stated:
            return None
        receipt = sign_receipt(conversation, self.name, session.stated, self._signing)
        guest = session.guest
        stored_receipt = Receipt(
            conversation, self.name, guest, receipt.entries, "", self._signing.public, receipt.signature
        )
        try:
            if self._receipts is not None:
                self._receipts.keep(stored_receipt)
        except StoreError as error:  # the conversation has ended, and no party waits for the receipt
            _log.warning("%s: a receipt was not kept: %s", self.name, error)
        return receipt

    def _refuse(self, wire: TranscribedWire, delivery: Delivery, error: GlassleafError) -> list[Stated]:
        """To the Guest of the conversation; if there is none, to a Guest that tried to open one. Returns what was sent."""
        message = delivery.message
        session = self._session(delivery.sender, delivery.message)
        if session is None and self._is_passed_on(message):
            return []
        if session is not None:
            guest = session.guest
        else:
            guest = delivery.sender
        try:
            size = wire.send(guest, refusal(message.conversation, error))
        except PartyUnreachable:  # the Guest has ended the conversation
            return []
        return [(self.name, guest, Refusal.__name__, size, 0.0)]

    def play(self, conversation: str, guest: str, table: PartyTable) -> None:
        """Use `table` instead of the Host's records in one conversation (simulation: the uploader plays this Host)."""
        if not self._simulated:
            raise SecurityError("simulated_hosts_only")
        self._sessions.of(conversation, guest).played = table

    def leave_uncounted(self, conversation: str) -> None:
        """Answer one conversation outside the budget and without dither (simulation: the operator measures or compares)."""
        if not self._simulated:
            raise SecurityError("simulated_hosts_only")
        self._sessions.uncounted.add(conversation)

    def decision(self, model_id: str, person: str) -> PersonAtHost:
        """What it holds about a person and which entries it keeps (simulation: a demonstration on synthetic people)."""
        if not self._simulated:
            raise SecurityError("simulated_hosts_only")
        return decision(self._gate.table, self._partial_models.get(model_id), person)

    def half(self, rows: Sequence[LoggedRow]) -> HostHalf:
        """Return the half for an auditor who recomputes answers: of its own sample, and of `rows` of other Hosts' samples."""
        accountant = self.accountant

        def changed(row: LoggedRow) -> bool:
            return accountant is not None and not is_current(accountant, self._partial_models, row)

        if self.requests is None:
            sampled = []
        else:
            sampled = sampled_rows(self.requests, rows)
        return host_half(self.name, sampled, self._partial_models, self._gate.table, self._gate.noise, changed)

    def registered(self, model_id: str) -> Registered:
        """What the Guest has told of its partial model, for an auditor."""
        return self._partial_models.get(model_id).model.registered

    def capacity(self, model_id: str) -> float:
        """What all answers about a model can tell about one record here at most, bits, for this Host's operator."""
        return self._partial_models.get(model_id).model.capacity

    def structure(self, model_id: str) -> str:
        """Return under which name the account has a model, for this Host's operator."""
        return self._partial_models.get(model_id).structure

    @property
    def draining(self) -> bool:
        """Whether it takes on no new conversation."""
        return self._draining()

    def waiting(self, lane: Lane) -> int:
        """Conversations that wait in a lane, for this Host's operator."""
        return 0 if self._lanes is None else self._lanes.waiting(lane)

    def open_work(self, quiet: float) -> int:
        """Conversations that wait, are answered, or had a message less than `quiet` seconds ago."""
        return self._sessions.busy(quiet) + sum(self.waiting(lane) for lane in self._lane_sizes)

    def running(self, quiet: float) -> tuple[Running, ...]:
        """Return what is open now; `quiet` as of :meth:`open_work`."""
        return self._sessions.running(quiet)

    def stop(self, id_: str) -> bool:
        """Answer nothing more of the conversation with that :attr:`Running.id`, as this Host's operator wants; False if it is not open."""
        return self._sessions.stop(id_)

    def pool_level(self) -> tuple[int, int]:
        """Obfuscators ready and wanted, of the key used last."""
        if not self._ciphers:
            return 0, self._pool
        pool = next(reversed(self._ciphers.values()))[1]
        return pool.ready, pool.target

    def answer(self, sender: str, message: Message) -> Answer:
        """Messages that answer `message`, each with its receiver.

        Raises
        ------
        SecurityError
            It is none that a Host answers, its operator does not allow it, or the handler refuses it: in a conversation that another
            party opened, say.
        """
        kind = type(message)
        handler = self._handlers.get(kind)
        gated = kind in self._gate.kinds
        if handler is None and not gated:
            raise SecurityError("kind_not_answered", kind=kind.__name__)
        session = self._session(sender, message)
        if session is None and self._draining():
            raise HostBusy("host_stops", DRAINED)
        if session is not None:
            session.note(kind.__name__)
            if session.stopped and kind is not EndConversation:
                raise HostRefused("stopped_by_operator")
        if self._measures is not None:
            check_purpose(message, session.purpose if session is not None else "")
        guest = session.guest if session is not None else sender
        if handler is None:
            return self._through_gate(sender, guest, message)
        return self._without_records(handler, sender, guest, message)

    def _session(self, sender: str, message: Message) -> HostSession | None:
        """Return the conversation of a message: its sender's own, or the one in which another Host forwards a message."""
        own_session = self._sessions.find(message.conversation, sender)
        if own_session is None and self._is_passed_on(message):
            return self._sessions.find(message.conversation)
        return own_session

    def _is_passed_on(self, message: Message) -> bool:
        """Return whether other Hosts may send a message of this kind, too."""
        kind = self._gate.kinds.get(type(message))
        return kind is not None and kind.passed_on

    def _through_gate(self, sender: str, guest: str, message: Message) -> Answer:
        with self._sessions.serving(guest, message.conversation):
            yield from self._gate.answer(sender, message, self._session(sender, message))

    def _without_records(
        self, handler: Callable[[str, Any], Answer | None], sender: str, guest: str, message: Message
    ) -> Answer:
        with self._sessions.serving(guest, message.conversation):
            yield from handler(sender, message) or ()

    def _state_purpose(self, sender: str, message: StatePurpose) -> Answer:
        session = self._sessions.of(message.conversation, sender)
        session.purpose = ""
        agreed = answer_purpose(message, MEASURES if self._measures is None else self._measures)
        session.purpose = message.purpose if agreed.agreed else ""
        yield sender, agreed

    def _offer_key(self, sender: str, offer: OfferKey) -> None:
        session = self._sessions.of(offer.conversation, sender)
        if offer.scheme == "none" and not self._simulated:
            raise SecurityError("plaintext_offered")
        session.cipher = self._cipher(offer.scheme, offer.key)
        session.key = offer.key

    def _cipher(self, scheme: str, key: bytes) -> PublicSide:
        """Return the cipher of a key, checked and prepared once; a message with a known key does not wait for another key's."""
        offered = scheme, key
        opened_before = self._ciphers.get(offered)
        if opened_before is not None:
            with self._opening, suppress(KeyError):  # another key may have taken its place
                self._ciphers.move_to_end(offered)
            return opened_before[0]
        with self._opening:
            if offered not in self._ciphers:
                opened = open_offer(scheme, key, self._key_floor, self._pool, self._tables, self._products)
                opened[1].fill()
                self._ciphers[offered] = opened
                while len(self._ciphers) > KEYS_KEPT:
                    self._ciphers.popitem(last=False)[1][1].close()
            return self._ciphers[offered][0]

    def _keep_audit_head(self, sender: str, keep: KeepAuditHead) -> Answer:
        self._sessions.of(keep.conversation, sender)
        keep_head(self._store, sender, keep)
        yield sender, kept_heads(self._store, sender, keep.conversation, MAX_ENTRIES + 1, 1)

    def _ask_audit_heads(self, sender: str, message: AskAuditHeads) -> Answer:
        self._sessions.of(message.conversation, sender)
        yield sender, kept_heads(self._store, sender, message.conversation, message.below, message.most)

    def _acknowledge(self, sender: str, message: Acknowledge) -> None:
        if self.accountant is not None:
            self.accountant.acknowledged_soon(sender, message.requests)

    def _end(self, sender: str, message: EndConversation) -> None:
        self._sessions.end(message.conversation, sender)
        if self.accountant is not None:
            self.accountant.settle()


def _all_kinds() -> Kinds:
    """Return every kind of message that passes the gate, with its rule and its handler."""
    return {
        **ALIGNMENT_KINDS,
        **TRAINING_KINDS,
        **IMPORT_KINDS,
        **SEALING_KINDS,
        **SCORING_KINDS,
        **PERMUTED_KINDS,
        **REASONS_KINDS,
        **GROUP_KINDS,
    }


def _with_more(kinds: Kinds, more: Kinds) -> Kinds:
    """Return kinds of messages and further ones; raises ValueError if one of these would take another rule for a kind that has one."""
    replaced = sorted(kind.__name__ for kind in kinds.keys() & more.keys())
    if replaced:
        raise ValueError(f"A Host has a rule for {', '.join(replaced)}; further kinds must be messages of their own.")
    return {**kinds, **more}


def _counts(answer: HeldRecords, n_people: int) -> tuple[int, int, int]:
    """Return the number of people that were answered, have no record, and were refused for a limit."""
    n_records = sum(byte.bit_count() for byte in answer.held)
    spent = sum(byte > 0 for byte in answer.spent)
    return n_records - spent, n_people - n_records, spent
