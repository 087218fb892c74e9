"""The commands of an analyst: importance, what-if, model-card."""

import json

import pytest

from backend.services import Glassleaf


@pytest.fixture
def used(home):
    """(party, feature) of every split, the Guest's first."""
    glassleaf = Glassleaf(home, pools=False)
    model = glassleaf.models.guest_model("latest")
    glassleaf.close()
    found = {(s.owner, s.feature) for tree in model.trees for s in tree.splits.values()}
    return sorted(found, key=lambda pair: (pair[0] != model.guest, pair))


@pytest.mark.parametrize("measure", ["gain", "splits", "cover"])
def test_importance_is_ranked_by_feature_and_by_party(run, measure):
    status, text, _ = run("importance", "latest", "--measure", measure, "--json")
    body = json.loads(text)
    features = [row["share"] for row in body["rows"] if row["feature"]]
    assert status == 0 and features == sorted(features, reverse=True) and sum(features) == pytest.approx(1)
    assert sum(row["share"] for row in body["rows"] if not row["feature"]) == pytest.approx(1)
    assert body["directions"] and set(body) == {"model", "measure", "rows", "directions", "pairs", "agreement"}


def test_importance_reads_as_text(run, used):
    status, text, _ = run("importance")
    assert status == 0 and "all of it" in text and used[0][1] in text


def test_worth_is_measured_by_scoring_again(run, used):
    status, text, _ = run("importance", "--measure", "permutation", "--samples", 60, "--repeats", 1, "--json")
    rows = json.loads(text)["rows"]
    assert status == 0 and {(r["party"], r["feature"]) for r in rows if r["feature"]} == set(used)
    assert all(row["n"] == 60 and row["low"] <= row["fall"] <= row["high"] for row in rows)


def test_another_measure_is_refused_in_one_sentence(run):
    status, _, error = run("importance", "--measure", "luck")
    assert status == 1 and "choose one of gain, splits, cover, permutation" in error


@pytest.mark.slow
def test_what_if_sets_a_guests_feature_and_groups_a_hosts(run, used):
    guest, host = used[0], used[-1]
    status, text, _ = run("what-if", "latest", guest[1], "--json")
    assert status == 0 and json.loads(text)["party"] == guest[0] and len(json.loads(text)["levels"]) > 1
    status, text, _ = run("what-if", "latest", host[1], "--bits", 2048, "--json")
    body = json.loads(text)
    assert status == 0 and body["party"] == host[0] and all(g["group"]["n"] >= 50 for g in body["groups"])
    assert run("what-if", "latest", "nothing")[0] == 1


def test_the_card_tells_every_part_and_can_be_measured_again(run):
    status, text, _ = run("model-card", "latest", "--json")
    assert status == 0 and [p["part"] for p in json.loads(text)["parts"]] == ["test", "validation", "training"]
    status, text, _ = run("model-card", "latest", "--again", 60)
    assert status == 0 and "test, n=60 (scores from scoring)" in text and "PSI training to test" in text
