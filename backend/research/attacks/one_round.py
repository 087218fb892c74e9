"""T5: what a Guest reads from one-round inference in the clear, and from Fed-EINI. Plays an honest-but-curious Guest.

In the forest paper's Alg. 5 every Host sends its comparisons, so that the Guest finds the leaf of each tree. Fed-EINI sends one encrypted
score: the Guest can only guess leaves by the covers of training. What the score itself adds is A5.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.crypto.paillier.keys import KEY_BITS_FLOOR
from backend.data.table import PartyTable
from backend.protocols.transport.message import Message
from backend.protocols.transport.network import Network
from backend.protocols.transport.packing import from_bitmap
from backend.research.attacks.keys import honest_keys
from backend.research.attacks.result import AttackOutcome, count
from backend.research.attacks.setup import MODEL_ID, PARAMETERS, PEOPLE, AttackSetup, attack_setup
from backend.research.baselines.comparison import FedEini
from backend.research.baselines.guest import GuestPaths, Inference
from backend.research.baselines.messages import CandidateLeaves
from backend.research.baselines.one_round import OneRound
from backend.trees.ensemble import Leaf


def run(seed: int, key_bits: int = KEY_BITS_FLOOR, people: int = PEOPLE, targets: int = 20) -> AttackOutcome:
    """Find every tree's leaf for `targets` people from the messages to the Guest, where its own columns leave several."""
    setup = attack_setup(people)
    paths = GuestPaths(setup.rounded())
    guesser = LeafGuesser(setup, paths, setup.draw_people(np.random.default_rng(seed), targets))
    bits: dict[str, float] = {}

    def after(protocol: Inference) -> tuple[int, int]:
        received, bits[protocol.name] = listen(setup, protocol, guesser.people, key_bits)
        return guesser.right(received), int(guesser.open.sum())

    fed_eini = FedEini(setup.guest_party(), setup.compiled(), paths, honest_keys(key_bits).guest)
    off, on = (count(after, p) for p in (OneRound(paths, streaming=False), fed_eini))
    chance = guesser.right([]) / int(guesser.open.sum())
    numbers = {"bits_one_round": bits["one-round-batched"], "bits_fed_eini": bits["fed-eini"]}
    setting = {"key_bits": key_bits, "people": targets, "trees": PARAMETERS.trees}
    return AttackOutcome(off, on, chance, setting, numbers=numbers)


class LeafGuesser:
    """The curious Guest, and the true leaves to check it by.

    Attributes
    ----------
    people : PartyTable
        ``n`` of the Guest's records.
    open : ndarray of bool
        ``(n, n_trees)``: trees where the Guest has several candidate leaves.
    """

    def __init__(self, setup: AttackSetup, paths: GuestPaths, rows: NDArray[np.intp]) -> None:
        model = setup.model
        self.people = setup.guest.take(rows)
        self._candidates = paths.candidates(self.people.columns, len(rows))
        leaves = [tree.nodes[i] for tree in model.trees for i in tree.leaves]
        self._covers = np.array([leaf.cover for leaf in leaves if isinstance(leaf, Leaf)])
        self._starts = np.cumsum([0, *(len(tree.leaves) for tree in model.trees)])
        self._truth = self._largest_cover(self._candidates & setup.host_leaves(rows))
        self.open = np.add.reduceat(self._candidates, self._starts[:-1], axis=1, dtype=np.intp) > 1

    def right(self, received: Sequence[Message]) -> int:
        """How many open leaves the Guest finds: from what it received, by cover where several candidates are left."""
        candidates = self._candidates.copy()
        for message in received:
            if isinstance(message, CandidateLeaves):
                candidates &= from_bitmap(message.leaves, candidates.size).reshape(candidates.shape)
        return int((self._largest_cover(candidates) == self._truth)[self.open].sum())

    def _largest_cover(self, candidates: NDArray[np.bool_]) -> NDArray[np.intp]:
        """``(n, n_trees)``: the candidate leaf of each tree that most people reached in training."""
        covers = np.where(candidates, self._covers, -1.0)
        spans = zip(self._starts[:-1], self._starts[1:], strict=True)
        return np.stack([first + covers[:, first:last].argmax(axis=1) for first, last in spans], axis=1)


class Eavesdropper(Network):
    """A network that records every message to one party, as that party could."""

    def __init__(self, party: str) -> None:
        super().__init__()
        self._party = party
        self.received: list[Message] = []

    def send(self, sender: str, receiver: str, message: Message) -> int:
        """Deliver, and record."""
        if receiver == self._party:
            self.received.append(message)
        return super().send(sender, receiver, message)


def listen(setup: AttackSetup, protocol: Inference, people: PartyTable, key_bits: int) -> tuple[list[Message], float]:
    """Score some people; returns what reached the Guest, and how many bits per person that discloses at most."""
    network = Eavesdropper(setup.guest.party)
    with setup.session(setup.host_party(key_bits=key_bits), network) as session:
        outcome = protocol.run(MODEL_ID, people, session)
        learned = outcome.learned(session.transcript())[0]
    return network.received, float("nan") if learned.bits is None else learned.bits
