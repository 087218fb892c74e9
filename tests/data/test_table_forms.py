"""Oracle: a table says the same in whatever form it is handed in, and what a form leaves open is asked, never guessed."""

import csv
import io
import zipfile
from datetime import date, datetime

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from backend.data.csv_file import FileLimits
from backend.data.decimal_mark import Marks, decided, plain
from backend.data.federation import load_federation
from backend.data.table import SAMPLES, read_samples
from backend.data.table_file import Reading, read_table_file, with_marks
from backend.errors import AmbiguousFile, FederationError, SampleError
from backend.remark import Remark

HEADER = ("id", "income", "home")
numbers = st.none() | st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9, allow_nan=False).map(lambda x: round(x, 4))
words = st.text("abcdeäöü中文", min_size=1, max_size=6)
people = st.lists(st.tuples(numbers, st.none() | words), min_size=1, max_size=8)
relaxed = settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


def rows_of(found):
    return [(f"p{place}", number, home) for place, (number, home) in enumerate(found)]


def as_csv(rows, separator=",", decimal=".", encoding="utf-8"):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\r\n")
    writer.writerow(HEADER)
    for sample, number, home in rows:
        written = "" if number is None else np.format_float_positional(number, trim="-").replace(".", decimal)
        writer.writerow([sample, written, home or ""])
    return text.getvalue().encode(encoding)


def as_xlsx(rows, *more_sheets):
    book = openpyxl.Workbook()
    for row in (HEADER, *rows):
        book.active.append(row)
    for name in more_sheets:
        book.create_sheet(name).append(HEADER)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def as_parquet(rows):
    columns = dict(zip(HEADER, map(list, zip(*rows, strict=True)), strict=True))
    columns["income"] = pa.array([None if x is None else float(x) for x in columns["income"]], pa.float64())
    columns["home"] = pa.array(columns["home"], pa.string())
    out = io.BytesIO()
    parquet.write_table(pa.table(columns), out)
    return out.getvalue()


@pytest.fixture
def federation(tiny):
    return load_federation(tiny)


def same(sheet, expected):
    assert sheet.ids == expected.ids and sheet.problems == {}
    np.testing.assert_array_equal(sheet.guest.columns["income"], expected.guest.columns["income"])
    assert list(sheet.guest.columns["home"]) == list(expected.guest.columns["home"])


@relaxed
@given(people)
def test_a_sheet_says_the_same_in_every_form(federation, found):
    rows = rows_of(found)
    expected = read_samples(federation, as_csv(rows))
    same(expected, expected)
    for form in (as_xlsx(rows), as_parquet(rows), *(as_csv(rows, separator) for separator in "\t|")):
        same(read_samples(federation, form), expected)
    same(read_samples(federation, as_csv(rows, encoding="utf-8-sig")), expected)
    for separator in ",;\t|":
        same(read_samples(federation, as_csv(rows, separator), how=Reading(decimal="point")), expected)
        commas = as_csv(rows, separator, decimal=",")
        same(read_samples(federation, commas, how=Reading(decimal="comma")), expected)
        try:
            undoubted = read_samples(federation, commas)
        except AmbiguousFile as unclear:
            assert unclear.question == "decimal"
        else:
            same(undoubted, expected)


@relaxed
@given(people, st.sampled_from(["utf-16", "gbk", "latin-1"]))
def test_a_named_encoding_says_the_same_and_an_unnamed_one_is_asked(federation, found, encoding):
    rows = [(sample, number, home) for sample, number, home in rows_of(found)]
    letters = {"latin-1": "äöü", "gbk": "中文", "utf-16": "ä中"}[encoding]
    rows = [(s, n, (home and "".join(c for c in home if c.isascii())) or None) for s, n, home in rows]
    rows[0] = (*rows[0][:2], letters)
    data = as_csv(rows, encoding=encoding)
    expected = read_samples(federation, as_csv(rows))
    same(read_samples(federation, data, how=Reading(encoding=encoding)), expected)
    with pytest.raises(AmbiguousFile) as unclear:
        read_samples(federation, data)
    assert unclear.value.question == "encoding"
    assert any(letters in line for line in unclear.value.choices[encoding])


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("id,城市,职业\n1,北京,工程师\n2,上海,教师\n", "gbk"),
        ("编号;备注\n1;已婚，有房\n", "gbk"),
        ("id,city,street\n1,Köln,Große Straße 5\n2,Besançon,Rue de la Libération\n", "latin-1"),
        ("id;ciudad\n1;Logroño\n2;A Coruña\n", "latin-1"),
        ("编号,城市\n一,北京\n", "utf-16"),
        ("编号,城市\n一,北京\n", "utf-16-le"),
        ("编号,城市\n一,北京\n", "utf-16-be"),
    ],
)
def test_the_encoding_that_reads_as_writing_is_asked_first(text: str, encoding: str) -> None:
    data = text.encode({"latin-1": "cp1252"}.get(encoding, encoding))
    with pytest.raises(AmbiguousFile) as unclear:
        read_table_file(data, "people.csv")
    named, lines = next(iter(unclear.value.choices.items()))
    assert encoding.startswith(named) and lines == tuple(text.splitlines()[:3])
    assert all(len(lines) <= 3 for lines in unclear.value.choices.values())
    header = read_table_file(data, "people.csv", Reading(encoding=named)).header
    assert all(name in text.splitlines()[0] for name in header)


