"""Reading parties' tables and labels, and what a table shows of itself."""

import numpy as np
import pytest

from backend.data.federation import load_federation
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
    assert labels.dtype == np.int8
    assert labels.tolist() == [1, 0, 0]


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
