"""Every page opens, answers its question at once, speaks two languages and survives bad links and an empty home."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from app import session
from app.panels import palette
from app.texts import Texts, catalogue
from backend import __version__
from backend.compliance.assessment import NotUnderstood, assess
from backend.data.demo import write_demo
from backend.data.dictionary import Feature
from backend.data.federation import write_federation
from backend.services import Glassleaf
from backend.store.reviews import Review
from tests.app.conftest import OF_A_MODEL, PAGES, Answers, Opened, Rendered, World, _fresh, job_of
from tests.app.reading_out import everything, heading_levels, says

EN = Texts("en")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_with_its_title_and_question(rendered: Rendered, page: str) -> None:
    at = rendered(page)
    assert not at.exception
    assert at.title[0].value == Texts("en")(f"{page}.title")
    assert any(Texts("en")(f"{page}.question") in text.value for text in at.markdown)
    assert any(Texts("en")("states.line_draft") in text.value for text in at.caption)  # nobody approved it
    assert any(caption.value.endswith(__version__) for caption in at.sidebar.caption)
    levels = heading_levels(at)
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels


@pytest.mark.parametrize("page", PAGES)
def test_a_page_speaks_chinese(rendered: Rendered, page: str) -> None:
    at = rendered(page, "zh")
    assert not at.exception
    assert at.title[0].value == catalogue("zh")[f"{page}.title"]


def test_a_page_speaks_chinese_once_it_is_chosen_with_its_meanings(opened: Opened, world: World) -> None:
    at = opened("features")
    at.get_by_key("language").set_value("zh")
    at.run()
    assert not at.exception
    assert at.title[0].value == catalogue("zh")["features.title"]
    assert world.federation.guest.features[0].meaning.zh in everything(at)


@pytest.fixture(scope="module")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("empty")
    yield home
    session._service(str(home)).close()


@pytest.mark.parametrize("page", OF_A_MODEL)
def test_without_a_model_a_page_says_what_to_do(empty_home: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    at = _fresh(empty_home, monkeypatch)(page)
    assert not at.exception
    assert at.button(key="prepare_demo").label == Texts("en")("empty.prepare")


@pytest.mark.parametrize(("page", "named"), [("own_data", True), ("train", True), ("help", True), ("overview", False)])
def test_a_page_on_no_model_names_the_one_whose_state_it_tells(rendered: Rendered, page: str, named: bool) -> None:
    [line] = [text.value for text in rendered(page).caption if Texts("en")("states.line_draft") in text.value]
    assert says(line, "states.line_of") is named


@pytest.mark.parametrize("role", ["analyst", "regulator"])
def test_who_may_not_make_a_model_is_told_whose_it_is_and_offered_nothing_that_is_refused(
    opened_empty: Opened, role: str
) -> None:
    at = opened_empty(role=role)
    t = Texts("en")
    assert not at.exception and not [button for button in at.button if button.key == "prepare_demo"]
    assert says(at, "empty.not_for", role=t(f"sidebar.role_{role}"), roles=t("sidebar.role_operator"))


@pytest.mark.slow
def test_the_demo_is_one_press_away(opened_empty: Opened) -> None:
    at = opened_empty()
    at.button(key="prepare_demo").click().run()
    assert at.button(key="cancel_demo")
    job_of("demo").wait()
    at.run()
    assert not at.exception
    assert at.button(key="do_score")
    assert any(Texts("en")("states.line_in_use_demo") in caption.value for caption in at.caption)


def test_the_demo_can_be_stopped_and_begun_again(opened_empty: Opened) -> None:
    at = opened_empty()
    at.button(key="prepare_demo").click().run()
    at.button(key="cancel_demo").click().run()
    assert job_of("demo").wait().state == "cancelled"
    at.run()
    assert [info.value for info in at.info] == [Texts("en")("empty.cancelled")]
    assert not at.button(key="prepare_demo").disabled
    assert not session.service().models.all()


def test_a_damaged_federation_is_explained_instead_of_a_crash(opened_empty: Opened, tmp_path: Path) -> None:
    write_demo(tmp_path / "broken", rows=100)
    with Glassleaf(tmp_path, pools=False) as glassleaf:
        glassleaf.federations.add(tmp_path / "broken")
    (tmp_path / "broken" / "federation.toml").write_text("name = 'Broken'\n")
    at = opened_empty()
    assert not at.exception
    assert "federation.toml" in at.warning[0].value.replace("\\", "")
    assert at.button(key="prepare_demo")


@pytest.fixture(scope="module")
def beside_a_broken_one(home: Path) -> str:
    """A home in which another federation's file was damaged; its name."""
    other = write_demo(home / "other", rows=100)
    write_federation(other.model_copy(update={"name": "other"}), home / "other")
    with Glassleaf(home, pools=False) as glassleaf:
        glassleaf.federations.add(home / "other")
    (home / "other" / "federation.toml").write_text("name = [")
    return "other"


