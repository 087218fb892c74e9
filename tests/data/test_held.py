"""What a table holds in little memory is given as it was read, to the last bit."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.data.held import HeldColumns, RowsOf

TEXTS = st.text(max_size=3)
NUMBERS = st.one_of(
    st.floats(allow_infinity=False), st.floats(width=32, allow_infinity=False), st.integers(-3000, 3000).map(float)
)


def bits(column):
    return column.view(np.int64)[~np.isnan(column)].tolist(), np.isnan(column).tolist()


@given(st.lists(NUMBERS, min_size=1, max_size=30), st.data())
def test_numbers_are_given_as_they_were_to_the_last_bit(numbers, data):
    column = np.array(numbers)
    held = HeldColumns({"x": column})
    assert held["x"].dtype == np.float64 and bits(held["x"]) == bits(column)
    rows = np.array(data.draw(st.lists(st.integers(0, len(numbers) - 1))), dtype=np.intp)
    taken = held.take(rows)["x"]
    assert taken.dtype == np.float64 and bits(taken) == bits(column[rows])


@given(st.lists(st.none() | TEXTS, min_size=1, max_size=30), st.data())
def test_codes_are_given_as_they_were(codes, data):
    column = np.array([*codes, None], dtype=object)[:-1]
    held = HeldColumns({"x": column, "y": column[::-1]})
    assert held["x"].dtype == object and held["x"].tolist() == codes and held["y"].tolist() == codes[::-1]
    rows = np.array(data.draw(st.lists(st.integers(0, len(codes) - 1))), dtype=np.intp)
    assert held.take(rows)["x"].tolist() == [codes[row] for row in rows]


def test_what_was_given_can_be_changed_without_changing_what_is_held():
    held = HeldColumns({"x": np.array([0.5, 1 / 3]), "y": np.array(["a", None], dtype=object)})
    for name in held:
        held[name][:] = None if name == "y" else 7
    assert held["x"].tolist() == [0.5, 1 / 3] and held["y"].tolist() == ["a", None]


def test_small_numbers_amounts_and_codes_take_little():
    n = 100_000
    columns = {
        "age": np.arange(n) % 100.0,
        "amount": np.arange(n) * 8.0,
        "code": np.array(["a", "b"] * (n // 2), object),
    }
    held = HeldColumns(columns)
    taken = [values.nbytes + (0 if codes is None else codes.nbytes) for values, codes in held._held.values()]
    assert taken == [2 * n, 4 * n, n + 16]


def test_more_codes_than_are_numbered_stay_as_they_are():
    column = np.array([str(i) for i in range((1 << 16) + 1)], dtype=object)
    held = HeldColumns({"x": column})
    assert held["x"].tolist() == column.tolist() and held.take(np.array([65536]))["x"].tolist() == ["65536"]


@given(st.lists(TEXTS), st.lists(TEXTS))
def test_the_row_of_an_id_is_that_of_a_dict(ids, asked):
    first = {one: row for row, one in reversed(list(enumerate(ids)))}
    rows = RowsOf(ids)
    assert dict(rows) == first and len(rows) == len(first)
    assert rows.of([*asked, *ids]).tolist() == [first.get(one, -1) for one in [*asked, *ids]]
    assert [rows.get(one, -1) for one in asked] == [first.get(one, -1) for one in asked]
    with pytest.raises(KeyError):
        rows["longer than three"]


def test_ids_that_have_the_same_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr("backend.data.held.hash", len, raising=False)
    ids = ("ab", "cd", "e", "ab", "fgh")
    rows = RowsOf(ids)
    assert rows.of(["cd", "ab", "xy", "e", "fgh", "long", ""]).tolist() == [1, 0, -1, 2, 4, -1, -1]
    assert [one in rows for one in ("cd", "xy")] == [True, False]


def test_rows_take_less_than_a_quarter_of_a_dict():
    ids = tuple(f"person {i}" for i in range(100_000))
    rows = RowsOf(ids)
    as_dict = {one: row for row, one in enumerate(ids)}
    assert rows._order.nbytes + rows._sorted.nbytes < sys.getsizeof(as_dict) / 4 + 28 * len(ids) / 4


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_process_that_hashes_otherwise_finds_the_same_rows(seed):
    blob = pickle.dumps(RowsOf(["a", "b", "c"]))
    code = f"import pickle; rows = pickle.loads({blob!r}); print(rows.of(['c', 'x', 'a']).tolist(), rows['b'])"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["[2,", "-1,", "0]", "1"]
