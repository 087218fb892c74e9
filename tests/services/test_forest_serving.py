"""A forest served while a worker is lost: every batch is answered, and all trees are back in the end."""

import pytest
from release_rule import EVERY_SCORE

from backend.errors import Cancelled, ModelError, ParameterError
from backend.protocols.training.forest import ForestParameters
from backend.research.baselines import forest_trial
from backend.services import Glassleaf
from backend.services.forest_serving import ServingRequest
from backend.services.training import TrainingRequest

FOREST = ForestParameters(trees=6, depth=2, bins=8, cipher="none")


@pytest.fixture(scope="module")
def glassleaf(demo_home):
    opened = Glassleaf(demo_home(), key_floor=512, pools=False)
    opened.training.start(TrainingRequest("demo", FOREST, most_named=EVERY_SCORE)).get()
    yield opened
    opened.close()


@pytest.mark.slow
def test_every_batch_is_answered_while_a_worker_is_lost_and_all_trees_come_back(glassleaf, monkeypatch):
    monkeypatch.setattr(forest_trial, "BATCH_INTERVAL", 0.03)
    done = glassleaf.forest_serving.start(ServingRequest("latest", samples=8, batches=200, workers=3, lost_at=3)).get()
    assert [batch.number for batch in done.batches] == list(range(1, 201))
    assert [batch.missing for batch in done.batches[:2]] == [(), ()]
    lost = done.without
    assert lost and lost[0].number == 3 and all(batch.missing == (0, 1) for batch in lost)
    assert any(batch.shift > 0 for batch in lost)
    assert done.whole_again == lost[-1].number + 1
    assert all(batch.shift == 0 for batch in done.batches if not batch.missing)
    (entry,) = [e for e in glassleaf.audit.entries("demo") if e.action == "serve"]
    assert entry.body["rows"] == 8


def test_boosted_trees_cannot_go_on_without_one(glassleaf):
    boosted = next(m for m in glassleaf.models.all("demo") if m.algorithm != "forest")
    with pytest.raises(ModelError, match="Only a forest"):
        glassleaf.forest_serving.start(ServingRequest(boosted.id, samples=2)).get()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"samples": 0}, "samples is 0; choose 1 to"),
        ({"batches": 1}, "batches is 1; choose 2 to 200"),
        ({"workers": 99}, "workers is 99; choose 2 to 8"),
        ({"lost_at": 41}, "lost-at is 41; choose 2 to 40"),
    ],
)
def test_a_trial_out_of_range_is_refused_with_its_range(glassleaf, change, said):
    with pytest.raises(ParameterError, match=said):
        glassleaf.forest_serving.start(ServingRequest("latest", **change)).get()


def test_a_trial_can_be_stopped_and_keeps_what_it_answered(glassleaf):
    job = glassleaf.forest_serving.start(ServingRequest("latest", samples=2, batches=200))
    while job.result is None or not job.result.batches:
        job.wait(0.05)
    job.cancel()
    with pytest.raises(Cancelled):
        job.get()
    assert 0 < len(job.result.batches) < 200
