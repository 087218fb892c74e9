"""What the figures are measured on: this machine, the built-in demo, and the credit-card data where it lies beside the project."""

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
from inspect import signature
from pathlib import Path
from typing import Any

import gmpy2

from backend.data.credit_card import split_credit_card
from backend.results import ModelRecord
from backend.services import Glassleaf
from backend.services.training import TrainingRequest

CREDIT_CARD = Path(__file__).resolve().parents[2] / "shared" / "data" / "uci_credit_card.csv"
ABSENT = "the credit-card data is not in ../shared/data; `glassleaf credit-card` fetches a copy of it"
REPEATS = 5  # medians are taken over this many runs


def machine() -> dict[str, Any]:
    """Cores, processor, versions, and how busy the machine was already."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cores": os.cpu_count(),
        "cpu": names[0] if names else platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "gmpy2": gmpy2.version(),
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "date": datetime.now(UTC).date().isoformat(),
    }


@contextmanager
def fresh_folder() -> Iterator[Path]:
    """A folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="glassleaf-bench-") as folder:
        yield Path(folder)


@contextmanager
def fresh_glassleaf(**options: Any) -> Iterator[Glassleaf]:
    """The service on an empty home, without pools; closed, and the home deleted, afterwards."""
    with fresh_folder() as home:
        glassleaf = Glassleaf(home, pools=False, **options)
        try:
            yield glassleaf
        finally:
            glassleaf.close()


def train(glassleaf: Glassleaf, federation: str, parameters: Any) -> ModelRecord:
    """One model; it is released however many scores would identify their paths."""
    return glassleaf.training.start(TrainingRequest(federation, parameters, most_named=1.0)).get()


def add_credit_card(glassleaf: Glassleaf) -> str | None:
    """The credit-card federation without a model; None if the data is absent."""
    if not CREDIT_CARD.exists():
        return None
    folder = glassleaf.home / "credit_card"
    split_credit_card(CREDIT_CARD, folder)
    return glassleaf.federations.add(folder).name


def progress(text: str) -> None:
    """Report how far a measurement is on standard error, so that standard output is the result alone."""
    print(text, file=sys.stderr, flush=True)


def run(
    description: str | None, measure: Callable[..., dict[str, Any]], describe: Callable[[dict[str, Any]], str]
) -> None:
    """Run a measurement from the command line and print it as text or as JSON; ``--quick`` where it has a parameter `quick`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print JSON")
    if "quick" in signature(measure).parameters:
        parser.add_argument("--quick", action="store_true", help="tiny settings, to see that everything runs")
    options = vars(parser.parse_args())
    as_json = options.pop("json")
    results = {"machine": machine(), **measure(**options)}
    print(json.dumps(results, indent=1) if as_json else describe(results))
