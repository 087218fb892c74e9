"""The Compliance page: decide, sign, follow a finding down to its splits, retrain without features, compare two models."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session, view_models
from app.errors import worded
from app.panels import attention, findings, frame, tree_choice
from app.texts import Texts, markdown
from backend.i18n import LANGUAGES, Text
from backend.protocols.training.forest import ForestParameters
from backend.results import ModelRecord, told_by_scores
from backend.services import Glassleaf
from backend.services.fairness import DisparityRequest
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
        request = RetrainingRequest(first, ("gender", "marital_status"), ("gender",), 0.25, cipher="none")
        return glassleaf.retraining.start(request).get().after.record
    return known[0]


def found_of(at: AppTest) -> tuple:
    return session.view(at.session_state["model"]).compliance.findings


def shown(at: AppTest) -> list[str]:
    """The findings' lines, open or not; questions have lines of their own."""
    asked = f": {T('questions.open')}]"
    return [box.label for box in at.expander if "-badge[" in box.label and asked not in box.label]


def first_of(at: AppTest) -> str:
    """Where the first finding is worked on; its card is open."""
    return view_models.key_of(found_of(at)[0])


def second_of(at: AppTest) -> str:
    """Where the worst finding on another feature is worked on."""
    found = found_of(at)
    return view_models.key_of(next(f for f in found if f.feature != found[0].feature))


def at_step(at: AppTest, step: str) -> AppTest:
    at.get_by_key(f"step_{first_of(at)}").set_value(step)
    return at.run()


def decided(at: AppTest, verdict: str, reason: str = REASON) -> AppTest:
    place = f"decide_{first_of(at)}"
    at.radio(key=f"{place}_verdict").set_value(verdict)
    at.text_area(key=f"{place}_reason").set_value(reason)
    at.text_input(key=f"{place}_reviewer").set_value("Rita")
    return at.button(key=f"{place}_go").click().run()


def test_nothing_that_decides_is_preselected_and_without_a_choice_nothing_is_decided(
    opened: Opened, world: World, home: Path
) -> None:
    at = at_step(opened("compliance"), "decide")
    place = f"decide_{first_of(at)}"
    assert at.radio(key=f"{place}_verdict").value is None
    at.text_area(key=f"{place}_reason").set_value(REASON)
    at.text_input(key=f"{place}_reviewer").set_value("Rita")
    at.button(key=f"{place}_go").click().run()
    assert not at.exception and says(at, "report.choose") and not says(at, "report.decided", n=1)


def as_role(at: AppTest, role: str) -> AppTest:
    at.get_by_key("role").set_value(role)
    return at.run()


# decide and sign ------------------------------------------------------------------------------------------------------


def test_a_finding_is_decided_on_in_its_card_by_role_and_shown_with_reason_person_and_time(
    opened: Opened, world: World, home: Path
) -> None:
    at = at_step(as_role(opened("compliance"), "regulator"), "decide")
    first = found_of(at)[0]
    assert says(at, "compliance.acting", role=T("sidebar.role_regulator"))
    decided(at, "overridden")
    assert not at.exception and says(at.success[0].value, "report.decided", n=1, verdict=T("report.overridden"))
    assert at.text_area(key=f"decide_{first_of(at)}_reason").value == ""
    assert says(at, "compliance.decided_overridden", person="Rita", reason=REASON)
    # The name stands in the next form.
    at.get_by_key(f"step_{first_of(at)}").set_value("sign").run()
    assert at.text_input(key=f"{first_of(at)}_signer").value == "Rita"
    glassleaf = Glassleaf(home, pools=False)
    entry = [e for e in glassleaf.audit.entries("demo") if e.action == "override"][-1]
    review = glassleaf.reviews.history(world.record.id)[-1]
    glassleaf.close()
    assert (entry.role, entry.body["rule"], entry.body["feature"]) == ("regulator", first.rule_id, first.feature)
    assert (review.verdict, review.person) == ("overridden", "Rita")


def test_a_card_that_was_opened_stays_open_after_a_decision(opened: Opened) -> None:
    at = opened("compliance")
    second = second_of(at)
    at.session_state[f"finding_{second.split('~')[1]}"] = True  # open
    at.session_state[f"step_{second}"] = "decide"
    at.run().radio(key=f"decide_{second}_verdict").set_value("confirmed")
    at.text_area(key=f"decide_{second}_reason").set_value(REASON)
    at.text_input(key=f"decide_{second}_reviewer").set_value("Rita")
    at.button(key=f"decide_{second}_go").click().run()
    assert not at.exception and says(at.success[0].value, "report.decided", n=1)


