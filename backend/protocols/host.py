"""A Host: answers messages with its own columns and thresholds. Never sees a label or a leaf weight, never sends a threshold."""

from __future__ import annotations

import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from backend.crypto.bin_products import BinProducts
from backend.crypto.cipher import Fold, FoldPlan, PairPublicSide, PublicSide
from backend.crypto.engines import open_offer
from backend.crypto.paillier import KEY_BITS_FLOOR
from backend.crypto.pool import Pool
from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import GlassleafError, PartyUnreachable, SecurityError
from backend.protocols.alignment.methods import HostSide, host_side
from backend.protocols.channel import Network
from backend.protocols.inference.answers import HostPaths, HostWalk
from backend.protocols.inference.fed_eini import CompiledHost, host_plan
from backend.protocols.messages import (
    AlignmentStarted,
    AskBinSums,
    AskCandidates,
    AskWalk,
    CandidateLeaves,
    DecisionVectors,
    EncryptedScores,
    EndConversation,
    Gradients,
    HeldRecords,
    HiddenAnswer,
    HiddenIds,
    JointRecords,
    KeepModel,
    Message,
    ModelKept,
    MoreVectors,
    OfferKey,
    PassOn,
    Refusal,
    StartAlignment,
    StartTraining,
    StartWalk,
    TakeSplit,
    to_bitmap,
)
from backend.protocols.training.host_side import HostTraining
from backend.trees.artefact import content_hash, dump_host, load_host, load_skeleton
from backend.trees.ensemble import Columns, HostModel
from backend.trees.folding import Step, fold_structure

_log = logging.getLogger("glassleaf")

KEYS_KEPT = 4  # public keys whose obfuscator pools are kept
SESSIONS_KEPT = 64  # conversations remembered; older ones are dropped
MAX_PIECES = 1 << 14  # messages of one batch


class HostStore(Protocol):
    """Where a Host keeps its halves of models."""

    def put_artefact(self, model_id: str, text: str, content_hash: str) -> None:
        """Store a half."""
        ...

    def artefact(self, model_id: str) -> str:
        """Read a half; raises ModelError where it is unknown or damaged."""
        ...


@dataclass(frozen=True, repr=False)
class _Half:
    """A model as this Host scores with it; `following` is the next Host of the chain, or the Guest."""

    model: HostModel
    step: Step
    compiled: CompiledHost
    plan: FoldPlan
    following: str

    @cached_property
    def paths(self) -> HostPaths:
        """For the protocols that Fed-EINI is compared with."""
        return HostPaths(self.model)


@dataclass(repr=False)
class _Batch:
    """Samples whose decision vectors are coming in."""

    request: DecisionVectors
    half: _Half
    fold: Fold
    missing: int


@dataclass
class _Session:
    """What a Host remembers of one conversation."""

    guest: str
    cipher: PublicSide | None = None
    side: HostSide | None = field(default=None, repr=False)
    rows: NDArray[np.intp] | None = field(default=None, repr=False)
    training: HostTraining | None = None
    played: PartyTable | None = field(default=None, repr=False)
    batch: _Batch | None = None
    walk: HostWalk | None = field(default=None, repr=False)


Answer = Iterator[tuple[str, Message]]


