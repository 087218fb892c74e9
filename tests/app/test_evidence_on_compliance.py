"""Evidence on the Compliance page: cards say what was measured with n and interval, and what was not; the page measures it."""

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import session, view_models
from app.panels import disparity, evidence
from app.texts import Texts, number
from backend.data.dictionary import Feature
from backend.errors import Cancelled
from backend.fairness.age_discrimination import AgeCheck, AgeGap
from backend.fairness.disparity import Disparity
from backend.fairness.evidence import Basis, Evidence
from backend.i18n import LANGUAGES, Text
from backend.jobs import Job
from backend.services.fairness import GROUPS, Proxies
from backend.services.verdicts import Fact
from tests.app.conftest import Answers, Opened, World, _fresh, job_of
from tests.app.reading_out import everything, says

FEATURE = "gender"
PROXIES = (
    Evidence(about=Text("basket_mix"), measure="Cramér's V", n=1426, value=0.768, low=0.739, high=0.790),
    Evidence(about=Text("orders_12m"), measure="Cramér's V", n=1426, value=0.119, low=0.031, high=0.179),
)
GAPS = (
    Evidence(about=Text("male"), measure="selection rate, reference", n=148, value=0.6, low=0.52, high=0.68),
    Evidence(
        about=Text("bin 1 of 2", "第 1 箱"), measure="selection rate, difference", n=285, value=0.2, low=0.09, high=0.3
    ),
    Evidence(
        about=Text("bin 1 of 2", "第 1 箱"), measure="selection rate, ratio", n=285, value=4 / 3, low=1.14, high=1.58
    ),
    Evidence(about=Text("all groups"), measure="selection rate, p", n=285, value=0.0005, low=None, high=None),
)
OUTCOMES = (
    Evidence(about=Text("male"), measure="selection rate", n=148, value=0.6, low=0.52, high=0.68),
    Evidence(about=Text("male"), measure="true positive rate", n=0, value=None, low=None, high=None),
    Evidence(about=Text("bin 1 of 2", "第 1 箱"), measure="selection rate", n=137, value=0.8, low=0.73, high=0.86),
    *GAPS,
)


@pytest.fixture
def opened(home: Path, monkeypatch: pytest.MonkeyPatch, answers: Answers) -> Opened:
    """The page asks for the default cipher; plaintext here, so that it is quick."""
    service = session._service
    answers["fairness.start"] = lambda request: service(str(home)).fairness.start(replace(request, cipher="none"))
    return _fresh(home, monkeypatch)


def pretend(answers: Answers, **found: tuple[Evidence, ...] | Basis | None) -> None:
    """As if this had been measured of every finding."""

    def assess(model_id: str) -> object:
        report = session._view(os.environ["GLASSLEAF_HOME"], model_id).compliance  # found before this takes its place
        return replace(report, findings=tuple(replace(f, **found) for f in report.findings))

    answers["compliance.assess"] = assess


def place_of(at: AppTest, feature: str = FEATURE) -> str:
    found = session.view(at.session_state["model"]).compliance.findings
    return view_models.key_of(next(f for f in found if f.feature == feature))


def to_measure(at: AppTest, kind: str, feature: str = FEATURE) -> str:
    """Open the card of a feature where `kind` is measured; returns its place."""
    place = place_of(at, feature)
    at.session_state[f"finding_{feature}"] = True  # open
    at.session_state[f"step_{place}"] = "measure"
    at.run().radio(key=f"kind_{place}").set_value(kind).run()
    return place


def measured(at: AppTest, kind: str, feature: str = FEATURE, cutoff: int = 0) -> AppTest:
    place = to_measure(at, kind, feature)
    if cutoff:
        at.slider(key=f"measure_cutoff_{place}").set_value(cutoff).run()
    at.button(key=f"evidence_go_{place}").click().run()
    evidence_job(at).wait(120)
    return at.run()


def evidence_job(at: AppTest) -> Job[Any]:
    return job_of(f"evidence:{at.session_state['model']}")


def texts(at: AppTest) -> list[str]:
    return [element.value for kind in (at.markdown, at.caption, at.info) for element in kind]


