"""Measurements: kept by model, kind and feature; a new one takes the old one's place."""

from backend.store.database import Database
from backend.store.measurements import Kept, Measurements


def test_what_was_measured_comes_back_by_feature_and_a_new_one_replaces_it(tmp_path):
    kept = Measurements(Database(tmp_path))
    kept.put("hash", "disparity", "SEX", Kept([{"value": 0.8}], {"n": 100, "cutoff": 0.5}))
    kept.put("hash", "disparity", "AGE", Kept([], {"n": 50, "cutoff": 0.5}))
    kept.put("hash", "proxies", "SEX", Kept([{"value": 0.1}], {"n": 70}))
    kept.put("hash", "disparity", "SEX", Kept([{"value": 0.9}], {"n": 100, "cutoff": 0.4}))
    assert kept.of("hash", "disparity") == {
        "AGE": Kept([], {"n": 50, "cutoff": 0.5}),
        "SEX": Kept([{"value": 0.9}], {"n": 100, "cutoff": 0.4}),
    }
    assert kept.of("other", "disparity") == {}
    again = Measurements(Database(tmp_path))
    assert again.of("hash", "proxies") == {"SEX": Kept([{"value": 0.1}], {"n": 70})}
