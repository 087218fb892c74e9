"""Privacy–utility trade-off on the credit-card data, by resolution and dither; and how fast the leak meter is.

An operator's view: the population count is a joint audit, which no party could make alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from scipy.linalg.blas import daxpy, zaxpy

from backend.crypto.plain import PlainKeySide
from backend.privacy.leakage import BLOCK, LeakMeter
from backend.protocols.scoring.dither import DITHER
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.workspace import Workspace
from bench.floors import each
from bench.setting import ABSENT, add_credit_card, fresh_glassleaf, progress, run, train
from bench.tables import privacy as describe

PARAMETERS = SecureBoostParameters(cipher="none")
PEOPLE = 1000
METER_TREES = 100
METER_BITS = (10, 16)
METER_PEOPLE = 5

T = TypeVar("T")


def measure() -> dict[str, Any]:
    """The frontier of a model of default parameters, and the meter on one of a hundred trees."""
    with fresh_glassleaf() as glassleaf:
        name = add_credit_card(glassleaf)
        skipped = {"skipped": ABSENT} if name is None else {}
        name = name or glassleaf.training.prepare_demo()
        progress(name)
        record = train(glassleaf, name, PARAMETERS)
        points = [asdict(point) for point in glassleaf.leakage.start_tradeoff(record.id, PEOPLE).get()]
        return skipped | {
            "federation": name,
            "trees": record.n_trees,
            "depth": record.depth,
            "default": {"score_bits": record.score_bits, "dither": DITHER},
            "points": points,
            "meter": _meter(glassleaf, name),
        }


def _meter(glassleaf: Glassleaf, name: str) -> list[dict[str, Any]]:
    """Seconds of processor time a score of the exact meter and of its bound, how far that is above, and the floor of counting."""
    progress(f"{METER_TREES} trees")
    record = train(glassleaf, name, replace(PARAMETERS, trees=METER_TREES))
    model = glassleaf.models.guest_model(record.id)
    rows = []
    workspace = Workspace(glassleaf.home, pools=False)
    runtime = workspace.runtime(name)
    own = runtime.table.take(np.arange(METER_PEOPLE))
    for bits in METER_BITS:
        at = replace(model, score_bits=bits)
        session = runtime.open_session(record.hosts, counted=False)
        units = runtime.guest.score(record.id, CompiledGuest(at), own, PlainKeySide(), session).units
        session.close()
        meter = LeakMeter(at)
        seconds, readings = _timed(partial(meter.read, own.columns, units))
        bound_seconds, bounds = _timed(partial(meter.bound, own.columns, units))
        over = [bound.disclosed_bits - reading.disclosed_bits for bound, reading in zip(bounds, readings, strict=True)]
        if min(over) < 0:
            raise ArithmeticError(f"The bound lies below the reading by {-min(over):g} bits.")
        rows.append(
            {
                "trees": record.n_trees,
                "bits": bits,
                "seconds": seconds / METER_PEOPLE,
                "bound_seconds": bound_seconds / METER_PEOPLE,
                "bound_excess": max(over),
                "floor_seconds": _additions() * sum(bound.additions for bound in bounds) / METER_PEOPLE,
            }
        )
    workspace.close()
    return rows


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds of processor time, and what was found; the second time, so that nothing is imported in it."""
    work()
    began = time.thread_time()
    found = work()
    return time.thread_time() - began, found


def _additions() -> float:
    """Seconds of one addition of a count and of a complex share, in a core's cache."""
    counts = np.ones(BLOCK)
    shares = np.ones(BLOCK, dtype=np.complex128)
    more = counts.copy()
    other = shares.copy()

    def both() -> None:
        daxpy(counts, more, a=1.0)
        zaxpy(shares, other, a=1.0)

    return each(both) / BLOCK


if __name__ == "__main__":
    run(__doc__, measure, describe)
