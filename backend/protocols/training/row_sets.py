"""Sets of joint records on the wire, as compact as possible (Yao et al. §4.1.1). Knows indices of records, nothing about them.

The paper writes a set as JSON (vanilla), as one bit a record (bit encoding) or as the run lengths of zeros between its records
(extreme-bit encoding), the last where less than 15 % of the records are in it. Here run lengths are Rice-coded: ``gap >> k`` in unary
and the ``k`` low bits as they are, with the shortest ``k``. With k = 0 that is the bit encoding, so the two break even at a
sampling rate of (3 - √5)/2 = 38 %, where bits and Rice codes with k = 1 cost the same; a set of more than half of the records is
written as its complement. The shorter of the two is sent, by actual size and not by rate.

A bitmap has the same length for every set; with gaps an eavesdropper learns from lengths roughly how many records are in a set.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from backend.errors import SecurityError

Flags = NDArray[np.bool_]
FLIPPED = 0x80  # the complement of the set is written
LOW_BITS = 0x1F  # k; 0 = one bit a record
COUNT = struct.Struct("<I")
HEAD = 1 + COUNT.size


def pack_rows(flags: Flags) -> bytes:
    """``(n,)`` flags → the shorter of bits and gaps; a first byte says which."""
    bits = as_bits(flags)
    gaps = as_gaps(flags)
    return gaps if len(gaps) < len(bits) else bits


def unpack_rows(blob: bytes, n: int) -> Flags:
    """Inverse of :func:`pack_rows`.

    Parameters
    ----------
    n : int
        Records in all; ``(n,)`` flags are returned.

    Raises
    ------
    SecurityError
        The bytes are longer than one bit a record, of no known form, or name a record beyond the last.
    """
    if not 1 <= len(blob) <= 1 + (n + 7) // 8:
        raise SecurityError("row_set_size", records=n, most=1 + (n + 7) // 8, bytes=len(blob))
    k = blob[0] & LOW_BITS
    if blob[0] & ~(FLIPPED | LOW_BITS) or (blob[0] and not k) or k > n.bit_length():
        raise SecurityError("row_set_form", form=f"{blob[0]:#04x}")
    if not k:
        return _bits(blob[1:], n)
    flags = np.zeros(n, dtype=bool)
    flags[_indices(blob, n, k)] = True
    return ~flags if blob[0] & FLIPPED else flags


def as_bits(flags: Flags) -> bytes:
    """Bit encoding: 1 + ⌈n/8⌉ bytes."""
    return b"\x00" + np.packbits(flags).tobytes()


def as_gaps(flags: Flags) -> bytes:
    """Extreme-bit encoding: form, number of records, all unary parts, all low bits; near n·H(p)/8 bytes at sampling rate p."""
    flipped = 2 * int(np.count_nonzero(flags)) > len(flags)
    indices = np.flatnonzero(~flags if flipped else flags)
    gaps = np.diff(indices, prepend=-1) - 1
    k = _low_bits(gaps)
    unary = np.zeros(int((gaps >> k).sum()) + len(gaps), dtype=bool)
    unary[np.cumsum((gaps >> k) + 1) - 1] = True
    low = (gaps[:, None] >> np.arange(k)) & 1
    form = k | (FLIPPED if flipped else 0)
    return bytes([form]) + COUNT.pack(len(gaps)) + np.packbits(unary).tobytes() + np.packbits(low != 0).tobytes()


def _low_bits(gaps: NDArray[np.intp]) -> int:
    """The k ≥ 1 with the shortest code; the best of three around log₂ of the mean gap."""
    if not len(gaps):
        return 1
    near = int(gaps.mean()).bit_length()
    return min(range(max(1, near - 1), near + 2), key=lambda k: int((gaps >> k).sum()) + k * len(gaps))


def _bits(blob: bytes, n: int) -> Flags:
    """Exactly `n` bits; what fills the last byte must be zero."""
    bits = np.unpackbits(np.frombuffer(blob, dtype=np.uint8)).astype(bool)
    if len(blob) != (n + 7) // 8 or bits[n:].any():
        raise SecurityError("row_set_bitmap", expected=n, bytes=len(blob))
    return bits[:n]


def _indices(blob: bytes, n: int, k: int) -> NDArray[np.intp]:
    """Read gaps; every index is new and below `n`."""
    if len(blob) >= HEAD:
        count = COUNT.unpack_from(blob, 1)[0]
    else:
        count = n + 1
    low_bytes = (count * k + 7) // 8
    split = len(blob) - low_bytes
    if count > n or split < HEAD:
        raise SecurityError("row_set_too_short", bytes=len(blob))
    ends = np.flatnonzero(np.unpackbits(np.frombuffer(blob[HEAD:split], dtype=np.uint8)))
    if len(ends) != count or split - HEAD != ((int(ends[-1]) + 8) // 8 if count else 0):
        raise SecurityError("row_set_count", expected=count, got=len(ends))
    low = _bits(blob[split:], count * k).reshape(count, k) @ (1 << np.arange(k))
    indices = np.cumsum(((np.diff(ends, prepend=-1) - 1) << k) + low + 1) - 1
    if count and indices[-1] >= n:
        raise SecurityError("row_set_beyond", records=n, record=int(indices[-1]))
    return indices
