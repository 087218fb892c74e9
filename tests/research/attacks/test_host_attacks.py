"""Attacks of a party that departs from the protocol at a real Host or Guest: they work without their check, and are refused with it."""

import numpy as np

from backend.privacy.re_performance import RePerformed
from backend.research.attacks import cohort_digits, label_theft, more_than_a_stump, moved_score
from backend.research.attacks.keys import honest_keys
from backend.research.attacks.label_theft import SPLITS, STOLEN, subset
from backend.research.attacks.result import AttackResult, works


def test_forged_sums_read_every_label_until_the_guest_compares_rows_with_sums(monkeypatch):
    outcome = label_theft.run(0)
    assert outcome.off.rate == 1.0
    assert outcome.rates == {"caught_off": 0.0, "caught_on": 1.0}
    assert not works(AttackResult("H4", "x", "high", outcome))
    # with the one check removed the attack works against what is shipped, too
    monkeypatch.setattr(label_theft, "check_split_rows", lambda *arguments: None)
    assert works(AttackResult("H4", "x", "high", label_theft.run(0)))


def test_an_approved_stump_is_one_split_at_a_host_that_records_how_trees_grow(measured, monkeypatch):
    outcome = measured("H1")
    assert outcome.off.rate == 1.0 and outcome.numbers["splits_on"] == 1.0
    assert outcome.on.rate < outcome.chance + 0.05  # one cut of one feature is what was approved
    # with the one check removed every split is answered
    # patched: the one check removed, so that the attack is seen to need it
    monkeypatch.setattr(more_than_a_stump.GrowthRecord, "begin_split", lambda *arguments: None)
    assert more_than_a_stump.run(1, 1500, targets=200).on.rate == 1.0


def test_ranks_of_the_same_epsilon_can_leave_nearly_all_of_the_order(measured):
    outcome = measured("H3")
    assert outcome.off.rate > 0.9
    assert outcome.on.rate == outcome.chance < 0.6
    assert not works(AttackResult("H3", "x", "high", outcome))


def test_one_group_of_long_numbers_spells_out_every_answer_until_a_host_bounds_them(measured, setup):
    outcome = measured("H2")
    assert outcome.off.rate == 1.0 and outcome.rates == {"refused": 1.0}
    assert not works(AttackResult("H2", "x", "high", outcome))
    ids = tuple(setup.guest.ids[:50])
    assert cohort_digits.refusal(setup, 512, ids) == "values_too_long"


def test_every_subset_of_the_chosen_records_has_a_cut_of_its_own():
    cuts = label_theft.BINS // 2
    subsets = {tuple(subset(feature, cut)) for feature in range(label_theft.FEATURES) for cut in range(cuts)}
    assert len(subsets) == 2**STOLEN
    assert SPLITS * STOLEN == 140


def test_a_moved_score_is_taken_with_its_canary_intact_until_an_auditor_recomputes_a_sample(
    measured, setup, monkeypatch
):
    outcome = measured("H5")
    assert outcome.off.rate == 1.0 and outcome.on.rate == 0.0
    assert outcome.rates["taken_with_canary"] > 0.9  # K3: neither range nor canary notices it
    assert 0.04 < outcome.rates["recomputed"] < 0.2 and outcome.rates["found"] == 1.0
    assert not works(AttackResult("H5", "x", "high", outcome))
    # with the one check removed nobody finds it
    # patched: the one check removed, so that the attack is seen to need it
    monkeypatch.setattr(moved_score, "re_perform", lambda guest, halves: RePerformed(0, 0, (), ()))
    few = setup.guest.take(np.arange(10))
    taken, performed = moved_score.score_moved(setup, few, honest_keys(512).guest)
    assert taken == 10 and performed.differences == ()
