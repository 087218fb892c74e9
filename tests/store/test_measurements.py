"""Measurements: kept by model, kind and feature; a new one takes the old one's place."""

from backend.store.measurements import Measurements


def test_what_was_measured_comes_back_by_feature_and_a_new_one_replaces_it(tmp_path):
    kept = Measurements(tmp_path)
    kept.put("hash", "disparity", "SEX", [{"value": 0.8}])
    kept.put("hash", "disparity", "AGE", [])
    kept.put("hash", "proxies", "SEX", [{"value": 0.1}])
    kept.put("hash", "disparity", "SEX", [{"value": 0.9}])
    assert kept.of("hash", "disparity") == {"AGE": [], "SEX": [{"value": 0.9}]}
    assert kept.of("other", "disparity") == {}
    kept.close()
    again = Measurements(tmp_path)
    assert again.of("hash", "proxies") == {"SEX": [{"value": 0.1}]}
    again.close()
