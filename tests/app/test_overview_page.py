"""The overview answers at once: what for whom, in use or not, what is open, what a score gives away; names and steps from there."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.texts import Texts, markdown, number
from backend.i18n import wide
from backend.results import told_by_scores
from backend.services import Glassleaf
from backend.services.roles import ANALYST, OPERATOR, REGULATOR
from tests.app.conftest import Opened, World, _fresh, sign_in
from tests.app.reading_out import everything, prose, says

T = Texts("en")
WHY = "read with the whole team"


@pytest.fixture
def own(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Pages on a home of the test's own."""
    shutil.copytree(world.fresh, tmp_path / "home")
    yield _fresh(tmp_path / "home", monkeypatch)
    session._service(str(tmp_path / "home")).close()


def in_role(at: AppTest, role: str) -> AppTest:
    at.get_by_key("role").set_value(role)
    return at.run()


def managed(at: AppTest, role: str = OPERATOR) -> AppTest:
    in_role(at, role).button(key="manage").click().run()
    assert not at.exception
    return at


def take(at: AppTest, step: str, person: str, reason: str = "") -> AppTest:
    at.text_input(key="step_person").set_value(person)
    if reason:
        at.text_area(key="step_reason").set_value(reason)
    return at.button(key=f"step_{step}").click().run()


def test_the_first_sentence_says_what_for_whom_and_with_whose_data(opened: Opened, world: World) -> None:
    hosts = T.listed([host.title.in_language("en") for host in world.federation.hosts])
    label, guest = world.federation.label.meaning, world.federation.guest.title
    assert says(opened(), "overview.sentence", label=label, guest=guest, hosts=hosts)


@pytest.mark.parametrize(
    ("role", "first", "others"),
    [
        (OPERATOR, "do_score", {"do_review", "do_protected"}),
        (ANALYST, "do_score", {"do_review", "do_protected"}),
        (REGULATOR, "do_review", {"do_report", "do_protected"}),
    ],
)
def test_a_role_has_one_main_action_and_two_more(opened: Opened, role: str, first: str, others: set[str]) -> None:
    at = in_role(opened(), role)
    kinds = {button.key: button.proto.type for button in at.button if (button.key or "").startswith("do_")}
    assert [key for key, kind in kinds.items() if kind == "primary"] == [first]
    assert set(kinds) == {first, *others}
    at.button(key="do_protected").click().run()
    assert not at.exception and at.title[0].value == T("privacy.title")


def test_a_model_is_named_on_the_overview_and_in_the_picker(own: Opened, world: World) -> None:
    at, model = managed(own()), world.record.id
    at.text_input(key=f"name_{model}").set_value("Default 90 d")
    at.text_input(key=f"owner_{model}").set_value("Dee")
    at.text_area(key=f"note_{model}").set_value("for the branch")
    at.button(key="describe_go").click().run()
    assert not at.exception and at.success[0].value == T("states.saved")
    shown = everything(at)
    assert (
        "Default 90 d" in at.selectbox(key="model").options[0]
        and T("states.draft") in at.selectbox(key="model").options[0]
    )
    assert says(shown, "overview.owned", owner="Dee") and "for the branch" in shown


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_models_own_places_and_product_are_set_on_its_page_and_choose_the_law(
    own: Opened, world: World, tmp_path: Path, language: str
) -> None:
    words = Texts(language)
    model = world.record.id
    at = managed(own(lang=language))
    assert at.multiselect(key=f"places_{model}").value == []
    at.multiselect(key=f"places_{model}").set_value(["us", "us_colorado"])
    at.selectbox(key=f"product_{model}").set_value("card")
    at.button(key="describe_go").click().run()
    assert not at.exception and at.success[0].value == words("states.saved")
    at.switch_page("../pages/compliance.py").run()
    scope = words.text(session._service(str(tmp_path / "home")).compliance.assess(model).scope)
    assert any(markdown(scope) in one.value for one in at.markdown)
    assert words("place.us_colorado") in scope and words("product.card") in scope


@pytest.mark.parametrize(
    ("language", "name"), [("en", "A scorecard without gender"), ("zh", "不含性别与婚姻状况的评分卡")]
)
def test_the_picker_cuts_a_long_name_and_never_the_state(
    own: Opened, world: World, tmp_path: Path, language: str, name: str
) -> None:
    session._service(str(tmp_path / "home")).lifecycle.describe(world.record.id, name=name)
    label = own(lang=language).selectbox(key="model").options[0]
    assert label.startswith(name[:4]) and label.endswith(f" · {Texts(language)('states.draft')}")
    assert wide(label) <= 29  # more than 30 are cut in Chromium


@pytest.mark.slow
def test_a_model_is_taken_to_use_step_by_step_and_the_pages_say_how_far_it_is(own: Opened) -> None:
    at = managed(own())
    take(at, "submit", "Ana")
    assert at.success[0].value == T("states.done_submit")
    assert any(T("states.line_in_review") in caption.value for caption in at.caption)
    managed(at, REGULATOR)
    take(at, "approve", "Cy")  # findings are open
    assert at.warning and not at.success
    take(at, "approve", "ana", WHY)  # who submitted it
    assert at.warning and not at.success
    take(at, "approve", "Cy", WHY)
    assert at.success[0].value == T("states.done_approve")
    assert says(at, "states.approved_by", person="Cy")
    managed(at, OPERATOR)
    take(at, "use", "Bo")
    assert not any(T("states.line_in_use_demo") in caption.value for caption in at.caption)
    assert T("states.in_use") in at.selectbox(key="model").options[0]


