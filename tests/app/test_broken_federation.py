"""A federation whose file nothing can load is broken alone: shell, server and pages go on with the others, and name it."""

import asyncio
import json

import httpx
import pytest

from backend.data.demo import write_demo
from backend.data.federation import write_federation
from backend.server.app import Settings, create_app
from backend.services import Glassleaf
from tests.app.conftest import _fresh
from tests.app.reading_out import everything

FILES = {
    "a_key_of_many_parts": b"a" + b".a" * 40_000 + b" = 1\n",
    "a_long_number": b"name = 0x" + b"f" * 80_000,
    "deep_brackets": b"name = " + b"[" * 80_000,
    "no_text": b"\xff\xfe\x00",
}


@pytest.fixture(scope="module")
def damaged(home):
    """The home with four more federations, of which none can be loaded."""
    with Glassleaf(home, pools=False) as glassleaf:
        glassleaf.lifecycle.open_demo("demo")
        for name, data in FILES.items():
            other = write_demo(home / name, rows=100)
            write_federation(other.model_copy(update={"name": name}), home / name)
            glassleaf.federations.add(home / name)
            (home / name / "federation.toml").write_bytes(data)
    return home


NAMES = set(FILES)


def test_the_shell_lists_and_scores_the_other_federations(damaged, run, tmp_path):
    status, out, _ = run("federations", "--json")
    document = json.loads(out)
    assert status == 1 and set(document["broken"]) == NAMES
    assert [one["name"] for one in document["federations"]] == ["demo"]
    status, out, error = run("models", "--json")
    (model,) = json.loads(out)
    assert status == 0 and all(name in error for name in NAMES)
    with Glassleaf(damaged, pools=False) as glassleaf:
        person = glassleaf.models.test_ids(glassleaf.models.all()[0])[0]
    (tmp_path / "people.csv").write_text(f"id\n{person}\n", encoding="utf-8")
    status, out, _ = run("score", model["id"], tmp_path / "people.csv", "--cipher", "none", "--json")
    assert status == 0 and [one["status"] for one in json.loads(out)["scores"]] == ["ok"]


def test_the_server_goes_on(damaged):
    async def ask():
        with Glassleaf(damaged, pools=False) as glassleaf:
            app = create_app(glassleaf, Settings(cipher="none", open_to_all=True))
            async with app.router.lifespan_context(app):
                transport = httpx.ASGITransport(app=app)
                async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                    model = glassleaf.models.all()[0].id
                    person = glassleaf.models.test_ids(glassleaf.models.all()[0])[0]
                    body = {"people": [{"id": person}]}
                    headers = {"Idempotency-Key": "k1"}
                    return await client.post(f"/v1/models/{model}/scores", json=body, headers=headers)

    answer = asyncio.run(ask())
    assert answer.status_code == 200, answer.text
    assert [one["status"] for one in answer.json()["scores"]] == ["ok"]


def test_a_page_names_each_and_shows_the_other(damaged, monkeypatch):
    at = _fresh(damaged, monkeypatch)("overview")
    text = everything(at).replace("\\", "")
    assert not at.exception and all(name in text for name in NAMES)
    assert len(text) < 300_000
