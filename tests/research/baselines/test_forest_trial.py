"""A trial of a forest says whether all trees were back before it ended."""

from backend.research.baselines.forest_trial import ServedBatch, ServingRequest, ServingTrial


def test_where_no_worker_comes_back_in_time_the_trial_says_so():
    batches = (ServedBatch(1, 0.1, (), 0.0), ServedBatch(2, 0.1, (0,), 0.2))
    trial = ServingTrial(ServingRequest("m", batches=2, lost_at=2), 2, 1, batches)
    assert trial.whole_again is None and trial.as_dict()["whole_again"] is None
