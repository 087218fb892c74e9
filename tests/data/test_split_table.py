"""Making a federation from one table."""

from pathlib import Path

import numpy as np
import pytest

from backend.data.csv_file import parse_csv
from backend.data.dictionary import Kind
from backend.data.federation import load_federation
from backend.data.split import split_table
from backend.data.table import read_labels, read_table
from backend.errors import FederationError

TABLE = (
    "id;paidOnTime;LIMIT_BAL;job;pets;late\na;yes;10;clerk;1;no\nb;no;20,5;nurse;2;yes\n".replace(",", ".")
    + "c;;;NA;3;no\n"
)
SHARED = Path(__file__).parents[2] / ".." / "shared" / "data" / "bank.csv"


def split(folder: Path, text: str = TABLE, **changed):
    (folder / "my table.csv").write_text(text, encoding="utf-8")
    arguments = {
        "id_column": "id",
        "label": "late",
        "positive": None,
        "guest": ["paidOnTime", "LIMIT_BAL"],
        "hosts": {"job_market": ["job"]},
        "dictionary": None,
        "out": folder / "out",
    }
    return split_table(folder / "my table.csv", **(arguments | changed))


def refusals(folder: Path, text: str = TABLE, **changed) -> str:
    with pytest.raises(FederationError) as refused:
        split(folder, text, **changed)
    assert not (folder / "out" / "federation.toml").exists()
    return str(refused.value)


def test_the_parties_files_and_the_federation_file_are_written(tmp_path):
    federation = split(tmp_path)
    assert federation == load_federation(tmp_path / "out")
    assert (tmp_path / "out" / "guest.csv").read_text(encoding="utf-8").splitlines()[:2] == [
        "id,paidOnTime,LIMIT_BAL,late",
        "a,yes,10,no",
    ]
    assert (tmp_path / "out" / "job_market.csv").read_text(encoding="utf-8").startswith("id,job\n")
    assert (federation.name, federation.title) == ("my_table", "My table")
    assert [party.title for party in federation.parties] == ["Guest", "Job market"]
    assert read_labels(federation).tolist() == [0, 1, 0]
    np.testing.assert_array_equal(read_table(federation, "guest").columns["LIMIT_BAL"], [10, 20.5, np.nan])


def test_without_a_dictionary_meaning_and_kind_are_guessed_and_said_to_be(tmp_path):
    features = {feature.name: feature for _, feature in split(tmp_path).features()}
    assert features["LIMIT_BAL"].meaning == "Limit bal (no meaning given)"
    assert features["paidOnTime"].meaning == "Paid on time (no meaning given)"
    assert [features[name].kind for name in ("paidOnTime", "LIMIT_BAL", "job")] == [
        Kind.BOOLEAN,
        Kind.NUMERIC,
        Kind.CATEGORICAL,
    ]


def test_columns_of_nobody_are_left_out_and_named(tmp_path):
    federation = split(tmp_path)
    assert (
        federation.about
        == "Made from the one table my table.csv; the parties are simulated. Columns of nobody: 'pets'."
    )
    assert "pets" not in (tmp_path / "out" / "guest.csv").read_text(encoding="utf-8")


def test_a_dictionary_gives_meanings_and_kinds_also_of_the_label(tmp_path):
    dictionary = tmp_path / "dict.csv"
    dictionary.write_text(
        "name,meaning,kind\njob,Occupation,categorical\nlate,Paid late,\nelse,Else,\n", encoding="utf-8"
    )
    federation = split(tmp_path, dictionary=dictionary, name="mine")
    assert federation.party("job_market").features[0].meaning == "Occupation"
    assert (federation.name, federation.label.meaning) == ("mine", "Paid late")


def test_the_positive_value_can_be_chosen(tmp_path):
    assert read_labels(split(tmp_path, positive="no")).tolist() == [1, 0, 1]


