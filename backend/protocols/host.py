"""A Host: answers messages with its own columns and thresholds. Never sees a label or a leaf weight, never sends a threshold."""

from __future__ import annotations

import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
from backend.protocols.audit import HeadsInMemory, HeadStore, empty, newer
from backend.protocols.channel import Network
from backend.protocols.group_host import HostGroups
from backend.protocols.inference.answers import HostPaths, HostWalk
from backend.protocols.inference.fed_eini import CompiledHost, host_plan
from backend.protocols.messages import (
    AlignmentStarted,
    AskAuditHead,
    AskBinSums,
    AskCandidates,
    AskGroupPairs,
    AskGroupSums,
    AskWalk,
    AuditHead,
    CandidateLeaves,
    DecisionVectors,
    EncryptedScores,
    EndConversation,
    Gradients,
    GroupPairs,
    HeldRecords,
    HiddenAnswer,
    HiddenIds,
    JointRecords,
    KeepAuditHead,
    KeepModel,
    Message,
    ModelKept,
    MoreVectors,
    OfferKey,
    PassOn,
    Refusal,
    StartAlignment,
    StartRanks,
    StartTraining,
    StartWalk,
    TakeRankSplits,
    TakeSplit,
    to_bitmap,
)
from backend.protocols.training.host_side import HostTraining
from backend.protocols.training.opboost.host_side import HostRanks, NoisyColumns
from backend.store.query_budget import QueryBudget
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
    training: HostTraining | HostRanks | None = None
    groups: HostGroups | None = None
    played: PartyTable | None = field(default=None, repr=False)
    kept: bool = False
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
    budget : QueryBudget, optional
        How often it answers about a person and model. Without one, a simulated Host does not count, a real one counts in memory.
    heads : HeadStore, optional
        Where it keeps the head of the Guest's audit log; in memory by default.
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
        budget: QueryBudget | None = None,
        heads: HeadStore | None = None,
    ) -> None:
        self.name = name
        self._heads = heads or HeadsInMemory()
        self._table, self._features, self._store = table, tuple(features), store
        self._simulated, self._key_floor, self._pool = simulated, key_floor, pool
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._tables, self._products = tables, products
        self._budget = budget if budget is not None or simulated else QueryBudget()
        self._uncounted: set[str] = set()  # conversations
        self._noisy = NoisyColumns(table, self._features)
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
        if self._budget is not None:
            self._budget.close()

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

    def leave_uncounted(self, conversation: str) -> None:
        """Answer one conversation outside the budget (simulation: the operator measures a model or compares protocols)."""
        if not self._simulated:
            raise SecurityError("Only a simulated Host answers without counting; a real one counts every question.")
        self._uncounted.add(conversation)

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
            StartRanks: self._start_ranks,
            TakeRankSplits: self._take_rank_splits,
            KeepModel: self._keep_model,
            DecisionVectors: self._decision_vectors,
            MoreVectors: self._more_vectors,
            StartWalk: self._start_walk,
            AskWalk: self._ask_walk,
            PassOn: self._pass_on,
            AskCandidates: self._ask_candidates,
            GroupPairs: self._group_pairs,
            AskGroupSums: self._group_sums,
            AskGroupPairs: self._ask_group_pairs,
            KeepAuditHead: self._keep_audit_head,
            AskAuditHead: self._ask_audit_head,
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
        self._session(message.conversation, sender).side = side
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

    def _training(self, message: Message) -> HostTraining | HostRanks:
        training = self._session(message.conversation).training
        if training is None:
            raise SecurityError("This conversation is no training.")
        return training

    def _summing(self, message: Message) -> HostTraining:
        training = self._training(message)
        if not isinstance(training, HostTraining):
            raise SecurityError("This training is one on ranks; no sums are made in it.")
        return training

    def _start_ranks(self, sender: str, message: Message) -> Answer:
        session = self._session(message.conversation)
        if session.rows is None:
            raise SecurityError("Ranks were asked for before ids were aligned.")
        session.training = ranks = HostRanks(self._noisy, session.rows, cast(StartRanks, message))
        yield sender, ranks.ranks(message.conversation)

    def _take_rank_splits(self, sender: str, message: Message) -> Answer:
        training = self._training(message)
        if not isinstance(training, HostRanks):
            raise SecurityError("This training is none on ranks; its splits come one by one.")
        training.take_splits(cast(TakeRankSplits, message))
        return iter(())

    def _gradients(self, sender: str, message: Message) -> Answer:
        self._summing(message).take_gradients(cast(Gradients, message))
        return iter(())

    def _bin_sums(self, sender: str, message: Message) -> Answer:
        yield sender, self._summing(message).bin_sums(cast(AskBinSums, message))

    def _take_split(self, sender: str, message: Message) -> Answer:
        yield sender, self._summing(message).take_split(cast(TakeSplit, message))

    def _keep_model(self, sender: str, message: Message) -> Answer:
        keep = cast(KeepModel, message)
        training, session = self._training(message), self._session(message.conversation)
        if session.kept:  # fewer of the same trees under another name would be a way round the budget, tree by tree
            raise SecurityError(
                "This training's model is kept already; one training gives one model. Train again for another."
            )
        skeletons = tuple(load_skeleton(forks) for forks in keep.skeletons)
        training.keep_trees(len(skeletons))
        own = {(t, i) for t, s in enumerate(skeletons) for i, fork in s.forks.items() if fork.owner == self.name}
        if own != set(training.rules):
            raise SecurityError("The model's shape does not fit the splits that this Host was asked to keep.")
        model = HostModel(self.name, keep.guest, keep.hosts, skeletons, training.rules, secrets.token_hex(16))
        session.kept = True
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
        spent = self._spent(session, request, held)
        yield half.model.guest, self._held_records(request.conversation, held, spent)
        keep, plan = half.compiled.decide(columns, held), half.plan
        if spent.any():  # nothing of such a person goes on, not even what carries other Hosts' conditions alone
            keep = np.where(spent, False, keep.T | ~np.array(plan.own, dtype=bool)[:, None]).T
            plan = replace(plan, own=(True,) * len(plan.own))
        session.batch = _Batch(request, half, session.cipher.start_fold(keep, plan), request.pieces)
        yield from self._take_piece(session, request.vectors)

    def _spent(self, session: _Session, request: DecisionVectors, held: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whose budget is spent; the others' questions are counted, unless there is no record or the user plays this Host."""
        spent = np.zeros(len(held), dtype=bool)
        if self._budget is not None and request.conversation not in self._uncounted and session.played is None:
            asked = np.flatnonzero(held)
            spent[asked] = self._budget.take(request.model_id, [request.ids[i] for i in asked])
        return spent

    def _held_records(self, conversation: str, held: NDArray[np.bool_], spent: NDArray[np.bool_]) -> HeldRecords:
        if self._budget is None or not spent.any():
            return HeldRecords(conversation, to_bitmap(held))
        return HeldRecords(conversation, to_bitmap(held), to_bitmap(spent), self._budget.limit, self._budget.days)

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

    def _keep_audit_head(self, sender: str, message: Message) -> Answer:
        self._session(message.conversation, sender)
        head = newer(self._heads.audit_head(sender), cast(KeepAuditHead, message))
        self._heads.put_audit_head(sender, head)
        yield sender, AuditHead(message.conversation, head.number, head.hash)

    def _ask_audit_head(self, sender: str, message: Message) -> Answer:
        self._session(message.conversation, sender)
        head = self._heads.audit_head(sender) or empty()
        yield sender, AuditHead(message.conversation, head.number, head.hash)

    def _groups(self, message: Message) -> HostGroups:
        session = self._session(message.conversation)
        if session.rows is None or not isinstance(session.cipher, PairPublicSide):
            raise SecurityError("Groups were asked about before ids were aligned under a key that can add up pairs.")
        if session.groups is None:
            session.groups = HostGroups(self._table, self._features, session.rows, session.cipher)
        return session.groups

    def _group_pairs(self, sender: str, message: Message) -> Answer:
        self._groups(message).take_pairs(sender, cast(GroupPairs, message))
        return iter(())

    def _group_sums(self, sender: str, message: Message) -> Answer:
        if sender != self._session(message.conversation).guest:
            raise SecurityError("Only the Guest may ask for sums by group.")
        yield sender, self._groups(message).sums(cast(AskGroupSums, message))

    def _ask_group_pairs(self, sender: str, message: Message) -> Answer:
        asked, groups = cast(AskGroupPairs, message), self._groups(message)
        if sender != self._session(message.conversation).guest:
            raise SecurityError("Only the Guest may ask for encrypted groups.")
        if sender in asked.receivers:
            raise SecurityError("Encrypted groups were to be sent to the Guest, who could read them; that was refused.")
        pairs, sent = groups.pairs(asked)
        for receiver in asked.receivers:
            if receiver == self.name:
                groups.take_pairs(self.name, pairs)
            else:
                yield receiver, pairs
        yield sender, sent

    def _end(self, sender: str, message: Message) -> Answer:
        self._sessions.pop(message.conversation, None)
        self._uncounted.discard(message.conversation)
        return iter(())
