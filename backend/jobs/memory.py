"""Memory that large work has freed goes back to the machine; glibc would keep it for what comes next."""

import ctypes
import gc
import sys


def give_back() -> None:
    """Collect garbage, and return what is free to the machine wherever it lies in the heap, where the system's allocator can."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