@relaxed
@given(st.lists(st.floats(-1e12, 1e12, allow_nan=False).map(lambda x: round(x, 3)), min_size=1), st.sampled_from(",."))
def test_whatever_is_decided_about_decimals_is_so(values, decimal):
    cells = [np.format_float_positional(value, trim="-").replace(".", decimal) for value in values]
    found = decided(cells, semicolons=True)
    if isinstance(found, Marks):
        assert [float(cell) for cell in plain(cells, found)] == values
    grouped = [f"{value:,.3f}".translate({44: 46, 46: 44} if decimal == "," else {}) for value in values]
    found = decided(grouped, semicolons=True)
    if isinstance(found, Marks):
        read = plain(grouped, found)
        assert all(cell is None or float(cell) == value for cell, value in zip(read, values, strict=True))


@pytest.mark.parametrize(
    ("cells", "marks"),
    [
        (["5", "7"], Marks()),
        (["1.234"], Marks()),
        (["1,5", "1,234"], Marks(",")),
        (["1.5", "1,234"], Marks()),
        (["1.234,5", "1.234"], Marks(",", ".")),
        (["1,234", "2"], ("1,234",)),
        (["1.5", "2,5"], ("1.5", "2,5")),
    ],
)
def test_decimals_are_decided_for_the_whole_file_or_asked(cells, marks):
    assert decided(cells) == marks


def test_a_thousand_or_one_and_a_bit_is_never_guessed(federation):
    for data in (
        b'id,income,home\nx,"1,234",own\n',
        b"id;income;home\nx;1,234;own\n",
        b"id;income;home\nx;1.234;own\n",
    ):
        with pytest.raises(AmbiguousFile, match="row 2"):
            read_samples(federation, data)
    thousand = read_samples(federation, b'id,income,home\nx,"1,234",own\n', how=Reading(decimal="point"))
    assert thousand.guest.columns["income"][0] == 1234
    beside = read_samples(federation, b'id,income,home\nx,"1,234",own\ny,0.5,own\n')
    assert "'1,234' is not a number here: this file has a decimal point" in beside.problem(0)


def test_names_of_columns_are_found_whatever_their_case(federation):
    sheet = read_samples(federation, b"ID,Income,HOME\nx,1,own\n")
    assert (sheet.ids, sheet.problems, sheet.notes) == (("x",), {}, ())
    with pytest.raises(SampleError, match="'ID', 'id' may mean 'id'"):
        read_samples(federation, b"ID,id,income,home\nx,y,1,own\n")


def test_a_workbook_is_read_as_it_was_stored(federation):
    book = openpyxl.Workbook()
    for row in (
        HEADER,
        ("x", "=1+1", "own"),
        ("y", 2, "#DIV/0!"),
        (110101199003071234, 3, "own"),
        ("z", 1e16, datetime(2024, 1, 31)),
    ):
        book.active.append(row)
    book.active["D2"] = date(2024, 1, 31)
    book.active["D1"] = "seen"
    out = io.BytesIO()
    book.save(out)
    sheet = read_samples(federation, out.getvalue(), name="people.xlsx")
    assert sheet.problems == {
        0: (Remark("formula_without_result", {"cell": "'=1+1'"}, 2, "income"),),
        1: (Remark("cell_shows_error", {"cell": "'#DIV/0!'"}, 3, "home"),),
        2: (Remark("number_rounded", {"cell": "'1.101011990030712e+17'"}, 4, "id"),),
    }
    assert sheet.guest.columns["home"][3] == "2024-01-31"
    assert sheet.guest.columns["income"][3] == 1e16


def merged_book(rows, *areas):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for area in areas:
        book.active.merge_cells(area)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_cells_merged_in_the_last_column_are_filled_down_and_across():
    rows = [["id", "late", "b"], ["a", 0, "x"], ["b", 1, None], ["c", 0, None], ["d", "both", None]]
    table = read_table_file(merged_book(rows, "C2:C4", "B5:C5"), "merged.xlsx")
    assert [row[2] for row in table.rows] == ["x", "x", "x", "both"] and not table.faults


