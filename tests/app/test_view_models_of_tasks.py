"""What a leaf and a record say for each task, by hand on trees of one split."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from app import view_models
from app.panels import frame, tree
from app.texts import Texts, amount
from backend.i18n import Text
from backend.policy.bands import Policy
from backend.results import Score, ScoreBatch
from backend.trees.ensemble import GuestTree, Leaf, Split
from backend.trees.metrics import Metrics
from backend.trees.outputs import Outputs

T = Texts("en")
NAN = float("nan")
SHARES = Outputs("binary", link="identity")
CLASSES = Outputs("classes", ("low", "mid", "high"), "identity")
SOFTMAX = Outputs("classes", ("low", "mid", "high"), "softmax", of_tree=(0, 1, 2))
NUMBER = Outputs("number", link="identity")


def stump(left: Leaf, right: Leaf) -> GuestTree:
    return GuestTree((Split("bank", "age", 1, 2, True, gain=1.0, cover=left.cover + right.cover), left, right))


def view(outputs: Outputs, trees: tuple[GuestTree, ...], algorithm: str = "secureboost", unit: str = "") -> object:
    model = SimpleNamespace(outputs=outputs, trees=trees)
    record = SimpleNamespace(algorithm=algorithm, task=outputs.task)
    label = SimpleNamespace(unit=Text(unit), meaning=Text())
    return SimpleNamespace(model=model, record=record, task=outputs.task, federation=SimpleNamespace(label=label))


def test_a_leaf_of_a_boosted_model_says_what_it_adds() -> None:
    trees = (stump(Leaf(-0.25, 3.0), Leaf(0.5, 1.0)),) * 2
    here = view(Outputs(), trees)
    assert view_models.scale(here) == "log_odds"
    assert view_models.answer(here, Leaf(0.5, 1.0)) == (0.5,)
    assert view_models.middle(here, trees[0]) == 0.0
    assert tree.leaf_short(T, here, Leaf(-0.25, 3.0)) == "−0.250"
    assert tree.leaf_words(T, here, 0, Leaf(0.5, 1.0)) == T("structure.raises_log_odds", weight="+0.500")


def test_a_leaf_of_a_forest_holds_a_part_of_its_trees_share_and_says_the_whole() -> None:
    trees = (stump(Leaf(0.05, 3.0), Leaf(0.4, 1.0)),) * 2  # of two trees: 10 % of three people, 80 % of one
    here = view(SHARES, trees, "forest")
    assert view_models.answer(here, Leaf(0.4, 1.0)) == (0.8,)
    assert view_models.middle(here, trees[0]) == pytest.approx((0.1 * 3 + 0.8 * 1) / 4)
    assert tree.leaf_short(T, here, Leaf(0.05, 3.0)) == "10.0\u00a0%"
    assert tree.leaf_words(T, here, 0, Leaf(0.4, 1.0)) == T("structure.says_share", weight="80.0\u00a0%")


def test_a_leaf_of_a_median_forest_is_whole_already() -> None:
    here = view(replace(SHARES, aggregation="median"), (stump(Leaf(0.1, 3.0), Leaf(0.8, 1.0)),) * 2, "forest")
    assert view_models.answer(here, Leaf(0.8, 1.0)) == (0.8,)
    assert view_models.released(here) == "median"


def test_a_leaf_of_several_classes_names_the_likeliest() -> None:
    leaf = Leaf(0.6, 4.0, weights=(0.3, 0.6, 0.1))
    here = view(CLASSES, (stump(leaf, leaf),), "fl-dt")
    assert tree.leaf_short(T, here, leaf) == "mid 60.0\u00a0%"
    listed = T.listed(["mid 60.0\u00a0%", "low 30.0\u00a0%", "high 10.0\u00a0%"])
    assert tree.leaf_words(T, here, 0, leaf) == T("structure.says_class_share", listed=listed)
    assert view_models.class_of(here, 0) == ""
    assert view_models.released(here) == "classes"


def test_a_tree_of_boosted_classes_speaks_of_one_of_them() -> None:
    here = view(SOFTMAX, (stump(Leaf(-0.1, 1.0), Leaf(0.2, 1.0)),) * 3)
    assert [view_models.class_of(here, i) for i in range(3)] == ["low", "mid", "high"]
    words = tree.leaf_words(T, here, 2, Leaf(-0.1, 1.0))
    assert words == T("structure.lowers_class_score", weight="−0.100", name="high")


def test_numbers_are_steps_of_boosting_and_means_of_a_forest() -> None:
    trees = (stump(Leaf(100.0, 1.0), Leaf(-250.0, 1.0)),) * 2
    steps, means = view(NUMBER, trees, "opboost", "€"), view(NUMBER, trees, "forest", "€")
    assert tree.leaf_short(T, steps, trees[0].nodes[1]) == "+100\u00a0€"
    assert tree.leaf_short(T, steps, trees[0].nodes[2]) == "−250\u00a0€"
    assert tree.leaf_short(T, means, trees[0].nodes[1]) == "200\u00a0€"


def test_a_hostile_class_name_stays_text_in_a_picture() -> None:
    leaf = Leaf(1.0, 4.0, weights=(1.0, 0.0, 0.0))
    here = view(replace(CLASSES, classes=("<b>x", "mid", "high")), (stump(leaf, leaf),), "fl-dt")
    assert "<b>x" not in tree.leaf_words(T, here, 0, leaf)


@pytest.mark.parametrize(
    ("stored", "algorithm"),
    [
        ("SecureBoost GBDT", "secureboost"),
        ("secureboost", "secureboost"),
        ("fl-dt", "fl-dt"),
        ("imported: XGBoost 3.2", "imported"),
    ],
)
def test_an_algorithm_is_known_however_old_its_record(stored: str, algorithm: str) -> None:
    record = SimpleNamespace(algorithm=stored)
    assert view_models.algorithm(record) == algorithm
    assert "{" not in frame.algorithm(T, record)


def test_a_round_of_boosting_grows_a_tree_for_each_class() -> None:
    federation = SimpleNamespace(label=SimpleNamespace(classes=("low", "mid", "high")))
    grown = {name: SimpleNamespace(algorithm=name, task="classes") for name in ("secureboost", "forest", "opboost")}
    assert [view_models.trees_a_round(record, federation) for record in grown.values()] == [3, 1, 3]
    assert view_models.trees_a_round(SimpleNamespace(algorithm="secureboost", task="binary"), federation) == 1


def test_a_figure_has_its_own_unit_and_a_missing_one_is_a_dash() -> None:
    t, metrics = T, Metrics(NAN, NAN, NAN, 0.912, 100, "test", rmse=1234.5, r2=-0.25)
    assert frame.figure(metrics, "rmse", "€") == "1,234\u00a0€"
    assert frame.figure(metrics, "accuracy") == "91.2\u00a0%"
    assert frame.figure(metrics, "auc") == "–"
    assert frame.quality(t, SimpleNamespace(task="number", metrics=metrics), "€") == "RMSE 1,234\u00a0€"
    assert amount(-0.5, "") == "−0.500"


SCORE = Score("a", "ok", "", 1.0, 0.7, "accept", (0.7,), "", 0.0, 0.5, 0.5, 1, (), band="accept")
ONE_OF_THREE = replace(
    SCORE, id="b", decision="", band="", predicted="mid", predictions=(0.1, 0.7, 0.2), probability=0.6
)
AMOUNT = replace(SCORE, id="c", decision="", band="", probability=NAN, predictions=(9.0,), margin=9.0)
FAILED = replace(SCORE, id="d", status="failed", decision="", band="", probability=NAN, margin=NAN)


def test_another_line_is_a_what_if_and_no_decision() -> None:
    scores = (SCORE, ONE_OF_THREE, AMOUNT, FAILED)
    batch = ScoreBatch("m", "none", 0, Policy(decline_at=0.9), scores, (), (), 1, 1, 10, 1.0)
    for line, word in ((0.5, "decline"), (0.8, "accept"), (None, "")):
        shown = view_models.with_what_if(batch, line)
        assert [score.what_if for score in shown.scores] == [word, "", "", ""]
        assert [score.decision for score in shown.scores] == [score.decision for score in scores]
        assert (shown.policy, shown.what_if) == (batch.policy, line)
