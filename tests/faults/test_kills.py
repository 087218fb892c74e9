"""A crash costs a customer nothing: killed at any write, a score of 16 people under a budget of 1 is repeated whole and counted once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backend.data.demo import write_demo
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest

KILLS = int(os.environ.get("FAULT_KILLS", "10"))
PEOPLE = 16


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A home whose people are real, with a model, keys and secrets; and a sheet of people nobody has asked about."""
    folder = tmp_path_factory.mktemp("template")
    home = folder / "home"
    write_demo(home / "demo", rows=300)
    file = home / "demo" / "federation.toml"
    text = file.read_text()
    assert "synthetic = true" in text
    file.write_text(text.replace("synthetic = true", "synthetic = false"))
    with Glassleaf(home, pools=False) as glassleaf:
        glassleaf.federations.add(home / "demo")
        few = SecureBoostParameters(trees=3, depth=2, cipher="none")
        record = glassleaf.training.start(TrainingRequest("demo", few)).get()
        ids = glassleaf.models.test_ids(record)
        for cipher, person in (("rlwe", ids[-1]), ("paillier", ids[-2])):  # draws keys and secrets
            sheet = glassleaf.samples.of_person(record.id, person)
            glassleaf.scoring.start(ScoringRequest(record.id, sheet, cipher=cipher)).get()
    sheet = folder / "sheet.csv"
    sheet.write_text("\n".join([glassleaf.federations.get("demo").guest.id, *ids[:PEOPLE]]) + "\n")
    return home, sheet


@pytest.mark.faults
@pytest.mark.slow  # CI runs a seeded tenth with the slow tests
@pytest.mark.parametrize(("cipher", "groups"), [("rlwe", ()), ("paillier", ()), ("rlwe", (5,))])
def test_killed_at_any_write_a_score_is_repeated_whole_and_counted_once(cipher, groups, template, tmp_path):
    kills = max(1, KILLS // 2)
    home, sheet = template
    command = [
        sys.executable,
        Path(__file__).with_name("killed.py"),
        home,
        tmp_path,
        sheet,
        cipher,
        kills,
        20261122,
        *groups,
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["whole"] == 0 and (found["people"], found["failed"]) == (PEOPLE, 0)
    # a run may write less often than the first one did: what was acknowledged goes with whatever is counted next
    assert found["kills"] >= 0.5 * kills and found["writes"] > 10
    assert found["wrong"] == []
