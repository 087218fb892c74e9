"""A model's way from draft to retirement: whose step it is, who may not approve, what the log keeps, and one in use alone."""

from dataclasses import replace

import pytest

from backend.errors import ParameterError, SecurityError
from backend.i18n import Text
from backend.services import Glassleaf
from backend.services.audit import NOBODY
from backend.services.lifecycle import DEMO_REASON, STEPS
from backend.services.roles import ROLES
from backend.store.model_states import STATES

WHY = "read with the whole team"


@pytest.fixture(scope="module")
def glassleaf(demo_home):
    with Glassleaf(demo_home(), pools=False, actor="root") as opened:
        yield opened


@pytest.fixture(scope="module")
def first(glassleaf):
    """The demo's own model."""
    return glassleaf.models.get("latest")


@pytest.fixture
def model(glassleaf, first, request):
    """Id of a new draft that ana trained: the demo's trees under another name."""
    record = first
    name = f"m{abs(hash(request.node.name)):x}"[:12]
    partial_model, part_of = glassleaf.models.partial_model(record), glassleaf.models.part_of(record)
    glassleaf.models.register(
        replace(record, id=name, content_hash=(name * 6)[:64].replace("m", "0")), partial_model, part_of, "ana"
    )
    return name


def take(glassleaf, model, step, who, role="", **given):
    glassleaf.acting(who, role or STEPS[step].roles[0]).lifecycle.step(model, step, **given)


def approved(glassleaf, model):
    take(glassleaf, model, "submit", "ana")
    take(glassleaf, model, "approve", "cy", reason=WHY)
    return model


def state(glassleaf, model):
    return glassleaf.models.states()[model].state


def last(glassleaf):
    return glassleaf.audit.entries("demo")[-1]


def test_the_prepared_demo_is_in_use_without_an_approval_and_the_log_says_so(demo_home):
    with Glassleaf(demo_home(), pools=False) as fresh:
        record = fresh.models.get("latest")
        standing = fresh.lifecycle.standing(record.id)
        assert (standing.model.state, standing.approval) == ("in_use", None)
        assert [step.reason for step in fresh.lifecycle.history(record.id)] == [DEMO_REASON]
        [entry] = [e for e in fresh.audit.entries("demo") if e.body.get("after") == "in_use"]
        assert (entry.action, entry.body["because"], entry.body["after"]) == ("state", "demo", "in_use")
        number = last(fresh).number
        fresh.training.prepare_demo()
        assert last(fresh).number == number  # a second time changes nothing


def test_a_model_goes_all_the_way_and_every_step_is_logged(glassleaf, model):
    for step, person in (("submit", "ana"), ("approve", "cy"), ("use", "bo"), ("retire", "bo")):
        take(glassleaf, model, step, person, reason=WHY if step in ("approve", "retire") else "")
        body = last(glassleaf).body
        assert (last(glassleaf).actor, body["step"], body["person"], body["outcome"]) == (person, step, person, "done")
        assert WHY not in str(body)  # the store has the reason, the log its hash
    assert [step.after for step in glassleaf.lifecycle.history(model)] == list(STATES[1:])
    assert glassleaf.lifecycle.offers(model) == () and glassleaf.audit.verify("demo").holds


@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_its_roles_alone_and_a_refused_one_is_logged(glassleaf, model, step):
    ways = {"submit": (), "approve": ("submit",), "use": ("submit", "approve"), "return": ("submit",), "retire": ()}
    for before in ways[step]:
        take(glassleaf, model, before, "ana" if before == "submit" else "cy", reason=WHY)
    found = state(glassleaf, model)
    for role in set(ROLES) - set(STEPS[step].roles):
        with pytest.raises(SecurityError):
            take(glassleaf, model, step, "zoe", role, reason=WHY)
        assert last(glassleaf).body["outcome"] == "SecurityError" and state(glassleaf, model) == found
        offer = next(o for o in glassleaf.acting("zoe", role).lifecycle.offers(model) if o.name == step)
        assert not offer.mine


@pytest.mark.parametrize("part", ["maker", "owner", "submitter"])
@pytest.mark.parametrize("written", ["same", "other case"])
def test_who_had_a_part_in_a_model_cannot_approve_it(glassleaf, model, part, written):
    if part == "owner":
        glassleaf.lifecycle.describe(model, owner="dee")
    take(glassleaf, model, "submit", "bo")
    name = {"maker": "ana", "owner": "dee", "submitter": "bo"}[part]
    with pytest.raises(SecurityError):
        take(glassleaf, model, "approve", name.upper() if written == "other case" else name, reason=WHY)
    with pytest.raises(SecurityError):  # signed in as that person, under another name
        take(glassleaf, model, "approve", name, person="somebody", reason=WHY)
    assert state(glassleaf, model) == "in_review"


