"""A small federation whose Hosts' numbers can be told from all others, one model on it, and the app on top."""

from __future__ import annotations

import functools
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pandas as pd
import pytest
from answering import Answering
from light_group import light_group
from light_obfuscators import light_obfuscators
from short_keys import shorter_keys
from streamlit import config, user_info
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test, local_script_runner

from app import session
from app.panels import frame
from backend.data.demo import write_demo
from backend.data.dictionary import Kind
from backend.data.federation import Federation
from backend.jobs import Job
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.channel import Session
from backend.results import ModelRecord
from backend.services import Glassleaf
from backend.services.roles import ROLES
from backend.services.training import TrainingRequest

ROOT = Path(__file__).resolve().parents[2]
OFFSET = 771_300_000  # added to every number of a Host, so that none of them can turn up by chance, not even as bytes
# of the navigation; beside them stand help and what an unknown address shows
PAGES = (
    "overview",
    "demonstration",
    "features",
    "structure",
    "importance",
    "model_card",
    "compliance",
    "validation",
    "compare_models",
    "score",
    "people",
    "decide",
    "protocols",
    "own_data",
    "screen",
    "train",
    "report",
    "audit",
    "privacy",
    "attack_lab",
    "host",
)
OF_A_MODEL = tuple(page for page in PAGES if page not in ("attack_lab", "own_data"))


Opened = Callable[..., AppTest]
Rendered = Callable[..., AppTest]
Answers = dict[str, Callable[..., object]]


@dataclass(frozen=True)
class World:
    home: Path
    federation: Federation
    record: ModelRecord
    fresh: Path  # the same home as it was before the first test


def offset_host_numbers(federation: Federation) -> None:
    for host in federation.hosts:
        file = federation.folder / host.file
        table = pd.read_csv(file, dtype=str)
        for feature in host.features:
            if feature.kind is Kind.NUMERIC:
                table[feature.name] = pd.to_numeric(table[feature.name]) + OFFSET
        table.to_csv(file, index=False)


def _until_it_ends(runner: local_script_runner.LocalScriptRunner, timeout: float = 60) -> None:
    """Streamlit's own looks every millisecond whether a page has ended, which takes the time that the page needs."""
    assert runner._script_thread is not None
    runner._script_thread.join(timeout)
    if runner._script_thread.is_alive():
        runner.request_stop()
        runner.join()
        raise RuntimeError(f"The page did not end within {timeout} seconds.")


@pytest.fixture(scope="session", autouse=True)
def light_pages() -> Iterator[None]:
    """What Streamlit does again for each run of a test's page, and a server once.

    It looks through every installed package and for secrets, compiles pages, notes how it is used, collects garbage, and makes a mock of
    its server.
    """
    with pytest.MonkeyPatch.context() as patch:
        scan, compiled, server = manifest_scanner.scan_component_manifests, ScriptCache(), MagicMock(spec=Runtime)
        patch.setattr(manifest_scanner, "scan_component_manifests", functools.cache(scan))
        for module in (app_test, local_script_runner):
            patch.setattr(module, "ScriptCache", lambda: compiled)
        patch.setattr(app_test, "MagicMock", lambda spec: server)
        patch.setattr(local_script_runner, "require_widgets_deltas", _until_it_ends)
        patch.setattr(user_info, "get_secrets_auth_section", functools.cache(user_info.get_secrets_auth_section))
        config.set_option("runner.postScriptGC", False)
        config.set_option("browser.gatherUsageStats", False)
        yield


@pytest.fixture(scope="session", autouse=True)
def _boxes_open() -> Iterator[None]:
    """Boxes stand open, for tests read what is in them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame, "BOXES_OPEN", True)
        yield


@pytest.fixture(scope="module", autouse=True)
def _short_keys() -> Iterator[None]:
    """Long ones would take most of the time of every page that encrypts."""
    with shorter_keys(), light_group(), light_obfuscators():
        yield


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    home = tmp_path_factory.mktemp("home")
    write_demo(home / "demo", rows=500)
    glassleaf = Glassleaf(home, pools=False)
    federation = glassleaf.federations.add(home / "demo")
    offset_host_numbers(federation)
    grown = glassleaf.training.start(
        TrainingRequest("demo", SecureBoostParameters(trees=6, depth=3, cipher="none"))
    ).wait(120)
    assert grown.result is not None, grown.error
    record = grown.result
    glassleaf.close()
    fresh = tmp_path_factory.mktemp("fresh") / "home"
    shutil.copytree(home, fresh)
    return World(home, federation, record, fresh)


@pytest.fixture(scope="module")
def home(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home of one file's own: what is decided, measured or trained there is on nobody else's pages, nor theirs on its."""
    copy = tmp_path_factory.mktemp("own") / "home"
    shutil.copytree(world.fresh, copy)
    yield copy
    session._service(str(copy)).close()


