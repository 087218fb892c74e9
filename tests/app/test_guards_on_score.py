"""The Score page says that canaries came back and how far cover moves a score."""

from dataclasses import replace

import pytest

from app.panels import result
from app.texts import Texts
from tests.app.conftest import Opened
from tests.app.reading_out import everything

T = Texts("en")


def scored(at):
    at.button(key="score_go").click().run()
    at.session_state["job:score"].wait(60)
    return at.run()


def test_a_score_under_paillier_says_that_its_canary_came_back(opened: Opened) -> None:
    at = scored(opened("score"))
    assert not at.exception
    assert T("score.canaries", n=1) in everything(at)
    assert "cover" not in " ".join(caption.value for caption in at.caption)  # the people are made up: no dither


def test_where_hosts_dither_the_page_says_how_far_scores_may_be_off(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = result.draw
    monkeypatch.setattr(
        result, "draw", lambda t, view, done, csv: drawn(t, view, replace(done, dither=0.03125, canaries=0), csv)
    )
    at = scored(opened("score"))
    assert not at.exception
    captions = " ".join(caption.value for caption in at.caption)
    assert "±0.031" in captions and T("score.canaries", n=1) not in captions
