"""A training that is broken off goes on under its name; a Host takes the same terms and records again, and keeps one model of it."""

import pytest

from backend.errors import QuestionRefused, SecurityError
from backend.store.database import Database
from backend.store.trainings import HostTrainings, KeptModel, guest_training


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
    trainings, model = HostTrainings(Database()), KeptModel("digest", "hash")
    for _ in range(2):
        trainings.begin("bank", "r", "terms and records")
    with pytest.raises(QuestionRefused, match="records have changed"):
        trainings.begin("bank", "r", "other records")
    trainings.begin("another bank", "r", "other records")  # its own name for it
    assert trainings.kept("bank", "r") is None and trainings.kept("bank", "unknown") is None
    trainings.keep("bank", "r", model)
    assert trainings.kept("bank", "r") == model and trainings.kept("another bank", "r") is None
    with pytest.raises(SecurityError, match="already given its model"):
        trainings.keep("bank", "r", KeptModel("other", "hash"))
