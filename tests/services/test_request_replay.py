"""The auditor's round through the services: requests are kept, opened and forgotten; a key or weights that
are not the Guest's show.
"""

from functools import partial

import pytest
from inside import runtime_of, workspace_of
from release_rule import EVERY_SCORE
from sqlalchemy import text

from backend.data.table import SampleSheet
from backend.protocols.simulation import simulator
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.fairness import DisparityRequest
from backend.services.reasons import CohortRequest, ReasonsRequest
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest
from backend.store.accountant import GROUPS, REASONS
from backend.store.request_log import RequestLog


@pytest.fixture
def glassleaf(demo_home, monkeypatch):
    monkeypatch.setattr(simulator, "RequestLog", partial(RequestLog, rate=1.0))
    opened = Glassleaf(demo_home(), key_floor=512, pools=False)
    yield opened
    opened.close()


def scored(glassleaf, people=3, counted=True):
    record = glassleaf.models.get("latest")
    table = runtime_of(glassleaf).table.take(range(people))
    sheet = SampleSheet(table.ids, table, {}, {}, ())
    return glassleaf.scoring.start(ScoringRequest(record.id, sheet, key_bits=512), counted=counted).get()


def test_requests_of_an_honest_guest_are_opened_and_then_forgotten(glassleaf):
    scored(glassleaf, counted=False)
    assert glassleaf.audit.replay("demo") == ()
    batch = scored(glassleaf)
    assert batch.canaries == 3
    [found] = glassleaf.audit.replay("demo")
    assert found.found.rows == 3 and found.found.problems == () and found.model_id == batch.model_id
    assert glassleaf.audit.replay("demo") == ()
    logged = [entry for entry in glassleaf.audit.entries("demo") if entry.action == "replay"]
    assert [(e.body["rows"], e.body["problems"]) for e in logged] == [(0, 0), (3, 0), (0, 0)]


def test_a_question_about_groups_which_is_of_no_model_stays_in_the_log_and_stops_no_replay(glassleaf):
    record = glassleaf.models.get("latest")
    glassleaf.fairness.start(DisparityRequest(record.id, "gender", key_bits=512)).get()
    scored(glassleaf, people=1)
    [found] = glassleaf.audit.replay("demo")
    assert (found.model_id, found.found.rows, found.found.problems) == (record.id, 1, ())
    here = runtime_of(glassleaf)
    logs = [here.operator.logged(host)[0] for host in here.hosts]
    assert (GROUPS, "") in {(row.kind, row.model_id) for log in logs for row in log.rows()}


@pytest.mark.slow
def test_an_imported_and_a_trained_half_are_both_registered(glassleaf):
    record = glassleaf.training.start(
        TrainingRequest("demo", SecureBoostParameters(trees=2, depth=2, cipher="none"), most_named=EVERY_SCORE)
    ).get()
    _, registered = runtime_of(glassleaf).operator.logged(record.hosts[0])
    told = registered(record.id)
    assert told.guest_hash == record.content_hash and told.layout.score_bits == record.score_bits


def test_a_request_under_a_key_that_the_guest_does_not_have_is_told(glassleaf):
    scored(glassleaf, people=1)
    here = runtime_of(glassleaf)
    log = here.operator.logged(here.hosts[0])[0]
    [row] = log.rows()
    other = (int.from_bytes(row.public_key, "big") + 2).to_bytes(64, "big")
    log.forget([row.number])
    log.note(row.model_id, (row.subject,), other, [row.vector])
    [found] = glassleaf.audit.replay("demo")
    assert "a key that this Guest does not have" in found.found.problems[0][1]
    assert len(glassleaf.audit.replay("demo")) == 1  # what is wrong stays in the log


@pytest.mark.slow
def test_terms_of_reasons_are_sampled_opened_and_forgotten_like_scores(glassleaf):
    record = glassleaf.models.get("latest")
    sheet = glassleaf.samples.of_person(record.id, runtime_of(glassleaf).table.ids[0])
    request = ReasonsRequest(record.id, sheet, names=2, cipher="paillier", key_bits=1024)
    assert not glassleaf.reasons.start(request).get().people[0].problem
    [found] = glassleaf.audit.replay("demo")
    assert found.found.rows == 2 and found.found.problems == ()  # the score and the terms
    assert glassleaf.audit.replay("demo") == ()


@pytest.mark.slow
def test_terms_that_the_guest_can_state_no_values_for_stay_in_the_log(glassleaf):
    record = glassleaf.models.get("latest")
    sheet = glassleaf.samples.of_person(record.id, runtime_of(glassleaf).table.ids[0])
    glassleaf.reasons.start(ReasonsRequest(record.id, sheet, names=2, cipher="paillier", key_bits=1024)).get()
    with workspace_of(glassleaf).database("demo").write() as session:
        session.execute(text("delete from stated"))
    [found] = glassleaf.audit.replay("demo")
    assert len(found.found.problems) == 1 and len(glassleaf.audit.replay("demo")) == 1


@pytest.mark.slow
def test_terms_of_a_group_are_opened_too_and_those_of_nobody_here_are_not_sampled(glassleaf):
    record, here = glassleaf.models.get("latest"), runtime_of(glassleaf)
    glassleaf.reasons.start_cohort(CohortRequest(record.id, samples=60, cipher="paillier", key_bits=512)).get()
    logs = [here.operator.logged(host)[0] for host in here.hosts]
    sampled = {row.subject for log in logs for row in log.rows() if row.kind == REASONS}
    known = {i for host in here._simulated.hosts.values() for i in host._gate.table.ids}
    assert 50 <= len(sampled) <= 60 and sampled <= known
    [found] = glassleaf.audit.replay("demo")
    assert found.found.rows == len(sampled) and found.found.problems == ()


def test_the_same_sheet_scored_several_times_at_once_gets_its_scores_each_time(glassleaf):
    record = glassleaf.models.get("latest")
    sheet = glassleaf.samples.of_person(record.id, runtime_of(glassleaf).table.ids[0])
    jobs = [glassleaf.scoring.start(ScoringRequest(record.id, sheet, key_bits=512)) for _ in range(4)]
    scores = {job.get().scores[0].units for job in jobs}
    assert len(scores) == 1
