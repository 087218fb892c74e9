"""Cost is measured along one axis at a time; exponents and limits are those that can be worked out by hand."""

import json

import pytest

from bench import growth, tables

BASE = {"rows": 10, "features": 4, "trees": 10, "parties": 2}


def point(rows, seconds, peak):
    task = {
        "none": {"processor_seconds": 1.0},
        "rlwe": {"processor_seconds": seconds, "bytes": 1e6 * rows, "peak_bytes": peak},
    }
    return {**BASE, "rows": rows, **dict.fromkeys(("training", "scoring", "alignment"), task)}


def written(load=0.0, **changed):
    results = {
        "base": BASE,
        "reduced": False,
        "cores": 2,
        "axes": {"rows": (10, 20)},
        "points": [point(10, 4.0, 1e9), point(20, 16.0, 2e9)],
        "memory_bytes": 10_000_000_000,
        "machine": {"cores": 2, "load_before": load},
    }
    return tables.growth_by_axis(results | changed)


def test_twice_the_rows_in_four_times_the_time_are_an_exponent_of_two():
    lines = [line for line in written().splitlines() if line.startswith("| training")]
    cells = [cell.strip() for cell in lines[0].strip("|").split("|")]
    assert cells[1:8] == ["rows", "10 → 20", "4 → 16", "4 → 16", "10 → 20", "1,000 → 2,000", "2.00"]
    assert cells[8:10] == ["1.00", "1.00"]


def test_the_next_limit_is_what_comes_first_on_a_straight_line():
    # memory: 8e9 bytes are left at 1e8 a row, 80 rows beyond the 20; a day of two cores lies farther away
    assert "memory at 100 " in written()
    # without growth in memory: (172,800 - 4,000) s at 300 s a row, 562 rows beyond the 20
    flat = [point(10, 1_000.0, 1e9), point(20, 4_000.0, 1e9)]
    assert "a day at 580 " in written(points=flat)


def test_a_limit_far_beyond_what_was_measured_is_not_told():
    # (172,800 - 16) s at 1.2 s a row are some 144,000 rows
    flat = [point(10, 4.0, 1e9), point(20, 16.0, 1e9)]
    assert "none within 100 ×" in written(points=flat)


def test_parties_are_counted_by_their_hosts():
    points = [point(10, 4.0, 1e9), {**point(20, 8.0, 1e9), "rows": 10, "parties": 3}]
    lines = written(points=points, axes={"parties": (2, 3)}).splitlines()
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    # twice the Hosts in twice the time
    assert cells[1:4] == ["Hosts", "1 → 2", "4 → 8"]
    assert cells[7] == "1.00"


def test_a_smaller_base_and_a_busy_machine_are_told():
    assert "at a reduced base" not in written() and "under load" not in written()
    assert "Measured at a reduced base, under load (load average before: 9.5)" in written(9.5, reduced=True)


def test_the_guest_has_the_features_that_the_hosts_leave():
    assert growth.Size(1, 50, 1, 3).counts == {"bank": 18, "host1": 16, "host2": 16}


def test_one_axis_is_changed_at_a_time():
    base = growth.Size(10, 4, 10, 2)
    found = growth.sizes(base, {"rows": (10, 20), "trees": (30,)})
    assert found == [base, growth.Size(20, 4, 10, 2), growth.Size(10, 4, 30, 2)]


@pytest.mark.slow
def test_a_small_size_is_measured_for_every_task_on_plaintext_and_encrypted():
    size = growth.Size(300, 4, 10, 2)
    found = json.loads(json.dumps(growth.point(size)))
    for task in ("training", "scoring", "alignment"):
        assert found[task]["rlwe"]["processor_seconds"] > 0
        assert found[task]["rlwe"]["bytes"] > found[task]["none"]["bytes"] > 0
        assert found[task]["rlwe"]["peak_bytes"] > 1e7
    assert found["training"]["rlwe"]["trees"] == 1
    assert found["scoring"]["rlwe"]["leaves"] > 10
