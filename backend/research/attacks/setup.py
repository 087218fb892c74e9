"""What attacks on scoring start from: a model of the demo's bank and shopping platform, both served on a network. Plays everybody."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import KeySide
from backend.crypto.paillier.keys import KEY_BITS_FLOOR
from backend.crypto.plain import PlainKeySide
from backend.data.demo import write_demo
from backend.data.federation import Federation
from backend.data.table import PartyTable, read_labels, read_table
from backend.protocols.guest import GuestParty
from backend.protocols.host import HostParty
from backend.protocols.scoring.fed_eini import CompiledGuest, CompiledHost
from backend.protocols.scoring.guest import Scored
from backend.protocols.simulation.hosts import SimulatedHosts
from backend.protocols.training.guest import Trained
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.channel import Session
from backend.protocols.transport.network import Network
from backend.protocols.transport.wire import new_conversation
from backend.research.baselines.host import WALK_KINDS
from backend.store.accountant import Accountant
from backend.store.party_store import PartyStore, memory_store
from backend.trees.compiled import Conjunctions, own_conditions
from backend.trees.ensemble import GuestModel
from backend.trees.serialization import load_host

PARAMETERS = SecureBoostParameters(cipher="none")  # the defaults; training itself is not attacked here
PEOPLE = 6000
HOST = "platform"
MODEL_ID = "m-attacked"
EXACT_BITS = 40  # a scale so fine that scores are as good as real numbers


@dataclass(frozen=True, eq=False, repr=False)
class AttackSetup:
    """A trained model with the records of both parties.

    Attributes
    ----------
    model : GuestModel
        Of default parameters, at :data:`EXACT_BITS`.
    partial_model : str
        The Host's, as its store keeps it.
    guest, host : PartyTable
        ``n`` people that both hold, row by row the same ones.
    labels : ndarray of float64
        ``(n,)``: 0/1.
    keep : ndarray of bool
        ``(n, m)``: the Host's decision vector of each person (Fed-EINI eq. 9).
    """

    federation: Federation
    model: GuestModel
    partial_model: str
    guest: PartyTable
    host: PartyTable
    labels: NDArray[np.float64]
    keep: NDArray[np.bool_]

    @cached_property
    def codes(self) -> NDArray[np.float64]:
        """``(m,)`` random integers whose sums identify sets of entries; below 2**44, so that float64 adds them exactly."""
        numbers: NDArray[np.float64] = np.floor(np.random.default_rng(0).random(self.keep.shape[1]) * float(1 << 44))
        return numbers

    def candidates(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """``(len(rows), m)``: entries that the Guest cannot rule out; at :data:`EXACT_BITS` no leaf weight rounds to 0."""
        _, entries = self.compiled(EXACT_BITS).encode(self.guest.take(rows).columns, len(rows))
        candidates: NDArray[np.bool_] = entries != 0
        return candidates

    def host_leaves(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which leaves the Host's splits leave open, ``(len(rows), n_leaves)``."""
        rules = load_host(self.partial_model).rules
        conjunctions = Conjunctions(rules, own_conditions(self.model.skeletons, rules))
        leaves = np.empty((len(rows), self.model.n_leaves), dtype=bool)
        for block, open_leaves in conjunctions.blocks(self.host.take(rows).columns, len(rows)):
            leaves[block] = open_leaves.T
        return leaves

    def draw_people(self, draw: np.random.Generator, n: int) -> NDArray[np.intp]:
        """``(n,)`` rows of different people."""
        return draw.choice(len(self.guest.ids), n, replace=False)

    def rounded(self, score_bits: int = PARAMETERS.score_bits) -> GuestModel:
        """The Guest's partial model with weights at a coarser scale, by default the shipped one."""
        return replace(self.model, score_bits=score_bits)

    def compiled(self, score_bits: int = PARAMETERS.score_bits) -> CompiledGuest:
        """The same, ready to score with."""
        return CompiledGuest(self.rounded(score_bits))

    def host_party(
        self,
        *,
        simulated: bool = True,
        key_bits: int = KEY_BITS_FLOOR,
        accountant: Accountant | None = None,
        dither: float | None = None,
    ) -> HostParty:
        """The Host as it is shipped, with its partial model and its records; keys below the floor are for tests.

        A simulated one counts questions only if it is given an `accountant`, and adds dither only if it is given a width.
        """
        return HostParty(
            HOST,
            self.host,
            self.federation.party(HOST).features,
            self.host_store(),
            simulated=simulated,
            key_floor=min(key_bits, KEY_BITS_FLOOR),
            accountant=accountant,
            dither=dither,
            approvals="none",
            kinds=WALK_KINDS if simulated else {},
        )

    def host_store(self) -> PartyStore:
        """A store of the Host with its partial model."""
        return memory_store({MODEL_ID: self.partial_model})

    def score(
        self, compiled: CompiledGuest, people: PartyTable, key: KeySide, host: HostParty, *, canary: bool = False
    ) -> Scored:
        """Fed-EINI over the wire."""
        with self.session(host) as session:
            return self.guest_party().score(MODEL_ID, compiled, people, key, session, canary=canary)

    def guest_party(self) -> GuestParty:
        """The Guest with its records."""
        table = self.guest
        return GuestParty(self.federation, lambda: table)

    @contextmanager
    def session(self, host: HostParty, network: Network | None = None) -> Iterator[Session]:
        """A session of the Guest with the served Host."""
        with _served(host, network or Network(), self.guest.party) as session:
            yield session


