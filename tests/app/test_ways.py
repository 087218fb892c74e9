"""How one finds one's way: groups, links and addresses, the search, first steps, next steps and help."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app import glossary, search, session
from app.panels import navigation, walk
from app.texts import Texts, catalogue
from backend.i18n import LANGUAGES
from backend.services.roles import OPERATOR, REGULATOR, ROLES
from tests.app.conftest import PAGES, Opened, World
from tests.app.reading_out import elements, everything, says

ROOT = Path(__file__).resolve().parents[2]
T = Texts("en")


def links(at: AppTest) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Words, page and what is named in the address of every link."""
    for element in elements(at):
        if element.type == "page_link":
            named = parse_qs(element.proto.query_string)
            yield element.proto.label, element.proto.page, {name: values[0] for name, values in named.items()}


def named_by(at: AppTest, page: str) -> dict[str, str]:
    """What the sidebar's link to a page names."""
    return next(named for words, _, named in links(at) if words == T(f"{page}.title"))


# -- the pages ----------------------------------------


def test_every_page_stands_in_one_group() -> None:
    grouped = [name for names in navigation.PAGE_GROUPS.values() for name in names]
    files = {file.stem for file in (ROOT / "pages").glob("[!_]*.py")}
    assert sorted([*grouped, "help", navigation.NOWHERE]) == sorted(files)


@pytest.mark.parametrize("role", ROLES)
def test_the_next_steps_of_a_role_lead_through_all_its_pages(role: str) -> None:
    assert sorted(navigation.NEXT_PAGES[role]) == sorted(navigation.listed(role))
    assert set(walk.WALK_STEPS[role]) <= set(navigation.NEXT_PAGES[role])


def test_a_regulator_sees_governance_first() -> None:
    assert next(iter(navigation.visible(REGULATOR))) == "govern"
    assert "use" not in navigation.visible(REGULATOR)
    assert next(iter(navigation.visible(OPERATOR))) == "start"


def test_links_are_made_in_one_place_so_that_all_take_language_and_model_along() -> None:
    sources = [*ROOT.glob("app/**/*.py"), *ROOT.glob("pages/*.py")]
    made = {s.name for s in sources if re.search(r"st\.(page_link|switch_page)\(", s.read_text(encoding="utf-8"))}
    written = {s.name for s in sources if re.search(r"st\.query_params(?!\.get)", s.read_text(encoding="utf-8"))}
    assert (made, written) == ({"links.py"}, {"session.py"})


# -- the address ----------------------------------------


def test_what_is_as_usual_is_not_in_the_address(opened: Opened) -> None:
    at = opened("features")
    assert not at.exception
    assert not at.query_params


def test_a_link_brings_language_and_role_and_every_other_link_takes_them_along(opened: Opened) -> None:
    at = opened("overview", lang="zh", role="regulator")
    assert at.title[0].value == catalogue("zh")["overview.title"]
    assert at.get_by_key("role").value == "regulator"
    assert {(named["lang"], named["role"]) for _, _, named in links(at)} == {("zh", "regulator")}


def test_another_language_and_another_role_stand_in_the_address_until_they_are_the_usual_ones(opened: Opened) -> None:
    at = opened("help")
    at.get_by_key("language").set_value("zh")
    at.get_by_key("role").set_value("analyst")
    at.run()
    assert (at.query_params["lang"], at.query_params["role"]) == ("zh", "analyst")


def test_the_link_back_to_a_page_names_what_was_chosen_there(opened: Opened) -> None:
    at = opened("structure")
    at.button(key="tree_2").click().run()
    at.switch_page("../pages/help.py").run()
    assert named_by(at, "structure")["tree"] == "3"
    assert "tree" not in named_by(at, "features")


