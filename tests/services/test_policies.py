"""A policy is proposed by one person, approved by another, holds from its first day, and stands in the log."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from inside import runtime_of, workspace_of

from backend.data.table import PartyTable, SampleSheet
from backend.errors import ParameterError, SecurityError
from backend.policy.bands import Policy, Treatments
from backend.policy.points import PointScale
from backend.services import Glassleaf
from backend.services.policies import DEMO_APPROVER, DEMO_OWNER, DEMO_POLICY
from backend.services.roles import ANALYST, OPERATOR, REGULATOR
from backend.services.scoring import Rules, ScoringRequest

BANK = Policy(decline_at=0.4, refer_at=0.2, points=PointScale(600, 50.0, 20), treatments=Treatments(no_host="refuse"))
WHY = "agreed by the committee"


def today():
    return datetime.now(UTC).date()


@pytest.fixture
def glassleaf(demo_home) -> Iterator[Glassleaf]:
    with Glassleaf(demo_home(), pools=False, actor="ana") as opened:
        yield opened


@pytest.fixture
def model(glassleaf: Glassleaf) -> str:
    return glassleaf.models.get("latest").id


def propose(glassleaf: Glassleaf, model: str, policy: Policy = BANK, **changed) -> None:
    given = {"owner": "olga", "reason": WHY} | changed
    glassleaf.policies.propose(model, policy, **given)


def test_the_demo_has_an_approved_policy(glassleaf, model):
    standing = glassleaf.policies.standing(model)
    assert standing.policy.plain() | {"version": 0} == DEMO_POLICY.plain()
    assert (standing.policy.version, standing.version.owner, standing.version.approved_by) == (
        1,
        DEMO_OWNER,
        DEMO_APPROVER,
    )
    entry = next(entry for entry in reversed(glassleaf.audit.entries("demo")) if "decline_at" in entry.body)
    assert (entry.body["policy"], entry.body["because"]) == (1, "demo")


def test_a_proposal_holds_once_a_second_person_has_approved_it(glassleaf, model):
    propose(glassleaf, model)
    assert glassleaf.policies.in_force(model).version == 1
    assert glassleaf.policies.standing(model).proposed.version == 2
    for person in ("ana", "Ana", "olga"):  # who proposed it, and who owns it
        with pytest.raises(SecurityError) as error:
            glassleaf.acting(person, REGULATOR).policies.approve(model)
        assert error.value.code == "policy_needs_second_person"
    glassleaf.acting("rita", REGULATOR).policies.approve(model, reason="as agreed")
    standing = glassleaf.policies.standing(model)
    assert standing.proposed is None and standing.policy.version == 2 and standing.policy.decline_at == 0.4
    assert standing.policy.treatments.no_host == "refuse" and standing.policy.points.points(1 / 51) == 600
    logged = [entry for entry in glassleaf.audit.entries("demo") if entry.action.startswith("policy-")]
    proposal, approval = [entry for entry in logged if entry.body["outcome"] == "done"]
    assert (proposal.action, proposal.body["policy"], proposal.actor) == ("policy-proposal", 2, "ana")
    assert (approval.action, approval.body["policy"], approval.body["person"]) == ("policy-approval", 2, "rita")
    assert approval.body["decline_at"] == 0.4 and approval.body["treatments"]["no_host"] == "refuse"


def test_approving_is_the_regulators_and_proposing_is_not(glassleaf, model):
    with pytest.raises(SecurityError):
        propose(glassleaf.acting("ana", REGULATOR), model)
    propose(glassleaf.acting("ana", ANALYST), model)
    with pytest.raises(SecurityError):
        glassleaf.acting("rita", OPERATOR).policies.approve(model)


def test_a_policy_holds_from_its_first_day(glassleaf, model):
    later = today() + timedelta(days=7)
    propose(glassleaf, model, first_day=later)
    glassleaf.acting("rita", REGULATOR).policies.approve(model)
    assert [glassleaf.policies.in_force(model, day).version for day in (today(), later)] == [1, 2]
    with pytest.raises(ParameterError) as error:
        propose(glassleaf, model, first_day=date(2020, 1, 1))
    assert error.value.code == "policy_starts_in_past"


def test_a_newer_proposal_takes_the_place_of_one_that_waits_and_nothing_is_lost(glassleaf, model):
    propose(glassleaf, model)
    propose(glassleaf, model, Policy(decline_at=0.3))
    with pytest.raises(ParameterError) as error:
        glassleaf.acting("rita", REGULATOR).policies.approve(model, version=2)
    assert error.value.code == "policy_does_not_wait"
    glassleaf.acting("rita", REGULATOR).policies.approve(model, version=3)
    states = [(version.version, version.state) for version in glassleaf.policies.history(model)]
    assert states == [(1, "approved"), (2, "superseded"), (3, "approved")]
    with pytest.raises(ParameterError):
        glassleaf.acting("rita", REGULATOR).policies.approve(model)


@pytest.mark.parametrize(
    ("policy", "changed", "code"),
    [
        (Policy(decline_at=1.4), {}, "cutoff_not_probability"),
        (Policy("number", decline_at=1.4), {}, "policy_of_other_task"),
        (BANK, {"reason": "no"}, "policy_without_reason"),
        (BANK, {"owner": "two\nlines"}, "policy_without_name"),
    ],
)
def test_a_proposal_that_cannot_be_used_is_refused(glassleaf, model, policy, changed, code):
    with pytest.raises(ParameterError) as error:
        propose(glassleaf, model, policy, **changed)
    assert error.value.code == code
    assert len(glassleaf.policies.history(model)) == 1


def test_the_line_is_approved_with_the_model(glassleaf, model):
    review = {"reason": "the demo's findings are known"}
    glassleaf.acting("rita", REGULATOR).lifecycle.step(model, "return", reason="to be reviewed again")
    glassleaf.lifecycle.describe(model, owner="otto")
    propose(glassleaf, model, person="paul", owner="paul")
    glassleaf.acting("sam", ANALYST).lifecycle.step(model, "submit")
    with pytest.raises(SecurityError) as error:
        glassleaf.acting("paul", REGULATOR).lifecycle.step(model, "approve", **review)
    assert error.value.code == "policy_needs_second_person"
    glassleaf.acting("rita", REGULATOR).lifecycle.step(model, "approve", **review)
    assert glassleaf.policies.in_force(model).version == 2
    assert glassleaf.audit.entries("demo")[-1].body["policy"] == 2


def test_until_somebody_sets_a_line_the_base_rate_decides(glassleaf, model):
    record = glassleaf.models.get(model)
    before = glassleaf.policies.in_force(model, today() - timedelta(days=1))
    assert (before.is_set, before.cutoff, before.points) == (False, record.positive_rate, None)


def test_an_unusual_person_who_is_scored_like_all_others_bears_the_mark(glassleaf, model):
    record = glassleaf.models.get(model)
    table = runtime_of(glassleaf).table
    own = table.take([table.row_of[glassleaf.models.test_ids(record)[0]]])
    feature = next(iter(Rules.of(workspace_of(glassleaf), glassleaf.models, record).seen_values.ranges))
    said = []
    for value in (own.columns[feature][0], 1e12, np.nan):
        odd = PartyTable(own.party, own.ids, {**own.columns, feature: np.array([value])})
        sheet = SampleSheet(odd.ids, odd, {}, {}, ())
        (score,) = glassleaf.scoring.start(ScoringRequest(model, sheet, cipher="none")).get().scores
        assert score.decision == score.band
        said.append(score.marks)
    assert said == [(), ("out_of_range",), ("missing_value",)]
