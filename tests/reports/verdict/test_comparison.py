"""Which of two models is better, fact by fact: better, worse, no measurable change, or not measured for both."""

from dataclasses import replace

import pytest

from backend.fairness.evidence import Basis
from backend.i18n import Text
from backend.reports.model_comparison import QualityFigure
from backend.reports.verdict.comparison import change_facts, changes, difference_of
from backend.reports.verdict.facts import Figure
from backend.reports.verdict.judge import judge
from backend.results import ReleaseCheck
from tests.reports.verdict.conftest import MEN, RECORD, WOMEN, acceptance, feature, finding, review

SEX = (feature("sex", "Sex", "性别"),)
NEW = replace(RECORD, id="m2")
BASIS = {("disparity", "sex"): Basis(400, 0.3, policy=1)}


def compared(known, first=None, second=None, figures=()):
    before = known(SEX, **(first or {}))
    after = known(SEX, **({"record": NEW} | (second or {})))
    return changes(before, after, figures, (judge(before), judge(after)))


def way(found, kind):
    return [change.way for change in found.changes if change.kind == kind]


@pytest.mark.parametrize(
    ("low", "high", "better", "expected"),
    [
        (0.01, 0.03, 1, "better"),
        (-0.03, -0.01, -1, "worse"),
        (-0.01, 0.01, 0, "same"),
        (float("nan"), float("nan"), 0, "not_measured"),
    ],
)
def test_quality_changes_only_beyond_the_interval_of_the_difference(known, low, high, better, expected):
    found = compared(known, figures=(QualityFigure("auc", 0.75, 0.76, low, high, better),))
    assert way(found, "quality") == [expected]


def gap(men, women, n=200):
    return {"disparities": {"sex": acceptance([(MEN, men, n), (WOMEN, women, n)])}, "bases": BASIS}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((180, 120), (180, 170), "better"),
        ((180, 170), (180, 120), "worse"),
        ((180, 170), (180, 165), "same"),
    ],
)
def test_a_gap_is_narrower_or_wider_only_beyond_chance(known, before, after, expected):
    assert way(compared(known, gap(*before), gap(*after)), "outcomes") == [expected]


def test_a_gap_that_is_wider_within_chance_is_told_and_that_it_is_beyond_chance_now(known):
    """From −3.0 to −7.0 points: no measurable change, and yet the second gap leaves 0 out, which the first one did not."""
    found = compared(known, gap(180, 174), gap(180, 166))
    (change,) = (change for change in found.changes if change.kind == "outcomes")
    assert change.way == "same" and change.wider
    assert "wider, though the change may be chance" in change.sentence.en and "−3.0" in change.sentence.en
    assert "in the second it is beyond chance" in change.sentence.en
    (fact,) = (fact for fact in change_facts(found, "the first") if fact.about == "sex")
    assert (fact.kind, fact.state) == ("change", "undecided") and "Against the first" in fact.sentence.en


def test_gaps_at_two_lines_are_not_compared(known):
    other = {**gap(180, 120), "bases": {("disparity", "sex"): Basis(400, 0.5, policy=1)}}
    assert way(compared(known, gap(180, 170), other), "outcomes") == ["not_measured"]
    assert way(compared(known, gap(180, 170), {}), "outcomes") == ["not_measured"]


def test_the_interval_of_a_change_is_made_of_both_ends():
    before, after = Figure(-0.10, -0.13, -0.06), Figure(-0.02, -0.05, 0.02)
    low, high = difference_of(before, after)
    assert (low, high) == pytest.approx((0.08 - 0.05, 0.08 + 0.05))  # 0.03 and 0.04 make 0.05


def test_a_flagged_feature_that_goes_is_better_and_one_that_comes_is_worse(known):
    flagged = {"findings": (finding("sex"),), "reviews": (review("sex", "confirmed"),)}
    assert way(compared(known, flagged, {}), "rule") == ["better"]
    assert way(compared(known, {}, flagged), "rule") == ["worse"]
    assert way(compared(known, flagged, flagged), "rule") == ["same"]
    unused = {"findings": (finding("sex", splits=0),)}
    assert way(compared(known, flagged, unused), "rule") == ["better"]
    partly = {**flagged, "findings": (finding("sex"), finding("sex", "r2"))}
    (change,) = (change for change in compared(known, partly, {}).changes if change.kind == "rule")
    assert "breaks 1 rule" in change.sentence.en  # the upheld rule, not the one that waits
    assert change.title.en == "no more use of Sex"


@pytest.mark.parametrize(("share", "expected"), [(0.02, "better"), (0.30, "same"), (0.60, "worse")])
def test_what_scores_reveal_is_compared_by_an_interval(known, share, expected):
    def record(model, named):
        return replace(RECORD, id=model, hosts=("shop",), release=ReleaseCheck(0.0, ((10, named),), 3.0, 400, 2000))

    found = compared(known, {"record": record("m1", 0.28)}, {"record": record("m2", share)})
    assert way(found, "leak") == [expected]
    lost = compared(known, {"record": record("m1", 0.28)}, {"record": replace(NEW, hosts=("shop",))})
    assert way(lost, "leak") == ["not_measured"]


def test_the_headline_answers_which_is_better(known):
    better = QualityFigure("auc", 0.75, 0.78, 0.01, 0.05, 1)
    worse = QualityFigure("auc", 0.75, 0.70, -0.08, -0.02, -1)
    assert compared(known, figures=(better,)).headline.en.startswith("The second model is better. What improved: AUC.")
    assert compared(known, figures=(worse,)).headline.en.startswith("The first model is better")
    both = compared(known, gap(180, 120), gap(180, 170), (worse,))
    assert both.headline.en.startswith("Neither is better in everything.")
    assert both.changes[0].way == "worse"  # the worse ones are read first
    same = compared(known, gap(180, 170), gap(180, 170))
    assert same.headline.en.startswith("No measurable change in anything")
    assert "leaves out what was not measured for both: Validation" in same.headline.en
    assert all(change.title.zh and change.sentence.zh for change in both.changes)
    assert isinstance(both.headline, Text)
