"""A model of the demo's bank and shopping platform to attack, and both parties served on a network. Plays everybody."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
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
from backend.protocols.host_state import MemoryStore
from backend.protocols.scoring.fed_eini import CompiledGuest, CompiledHost
from backend.protocols.scoring.guest import Scored
from backend.protocols.simulation.hosts import SimulatedHosts
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.channel import Network, Session
from backend.store.query_budget import QueryBudget
from backend.trees.ensemble import GuestModel
from backend.trees.serialization import load_host

PEOPLE = 6000
HOST = "platform"
MODEL_ID = "m-attacked"
EXACT_BITS = 40  # a scale so fine that scores are as good as real numbers
_numbers = itertools.count(1)


@dataclass(frozen=True, eq=False, repr=False)
class AttackSetup:
    """What the attacks on scoring start from.

    Attributes
    ----------
    federation : Federation
    model : GuestModel
        Of default parameters, at :data:`EXACT_BITS`.
    half : str
        The Host's, as it keeps it.
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
        """``(m,)`` random whole numbers whose sums tell sets of entries apart; below 2**44, so that float64 adds them exactly."""
        numbers: NDArray[np.float64] = np.floor(np.random.default_rng(0).random(self.keep.shape[1]) * float(1 << 44))
        return numbers

    def candidates(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """``(len(rows), m)``: entries that the Guest cannot rule out; at the exact scale no leaf weight is 0."""
        _, entries = self.compiled(EXACT_BITS).encode(self.guest.take(rows).columns, len(rows))
        left: NDArray[np.bool_] = entries != 0
        return left

    def rounded(self, score_bits: int) -> GuestModel:
        """The Guest's partial model with weights at another scale."""
        return replace(self.model, score_bits=score_bits)

    def compiled(self, score_bits: int) -> CompiledGuest:
        """The same, ready to score with."""
        return CompiledGuest(self.rounded(score_bits))

    def host_party(
        self,
        *,
        simulated: bool = True,
        key_bits: int = KEY_BITS_FLOOR,
        budget: QueryBudget | None = None,
        dither: float | None = None,
    ) -> HostParty:
        """The Host as it is shipped, with its half and its records; shorter keys than the floor are for tests.

        A simulated one counts questions only where it is given a `budget`, and adds dither only where it is given a width.
        """
        store = MemoryStore()
        store.texts.update(self.kept())
        features = self.federation.party(HOST).features
        floor = min(key_bits, KEY_BITS_FLOOR)
        return HostParty(
            HOST, self.host, features, store, simulated=simulated, key_floor=floor, budget=budget, dither=dither
        )

    def kept(self) -> dict[str, str]:
        """What lies in the Host's store."""
        return {MODEL_ID: self.partial_model}

    def score(
        self, compiled: CompiledGuest, people: PartyTable, key: KeySide, host: HostParty, *, canary: bool = False
    ) -> list[int]:
        """Fed-EINI over the wire, in units."""
        return self.scored(compiled, people, key, host, canary=canary).units

    def scored(
        self, compiled: CompiledGuest, people: PartyTable, key: KeySide, host: HostParty, *, canary: bool = False
    ) -> Scored:
        """The same with all that the Guest gets."""
        with self.session(host) as session:
            return self.guest_party().score(MODEL_ID, compiled, people, key, session, canary=canary)

    def guest_party(self) -> GuestParty:
        """The Guest with its records."""
        return GuestParty(self.federation, self.guest)

    @contextmanager
    def session(self, host: HostParty, network: Network | None = None) -> Iterator[Session]:
        """A conversation of the Guest with the served Host."""
        network = network or Network()
        served = SimulatedHosts(network, [host])
        session = Session(network, self.guest.party, f"attack-{next(_numbers)}", (HOST,))
        try:
            yield session
        finally:
            session.close()
            served.stop()


@lru_cache(maxsize=2)
def scene(people: int = PEOPLE, trees: int = SecureBoostParameters().trees) -> AttackSetup:
    """Make up the demo's people and train, with plaintext, since training is not attacked here.

    Parameters
    ----------
    people : int
        At the bank; the platform holds nearly all of them.
    trees : int
    """
    with tempfile.TemporaryDirectory(prefix="glassleaf-attacks-") as folder:
        federation = write_demo(Path(folder), rows=people)
        bank = federation.guest.name
        tables = {name: read_table(federation, name) for name in (bank, HOST)}
        labels = read_labels(federation)
    network, store = Network(), MemoryStore()
    party = HostParty(HOST, tables[HOST], federation.party(HOST).features, store, simulated=True)
    served = SimulatedHosts(network, [party])
    session = Session(network, bank, "training", (HOST,))
    parameters = SecureBoostParameters(trees=trees, cipher="none")
    try:
        trained = GuestParty(federation, tables[bank]).train(labels, parameters, PlainKeySide(), session)
    finally:
        session.close()
        served.stop()
    partial_model = store.texts[trained.model_id]
    held = [i for i, name in enumerate(tables[bank].ids) if name in tables[HOST].row_of]
    guest = tables[bank].take(np.array(held, dtype=np.intp))
    host = tables[HOST].take(np.array([tables[HOST].row_of[i] for i in guest.ids], dtype=np.intp))
    model = replace(trained.model, score_bits=EXACT_BITS)
    step = CompiledGuest(model).folding.steps[0]
    keep = CompiledHost(step, load_host(partial_model).rules).decide(host.columns, np.ones(len(held), dtype=bool))
    return AttackSetup(federation, model, partial_model, guest, host, labels[held], np.ascontiguousarray(keep))
