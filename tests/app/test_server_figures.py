"""What Streamlit tells of itself over HTTP, which asks nobody to sign in, is empty once a page was drawn."""

import asyncio
from types import SimpleNamespace

import httpx
import pytest
import streamlit as st
from starlette.applications import Starlette
from streamlit.runtime import Runtime
from streamlit.runtime.caching import get_data_cache_stats_provider
from streamlit.runtime.stats import StatsManager
from streamlit.web.server.starlette.starlette_routes import create_metrics_routes

from app import server_figures


@st.cache_data
def _of_a_person(number):
    return [number]


@pytest.fixture
def server(monkeypatch):
    _of_a_person(1)
    figures = StatsManager()
    figures.register_provider(get_data_cache_stats_provider())
    runtime = SimpleNamespace(stats_mgr=figures)
    monkeypatch.setattr(Runtime, "exists", classmethod(lambda cls: True))
    monkeypatch.setattr(Runtime, "instance", classmethod(lambda cls: runtime))
    app = Starlette(routes=create_metrics_routes(runtime, ""))

    async def ask(address):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(address)

    return lambda address: asyncio.run(ask(address))


def test_no_figures_of_the_server_are_told_to_whoever_asks(server):
    assert "_of_a_person" in server("/_stcore/metrics").text
    server_figures.hide.clear()
    server_figures.hide()
    for address in ("/_stcore/metrics", "/_stcore/metrics?families=cache_memory_bytes"):
        told = server(address)
        assert told.status_code == 200 and "person" not in told.text and "TYPE" not in told.text
