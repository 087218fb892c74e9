"""The Protocols page: a race that is run once and drawn again for every network, in both languages."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app.panels import race
from app.texts import Texts
from backend.jobs import Job
from backend.protocols.transport.simulated_latency import Link
from backend.research.baselines.batch_sizes import BATCHES, PAIR, Lead
from backend.research.baselines.comparison import PROTOCOLS
from backend.research.baselines.synthetic_model import Shape
from backend.services import Glassleaf
from backend.services.protocol_comparison import NODE_BY_NODE_SAMPLES, Compared, ComparisonRequest
from tests.app.conftest import Opened, World, job_of, put_job
from tests.app.reading_out import everything, says
from tests.app.test_nothing_leaks import leaks

T = Texts("en")


@pytest.fixture(scope="module")
def compared(world: World) -> Iterator[Compared]:
    glassleaf = Glassleaf(world.home, pools=False)
    yield glassleaf.protocol_comparison.start(ComparisonRequest(world.record.id, cipher="rlwe", batches=BATCHES)).get()
    glassleaf.close()


@pytest.fixture
def raced(opened: Opened, compared: Compared) -> AppTest:
    """The page after a race that was run once for all tests."""
    put_job("protocols", Job(lambda job: compared, 10).start().wait(60))
    return opened("protocols")


def rows(at: AppTest) -> dict[str, list[str]]:
    """Both tables of figures, by column."""
    return {**at.table[0].value.to_dict("list"), **at.table[1].value.to_dict("list")}


def test_before_a_race_the_page_says_what_it_would_show(opened: Opened) -> None:
    at = opened("protocols")
    assert says(at, "protocols.not_yet")


def test_every_protocol_has_a_bar_and_a_row(raced: AppTest) -> None:
    assert not raced.exception
    assert len(rows(raced)[T("protocols.protocol")]) == len(PROTOCOLS)
    assert says(raced, "protocols.equal")
    learned = raced.table[2].value[T("protocols.guest_learned")]
    assert says(learned[0], "protocols.learned_score")
    assert all(says(words, "protocols.learned_path") for words in learned[1:])
    shown = everything(raced)
    assert all(says(shown, f"protocols.name_{name}") for name in PROTOCOLS)
    assert says(shown, "protocols.comparison_only")


def test_the_sentence_names_the_fastest_and_what_it_shows(raced: AppTest) -> None:
    done = job_of("protocols").result
    fastest = min(done.runs.rows, key=lambda row: row.exchange.total)
    sentence = race.verdict(T, done.runs.rows)
    assert any(text.value == sentence for text in raced.markdown)
    assert T(f"protocols.name_{fastest.protocol}") in sentence
    assert says(sentence, "protocols.wins") != says(sentence, "protocols.loses")


def test_the_verdict_turns_with_the_network(raced: AppTest) -> None:
    runs = job_of("protocols").result.runs
    pair = replace(runs, rows=tuple(r for r in runs.rows if r.protocol in ("fed-eini", "multi-interactive-tree")))
    near, far = pair.over(Link(0.0, 1e4)), pair.over(Link(60.0, 1e9))
    other = T("protocols.name_multi-interactive-tree")
    assert says(race.verdict(T, near.rows), "protocols.loses", name=other)
    assert race.verdict(T, near.rows).count(T("protocols.best_private").strip("*")) == 1
    assert says(race.verdict(T, far.rows), "protocols.wins", name=other)


def test_sliders_redraw_the_same_run(raced: AppTest) -> None:
    before, job = rows(raced), job_of("protocols")
    raced.get_by_key("protocols_latency").set_value(300)
    raced.run()
    after = rows(raced)
    assert job_of("protocols") is job
    network, *others = (T(f"protocols.{name}") for name in ("network_column", "compute_column", "bytes"))
    assert before[network] != after[network]
    assert [before[name] for name in others] == [after[name] for name in others]


def test_it_speaks_chinese(raced: AppTest) -> None:
    raced.get_by_key("language").set_value("zh")
    raced.run()
    assert not raced.exception
    t = Texts("zh")
    assert rows(raced)[t("protocols.protocol")][2] == f"{t('protocols.name_multi-interactive-tree')} ◇"


def test_a_race_shows_no_host_number(raced: AppTest, world: World) -> None:
    assert not leaks(world, everything(raced))


def test_many_people_leave_node_by_node_out_and_the_page_says_so(opened: Opened) -> None:
    at = opened("protocols")
    at.slider(key="protocols_samples").set_value(NODE_BY_NODE_SAMPLES + 1).run()
    assert says(at, "protocols.node_left_out", people=NODE_BY_NODE_SAMPLES)


def test_unequal_scores_are_a_warning(raced: AppTest) -> None:
    job = job_of("protocols")
    runs = job.result.runs
    job.result = replace(job.result, runs=replace(runs, rows=(*runs.rows[:-1], replace(runs.rows[-1], equal=False))))
    raced.run()
    assert any(says(warning.value, "protocols.unequal") for warning in raced.warning)
    assert not says(raced, "protocols.equal")


def test_a_synthetic_model_is_run_as_its_sliders_say(opened: Opened) -> None:
    at = opened("protocols")
    assert not [slider for slider in at.slider if slider.key == "protocols_trees"]
    at.get_by_key("protocols_source").set_value("synthetic")
    at.get_by_key("protocols_cipher").set_value("rlwe")
    at.run()
    for name, value in (("trees", 8), ("depth", 3), ("features", 6)):
        at.slider(key=f"protocols_{name}").set_value(value)
    at.run()
    assert says(at, "protocols.leaves", leaves=64)
    at.button(key="protocols_go").click().run()
    job_of("protocols").wait(120)
    at.run()
    assert not at.exception
    assert job_of("protocols").result.shape == Shape(8, 3, 6)
    assert says(at, "protocols.on_synthetic", n=8, depth=3, features=6, leaves=64)
    learned = at.table[2].value[T("protocols.hosts_learned")]
    assert any(says(cell, "protocols.host_learned", party=T("words.host")) for cell in learned)


def test_many_ciphertexts_are_announced(opened: Opened) -> None:
    at = opened("protocols")
    at.get_by_key("protocols_source").set_value("synthetic")
    at.run()
    at.slider(key="protocols_depth").set_value(8)
    at.slider(key="protocols_samples").set_value(10)
    at.run()
    assert says(at, "protocols.heavy", weights="128,000")


def test_batches_are_drawn_with_a_sentence_and_a_table(raced: AppTest) -> None:
    job = job_of("protocols")
    measured = [point.samples for point in job.result.points]
    assert measured == [1, 3, 10, 30]  # there are not 100 people in this world
    twin = next(frame.value for frame in raced.dataframe if T("protocols.faster") in frame.value)
    assert twin[T("protocols.people")].tolist() == measured
    assert says(raced, "protocols.wins_all") or says(raced, "protocols.wins_some")


def test_the_sentence_says_who_wins_where() -> None:
    ours, other = (T(f"protocols.name_{name}") for name in PAIR)

    def wins(name: str, sizes: str) -> str:
        return T("protocols.wins_at", name=name, sizes=sizes)

    def some(*each: str, cross: list[str]) -> str:
        where = T("protocols.cross", n=len(cross), where=T.listed(cross))
        return f"{T('protocols.wins_some', each=T.listed(list(each)))} {where}"

    def sizes(first: int, last: int) -> str:
        return T("protocols.sizes", first=first, last=last)

    always = race.who_wins(T, [Lead(True, 1, 100, None)])
    assert always == T("protocols.wins_all", name=ours, sizes=sizes(1, 100))
    once = race.who_wins(T, [Lead(True, 1, 10, 17.4), Lead(False, 30, 100, None)])
    assert once == some(wins(ours, sizes(1, 10)), wins(other, sizes(30, 100)), cross=["17"])
    twice = race.who_wins(T, [Lead(False, 1, 1, 1.2), Lead(True, 3, 3, 5.0), Lead(False, 10, 30, None)])
    one, three = (T("protocols.size", n=n) for n in (1, 3))
    assert twice == some(wins(other, one), wins(ours, three), wins(other, sizes(10, 30)), cross=["1", "5"])


def test_a_race_is_shown_while_batches_are_still_run_and_stays_when_they_are_stopped(raced: AppTest) -> None:
    job = job_of("protocols")
    job.result, job.state, job.stage, job.done = replace(job.result, batches=()), "running", "batches", 9
    raced.run()
    assert says(raced, "protocols.batches", number=10, total=10)
    assert len(rows(raced)[T("protocols.protocol")]) == len(PROTOCOLS)
    job.state = "cancelled"
    raced.run()
    assert says(raced, "protocols.cancelled_late")
    assert len(rows(raced)[T("protocols.protocol")]) == len(PROTOCOLS)


def test_batches_that_were_left_out_are_named(raced: AppTest) -> None:
    job = job_of("protocols")
    job.result = replace(job.result, batches=job.result.batches[:2], left_out=(30, 100))
    raced.run()
    assert says(raced, "protocols.batches_left_out", sizes=T.listed(["30", "100"]))


def test_a_cut_bar_is_explained(raced: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "CUT_FROM_TIMES", 2.0)
    raced.get_by_key("protocols_bandwidth").set_value(100_000_000)
    raced.get_by_key("protocols_latency").set_value(300)
    raced.run()
    assert says(raced, "protocols.cut", times=2) and says(raced, "protocols.cut_here")
    raced.get_by_key("protocols_bandwidth").set_value(30_000)
    raced.get_by_key("protocols_latency").set_value(0)
    raced.run()
    assert not says(raced, "protocols.cut")
