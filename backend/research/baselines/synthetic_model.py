"""A model that nobody trained, of any shape, and its parties in memory: how do protocols compare on other shapes of models?

Cf. Fed-EINI §V-D, Fig. 8 (instances, features, trees). Set up by the operator of a simulation; no file is read or written. What it
hands out is the Guest's; a Host is reached by messages only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np

from backend.crypto.interface import KeySide
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.data.dictionary import Feature
from backend.data.federation import Federation, Party
from backend.data.label import Label
from backend.data.table import PartyTable
from backend.errors import ParameterError
from backend.protocols.guest import GuestParty
from backend.protocols.guest_runtime import PoolLevel
from backend.protocols.host import HostParty
from backend.protocols.simulation.hosts import SimulatedHosts
from backend.protocols.simulation.simulator import HOST_POOL
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import OfferKey
from backend.protocols.transport.network import Network
from backend.protocols.transport.wire import new_conversation
from backend.research.baselines.host import WALK_KINDS
from backend.store.party_store import memory_store
from backend.trees.ensemble import GuestModel, GuestTree, HostModel, Leaf, NodeKey, Split, SplitRule
from backend.trees.serialization import dump_host

SYNTHETIC = "synthetic"  # stands where the id of a model would
GUEST = "guest"
WEIGHT = 0.1  # spread of leaf weights, as after a learning rate of 0.1
SCORE_BITS = 10  # as in training, if nothing else is asked for
SHAPE_LIMITS = {"trees": range(1, 201), "depth": range(2, 9), "features": range(4, 101), "hosts": range(1, 6)}


@dataclass(frozen=True)
class Shape:
    """How large a synthetic model is.

    Attributes
    ----------
    trees : int
        1 to 200, each complete: ``2**depth`` leaves.
    depth : int
        2 to 8.
    features : int
        4 to 100; half of them, rounded down, are the Hosts', at least one each.
    hosts : int
        1 to 5.

    Raises
    ------
    ParameterError
        A number is out of its range.
    """

    trees: int = 50
    depth: int = 4
    features: int = 20
    hosts: int = 1

    def __post_init__(self) -> None:
        for name, limits in SHAPE_LIMITS.items():
            if (value := getattr(self, name)) not in limits:
                raise ParameterError("synthetic_shape", name=name, got=value, low=limits[0], high=limits[-1])
        if self.features // 2 < self.hosts:
            raise ParameterError("synthetic_features_few", got=self.features, expected=2 * self.hosts)

    @property
    def leaves(self) -> int:
        """Leaves over all trees."""
        return int(self.trees << self.depth)


@dataclass(frozen=True)
class SyntheticModel:
    """A synthetic model's partial models and every party's records, as an operator of a simulation sees them.

    Attributes
    ----------
    tables : dict of str to PartyTable
        Every party holds all records.
    """

    model: GuestModel
    partial_models: dict[str, HostModel] = field(repr=False)
    tables: dict[str, PartyTable] = field(repr=False)


def make_up(shape: Shape, samples: int, seed: int) -> SyntheticModel:
    """Draw owners, cuts, weights and records; the model is the same for every number of `samples`."""
    draw = np.random.default_rng(seed)
    hosts = tuple(f"host{i + 1}" for i in range(shape.hosts))
    features = _features(shape, hosts)
    rules: dict[str, dict[NodeKey, SplitRule]] = {party: {} for party in features}
    trees = tuple(_tree(draw, t, shape.depth, features, rules) for t in range(shape.trees))
    ids = tuple(f"r{i}" for i in range(samples))
    tables = {
        party: PartyTable(party, ids, {f.name: draw.normal(size=samples) for f in features_of_party})
        for party, features_of_party in features.items()
    }
    dictionary = tuple((party, f) for party, features_of_party in features.items() for f in features_of_party)
    model = GuestModel(GUEST, hosts, trees, (0.0,), SCORE_BITS, dictionary, rules[GUEST])
    partial_models = {}
    for h in hosts:
        partial_models[h] = HostModel(h, GUEST, hosts, model.skeletons, rules[h], SYNTHETIC)
    return SyntheticModel(model, partial_models, tables)


def _features(shape: Shape, hosts: tuple[str, ...]) -> dict[str, list[Feature]]:
    """Party → its features; the Hosts' go to one Host after the other."""
    theirs = shape.features // 2
    owners = [GUEST] * (shape.features - theirs) + [hosts[i % len(hosts)] for i in range(theirs)]
    features: dict[str, list[Feature]] = {party: [] for party in (GUEST, *hosts)}
    for owner in owners:
        number = len(features[owner]) + 1
        features[owner].append(Feature(name=f"{owner}_{number}", meaning=f"synthetic feature {number} of {owner}"))
    return features


