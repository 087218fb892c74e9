"""Jobs outlive a page: another session of the same user finds them, another user does not, and every page says what runs."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app import session, user_jobs
from app.panels import tray
from app.panels.scoring import About
from app.texts import Texts, catalogue
from backend.jobs import Job
from backend.privacy.leakage import LeakPoint
from backend.services.job_registry import JobRegistry, JobStatus, Upload
from backend.services.scoring import ScoringRequest
from tests.app.conftest import PAGES, Answers, Opened, World, job_of, put_job, sign_in
from tests.app.reading_out import everything, says

T = Texts("en")


def waiting(go: threading.Event, stage: str = "encrypt") -> Job[Any]:
    def work(job: Job[Any]) -> None:
        job.at(stage, "", 3)
        while not go.wait(0.01):
            job.check()

    return Job(work, 10).start()


def links(at: AppTest) -> list[str]:
    """Labels of the lines of the tray."""
    kinds = tuple(f"**{T(f'jobs.kind_{kind}')}**" for kind in tray.PAGE_OF_KIND)
    return [link.proto.label for link in at.get("page_link") if link.proto.label.startswith(kinds)]


def line(kind: str, state: str) -> str:
    return f"**{T(f'jobs.kind_{kind}')}** · {state}"


def signed_in(monkeypatch: pytest.MonkeyPatch, who: str) -> None:
    sign_in(monkeypatch, sub=who)


def test_a_reload_another_tab_and_another_browser_find_the_running_job(opened: Opened, go: threading.Event) -> None:
    put_job("score", waiting(go))
    for _ in range(2):
        at = opened("score")
        assert not at.exception
        assert at.button(key="score_go").disabled and not at.button(key="cancel_score").disabled


def test_cancelling_in_one_tab_stops_the_job_of_the_other(opened: Opened, go: threading.Event) -> None:
    put_job("score", waiting(go))
    one, two = opened("score"), opened("score")
    two.button(key="cancel_score").click().run()
    job_of("score").wait(60)
    assert job_of("score").state == "cancelled" and says(one.run(), "stage.cancelled")


def test_every_other_page_says_what_runs_and_how_far_and_links_to_it(opened: Opened, go: threading.Event) -> None:
    put_job("train", waiting(go, "tree"))
    while not job_of("train").eta.share:
        time.sleep(0.01)
    at = opened("audit")
    assert not at.exception
    [shown] = links(at)
    assert shown.startswith(line("train", T("jobs.share", share="30.0\u00a0%")))
    assert not links(opened("train"))


def test_what_has_ended_is_said_until_its_page_was_looked_at(opened: Opened, go: threading.Event) -> None:
    go.set()
    put_job("train", waiting(go).wait(60))
    assert links(opened("audit")) == [line("train", T("jobs.done"))] == links(opened("report"))
    opened("train")
    assert links(opened("audit")) == []


def test_a_page_with_a_clock_of_its_own_has_no_second_one(opened: Opened, go: threading.Event) -> None:
    put_job("train", waiting(go, "tree"))
    put_job("score", waiting(go))
    while not job_of("train").eta.share:
        time.sleep(0.01)
    at = opened("score")
    assert links(at) == [line("train", T("jobs.drawn", share="30.0\u00a0%"))]


def test_nobody_sees_the_jobs_of_another_account(
    opened: Opened, go: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed_in(monkeypatch, "ana")
    user_jobs.start("score", lambda: waiting(go), upload=Upload("secret.csv", b"id"))
    assert user_jobs.find("score") is not None and user_jobs.upload("score") is not None
    assert opened("score").button(key="cancel_score") is not None
    assert links(opened("audit"))
    signed_in(monkeypatch, "ben")
    assert user_jobs.find("score") is user_jobs.upload("score") is None and user_jobs.known() == ()
    with pytest.raises(KeyError):
        opened("score").button(key="cancel_score")
    assert links(opened("audit")) == []


def test_two_accounts_of_one_name_are_two_users(monkeypatch: pytest.MonkeyPatch, opened: Opened) -> None:
    users = []
    for sub in "12":
        sign_in(monkeypatch, sub=sub, name="Kim")
        users.append(user_jobs._own()._user)
    assert len(set(users)) == 2 and "" not in users


def test_an_account_keeps_its_jobs_under_another_name_and_address(
    monkeypatch: pytest.MonkeyPatch, opened: Opened
) -> None:
    sign_in(monkeypatch, name="Kim", email="kim@example.org")
    user = user_jobs._own()._user
    sign_in(monkeypatch, name="Kim Li", email="kim.li@example.org")
    assert user_jobs._own()._user == user


def test_an_upload_is_there_again_while_its_scoring_runs_and_forgotten_afterwards(
    opened: Opened, world: World, go: threading.Event
) -> None:
    sheet = session.service().samples.template(world.record.id)
    session.service().jobs.of("").start("people", lambda: waiting(go), upload=Upload("people.csv", sheet))
    at = opened("people")
    assert not at.exception and says(at, "jobs.upload", name="people.csv")
    go.set()
    job_of("people").wait(60)
    assert not says(opened("people"), "jobs.upload", name="people.csv")


def restarted(opened: Opened, begin: Callable[[JobRegistry], object], page: str) -> AppTest:
    """The page after a process that did `begin` has gone."""
    registry = JobRegistry(session.service()._shared.workspace)
    begin(registry)
    registry.close()
    return opened(page)


def test_after_a_restart_an_interrupted_scoring_says_that_nothing_was_counted_twice(
    opened: Opened, go: threading.Event
) -> None:
    at = restarted(opened, lambda jobs: jobs.of("").start("score", lambda: waiting(go)), "score")
    [status] = [job for job in user_jobs.known() if not job.seen]
    words = {"kind": T("jobs.kind_score"), "started": tray._when(status.started)}
    assert says(at, "jobs.interrupted_score_note", **words)
    at.button(key="jobs_read_score").click().run()
    assert not says(at, "jobs.interrupted_score_note", **words)


def test_after_a_restart_a_trained_model_is_one_press_away(opened: Opened, world: World) -> None:
    done = Job(lambda job: world.record, 1).start().wait(60)
    at = restarted(opened, lambda jobs: jobs.of("").start("train", lambda: done), "train")
    [status] = [job for job in user_jobs.known() if not job.seen]
    assert status.result == world.record.id
    assert says(at, "jobs.kept_note", kind=T("jobs.kind_train"), started=tray._when(status.started))


def test_after_a_restart_scores_wait_in_the_journal_and_are_not_counted_again(opened: Opened, world: World) -> None:
    service = session.service()
    sheet = service.samples.of_person(world.record.id, session.samples(world.record.id).index[0])
    request = ScoringRequest(world.record.id, sheet, hold=True)
    made = service.scoring.start(request)
    at = restarted(opened, lambda jobs: jobs.of("").start("score", lambda: made.wait(60)), "score")
    assert made.result is not None
    [status] = [job for job in user_jobs.known() if not job.seen]
    assert status.waits and status.result == made.result.run
    assert says(at, "jobs.waits_note", kind=T("jobs.kind_score"), started=tray._when(status.started))
    again = service.scoring.start(request).wait(60)
    assert again.result is not None and again.result.run == made.result.run
    assert again.result.scores == made.result.scores
    assert (made.result.recalled, again.result.recalled) == (0, 1)
    service.scoring.handed_over(again.result)
    [status] = [job for job in user_jobs.known() if not job.seen]
    assert not status.waits


def test_after_a_restart_a_leak_run_is_drawn_again(opened: Opened, world: World) -> None:
    points = (LeakPoint(16, 100, 2000, 0.5, 3.0, 2.0, 0.625, 1.0),)
    done = Job(lambda job: points, 1).start().wait(60)
    name = f"leak:{world.record.id}"
    at = restarted(opened, lambda jobs: jobs.of("").start(name, lambda: done), "privacy")
    [status] = [job for job in user_jobs.known() if not job.seen]
    assert not at.exception and says(at, "jobs.kept_note", kind=T("jobs.kind_leak"), started=tray._when(status.started))
    assert job_of(name).result == points and not says(at, "privacy.widths_hint")


def test_every_kind_of_work_has_a_page_and_a_name() -> None:
    kinds = {key.removeprefix("jobs.kind_") for key in catalogue("en") if key.startswith("jobs.kind_")}
    assert kinds == set(tray.PAGE_OF_KIND) and set(tray.PAGE_OF_KIND.values()) <= set(PAGES)


def test_what_compares_two_models_is_at_home_on_the_page_of_either() -> None:
    job = JobStatus("difference:m1~m2", "m1~m2", "running", None, "", "", "", False)
    assert [tray._of(job, "compare_models", model) for model in ("m1", "m2", "m3")] == [True, True, False]
    assert not tray._of(job, "score", "m1")


def test_a_started_job_is_shown_in_the_same_draw_in_place_of_the_last_result(
    opened: Opened, go: threading.Event, answers: Answers
) -> None:
    at = opened("train")
    put_job("train", Job(lambda job: job.cancel() or job.check(), 1).start().wait(60))
    at.run()
    assert says(at, "train.cancelled")
    answers["training.start"] = lambda request: waiting(go, "start")
    at.button(key="train_go").click().run()
    assert not says(at, "train.cancelled") and T("stage.start") in everything(at)


def test_what_a_button_started_comes_into_view_and_what_was_found_running_does_not(
    opened: Opened, go: threading.Event, answers: Answers
) -> None:
    def shown(at: AppTest) -> bool:
        return any('"key": "working_protocols"' in element.proto.body for element in at.get("html"))

    put_job("protocols", Job(lambda job: go.wait(60) and job.check(), 1).start())
    at = opened("protocols")
    assert not at.exception and T("stage.cancel") in everything(at) and not shown(at)
    job_of("protocols").cancel()
    go.set()
    job_of("protocols").wait(60)
    later = threading.Event()
    answers["protocol_comparison.start"] = lambda request: waiting(later, "pools")
    at.run()
    assert shown(at.button(key="protocols_go").click().run())
    assert not shown(at.run())
    later.set()


def aged(job: Job[Any], seconds: float) -> Job[Any]:
    """The job as if it had begun so much earlier."""
    job._began -= seconds
    return job


def told_to_another_tab(at: AppTest) -> list[str]:
    """What is written into the title of a tab that nobody looks at."""
    return [element.proto.body for element in at.get("html") if "glassleaf-ended" in element.proto.body]


@pytest.mark.parametrize(
    ("seconds", "page", "words"), [(0.0, "attack_lab", 0), (4.0, "attack_lab", 1), (4.0, "audit", 1)]
)
def test_the_title_of_a_tab_that_nobody_looks_at_says_once_that_a_job_has_ended(
    opened: Opened, go: threading.Event, seconds: float, page: str, words: int
) -> None:
    put_job("attacks", aged(waiting(go, "start"), seconds))
    at = opened(page)
    assert not told_to_another_tab(at)
    go.set()
    job_of("attacks").wait(60)
    told = told_to_another_tab(at.run())
    title = T("jobs.tab_done", kind=T("jobs.kind_attacks"))
    assert [json.dumps(title) in one for one in told] == [True] * words
    assert not at.toast and not told_to_another_tab(at.run()) and not at.exception


def test_the_end_of_a_long_job_is_told_once_on_whatever_page_with_a_way_to_the_result(
    opened: Opened, go: threading.Event, world: World
) -> None:
    name = f"leak:{world.record.id}"
    put_job(name, aged(waiting(go, "leak_count"), 21.0))
    at = opened("audit")
    assert not at.toast
    go.set()
    job_of(name).wait(60)
    at.run()
    [told] = at.toast
    assert not at.exception and T("jobs.kind_leak") in told.value
    assert f"privacy?model={world.record.id}" in told.value or f"model={world.record.id}" in told.value
    assert len(at.run().toast) == 0
    assert links(at) == [line("leak", T("jobs.done"))]


def test_a_short_job_one_that_was_stopped_one_on_its_own_page_and_one_beside_a_presentation_are_not_told(
    opened: Opened, go: threading.Event
) -> None:
    put_job("train", waiting(go, "tree"))
    at = opened("audit")
    go.set()
    job_of("train").wait(60)
    assert not at.run().toast
    for page, link, stop in (("train", {}, False), ("audit", {}, True), ("demonstration", {"step": "ask"}, False)):
        wait = threading.Event()
        put_job("train", aged(waiting(wait, "tree"), 30.0))
        at = opened(page, **link)
        if stop:
            job_of("train").cancel()
        wait.set()
        job_of("train").wait(60)
        assert not at.run().toast


def test_whoever_did_not_see_it_run_is_told_by_the_line_alone(opened: Opened, go: threading.Event) -> None:
    go.set()
    put_job("train", aged(waiting(go, "tree"), 30.0).wait(60))
    at = opened("audit")
    assert not at.toast and links(at) == [line("train", T("jobs.done"))]


def test_a_page_with_a_clock_of_its_own_tells_it_too(opened: Opened, go: threading.Event) -> None:
    other = threading.Event()
    put_job("train", aged(waiting(other, "tree"), 30.0))
    put_job("score", waiting(go))
    at = opened("score")
    other.set()
    job_of("train").wait(60)
    assert len(at.run().toast) == 1 and not at.exception


def test_a_job_that_another_of_its_name_replaced_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Following it would draw the page again and again, for as long as its process is taken to be alive."""
    ended = JobStatus("score", "m1", "done", None, "2026-01-02T00:00:00+00:00", "", "", False)
    replaced = replace(ended, state="elsewhere", started="2026-01-01T00:00:00+00:00", seen=True)
    monkeypatch.setattr(tray.user_jobs, "ticking", lambda: False)
    monkeypatch.setattr(tray.user_jobs, "known", lambda: (ended, replaced))
    monkeypatch.setattr(tray.user_jobs, "note_clock", lambda: pytest.fail("a clock was started"))
    tray.follow(Texts("en"), tray.Places(st.empty(), st.empty()), {"score"})


def test_after_a_reload_the_cipher_line_is_that_of_the_scoring_at_work(opened: Opened, go: threading.Event) -> None:
    assert opened("score").get_by_key("score_cipher").value == "suited"
    session.service().jobs.of("").start("score", lambda: waiting(go), about=About("rlwe", 3072))
    at = opened("score")
    assert not at.exception and at.get_by_key("score_cipher").value == "rlwe"
    assert any(f"**{T('engine.name_rlwe')}**" in caption.value for caption in at.caption)
