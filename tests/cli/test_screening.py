"""`screen`: a line a feature as text, all figures as JSON, and the same as a file."""

import csv
import json

from backend.cli.screening import ADDS


def test_features_are_screened_printed_and_written(run, tmp_path):
    file = tmp_path / "screening.csv"
    status, text, _ = run("screen", "demo", "--cipher", "none", "--out", file)
    assert status == 0
    rows = list(csv.DictReader(file.read_text(encoding="utf-8-sig").splitlines()))
    for row in rows:
        assert f"{float(row['iv']):.3f} [{float(row['iv_chance']):.3f}] {row['feature']} ({row['party']})" in text
        if row["added"]:
            assert (
                f"adds {float(row['added']):.3f} ({float(row['added_chance']):.3f} by chance): {ADDS[row['adds']]}"
                in text
            )
    assert any(words in text for words in ADDS.values()) and "bits about each person were booked" in text
    status, text, _ = run("screen", "demo", "--cipher", "none", "--json")
    done = json.loads(text)
    assert status == 0 and [one["feature"] for one in done["features"]] == [row["feature"] for row in rows]
    assert done["periods"] is None and all(one["psi"] is None for one in done["features"])


def test_dates_without_a_time_column_are_a_mistake(run):
    status, _, error = run("screen", "demo", "--before", "2026-01", "--since", "2026-02")
    assert status == 1 and "time column" in error
