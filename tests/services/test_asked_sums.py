"""A Host that counts answers once about groups of some people: what was answered serves again, and nobody gets a second answer."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from answering import Answering
from inside import workspace_of
from measurement_contexts import KEY, TrainedDemo
from release_rule import EVERY_SCORE
from sqlalchemy import text

from backend.errors import ApprovalPending, HostBusy, HostRefused, PartyUnreachable
from backend.jobs import Job
from backend.protocols.group_sums.guest import SentMarks
from backend.protocols.group_sums.messages import GroupPairs
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services.alternatives import AlternativesRequest
from backend.services.asked_sums import TEST, AskedSums, _Question
from backend.services.explanation import MeansRequest, measure_means
from backend.services.fairness import DisparityRequest, ProxyRequest, measure_disparity, measure_proxies
from backend.services.measurement import Sessions, asked_by, drawn, is_of_share
from backend.services.training import TrainingRequest
from backend.services.validation import OperatorConfig, ValidationRequest
from backend.store.accountant import GROUPS, Limits
from backend.store.journal import Journal

FEATURE, HOST, SAMPLES = "gender", "telecom", 200
TENURE = "tenure_months"  # a number of the same Host's


class Demo(TrainedDemo):
    def request(self, **options):
        options = {"cutoff": 0.5, "samples": SAMPLES, "cipher": "none", "key_bits": KEY} | options
        return DisparityRequest(self.record.id, **{"feature": FEATURE, **options})

    def disparity(self, context=None, **options):
        return measure_disparity(context or self.measured, self.request(**options), Job(lambda job: None, 1))

    def validated(self):
        request = ValidationRequest(self.record.id, samples=SAMPLES, cipher="none", key_bits=KEY)
        return self.glassleaf.validation.start(request).get()

    def answers(self):
        """How often the Host answered about each person's group by the feature."""
        with self.runtime._simulated.hosts[HOST].accountant._database.read() as session:
            rows = session.execute(
                text(
                    "SELECT COALESCE(crowds.subject, answers.subject), structure, SUM(asked) "
                    "FROM answers LEFT JOIN crowds ON crowd = answers.subject WHERE kind = :kind GROUP BY 1, 2"
                ),
                {"kind": GROUPS},
            )
            return {(subject, structure): asked for subject, structure, asked in rows}

    def forget(self):
        """Nothing was asked, and nothing answered."""
        for host in self.runtime._simulated.hosts.values():
            with host.accountant._database.write() as session:
                session.execute(text("DELETE FROM answers"))
                session.execute(text("DELETE FROM questions"))
        with workspace_of(self.glassleaf).database("demo").write() as session:
            session.execute(text("DELETE FROM measurements WHERE kind LIKE 'sums: %'"))

    def kept(self, feature=FEATURE):
        return (
            workspace_of(self.glassleaf).measurements("demo").of(self.record.content_hash, f"sums: {TEST}").get(feature)
        )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    demo = Demo(tmp_path_factory.mktemp("asked"))
    yield demo
    demo.glassleaf.close()


@pytest.fixture
def demo(made, monkeypatch):
    """Hosts that answer about groups once, with nothing asked yet."""
    for host in made.runtime._simulated.hosts.values():
        monkeypatch.setattr(host.accountant, "limits", Limits(1))
    made.forget()
    return made


def today():
    return datetime.now(UTC).date().isoformat()


def figures(done, party=None):
    """Figures of the tests by group, of Hosts' features."""
    return {
        test.id: [one.figure for one in test.figures if one.figure.party in (party or ("telecom", "platform"))]
        for test in done.tests
        if test.id in ("group_calibration", "weak_spots", "overfit_regions", "disparity")
    }


def test_a_second_validation_within_the_window_has_the_figures_of_the_first_with_their_day(demo):
    first, second = demo.validated(), demo.validated()
    assert not first.again and figures(first) == figures(second) and any(figures(second).values())
    assert {day for _, _, day in second.again} == {today()} and not second.unexamined
    assert {(p, f) for p, f, _ in second.again} == {
        (p, f.name) for p, f in demo.runtime.federation.features() if p in demo.record.hosts and demo.kept(f.name)
    }


