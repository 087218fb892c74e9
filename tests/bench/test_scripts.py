"""Each script runs on tiny settings, its JSON has what the documents need, and the documents can be written from it."""

import json
import os
import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.web.server.starlette import starlette_websocket

from app.panels import navigation
from backend.compliance.assessment import assess
from backend.data.federation import load_federation
from backend.errors import ParameterError
from backend.services.accounts import Accounts
from backend.services.roles import ROLES
from backend.trees.backgrounds import ALL, Background, score_bands
from bench import alignment, backgrounds, cipher, coverage, curves, label_leak, large, readme, reasons, sign_in, tables
from bench.cases import random_case
from bench.peers import stdout_on_stderr

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def ciphers():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cipher, "QUICK_LEAVES", 32)
        return json.loads(json.dumps(cipher.measure((512,), ("paillier", "rlwe", "none"), quick=True)))


@pytest.fixture(scope="module")
def grown():
    return json.loads(json.dumps(curves.measure(quick=True) | {"machine": {}}))


def test_every_cipher_gets_a_row_beside_phe(ciphers):
    (key,) = ciphers["keys"]
    assert [(row["engine"], row["peer"]) for row in key["rows"]] == [
        ("paillier", False), ("rlwe", False), ("none", False), ("phe", True),
    ]  # fmt: skip
    assert key["rows"][-1]["encrypt"]["cold"]["ratio"] == 1.0


def test_a_row_has_the_promised_figures(ciphers):
    paillier, rlwe, none, phe = ciphers["keys"][0]["rows"]
    for row in (paillier, rlwe):
        assert set(row["encrypt"]) == {"cold", "warm"}
        assert {"made_seconds", "pool_seconds"} <= set(row["refresh"])
        assert {"cold", "warm", "through_messages_seconds", "bytes_up", "bytes_back"} <= set(row["sample"])
        assert {"seconds", "guest_seconds", "host_seconds", "ratio"} == set(row["sample"]["warm"])
    assert paillier["tables"]["guest"]["build_seconds"] > 0
    assert set(none["encrypt"]) == set(phe["encrypt"]) == {"cold"}
    assert all(row["masked_sum_seconds"] > 0 and row["decrypt_seconds"] > 0 for row in (paillier, rlwe, none, phe))


def test_bulk_counts_both_parties_and_both_cores(ciphers):
    assert [row["engine"] for row in ciphers["bulk"]] == ["paillier", "rlwe", "none"]
    assert all(row["seconds"] == pytest.approx(row["guest_seconds"] + row["host_seconds"]) for row in ciphers["bulk"])
    assert {row["how"] for row in ciphers["two_cores"]} == {"Guest and Host a process each", "two workers"}


def test_an_unknown_cipher_is_refused():
    with pytest.raises(ParameterError, match="rot13"):
        cipher.measure((512,), ("rot13",), quick=True)


def test_the_results_are_written_as_tables_in_words_that_need_no_key(ciphers, grown):
    written = cipher.describe(ciphers)
    assert "RLWE, lattice" in written and re.search(r"N = [\d,]+, q = \d+ bits", written)
    for table in re.findall(r"(?:^\|.*\n?)+", "\n".join([written, curves.describe(grown)]), re.M):
        assert len({line.count("|") for line in table.splitlines()}) == 1
    assert not re.search(r"n\d+-q\d+-t\d+|paillier \d", curves.describe(grown))


def test_every_curve_has_points(grown):
    assert {p["samples"] for p in grown["samples"]} == {1, 10}
    assert {p["hosts"] for p in grown["hosts"]} == {1, 2}
    assert {p["cores"] for p in grown["cores"]} == {1, 2}
    assert all(p["bytes_a_sample"] > 0 for p in grown["leaves"])


def test_a_bound_keeps_what_hosts_are_told_below_it_and_every_row_is_written():
    measured = json.loads(json.dumps(label_leak.measure(quick=True)))
    assert [(row["bound"], row["complete"]) for row in measured["rows"]] == [(0.0, False), (0.02, False), (0.0, True)]
    assert measured["rows"][1]["bits"] <= 0.02 < measured["rows"][0]["bits"]
    written = label_leak.describe(measured)
    assert len(re.findall(r"^\|.*label-bound 0.02", written, re.M)) == 1 and "own columns" in written