def _tree(
    draw: np.random.Generator,
    number: int,
    depth: int,
    features: dict[str, list[Feature]],
    rules: dict[str, dict[NodeKey, SplitRule]],
) -> GuestTree:
    """A complete tree: node i leads to 2i + 1 and 2i + 2. Every other split, in a drawn order, is a Host's, so that none is without."""
    count = 2**depth - 1
    turns = [party for host in features if host != GUEST for party in (host, GUEST)]
    nodes: list[Split | Leaf] = []
    for i, owner in enumerate(draw.permutation(np.resize(turns, count)).tolist()):
        feature = features[owner][draw.integers(len(features[owner]))].name
        rule = SplitRule(feature, bool(draw.random() < 0.5), float(draw.normal()))
        rules[owner][number, i] = rule
        nodes.append(Split(owner, feature, 2 * i + 1, 2 * i + 2, rule.default_left, 1.0, 1.0))
    return GuestTree((*nodes, *(Leaf(w, 1.0) for w in (draw.normal(size=count + 1) * WEIGHT).tolist())))


class SyntheticFederation:
    """The parties of a synthetic model while it scores; leaving its ``with`` block stops the Hosts.

    As :class:`backend.protocols.simulation.simulator.FederationRuntime` is for a federation.

    Parameters
    ----------
    key : KeySide
        The Guest's. The Hosts take its length as it is: it was checked where it was made.
    pools : bool
        Whether the Hosts make obfuscators in the background.
    """

    def __init__(self, synthetic: SyntheticModel, key: KeySide, pools: bool) -> None:
        federation = _federation(synthetic.model)
        guest_table = synthetic.tables[GUEST]
        self.guest = GuestParty(federation, lambda: guest_table)
        self._key = key
        self._hosts = synthetic.model.hosts
        self._network = Network()
        hosts = []
        for name, partial_model in synthetic.partial_models.items():
            hosts.append(
                HostParty(
                    name,
                    synthetic.tables[name],
                    federation.party(name).features,
                    memory_store({SYNTHETIC: dump_host(partial_model)}),
                    simulated=True,
                    key_floor=key.bits,
                    pool=HOST_POOL if pools else 0,
                    kinds=WALK_KINDS,
                )
            )
        self._simulated = SimulatedHosts(self._network, hosts)

    def __enter__(self) -> SyntheticFederation:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._simulated.stop()

    def open_session(
        self, hosts: tuple[str, ...], cancelled: Callable[[], bool] = lambda: False, *, counted: bool = False
    ) -> Session:
        """Begin a scoring; nobody counts questions about synthetic people."""
        return Session(self._network.end(self.guest.name), new_conversation(), hosts, cancelled)

    def warm_up(self) -> None:
        """Have every Host start its pool, before the first sample comes."""
        session = self.open_session(self._hosts)
        session.broadcast(OfferKey(session.name, self._key.scheme, self._key.offer()))
        session.close()

    def pools(self) -> tuple[PoolLevel, ...]:
        """Fill level of every party's pool."""
        if isinstance(self._key, PaillierKeySide):
            guest_pool = self._key.obfuscators
        else:
            guest_pool = None
        guest = PoolLevel(
            self.guest.name, guest_pool.ready if guest_pool else 0, guest_pool.target if guest_pool else 0
        )
        return (guest, *(PoolLevel(name, *host.pool_level()) for name, host in self._simulated.hosts.items()))


def _federation(model: GuestModel) -> Federation:
    """The parties as a federation file would name them."""

    def party(name: str) -> Party:
        features = tuple(feature for owner, feature in model.dictionary if owner == name)
        return Party(name=name, title=name, file=f"{name}.csv", id="id", features=features)

    label = Label(column="label", positive="1", meaning="synthetic")
    hosts = tuple(party(h) for h in model.hosts)
    return Federation(name="synthetic", title=SYNTHETIC, label=label, guest=party(model.guest), hosts=hosts)
