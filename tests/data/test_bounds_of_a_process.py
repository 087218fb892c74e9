"""What hostile and large files cost a process of its own: seconds of CPU, and megabytes of memory, those outside Python, too."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.data.test_bounds import REL, rewritten, workbook

READS = """
import resource, sys, time
from pathlib import Path
from backend.data.bounded_text import parse_toml
from backend.data.csv_file import TABLE
from backend.data.table_file import read_table_file
from backend.errors import FederationError

def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024

def read(file):
    data = Path(file).read_bytes()
    if file.endswith(".toml"):
        return parse_toml("agreement.toml", data)
    return read_table_file(data, Path(file).name)

ordinary, file = sys.argv[1:]
read(ordinary)  # what is imported for this kind of file is not counted
Path("/proc/self/clear_refs").write_text("5")  # the peak is the present memory from here on
before = memory("VmRSS:")
began = time.process_time()
try:
    found = f"rows_{len(read(file).rows)}"
except FederationError as error:
    found = f"{error.code} {len(str(error).encode())}"
print(time.process_time() - began, memory("VmHWM:") - before, found)
"""
pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="The peak is read as Linux has it.")


def measured(tmp_path, ending, ordinary, data):
    """The seconds of CPU, the megabytes, and what was found: rows or the refusal's code and the bytes of its sentence."""
    (tmp_path / f"ordinary.{ending}").write_bytes(ordinary)
    (tmp_path / f"file.{ending}").write_bytes(data)
    words = [sys.executable, "-c", READS, tmp_path / f"ordinary.{ending}", tmp_path / f"file.{ending}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=500)
    seconds, megabytes, *found = done.stdout.split()
    return float(seconds), float(megabytes), found


def parquet_bytes(columns, **options):
    out = io.BytesIO()
    parquet.write_table(pa.table(columns), out, compression="zstd", **options)
    return out.getvalue()


def test_a_toml_file_of_80_kb_costs_a_process_at_most_a_second_and_50_mb(tmp_path):
    for text in (b"a" + b".a" * 40_000 + b" = 1\n", b"a = " + b"[" * 80_000):
        seconds, megabytes, found = measured(tmp_path, "toml", b"a = 1\n", text)
        assert found[0] in ("key_of_too_many_parts", "nested_too_deep")
        assert seconds < 1 and megabytes < 50


def test_a_workbook_of_ten_thousand_sheets_costs_a_process_at_most_a_second_and_says_so_in_a_kilobyte(tmp_path):
    entry = b'<sheet xmlns:r="%s" name="S%d" sheetId="%d" state="visible" r:id="rId1"/>'
    more = b"".join(entry % (REL, i, i + 9) for i in range(10_000))
    ordinary = workbook([["id"], ["a"]])
    data = rewritten(ordinary, workbook=lambda text: text.replace(b"</sheets>", more + b"</sheets>"))
    seconds, megabytes, (code, length) = measured(tmp_path, "xlsx", ordinary, data)
    assert code == "too_many_sheets" and int(length) <= 1024
    assert seconds < 1 and megabytes < 50


def test_a_workbook_of_1_mb_that_unpacks_to_300_mb_costs_a_process_at_most_5_seconds_and_100_mb(tmp_path):
    row = b"<row>" + b"<c><v>1</v></c>" * 1_000 + b"</row>"
    ordinary = workbook([["id"], ["a"]])
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(ordinary)) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            if "sheet1" not in name:
                target.writestr(name, source.read(name))
                continue
            head, tail = source.read(name).split(b"</sheetData>")
            with target.open(name, "w") as part:
                part.write(head)
                for _ in range(200):
                    part.write(row * 100)
                part.write(b"</sheetData>" + tail)
    data = out.getvalue()
    assert len(row) * 20_000 > 300_000_000 and len(data) < 2_000_000
    seconds, megabytes, found = measured(tmp_path, "xlsx", ordinary, data)
    assert found[0] == "packed_too_densely"
    assert seconds < 5 and megabytes < 100


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "write_statistics": False}])
def test_a_parquet_file_with_a_cell_of_60_mb_costs_a_process_at_most_a_second_and_50_mb(tmp_path, options):
    ordinary = parquet_bytes({"id": ["a", "b"]})
    data = parquet_bytes({"id": ["x" * 60_000_000]}, **options)
    assert len(data) < 100_000
    seconds, megabytes, found = measured(tmp_path, "parquet", ordinary, data)
    assert found[0] in ("packed_too_densely", "cell_too_large", "page_too_large")
    assert seconds < 1 and megabytes < 50


@pytest.mark.slow
def test_a_workbook_of_300_000_rows_is_read(tmp_path):
    ordinary = workbook([["id", "income"], ["a", 1]])
    rows = b"".join(b"<row><c><v>%d</v></c><c><v>%d.5</v></c></row>" % (i, i) for i in range(300_000))
    data = rewritten(ordinary, sheet1=lambda text: text.replace(b"</sheetData>", rows + b"</sheetData>"))
    seconds, megabytes, found = measured(tmp_path, "xlsx", ordinary, data)
    assert found[0] == "rows_300001"
    assert seconds < 240 and megabytes < 1_000
