"""The Compliance page: decide, sign, follow a finding down to its splits, retrain without features, compare two models."""

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session, view_models
from app.panels import evidence, findings, frame, tree_choice
from app.texts import Texts
from backend.i18n import LANGUAGES
from backend.protocols.training.parameters import SecureBoostParameters
from backend.results import ModelRecord
from backend.services import Glassleaf
from backend.services.retraining import RetrainingRequest
from backend.services.training import TrainingRequest
from tests.app.conftest import Answers, Opened, World, _fresh, job_of
from tests.app.reading_out import everything, says

T = Texts("en")
REASON = "It has to go before the model is used."


@pytest.fixture
def opened(home: Path, monkeypatch: pytest.MonkeyPatch, answers: Answers) -> Opened:
    """The page asks for the default cipher; plaintext here, so that it is quick."""
    service = session._service
    answers["retraining.start"] = lambda asked: service(str(home)).retraining.start(replace(asked, cipher="none"))
    return _fresh(home, monkeypatch)


@pytest.fixture
def retrained(home: Path) -> ModelRecord:
    """A model that replaces another of the home, whichever test made it first."""
    glassleaf = session._service(str(home))
    known = [m for m in glassleaf.models.all() if m.retrained_from]
    if not known:
        first = glassleaf.models.all()[-1].id
        request = RetrainingRequest(first, ("gender", "marital_status"), ("gender",), cipher="none")
        return glassleaf.retraining.start(request).get().after.record
    return known[0]


def found_of(at: AppTest) -> tuple:
    return session.view(at.session_state["model"]).compliance.findings


def shown(at: AppTest) -> list[str]:
    """Keys of the cards' buttons."""
    return [button.key for button in at.button if (button.key or "").startswith("decide_")]


def as_role(at: AppTest, role: str) -> AppTest:
    at.get_by_key("role").set_value(role)
    return at.run()


# decide and sign ------------------------------------------------------------------------------------------------------


def test_a_finding_is_decided_on_from_its_card_by_role_and_shown_with_reason_person_and_time(
    opened: Opened, world: World, home: Path
) -> None:
    at = as_role(opened("compliance"), "regulator")
    first = found_of(at)[0]
    at.button(key="decide_0").click().run()
    assert says(at, "compliance.acting", role=T("sidebar.role_regulator"))
    at.radio(key="decide_verdict").set_value("overridden")
    at.text_area(key="decide_reason").set_value(REASON)
    at.text_input(key="decide_reviewer").set_value("Rita")
    next(b for b in at.button if b.label == T("report.decide_go")).click().run()
    assert not at.exception and at.success[0].value == T("report.decided")
    assert says(at, "compliance.decided_overridden", person="Rita", reason=REASON)
    glassleaf = Glassleaf(home, pools=False)
    entry = [e for e in glassleaf.audit.entries("demo") if e.action == "override"][-1]
    review = glassleaf.reviews.history(world.record.id)[-1]
    glassleaf.close()
    assert (entry.role, entry.body["rule"], entry.body["feature"]) == ("regulator", first.rule_id, first.feature)
    assert (review.verdict, review.person) == ("overridden", "Rita")


def test_a_second_decision_stands_and_the_first_is_kept(opened: Opened, world: World, home: Path) -> None:
    glassleaf = Glassleaf(home, pools=False)
    last = glassleaf.compliance.assess(world.record.id).findings[-1]
    for verdict, reason in (("confirmed", "It stands at first sight."), ("overridden", "The owner has explained it.")):
        glassleaf.reviews.decide(world.record.id, last.rule_id, last.feature, verdict, reason, "Rita")
    glassleaf.close()
    at = opened("compliance", finding=view_models.key_of(last))
    said = "\n".join(m.value for m in at.markdown)
    assert said.index("The owner has explained it.") < said.index("It stands at first sight.")
    assert any(e.label == T("compliance.earlier", n=1) for e in at.expander)


def test_a_refused_decision_says_why(opened: Opened) -> None:
    at = opened("compliance")
    at.button(key="decide_0").click().run()
    at.text_area(key="decide_reason").set_value("no")
    at.text_input(key="decide_reviewer").set_value("Rita")
    next(b for b in at.button if b.label == T("report.decide_go")).click().run()
    assert not at.exception and "reason has 2 characters" in at.warning[0].value
    assert at.text_input(key="decide_reviewer").value == "Rita"  # the window stays open, with what was written


def test_the_model_is_signed_off_on_the_page(opened: Opened) -> None:
    at = as_role(opened("compliance"), "regulator")
    at.text_input(key="report_signer").set_value("Rita")
    at.text_area(key="report_statement").set_value("Read, and discussed with the owner.")
    next(b for b in at.button if b.label == T("report.sign_go")).click().run()
    assert not at.exception and at.success[0].value == T("report.signed")
    assert says(at, "report.covers_yes") and says(at, "sidebar.role_regulator")


