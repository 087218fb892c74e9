"""The scripts of examples/ run from a clone's folder, and print what their texts promise."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SAYS = {
    "train_and_score": ["AUC 0.", "A100062: probability 0.", "decline"],
    "import_and_explain": ["same scores as scikit-learn on 5000 records", "late_payments_12m"],
    "host_handler": ["HeldCount(conversation='first', count=80)", "6.66 bits", "refused: This is counted among 50"],
    "rule_pack": ["dogs_owned: house_pets, prohibited"],
    "cipher": ["encrypted [75, 310, 310], plain [75, 310, 310]"],
}


def test_every_script_is_known_here():
    assert {file.stem for file in (ROOT / "examples").glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_a_script_prints_what_its_text_promises(name):
    command = [sys.executable, "-m", f"examples.{name}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    for words in SAYS[name]:
        assert words in done.stdout
    if name == "rule_pack":
        assert "dog_food" not in done.stdout, "an exclusion of the pack cancels its phrase"
