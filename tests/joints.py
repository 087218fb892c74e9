"""Joint records of a Guest and real Hosts on a real network, ready to grow trees on; and, for oracles, every column in one hand."""

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from actors import TappedNetwork
from worlds import GUEST

from backend.crypto.plain import PlainKeySide
from backend.data.dictionary import ExpectedDirection, Feature, Kind
from backend.data.table import PartyTable
from backend.protocols.alignment.exchange import align
from backend.protocols.group_sums.disclosure_bound import NAMED
from backend.protocols.host import HostParty
from backend.protocols.simulation.hosts import SimulatedHosts
from backend.protocols.terms.floors import Floors
from backend.protocols.training.guest import draw_parts
from backend.protocols.training.host_splits import HostTraining
from backend.protocols.training.joint import Joint
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import OfferKey
from backend.store.accountant import Accountant
from backend.store.database import Database
from backend.store.party_store import memory_store
from backend.trees.ensemble import Split

LABELS = {
    "binary": lambda risk, draw: (draw.random(len(risk)) < 1 / (1 + np.exp(-risk))).astype(float),
    "classes": lambda risk, draw: np.digitize(risk + draw.normal(0, 0.5, len(risk)), [-0.7, 0.7]).astype(float),
    "number": lambda risk, draw: 40 + 25 * risk + draw.normal(0, 5, len(risk)),
}


@dataclass
class Parties:
    """Who takes part, and what only a test may look at."""

    joint: Joint
    columns: dict[str, np.ndarray]  # of all parties, in the joint order
    served: SimulatedHosts
    sent: list  # (sender, receiver, kind, bytes)

    def rules(self, own):
        """All parties' rules; `own` are the Guest's."""
        partial_models = [
            h._sessions.of(self.joint.conversation.name).kept(HostTraining).rules for h in self.served.hosts.values()
        ]
        return dict(own) | {key: rule for partial_model in partial_models for key, rule in partial_model.items()}

    def leaves(self, number, tree, rules):
        """Leaf of every joint record, walked in one place."""
        nodes = np.zeros(len(self.joint.parts), dtype=int)
        for i, split in tree.splits.items():  # parents come before their children
            left = rules[number, i].goes_left(self.columns[split.feature])
            nodes = np.where(nodes == i, np.where(left, split.left, split.right), nodes)
        assert not any(isinstance(tree.nodes[i], Split) for i in set(nodes.tolist()))
        return nodes


@contextmanager
def joined(
    seed=0,
    *,
    hosts=2,
    n=60,
    task="binary",
    key=None,
    gaps=0.1,
    coded=True,
    directions=False,
    on_tree=lambda progress: None,
    min_group=0,
    named=NAMED,
    limits=None,
    stores=None,
):
    """Random parties with two numeric features and (`coded`) a categorical one each; with `directions` every x should raise the risk."""
    draw = np.random.default_rng(seed)
    parties = [GUEST, *(f"host{i}" for i in range(hosts))]
    expected = ExpectedDirection.UP if directions else ExpectedDirection.NONE
    features = {
        p: (
            Feature(name=f"{p}_x", meaning="x", expected_direction=expected),
            Feature(name=f"{p}_y", meaning="y"),
            Feature(name=f"{p}_c", meaning="c", kind=Kind.CATEGORICAL),
        )[: 3 if coded else 2]
        for p in parties
    }
    ids = tuple(f"id{i:04}" for i in range(n))
    tables, risk = {}, np.zeros(n)
    for p in parties:
        x, y, c = draw.normal(size=n), draw.normal(size=n), draw.integers(0, 4, n)
        risk += x + y * y / 2 - 0.5 + np.array([0.8, -0.8, 0.3, -0.3])[c]
        category = np.array([None if draw.random() < gaps else "abcd"[k] for k in c], dtype=object)
        x, y = (np.where(draw.random(n) < gaps, np.nan, v) for v in (x, y))
        tables[p] = PartyTable(p, ids, {f"{p}_x": x, f"{p}_y": y, f"{p}_c": category})
    labels = LABELS[task](risk, draw)
    sent: list = []
    network, side = TappedNetwork(sent), key or PlainKeySide()
    served = SimulatedHosts(
        network,
        [
            HostParty(
                p,
                tables[p],
                features[p],
                (stores or {}).get(p) or memory_store(),
                simulated=True,
                key_floor=512,
                floors=Floors(group_size=min_group, named=named),
                accountant=limits and Accountant(Database(), limits),
            )
            for p in parties[1:]
        ],
    )
    session = Session(network.end(GUEST), "c", tuple(parties[1:]), timeout=120)
    session.broadcast(OfferKey("c", side.scheme, side.offer()))
    rows = align(session, GUEST, ids, "dh")[0] if hosts else np.arange(n)
    joint = Joint(
        conversation=session,
        key=side,
        guest=GUEST,
        features=features,
        excluded=dict.fromkeys(parties, ()),
        table=tables[GUEST].take(rows),
        labels=labels[rows],
        task=task,
        classes=("low", "middle", "high") if task == "classes" else (),
        parts=draw_parts(n, seed),
        on_tree=on_tree,
    )
    columns = {name: column[rows] for table in tables.values() for name, column in table.columns.items()}
    try:
        yield Parties(joint, columns, served, sent)
    finally:
        session.close()
        served.stop()


class Asking:
    """Asks the Hosts, and writes nothing down."""

    def __init__(self, questions, on_piece=lambda done, total: None):
        self.questions, self.on_piece = questions, on_piece

    def sums(self, marks, wanted, max_groups, known=(), min_size=20):
        self.questions.send(marks, list(wanted), on_piece=self.on_piece)
        return self.questions.ask(wanted, max_groups, known_groups=known, min_size=min_size)

    def borne_by(self, marks, max_groups):
        return self.questions.borne_by([1] * marks, max_groups)

    def ahead(self, wanted, max_groups, min_size):
        for host, features in wanted.items():
            self.questions.would_answer(host, features, max_groups, min_size)

    def sums_of_host(self, source, wanted, max_groups):
        *asked, least = source
        groups = self.questions.have_sent(*asked, list(wanted), least)
        return groups, self.questions.ask(wanted, max_groups, source[0]) if groups else {}
