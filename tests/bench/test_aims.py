"""Every aim is judged by its result file, what was not measured is said to be so, and a claim that became untrue is named."""

import copy
import json
import re
from types import SimpleNamespace

import pytest

from backend.crypto.rlwe.ring import ring
from backend.crypto.rlwe.sum_parameters import sum_parameters
from bench import aims, readme, training_ciphers

MACHINE = {"cores": 2, "cpu": "x", "python": "3", "gmpy2": "2", "load_before": 0.5, "date": "2026-01-01"}
FLOOR = {"people": 10, "seconds": 0.002, "counts": "transforms"}


def ciphered(name, later, **more):
    return {"cipher": name, "seconds_a_tree": later, "seconds_a_later_tree": later} | more


def sampled(up, back, seconds=1.0):
    return {"bytes_up": up, "bytes_back": back, "cold": {"seconds": seconds}, "warm": {"seconds": seconds}}


@pytest.fixture
def reached():
    """Result files in which every aim is reached, just."""
    ciphers = [ciphered("none", 0.1), ciphered("rlwe", 1.0, floor_seconds_a_tree=0.1, floor="transforms")]
    tree = {"rows": 10**6, "seconds": 120.0, "exact": True, "peak_bytes": 4e9, "bytes": 1e9}
    engines = [("none", 4, 1), ("rlwe", 132_400, 100), ("phe", 9, 1), ("paillier", 9, 1), ("heu-elgamal", 9, 1)]
    group = {"people": 200, "guest_seconds": 3.0, "host_seconds": 2.0, "floor_seconds": 0.5, "floor": "products"}
    results = {
        "training_ciphers": {
            "trees": 3,
            "ciphers": [*ciphers, ciphered("paillier", 3.0)],
            "sampled": ciphered("paillier-short", 1.79),
            "whole": {"trees": 100, "seconds": 120.0, "same_trees_as_plain": True, "xgboost_seconds": 0.2},
            "tree": tree | {"xgboost_seconds": 1.0, "floor_seconds": 20.0, "floor": "transforms"},
        },
        "stream": {
            "rows": 50_000, "scored": 50_000, "rows_per_second": 1e6 / 360, "peak_bytes": 1e9,
            "plain_rows_per_second": 9e3, "plain_peak_bytes": 5e8, "floor": FLOOR,
        },
        "cipher": {
            "keys": [{"rows": [{"engine": name, "sample": sampled(up, back)} for name, up, back in engines]}],
            "sample": {"entries": 9}, "two_cores": [{"per_second": 5_000.0}], "floor": FLOOR,
        },
        "curves": {"cores": [{"engine": "rlwe", "cores": n, "per_second": 1_000.0 + 600 * (n - 1)} for n in (1, 2)]},
        "alignment": {
            "records": 1_000, "floor": {"seconds_an_id": 1e-4, "counts": "multiplications"},
            "dh": {"guest_seconds": 0.06, "host_seconds": 0.069, "wall_seconds": 0.165},
            "hashing": {"guest_seconds": 0.001, "host_seconds": 0.001},
        },
        "online": {
            "scores_per_second": 150.0, "processor_ms_per_score": 9.0, "ms": {"p95": 110.0}, "callers": 16,
            "few": {"scores_per_second": 150.0, "ms": {"p95": 60.0}, "callers": 8},
            "plain": {"scores_per_second": 300.0, "ms": {"p95": 9.0}}, "floor": FLOOR,
        },
        "reasons": {"cohorts": [group | {"cipher": "rlwe"}, group | {"cipher": "paillier"}]},
        "privacy": {"meter": [
            {"bits": 16, "seconds": 0.2, "bound_seconds": 0.05, "bound_excess": 0.01, "floor_seconds": 0.1}
        ]},
        "processes": {
            "count": 1, "bytes": 2e8, "parties": 3, "alone_bytes": 5e8, "floor_bytes": 5e7, "floor": "an interpreter",
        },
    }  # fmt: skip
    return {name: content | {"machine": MACHINE} for name, content in results.items()}


# where a figure lies, and what makes it miss its aim
WORSE = [
    ("training_ciphers", ("whole", "seconds"), 121.0),
    ("training_ciphers", ("whole", "same_trees_as_plain"), False),
    ("training_ciphers", ("ciphers", 2, "seconds_a_later_tree"), 2.9),
    ("training_ciphers", ("sampled", "seconds_a_later_tree"), 1.81),
    ("training_ciphers", ("tree", "seconds"), 121.0),
    ("training_ciphers", ("tree", "exact"), False),
    ("training_ciphers", ("tree", "peak_bytes"), 4.1e9),
    ("stream", ("rows_per_second",), 2_770.0),
    ("stream", ("scored",), 49_999),
    ("stream", ("peak_bytes",), 1.1e9),
    ("cipher", ("two_cores", 0, "per_second"), 4_999.0),
    ("cipher", ("keys", 0, "rows", 1, "sample", "bytes_up"), 132_500),
    ("alignment", ("dh", "host_seconds"), 0.071),
    ("alignment", ("dh", "wall_seconds"), 0.166),
    ("online", ("scores_per_second",), 149.0),
    ("online", ("few", "ms", "p95"), 61.0),
    ("online", ("few", "scores_per_second"), 149.0),
    ("reasons", ("cohorts", 0, "host_seconds"), 2.1),
    ("privacy", ("meter", 0, "bound_seconds"), 0.051),
    ("processes", ("count",), 3),
]