@pytest.fixture(scope="module")
def glassleaf(world: World) -> Iterator[Glassleaf]:
    """The service on the home that all files share."""
    service = Glassleaf(world.home, pools=False)
    yield service
    service.close()


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """What is put in here, the pages get instead of the service's own answer."""
    real, given = session.service, {}
    monkeypatch.setattr(session, "service", lambda: Answering(real(), given))
    return given


@pytest.fixture(scope="session", autouse=True)
def _no_pools() -> Iterator[None]:
    """Services of the pages prepare nothing in the background: it would only take the tests' cores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "Glassleaf", partial(Glassleaf, pools=False))
        yield


def job_of(name: str) -> Job[Any]:
    """The job of whoever does not sign in, in the home that the pages use."""
    found = session.service().jobs.of("").find(name)
    assert found is not None
    return found


def sign_in(monkeypatch: pytest.MonkeyPatch, *, held: tuple[str, ...] = ROLES, **claims: object) -> None:
    """From now on `claims`, of somebody who has just signed in, are the browser's; a claim holds the roles' own names."""
    now = time.time()
    times = {"exp": now + 3600, "auth_time": now}
    given = {"is_logged_in": True, "iss": "https://id.example", "sub": "rita", "groups": list(held), **times}
    monkeypatch.setattr(session.st, "user", given | claims)
    monkeypatch.setattr("app.panels.sign_in.st.login", lambda: None)
    monkeypatch.setattr("app.panels.sign_in.st.logout", lambda: None)
    monkeypatch.setenv("GLASSLEAF_SIGN_IN", str(Path(__file__).with_name("sign-in.toml")))


def put_job(name: str, job: Job[Any]) -> None:
    session.service().jobs.of("").start(name, lambda: job)


def forget_jobs(home: Path) -> None:
    """The next test's pages find no job, neither held nor in the log, which each page reads."""
    registry = session._service(str(home)).jobs
    jobs, log = registry.of(""), registry.log()
    for name in {status.name for status in jobs.all()}:
        job = jobs.find(name)
        runs = job is not None and job.state == "running"
        jobs.forget(name)
        if job is not None and runs:
            job.wait(60)  # else the next test finds how it ended
    for logged in log.of(""):
        log.forget(logged.id)


def _fresh(home: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    monkeypatch.setenv("GLASSLEAF_HOME", str(home))

    def open_page(page: str = "overview", **links: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=60)
        for name, value in links.items():
            at.query_params[name] = value
        return at.switch_page(f"../pages/{page}.py").run()  # found by its name, which is its address too

    return open_page


@pytest.fixture
def opened(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    yield _fresh(world.home, monkeypatch)
    forget_jobs(world.home)


@pytest.fixture(scope="session")
def rendered(world: World) -> Rendered:
    """Each page as it opens in a language, drawn once for all tests that only look at it; it may ask no Host, which could be silent."""

    @functools.cache
    def render(page: str, language: str = "en") -> AppTest:
        with pytest.MonkeyPatch.context() as patch:
            # patched: whatever is asked of a Host, here or at another company, begins with a conversation
            patch.setattr("backend.protocols.guest_runtime.Session", _conversation)
            at = _fresh(world.home, patch)(page, lang=language)
        forget_jobs(world.home)
        return at

    return render


def _conversation(*given: Any) -> Session:
    """A conversation with Hosts, which work in the background may have; a page that had one would wait for them."""
    assert get_script_run_ctx(suppress_warning=True) is None, "A page asks a Host while it is drawn."
    return Session(*given)


@pytest.fixture
def go() -> Iterator[threading.Event]:
    """What a job of a test waits for."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def opened_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    yield _fresh(tmp_path, monkeypatch)
    session.service().close()


@pytest.fixture(scope="session", autouse=True)
def close_the_service(_no_pools: None, world: World) -> Iterator[None]:
    yield
    session._service(str(world.home)).close()
    session._service.clear()


@pytest.fixture(scope="module", autouse=True)
def _shared_home_keeps_its_one_model(world: World) -> Iterator[None]:
    """A file that leaves a model in the home that all files share changes what the next file's pages open on."""
    yield
    assert [record.id for record in session._service(str(world.home)).models.all()] == [world.record.id]


@pytest.fixture(autouse=True)
def _main_module_stays() -> Iterator[None]:
    """A page that is run in a test puts itself in place of the main module, and processes started later would run it again."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
