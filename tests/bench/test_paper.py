"""The papers' tables: small settings run through, hand-worked figures come out, and the page holds what was found and nothing else."""

import json
import re
import sys

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from bench import opboost
from bench.paper import __main__ as command
from bench.paper import data, fed_eini, fed_eini_page, fl_dt, forest, forest_ciphers, page
from bench.paper.centralised_trees import decision_tree, prune
from bench.paper.data import A9A, BANK, CAR, CREDIT, GIVE_ME_SOME
from bench.pooled import Pooled

pytestmark = pytest.mark.slow

SHARED = pytest.mark.skipif(
    not data.FOLDER.is_dir(), reason="the papers' data lie beside the project; they are not here"
)


@pytest.fixture
def absent(monkeypatch, tmp_path):
    monkeypatch.setattr(data, "_FILES", {name: tmp_path / f"{name}.csv" for name in (CREDIT, BANK, CAR)})


@pytest.fixture(scope="module")
def demo():
    return data._demo().sample(300)


# data ------------------------------------------------------------------------------------------------------------------


def test_without_the_data_a_full_run_is_refused_and_says_where_they_belong(absent, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["paper"])
    assert command.main() == command.ABSENT
    error = capsys.readouterr().err
    assert "bank.csv" in error and "--quick" in error


def test_without_the_data_a_quick_run_takes_the_demo(absent):
    tables = data.papers_tables(quick=True)
    assert list(tables) == [CREDIT]
    table = tables[CREDIT]
    assert "demo" in table.title
    assert table.frame.columns[-1] == table.label
    assert len(set(table.features)) == len(table.features) == len(table.frame.columns) - 2


@SHARED
def test_the_tables_have_the_papers_sizes():
    sizes = {name: (len(t.frame), len(t.features)) for name, t in data.papers_tables(quick=False).items()}
    cards = {CREDIT: (30_000, 23), GIVE_ME_SOME: (150_000, 10)}
    assert sizes == cards | {BANK: (4_521, 16), CAR: (1_728, 6), A9A: (48_842, 123)}


@SHARED
def test_a_quick_run_takes_few_records():
    assert {len(t.frame) for t in data.papers_tables(quick=True).values()} <= {data.QUICK_ROWS, 1_728}


def test_a_share_of_the_features_leaves_some_for_the_other_party(demo):
    n = len(demo.features)
    assert [len(demo.first(share)) for share in (0.0, 0.5, 1.0)] == [1, n // 2, n - 1]


def test_a_sample_keeps_the_files_order(demo):
    ids = list(demo.frame["id"])
    taken = list(demo.sample(20).frame["id"])
    assert len(taken) == 20
    assert taken == [i for i in ids if i in set(taken)]


# trees alone -----------------------------------------------------------------------------------------------------------

X, Y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0.0, 0.0, 0.0, 1.0])  # Gini falls from 0.375 to 0.25


@pytest.mark.parametrize(("min_decrease", "answers"), [(0.1, {0.0, 0.5}), (0.125, {0.25})])
def test_a_split_that_lowers_the_impurity_by_no_more_than_epsilon_is_not_made(min_decrease, answers):
    tree = DecisionTreeClassifier(random_state=0).fit(X, Y)
    prune(tree, min_decrease)
    assert set(tree.predict_proba(X)[:, 1]) == answers


def test_the_first_seventy_percent_of_the_file_can_be_trained_on():
    flags = np.zeros(10, dtype=bool)
    ordered = Pooled({"x": np.arange(10)}, {}, np.repeat([0.0, 1.0], 5), flags, flags).in_file_order()
    assert ordered.training.tolist() == [True] * 7 + [False] * 3
    assert ordered.test.tolist() == [False] * 7 + [True] * 3
    assert decision_tree(ordered, None, 1, 0.0) == 1.0
    assert ordered.most_frequent() == 0.0  # five of the first seven are 0, the last three are 1


# figures ---------------------------------------------------------------------------------------------------------------


def test_the_delay_that_gives_a_ratio_is_worked_out_by_hand():
    point = {
        "runs": {
            fed_eini.BASELINE: {"seconds": {"LAN": 2.0}, "rounds": 11},
            fed_eini.RLWE: {"seconds": {"LAN": 10.0}, "rounds": 1},
        }
    }
    delay = fed_eini_page.round_delay(point, fed_eini.RLWE, 0.5)
    assert delay == pytest.approx(2.0)
    assert (10.0 + delay) / (2.0 + 11 * delay) == pytest.approx(0.5)
    assert fed_eini_page.round_delay(point, fed_eini.RLWE, 6.0) is None


def test_four_times_the_instances_in_twice_the_time_are_an_exponent_of_a_half():
    points = [
        {"scored": scored, "runs": {"a": {"seconds": {"LAN": seconds}}}} for scored, seconds in ((100, 1.0), (400, 2.0))
    ]
    assert fed_eini_page.exponent(points, "a") == pytest.approx(0.5)