def test_findings_are_decided_or_overridden_with_a_reason_before_an_approval(glassleaf, model):
    take(glassleaf, model, "submit", "ana")
    (offer,) = (o for o in glassleaf.acting("cy", "regulator").lifecycle.offers(model) if o.name == "approve")
    found = glassleaf.compliance.assess(model)
    assert offer.reason and offer.undecided == len(found.findings) + len(found.questions) > 0
    for reason in ("", "too short"):
        with pytest.raises(ParameterError):
            take(glassleaf, model, "approve", "cy", reason=reason)
    for finding in glassleaf.reviews.undecided(model):
        glassleaf.reviews.decide(model, finding.rule_id, finding.feature, "confirmed", WHY, "cy")
    for asked in glassleaf.reviews.unanswered(model):
        glassleaf.reviews.decide(model, asked.about, asked.feature, "overridden", WHY, "cy")
    (offer,) = (o for o in glassleaf.acting("cy", "regulator").lifecycle.offers(model) if o.name == "approve")
    assert not offer.reason and not offer.undecided
    take(glassleaf, model, "approve", "cy")
    assert "undecided" not in last(glassleaf).body
    assert glassleaf.lifecycle.standing(model).approval.person == "cy"


def asking(glassleaf, first, name, meaning, maker="ana"):
    """A draft whose first feature has this meaning."""
    described, part_of = glassleaf.models.partial_model(first), glassleaf.models.part_of(first)
    (party, feature), *others = described.dictionary
    dictionary = ((party, feature.model_copy(update={"meaning": Text(meaning)})), *others)
    record = replace(first, id=name, content_hash=(name * 64)[:64])
    glassleaf.models.register(record, replace(described, dictionary=dictionary), part_of, maker)
    return name


def about_spouses(glassleaf, model):
    """The open questions about it; the demo has another one."""
    return [each for each in glassleaf.reviews.unanswered(model) if each.about == "about:marital_status"]


def test_a_question_blocks_an_approval_and_no_holds_until_the_description_changes(glassleaf, first):
    one = asking(glassleaf, first, "ab", "Amount of monthly payments that spouses made")
    (asked,) = about_spouses(glassleaf, one)
    for other in set(glassleaf.reviews.unanswered(one)) - {asked}:
        glassleaf.reviews.decide(one, other.about, other.feature, "overridden", WHY, "cy")
    for finding in glassleaf.reviews.undecided(one):
        glassleaf.reviews.decide(one, finding.rule_id, finding.feature, "confirmed", WHY, "cy")
    take(glassleaf, one, "submit", "ana")
    with pytest.raises(ParameterError, match="1 finding or questions"):
        take(glassleaf, one, "approve", "cy")
    with pytest.raises(SecurityError):  # whoever trained it does not answer no
        glassleaf.reviews.decide(one, asked.about, asked.feature, "overridden", WHY, "ana")
    glassleaf.reviews.decide(one, asked.about, asked.feature, "overridden", WHY, "cy")
    assert last(glassleaf).body["rule"] == "about:marital_status" and last(glassleaf).body["person"] == "cy"
    take(glassleaf, one, "approve", "cy")

    same = asking(glassleaf, first, "cd", "Amount of monthly payments that spouses made")
    assert not glassleaf.reviews.unanswered(same) and {
        each.answer.person for each in glassleaf.compliance.assess(same).questions
    } == {"cy"}
    changed = asking(glassleaf, first, "ef", "Amount of monthly payments which spouses made")
    (again,) = about_spouses(glassleaf, changed)
    before = len(glassleaf.reviews.undecided(changed))
    glassleaf.reviews.decide(changed, again.about, again.feature, "confirmed", WHY, "cy")
    flagged = glassleaf.reviews.undecided(changed)  # yes makes it a finding, which waits for a decision
    assert len(flagged) > before and "ecoa_marital_status" in {f.rule_id for f in flagged if f.feature == again.feature}


def test_a_no_to_another_makers_model_is_none_for_the_own_one(glassleaf, first):
    meaning = "Amount of monthly payments that the spouses made"
    others, own = asking(glassleaf, first, "01", meaning, "bo"), asking(glassleaf, first, "23", meaning, "ana")
    (asked,) = about_spouses(glassleaf, others)
    glassleaf.reviews.decide(others, asked.about, asked.feature, "overridden", WHY, "Ana")
    assert not about_spouses(glassleaf, others) and len(about_spouses(glassleaf, own)) == 1
    glassleaf.reviews.decide(own, asked.about, asked.feature, "overridden", WHY, "cy")
    assert not about_spouses(glassleaf, own)