def test_what_was_not_measured_is_called_not_measured(opened: Opened, answers: Answers) -> None:
    pretend(answers, proxies=None, disparities=None)
    at = opened("compliance")
    assert not at.exception
    said = [text for text in texts(at) if text.endswith(Texts("en")("compliance.not_measured"))]
    assert len(said) == 2  # of the card that is open


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_host_has_not_agreed_to_is_said_so(opened: Opened, answers: Answers, language: str) -> None:
    refused = Basis(0, refused="telecom")
    pretend(answers, proxies=None, disparities=None, proxies_on=refused, disparities_on=refused)
    at = opened("compliance", lang=language)
    assert not at.exception
    assert sum(says(text, "disparity.not_agreed", language) for text in texts(at)) == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_card_shows_evidence_with_its_number_of_records_and_interval(
    opened: Opened, answers: Answers, language: str
) -> None:
    pretend(answers, proxies=PROXIES, disparities=OUTCOMES)
    at = opened("compliance", lang=language)
    assert not at.exception
    t, shown = Texts(language), "\n".join(texts(at))
    interval = t("compliance.interval", value="0.768", low="0.739", high="0.790")
    assert interval in shown and "1,426" in shown
    accepted = next(table.value for table in at.table if t("compliance.accepted") in table.value)
    assert accepted[t("compliance.records")].tolist() == ["148", "137"]
    assert accepted[t("compliance.group")].tolist() == ["male", t.text(Text("bin 1 of 2", "第 1 箱"))]
    assert says(
        shown, "compliance.outcomes_apart", language, reference="male", gap="+20.0", gap_low="+9.0", p="= 0.0005"
    )
    assert accepted[t("compliance.difference")].tolist() == [
        "–",
        t("compliance.interval", value="+20.0", low="+9.0", high="+30.0"),
    ]
    assert says(at, "compliance.suppressed", language)  # the rate behind which there are too few


def test_what_was_measured_is_not_the_next_step_again(opened: Opened, answers: Answers, home: Path) -> None:
    glassleaf = session._service(str(home))
    model = glassleaf.models.all()[-1].id
    finding = next(f for f in glassleaf.compliance.assess(model).findings if f.feature == FEATURE)
    glassleaf.reviews.decide(model, finding.rule_id, FEATURE, "confirmed", "Not to be taken into account.", "Rita")
    for found, offered in ((None, True), (OUTCOMES, False)):
        pretend(answers, proxies=None, disparities=found)
        at = opened("compliance", model=model)
        labels = [b.label for b in at.button if b.key == f"next_measure_{view_models.key_of(finding)}"]
        assert not at.exception and bool(labels) is offered


def test_the_adverse_impact_ratio_never_stands_without_its_caution(opened: Opened, answers: Answers) -> None:
    pretend(answers, disparities=OUTCOMES)
    t, at = Texts("en"), opened("compliance")
    shown = [table.value for table in at.table if t("compliance.over") in table.value]
    interval = t("compliance.interval", value="1.33", low="1.14", high="1.58")
    assert [table[t("compliance.over")].tolist() for table in shown] == [["–", interval]]
    assert at.selectbox(key="reference_lda_gender").value == "1"  # alternatives are compared with the same group: male
    assert sum(says(text, "compliance.ratio", reference="male") for text in texts(at)) == 1


def test_what_is_broken_about_groups_is_in_view_before_any_card_is_opened(
    opened: Opened, world: World, answers: Answers
) -> None:
    told = Text("Women are accepted half as often.", "女性的通过率只有一半。")
    broken = Fact("outcomes", FEATURE, "broken", Text("Acceptance", "通过率"), told, "compliance")
    open_ = replace(broken, state="undecided", sentence=Text("Not decided.", "未定。"))
    verdict = replace(session.service().verdicts.of(world.record.id), facts=(broken, open_))
    answers["verdicts.of"] = lambda model: verdict
    shown = texts(opened("compliance"))
    assert any(told.en in text for text in shown) and not any("Not decided." in text for text in shown)


def test_nothing_found_is_no_clean_bill(opened: Opened, answers: Answers) -> None:
    pretend(answers, proxies=(), disparities=())
    shown = " ".join(texts(opened("compliance")))
    assert says(shown, "compliance.proxies_none_n") or says(shown, "compliance.proxies_none")
    assert says(shown, "compliance.outcomes_none")
    assert "unbiased" not in shown.lower() and "compliant" not in shown.lower()


def test_groups_are_named_in_the_language_chosen_and_codes_stay_text() -> None:
    row = Evidence(about=Text("no value", "无取值"), measure="selection rate", n=30, value=0.5, low=0.3, high=0.7)
    assert (evidence.group(Texts("en"), row), evidence.group(Texts("zh"), row)) == ("no value", "无取值")
    assert evidence.group(Texts("zh"), replace(row, about=Text("*own* <b>"))) == r"\*own\* \<b\>"


@pytest.mark.parametrize(
    ("p", "shown"), [(None, "–"), (0.391951, "0.39"), (0.00081, "0.00081"), (0.00004, "< 0.0001"), (1.0, "1")]
)
def test_a_p_value_has_two_digits_and_is_never_nought(p: float | None, shown: str) -> None:
    assert disparity.chance(p) == shown


