"""What one act alone needs is not loaded with the services: it would make every command and the dashboard slow to start."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LATER = ("scipy.stats", "sklearn", "fpdf", "fontTools", "fairlearn", "xgboost", "lightgbm", "ray", "distributed")


def test_the_services_are_imported_without_what_one_act_alone_needs():
    code = f"import sys, backend.services; print([m for m in {LATER} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
