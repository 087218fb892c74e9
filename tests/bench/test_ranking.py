"""The ranking is measured with all of its bytes and messages, and its figures can be told."""

import json

from bench import ranking, readme


def test_a_ranking_is_measured_and_told(monkeypatch, tmp_path):
    found = json.loads(json.dumps(ranking.measure((512,), (3, 9), repeats=1) | {"machine": {}}))
    few, many = found["rows"]
    assert (few["messages"], found["rounds"]) == (4, 2)
    assert few["comparisons"] == 2 + 4 * 2 and many["comparisons"] == 8 + 4 * 4
    assert many["gates"] > few["gates"] and many["host_bytes"] > 32 * many["gates"]
    assert few["seconds"] == few["guest_seconds"] + few["host_seconds"] > 0
    slow, fast = few["wires"]
    assert slow["seconds"] == (few["guest_bytes"] + few["host_bytes"]) / 300e3 + 4 * 0.05 > fast["seconds"]
    assert "left_out" in found["peer"]["512"] and "ratio" not in few
    assert ranking.describe(found).count("2 rounds") == 2

    machine = {"cores": 1, "cpu": "c", "python": "3", "gmpy2": "2"}
    beside = [few | {"peer_seconds": 10.0, "ratio": 50.0}, many]
    (tmp_path / "ranking.json").write_text(json.dumps(found | {"machine": machine, "rows": beside}))
    monkeypatch.setattr(readme, "RESULTS", tmp_path)
    lines = readme.ranking().splitlines()
    assert {line.count("|") for line in lines if line.startswith("|")} == {12}
    assert "| 10 s | 50 × |" in lines[2] and "| – | – |" in lines[3]
