"""Real Hosts on a real network, for a world of :mod:`worlds`."""

from contextlib import contextmanager
from pathlib import Path

from worlds import GUEST, World

from backend.data.federation import Federation, Party
from backend.data.label import Label
from backend.protocols.guest import GuestParty
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.host import HostParty
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.simulation.hosts import SimulatedHosts
from backend.protocols.simulation.simulator import SimulatedFederation
from backend.protocols.transport.channel import Session
from backend.protocols.transport.codec import encode
from backend.protocols.transport.network import Network
from backend.research.baselines.host import WALK_KINDS
from backend.store.party_store import memory_store
from backend.trees.serialization import dump_host

MODEL_ID = "m-test"


def federation_of(world: World) -> Federation:
    def party(name):
        features = tuple(f for p, f in world.model.dictionary if p == name)
        return Party(name=name, title=name, file=f"{name}.csv", id="id", features=features)

    return Federation(
        name="world",
        title="World",
        label=Label(column="label", positive="1", meaning="default"),
        guest=party(GUEST),
        hosts=tuple(party(h) for h in world.model.hosts),
    )


@contextmanager
def running(
    world: World, *, simulated: bool = True, tap: list | None = None, options=None, network: Network | None = None
):
    """A Guest, its network and served Hosts that hold their partial models.

    `tap` collects (sender, receiver, kind, bytes); `options` are more arguments of a Host, by its name.
    """
    federation = federation_of(world)
    network = network or (Network() if tap is None else TappedNetwork(tap))
    hosts = []
    kinds = WALK_KINDS if simulated else {}
    for name, partial_model in world.hosts.items():
        store = memory_store()
        text = dump_host(partial_model)
        store.put_artefact(MODEL_ID, text)
        features = federation.party(name).features
        more = (options or {}).get(name, {})
        more = {"simulated": simulated, "key_floor": 512, "kinds": kinds, **more}
        hosts.append(HostParty(name, world.tables[name], features, store, **more))
    served = SimulatedHosts(network, hosts)
    try:
        own = world.tables[GUEST]  # a Guest that reached it through the world would reach what is the Hosts', too
        yield GuestParty(federation, lambda: own), network, served
    finally:
        served.stop()


def tapped_parties(federation: Federation, home: Path, tap: list) -> tuple[GuestRuntime, SimulatedFederation]:
    """A Guest and its simulated Hosts, whose bytes `tap` collects."""
    network = TappedNetwork(tap)
    hosts = SimulatedFederation(federation, home, network, key_floor=512, pools=False)
    return GuestRuntime(federation, home, network.end(federation.guest.name), hosts, key_floor=512, pools=False), hosts


class TappedNetwork(Network):
    """A network whose bytes somebody writes down."""

    def __init__(self, tap: list) -> None:
        super().__init__()
        self._tap = tap

    def send(self, sender, receiver, message):
        self._tap.append((sender, receiver, type(message).__name__, encode(message)))
        return super().send(sender, receiver, message)


def score(world: World, guest, network, key, name="c", **kwargs):
    """Score the Guest's own records; returns (scored, transcript)."""
    session = Session(network.end(GUEST), name, world.model.hosts, timeout=120)
    try:
        scored = guest.score(MODEL_ID, CompiledGuest(world.model), world.tables[GUEST], key, session, **kwargs)
    finally:
        transcript = session.close()
    return scored, transcript
