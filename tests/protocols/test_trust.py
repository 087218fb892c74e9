"""Who may say what to a Host: only the Guest of a conversation, and of the chain only the party before; what does not fit is refused."""

from contextlib import suppress
from dataclasses import MISSING, fields, replace
from typing import get_type_hints

import msgpack
import numpy as np
import pytest
from actors import MODEL_ID, running
from refused import raises
from worlds import GUEST, random_world

from backend.crypto.plain import PlainKeySide
from backend.data.demo import write_demo
from backend.errors import GlassleafError, SecurityError
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import DecisionVectors, MoreVectors
from backend.protocols.simulation.simulator import FederationRuntime
from backend.protocols.training.messages import AskBinSums, KeepModel, StartTraining
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.training.row_sets import pack_rows
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.message import MESSAGES
from backend.protocols.transport.messages import OfferKey
from backend.remark import Remark

EMPTY = {Remark: Remark("host_stops"), str: "x", bytes: b"", int: 1, float: 1.0, bool: False}


def some(kind):
    """Any message of a class, for the conversation c."""
    hints = get_type_hints(kind)
    needed = {f.name: EMPTY.get(hints[f.name], ()) for f in fields(kind) if f.default is MISSING}
    return kind(**{**needed, "conversation": "c"})


@pytest.fixture
def hosts():
    """Two Hosts, to whom the Guest has opened the conversation c."""
    world, key = random_world(3, 2, n=4), PlainKeySide()
    with running(world) as (_, _, served):
        for host in served.hosts.values():
            list(host.answer(GUEST, OfferKey("c", key.scheme, key.offer())))
        yield served.hosts


def test_whatever_a_guest_alone_sends_does_not_reach_another_guests_conversation_of_the_same_name(hosts):
    host = hosts["host0"]
    opened = host._sessions.find("c", GUEST)
    passed_on = {kind for kind, how in host._gate.kinds.items() if how.passed_on}
    for kind in (set(host._handlers) | set(host._gate.kinds)) - passed_on:
        with suppress(GlassleafError, ValueError):
            for receiver, _ in host.answer("host1", some(kind)):
                assert receiver == "host1"
    assert host._sessions.find("c", GUEST) is opened  # another party's EndConversation did not end it
    assert opened.cipher.scheme == "none" and not opened._work and opened.purpose == ""


def vectors(world, conversation="c", pieces=1):
    compiled = CompiledGuest(world.model)
    _, entries = compiled.encode(world.tables[GUEST].columns, len(world.tables[GUEST].ids))
    blob = PlainKeySide().encrypt(entries)
    return DecisionVectors(conversation, MODEL_ID, world.tables[GUEST].ids, entries.shape[1], pieces, blob)


@pytest.mark.parametrize(("host", "sender"), [("host1", GUEST), ("host0", "host1"), ("host1", "stranger")])
def test_vectors_are_taken_from_the_party_before_in_the_chain_only(hosts, host, sender):
    with pytest.raises(SecurityError, match="Vectors of this model come from"):
        list(hosts[host].answer(sender, vectors(random_world(3, 2, n=4))))


def test_a_model_of_one_guest_is_not_scored_with_by_another(hosts):
    list(hosts["host0"].answer("other_bank", OfferKey("d", "none", b"")))
    with pytest.raises(SecurityError, match="for its own Guest"):
        list(hosts["host0"].answer(GUEST, vectors(random_world(3, 2, n=4), "d")))


def test_a_further_piece_from_another_party_is_refused(hosts):
    list(hosts["host0"].answer(GUEST, vectors(random_world(3, 2, n=4), pieces=2)))
    with pytest.raises(SecurityError, match="another party than the first"):
        list(hosts["host0"].answer("host1", MoreVectors("c", b"")))


class ChangingSession:
    """A Guest that has Hosts keep something else than it trained."""

    def __init__(self, session, change):
        self._session, self._change = session, change

    def __getattr__(self, name):
        return getattr(self._session, name)

    def broadcast(self, message):
        changed = replace(message, **self._change) if isinstance(message, KeepModel) else message
        self._session.broadcast(changed)


@pytest.mark.parametrize(
    "change",
    [
        {"guest": "other"},
        {"guest": "other", "hosts": ("bank", "telecom", "platform")},
        {"hosts": ("telecom",)},
        {"hosts": ("telecom", "telecom", "platform")},
        {"hosts": ("bank", "telecom", "platform")},
    ],
)
def test_a_model_that_names_other_parties_than_those_that_trained_is_not_kept(tmp_path, change):
    runtime = FederationRuntime(write_demo(tmp_path, rows=200), tmp_path / "parties", key_floor=512, pools=False)
    parameters = SecureBoostParameters(trees=2, depth=2, cipher="none")
    session = runtime.open_session(runtime.hosts)
    try:
        with pytest.raises(SecurityError, match="names other parties"):
            runtime.guest.train(runtime.labels(), parameters, PlainKeySide(), ChangingSession(session, change))
    finally:
        session.close()
        runtime.close()


def test_a_host_makes_no_more_bins_than_a_training_may_ask_for(hosts):
    host = hosts["host0"]
    rows = np.arange(len(host._gate.table.ids))
    host._sessions.find("c", GUEST).rows = rows
    everybody = pack_rows(np.ones(len(rows), dtype=bool))
    for bins in (-1, 1, 257, 1 << 40):
        with raises(SecurityError, "bins_outside_limits"):
            list(host.answer(GUEST, StartTraining("c", everybody, bins, (), False)))
    list(host.answer(GUEST, StartTraining("c", everybody, 2, (), False)))
    with raises(SecurityError, "sums_without_gradients"):
        list(host.answer(GUEST, AskBinSums("c", (0,), (0, 1), (everybody,), (b"",), ((),), (-1,))))


@pytest.mark.parametrize(
    "body",
    [["conversation"], "conversation", {"conversation": "c", "joint": 1.0}, None],
)
def test_bytes_whose_body_is_no_map_of_the_right_kinds_are_refused(body):
    with pytest.raises(SecurityError, match="no known form"):
        decode(msgpack.packb(["JointRecords" if isinstance(body, dict) else "EndConversation", body]))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none_do_not_pass_the_wire(number):
    for name, field in (("StartRanks", "epsilon"), ("AskReasons", "shares")):
        message = some(MESSAGES[name])
        decode(encode(message))
        with pytest.raises(SecurityError, match="no known form"):
            decode(encode(replace(message, **{field: number if field == "epsilon" else (0.5, number)})))
