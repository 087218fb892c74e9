"""What was planted in the demo is found by encrypted counts, and outcomes by group are those counted with everything in one hand."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from types import SimpleNamespace

import measurement_contexts
import numpy as np
import pandas as pd
import pytest
from confirmed_reasons import code_of
from measurement_contexts import KEY

from backend.compliance.assessment import assess, with_evidence
from backend.data.demo import PLANTED
from backend.errors import Cancelled, FewRecords, HostRefused, ParameterError
from backend.fairness.disparity import as_evidence
from backend.fairness.proxies import as_evidence as proxy_evidence
from backend.jobs import Job, work
from backend.protocols.group_sums.grouping import Group, group, to_wire
from backend.services.asked_sums import GROUPS_OF, AnsweredSums
from backend.services.fairness import DisparityRequest, ProxyRequest, _Crossed, measure_disparity, measure_proxies
from backend.store.accountant import Limits

CUTOFF = 0.25


class TrainedDemo(measurement_contexts.TrainedDemo):
    """The two measurements as the services offer them."""

    def proxies(self, attribute, cipher="none", **options):
        request = ProxyRequest(self.record.id, attribute, cipher=cipher, key_bits=KEY, **options)
        return Job(lambda job: measure_proxies(self.measured, request, job), 1)

    def disparity(self, feature, cipher="none", **options):
        request = DisparityRequest(self.record.id, feature, CUTOFF, cipher=cipher, key_bits=KEY, **options)
        return Job(lambda job: measure_disparity(self.measured, request, job), 1)

    def together(self, feature, crossed, cipher="none", **options):
        """Of two features, at a line that accepts half of the people: few records bear no other."""
        request = DisparityRequest(self.record.id, feature, self.middle, cipher=cipher, key_bits=KEY, crossed=crossed)
        return Job(lambda job: measure_disparity(self.measured, replace(request, **options), job), 1)

    @cached_property
    def middle(self):
        return float(np.median(self.predicted))

    @cached_property
    def predicted(self):
        return self.probabilities()


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    made = TrainedDemo(tmp_path_factory.mktemp("evidence"))
    yield made
    made.glassleaf.close()


@pytest.mark.parametrize(
    ("attribute", "unsent", "days"), [("gender", "GroupPairsSent", 40), ("home_ownership", "GroupSums", 80)]
)
def test_associations_that_a_host_would_not_sum_again_are_refused_before_marks_are_encrypted(
    context, monkeypatch, attribute, unsent, days
):
    later = datetime.now(UTC).date() + timedelta(days=days)  # what was asked before has left the account
    for host in context.runtime._simulated.hosts.values():
        monkeypatch.setattr(host.accountant, "limits", Limits(1))
        monkeypatch.setattr(host.accountant, "_today", lambda: later)
    (before := context.proxies(attribute, records=800).start()).get()
    job = context.proxies(attribute, records=800, seed=8).start()  # about other people, of whom some are the same
    with pytest.raises(HostRefused, match=f"^Nothing was begun: .* wait until {later + timedelta(days=28)} at least"):
        job.get()
    assert job.total == 1 < before.total  # the number of ciphertexts is noted before the first of them
    # a Host encrypts marks once it is asked for them
    assert {"AskGroupPairs", unsent}.isdisjoint(entry.kind for entry in job.transcript)


@pytest.mark.slow
def test_the_planted_proxy_is_found_between_two_hosts_and_unrelated_features_are_not(context):
    party, attribute = PLANTED.gender
    found = context.proxies(attribute).start().get()
    assert (found.party, [g.name for g in found.groups], found.not_examined) == (party, ["1", "2"], ())
    best = found.features[0]
    assert (best.party, best.feature) == PLANTED.proxy_of_gender and best.found and 0.7 < best.v < 0.85
    assert best.v_low < best.v < best.v_high and best.chance < 0.1 and best.p < 0.05
    named = {a.feature for a in found.features if a.found}
    assert named <= {PLANTED.proxy_of_gender[1], "orders_12m"}  # orders have a weak part of gender in them
    assert {a.party for a in found.features} == {"bank", "telecom", "platform"} and len(found.features) == 23


def test_an_attribute_of_the_guest_is_related_to_the_hosts_features(context):
    found = context.proxies("age").start().get()
    # One group fewer than of another number: room is kept for those aged 62 or more, of whom the demo has too few.
    assert found.party == "bank" and found.n == 1426 and len(found.groups) == 4
    named = {a.feature for a in found.features if a.found}
    assert {"account_age_months", "marital_status", "home_ownership"} <= named
    assert named.isdisjoint({"basket_mix", "gender", "average_order", "spending_steadiness", "in_blacklist"})


def test_a_rare_feature_is_not_examined_and_named(context):
    found = context.proxies("gender", records=300).start().get()
    assert ("telecom", "in_blacklist") in found.not_examined
    assert "in_blacklist" not in {a.feature for a in found.features}


@pytest.mark.slow
@pytest.mark.parametrize("attribute", ["gender", "home_ownership"])
def test_under_encryption_the_figures_are_the_same(context, attribute):
    plain, encrypted = (
        context.proxies(attribute, cipher, records=120, bins=3).start().get() for cipher in ("none", "paillier")
    )
    assert plain == encrypted and len(plain.features) > 10


@pytest.mark.parametrize(("feature", "source"), [("gender", "sums"), ("home_ownership", "records")])
def test_outcomes_are_those_counted_with_everything_in_one_hand(context, feature, source):
    disparity = context.disparity(feature).start().get()
    assert disparity.source == source and disparity.cutoff == CUTOFF
    predicted = context.probabilities()
    people = context.people.loc[predicted.index].assign(p=predicted)
    assert disparity.n == len(people)
    for outcome in disparity.groups:
        code = int(outcome.group.name) if feature == "gender" else outcome.group.name
        own = people[people[feature] == code]
        bad = own.default_90d == 1
        assert outcome.group.n == len(own)
        shares = [(own.p < CUTOFF), (own.p >= CUTOFF)[bad], (own.p >= CUTOFF)[~bad]]
        for rate, share in zip(outcome.rates.values(), shares, strict=True):
            if rate.value is not None:
                assert (rate.n, rate.value) == (len(share), pytest.approx(share.mean()))
            else:
                assert len(share) < 20
        assert outcome.calibration.value == pytest.approx(bad.mean() - own.p.mean(), abs=2e-5)


def test_outcomes_under_encryption_are_the_same(context):
    plain, encrypted = (
        context.disparity("gender", cipher, samples=150).start().get() for cipher in ("none", "paillier")
    )
    assert plain == encrypted and plain.n == 150 and plain.gaps[0].others[0].ratio.value is not None
    assert plain.scores[0].smd.value is not None and len(plain.cutoffs) > 1


@pytest.mark.parametrize(("feature", "crossed"), [("gender", "home_ownership"), ("home_ownership", "gender")])
def test_a_feature_of_a_host_and_one_of_the_guest_are_counted_together(context, feature, crossed):
    disparity = context.together(feature, crossed).start().get()
    assert (disparity.party, disparity.feature, disparity.source) == PAIR
    assert_counted_in_one_hand(context, disparity, "home_ownership", "gender")


@pytest.mark.parametrize(("feature", "crossed"), [("gender", "tenure_months"), ("tenure_months", "gender")])
def test_two_features_of_a_host_are_counted_together(context, feature, crossed):
    disparity = context.together(feature, crossed).start().get()
    assert (disparity.party, disparity.feature) == ("telecom", "gender × tenure_months")
    people = context.people.loc[context.predicted.index].assign(p=context.predicted)
    gender = people.gender.map(code_of)
    tenure = in_bins(context, "tenure_months")
    left = pd.Series(True, index=people.index)
    # Small ones, put together, come last.
    for outcome, pair in zip(disparity.groups, disparity.pairs, strict=True):
        own = left if pair is None else (gender == pair[0].name) & (tenure + "/5" == pair[1].name)
        rate = outcome.rates["selection rate"]
        assert outcome.group.n == rate.n == own.sum() >= 20
        assert rate.value == pytest.approx((people.p < context.middle)[own].mean())
        left &= ~own
    assert not left.any() and len(disparity.groups) == 9 and disparity.pairs[-1] is None
    # Labels and a range of cut-offs are counted as of one feature.
    assert disparity.cutoffs and disparity.scores
    names = [name.en for name in context.glassleaf.fairness.names(context.record, disparity)]
    assert names[0] == "male × lowest of 5 bins" and names[-1] == "all other combinations together"


def test_of_two_features_of_a_host_too_few_people_make_no_groups(context):
    disparity = context.together("gender", "in_blacklist").start().get()
    assert disparity.groups == disparity.pairs == () and disparity.n == 0


def test_two_features_of_a_host_are_the_same_under_encryption(context):
    plain, encrypted = (
        context.together("gender", "tenure_months", cipher, samples=200, groups=2).start().get()
        for cipher in ("none", "paillier")
    )
    assert plain == encrypted and plain.groups


def test_decisions_about_too_few_people_of_a_group_are_not_asked_of_a_host(context):
    nearly_all = float(np.quantile(context.predicted, 0.97))
    refused = context.together("gender", "home_ownership", cutoff=nearly_all).start()
    with pytest.raises(FewRecords):
        refused.get()


def test_two_features_of_the_guest_are_counted_together(context):
    disparity = context.together("home_ownership", "age").start().get()
    assert disparity.source == "records" and disparity.party == "bank"
    assert_counted_in_one_hand(context, disparity, *disparity.feature.split(" × "))


PAIR = ("bank × telecom", "home_ownership × gender", "sums")


def in_bins(context, feature):
    """Number of each test person's bin of a feature of the Guest's."""
    entry = next(f for party, f in context.runtime.federation.features() if f.name == feature)
    ids = context.predicted.index
    grouped = group(entry, context.people.loc[ids, feature].to_numpy(dtype=float), 5)
    return pd.Series([grouped.groups[k].name for k in grouped.index], index=ids)


def assert_counted_in_one_hand(context, disparity, first, second):
    """Each cell is what all columns in one table give; one of fewer than 20 people is named, and no number of it is."""
    people = context.people.loc[context.predicted.index].assign(p=context.predicted)
    assert len(disparity.groups) > 3 and not disparity.cutoffs and not disparity.scores
    left = len(people)
    for outcome, pair in zip(disparity.groups, disparity.pairs, strict=False):
        own = people
        for place, (feature, cell) in enumerate(zip((first, second), pair, strict=True)):
            column = own[feature].map(code_of)
            if cell.kind == "bin":
                column = in_bins(context, feature)[own.index]
            named = {both[place].name for both in disparity.pairs}
            own = own[column == cell.name] if cell.kind in ("code", "bin") else own[~column.isin(named)]
        rate = outcome.rates["selection rate"]
        assert (outcome.group.n, rate.n, rate.value) == (
            len(own),
            len(own),
            pytest.approx((own.p < context.middle).mean()),
        )
        assert len(own) >= 20
        left -= len(own)
    assert all(group.n == 0 for group in disparity.small) and 0 <= left < 20 * max(1, len(disparity.small))
    assert len(disparity.pairs) == len(disparity.groups) + len(disparity.small)


def test_two_features_together_are_the_same_under_encryption(context):
    plain, encrypted = (
        context.together("gender", "home_ownership", cipher, samples=200).start().get()
        for cipher in ("none", "paillier")
    )
    assert plain == encrypted and plain.groups


def test_a_host_reads_nothing_of_the_guests_feature_when_two_are_counted_together(context):
    together = context.together("gender", "home_ownership", samples=200).start()
    alone = context.together("gender", "", samples=200).start()
    sent = []
    for job in (together, alone):
        job.get()
        sent.append([entry.kind for entry in job.transcript if entry.receiver == "telecom"])
    assert sent[0] == sent[1] and "AskGroupSums" in sent[0]


@pytest.mark.parametrize("measure", ["disparity", "proxies of a Host's", "proxies of the Guest's"])
def test_a_measurement_reports_shares_that_never_go_back(context, measure):
    shares = []
    job = Job(lambda job: None, 1)
    ask = {"cipher": "none", "key_bits": KEY}
    with work.watched(lambda: None, shares.append):
        if measure == "disparity":
            measure_disparity(context.measured, DisparityRequest(context.record.id, "gender", CUTOFF, **ask), job)
        else:
            attribute = "gender" if measure == "proxies of a Host's" else "age"
            measure_proxies(context.measured, ProxyRequest(context.record.id, attribute, records=400, **ask), job)
    assert shares == sorted(shares) and 0.9 < shares[-1] <= 1 and len(shares) > 3


def test_groups_are_held_against_the_one_that_was_chosen(context):
    (compared,) = context.disparity("gender", samples=150, reference="1").start().get().gaps[0].others
    (other,) = context.disparity("gender", samples=150, reference="2").start().get().gaps[0].others
    assert (compared.group.name, other.group.name) == ("2", "1")
    assert compared.difference.value == pytest.approx(-other.difference.value) and compared.p == other.p


def test_measuring_leaves_the_budgets_alone_and_tells_every_message(context, monkeypatch):
    begun, open_session = [], context.runtime.open_session

    def watched(hosts, cancelled, *, counted=True, purpose=None):
        begun.append((hosts, counted, purpose))
        return open_session(hosts, cancelled, counted=counted, purpose=purpose)

    monkeypatch.setattr(context.runtime, "open_session", watched)
    job = context.disparity("gender", samples=150).start()
    job.get()
    # it is asked ahead whether there will be an answer; groups ask about nobody's score
    of_host = (("telecom",), True, "disparity")
    assert begun == [of_host, (("telecom", "platform"), False, "disparity"), of_host]
    kinds = [entry.kind for entry in job.transcript]
    assert {"DecisionVectors", "EncryptedScores", "GroupPairs", "GroupSums"} <= set(kinds)
    assert kinds.index("GroupPairs") < kinds.index("GroupSums") < kinds.index("EncryptedScores")
    assert context.disparity("gender", samples=150).start().get() == job.result
    assert {e.receiver for e in job.transcript if e.kind == "GroupPairs"} == {"telecom"}


@pytest.mark.slow
def test_the_evidence_belongs_to_a_compliance_finding(context):
    proxies, disparity = context.proxies("gender").start().get(), context.disparity("gender").start().get()
    names = [g.group.name for g in disparity.groups]
    measured = {"gender": proxy_evidence(proxies.features)}, {"gender": as_evidence(disparity, names)}
    report = with_evidence(assess(context.offered, {}), *measured, {})
    findings = [f for f in report.findings if f.feature == "gender"]
    assert findings and all(f.proxies[0].about.en == "basket_mix" and f.disparities[0].about == "1" for f in findings)
    assert all(f.proxies is None for f in report.findings if f.feature != "gender")


@pytest.mark.parametrize(
    ("measure", "options", "reason"),
    [
        ("proxies", {"attribute": "shoe_size"}, "not a feature of this federation"),
        ("proxies", {"attribute": "gender", "bins": 1}, "; 1 were requested"),
        ("proxies", {"attribute": "gender", "records": 39}, "40 or more"),
        ("proxies", {"attribute": "in_blacklist", "records": 200}, "two groups of at least 20"),
        ("disparity", {"feature": "shoe_size"}, "not a feature of this federation"),
        ("disparity", {"feature": "gender", "samples": 0}, "0 test records"),
        ("disparity", {"feature": "gender", "samples": 10_000}, "10,000 test records"),
        ("disparity", {"feature": "gender", "groups": 99}, "; 99 were requested"),
        ("disparity", {"feature": "gender", "crossed": "gender"}, "together with itself"),
        ("disparity", {"feature": "gender", "crossed": "basket_mix"}, "two different Hosts hold them"),
        ("together", {"feature": "home_ownership", "crossed": "age", "reference": "x"}, "has no group x"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_words(context, measure, options, reason):
    with pytest.raises(ParameterError, match=reason):
        getattr(context, measure)(**options).start().get()


def test_a_measurement_can_be_stopped(context):
    for job in (context.proxies("gender", "paillier"), context.disparity("gender")):
        job.cancel()
        with pytest.raises(Cancelled):
            job.start().get()


def test_a_model_of_more_than_two_outcomes_has_no_outcomes_by_group(context):
    other = replace(context.measured, record=replace(context.record, task="number"))
    request = DisparityRequest(context.record.id, "gender", CUTOFF, cipher="none")
    with pytest.raises(ParameterError, match="two outcomes"):
        Job(lambda job: measure_disparity(other, request, job), 1).start().get()


class TestAHostThatMarksTheSamePeopleNoMore:
    """Under another key since a rotation, say: its marks are other bytes, and a second answer to whoever adds them up."""

    GROUPS = (Group("code", "a", 30), Group("code", "b", 30))
    KEYS = (("shop", "income"), ("shop", "visits"))

    def crossed(self, kept):
        class Refusing:
            def ask_of_host(self, *asked):
                raise HostRefused("answered before")

            def kept(self, keys, about, ids):
                return {key: kept[key] for key in keys if key in kept}

        questions = SimpleNamespace(records=60)
        return _Crossed(questions, ("p",) * 60, {4: Refusing()})

    def answered(self, about):
        return AnsweredSums(about, 4, "", "2026-11-20", self.GROUPS, np.array([[10, 20]]))

    def asked(self, kept):
        return self.crossed(kept).sums_of_host(("people", "sex", 4, 20), {"shop": ["income", "visits"]}, 4)

    def test_serves_again_what_its_groups_were_related_to_before(self):
        about = {GROUPS_OF: [list(one) for one in to_wire(self.GROUPS)]}
        groups, tables = self.asked({key: self.answered(about) for key in self.KEYS})
        assert groups == self.GROUPS and set(tables) == set(self.KEYS)

    @pytest.mark.parametrize("held", [0, 1])
    def test_is_said_to_refuse_where_an_answer_is_missing(self, held):
        about = {GROUPS_OF: [list(one) for one in to_wire(self.GROUPS)]}
        with pytest.raises(HostRefused):
            self.asked({key: self.answered(about) for key in self.KEYS[:held]})
