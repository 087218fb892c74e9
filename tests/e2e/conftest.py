"""One browser for all tests that look at the dashboard."""

from collections.abc import Iterator

import pytest

from tests.e2e.serving import CHROMIUM, FLAGS


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    if not CHROMIUM.exists():
        pytest.skip(f"no browser: {CHROMIUM} is not installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install -r requirements-dev.txt")
    with sync_api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield opened
        opened.close()
