"""Sheets handed in to be scored: checked again, row by row, and never stopped by one bad row."""

from dataclasses import replace

import numpy as np
import pytest

from backend.data.federation import load_federation
from backend.data.table import SAMPLES, read_later_sheet, read_samples, sample_from_values
from backend.errors import SampleError
from backend.i18n import Text
from backend.remark import Remark


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
    assert sheet.problems == {
        1: (Remark("cell_not_a_number", {"cell": "'lots'"}, 3, "income"),),
        2: (Remark("row_without_id", {}, 4),),
        3: (Remark("id_repeated", {"id": "'x'", "first": 2}, 5),),
        4: (Remark("row_ragged", {"found": 2, "expected": 3}, 6),),
        5: (Remark("cell_too_long", {"most": 500}, 7),),
    }
    np.testing.assert_array_equal(sheet.guest.columns["income"], [1, np.nan, 1, 2, 1, 1, 3])


def test_all_bad_cells_of_a_row_are_reported(federation):
    problems = read_samples(federation, b"id,income,home,member\nx,lots,own,maybe\n").problems[0]
    assert [(problem.column, problem.values["cell"]) for problem in problems] == [
        ("income", "'lots'"),
        ("member", "'maybe'"),
    ]


def test_the_label_and_unknown_columns_are_ignored_with_a_note(federation):
    sheet = read_samples(federation, b"id,income,home,late,colour\nx,1,own,yes,red\n")
    assert sheet.notes == (
        Remark("label_ignored", {"name": "'late'"}),
        Remark("columns_ignored", {"columns": ("'colour'",)}),
    )
    assert list(sheet.guest.columns) == ["income", "home"]


def test_a_code_that_is_not_disclosed_is_noted(edit):
    coded = 'name = "home"\ncategories = { own = "owned", rent = "rented" }'
    federation = load_federation(edit("federation.toml", 'name = "home"', coded))
    notes = read_samples(federation, b"id,income,home\nx,1,castle\ny,1,own\nz,1,\n").notes
    assert notes == (Remark("codes_not_listed", {"name": "home", "codes": ("'castle'",), "known": ("own", "rent")}),)
    assert sample_from_values(federation, "me", {"home": "castle"}).notes == notes


def test_a_hosts_columns_play_that_host(federation):
    sheet = read_samples(federation, b"id,income,home,member\nx,1,own,yes\n")
    np.testing.assert_array_equal(sheet.hosts["shop"].columns["member"], [1])
    assert sheet.hosts["shop"].ids == ("x",)
    assert [note.code for note in sheet.notes] == ["host_simulated"]


def test_a_hosts_columns_are_ignored_in_a_later_sheet(federation):
    sheet, _ = read_later_sheet(federation, b"id,income,home,member\nx,1,own,maybe\n")
    assert (sheet.hosts, sheet.problems) == ({}, {})
    assert sheet.notes == (Remark("host_columns_ignored", {"columns": ("'member'",)}),)


def test_ids_alone_stand_for_the_guests_own_records(federation):
    sheet = read_samples(federation, b"id\nc\nnobody\na\n")
    np.testing.assert_array_equal(sheet.guest.columns["income"], [30.5, np.nan, 10])
    assert list(sheet.guest.columns["home"]) == [None, None, "own"]
    values = {"party": Text("The bank"), "id": "'nobody'"}
    assert [(row, p.code, p.values, p.row) for row, (p,) in sheet.problems.items()] == [
        (1, "id_not_at_guest", values, 3)
    ]
    assert sheet.notes[0].code == "guest_records_used"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"id,income\nx,1\n", "a column is missing: 'home'. Add every feature of The bank"),
        (b"name,income,home\nx,1,own\n", "the id column 'id' is missing"),
        (b"id,income,home\n", "there is a header but no row"),
        (b"", "the file is empty"),
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
    with pytest.raises(SampleError, match="found more than 1 row, expected at most 1"):
        read_samples(federation, data, limits=replace(SAMPLES, max_rows=1))
    with pytest.raises(SampleError, match="larger than 0 MB"):
        read_samples(federation, data, limits=replace(SAMPLES, max_bytes=30))
    (tmp_path / "big.csv").write_bytes(data)
    with pytest.raises(SampleError, match=r"big\.csv: the file is larger than 0 MB \(30 bytes\)"):
        read_samples(federation, tmp_path / "big.csv", limits=replace(SAMPLES, max_bytes=30))


def test_a_sheet_shows_no_value(federation):
    shown = repr(read_samples(federation, b"id,income,home\nsecret,4711,castle\n"))
    assert not any(value in shown for value in ("secret", "4711", "castle"))


def test_a_typed_in_sample_is_read_like_a_row(federation):
    sheet = sample_from_values(federation, " me ", {"income": 12.5, "home": None})
    assert (sheet.ids, sheet.problems, sheet.hosts) == (("me",), {}, {})
    np.testing.assert_array_equal(sheet.guest.columns["income"], [12.5])
    assert sheet.guest.columns["home"][0] is None


def test_a_typed_in_value_that_cannot_be_read_is_a_problem_of_the_row(federation):
    for person, values, problem in (
        ("me", {"income": "lots"}, Remark("cell_not_a_number", {"cell": "'lots'"}, 0, "income")),
        ("me", {"income": float("inf")}, Remark("cell_not_a_number", {"cell": "'inf'"}, 0, "income")),
        (" ", {"income": 1}, Remark("row_without_id")),
        ("me", {"home": "h" * 501}, Remark("cell_too_long", {"most": 500})),
    ):
        assert sample_from_values(federation, person, values).problems == {0: (problem,)}


def test_a_typed_in_value_for_no_feature_of_the_guest_is_refused(federation):
    with pytest.raises(SampleError, match="'member': not a feature of The bank, which has income, home"):
        sample_from_values(federation, "me", {"member": "yes"})