def test_decisions_are_measured_from_the_page_and_the_card_shows_them(opened: Opened) -> None:
    at = measured(opened("compliance"), "disparity", cutoff=25)
    assert not at.exception
    done = evidence_job(at).get()
    assert isinstance(done, Disparity)
    assert done.feature == FEATURE
    line = Texts("en")("policy.at_other", cutoff="25.0\u00a0%")
    assert says(at, "compliance.measured_disparity", cutoff=line, records=f"{done.n:,}")
    t = Texts("en")
    own = [table.value for table in at.table if t("disparity.head_smd") in table.value]
    assert [list(table[t("disparity.head_records")]) for table in own] == [[f"{o.group.n:,}" for o in done.groups]]
    ratios = [at_cutoff.others[0].ratio.value or 0.0 for at_cutoff in done.cutoffs]
    ratios = [min(ratio, 1 / ratio) for ratio in ratios]
    assert says(at, "disparity.range_sentence", cutoffs=len(ratios), low=number(min(ratios)), high=number(max(ratios)))
    tables = [table.value for table in at.table if t("compliance.accepted") in table.value]
    assert any(
        list(table[t("compliance.records")]) == [f"{outcome.group.n:,}" for outcome in done.groups] for table in tables
    )


def test_where_the_reference_group_is_accepted_least_four_fifths_is_still_seen_to_be_broken() -> None:
    """Ratios over its rate are above 1, and the line at four fifths of its rate would lie left of every group."""
    more = Evidence(
        about=Text("women"), measure="selection rate by cut-off, ratio", n=200, value=2.0, low=1.6, high=2.5, cutoff=0.2
    )
    sentence = disparity.range_sentence(Texts("en"), [more])
    assert says(sentence, "disparity.range_sentence", cutoffs=1, low="0.500", high="0.500", below=1)
    rates = [
        Evidence(about=Text(name), measure="selection rate", n=100, value=rate, low=rate - 0.1, high=rate + 0.1)
        for name, rate in (("a", 0.4), ("b", 0.8))
    ]
    [line] = disparity._dots(Texts("en"), rates).layout.shapes
    assert line.x0 == pytest.approx(64.0)


def test_of_many_groups_the_lowest_alone_are_drawn_along_the_cut_off(opened: Opened, answers: Answers) -> None:
    names = [Text(f"group {k}") for k in range(6)]
    ratios = [
        Evidence(
            about=name,
            measure="selection rate by cut-off, ratio",
            n=200,
            value=0.3 + k / 10,
            low=0.2 + k / 10,
            high=0.4 + k / 10,
            cutoff=cutoff,
        )
        for k, name in enumerate(names)
        for cutoff in (0.2, 0.3)
    ]
    answers["compliance.together"] = lambda model, feature: {
        f"age × {feature}": ((*OUTCOMES, *ratios), Basis(285, 0.3))
    }
    at = opened("compliance")
    assert not at.exception and says(at, "disparity.range_lowest", n=4)
    assert disparity._lowest(ratios) == names[:4]


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_features_together_have_groups_of_their_own_and_the_small_ones_are_named(
    opened: Opened, answers: Answers, language: str
) -> None:
    young, old = Text("young × women", "年轻 × 女"), Text("old × women", "年老 × 女")
    rows = (
        *OUTCOMES,
        Evidence(about=young, measure="selection rate", n=0, value=None, low=None, high=None),
        Evidence(about=old, measure="selection rate", n=0, value=None, low=None, high=None),
    )
    answers["compliance.together"] = lambda model, feature: {f"age × {feature}": (rows, Basis(285, 0.3))}
    at = opened("compliance", lang=language)
    assert not at.exception
    t = Texts(language)
    assert any(text.startswith(f":material/join_inner: **{t('compliance.together')}**") for text in texts(at))
    named = t.listed([t.text(young), t.text(old)])
    assert says(at, "compliance.small", language, n=2, groups=named)


def test_a_second_feature_is_chosen_where_decisions_are_measured(opened: Opened, home: Path) -> None:
    at = opened("compliance")
    record = session.view(at.session_state["model"]).record
    partners = session._service(str(home)).fairness.partners
    names = [one.name for one in partners(record, FEATURE)]
    assert "age" in names and "basket_mix" not in names  # another Host's
    assert {"gender", "basket_mix", "home_ownership"} < {one.name for one in partners(record, "age")}
    of_host = {one.name for one in partners(record, "basket_mix")}
    assert "spending_steadiness" in of_host and "gender" not in of_host
    place = to_measure(at, "disparity", "age")
    choice = at.selectbox(key=f"together_{place}")
    assert choice.value == ""  # nothing is preselected
    choice.set_value("home_ownership").run()
    assert not [box for box in at.selectbox if box.key == f"reference_{place}"]
    at.button(key=f"evidence_go_{place}").click().run()
    evidence_job(at).wait(120)
    at.run()
    done = evidence_job(at).get()
    assert isinstance(done, Disparity)
    assert set(done.feature.split(" × ")) == {"age", "home_ownership"} and not at.exception
    assert any(text.startswith(":material/join_inner:") and " × " in text for text in texts(at))


