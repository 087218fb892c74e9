"""The Protocols page: a race that is run once and drawn again for every network, in both languages."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app.panels import race
from app.texts import Texts
from backend.services import (
    BATCHES,
    NODE_BY_NODE_SAMPLES,
    PROTOCOLS,
    Compared,
    ComparisonRequest,
    Glassleaf,
    Job,
    Lead,
    Link,
    Shape,
)
from tests.app.conftest import Opened, World
from tests.app.reading_out import everything
from tests.app.test_nothing_leaks import leaks


@pytest.fixture(scope="module")
def compared(world: World) -> Iterator[Compared]:
    glassleaf = Glassleaf(world.home, pools=False)
    yield glassleaf.start_comparison(ComparisonRequest(world.record.id, cipher="rlwe", batches=BATCHES)).get()
    glassleaf.close()


@pytest.fixture
def raced(opened: Opened, compared: Compared) -> AppTest:
    """The page after a race that was run once for all tests."""
    at = opened("protocols")
    at.session_state["job:protocols"] = Job(lambda job: compared, 10).start().wait(10)
    return at.run()


def rows(at: AppTest) -> dict[str, list[str]]:
    """Both halves of the figures, by column."""
    return {**at.table[0].value.to_dict("list"), **at.table[1].value.to_dict("list")}


def test_before_a_race_the_page_says_what_it_would_show(opened: Opened) -> None:
    at = opened("protocols")
    assert any("Seven ways to score" in info.value for info in at.info)


def test_every_protocol_has_a_bar_and_a_row(raced: AppTest) -> None:
    assert not raced.exception
    t = Texts("en")
    assert len(rows(raced)["Protocol"]) == len(PROTOCOLS)
    assert any("exactly the same scores" in caption.value for caption in raced.caption)
    told = raced.table[2].value["The Guest learned"]
    assert "no path" in told[0]
    assert all("every path" in words for words in told[1:])
    said = everything(raced)
    assert all(t(f"protocols.name_{name}") in said for name in PROTOCOLS)
    assert "answered by simulated Hosts only" in said


def test_the_sentence_names_the_fastest_and_what_it_shows(raced: AppTest) -> None:
    done = raced.session_state["job:protocols"].result
    fastest = min(done.runs.rows, key=lambda row: row.exchange.total)
    sentence = race.verdict(Texts("en"), done.runs.rows)
    assert any(text.value == sentence for text in raced.markdown)
    assert Texts("en")(f"protocols.name_{fastest.protocol}") in sentence
    assert sentence.count("Fed-EINI shows none") == 1


def test_the_verdict_turns_with_the_network(raced: AppTest) -> None:
    t, runs = Texts("en"), raced.session_state["job:protocols"].result.runs
    pair = replace(runs, rows=tuple(r for r in runs.rows if r.protocol in ("fed-eini", "multi-interactive-tree")))
    near, far = pair.over(Link(0.0, 1e4)), pair.over(Link(60.0, 1e9))
    assert race.verdict(t, near.rows).startswith("**Multi-interactive by tree is ")
    assert race.verdict(t, far.rows).startswith("**Fed-EINI is the fastest over this network")


def test_sliders_draw_the_same_run_anew(raced: AppTest) -> None:
    before, job = rows(raced), raced.session_state["job:protocols"]
    raced.get_by_key("protocols_latency").set_value(300)
    raced.run()
    after = rows(raced)
    assert raced.session_state["job:protocols"] is job
    assert before["Network"] != after["Network"]
    assert (before["Compute"], before["Bytes"]) == (after["Compute"], after["Bytes"])


def test_it_speaks_chinese(raced: AppTest) -> None:
    raced.get_by_key("language").set_value("zh")
    raced.run()
    assert not raced.exception
    assert rows(raced)["协议"][2] == "多轮交互（逐棵树） ◇"


def test_a_race_shows_no_host_number(raced: AppTest, world: World) -> None:
    assert not leaks(world, everything(raced))


def test_many_people_leave_node_by_node_out_and_the_page_says_so(opened: Opened) -> None:
    at = opened("protocols")
    at.slider(key="protocols_samples").set_value(NODE_BY_NODE_SAMPLES + 1).run()
    assert any("left out for more than 20" in caption.value for caption in at.caption)


def test_unequal_scores_are_shouted(raced: AppTest) -> None:
    job = raced.session_state["job:protocols"]
    runs = job.result.runs
    job.result = replace(job.result, runs=replace(runs, rows=(*runs.rows[:-1], replace(runs.rows[-1], equal=False))))
    raced.run()
    assert any("Do not trust" in warning.value for warning in raced.warning)
    assert not any("exactly the same scores" in caption.value for caption in raced.caption)


def test_a_made_up_model_is_raced_as_its_sliders_say(opened: Opened) -> None:
    at = opened("protocols")
    assert not [slider for slider in at.slider if slider.key == "protocols_trees"]
    at.get_by_key("protocols_source").set_value("synthetic")
    at.get_by_key("protocols_cipher").set_value("rlwe")
    at.run()
    for name, value in (("trees", 8), ("depth", 3), ("features", 6)):
        at.slider(key=f"protocols_{name}").set_value(value)
    at.run()
    assert any("64 leaves in complete trees" in caption.value for caption in at.caption)
    at.button(key="protocols_go").click().run()
    at.session_state["job:protocols"].wait(120)
    at.run()
    assert not at.exception
    assert at.session_state["job:protocols"].result.shape == Shape(8, 3, 6)
    assert any(
        "a synthetic model of 8 trees, depth 3, 6 features, 64 leaves" in caption.value for caption in at.caption
    )
    assert any(cell.startswith("Host: ") for cell in at.table[2].value["Hosts learned"])


def test_many_ciphertexts_are_announced(opened: Opened) -> None:
    at = opened("protocols")
    at.get_by_key("protocols_source").set_value("synthetic")
    at.run()
    at.slider(key="protocols_depth").set_value(8)
    at.slider(key="protocols_samples").set_value(10)
    at.run()
    assert any("Up to 128,000 leaf weights" in caption.value for caption in at.caption)


def test_batches_are_drawn_with_a_sentence_and_a_table(raced: AppTest) -> None:
    job = raced.session_state["job:protocols"]
    measured = [point.samples for point in job.result.points]
    assert measured == [1, 3, 10, 30]  # there are not 100 people in this world
    twin = next(frame.value for frame in raced.dataframe if "Faster" in frame.value)
    assert twin["People scored together"].tolist() == measured
    assert any(text.value.startswith("**Over this network ") for text in raced.markdown)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([Lead(True, 1, 100, None)], "Fed-EINI is faster at every measured size, 1 to 100 people."),
        (
            [Lead(True, 1, 10, 17.4), Lead(False, 30, 100, None)],
            "Fed-EINI is faster for 1 to 10 people and Multi-interactive by level is faster for 30 to 100 people.** "
            "The lines cross at about 17 people.",
        ),
        (
            [Lead(False, 1, 1, 1.2), Lead(True, 3, 3, 5.0), Lead(False, 10, 30, None)],
            "Multi-interactive by level is faster for 1 person, Fed-EINI is faster for 3 people and Multi-interactive by "
            "level is faster for 10 to 30 people.** The lines cross at about 1 and 5 people.",
        ),
    ],
)
def test_the_sentence_says_who_wins_where(found: list[Lead], said: str) -> None:
    assert said in race.who_wins(Texts("en"), found)


def test_a_race_is_shown_while_batches_are_still_run_and_stays_when_they_are_stopped(raced: AppTest) -> None:
    job = raced.session_state["job:protocols"]
    job.result, job.state, job.stage, job.done = replace(job.result, batches=()), "running", "batches", 9
    raced.run()
    assert any("Run 10 of 10: other numbers of people" in text.value for text in raced.markdown)
    assert len(rows(raced)["Protocol"]) == len(PROTOCOLS)
    job.state = "cancelled"
    raced.run()
    assert any("What was measured until then stays" in info.value for info in raced.info)
    assert len(rows(raced)["Protocol"]) == len(PROTOCOLS)


def test_batches_that_were_left_out_are_named(raced: AppTest) -> None:
    job = raced.session_state["job:protocols"]
    job.result = replace(job.result, batches=job.result.batches[:2], left_out=(30, 100))
    raced.run()
    assert any("too long at this mode: 30 and 100 people" in caption.value for caption in raced.caption)


def test_a_cut_bar_is_explained(raced: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "CUT", 2.0)
    raced.get_by_key("protocols_bandwidth").set_value(100_000_000)
    raced.get_by_key("protocols_latency").set_value(300)
    raced.run()
    assert any("marks a bar that is cut short at 2 times" in caption.value for caption in raced.caption)
    assert "The bar is cut" in everything(raced)
    raced.get_by_key("protocols_bandwidth").set_value(30_000)
    raced.get_by_key("protocols_latency").set_value(0)
    raced.run()
    assert not any("marks a bar that is cut" in caption.value for caption in raced.caption)
