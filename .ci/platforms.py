"""Whether requirements.txt and the server install from wheels alone on every platform that is promised; asks the package index.

Where the index cannot be reached, a build machine (PLATFORMS=required) fails and anybody else is told that nothing was checked.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLATFORMS = {  # uv's name: what it is called here
    "x86_64-unknown-linux-gnu": "Linux",
    "aarch64-unknown-linux-gnu": "Linux on ARM",
    "aarch64-apple-darwin": "macOS on ARM",
    "x86_64-apple-darwin": "macOS on Intel",
    "x86_64-pc-windows-msvc": "Windows",
}
PYTHONS = ("3.11", "3.13")  # the oldest that is promised, and the newest that make looks for
MACOS = "14.0"  # the oldest that is promised
NO_SOLUTION = 1  # uv's exit status; others mean that it could not ask


def main() -> int:
    """Resolve for every platform; returns the exit status."""
    failed = 0
    for platform, name in PLATFORMS.items():
        for python in PYTHONS:
            done = resolve(platform, python)
            if done.returncode not in (0, NO_SOLUTION):
                return unreachable(done.stderr)
            if done.returncode:
                print(f"{name}, Python {python}: not installable from wheels.\n{done.stderr}", file=sys.stderr)
                failed += 1
    if not failed:
        print(
            f"requirements.txt and the extra [server]: wheels for {', '.join(PLATFORMS.values())}; Python {' and '.join(PYTHONS)}."
        )
    return failed


def resolve(platform: str, python: str) -> subprocess.CompletedProcess[str]:
    """Ask uv for a set of wheels that fits all requirements."""
    words = ["pip", "compile", "--only-binary", ":all:", "--python-platform", platform, "--python-version", python]
    return subprocess.run(
        [sys.executable, "-m", "uv", *words, "--no-header", "requirements.txt", "pyproject.toml", "--extra", "server"],
        cwd=ROOT,
        env=os.environ | {"MACOSX_DEPLOYMENT_TARGET": MACOS},
        capture_output=True,
        text=True,
        check=False,
    )


def unreachable(reason: str) -> int:
    """Say that nothing was checked; an error on a build machine alone."""
    print(f"Platforms were not checked: the package index did not answer.\n{reason.strip()}", file=sys.stderr)
    return 1 if os.environ.get("PLATFORMS") == "required" else 0


if __name__ == "__main__":
    sys.exit(main())