def test_what_two_features_of_one_host_cost_is_said_before_the_press(opened: Opened, answers: Answers) -> None:
    answers["fairness.answers_once"] = lambda record, feature, crossed: "telecom" if crossed else ""
    at = opened("compliance")
    place = to_measure(at, "disparity", FEATURE)
    assert not says(at, "compliance.together_once")
    at.selectbox(key=f"together_{place}").set_value("tenure_months").run()
    assert not at.exception and says(at, "compliance.together_once", days=28)


def test_associated_features_are_measured_from_the_page_and_the_card_shows_them(opened: Opened) -> None:
    at = measured(opened("compliance"), "proxies")
    assert not at.exception
    done = evidence_job(at).result
    assert isinstance(done, Proxies) and done.attribute == FEATURE
    closest = done.features[0]
    assert closest.found and closest.feature == "basket_mix"
    assert any(f"(V {number(closest.v)} (" in text and f"n={closest.n:,}" in text for text in texts(at))
    assert not [s for s in at.slider if s.key.startswith("measure_cutoff")]  # asked for where there are decisions


def test_while_it_runs_its_stage_is_shown_and_it_can_be_cancelled(opened: Opened, answers: Answers) -> None:
    begun, go = threading.Event(), threading.Event()

    def work(job: Job[Any]) -> None:
        job.at("marks", "bank", 3)
        job.total = 7
        begun.set()
        go.wait(60)
        raise Cancelled("stopped")

    answers["fairness.start"] = lambda request: Job(work, 1).start()
    at = opened("compliance")
    go_there = f"evidence_go_{to_measure(at, 'disparity')}"
    at.button(key=go_there).click().run()
    begun.wait(60)
    at.run()
    assert any(Texts("en")("stage.marks") in text for text in texts(at))
    assert at.button(key=go_there).disabled
    at.button(key="cancel_train").click().run()
    job = evidence_job(at)
    assert job.cancelled()
    go.set()
    job.wait(60)
    at.run()
    assert Texts("en")("stage.cancelled") in texts(at)
    assert not at.button(key=go_there).disabled


def test_what_can_be_measured_depends_on_the_task_and_the_rule(world: World, opened: Opened) -> None:
    opened()
    view = session.view(world.record.id)
    age = next(f for f in view.compliance.findings if f.check)  # the demo has an age, of which a rule asks
    assert evidence.measurable(view, age) == ["disparity", "proxies", "elderly"]
    assert evidence.measurable(view, None) == ["disparity", "proxies"]
    other = replace(view, model=replace(view.model, outputs=replace(view.model.outputs, task="number")))
    assert evidence.measurable(other, age) == ["proxies"]


GAPS = (AgeGap(1, 0.22, -0.01, -0.02, -0.005), AgeGap(2, 0.19, 0.02, 0.011, 0.029))
AGES = AgeCheck("bank", "age", 640, 0.21, GAPS, "negative")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_finding_whose_rule_asks_for_elderly_ages_shows_them_with_every_class(
    opened: Opened, answers: Answers, language: str
) -> None:
    pretend(answers, ages=AGES)
    at = opened("compliance", lang=language)
    at.session_state["finding_age"] = True  # open
    at.run()
    assert not at.exception
    shown = everything(at)
    # of the one rule that asks
    assert sum(says(text, "document.elderly_on", language, n=640) for text in texts(at)) == 1
    assert "+0.0200" in shown and "[−0.0200, −0.0050]" in shown
    assert says(shown, "document.ages_younger", language, place=2, classes=2)


def test_elderly_ages_that_were_not_checked_are_called_so(opened: Opened) -> None:
    at = opened("compliance")
    at.session_state["finding_age"] = True  # open
    assert says(at.run(), "document.elderly_open")


def test_elderly_ages_of_too_few_records_are_refused_in_words_on_the_page(opened: Opened) -> None:
    at = measured(opened("compliance"), "elderly", "age")
    assert not at.exception and "records are 62 or older" in everything(at)


@pytest.mark.parametrize("language", LANGUAGES)
def test_alternatives_are_compared_with_the_group_that_was_the_reference_whatever_the_language(language: str) -> None:
    coded = Feature(
        name="home",
        meaning="Home",
        kind="categorical",
        categories={"a": Text("own", "自有"), "b": "let"},
    )
    number = Feature(name="age", meaning="Age")
    chosen = [
        disparity.reference(Texts(language), feature, f"{language}{usual}", usual)
        for feature, usual in (
            (coded, "own"),
            (number, Texts("en")("measure.group_bin", place="2", bins=GROUPS)),
            (number, ""),
        )
    ]
    assert chosen == ["a", "2", ""]
