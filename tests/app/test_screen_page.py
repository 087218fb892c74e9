"""The Screen page: what it costs before it is pressed, bars by feature afterwards, and a table of the same figures."""

from pathlib import Path

import pytest

from app.texts import Texts, number
from backend.i18n import LANGUAGES
from tests.app.conftest import Opened, _fresh, job_of
from tests.app.reading_out import everything, says

T = Texts("en")


@pytest.fixture
def opened(home: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    return _fresh(home, monkeypatch)


def test_features_are_screened_after_their_price_was_shown(opened: Opened) -> None:
    at = opened("screen")
    assert not at.exception
    assert says(at, "screen.none") and says(at, "screen.no_time")
    prices = [one.value for one in at.markdown if "bits**" in one.value]
    assert len(prices) == 2, "one a Host"
    at.button(key="screen_go").click().run()
    done = job_of("screen").wait(180).result
    assert done is not None
    at = at.run()
    assert not at.exception
    best = done.features[0]
    words = everything(at)
    assert f"{best.iv:.3f}" in words
    for one in done.features:
        assert f"{one.iv:.3f}" in words
        # What a feature adds stands beside what chance alone would show.
        assert one.added is None or number(one.added) in words
        assert one.added_chance is None or number(one.added_chance) in words
    assert {one.party for one in done.features} == {"bank", "telecom", "platform"}
    assert says(at, "screen.bands", n=done.bands) or done.bands == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_last_screening_is_there_when_the_page_is_opened_again(opened: Opened, language: str) -> None:
    at = opened("screen", lang=language)
    assert not at.exception
    assert at.title[0].value == Texts(language)("screen.title")
    assert not says(at, "screen.none")
