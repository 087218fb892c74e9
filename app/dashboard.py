"""The dashboard as it is served: Streamlit's own server, and pages that know where it is.

A browser that opens a page by its address otherwise looks for the server below that address first, and finds nothing there.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route
from streamlit import file_util

HERE = Path(__file__).resolve().parent
PAGES = HERE.parent / "pages"
# Streamlit's page reads this before it looks for the server: one step up from a page, also behind a proxy that serves it below a path.
KNOWN = '<script>window.__streamlit = {BACKEND_BASE_URL: new URL(".", window.location).href}</script>'


async def page(request: Request) -> HTMLResponse:
    """Return Streamlit's page for an address below the first one."""
    document = (Path(file_util.get_static_dir()) / "index.html").read_text(encoding="utf-8")
    return HTMLResponse(document.replace("<head>", f"<head>{KNOWN}", 1), headers={"Cache-Control": "no-cache"})


def prepare() -> None:
    """Load the panels and the rule packs' words, so that the first visitor does not wait for them."""
    if sys.path[0] != str(HERE.parent):
        sys.path.insert(0, str(HERE.parent))  # as app/main.py does
    for panel in sorted((HERE / "panels").glob("[a-z]*.py")):
        import_module(f"app.panels.{panel.stem}")
    import_module("backend.services.compliance").prepare()


@asynccontextmanager
async def served(app: st.App) -> AsyncIterator[None]:
    """Prepare while the server waits for its first visitor."""
    threading.Thread(target=prepare, name="prepare", daemon=True).start()
    yield


app = st.App(
    HERE / "main.py", lifespan=served, routes=[Route(f"/{file.stem}", page) for file in sorted(PAGES.glob("[a-z]*.py"))]
)
