"""The trust boundary in code: what a Guest object can reach, what passes the wire, what a Host can reach."""

import gc
import types

import numpy as np
from actors import running, score, tapped_parties
from worlds import GUEST, random_world

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.data.demo import write_demo
from backend.data.table import PartyTable, read_table
from backend.protocols.host import HostParty
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores
from backend.protocols.simulation.simulator import FederationRuntime
from backend.protocols.training.host_splits import HostTraining
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.channel import Session
from backend.protocols.transport.codec import decode
from backend.store.database import Database
from backend.store.party_store import PartyStore
from backend.trees.ensemble import GuestModel, HostModel
from backend.trees.folding import fold_structure
from backend.trees.serialization import load_host


def reachable(*roots):
    """Every object that can be reached from `roots` without going through code (modules, classes, functions' globals)."""
    seen, stack = {}, list(roots)
    while stack:
        thing = stack.pop()
        if id(thing) in seen or isinstance(thing, (type, types.ModuleType, types.BuiltinFunctionType)):
            continue
        seen[id(thing)] = thing
        if isinstance(thing, types.FunctionType):
            stack += [*(thing.__closure__ or ()), *(thing.__defaults__ or ())]
        else:
            stack += gc.get_referents(thing)
    return list(seen.values())


def test_nothing_of_a_host_can_be_reached_from_the_guest_its_network_or_its_results(secret_key):
    world = random_world(1, 2, n=3)
    with running(world) as (guest, network, _):
        session = Session(network.end(GUEST), "c", world.model.hosts)
        scored = guest.score(
            "m-test", CompiledGuest(world.model), world.tables[GUEST], PaillierKeySide(secret_key), session
        )
        found = reachable(guest, network, session, scored, world.model)
        assert any(isinstance(thing, GuestModel) for thing in found)
        assert not any(isinstance(thing, (HostParty, HostModel, HostTraining)) for thing in found)
        host_columns = [id(c) for h in world.hosts for c in world.tables[h].columns.values()]
        assert not {id(thing) for thing in found} & set(host_columns)


def test_no_label_weight_or_secret_key_can_be_reached_from_a_host(tmp_path, secret_key):
    runtime = FederationRuntime(write_demo(tmp_path, rows=200), tmp_path / "parties", key_floor=512, pools=False)
    session = runtime.open_session(runtime.hosts)
    runtime.guest.train(
        runtime.labels(), SecureBoostParameters(trees=2, depth=2, bins=6), PaillierKeySide(secret_key), session
    )
    session.close()
    for host in runtime._simulated.hosts.values():
        found = reachable(host)
        assert any(isinstance(thing, PartyTable) for thing in found)
        assert not any(isinstance(thing, (GuestModel, PaillierKeySide)) for thing in found)
        assert not any(isinstance(thing, int) and thing in (int(secret_key.p), int(secret_key.q)) for thing in found)
    runtime.close()


def test_the_wire_carries_no_threshold_no_host_value_no_weight_and_no_label(tmp_path, secret_key):
    federation = write_demo(tmp_path, rows=200)
    tap = []
    runtime, simulated = tapped_parties(federation, tmp_path / "parties", tap)
    hosts = list(simulated.served.hosts.values())
    key = PaillierKeySide(secret_key)
    session = runtime.open_session(runtime.hosts)
    trained = runtime.guest.train(runtime.labels(), SecureBoostParameters(trees=3, depth=3, bins=8), key, session)
    session.close()
    session = runtime.open_session(runtime.hosts)
    runtime.guest.score(trained.model_id, CompiledGuest(trained.model), runtime.table.take(np.arange(5)), key, session)
    session.close()
    assert len(tap) > 30
    to_guest = b"".join(blob for _, receiver, _, blob in tap if receiver == "bank")
    to_hosts = b"".join(blob for _, receiver, _, blob in tap if receiver != "bank")
    stored = [
        load_host(PartyStore(Database(tmp_path / "parties" / h)).artefact(trained.model_id)) for h in runtime.hosts
    ]
    thresholds = [r.threshold for kept in stored for r in kept.rules.values() if r.threshold is not None]
    assert len(thresholds) > 3
    for value in thresholds:
        assert np.float64(value).tobytes() not in to_guest and np.float64(value).tobytes()[::-1] not in to_guest
    distinct = {
        v
        for h in hosts
        for c in read_table(federation, h.name).columns.values()
        if c.dtype != object
        for v in c[~np.isnan(c)]
        if v % 1
    }
    for value in distinct:
        packed = np.float64(value).tobytes()
        assert packed not in to_guest and packed[::-1] not in to_guest
    weights = [n.weight for t in trained.model.trees for n in t.nodes if hasattr(n, "weight")]
    for weight in weights:
        assert np.float64(weight).tobytes() not in to_hosts and np.float64(weight).tobytes()[::-1] not in to_hosts
    runtime.close()


def test_no_ciphertext_ever_passes_the_wire_twice(secret_key):
    """A1 and A3: replies and chain entries are fresh, so nothing that left one party leaves another unchanged."""
    world = random_world(8, 2, n_trees=6, n=3)
    folding = fold_structure(world.model.skeletons, GUEST, world.model.hosts)
    tap = []
    with running(world, tap=tap) as (guest, network, _):
        score(world, guest, network, PaillierKeySide(secret_key))
    sent = [decode(blob) for _, _, kind, blob in tap if kind in ("DecisionVectors", "EncryptedScores")]
    width = secret_key.public.width

    def split(blob):
        return [blob[i : i + width] for i in range(0, len(blob), width)]

    first, second, last = (split(m.vectors if isinstance(m, DecisionVectors) else m.scores) for m in sent)
    assert isinstance(sent[-1], EncryptedScores) and len(last) == 3
    step = folding.steps[0]
    passed_on = {
        o
        for o in range(step.n_out)
        if all(not own for own, t in zip(step.host_conditions, step.target, strict=True) if t == o)
        and list(step.target).count(o) == 1
    }
    for sample in range(3):
        row = second[sample * step.n_out : (sample + 1) * step.n_out]
        for o, ciphertext in enumerate(row):
            assert (ciphertext in first) == (o in passed_on)
            assert int.from_bytes(ciphertext, "big") != 1
    assert not set(last) & (set(first) | set(second)) and len(set(last)) == 3
