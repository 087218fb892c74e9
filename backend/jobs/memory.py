"""Memory that large work has freed goes back to the machine; glibc would keep it for what comes next."""

import ctypes
import gc
import sys
from contextlib import suppress

# a setting of glibc's mallopt
M_MMAP_THRESHOLD = -3
LARGE_BYTES = 1 << 19


def keep_no_large_blocks() -> None:
    """From now on a large block goes back to the machine when it is freed.

    By itself glibc moves the size from which it does to 32 MB, and keeps the holes that arrays of several threads leave: 100 MB of a
    long table, 30 of a training.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)


def give_back(*, collect: bool = True) -> None:
    """Return what is free to the machine wherever it lies in the heap, where the system's allocator can; a millisecond.

    Parameters
    ----------
    collect : bool
        Whether to look for garbage before; a tenth of a second.
    """
    if collect:
        gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    else:
        trim = None
    if trim is not None:
        trim(0)