@contextmanager
def _served(host: HostParty, network: Network, guest: str) -> Iterator[Session]:
    served = SimulatedHosts(network, [host])
    session = Session(network.end(guest), new_conversation(), (HOST,))
    try:
        yield session
    finally:
        session.close()
        served.stop()


@lru_cache(maxsize=2)
def synthetic_people(people: int) -> tuple[Federation, dict[str, PartyTable], NDArray[np.float64]]:
    """The demo's federation, the tables of its bank and its shopping platform, and labels in the bank's order."""
    with tempfile.TemporaryDirectory(prefix="glassleaf-attacks-") as folder:
        federation = write_demo(Path(folder), rows=people)
        tables = {name: read_table(federation, name) for name in (federation.guest.name, HOST)}
        return federation, tables, read_labels(federation)


def train(
    federation: Federation,
    tables: Mapping[str, PartyTable],
    labels: NDArray[np.float64],
    parameters: SecureBoostParameters,
    network: Network,
    store: PartyStore,
) -> Trained:
    """Train on plaintext over `network` with the one Host :data:`HOST`, which keeps its partial model in `store`."""
    guest = federation.guest.name
    party = HostParty(HOST, tables[HOST], federation.party(HOST).features, store, simulated=True)
    guest_table = tables[guest]
    with _served(party, network, guest) as session:
        return GuestParty(federation, lambda: guest_table).train(labels, parameters, PlainKeySide(), session)


@lru_cache(maxsize=2)
def attack_setup(people: int = PEOPLE, trees: int = PARAMETERS.trees) -> AttackSetup:
    """Draw the demo's synthetic people and train on plaintext.

    Parameters
    ----------
    people : int
        The number of people at the bank; the platform has a record of nearly all of them.
    """
    federation, tables, labels = synthetic_people(people)
    bank = federation.guest.name
    store = memory_store()
    trained = train(federation, tables, labels, replace(PARAMETERS, trees=trees), Network(), store)
    partial_model = store.artefact(trained.model_id)
    shared_rows = [i for i, name in enumerate(tables[bank].ids) if name in tables[HOST].row_of]
    guest = tables[bank].take(np.array(shared_rows, dtype=np.intp))
    host = tables[HOST].take(np.array([tables[HOST].row_of[i] for i in guest.ids], dtype=np.intp))
    model = replace(trained.model, score_bits=EXACT_BITS)
    step = CompiledGuest(model).folding.steps[0]
    keep = CompiledHost(step, load_host(partial_model).rules).decide(
        host.columns, np.ones(len(shared_rows), dtype=bool)
    )
    return AttackSetup(federation, model, partial_model, guest, host, labels[shared_rows], np.ascontiguousarray(keep))
