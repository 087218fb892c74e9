"""A worker process of the Guest's forest service: knows its trees' leaf weights, reads and writes bytes on a pipe, and nothing else.

It stands alone so that a new process is up within half a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray

HEAD = 4  # bytes: samples in a batch
READY = b"r"
UNMET = b"u"


def serve(pipe: Connection, units: Sequence[NDArray[np.int64]]) -> None:
    """Candidate leaves of its trees in, their values out, until the pipe is closed.

    Parameters
    ----------
    pipe : Connection
        Takes the number of samples ``n`` and ``(n, leaves)`` bits; gives ``(n, trees, k)`` little-endian int64, or UNMET where the
        candidates of a tree are not one leaf.
    units : sequence of ndarray of int64
        Per tree ``(leaves, k)``: leaf weights, left to right.
    """
    ends = [0, *np.cumsum([len(tree) for tree in units]).tolist()]
    pipe.send_bytes(READY)
    while True:
        try:
            blob = pipe.recv_bytes()
        except EOFError:
            return
        n = int.from_bytes(blob[:HEAD], "big")
        bits = np.unpackbits(np.frombuffer(blob[HEAD:], np.uint8), count=n * ends[-1]).reshape(n, ends[-1])
        out = np.empty((n, len(units), units[0].shape[1]), dtype="<i8")
        met = True
        for t, tree in enumerate(units):
            here = bits[:, ends[t] : ends[t + 1]]
            met &= bool((here.sum(axis=1) == 1).all())
            out[:, t] = tree[here.argmax(axis=1)]
        pipe.send_bytes(out.tobytes() if met else UNMET)
