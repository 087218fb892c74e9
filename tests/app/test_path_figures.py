"""What scores tell of their paths is one sentence on every page of the demo: the Guest alone, and somebody who holds all records."""

import re
from pathlib import Path

import pytest

from app import session
from app.texts import percent
from backend.i18n import LANGUAGES
from backend.results import told_by_scores
from backend.services.leakage import MAX_IDENTIFYING
from tests.app.conftest import _fresh
from tests.app.reading_out import everything, prose

PAGES = ("overview", "compliance", "privacy")  # those of one model whose every view states what scores tell
PATH = {
    "en": re.compile(r"fits? one path|identif\w+ (its|the) path|tell the path"),
    "zh": re.compile("一条路径|识别出路径|的路径"),
}
SHARE = re.compile(r"(\d[\d.]*)\s?%")


DITHER = {"en": "dither", "zh": "扰动"}


def shown(share: float) -> float:
    """Return a share as a page shows it, percent."""
    return float(percent(share).removesuffix("%"))


@pytest.fixture(scope="module")
def demo(demo_home):
    home: Path = demo_home()
    yield home
    session._service(str(home)).close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_page_of_the_demo_says_the_opposite_of_another(
    demo: Path, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = session._service(str(demo)).models.get("latest")
    release = record.release
    sentence = told_by_scores(release, record.score_bits).sentence(language)
    shares = {shown(release.named), shown(MAX_IDENTIFYING)}
    for name in PAGES:
        at = _fresh(demo, monkeypatch)(name, lang=language)
        assert not at.exception
        assert sentence in everything(at).replace("\\'", "'")
        about_paths = [text for text in prose(at) if PATH[language].search(text)]
        for text in about_paths:
            without = {shown(release.without_dither)} if DITHER[language] in text else set()
            assert {float(share) for share in SHARE.findall(text)} <= shares | without
        if name == "overview":  # it opens on what the model is, not on a figure
            assert not [text for text in prose(at)[:3] if PATH[language].search(text)]
