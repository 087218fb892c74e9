"""Next to a bank's own federation the demo is never the model that is meant; and every part of a model's records can be picked."""

import pandas as pd
import pytest

from app.panels import person
from backend.cli import dashboard
from backend.data.split import Division
from backend.protocols.training.parameters import SecureBoostParameters
from backend.results import JOINT, OUTSIDE
from backend.services import Glassleaf
from backend.services.training import TrainingRequest


def test_latest_and_what_pages_open_on_are_the_banks_own(home, tmp_path, monkeypatch):
    rows = "".join(f"p{i},{i % 50},{i * 7 % 31},{'yes' if i % 50 > 24 else 'no'}\n" for i in range(300))
    (tmp_path / "own.csv").write_text("id,age,spend,late\n" + rows, encoding="utf-8")
    division = Division("late", ("age",), {"shop": ("spend",)}, "id", name="own")
    with Glassleaf(home, pools=False) as glassleaf:
        assert glassleaf.models.get("latest").federation == "demo"
        glassleaf.federations.init(tmp_path / "own.csv", division, home / "own", "own.csv")
        parameters = SecureBoostParameters(trees=2, depth=2, cipher="none")
        own = glassleaf.training.start(TrainingRequest("own", parameters, most_named=1.0)).get()
        later = TrainingRequest("demo", SecureBoostParameters(trees=2, depth=2, cipher="none"), most_named=1.0)
        glassleaf.training.start(later).get()
        assert glassleaf.models.get("latest").id == own.id == glassleaf.models.opening().id
    monkeypatch.setenv("GLASSLEAF_HOME", str(home))
    monkeypatch.setattr(dashboard, "open_streamlit", lambda *given: None)

    class NoDemo:
        def find_root(self):
            raise AssertionError("the demo was prepared in a home that has a federation")

    dashboard.run(NoDemo(), 8501, "localhost")


@pytest.mark.parametrize(
    ("parts", "offered"),
    [
        (["training", "test", "validation"], ["test", "validation", "training"]),
        ([JOINT, JOINT, OUTSIDE], [JOINT, OUTSIDE]),
    ],
)
def test_the_parts_that_records_have_can_be_picked(parts, offered):
    people = pd.DataFrame({"part": parts}, index=[f"p{i}" for i in range(len(parts))])
    assert person.parts_of(people) == offered
    assert person.options(people, None) == [f"p{i}" for i, part in enumerate(parts) if part == offered[0]]
