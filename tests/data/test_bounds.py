"""Files that cost more than they weigh are refused before they are read, within a second and a few megabytes; ordinary ones are read."""

import io
import time
import tracemalloc
import zipfile

import openpyxl
import pyarrow as pa
import pytest
from pyarrow import parquet

from backend.data import xlsx_file
from backend.data.bounded_text import MAX_PARTS, parse_json, parse_toml, parse_yaml, read_toml
from backend.data.csv_file import FileLimits
from backend.data.federation import load_federation
from backend.data.table import SAMPLES
from backend.data.table_file import read_table_file
from backend.errors import FederationError

REL = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def refused(act):
    """The refusal, the seconds of CPU and the megabytes of Python's memory that it took."""
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(FederationError) as caught:
        act()
    seconds = time.process_time() - began
    megabytes = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return caught.value, seconds, megabytes


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"a" + b".a" * 40_000 + b" = 1\n", "key_of_too_many_parts"),
        (b"[a" + b".a" * 40_000 + b"]\n", "key_of_too_many_parts"),
        (b'"a"' + b' . "a"' * 12_000 + b" = 1\n", "key_of_too_many_parts"),
        (b"x = {a" + b".a" * 40_000 + b" = 1}\n", "key_of_too_many_parts"),
        (b"a = " + b"9" * 80_000, "not_toml"),
        (b"a = " + b"[" * 80_000, "nested_too_deep"),
        (b"a = 1\na = 2\n", "not_toml"),
        (b"a = 0x" + b"f" * 80_000, "number_too_long"),
        (b"[[a]]\nb = [0xfffffffffffffffffff]", "number_too_long"),
        (b"a = '\xff'", "text_not_utf8"),
        (b"#" * (5 << 20), "text_file_too_large"),
    ],
)
def test_a_toml_file_of_another_company_is_read_within_bounds(text, code):
    error, seconds, megabytes = refused(lambda: parse_toml("agreement.toml", text))
    assert error.code == code and len(str(error)) < 400
    assert seconds < 1 and megabytes < 50


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"[" * 80_000, "nested_too_deep"),
        (b'{"a": ' + b"9" * 80_000 + b"}", "not_json"),
        (b"{" + b",".join(b'"k%d":1' % i for i in range(60_000)) + b',"k59999":1}', "not_json"),
        (b'{"a": 1,', "not_json"),
        (b'"\xff"', "text_not_utf8"),
        (b" " * (5 << 20), "text_file_too_large"),
    ],
)
def test_a_json_file_of_another_company_is_read_within_bounds(text, code):
    error, seconds, megabytes = refused(lambda: parse_json("categories.json", text))
    assert error.code == code and len(str(error)) < 400
    assert seconds < 1 and megabytes < 50


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"a: " + b"[" * 80_000, "nested_too_deep"),
        (b"a: &x [1]\nb: [*x, *x]\n", "yaml_alias"),
        (b"a: [1\n", "not_yaml"),
        (b"a: '\xff'", "text_not_utf8"),
        (b"#" * (5 << 20), "text_file_too_large"),
    ],
)
def test_a_yaml_file_of_another_company_is_read_within_bounds(text, code):
    error, seconds, megabytes = refused(lambda: parse_yaml("pack.yaml", text))
    assert error.code == code and len(str(error)) < 400
    assert seconds < 1 and megabytes < 50


def test_ordinary_toml_passes(tmp_path):
    names = ".".join(["a"] * MAX_PARTS)
    text = f'{names} = 1\nurl = "https://a.b.c.d.e.f.example.org/v1.2"\nsums = [1.5, 2.5]\n'
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    assert read_toml(tmp_path / "a.toml")["sums"] == [1.5, 2.5]


def test_a_federation_file_is_read_within_bounds(tiny):
    (tiny / "federation.toml").write_bytes(b"a" + b".a" * 40_000 + b" = 1\n")
    error, seconds, _ = refused(lambda: load_federation(tiny))
    assert error.code == "key_of_too_many_parts" and seconds < 1


