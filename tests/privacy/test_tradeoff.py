"""The privacy–utility trade-off: coarser and dithered scores fit more paths; at no dither it counts what the population count counts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.privacy.leakage import Population
from backend.privacy.tradeoff import tradeoff_curve
from backend.protocols.scoring.packing import Packing
from backend.research.attacks.setup import attack_setup
from backend.research.baselines.guest import GuestPaths


@pytest.fixture(scope="module")
def small():
    """A small model, columns and labels of 120 people, everybody's Host answers."""
    setup, people = attack_setup(500, 10), np.arange(120)
    answers = setup.host_leaves(np.arange(len(setup.host.ids)))
    return setup, setup.guest.take(people).columns, setup.labels[people], answers, people


def test_anonymity_grows_with_coarser_scales_and_wider_dither_and_quality_stays(small):
    setup, columns, labels, answers, people = small
    points = list(
        tradeoff_curve(setup.model, columns, labels, answers, people, bits=(16, 10), dithers=(0.0, 2.0**-6, 2.0**-4))
    )
    assert [(p.score_bits, p.dither) for p in points] == [(b, d) for b in (16, 10) for d in (2.0**-4, 2.0**-6, 0.0)]
    found = {(p.score_bits, p.dither): p for p in points}
    for bits in (16, 10):
        paths = [found[bits, d].paths for d in (0.0, 2.0**-6, 2.0**-4)]
        unique = [found[bits, d].unique for d in (0.0, 2.0**-6, 2.0**-4)]
        assert paths == sorted(paths) and unique == sorted(unique, reverse=True)
        assert abs(found[bits, 2.0**-4].metrics.auc - found[bits, 0.0].metrics.auc) < 0.02
        exact = Population(replace(setup.model, score_bits=bits), columns, answers, people)
        counts = exact.counts(replace(setup.model, score_bits=bits))
        assert found[bits, 0.0].unique == np.mean(counts == 1) and found[bits, 0.0].paths == np.median(counts)
    assert found[10, 2.0**-4].paths > found[16, 0.0].paths


def test_widths_below_one_unit_give_one_point_without_dither(small):
    setup, columns, labels, answers, people = small
    points = list(
        tradeoff_curve(setup.model, columns, labels, answers, people, bits=(6,), dithers=(0.0, 2.0**-8, 2.0**-4))
    )
    assert [p.dither for p in points] == [2.0**-4, 0.0]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 40), st.integers(0, 10**6))
def test_paths_within_dithers_reach_are_those_that_a_look_at_every_record_finds(half, seed):
    setup, people = attack_setup(500, 10), np.arange(15)
    model, columns = setup.rounded(10), setup.guest.take(people).columns
    packing, answers = Packing(model), setup.host_leaves(np.arange(60))
    guest = GuestPaths(model).candidates(columns, 15)
    added = np.random.default_rng(seed).integers(-half, half, (15, 1), endpoint=True)
    counts = Population(model, columns, answers, people).counts(model, added, half)
    weights = packing.of_leaves()
    for i in people:
        mine = int(weights[guest[i] & answers[i]].sum()) + int(added[i, 0])
        fitting = {
            tuple(np.flatnonzero(guest[i] & answer))
            for answer in answers
            if abs(int(weights[guest[i] & answer].sum()) - mine) <= half
        }
        assert counts[i] == len(fitting)
