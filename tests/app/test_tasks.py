"""The pages for models that tell classes apart or predict a number, and for forests: small federations, real trainings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.texts import Texts
from backend.services import Division, ForestParameters, Glassleaf, ModelRecord, SecureBoostParameters, TrainingRequest
from tests.app.conftest import PAGES, Opened, _fresh
from tests.app.reading_out import everything
from tests.app.test_scoring import scored

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
        glassleaf.init(folder / f"{name}.csv", division, folder / name)
        if label == "spend":
            file = folder / name / "federation.toml"
            file.write_text(file.read_text().replace("[label]\n", '[label]\nunit = "EUR"\n'))
        models[name] = glassleaf.start_training(TrainingRequest(name, parameters)).get()
    glassleaf.close()
    yield Tasks(folder / "home", models)
    session._service(str(folder / "home")).close()


@pytest.fixture
def shown(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> Opened:
    opened = _fresh(tasks.home, monkeypatch)

    def open_page(page: str, model: str) -> AppTest:
        return opened(page, model=tasks.models[model].id)

    return open_page


@pytest.mark.parametrize("model", ["classes", "median", "number", "hidden"])
@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_for_every_task(shown: Opened, page: str, model: str) -> None:
    at = shown(page, model)
    assert not at.exception
    assert not [text.value for text in at.warning]
    assert at.title[0].value == Texts("en")(f"{page}.title")
    assert not re.search(r"\bnan\b", everything(at).replace('"nan"', ""))


def test_the_card_tells_the_figures_of_the_task(shown: Opened, tasks: Tasks) -> None:
    at = shown("overview", "classes")
    assert [metric.label for metric in at.metric][:2] == ["Accuracy", "AUC"]
    assert any("one of 3 classes" in text.value for text in at.markdown)
    at = shown("overview", "number")
    assert [metric.label for metric in at.metric][:2] == ["RMSE", "R²"]
    assert at.metric[0].value.endswith(" EUR")


def test_the_card_tells_how_the_people_were_found(shown: Opened, tasks: Tasks) -> None:
    found = tasks.models["classes"].alignment
    said = [text.value for text in shown("overview", "classes").markdown]
    assert any(f"**{found.joint} people** are held by all parties" in text for text in said)
    assert any(f"Guest {ROWS} and Shop {ROWS}" in text for text in said)


def test_a_median_claims_less_privacy_than_a_sum(shown: Opened) -> None:
    said = everything(shown("overview", "median"))
    assert "that names the leaf" in said
    assert "no one learns which path" not in said
    assert "no one is told which path" in everything(shown("overview", "classes"))


def test_directions_are_told_as_far_as_they_are_known(shown: Opened) -> None:
    learned = {m: set(_table(shown("importance", m), "strength")["learned"]) for m in ("classes", "number", "hidden")}
    assert learned["classes"] == {"– differs by class"}
    assert "? kept by the Host" in learned["hidden"]
    assert "▲ raises the value" in learned["number"]
    assert any("kept by their Host" in text.value for text in shown("importance", "hidden").markdown)


def test_a_hidden_side_is_called_neither_lower_nor_higher(shown: Opened) -> None:
    sides = re.compile(r'\\"(lower|higher)\\"')  # texts of the picture, as they stand in its specification
    assert sides.search(everything(shown("structure", "number")))
    hidden = everything(shown("structure", "hidden"))
    assert not sides.search(hidden)
    assert "stays with the Host" in hidden


def test_a_tree_of_boosted_classes_is_named_by_its_class(shown: Opened) -> None:
    at = shown("structure", "classes")
    assert any("for or against the class **" in text.value for text in at.markdown)
    assert any(" · high · " in option for option in at.selectbox(key="tree").options)


def _table(at: AppTest, column: str) -> pd.DataFrame:
    """The table that has such a column."""
    return next(frame.value for frame in at.dataframe if column in frame.value)


def test_a_person_gets_a_class_and_the_share_of_each(shown: Opened) -> None:
    at = scored(shown("score", "classes"))
    assert not at.exception
    score = at.session_state["job:score"].result.scores[0]
    metrics = {metric.label: metric.value for metric in at.metric}
    assert metrics["Predicted class"] == score.predicted
    assert set(metrics) == {"Predicted class", "Probability"}
    shares = _table(at, "Class")
    assert shares["Class"].iloc[0] == score.predicted
    assert sorted(shares["Class"]) == ["high", "low", "mid"]
    assert any("a score for each" in t.value or "one score for each of the 3" in t.value for t in at.markdown)


def test_a_median_has_no_parts_and_says_why(shown: Opened) -> None:
    at = scored(shown("score", "median"))
    assert not at.exception
    assert any("A median is no sum" in info.value for info in at.info)
    assert not [frame for frame in at.dataframe if "Part" in frame.value]
    assert any("names the leaf" in text.value for text in at.markdown)


def test_a_person_gets_a_value_with_its_unit_and_no_decision(shown: Opened) -> None:
    at = scored(shown("score", "number"))
    assert not at.exception
    metrics = {metric.label: metric.value for metric in at.metric}
    assert set(metrics) == {"Predicted value", "Typical error"}
    assert all(value.endswith(" EUR") for value in metrics.values())
    parts = _table(at, "Part")["Value (EUR)"]
    base, guest, hosts, total = (float(re.sub(r"[^\d.+-]", "", p.replace("−", "-"))) for p in parts)
    assert base + guest + hosts == pytest.approx(total, abs=3)


def test_many_people_are_counted_by_what_is_predicted(shown: Opened, tasks: Tasks) -> None:
    for model, columns, word in (
        ("classes", ["id", "predicted", "probability", "guest_part", "hosts_part", "note"], "Predicted: "),
        ("number", ["id", "value", "guest_part", "hosts_part", "note"], ""),
    ):
        at = shown("score", model)
        at.get_by_key("score_way").set_value("upload")
        at.run()
        at.file_uploader(key="score_upload").upload("people.csv", b"id\np1\np2\np3\nstranger\n")
        at = scored(at.run())
        assert not at.exception
        assert list(_table(at, "note").columns) == columns
        assert word in everything(at)
        assert "Declined" not in {metric.label for metric in at.metric}
