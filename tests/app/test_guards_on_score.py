"""The Score page says that canaries were returned intact and how far dither moves a score."""

from dataclasses import replace

import pytest

from app.panels import result
from tests.app.conftest import Opened, job_of
from tests.app.reading_out import says


def scored(at):
    at.button(key="score_go").click().run()
    job_of("score").wait(60)
    return at.run()


@pytest.mark.slow
def test_a_score_under_paillier_says_that_its_canary_was_returned(opened: Opened) -> None:
    at = scored(opened("score"))
    assert not at.exception
    assert says(at, "score.canaries", n=1)
    assert not says(at, "score.dithered")  # synthetic people: no dither


def test_where_hosts_dither_the_page_says_how_far_scores_may_be_off(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = result.guarded
    monkeypatch.setattr(
        result, "guarded", lambda t, view, done: drawn(t, view, replace(done, dither=0.03125, canaries=0))
    )
    at = scored(opened("score"))
    assert not at.exception
    assert says(at, "score.dithered", width="0.031") and not says(at, "score.canaries", n=1)