def test_disparity_follows_from_what_was_answered_for_validation(demo):
    fresh = demo.disparity()
    assert not fresh.measured and fresh.n == SAMPLES
    with demo.runtime._simulated.hosts[HOST].accountant._database.write() as session:
        session.execute(text("DELETE FROM answers"))
        session.execute(text("DELETE FROM questions"))
    demo.validated()
    before = demo.answers()
    again = demo.disparity()
    assert again.measured == today() and replace(again, measured="") == fresh
    assert demo.answers() == before and set(before.values()) == {1}


def test_an_answer_about_two_features_together_serves_the_one_alone_and_not_the_other_way_round(demo):
    half = {"cutoff": float(np.median(demo.probabilities()))}
    together = demo.disparity(crossed="home_ownership", **half)
    again = demo.disparity(crossed="home_ownership", **half)
    assert together.groups and again.measured == today() and replace(again, measured="") == together
    alone = demo.disparity(**half)
    assert alone.measured == today() and alone.n == SAMPLES and [g.group.name for g in alone.groups] == ["1", "2"]
    with pytest.raises(HostRefused):
        demo.disparity(crossed="age", **half)


def test_two_features_of_a_host_together_serve_each_alone_if_no_cell_was_too_small(demo):
    half = {"cutoff": float(np.median(demo.probabilities())), "groups": 2}
    fresh = [demo.disparity(feature=name, **half) for name in (FEATURE, TENURE)]
    demo.forget()
    together = demo.disparity(crossed=TENURE, **half)
    again = demo.disparity(crossed=TENURE, **half)
    assert len(together.groups) == 4 and again.measured == today() and replace(again, measured="") == together
    for feature, alone in zip((FEATURE, TENURE), fresh, strict=True):
        assert demo.disparity(feature=feature, **half) == replace(alone, measured=today())


def test_where_small_cells_were_put_together_neither_feature_alone_is_measured(demo):
    half = {"cutoff": float(np.median(demo.probabilities())), "samples": None}
    together = demo.disparity(crossed=TENURE, **half)
    assert [outcome.group.kind for outcome in together.groups][-1] == "rest"
    for feature in (FEATURE, TENURE):
        with pytest.raises(HostRefused):
            demo.disparity(feature=feature, **half)


def test_disparity_first_serves_validation_in_its_turn(demo):
    demo.disparity()
    done = demo.validated()
    assert (HOST, FEATURE, today()) in done.again and (HOST, FEATURE) not in done.unexamined
    assert {p for p, _, _ in done.again} == {HOST}  # the others were asked


def test_where_scores_are_counted_too_nobody_is_scored_again_and_figures_by_group_are_there(demo, monkeypatch):
    counting = Answering(demo.runtime.operator, {"leave_uncounted": lambda *given: None})
    monkeypatch.setattr(demo.runtime, "operator", counting)
    first = demo.validated()
    second = demo.validated()
    assert second.n == 0 and first.n == SAMPLES
    everyone = (*demo.record.hosts, demo.runtime.guest.name)
    assert figures(first, everyone) == figures(second, everyone) and figures(second, everyone)["weak_spots"]


@pytest.fixture
def counted(demo, monkeypatch):
    """Measure Hosts that count scores as well, as those at their own companies do."""
    demo.middle = float(np.median(demo.probabilities()))
    counting = Answering(demo.runtime.operator, {"leave_uncounted": lambda *given: None})
    monkeypatch.setattr(demo.runtime, "operator", counting)
    apart = Answering(demo.runtime, {"simulated": False, "ask_approval": lambda *given: None})
    monkeypatch.setattr(demo, "measured", replace(demo.measured, runtime=apart))
    return demo


def means(demo, feature):
    request = MeansRequest(demo.record.id, feature, cipher="none", key_bits=KEY)
    return measure_means(demo.measured, request, Job(lambda job: None, 1))


def outcomes(demo, feature, **options):
    options = {"feature": feature, "samples": None} | options
    return measure_disparity(demo.measured, replace(demo.request(), **options), Job(lambda job: None, 1))


FIRST = {
    "one attribute": lambda demo: outcomes(demo, FEATURE),
    "in other groups": lambda demo: outcomes(demo, FEATURE, groups=3),
    "two together": lambda demo: outcomes(demo, FEATURE, crossed="home_ownership", cutoff=demo.middle),
    "an attribute of the Guest": lambda demo: outcomes(demo, "home_ownership"),
    "a curve": lambda demo: means(demo, "average_order"),
}


