"""Making a federation from one table."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from backend.data.csv_file import parse_csv
from backend.data.dictionary import Kind
from backend.data.federation import load_federation
from backend.data.split import Division, split_table
from backend.data.table import read_labels, read_table
from backend.errors import FederationError
from backend.i18n import Text

TABLE = (
    "id;paidOnTime;LIMIT_BAL;job;pets;late\na;yes;10;clerk;1;no\nb;no;20,5;nurse;2;yes\n".replace(",", ".")
    + "c;;;NA;3;no\n"
)


def split(folder: Path, text: str = TABLE, **changed):
    (folder / "my table.csv").write_text(text, encoding="utf-8")
    arguments = {
        "id_column": "id",
        "label": "late",
        "positive": None,
        "guest": ["paidOnTime", "LIMIT_BAL"],
        "hosts": {"job_market": ["job"]},
        "dictionary": None,
    }
    out = changed.pop("out", folder / "out")
    return split_table(folder / "my table.csv", Division(**(arguments | changed)), out).federation


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
    assert (federation.name, federation.title) == ("my_table", Text("My table"))
    assert [party.title for party in federation.parties] == [Text("Guest"), Text("Job market")]
    assert read_labels(federation).tolist() == [0, 1, 0]
    np.testing.assert_array_equal(read_table(federation, "guest").columns["LIMIT_BAL"], [10, 20.5, np.nan])


def test_without_a_dictionary_meaning_and_kind_are_guessed_and_said_to_be(tmp_path):
    features = {feature.name: feature for _, feature in split(tmp_path).features()}
    assert features["LIMIT_BAL"].meaning.en == "Limit bal (no meaning given)"
    assert features["paidOnTime"].meaning.en == "Paid on time (no meaning given)"
    assert [features[name].kind for name in ("paidOnTime", "LIMIT_BAL", "job")] == [
        Kind.BOOLEAN,
        Kind.NUMERIC,
        Kind.CATEGORICAL,
    ]


def test_columns_of_nobody_are_left_out_and_named(tmp_path):
    federation = split(tmp_path)
    assert federation.about == Text(
        "Made from the one table my table.csv; the parties are simulated. Columns of nobody: 'pets'."
    )
    assert "pets" not in (tmp_path / "out" / "guest.csv").read_text(encoding="utf-8")


def test_a_dictionary_gives_meanings_and_kinds_also_of_the_label(tmp_path):
    dictionary = tmp_path / "dict.csv"
    dictionary.write_text(
        "name,meaning,kind\njob,Occupation,categorical\nlate,Paid late,\nelse,Else,\n", encoding="utf-8"
    )
    federation = split(tmp_path, dictionary=dictionary, name="mine")
    assert federation.party("job_market").features[0].meaning.en == "Occupation"
    assert (federation.name, federation.label.meaning) == ("mine", Text("Paid late"))


def test_a_dictionary_that_names_no_kind_leaves_it_to_the_cells(tmp_path):
    dictionary = tmp_path / "dict.csv"
    rows = "paidOnTime,Paid on time,\nLIMIT_BAL,Limit,\njob,Occupation,\n"
    dictionary.write_text(f"name,meaning,categories\n{rows}", encoding="utf-8")
    features = {feature.name: feature for _, feature in split(tmp_path, dictionary=dictionary).features()}
    kinds = {"paidOnTime": Kind.BOOLEAN, "LIMIT_BAL": Kind.NUMERIC, "job": Kind.CATEGORICAL}
    assert {name: features[name].kind for name in kinds} == kinds
    assert features["job"].meaning.en == "Occupation"


def test_what_codes_stand_for_makes_a_column_one_of_codes(tmp_path):
    dictionary = tmp_path / "dict.csv"
    dictionary.write_text("name,meaning,categories\nLIMIT_BAL,Limit,10=low;20.5=high\n", encoding="utf-8")
    features = {feature.name: feature for _, feature in split(tmp_path, dictionary=dictionary).features()}
    assert features["LIMIT_BAL"].kind is Kind.CATEGORICAL


def test_the_positive_value_can_be_chosen(tmp_path):
    assert read_labels(split(tmp_path, positive="no")).tolist() == [1, 0, 1]


def test_a_label_whose_positive_value_is_unclear_has_to_name_it(tmp_path):
    text = TABLE.replace("no\n", "good\n").replace("yes\n", "bad\n")
    assert (
        "found 'bad', 'good'; which value is the positive one is unclear. Name the bad outcome with --positive"
        in refusals(tmp_path, text)
    )
    assert split(tmp_path, text, positive="bad").label.meaning.en == "Late is bad (no meaning given)"


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
        ({"hosts": {"../up": ["job"]}}, "hosts, '../up', name: found '../up', expected a small letter"),
        ({"name": "My Federation"}, "name: found 'My Federation', expected a small letter"),
        ({"positive": "maybe"}, "the positive value 'maybe' does not occur"),
    ],
)
def test_a_wrong_wish_is_refused_and_nothing_is_written(tmp_path, changed, expected):
    assert expected in refusals(tmp_path, **changed)


def test_faults_of_the_table_are_reported_with_its_own_lines(tmp_path):
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
    with pytest.raises(
        FederationError, match=r"out: found federation\.toml, dictionary\.csv, guest\.csv, job_market\.csv"
    ):
        split(tmp_path)
    with pytest.raises(FederationError, match="expected a folder"):
        split(tmp_path, out=tmp_path / "my table.csv")


def labels_of(folder: Path, *cells: str, **changed):
    """Split a table of these labels, a row each."""
    rows = "".join(f"p{row},1,2,{cell}\n" for row, cell in enumerate(cells))
    return split(folder, f"id,a,b,late\n{rows}", **({"guest": ["a"], "hosts": {"shop": ["b"]}} | changed))


@pytest.mark.parametrize(
    ("cells", "task", "classes"),
    [
        (["b", "c", "a"], "classes", ("a", "b", "c")),
        (["10", "9", "3+"], "classes", ("10", "3+", "9")),
        (["1.5", "2", "3"], "number", ()),
        ([str(value) for value in range(11)], "number", ()),
        ([f"k{value}" for value in range(32)], "classes", tuple(sorted(f"k{value}" for value in range(32)))),
    ],
)
def test_the_task_is_read_off_the_label_where_it_is_plain(tmp_path, cells, task, classes):
    label = labels_of(tmp_path, *cells).label
    assert (label.task, label.classes, label.positive) == (task, classes, "")
    assert label.meaning.en == "Late (no meaning given)"


def test_two_outcomes_are_binary_even_where_they_are_numbers(tmp_path):
    assert labels_of(tmp_path, "2.5", "3.5", positive="3.5").label.task == "binary"


def test_whole_numbers_that_may_be_codes_or_amounts_need_a_task(tmp_path):
    cells = ["10", "9", "2", "9"]
    with pytest.raises(FederationError, match=r"3 different whole numbers \(2, 9, 10\).*Say which with --task classes"):
        labels_of(tmp_path, *cells)
    federation = labels_of(tmp_path, *cells, task="classes", out=tmp_path / "classes")
    assert federation.label.classes == ("2", "9", "10")
    assert read_labels(federation).tolist() == [2, 1, 0, 1]
    federation = labels_of(tmp_path, *cells, task="number", out=tmp_path / "number")
    assert read_labels(federation).tolist() == [10, 9, 2, 9]


def test_the_written_file_lists_the_classes_in_the_order_of_their_numbers(tmp_path):
    labels_of(tmp_path, "b", "c", "a")
    label = tomllib.loads((tmp_path / "out" / "federation.toml").read_text(encoding="utf-8"))["label"]
    assert (label["task"], label["classes"]) == ("classes", ["a", "b", "c"])


def test_a_dictionary_gives_the_unit_of_a_number_and_of_nothing_else(tmp_path):
    dictionary = tmp_path / "dict.csv"
    dictionary.write_text("name,meaning,unit\nlate,Delay,days\n", encoding="utf-8")
    federation = labels_of(tmp_path, "1.5", "2", "3", dictionary=dictionary)
    assert (federation.label.unit, federation.label.meaning) == (Text("days"), Text("Delay"))
    assert labels_of(tmp_path, "a", "b", "c", dictionary=dictionary, out=tmp_path / "classes").label.unit == Text()


@pytest.mark.parametrize(
    ("cells", "changed", "expected"),
    [
        (["no", "no"], {}, "found 1 different value, expected at least 2. Choose a column whose values differ."),
        (["NA", ""], {}, "found 0 different values, expected at least 2"),
        (
            ["a", "b", "", "c"],
            {},
            "found no value on line 4, expected a label in every row. Fill it in, or leave the row out (init: --leave-out no-outcome)",
        ),
        (["1.5", "nan", "2", "3"], {}, "found no value on line 3"),
        (
            ["no", "yes"],
            {"task": "classes"},
            "found 2 different values ('no', 'yes'), expected 3 to 32 classes. Choose",
        ),
        ([f"k{n}" for n in range(33)], {}, "expected 3 to 32 classes. Merge the rare ones"),
        ([*map(str, range(40)), "x"], {}, "if it holds numbers, correct 'x' on line 42 and choose --task number"),
        ([*map(str, range(40))], {"task": "classes"}, "Choose --task number if these are amounts"),
        (["1", "1.0", "2", "3"], {"task": "classes"}, "found '1' and '1.0', which are the same number"),
        (["a", "b", "c"], {"task": "binary"}, "found 3 different values ('a', 'b', 'c'), expected exactly 2"),
        (["a", "b", "c"], {"positive": "a"}, "found 3 different values ('a', 'b', 'c'), expected exactly 2"),
        (["a", "b", "c"], {"task": "number"}, "found 'a' on line 2, 'b' on line 3, 'c' on line 4, expected a finite"),
        (["1", "2", "inf"], {"task": "number"}, "found 'inf' on line 4, expected a finite number"),
        (["5", "5.0"], {"task": "number"}, "found the same number in every row"),
        (["a", "b", "c"], {"task": "classes", "positive": "a"}, "positive: found 'a', expected nothing"),
        (["a", "b", "c"], {"task": "ranks"}, "task: found 'ranks', expected one of 'binary', 'classes' or 'number'"),
        (["a", "b", "c" * 201], {}, "classes #3: found 'ccc"),
    ],
)
def test_a_label_that_cannot_be_predicted_is_refused_and_nothing_is_written(tmp_path, cells, changed, expected):
    with pytest.raises(FederationError) as refused:
        labels_of(tmp_path, *cells, **changed)
    assert expected in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_rows_are_numbered_where_the_table_has_no_ids(tmp_path):
    federation = split(tmp_path, TABLE.replace("id;", "key;"), id_column=None)
    assert [(party.id, read_table(federation, party.name).ids) for party in federation.parties] == [
        ("id", ("1", "2", "3")),
        ("id", ("1", "2", "3")),
    ]
    assert "'key'" in federation.about.en
    assert (tmp_path / "out" / "guest.csv").read_text(encoding="utf-8").startswith("id,paidOnTime,LIMIT_BAL,late\n1,")


def test_rows_are_not_numbered_beside_a_column_that_is_called_id(tmp_path):
    assert "found a column 'id' and no --id" in refusals(tmp_path, id_column=None)


def test_rows_of_another_length_are_reported_in_the_tables_own_count(tmp_path):
    text = TABLE.replace("id;", "key;").replace("c;;;NA;3;no", "c;;;NA;3")
    assert "(5 on line 4), expected 6 as in the header" in refusals(tmp_path, text, id_column=None)


def test_the_bank_marketing_table_is_split_as_it_is(bank_csv, tmp_path):
    arguments = {
        "label": "y",
        "guest": ["age", "job", "balance"],
        "hosts": {"telco": ["housing", "contact", "duration"]},
    }
    with pytest.raises(FederationError, match=r"no id column 'id'.*or leave out --id to have the rows numbered"):
        split_table(bank_csv, Division(id_column="id", **arguments), tmp_path / "out")
    federation = split_table(bank_csv, Division(**arguments), tmp_path / "out").federation
    assert (federation.label.task, federation.label.positive) == ("binary", "yes")
    assert read_labels(federation).sum() == 521
    kinds = {feature.name: feature.kind for _, feature in federation.features()}
    assert (kinds["housing"], kinds["contact"], kinds["balance"]) == (Kind.BOOLEAN, Kind.CATEGORICAL, Kind.NUMERIC)
    assert len(parse_csv("guest.csv", (tmp_path / "out" / "guest.csv").read_bytes()).rows) == 4521


def test_a_column_of_the_bank_marketing_table_can_be_predicted_as_a_number(bank_csv, tmp_path):
    federation = split_table(
        bank_csv, Division("balance", ["age"], {"telco": ["duration"]}), tmp_path / "out"
    ).federation
    assert federation.label.task == "number"
    labels = read_labels(federation)
    assert (labels.shape, labels[:3].tolist()) == ((4521,), [1787, 4789, 1350])


def test_the_car_table_has_four_classes_in_the_order_of_their_texts(car_csv, tmp_path):
    division = Division("G", ["A", "B"], {"garage": ["C", "D", "E", "F"]})
    federation = split_table(car_csv, division, tmp_path / "out").federation
    assert (federation.label.task, federation.label.classes) == ("classes", ("acc", "good", "unacc", "vgood"))
    assert np.bincount(read_labels(federation).astype(int)).tolist() == [384, 69, 1210, 65]
    assert read_table(federation, "garage").ids[-1] == "1728"
