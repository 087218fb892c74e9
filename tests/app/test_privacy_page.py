"""The Privacy page: Table II of a run, the meter's reading of a person, and the model's figures by width, in both languages."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app.panels.privacy import _bits, _many
from app.texts import Texts, percent
from app.view_models import NUMBERS
from backend.errors import SampleError
from backend.jobs import Job
from backend.privacy.given_away import GivenAway
from backend.privacy.leakage import LeakPoint, LeakReading
from backend.results import ScoreBatch
from backend.services import Glassleaf
from backend.services.scoring import ScoringRequest
from tests.app.conftest import Answers, Opened, World, job_of, put_job
from tests.app.reading_out import everything, prose, says
from tests.app.test_nothing_leaks import leaks

T = Texts("en")


@pytest.fixture(scope="module")
def batch(glassleaf: Glassleaf, world: World) -> ScoreBatch:
    person = glassleaf.samples.table(world.record.id).index[0]
    request = ScoringRequest(world.record.id, glassleaf.samples.of_person(world.record.id, person), cipher="rlwe")
    return glassleaf.scoring.start(request, counted=False).get()


@pytest.fixture(scope="module")
def points(glassleaf: Glassleaf, world: World) -> tuple[LeakPoint, ...]:
    return glassleaf.leakage.start_curve(world.record.id, people=8).get()


@pytest.fixture
def seen(opened: Opened, world: World, batch: ScoreBatch, points: tuple[LeakPoint, ...]) -> AppTest:
    """The page after a scoring and an audit that were made once for all tests."""
    put_job("score", Job(lambda job: batch, 1).start().wait(60))
    put_job(f"leak:{world.record.id}", Job(lambda job: points, 1).start().wait(60))
    return opened("privacy")


def test_before_a_run_the_page_says_how_to_get_one(opened: Opened) -> None:
    at = opened("privacy")
    assert not at.exception
    assert says(at, "privacy.no_run") and not says(at, "privacy.meter")
    assert not any(T("privacy.information") in table.value for table in at.table)


def test_who_may_not_score_is_led_to_the_report(opened: Opened) -> None:
    at = opened("privacy", role="regulator")
    assert not at.exception and says(at, "privacy.run_of_others") and not says(at, "privacy.no_run")
    named = [link.proto.label for link in at.get("page_link")]
    assert T("report.title") in named and T("privacy.to_score") not in named


def test_without_a_model_the_page_says_what_to_do(opened_empty: Opened) -> None:
    at = opened_empty("privacy")
    assert not at.exception
    assert at.button(key="prepare_demo").label == Texts("en")("empty.prepare")


def test_table_two_is_read_off_the_last_run(seen: AppTest, world: World) -> None:
    assert not seen.exception
    table = seen.table[0].value
    assert len(table.columns) == 3  # both Hosts have the same, so they share a column
    for what, guest, hosts in (("path", "own", "own"), ("leaf_weights", "yes", "no")):
        (row,) = table[table.iloc[:, 0] == T(f"privacy.what_{what}")].iloc[:, 1:].to_numpy().tolist()
        assert row == [T(f"privacy.saw_{guest}"), T(f"privacy.saw_{hosts}")]
    assert all(host.title.en in table.columns[2] for host in world.federation.hosts)


def test_the_last_person_is_read_by_the_meter(seen: AppTest, batch: ScoreBatch) -> None:
    metrics = {metric.label: metric.value for metric in seen.metric}
    read = seen.session_state["kept:leak"][1]
    assert read.count >= 1
    assert metrics[T("privacy.count")] == _many(read.count)
    assert says(metrics[T("privacy.entropy")], "privacy.bits")
    assert says(seen, "privacy.upper_bound")
    assert says(seen, "privacy.one_way" if read.count == 1 else "privacy.ways", id=batch.scores[0].id)


def test_the_meter_asks_for_somebody_whose_values_are_at_hand_and_counts_who_was_scored(
    opened: Opened, batch: ScoreBatch
) -> None:
    uploaded = replace(batch.scores[0], id="uploaded")
    failed = replace(uploaded, status="failed")
    put_job("score", Job(lambda job: replace(batch, scores=(uploaded, failed)), 1).start().wait(60))
    at = opened("privacy")
    assert not at.exception and not at.warning
    assert says(at, "privacy.not_held") and says(at, "privacy.sentence", n=1) and not says(at, "privacy.sentence", n=2)


def test_where_counting_takes_long_a_bound_comes_first_and_the_count_when_it_is_asked_for(
    opened: Opened, batch: ScoreBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.privacy.leakage.COUNT_AT_ONCE", 0)
    put_job("score", Job(lambda job: batch, 1).start().wait(60))
    at = opened("privacy")
    _, read, bound = at.session_state["kept:leak"]
    assert read is None and says(at, "leak_bound.sentence", id=batch.scores[0].id)
    assert T("privacy.count") not in {metric.label for metric in at.metric}
    at.button(key="leak_count").click().run()
    _, read, again = at.session_state["kept:leak"]
    assert (
        not at.exception
        and again == bound
        and read.disclosed_bits <= bound.disclosed_bits
        and bound.min_entropy <= read.min_entropy
    )
    assert T("privacy.count") in {metric.label for metric in at.metric}


def test_the_widths_are_drawn_with_a_sentence_and_a_table(seen: AppTest, points: tuple[LeakPoint, ...]) -> None:
    twin = next(frame.value for frame in seen.dataframe if T("privacy.width") in frame.value)
    assert twin[T("privacy.width")].tolist() == [6, 8, 10, 12, 14, 16]
    assert says(seen, "privacy.verdict", bits=10) or says(seen, "privacy.verdict_none_alone", bits=10)
    assert [point.people for point in points] == [8] * 6


def test_what_answers_have_given_away_is_shown_by_host_and_for_a_person(
    opened: Opened, glassleaf: Glassleaf, world: World
) -> None:
    model, person = world.record.id, glassleaf.models.test_ids(world.record)[-1]
    request = ScoringRequest(model, glassleaf.samples.of_person(model, person), cipher="none")
    glassleaf.scoring.start(request).get()
    at = opened("privacy")
    at.selectbox(key="privacy_told").select(person).run()
    assert not at.exception
    told = glassleaf.leakage.given_away(model, person)
    tables = [table.value for table in at.table]
    (answered,) = [table for table in tables if T("privacy.told_people") in table]
    (costs,) = [table for table in tables if T("privacy.told_capacity") in table]
    assert answered[T("privacy.told_people")].tolist() == [f"{host.people:,}" for host in told]
    assert answered[T("privacy.told_person", id=person)].tolist() == [_bits(T, host.person) for host in told]
    assert costs[T("privacy.told_score")].tolist() == [_bits(T, host.costs["score"]) for host in told]
    assert says(at, "privacy.told_sentence.other") or says(at, "privacy.told_sentence.one")
    assert not leaks(world, everything(at))


@pytest.mark.parametrize("limit", [None, 20.0])
def test_a_host_that_counts_nothing_and_a_limit_are_called_what_they_are(
    opened: Opened, answers: Answers, limit: float | None
) -> None:
    silent = GivenAway("telecom", 28, None, None, None, 0, 0)
    counting = GivenAway("platform", 28, 0, 0.0, limit, 1, 2)
    answers["leakage.given_away"] = lambda model, person: (silent, counting)
    at = opened("privacy")
    assert not at.exception
    (table,) = [table.value for table in at.table if T("privacy.told_people") in table.value]
    assert table[T("privacy.told_people")].tolist() == [T("privacy.told_not_counted"), "0"]
    assert (_bits(T, 20.0) in table[T("privacy.told_limit")].iloc[1]) == (limit is not None)
    assert says(at, "privacy.told_nobody")


def test_an_upper_bound_is_never_rounded_down() -> None:
    assert [_bits(T, bits) for bits in (16.61, 0.01, 0.0)] == [_bits(T, bits) for bits in (16.7, 0.1, 0.0)]


def test_the_page_shows_no_host_number(seen: AppTest, world: World) -> None:
    assert not leaks(world, everything(seen))


def test_it_speaks_chinese(seen: AppTest) -> None:
    seen.get_by_key("language").set_value("zh")
    seen.run()
    assert not seen.exception
    assert Texts("zh")("privacy.what_path") in seen.table[0].value.iloc[:, 0].tolist()


def test_a_run_of_another_model_is_not_shown(seen: AppTest, batch: ScoreBatch) -> None:
    job_of("score").result = replace(batch, model_id="m-other")
    seen.run()
    assert not any(T("privacy.information") in table.value for table in seen.table)
    assert says(seen, "privacy.other_model")


def test_a_run_without_encryption_is_called_one(seen: AppTest, batch: ScoreBatch) -> None:
    job_of("score").result = replace(batch, cipher="none", key_bits=0)
    seen.run()
    assert says(seen, "privacy.plain")
    assert T("privacy.saw_sent") in seen.table[0].value.to_csv()


def test_an_answer_from_the_journal_is_called_one(seen: AppTest, batch: ScoreBatch) -> None:
    assert not says(seen, "privacy.recalled", n=1)
    before = seen.table[0].value
    entries = tuple(entry for entry in batch.transcript if entry.kind not in NUMBERS)
    assert 0 < len(entries) < len(batch.transcript)
    job_of("score").result = replace(batch, transcript=entries, recalled=1)
    seen.run()
    # English says "1 of 1 person" of one: the text is filled in as on the page, not matched word by word.
    assert T("privacy.recalled", n=1, recalled="1", people=f"{len(batch.scores)}") in "\n".join(prose(seen))
    assert seen.table[0].value.equals(before)  # what Hosts saw then they have seen


def test_a_model_that_asks_no_host_is_not_said_to_be_answered_from_the_journal(
    seen: AppTest, batch: ScoreBatch
) -> None:
    job_of("score").result = replace(batch, transcript=())
    seen.run()
    assert not seen.exception
    assert says(seen, "privacy.nobody_asked") and not says(seen, "privacy.recalled", n=1)


def test_a_press_starts_the_audit_and_it_can_be_stopped(opened: Opened, world: World) -> None:
    at = opened("privacy")
    at.button(key="privacy_go").click().run()
    job = job_of(f"leak:{world.record.id}")
    job.cancel()
    job.wait(60)
    at.run()
    assert not at.exception
    assert job.state in ("cancelled", "done")


def test_the_meter_counts_the_true_path_of_everybody(glassleaf: Glassleaf, world: World) -> None:
    ids = glassleaf.samples.table(world.record.id).index[:12]
    for person in ids:
        request = ScoringRequest(world.record.id, glassleaf.samples.of_person(world.record.id, person), cipher="rlwe")
        score = glassleaf.scoring.start(request, counted=False).get().scores[0]
        read = glassleaf.leakage.meter(world.record.id, score)
        assert 1 <= read.count <= read.combinations
        assert 0 <= read.min_entropy <= read.entropy + 1e-9


def test_a_score_of_other_values_is_not_read(glassleaf: Glassleaf, world: World, batch: ScoreBatch) -> None:
    edited = replace(batch.scores[0], guest_part=batch.scores[0].guest_part + 1)
    with pytest.raises(SampleError, match="other values"):
        glassleaf.leakage.meter(world.record.id, edited)


def test_a_score_of_typed_in_values_is_read_with_these(glassleaf: Glassleaf, world: World) -> None:
    model, person = world.record.id, glassleaf.samples.table(world.record.id).iloc[0]
    feature = next(iter(glassleaf.models.guest_model(model).rules.values())).feature
    row = {name: None if pd.isna(value) else value for name, value in person.drop("part").items()}
    other = glassleaf.samples.table(model)[feature].dropna().iloc[-1]
    for values in (row, {**row, feature: other}):
        sheet = glassleaf.samples.typed_in(model, str(person.name), values)
        score = glassleaf.scoring.start(ScoringRequest(model, sheet, cipher="none"), counted=False).get().scores[0]
        read = glassleaf.leakage.meter(model, score, sheet)
        assert 1 <= read.count <= read.combinations  # the path that was taken is among them
        moved = replace(score, guest_part=score.guest_part + 1)
        with pytest.raises(SampleError, match="just entered"):
            glassleaf.leakage.meter(model, moved, sheet)


def test_the_audit_is_in_the_log(glassleaf: Glassleaf, world: World, points: tuple[LeakPoint, ...]) -> None:
    assert any(entry.action == "leak-audit" for entry in glassleaf.audit.entries("demo"))
    assert all(0 <= point.identified <= point.unique <= 1 for point in points)
    assert np.all(np.diff([point.bits for point in points]) <= 0)  # finer scores leave fewer combinations


def test_large_counts_are_powers_of_ten() -> None:
    assert _many(1290) == "1,290"
    assert _many(31 * 10**23) == "3.1 × 10²⁴"
    assert _many(2 * 10**400) == "2.0 × 10⁴⁰⁰"  # more than a float holds
    assert LeakReading(9, 8, 1.0, 1.0, 1.0, 1.0).bits == 3.0


def test_the_frontier_says_what_dither_would_do_and_marks_the_model(
    opened: Opened, world: World, glassleaf: Glassleaf
) -> None:
    found = glassleaf.leakage.start_tradeoff(world.record.id, people=20).get()
    at = opened("privacy")
    put_job(f"frontier:{world.record.id}", Job(lambda job: found, 1).start().wait(60))
    at.run()
    assert not at.exception
    own = next(p for p in found if p.score_bits == world.record.score_bits and not p.dither)
    assert says(at, "privacy.frontier_verdict_none", bits=own.score_bits, unique=percent(own.unique))
    chosen = next(frame.value for frame in at.dataframe if T("privacy.chosen") in frame.value)[T("privacy.chosen")]
    assert len(chosen) == len(found) and chosen.tolist().count(T("privacy.this_model")) == 1


def test_a_press_measures_the_frontier_and_it_can_be_stopped(opened: Opened, world: World) -> None:
    at = opened("privacy")
    at.button(key="frontier_go").click().run()
    job = job_of(f"frontier:{world.record.id}")
    job.cancel()
    job.wait(60)
    at.run()
    assert not at.exception and job.state in ("cancelled", "done")
