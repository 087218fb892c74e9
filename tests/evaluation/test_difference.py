"""Differences between two models: each figure of the second less the first's, drawn on the same records."""

import numpy as np
import pytest

from backend.evaluation.difference import paired_difference
from backend.evaluation.performance import performance
from backend.trees.metrics import measure
from backend.trees.outputs import ONE_LOGIT, Outputs, sigmoid

NUMBER = Outputs("number", link="identity")


def scored(n=300, noise=0.1):
    draw = np.random.default_rng(3)
    margins = draw.normal(size=(n, 1))
    labels = (draw.random(n) < sigmoid(1.5 * margins[:, 0])).astype(float)
    return labels, margins, margins + draw.normal(0, noise, size=(n, 1))


@pytest.mark.parametrize("outputs", [ONE_LOGIT, NUMBER], ids=lambda o: o.task)
def test_a_difference_is_that_of_both_models_figures_and_lies_in_its_interval(outputs):
    labels, before, after = scored()
    one, other = (measure(labels, margins, "test", outputs) for margins in (before, after))
    for found in paired_difference(labels, before, after, (outputs, outputs)):
        assert found.low <= found.value <= found.high
        if hasattr(one, found.name):
            assert found.value == pytest.approx(getattr(other, found.name) - getattr(one, found.name))


def test_a_model_beside_itself_differs_in_nothing():
    labels, before, _ = scored()
    assert {(f.value, f.low, f.high) for f in paired_difference(labels, before, before, (ONE_LOGIT,) * 2)} == {
        (0, 0, 0)
    }


def test_what_two_models_share_cancels_out_so_the_interval_is_narrower_than_that_of_either():
    labels, before, after = scored()
    own = performance(labels, before, ONE_LOGIT, "test").figure("auc")
    apart = next(f for f in paired_difference(labels, before, after, (ONE_LOGIT,) * 2) if f.name == "auc")
    assert apart.high - apart.low < (own.high - own.low) / 3


def test_a_model_that_guesses_is_worse_beyond_chance():
    labels, before, _ = scored()
    guessed = np.random.default_rng(5).normal(size=before.shape)
    apart = {f.name: f for f in paired_difference(labels, before, guessed, (ONE_LOGIT,) * 2)}
    assert apart["auc"].high < 0 < apart["log_loss"].low
