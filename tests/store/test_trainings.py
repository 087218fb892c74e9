"""A training that is broken off goes on under its name; a Host takes the same terms and records again, and keeps one model of it."""

import pytest
from refused import raises

from backend.errors import QuestionRefused, SecurityError
from backend.store.database import Database
from backend.store.trainings import HostTrainings, KeptModel, Note, guest_training


def test_the_same_training_goes_on_with_its_rounds_until_it_is_forgotten():
    database = Database()
    first = guest_training(database, "bank", "question")
    first.add({"trees": [0.1]})
    again = guest_training(database, "bank", "question")
    assert (again.request, again.rounds) == (first.request, [{"trees": [0.1]}])
    other = guest_training(database, "bank", "another question")
    assert other.request != first.request and other.rounds == []
    again.forget()
    assert guest_training(database, "bank", "question").rounds == []


def test_a_host_goes_on_with_the_same_terms_and_keeps_one_model():
    trainings, model = HostTrainings(Database()), KeptModel("digest", "hash", "m1", sealed=False)
    same = Note("r", "terms and records", "training_changed")
    other = Note("r", "other records", "training_changed")
    for _ in range(2):
        trainings.note("bank", [same])
    with raises(QuestionRefused, "training_changed"):
        trainings.note("bank", [other])
    trainings.note("another bank", [other])  # its own name for it
    assert trainings.kept("bank", "r") is None and trainings.kept("bank", "unknown") is None
    trainings.keep("bank", "r", model)
    assert trainings.kept("bank", "r") == model and trainings.kept("another bank", "r") is None
    with pytest.raises(SecurityError, match="already given its model"):
        trainings.keep("bank", "r", KeptModel("other", "hash", "m2", sealed=False))


def test_notes_are_stored_all_together_and_come_no_more_often_than_allowed():
    trainings = HostTrainings(Database())
    node = Note("r.0.0.sums", "rows", "node_answered_otherwise", max_times=2)
    for _ in range(2):
        trainings.note("bank", [node])
    another = Note("r.0.1.sums", "rows", "node_answered_otherwise", max_times=2)
    with raises(QuestionRefused, "node_answered_otherwise"):
        trainings.note("bank", [another, node])
    assert trainings.noted("bank", "r.0.0.sums") == "rows" and not trainings.noted("bank", "r.0.1.sums")


def test_notes_of_a_training_stay_until_the_next_one_has_given_its_model():
    trainings = HostTrainings(Database())
    for request in ("first", "second"):
        trainings.note("bank", [Note(request, "terms", "training_changed")])
        trainings.note("bank", [Note(f"{request}.0.0.split", "rows", "node_answered_otherwise", max_times=2)])
        trainings.keep("bank", request, KeptModel("digest", "hash", request, sealed=False))
        assert trainings.noted("bank", f"{request}.0.0.split") == "rows"  # its last answer may be lost
    assert not trainings.noted("bank", "first.0.0.split")
