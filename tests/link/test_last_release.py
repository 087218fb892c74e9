"""What the last release said in a score, said again by one party or several of them to this release's others: the score is the same.

`PYTHONPATH=.:tests python -m tests.link.test_last_release` writes the recording; a release that changes messages does so once it is made.
"""

import json
from base64 import b64decode, b64encode
from itertools import chain, combinations
from pathlib import Path

import actors
import pytest
from worlds import GUEST, random_world

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.link.frames import PROTOCOL
from backend.link.kinds import schemas_hash
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.network import Network

FILE = Path(__file__).with_name("last_release.json")
WORLD = random_world(17, n_trees=3, depth=3, n=4)
PARTIES = (GUEST, *WORLD.hosts)
SOME = [*chain.from_iterable(combinations(PARTIES, n) for n in range(1, len(PARTIES) + 1))]
NAME = "of-the-last-release"


def scored(key, tap, network):
    """Integer scores of everybody, and whom each Host holds, over a network of the test's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(actors, "TappedNetwork", network)
        with actors.running(WORLD, tap=tap) as (guest, wire, _):
            done = actors.score(WORLD, guest, wire, PaillierKeySide(key), NAME)[0]
            return {"units": done.units, "held": {host: held.tolist() for host, held in done.held.items()}}


@pytest.fixture(scope="module")
def recorded():
    return json.loads(FILE.read_text())


@pytest.mark.parametrize("older", SOME, ids="+".join)
def test_a_score_is_the_same_whoever_of_the_parties_is_a_release_behind(recorded, older):
    said = {tuple(about): b64decode(blob) for *about, blob in recorded["messages"]}
    heard = set()

    class Behind(Network):
        """Whatever one of the older parties sends is what it sent then."""

        def __init__(self, tap):
            super().__init__()

        def send(self, sender, receiver, message):
            about = sender, receiver, type(message).__name__
            heard.add(about)
            return super().send(sender, receiver, decode(said[about]) if sender in older else message)

    key = PaillierSecretKey.from_numbers(recorded["key"], floor=512)
    assert scored(key, [], Behind) == recorded["scored"]
    assert heard == set(said), "the same messages, no more and no fewer"


def test_what_was_said_is_read_and_written_in_the_same_bytes(recorded):
    for *_, blob in recorded["messages"]:
        assert encode(decode(b64decode(blob))) == b64decode(blob)


def test_messages_change_with_the_protocols_number_alone(recorded):
    major, minor = recorded["protocol"]
    assert PROTOCOL in ((major, minor), (major, minor + 1)), "record the release before this one"
    assert (major, minor) != PROTOCOL or schemas_hash() == recorded["schemas"], "raise the minor number of PROTOCOL"


def record():
    tap, key = [], PaillierSecretKey.generate(512, floor=512)
    answer = scored(key, tap, actors.TappedNetwork)
    messages = [[*about, b64encode(blob).decode()] for *about, blob in tap]
    said = {"protocol": PROTOCOL, "schemas": schemas_hash(), "key": key.to_numbers(), "scored": answer}
    FILE.write_text(json.dumps(said | {"messages": messages}, indent=1) + "\n")


if __name__ == "__main__":
    record()
