"""With a time column, models are tested on the latest records and grown on earlier ones alone."""

import json

import numpy as np
import pandas as pd
import pytest

from backend.data.demo import write_demo
from backend.data.federation import load_federation
from backend.data.table import read_times
from backend.errors import FederationError
from backend.i18n import LANGUAGES, Catalogue
from backend.protocols.training.guest import draw_parts
from backend.protocols.training.parameters import SecureBoostParameters
from backend.reports.render.html_form import to_html
from backend.services import Glassleaf
from backend.services.training import TrainingRequest

TEST = 2


def test_the_test_rows_are_exactly_the_latest_periods_with_a_fifth_of_the_rows():
    times = np.repeat(["2026-01", "2026-02", "2026-03", "2026-04"], [40, 30, 15, 15])
    shuffled = np.random.default_rng(7).permutation(100)
    parts = draw_parts(100, 1, times[shuffled])
    assert set(times[shuffled][parts == TEST]) == {"2026-03", "2026-04"} and (parts == TEST).sum() == 30
    assert [int((parts == part).sum()) for part in (0, 1)] == [52, 18]  # three to one, as without a time column
    assert (parts == draw_parts(100, 1, times[shuffled])).all()


def test_days_of_their_own_give_exactly_a_fifth():
    times = np.array([f"{2000 + k}" for k in range(100)])
    assert (draw_parts(100, 1, times) == TEST).nonzero()[0].tolist() == list(range(80, 100))


def test_one_period_that_holds_most_records_is_refused():
    with pytest.raises(FederationError, match="at least two thirds of them to be earlier"):
        draw_parts(100, 1, np.repeat(["2026-01", "2026-02"], [40, 60]))


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """The demo with a month a record, and a model grown on it."""
    home = tmp_path_factory.mktemp("timed")
    federation = write_demo(home / "demo", rows=400)
    file = home / "demo" / federation.guest.file
    table = pd.read_csv(file, dtype=str)
    table["month"] = [f"2026-{1 + k % 10:02}" for k in range(len(table))]
    table.to_csv(file, index=False)
    toml = home / "demo" / "federation.toml"
    toml.write_text('time = "month"\n' + toml.read_text())
    with Glassleaf(home, pools=False) as glassleaf:
        glassleaf.federations.add(home / "demo")
        request = TrainingRequest("demo", SecureBoostParameters(trees=2, depth=2, cipher="none"))
        yield glassleaf, glassleaf.training.start(request).get(), table


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_model_is_grown_on_what_comes_after_its_test_begins_and_the_report_says_so(timed, language):
    glassleaf, record, table = timed
    month = dict(zip(table[glassleaf.federations.get("demo").guest.id], table["month"], strict=True))
    part_of = glassleaf.models.part_of(record)
    months = sorted(month[i] for i in part_of)
    first = months[len(months) - -(-len(months) // 5)]  # the latest fifth begins in this month, which is taken whole
    assert record.test_from == first == min(month[i] for i, part in part_of.items() if part == "test")
    assert max(month[i] for i, part in part_of.items() if part != "test") < record.test_from
    assert 0.2 <= record.parts["test"] / len(part_of) <= 0.5
    words, page = Catalogue(language), to_html(glassleaf.reports.make(record.id), language)
    assert words("details.latest", day=first, n=record.parts["test"]) in page
    assert words("details.no_time") not in page and words("mapping.lacks_out_of_time") not in page


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["2026-01", "2026-1"], "line 3"),
        (["2026-01", ""], "line 3"),
        (["2026-01", "2026-13"], "line 3"),
        (["2026-01", "2026-01-05"], "line 3"),
        (["soon", "soon"], "line 2"),
    ],
)
def test_a_cell_that_is_no_time_is_refused_with_its_line(timed, tmp_path, cells, words):
    glassleaf, _, table = timed
    federation = glassleaf.federations.get("demo")
    changed = table.head(2).assign(month=cells)
    changed.to_csv(tmp_path / federation.guest.file, index=False)
    with pytest.raises(FederationError, match=words):
        read_times(federation.model_copy(update={"folder": tmp_path}))


@pytest.mark.parametrize("name", ["age", "id"])
def test_a_time_column_is_no_feature_and_no_id(timed, tmp_path, name):
    federation = timed[0].federations.get("demo")
    named = federation.guest.id if name == "id" else name
    text = (federation.folder / "federation.toml").read_text().replace('time = "month"', f"time = {json.dumps(named)}")
    (tmp_path / "federation.toml").write_text(text)
    with pytest.raises(FederationError, match="expected a column with no other role"):
        load_federation(tmp_path, check_tables=False)


def test_without_the_column_that_is_named_training_says_what_to_correct(timed):
    federation = timed[0].federations.get("demo").model_copy(update={"time": "year"})
    with pytest.raises(FederationError, match="Correct `time`"):
        read_times(federation)
    assert read_times(federation.model_copy(update={"time": ""})) is None