@pytest.mark.parametrize("first", FIRST)
def test_where_scores_are_counted_the_first_question_asks_for_all_so_that_the_order_decides_nothing(counted, first):
    cutoff = counted.middle if first == "two together" else 0.5
    FIRST[first](counted)
    before = counted.answers()
    for feature in (TENURE, "marital_status", "basket_mix", "age"):
        found = outcomes(counted, feature, cutoff=cutoff)
        assert found.measured == today() and len(found.groups) >= 2, feature
        assert found.n == len(counted.measured.test_ids)
    assert means(counted, TENURE).measured == today()
    assert counted.answers() == before and set(before.values()) == {1}


def test_two_features_of_a_host_that_are_asked_about_first_leave_the_other_features_their_answers(counted):
    together = outcomes(counted, FEATURE, crossed=TENURE, cutoff=counted.middle)
    assert len(together.groups) > 4 and not together.measured
    before = counted.answers()
    for feature in ("marital_status", "basket_mix", "age"):
        assert outcomes(counted, feature, cutoff=counted.middle).measured == today(), feature
    with pytest.raises(HostRefused):
        outcomes(counted, TENURE, cutoff=counted.middle)
    assert counted.answers() == before and set(before.values()) == {1}


@pytest.fixture
def real(demo, monkeypatch):
    """People who are real, with three attributes that are protected: two of one Host and one of the Guest."""
    federation = demo.runtime.federation.model_copy(update={"synthetic": False})
    apart = Answering(demo.runtime, {"federation": federation})
    protected = {FEATURE, TENURE, "home_ownership"}
    monkeypatch.setattr(demo, "measured", replace(demo.measured, runtime=apart, protected=lambda: protected))
    return demo


def proxies(demo, attribute):
    request = ProxyRequest(demo.record.id, attribute, cipher="none", key_bits=KEY, bins=2, groups=2)
    return measure_proxies(demo.measured, request, Job(lambda job: None, 1))


def test_possible_proxies_of_each_protected_attribute_are_measured_in_any_order(real):
    attributes = (FEATURE, TENURE, "home_ownership", "basket_mix")
    found = {attribute: proxies(real, attribute) for attribute in attributes}
    assert all(one.features and not one.measured for one in found.values())
    assert set(real.answers().values()) == {1}
    real.forget()
    assert {attribute: proxies(real, attribute) for attribute in reversed(attributes)} == found


def test_possible_proxies_of_two_features_that_no_rule_protects_are_of_the_same_people(real):
    proxies(real, "basket_mix")
    until = (datetime.now(UTC).date() + timedelta(days=28)).isoformat()
    with pytest.raises(HostRefused, match=f"wait until {until} at least"):
        proxies(real, "orders_12m")


def test_an_account_that_cannot_bear_all_features_answers_protected_ones_first_and_the_refusal_names_them(
    counted, monkeypatch
):
    monkeypatch.setattr(
        counted, "measured", replace(counted.measured, protected=lambda: {"night_call_share"})
    )  # the last of its Host
    for host in counted.runtime._simulated.hosts.values():
        monkeypatch.setattr(host.accountant, "limits", Limits(1, bits=24.0))
    outcomes(counted, TENURE)
    assert outcomes(counted, "night_call_share").measured == today()
    with pytest.raises(HostRefused) as refused:
        outcomes(counted, "in_blacklist")
    [remark] = refused.value.remarks
    instead = remark.values["last"]
    until = (datetime.now(UTC).date() + timedelta(days=28)).isoformat()
    assert remark.code == "not_begun_measured" and remark.values["why"].values["why"].code == "bits_reached"
    assert instead.code == "summed_without" and instead.values["until"] == until
    assert {TENURE, "night_call_share"} <= set(instead.values["answered"]) and "in_blacklist" not in instead.values[
        "answered"
    ]


def test_people_whom_hosts_have_scored_are_not_measured_and_the_refusal_says_what_was_asked_of_them(counted):
    outcomes(counted, "home_ownership")
    with pytest.raises(HostRefused) as refused:
        outcomes(counted, "home_ownership", crossed="age")
    [remark] = refused.value.remarks
    assert remark.code == "scored_without" and "gender" in remark.values["instead"].values["answered"]


