"""Links are judged by the ratio of turns in one run; the line that delays passes every byte on, in order, both ways."""

import json
import re
import socket
import threading
import time

import pytest

from bench import links, readme, tables


def both(simulation, linked):
    return {"simulation": simulation, "links": linked}


def test_the_ratio_is_the_median_of_the_turns_and_every_aim_is_judged():
    row = links.row("one score", both([1.0, 2.0, 1.0], [2.0, 2.0, 5.0]), at_most=2.0)
    assert row["ratio"] == 2.0 and row["links_seconds"] == 2.0 and row["aim"] == {"at_most": 2.0, "reached": True}
    assert not links.row("a table", both([3.0], [4.3]), at_least=0.7)["aim"]["reached"]
    assert links.row("a table", both([3.0], [4.2]), at_least=0.7)["aim"]["reached"]
    far = both([0.01] * 20, [0.1] * 18 + [0.2] * 2)
    assert not links.row("far", far, at_most_ms=110.0, p95_at_most_ms=150.0)["aim"]["reached"]
    assert links.row("far", far, at_most_ms=110.0, p95_at_most_ms=201.0)["aim"]["reached"]


def test_the_document_says_each_aim_and_whether_it_is_reached():
    rows = [
        links.row("one score", both([0.1], [0.2]), at_most=3.0),
        links.row("far", both([0.1], [0.2]), at_most_ms=110.0, p95_at_most_ms=150.0),
        links.row("9 rows", both([7.0], [8.0]), at_least=0.7),
    ]
    facts = {"data": "Cards", "hosts": 2, "leaves": 9, "trees": 1, "depth": 2, "scores": 6, "repeats": 1}
    written = tables.links({**facts, "rows": rows})
    assert "at most 3 ×: reached" in written and "at least 70% of the throughput: reached" in written
    assert "at most 110 ms, 95th percentile 150 ms: not reached" in written
    assert re.search(r"9 rows +\| +7\.0 s \| +8\.0 s", written) and "links" in readme.BLOCKS


MACHINE = {"cores": 2, "cpu": "x", "python": "3.11", "gmpy2": "2", "load_before": 0.1, "date": "2026-01-01"}
FACTS = {"data": "Cards", "hosts": 2, "leaves": 9, "trees": 1, "depth": 2, "scores": 6, "repeats": 1}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A results file with three rows, and a later day on the same machine."""
    monkeypatch.setattr(links.setting, "machine", lambda: {**MACHINE, "date": "2026-02-02"})
    file = tmp_path / "links.json"
    rows = [{"name": name, "links_seconds": 1.0} for name in ("one score", "5,000 rows", "training, 1 trees")]
    file.write_text(json.dumps({"machine": MACHINE, **FACTS, "rows": rows}))
    return file


def test_a_row_that_is_measured_alone_takes_its_place_and_no_other_is_lost(results):
    measured = [{"name": "5,000 rows", "links_seconds": 2.0}, {"name": "100,000 rows, one turn", "links_seconds": 9.0}]
    whole = links.merged({**FACTS, "rows": measured}, results)
    assert json.loads(results.read_text()) == whole and [path.name for path in results.parent.iterdir()] == [
        "links.json"
    ]
    assert [(one["name"], one["links_seconds"], one["machine"]["date"]) for one in whole["rows"]] == [
        ("one score", 1.0, "2026-01-01"),
        ("5,000 rows", 2.0, "2026-02-02"),
        ("training, 1 trees", 1.0, "2026-01-01"),
        ("100,000 rows, one turn", 9.0, "2026-02-02"),
    ]


def test_the_document_says_which_rows_are_of_another_machine():
    rows = [{**links.row(name, both([0.1], [0.2]), at_most=3.0), "machine": {**MACHINE, "cpu": name}} for name in "xy"]
    written = tables.links({"machine": MACHINE, **FACTS, "rows": rows})
    assert "Y: measured on one machine: 2 cores (y)" in written and "X: " not in written


def test_rows_of_another_model_are_not_put_beside_the_ones_that_stand(results):
    before = results.read_text()
    with pytest.raises(SystemExit, match="leaves"):
        links.merged({**FACTS, "leaves": 8, "rows": []}, results)
    assert results.read_text() == before


def test_what_is_measured_alone_is_named_and_nothing_else_is_a_name():
    assert links.chosen("") == links.KINDS and links.chosen("table, far") == ("far", "table")
    with pytest.raises(SystemExit, match="near, far, table, training"):
        links.chosen("far,fast")


@pytest.fixture
def echo():
    """The port of a server that gives back what one client sends, until that ends."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        end, _ = server.accept()
        with end:
            while blob := end.recv(1000):
                end.sendall(blob)

    serving = threading.Thread(target=serve)
    serving.start()
    yield server.getsockname()[1]
    serving.join()
    server.close()


def test_the_line_passes_every_byte_on_in_order_both_ways_and_no_sooner_than_it_says(echo, monkeypatch):
    monkeypatch.setattr(links, "DELAY", 0.005)
    sent = bytes(range(256)) * 2000
    with links.line(echo) as line, socket.create_connection(line.getsockname()) as end:
        began = time.perf_counter()
        end.sendall(sent)
        end.shutdown(socket.SHUT_WR)
        came, first = b"", None
        while blob := end.recv(1 << 16):
            first = first or time.perf_counter()
            came += blob
    assert came == sent and first - began >= 2 * links.DELAY


def test_a_piece_is_due_at_its_moment_and_not_before():
    due = time.perf_counter() + 0.003
    links.wait_until(due)
    assert time.perf_counter() >= due
    links.wait_until(due)  # it is over
