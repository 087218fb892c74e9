"""The command line: the walk of a user who brings one table, JSON for scripts, one clear sentence for a mistake."""

import json

import numpy as np
import pandas as pd
import pytest
from inside import runtime_of
from short_keys import SHORTER
from worlds import goes_left

from backend.data.credit_card import DICTIONARY
from backend.services import Glassleaf
from backend.trees.ensemble import Split

GUEST = [f"PAY_{6}", *(f"BILL_AMT{i}" for i in range(1, 7)), *(f"PAY_AMT{i}" for i in range(1, 7))]
HOST = ["LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE", "PAY_0", *(f"PAY_{i}" for i in range(2, 6))]


@pytest.fixture
def home(tmp_path):
    """Empty: every walk begins with nothing."""
    return tmp_path / "home"


@pytest.mark.slow
def test_the_credit_card_walk_from_one_table_to_scores_equal_to_the_plain_model(run, credit_card_csv, tmp_path):
    status, text, _ = run(
        "init", credit_card_csv, "--id", "ID", "--label", "default.payment.next.month", "--guest", ",".join(GUEST),
        "--host", "platform=" + ",".join(HOST), "--dictionary", DICTIONARY, "--out", tmp_path / "cc",
    )  # fmt: skip
    assert status == 0 and "platform: 10 features" in text
    status, text, progress = run("train", tmp_path / "cc", "--trees", 20, "--depth", 4, "--cipher", "none", "--json")
    record = json.loads(text)
    assert status == 0 and record["n_trees"] == 20 and "tree 20/20" in progress
    status, text, _ = run("evaluate", "latest", "--samples", 4, "--bits", 2048, "--json")
    evaluation = json.loads(text)
    assert status == 0 and evaluation["registered"]["n"] == 6000 and evaluation["encrypted"]["n"] == 4
    assert json.loads(run("models", "--json")[1])[0]["id"] == record["id"]

    frame = pd.read_csv(credit_card_csv, dtype=str)
    samples = tmp_path / "samples.csv"
    frame[["ID", *GUEST]].tail(20).to_csv(samples, index=False)
    out = tmp_path / "scores.csv"
    status, text, _ = run("score", record["id"], samples, "--out", out, "--bits", 2048, "--check", "--json")
    batch = json.loads(text)
    assert status == 0 and batch["equal_to_plain"] is True and batch["key_bits"] == 2048 // SHORTER
    expected = walk_the_plain_model(record["id"], frame.tail(20), tmp_path)
    units, most = np.array([s["units"] for s in batch["scores"]]), round(batch["dither"] * 2 ** record["score_bits"])
    added = units - expected  # real people: the platform has added dither
    assert most == 32 and np.abs(added).max() <= most and len(set(added)) > 5 and batch["canaries"] == 20
    written = pd.read_csv(out)
    assert written["score"].to_numpy() == pytest.approx(units / 2 ** record["score_bits"], abs=1e-6)

    glassleaf = Glassleaf(pools=False)
    found = glassleaf.compliance.assess(record["id"]).findings
    flags = {f.feature: (f.party, f.status) for f in reversed(found)}  # the worst of each
    glassleaf.close()
    assert flags == {
        "SEX": ("platform", "prohibited"),
        "MARRIAGE": ("platform", "prohibited"),
        "AGE": ("platform", "conditional"),
    }


def walk_the_plain_model(model_id, frame, tmp_path):
    """Oracle: both partial models in one hand, node by node, straight from the one table."""
    glassleaf = Glassleaf(pools=False)
    runtime = runtime_of(glassleaf, glassleaf.models.get(model_id).federation)
    model = glassleaf.models.guest_model(model_id)
    rules = dict(model.rules)
    for host in runtime._simulated.hosts.values():
        rules.update(host._partial_models.get(model_id).model.rules)
    glassleaf.close()
    totals = []
    for _, row in frame.iterrows():
        total = round(model.base_scores[0] * 2**model.score_bits)
        for t, tree in enumerate(model.trees):
            i = 0
            while isinstance(node := tree.nodes[i], Split):
                i = node.left if goes_left(rules[t, i], row[node.feature]) else node.right
            total += round(node.weight * 2**model.score_bits)
        totals.append(total)
    return totals


@pytest.mark.slow
def test_the_demo_is_trained_and_scored_under_encryption_from_the_shell(run, tmp_path):
    status, text, _ = run("demo")
    assert status == 0 and "Demo ready" in text and "plaintext (simulation)" in text
    status, text, _ = run(
        "train",
        "demo",
        "--trees",
        1,
        "--depth",
        1,
        "--bins",
        4,
        "--cipher",
        "paillier",
        "--bits",
        2048,
        "--hosts",
        "telecom",
    )
    assert status == 0 and f"secureboost on Paillier, {2048 // SHORTER} bits" in text
    status, text, _ = run("train", "demo", "--trees", 1, "--depth", 1, "--bins", 4, "--hosts", "telecom")
    assert status == 0 and "secureboost on RLWE" in text
    bank = pd.read_csv(tmp_path / "home" / "demo" / "bank.csv", dtype=str)
    (tmp_path / "ids.csv").write_text("\n".join(["id", *bank["id"].head(2)]), encoding="utf-8")
    status, text, _ = run("score", "latest", tmp_path / "ids.csv", "--bits", 2048)
    assert status == 0 and "2 ok, 0 partial, 0 refused, 0 failed" in text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["score", "latest", "missing.csv"], "There is no model latest"),
        (["train", "nowhere"], "There is no federation nowhere"),
        (["init", "t.csv", "--id", "i", "--label", "y", "--guest", "a", "--host", "x", "--out", "o"], "name=COLUMN"),
        (["train", "demo", "--depth", "99"], "depth is 99"),
        (["train", "demo", "--bits", "2048"], "--cipher paillier"),
        (["train", "demo", "--cipher", "rot13"], "choose one of rlwe, paillier"),
        (["evaluate", "m1"], "newest first: none yet"),
    ],
)
def test_a_mistake_gives_one_sentence_and_status_1(run, words, text):
    status, out, err = run(*words)
    assert status == 1 and out == "" and err.startswith("Error: ") and text in err and "Traceback" not in err


def test_an_empty_home_lists_no_models_and_says_what_to_do(run):
    assert run("models")[1].startswith("No model yet")


@pytest.mark.parametrize("words", [["companies", "--out", "c"], ["host", "serve"], ["host", "check"]])
def test_a_command_over_links_names_what_is_not_installed_and_writes_nothing(run, monkeypatch, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("backend.cli.output.find_spec", lambda name: None)
    status, out, err = run(*words)
    assert status == 1 and out == "" and "pip install 'glassleaf[link]'" in err and not (tmp_path / "c").exists()