# filters and links ----------------------------------------------------------------------------------------------------


def test_cards_are_narrowed_by_party_status_pack_and_decision(opened: Opened) -> None:
    at = opened("compliance")
    found = found_of(at)
    party = found[0].party
    at.multiselect(key="findings_party").set_value([party]).run()
    assert len(shown(at)) == min(frame.CARDS, sum(f.party == party for f in found))
    other = next(f.status for f in found if f.status != found[0].status)
    at.multiselect(key="findings_status").set_value([other]).run()
    assert len(shown(at)) == min(frame.CARDS, sum(f.party == party and f.status == other for f in found))
    at.multiselect(key="findings_decision").set_value(["overridden"])
    at.multiselect(key="findings_status").set_value([]).run()
    assert not at.exception


def test_filters_are_a_table_of_what_passes() -> None:
    nothing = findings.FindingFilters((), (), (), (), False)
    one, other = finding("sex", "bank", "prohibited", 3), finding("age", "shop", "conditional", 0)
    reviewed = {(one.rule_id, one.feature): type("Decided", (), {"verdict": "confirmed"})()}
    for chosen, passing in (
        (nothing, [one, other]),
        (replace(nothing, parties=("shop",)), [other]),
        (replace(nothing, statuses=("prohibited",)), [one]),
        (replace(nothing, packs=("nowhere",)), []),
        (replace(nothing, decisions=("open",)), [other]),
        (replace(nothing, decisions=("confirmed", "overridden")), [one]),
        (replace(nothing, used=True), [one]),
    ):
        assert findings.matching([one, other], chosen, reviewed) == passing


def finding(feature: str, party: str, status: str, splits: int):
    usage = type("Use", (), {"splits": splits})()
    fields = {"rule_id": f"rule_{feature}", "feature": feature, "party": party, "status": status, "pack": "ECOA"}
    return type("Found", (), {**fields, "usage": usage})()


def test_a_link_opens_one_finding_alone_and_all_are_one_press_away(opened: Opened) -> None:
    at = opened("compliance")
    last = found_of(at)[-1]
    at = opened("compliance", finding=view_models.key_of(last))
    assert shown(at) == ["decide_0"] and any(last.meaning in m.value.replace("\\", "") for m in at.markdown)
    at.button(key="findings_all").click().run()
    assert len(shown(at)) == min(frame.CARDS, len(found_of(at))) and "finding" not in at.query_params


def test_an_unknown_finding_node_or_model_in_a_link_leaves_a_notice(opened: Opened) -> None:
    for page, links in (("compliance", {"finding": "x~y"}), ("structure", {"tree": "2", "node": "77"})):
        at = opened(page, **links)
        assert not at.exception and says(at, "frame.unknown_link")


def test_the_address_of_a_finding_is_there_to_be_copied(opened: Opened) -> None:
    at = opened("compliance")
    first = found_of(at)[0]
    assert any(
        f"finding={first.rule_id}%7E{first.feature}" in c.value or f"finding={first.rule_id}~{first.feature}" in c.value
        for c in at.code
    )


def test_from_the_finding_the_features_are_narrowed_to_it_and_its_card_is_open(opened: Opened) -> None:
    feature = found_of(opened())[0].feature
    at = opened("features", feature=feature, search=feature)
    assert at.text_input(key="features_search").value == feature
    assert at.dataframe[0].value["code"].tolist() == [feature] and at.selectbox(key="feature").value == feature
    at.text_input(key="features_search").set_value("").run()
    assert len(at.dataframe[0].value) > 1 and "search" not in at.query_params


def test_features_are_narrowed_by_flag_and_rule_pack(opened: Opened) -> None:
    at = opened("features")
    found = found_of(at)
    status = found[0].status
    at.multiselect(key="features_status").set_value([status]).run()
    assert set(at.dataframe[0].value["code"]) == {f.feature for f in found if f.status == status}
    at.multiselect(key="features_pack").set_value([found[-1].pack]).run()
    expected = {f.feature for f in found if f.status == status and f.pack == found[-1].pack}
    if expected:
        assert set(at.dataframe[0].value["code"]) == expected
    else:
        assert at.info[0].value == T("features.none")


def test_a_split_that_a_link_names_is_marked_until_another_tree_is_chosen(opened: Opened) -> None:
    at = opened()
    model = session.view(at.session_state["model"]).model
    node, split = next(iter(model.trees[2].splits.items()))
    at = opened("structure", tree="3", node=str(node))
    assert not at.exception
    assert says(at, "structure.marked", node=node) and says(at, "structure.ring")
    at.selectbox(key="tree").set_value("1").run()
    assert not says(at, "structure.marked") and "node" not in at.query_params
    assert split.feature


