"""The limit of files and connections that a process may have open: raise it, and see whether it is nearly reached."""

from __future__ import annotations

import sys
from pathlib import Path

ENOUGH = 65_536
NEARLY = 0.9  # of the limit: what is left is needed to say so
_OPEN = Path("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")


def raise_limit() -> int:
    """Raise the process's limit towards :data:`ENOUGH`, as far as it may without being root; return the limit, 0 if there is none."""
    try:
        import resource  # noqa: PLC0415 - POSIX alone has it
    except ImportError:
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 0
    if hard == resource.RLIM_INFINITY:
        wanted = ENOUGH
    else:
        wanted = min(hard, ENOUGH)
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return soft


def nearly_all_open() -> bool:
    """Return whether the process can open few files more, so that strangers' connections may keep it from its work."""
    try:
        import resource  # noqa: PLC0415 (as above)

        count = sum(1 for _ in _OPEN.iterdir())
    except (ImportError, OSError):
        return False
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft != resource.RLIM_INFINITY and count > NEARLY * soft
