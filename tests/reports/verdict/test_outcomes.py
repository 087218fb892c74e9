"""Acceptance by group: judged at the line that somebody set, else along all cut-offs, by intervals that hold together."""

from dataclasses import replace

import pytest

from backend.fairness.age_discrimination import AgeCheck, AgeGap, verdict_of
from backend.fairness.evidence import Basis, Evidence
from backend.fairness.intervals import of_difference, of_ratio
from backend.i18n import Text
from backend.reports.verdict.judge import judge
from backend.reports.verdict.outcomes import comparisons, smallest_gap
from tests.reports.verdict.conftest import MEN, OTHERS, RECORD, WOMEN, acceptance, close, feature, finding

SEX = (feature("sex", "Sex", "性别"),)


def fact_of(known, rows, bases, **given):
    verdict = judge(known(SEX, disparities={"sex": rows}, bases=bases, **given))
    return next(fact for fact in verdict.of("outcomes") if fact.about == "sex")


@pytest.mark.parametrize(
    ("accepted", "state"),
    [
        (100, "broken"),  # 0.56 [0.47, 0.65]
        (150, "undecided"),  # 0.83 [0.74, 0.93]
        (180, "no_breach"),
    ],
)
def test_the_interval_of_the_ratio_against_four_fifths_decides(known, at_line, accepted, state):
    rows = acceptance([(MEN, 180, 200), (WOMEN, accepted, 200)])
    fact = fact_of(known, rows, at_line)
    low, high = of_ratio(accepted / 200, 200, 0.9, 200)
    assert (fact.figure.low, fact.figure.high) == pytest.approx((low, high))  # one comparison is not widened
    assert fact.state == state and "30.0\u00a0%" in fact.sentence.en


def test_a_reference_group_that_is_accepted_less_often_is_the_one_that_is_judged(known, at_line):
    rows = acceptance([(MEN, 100, 200), (WOMEN, 180, 200)])
    fact = fact_of(known, rows, at_line)
    assert fact.state == "broken" and '"men" is accepted 0.56' in fact.sentence.en
    low, high = of_ratio(0.9, 200, 0.5, 200)
    assert close(fact.figure.low, 1 / high) and close(fact.figure.high, 1 / low)
    # The difference is read the same way: men are accepted less often.
    assert "−40.0 [" in fact.sentence.en


def test_several_groups_are_judged_by_intervals_that_hold_together():
    rows = acceptance([(MEN, 180, 200), (WOMEN, 130, 200), (OTHERS, 170, 200)])
    worst, _ = comparisons(rows, along=False)
    low, high = of_ratio(0.65, 200, 0.9, 200)
    ratio = 0.65 / 0.9
    # Bonferroni for two: 2.2414 standard errors in place of 1.96, on the logarithm
    wider = 2.241402727604945 / 1.959963984540054
    assert worst.group == WOMEN
    assert worst.low == pytest.approx(ratio * (low / ratio) ** wider)
    assert worst.high == pytest.approx(ratio * (high / ratio) ** wider)
    assert worst.low < low and worst.high > high


def test_no_line_leads_that_nobody_set(known):
    """At the line the groups fare alike, at the strictest cut-off they do not: without a policy the worst cut-off speaks."""
    rows = acceptance([(MEN, 190, 200), (WOMEN, 188, 200)]) + acceptance([(MEN, 60, 200), (WOMEN, 20, 200)], 0.1)
    base_rate = {("disparity", "sex"): Basis(400, 0.3, policy=0)}
    loose = fact_of(known, rows, base_rate, policy_version=0)
    assert loose.state == "broken" and "cut-off 10.0\u00a0%" in loose.sentence.en and "30.0" not in loose.sentence.en
    assert loose.sentence.en.startswith("Acceptance by Sex. Nobody has set a line") and loose.sentence.zh.startswith(
        "按性别比较通过率。尚未设定"
    )
    set_line = {("disparity", "sex"): Basis(400, 0.3, policy=1)}
    assert fact_of(known, rows, set_line).state == "no_breach"
    earlier = fact_of(known, rows, set_line, policy_version=2)  # measured at the line of an earlier policy
    assert earlier.state == "broken" and earlier.sentence.en.startswith(
        "Acceptance by Sex. It was not measured at the line"
    )


