"""Who is faster at which size of a batch: hand-worked points, leads and crossings."""

import pytest

from backend.protocols.transport.simulated_latency import Exchange, Link
from backend.research.baselines.batch_sizes import PAIR, BatchTimes, Lead, expected_seconds, leads, points
from backend.research.baselines.comparison import Comparison, ProtocolResult


def run(samples, ours, theirs, network=0.0, names=PAIR):
    rows = tuple(
        ProtocolResult(name, Exchange(1, 2, 2, 10, seconds, network, {}), (), True, ())
        for name, seconds in zip(names, (ours, theirs), strict=True)
    )
    return Comparison(samples, "none", 0, Link(), rows)


def test_a_point_holds_the_whole_times_of_both_and_points_are_sorted():
    assert points([run(10, 1.0, 2.0, network=0.5), run(1, 4.0, 3.0)]) == (
        BatchTimes(1, 4.0, 3.0),
        BatchTimes(10, 1.5, 2.5),
    )


def test_of_two_runs_of_one_size_the_first_counts_and_a_run_without_both_does_not():
    alone = run(5, 1.0, 1.0, names=("fed-eini", "collaborative"))
    assert points([run(3, 1.0, 2.0), run(3, 9.0, 9.0), alone]) == (BatchTimes(3, 1.0, 2.0),)


def test_lines_cross_half_way_on_a_logarithmic_scale():
    # ten times as fast at 1, ten times as slow at 100: even at 10
    first, second = leads([BatchTimes(1, 1.0, 10.0), BatchTimes(100, 20.0, 2.0)])
    assert first.until == pytest.approx(10.0)
    assert (first.wins, first.first, first.last) == (True, 1, 1)
    assert second == Lead(False, 100, 100, None)


def test_a_lead_spans_neighbouring_sizes():
    found = leads(
        [BatchTimes(1, 1, 2), BatchTimes(3, 1, 2), BatchTimes(10, 3, 2), BatchTimes(30, 4, 2), BatchTimes(100, 1, 2)]
    )
    assert [(lead.wins, lead.first, lead.last) for lead in found] == [(True, 1, 3), (False, 10, 30), (True, 100, 100)]
    assert 3 < found[0].until < 10
    assert 30 < found[1].until < 100


def test_one_winner_has_one_lead_that_never_ends():
    assert leads([BatchTimes(1, 3.0, 2.0), BatchTimes(10, 5.0, 4.0)]) == (Lead(False, 1, 10, None),)
    assert leads([]) == ()


def test_a_tie_is_no_win():
    assert leads([BatchTimes(1, 2.0, 2.0)]) == (Lead(False, 1, 1, None),)


def test_the_pace_is_that_of_the_largest_run_and_smaller_batches_need_no_guess():
    runs = [run(1, 5.0, 1.0), run(10, 20.0, 10.0, network=99.0)]
    assert expected_seconds(runs, 30) == pytest.approx(90.0)
    assert expected_seconds(runs, 3) == 0.0