def test_means_by_group_follow_from_what_was_answered_for_validation_and_nobody_is_scored_or_asked_for_them(demo):
    demo.validated()
    before = demo.answers()

    def scored(*given, **more):
        raise AssertionError("somebody was scored for what is known")

    watching = replace(
        demo.measured, runtime=Answering(demo.runtime, {"guest": Answering(demo.runtime.guest, {"score": scored})})
    )
    request = MeansRequest(demo.record.id, FEATURE, samples=SAMPLES, cipher="none", key_bits=KEY)
    found = measure_means(watching, request, Job(lambda job: None, 1))
    assert found.measured == today() and found.n == SAMPLES and demo.answers() == before
    ids = [demo.runtime.table.ids[row] for row in drawn(demo.measured, SAMPLES, request.seed)]
    predicted, labels = demo.probabilities().loc[ids], demo.people.loc[ids, demo.runtime.federation.label.column]
    positive = labels.astype(str) == demo.runtime.federation.label.positive
    of = demo.people.loc[ids, FEATURE].map(lambda code: f"{code:g}" if isinstance(code, float) else str(code))
    assert len(found.groups) > 1
    for row in found.groups:
        own = predicted[of == row.group.name].to_numpy()
        error = 1.96 * own.std(ddof=1) / len(own) ** 0.5
        assert row.group.n == len(own) >= 50 and row.mean[0] == pytest.approx(own.mean(), abs=1e-4)
        assert row.high[0] - row.mean[0] == pytest.approx(error, rel=0.02)
        assert row.observed == pytest.approx(positive[of == row.group.name].mean())


def test_means_by_group_are_asked_for_where_the_host_would_answer(demo):
    demo.validated()
    with demo.runtime._simulated.hosts[HOST].accountant._database.write() as session:
        session.execute(text("DELETE FROM answers"))
        session.execute(text("DELETE FROM questions"))
    request = MeansRequest(demo.record.id, FEATURE, samples=SAMPLES, cipher="none", key_bits=KEY)
    assert not measure_means(demo.measured, request, Job(lambda job: None, 1)).measured


def test_a_changed_population_of_one_person_fewer_gets_no_second_answer(demo):
    whole = demo.disparity(samples=None)
    sums, before = demo.kept(), demo.answers()
    fewer = replace(demo.measured, test_ids=demo.measured.test_ids[1:])
    again = demo.disparity(fewer, samples=None)
    assert (
        again.measured == today() and replace(again, measured="") == whole
    )  # the same people as before, not one fewer
    assert demo.kept() == sums and demo.answers() == before


@pytest.mark.parametrize("changed", [{"cutoff": 0.3}, {"groups": 8}])
def test_another_decision_or_grouping_is_another_question_and_says_until_when_it_waits(demo, changed):
    demo.disparity()
    before = demo.answers()
    # gender has no more groups; the question is another one all the same
    until = (datetime.now(UTC).date() + timedelta(days=28)).isoformat()
    with pytest.raises(HostRefused, match=f"Nothing was begun: {HOST} refused: .* wait until {until} at least"):
        demo.disparity(**changed)
    assert demo.answers() == before


def test_fewer_groups_follow_from_the_answer_about_more(demo):
    whole = demo.disparity(groups=8)
    before = demo.answers()
    found = demo.disparity(groups=2)
    assert found.measured == today() and demo.answers() == before
    assert replace(found, measured="") == whole  # two codes are two groups


def test_a_curve_serves_disparity_and_validation_and_no_person_is_in_two_answers(demo):
    request = MeansRequest(demo.record.id, TENURE, samples=SAMPLES, cipher="none", key_bits=KEY)
    curve = measure_means(demo.measured, request, Job(lambda job: None, 1))
    before = demo.answers()
    assert not curve.measured and len(curve.groups) >= 2 and set(before.values()) == {1}
    found = measure_disparity(demo.measured, replace(demo.request(), feature=TENURE), Job(lambda job: None, 1))
    assert found.measured == today() and found.n == SAMPLES and demo.answers() == before
    done = demo.validated()
    assert (HOST, TENURE, today()) in done.again and not done.unexamined
    assert any(one.feature == TENURE for one in figures(done)["group_calibration"])
    assert set(demo.answers().values()) == {1}


