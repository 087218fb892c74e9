"""Sheets handed in to be scored: checked again, row by row, and never stopped by one bad row."""

import numpy as np
import pytest

from backend.data.federation import load_federation
from backend.data.table import read_samples, sample_from_values
from backend.errors import SampleError


@pytest.fixture
def federation(tiny):
    return load_federation(tiny)


def test_a_sheet_is_read_whatever_the_order_of_its_columns(federation):
    sheet = read_samples(federation, b"home;income;id\nown;5;x\n;;y\n")
    assert sheet.ids == ("x", "y")
    np.testing.assert_array_equal(sheet.guest.columns["income"], [5, np.nan])
    assert list(sheet.guest.columns["home"]) == ["own", None]
    assert (sheet.hosts, sheet.problems, sheet.notes) == ({}, {}, ())


def test_a_sheet_is_read_from_a_file(federation, tmp_path):
    (tmp_path / "new.csv").write_text("id,income,home\nx,1,own\n", encoding="utf-8")
    assert read_samples(federation, tmp_path / "new.csv").ids == ("x",)
    with pytest.raises(SampleError, match=r"none\.csv: no such file"):
        read_samples(federation, tmp_path / "none.csv")


def test_a_bad_row_gets_a_problem_and_keeps_its_place(federation):
    data = f"id,income,home\nx,1,own\ny,lots,own\n,1,own\nx,2,own\nz,1\nv,1,{'h' * 501}\nw,3,rent\n".encode()
    sheet = read_samples(federation, data)
    assert sheet.ids == ("x", "y", "", "x", "z", "v", "w")
    assert "column 'income': found 'lots', expected a finite number" in sheet.problems[1]
    assert "found no id" in sheet.problems[2]
    assert "found the id 'x' a second time (first on line 2)" in sheet.problems[3]
    assert "found 2 cells, expected 3" in sheet.problems[4]
    assert "more than 500 characters" in sheet.problems[5]
    assert sorted(sheet.problems) == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(sheet.guest.columns["income"], [1, np.nan, 1, 2, 1, 1, 3])


def test_all_bad_cells_of_a_row_are_reported(federation):
    problem = read_samples(federation, b"id,income,home,member\nx,lots,own,maybe\n").problems[0]
    assert "'lots'" in problem
    assert "'maybe'" in problem


def test_the_label_and_unknown_columns_are_ignored_with_a_note(federation):
    sheet = read_samples(federation, b"id,income,home,late,colour\nx,1,own,yes,red\n")
    assert sheet.notes == (
        "The label column 'late' is ignored.",
        "Columns that are no feature are ignored: 'colour'.",
    )
    assert list(sheet.guest.columns) == ["income", "home"]


def test_a_code_that_is_not_disclosed_is_noted(edit):
    coded = 'name = "home"\ncategories = { own = "owned", rent = "rented" }'
    federation = load_federation(edit("federation.toml", 'name = "home"', coded))
    notes = read_samples(federation, b"id,income,home\nx,1,castle\ny,1,own\nz,1,\n").notes
    assert notes[0].startswith("Column 'home': 'castle' is none of the disclosed codes (own, rent)")
    assert sample_from_values(federation, "me", {"home": "castle"}).notes == notes


def test_a_hosts_columns_play_that_host(federation):
    sheet = read_samples(federation, b"id,income,home,member\nx,1,own,yes\n")
    np.testing.assert_array_equal(sheet.hosts["shop"].columns["member"], [1])
    assert sheet.hosts["shop"].ids == ("x",)
    assert sheet.notes == ("The sheet plays The shop: its own records are not used.",)


def test_a_hosts_columns_are_ignored_where_hosts_are_not_allowed(federation):
    sheet = read_samples(federation, b"id,income,home,member\nx,1,own,maybe\n", hosts_allowed=False)
    assert (sheet.hosts, sheet.problems) == ({}, {})
    assert "The Hosts' columns 'member' are ignored" in sheet.notes[0]


def test_ids_alone_stand_for_the_guests_own_records(federation):
    sheet = read_samples(federation, b"id\nc\nnobody\na\n")
    np.testing.assert_array_equal(sheet.guest.columns["income"], [30.5, np.nan, 10])
    assert list(sheet.guest.columns["home"]) == [None, None, "own"]
    assert list(sheet.problems) == [1]
    assert "The bank holds no record with the id 'nobody'" in sheet.problems[1]
    assert "its own records of these ids are used" in sheet.notes[0]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"id,income\nx,1\n", "found no column for 'home', expected every feature of The bank"),
        (b"name,income,home\nx,1,own\n", "there is no id column 'id'"),
        (b"id,income,home\n", "found a header and no rows"),
        (b"", "the file is empty"),
        (b"id,income,home\nx,1,\xff\n", "not UTF-8"),
        (b'id,income,home\nx,1,"own\n', "not CSV"),
        (b"id,id,home\nx,1,own\n", "more than once"),
        (b"id," + b",".join(b"c%d" % n for n in range(200)) + b"\n", "found 201 columns, expected at most 200"),
    ],
)
def test_a_sheet_that_is_not_usable_is_refused_as_a_whole(federation, data, expected):
    with pytest.raises(SampleError, match="samples") as refused:
        read_samples(federation, data)
    assert expected in str(refused.value)


def test_size_and_rows_are_checked_again(federation, tmp_path):
    data = b"id,income,home\nx,1,own\ny,1,own\n"
    with pytest.raises(SampleError, match="found more than 1 rows, expected at most 1"):
        read_samples(federation, data, max_rows=1)
    with pytest.raises(SampleError, match="found more than 30 bytes"):
        read_samples(federation, data, max_bytes=30)
    (tmp_path / "big.csv").write_bytes(data)
    with pytest.raises(SampleError, match=r"big\.csv: found more than 30 bytes"):
        read_samples(federation, tmp_path / "big.csv", max_bytes=30)


def test_a_sheet_shows_no_value(federation):
    shown = repr(read_samples(federation, b"id,income,home\nsecret,4711,castle\n"))
    assert not any(value in shown for value in ("secret", "4711", "castle"))


def test_a_typed_in_sample_is_read_like_a_row(federation):
    sheet = sample_from_values(federation, " me ", {"income": 12.5, "home": None})
    assert (sheet.ids, sheet.problems, sheet.hosts) == (("me",), {}, {})
    np.testing.assert_array_equal(sheet.guest.columns["income"], [12.5])
    assert sheet.guest.columns["home"][0] is None


def test_a_typed_in_value_that_cannot_be_read_is_a_problem_of_the_row(federation):
    assert "'income': found 'lots'" in sample_from_values(federation, "me", {"income": "lots"}).problems[0]
    assert "'inf'" in sample_from_values(federation, "me", {"income": float("inf")}).problems[0]
    assert "found no id" in sample_from_values(federation, " ", {"income": 1}).problems[0]
    assert "more than 500" in sample_from_values(federation, "me", {"home": "h" * 501}).problems[0]


def test_a_typed_in_value_for_no_feature_of_the_guest_is_refused(federation):
    with pytest.raises(SampleError, match="found values for 'member', expected only The bank's features: income, home"):
        sample_from_values(federation, "me", {"member": "yes"})
