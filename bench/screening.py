"""A screening of the credit card clients, both parties in this process: seconds, seconds of a core, and memory at its peak."""

from __future__ import annotations

import resource
import time
from typing import Any

from backend.services.screening import ScreeningRequest
from bench.setting import ABSENT, add_credit_card, fresh_glassleaf, progress, run

QUICK_RECORDS = 1_000


def measure(quick: bool = False) -> dict[str, Any]:
    """Screen all records, or few, by all 23 features."""
    with fresh_glassleaf() as glassleaf:
        name = add_credit_card(glassleaf)
        if name is None:
            return {"skipped": ABSENT}
        request = ScreeningRequest(name, records=QUICK_RECORDS if quick else None)
        progress("screening: every feature")
        processor = time.process_time()
        began = time.perf_counter()
        done = glassleaf.screening.start(request).get()
        return {
            "records": done.records,
            "features": len(done.features) + len(done.left_out),
            "seconds": time.perf_counter() - began,
            "processor_seconds": time.process_time() - processor,
            "mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def describe(found: dict[str, Any]) -> str:
    """Return the figures as a sentence."""
    if "skipped" in found:
        return f"Skipped: {found['skipped']}"
    return (
        f"{found['records']:,} records × {found['features']} features in {found['seconds']:.1f} s, "
        f"{found['processor_seconds']:.1f} s of a core, {found['mebibytes']:,.0f} MiB at most; "
        f"{found['machine']['cores']} cores, load before {found['machine']['load_before']}"
    )


if __name__ == "__main__":
    run(__doc__, measure, describe)
