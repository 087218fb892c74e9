"""A model's outputs against the federation's label: its task, its classes by name, its positive value."""

import numpy as np
import pandas as pd
import pytest

from backend.data.label import Label
from backend.errors import ModelError
from backend.remark import Remark
from backend.trees.ensemble import Leaf
from backend.trees.importers.labels import fit_to_label
from backend.trees.importers.whole import WholeModel, WholeSplit
from backend.trees.outputs import Outputs
from tests.trees.importers.frames import BINARY, CLASSES, LABELS, NUMBER, STUMP, divided, margins_of

LOGIT, SHARE, AMOUNT = Outputs(), Outputs(link="identity"), Outputs("number", link="identity")


def forest(names, link="identity", of_tree=()):
    """x < 0 goes left; two equal trees whose leaves hold a third of 0.6, 0.3, 0.0 and of 0.0, 0.0, 0.9."""
    left, right = Leaf(0.3, 1.0, (0.3, 0.15, 0.0)), Leaf(0.45, 1.0, (0.0, 0.0, 0.45))
    return whole((left, right), Outputs("classes", names, link, of_tree=of_tree), (0.0, 0.0, 0.1))


def whole(leaves, outputs, base_scores=(0.25,), **options):
    tree = (WholeSplit(0, 1, 2, True, 1.0, 2.0, 0.0), *leaves)
    return WholeModel("model.json", "a hand", ("x",), {}, base_scores, (tree, tree), outputs, **options)


def binary(outputs, outcomes):
    return whole((Leaf(-0.5, 1.0), Leaf(0.125, 1.0)), outputs, outcomes=outcomes)


def predicted(model, label):
    world = divided(model, pd.DataFrame({"x": [-1.0, 1.0]}), {"x": "host0"}, 10, STUMP, label)
    return world.model.outputs, margins_of(world).round(3).tolist()


@pytest.mark.parametrize("task", ["binary", "classes", "number"])
def test_a_model_of_another_task_than_the_label_is_refused_and_of_its_own_is_not(task):
    models = {
        "binary": binary(LOGIT, ()),
        "classes": forest(("low", "mid", "high")),
        "number": binary(AMOUNT, ()),
    }
    described = {"binary": "two outcomes", "classes": "3 classes", "number": "a number"}
    for other, model in models.items():
        if other == task:
            fit_to_label(model, LABELS[task])
            continue
        words = rf"^model\.json: found a model that predicts {described[other]}, expected {described[task]} as .*label 'y' has it"
        with pytest.raises(ModelError, match=words):
            fit_to_label(model, LABELS[task])


def test_another_number_of_classes_is_refused():
    four = Label(column="y", task="classes", classes=("low", "mid", "high", "top"), meaning="four classes")
    with pytest.raises(ModelError, match="predicts 3 classes, expected 4 classes"):
        fit_to_label(forest(("low", "mid", "high")), four)


def test_classes_take_the_labels_order_by_their_names():
    outputs, margins = predicted(forest(("high", "low", "mid")), CLASSES)
    assert outputs == Outputs("classes", ("low", "mid", "high"), "identity")
    assert margins == [[0.301, 0.1, 0.6], [0.0, 1.0, 0.0]]  # 0.15 is 154 units of 1/1024, so twice that 0.301


def test_trees_of_a_class_each_follow_their_class():
    leaves = Leaf(0.25, 1.0), Leaf(0.5, 1.0)
    model = whole(leaves, Outputs("classes", ("high", "low", "mid"), "softmax", of_tree=(0, 2)), (1.0, 2.0, 3.0))
    outputs, margins = predicted(model, CLASSES)
    assert outputs == Outputs("classes", ("low", "mid", "high"), "softmax", of_tree=(2, 1))
    assert margins == [[2.0, 3.25, 1.25], [2.0, 3.5, 1.5]]


def test_numbered_classes_are_the_labels_by_place_and_it_is_said():
    fitted = fit_to_label(forest(("0", "1", "2")), CLASSES)
    assert fitted.outputs.classes == ("low", "mid", "high") and fitted.trees == forest(CLASSES.classes).trees
    assert fitted.notes == (Remark("classes_are_numbered", {"last": 2, "classes": ("'low'", "'mid'", "'high'")}),)


def test_numbered_classes_are_taken_by_name_where_the_labels_are_these_numbers():
    label = CLASSES.model_copy(update={"classes": ("2", "0", "1")})
    fitted = fit_to_label(forest(("0", "1", "2")), label)
    assert fitted.base_scores == (0.1, 0.0, 0.0) and fitted.notes == ()
    assert [n.weights for n in fitted.trees[0] if isinstance(n, Leaf)] == [(0.0, 0.3, 0.15), (0.45, 0.0, 0.0)]


@pytest.mark.parametrize("names", [("low", "mid", "top"), ("1", "2", "3"), ("low", "low", "mid")])
def test_classes_of_other_names_are_refused(names):
    with pytest.raises(ModelError, match=r"found the classes .*, expected the label's 'low', 'mid', 'high'"):
        fit_to_label(forest(names), CLASSES)


def test_a_score_that_speaks_for_the_labels_positive_value_stays():
    model = binary(LOGIT, ("0", "1"))
    assert fit_to_label(model, BINARY) == model and fit_to_label(binary(LOGIT, ()), BINARY).notes == ()
    assert fit_to_label(whole((Leaf(1.0, 1.0),) * 2, AMOUNT), NUMBER).notes == ()


@pytest.mark.parametrize(("outputs", "after"), [(LOGIT, lambda m: -m), (SHARE, lambda s: 1 - s)])
def test_a_score_that_speaks_against_it_is_turned_round(outputs, after):
    before = predicted(binary(outputs, ("0", "1")), BINARY)
    assert before[1] == [[-0.75], [0.5]]
    turned = predicted(binary(outputs, ("1", "0")), BINARY)
    assert turned == (before[0], after(np.array(before[1])).tolist())
    assert fit_to_label(binary(outputs, ("1", "0")), BINARY).notes == ()


def test_outcomes_of_other_names_are_taken_in_their_order_and_it_is_said():
    fitted = fit_to_label(binary(LOGIT, ("False", "True")), BINARY)
    assert fitted.trees == binary(LOGIT, ()).trees
    values = {"outcome": "'True'", "other": "'False'", "positive": "'1'"}
    assert fitted.notes == (Remark("outcome_written_otherwise", values),)
