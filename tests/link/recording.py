"""Conversations of a version as bytes, for the tests of the next one. `PYTHONPATH=tests python -m tests.link.recording` writes this one's.

Parties of a toy world hold them without encryption, so that the same question always gets the same bytes.
"""

from __future__ import annotations

import gzip
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from actors import MODEL_ID, TappedNetwork, running, score
from worlds import GUEST, World, random_world, with_covers, with_medians

from backend.crypto.plain import PlainKeySide
from backend.data.demo import write_demo
from backend.data.table import read_labels, read_table
from backend.link.frames import PROTOCOL, Beat, DeliveryReceipt, Header, pack, pack_control
from backend.link.handshake import greeting, pack_greeting
from backend.link.kinds import schemas_hash
from backend.protocols.alignment.exchange import align
from backend.protocols.explanations.guest import ReasonsClient
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.group_sums.guest import GroupQuestions
from backend.protocols.guest import GuestParty
from backend.protocols.host import HostParty
from backend.protocols.simulation.hosts import SimulatedHosts
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import OfferKey
from backend.store.party_store import memory_store

FOLDER = Path(__file__).parent / "recorded"
KEY = PlainKeySide()
FEW = 4  # people who are scored
MANY = 90  # people of whom sums are made
N_TABLE = 100  # applicants of the demo, whom a training is recorded of


@dataclass(frozen=True)
class Sent:
    """One message as it passed the wire."""

    sender: str
    receiver: str
    kind: str
    blob: bytes


@dataclass(frozen=True)
class Recording:
    """What a version left behind.

    Attributes
    ----------
    protocol : (int, int)
    schemas : str
        Hash of its message schemas.
    released : bool
        Whether it was tagged: from then on its messages stay readable.
    link : dict of str to bytes
        A greeting, a frame, a heartbeat and a receipt, as they passed a link.
    talks : dict of str to tuple of Sent
        Conversation → its messages, in the order in which they were sent.
    """

    protocol: tuple[int, int]
    schemas: str
    released: bool
    link: dict[str, bytes]
    talks: dict[str, tuple[Sent, ...]]

    def save(self, path: Path) -> None:
        """Write it as JSON, compressed; the same recording gives the same bytes."""
        talks = {
            name: [[s.sender, s.receiver, s.kind, _text(s.blob)] for s in sent] for name, sent in self.talks.items()
        }
        link = {name: _text(blob) for name, blob in self.link.items()}
        form = {
            "protocol": self.protocol,
            "schemas": self.schemas,
            "released": self.released,
            "link": link,
            "talks": talks,
        }
        path.write_bytes(gzip.compress(json.dumps(form).encode(), mtime=0))

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Read what :meth:`save` wrote."""
        form = json.loads(gzip.decompress(path.read_bytes()))
        talks = {
            name: tuple(Sent(*names, b64decode(text)) for *names, text in sent) for name, sent in form["talks"].items()
        }
        link = {name: b64decode(text) for name, text in form["link"].items()}
        return cls(tuple(form["protocol"]), form["schemas"], form["released"], link, talks)


def _text(blob: bytes) -> str:
    return b64encode(blob).decode()


def world(people: int = FEW, trees: int = 2) -> World:
    """Two Hosts and a model, the same for every version."""
    return with_medians(with_covers(random_world(4, 2, n=people, n_trees=trees, depth=2), 3))


def recorded() -> Recording:
    """Hold every conversation with this version, and write down what passes."""
    talks = {"scores": scores(), "cohort": cohort(), "sums": sums(), "training": training()}
    return Recording(PROTOCOL, schemas_hash(), False, _link(), talks)


def scores() -> tuple[Sent, ...]:
    """Scores of everybody, through both Hosts."""
    tap: list[Any] = []
    with running(world(), tap=tap) as (guest, network, _):
        score(world(), guest, network, KEY, "scores")
    return tuple(Sent(*sent) for sent in tap)


def cohort() -> tuple[Sent, ...]:
    """Contributions of many people, added up."""
    made = world(MANY, trees=1)
    terms = CompiledTerms(made.model)
    people = made.tables[GUEST]
    return _held(made, lambda talk: ReasonsClient(talk, GUEST, MODEL_ID, terms, KEY).sums(people))


def sums() -> tuple[Sent, ...]:
    """An alignment, and labels added up by groups of one feature."""
    made = world(MANY, trees=1)
    ids = made.tables[GUEST].ids

    def work(talk: Session) -> None:
        joint, _ = align(talk, GUEST, ids, "dh")
        questions = GroupQuestions(talk, GUEST, KEY, np.ones(len(joint), dtype=bool))
        questions.send([np.ones(len(joint), dtype=np.int64)], ["host0"])
        questions.ask({"host0": ["host0_x"]}, 2)

    return _held(made, work)


def training() -> tuple[Sent, ...]:
    """One tree over the demo's companies."""
    with TemporaryDirectory() as folder:
        federation = write_demo(Path(folder), rows=N_TABLE)
        own = read_table(federation, federation.guest.name)
        labels = read_labels(federation)
        tables = {party.name: read_table(federation, party.name) for party in federation.hosts}
    tap: list[Any] = []
    hosts = [
        HostParty(party.name, tables[party.name], party.features, memory_store(), simulated=True)
        for party in federation.hosts
    ]
    network = TappedNetwork(tap)
    served = SimulatedHosts(network, hosts)
    talk = Session(network.end(federation.guest.name), "training", tuple(host.name for host in hosts), timeout=120)
    try:
        guest = GuestParty(federation, lambda: own)
        guest.train(labels, SecureBoostParameters(trees=1, depth=1, bins=4), KEY, talk)
    finally:
        talk.close()
        served.stop()
    return tuple(Sent(*sent) for sent in tap)


def _held(made: World, work: Callable[[Session], object]) -> tuple[Sent, ...]:
    tap: list[Any] = []
    with running(made, tap=tap) as (_, network, _):
        talk = Session(network.end(GUEST), "held", made.model.hosts, timeout=120)
        try:
            talk.broadcast(OfferKey(talk.name, KEY.scheme, KEY.offer()))
            work(talk)
        finally:
            talk.close()
    return tuple(Sent(*sent) for sent in tap)


def _link() -> dict[str, bytes]:
    agreement = "a" * 64
    header = Header(
        PROTOCOL, agreement, "spiffe://shop.example/glassleaf/host", "spiffe://bank.example/glassleaf/guest",
        "c" * 32, 1, "d" * 32, "OfferKey", 0, 1, 3, "e" * 64, 4e9, "online",
    )  # fmt: skip
    return {
        "greeting": pack_greeting(greeting("shop", agreement, "f" * 32, time.time(), "b" * 64)),
        "frame": pack(header, b"key"),
        "beat": pack_control(Beat(1.5)),
        "receipt": pack_control(DeliveryReceipt("d" * 32, "busy", after=0.5)),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    recorded().save(FOLDER / f"{PROTOCOL[0]}.{PROTOCOL[1]}.json.gz")