def test_a_step_of_another_role_is_shown_with_whose_it_is(opened: Opened) -> None:
    at = managed(opened(), REGULATOR)
    assert at.button(key="step_submit").disabled
    roles = T.listed([T(f"sidebar.role_{role}") for role in (OPERATOR, ANALYST)])
    assert says(at, "states.not_mine", roles=roles, role=T("sidebar.role_regulator"))
    assert says(at, "states.self_declared")


def test_whoever_is_signed_in_takes_the_step_under_that_name(own: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    sign_in(monkeypatch)
    at = managed(own())
    assert not [field for field in at.text_input if field.key == "step_person"]
    at.button(key="step_submit").click().run()
    (step,) = session.service().lifecycle.history(session.models()[0].id)
    assert step.person == "https://id.example#rita"


@pytest.fixture
def beside(own: Opened, world: World, tmp_path: Path) -> str:
    """Id of a newer model in the test's own home: the same trees again."""
    with Glassleaf(tmp_path / "home", pools=False) as glassleaf:
        newer = replace(world.record, id="m0", created="2999-01-01T00:00:00.000+00:00")
        partial_model, part_of = glassleaf.models.partial_model(world.record), glassleaf.models.part_of(world.record)
        glassleaf.models.register(newer, partial_model, part_of, "eve")
    return newer.id


def test_pages_open_on_the_model_in_use_and_not_on_the_newest(
    own: Opened, beside: str, world: World, tmp_path: Path
) -> None:
    assert own().selectbox(key="model").value == beside
    with Glassleaf(tmp_path / "home", pools=False) as glassleaf:
        glassleaf.lifecycle.open_demo("demo")
        assert glassleaf.models.get("latest").id == beside
    at = own()
    assert at.selectbox(key="model").value == world.record.id
    assert any(T("states.line_in_use_demo") in caption.value for caption in at.caption)


def test_no_page_contradicts_another_on_the_same_model(own: Opened, beside: str, world: World, tmp_path: Path) -> None:
    """The share of scores that fit one path, the quality, the findings, the thresholds kept: one figure each, wherever it stands."""
    model = world.record.id
    with Glassleaf(tmp_path / "home", pools=False) as glassleaf:
        report = json.loads(glassleaf.reports.export(model, "json"))["content"]
    overview, privacy, card, compliance = (
        own(p, model=model) for p in ("overview", "privacy", "model_card", "compliance")
    )
    compared = own("compare_models", model=model, other=beside)

    record = world.record
    for page in (overview, privacy):
        assert told_by_scores(record.release, record.score_bits).sentence() in everything(page).replace("\\", "")

    auc = number(report["quality"]["auc"])
    assert f"{T('figure.auc')} {auc}" in "\n".join(prose(overview))
    assert next(m.value for m in card.metric if m.label == T("figure.auc")) == auc
    assert auc in everything(compared)

    findings = report["assessment"]["findings"]
    undecided = sum(finding["decision"] is None for finding in findings)
    assert overview.button(key="do_review").label == T("overview.do_review", n=undecided)
    assert says(compliance, "compliance.sentence", n=len(findings)) and says(
        compliance, "compliance.waiting", n=undecided
    )

    structure = report["structure"]
    hidden, splits = (f"{structure[name]:,}" for name in ("hidden_splits", "splits"))
    assert says(overview, "overview.hidden", hidden=hidden, splits=splits)
    sizes = next(e.value for e in compared.table if T("sizes.hidden_splits") in set(e.value.iloc[:, 0]))
    assert set(sizes.set_index(sizes.columns[0]).loc[T("sizes.hidden_splits")].iloc[:2]) == {hidden}


def test_a_model_is_called_by_its_name_in_the_list_of_models_and_beside_another(
    own: Opened, beside: str, world: World, tmp_path: Path
) -> None:
    with Glassleaf(tmp_path / "home", pools=False) as glassleaf:
        glassleaf.lifecycle.open_demo("demo")
        name = T.model(glassleaf.models.states()[world.record.id].name)
    assert name
    train = own("train", model=world.record.id)
    listed = next(one.value for one in train.table if T("figure.auc") in one.value)
    assert list(listed[T("states.name")]) == [beside, name]
    assert train.selectbox(key="train_opened").options[1].startswith(name)
    opened_one = train.selectbox(key="train_opened").set_value(world.record.id).run()
    assert T("train.open_one", name=name, when=session.made(world.record)) in {e.label for e in opened_one.page_link}

    compared = own("compare_models", model=world.record.id, other=beside)
    links = {link.label for link in compared.get("page_link")}
    assert T("comparison.open_first", model=name) in links
    # The other one has no name: it is called by its federation and when it was made, not by its id.
    assert T("comparison.open_second", model=beside) not in links
    assert any(label.startswith(T("comparison.open_second", model="Demo")) for label in links)