def test_training_on_ciphertexts_is_written_by_cipher_and_says_so_where_models_or_sums_differ():
    row = {"seconds_a_tree": 2.0, "seconds_a_later_tree": 1.0, "bytes_a_tree": 3e6, "key_bits": 0}
    other = {"cipher": "paillier", "key_bits": 2048, "seconds_a_later_tree": 5.0, "bytes_a_tree": 1.5e6}
    root = {"rows": 10, "features": 2, "encrypt_seconds": 1.0, "sum_seconds": 2.0, "decrypt_seconds": 1.0}
    results = {
        "federation": "demo", "rows": 7, "trees": 2, "depth": 3, "bins": 4, "same_trees": True, "machine": {"load_before": 1},
        "ciphers": [row | {"cipher": "none"}, row | {"cipher": "rlwe"}, row | other],
        "root": root | {"bytes": 1, "peak_bytes": 1, "exact": True},
        "whole": {"trees": 9, "seconds": 8.0, "plain_seconds": 2.0, "xgboost_seconds": 0.1, "same_trees_as_plain": True,
                  "aim": {"at_most": 7, "reached": False}},
    }  # fmt: skip
    written = tables.training_ciphers(results)
    assert "5.0 times as fast" in written and "2.0 times the bytes" in written and "takes 4 s" in written
    assert "takes 8 s" in written and "at most 7 s: not reached" in written and "4 times plaintext" in written
    assert "DIFFER" not in written and "WRONG" not in written
    results["same_trees"] = results["root"]["exact"] = results["whole"]["same_trees_as_plain"] = False
    assert tables.training_ciphers(results).count("DIFFER") == 2 and "WRONG" in tables.training_ciphers(results)


def test_the_time_of_a_sample_is_divided_by_stage_and_wire(grown):
    cold = grown["where"][0]
    assert cold["seconds"] == pytest.approx(sum(s["seconds"] for s in cold["stages"]))
    floors = {(s["party"], s["stage"]): s["floor_seconds"] for s in cold["stages"]}
    assert floors["bank", "encrypt"] > 0
    slow, fast = cold["wires"]
    assert slow["floor_seconds"] == cold["bytes"] / 300e3
    assert slow["seconds"] == pytest.approx(slow["floor_seconds"] + 2 * 0.05)
    assert fast["seconds"] < slow["seconds"]


@pytest.mark.parametrize("method", ["dh", "bloom"])
def test_parties_that_align_at_once_find_what_they_share(method, monkeypatch):
    guest, host = [f"id{i}" for i in range(9)], [f"id{i}" for i in range(5, 20)]
    monkeypatch.setattr(alignment, "JOINT", 4)
    assert alignment.together(method, guest, host) > 0
    monkeypatch.setattr(alignment, "JOINT", 5)
    with pytest.raises(RuntimeError):
        alignment.together(method, guest, host)


def points(*rates, engine="rlwe"):
    return [{"engine": engine, "samples": 10**k, "seconds": 1.0, "per_second": rate} for k, rate in enumerate(rates)]


def test_the_speed_chart_marks_what_was_left_out():
    left_out = {"engine": "paillier 2048", "samples": 100, "left_out": "too long"}
    results = {
        "cap_seconds": 60.0,
        "sample": {"leaves": 1540},
        "textbook": [{"bits": 2048, "per_second": 0.07}],
        "samples": [*points(60.0, 600.0, 2000.0), *points(3.0, 3.0, engine="paillier 2048"), left_out],
    }
    chart = readme.speed_chart(results)
    assert chart.steps == ["1", "10", "100"] and chart.logarithmic
    assert chart.lines == {"RLWE, lattice: 2,000": [60.0, 600.0, 2000.0], "Paillier, 2,048 bits: 3": [3.0, 3.0, None]}
    assert chart.left_out == {"RLWE, lattice: 2,000": [], "Paillier, 2,048 bits: 3": [2]}
    assert chart.levels == {"phe, 2,048 bits: 0.07": 0.07}


def test_every_page_has_a_row_with_its_times_beside_an_empty_page():
    times = {"server_seconds": 0.1, "title_seconds": 0.2, "seconds": 0.4321, "worst_seconds": 0.9}
    sizes = {"large": {"features": 500, "trees": 300, "leaves": 4471, "findings": 57}}
    facts = {
        "rounds": 5,
        "load_after": 2.0,
        "server_aim_seconds": 0.12,
        "models": sizes,
        "machine": {"load_before": 1.0},
    }
    empty = {"size": "none", "page": "Empty", **times, "seconds": 0.1}
    shown = {"size": "large", "page": "Features", **times, "signed_in_seconds": 0.11, "aim_seconds": 0.6}
    table = tables.pages({**facts, "rows": [empty, shown]})
    assert re.search(r"Features \| +100 / 110 \| +200 \| +432 \(900\) \|", table)
    assert "An empty page is complete after 100 ms." in table and "large 600 ms" in table
    assert "4,471 leaves" in table and "at most 120 ms" in table
    assert "An empty page" not in tables.pages({**facts, "rows": [shown]})


def test_every_page_of_the_dashboard_is_walked_through():
    pages = pytest.importorskip("bench.pages", reason="Playwright is not installed", exc_type=ImportError)
    assert sorted(pages.NAMES) == sorted(name for names in navigation.PAGE_GROUPS.values() for name in names)


