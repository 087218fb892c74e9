"""The limit of open files and connections of a process: raise it, and check whether it is nearly reached."""

from __future__ import annotations

import sys
from pathlib import Path

ENOUGH = 65_536
NEARLY = 0.9  # of the limit: the remaining files are needed to report it
_OPEN = Path("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")


def raise_limit() -> int:
    """Raise the process's limit to :data:`ENOUGH` or to its hard limit, and return it; 0 if there is no limit."""
    try:
        import resource  # noqa: PLC0415 - POSIX alone has it
    except ImportError:
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 0
    if hard == resource.RLIM_INFINITY:
        limit = ENOUGH
    else:
        limit = min(hard, ENOUGH)
    if limit > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = limit
    return soft


def nearly_all_open() -> bool:
    """Return whether the process can open only few more files, so that strangers' connections may keep it from its work."""
    try:
        import resource  # noqa: PLC0415 (as above)

        count = sum(1 for _ in _OPEN.iterdir())
    except (ImportError, OSError):
        return False
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft != resource.RLIM_INFINITY and count > NEARLY * soft
