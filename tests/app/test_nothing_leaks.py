"""No page, menu, chart, download, transcript or log holds a Host's threshold or a Host's value.

Every number of a Host lies above `OFFSET` here, thresholds included, so any such number on a page is a leak.
"""

import logging
import re

import pytest

from app.panels import frame
from backend.services import Glassleaf
from backend.store.database import Database
from backend.store.party_store import PartyStore
from backend.trees.serialization import load_host
from tests.app.conftest import OFFSET, PAGES, Opened, Rendered, World, job_of
from tests.app.reading_out import everything
from tests.app.test_scoring import scored, template, uploaded

HOST_NUMBER = re.compile(r"(?<![\w.,-])771,?3\d\d,?\d{3}(?:\.\d+)?(?![\w])")


def host_thresholds(world: World) -> list[float]:
    found = []
    for host in world.federation.hosts:
        store = PartyStore(Database(world.home / "parties" / "demo" / host.name))
        rules = load_host(store.artefact(world.record.id)).rules.values()
        found += [rule.threshold for rule in rules if rule.threshold is not None and rule.threshold > OFFSET / 2]
    return found


def leaks(world: World, text: str) -> list[str]:
    thresholds = host_thresholds(world)
    assert thresholds, "the model must use a numeric Host feature, or this test tests nothing"
    assert "bdata" not in text, "a chart packed its numbers; they cannot be read here"
    written = [f"{value:.6g}" for value in thresholds] + [f"{value:,.1f}" for value in thresholds]
    return HOST_NUMBER.findall(text) + [number for number in written if number in text]


def test_the_net_has_no_hole(world: World) -> None:
    threshold = host_thresholds(world)[0]
    for text in (f"{threshold:.3f}", f"{threshold:,.1f}", f"below {threshold:.0f} months", f"[1.0, {threshold}]"):
        assert leaks(world, text)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("page", PAGES)
def test_no_page_shows_a_host_number(rendered: Rendered, world: World, page: str, language: str) -> None:
    assert not leaks(world, everything(rendered(page, language)))


def test_no_tree_shows_a_host_threshold(opened: Opened, world: World) -> None:
    at = opened("structure")
    at.toggle(key="structure_overlay").set_value(True).run()
    for number in range(world.record.n_trees):
        at.selectbox(key="tree").select(str(number + 1)).run()
        assert not leaks(world, everything(at))


def test_no_feature_card_shows_a_host_value(opened: Opened, world: World) -> None:
    at = opened("features")
    for host in world.federation.hosts:
        for feature in host.features:
            at.selectbox(key="feature").select(feature.name).run()
            assert not leaks(world, everything(at))


def test_a_scored_person_leaves_no_host_number_anywhere(
    opened: Opened, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        at = scored(opened("score"))
    job = job_of("score")
    glassleaf = Glassleaf(world.home, pools=False)
    download = glassleaf.scoring.csv(job.result).decode()
    glassleaf.close()
    assert not leaks(world, everything(at))
    assert not leaks(world, download)
    assert not leaks(world, "\n".join(str(entry) for entry in job.transcript))
    assert not leaks(world, caplog.text)


def test_a_batch_leaves_no_host_number_anywhere(opened: Opened, world: World) -> None:
    at = scored(uploaded(opened, template(world).to_csv(index=False).encode()), "people")
    assert not leaks(world, everything(at))


def test_the_template_and_the_guests_table_hold_no_host_column(world: World) -> None:
    names = {feature.name for host in world.federation.hosts for feature in host.features}
    assert not names & set(template(world).columns)
    glassleaf = Glassleaf(world.home, pools=False)
    assert not names & set(glassleaf.samples.table(world.record.id).columns)
    glassleaf.close()


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "@SUM(A1)", "＝1+1", "＠a", "\t=1", "-x", "-1", "code"])
def test_no_cell_and_no_head_of_a_saved_table_is_a_formula(text: str) -> None:
    head, cell = frame.csv_file({text: [text]}).decode("utf-8-sig").split("\n")[:2]
    safe = text if text in ("-1", "code") else f"'{text}"
    assert (head, cell) == (safe, safe)
