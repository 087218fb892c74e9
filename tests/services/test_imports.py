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


def test_the_first_step_of_the_demonstration_is_drawn_before_a_protocol_is_loaded():
    """It is what a new user looks at first, and it shows the companies alone."""
    code = "import app.panels.demonstration, app.panels.frame, app.panels.tray, app.session, app.user_jobs, sys\n"
    code += (
        "print([m for m in ('backend.protocols.guest', 'backend.services.reasons', 'sqlalchemy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