def test_an_override_says_in_the_log_how_many_findings_had_no_decision(glassleaf, model):
    number = len(glassleaf.compliance.assess(model).findings) + len(glassleaf.reviews.unanswered(model))
    approved(glassleaf, model)
    assert last(glassleaf).body["undecided"] == number
    assert glassleaf.lifecycle.standing(model).approval.reason == WHY


def test_one_model_is_in_use_and_the_one_it_replaces_goes_back_to_where_it_came_from(glassleaf, model, first):
    take(glassleaf, approved(glassleaf, model), "use", "bo")
    assert [m for m, s in glassleaf.models.states().items() if s.state == "in_use"] == [model]
    assert glassleaf.models.opening().id == model
    other = f"{model}2"
    glassleaf.models.register(
        replace(first, id=other), glassleaf.models.partial_model(first), glassleaf.models.part_of(first), "ana"
    )
    approved(glassleaf, other)
    (offer,) = (o for o in glassleaf.lifecycle.offers(other) if o.name == "use")
    assert offer.replaces == model
    take(glassleaf, other, "use", "bo")
    assert last(glassleaf).body["replaces"] == model
    assert state(glassleaf, model) == "approved" and glassleaf.lifecycle.standing(model).approval
    take(glassleaf, model, "use", "bo")  # back at once: its approval stood
    assert state(glassleaf, other) == "approved"


def test_a_demo_that_nobody_approved_is_a_draft_again_once_another_is_in_use(demo_home):
    with Glassleaf(demo_home(), pools=False, actor="ana") as fresh:
        first = fresh.models.get("latest")
        part_of = fresh.models.part_of(first)
        fresh.models.register(replace(first, id="m0"), fresh.models.partial_model(first), part_of, "ana")
        take(fresh, approved(fresh, "m0"), "use", "bo")
        assert state(fresh, first.id) == "draft"


def test_an_approval_ends_when_the_model_is_returned(glassleaf, model):
    approved(glassleaf, model)
    with pytest.raises(ParameterError):
        take(glassleaf, model, "return", "cy")
    take(glassleaf, model, "return", "cy", reason=WHY)
    assert state(glassleaf, model) == "draft" and glassleaf.lifecycle.standing(model).approval is None
    with pytest.raises(ParameterError):
        take(glassleaf, model, "use", "bo")


def test_a_step_needs_a_name_where_nobody_is_signed_in(glassleaf, model):
    with pytest.raises(ParameterError):
        take(glassleaf, model, "submit", NOBODY)
    take(glassleaf, model, "submit", NOBODY, person=" ana ")
    (step,) = glassleaf.lifecycle.history(model)
    assert (step.person, last(glassleaf).actor) == ("ana", NOBODY)


def test_names_are_one_line_each_and_nobody_elses(glassleaf, model, first):
    first = first.id
    glassleaf.lifecycle.describe(first, name="Default 90 d", text="two\nlines", owner="bo")
    found = glassleaf.models.states()[first]
    assert (found.name, found.note, found.owner) == ("Default 90 d", "two\nlines", "bo")
    assert last(glassleaf).body["changed"] == ["name", "note", "owner"] and "two" not in str(last(glassleaf).body)
    for given in ({"name": "default 90 D"}, {"name": "two\nlines"}, {"owner": "x" * 121}):
        with pytest.raises(ParameterError):
            glassleaf.lifecycle.describe(model, **given)
        assert glassleaf.models.states()[model].name == ""
    glassleaf.lifecycle.describe(first, name=" Default 90 d ")  # its own name
    glassleaf.lifecycle.describe(first, name="")
    assert glassleaf.models.states()[first].name == ""


def test_training_the_same_model_again_leaves_its_state(glassleaf, model, first):
    take(glassleaf, model, "submit", "ana")
    record = glassleaf.models.get(model)
    part_of = glassleaf.models.part_of(record)
    glassleaf.models.register(record, glassleaf.models.partial_model(first), part_of, "eve")
    assert state(glassleaf, model) == "in_review" and glassleaf.models.states()[model].maker == "ana"


def test_pages_open_on_the_newest_that_is_not_retired_where_none_is_in_use(demo_home):
    with Glassleaf(demo_home(), pools=False, actor="ana") as fresh:
        first = fresh.models.get("latest")
        part_of = fresh.models.part_of(first)
        new = replace(first, id="m0", created="2999-01-01T00:00:00.000+00:00")
        fresh.models.register(new, fresh.models.partial_model(first), part_of, "ana")
        assert fresh.models.opening() == first and fresh.models.get("latest").id == "m0"
        take(fresh, first.id, "retire", "bo", reason=WHY)
        assert fresh.models.opening().id == "m0"
        take(fresh, "m0", "retire", "bo", reason=WHY)
        assert fresh.models.opening().id == "m0"
