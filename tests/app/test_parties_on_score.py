"""What each party sees of a scoring: true bytes on the Guest's page, a Host's own view of synthetic people alone."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from inside import runtime_of
from streamlit.testing.v1 import AppTest

from app import session, user_jobs, view_models
from app.panels import charts, frame, palette, person, result, standing, transcript
from app.texts import Texts, markdown, size
from backend.errors import SecurityError
from backend.jobs import Job
from backend.protocols.transport.transcript import SAMPLE, TranscriptEntry
from backend.remark import Remark
from backend.services import Glassleaf
from tests.app.conftest import Answers, Opened, World, job_of, put_job
from tests.app.reading_out import everything, says
from tests.app.test_nothing_leaks import leaks
from tests.app.test_scoring import scored

T = Texts("en")
SVG = "{http://www.w3.org/2000/svg}"
GUEST, FIRST, LAST = "bank", "telecom", "platform"


def message(number: int, sender: str, receiver: str, kind: str) -> TranscriptEntry:
    return TranscriptEntry(number, sender, receiver, kind, 1000, 0.0, "", "", (), bytes(range(SAMPLE)), 768, 4)


CHAIN = (
    message(1, GUEST, FIRST, "OfferKey"),
    message(2, GUEST, FIRST, "DecisionVectors"),
    message(3, FIRST, GUEST, "HeldRecords"),
    message(4, FIRST, LAST, "DecisionVectors"),
    message(5, LAST, GUEST, "HeldRecords"),
    message(6, LAST, GUEST, "EncryptedScores"),
    message(7, GUEST, LAST, "Acknowledge"),
)


def bytes_on(at: AppTest) -> str:
    return "\n".join(text.value for text in at.markdown)


def test_the_page_shows_the_true_first_bytes_of_every_ciphertext(opened: Opened, world: World) -> None:
    at = scored(opened("score"))
    assert not at.exception
    transcript = job_of("score").result.transcript
    carried = [entry for entry in transcript if entry.kind in view_models.NUMBERS]
    assert len(carried) == 1 + len(world.federation.hosts)
    for entry in carried:
        assert len(entry.sample) == SAMPLE and entry.unreadable > SAMPLE
        assert entry.sample[:4].hex() in bytes_on(at)


def test_a_hosts_own_view_stays_away_until_it_is_asked_for(opened: Opened, world: World) -> None:
    at = scored(opened("score"))
    assert not leaks(world, everything(at))
    host = world.federation.hosts[0]
    at.toggle(key=f"seen_look_{host.name}").set_value(True).run()
    assert not at.exception
    assert says(at, "transcript.look_note") and says(at, "transcript.look_squares")
    at.toggle(key=f"seen_look_{host.name}").set_value(False).run()
    assert not leaks(world, everything(at))


def test_a_host_is_looked_through_in_a_synthetic_federation_alone(
    glassleaf: Glassleaf, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, host = runtime_of(glassleaf), world.federation.hosts[0]
    person = runtime.table.ids[0]
    seen = glassleaf.demonstration.look_as(world.record.id, host.name, person)
    assert {feature.name for feature, _ in seen.values} <= {feature.name for feature in host.features}
    assert seen.entries and seen.kept + seen.ruled_out + seen.entries.count(None) == len(seen.entries)
    monkeypatch.setattr(runtime, "federation", runtime.federation.model_copy(update={"synthetic": False}))
    with pytest.raises(SecurityError, match="synthetic"):
        glassleaf.demonstration.look_as(world.record.id, host.name, person)


def held(go: threading.Event, job: Job[tuple[()]]) -> tuple[()]:
    job.at("a4:1")
    go.wait(60)
    return ()


@pytest.mark.parametrize("kind", ["score", "people"])
def test_a_scoring_that_runs_shows_its_stages_and_can_be_stopped(
    opened: Opened, go: threading.Event, kind: str
) -> None:
    put_job(kind, Job(partial(held, go), 1).start())
    at = opened(kind)
    assert not at.exception and not at.button(key=f"cancel_{kind}").disabled
    assert at.button(key=f"{kind}_go").disabled


def test_the_session_remembers_who_was_scored_and_sets_two_side_by_side(opened: Opened) -> None:
    at = scored(opened("score"))
    with pytest.raises(KeyError):
        at.selectbox(key="score_one")
    people = at.selectbox(key="sample").options
    at.selectbox(key="sample").select(people[1]).run()
    at = scored(at)
    assert not at.exception
    assert says(at, "score.history_sentence", n=2)
    two = [
        at.selectbox(key=key).options[at.selectbox(key=key).index].split(" · ")[0]
        for key in ("score_one", "score_other")
    ]
    assert two == [people[1], people[0]]
    table = next(found.value for found in at.table if T("score.when") in found.value)
    assert list(table[T("score.id")]) == two
    assert table[T("score.when")][0] == markdown(session.clock(user_jobs.since("score"), None))


@pytest.mark.parametrize(("zone", "time"), [("Asia/Shanghai", "23:30:00"), ("America/New_York", "11:30:00")])
def test_times_of_day_are_the_readers(zone: str, time: str) -> None:
    moment = datetime(2026, 7, 1, 15, 30, tzinfo=UTC)
    assert session.clock(moment, zone) == time
    assert session.clock(moment, "Etc/Unknown") == session.clock(moment, None)


def test_large_batches_are_not_remembered_person_by_person(opened: Opened) -> None:
    scored(opened("score"))
    batch = job_of("score").result
    assert len(standing.noted((), batch, "12:00:00")) == 1
    many = replace(batch, scores=batch.scores * standing.BATCH_FROM_PEOPLE)
    assert standing.noted((), many, "12:00:00") == ()


def test_a_score_is_placed_among_those_the_guest_knows(opened: Opened, glassleaf: Glassleaf, world: World) -> None:
    part = glassleaf.model_cards.get(world.record.id).parts[0]
    assert view_models.at_or_above(part, 0.0) == pytest.approx(1.0)
    assert view_models.at_or_above(part, 1.1) == 0.0
    at = scored(opened("score"))
    assert says(at, "score.among_person") and not says(at, "score.among")


def test_where_a_score_stands_is_drawn_with_a_bar_for_all_who_were_scored(glassleaf: Glassleaf, world: World) -> None:
    spread = glassleaf.model_cards.get(world.record.id).parts[0].spread
    assert spread is not None
    edges, counts = [100 * edge for edge in spread.edges], [sum(column) for column in zip(*spread.counts, strict=True)]
    assert sum(counts)
    for at in (None, 7.25):
        picture = ElementTree.fromstring(standing.bars_by_probability(T, edges, counts, 50.0, at, "**7** people"))  # noqa: S314 - our own
        bars = list(picture.iter(f"{SVG}rect"))
        assert [int((bar.findtext(f"{SVG}title") or "").rsplit(" ")[-1].replace(",", "")) for bar in bars] == counts
        heights = [float(bar.get("height") or 0) for bar in bars]
        assert heights == pytest.approx([standing.BARS_PIXELS * count / max(counts) for count in counts], abs=0.06)
        dark = [bar.get("fill") == palette.INK for bar in bars]
        assert dark == [(low + high) / 2 >= 50 for low, high in pairwise(edges)]
        assert [mark.get("x") for mark in picture.iter(f"{SVG}svg") if mark is not picture] == (["7.25%"] if at else [])
        assert picture.get("aria-label") == "7 people"


def test_lying_bars_are_as_long_as_their_values_and_a_dotted_line_marks_what_they_are_compared_with() -> None:
    rows = [("A < B", 0.2, palette.INK), ("C", 0.8, palette.FINDING)]
    picture = ElementTree.fromstring(charts.lying(rows, 0.8, "**2** bars", (0.4, "half")))  # noqa: S314 - our own
    assert [bar.get("width") for bar in picture.iter(f"{SVG}rect")] == ["25.00%", "100.00%"]
    assert {line.get("x1") for line in picture.iter(f"{SVG}line")} == {"50.00%"}
    assert [text.text for text in picture.iter(f"{SVG}text")] == ["A < B", "C", "half"]
    assert picture.get("aria-label") == "2 bars"


def test_how_a_score_was_computed_is_made_and_the_textbook_measured_once_the_box_is_opened(
    opened: Opened, answers: Answers, glassleaf: Glassleaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[object] = []
    real = glassleaf.protocol_comparison.textbook_seconds
    answers["protocol_comparison.textbook_seconds"] = lambda *given: measured.append(given) or real(*given)
    monkeypatch.setattr(frame, "BOXES_OPEN", False)
    at = scored(opened("score"))
    assert not at.exception and says(at, "score.among_person") and not says(at, "score.learned_host", n=1)
    assert not measured and not says(at, "score.together") and not says(at, "transcript.sentence")
    monkeypatch.setattr(frame, "BOXES_OPEN", True)
    at = scored(opened("score"))
    assert measured and says(at, "score.together") and says(at, "transcript.sentence")


def test_no_usable_row_is_no_success(opened: Opened, world: World) -> None:
    at = opened("people")
    at.file_uploader(key="people_upload").upload("people.csv", b"id\nZZ1\nZZ2\n")
    at.run()
    assert not at.exception
    with pytest.raises(KeyError):
        at.button(key="people_go")
    at = scored(opened("score"))
    batch = job_of("score").result
    failed = replace(batch, scores=(replace(batch.scores[0], status="failed", problems=(Remark("moments"),)),))
    assert result.usable(batch) and not result.usable(failed)


def test_the_picture_of_the_messages_draws_each_and_says_what_it_shows(opened: Opened, world: World) -> None:
    opened("overview")
    drawn = transcript._sequence(T, session.view(world.record.id), CHAIN, '**7** messages, "A < B"')
    picture = ElementTree.fromstring(drawn)  # noqa: S314 - our own
    told = [title.text or "" for title in picture.iter(f"{SVG}title")]
    assert [int(words.split(".")[0]) for words in told] == [message.number for message in CHAIN]
    assert all(size(message.bytes) in words for message, words in zip(CHAIN, told, strict=True))
    arrows = [line for line in picture.iter(f"{SVG}line") if line.get("marker-end")]
    ways = {(one.get("x1"), one.get("x2")) for one in arrows}
    assert len(arrows) == len(CHAIN) and ("16.67%", "50.00%") in ways and ("83.33%", "16.67%") in ways
    assert picture.get("aria-label") == '7 messages, "A < B"'


def test_many_values_of_a_person_are_read_a_page_at_a_time(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    def names(at: AppTest) -> list[str]:
        return [str(name) for card in at.table for name in [*card.value.index, *card.value.columns]]

    whole = names(opened("score"))
    monkeypatch.setattr(person, "FACTS", 2)
    at = opened("score")
    first = names(at)
    at.get_by_key("person_page").set_value(2)
    second = names(at.run())
    assert not at.exception
    assert len(first) < len(whole) and set(first) | set(second) <= set(whole) and first != second
