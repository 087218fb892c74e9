"""A model divided between parties: rules at their owners, weights at the Guest, codes as texts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from worlds import GUEST

from backend.data.dictionary import Feature
from backend.errors import ModelError
from backend.trees.ensemble import HostModel, Leaf, Split
from backend.trees.importers.partition import split_between_parties
from backend.trees.serialization import dump_guest, dump_host
from tests.trees.importers.frames import (
    BINARY,
    CITIES,
    FEATURES,
    NUMBER,
    STUMP,
    divided,
    read_document,
    scores_of,
    xgboost_document,
)


def test_a_stump_by_hand_becomes_a_rule_at_the_host_and_weights_at_the_guest(tmp_path):
    model = read_document(tmp_path, xgboost_document())
    partial_models = split_between_parties(model, [("host0", FEATURES["x"])], BINARY, GUEST, ["host0"], 10)
    guest, hosts = partial_models.guest, partial_models.hosts
    assert guest.trees[0].nodes == (Split("host0", "x", 1, 2, False, 4.0, 3.0), Leaf(-0.25, 1.0), Leaf(0.5, 2.0))
    assert guest.rules == {} and guest.base_scores == (0.0,) and guest.hosts == ("host0",)
    (rule,) = hosts["host0"].rules.values()
    values = np.array([np.nextafter(np.float32(1.5), np.float32(0)), 1.5, np.nan, -7.0])
    assert rule.goes_left(values).tolist() == [True, False, False, True]
    frame = pd.DataFrame({"x": values})
    assert scores_of(divided(model, frame, {"x": "host0"}, 10, STUMP)).tolist() == [-0.25, 0.5, 0.5, -0.25]


def test_the_guests_partial_model_has_no_field_for_a_hosts_threshold(tmp_path):
    model = read_document(tmp_path, xgboost_document(tree={"split_conditions": [1234.5678, -0.25, 0.5]}))
    partial_models = split_between_parties(model, [("host0", FEATURES["x"])], BINARY, GUEST, ["host0", "host1"], 10)
    guest, hosts = partial_models.guest, partial_models.hosts
    assert "1234.5" not in dump_guest(guest) and "1234.5" in dump_host(hosts["host0"])
    assert "0.25" not in dump_host(hosts["host0"])
    assert isinstance(hosts["host1"], HostModel) and hosts["host1"].rules == {}
    assert hosts["host0"].salt != hosts["host1"].salt


def test_scores_that_do_not_fit_their_scale_are_refused_and_fit_a_coarser_one(tmp_path):
    tree = {"split_conditions": [1.5, -(2.0**38), 2.0**30]}
    document = xgboost_document(tree=tree, objective={"name": "reg:squarederror"}, param={"base_score": "[1E0]"})
    model, frame = read_document(tmp_path, document), pd.DataFrame({"x": [0.0, 9.0]})
    with pytest.raises(
        ModelError, match=r"scores of up to 274,877,906,945, expected at most 274,877,906,944 with 15 score"
    ):
        divided(model, frame, {"x": "host0"}, 15, STUMP, NUMBER)
    world = divided(model, frame, {"x": "host0"}, 14, STUMP, NUMBER)
    assert scores_of(world).tolist() == [1.0 - 2.0**38, 1.0 + 2.0**30]


# --- category codes ----------------------------------------------------------------------------------------------------


def coded_xgboost(tmp_path, codes=(1,)):
    """Splits on codes 0, 1, 2 of a feature without names: `codes` go right, to 0.5; missing values left, to -0.25."""
    tree = {
        "split_type": [1, 0, 0],
        "default_left": [1, 0, 0],
        "categories": list(codes),
        "categories_nodes": [0],
        "categories_segments": [0],
        "categories_sizes": [len(codes)],
    }
    return read_document(tmp_path, xgboost_document(tree=tree, feature_names=["c"]))


def score_texts(model, feature, texts, **options):
    frame = pd.DataFrame({"c": pd.Categorical(texts)})
    return scores_of(divided(model, frame, {"c": "host0"}, features={"c": feature}, **options)).tolist()


def test_codes_without_names_ask_for_their_texts(tmp_path):
    with pytest.raises(ModelError, match=r"model\.json, feature 'c': .*the code 1 is, .*--categories"):
        split_between_parties(coded_xgboost(tmp_path), [("host0", FEATURES["c"])], BINARY, GUEST, ["host0"], 10)


def test_codes_take_the_texts_that_are_given_in_their_order(tmp_path):
    texts = [*CITIES, None, "a city never seen"]
    scores = score_texts(coded_xgboost(tmp_path), FEATURES["c"], texts, categories={"c": CITIES})
    assert scores == [-0.25, 0.5, -0.25, -0.25, -0.25]


def test_codes_are_the_federations_own_where_it_lists_them_as_whole_numbers(tmp_path):
    coded = FEATURES["c"].model_copy(update={"categories": {"0": "none", "1": "one", "2": "two"}})
    last = coded_xgboost(tmp_path, codes=(2,))
    assert score_texts(last, coded, ["0", "1", "2", None]) == [-0.25, -0.25, 0.5, -0.25]
    # without the last code two of three may have been encoded as 0 and 1
    with pytest.raises(ModelError) as refused:
        score_texts(coded_xgboost(tmp_path), coded, ["0"])
    assert refused.value.code == "category_codes_unproven"
    seen = replace(coded_xgboost(tmp_path), seen_codes={0: frozenset({0, 1, 2})})
    assert score_texts(seen, coded, ["0", "1", "2", None]) == [-0.25, 0.5, -0.25, -0.25]
    with pytest.raises(ModelError) as refused:
        score_texts(replace(seen, seen_codes={0: frozenset({0, 1})}), coded, ["0"])
    assert refused.value.code == "category_codes_unproven"
    # as texts 10 comes before 2
    many = coded.model_copy(update={"categories": {str(code): "one of 12" for code in range(12)}})
    with pytest.raises(ModelError) as refused:
        score_texts(replace(seen, seen_codes={0: frozenset(range(12))}), many, ["0"])
    assert refused.value.code == "category_codes_unproven"
    with pytest.raises(ModelError, match="the code 3 is"):
        score_texts(coded_xgboost(tmp_path, codes=(1, 3)), coded, ["0"])


def test_a_code_that_may_be_a_place_among_the_codes_is_asked_about(tmp_path):
    coded = FEATURES["c"].model_copy(update={"categories": {"1": "man", "2": "woman"}})
    unnamed = coded_xgboost(tmp_path)
    with pytest.raises(ModelError) as refused:
        score_texts(unnamed, coded, ["1", "2"])
    assert refused.value.code == "category_codes_unproven"
    # labels encoded as 0 and 1 have not the federation's codes; codes 1 and 2 themselves have
    with pytest.raises(ModelError) as refused:
        score_texts(replace(unnamed, seen_codes={0: frozenset({0, 1})}), coded, ["1", "2"])
    assert refused.value.values["codes"] == (0, 1)
    own = replace(unnamed, seen_codes={0: frozenset({1, 2})})
    assert score_texts(own, coded, ["1", "2"]) == [0.5, -0.25]
    assert score_texts(unnamed, coded, ["1", "2"], categories={"c": ("1", "2")}) == [-0.25, 0.5]


def test_given_texts_are_checked_against_the_federations_codes(tmp_path):
    cities = FEATURES["c"].model_copy(update={"categories": dict.fromkeys(CITIES, "a city")})
    for given_texts, words in [
        (
            ("Bern", "Cologne", "Beijing"),
            "found the categories 'Cologne', expected the federation's codes 'Bern', 'Koeln'",
        ),
        (("Bern", "Bern"), "two category codes with one text"),
    ]:
        with pytest.raises(ModelError, match=words):
            score_texts(coded_xgboost(tmp_path), cities, ["Bern"], categories={"c": given_texts})
    with pytest.raises(ModelError, match="given for 'z', which is not one of its columns"):
        score_texts(coded_xgboost(tmp_path), cities, ["Bern"], categories={"c": CITIES, "z": ()})


def test_a_cut_through_codes_that_are_numbers_becomes_sets_of_codes(tmp_path):
    model = read_document(tmp_path, xgboost_document(feature_names=["c"]))
    coded = FEATURES["c"].model_copy(update={"categories": {"1": "one", "2": "two", "10": "ten"}})
    assert score_texts(model, coded, ["1", "2", "10", None, "7"]) == [-0.25, 0.5, 0.5, 0.5, 0.5]
    with pytest.raises(ModelError, match="cuts it as a number, the federation has it as categorical"):
        score_texts(model, FEATURES["c"], ["1"])


def test_a_categorical_split_on_a_number_of_the_federation_is_refused(tmp_path):
    number = Feature(name="c", meaning="a number")
    with pytest.raises(ModelError, match="has it as categorical, the federation as numeric"):
        split_between_parties(coded_xgboost(tmp_path), [("host0", number)], BINARY, GUEST, ["host0"], 10)


def test_a_split_on_a_feature_of_nobody_is_refused_and_an_unused_one_is_not(tmp_path):
    model = read_document(tmp_path, xgboost_document())
    for dictionary in ([("host0", FEATURES["k"])], [("stranger", FEATURES["x"]), ("host0", FEATURES["k"])]):
        with pytest.raises(ModelError, match=r"model\.json: found splits on 'x', expected a feature .*: 'k'\."):
            split_between_parties(model, dictionary, BINARY, GUEST, ["host0"], 10)
    names = xgboost_document(feature_names=["x", "of nobody"], param={"num_feature": "2"})
    model = read_document(tmp_path, names)
    guest = split_between_parties(model, [("host0", FEATURES["x"])], BINARY, GUEST, ["host0"], 10).guest
    assert guest.dictionary == (("host0", FEATURES["x"]),)


def test_columns_can_be_renamed(tmp_path):
    nameless = xgboost_document(feature_names=[], param={"num_feature": "2"})
    assert read_document(tmp_path, nameless).features == ("f0", "f1")
    assert read_document(tmp_path, nameless, features=["income", "age"]).features == ("income", "age")
    for names, words in [
        (["income"], "found 1 feature names, expected"),
        (["age", "age"], "found 'age' more than once"),
    ]:
        with pytest.raises(ModelError, match=words):
            read_document(tmp_path, nameless, features=names)
