"""``streamlit`` for walks in which nothing is scored: no pools are filled, which would only take the walks' processors."""

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from streamlit.web import cli

from app import session
from backend.services import Glassleaf

session.Glassleaf = partial(Glassleaf, pools=False)  # type: ignore[assignment,misc]

if __name__ == "__main__":
    cli.main(prog_name="streamlit")
