"""What is true of a model comes out worst first, and nothing that is broken, open or unmeasured is left out of it."""

from dataclasses import replace

import pytest

from backend.compliance.assessment import ComplianceReport, Question
from backend.compliance.concepts import Sign
from backend.evaluation.performance import Estimate, Performance
from backend.evaluation.validation import suite
from backend.evaluation.validation.suite import Figure, Judged, Validation
from backend.explain.direction import LearnedDirection
from backend.i18n import Text
from backend.reports.verdict.facts import KINDS, STATES, Fact, verdict_of, written
from backend.reports.verdict.judge import judge
from backend.results import ReleaseCheck
from tests.reports.verdict.conftest import RECORD, feature, finding, review

SEVENTEEN = tuple(feature(f"x{i}") for i in range(17))


def one(verdict, kind, about=None):
    found = [fact for fact in verdict.of(kind) if about is None or fact.about == about]
    assert len(found) == 1, found
    return found[0]


def result_of(test, verdict, value=0.2, missing=""):
    figures = (
        (Judged(Figure(measure="contradicting", value=value, n=100), "max", 0.0, 0.05, verdict),) if not missing else ()
    )
    return suite.Tested(test, "structure", True, Text("a source", "来源"), verdict, missing, figures=figures)


def validation(*tests):
    overall = "fail" if any(t.verdict == "fail" for t in tests) else "pass"
    return Validation("m1", "2026-11-01T00:00:00", "1", overall, tests, 0.3, 100, 100)


def quality(value, low, high, part="test"):
    return Performance(part, 500, (400, 100), (Estimate("auc", value, low, high),), (), None, None, ())


def test_a_meaning_is_one_that_somebody_wrote(known):
    fact = one(judge(known(SEVENTEEN)), "meaning")
    assert fact.state == "broken" and "0 of 17 features have a meaning" in fact.sentence.en
    assert "17 个特征中有 0 个" in fact.sentence.zh
    some = one(judge(known((*SEVENTEEN, feature("age", "Age")), splits={"age": 2})), "meaning")
    assert some.state == "undecided" and "1 of 18" in some.sentence.en  # the model uses none without a meaning
    chinese = one(judge(known((feature("age", "", "年龄"),))), "meaning")
    assert chinese.state == "no_breach"


def test_a_test_of_which_another_fact_says_that_it_is_missing_is_not_named_again(known):
    """Proxies may have been measured after the validation: then it would contradict them."""
    missing = [result_of(test, "not_provided", missing="not_measured") for test in ("proxies", "exactness")]
    fact = one(judge(known(validation=validation(*missing))), "test")
    assert fact.state == "not_measured" and "Exactness" in fact.sentence.en and "Proxies" not in fact.sentence.en


def test_a_failed_test_leads_the_verdict_by_its_name(known):
    verdict = judge(known(validation=validation(result_of("auc", "pass"), result_of("monotonicity", "fail"))))
    assert verdict.state == "broken"
    assert verdict.headline.en.startswith("Not ready: Expected directions failed.")
    assert verdict.facts[0].about == "monotonicity" and verdict.facts[0].figure.shown == "20.0\u00a0%"


def test_an_upheld_finding_is_worse_than_an_open_one_and_stays_in_the_headline(known):
    features = (feature("sex", "Sex", "性别"), feature("age", "Age", "年龄"))
    found = (finding("sex"), finding("sex", "r2"), finding("age", "r3"))
    open_one = judge(known(features, findings=found))
    assert [fact.state for fact in open_one.of("rule")] == ["undecided", "undecided"]
    upheld = judge(known(features, findings=found, reviews=(review("sex", "confirmed"),)))
    assert upheld.state == "broken" and "Sex in use" in upheld.headline.en and "使用了性别" in upheld.headline.zh
    assert [(fact.state, fact.about) for fact in upheld.of("rule")] == [
        ("broken", "sex"),
        ("undecided", "sex"),
        ("undecided", "age"),
    ]
    assert "Rita upheld this on 2026-11-20" in upheld.facts[0].sentence.en
    dismissed = judge(known(features, findings=found[:1], reviews=(review("sex", "overridden"),)))
    assert one(dismissed, "rule").state == "no_breach"


def test_every_test_that_was_not_measured_is_named(known):
    ids = ("time", "noise", "host_out", "swap_sets", "challenger")
    missing = tuple(result_of(test, "not_provided", missing="not_measured") for test in ids)
    verdict = judge(known(validation=validation(result_of("auc", "pass"), *missing)))
    (fact,) = (fact for fact in verdict.of("test") if fact.state == "not_measured")
    assert "5 tests were not measured" in fact.sentence.en
    for name in ("Stability by time", "Robustness to noise", "Loss of a Host", "Swap sets", "Champion and challenger"):
        assert name in fact.sentence.en
    assert one(judge(known()), "test").state == "not_measured"  # nobody ran the suite


