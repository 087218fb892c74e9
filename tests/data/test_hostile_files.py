"""Whatever bytes are handed in, the answer is a result or one of our own errors."""

import contextlib
import tomllib

import pytest
import tomli_w
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from backend.data.federation import load_federation
from backend.data.table import read_samples
from backend.errors import AmbiguousFile, FederationError, SampleError

relaxed = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
values = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@relaxed
@given(
    data=st.binary(max_size=200)
    | st.text("id,;\t\n\r\"'01xhome", max_size=80).map(lambda text: f"id,home,income\n{text}".encode())
)
@example(data=b"id,home,income\n\x00,\x00,\x00\n")
@example(data=b"\r\r\r")
@example(data=b'"')
@example(data=b"id,home,income\n" + b"9" * 400 + b",1," + b"9" * 400 + b"\n")
@example(data=b"id,home,income\n" + b"x" * 200_000 + b",1,2\n")
def test_no_sheet_breaks_the_reader(tiny, data):
    with contextlib.suppress(SampleError, AmbiguousFile):
        sheet = read_samples(load_federation(tiny, check_tables=False), data)
        assert len(sheet.ids) == len(sheet.guest.columns["income"])
        assert all(0 <= row < len(sheet.ids) for row in sheet.problems)


@relaxed
@given(where=st.sampled_from(["name", "label", "guest", "hosts", "synthetic", "extra"]), value=values)
@example(where="label", value={"column": "late", "meaning": "L", "task": "classes", "classes": [1, "x" * 999, {}]})
@example(where="label", value={"column": "late", "meaning": "L", "task": ["number"], "positive": {}})
@example(where="hosts", value=[3])
@example(where="guest", value={"features": [1, {"name": 2}]})
@example(where="hosts", value=[{"name": "shop", "features": "x"}])
def test_no_federation_file_breaks_the_loader(tiny, where, value):
    text = (tiny / "federation.toml").read_text(encoding="utf-8")
    changed = tomllib.loads(text) | {where: value}
    (tiny / "federation.toml").write_text(tomli_w.dumps(changed), encoding="utf-8")
    try:
        with contextlib.suppress(FederationError):
            load_federation(tiny)
    finally:
        (tiny / "federation.toml").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("file", ["bank.csv", "shop.csv"])
@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xfe", b'"', b"id", b"id,customer\n\n\n", b"id,id\n", b"\n\n"])
def test_a_broken_table_is_refused_with_its_name(tiny, file, data):
    (tiny / file).write_bytes(data)
    with pytest.raises(FederationError, match=file):
        load_federation(tiny)
