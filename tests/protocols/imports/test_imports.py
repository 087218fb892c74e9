"""A model that was not trained here is kept by a real Host only if its operator allowed it as an import, with every split on the screen."""

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import pytest
from actors import MODEL_ID
from refused import raises
from worlds import GUEST, random_world

from backend.crypto.signing import SigningKey
from backend.errors import ApprovalDenied, SecurityError
from backend.protocols.approvals.messages import AskApproval, AskTraining
from backend.protocols.host import HostParty
from backend.protocols.imports.messages import KeepImport
from backend.protocols.scoring.packing import Packing
from backend.protocols.terms.approvals import Approvals
from backend.protocols.training.messages import KeepModel
from backend.protocols.transport.codec import decode, encode
from backend.services.request_facts import Counterparts, facts_of
from backend.store.accountant import Limits
from backend.store.database import Database
from backend.store.party_store import memory_store
from backend.trees.serialization import dump_host, dump_skeleton, load_host

LATER = date(2999, 1, 1)
WORLD = random_world(4, 2, n_trees=3)
HALF = replace(WORLD.hosts["host0"], layout=Packing(WORLD.model).layout, guest_hash="0" * 64, salt="guessed")


@pytest.fixture
def real():
    """A real Host, what its operator decides with, and its store."""
    store = memory_store()
    approvals = Approvals("host0", Database(), SigningKey.generate())
    features = [feature for party, feature in WORLD.model.dictionary if party == "host0"]
    host = HostParty("host0", WORLD.tables["host0"], features, store, approvals=approvals, key_floor=512)
    return SimpleNamespace(host=host, approvals=approvals, store=store)


def drive(host, message):
    """Send a message as bytes; return what comes back."""
    return [reply for _, reply in host.answer(GUEST, decode(encode(message)))]


def sent(half=HALF, model_id="imported"):
    return KeepImport("c", model_id, dump_host(half))


def kinds(replies):
    return [type(reply).__name__ for reply in replies]


def test_an_import_waits_for_the_operator_and_is_kept_with_a_salt_of_the_hosts_own(real):
    assert kinds(drive(real.host, sent())) == ["ApprovalPending"]
    assert real.store.model_ids() == []
    [request] = real.approvals.book.all()
    assert request.purpose == "import" and request.about["imported"]
    real.approvals.approve(1, "ana", LATER, 1)
    [kept] = drive(real.host, sent())
    stored = load_host(real.store.artefact("imported"))
    assert stored.rules == HALF.rules and stored.salt not in ("", "guessed")
    assert kept.content_hash == real.store.content_hash("imported")
    assert kinds(drive(real.host, sent())) == ["ModelKept"]  # another Host's operator may have decided later


def test_an_import_that_the_operator_denies_is_not_kept(real):
    drive(real.host, sent())
    real.approvals.deny(1, "ana", "thresholds at one person's value")
    with pytest.raises(ApprovalDenied):
        drive(real.host, sent())
    assert real.store.model_ids() == []


def test_without_the_request_any_thresholds_would_be_kept(real, monkeypatch):
    # patched: the one defence removed, so that the test is seen to need it
    monkeypatch.setattr(Approvals, "decide", lambda approvals, wanted, *_: (replace_state(wanted), None))
    assert kinds(drive(real.host, sent())) == ["ModelKept"]


def replace_state(wanted):
    wanted.state = "granted"
    return wanted


def test_a_model_that_neither_grew_nor_was_imported_is_refused(real):
    terms = {"algorithm": "secureboost", "trees": 3, "depth": 3, "bins": 8, "exclude": (), "hide_order": False}
    drive(real.host, AskTraining("c", **terms))
    shapes = tuple(tuple(tuple(fork) for fork in dump_skeleton(skeleton)) for skeleton in HALF.skeletons)
    kept = KeepModel("c", "m", GUEST, HALF.hosts, shapes, 10, 1, 0, 0, "0" * 64)
    with raises(SecurityError, "no_training"):
        drive(real.host, kept)


def other_rules(half):
    rules = dict(half.rules)
    rules.popitem()
    return replace(half, rules=rules)


def other_features(half):
    return replace(half, rules={key: replace(rule, feature="salary") for key, rule in half.rules.items()})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda half: replace(half, host="host1"), "model_of_other_parties"),
        (lambda half: replace(half, guest="stranger"), "model_of_other_parties"),
        (other_rules, "model_of_other_splits"),
        (other_features, "import_of_unknown_features"),
        (lambda half: replace(half, layout=None), "impossible_layout"),
        (lambda half: replace(half, layout=replace(half.layout, score_bits=3)), "few_score_bits"),
    ],
)
def test_a_half_that_does_not_fit_makes_no_request(real, change, code):
    with raises(SecurityError, code):
        drive(real.host, sent(change(HALF)))
    assert real.approvals.book.all() == []


def test_text_that_is_no_half_is_refused(real):
    with raises(SecurityError, "import_unreadable"):
        drive(real.host, KeepImport("c", "m", "{}"))


def test_no_import_takes_the_place_of_a_model_that_was_trained_here_or_of_another_guests(real):
    real.store.put_artefact(MODEL_ID, dump_host(HALF))
    real.store.put_training(MODEL_ID, date(2026, 1, 1), "{}")
    with raises(SecurityError, "import_over_trained_model"):
        drive(real.host, sent(model_id=MODEL_ID))
    real.store.put_artefact("other", dump_host(replace(HALF, guest="another bank")))
    with raises(SecurityError, "model_of_another_guest"):
        drive(real.host, sent(model_id="other"))


@pytest.mark.parametrize("trained", [True, False])
def test_every_request_about_an_imported_model_says_so(real, trained):
    real.store.put_artefact("m", dump_host(HALF))
    if trained:
        real.store.put_training("m", date(2026, 1, 1), "{}")
    drive(real.host, AskApproval("c", "m", "scoring", 5))
    [request] = real.approvals.book.all()
    used = [rule.feature for rule in HALF.rules.values()]
    facts = facts_of(request, Counterparts(), {}, used, Limits(), 0.0, None)
    codes = [getattr(fact.value, "code", "") for fact in facts]
    assert ("request_imported" in codes) is not trained