def workbook(rows):
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("people")
    for row in rows:
        sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def rewritten(data, **changes):
    """A workbook with some of its parts changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            text = source.read(name)
            for part, change in changes.items():
                text = change(text) if part in name else text
            target.writestr(name, text)
    return out.getvalue()


def test_thousands_of_merged_cells_that_overlap_cost_little():
    rows = [["id", "late", "b", "d"], *([f"p{n}", 0, 1, 2] for n in range(3_000))]
    areas = "".join(f'<mergeCell ref="D2:D{1_000_000 - n}"/>' for n in range(9_999)).encode()
    merged = b"</sheetData><mergeCells>" + areas + b"</mergeCells>"
    data = rewritten(workbook(rows), sheet1=lambda text: text.replace(b"</sheetData>", merged))
    began = time.process_time()
    assert len(read_table_file(data, "overlap.xlsx").rows) == 3_000
    assert time.process_time() - began < 10.0  # one or less; a minute where every area is looked at in every row


def test_a_workbook_of_many_rows_is_read():
    rows = 12_000
    data = workbook([["id", "income", "home", "age"], *([f"p{i}", i * 1.5, "rent", i % 90] for i in range(rows))])
    table = read_table_file(data, "people.xlsx")
    assert len(table.rows) == rows and table.rows[-1] == [
        f"p{rows - 1}",
        str((rows - 1) * 1.5),
        "rent",
        str((rows - 1) % 90),
    ]


def test_a_cell_far_to_the_right_costs_no_more_than_its_row():
    data = workbook([["id", "income"], *([f"p{i}", i] for i in range(50))])
    wide = rewritten(data, sheet1=lambda text: text.replace(b'r="B7"', b'r="XFD7"'))
    with pytest.raises(FederationError) as caught:
        read_table_file(wide, "wide.xlsx")
    assert caught.value.code == "sheet_too_wide"


def test_a_workbook_of_ten_thousand_sheets_is_refused_at_once():
    entry = b'<sheet xmlns:r="%s" name="S%d" sheetId="%d" state="visible" r:id="rId1"/>'
    more = b"".join(entry % (REL, i, i + 9) for i in range(10_000))
    data = rewritten(workbook([["id"], ["a"]]), workbook=lambda text: text.replace(b"</sheets>", more + b"</sheets>"))
    error, seconds, megabytes = refused(lambda: read_table_file(data, "sheets.xlsx"))
    assert error.code == "too_many_sheets" and len(str(error)) < 1000
    assert len(data) < 100_000 and seconds < 1 and megabytes < 20


def test_a_workbook_that_unpacks_to_much_more_than_it_takes_is_refused_without_unpacking_it():
    row = b"<row>" + b"<c><v>1</v></c>" * 1_000 + b"</row>"
    data = rewritten(
        workbook([["id"], ["a"]]), sheet1=lambda text: text.replace(b"</sheetData>", row * 4_000 + b"</sheetData>")
    )
    error, seconds, megabytes = refused(lambda: read_table_file(data, "dense.xlsx"))
    assert error.code == "packed_too_densely" and seconds < 1 and megabytes < 20


def test_a_part_that_is_read_in_pieces_is_counted_whole(monkeypatch):
    monkeypatch.setattr(xlsx_file, "PIECE_BYTES", 100)
    data = workbook([["id", "income"], *([f"p{i}", i] for i in range(40))])
    assert len(read_table_file(data, "a.xlsx").rows) == 40
    few = FileLimits(max_bytes=1 << 20, max_rows=100, max_columns=9, max_cells=81)
    error, _, _ = refused(lambda: read_table_file(data, "a.xlsx", limits=few))
    assert error.code == "more_cells_than_allowed"


def test_a_parquet_cell_of_60_mb_is_refused_before_it_is_read():
    out = io.BytesIO()
    parquet.write_table(pa.table({"id": ["x" * 60_000_000]}), out, compression="zstd")
    data = out.getvalue()
    del out
    before = pa.total_allocated_bytes()
    error, seconds, megabytes = refused(lambda: read_table_file(data, "cell.parquet"))
    assert error.code == "packed_too_densely" and seconds < 1 and megabytes < 20
    assert pa.total_allocated_bytes() - before < 50e6
    with pytest.raises(FederationError):
        read_table_file(data, "cell.parquet", limits=SAMPLES)


def lying(text):
    """A Parquet file of one cell whose footer says that it unpacks to 100 bytes."""
    out = io.BytesIO()
    table = pa.table({"id": [text]})
    parquet.write_table(table, out, compression="zstd", use_dictionary=False, write_statistics=False)
    data = out.getvalue()
    group = parquet.read_metadata(io.BytesIO(data)).row_group(0)
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    for size in {group.total_byte_size, group.column(0).total_uncompressed_size}:
        written = varint(2 * size)
        assert written in footer
        footer = footer.replace(written, varint(200, len(written)))
    return data[: -8 - length] + footer + data[-8:]


def varint(number, width=1):
    """Thrift's compact form of a whole number, in at least so many bytes."""
    pieces = []
    while number or len(pieces) < width:
        pieces.append(number & 0x7F)
        number >>= 7
    return bytes(piece | 0x80 for piece in pieces[:-1]) + bytes(pieces[-1:])


@pytest.mark.parametrize(("letters", "code"), [(60_000_000, "page_too_large"), (9_000_000, "pages_larger_than_stated")])
def test_a_parquet_file_whose_footer_lies_is_refused_by_its_pages(letters, code):
    data = lying("x" * letters)
    before = pa.total_allocated_bytes()
    peak = pa.default_memory_pool().max_memory()
    error, seconds, megabytes = refused(lambda: read_table_file(data, "lie.parquet"))
    assert error.code == code and seconds < 1 and megabytes < 20
    assert max(pa.default_memory_pool().max_memory() - max(peak, before), 0) < 50e6


def test_one_long_text_in_every_row_of_a_parquet_file_is_held_once():
    out = io.BytesIO()
    pages = {"data_page_size": 1 << 28, "dictionary_pagesize_limit": 1 << 28}
    parquet.write_table(pa.table({"id": ["x" * 1_000_000] * 400}), out, compression="zstd", **pages)
    error, seconds, megabytes = refused(lambda: read_table_file(out.getvalue(), "same.parquet"))
    assert error.code == "cell_too_large" and seconds < 1 and megabytes < 20


def test_ordinary_parquet_files_pass():
    people = 3_000
    columns = {
        "id": [f"p{i}" for i in range(people)],
        "age": list(range(people)),
        "home": ["rent", None, " own"] * 1_000,
    }
    for options in ({}, {"use_dictionary": False}, {"data_page_version": "2.0", "row_group_size": 700}):
        out = io.BytesIO()
        parquet.write_table(pa.table(columns), out, compression="zstd", **options)
        rows = read_table_file(out.getvalue(), "people.parquet").rows
        assert rows[1:3] == [["p1", "1", ""], ["p2", "2", "own"]] and len(rows) == people
