"""What the figures are measured on: this machine, the built-in demo, and the credit-card data where they lie beside the project."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gmpy2

from backend.data.credit_card import split_credit_card
from backend.services import Glassleaf

CREDIT_CARD = Path(__file__).resolve().parents[2] / "shared" / "data" / "uci_credit_card.csv"
ABSENT = "the credit-card data is not in ../shared/data; `python -m backend credit-card` fetches a copy of it"
REPEATS = 5  # medians are taken over this many runs


def machine() -> dict[str, Any]:
    """Cores, processor, versions, and how busy the machine was already."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in _lines(info) if line.startswith("model name")]
    return {
        "cores": os.cpu_count(),
        "cpu": names[0] if names else platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "gmpy2": gmpy2.version(),
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "date": datetime.now(UTC).date().isoformat(),
    }


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


@contextmanager
def fresh_home() -> Iterator[Path]:
    """A state folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="glassleaf-bench-") as folder:
        yield Path(folder)


def add_demo(glassleaf: Glassleaf) -> str:
    """The demo with its first model; returns the federation's name."""
    return glassleaf.prepare_demo()


def add_credit_card(glassleaf: Glassleaf) -> str | None:
    """The credit-card federation without a model; None where the data is absent."""
    if not CREDIT_CARD.exists():
        return None
    folder = glassleaf.home / "credit_card"
    split_credit_card(CREDIT_CARD, folder)
    return glassleaf.add_federation(folder).name


def say(text: str) -> None:
    """Tell how far a measurement is, beside its result."""
    print(text, file=sys.stderr, flush=True)


def run(
    description: str | None, measure: Callable[[], dict[str, Any]], describe: Callable[[dict[str, Any]], str]
) -> None:
    """Run a measurement from the command line and print it as text or as JSON."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print JSON")
    as_json = parser.parse_args().json
    found = {"machine": machine(), **measure()}
    print(json.dumps(found, indent=1) if as_json else describe(found))
