"""Disclosure: every field is listed as encrypted or not, and Table II comes out of the messages of a real run."""

import pytest
from actors import MODEL_ID, running

from backend.crypto.plain import PlainKeySide
from backend.privacy.disclosure import CIPHERTEXTS, lines, table_two
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.transport.channel import Session
from backend.protocols.transport.message import MESSAGES
from backend.research.baselines.comparison import PROTOCOLS, protocols
from tests.worlds import GUEST, random_world

HOSTS = ("host0", "host1")


@pytest.fixture(scope="module")
def transcripts():
    """Protocol → the transcript of a run with plaintext: which classes of messages go where is the same under every cipher."""
    world, out = random_world(5, n_trees=8), {}
    with running(world) as (guest, network, _):
        for name, protocol in protocols(guest, world.model, CompiledGuest(world.model), PlainKeySide()).items():
            session = Session(network.end(GUEST), name, world.model.hosts, timeout=120)
            protocol.run(MODEL_ID, world.tables[GUEST], session)
            out[name] = session.close()
    return out


def rows(transcript, scheme):
    return {row.what: row for row in table_two(transcript, GUEST, HOSTS, scheme)}


def test_the_encrypted_fields_are_those_that_only_the_guests_key_opens():
    assert set(CIPHERTEXTS) == {name for name, cls in MESSAGES.items() if "(its key)" in cls.READABLE_BY}
    assert all("encrypted" in MESSAGES[kind].HOLDS for kind in CIPHERTEXTS)
    assert all(field in MESSAGES[kind].__dataclass_fields__ for kind, field in CIPHERTEXTS.items())


def test_under_fed_eini_a_host_reads_ids_and_no_number(transcripts):
    found = {(line.party, line.kind, line.field): line for line in lines(transcripts["fed-eini"], GUEST, "paillier")}
    ids, vectors = (found["host0", "DecisionVectors", field] for field in ("ids", "vectors"))
    assert (ids.encrypted, ids.key_of, ids.readable) == (False, "", True)
    assert (vectors.encrypted, vectors.key_of, vectors.readable) == (True, GUEST, False)
    scores = found[GUEST, "EncryptedScores", "scores"]
    assert (scores.encrypted, scores.readable, scores.sender) == (True, True, "host1")
    assert not any(line.field == "conversation" for line in found.values())


def test_plaintext_is_listed_as_readable(transcripts):
    found = lines(transcripts["fed-eini"], GUEST, "none")
    assert all(line.readable and not line.encrypted for line in found)


def test_equal_messages_are_counted_in_one_line(transcripts):
    transcript = transcripts["multi-interactive-node"]
    asked = sum(entry.kind == "AskWalk" and entry.receiver == "host0" for entry in transcript)
    assert asked > 1
    found = [line for line in lines(transcript, GUEST, "none") if (line.party, line.kind) == ("host0", "AskWalk")]
    assert {line.messages for line in found} == {asked}
    assert [line.field for line in found] == ["one_step", "rows", "nodes"]


def test_table_two_of_fed_eini_is_the_papers(transcripts):
    found = rows(transcripts["fed-eini"], "paillier")
    assert found["path"].guest == "own"  # "Decision path based on local nodes"
    assert found["path"].hosts == {"host0": "own", "host1": "own"}
    assert found["meanings"].guest == "all"  # "All features"
    assert (found["leaf_weights"].guest, found["leaf_weights"].hosts["host0"]) == ("yes", "no")
    assert found["splits"].guest == found["splits"].hosts["host1"] == "own"  # "Local nodes"
    assert (found["score"].hosts["host1"], found["ids"].hosts["host1"]) == ("no", "yes")


def test_what_an_earlier_attempt_disclosed_is_disclosed():
    def found(scheme, before):
        table = table_two((), GUEST, HOSTS, scheme, asked_before=before)
        return {row.what: row.hosts for row in table if row.what in ("ids", "leaf_weights")}

    assert found("paillier", ()) == {"leaf_weights": dict.fromkeys(HOSTS, "no"), "ids": dict.fromkeys(HOSTS, "no")}
    assert found("paillier", HOSTS[:1])["ids"] == {"host0": "yes", "host1": "no"}
    assert found("none", HOSTS)["leaf_weights"] == dict.fromkeys(HOSTS, "sent")


def test_a_median_discloses_the_answer_of_every_tree(transcripts):
    found = table_two(transcripts["fed-eini"], GUEST, HOSTS, "paillier", by_tree=True)
    assert [row.guest for row in found if row.what == "path"] == ["answers"]


@pytest.mark.parametrize("name", PROTOCOLS[1:])
def test_every_other_protocol_discloses_the_complete_path_to_the_guest(transcripts, name):
    found = rows(transcripts[name], "none")
    assert found["path"].guest == "complete"  # Table II, SecureBoost
    assert set(found["path"].hosts.values()) == ({"own"} if name.startswith("one-round") else {"met"})
    assert found["leaf_weights"].hosts == {"host0": "no", "host1": "no"}


def test_without_encryption_table_two_shows_what_the_hosts_read(transcripts):
    found = rows(transcripts["fed-eini"], "none")
    assert set(found["leaf_weights"].hosts.values()) == {"sent"}
    assert set(found["path"].hosts.values()) == {"sent"}
