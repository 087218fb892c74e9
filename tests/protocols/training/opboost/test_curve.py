"""The curve of quality against ε: its points, and that strong noise costs what weak noise keeps."""

from dataclasses import replace

import pytest

from bench import opboost


@pytest.mark.slow
def test_a_curve_has_a_point_for_every_map_and_epsilon(credit_card_csv, monkeypatch):
    monkeypatch.setattr(opboost, "PARAMETERS", replace(opboost.PARAMETERS, trees=8, learning_rate=0.3))
    points = opboost.curve(opboost.cards(3_000, 7), (0.01, 5.12), 7)
    assert [(p["map"], p["epsilon"]) for p in points] == [
        (m, e) for m in ("global", "adj", "local") for e in (0.01, 5.12)
    ]
    for p in points:
        assert 0.5 < p["auc"] < 1 and 0.5 < p["auc_on_ranks"] < 1 and p["n_test"] == 600
        assert p["undisturbed"] > p["alone"]
    assert [p["feature_bound"] for p in points[:2]] == [pytest.approx(1.27), pytest.approx(650.24)]
    assert points[4]["feature_bound"] is points[4]["record_bound"] is None
    assert "unlimited" in opboost.describe({"points": points})


def test_without_the_data_there_is_a_reason_in_place_of_a_curve(monkeypatch, tmp_path):
    monkeypatch.setattr(opboost, "CREDIT_CARD", tmp_path / "absent.csv")
    assert "Left out" in opboost.describe(opboost.measure(quick=True))
