"""Whatever a user hands in, damaged at random: it is read, or refused in our own words, within 10 s and 1 GB.

`make fuzz` tries 10,000 inputs that nobody has seen before (FUZZ_INPUTS says how many); else a few hundred, always the same.
"""

import csv
import io
import json
import os
import resource
import shutil
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
import tomli_w
import xgboost
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from light_group import light_group
from pyarrow import parquet
from sklearn.tree import DecisionTreeClassifier

from backend.compliance.rule_pack import read_rule_pack
from backend.data.demo import write_demo
from backend.data.dictionary_file import read_dictionary
from backend.data.federation import load_federation
from backend.data.split import Division, split_table
from backend.data.table import read_samples
from backend.errors import AmbiguousFile, GlassleafError
from backend.protocols.training.messages import AskBinSums, AskNodeSums, FeatureBins, KeepModel
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.messages import OfferKey
from backend.reports.files import FORMS, check
from backend.reports.render.pdf_form import read_pdf
from backend.services import Glassleaf
from backend.services.training import TrainingRequest
from backend.trees.importers import read_categories, read_model
from backend.trees.importers.sklearn_file import export
from tests.fuzz.mutations import Dump, changed, replaced

SEEN_BEFORE = 530  # inputs that every run of the tests tries
INPUTS = int(os.environ.get("FUZZ_INPUTS", SEEN_BEFORE))
LONGEST = timedelta(minutes=1)  # of one input, on the slowest machine
MOST = 1 << 30  # bytes that reading may take beyond what the process has
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    sound : list of bytes
        Files that are read.
    read : callable
        What a command or a page does with the bytes first; may raise errors of ours alone.
    load, dump : callable
        Bytes → document and back, where values can be replaced one by one.
    """

    sound: list[bytes]
    read: Callable[[bytes], object]
    load: Callable[[bytes], Any] | None = None
    dump: Dump | None = None

    def inputs(self) -> st.SearchStrategy[bytes]:
        """Damaged files."""
        ways: list[st.SearchStrategy[bytes]] = [st.binary(max_size=300), *map(changed, self.sound)]
        if self.load and self.dump:
            ways += [replaced(self.load(blob), self.dump) for blob in self.sound] * 2
        return st.one_of(ways)


def as_json(document: Any) -> bytes:
    return json.dumps(document).encode()


def as_toml(document: Any) -> bytes:
    try:
        return tomli_w.dumps(document).encode()
    except (TypeError, AttributeError, ValueError):  # TOML knows no null and no table in place of the whole
        return repr(document).encode()


def as_messagepack(document: Any) -> bytes:
    try:
        packed: bytes = msgpack.packb(document, use_bin_type=True)
    except (OverflowError, ValueError):
        return b"\xc1"
    return packed


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    write_demo(folder / "demo", rows=100)
    return folder


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """One report in every format."""
    home = tmp_path_factory.mktemp("fuzz_home")
    write_demo(home / "demo", rows=300)
    with light_group(), Glassleaf(home, pools=False) as glassleaf:
        glassleaf.federations.add(home / "demo")
        glassleaf.training.start(TrainingRequest("demo", SecureBoostParameters(trees=2, depth=2, cipher="none"))).get()
        made = glassleaf.reports.make("latest")
    return {name: form(made, "en") for name, form in FORMS.items()}


def models() -> dict[str, bytes]:
    draw = np.random.default_rng(3)
    x = draw.normal(size=(60, 3))
    y = (x[:, 0] + x[:, 1] > 0).astype(int)
    booster = xgboost.train({"max_depth": 2, "nthread": 1}, xgboost.DMatrix(x, y), 2)
    found = {f"xgboost_{form}": bytes(booster.save_raw(form)) for form in ("json", "ubj")}
    found["sklearn"] = as_json(export(DecisionTreeClassifier(max_depth=2, random_state=0).fit(x, y)))
    lightgbm = pytest.importorskip("lightgbm")
    options = {"objective": "binary", "num_leaves": 4, "verbose": -1, "num_threads": 1}
    found["lightgbm"] = lightgbm.train(options, lightgbm.Dataset(x, y), 2).model_to_string().encode()
    return found


def other_encodings(sheet: bytes) -> list[bytes]:
    """The same table as Excel may save it; each is a question, and no error."""
    text = sheet.decode().replace(",", ";")
    return [text.encode("utf-16"), f"{text}字;\n".encode("gb18030")]


def workbooks(sheet: bytes) -> list[bytes]:
    """The same table as a workbook, packed and, so that damage reaches what is inside, not packed."""
    book = openpyxl.Workbook()
    for row in csv.reader(sheet.decode().splitlines()):
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    with zipfile.ZipFile(out) as packed, zipfile.ZipFile(open_ := io.BytesIO(), "w") as plain:
        for name in packed.namelist():
            plain.writestr(name, packed.read(name))
    return [out.getvalue(), open_.getvalue()]


def as_parquet(sheet: bytes) -> bytes:
    out = io.BytesIO()
    parquet.write_table(pa.Table.from_pandas(pd.read_csv(io.BytesIO(sheet), dtype=str), preserve_index=False), out)
    return out.getvalue()


NAMES = (
    "samples", "samples_xlsx", "samples_parquet", "table", "init", "federation", "dictionary", "rules", "categories",
    "xgboost", "xgboost_ubj", "lightgbm", "sklearn",
    "report", "report_html", "report_pdf", "message",
)  # fmt: skip


@pytest.fixture(scope="module")
def kinds(demo: Path, reports: dict[str, bytes]) -> dict[str, Kind]:
    shutil.copytree(demo / "demo", demo / "fuzzed")
    federation = load_federation(demo / "demo")
    file, own, table = demo / "input", demo / "own.csv", demo / "demo" / federation.guest.file
    toml, sheet = demo / "demo" / "federation.toml", table.read_bytes()

    def from_file(read: Callable[[Path], object], at: Path = file) -> Callable[[bytes], object]:
        def written(blob: bytes) -> object:
            at.write_bytes(blob)
            return read(at)

        return written

    def divide(path: Path) -> object:
        guest, host = ("age", "monthly_income"), {"shop": ("loan_amount",)}
        out = demo / "out"
        for left in out.glob("*"):
            left.unlink()
        return split_table(path, Division(federation.label.column, guest, host, federation.guest.id), out).federation

    rules = ROOT / "backend" / "compliance" / "rules"
    messages = [
        encode(OfferKey("c", "paillier", b"key")),
        encode(FeatureBins("c", ("x", "y"), (3, 4), (False, True))),
        encode(KeepModel("c", "m1", "bank", ("h",), (((0, "h", 1, 2),), ()), 10, 3, 17, -2, "abc")),
        encode(AskBinSums("c", (1,), (0,), (b"\x01",), (b"\x01",), ((0,),), (-1,))),
        encode(AskNodeSums("c", 1, 0, b"\x01", b"\x01", 64, 2)),
    ]
    made = models()
    return {
        "samples": Kind([sheet, *other_encodings(sheet)], lambda blob: read_samples(federation, blob)),
        "samples_xlsx": Kind(workbooks(sheet), lambda blob: read_samples(federation, blob)),
        "samples_parquet": Kind([as_parquet(sheet)], lambda blob: read_samples(federation, blob)),
        "table": Kind([sheet], from_file(lambda _: load_federation(demo / "fuzzed"), demo / "fuzzed" / table.name)),
        "init": Kind([sheet], from_file(divide, own)),
        "federation": Kind(
            [toml.read_bytes()],
            from_file(load_federation, demo / "demo" / "fuzzed.toml"),
            lambda blob: tomllib.loads(blob.decode()),
            as_toml,
        ),
        "dictionary": Kind([(ROOT / "assets" / "demo" / "dictionary.csv").read_bytes()], from_file(read_dictionary)),
        "rules": Kind(
            [(rules / f"{name}.yaml").read_bytes() for name in ("fcra", "four_fifths")],
            from_file(read_rule_pack),
            yaml.safe_load,
            lambda document: yaml.safe_dump(document, allow_unicode=True).encode(),
        ),
        "categories": Kind([b'{"home": ["own", "rent"]}'], from_file(read_categories), json.loads, as_json),
        "xgboost": Kind([made["xgboost_json"]], from_file(read_model), json.loads, as_json),
        "xgboost_ubj": Kind([made["xgboost_ubj"]], from_file(read_model)),
        "lightgbm": Kind([made["lightgbm"]], from_file(read_model)),
        "sklearn": Kind([made["sklearn"]], from_file(read_model), json.loads, as_json),
        "report": Kind([reports["json"]], check, json.loads, as_json),
        "report_html": Kind([reports["html"]], check),
        "report_pdf": Kind([reports["pdf"]], read_pdf),  # what is drawn to compare is drawn from a sound report
        "message": Kind(messages, decode, lambda blob: msgpack.unpackb(blob, use_list=True), as_messagepack),
    }


@contextmanager
def little_memory() -> Iterator[None]:
    """The process may take `MOST` bytes more; what asks for more gets a MemoryError."""
    if sys.platform != "linux":
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_every_kind_of_file_is_damaged(kinds: dict[str, Kind]) -> None:
    assert tuple(kinds) == NAMES
    for kind in kinds.values():
        for blob in kind.sound:
            with suppress(AmbiguousFile):  # a question is no damage
                kind.read(blob)  # sound as it is: what is refused below, is refused for its damage


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # an input is a whole file
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_read_or_refused_in_our_own_words(kinds: dict[str, Kind], name: str, tmp_path: Path) -> None:
    kind, fault = kinds[name], tmp_path / name

    @settings(
        max_examples=max(1, INPUTS // len(NAMES)),
        deadline=LONGEST,
        derandomize=INPUTS == SEEN_BEFORE,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(kind.inputs())
    def read(blob: bytes) -> None:
        try:
            kind.read(blob)
        except GlassleafError:
            pass
        except BaseException as error:
            fault.write_bytes(blob)
            error.add_note(f"The file lies at {fault}.")
            raise

    with little_memory():
        read()
