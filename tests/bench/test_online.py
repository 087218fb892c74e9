"""The load generator and the long table run on tiny settings and print every figure that they promise."""

import argparse

import pytest

from bench import online, stream
from bench.aims import aims_of

pytestmark = pytest.mark.slow


def test_a_server_is_started_asked_and_ended(monkeypatch):
    monkeypatch.setattr(online, "TREES", 2)
    given = argparse.Namespace(url="", token="", ids="", scores=30, callers=4, cipher="none", credit_card=False)
    found = online.measure(given)
    assert found["scores"] == 10 and set(found["codes"]) == {200} and found["cipher"] == "none"
    assert 0 < found["ms"]["p50"] <= found["ms"]["p95"] and found["few"]["callers"] == online.FEW
    words = online.describe(found | {"machine": {"cores": 2, "load_before": 0.0}})
    assert "aim 150" in words and "aim 60" in words and "8 callers" in words


def test_a_long_table_is_scored_and_its_memory_looked_at(credit_card_csv, monkeypatch):
    monkeypatch.setattr("bench.setting.CREDIT_CARD", credit_card_csv)
    found = stream.measure(quick=True)
    assert found["rows"] == found["scored"] == stream.QUICK_ROWS and found["peak_bytes"] > 1e8
    written = aims_of("stream")(found | {"machine": {"cores": 2}})
    assert f"at the rate of {stream.QUICK_ROWS:,} rows" in written and "plaintext:" in written
