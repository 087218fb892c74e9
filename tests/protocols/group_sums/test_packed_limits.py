"""Sums by group through the cipher at the limits of what a ciphertext holds, by codes of any text: as counted with a dictionary."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.crypto.fixedpoint import GRADIENT_BITS, longest_half
from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide, PaillierPublicSide
from backend.crypto.plain import PlainKeySide, PlainPublicSide
from backend.data.dictionary import Feature, Kind
from backend.protocols.group_sums.grouping import group
from backend.protocols.group_sums.host import HostGroups, sums_by
from backend.protocols.group_sums.messages import AskGroupSums, GroupPairs
from backend.protocols.group_sums.values import half_of, pack, slots, unpack
from backend.protocols.training.row_sets import pack_rows

ODD = [
    "NA",
    "",
    "nan",
    "None",
    "null",
    "１２",
    "-0.0",
    "0",
    "1e308",
    "true",
    "2024-01-01",
    " a",
    "a",
    "=1+1",
    "\u202e",
    None,
]


@pytest.fixture(scope="module")
def sides():
    key = PaillierKeySide(PaillierSecretKey.generate(512, floor=512))
    return {"paillier": (key, PaillierPublicSide(key.public)), "none": (PlainKeySide(), PlainPublicSide())}


@settings(max_examples=12, deadline=None)
@given(st.data())
@pytest.mark.parametrize("scheme", ["paillier", "none"])
def test_sums_of_full_ciphertexts_are_those_that_are_counted(sides, scheme, data):
    key, public = sides[scheme]
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n = data.draw(st.sampled_from([1, 20, 39, 40, 63, 64]))
    codes = data.draw(st.lists(st.sampled_from(ODD), min_size=1, max_size=6, unique=True))
    column = np.array([codes[i] for i in draw.integers(0, len(codes), n)] + [None], dtype=object)[:-1]
    tops = data.draw(st.lists(st.sampled_from([1, 1 << 12, 1 << GRADIENT_BITS]), min_size=1, max_size=60))
    marks = [draw.choice([0, top], n).astype(np.int64) if draw.random() < 0.5 else np.full(n, top) for top in tops]
    layout = slots(tops, n, key.bits)
    numbers, half = pack(marks, tops, layout), half_of(layout)
    assert half <= longest_half(key.bits)

    feature = Feature(name="c", meaning="c", kind=Kind.CATEGORICAL)
    host = HostGroups(np.arange(n), public, b"")
    pairs = tuple(key.encrypt_joined(of, half) for of in numbers)
    host.take_pairs("g", GroupPairs("c", pack_rows(np.ones(n, dtype=bool)), half, pairs))
    answer = sums_by(host, AskGroupSums("c", "g", ("c",), 32, 1), [group(feature, column, 32, 1)])
    if len(Counter(column.tolist())) < 2:
        assert answer.features == () and answer.sums == ()
        return
    [groups] = answer.groups
    sums = unpack([key.decrypt_joined(blob, len(groups), half) for blob in answer.sums], layout)
    for k, (kind, name, size) in enumerate(groups):
        own = np.array([value is None if kind == "missing" else value == name for value in column])
        assert own.sum() == size
        assert sums[:, k].tolist() == [int(mark[own].sum()) for mark in marks]
    assert sum(size for *_, size in groups) == n
