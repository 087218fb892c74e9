"""The ranking is measured with all of its bytes and messages, and its table can be written."""

import json

from bench import ranking, tables


def test_a_ranking_is_measured_beside_its_peer():
    results = json.loads(json.dumps(ranking.measure((512,), (3, 9), repeats=1)))
    few, many = results["rows"]
    assert (few["messages"], results["rounds"]) == (4, 2)
    assert few["comparisons"] == 2 + 4 * 2 and many["comparisons"] == 8 + 4 * 4
    assert many["gates"] > few["gates"] and many["host_bytes"] > 32 * many["gates"]
    assert few["seconds"] == few["guest_seconds"] + few["host_seconds"] > 0
    slow, fast = few["wires"]
    assert slow["seconds"] == (few["guest_bytes"] + few["host_bytes"]) / 300e3 + 4 * 0.05 > fast["seconds"]
    assert "left_out" in results["peer"]["512"] and "ratio" not in few

    beside = [few | {"peer_seconds": 10.0, "ratio": 50.0}, many]
    lines = tables.ranking(results | {"rows": beside}).splitlines()
    assert {line.count("|") for line in lines if line.startswith("|")} == {12}
    assert cells(lines[2])[-2:] == ["10 s", "50 ×"] and cells(lines[3])[-2:] == ["–", "–"]


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]
