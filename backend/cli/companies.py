"""`companies`: the demo's bank and Hosts as processes of their own, each in its own folder, on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.dashboard import ARENAS, OPEN_VARIABLE, check_installed
from backend.cli.dashboard import MAIN as DASHBOARD
from backend.cli.output import AsJson, check_link, print_result, say

if TYPE_CHECKING:
    from backend.services.companies import Companies

STOPPING = 60.0  # seconds: a Host ends open work, takes leave and closes
app = typer.Typer(add_completion=False)


@app.command()
def companies(
    out: Annotated[Path, typer.Option(help="Folder to write the companies' folders to; it must not be there yet.")],
    rows: Annotated[int, typer.Option(help="Applicants at the bank.", min=100, max=100_000)] = 6000,
    link: Annotated[int, typer.Option(help="Port at which the bank listens; 0 = a free one.", min=0, max=65535)] = 0,
    start: Annotated[bool, typer.Option("--start", help="Start the Hosts, their consoles and the dashboard.")] = False,
    port: Annotated[
        int, typer.Option(help="Port of the dashboard; the Hosts' consoles take the next ones.", min=1, max=65000)
    ] = 8501,
    as_json: AsJson = False,
) -> None:
    """Make a bank and two Hosts as companies of their own: folders, throw-away keys, an agreement that all signed (synthetic data)."""
    from backend.services import Glassleaf
    from backend.services.companies import make_companies

    check_link()
    if start:
        check_installed()
    folders = make_companies(out, rows, link)
    with Glassleaf(folders.home) as glassleaf:
        glassleaf.federations.add(folders.guest)
    document = {
        "guest": str(folders.guest),
        "hosts": {name: str(at) for name, at in folders.hosts.items()},
        "port": folders.port,
    }
    print_result(document, _in_words(folders), as_json)
    if start:
        _run(folders, port)


def _in_words(folders: Companies) -> list[str]:
    lines = [f"The bank's folder is {folders.guest}; it listens on port {folders.port}."]
    lines += [f"{name}: glassleaf host serve --config {at / 'host.toml'}" for name, at in folders.hosts.items()]
    return [*lines, f"bank: GLASSLEAF_HOME={folders.home} glassleaf train companies"]


def _run(folders: Companies, port: int) -> None:
    """Every party in processes of its own, until Ctrl-C or SIGTERM, or until one of them ends."""
    for which in (signal.SIGTERM, signal.SIGINT):  # a shell starts what is in its background without the second
        signal.signal(which, signal.default_int_handler)
    cli = [sys.executable, "-m", "glassleaf"]
    streamlit = [sys.executable, "-P", "-m", "streamlit", "run", str(DASHBOARD), "--server.address", "localhost"]
    streamlit += ["--server.port", str(port), "--server.showEmailPrompt", "false"]
    commands: dict[str, tuple[list[str], dict[str, str]]] = {}
    for number, (name, at) in enumerate(folders.hosts.items(), 1):
        commands[name] = [*cli, "host", "serve", "--config", str(at / "host.toml")], {}
        console = ["host", "run", "--folder", str(at), "--port", str(port + number)]
        commands[f"{name}'s console"] = [*cli, *console], {}
    commands["dashboard"] = streamlit, {"GLASSLEAF_HOME": str(folders.home), OPEN_VARIABLE: "demonstration"}
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, (command, more) in commands.items():
            # the words are ours, but for the folder, and no shell reads them
            running[name] = subprocess.Popen(command, env={**ARENAS, **os.environ, **more})  # noqa: S603
        say(f"The dashboard opens on http://localhost:{port}, the Hosts' consoles on the next ports (Ctrl-C ends all).")
        while all(process.poll() is None for process in running.values()):
            time.sleep(0.5)
        ended = next(name for name, process in running.items() if process.poll() is not None)
        say(f"{ended} has ended; the others are stopped.")
    except KeyboardInterrupt:
        say("Stopped.")
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            try:
                process.wait(timeout=STOPPING)
            except subprocess.TimeoutExpired:
                process.kill()
