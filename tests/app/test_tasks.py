"""The pages for models that tell classes apart or predict a number, and for forests: small federations, real trainings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.texts import Texts
from backend.data.split import Division
from backend.jobs import Job
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.parameters import SecureBoostParameters
from backend.results import ModelRecord
from backend.services import Glassleaf
from backend.services.forest_serving import ServedBatch, ServingRequest, ServingTrial
from backend.services.training import TrainingRequest
from tests.app.conftest import PAGES, Opened, _fresh, job_of, put_job
from tests.app.reading_out import everything, says
from tests.app.test_scoring import scored

T = Texts("en")
ROWS = 260
PLAIN = "none"


@dataclass(frozen=True)
class Tasks:
    """A home with a federation for each task and its models by name."""

    home: Path
    models: dict[str, ModelRecord]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tasks]:
    folder = tmp_path_factory.mktemp("tasks")
    draw = np.random.default_rng(5)
    hours, income, orders = draw.normal(20, 5, ROWS), draw.normal(3000, 800, ROWS), draw.poisson(4, ROWS)
    table = pd.DataFrame({"id": [f"p{i}" for i in range(ROWS)], "hours": hours, "income": income, "orders": orders})
    table["grade"] = np.array(["low", "mid", "high"])[np.digitize(hours + orders, [22, 26])]
    table["spend"] = 0.1 * income + 20 * orders
    glassleaf = Glassleaf(folder / "home", pools=False)
    asked = {
        "classes": ("grade", SecureBoostParameters(trees=2, depth=2, cipher=PLAIN)),
        "median": ("grade", ForestParameters(trees=3, depth=2, aggregation="median", cipher=PLAIN)),
        "number": ("spend", SecureBoostParameters(trees=3, depth=2, cipher=PLAIN)),
        "hidden": ("spend", ForestParameters(trees=2, depth=2, column_sample=1, shuffle_sides=True, cipher=PLAIN)),
    }
    models = {}
    for name, (label, parameters) in asked.items():
        table.to_csv(folder / f"{name}.csv", index=False)
        division = Division(
            label=label,
            guest=["hours"],
            hosts={"shop": ["income", "orders"]},
            id_column="id",
            task="classes" if label == "grade" else "number",
            name=name,
            label_meaning="What is looked for",
        )
        glassleaf.federations.init(folder / f"{name}.csv", division, folder / name)
        if label == "spend":
            file = folder / name / "federation.toml"
            file.write_text(file.read_text().replace("[label]\n", '[label]\nunit = "EUR"\n'))
        models[name] = glassleaf.training.start(TrainingRequest(name, parameters)).get()
    glassleaf.close()
    yield Tasks(folder / "home", models)
    session._service(str(folder / "home")).close()


@pytest.fixture
def shown(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> Opened:
    opened = _fresh(tasks.home, monkeypatch)

    def open_page(page: str, model: str) -> AppTest:
        return opened(page, model=tasks.models[model].id)

    return open_page


def of_every_task() -> Iterator[object]:
    """Each page of each task; pages that say nothing of how trees are put together are drawn for forests with the slow tests."""
    of_trees = ("overview", "structure", "importance", "model_card", "score", "compare_models", "report", "privacy")
    for page, model in product(PAGES, ("classes", "median", "number", "hidden")):
        again = model in ("median", "hidden") and page not in of_trees
        yield pytest.param(page, model, marks=[pytest.mark.slow] if again else [])


@pytest.mark.parametrize(("page", "model"), list(of_every_task()))
def test_every_page_opens_for_every_task(shown: Opened, page: str, model: str) -> None:
    at = shown(page, model)
    assert not at.exception
    assert not [text.value for text in at.warning]
    assert at.title[0].value == Texts("en")(f"{page}.title")
    assert not re.search(r"\bnan\b", everything(at).replace('"nan"', ""))


def test_the_card_shows_the_figures_of_the_task(shown: Opened, tasks: Tasks) -> None:
    for model, names in (("classes", ("accuracy", "auc")), ("number", ("rmse", "r2"))):
        starts = [re.escape(f"**{T(f'figure.{name}')} ") for name in names]
        line = re.compile(rf"{starts[0]}([^*]+)\*\* · {starts[1]}([^*]+)\*\* · ")
        (found,) = filter(None, (line.search(text.value) for text in shown("overview", model).markdown))
        assert found[1].endswith("\u00a0EUR") == (model == "number")


def test_the_card_says_how_the_people_were_found(shown: Opened, tasks: Tasks) -> None:
    found = tasks.models["classes"].alignment
    brought = T.listed([f"Guest {ROWS}", f"Shop {ROWS}"])
    assert says(
        shown("model_card", "classes"), "alignment.sentence", n=found.joint, people=found.joint, brought=brought
    )


def test_a_median_claims_less_privacy_than_a_sum(shown: Opened) -> None:
    median = shown("overview", "median")
    assert says(median, "overview.private_median", numbers=3)
    assert not says(median, "overview.private_sum")
    assert says(shown("overview", "classes"), "overview.private_classes", numbers=3)


def test_directions_are_shown_as_far_as_they_are_known(shown: Opened) -> None:
    tables = {m: _table(shown("importance", m), T("importance.strength")) for m in ("classes", "number", "hidden")}
    learned = {m: set(table[T("features.learned")]) for m, table in tables.items()}
    assert learned["classes"] == {f"– {T('direction.classes')}"}
    assert f"? {T('direction.hidden')}" in learned["hidden"]
    assert f"▲ {T('direction.up_number')}" in learned["number"]
    assert says(shown("importance", "hidden"), "importance.hidden")


def test_a_hidden_side_is_called_neither_lower_nor_higher(shown: Opened) -> None:
    words = "|".join((T("structure.lower"), T("structure.higher")))
    sides = re.compile(rf'\\"({words})\\"')  # texts of the picture, as they stand in its specification
    assert sides.search(everything(shown("structure", "number")))
    hidden = everything(shown("structure", "hidden"))
    assert not sides.search(hidden)
    assert says(hidden, "structure.sides_hidden")


def test_a_tree_of_boosted_classes_is_named_by_its_class(shown: Opened) -> None:
    at = shown("structure", "classes")
    assert says(at, "structure.of_class")
    assert any(" · high · " in option for option in at.selectbox(key="tree").options)


def _table(at: AppTest, column: str) -> pd.DataFrame:
    """The table that has such a column."""
    return next(frame.value for frame in at.dataframe if column in frame.value)


def test_a_person_gets_a_class_and_the_share_of_each(shown: Opened) -> None:
    at = scored(shown("score", "classes"))
    assert not at.exception
    score = job_of("score").result.scores[0]
    metrics = {metric.label: metric.value for metric in at.metric}
    assert metrics[T("score.predicted")] == score.predicted
    assert set(metrics) == {T("score.predicted"), T("score.probability")}
    shares = _table(at, T("score.class"))[T("score.class")]
    assert shares.iloc[0] == score.predicted
    assert sorted(shares) == ["high", "low", "mid"]
    assert says(at, "score.learned_guest_classes", n=1, classes=3)


def test_a_median_has_no_parts_and_says_why(shown: Opened) -> None:
    at = scored(shown("score", "median"))
    assert not at.exception
    assert says(at, "score.no_parts")
    assert not [frame for frame in at.dataframe if T("score.part_of") in frame.value]
    assert says(at, "score.hidden_median")


def test_a_person_gets_a_value_with_its_unit_and_no_decision(shown: Opened) -> None:
    at = scored(shown("score", "number"))
    assert not at.exception
    metrics = {metric.label: metric.value for metric in at.metric}
    assert set(metrics) == {T("score.value"), T("score.off")}
    assert all(value.endswith("\u00a0EUR") for value in metrics.values())
    parts = _table(at, T("score.part_of"))[f"{T('score.axis_step')} (EUR)"]
    base, guest, hosts, total = (float(re.sub(r"[^\d.+-]", "", p.replace("−", "-"))) for p in parts)
    assert base + guest + hosts == pytest.approx(total, abs=3)


@pytest.mark.slow
def test_many_people_are_counted_by_what_is_predicted(shown: Opened, tasks: Tasks) -> None:
    for model, columns, key in (
        ("classes", ("id", "predicted", "probability", "guest_part", "hosts_part", "note"), "score.batch_classes"),
        ("number", ("id", "value", "guest_part", "hosts_part", "note"), "score.mean"),
    ):
        at = shown("people", model)
        at.file_uploader(key="people_upload").upload("people.csv", b"id\np1\np2\np3\nstranger\n")
        at = scored(at.run(), "people")
        assert not at.exception
        [shown_table] = [frame.value for frame in at.dataframe if T("score.note") in frame.value]
        assert list(shown_table.columns) == [T(f"score.{name}") for name in columns]
        assert says(at, key)
        assert T("score.declined") not in {metric.label for metric in at.metric}


@pytest.mark.parametrize(("model", "change"), [("median", "14.3\u00a0percentage points"), ("hidden", "0.143\u00a0EUR")])
def test_what_the_loss_of_a_worker_changed_has_its_unit(shown: Opened, tasks: Tasks, model: str, change: str) -> None:
    at = shown("protocols", model)
    batches = (ServedBatch(1, 0.1, (), 0.0), ServedBatch(2, 0.1, (0,), 0.143), ServedBatch(3, 0.1, (), 0.0))
    name = tasks.models[model].id
    trial = ServingTrial(ServingRequest(name), trees=3, samples=10, batches=batches)
    put_job(f"serving:{name}", Job(lambda job: trial, 1).start().wait(60))
    assert says(at.run(), "serving.sentence", shift=change) and not at.exception


@pytest.mark.parametrize(
    ("model", "key", "value"), [("classes", "decide_refer", 55), ("number", "decide_decline", 400.0)]
)
def test_the_line_of_classes_and_of_a_number_is_chosen_by_looking_and_proposed(shown, model, key, value) -> None:
    at = shown("decide", model)
    assert not at.exception
    widget = at.slider if model == "classes" else at.number_input
    widget(key=key).set_value(value).run()
    assert says(at, f"decide.sentence_{model}") and says(at, "decide.measured_on")
    at.text_input(key="decide_owner").set_value("Olga")
    at.text_input(key="decide_person").set_value("Ana")
    at.text_area(key="decide_reason").set_value("looked at on the page")
    at = next(button for button in at.button if button.key == "decide_propose_go").click().run()
    assert not at.exception and says(at, "policy.waits")