def changed(results, file, path, value):
    results = copy.deepcopy(results)
    at = results[file]
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return results


def lines_of(written):
    return {cells[1].strip(): cells for line in written.splitlines() if len(cells := line.split("|")) > 4}


def test_where_all_is_reached_every_line_says_so_and_none_is_explained(reached):
    written = aims.aims(reached)
    assert [lines_of(written)[aim.name][4].strip() for aim in aims.AIMS] == ["yes"] * len(aims.AIMS)
    assert aims.NO not in written and "Not reached" not in written and "Not measured" not in written
    assert not aims.became_untrue(reached, reached)
    own = lines_of(aims.aims_of("processes")(reached["processes"]))
    assert {aim.name for aim in aims.AIMS} & own.keys() == {aim.name for aim in aims.AIMS if aim.file == "processes"}
    assert aims.aims_of("stream")({"skipped": "no data"}) == "Skipped: no data"


@pytest.mark.parametrize(
    ("file", "path", "value"), WORSE, ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else ""
)
def test_a_figure_that_misses_its_aim_says_so_with_the_reason_and_became_untrue(reached, file, path, value):
    now = changed(reached, file, path, value)
    (missed,) = [aim for aim in aims.AIMS if (found := aim.figure(now)) is not None and not found.reached]
    written = aims.aims(now)
    assert missed.file == file and lines_of(written)[missed.name][4].strip() == aims.NO
    assert f"- **{missed.name}**: {missed.why}" in written
    (lost,) = aims.became_untrue(reached, now)
    assert lost.startswith(f"{missed.name}: {missed.figure(now).measured} (before: ")
    assert not aims.became_untrue(now, reached)


def test_every_aim_has_a_figure_that_makes_it_miss(reached):
    missed = {aim.name for change in WORSE for aim in aims.AIMS if not aim.figure(changed(reached, *change)).reached}
    assert missed == {aim.name for aim in aims.AIMS}


def test_what_was_not_measured_is_neither_reached_nor_missed(reached):
    assert all(_ == "–" for _ in (lines_of(aims.aims({}))[aim.name][4].strip() for aim in aims.AIMS))
    del reached["alignment"]["floor"], reached["alignment"]["dh"]["wall_seconds"]
    del reached["training_ciphers"]["tree"], reached["online"]
    written = aims.aims(reached)
    large = next(cells for name, cells in lines_of(written).items() if name.startswith("a tree over"))
    assert [large[2].strip(), large[4].strip()] == ["not measured yet", "–"]
    assert re.search(r"Not measured yet.*`training_ciphers`, `alignment`, `online`", written)


def test_claims_of_other_tables_become_untrue_too():
    def sessions(held):
        return {"sessions": {"machine": MACHINE, "rows": [{"name": "first page", "aim": {"reached": held}}]}}

    assert aims.became_untrue(sessions(True), sessions(False)) == ["sessions: first page"]
    assert not aims.became_untrue(sessions(False), sessions(False))


def test_more_cores_and_the_line_are_worked_out_on_paper_by_hand(reached):
    # 1,000 a second on one core, 1,600 on two: a quarter is serial, so 16 cores give 1,000 / (1/4 + 3/64), 64 1,000 / (1/4 + 3/256)
    reached["cipher"]["bulk"] = [{"engine": "rlwe", "bytes_a_sample": 25_000.0}]
    written = aims.aims(reached)
    assert "On paper, not measured" in written and "16 cores would give 3,368 and 64 3,821" in written
    assert "1 Gbit/s carries 5,000" in written


def test_a_busy_machine_is_named(reached):
    reached["online"]["machine"] = MACHINE | {"load_before": 4.2}
    assert "online (4.2)" in aims.aims(reached) and "stream (" not in aims.aims(reached)


def test_the_document_is_written_from_the_files_that_are_there(reached, monkeypatch, tmp_path):
    monkeypatch.setattr(readme, "RESULTS", tmp_path)
    (tmp_path / "processes.json").write_text(json.dumps(reached["processes"]), encoding="utf-8")
    written = readme.filled("<!-- figures: aims -->\nstale\n<!-- end -->")
    assert "stale" not in written and "1 of 200 MB, for 3 parties" in written and "Measured on one machine" in written


def test_the_floor_of_training_counts_what_was_sent_and_not_the_roots_polynomials_which_are_kept():
    of = ring(sum_parameters(18_000).name)
    tree = []
    for blocks, replies in ((70, 44), (10, 8)):  # the root, and a node below it; gradients and hessians each
        sent = {"NodePairs": ("guest", "host", blocks * of.seeded_width + 50)}
        came = {"BinSums": ("host", "guest", replies * of.full_width + 50)}
        for kind, (sender, receiver, size) in ({"AskNodeSums": ("guest", "host", 9)} | sent | came).items():
            tree.append(SimpleNamespace(kind=kind, sender=sender, receiver=receiver, bytes=size))
    found = training_ciphers._floor(tree * 2, 18_000, 2)
    # two primes: 80 blocks, 4 transforms for each of 52 replies, and 5 · 4 polynomials of the node below
    assert found["floor"] == "616 transforms of 80 blocks, 52 replies and 20 polynomials of bins"
    assert found["floor_seconds_a_tree"] > 0