def test_one_decision_can_stand_for_every_law_that_flags_a_feature(opened: Opened, home: Path) -> None:
    at = opened("compliance")
    flagged = [f for f in found_of(at) if f.feature == "age"]
    assert len(flagged) > 2
    first, last = view_models.key_of(flagged[0]), view_models.key_of(flagged[-1])
    at.session_state["finding_age"] = True  # open
    at.session_state[f"step_{first}"] = at.session_state[f"step_{last}"] = "decide"
    at.run()
    alone, every = f"decide_{last}", f"decide_{first}"
    at.get_by_key("law_age").set_value(last).run()
    at.radio(key=f"{alone}_verdict").set_value("confirmed")
    at.text_area(key=f"{alone}_reason").set_value(REASON)
    at.text_input(key=f"{alone}_reviewer").set_value("Rita")
    at.button(key=f"{alone}_go").click().run()  # its own alone
    assert any(says(line, "compliance.partly", n=1, whole=len(flagged)) for line in shown(at))
    at.get_by_key("law_age").set_value(first).run()
    at.radio(key=f"{every}_verdict").set_value("confirmed")
    at.text_area(key=f"{every}_reason").set_value("Its owner has shown why.")
    at.text_input(key=f"{every}_reviewer").set_value("Rita")
    at.checkbox(key=f"{every}_others").check()
    at.button(key=f"{every}_go").click().run()
    assert not at.exception and says(at.success[0].value, "report.decided", n=len(flagged) - 1)
    history = session._service(str(home)).reviews.history(at.session_state["model"])
    reasons = {r.rule: r.reason for r in history if r.feature == "age"}
    assert set(reasons) == {f.rule_id for f in flagged}
    assert reasons[flagged[-1].rule_id] == REASON  # what was decided before stays


def test_each_step_offers_the_next_one(opened: Opened) -> None:
    def offered(at: AppTest) -> set[str]:
        return {b.label for b in at.button if (b.key or "").startswith("next_")}

    at = decided(at_step(opened("compliance"), "decide"), "confirmed")
    assert offered(at) == {T("compliance.next_measure"), T("compliance.next_retrain")}
    at.button(key=f"next_measure_{first_of(at)}").click().run()
    assert [b for b in at.button if b.label == T("compliance.go_evidence")]
    at.button(key=f"next_retrain_{first_of(at)}").click().run()
    assert [b for b in at.button if b.label == T("compliance.go_retrain")]
    assert offered(decided(at_step(at, "decide"), "overridden")) == {T("compliance.next_sign")}


def test_who_is_led_to_a_step_has_it_in_view(opened: Opened) -> None:
    def brought(at: AppTest) -> list[str]:
        marks = [html.proto.body for html in at.get("html") if attention.ATTENTION_MARK in html.proto.body]
        return [body for body in marks if f'"key": "work_{first_of(at).replace("~", "-")}"' in body]

    at = decided(at_step(opened("compliance"), "decide"), "confirmed")
    assert not brought(at)
    for step in ("measure", "retrain"):  # what stood there before was longer or shorter
        at.button(key=f"next_{step}_{first_of(at)}").click().run()
        [told] = brought(at)
        assert T(f"compliance.step_{step}") in told
        assert not brought(at.run())  # once


def test_a_regulator_is_offered_what_a_regulator_may_do(opened: Opened) -> None:
    def offered(at: AppTest) -> set[str]:
        return {b.label for b in at.button if (b.key or "").startswith("next_")}

    at = decided(at_step(as_role(opened("compliance"), "regulator"), "decide"), "confirmed")
    assert offered(at) == {T("compliance.next_measure"), T("compliance.next_sign")}
    at.button(key=f"next_sign_{first_of(at)}").click().run()
    assert not at.exception and not offered(at)
    assert T("compliance.next_report") in [link.proto.label for link in at.get("page_link")]


def test_a_second_decision_stands_and_the_first_is_kept(opened: Opened, world: World, home: Path) -> None:
    glassleaf = Glassleaf(home, pools=False)
    last = glassleaf.compliance.assess(world.record.id).findings[-1]
    for verdict, reason in (("confirmed", "It stands at first sight."), ("overridden", "The owner has explained it.")):
        glassleaf.reviews.decide(world.record.id, last.rule_id, last.feature, verdict, reason, "Rita")
    glassleaf.close()
    at = opened("compliance", finding=view_models.key_of(last))
    at.get_by_key(f"step_{view_models.key_of(last)}").set_value("decide")
    at.run()
    said = "\n".join(m.value for m in at.markdown)
    assert said.index("The owner has explained it.") < said.index("It stands at first sight.")
    assert any(e.label == T("compliance.earlier", n=1) for e in at.expander)


