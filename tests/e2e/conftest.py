"""One browser of each worker for all tests that look at the dashboard, and the dashboard that most of them look at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from homes import copied_home, made_once
from light_group import light_group

from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.training import TrainingRequest
from tests.e2e.serving import CHROMIUM, FLAGS, served
from tests.release_rule import EVERY_SCORE


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    if not CHROMIUM.exists():
        pytest.skip(f"no browser: {CHROMIUM} is not installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install -r requirements-dev.txt")
    with sync_api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def address(demo_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The demo's model and a second one to compare it with; nobody scores, trains or decides anything there."""

    def make(draft: Path) -> None:
        copied_home(demo_template, draft)
        parameters = SecureBoostParameters(trees=3, depth=2, cipher="none")
        with light_group(), Glassleaf(draft, pools=False) as glassleaf:
            glassleaf.training.start(TrainingRequest("demo", parameters, most_named=EVERY_SCORE)).get()

    template = made_once(tmp_path_factory.getbasetemp(), "two-models-template", make)
    home = copied_home(template, tmp_path_factory.mktemp("two-models") / "home")
    with served(home, tmp_path_factory.mktemp("log") / "dashboard.log", pools=False) as url:
        yield url