def test_auc_and_ks_of_four_scores():
    quality = fed_eini.auc_and_ks(np.array([0.0, 1.0, 0.0, 1.0]), np.array([1, 2, 3, 4]))
    assert quality == {"auc": 0.75, "ks": 0.5}


# parts -----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(demo):
    """Every part on a few synthetic records and plaintext."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fed_eini, "KEYS", {fed_eini.RLWE: ("rlwe", 2048, 10**9)})
        patch.setattr(fed_eini, "QUICK_MANY", (100, 400))
        patch.setattr(forest, "CIPHER", "none")
        patch.setattr(fl_dt, "TIMED", fl_dt.PLAIN)
        patch.setattr(fl_dt, "WARM", fl_dt.PLAIN)
        patch.setattr(fed_eini, "cores", lambda: 1)
        patch.setattr(forest, "RECORDS", 20_000)
        patch.setattr(forest_ciphers, "BITS", 512)
        patch.setattr(opboost, "measure", measured)
        parts = {name: part.measure({CREDIT: demo}, True) for name, part in page.PARTS.items()}
    other = {
        "data": "another",
        "rows": 300,
        "undisturbed": 0.8,
        "alone": 0.7,
        "global": 0.7,
        "adj": 0.71,
        "local": 0.72,
    }
    parts["opboost"]["others"] = [other, other | {"data": "a9a"}]
    setting = {"machine": {"cores": 2, "cpu": "c", "python": "3", "date": "d", "load_before": 0.0}, "quick": True}
    return json.loads(json.dumps({name: setting | {"seconds": 1.0} | part for name, part in parts.items()}))


def measured(quick):
    point = {"undisturbed": 0.8, "alone": 0.7, "auc_on_ranks": 0.72, "feature_bound": 1.0, "n_test": 60}
    points = [
        point | {"map": name, "epsilon": epsilon, "auc": 0.75 + 0.01 * epsilon}
        for name in ("global", "adj", "local")
        for epsilon in opboost.QUICK_EPSILONS
    ]
    return {"rows": 300, "parameters": opboost.PARAMETERS.as_dict(), "points": points}


def test_mi_and_fed_eini_give_the_same_scores(results):
    part = results["fed-eini"]
    assert all(p["equal"] for p in part["sampled"] + part["instances"] + part["features"] + part["tree_counts"])
    for line in part["sampled"]:
        assert len({json.dumps(q) for q in line["quality"].values()}) == 1


def test_fed_eini_has_one_round_and_mi_many(results):
    for point in results["fed-eini"]["instances"]:
        assert point["runs"][fed_eini.RLWE]["rounds"] == 1
        assert point["runs"][fed_eini.BASELINE]["rounds"] > 5


def test_records_are_repeated_when_more_are_scored_than_there_are(results):
    (measured,) = results["fed-eini-many"]["sets"]
    assert [point["scored"] for point in measured["points"]] == [100, 400]
    assert all(point["equal"] for point in measured["points"])
    assert measured["records"] == 300
    assert "repeated under new ids" in fed_eini_page.many_text(results["fed-eini-many"])


def test_a_forest_is_served_in_one_round(results):
    rounds = {line["model"]: line["rounds"] for line in results["forest"]["serving"]}
    assert rounds["streaming"] == rounds["batching"] == 1
    assert rounds["unoptimised, node by node"] > rounds["unoptimised, level by level"]


def test_the_forest_sends_less_than_secureboost(results):
    for line in results["forest"]["training"]:
        assert line["forest"]["bytes"] > 0
        assert line["forest"]["seconds"] > 0


def test_sets_of_rows_come_back_and_the_shortest_form_travels(results):
    for line in results["forest"]["row_sets"]:
        assert line["exact"]
        assert line["sent"] == min(form["bytes"] for form in line["forms"].values())


def test_which_party_holds_a_feature_does_not_change_the_tree(results):
    assert len({p["accuracy"] for p in results["fl-dt"]["theta_sweep"]}) == 1


def test_the_page_has_every_part_its_charts_and_even_tables(results, tmp_path):
    written = page.write(results, tmp_path)
    text = written.read_text(encoding="utf-8")
    assert [part.title in text for part in page.PARTS.values()] == [True] * len(page.PARTS)
    charts = re.findall(r"\]\((images/[^)]+)\)", text)
    assert charts
    assert all((tmp_path / chart).exists() for chart in charts)
    assert {f"images/{file.name}" for file in (tmp_path / "images").iterdir()} == set(charts)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({line.count("|") for line in table.splitlines()}) == 1
    assert page.QUICK in text
    assert "nan" not in text


def test_maps_have_an_order_but_on_columns_of_yes_and_no(results):
    text = page.text(results)
    assert "From the best on another: Local-Map, Adj-Map, Global-Map." in text
    assert "On a9a there is no order" in text
    assert "From the best on a9a" not in text


def test_a_part_that_was_not_run_is_named_and_never_filled_in():
    text = page.text({})
    assert text.count("Not run yet.") == len(page.PARTS)
    assert not re.search(r"^\|", text, re.M)