def test_a_label_whose_positive_value_is_not_plain_must_be_told(tmp_path):
    text = TABLE.replace("no\n", "good\n").replace("yes\n", "bad\n")
    assert "found 'bad', 'good'; which value is the positive one cannot be told. Name it with --positive." in refusals(
        tmp_path, text
    )
    assert split(tmp_path, text, positive="bad").label.meaning == "Late is bad (no meaning given)"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"id_column": "key"}, "there is no id column 'key'; the table has id, paidOnTime"),
        ({"label": "y"}, "there is no label column 'y'"),
        ({"id_column": "late"}, "label: found 'late', which is the id column too"),
        ({"guest": ["salary"]}, "guest: found 'salary', which my table.csv does not have"),
        ({"guest": ["job"]}, "job_market: found 'job', which guest holds already"),
        ({"guest": ["late"]}, "guest: found 'late', which is the label"),
        ({"guest": ["id"]}, "guest: found 'id', which is the id column"),
        ({"guest": []}, "guest: found no columns"),
        ({"hosts": {}}, "hosts: found no Host"),
        ({"hosts": {"guest": ["job"]}}, "found a Host called 'guest'"),
        ({"hosts": {"../up": ["job"]}}, "hosts '../up', name: found '../up', expected a small letter"),
        ({"name": "My Federation"}, "name: found 'My Federation', expected a small letter"),
        ({"positive": "maybe"}, "the positive value 'maybe' does not occur"),
    ],
)
def test_a_wrong_wish_is_refused_and_nothing_is_written(tmp_path, changed, expected):
    assert expected in refusals(tmp_path, **changed)


def test_faults_of_the_table_are_told_with_its_own_lines(tmp_path):
    assert "my table.csv, column 'id': found the same id twice ('a' on lines 2 and 3)" in refusals(
        tmp_path, TABLE.replace("\nb;", "\na;")
    )


def test_text_that_is_no_code_is_not_taken_for_a_category(tmp_path):
    rows = "".join(f"p{n},{n % 2},{n}x\n" for n in range(150))
    problem = refusals(tmp_path, f"id,late,salary\n{rows}", guest=["salary"], hosts={"shop": ["salary2"]})
    assert "salary2" in problem
    rows = "".join(f"p{n},{n % 2},{n}x,1\n" for n in range(150))
    problem = refusals(tmp_path, f"id,late,salary,z\n{rows}", guest=["salary"], hosts={"shop": ["z"]})
    assert "column 'salary': found 150 different texts, expected numbers or at most 100 codes" in problem
    assert "'0x' on line 2" in problem


def test_nothing_that_is_there_is_overwritten(tmp_path):
    split(tmp_path)
    with pytest.raises(FederationError, match=r"out: found federation\.toml, guest\.csv, job_market\.csv"):
        split(tmp_path)
    with pytest.raises(FederationError, match="expected a folder"):
        split(tmp_path, out=tmp_path / "my table.csv")


@pytest.mark.skipif(not SHARED.exists(), reason="../shared/data/bank.csv is not beside this repository")
def test_the_bank_marketing_table_is_split_once_it_has_ids(tmp_path):
    arguments = {
        "label": "y",
        "positive": "yes",
        "guest": ["age", "job", "balance"],
        "hosts": {"telco": ["housing", "contact", "duration"]},
        "dictionary": None,
        "out": tmp_path / "out",
    }
    with pytest.raises(FederationError, match=r"no id column 'id'.*or add one that numbers them"):
        split_table(SHARED, id_column="id", **arguments)
    lines = SHARED.read_text(encoding="utf-8").splitlines()
    numbered = [f"{'row' if place == 0 else place};{line}" for place, line in enumerate(lines)]
    (tmp_path / "bank.csv").write_text("\n".join(numbered), encoding="utf-8")
    federation = split_table(tmp_path / "bank.csv", id_column="row", **arguments)
    assert read_labels(federation).sum() == 521
    kinds = {feature.name: feature.kind for _, feature in federation.features()}
    assert (kinds["housing"], kinds["contact"], kinds["balance"]) == (Kind.BOOLEAN, Kind.CATEGORICAL, Kind.NUMERIC)
    assert len(parse_csv("guest.csv", (tmp_path / "out" / "guest.csv").read_bytes()).rows) == 4521
