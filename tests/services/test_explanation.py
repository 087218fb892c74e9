"""What features are worth and how predictions move with them: as if everything were in one hand, whoever holds the feature."""

from dataclasses import replace

import numpy as np
import pytest
from answering import Answering
from measurement_contexts import KEY, TrainedDemo
from sklearn.metrics import roc_auc_score

from backend.errors import Cancelled, ParameterError, SecurityError
from backend.explain.dependence import MIN_PEOPLE
from backend.jobs import Job
from backend.services.explanation import MeansRequest, PermutationRequest, measure_means, measure_permutation
from backend.services.measurement import drawn
from backend.store.accountant import Limits

SAMPLES, REPEATS = 250, 4


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    made = TrainedDemo(tmp_path_factory.mktemp("interpreting"))
    yield made
    made.glassleaf.close()


def permutation(context, cipher="none", **options):
    request = PermutationRequest(context.record.id, cipher=cipher, **options)
    return Job(lambda job: measure_permutation(context.measured, request, job), 1)


def means(context, feature, cipher="none", **options):
    request = MeansRequest(context.record.id, feature, cipher=cipher, key_bits=KEY, **options)
    return Job(lambda job: measure_means(context.measured, request, job), 1)


@pytest.fixture(scope="module", autouse=True)
def _few_resamples():
    """Intervals are tested where they are worked out; here it is enough that they hold their figure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("backend.explain.permutation.RESAMPLES", 50)
        yield


@pytest.fixture(scope="module")
def measured(context):
    """Every permutation, measured once: the job and what it found."""
    job = permutation(context, samples=SAMPLES, repeats=REPEATS).start()
    return job, job.get()


def test_every_feature_in_use_and_every_party_is_measured(context, measured):
    job, worth = measured
    used = {(s.owner, s.feature) for tree in context.measured.model.trees for s in tree.splits.values()}
    assert {(w.party, w.feature) for w in worth if w.feature} == used
    assert {w.party for w in worth if not w.feature} <= {"bank", "telecom", "platform"}
    assert all((w.n, w.repeats, w.quality) == (SAMPLES, REPEATS, "auc") and w.low <= w.fall <= w.high for w in worth)
    assert (job.done, job.total) == ((1 + REPEATS * len(worth)) * SAMPLES,) * 2


def test_what_the_model_asks_most_is_worth_most_and_a_party_more_than_each_of_its_features(context, measured):
    _, worth = measured
    gain = {}
    for tree in context.measured.model.trees:
        for split in tree.splits.values():
            gain[split.feature] = gain.get(split.feature, 0.0) + split.gain
    single = {w.feature: w.fall for w in worth if w.feature}
    both = np.argsort([gain[f] for f in single]), np.argsort(list(single.values()))
    assert np.corrcoef(*(np.argsort(order) for order in both))[0, 1] > 0.5
    for whole in (w for w in worth if not w.feature):
        assert whole.fall > max(w.fall for w in worth if w.feature and w.party == whole.party) - 0.03


def test_a_hosts_features_worth_is_that_found_with_everything_in_one_hand(context, measured):
    """The Host's permutation is its own, so that the two agree as the mean of a few draws does with the mean of many."""
    _, worth = measured
    found = max((w for w in worth if w.feature and w.party != "bank"), key=lambda w: w.fall)
    ids = context.runtime.table.take(drawn(context.measured, SAMPLES, 7)).ids
    everybody = context.people.loc[list(ids)]
    labels = context.runtime.labels()[[context.runtime.table.row_of[i] for i in ids]]
    whole = roc_auc_score(labels, context.margins(everybody))
    draw, falls = np.random.default_rng(0), []
    for _ in range(60):
        shuffled = everybody.assign(**{found.feature: draw.permutation(everybody[found.feature].to_numpy())})
        falls.append(whole - roc_auc_score(labels, context.margins(shuffled)))
    assert found.fall > 0.005
    assert found.fall == pytest.approx(np.mean(falls), abs=5 * np.std(falls) * (1 / REPEATS + 1 / 60) ** 0.5 + 1e-3)


def test_under_encryption_the_guests_features_are_worth_the_same(context):
    plain, encrypted = (
        {w.feature: w for w in permutation(context, cipher, samples=60, repeats=1).start().get() if w.party == "bank"}
        for cipher in ("none", "paillier")
    )
    assert plain == encrypted and len(plain) > 2


def people(context):
    predicted = context.probabilities()
    return context.people.loc[predicted.index].assign(p=predicted)


@pytest.mark.parametrize("cipher", ["none", "paillier"])
@pytest.mark.parametrize(("party", "feature"), [("platform", "average_order"), ("telecom", "tenure_months")])
def test_means_by_tenth_are_those_counted_with_everything_in_one_hand(context, party, feature, cipher):
    everybody = people(context)
    found = means(context, feature, cipher, samples=len(everybody)).start().get()
    assert (found.party, found.feature, found.n) == (party, feature, len(everybody))
    ranked, start = everybody.sort_values(feature), 0
    for row in found.groups:
        own, start = ranked.iloc[start : start + row.group.n], start + row.group.n
        assert row.group.kind == "bin" and row.group.n >= MIN_PEOPLE
        assert row.mean[0] == pytest.approx(own.p.mean(), abs=1e-4)
    assert start == len(everybody) and len(found.groups) > 2


def test_a_codes_mean_and_share_of_positive_labels_are_exact(context):
    everybody = people(context)
    found = means(context, "gender", samples=len(everybody)).start().get()
    labels = context.runtime.labels()
    rows = [context.runtime.table.row_of[i] for i in everybody.index]
    everybody["label"] = labels[rows]
    for row in found.groups:
        own = everybody[everybody.gender == int(row.group.name)]
        assert row.group.n == len(own) and row.mean[0] == pytest.approx(own.p.mean(), abs=1e-4)
        assert row.observed == pytest.approx((own.label > 0).mean())
        half = 1.959964 * own.p.std(ddof=1) / len(own) ** 0.5
        assert row.high[0] - row.mean[0] == pytest.approx(half, rel=0.01)


def test_of_few_people_no_mean_is_told(context):
    found = means(context, "gender", samples=2 * MIN_PEOPLE - 1).start().get()
    assert found.groups == () and found.n == 2 * MIN_PEOPLE - 1


@pytest.mark.parametrize(
    ("measure", "options", "reason"),
    [
        (permutation, {"repeats": 0}, "0 repeats"),
        (permutation, {"samples": 49}, "among 50 or more"),
        (means, {"feature": "age"}, "No Host offered the feature"),
        (means, {"feature": "nothing"}, "No Host offered the feature"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_words(context, measure, options, reason):
    with pytest.raises(ParameterError, match=reason):
        measure(context, **options).start().get()


def test_a_measurement_can_be_stopped(context):
    for job in (permutation(context), means(context, "gender")):
        job.cancel()
        with pytest.raises(Cancelled):
            job.start().get()


def test_a_host_that_counts_refuses_and_nothing_is_told_of_the_rest(context, monkeypatch):
    open_session = context.runtime.open_session

    def counted(hosts, cancelled=lambda: False, **options):
        return open_session(hosts, cancelled)

    for host in context.runtime._simulated.hosts.values():
        monkeypatch.setattr(host.accountant, "limits", Limits(1))
    runtime = Answering(context.runtime, {"open_session": counted})
    request = PermutationRequest(context.record.id, cipher="none", samples=60, repeats=1)
    with pytest.raises((ParameterError, SecurityError), match="answered about them before"):
        Job(lambda job: measure_permutation(replace(context.measured, runtime=runtime), request, job), 1).start().get()
