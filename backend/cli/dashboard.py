"""`run`: the dashboard opened, which prepares the demo; the dashboard is a process of its own, and nothing here imports it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from backend.cli.output import check_extra, check_port, open_glassleaf, say
from backend.i18n import Text

NEEDED = ("streamlit", "plotly")  # what the extra [dashboard] adds
MAIN = Path(__file__).resolve().parents[2] / "app" / "dashboard.py"
# A process with many threads otherwise keeps what each of them once needed, in an arena of its own.
ARENAS = {"MALLOC_ARENA_MAX": "2"}

OPEN_VARIABLE = (
    "GLASSLEAF_OPEN"  # page that a home without a model opens on; without a federation the demo is prepared meanwhile
)
Address = Annotated[str, typer.Option(help="Address to listen on; others than localhost open it to the network.")]
app = typer.Typer(add_completion=False)


@app.command()
def run(
    port: Annotated[int, typer.Option(help="Port of the dashboard.", min=1, max=65535)] = 8501,
    address: Address = "localhost",
) -> None:
    """Open the dashboard in the browser (needs Streamlit); a home without a federation gets the demo meanwhile."""
    check_installed()
    check_port(address, port)
    with open_glassleaf() as glassleaf:
        is_empty = not glassleaf.federations.others_than() and not glassleaf.models.all()
    if is_empty:
        os.environ[OPEN_VARIABLE] = "demonstration"
        say("The demo is prepared while the dashboard opens.")
    say(f"The dashboard opens on http://{address}:{port} (Ctrl-C ends it).")
    open_streamlit(MAIN, address, port)


def check_installed() -> None:
    """Raise GlassleafError if the dashboard's packages are not here."""
    check_extra(Text("The dashboard needs", "仪表板需要"), "dashboard", NEEDED)


def open_streamlit(script: Path, address: str, port: int) -> None:
    """Become Streamlit with a script of ours; raises as :func:`check_installed`."""
    check_installed()
    # -P: a folder that holds a streamlit.py or an app/ of its own is not searched.
    # The words are ours, but for an address that the user gives, and no shell reads them.
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(script)]
    command += ["--server.address", address, "--server.port", str(port), "--server.showEmailPrompt", "false"]
    for name, value in ARENAS.items():
        os.environ.setdefault(name, value)
    if sys.platform == "win32":  # exec would return to the shell at once there
        sys.exit(subprocess.call(command))  # noqa: S603
    os.execv(sys.executable, command)  # noqa: S606
