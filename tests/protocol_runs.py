"""The protocols that are compared, run on a world: what each gave, stated, and sent to whom; and the toy tree as a world."""

import itertools

import numpy as np
from actors import MODEL_ID, running
from worlds import GUEST, World

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.plain import PlainKeySide
from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.transport.channel import Session
from backend.protocols.transport.codec import decode
from backend.research.baselines.comparison import PROTOCOLS, compare, protocols
from backend.trees.ensemble import GuestModel, GuestTree, HostModel, Leaf, Split, SplitRule

KEY = PaillierSecretKey.generate(512, floor=512)
IN_THE_CLEAR = PROTOCOLS[1:]
WALKS = [name for name in PROTOCOLS if name.startswith("multi") or name == "collaborative"]


class Ran:
    """One protocol on a world's own records: its outcome, its statements by party, and the messages by receiver."""

    def __init__(self, name, world, guest, network, every, tap):
        session = Session(network.end(GUEST), name, world.model.hosts, timeout=120)
        before = len(tap)
        try:
            outcome = every[name].run(MODEL_ID, world.tables[GUEST], session)
        finally:
            self.transcript = session.close()
        self.scored, self.n = outcome.scored, len(world.tables[GUEST].ids)
        self.learned = {statement.party: statement for statement in outcome.learned(self.transcript)}
        self.got = {party: [] for party in world.tables}
        for sender, receiver, _, blob in tap[before:]:
            self.got[receiver].append((sender, decode(blob)))


def run(world, names=PROTOCOLS, key=None, together=1 << 14):
    tap = []
    key = key or PlainKeySide()
    with running(world, tap=tap) as (guest, network, _):
        every = protocols(guest, world.model, CompiledGuest(world.model), key, together=together)
        assert tuple(every) == PROTOCOLS
        return {name: Ran(name, world, guest, network, every, tap) for name in names}


def toy_world():
    """Fed-EINI's Figure 4 with one sample that goes left everywhere, and one that the Host does not hold (its default: right)."""
    owner = {0: GUEST, 1: GUEST, 2: "host0", 3: "host0", 6: GUEST}
    children = {0: (1, 2), 1: (3, 4), 2: (5, 6), 3: (7, 8), 6: (9, 10)}
    weights = dict(zip((7, 8, 4, 5, 9, 10), (1.0, 2.0, 3.0, 4.0, 5.0, 6.0), strict=True))
    nodes = tuple(
        Split(owner[i], f"f{i}", *children[i], True, 1.0, 1.0) if i in owner else Leaf(weights[i], 1.0)
        for i in range(11)
    )
    rules = {(0, i): SplitRule(f"f{i}", owner[i] == GUEST, 5.0) for i in owner}
    parts = {p: {k: r for k, r in rules.items() if owner[k[1]] == p} for p in (GUEST, "host0")}
    dictionary = tuple((p, Feature(name=f"f{i}", meaning="x")) for i, p in owner.items())
    model = GuestModel(GUEST, ("host0",), (GuestTree(nodes),), (0.0,), 4, dictionary, parts[GUEST])
    low = np.array([1.0, 1.0])
    tables = {
        GUEST: PartyTable(GUEST, ("a", "b"), {"f0": low, "f1": low, "f6": low}),
        "host0": PartyTable("host0", ("a",), {"f2": low[:1], "f3": low[:1]}),
    }
    hosts = {"host0": HostModel("host0", GUEST, ("host0",), model.skeletons, parts["host0"], "salt")}
    return World(model, hosts, tables)


def run_comparison(world, **kwargs):
    with running(world) as (guest, network, _):
        key = kwargs.pop("key", PlainKeySide())
        every = protocols(guest, world.model, CompiledGuest(world.model), key)
        number = itertools.count(1)

        def open_session():
            return Session(network.end(GUEST), f"c{next(number)}", world.model.hosts, timeout=120)

        return compare(every, MODEL_ID, world.tables[GUEST], key, open_session, **kwargs)
