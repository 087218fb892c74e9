"""Reading parties' tables and labels, and what a table shows of itself."""

from functools import partial

import numpy as np
import pytest

from backend.data import party_file
from backend.data.csv_file import read_csv, read_csv_groups
from backend.data.dictionary import Feature
from backend.data.federation import load_federation
from backend.data.label import Label
from backend.data.table import read_labels, read_table
from backend.errors import FederationError


def test_a_table_holds_ids_and_features_and_never_the_label(tiny):
    table = read_table(load_federation(tiny), "bank")
    assert table.ids == ("a", "b", "c")
    assert list(table.columns) == ["income", "home"]
    np.testing.assert_array_equal(table.columns["income"], [10, np.nan, 30.5])
    assert list(table.columns["home"]) == ["own", "rent", None]


def test_a_host_keeps_its_own_order_and_id_column(tiny):
    table = read_table(load_federation(tiny), "shop")
    assert table.ids == ("c", "a")
    np.testing.assert_array_equal(table.columns["member"], [0, 1])


def test_labels_are_aligned_with_the_guests_rows(tiny):
    labels = read_labels(load_federation(tiny))
    assert labels.dtype == np.float64
    assert labels.tolist() == [1, 0, 0]


def relabelled(tiny, label: str, *cells: str):
    """The tiny federation with another label and a row per cell."""
    toml = (tiny / "federation.toml").read_text(encoding="utf-8")
    (tiny / "federation.toml").write_text(toml.replace('positive = "yes"', label), encoding="utf-8")
    rows = "".join(f"{'abcdefgh'[row]},1,own,{cell}\n" for row, cell in enumerate(cells))
    (tiny / "bank.csv").write_text("id,income,home,late\n" + rows, encoding="utf-8")
    return tiny


CLASSES = 'task = "classes"\nclasses = ["never", "once", "none"]'
NUMBER = 'task = "number"\nunit = "days"'


def test_a_class_is_read_as_its_place_in_the_federation_files_list(tiny):
    labels = read_labels(load_federation(relabelled(tiny, CLASSES, "once", "none", "never", "once")))
    assert labels.dtype == np.float64
    assert labels.tolist() == [1, 2, 0, 1]


def test_classes_may_be_written_as_numbers_in_any_order(tiny):
    text = 'task = "classes"\nclasses = [10, 9, 11]'
    assert read_labels(load_federation(relabelled(tiny, text, "9", "10", "11"))).tolist() == [1, 0, 2]


def test_an_amount_is_read_as_it_is(tiny):
    assert read_labels(load_federation(relabelled(tiny, NUMBER, "-1.5", "1e3", "007"))).tolist() == [-1.5, 1000, 7]
    assert read_labels(load_federation(relabelled(tiny, NUMBER, "0", "1"))).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("label", "cells", "expected"),
    [
        (
            CLASSES,
            ["once", "twice", "never", "none", "Once"],
            "found 'twice' on line 3, 'Once' on line 6, expected one of",
        ),
        (CLASSES, ["once", "twice", "never", "none"], "expected one of the classes 'never', 'once', 'none'. Correct"),
        (CLASSES, ["once", "none"], "found no row of 'never', expected every class at least once"),
        (CLASSES, ["once", "NA", "none", "never"], "found no value on line 3, expected a label in every row"),
        (CLASSES, ["once", "nan", "none", "never"], "found no value on line 3"),
        ('task = "classes"\nclasses = [1, 2, 3]', ["1", "2", "3.0", "3"], "found '3.0' on line 4, expected one of"),
        (NUMBER, ["1", "ten", "2"], "found 'ten' on line 3, expected a finite number with a decimal point"),
        (NUMBER, ["1", "", "2"], "found no value on line 3, expected a label in every row"),
        (NUMBER, ["1", "NaN", "2"], "found no value on line 3"),
        (NUMBER, ["1", "inf", "2", "-inf", "1e999"], "found 'inf' on line 3, '-inf' on line 5, '1e999' on line 6"),
        (NUMBER, ["5", "5.0", "5"], "found the same number in every row ('5'), expected at least 2 different ones"),
        ('positive = "a"', ["a", "b", "c"], "choose another task: classes or number"),
    ],
)
def test_a_label_that_does_not_fit_its_task_is_named_by_column_line_and_text(tiny, label, cells, expected):
    with pytest.raises(FederationError) as refused:
        load_federation(relabelled(tiny, label, *cells))
    assert all(problem.startswith("bank.csv, column 'late' (label): ") for problem in refused.value.problems)
    assert any(expected in problem for problem in refused.value.problems), refused.value.problems


def test_labels_that_are_all_missing_are_one_problem(tiny):
    with pytest.raises(FederationError) as refused:
        load_federation(relabelled(tiny, CLASSES, "", "NA"))
    assert len(refused.value.problems) == 1