def test_a_refused_decision_says_why(opened: Opened) -> None:
    at = decided(at_step(opened("compliance"), "decide"), "confirmed", "no")
    assert not at.exception
    assert says(at.warning[0].value, "review_text_length", field="reason", found=2, least=10)
    assert at.text_input(key=f"decide_{first_of(at)}_reviewer").value == "Rita"  # what was written stays


def test_the_model_is_signed_off_in_the_card(opened: Opened) -> None:
    at = at_step(as_role(opened("compliance"), "regulator"), "sign")
    place = first_of(at)
    at.text_input(key=f"{place}_signer").set_value("Rita")
    statement = "Read, and discussed with the owner."
    at.text_area(key=f"{place}_statement").set_value(statement)
    at.button(key=f"{place}_sign_go").click().run()
    assert not at.exception and says(at.success[0].value, "report.signed", person="Rita", statement=statement)
    assert at.text_area(key=f"{place}_statement").value == ""
    assert at.text_input(key=f"{place}_signer").value == "Rita"  # who signs again is the same
    assert says(at, "report.covers_yes") and says(at, "sidebar.role_regulator")


# filters and links ----------------------------------------------------------------------------------------------------


def test_cards_are_narrowed_by_party_status_pack_and_decision(opened: Opened) -> None:
    at = opened("compliance")
    found = found_of(at)
    party = found[0].party
    at.multiselect(key="findings_party").set_value([party]).run()
    assert len(shown(at)) == len({f.feature for f in found if f.party == party})
    other = next(f.status for f in found if f.status != found[0].status)
    at.multiselect(key="findings_status").set_value([other]).run()
    assert len(shown(at)) == len({f.feature for f in found if f.party == party and f.status == other})
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
        (replace(nothing, only_used=True), [one]),
    ):
        assert findings.matching([one, other], chosen, reviewed) == passing


def finding(feature: str, party: str, status: str, splits: int):
    usage = type("Use", (), {"splits": splits})()
    fields = {"rule_id": f"rule_{feature}", "feature": feature, "party": party, "status": status, "pack": Text("ECOA")}
    return type("Found", (), {**fields, "usage": usage})()


def test_a_link_opens_one_finding_alone_and_all_are_one_press_away(opened: Opened) -> None:
    at = opened("compliance")
    last = found_of(at)[-1]
    at = opened("compliance", finding=view_models.key_of(last))
    assert len(shown(at)) == 1 and any(last.meaning.en in m.value.replace("\\", "") for m in at.markdown)
    at.button(key="findings_all").click().run()
    assert len(shown(at)) == len({f.feature for f in found_of(at)}) and "finding" not in at.query_params


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
    at.multiselect(key="features_pack").set_value([found[-1].pack.en]).run()
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


def test_with_one_model_there_is_nothing_to_compare_and_the_page_says_how_to_get_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _fresh(world.home, monkeypatch)("compare_models")
    assert not at.exception
    if len(session.models()) == 1:
        assert any(T("compare_models.alone") == i.value for i in at.info)