def test_a_curve_at_another_cut_off_leaves_validation_without_decisions_by_the_feature_and_no_more(demo):
    request = MeansRequest(demo.record.id, TENURE, samples=SAMPLES, cipher="none", key_bits=KEY, cutoff=0.3)
    measure_means(demo.measured, request, Job(lambda job: None, 1))
    request = ValidationRequest(demo.record.id, samples=SAMPLES, cipher="none", key_bits=KEY)
    request = replace(request, config=OperatorConfig(attributes=(TENURE,)))
    done = demo.glassleaf.validation.start(request).get()
    assert done.without_decisions == ((HOST, TENURE),) and (HOST, TENURE, today()) in done.again and not done.unexamined
    by_test = figures(done)
    assert any(one.feature == TENURE for one in by_test["group_calibration"])
    assert FEATURE in (compared := {one.feature for one in by_test["disparity"]}) and TENURE not in compared


def test_another_model_on_the_same_people_is_refused_and_gets_nothing_of_the_first_ones(demo):
    demo.disparity()
    smaller = SecureBoostParameters(trees=2, depth=2, learning_rate=0.4, cipher="none")
    other = demo.glassleaf.training.start(TrainingRequest("demo", smaller, most_named=EVERY_SCORE)).get()
    with pytest.raises(HostRefused, match=r"Nothing was begun: .* 28 days"):
        demo.glassleaf.fairness.start_disparity(replace(demo.request(), model_id=other.id)).get()
    done = demo.glassleaf.validation.start(
        ValidationRequest(other.id, samples=SAMPLES, cipher="none", key_bits=KEY)
    ).get()
    assert (HOST, FEATURE) in done.unexamined and not done.again


def watched(demo, on_pairs):
    """What measurements start from, where `on_pairs` is called with each message of marks before it is sent."""

    def opening(*given, **more):
        session = demo.runtime.open_session(*given, **more)

        def send(host, message):
            if isinstance(message, GroupPairs):
                on_pairs(message)
            session.send(host, message)

        return Answering(session, {"send": send})

    return replace(demo.measured, runtime=Answering(demo.runtime, {"open_session": opening}))


def test_of_two_at_once_one_is_answered_and_the_other_takes_that_answer(demo):
    others = []

    def interrupted(message):
        if message.pairs and not others:  # after both have asked ahead
            others.append(demo.disparity())

    # on plaintext both would ask in the same bytes, which is the same question
    found = demo.disparity(watched(demo, interrupted), cipher="paillier")
    assert found.measured == today() and replace(found, measured="") == others[0] and not others[0].measured
    assert set(demo.answers().values()) == {1}


def killed(*given):
    raise KeyboardInterrupt


def lose_an_answer(demo, cipher="paillier"):
    """A Guest that is killed between a Host's answer and its record."""
    with pytest.raises(KeyboardInterrupt):
        demo.disparity(
            replace(demo.measured, measurements=Answering(demo.measured.measurements, {"put": killed})), cipher=cipher
        )
    assert demo.kept() is None and set(demo.answers().values()) == {1}


def test_an_answer_that_a_killed_guest_lost_is_given_again_to_the_same_bytes_and_counted_once(demo):
    lose_an_answer(demo)
    before, sent = demo.answers(), []
    found = demo.disparity(watched(demo, lambda message: sent.append(message.pairs)), cipher="paillier")
    assert found.measured == today() and demo.answers() == before
    assert sum(map(bool, sent)) == 1  # the bytes of then; what asks ahead marks nobody
    with demo.runtime._simulated.hosts[HOST].accountant._database.write() as session:
        session.execute(text("DELETE FROM answers"))
        session.execute(text("DELETE FROM questions"))
    fresh = demo.disparity()
    assert replace(found, measured="") == fresh
    assert demo.runtime.journal.kept()[0] == 0