def test_rows_are_taken_in_the_order_asked_for(tiny):
    table = read_table(load_federation(tiny), "bank").take(np.array([2, 0]))
    assert table.ids == ("c", "a")
    np.testing.assert_array_equal(table.columns["income"], [30.5, 10])
    assert table.row_of == {"c": 0, "a": 1}


def test_a_table_shows_its_shape_and_no_value(tiny):
    assert repr(read_table(load_federation(tiny), "bank")) == "PartyTable('bank', 3 rows × 2 columns)"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("10", "ten", "bank.csv, column 'income' (numeric): found 'ten' on line 2, expected a finite number"),
        ("10", "inf", "found 'inf' on line 2"),
        ("b,", "a,", "column 'id': found the same id twice ('a' on lines 2 and 3)"),
        ("b,", ",", "column 'id': found no id on line 3"),
        ("b,,rent,no", "b,,rent", "found rows with a wrong number of cells (3 on line 3), expected 4"),
        ("rent,no", "rent,", "column 'late' (label): found no value on line 3"),
        ("rent,no", "rent,maybe", "found 3 different values ('maybe', 'no', 'yes'), expected exactly 2"),
        ("\na,10,own,yes\nb,,rent,no\nc,30.5,NA,no", "", "found a header and no rows"),
        ("own,yes", "own,no", "found 1 different value ('no'), expected exactly 2"),
    ],
)
def test_a_fault_in_a_table_is_named_by_column_line_and_text(edit, old, new, expected):
    with pytest.raises(FederationError) as refused:
        load_federation(edit("bank.csv", old, new))
    assert any(expected in problem for problem in refused.value.problems), refused.value.problems


def test_many_bad_cells_of_a_column_are_one_problem_with_a_count(tiny):
    rows = "".join(f"p{n},x{n},own,{'yes' if n else 'no'}\n" for n in range(9))
    (tiny / "bank.csv").write_text("id,income,home,late\n" + rows, encoding="utf-8")
    with pytest.raises(FederationError, match="'x0' on line 2, 'x1' on line 3, 'x2' on line 4 and 6 more"):
        read_table(load_federation(tiny, check_tables=False), "bank")


def test_a_table_that_changed_since_it_was_checked_is_refused(tiny):
    federation = load_federation(tiny)
    (tiny / "bank.csv").write_text("id,late\na,yes\nb,no\n", encoding="utf-8")
    with pytest.raises(FederationError, match="no column 'income'"):
        read_table(federation, "bank")
    (tiny / "bank.csv").write_text("id,income,home\na,1,own\n", encoding="utf-8")
    with pytest.raises(FederationError, match="no column 'late'"):
        read_labels(federation)


FAULTY = """id,income,home,member,late
a,10,own,1,yes
b,none,rent,0,no
,3e5,own,2,no
a,x,,yes,yes
c,1,own,no,
d,2
e,-7.25,own,FALSE,yes,more
"b
b",4,own,1,no
f,inf,rent,1,maybe
f,1,own,true,yes
a,18446744073709551616,own,0,no
"""
LABELS = [
    None,
    Label(column="late", positive="yes", meaning="late"),
    Label(column="late", positive="never", meaning="late"),
    Label(column="late", task="classes", classes=("yes", "no", "often"), meaning="late"),
    Label(column="income", task="number", unit="EUR", meaning="income"),
    Label(column="id", task="classes", classes=("a", "b", "c"), meaning="the ids"),
    Label(column="absent", positive="yes", meaning="absent"),
]


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label and f"{label.column} {label.task}")
@pytest.mark.parametrize("ids", ["id", None, "absent"])
@pytest.mark.parametrize("text", [FAULTY, FAULTY[: FAULTY.index("a,10")], FAULTY + '"open,1', FAULTY + "g,\xff"])
def test_a_table_read_in_groups_has_the_same_values_and_problems_as_one_read_whole(
    tmp_path, monkeypatch, text, ids, label
):
    kinds = {"income": "numeric", "home": "categorical", "member": "boolean", "absent": "numeric"}
    features = [Feature(name=name, meaning=name, kind=kind) for name, kind in kinds.items()]
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode("latin-1"))
    read = []
    for rows in (1000, 3, 1):
        monkeypatch.setattr(party_file, "read_csv_groups", partial(read_csv_groups, max_rows=rows))
        read.append(party_file.read_party_file(path, ids, features, label))
    try:
        read.append(party_file.check_party(read_csv(path), ids, features, label))
    except FederationError as error:
        assert read[0].problems == error.remarks
    assert read[0].problems
    for other in read[1:]:
        assert (other.problems, other.ids) == (read[0].problems, read[0].ids)
        assert list(other.columns) == list(read[0].columns)
        np.testing.assert_array_equal(other.labels, read[0].labels)
        for name, column in read[0].columns.items():
            np.testing.assert_array_equal(other.columns[name], column)
            assert other.columns[name].dtype == column.dtype
