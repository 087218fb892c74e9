"""Why this score: asked on the Score page, answered by names, with a notice only for the declined."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import ceil

import numpy as np
import pytest
from inside import runtime_of
from streamlit.testing.v1 import AppTest

from app import session
from app.panels import frame
from app.texts import Texts, bare, markdown, percent
from app.view_models import explained
from backend.i18n import Text
from backend.jobs import Job
from backend.reports.adverse_action_notice import Blocker
from backend.services import Glassleaf
from backend.services.reasons import Reason, ReasonsRequest
from backend.services.scoring import ScoringRequest
from backend.store.accountant import Accountant, Limits
from tests.app.conftest import Opened, World, forget_jobs, job_of, put_job
from tests.app.reading_out import says

T = Texts("en")


def finished(at: AppTest, job: str) -> AppTest:
    job_of(f"{job}").wait(120)
    return at.run()


@pytest.fixture(scope="module")
def found(glassleaf: Glassleaf, world: World) -> dict[str, object]:
    """A person's score and its reasons, as the page asks for them."""
    model, person = world.record.id, glassleaf.samples.table(world.record.id).index[0]
    sheet = glassleaf.samples.of_person(model, person)
    batch = glassleaf.scoring.start(ScoringRequest(model, sheet)).get()
    return {"score": batch, "reasons": glassleaf.reasons.start(ReasonsRequest(model, sheet, scored=batch)).get()}


@pytest.fixture
def explained_page(opened: Opened, found: dict[str, object]) -> AppTest:
    for name, result in found.items():
        put_job(name, Job(partial(_given, result), 1).start().wait(60))
    return opened("score")


def _given(result: object, job: Job[object]) -> object:
    return result


@pytest.mark.slow
def test_why_is_answered_by_names_with_meanings_and_says_who_learned_what(opened: Opened, world: World) -> None:
    at = finished(opened("score").button(key="score_go").click().run(), "score")
    at = finished(at.button(key="reasons_go").click().run(), "reasons")
    assert not at.exception
    found = job_of("reasons").result
    for reason in found.people[0].reasons:
        assert any(markdown(reason.feature) in text.value for text in at.markdown)
    assert says(at, "reasons.learned_guest") and says(at, "reasons.learned_host")


def test_reasons_are_asked_for_under_the_cipher_that_is_chosen(opened: Opened, world: World) -> None:
    at = opened("score")
    at.get_by_key("score_cipher").set_value("rlwe")
    at = finished(at.run().button(key="score_go").click().run(), "score")
    at = finished(at.button(key="reasons_go").click().run(), "reasons")
    found = job_of("reasons").result
    assert not at.exception and found.cipher == "rlwe"
    assert says(at, "reasons.cost", cipher=frame.cipher(Texts("en"), "rlwe", found.key_bits))


def decided_as(decision: str) -> None:
    """Have the person who was scored decided about so."""
    job = job_of("score")
    job.result = replace(job.result, scores=(replace(job.result.scores[0], decision=decision, band=decision),))


def test_the_policy_decides_whether_there_is_a_notice_and_a_what_if_does_not(explained_page: AppTest) -> None:
    at = explained_page
    decided_as("accept")
    at.slider(key="score_cutoff").set_value(1).run()
    assert says(at, "reasons.notice_accepted")
    decided_as("decline")
    at.slider(key="score_cutoff").set_value(99).run()
    assert not says(at, "reasons.notice_accepted") and not at.exception


def test_whom_a_person_is_compared_with_can_be_chosen_and_stands_beside_the_answer(opened: Opened) -> None:
    at = finished(opened("score").button(key="score_go").click().run(), "score")
    # too few records for more
    assert list(at.selectbox(key="reasons_against").options) == [T("compared.all"), T("compared.covers")]
    at.selectbox(key="reasons_against").set_value("covers").run()
    at = finished(at.button(key="reasons_go").click().run(), "reasons")
    job = job_of("reasons")
    assert job.result.against == "covers" and says(at, "compared.said_covers") and not at.exception
    job.result = replace(job.result, against="approved", compared=210, cutoff=0.31)
    at.run()  # the cut-off is another one now, so others would be only just approved
    assert T("compared.other_cutoff", cutoff=percent(0.31)) in [info.value for info in at.info]
    assert not says(at, "reasons.learned_guest")