@pytest.mark.parametrize(
    "error",
    [
        PartyUnreachable("platform: down."),
        pytest.param(HostRefused("no"), marks=pytest.mark.slow),
        pytest.param(HostBusy("later", 1.0), marks=pytest.mark.slow),
    ],
)
def test_a_host_that_is_down_holds_up_nobody_who_asks_another_one_and_the_answer_is_taken_later(demo, error):
    """Validation asks all Hosts in one conversation; broken off, it is repeated with all of them or not yet."""
    request = ValidationRequest(demo.record.id, samples=SAMPLES, cipher="paillier", key_bits=KEY)
    owners = {f.name: party for party, f in demo.runtime.federation.features() if party in demo.record.hosts}
    lost = []

    def put(digest, kind, feature, kept):
        if feature in owners:  # else the Guest's own sums
            lost.append(feature)
            killed()

    measured = replace(demo.measured, measurements=Answering(demo.measured.measurements, {"put": put}))
    whole = demo.glassleaf.validation
    measurement = Answering(whole._measurement, {"context": lambda record: measured})
    with pytest.raises(KeyboardInterrupt):
        type(whole)(measurement, whole._compliance, whole._differences).run(request, Job(lambda job: None, 1))
    assert demo.runtime.journal.kept()[0] == 1
    [answered] = lost
    [down] = set(demo.record.hosts) - {owners[answered]}
    other = next(name for name, party in owners.items() if party == owners[answered] and name != answered)

    def opening(hosts, *given, **more):
        if down in hosts and more["counted"]:
            raise error
        return demo.runtime.open_session(hosts, *given, **more)

    without = replace(demo.measured, runtime=Answering(demo.runtime, {"open_session": opening}))
    asked = replace(demo.request(cipher="paillier"), feature=other)
    assert not measure_disparity(without, asked, Job(lambda job: None, 1)).measured
    assert demo.runtime.journal.kept()[0] == 1  # what was broken off waits for the one that is down
    asked = replace(asked, feature=answered)
    assert measure_disparity(demo.measured, asked, Job(lambda job: None, 1)).measured == today()  # all are up again
    assert demo.runtime.journal.kept()[0] == 0 and set(demo.answers().values()) == {1}


def test_what_no_host_has_answered_is_not_asked_again_in_place_of_what_is_wanted_now(demo):
    def send(message):
        if message.pairs:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        demo.disparity(watched(demo, send), cipher="paillier")
    assert demo.runtime.journal.kept()[0] == 1 and not demo.answers()
    found = demo.disparity(cipher="paillier", cutoff=0.4)
    assert not found.measured and found.cutoff == 0.4 and set(demo.answers().values()) == {1}
    assert demo.runtime.journal.kept()[0] == 0


def test_the_bytes_are_given_up_where_people_or_the_key_are_others_and_the_host_answers_nobody_twice(demo, monkeypatch):
    lose_an_answer(demo)
    with pytest.raises(HostRefused, match="Nothing was begun"):
        demo.disparity(cipher="none")  # another key: the marks cannot be read
    assert demo.runtime.journal.kept()[0] == 0 and set(demo.answers().values()) == {1}


def test_a_host_whose_records_changed_since_gives_no_second_answer(demo, monkeypatch):
    lose_an_answer(demo)
    monkeypatch.setattr(demo.runtime._simulated.hosts[HOST].accountant, "_records", "others")
    with pytest.raises(HostRefused, match="Nothing was begun"):
        demo.disparity(cipher="paillier")
    assert demo.kept() is None and set(demo.answers().values()) == {1}


def test_other_marks_of_the_same_people_are_another_question_also_after_a_kill(demo):
    """What a Guest that departs from the protocol would send: of two sums the difference would tell whose mark changed."""
    lose_an_answer(demo)
    journal = demo.runtime.journal

    def changed(question):
        [run] = journal.broken_off(question)
        batch = run.batch(0)
        one = bytearray(batch.sent[2])
        one[:512] = batch.sent[2][512:1024]  # the first person is marked as the second was
        sent = (*batch.sent[:2], bytes(one), *batch.sent[3:])
        return [Answering(run, {"batch": lambda number: replace(batch, sent=sent)})]

    context = replace(
        demo.measured, runtime=Answering(demo.runtime, {"journal": Answering(journal, {"broken_off": changed})})
    )
    with pytest.raises(HostRefused, match="Nothing was begun"):
        demo.disparity(context, cipher="paillier")
    assert demo.kept() is None and set(demo.answers().values()) == {1}