def test_a_large_tree_is_opened_at_the_part_with_the_marked_split(world: World, opened: Opened) -> None:
    opened()
    view = session.view(world.record.id)
    small = next(i for i, t in enumerate(view.model.trees) if t.splits)
    assert tree_choice.part_with(view, small, next(iter(view.model.trees[small].splits))) == 0


# retrain and compare -----------------------------------------------------------------------------------------------


def test_evidence_is_offered_for_flagged_features_and_those_kept_out(opened: Opened, world: World) -> None:
    opened()
    view = session.view(world.record.id)
    out = replace(view, record=replace(view.record, exclude=("gender", "gone")))
    assert evidence.assessable(out)[-1] == "gender" or "gender" in evidence.assessable(out)
    assert "gone" not in evidence.assessable(out)


def test_with_one_model_there_is_nothing_to_compare_and_the_page_says_how_to_get_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _fresh(world.home, monkeypatch)("compare_models")
    assert not at.exception
    if len(session.models()) == 1:
        assert any(T("compare_models.alone") == i.value for i in at.info)


def test_the_model_is_retrained_in_one_action_and_compared_with_the_first(opened: Opened, world: World) -> None:
    at = opened("compliance")
    model = at.session_state["model"]
    at.multiselect(key=f"retrain_without_{model}").set_value(["gender", "marital_status"])
    at.multiselect(key=f"retrain_by_{model}").set_value(["gender"])
    at.run().button(key="retrain_go").click().run()
    job = job_of(f"retrain:{model}")
    job.wait(120)
    assert job.error is None
    at.run()
    assert not at.exception
    new = job.result.after.record
    assert any(T("retraining.done", model=new.id) == i.value for i in at.info)
    assert new.exclude == ("gender", "marital_status")
    for key in ("comparison.not_given", "comparison.outcomes_note", "comparison.without", "comparison.same_people"):
        assert says(at, key)
    auc = next(m for m in at.metric if m.label == T("figure.auc"))
    assert says(auc.delta, "comparison.change", before=f"{job.result.before.record.metrics.auc:.3f}")


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_models_are_compared_on_a_page_of_their_own(opened: Opened, retrained: ModelRecord, language: str) -> None:
    at = opened("compare_models")
    at.get_by_key("language").set_value(language)
    at.run()
    t = Texts(language)
    assert not at.exception and at.title[0].value == t("compare_models.title")
    shown = everything(at)
    for key in ("numbers", "leaks_title", "findings_title", "made_title"):
        assert says(shown, f"comparison.{key}", language)
    assert says(shown, "document.leaks_named", language) and says(shown, "document.leak_note", language)
    one, other = at.query_params["model"], at.query_params["other"]
    at.button(key="compare_swap").click().run()
    assert not at.exception and (at.query_params["model"], at.query_params["other"]) == (other, one)


def test_a_new_model_says_which_one_it_replaces(opened: Opened, retrained: ModelRecord) -> None:
    at = opened("compliance", model=retrained.id)
    assert not at.exception and says(at, "comparison.without")


def test_only_the_operator_is_offered_to_train(opened: Opened) -> None:
    at = as_role(opened("compliance"), "analyst")
    assert not at.exception
    assert not [b for b in at.button if b.key == "retrain_go"]
    assert says(at, "retraining.not_for", role=T("sidebar.role_analyst"))


def test_models_of_other_parameters_show_what_differs(opened: Opened, home: Path, world: World) -> None:
    glassleaf = session._service(str(home))
    grown = glassleaf.training.start(
        TrainingRequest("demo", SecureBoostParameters(trees=3, depth=2, cipher="none"))
    ).get()
    at = opened("compare_models", model=world.record.id, other=grown.id)
    table = next(table.value for table in at.table if T("comparison.made") in table.value)
    rows = table.set_index(T("comparison.made"))
    assert rows.loc[T("parameter.trees")].tolist() == ["6", "3"]


def test_what_was_measured_of_a_feature_that_was_kept_out_is_shown(opened: Opened, retrained: ModelRecord) -> None:
    at = opened("compliance", model=retrained.id)
    assert says(at, "compliance.kept_out") and says(at, "compliance.accepted")


def test_duties_are_listed_law_by_law_once_a_law_is_opened(opened: Opened) -> None:
    at = opened("compliance")
    duty = session.view(at.session_state["model"]).compliance.duties[0]
    assert any(duty.pack in e.label for e in at.expander) and duty.title not in everything(at)
    at.session_state["duties_0"] = True  # open
    assert duty.title in everything(at.run()) and not at.exception
