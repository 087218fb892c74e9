"""Attacks on scoring, over the wire and against the shipped Host, on a small model."""

import numpy as np
import pytest

from backend.crypto.plain import PlainKeySide
from backend.errors import ModelError
from backend.protocols.training.messages import AskBinSums, SplitRows, TakeSplit
from backend.protocols.training.row_sets import pack_rows
from backend.research.attacks.result import AttackResult, works
from backend.research.attacks.score_identifies_path import meet_in_the_middle
from backend.research.attacks.setup import EXACT_BITS, MODEL_ID
from backend.research.attacks.shared_nodes import BOUND, cells_of
from backend.store.party_store import memory_store


def test_the_setup_knows_the_hosts_decision_vectors(setup):
    compiled = setup.compiled(EXACT_BITS)
    rows = np.arange(50)
    constant, entries = compiled.encode(setup.guest.take(rows).columns, 50)
    expected = np.array(constant) + np.where(setup.keep[rows], entries, 0).sum(axis=1)
    assert setup.score(compiled, setup.guest.take(rows), PlainKeySide(), setup.host_party()).units == expected.tolist()
    assert setup.keep.any() and not setup.keep.all()


def test_a_store_in_memory_refuses_what_it_does_not_hold():
    with pytest.raises(ModelError):
        memory_store().artefact(MODEL_ID)


def test_exact_scores_identify_paths_and_coarser_ones_fewer(measured):
    outcome = measured("A5")
    coarse = outcome.rates["named_6_bits"]
    assert outcome.off.rate == 1.0
    assert coarse < 0.2 < outcome.rates["named_10_bits"] <= outcome.rates["named_16_bits"] <= 1.0
    assert outcome.numbers["records_6_bits"] > outcome.numbers[f"records_{EXACT_BITS}_bits"]
    assert abs(outcome.numbers["auc_6_bits"] - outcome.numbers[f"auc_{EXACT_BITS}_bits"]) < 0.02


def test_dither_identifies_fewer_still_than_a_guess_at_the_same_accuracy(measured):
    outcome = measured("A5")
    assert outcome.on.rate == outcome.rates["named_dither_4"] <= outcome.rates["named_dither_6"] < 0.1
    assert 0.0 < outcome.chance < 0.1 and not outcome.on.beats(outcome.chance) and outcome.off.beats(outcome.chance)
    assert outcome.numbers["records_dither_4"] > 2 * outcome.numbers["records_dither_6"]
    for width in (6, 4):
        assert abs(outcome.numbers[f"auc_dither_{width}"] - outcome.numbers["auc_10_bits"]) < 0.005


def test_the_combination_behind_an_exact_score_is_found_without_any_record(setup):
    found = meet_in_the_middle(setup, 0)
    assert found["middle_combinations"] > 10**6 and found["middle_solutions"] == 1


def test_a_guest_with_crafted_weights_reads_everything_and_an_audit_finds_it_out(measured):
    outcome = measured("A6")
    assert outcome.off.rate == 1.0 and outcome.off.beats(outcome.chance)
    assert not outcome.on.beats(outcome.chance)
    assert 0.0 < outcome.rates["caught_one"] < 0.3 and outcome.rates["honest_accused"] == 0.0


@pytest.mark.parametrize("row", ["P1", "P2", "P3", "P4", "P5"])
def test_a_second_question_and_forged_evidence_work_without_the_defence_and_fail_with_it(row, measured):
    outcome = measured(row)
    # P4: a sample of a tenth misses all of 60 people once in 556 rounds, of which there are 4
    by_chance = 0.25 if row == "P4" else 0.0
    assert outcome.off.rate == 1.0 and outcome.off.beats(0.0) and outcome.on.rate <= by_chance


def test_crafted_terms_read_every_answer_through_a_blind_that_falls_short_and_none_through_a_uniform_one(measured):
    outcome = measured("P10")
    assert outcome.setting["answers"] >= 20 and outcome.off.rate == 1.0 and outcome.off.beats(outcome.chance)
    assert 0.3 < outcome.on.rate < 0.7 and not outcome.on.beats(outcome.chance)


def test_a_guest_that_checks_scores_decides_nothing_for_a_host_that_tampers(measured):
    outcome = measured("A7")
    assert outcome.off.rate == 1.0 and outcome.off.beats(outcome.chance)
    assert outcome.on.rate == outcome.chance < 0.9


def test_a_host_that_adds_to_the_true_sum_is_caught_whenever_it_learns_that_a_weight_is_there(measured):
    rates = measured("A7").rates
    assert rates["told_by_stopping"] == 1.0  # the check shows one bit a scoring, and is an alarm
    assert 0.0 < rates["caught"] < 1.0


def test_a_host_that_adds_to_a_score_quietly_is_caught_by_canaries_and_not_by_the_range(measured):
    rates = measured("A7").rates
    assert rates["quiet_caught_canary"] == 1.0 and rates["quiet_caught_range"] < 0.5


def test_many_coarse_scores_identify_what_one_does_not(measured):
    outcome = measured("A8")
    once, often = outcome.rates["named_after_1"], outcome.off.rate
    assert once < 0.2 and often > 0.9
    rising = [once, *(outcome.rates[f"named_after_{q}"] for q in (2, 4, 16)), often]
    assert rising == sorted(rising) and rising[1] > once


def test_a_query_budget_leaves_many_scores_with_what_the_first_ones_identify(measured):
    outcome = measured("A8")
    assert outcome.setting["budget"] == 1
    assert outcome.on.rate == outcome.rates["named_after_1"] and outcome.on.trials == outcome.off.trials


def test_shared_nodes_tell_labels_apart_and_under_a_bound_no_better_than_the_hosts_own_columns(measured):
    outcome = measured("T4")
    assert outcome.off.beats(outcome.chance) and not outcome.on.beats(outcome.chance)
    assert outcome.on.rate < outcome.chance + 0.03 < outcome.off.rate
    assert outcome.numbers["nmi_off"] > 2 * max(outcome.numbers["nmi_on"], outcome.numbers["nmi_own"])
    assert outcome.numbers["bits_on"] <= BOUND < outcome.numbers["bits_off"]
    assert outcome.numbers["model_auc_on"] > outcome.numbers["model_auc_off"] - 0.03
    assert outcome.optional and not works(AttackResult("T4", "", "high", outcome))


def test_records_that_shared_every_node_have_the_same_cell():
    rows = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]], dtype=bool)
    training = np.array([True] * 5 + [False])
    asked = AskBinSums("c", (0,), (0,), (pack_rows(rows[0]),), (b"",), ((0,),), (-1,))
    split, sides = (
        TakeSplit("c", 0, 1, "x", (0,), True, pack_rows(rows[0])),
        SplitRows("c", 0, 1, pack_rows(rows[1][:4])),
    )
    (cells,) = cells_of([asked, split, sides], training)
    assert len(cells) == 5 and cells[0] == cells[1] != cells[2] == cells[3] != cells[4]


def test_one_round_in_the_clear_shows_every_leaf_and_fed_eini_leaves_a_guess(measured):
    outcome = measured("T5")
    assert outcome.off.rate == 1.0 and outcome.off.beats(outcome.chance)
    assert outcome.on.rate == outcome.chance < 0.95
    assert outcome.numbers["bits_fed_eini"] < outcome.numbers["bits_one_round"]
