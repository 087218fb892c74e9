"""T5: what a Guest reads from one-round inference in the clear, and from Fed-EINI. Plays an honest Guest that keeps what it was sent.

In the forest paper's Alg. 5 every Host sends its comparisons, so that the Guest names the leaf of each tree. Fed-EINI sends one encrypted
score: for the leaves the Guest is left with a guess by how many people went where in training. What the score itself adds is A5.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.attacks.keys import honest
from backend.attacks.result import AttackOutcome, attempt
from backend.attacks.setup import MODEL_ID, PEOPLE, AttackSetup, scene
from backend.crypto.paillier.keys import KEY_BITS_FLOOR
from backend.data.table import PartyTable
from backend.protocols.baselines.comparison import FedEini
from backend.protocols.baselines.guest import GuestPaths, Inference
from backend.protocols.baselines.messages import CandidateLeaves
from backend.protocols.baselines.one_round import OneRound
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.channel import Network
from backend.protocols.transport.message import Message
from backend.protocols.transport.packing import from_bitmap
from backend.trees.compiled import Conjunctions, own_conditions
from backend.trees.ensemble import Leaf
from backend.trees.serialization import load_host


def run(
    seed: int,
    key_bits: int = KEY_BITS_FLOOR,
    people: int = PEOPLE,
    targets: int = 20,
    trees: int = SecureBoostParameters().trees,
) -> AttackOutcome:
    """Name the leaf of every tree for `targets` people from the messages that reached the Guest, where its own columns leave several."""
    stage, key = scene(people, trees), honest(key_bits).guest
    chosen = np.random.default_rng(seed).choice(len(stage.guest.ids), targets, replace=False)
    model = stage.rounded(SecureBoostParameters().score_bits)
    paths = GuestPaths(model)
    reader = Reader(stage, paths, chosen)
    bits: dict[str, float] = {}

    def after(protocol: Inference) -> tuple[int, int]:
        heard, bits[protocol.name] = listen(stage, protocol, reader.people, key_bits)
        return reader.right(reader.read(heard)), int(reader.open.sum())

    fed_eini = FedEini(stage.guest_party(), CompiledGuest(model), paths, key)
    off, on = (attempt(after, p) for p in (OneRound(paths, streaming=False), fed_eini))
    chance = reader.right(reader.read([])) / int(reader.open.sum())
    numbers = {"bits_one_round": bits["one-round-batched"], "bits_fed_eini": bits["fed-eini"]}
    setting = {"key_bits": key_bits, "people": targets, "trees": trees}
    return AttackOutcome(off, on, chance, setting, numbers=numbers)


class Reader:
    """The Guest, and who knows better to check it.

    Attributes
    ----------
    people : PartyTable
        ``n`` of the Guest's records.
    open : ndarray of bool
        ``(n, n_trees)``: trees where the Guest has several candidate leaves.
    """

    def __init__(self, stage: AttackSetup, paths: GuestPaths, chosen: NDArray[np.intp]) -> None:
        model, n = stage.model, len(chosen)
        self.people = stage.guest.take(chosen)
        self._candidates = paths.candidates(self.people.columns, n)
        leaves = [tree.nodes[i] for tree in model.trees for i in tree.leaves]
        self._covers = np.array([leaf.cover for leaf in leaves if isinstance(leaf, Leaf)])
        self._starts = np.cumsum([0, *(len(tree.leaves) for tree in model.trees)])
        rules = load_host(stage.partial_model).rules
        theirs = np.empty_like(self._candidates)
        for rows, kept in Conjunctions(rules, own_conditions(model.skeletons, rules)).blocks(
            stage.host.take(chosen).columns, n
        ):
            theirs[rows] = kept.T
        self._truth = self._likeliest(self._candidates & theirs)
        counts = np.add.reduceat(self._candidates, self._starts[:-1], axis=1, dtype=np.intp)
        self.open = counts > 1

    def read(self, heard: Sequence[Message]) -> NDArray[np.intp]:
        """``(n, n_trees)``: the leaf of each tree, from what was heard and by cover where several are left."""
        left = self._candidates.copy()
        for message in heard:
            if isinstance(message, CandidateLeaves):
                left &= from_bitmap(message.leaves, left.size).reshape(left.shape)
        return self._likeliest(left)

    def right(self, leaves: NDArray[np.intp]) -> int:
        """How many are true, of those that are open."""
        return int((leaves == self._truth)[self.open].sum())

    def _likeliest(self, left: NDArray[np.bool_]) -> NDArray[np.intp]:
        weighted = np.where(left, self._covers, -1.0)
        spans = zip(self._starts[:-1], self._starts[1:], strict=True)
        return np.stack([first + weighted[:, first:last].argmax(axis=1) for first, last in spans], axis=1)


class Eavesdropper(Network):
    """A network that keeps every message to one party, as that party could."""

    def __init__(self, party: str) -> None:
        super().__init__()
        self._party = party
        self.heard: list[Message] = []

    def send(self, sender: str, receiver: str, message: Message) -> None:
        """Deliver, and keep."""
        if receiver == self._party:
            self.heard.append(message)
        super().send(sender, receiver, message)


def listen(stage: AttackSetup, protocol: Inference, people: PartyTable, key_bits: int) -> tuple[list[Message], float]:
    """Score some people; returns what reached the Guest, and the bits a person that the project counts for it."""
    ear = Eavesdropper(stage.guest.party)
    with stage.session(stage.host_party(key_bits=key_bits), ear) as session:
        outcome = protocol.run(MODEL_ID, people, session)
        learned = outcome.learned(session.transcript())[0]
    return ear.heard, float("nan") if learned.bits is None else learned.bits