def test_going_back_to_an_address_without_a_choice_shows_the_usual_one(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = opened("structure", tree="3")
    del at.query_params["tree"]
    assert at.run().selectbox(key="tree").value == "3"  # a link that names no tree changes none
    del at.query_params["tree"]
    monkeypatch.setattr(session, "going_back", lambda: True)
    assert at.run().selectbox(key="tree").value == "1"


def test_the_browser_is_told_the_language_and_the_open_page(opened: Opened) -> None:
    told = everything(opened("help", lang="zh"))
    assert '\\"language\\": \\"zh-CN\\"' in told
    assert '\\"open\\": null' in told  # the help page is not in the navigation


def test_an_unknown_address_has_a_page_in_words(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(st.context), "url", property(lambda _: "http://localhost/not_found"))
    at = opened("not_found")
    assert at.title[0].value == T("not_found.title")
    assert (T("not_found.first"), "overview") in {(words, page) for words, page, _ in links(at)}


# -- the search ----------------------------------------


@pytest.fixture
def found(opened: Opened, world: World, monkeypatch: pytest.MonkeyPatch) -> search.Groups:
    view = session.view(world.record.id)
    return search.everything(T, PAGES, {world.record.id: "Demo"}, view, glossary.terms())


def places(found: search.Groups, typed: str) -> dict[str, list[dict[str, str]]]:
    return {kind: [dict(hit.place) for hit in hits] for kind, hits in search.hits(found, typed).items()}


def test_a_feature_is_found_by_its_column_and_by_its_meaning_in_either_language(
    found: search.Groups, world: World
) -> None:
    feature = world.federation.hosts[0].features[0]
    for typed in (feature.name, feature.meaning.en, feature.meaning.zh):
        assert {"feature": feature.name, "search": feature.name} in places(found, typed)["features"]


def test_a_number_finds_its_tree_alone(found: search.Groups) -> None:
    assert places(found, "tree 3")["trees"] == [{"tree": "3"}]
    assert places(found, "TREE")["trees"] == [{"tree": str(number)} for number in range(1, 7)]


def test_a_finding_is_found_by_its_law_and_a_model_by_its_id(found: search.Groups, world: World) -> None:
    assert {"finding": "ecoa_sex~gender"} in places(found, "1691 gender")["findings"]
    assert places(found, world.record.id[:6])["models"] == [{"model": world.record.id}]
    assert places(found, "扰动")["terms"] == [{"term": "dither"}]


def test_people_are_not_found(found: search.Groups, world: World) -> None:
    person = session.samples(world.record.id).index[0]
    assert not search.hits(found, str(person))
    assert not search.hits(found, "   ")


def test_words_are_found_from_their_beginning_on(found: search.Groups) -> None:
    assert {"term": "synthetic"} in places(found, "synth")["terms"]
    assert "terms" not in places(found, "ynthetic")


def test_the_window_lists_links_to_what_is_found(opened: Opened, world: World) -> None:
    at = opened("help")
    at.session_state["search_typed"] = "tree 3"
    at.button(key="search_open").click().run()
    assert not at.exception
    assert (T("structure.tree", tree=3), "structure", {"tree": "3"}) in list(links(at))
    at.session_state["search_typed"] = "nosuchthing"
    at.button(key="search_open").click().run()
    assert says(at, "search.nothing", typed="nosuchthing")


def test_a_person_is_found_by_the_whole_id_stands_on_score_and_in_no_address(opened: Opened, world: World) -> None:
    people = session.samples(world.record.id)
    last = str(people.index[people["part"] == "training"][-1])  # in no menu at first
    at = opened("help")
    at.session_state["search_typed"] = last
    at.button(key="search_open").click().run()
    at.button(key="search_person").click().run()
    assert not at.exception
    at = at.switch_page("../pages/score.py").run()
    assert at.selectbox(key="sample").value == last and last not in str(dict(at.query_params))
    for typed, role in ((last[:-1], OPERATOR), (last, REGULATOR)):
        at = opened("help", role=role)
        at.session_state["search_typed"] = typed
        at.button(key="search_open").click().run()
        assert says(at, "search.nothing", typed=typed) and not [b for b in at.button if b.key == "search_person"]


# -- first steps and help ----------------------------------------


def test_the_first_steps_are_shown_until_they_are_skipped_and_again_when_asked_for(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(st.context), "cookies", property(lambda _: {}))
    at = opened("report", role="regulator")
    assert says(at, "walk.step", step=3, steps=3)
    at.button(key="walk_end").click().run()
    assert not says(at, "walk.report")
    assert '\\"walked\\": true' in everything(at)
    at.switch_page("../pages/help.py").run()
    at.button(key="walk_begin").click().run()
    at.switch_page("../pages/report.py").run()
    assert says(at, "walk.report")


def test_who_ended_the_first_steps_in_this_browser_does_not_see_them_again(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(st.context), "cookies", property(lambda _: {session.WALKED: "1"}))
    assert not says(opened("report", role="regulator"), "walk.report")


def test_help_explains_a_word_that_a_link_names_and_says_what_is_running(opened: Opened, world: World) -> None:
    at = opened("help", term="leaf weight")
    meanings = {term.words["en"]: term.meaning("en") for term in glossary.terms()}
    said = everything(at)
    assert meanings["leaf weight"] in said
    assert meanings["audit head"] not in said
    assert world.record.content_hash in said
    assert all(digest in said for digest in world.record.host_hashes.values())


def test_a_word_has_one_chinese_word_and_stands_in_the_english_order() -> None:
    terms = glossary.terms()
    assert all(term.words[language] and term.meanings[language] for term in terms for language in LANGUAGES)
    english, chinese = ([term.words[language].casefold() for term in terms] for language in LANGUAGES)
    assert english == sorted(set(english))
    assert len(set(chinese)) == len(chinese)