class HostParty:
    """One Host.

    Parameters
    ----------
    name : str
    table : PartyTable
        Its records.
    features : sequence of Feature
    store : HostStore
    simulated : bool
        A simulated Host also answers plain numbers and the protocols that show its choices, and lets the user play its
        records; a real one refuses all three.
    key_floor : int
        Shortest key accepted, bits.
    pool : int
        Obfuscators kept ready per key.
    tables : Path, optional
        Folder where tables for obfuscators are kept between runs.
    products : BinProducts, optional
        Who multiplies ciphertexts in training.
    """

    def __init__(
        self,
        name: str,
        table: PartyTable,
        features: Sequence[Feature],
        store: HostStore,
        *,
        simulated: bool = False,
        key_floor: int = KEY_BITS_FLOOR,
        pool: int = 0,
        tables: Path | None = None,
        products: BinProducts | None = None,
    ) -> None:
        self.name = name
        self._table, self._features, self._store = table, tuple(features), store
        self._simulated, self._key_floor, self._pool = simulated, key_floor, pool
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._tables, self._products = tables, products
        self._ciphers: OrderedDict[tuple[str, bytes], tuple[PublicSide, Pool[Any]]] = OrderedDict()
        self._models: dict[str, _Half] = {}

    def __repr__(self) -> str:
        return f"HostParty({self.name})"

    def serve(self, network: Network) -> None:
        """Answer messages until the mailbox is closed. A message that cannot be answered gets a refusal, never silence."""
        while network.is_up(self.name):
            try:
                letter = network.receive(self.name)
            except SecurityError as error:
                _log.warning("%s: %s", self.name, error)  # not a message at all: there is no conversation to answer in
                continue
            if letter is None:
                break
            sender, message = letter
            try:
                for receiver, answer in self.answer(sender, message):
                    network.send(self.name, receiver, answer)
            except GlassleafError as error:
                self._refuse(network, message, str(error))
            except (
                Exception
            ) as error:  # a fault of ours must not silence the Host; its text may hold data, its type not
                self._refuse(network, message, f"an internal error ({type(error).__name__})")
        for _, pool in self._ciphers.values():
            pool.close()

    def _refuse(self, network: Network, message: Message, reason: str) -> None:
        session = self._sessions.get(message.conversation)
        if session is not None:
            with suppress(PartyUnreachable):  # the Guest has ended the conversation
                network.send(self.name, session.guest, Refusal(message.conversation, reason))

    def play(self, conversation: str, guest: str, table: PartyTable) -> None:
        """Use `table` instead of the Host's records in one conversation (simulation: the uploader plays this Host)."""
        if not self._simulated:
            raise SecurityError("Only a simulated Host's records can be played.")
        self._session(conversation, guest).played = table

    def pool_levels(self) -> tuple[int, int]:
        """Obfuscators ready and wanted, of the key used last."""
        if not self._ciphers:
            return 0, self._pool
        pool = next(reversed(self._ciphers.values()))[1]
        return pool.ready, pool.target

    def answer(self, sender: str, message: Message) -> Answer:
        """Messages that answer `message`, each with its receiver."""
        handlers: dict[type[Message], Callable[[str, Message], Answer]] = {
            OfferKey: self._offer_key,
            StartAlignment: self._start_alignment,
            HiddenIds: self._hidden_ids,
            JointRecords: self._joint_records,
            StartTraining: self._start_training,
            Gradients: self._gradients,
            AskBinSums: self._bin_sums,
            TakeSplit: self._take_split,
            KeepModel: self._keep_model,
            DecisionVectors: self._decision_vectors,
            MoreVectors: self._more_vectors,
            StartWalk: self._start_walk,
            AskWalk: self._ask_walk,
            PassOn: self._pass_on,
            AskCandidates: self._ask_candidates,
            EndConversation: self._end,
        }
        handler = handlers.get(type(message))
        if handler is None:
            raise SecurityError(f"A Host does not answer {type(message).__name__}.")
        return handler(sender, message)

    def _session(self, conversation: str, guest: str = "") -> _Session:
        if conversation not in self._sessions:
            if not guest:
                raise SecurityError("This conversation was not opened with a key; start it again.")
            self._sessions[conversation] = _Session(guest)
            while len(self._sessions) > SESSIONS_KEPT:
                self._sessions.popitem(last=False)
        return self._sessions[conversation]

    def _offer_key(self, sender: str, message: Message) -> Answer:
        offer = cast(OfferKey, message)
        session = self._session(offer.conversation, sender)
        if offer.scheme == "none" and not self._simulated:
            raise SecurityError("Plain numbers were offered; this Host answers encrypted numbers only.")
        session.cipher = self._cipher(offer.scheme, offer.key)
        return iter(())

    def _cipher(self, scheme: str, key: bytes) -> PublicSide:
        if (scheme, key) not in self._ciphers:
            opened = open_offer(scheme, key, self._key_floor, self._pool, self._tables, self._products)
            opened[1].fill()
            self._ciphers[scheme, key] = opened
            while len(self._ciphers) > KEYS_KEPT:
                self._ciphers.popitem(last=False)[1][1].close()
        self._ciphers.move_to_end((scheme, key))
        return self._ciphers[scheme, key][0]

    def _start_alignment(self, sender: str, message: Message) -> Answer:
        start = cast(StartAlignment, message)
        side = host_side(start.method, self._table.ids)
        self._session(message.conversation).side = side
        yield sender, AlignmentStarted(message.conversation, side.records, side.open(start.records, start.opening))

    def _side(self, message: Message) -> HostSide:
        side = self._session(message.conversation).side
        if side is None:
            raise SecurityError("Ids came that belong to no alignment.")
        return side

    def _hidden_ids(self, sender: str, message: Message) -> Answer:
        yield sender, HiddenAnswer(message.conversation, self._side(message).take(cast(HiddenIds, message).piece))

    def _joint_records(self, sender: str, message: Message) -> Answer:
        session = self._session(message.conversation)
        session.rows = self._side(message).rows(cast(JointRecords, message).joint)
        session.side = None
        return iter(())

    def _start_training(self, sender: str, message: Message) -> Answer:
        session = self._session(message.conversation)
        if session.cipher is None:
            raise SecurityError("Training was asked for before a key was offered.")
        if not isinstance(session.cipher, PairPublicSide):
            raise SecurityError(f"Nothing can be trained under the cipher {session.cipher.scheme}; choose paillier.")
        if session.rows is None:
            raise SecurityError("Training was asked for before ids were aligned.")
        session.training = HostTraining(
            self._table, self._features, session.rows, cast(StartTraining, message), session.cipher
        )
        yield sender, session.training.feature_bins(message.conversation)

    def _training(self, message: Message) -> HostTraining:
        training = self._session(message.conversation).training
        if training is None:
            raise SecurityError("This conversation is no training.")
        return training

    def _gradients(self, sender: str, message: Message) -> Answer:
        self._training(message).take_gradients(cast(Gradients, message))
        return iter(())

    def _bin_sums(self, sender: str, message: Message) -> Answer:
        yield sender, self._training(message).bin_sums(cast(AskBinSums, message))

    def _take_split(self, sender: str, message: Message) -> Answer:
        yield sender, self._training(message).take_split(cast(TakeSplit, message))

    def _keep_model(self, sender: str, message: Message) -> Answer:
        keep = cast(KeepModel, message)
        training = self._training(message)
        skeletons = tuple(load_skeleton(forks) for forks in keep.skeletons)
        training.keep_trees(len(skeletons))
        own = {(t, i) for t, s in enumerate(skeletons) for i, fork in s.forks.items() if fork.owner == self.name}
        if own != set(training.rules):
            raise SecurityError("The model's shape does not fit the splits that this Host was asked to keep.")
        model = HostModel(self.name, keep.guest, keep.hosts, skeletons, training.rules, secrets.token_hex(16))
        yield sender, ModelKept(message.conversation, keep.model_id, self._put(model, keep.model_id))

    def _put(self, half: HostModel, model_id: str) -> str:
        text = dump_host(half)
        self._store.put_artefact(model_id, text, content_hash(text))
        self._models.pop(model_id, None)
        return content_hash(text)

    def keep(self, half: HostModel, model_id: str) -> str:
        """Keep a half that its operator brings (simulation: an imported model); returns its hash."""
        if not self._simulated:
            raise SecurityError(
                "Only a simulated Host takes a half from outside; a real Host's operator looks at it first."
            )
        return self._put(half, model_id)

    def _half(self, model_id: str) -> _Half:
        if model_id not in self._models:
            model = load_host(self._store.artefact(model_id))
            folding = fold_structure(model.skeletons, model.guest, model.hosts)
            place = next((i for i, s in enumerate(folding.steps) if s.host == self.name), None)
            if place is None:
                raise SecurityError("This Host owns no split of the model, so it is not asked when somebody is scored.")
            step = folding.steps[place]
            chain = (*(s.host for s in folding.steps), model.guest)
            self._models[model_id] = _Half(
                model, step, CompiledHost(step, model.rules), host_plan(folding, place), chain[place + 1]
            )
        return self._models[model_id]

    def _decision_vectors(self, sender: str, message: Message) -> Answer:
        request = cast(DecisionVectors, message)
        half = self._half(request.model_id)
        session = self._session(request.conversation)
        if session.cipher is None:
            raise SecurityError("Scores were asked for before a key was offered.")
        if request.entries != len(half.step.own):
            raise SecurityError(f"{len(half.step.own)} entries a sample were expected, {request.entries} came.")
        if not 1 <= request.pieces <= MAX_PIECES:
            raise SecurityError(f"A batch of {request.pieces:,} messages was announced; 1 to {MAX_PIECES:,} can be.")
        columns, held = self._records(session, request.ids)
        yield half.model.guest, HeldRecords(request.conversation, to_bitmap(held))
        keep = half.compiled.decide(columns, held)
        session.batch = _Batch(request, half, session.cipher.start_fold(keep, half.plan), request.pieces)
        yield from self._take_piece(session, request.vectors)

    def _records(self, session: _Session, ids: tuple[str, ...]) -> tuple[Columns, NDArray[np.bool_]]:
        """Columns of some samples, and whether a record of each is held; the rows of the others mean nothing."""
        table = session.played if session.played is not None else self._table
        rows = np.fromiter((table.row_of.get(i, -1) for i in ids), dtype=np.intp, count=len(ids))
        held = rows >= 0
        return table.take(np.where(held, rows, 0)).columns if len(table.ids) else {}, held

    def _more_vectors(self, sender: str, message: Message) -> Answer:
        session = self._session(message.conversation)
        if session.batch is None:
            raise SecurityError("A piece of decision vectors came that belongs to no batch.")
        yield from self._take_piece(session, cast(MoreVectors, message).vectors)

    def _take_piece(self, session: _Session, vectors: bytes) -> Answer:
        batch = cast(_Batch, session.batch)
        batch.fold.add(vectors)
        batch.missing -= 1
        if batch.missing:
            return
        session.batch = None
        pieces = list(batch.fold.finish())
        request, half = batch.request, batch.half
        if half.plan.last:
            yield half.following, EncryptedScores(request.conversation, pieces[0])
            return
        n_out, count = half.plan.n_out, len(pieces)
        first = DecisionVectors(request.conversation, request.model_id, request.ids, n_out, count, pieces[0])
        yield half.following, first
        for piece in pieces[1:]:
            yield half.following, MoreVectors(request.conversation, piece)

    def _compared(self, sender: str, request: StartWalk | AskCandidates) -> tuple[_Session, _Half]:
        """Open a conversation of a protocol that Fed-EINI is compared with."""
        session = self._session(request.conversation, sender)
        if not self._simulated:
            raise SecurityError(
                f"{type(request).__name__} was sent: it asks which branches a record takes, in the clear. Only simulated Hosts "
                "answer that, to be compared with Fed-EINI; score with Fed-EINI."
            )
        half = self._half(request.model_id)
        if sender != half.model.guest:
            raise SecurityError("Only the model's Guest can have samples scored.")
        return session, half

    def _start_walk(self, sender: str, message: Message) -> Answer:
        request = cast(StartWalk, message)
        session, half = self._compared(sender, request)
        columns, held = self._records(session, request.ids)
        session.walk = half.paths.start(columns, held)
        yield sender, HeldRecords(request.conversation, to_bitmap(held))

    def _walk(self, message: Message) -> HostWalk:
        walk = self._session(message.conversation).walk
        if walk is None:
            raise SecurityError("Samples came before the walk was begun.")
        return walk

    def _ask_walk(self, sender: str, message: Message) -> Answer:
        if sender != self._session(message.conversation).guest:
            raise SecurityError("Only the Guest may ask where samples go.")
        yield sender, self._walk(message).walked(cast(AskWalk, message))

    def _pass_on(self, sender: str, message: Message) -> Answer:
        yield from self._walk(message).take(sender, cast(PassOn, message))

    def _ask_candidates(self, sender: str, message: Message) -> Answer:
        request = cast(AskCandidates, message)
        session, half = self._compared(sender, request)
        columns, held = self._records(session, request.ids)
        leaves = half.paths.candidates(columns, held)
        yield sender, CandidateLeaves(request.conversation, to_bitmap(held), leaves)

    def _end(self, sender: str, message: Message) -> Answer:
        self._sessions.pop(message.conversation, None)
        return iter(())
