"""A crash costs a measurement nothing: killed at any write it is repeated whole, and every person is counted once, under a budget of 1."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults.killed_measurements import KEY, KINDS
from release_rule import EVERY_SCORE

from backend.data.demo import write_demo
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest

KILLS = int(os.environ.get("FAULT_KILLS", "10"))


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A home whose people are real, with a model and secrets; and a later sheet of some of its test records."""
    folder = tmp_path_factory.mktemp("template")
    home, sheet = folder / "home", folder / "later.csv"
    write_demo(home / "demo", rows=1200)
    file = home / "demo" / "federation.toml"
    file.write_text(file.read_text().replace("synthetic = true", "synthetic = false"))
    with Glassleaf(home, key_floor=KEY, pools=False) as glassleaf:
        glassleaf.federations.add(home / "demo")
        few = SecureBoostParameters(trees=3, depth=2, cipher="none")
        record = glassleaf.training.start(TrainingRequest("demo", few, most_named=EVERY_SCORE)).get()
        test = list(glassleaf.models.test_ids(record))
        # draws keys and secrets, of dither too, so that scores are the same in every copy
        for cipher, person in (("rlwe", test[-1]), ("paillier", test[-2])):
            one = glassleaf.samples.of_person(record.id, person)
            glassleaf.scoring.start(ScoringRequest(record.id, one, cipher=cipher)).get()
        ids = set(test[:120])
        guest = glassleaf.federations.get("demo").guest
        lines = (home / "demo" / guest.file).read_text().splitlines()
        at = lines[0].split(",").index(guest.id)
        sheet.write_text("\n".join([lines[0], *(line for line in lines[1:] if line.split(",")[at] in ids)]) + "\n")
    return home, sheet


@pytest.mark.faults
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_any_write_a_measurement_is_repeated_whole_and_counted_once(kind, template, tmp_path):
    kills = max(1, KILLS // 2)
    home, sheet = template
    command = [
        sys.executable,
        Path(__file__).with_name("killed_measurements.py"),
        home,
        tmp_path,
        sheet,
        kind,
        kills,
        20261124,
    ]
    folders = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": folders, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["whole"] == 0, done.stderr[-2000:]
    assert found["wrong"] == [] and found["kills"] >= 0.5 * kills
