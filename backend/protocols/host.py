"""A Host: answers messages with its own columns and thresholds. Never sees a label or a leaf weight, never sends a threshold."""

from __future__ import annotations

import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np

from backend.crypto.cipher import PublicSide
from backend.crypto.paillier import KEY_BITS_FLOOR, PaillierPublicSide, PublicKey
from backend.crypto.plain import PlainPublicSide
from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import GlassleafError, PartyUnreachable, SecurityError
from backend.protocols.channel import Network
from backend.protocols.inference.fed_eini import host_decision_vectors, host_plan
from backend.protocols.messages import (
    AlignIds,
    AskBinSums,
    DecisionVectors,
    EncryptedScores,
    EndConversation,
    Gradients,
    HeldIds,
    HeldRecords,
    KeepModel,
    Message,
    ModelKept,
    OfferKey,
    Refusal,
    StartTraining,
    TakeSplit,
    to_bitmap,
)
from backend.protocols.training.host_side import HostTraining
from backend.trees.artefact import content_hash, dump_host, load_host, load_skeleton
from backend.trees.ensemble import HostModel
from backend.trees.folding import Folding, fold_structure

_log = logging.getLogger("glassleaf")

KEYS_KEPT = 4  # public keys whose obfuscator pools are kept
SESSIONS_KEPT = 64  # conversations remembered; older ones are dropped


class HostStore(Protocol):
    """Where a Host keeps its halves of models."""

    def put_artefact(self, model_id: str, text: str, content_hash: str) -> None:
        """Store a half."""
        ...

    def artefact(self, model_id: str) -> str:
        """Read a half; raises ModelError where it is unknown or damaged."""
        ...


@dataclass
class _Session:
    """What a Host remembers of one conversation."""

    guest: str
    cipher: PublicSide | None = None
    ids: tuple[str, ...] = ()
    training: HostTraining | None = None
    played: PartyTable | None = field(default=None, repr=False)


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
        A simulated Host also answers plain numbers and lets the user play its records; a real one refuses both.
    key_floor : int
        Shortest key accepted, bits.
    pool : int
        Obfuscators kept ready per key.
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
    ) -> None:
        self.name = name
        self._table, self._features, self._store = table, tuple(features), store
        self._simulated, self._key_floor, self._pool = simulated, key_floor, pool
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._ciphers: OrderedDict[bytes, PaillierPublicSide] = OrderedDict()
        self._models: dict[str, tuple[HostModel, Folding]] = {}

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
        for cipher in self._ciphers.values():
            cipher.obfuscators.close()

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
        pool = next(reversed(self._ciphers.values())).obfuscators
        return pool.ready, pool.target

    def answer(self, sender: str, message: Message) -> Answer:
        """Messages that answer `message`, each with its receiver."""
        handlers: dict[type[Message], Callable[[str, Message], Answer]] = {
            OfferKey: self._offer_key,
            AlignIds: self._align,
            StartTraining: self._start_training,
            Gradients: self._gradients,
            AskBinSums: self._bin_sums,
            TakeSplit: self._take_split,
            KeepModel: self._keep_model,
            DecisionVectors: self._decision_vectors,
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
        if offer.scheme == "none":
            if not self._simulated:
                raise SecurityError("Plain numbers were offered; this Host answers encrypted numbers only.")
            session.cipher = PlainPublicSide()
        elif offer.scheme == "paillier":
            session.cipher = self._cipher(offer.key)
        else:
            raise SecurityError(f"The cipher {offer.scheme!r} is not known; choose paillier.")
        return iter(())

    def _cipher(self, key: bytes) -> PaillierPublicSide:
        if key not in self._ciphers:
            cipher = PaillierPublicSide(PublicKey.from_bytes(key, self._key_floor), self._pool)
            cipher.obfuscators.fill()
            self._ciphers[key] = cipher
            while len(self._ciphers) > KEYS_KEPT:
                self._ciphers.popitem(last=False)[1].obfuscators.close()
        self._ciphers.move_to_end(key)
        return self._ciphers[key]

    def _align(self, sender: str, message: Message) -> Answer:
        ids = cast(AlignIds, message).ids
        self._session(message.conversation).ids = ids
        held = np.fromiter((i in self._table.row_of for i in ids), dtype=bool, count=len(ids))
        yield sender, HeldIds(message.conversation, to_bitmap(held))

    def _start_training(self, sender: str, message: Message) -> Answer:
        session = self._session(message.conversation)
        if session.cipher is None:
            raise SecurityError("Training was asked for before a key was offered.")
        session.training = HostTraining(
            self._table, self._features, session.ids, cast(StartTraining, message), session.cipher
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
        text = dump_host(model)
        self._store.put_artefact(keep.model_id, text, content_hash(text))
        yield sender, ModelKept(message.conversation, keep.model_id, content_hash(text))

    def _model(self, model_id: str) -> tuple[HostModel, Folding]:
        if model_id not in self._models:
            model = load_host(self._store.artefact(model_id))
            self._models[model_id] = model, fold_structure(model.skeletons, model.guest, model.hosts)
        return self._models[model_id]

    def _decision_vectors(self, sender: str, message: Message) -> Answer:
        request = cast(DecisionVectors, message)
        model, folding = self._model(request.model_id)
        session = self._session(request.conversation)
        if session.cipher is None:
            raise SecurityError("Scores were asked for before a key was offered.")
        place = next(i for i, s in enumerate(folding.steps) if s.host == self.name)
        step = folding.steps[place]
        if request.entries != len(step.own):
            raise SecurityError(f"{len(step.own)} entries a sample were expected, {request.entries} came.")
        batch = session.cipher.load(request.vectors, len(request.ids), request.entries)
        table = session.played if session.played is not None else self._table
        rows = np.fromiter((table.row_of.get(i, -1) for i in request.ids), dtype=np.intp, count=len(request.ids))
        held = rows >= 0
        yield model.guest, HeldRecords(request.conversation, to_bitmap(held))
        keep = host_decision_vectors(
            step, model.rules, table.take(np.where(held, rows, 0)).columns if len(table.ids) else {}, held
        )
        folded = session.cipher.fold(batch, keep, host_plan(step))
        if place + 1 == len(folding.steps):
            yield model.guest, EncryptedScores(request.conversation, folded)
        else:
            yield (
                folding.steps[place + 1].host,
                DecisionVectors(request.conversation, request.model_id, request.ids, step.n_out, folded),
            )

    def _end(self, sender: str, message: Message) -> Answer:
        self._sessions.pop(message.conversation, None)
        return iter(())
