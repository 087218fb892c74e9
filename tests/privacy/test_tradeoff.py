"""The frontier: coarser and dithered scores fit more paths; at no dither it counts what the population count counts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.attacks.setup import scene
from backend.privacy.leakage import Population
from backend.privacy.tradeoff import frontier
from backend.protocols.scoring.packing import Packing
from backend.trees.compiled import Conjunctions, own_conditions
from backend.trees.serialization import load_host


@pytest.fixture(scope="module")
def ground():
    """A small model, 120 people, everybody's Host answers."""
    stage = scene(500, 10)
    half, people = load_host(stage.half), np.arange(120)
    answers = np.empty((len(stage.host.ids), stage.model.n_leaves), dtype=bool)
    conjunctions = Conjunctions(half.rules, own_conditions(half.skeletons, half.rules))
    for block, kept in conjunctions.blocks(stage.host.columns, len(answers)):
        answers[block] = kept.T
    return stage, stage.guest.take(people).columns, stage.labels[people], answers, people


def test_cover_grows_with_coarser_scales_and_wider_dither_and_quality_stays(ground):
    stage, columns, labels, answers, people = ground
    points = list(
        frontier(stage.model, columns, labels, answers, people, bits=(16, 10), dithers=(0.0, 2.0**-6, 2.0**-4))
    )
    assert [(p.score_bits, p.dither) for p in points] == [(b, d) for b in (16, 10) for d in (2.0**-4, 2.0**-6, 0.0)]
    found = {(p.score_bits, p.dither): p for p in points}
    for bits in (16, 10):
        paths = [found[bits, d].paths for d in (0.0, 2.0**-6, 2.0**-4)]
        unique = [found[bits, d].unique for d in (0.0, 2.0**-6, 2.0**-4)]
        assert paths == sorted(paths) and unique == sorted(unique, reverse=True)
        assert abs(found[bits, 2.0**-4].metrics.auc - found[bits, 0.0].metrics.auc) < 0.02
        exact = Population(replace(stage.model, score_bits=bits), columns, answers, people)
        counts = exact.counts(replace(stage.model, score_bits=bits))
        assert found[bits, 0.0].unique == np.mean(counts == 1) and found[bits, 0.0].paths == np.median(counts)
    assert found[10, 2.0**-4].paths > found[16, 0.0].paths


def test_widths_that_a_scale_has_no_unit_for_are_told_once_as_none(ground):
    stage, columns, labels, answers, people = ground
    points = list(frontier(stage.model, columns, labels, answers, people, bits=(6,), dithers=(0.0, 2.0**-8, 2.0**-4)))
    assert [p.dither for p in points] == [2.0**-4, 0.0]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 40), st.integers(0, 10**6))
def test_paths_within_dithers_reach_are_those_that_a_look_at_every_record_finds(half, seed):
    stage = scene(500, 10)
    model, people = stage.rounded(10), np.arange(15)
    columns, packing = stage.guest.take(people).columns, Packing(stage.rounded(10))
    half_model = load_host(stage.half)
    answers = np.empty((60, model.n_leaves), dtype=bool)
    conjunctions = Conjunctions(half_model.rules, own_conditions(half_model.skeletons, half_model.rules))
    for block, kept in conjunctions.blocks(stage.host.take(np.arange(60)).columns, 60):
        answers[block] = kept.T
    guest = np.empty((15, model.n_leaves), dtype=bool)
    own = Conjunctions(model.rules, own_conditions(model.skeletons, model.rules))
    for block, kept in own.blocks(columns, 15):
        guest[block] = kept.T
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