def test_two_features_together_are_judged_at_the_line_alone(known):
    rows = acceptance([(MEN, 90, 100), (WOMEN, 40, 100)])
    offered = (feature("age", "Age of the applicant", "年龄"), feature("sex", "Sex", "性别"))
    of_line = {("disparity", "age × sex"): Basis(200, 0.3, policy=1)}
    (fact,) = judge(known(offered, disparities={"age × sex": rows}, bases=of_line)).of("outcomes")
    assert (fact.about, fact.state) == ("age × sex", "broken")
    assert (fact.title.en, fact.title.zh) == ("Acceptance by Age of the applicant × Sex", "按年龄 × 性别的通过率")
    elsewhere = {("disparity", "age × sex"): Basis(200, 0.5)}
    (fact,) = judge(known(offered, disparities={"age × sex": rows}, bases=elsewhere)).of("outcomes")
    assert fact.state == "not_measured" and "50.0\u00a0%" in fact.sentence.en and fact.figure is None


def test_the_smallest_gap_that_could_be_seen_is_nearly_three_standard_errors():
    low, high = of_difference(0.8, 400, 0.9, 400)
    row = Evidence(about=WOMEN, measure="selection rate, difference", n=800, value=-0.1, low=low, high=high)
    error = (0.8 * 0.2 / 400 + 0.9 * 0.1 / 400) ** 0.5
    assert smallest_gap(row) == pytest.approx((1.959964 + 0.841621) * error, rel=0.02)


def test_a_gap_within_chance_says_so_and_one_beyond_it_too(known, at_line):
    within = fact_of(known, acceptance([(MEN, 180, 200), (WOMEN, 178, 200)]), at_line)
    beyond = fact_of(known, acceptance([(MEN, 1900, 2000), (WOMEN, 1800, 2000)]), at_line)
    assert "may be chance" in within.sentence.en and "beyond chance" in beyond.sentence.en


def test_protected_features_in_use_that_nobody_measured_are_named_once(known):
    found = (finding("sex"), finding("sex", "r2"))
    verdict = judge(known(SEX, findings=found))
    facts = [fact for kind in ("outcomes", "proxies") for fact in verdict.of(kind)]
    assert [(fact.kind, fact.state) for fact in facts] == [("outcomes", "not_measured"), ("proxies", "not_measured")]
    assert all("Sex" in fact.sentence.en for fact in facts)
    refused = {("disparity", "sex"): Basis(0, refused="shop")}
    verdict = judge(known(SEX, findings=found, bases=refused))
    assert "Shop did not agree" in verdict.of("outcomes")[0].sentence.en
    unused = judge(known(SEX, findings=(finding("sex", splits=0),)))
    assert not unused.of("outcomes")
    kept_out = judge(known(SEX, record=replace(RECORD, exclude=("sex",))))
    assert kept_out.of("outcomes")[0].state == "not_measured"


def test_groups_that_are_too_small_are_not_measured(known, at_line):
    rows = (Evidence(about=MEN, measure="selection rate", n=0, value=None, low=None, high=None),)
    assert fact_of(known, rows, at_line).state == "not_measured"


@pytest.mark.parametrize(
    ("low", "high", "state"), [(0.01, 0.03, "broken"), (-0.01, 0.02, "undecided"), (-0.03, -0.01, "no_breach")]
)
def test_elderly_ages_are_judged_by_the_check(known, low, high, state):
    gaps = (AgeGap(1, 0.2, (low + high) / 2, low, high),)
    check = AgeCheck("bank", "sex", 300, 0.2, gaps, verdict_of(gaps))
    asked = replace(finding("sex"), check="elderly", ages=check)
    fact = judge(known(SEX, findings=(asked,))).of("ages")[0]
    assert fact.state == state
    unmeasured = judge(known(SEX, findings=(replace(asked, ages=None),))).of("ages")[0]
    assert unmeasured.state == "not_measured"


def test_proxies_that_were_found_are_for_a_person_to_judge(known):
    row = Evidence(about=Text("income"), measure="Cramér's V", n=900, value=0.4, low=0.3, high=0.5)
    basis = {("proxies", "sex"): Basis(900)}
    verdict = judge(known(SEX, proxies={"sex": (row,)}, bases=basis))
    assert verdict.of("proxies")[0].state == "undecided" and "income" in verdict.of("proxies")[0].sentence.en
    nothing = judge(known(SEX, proxies={"sex": ()}, bases=basis))
    assert nothing.of("proxies")[0].state == "no_breach" and "900" in nothing.of("proxies")[0].sentence.en