def in_another_process(demo):
    """What measurements of a second process start from, which does not know what this one is at."""
    return replace(demo.measured, runtime=Answering(demo.runtime, {"journal": Journal(demo.runtime.journal._database)}))


def while_writing(demo, happens):
    """What measurements start from, where something happens once while a question is being written down."""
    journal, waits = demo.runtime.journal, [happens]

    def begun(*given, **more):
        run = journal.run(*given, **more)

        def sending(number, piece, sent):
            if piece and waits:
                waits.pop()()
            return run.sending(number, piece, sent)

        return Answering(run, {"sending": sending})

    return replace(demo.measured, runtime=Answering(demo.runtime, {"journal": Answering(journal, {"run": begun})}))


def test_a_question_that_another_process_is_writing_down_is_not_taken_for_one_that_was_broken_off(demo):
    others = []
    meanwhile = while_writing(demo, lambda: others.append(demo.disparity(in_another_process(demo), cipher="paillier")))
    found = demo.disparity(meanwhile, cipher="paillier")
    assert found.measured == today() and not others[0].measured and replace(found, measured="") == others[0]
    assert set(demo.answers().values()) == {1}


def test_what_two_processes_write_down_at_once_is_not_mixed(demo):
    def other():
        with pytest.raises(KeyboardInterrupt):
            lost = in_another_process(demo)
            demo.disparity(
                replace(lost, measurements=Answering(lost.measurements, {"put": killed})), cipher="paillier", cutoff=0.4
            )

    with pytest.raises(HostRefused):  # the Host got the other's first
        demo.disparity(while_writing(demo, other), cipher="paillier")
    assert set(demo.answers().values()) == {1}
    found = demo.disparity(cipher="paillier", cutoff=0.4)  # the answer that the other process lost
    assert found.measured == today() and set(demo.answers().values()) == {1}


def test_what_is_kept_names_nobody_and_holds_no_group_of_few(demo):
    demo.validated()
    body = str([demo.kept(f.name) for _, f in demo.runtime.federation.features()])
    assert not any(repr(person) in body for person in demo.runtime.table.ids)
    assert all(n >= 20 for _, _, n in demo.kept().rows[0]["groups"])


@pytest.mark.slow
def test_of_real_people_every_measurement_is_answered_and_each_person_is_in_one_answer(tmp_path, monkeypatch):
    """Disparity and validation share one of test records; a search asks about validation records, proxies about training records."""

    def real(folder):
        file = folder / "federation.toml"
        file.write_text(file.read_text().replace("synthetic = true", "synthetic = false"))

    demo = Demo(tmp_path, real)
    for host in demo.runtime._simulated.hosts.values():
        monkeypatch.setattr(host.accountant, "limits", Limits(1))
    glassleaf, model, ask = demo.glassleaf, demo.record.id, {"cipher": "none", "key_bits": KEY}
    try:
        found = glassleaf.fairness.start_proxies(ProxyRequest(model, FEATURE, **ask)).get()
        search = AlternativesRequest(model, FEATURE, depths=(1,), cutoffs=(0.25,), tolerance=0.05, **ask)
        assert glassleaf.alternatives.start(search).get().decisions and found.features
        assert not demo.disparity(samples=None).measured and not demo.validated().unexamined
        parts = glassleaf.models.part_of(demo.record)
        third = [i for i, part in parts.items() if part == "training" and asked_by(i) == "proxies"]
        protected = glassleaf.compliance.protected(model) | set(demo.record.exclude)
        share = [person for person in third if is_of_share(person, FEATURE, protected)]
        assert len(third) > 200 and found.n == len(share) >= 40
        assert set(demo.answers().values()) == {1}
        asked = {person for person, _ in demo.answers()}
        # validation asks nothing about 200 training records, of which no half can bear its sums in plaintext
        assert len(asked) == found.n + sum(part in ("test", "validation") for part in parts.values())
    finally:
        glassleaf.close()


