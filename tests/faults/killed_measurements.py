"""Measures a model of real people again and again, killing the process at one of its writes; then repeats it and says what was left.

Runs as a process of its own, without threads, so that it can fork: every measurement is a child. Prints one JSON document.
"""

import json
import random
import shutil
import signal
import sqlite3
import sys
import traceback
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from backend.services import Glassleaf
from backend.services.alternatives import AlternativesRequest
from backend.services.explanation import MeansRequest
from backend.services.fairness import DisparityRequest, ProxyRequest
from backend.services.monitoring import MonitoringRequest
from backend.services.validation import ValidationRequest

KEY, PEOPLE, CUTOFF = 512, 200, 0.25
ASKED = {"cipher": "paillier", "key_bits": KEY}
NOT_COMPARED = {"measured", "again", "model", "sha256", "id", "created", "searched", "judged", "seconds"}


def disparity(glassleaf, model, sheet):
    """Of a Host's feature."""
    return glassleaf.fairness.start_disparity(DisparityRequest(model, "gender", cutoff=CUTOFF, **ASKED)).get()


def validate(glassleaf, model, sheet):
    """The tests by group."""
    done = glassleaf.validation.start(ValidationRequest(model, samples=PEOPLE, **ASKED)).get()
    assert not done.unexamined, done.unexamined
    of_groups = ("group_calibration", "weak_spots", "overfit_regions", "disparity")
    return [test for test in done.tests if test.id in of_groups]


def proxies_of_guest(glassleaf, model, sheet):
    """Marks are the Guest's."""
    return glassleaf.fairness.start_proxies(ProxyRequest(model, "home_ownership", **ASKED)).get()


def proxies_of_host(glassleaf, model, sheet):
    """Marks are a Host's, and the Guest's."""
    return glassleaf.fairness.start_proxies(ProxyRequest(model, "gender", **ASKED)).get()


def curve(glassleaf, model, sheet):
    """Of a Host's number."""
    return glassleaf.explanation.start_means(MeansRequest(model, "average_order", **ASKED)).get()


def alternatives(glassleaf, model, sheet):
    """Of a Host's attribute."""
    request = AlternativesRequest(model, "gender", depths=(1,), cutoffs=(CUTOFF,), tolerance=0.05, **ASKED)
    return glassleaf.alternatives.start(request).get().decisions


def monitor(glassleaf, model, sheet):
    """Of a later sheet: all figures."""
    later = glassleaf.monitoring.read(model, sheet)
    request = MonitoringRequest(model, later, feature="gender", cutoff=CUTOFF, **ASKED)
    done = glassleaf.monitoring.start(request).get()
    assert done.failed == 0 and len(done.unexamined) <= 1, done
    return done.tests


KINDS = {
    measure.__name__: measure
    for measure in (disparity, validate, proxies_of_guest, proxies_of_host, curve, alternatives, monitor)
}


def plainly(result):
    """Figures alone, without days and names of models."""
    if isinstance(result, dict):
        return {name: plainly(value) for name, value in result.items() if name not in NOT_COMPARED}
    if isinstance(result, list | tuple):
        return [plainly(value) for value in result]
    return plainly(asdict(result)) if hasattr(result, "__dataclass_fields__") else result


def child(home, sheet, kind, out, kill_at=0):
    """One measurement, as `killed.forked`."""
    from killed import Writes, forked  # noqa: PLC0415 (beside this script, where it is run as one)

    def measure():
        try:
            with Glassleaf(home, key_floor=KEY, pools=False) as glassleaf:
                model = glassleaf.models.get("latest").id
                writes = Writes(kill_at)
                found = KINDS[kind](glassleaf, model, sheet)
                count = writes.count
            out.write_text(json.dumps(plainly(found)))
        except BaseException:
            traceback.print_exc()
            return 1, 0
        return 0, count

    return forked(measure)


def counted(home):
    """The most that one Host has counted about one person, of any kind and structure."""
    most = 0
    for file in home.glob("parties/*/*/store.db"):
        with closing(sqlite3.connect(file)) as database:
            query = "select max(n) from (select sum(asked) as n from answers where kind <> 'table' group by subject, kind, structure)"
            most = max(most, database.execute(query).fetchone()[0] or 0)
    return most


def run(template, folder, sheet, kind, kills, seed):
    """What came of every kill."""
    whole, out = folder / "whole", folder / "whole.json"
    shutil.copytree(template, whole)
    status, writes = child(whole, sheet, kind, out)
    if status:
        return {"whole": status}
    wanted = json.loads(out.read_text())
    places = list(range(1, writes + 1))
    chosen = places if kills >= writes else sorted(random.Random(seed).sample(places, kills))
    wrong, killed_in_all = [], 0
    for place in chosen:
        home, out = folder / f"home{place}", folder / f"{place}.json"
        shutil.copytree(template, home)
        killed, _ = child(home, sheet, kind, out, place)
        killed_in_all += killed == signal.SIGKILL
        out.unlink(missing_ok=True)
        repeated, _ = child(home, sheet, kind, out)
        same = out.exists() and json.loads(out.read_text()) == wanted
        found = {"repeated": repeated == 0, "same": same, "counted_once": counted(home) == 1}
        if not all(found.values()):
            wrong.append({"write": place, **found})
        shutil.rmtree(home)
    return {"whole": 0, "writes": writes, "kills": killed_in_all, "wrong": wrong}


if __name__ == "__main__":
    template, folder, sheet = map(Path, sys.argv[1:4])
    print(json.dumps(run(template, folder, sheet, sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))))  # noqa: T201
