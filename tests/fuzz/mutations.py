"""Damaged files: sound bytes of which some were changed, and sound documents of which some values were replaced."""

import math
import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Dump = Callable[[Any], bytes]

TOKENS = (
    b"", b"\0", b"\r", b"\n", b"\r\n\r\n", b",", b";", b"|", b'"', b"'", b"{", b"}", b"[", b"]", b":", b"=", b"#", b"-", b"<",
    b"null", b"true", b"NaN", b"Infinity", b"-1", b"0", b"1e999", b"1e-320", b"9" * 400, b"-9223372036854775809", b"0x1F",
    b"\xff", b"\xc1", b"\xef\xbb\xbf", b"\xed\xa0\x80", "字".encode(), "\u202e".encode(), b"../../etc/passwd", b"!!python/name:os",
    b"&a [*a, *a]", b"</script>", b"endstream", b"tree_sizes=1", b"[" * 3000, b'{"a":' * 3000, b"- " * 3000, b"x" * 200_000, b"\n" * 50_000,
)  # fmt: skip
VALUES = (
    None, True, -1, 0, 1.5, 2**31, 2**64, 10**40, math.inf, math.nan, "", "x", "\0", "\u202e", "NaN", "1e999", "x" * 70_000, [], {}, [[]],
    {"": {}}, list(range(300)),
)  # fmt: skip
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")

places = st.floats(0, 1, exclude_max=True)


@st.composite
def changed(draw: st.DrawFn, sound: bytes) -> bytes:
    """Up to four changes: a token put in or in place of some bytes or of a number, bytes left out or repeated, the end cut."""
    blob = sound
    for _ in range(draw(st.integers(1, 4))):
        at = int(draw(places) * (len(blob) + 1))
        end = at + draw(st.sampled_from((0, 0, 1, 4, 40)))
        what = draw(st.sampled_from(("token", "token", "number", "repeat", "cut", "noise")))
        token = draw(st.sampled_from(TOKENS) if what != "noise" else st.binary(max_size=12))
        if what == "number" and (found := NUMBER.search(blob, at)):
            at, end = found.span()
        if what == "repeat":
            token = blob[at:end] * draw(st.sampled_from((2, 30, 2000)))
        blob = blob[:at] if what == "cut" else blob[:at] + token + blob[end:]
    return blob


@st.composite
def replaced(draw: st.DrawFn, sound: Any, dump: Dump) -> bytes:
    """The document with up to three values replaced, left out or moved elsewhere."""
    document = sound
    for _ in range(draw(st.integers(1, 3))):
        document = _replaced(draw, document)
    return dump(document)


def _replaced(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, list | dict) and value and draw(st.integers(0, 9)):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = keys[int(draw(places) * len(keys))]
        copy = value.copy()
        if draw(st.integers(0, 9)):
            copy[key] = _replaced(draw, value[key])
        else:
            del copy[key]
        return copy
    return draw(st.sampled_from(VALUES))