def test_decisions_that_few_people_meet_are_not_summed_for_validation(demo):
    """At a cut-off which nearly everybody passes, sums of the accepted by group would tell the groups of the few others."""
    predicted = demo.probabilities().to_numpy()
    cutoff = float(np.sort(predicted)[-4])
    request = ValidationRequest(demo.record.id, samples=len(predicted), cipher="none", key_bits=KEY)
    request = replace(request, config=OperatorConfig(cutoff=cutoff, attributes=(FEATURE,)))
    done = demo.glassleaf.validation.start(request).get()
    accepted = demo.kept().rows[0]["sums"][0]
    assert accepted == [0] * len(accepted)
    found = {test.id: test for test in done.tests}
    assert not [one for one in found["disparity"].figures if one.figure.party == HOST]
    assert [one for one in found["group_calibration"].figures if one.figure.party == HOST] or found[
        "group_calibration"
    ].compared


def test_a_host_is_asked_ahead_before_anybody_is_scored_and_before_marks_are_encrypted(demo):
    marks = []
    demo.disparity(watched(demo, lambda message: marks.append(bool(message.pairs))))
    assert marks == [False, False, True]


def test_a_question_is_read_back_as_it_was_written_down():
    question = _Question({"cutoff": 0.5}, "people", today(), [(HOST, FEATURE)], (HOST,))
    made = SentMarks(b"rows", (b"pairs",), (1,), (3,), (0.2,), "paillier 3072")
    pieces = question.pieces(made)
    assert _Question.read(pieces) == (question, made)
    assert _Question.read(pieces[:-1]) is None


class Answers:
    """Questions whose Host has an answer without any groups."""

    records, hosts = 1000, (HOST,)

    def borne_by(self, largest, max_groups):
        return 20

    def would_answer(self, *asked):
        pass

    def send(self, *marks, **options):
        pass

    def ask(self, *asked, **options):
        return {}


class Waits(Answers):
    def would_answer(self, host, *asked):
        raise ApprovalPending(host, 7, datetime.now(UTC))


@pytest.fixture
def asked(demo):
    return AskedSums(demo.measured, Sessions(demo.runtime, Job(lambda job: None, 1)), TEST, 5)


def test_an_answer_without_groups_takes_no_earlier_ones_place(demo, asked):
    demo.disparity()
    before = demo.kept()
    about = before.rows[0]["about"]
    for feature in (FEATURE, TENURE):
        found, _ = asked.ask(Answers(), ["x"], [np.zeros(1, dtype=np.int64)], [1], about, {HOST: (feature,)})
        assert found[HOST, feature].groups == ()
    assert demo.kept() == before and before.rows[0]["groups"] and demo.kept(TENURE).rows[0]["groups"] == []


def test_sums_that_wait_for_a_hosts_operator_stand_in_the_guests_log_once(demo, asked):
    for _ in range(2):
        found, refused = asked.ask(Waits(), ["x"], [np.zeros(1, dtype=np.int64)], [1], {}, {HOST: (FEATURE,)})
        assert not found and isinstance(refused[HOST, FEATURE], ApprovalPending)
    bodies = [one.body for one in demo.glassleaf.audit.entries("demo") if one.action == "approval"]
    assert [(one["host"], one["number"], one["state"]) for one in bodies] == [(HOST, 7, "waiting")]


def curve(demo, context=None, **options):
    options = {"samples": SAMPLES, "cipher": "none", "key_bits": KEY} | options
    request = MeansRequest(demo.record.id, FEATURE, **options)
    return measure_means(context or demo.measured, request, Job(lambda job: None, 1))


def test_a_second_curve_at_another_cut_off_or_of_one_person_fewer_is_no_second_answer(demo):
    first = curve(demo, samples=10_000)
    before, kept = demo.answers(), demo.kept()
    fewer = replace(demo.measured, test_ids=demo.measured.test_ids[1:])
    for again in (curve(demo, fewer, samples=10_000), curve(demo, samples=10_000, cutoff=0.3)):
        assert again.measured == today() and again.groups == first.groups
    assert demo.answers() == before and set(before.values()) == {1} and demo.kept() == kept


def test_of_two_curves_at_once_one_is_answered_and_the_other_takes_that_answer(demo):
    others = []

    def interrupted(message):
        if message.pairs and not others:
            others.append(curve(demo))

    found = curve(demo, watched(demo, interrupted), cipher="paillier")
    assert found.measured == today() and found.groups == others[0].groups and not others[0].measured
    assert set(demo.answers().values()) == {1}
