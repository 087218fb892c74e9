"""The demo federation holds what it says was planted in it, by plain statistics."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score

from backend.compliance.assessment import assess
from backend.data.demo import BANK, PLANTED, PLATFORM, TELECOM, write_demo
from backend.data.dictionary import ExpectedDirection, Kind
from backend.data.federation import load_federation
from backend.data.table import read_labels, read_table


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder)
    return load_federation(folder)


@pytest.fixture(scope="module")
def labels(demo):
    return read_labels(demo)


@pytest.fixture(scope="module")
def people(demo):
    """Every party's features by the bank's ids; a person whom a party does not hold is missing there."""
    ids = list(read_table(demo, "bank").ids)
    frames = []
    for party in demo.parties:
        table = read_table(demo, party.name)
        frames.append(pd.DataFrame(dict(table.columns), index=list(table.ids)).reindex(ids))
    frame = pd.concat(frames, axis=1)
    coded = [feature.name for _, feature in demo.features() if feature.kind is Kind.CATEGORICAL]
    return frame.astype(dict.fromkeys(coded, "category"))


def auc(people: pd.DataFrame, labels: np.ndarray, features: tuple[str, ...]) -> float:
    """For 20 trees of depth 3, mean of three folds."""
    model = HistGradientBoostingClassifier(
        max_iter=20, learning_rate=0.3, max_depth=3, early_stopping=False, categorical_features="from_dtype"
    )
    return float(cross_val_score(model, people[list(features)], labels, cv=3, scoring="roc_auc").mean())


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_demo(tmp_path / name, rows=200, seed=seed)
    for file in ("federation.toml", "bank.csv", "telecom.csv", "platform.csv"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert (tmp_path / "a" / "bank.csv").read_bytes() != (tmp_path / "c" / "bank.csv").read_bytes()


def test_what_is_written_is_what_is_returned(tmp_path):
    assert write_demo(tmp_path, rows=200) == load_federation(tmp_path)


def test_fewer_than_a_hundred_rows_are_refused(tmp_path):
    with pytest.raises(ValueError, match="at least 100"):
        write_demo(tmp_path, rows=99)


def test_every_feature_is_described_in_both_languages(demo):
    assert len(demo.features()) == len(BANK + TELECOM + PLATFORM) == 24
    assert all(feature.meaning.en and feature.meaning.zh for _, feature in demo.features())
    coded = [feature for _, feature in demo.features() if feature.kind is Kind.CATEGORICAL]
    assert len(coded) >= 3
    assert all(feature.categories for feature in coded)
    assert demo.synthetic


def test_a_company_has_one_name_which_is_translated(demo):
    trees = {"Linden": "椴树", "Rowan": "花楸", "Hazel": "榛树"}
    for party in demo.parties:
        name, _ = party.title.en.split()
        assert party.title.zh.startswith(trees[name])


def test_the_codes_in_the_data_are_the_disclosed_ones(demo, people):
    for _, feature in demo.features():
        if feature.kind is Kind.CATEGORICAL:
            assert set(people[feature.name].dropna()) <= set(feature.categories)


@pytest.mark.slow
def test_hosts_lack_some_ids_and_keep_another_order(demo):
    bank = read_table(demo, "bank").ids
    for host, share in PLANTED.absent.items():
        ids = read_table(demo, host).ids
        assert set(ids) < set(bank)
        assert len(ids) == len(bank) - round(share * len(bank))
        assert list(ids) != [one for one in bank if one in set(ids)]


def test_planted_shares_of_values_are_missing(demo):
    for party in demo.parties:
        table = read_table(demo, party.name)
        for name, column in table.columns.items():
            share = pd.isna(column).mean()
            assert share == pytest.approx(PLANTED.missing.get(name, 0.0), abs=0.012)


def test_the_share_of_defaults_lies_in_the_planted_range(labels):
    low, high = PLANTED.positive_rate
    assert low < labels.mean() < high


@pytest.mark.slow
def test_three_parties_score_visibly_better_than_the_bank_alone(people, labels):
    together = auc(people, labels, BANK + TELECOM + PLATFORM)
    assert 0.78 < together < 0.85
    assert together - auc(people, labels, BANK) > 0.04
    assert together - auc(people, labels, BANK + TELECOM) > 0.01


def test_the_proxy_tells_the_gender_from_another_party_under_a_neutral_name(demo, people):
    party, proxy = PLANTED.proxy_of_gender
    assert party != PLANTED.gender[0]
    female = people["gender"] == "2"
    known = people["gender"].notna() & people[proxy].notna()
    assert roc_auc_score(female[known], people.loc[known, proxy]) > 0.9
    flagged = {finding.feature for finding in assess(demo.features(), {}).findings}
    assert proxy not in flagged


def test_no_other_feature_tells_the_gender(people):
    female = people["gender"] == "2"
    for name in people.columns.drop(["gender", PLANTED.proxy_of_gender[1]]):
        if people[name].dtype.kind == "f":
            known = people["gender"].notna() & people[name].notna()
            assert abs(roc_auc_score(female[known], people.loc[known, name]) - 0.5) < 0.1, name


def test_steadier_spending_raises_the_risk_against_the_expectation(demo, people, labels):
    party, name = PLANTED.contradiction
    feature = next(feature for feature in demo.party(party).features if feature.name == name)
    assert feature.expected_direction is ExpectedDirection.DOWN
    known = people[name].notna().to_numpy()
    quarters = pd.qcut(people.loc[known, name], 4, labels=False)
    rates = pd.Series(labels[known], index=quarters.index).groupby(quarters).mean()
    assert rates.is_monotonic_increasing
    assert rates.iloc[-1] - rates.iloc[0] > 0.05


def test_every_other_expectation_agrees_with_the_data(demo, people, labels):
    for _, feature in demo.features():
        sign = {ExpectedDirection.UP: 1, ExpectedDirection.DOWN: -1}.get(feature.expected_direction, 0)
        if sign and feature.name != PLANTED.contradiction[1]:
            known = people[feature.name].notna().to_numpy()
            assert sign * (roc_auc_score(labels[known], people.loc[known, feature.name]) - 0.5) > 0.01, feature.name


def test_the_blacklist_is_rare_and_strong(people, labels):
    listed = (people[PLANTED.blacklist[1]] == 1).to_numpy()
    assert 0.005 < listed.mean() < 0.03
    assert labels[listed].mean() > 3 * labels[~listed].mean()


def test_the_rule_pack_finds_the_planted_attributes_and_nothing_else(demo):
    findings = assess(demo.features(), {}).findings
    worst_last = findings[::-1]
    assert {(finding.party, finding.feature): finding.status for finding in worst_last} == {
        PLANTED.gender: "prohibited",
        PLANTED.marital_status: "prohibited",
        PLANTED.age: "conditional",
    }
    assert {finding.feature: finding.matched_in for finding in findings} == {
        "gender": "name",
        "marital_status": "sensitivity",
        "age": "name",
    }


def test_twenty_trees_learn_the_contradiction(people, labels):
    name = PLANTED.contradiction[1]
    model = HistGradientBoostingClassifier(
        max_iter=20, learning_rate=0.3, max_depth=3, categorical_features="from_dtype"
    )
    model.fit(people, labels)
    low, high = (model.predict_proba(people.assign(**{name: value}))[:, 1].mean() for value in (30.0, 80.0))
    assert high - low > 0.05
