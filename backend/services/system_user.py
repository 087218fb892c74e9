"""Who runs this process."""

from __future__ import annotations

import getpass


def system_user() -> str:
    """Return the name that the operating system knows this process's user by; ``unknown`` if it has none."""
    try:
        return getpass.getuser()
    except OSError:
        return "unknown"
