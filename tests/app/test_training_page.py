"""The Train page: an algorithm and its parameters in, curves while it grows, a registered model among the others out."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.panels import charts, frame, palette, training
from app.texts import Texts, markdown
from backend.data.federation import load_federation
from backend.errors import ParameterError, ReleaseRefused
from backend.i18n import LANGUAGES
from backend.protocols.training.algorithms import ALGORITHMS
from backend.results import ModelRecord, ReleaseCheck, told_by_scores
from tests.app.conftest import Opened, World, _fresh, job_of
from tests.app.reading_out import everything, says
from tests.homes import copied_home

T = Texts("en")


@pytest.fixture
def opened(home: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    return _fresh(home, monkeypatch)


def chosen(at: AppTest, algorithm: str) -> AppTest:
    return at.radio(key="train_algorithm_binary").set_value(algorithm).run()


def plainly(at: AppTest) -> AppTest:
    at.get_by_key("train_cipher").set_value("none")
    return at.run()


def trained(at: AppTest) -> AppTest:
    at.button(key="train_go").click().run()
    job_of("train").wait(120)
    return at.run()


def test_a_model_is_trained_registered_and_linked(opened: Opened) -> None:
    at = opened("train")
    at.number_input(key="train_secureboost_trees").set_value(2)
    at = plainly(at)
    assert says(at, "train.plain_warning")
    at = trained(at)
    assert not at.exception
    record = job_of("train").result
    assert record.n_trees == 2
    assert record.algorithm == "secureboost"
    assert record.id in at.page_link[0].proto.query_string
    joint = record.alignment.joint
    assert says(at, "alignment.sentence", n=joint, people=f"{joint:,}")


@pytest.mark.parametrize(
    ("algorithm", "asked"),
    [("forest", {"trees": 3, "depth": 2}), ("fl-dt", {"depth": 2, "bins": 8}), ("opboost", {"trees": 3})],
)
def test_every_algorithm_is_trained_from_its_own_form(opened: Opened, algorithm: str, asked: dict[str, int]) -> None:
    at = chosen(opened("train"), algorithm)
    for name, value in asked.items():
        at.number_input(key=f"train_{algorithm}_{name}").set_value(value)
    at = trained(plainly(at) if algorithm != "opboost" else at)
    assert not at.exception
    record = job_of("train").result
    assert record.algorithm == algorithm
    assert {name: record.parameters[name] for name in asked} == asked
    assert record.alignment.method == ("bloom" if algorithm == "fl-dt" else "dh")


def test_where_nothing_is_encrypted_no_cipher_is_asked_for(opened: Opened) -> None:
    keys = {element.key for element in chosen(opened("train"), "opboost").get("button_group")}
    assert not {"train_cipher", "train_key_bits"} & keys
    assert chosen(opened("train"), "opboost").selectbox(key="train_opboost_map").value == "global"


@pytest.mark.parametrize(("task", "offered"), [("binary", True), ("classes", True), ("number", False)])
def test_an_algorithm_for_classification_is_not_offered_for_numbers(task: str, offered: bool) -> None:
    at = AppTest.from_function(_algorithms, kwargs={"task": task}).run()
    assert (T("algorithm.name_fl-dt") in at.radio[0].options) == offered
    assert bool(at.caption) != offered


def _algorithms(task: str) -> None:
    from app.panels import training  # noqa: PLC0415 - AppTest runs this alone
    from app.texts import Texts  # noqa: PLC0415

    training.algorithm(Texts("en"), task)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_form_offers_what_the_class_takes_and_no_more(name: str) -> None:
    usual = ALGORITHMS[name]()
    numbers = [field for field, value in usual.as_dict().items() if type(value) in (int, float) and field != "key_bits"]
    assert numbers
    for field in numbers:
        low, high = training.ALGORITHMS[name].RANGES[field]
        assert low <= getattr(usual, field) <= high
        for beyond in (low - max(1, abs(low)), high + max(1, high)):
            with pytest.raises(ParameterError, match=field):
                replace(usual, **{field: beyond})


def test_choices_that_do_not_fit_each_other_are_refused_before_the_start(opened: Opened) -> None:
    at = opened("train")
    at.number_input(key="train_secureboost_goss_top").set_value(0.2)
    at.run()
    assert not at.exception
    assert any("goss_other" in warning.value.replace("\\", "") for warning in at.warning)
    assert at.button(key="train_go").disabled


def test_the_cost_hint_is_measured_on_the_same_algorithm(opened: Opened) -> None:
    at = opened("train")
    assert says(at, "train.no_cost")
    at = plainly(at)
    assert not says(at, "train.no_cost")
    at.number_input(key="train_secureboost_trees").set_value(40)
    assert says(at.run(), "train.cost", asked=T("train.rounds", n=40))


def test_no_host_chosen_means_no_training(opened: Opened) -> None:
    at = opened("train")
    at.get_by_key("train_hosts_demo").set_value([])
    at.run()
    assert not at.exception
    assert at.button(key="train_go").disabled


def test_leaving_every_feature_out_is_refused_with_a_reason(opened: Opened, world: World) -> None:
    at = opened("train")
    everything = [feature.name for _, feature in world.federation.features()]
    at.multiselect(key="train_exclude_demo").set_value(everything)
    at = trained(plainly(at))
    assert not at.exception
    assert any("keep at least one" in warning.value for warning in at.warning)


def test_the_models_stand_side_by_side_newest_first(opened: Opened, world: World) -> None:
    at = opened("train")
    made, auc, leaves = T("train.made"), T("figure.auc"), T("words.leaves")
    table = next(one.value for one in at.dataframe if auc in one.value)
    assert list(table[made]) == sorted(table[made], reverse=True)
    assert world.record.metrics.auc in list(table[auc])
    assert table[leaves].iloc[-1] == world.record.n_leaves
    read = next(one.value for one in at.table if auc in one.value)
    assert list(read[made]) == [markdown(one) for one in table[made]][: frame.ROWS_A_PAGE]
    assert at.selectbox(key="train_opened").value == session.models()[0].id
    title = f"{T('algorithm.name_secureboost')} · {T('engine.label_none')}"
    assert any(title in text.value for text in at.markdown)


def test_what_was_learned_depends_on_how_it_was_trained(world: World) -> None:
    forest = replace(world.record, algorithm="forest", cipher="paillier", parameters={"shuffle_sides": True})
    _, guest, hosts = training._learned(T, forest)
    assert says(guest, "algorithm.guest_shuffled")
    assert not says(hosts, "algorithm.hosts_plain")
    robust = replace(forest, parameters={"aggregation": "median", "complete": True})
    assert says(training._learned(T, robust)[1], "algorithm.guest_median")
    assert says(training._learned(T, robust)[2], "algorithm.hosts_complete")
    old = replace(world.record, algorithm="SecureBoost GBDT", parameters={})
    assert training._learned(T, old)[0].startswith(T("algorithm.name_secureboost"))
    assert training._learned(T, replace(old, algorithm="imported: XGBoost"))[0] == T("algorithm.imported")


def test_the_best_and_the_fastest_are_named_and_an_unknown_figure_is_neither(world: World) -> None:
    def made(auc: float, seconds: float, algorithm: str) -> object:
        metrics = replace(world.record.metrics, auc=auc)
        return replace(world.record, id=algorithm, algorithm=algorithm, seconds=seconds, metrics=metrics)

    called = {"secureboost": "Demo scorecard", "opboost": training._unnamed(T, made(0.7, 2.0, "opboost"))}
    assert called["opboost"].startswith(T("algorithm.name_opboost"))

    few = [made(0.8, 9.0, "secureboost"), made(math.nan, 1.0, "forest")]
    assert training._sentence(T, world.federation, few, called) == T("train.models_few")
    sentence = training._sentence(T, world.federation, [*few, made(0.7, 2.0, "opboost")], called)
    best = T("train.models_best", name="Demo scorecard", quality="AUC 0.800", seconds="9.00\u00a0s")
    fast = T("train.models_fast", name=markdown(called["opboost"]), quality="AUC 0.700", seconds="2.00\u00a0s")
    assert sentence == f"{best} {fast}"


def test_the_picture_holds_the_newest_models_and_always_the_best(world: World) -> None:
    def made(auc: float) -> object:
        return replace(world.record, id=f"m{auc}", metrics=replace(world.record.metrics, auc=auc))

    records = [made(0.5 + i / 100) for i in range(training.MODELS_DRAWN + 3)]  # the oldest is the best
    drawn = training._drawn(world.federation, records)
    assert len(drawn) == training.MODELS_DRAWN
    assert drawn[:-1] == records[: training.MODELS_DRAWN - 1]
    assert drawn[-1] is records[-1]
    assert training._drawn(world.federation, records[:3]) == records[:3]


def test_in_the_picture_the_best_model_is_filled_and_an_unknown_figure_has_no_dot(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "dark", lambda: False)

    def made(auc: float) -> ModelRecord:
        return replace(world.record, metrics=replace(world.record.metrics, auc=auc))

    svg = training._dots(T, world.federation, [made(0.6), made(0.8), made(math.nan)], {world.record.id: "One"}, "")
    dots = re.findall('<circle cx="([^"]+)%" [^>]*fill="([^"]+)"', svg)
    assert [fill for _, fill in dots] == [charts.background(), palette.INK]
    assert [float(x) for x, _ in dots] == pytest.approx([100 * 0.08 / 1.16, 100 * 1.08 / 1.16], abs=0.01)
    assert svg.count("font-weight") == 3


def test_rlwe_is_offered_first_asks_for_no_key_length_and_trains(opened: Opened) -> None:
    at = opened("train")
    assert at.get_by_key("train_cipher").value == "rlwe"
    assert says(at, "train.rlwe_note") and "train_key_bits" not in {
        widget.key for widget in at.get("segmented_control")
    }
    at.number_input(key="train_secureboost_trees").set_value(1)
    at.number_input(key="train_secureboost_depth").set_value(1)
    at = trained(at)
    assert not at.exception
    record = job_of("train").result
    assert (record.cipher, record.key_bits) == ("rlwe", 8192)


def test_a_refused_model_says_what_to_do_and_a_coarser_scale_is_one_switch_away(opened: Opened) -> None:
    at = opened("train")
    at.get_by_key("train_cipher").set_value("none")
    at.number_input(key="train_secureboost_trees").set_value(3)
    at.number_input(key="train_secureboost_score_bits").set_value(16)
    at.number_input(key="train_max_named").set_value(0.0).run()
    at.button(key="train_go").click().run()
    job = job_of("train")
    job.wait(120)
    asked = session.service().jobs.of("").about("train")
    assert (asked.most_named, asked.coarser) == (0.0, False) and isinstance(job.failure, ReleaseRefused)
    at.run()
    assert not at.exception
    [warning] = [w.value for w in at.warning if says(w.value, "release.refused")]
    assert says(warning, "release.do_bits") or says(warning, "release.do_none")
    at.toggle(key="train_coarser").set_value(True)
    at.number_input(key="train_max_named").set_value(None).run()
    at.button(key="train_go").click().run()
    job_of("train").wait(120)
    asked = session.service().jobs.of("").about("train")
    assert (asked.most_named, asked.coarser) == (None, True)
    at.run()
    record = job_of("train").get()
    assert not at.exception and told_by_scores(record.release, record.score_bits).sentence() in everything(at)


def test_a_sealed_model_is_offered_to_who_trained_it_and_grows_measured_each_time_until_it_is_discarded(
    opened: Opened,
) -> None:
    at = opened("train")
    at.get_by_key("train_cipher").set_value("none")
    at.number_input(key="train_secureboost_trees").set_value(2)
    at.number_input(key="train_secureboost_depth").set_value(2)
    at.number_input(key="train_secureboost_score_bits").set_value(12)
    at.number_input(key="train_approved_trees").set_value(4)
    at.number_input(key="train_max_named").set_value(0.0).run()
    at = trained(at)
    first = job_of("train").failure.sealed_as
    assert first and says(at, "release.sealed_title") and says(at, "release.sealed_about")
    wanted = at.number_input(key=f"sealed_trees_{first}")
    assert (wanted.min, wanted.max, wanted.value) == (3, 4, 4)
    at.button(key=f"sealed_grow_{first}").click().run()
    job_of("train").wait(120)
    at.run()
    assert not at.exception
    grown = job_of("train").failure.sealed_as
    [kept] = session.service().sealed_models.all("demo")
    assert kept.record.id == grown != first and kept.record.n_trees == 4
    # nothing more may grow; measuring again is always offered, since dither is the Hosts' own
    assert not [one for one in at.number_input if one.key == f"sealed_trees_{grown}"]
    at.button(key=f"sealed_measure_{grown}").click().run()
    job_of("train").wait(120)
    at.run()
    assert isinstance(job_of("train").failure, ReleaseRefused) and not at.exception
    at.button(key=f"sealed_discard_{grown}").click().run()
    assert not at.exception and session.service().sealed_models.all("demo") == ()
    assert grown not in everything(at)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_coarser_scale_that_was_taken_is_reported(opened: Opened, world: World, language: str) -> None:
    release = ReleaseCheck(0.0, ((8, 0.01),), 3.0, 200, 1000, asked_bits=16)
    shown = AppTest.from_function(_taken, args=(replace(world.record, release=release, score_bits=8), language)).run()
    assert not shown.exception and "16" in shown.markdown[1].value and "8" in shown.markdown[1].value
    assert Texts(language)("release.taken", bits=8, asked=16) in shown.markdown[1].value


def _taken(record: object, language: str) -> None:
    from app.panels import release  # noqa: PLC0415 - AppTest runs this alone
    from app.texts import Texts  # noqa: PLC0415

    release.taken(Texts(language), record)


def test_directions_are_chosen_by_feature_and_kept_in_the_models_record(opened: Opened) -> None:
    at = plainly(opened("train"))
    at.number_input(key="train_secureboost_trees").set_value(1)
    rise, fall = (at.multiselect(key=f"train_secureboost_{way}") for way in ("rise", "fall"))
    up, down = rise.options[0], fall.options[-1]
    assert rise.options == fall.options
    rise.set_value([up])
    at.multiselect(key="train_secureboost_fall").set_value([down])
    at = at.run()
    assert up not in at.multiselect(key="train_secureboost_fall").options
    assert not trained(at).exception
    written = job_of("train").result.parameters["constraints"]
    assert written.count("=+1") == 1
    assert written.count("=-1") == 1


def test_what_was_set_in_a_box_holds_when_it_is_closed(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    at = plainly(opened("train"))
    at.number_input(key="train_secureboost_trees").set_value(1)
    at.number_input(key="train_secureboost_reg_lambda").set_value(2.5)
    at.multiselect(key="train_secureboost_rise").set_value(["age"])
    at.run()
    monkeypatch.setattr(frame, "BOXES_OPEN", False)
    at.switch_page("../pages/help.py").run()
    at.switch_page("../pages/train.py").run()
    assert "train_secureboost_reg_lambda" not in {field.key for field in at.number_input}
    assert not trained(at).exception
    asked = job_of("train").result.parameters
    assert (asked["trees"], asked["reg_lambda"], asked["constraints"]) == (1, 2.5, "age=+1")


def test_where_hosts_hide_the_order_of_their_values_no_direction_is_offered(opened: Opened) -> None:
    at = chosen(opened("train"), "opboost")
    assert says(at, "lda.hidden_order")
    assert "train_opboost_rise" not in [box.key for box in at.multiselect]


def test_a_column_of_the_guests_file_weighs_a_training(
    home_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copied_home(home_template, tmp_path / "home")
    file = copy / "demo" / load_federation(copy / "demo").guest.file
    header, *rows = file.read_text().splitlines()
    file.write_text("\n".join([f"{header},w", *(f"{row},{1 + i % 3}" for i, row in enumerate(rows))]) + "\n")
    at = plainly(_fresh(copy, monkeypatch)("train"))
    menu = at.selectbox(key="train_weights")
    assert menu.options == [T("train.unweighted"), "w"] and not menu.disabled
    menu.set_value("w")
    at.number_input(key="train_secureboost_trees").set_value(2)
    at = trained(at)
    record = job_of("train").result
    assert not at.exception and record.weights == "w"


def test_where_no_column_is_left_the_menu_of_weights_is_closed(opened: Opened) -> None:
    assert opened("train").selectbox(key="train_weights").disabled