@pytest.mark.parametrize("page", PAGES)
def test_every_page_works_beside_a_broken_federation_and_names_it(
    home: Path, beside_a_broken_one: str, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    at = _fresh(home, monkeypatch)(page)
    assert not at.exception
    assert at.title[0].value == Texts("en")(f"{page}.title")
    assert at.warning[0].proto.title == Texts("en")("frame.broken", name=beside_a_broken_one)
    assert "federation.toml" in at.warning[0].value.replace("\\", "")


@pytest.mark.parametrize(("page", "link"), [("overview", "model"), ("structure", "tree"), ("features", "feature")])
def test_an_unknown_link_leaves_a_notice_and_the_default(opened: Opened, page: str, link: str) -> None:
    at = opened(page, **{link: "no<such>thing"})
    assert not at.exception
    assert any("such" in info.value for info in at.info)
    assert at.title[0].value == Texts("en")(f"{page}.title")
    assert at.query_params[link] != "no<such>thing"


def test_a_link_opens_its_tree(opened: Opened) -> None:
    at = opened("structure", tree="3")
    assert at.selectbox(key="tree").value == "3"
    assert at.query_params["tree"] == "3"


def test_trees_are_offered_by_their_gain(opened: Opened, world: World, glassleaf: Glassleaf) -> None:
    trees = glassleaf.models.guest_model(world.record.id).trees
    gains = [sum(split.gain for split in tree.splits.values()) for tree in trees]
    at = opened("structure")
    menu = at.selectbox(key="tree")
    assert menu.value == str(1 + gains.index(max(gains)))
    offered = [int(option.split("·")[0].split()[-1]) - 1 for option in menu.options]
    assert [gains[tree] for tree in offered] == sorted(gains, reverse=True)


def test_a_link_opens_its_feature(opened: Opened, world: World) -> None:
    name = world.federation.hosts[0].features[0].name
    at = opened("features", feature=name)
    assert at.selectbox(key="feature").value == name
    assert any(name in caption.value for caption in at.caption)


def test_the_beginning_of_a_model_id_is_link_enough(opened: Opened, world: World) -> None:
    at = opened("overview", model=world.record.id[:8])
    assert not at.info
    assert at.query_params["model"] == world.record.id


def test_choices_survive_a_walk_to_another_page_and_back(opened: Opened) -> None:
    at = opened("structure")
    at.selectbox(key="tree").select("4").run()
    at.switch_page("../pages/importance.py").run()
    at.switch_page("../pages/structure.py").run()
    assert at.selectbox(key="tree").value == "4"


def test_a_gallery_button_changes_the_tree(opened: Opened) -> None:
    at = opened("structure")
    at.button(key="tree_2").click().run()
    assert at.selectbox(key="tree").value == "3"


def test_following_a_person_counts_the_leaves_left_open(opened: Opened) -> None:
    at = opened("structure")
    at.toggle(key="structure_overlay").set_value(True).run()
    assert not at.exception
    assert says(at, "structure.left_open")


def test_the_compliance_page_shows_the_gender_flag(rendered: Rendered) -> None:
    at = rendered("compliance")
    assert any("Gender" in text.value for text in at.markdown)
    assert "1691" in everything(at)


def test_secureboost_would_hide_every_host_meaning(opened: Opened, world: World) -> None:
    at = opened("features")
    at.toggle(key="features_secureboost").set_value(True).run()
    shown = {meaning.removeprefix("⚑ ") for meaning in at.dataframe[0].value["meaning"]}
    hosts = {EN.meaning(feature) for host in world.federation.hosts for feature in host.features}
    assert not hosts & shown and "HF1" in shown
    assert {EN.meaning(feature) for feature in world.federation.guest.features} <= shown
    assert at.info


def test_a_partys_mark_has_its_colour_in_the_table_of_features(opened: Opened, world: World) -> None:
    table = opened("features").dataframe[0]
    options = json.loads(table.proto.columns)["mark"]["type_config"]["options"]
    colours = {option["value"]: option["color"] for option in options}
    of_meaning = {EN.meaning(f): palette.mark(world.federation, p) for p, f in world.federation.features()}
    for (glyph,), meaning in zip(table.value["mark"], table.value["meaning"], strict=True):
        mark = of_meaning[meaning.removeprefix("⚑ ")]
        assert glyph == mark.glyph and colours[glyph] == mark.colour
    assert len(colours) == len(world.federation.parties)


def test_a_search_without_a_match_says_so(opened: Opened) -> None:
    at = opened("features")
    at.text_input(key="features_search").set_value("zzzz").run()
    assert not at.exception
    assert at.info[0].value == Texts("en")("features.none")


@pytest.mark.parametrize("page", PAGES)
def test_no_page_claims_more_than_an_assessment(rendered: Rendered, page: str) -> None:
    said = everything(rendered(page)).lower()
    assert not [word for word in ("compliant", "unbiased", "debiased") if word in said]


def test_what_nobody_explains_is_shown_as_a_question(opened: Opened, world: World, answers: Answers) -> None:
    report = session.view(world.record.id).compliance
    asked = replace(report, not_understood=(NotUnderstood(world.federation.hosts[0].name, "zq17"),))
    answers["compliance.assess"] = lambda model_id: asked
    said = everything(opened("compliance"))
    assert says(said, "not_understood.head", n=1) and says(said, "not_understood.why")
    assert "zq17" in said
    answers["compliance.assess"] = lambda model_id: report
    assert not says(everything(opened("compliance")), "not_understood.why")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_question_says_on_which_words_it_is_asked_and_is_answered_yes_or_no(
    opened: Opened, world: World, answers: Answers, language: str
) -> None:
    report = replace(session.view(world.record.id).compliance, questions=())
    meaning = "Average of spouses here"
    (asked,) = assess([(world.federation.hosts[0].name, Feature(name="zq17", meaning=meaning))], {}).questions
    answers["compliance.assess"] = lambda model_id: report
    assert not says(everything(opened("compliance")), "questions.why")
    answers["compliance.assess"] = lambda model_id: replace(report, questions=(asked,))
    beside = everything(opened("compliance"))  # a finding is open, and the question a line
    assert says(beside, "questions.waiting", n=1) and not says(beside, "questions.why_single")
    answers["compliance.assess"] = lambda model_id: replace(report, findings=(), questions=(asked,))
    at = opened("compliance")
    at.get_by_key("language").set_value(language)
    said, t = everything(at.run()), Texts(language)
    assert says(said, "questions.waiting", language, n=1) and says(said, "questions.why_single", language)
    title = t.text(asked.title)
    assert t("questions.ask", feature=meaning, title=title) in str(at.main) and "spouses" in said
    (answer,) = [radio for radio in at.radio if radio.key == f"question_{asked.feature}_{asked.about}_verdict"]
    assert answer.value is None  # neither answer suggests itself
    at.button(key=f"question_{asked.feature}_{asked.about}_go").click().run()
    assert says(at, "questions.choose", language)
    given = Review(
        1, "", asked.about, asked.feature, "confirmed", "Only the married get it.", "Rita", "2026-11-28T06:52:17"
    )
    answers["compliance.assess"] = lambda model_id: replace(report, questions=(replace(asked, answer=given),))
    assert session.view(world.record.id).compliance.questions[0].answer == given  # on every page at once


def test_one_press_answers_all_open_questions_that_are_asked_for_the_same_reason(
    opened: Opened, world: World, answers: Answers
) -> None:
    report = replace(session.view(world.record.id).compliance, findings=())
    host = world.federation.hosts[0].name
    features = [Feature(name=f"zq{n}", meaning="Average of spouses here") for n in range(20)]
    asked = assess([(host, feature) for feature in features], {}).questions
    given: list[str] = []
    answers["compliance.assess"] = lambda model_id: replace(report, questions=asked)
    answers["reviews.decide"] = lambda model_id, about, feature, *said: given.append(feature)
    at = opened("compliance")
    key = f"question_{asked[0].feature}_{asked[0].about}"
    next(radio for radio in at.radio if radio.key == f"{key}_verdict").set_value("overridden")
    at.text_area(key=f"{key}_reason").set_value("Averages of areas, not of people.")
    at.text_input(key=f"{key}_reviewer").set_value("Rita")
    at.checkbox(key=f"{key}_others").check()
    at.button(key=f"{key}_go").click().run()
    assert not at.exception and sorted(given) == sorted(feature.name for feature in features)


def test_what_an_owner_set_aside_stays_visible(opened: Opened, world: World, answers: Answers) -> None:
    view = session.view(world.record.id)
    report = replace(view.compliance, findings=(), set_aside=view.compliance.findings[:1])
    answers["compliance.assess"] = lambda model_id: report
    at = opened("compliance")
    assert not at.exception
    said = everything(at)
    assert says(said, "compliance.set_aside", n=1)
    assert view.compliance.findings[0].title.en in said
