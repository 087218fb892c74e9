"""The dashboard as a process of its own, and the browser that looks at it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NAVIGATION = ".st-key-navigation"  # the links in the sidebar
OPEN = """name => [...document.querySelectorAll("[data-testid=stSidebar] a")]
    .find(link => new URL(link.href).pathname === (name === "overview" ? "/" : "/" + name)
        || new URL(link.href).pathname === "/" + name).click()"""
SETTLED = """() => document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning"
    && document.querySelector("h1") && !document.querySelector("[data-testid=stSkeleton], [data-stale=true]")"""
PATIENCE = 240_000  # ms, for a busy machine
PICTURES = os.environ.get("GLASSLEAF_SCREENSHOTS") == "1"
IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 250_000  # of one picture in the repository
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def picture(page: Any, name: str) -> None:
    """Keep a picture of a page for the documents, where ``GLASSLEAF_SCREENSHOTS=1`` asks for it."""
    if not PICTURES:
        return
    page.wait_for_function(SETTLED)  # no button or chart is still a grey shape
    IMAGES.mkdir(parents=True, exist_ok=True)
    file = IMAGES / f"{name}.png"
    page.screenshot(path=str(file))
    assert file.stat().st_size <= MOST_BYTES, f"{file.name} is {file.stat().st_size:,} bytes, at most {MOST_BYTES:,}"


def troubles(page: Any) -> list[str]:
    """What the browser has to complain about, as it happens: errors, failed requests, requests to other machines."""
    found: list[str] = []

    def note(what: str, url: str, text: str = "") -> None:
        # A page that is left breaks off its connection, and what it was reading from its own memory.
        broken_off = "/_stcore/" in url or (url.startswith("blob:") and text == "net::ERR_ABORTED")
        if what != "failed" or not broken_off:
            found.append(f"{what}: {url} {text}")

    page.on("console", lambda said: note("console", said.location["url"], said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: note("script", "", str(error)))
    page.on("response", lambda answer: note(str(answer.status), answer.url) if answer.status >= 400 else None)
    page.on("request", lambda asked: note("stranger", asked.url) if leaves(asked.url) else None)
    page.on("requestfailed", lambda asked: note("failed", asked.url, str(asked.failure)))
    return found


def leaves(url: str) -> bool:
    return not url.startswith(("http://localhost:", "ws://localhost:", "data:", "blob:"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_up(url: str, server: subprocess.Popen[bytes], seconds: float = 180) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if server.poll() is not None:
            raise RuntimeError(f"the dashboard stopped with code {server.returncode} before it answered")
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2):  # noqa: S310 - our own server
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.2)
    raise RuntimeError(f"the dashboard did not answer at {url} within {seconds:.0f} s")


@contextmanager
def served(
    home: Path,
    log: Path,
    port: int = 0,
    secrets: Path | None = None,
    *,
    pools: bool = True,
    short_keys: bool = False,
    app: str = "app/dashboard.py",
) -> Iterator[str]:
    """Serve the dashboard, or another `app`, on a free port, or `port`, with its state in `home`; yields its address.

    `secrets` hold how to sign in. Without `pools` nothing is prepared in the background; with `short_keys` what is encrypted
    takes a fraction of the time, but for pictures, whose figures are those of real keys.
    """
    port = port or free_port()
    url = f"http://localhost:{port}"
    lighter = ["no-pools"] if not pools else []
    lighter += ["short-keys"] if short_keys and not PICTURES else []
    streamlit = ["tests.e2e.lighter", ",".join(lighter)] if lighter else ["streamlit"]
    command = [sys.executable, "-m", *streamlit, "run", app, "--server.port", str(port)]
    command += [
        "--server.fileWatcherType",
        "none",
        "--runner.postScriptGC",
        "false",
    ]  # as app/.streamlit/config.toml has it
    command += ["--secrets.files", str(secrets)] if secrets else []
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*command, "--server.headless", "true"],
            cwd=ROOT,
            env={**os.environ, "GLASSLEAF_HOST" if app == "app/host.py" else "GLASSLEAF_HOME": str(home)},
            stdout=out,
            stderr=out,
        )
        try:
            wait_until_up(url, server)
            yield url
        finally:
            server.terminate()
            server.wait(60)