def test_of_several_sheets_one_is_chosen(federation):
    data = as_xlsx([("x", 1, "own")], "Other")
    with pytest.raises(AmbiguousFile) as unclear:
        read_samples(federation, data)
    assert (unclear.value.question, list(unclear.value.choices)) == ("sheet", ["Sheet", "Other"])
    assert read_samples(federation, data, how=Reading(sheet="Sheet")).ids == ("x",)
    with pytest.raises(SampleError, match="no sheet 'None'"):
        read_samples(federation, data, how=Reading(sheet="None"))


def test_what_would_unpack_to_too_much_is_refused_before_any_work():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("[Content_Types].xml", "")
        packed.writestr("xl/worksheets/sheet1.xml", b"<c/>" * 2_000_000)
    with pytest.raises(FederationError, match="once unpacked"):
        read_table_file(out.getvalue(), "bomb.xlsx", limits=FileLimits(1_000_000, 99, 9, 999))
    with pytest.raises(FederationError, match="found more than 1,000,000 cells"):
        read_table_file(out.getvalue(), "bomb.xlsx", limits=SAMPLES)
    long = io.BytesIO()
    parquet.write_table(pa.table({"id": ["x" * 1000] * 6000}), long)
    assert len(long.getvalue()) < 5000
    with pytest.raises(FederationError, match="6,000 rows, expected at most 5,000"):
        read_table_file(long.getvalue(), "long.parquet", limits=SAMPLES)
    wide = io.BytesIO()
    parquet.write_table(pa.table({"id": ["x" * 20_000] * 4000}), wide)
    assert len(wide.getvalue()) < 30_000
    with pytest.raises(FederationError, match="than its footer states"):
        read_table_file(wide.getvalue(), "wide.parquet", limits=SAMPLES)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 99, "this is an old .xls workbook, or one with a password"),
        (b"PK\x03\x04", "the workbook is damaged or encrypted"),
        (b"PAR1 nothing PAR1", "the Parquet file cannot be read"),
    ],
)
def test_what_is_no_table_is_refused_by_its_own_name(federation, data, told):
    with pytest.raises(SampleError, match=f"people: {told}"):
        read_samples(federation, data, name="people")


def test_cells_that_hold_lists_are_refused():
    out = io.BytesIO()
    parquet.write_table(pa.table({"id": ["x"], "odd": [[1, 2]]}), out)
    with pytest.raises(FederationError, match=r"'odd' \(list<element: int64>\)"):
        read_table_file(out.getvalue(), "t.parquet")


def test_a_whole_number_stays_one_in_every_form():
    out = io.BytesIO()
    parquet.write_table(
        pa.table({"code": [2.0, None], "when": [datetime(2024, 1, 31), None], "yes": [True, None]}), out
    )
    text = read_table_file(out.getvalue(), "t.parquet")
    assert text.rows == [["2", "2024-01-31", "true"], ["", "", ""]]
    assert with_marks(text, text.header) == text or with_marks(text, text.header).marks == Marks()


HIDDEN = "\u200e\u200f\u202a\u202c\u2066\u2069\u200b\ufeff"


def in_every_form(header, rows):
    """A table as the bytes of a CSV file, a workbook and a Parquet file."""
    text = "".join(",".join(cells) + "\n" for cells in (header, *rows))
    yield text.encode()
    book = openpyxl.Workbook()
    for cells in (header, *rows):
        book.active.append(cells)
    out = io.BytesIO()
    book.save(out)
    yield out.getvalue()
    out = io.BytesIO()
    parquet.write_table(pa.table({name: [row[place] for row in rows] for place, name in enumerate(header)}), out)
    yield out.getvalue()


def test_characters_that_nobody_sees_are_dropped_from_cells_and_told():
    rows = [["p1", "29.5", "own"], [f"{HIDDEN}p2", f"31{HIDDEN}.5", f"own{HIDDEN}"], ["p3", "7.5", "می\u200cخواهم"]]
    for data in in_every_form([f"{HIDDEN}id", "income", "home"], rows):
        read = read_table_file(data, "people")
        assert read.header[0] == "id" and read.rows[1] == ["p2", "31.5", "own"]
        assert read.rows[2][2] == "می\u200cخواهم"  # a joiner is part of the word
        (note,) = read.notes
        assert note.code == "invisible_characters_dropped"


def test_a_zero_byte_in_a_text_is_named_by_its_line_and_utf16_is_still_asked_about():
    for encoding in ("utf-8", "gbk"):
        with pytest.raises(FederationError) as caught:
            read_table_file("id,城市\np1,北京\np2,上\0海\n".encode(encoding), "people.csv")
        assert caught.value.code == "zero_byte_in_text" and "line 3" in str(caught.value)
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        for text in ("id,income\np1,5\np2,7\n", "编号,城市\n一,北京\n二,上海\n"):
            with pytest.raises(AmbiguousFile) as asked:
                read_table_file(text.encode(encoding), "people.csv")
            assert next(iter(asked.value.choices)) == "utf-16"