def test_a_sign_in_of_measurements_is_one_that_the_dashboard_knows(tmp_path, monkeypatch):
    secrets = sign_in.want(tmp_path, 8000)
    auth = tomllib.loads(secrets.read_text())["auth"]
    monkeypatch.setattr(starlette_websocket, "get_cookie_secret", lambda: auth["cookie_secret"])
    name, value = sign_in.cookie("http://localhost:8000", "somebody")
    assert name == "_streamlit_user" and auth["redirect_uri"].startswith("http://localhost:8000/")
    claims = starlette_websocket._parse_user_cookie_signed(value, "http://localhost:8000")
    account = Accounts(tmp_path).account(claims)
    assert (account.subject, account.roles) == ("somebody", ROLES)
    assert not starlette_websocket._parse_user_cookie_signed(value, "http://localhost:8001")


def test_the_large_federation_is_as_large_as_it_says_and_some_of_it_is_flagged(tmp_path):
    federation = large.write_large(tmp_path, rows=100)
    features = list(federation.features())
    assert len(features) == 500 and len(federation.parties) == 3
    assert (load_federation(tmp_path).name, federation.title.en) == ("large", "Large: 500 features")
    found = assess(features, {})
    flagged, asked = {f.feature for f in found.findings}, {q.feature for q in found.questions}
    barred = {f.name for _, f in features if any(f"_{word}_" in f.name for word in large.BARRED)}
    assert flagged and flagged <= barred <= flagged | asked


def test_numbers_are_rounded_to_two_figures_at_least():
    assert [tables.rounded(x) for x in (0.0123, 1.24, 9.97, 14.4, 1234.5)] == ["0.012", "1.2", "10", "14", "1,234"]


def test_a_block_that_was_not_measured_names_the_command(monkeypatch, tmp_path):
    monkeypatch.setattr(readme, "RESULTS", tmp_path)
    assert readme.filled("<!-- figures: cipher -->\nold\n<!-- end -->") == (
        "<!-- figures: cipher -->\nNot measured yet: `make bench`.\n<!-- end -->"
    )


def test_what_a_library_prints_stays_out_of_our_json(capfd):
    with stdout_on_stderr():
        os.write(1, b"log\n")
    sys.stdout.write("json\n")
    sys.stdout.flush()
    assert capfd.readouterr() == ("json\n", "log\n")


@pytest.mark.parametrize(("bits", "cipher"), [(512, "paillier"), (0, "rlwe")])
def test_reasons_are_measured_beside_a_score_and_phe(bits, cipher, monkeypatch):
    monkeypatch.setattr(reasons, "KEY_BITS", 512)
    parties = reasons.Parties.of(random_case(32, 1))
    row = reasons.cost_of(parties, bits, 1)
    assert row["cipher"] == cipher and row["to_score"] > 1 and row["peer_encryptions"] > 10
    assert row["terms_messages"] == 1 and row["bytes"] > row["key_bytes"] > 64
    group = reasons.cohort_of(parties, bits, 10, 2)
    assert (group["people"], group["measured"]) == (10, 2) and group["guest_seconds"] > 0 < group["host_seconds"]
    written = reasons.describe({"rows": [row], "cohorts": [group], "faithfulness": []})
    assert written.count("| random, 2 trees of depth 4") == 2


def test_reasons_name_the_features_that_plaintext_shap_values_name():
    faith = reasons.faithfulness(reasons.Parties.of(random_case(64, 2)), 20)
    assert faith["same_names"] == 1.0 and faith["largest_error"] <= faith["error_bound"]
    assert "100.0% of 20 |" in reasons.describe({"rows": [], "cohorts": [], "faithfulness": [faith]})


def test_shares_at_the_splits_are_compared_with_records_one_by_one_and_a_host_guesses_the_group():
    case = random_case(16, 1, n=600)
    bare = backgrounds.Records.of(case, case.tables[case.model.guest].ids)
    trees = case.model.trees
    leaves = [sum(i * bare.nodes[t, i] for i in tree.leaves) for t, tree in enumerate(trees)]
    bands = score_bands(trees, leaves, bare.units.astype(np.int64))
    trained = backgrounds.Records.of(replace(case, model=replace(case.model, bands=bands)), bare.ids)
    everybody, some = (
        backgrounds.row_of(trained, trained.only(np.arange(5)), background, 50)
        for background in (ALL, Background("approved", 1))
    )
    assert everybody["records"] == 600 and everybody["told_auc"] is None and some["records"] == bands.records(1)
    assert 0.0 <= everybody["difference"] < 1.0 and 0.0 < some["told_auc"] <= 1.0 and some["one_by_one"] == 50
    rows = [{"model": case.title, **row} for row in (everybody, some)]
    assert backgrounds.describe({"rows": rows}).count("random") == 2


def test_intervals_about_fairness_hold_the_truth_and_each_figure_has_a_line():
    found = coverage.measure(quick=True)
    for figure in {row["figure"] for row in found["rows"]}:
        rows = [row for row in found["rows"] if row["figure"] == figure]
        assert np.average([row["held"] for row in rows], weights=[row["n"] for row in rows]) > 0.9, figure
    assert {"Cramér's V", "AUC difference", "standardised mean difference"} <= {row["figure"] for row in found["rows"]}
    assert "| selection rate: ratio" in tables.coverage(found)