def test_tests_that_too_few_records_leave_open_are_said_together_and_never_among_those_that_pass(known):
    undecided = (result_of("group_calibration", "undecided"), result_of("noise", "undecided"))
    verdict = judge(known(validation=validation(result_of("auc", "pass"), *undecided)))
    (fact,) = (fact for fact in verdict.of("test") if fact.state == "undecided")
    assert fact.title.en == "2 tests undecided" and "too few records to rule a failure out" in fact.sentence.en
    assert "Calibration by group" in fact.sentence.en and "Robustness to noise" in fact.sentence.en
    (passed,) = (fact for fact in verdict.of("test") if fact.state == "no_breach")
    assert "1 test" in passed.title.en


def test_what_was_switched_off_counts_as_not_measured(known):
    off = replace(result_of("noise", "pass"), verdict="off", because="too slow", figures=())
    states = {fact.state for fact in judge(known(validation=validation(off))).of("test")}
    assert states == {"not_measured"}


@pytest.mark.parametrize(
    ("value", "low", "high", "part", "state"),
    [
        (0.75, 0.70, 0.80, "test", "no_breach"),
        (0.52, 0.48, 0.56, "test", "undecided"),
        (0.40, 0.35, 0.45, "test", "broken"),
        (0.75, 0.70, 0.80, "joint", "undecided"),  # the model may have been trained on them
    ],
)
def test_quality_is_judged_by_its_interval_on_people_the_model_has_not_seen(known, value, low, high, part, state):
    assert one(judge(known(quality=quality(value, low, high, part))), "quality").state == state


def test_quality_without_scores_is_not_measured(known):
    assert one(judge(known()), "quality").state == "not_measured"


@pytest.mark.parametrize(("named", "state"), [(0.005, "no_breach"), (0.03, "undecided"), (0.67, "broken")])
def test_scores_that_reveal_more_than_the_suite_allows_are_a_breach(known, named, state):
    release = ReleaseCheck(0.0, ((10, named),), 3.0, 400, 2000)
    record = replace(RECORD, hosts=("shop",), release=release)
    assert one(judge(known(record=record)), "leak").state == state
    few = replace(record, release=replace(release, records=200))
    assert one(judge(known(record=few)), "leak").state == "not_measured"
    assert not judge(known()).of("leak")  # no Host takes part


def test_a_line_that_nobody_set_is_open(known):
    assert one(judge(known(policy_version=0)), "policy").state == "undecided"
    assert not judge(known()).of("policy")


def test_directions_against_expectation_are_open_and_none_stated_is_not_measured(known):
    def direction(expected, contradicts):
        return LearnedDirection("bank", "age", expected, "down", -1.0, contradicts, ())

    for expected, contradicts, state in (
        ("up", True, "undecided"),
        ("down", False, "no_breach"),
        ("none", False, "not_measured"),
    ):
        verdict = judge(known(directions=(direction(expected, contradicts),)))
        assert one(verdict, "direction").state == state


def test_questions_and_features_that_no_rule_read_are_told(known):
    question = Question(
        party="bank", feature="age", meaning=Text("Age"), about="about:age", title=Text("Age"), citation=Text("1"),
        sign=Sign("age", "name", "weak"), status="prohibited", usage=finding("age").usage,
        description="d", answer=None,
    )  # fmt: skip
    report = ComplianceReport(findings=(), assessed=1, packs=(), questions=(question,))
    fact = one(judge(known(compliance=report)), "question")
    assert fact.state == "undecided" and "1 question waits" in fact.sentence.en


def test_facts_are_ordered_by_state_and_kind_and_the_headline_counts_every_state():
    facts = [
        Fact(kind, "", state, Text(f"{kind} {state}", "甲"), Text("s", "句"), "overview")
        for kind in reversed(KINDS)
        for state in reversed(STATES)
    ]
    verdict = verdict_of("m1", facts)
    assert [fact.state for fact in verdict.facts] == [state for state in STATES for _ in KINDS]
    assert [fact.kind for fact in verdict.facts[: len(KINDS)]] == list(KINDS)
    n = len(KINDS)
    assert f"{n} broken, {n} undecided, {n} not measured, {n} without a breach shown" in verdict.headline.en
    assert verdict_of("m1", ()).state == "not_measured"


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.85, "number", "0.850"),
        (123.4, "number", "123"),
        (12.34, "number", "12.3"),
        (-0.0382, "points", "−3.8"),
        (0.8, "ratio", "0.80"),
    ],
)
def test_numbers_have_three_digits_and_a_true_minus(value, unit, shown):
    assert written(value, unit) == shown
