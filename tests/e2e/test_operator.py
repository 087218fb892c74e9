"""What a Host's operator reads before deciding stands on its console in both languages, with Deny beside Approve."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.texts import Texts
from backend.services.companies import make_companies
from backend.services.host_operator import own_host
from backend.services.request_facts import COLUMNS, GIVE_AWAY, NARROW, WHAT_FOR, WHO
from backend.store.approvals import Approval
from backend.trees.serialization import load_host, structure_hash
from tests.e2e.serving import PATIENCE, ROOT, SETTLED, served

FACTS = (WHO, WHAT_FOR, COLUMNS, GIVE_AWAY, NARROW)
SIZES = {"wide": (1440, 900), "phone": (390, 844)}

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def telecom(demo_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Host at its own company, with an agreement; the demo's model is asked about, and a training."""
    folder = make_companies(tmp_path_factory.mktemp("companies") / "three", rows=200).hosts["telecom"]
    with closing(own_host(demo_template / "parties" / "demo" / "telecom", "ana")) as demo:
        model_id = next(iter(demo._store.model_ids()))
        artefact = demo._store.artefact(model_id)
    model = load_host(artefact)
    about = {
        "trees": len(model.skeletons),
        "own_trees": len({tree for tree, _ in model.rules}),
        "own_splits": len(model.rules),
        "rows": 7,
        "capacity": model.capacity,
        "hosts": list(model.hosts),
        "named": 0.006,
        "most_named": 0.05,
        "alone": 0.12,
        "groups": 31,
        "records": 190,
    }
    terms = {
        "algorithm": "secureboost",
        "trees": 20,
        "depth": 3,
        "bins": 32,
        "exclude": [],
        "hide_order": False,
        "epsilon": 0.0,
        "rows": 190,
        "most_named": 1.0,
    }
    # An exception that somebody allowed when a model was brought along.
    brought = about | {"imported": True, "named": 0.4, "most_named": 0.5}
    with closing(own_host(folder, "ana")) as operator:
        operator._store.put_artefact(model_id, artefact)
        asks = (
            Approval(guest="bank", purpose="scoring", subject=structure_hash(model), name=model_id, about=about),
            Approval(guest="bank", purpose="training", subject="t" * 64, name="secureboost", about=terms),
            Approval(guest="bank", purpose="scoring", subject="i" * 64, name="m1mported00", about=brought),
        )
        for asked in asks:
            operator._approvals.ask(asked)
    return folder


@pytest.fixture(scope="module")
def console(telecom: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(telecom, tmp_path_factory.mktemp("log") / "console.log", app="app/host.py", pools=False) as address:
        yield address


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_operator_reads_the_five_things_before_deciding(
    browser, console: str, telecom: Path, language: str, size: str
) -> None:
    width, height = SIZES[size]
    t = Texts(language)
    context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(f"{console}/?lang={language}")
    page.wait_for_function(SETTLED)

    with closing(own_host(telecom, "ana")) as operator:
        requests = operator.requests(waiting=True)
    assert len(requests) == 3
    exceptions = {"secureboost": "100 %", "m1mported00": "50 %"}
    for request in requests:
        number = request.approval.number
        card = page.locator(f".st-key-own_request_{number}")
        words = " ".join(card.inner_text().split())
        for label in FACTS:
            if label != GIVE_AWAY or request.approval.purpose == "scoring":
                assert label.in_language(language) in words
        for fact in request.facts:
            value = fact.value
            sentence = value.sentence(language) if hasattr(value, "sentence") else value.in_language(language)
            assert " ".join(sentence.split()) in words
        if request.approval.name in exceptions:
            code = "request_most_named" if request.approval.purpose == "training" else "request_named"
            said = next(one for one in request.facts if getattr(one.value, "code", "") == code).value
            assert said.values["bound"] == exceptions[request.approval.name]
            assert " ".join(said.sentence(language).split()) in words
        assert "Linden Bank" in words and "Credit scores of applicants" in words  # the titles, not the short names

        # Deny has the weight of Approve: the same size, colour and height on the page.
        approve = page.locator(f".st-key-own_{number}_approve button")
        deny = page.locator(f".st-key-own_{number}_deny_open button").first
        assert approve.evaluate(LOOK) == deny.evaluate(LOOK)
        if size == "wide":
            assert abs(approve.bounding_box()["y"] - deny.bounding_box()["y"]) < 2
    assert t("host.approve") != t("host.deny")
    context.close()


LOOK = """button => [button.offsetWidth, button.offsetHeight, getComputedStyle(button).backgroundColor,
    getComputedStyle(button).color, getComputedStyle(button).fontWeight]"""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_shell_shows_the_same_facts_in_the_same_words(telecom: Path, language: str) -> None:
    with closing(own_host(telecom, "ana")) as operator:
        requests = operator.requests(waiting=True)
    for request in requests:
        number = str(request.approval.number)
        command = [sys.executable, "-m", "glassleaf", "host", "show", number, "--folder", str(telecom)]
        environment = {**os.environ, "GLASSLEAF_LANGUAGE": language}
        shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT).stdout
        for fact in request.facts:
            value = fact.value
            sentence = value.sentence(language) if hasattr(value, "sentence") else value.in_language(language)
            assert f"{fact.label.in_language(language)}: {sentence}" in shown
