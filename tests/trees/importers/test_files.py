"""Files that are no model: pickles, other forms, cut off or garbled ones; UBJ; texts of codes."""

import json
import pickle
import re

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from backend.errors import ModelError
from backend.trees.ensemble import SplitRule
from backend.trees.importers import read_categories, read_model
from backend.trees.importers.sklearn_file import export
from backend.trees.importers.ubjson import parse_ubjson
from tests.trees.importers.frames import (
    FEATURES,
    PARTIES,
    WIDE_CITIES,
    assert_only_owners_hold_rules,
    divided,
    labels_of,
    random_frame,
    rules_of,
    train_lightgbm,
    train_xgboost,
)


def test_texts_of_codes_are_read_from_a_file(tmp_path):
    path = tmp_path / "codes.json"
    path.write_text(json.dumps({"c": WIDE_CITIES}), encoding="utf-8")
    assert read_categories(path) == {"c": WIDE_CITIES}
    for wrong, words in [("[]", "found no object"), ('{"c": [1]}', "'c': found no list of texts"), ("{", "1:2")]:
        path.write_text(wrong)
        with pytest.raises(ModelError, match=rf"codes\.json.*{words}"):
            read_categories(path)


class Harmful:
    """A pickle of it writes a file when it is opened."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_a_pickle_is_refused_and_never_opened(tmp_path):
    trace = tmp_path / "opened"
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Harmful(str(trace))))
    with pytest.raises(ModelError, match=r"model\.pkl: found a pickle or an archive"):
        read_model(tmp_path / "model.pkl")
    assert not trace.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "unknown format"),
        (b"binf\x00\x00", "unknown format"),
        (b"PK\x03\x04", "a pickle or an archive"),
        (b"{}", "format: found another format"),
        (b'{"format": "glassleaf-sklearn-9"}', "expected 'glassleaf-sklearn-2'"),
        (b'{"tree_info": []}', r"LightGBM's dump, .*booster\.save_model\('model\.txt'\)"),
        (b'[{"nodeid": 0}]', "a list, such as XGBoost's dump"),
        (b'{"nodes": []}', "unknown format"),
        (b'{"learner": 1', r"1:14: found Expecting ',' delimiter"),
        (b'{"learner": 1}', "learner: found '1'"),
        (b"[" * 100_000, "RecursionError"),
        (b'{"learner": ' + b"9" * 5000 + b"}", "ValueError"),
        (b'{"learner": {"a": 1, "a": 2}, "version": [2, 1, 0]}', "RepeatedNameError"),
        (b'{"\xff": 1}', "byte 2: found a byte that is not UTF-8"),
        (b"tree\n\xff", "byte 5: found a byte that is not UTF-8"),
        (b"{i\x07learner", "byte 10: found 1, expected 0 … 0"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path, content, words):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelError, match=words):
        read_model(tmp_path / "model")


def test_an_absent_file_a_folder_and_a_file_too_large_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ModelError, match=r"model\.json: no such file"):
        read_model(tmp_path / "model.json")
    with pytest.raises(ModelError, match="cannot be read"):
        read_model(tmp_path)
    monkeypatch.setattr("backend.trees.importers.reading.MAX_FILE", 10)
    (tmp_path / "model.json").write_text("{} " * 10)
    with pytest.raises(ModelError, match="found 30 bytes, expected at most 10"):
        read_model(tmp_path / "model.json")


def test_ubj_has_constants_signed_and_unsigned_numbers_and_open_arrays():
    blob = b"{i\x01a[TFZi\xffU\xffI\xff\xfe]i\x01b[$d#i\x02\x3f\x80\x00\x00\xc0\x00\x00\x00"
    blob += b"i\x01cSi\x02\xc3\xb6i\x01d[#i\x01D\x3f\xf0\0\0\0\0\0\0}"
    expected = {"a": [True, False, None, -1, 255, -2], "b": [1.0, -2.0], "c": "ö", "d": [1.0]}
    assert parse_ubjson("m", blob) == expected


@pytest.mark.parametrize(
    ("blob", "words"),
    [
        (b"{}{", "byte 2: found 1 more byte, expected the end of the file"),
        (b"{i\x01ai\x01i\x01ai\x01}", "'a' twice, expected every key once"),
        (b"[#i\xff", "found -1, expected 0 … 0"),
        (b"[$d#l\x7f\xff\xff\xff", "found 2,147,483,647, expected 0 … 0"),
        (b"[$S#i\x01", "found 'S', expected numbers"),
        (b"Q", "byte 1: found 'Q', expected something"),
        (b"Si\x01\xff", "a byte that is not UTF-8"),
        (b"SS", "found 'S', expected a length"),
        (b"[" * 50, "nested more than 32 deep"),
    ],
)
def test_ubj_that_makes_no_sense_is_refused_by_its_byte(blob, words):
    with pytest.raises(ModelError, match=re.escape(words)):
        parse_ubjson("m", blob)


@pytest.fixture(scope="module")
def sound_files(tmp_path_factory):
    """One file of each form, and what it is called."""
    folder, draw = tmp_path_factory.mktemp("models"), np.random.default_rng(4)
    train = random_frame(draw)
    y = labels_of(draw, train)
    train_xgboost(folder / "model.json", train, y, rounds=2).save_model(folder / "model.ubj")
    train_lightgbm(folder / "model.txt", train, y, rounds=2)
    estimator = HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=5, categorical_features="from_dtype")
    (folder / "sklearn.json").write_text(json.dumps(export(estimator.fit(train, y))))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("form", ["model.json", "model.ubj", "model.txt", "sklearn.json"])
def test_a_file_cut_off_or_garbled_anywhere_is_refused_or_still_a_model(tmp_path, sound_files, form):
    sound = (sound_files / form).read_bytes()
    draw = np.random.default_rng(0)
    cut = [sound[:n] for n in draw.integers(0, len(sound) - 40, 60)]
    garbled = []
    for _ in range(400):
        place, length = draw.integers(0, len(sound)), draw.integers(1, 4)
        noise = draw.choice([draw.bytes(length), b"9" * length, b"-", b"[", b"}", b"\n", b"", b" 1e999", b"nan"])
        garbled.append(sound[:place] + bytes(noise) + sound[place + length :])
    assert all(refuses(tmp_path / form, blob) for blob in cut)
    assert sum(refuses(tmp_path / form, blob) for blob in garbled) > len(garbled) / 4


def refuses(path, blob):
    """Whether a file is refused in words; one that is read must give sound partial models."""
    path.write_bytes(blob)
    try:
        model = read_model(path)
        owner = {name: PARTIES[i % 3] for i, name in enumerate(FEATURES)}
        world = divided(model, random_frame(np.random.default_rng(0), n=1), owner)
    except ModelError as error:
        assert path.name in str(error) and len(str(error)) < 2000
        return True
    assert_only_owners_hold_rules(world)
    assert all(isinstance(rule, SplitRule) for rules in rules_of(world).values() for rule in rules.values())
    return False
