"""Bands and the unusual, decided by hand."""

import math

import pytest

from backend.errors import ParameterError
from backend.policy.bands import MARKS, Policy, Treatments, Verdict, read_policy, usual_policy
from backend.policy.points import PointScale

BANK = Policy(decline_at=0.4, refer_at=0.25, points=PointScale(600, 50, 20), version=3)


@pytest.mark.parametrize(
    ("probability", "band"),
    [
        (0.0, "accept"),
        (0.2499, "accept"),
        (0.25, "refer"),
        (0.3999, "refer"),
        (0.4, "decline"),
        (1.0, "decline"),
        (math.nan, ""),
    ],
)
def test_a_line_belongs_to_the_band_above_it(probability: float, band: str) -> None:
    assert BANK.band(probability) == band
    assert BANK.judge(probability).decision == band


def test_without_a_band_for_referring_people_are_accepted_or_declined() -> None:
    policy = Policy(decline_at=0.4)
    assert [policy.band(share) for share in (0.39, 0.4)] == ["accept", "decline"]


def test_points_stand_beside_the_decision() -> None:
    assert BANK.judge(0.5) == Verdict("decline", "decline", (), 487)
    assert BANK.judge(math.nan).points is None


def test_a_number_has_a_line_on_its_own_scale_and_either_side_may_be_declined() -> None:
    above = Policy("number", decline_at=1000.0, refer_at=800.0)
    assert [above.band(value) for value in (799, 800, 1000)] == ["accept", "refer", "decline"]
    below = Policy("number", decline_at=500.0, refer_at=550.0, declines="below")
    assert [below.band(value) for value in (551, 550, 500)] == ["accept", "refer", "decline"]


def test_classes_are_referred_if_the_most_probable_one_is_improbable() -> None:
    policy = Policy("classes", decline_at=None, refer_at=0.6)
    assert [policy.band(share) for share in (0.59, 0.6)] == ["refer", "accept"]
    assert Policy("classes", decline_at=None).band(0.9) == ""


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("probability", [0.1, 0.3, 0.9])
def test_what_happens_to_the_unusual_is_what_the_policy_says(mark: str, probability: float) -> None:
    band = BANK.band(probability)
    for treatment, decision in (("score", band), ("refer", "refer"), ("refuse", "refuse")):
        usual = dict.fromkeys(MARKS, "score")
        policy = Policy(decline_at=0.4, refer_at=0.25, treatments=Treatments(**usual | {mark: treatment}))
        verdict = policy.judge(probability, {mark})
        assert (verdict.decision, verdict.band) == (decision, band)
        assert verdict.deciding_marks == (() if treatment == "score" else (mark,))
        assert policy.refuses({mark}) == ((mark,) if treatment == "refuse" else ())


def test_refusing_goes_before_referring() -> None:
    policy = Policy(treatments=Treatments(no_host="refer", missing_value="refuse"))
    assert policy.judge(0.1, {"no_host", "missing_value"}) == Verdict("refuse", "accept", ("missing_value",))


def test_nobody_has_set_the_usual_line_which_is_the_base_rate() -> None:
    policy = usual_policy("binary", 0.22)
    assert (policy.cutoff, policy.is_set, policy.points) == (0.22, False, None)
    assert math.isnan(usual_policy("number", 0.0).cutoff) and usual_policy("number", 0.0).judge(3.0).decision == ""


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        (Policy(decline_at=1.2), "cutoff_not_probability"),
        (Policy(decline_at=math.nan), "policy_without_cutoff"),
        (Policy(decline_at=None), "policy_without_cutoff"),
        (Policy(decline_at=0.3, refer_at=0.4), "bands_in_wrong_order"),
        (Policy("number", decline_at=3.0, refer_at=2.0, declines="below"), "bands_in_wrong_order"),
        (Policy("number", decline_at=3.0, points=PointScale()), "points_need_two_outcomes"),
        (Policy("classes", decline_at=0.5), "classes_have_no_cutoff"),
        (Policy("classes", decline_at=None, refer_at=7.0), "cutoff_not_probability"),
        (Policy(treatments=Treatments(no_host="shrug")), "unknown_treatment"),  # type: ignore[arg-type]
    ],
)
def test_a_policy_that_cannot_be_used_is_refused(policy: Policy, code: str) -> None:
    with pytest.raises(ParameterError) as error:
        policy.check()
    assert error.value.code == code


def test_a_policy_is_read_as_it_was_written() -> None:
    for policy in (BANK, usual_policy("classes", 0.0), Policy("number", decline_at=3.5, declines="below")):
        assert read_policy(policy.plain()) == policy


def test_a_band_narrower_than_the_dither_is_warned_of() -> None:
    # logit(0.4) - logit(0.25) = -0.405 + 1.099 = 0.693
    assert BANK.warnings(0.34, logit=True) == ()
    assert [warning.code for warning in BANK.warnings(0.35, logit=True)] == ["refer_band_narrower_than_dither"]
    assert BANK.warnings(0.07, logit=False) == ()
    assert len(BANK.warnings(0.08, logit=False)) == 1
    assert Policy(decline_at=0.4).warnings(5.0, logit=True) == ()
    assert Policy(decline_at=0.4, refer_at=0.0).warnings(5.0, logit=True) == ()
