"""``streamlit`` for walks that need less of the dashboard: ``python -m tests.e2e.lighter no-pools,short-keys run …``.

Without pools nothing is prepared in the background; short keys encrypt in a fraction of the time. Both would take the walks' processors.
"""

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from streamlit.web import cli

from app import session
from backend.services import Glassleaf
from tests.short_keys import shorter_keys

if __name__ == "__main__":
    lighter = sys.argv.pop(1).split(",")
    if "no-pools" in lighter:
        session.Glassleaf = partial(Glassleaf, pools=False)  # type: ignore[assignment,misc]
    with shorter_keys() if "short-keys" in lighter else nullcontext():
        cli.main(prog_name="streamlit")