def test_names_and_addresses_of_notices_are_filled_in_on_the_page_and_refused_in_words(explained_page: AppTest) -> None:
    at = explained_page
    assert at.text_input(key="notice_details_bank_phone").value == ""
    assert {"● Linden Bank", "■ Rowan Telecom", "◆ Hazel Market"} <= {tab.label for tab in at.tabs}
    at.text_input(key="notice_details_bank_phone").set_value("555-0100")
    next(b for b in at.button if b.label == T("notice_details.save")).click().run()
    assert not at.exception and any(s.value == T("notice_details.saved") for s in at.success)
    assert at.text_input(key="notice_details_bank_phone").value == "555-0100"
    at.get_by_key("notice_details_file").upload("notice.toml", b"[bank]\nfax = 'x'\n", "application/toml").run()
    at.button(key="notice_details_take").click().run()
    assert not at.exception and any("fax" in w.value for w in at.warning)


@pytest.mark.slow
def test_reasons_of_another_score_are_not_shown(explained_page: AppTest) -> None:
    at = explained_page
    found, batch = job_of("reasons").result, job_of("score").result
    assert explained(found, batch) is not None
    at.button(key="random_person").click().run()
    finished(at.button(key="score_go").click().run(), "score")
    other = job_of("score").result
    if other.scores[0].id != batch.scores[0].id:
        assert explained(found, other) is None
        assert not says(at, "reasons.learned_guest")


def test_a_prohibited_reason_is_shown_in_red_and_the_file_says_why_there_is_no_notice(
    explained_page: AppTest, world: World
) -> None:
    at = explained_page
    job = job_of("reasons")
    person = job.result.people[0]
    holder = next(host.name for host in world.federation.hosts if any(f.name == "gender" for f in host.features))
    barred = Reason(holder, "gender", "none", "up", (Blocker(Text("15 USC 1691(a)(1)"), "prohibited"),))
    job.result = replace(job.result, people=(replace(person, reasons=(barred,)),))
    decided_as("decline")
    at.run()
    assert not at.exception
    (error,) = at.error
    assert "15 USC 1691" in error.value and says(error.value, "reasons.blocker")
    assert says(at, "reasons.notice_blocked")


def test_one_press_asks_for_score_and_reasons_and_says_before_what_both_cost(opened: Opened, world: World) -> None:
    at = opened("score")
    assert says(at, "cost.both") and not at.button(key="score_go_why").disabled
    _as_the_privacy_page_says(at, world)
    at = finished(at.button(key="score_go_why").click().run(), "score")
    at = finished(at.run(), "reasons")
    found = job_of("reasons").result
    assert not at.exception and found.people[0].score.units == job_of("score").result.scores[0].units
    # another session finds the decision, and asks no second score for reasons
    forget_jobs(world.home)
    again = opened("score")
    assert not again.exception and says(again, "cost.same") and says(again, "policy.remembered")
    again = finished(again.button(key="reasons_go").click().run(), "reasons")
    assert job_of("reasons").result.decided


def test_hosts_that_answer_once_name_the_reasons_of_somebody_who_was_scored_before(
    opened: Opened, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = datetime.now(UTC).date() + timedelta(days=40)  # what other tests asked has left the accounts
    at = opened("score")
    for host in runtime_of(session.service())._simulated.hosts.values():
        monkeypatch.setattr(host.accountant, "limits", Limits(1))
        monkeypatch.setattr(host.accountant, "_today", lambda: later)
    at = finished(at.button(key="score_go").click().run(), "score")
    scored = job_of("score").result.scores[0]
    assert scored.status == "ok"
    forget_jobs(world.home)
    again = opened("score")
    again = finished(again.button(key="reasons_go").click().run(), "reasons")
    found = job_of("reasons").result.people[0]
    assert not again.exception and found.reasons
    assert (found.score.id, found.score.units) == (scored.id, scored.units)


def test_where_a_persons_budget_is_spent_nothing_can_be_asked(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    # patched: a budget that is spent at both Hosts, which takes as many scores as it has
    monkeypatch.setattr(Accountant, "reached", lambda _, question: np.ones(len(question.people), dtype=np.uint8))
    at = opened("score")
    assert says(at, "cost.spent")
    assert at.button(key="score_go").disabled and at.button(key="score_go_why").disabled


def _as_the_privacy_page_says(at: AppTest, world: World) -> None:
    """What a score and its reasons cost is never more than the page Privacy says of the same model."""
    leakage = session.service().leakage
    told = {host.host: host for host in leakage.given_away(world.record.id)}
    for cost in leakage.cost_of_answers(world.record.id):
        costs = told[cost.host].costs
        assert (cost.score, cost.reasons) == (costs["score"], costs["reasons"])
    most = T("privacy.bits", bits=bare(ceil(max(host.costs["reasons"] for host in told.values()))))
    assert any(most in caption.value for caption in at.caption)