def test_the_model_is_retrained_from_the_card_and_compared_there(opened: Opened, world: World) -> None:
    at = at_step(opened("compliance"), "retrain")
    model, place = at.session_state["model"], first_of(at)
    assert at.multiselect(key=f"without_{place}").value == ["gender"]
    at.multiselect(key=f"without_{place}").set_value(["gender", "marital_status"])
    at.slider(key=f"retrain_cutoff_{place}").set_value(25)  # at one half fewer than 20 would be declined
    at.run().button(key=f"retrain_go_{place}").click().run()
    job = job_of(f"retrain:{model}")
    job.wait(120)
    assert job.failure is None
    at.run()
    assert not at.exception
    new = job.result.after.record
    federation = session.view(new.id).federation
    named = markdown(frame.model_name(T, new, federation, session.service().models.states()[new.id].name))
    assert new.id not in named and any(T("retraining.done", model=named) in i.value for i in at.caption)
    assert new.exclude == ("gender", "marital_status")
    for key in ("comparison.outcomes_note", "comparison.without", "comparison.paired"):
        assert says(at, key)
    assert job.result.changes.headline.en in everything(at).replace("\\", "")
    assert not [b for b in at.button if b.key == f"retrain_go_{place}"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_models_are_compared_on_a_page_of_their_own(opened: Opened, retrained: ModelRecord, language: str) -> None:
    at = opened("compare_models", lang=language)
    t = Texts(language)
    assert not at.exception and at.title[0].value == t("compare_models.title")
    shown = everything(at)
    for key in ("numbers", "findings_title", "made_title"):
        assert says(shown, f"comparison.{key}", language)
    # among fewer than 1,000 records the share is not measurable
    assert not retrained.release.measurable
    assert worded(t, told_by_scores(retrained.release, retrained.score_bits)) in shown
    one, other = at.session_state["model"], at.session_state["other"]
    picker, beside = (
        next(b for b in at.selectbox if b.label == t(key)) for key in ("sidebar.model", "compare_models.beside")
    )
    named = [option for option in picker.options if any(line.startswith(option) for line in beside.options)]
    assert (
        len(named) == len(beside.options) == len(picker.options) - 1
    )  # by the name and state that the model picker has
    for line in beside.options:
        times = re.findall(r"\d\d:\d\d", line)
        assert len(times) == 1, line  # a model without a name is called after its moment already
    at.button(key="compare_swap").click().run()
    assert not at.exception and (at.session_state["model"], at.session_state["other"]) == (other, one)


def test_what_was_measured_in_one_model_only_is_one_press_away(
    opened: Opened, retrained: ModelRecord, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = str(retrained.retrained_from)
    request = DisparityRequest(first, "age", cipher="none")
    session._service(str(home)).fairness.start_disparity(request).get()
    monkeypatch.setattr(frame, "BOXES_OPEN", False)
    at = opened("compare_models", model=first, other=retrained.id)
    at.session_state["compare_outcomes_box"] = True  # open
    at.run()
    meaning = T.brief(session.view(first).model.feature("age"))
    assert T("comparison.measured_in_one", features=meaning) in [box.label for box in at.expander]
    groups = [table.value.to_string() for table in at.table if T("comparison.rate") in table.value]
    assert groups and not [words for words in groups if T("comparison.not_measured") in words]


def test_a_new_model_says_which_one_it_replaces(opened: Opened, retrained: ModelRecord) -> None:
    at = opened("compliance", model=retrained.id)
    assert not at.exception and says(at, "comparison.without")


def test_only_the_operator_is_offered_to_train(opened: Opened) -> None:
    at = at_step(as_role(opened("compliance"), "analyst"), "retrain")
    assert not at.exception and not [b for b in at.button if (b.key or "").startswith("retrain_go")]
    assert says(at, "retraining.not_for", role=T("sidebar.role_analyst"))


def test_models_of_other_parameters_show_what_differs(opened: Opened, home: Path, world: World) -> None:
    glassleaf = session._service(str(home))
    grown = glassleaf.training.start(TrainingRequest("demo", ForestParameters(trees=3, depth=2, cipher="none"))).get()
    at = opened("compare_models", model=world.record.id, other=grown.id)
    table = next(table.value for table in at.table if T("comparison.made") in table.value)
    rows = table.set_index(T("comparison.made"))
    assert rows.loc[T("parameter.trees")].tolist() == ["6", "3"]
    assert rows.loc[T("parameter.shuffle_sides")].tolist() == ["–", T("document.no")]
    assert rows.loc[T("parameter.aggregation")].tolist() == ["–", T("choice.aggregation_mean")]
    assert not {"True", "False", "none", "0.0"} & {cell for column in rows for cell in rows[column]}


def test_what_was_measured_of_a_feature_that_was_kept_out_is_shown_and_can_be_measured(
    opened: Opened, retrained: ModelRecord
) -> None:
    at = opened("compliance", model=retrained.id)
    assert any(says(box.label, "compliance.kept_out") for box in at.expander)
    at.session_state["kept_out_gender"] = True  # open
    at.run()
    assert says(at, "compliance.accepted") and at.button(key="evidence_go_gender")


def test_the_page_names_the_day_of_the_law_and_how_many_packs_it_is_from(opened: Opened) -> None:
    at = opened("compliance")
    report = session.view(at.session_state["model"]).compliance
    assert report.packs and says(at, "compliance.basis", on=report.on, packs=len(report.packs))


def test_a_rule_pack_says_what_its_rules_apply_to(opened: Opened) -> None:
    at = opened("compliance")
    scope = session.view(at.session_state["model"]).compliance.packs[0].applies_to.en
    at.session_state["packs"] = True  # open
    assert scope and scope in everything(at.run()) and not at.exception


def test_duties_are_listed_law_by_law_once_a_law_is_chosen(opened: Opened) -> None:
    at = opened("compliance")
    duties = session.view(at.session_state["model"]).compliance.duties
    duty = next(duty for duty in duties if duty.title.en == markdown(duty.title.en))  # written as it is
    assert duty.title.en not in everything(at)
    at.session_state["duties"] = True  # open
    at.session_state["duties_law"] = duty.pack.en
    assert duty.title.en in everything(at.run()) and not at.exception
