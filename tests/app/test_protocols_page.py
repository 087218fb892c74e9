"""The Protocols page: a race that is run once and drawn anew for every network, in both languages."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app.panels import protocols
from app.texts import Texts
from backend.service import NODE_BY_NODE_SAMPLES, PROTOCOLS, Link
from tests.app.conftest import Opened, World
from tests.app.reading_out import everything
from tests.app.test_nothing_leaks import leaks


@pytest.fixture
def raced(opened: Opened) -> AppTest:
    at = opened("protocols")
    at.get_by_key("protocols_cipher").set_value("rlwe")
    at.run()
    at.button(key="protocols_go").click().run()
    at.session_state["job:protocols"].wait(120)
    return at.run()


def rows(at: AppTest) -> dict[str, list[str]]:
    return at.dataframe[0].value.to_dict("list")


def test_before_a_race_the_page_says_what_it_would_show(opened: Opened) -> None:
    at = opened("protocols")
    assert any("Seven ways to score" in info.value for info in at.info)


def test_every_protocol_has_a_bar_and_a_row(raced: AppTest) -> None:
    assert not raced.exception
    t = Texts("en")
    table = rows(raced)
    assert len(table["protocol"]) == len(PROTOCOLS)
    assert set(table["equal"]) == {"yes"}
    told = raced.dataframe[1].value["guest"]
    assert "no path" in told[0]
    assert all("every path" in words for words in told[1:])
    said = everything(raced)
    assert all(t(f"protocols.name_{name}") in said for name in PROTOCOLS)
    assert "answered by simulated Hosts only" in said


def test_the_sentence_names_the_fastest_and_what_it_shows(raced: AppTest) -> None:
    done = raced.session_state["job:protocols"].result
    fastest = min(done.runs.rows, key=lambda row: row.exchange.total)
    sentence = protocols.verdict(Texts("en"), done.runs.rows)
    assert any(text.value == sentence for text in raced.markdown)
    assert Texts("en")(f"protocols.name_{fastest.protocol}") in sentence
    assert sentence.count("Fed-EINI shows none") == 1


def test_the_verdict_turns_with_the_network(raced: AppTest) -> None:
    t, runs = Texts("en"), raced.session_state["job:protocols"].result.runs
    pair = replace(runs, rows=tuple(r for r in runs.rows if r.protocol in ("fed-eini", "multi-interactive-tree")))
    near, far = pair.over(Link(0.0, 1e4)), pair.over(Link(60.0, 1e9))
    assert protocols.verdict(t, near.rows).startswith("**Multi-interactive by tree is ")
    assert protocols.verdict(t, far.rows).startswith("**Fed-EINI is the fastest over this network")


def test_sliders_draw_the_same_run_anew(raced: AppTest) -> None:
    before, job = rows(raced), raced.session_state["job:protocols"]
    raced.get_by_key("protocols_latency").set_value(300)
    raced.run()
    after = rows(raced)
    assert raced.session_state["job:protocols"] is job
    assert before["network"] != after["network"]
    assert (before["compute"], before["bytes"]) == (after["compute"], after["bytes"])


def test_it_speaks_chinese(raced: AppTest) -> None:
    raced.get_by_key("language").set_value("zh")
    raced.run()
    assert not raced.exception
    assert rows(raced)["protocol"][2] == "多轮交互（逐棵树） ◇"


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
