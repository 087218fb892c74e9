"""The cipher picker, what each party has ready, the textbook beside the result, and uploads of many people."""

from __future__ import annotations

import csv
import io
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from short_keys import SHORTER
from streamlit.testing.v1 import AppTest

from app import view_models
from app.panels import frame, palette
from app.texts import Texts
from app.view_models import Speed
from backend.data.id_forms import AS_WRITTEN
from backend.errors import ParameterError
from backend.jobs import Job
from backend.protocols.guest_runtime import PoolLevel
from backend.remark import Remark
from backend.services import Glassleaf, scoring
from backend.services.scoring import Scoring, ScoringRequest
from tests.app.conftest import Answers, Opened, World, job_of, put_job
from tests.app.reading_out import everything, says
from tests.app.test_scoring import scored, template, uploaded

T = Texts("en")
WAY = T("score.textbook_way")
PEOPLE = 230


def with_cipher(at: AppTest, cipher: str) -> AppTest:
    at.get_by_key("score_cipher").set_value(cipher)
    return at.run()


def many(world: World) -> bytes:
    rows = pd.concat([template(world)] * (PEOPLE // 2), ignore_index=True)
    rows[world.federation.guest.id] = [f"new{i}" for i in range(PEOPLE)]
    return rows.to_csv(index=False).encode()


@pytest.fixture
def bulk(opened: Opened, world: World) -> AppTest:
    at = uploaded(opened, many(world))
    asked = next(radio for radio in at.radio if radio.label == T("upload.ask_ids"))  # no Host has such ids
    return scored(with_cipher(asked.set_value(AS_WRITTEN).run(), "rlwe"), "people")


def table(at: AppTest) -> pd.DataFrame:
    """The one table that says what became of each person."""
    (found,) = [frame.value for frame in at.dataframe if T("score.note") in frame.value]
    return found


# -- the picker ----------------------------------------


def test_one_line_says_the_cipher_and_the_panel_behind_it_describes_both(opened: Opened) -> None:
    at = opened("score")
    picker = at.get_by_key("score_cipher")
    assert picker.value == "suited"
    assert picker.options == [T(f"engine.name_{name}") for name in ("suited", "paillier", "rlwe")]
    (line,) = [caption.value for caption in at.caption if says(caption.value, "engine.suits_paillier", n=1)]
    assert T("engine.name_paillier") in line and "3,072" in line
    shown = everything(at)
    for key in ("engine.first_paillier", "engine.first_rlwe", "engine.help_rlwe"):
        assert says(shown, key)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_cipher_has_two_lines_and_a_hover(opened: Opened, language: str) -> None:
    at = opened("score", lang=language)
    t = Texts(language)
    for name in ("paillier", "rlwe"):
        title = next(m for m in at.markdown if f"**{t(f'engine.name_{name}')}**" in m.value)
        assert len(title.proto.help) > 80
        assert "{" not in title.proto.help
    lines = [caption.value for caption in at.caption if caption.value.count("  \n") == 1]
    assert len(lines) == 2


def test_a_large_batch_gets_the_cipher_made_for_batches_where_it_fits(
    glassleaf: Glassleaf, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = world.record.id
    assert [glassleaf.scoring.suited(model, people) for people in (1, 49, 50)] == ["paillier", "paillier", "rlwe"]

    def none_fits(*load: int) -> None:
        raise ParameterError("no parameter set holds so much")

    monkeypatch.setattr(scoring, "parameters_for", none_fits)
    assert glassleaf.scoring.suited(model, 5000) == "paillier"


def test_a_key_length_is_asked_for_with_paillier_only(opened: Opened) -> None:
    at = opened("score")
    assert at.get_by_key("score_key_bits").value == 3072
    assert not says(at, "engine.security_2048")
    at.get_by_key("score_key_bits").set_value(2048)
    at.run()
    assert says(at, "engine.second_paillier", bytes=512)
    assert says(at, "engine.security_2048")
    at = with_cipher(at, "rlwe")
    with pytest.raises(KeyError):
        at.get_by_key("score_key_bits")


def test_the_key_length_reaches_the_scoring(opened: Opened) -> None:
    at = opened("score")
    at.get_by_key("score_key_bits").set_value(2048)
    at = scored(at.run())
    batch = job_of("score").result
    assert (batch.cipher, batch.key_bits) == ("paillier", 2048 // SHORTER)


def test_figures_of_a_cipher_come_from_a_run_and_not_before(opened: Opened) -> None:
    at = with_cipher(opened("score"), "rlwe")
    assert not says(at, "engine.measured")
    at = scored(at)
    assert says(at, "engine.measured", n=1)
    at = with_cipher(at, "paillier")
    assert sum(says(caption.value, "engine.measured") for caption in at.caption) == 1


@pytest.mark.slow
def test_both_ciphers_give_the_same_score(opened: Opened) -> None:
    at = scored(opened("score"))
    paillier = job_of("score").result
    at = scored(with_cipher(at, "rlwe"))
    rlwe = job_of("score").result
    assert not at.exception
    assert rlwe.cipher == "rlwe"
    assert [s.units for s in rlwe.scores] == [s.units for s in paillier.scores]


# -- what each party has ready ----------------------------------------


def pooled(answers: Answers, world: World, ready: int, target: int) -> None:
    answers["federations.pools"] = lambda name: [PoolLevel(p.name, ready, target) for p in world.federation.parties]


def test_every_party_shows_how_much_it_has_ready(opened: Opened, world: World, answers: Answers) -> None:
    pooled(answers, world, 1024, 4096)
    at = opened("score")
    bars = [(bar.value, bar.text) for bar in at.progress]
    assert [value for value, _ in bars] == [25] * len(world.federation.parties)
    assert all(says(text, "score.pool", ready="1,024", target="4,096") for _, text in bars)
    assert all(world.federation.parties[i].title.en in text.replace("\\", "") for i, (_, text) in enumerate(bars))


@pytest.mark.parametrize(("ready", "target", "key"), [(3, 16, "warming"), (8, 16, "warm"), (300, 4096, "warm")])
def test_a_pool_that_holds_less_than_the_next_score_takes_is_reported_in_words_too(
    opened: Opened, world: World, answers: Answers, ready: int, target: int, key: str
) -> None:
    pooled(answers, world, ready, target)
    at = opened("score")
    assert says(at, f"score.{key}")
    assert says(at, "engine.preparing") == (key == "warming")


def test_a_pool_that_overshoots_is_full(opened: Opened, world: World, answers: Answers) -> None:
    pooled(answers, world, 17, 16)
    bars = opened("score").progress
    assert all(says(bar.text, "score.pool", ready=16, target=16) for bar in bars)


def test_with_the_lattice_cipher_only_hosts_have_something_ready(
    opened: Opened, world: World, answers: Answers
) -> None:
    pooled(answers, world, 8, 8)
    at = with_cipher(opened("score"), "rlwe")
    assert len(at.progress) == len(world.federation.hosts)
    assert not any(world.federation.guest.title.en in bar.text for bar in at.progress)


# -- the textbook ----------------------------------------


@pytest.mark.parametrize(("seconds", "key"), [(1e6, "score.textbook_faster"), (1e-6, "score.textbook_slower")])
def test_a_score_stands_beside_the_textbook_whichever_is_faster(
    opened: Opened, answers: Answers, seconds: float, key: str
) -> None:
    asked = []
    answers["protocol_comparison.textbook_seconds"] = lambda model, bits: asked.append(bits) or seconds
    at = scored(with_cipher(opened("score"), "rlwe"))
    assert not at.exception
    assert set(asked) == {3072}
    assert says(at, key, n=1)
    assert says(at, "score.textbook_note", bits="3,072")
    shown = next(one.value for one in at.dataframe if WAY in one.value)
    assert list(shown[WAY]) == [T("score.textbook_here"), T("score.textbook_there")]
    assert list(shown[T("engine.cipher")]) == [frame.cipher(T, "rlwe", 8192), frame.cipher(T, "paillier", 3072)]


@pytest.mark.slow
def test_the_textbook_is_asked_only_after_a_score_and_with_its_own_key(opened: Opened, answers: Answers) -> None:
    asked = []
    answers["protocol_comparison.textbook_seconds"] = lambda model, bits: asked.append(bits) or 1.0
    at = opened("score")
    assert not asked
    at.get_by_key("score_key_bits").set_value(2048)
    scored(at.run())
    assert set(asked) == {2048 // SHORTER}


# -- many people ----------------------------------------


def test_many_people_are_shown_in_a_table_to_sort_with_their_speed_and_downloaded_whole(
    bulk: AppTest, answers: Answers
) -> None:
    assert not bulk.exception
    batch = job_of("people").result
    ids = [f"new{i}" for i in range(PEOPLE)]
    assert list(table(bulk)[T("score.id")]) == ids
    # numbers, which a click on their head sorts as such
    chances = [100 * score.probability for score in batch.scores]
    assert list(table(bulk)[T("score.probability")]) == pytest.approx(chances)
    rate = next(m for m in bulk.metric if m.label == T("score.a_second"))
    assert float(rate.value.replace(",", "")) == pytest.approx(PEOPLE / batch.seconds, rel=0.01)
    assert says(bulk, "score.traffic")
    assert says(bulk, "engine.measured", n=PEOPLE, people=PEOPLE)
    line = next(caption.value for caption in bulk.caption if "**" + T("engine.name_rlwe") in caption.value)
    assert says(line, "engine.pace") and not says(line, "engine.suits_rlwe")  # it was chosen, not suggested

    answers["protocol_comparison.textbook_seconds"] = lambda model, bits: 60.0
    bulk.get_by_key("score_cipher").set_value("suited")
    bulk.run()
    assert any(says(caption.value, "engine.suits_rlwe", n=PEOPLE) for caption in bulk.caption)
    assert (
        list(next(one.value for one in bulk.dataframe if WAY in one.value)[T("score.time")])[1] == "3.83\u00a0h"
    )  # 230 minutes

    lines = list(csv.DictReader(io.StringIO(Scoring.csv(batch).decode())))
    assert [line["id"] for line in lines] == ids


def test_the_histogram_counts_the_people_of_the_file_and_what_was_unusual_is_counted_above_it(
    bulk: AppTest, world: World
) -> None:
    batch = job_of("people").result
    shown = next(one.value for one in bulk.dataframe if T("score.people") in one.value and WAY not in one.value)
    counts, _ = np.histogram([score.probability for score in batch.scores], np.linspace(0, 1, 21))
    assert list(shown[T("score.people")]) == list(counts) and sum(counts) == PEOPLE
    for host in world.federation.hosts:  # none of them knows new people
        assert says(bulk, "people.absent", n=PEOPLE, people=PEOPLE, host=palette.name(T, world.federation, host.name))
    (warning,) = [one.value for one in bulk.warning if says(one.value, "people.absent")]
    assert says(warning, "people.absent")


def test_a_marked_person_is_never_said_to_be_nothing_unusual(bulk: AppTest) -> None:
    job = job_of("people")
    batch = job.result
    odd = replace(batch.scores[0], not_held_by=(), remarks=(), problems=(), marks=("unseen_category",))
    try:
        job.result = replace(batch, scores=(odd,), notes=())
        bulk.run()
        assert not says(bulk, "people.nothing_unusual", n=1)
        assert T("people.unusual", n=1, marked="1", people="1") in [one.value for one in bulk.warning]
    finally:
        job.result = batch
        bulk.run()


def test_a_code_that_is_counted_by_rows_is_not_told_of_a_second_time(bulk: AppTest) -> None:
    job = job_of("people")
    batch = job.result
    listed = Remark("codes_not_listed", {"name": "home", "codes": ("'boat'",), "known": ("own",)})
    counted = Remark("marked_rows", {"n": 1, "example": Remark("code_unseen", {"cell": "'boat'"}, column="home")})
    other = replace(listed, values={**listed.values, "name": "job"})
    try:
        job.result = replace(batch, notes=(listed, counted, other))
        bulk.run()
        (warning,) = [one.value for one in bulk.warning if "boat" in one.value]
        assert warning.count("boat") == 2 and "In 1 row" in warning and "job" in warning
    finally:
        job.result = batch
        bulk.run()


def comes_first(at: AppTest) -> bool:
    """Whether a phone shows the answer above the person."""
    return any("order: 1" in element.proto.body for element in at.get("html"))


def test_on_a_phone_the_answer_stands_above_the_person_whom_it_is_about_and_below_others(
    opened: Opened, answers: Answers
) -> None:
    answers["reasons.scored_before"] = lambda *given: None
    at = opened("score")
    assert not comes_first(at)
    at = scored(at)
    assert comes_first(at)
    first, second = at.selectbox(key="sample").options[:2]
    at.selectbox(key="sample").select(second)
    assert not comes_first(at.run()) and says(at, "score.of_another", id=first)
    at.selectbox(key="sample").select(first)
    assert comes_first(at.run())
    at.selectbox(key="sample").select(second)
    elsewhere = replace(job_of("score").result, model_id="m0")  # made with another model
    put_job("score", Job(lambda job: elsewhere, 1).start().wait(60))
    assert not comes_first(at.run()) and says(at, "score.other_model")


def waiting(go: threading.Event, total: int) -> Job[None]:
    """A job that goes on until it may end, also where it was asked to stop."""

    def work(job: Job[None]) -> None:
        job.at("mask")
        go.wait(60)

    return Job(work, total).start()


def test_progress_never_goes_back(opened: Opened, go: threading.Event) -> None:
    at = opened("score")
    job = waiting(go, 500)
    put_job("score", job)
    for done, seen in ((0, 0), (200, 200), (300, 300), (0, 300), (400, 400)):
        job.at("mask", done=done)
        at.run()
        text = next(bar.text for bar in at.progress if says(bar.text, "stage.elapsed"))
        assert says(text, "stage.count", done=seen, total=500)
    job.at("decrypt", done=500)  # nothing is left to be counted
    for left, key, seconds in (
        (7.0, "stage.soon", 10),
        (7.1, "stage.left", 8),
        (13.0, "stage.left", 12),
        (118.0, "stage.left", 120),
    ):
        job.eta.left = lambda left=left: left
        text = next(bar.text for bar in at.run().progress if says(bar.text, "stage.elapsed"))
        assert not says(text, "stage.count") and says(text, key, seconds=T.about(seconds))


def test_a_job_that_was_asked_to_stop_says_so(opened: Opened, go: threading.Event) -> None:
    at = opened("score")
    put_job("score", waiting(go, 500))
    at.run()
    at.button(key="cancel_score").click().run()
    assert at.button(key="cancel_score").label == T("stage.cancelling")
    assert at.button(key="cancel_score").disabled
    assert at.button(key="score_go").disabled


# -- what is said of the cipher ----------------------------------------


def test_what_stayed_hidden_names_the_cipher(opened: Opened) -> None:
    at = scored(with_cipher(opened("score"), "rlwe"))
    assert says(at, "score.hidden_rlwe", cipher=frame.cipher(T, "rlwe", 8192))
    assert not says(at, "score.hidden_paillier")
    at.get_by_key("language").set_value("zh")
    at.run()
    assert says(at, "score.hidden_rlwe", "zh", cipher=frame.cipher(Texts("zh"), "rlwe", 8192))


def test_a_cipher_has_one_name_with_the_size_of_its_key() -> None:
    t = Texts("en")
    assert frame.cipher(t, "paillier", 3072) == t("engine.label_paillier", bits=3072)
    assert frame.cipher(t, "rlwe", 8192) == t("engine.label_rlwe", bits=8192)
    assert frame.cipher(t, "none", 0) == t("engine.label_none")


def test_speed_counts_bytes_each_way_a_person(glassleaf: Glassleaf, world: World) -> None:
    model = world.record.id
    sheet = glassleaf.samples.of_person(model, glassleaf.samples.table(model).index[0])
    batch = glassleaf.scoring.start(ScoringRequest(model, sheet, cipher="none"), counted=False).get()
    one, entry = batch.scores[0], batch.transcript[0]
    sent = [("bank", "telecom", 600), ("telecom", "shop", 90), ("shop", "bank", 30), ("telecom", "bank", 6)]
    synthetic = replace(
        batch,
        seconds=0.5,
        scores=(one, one, replace(one, status="partial"), replace(one, status="failed")),
        transcript=tuple(replace(entry, sender=a, receiver=b, bytes=n) for a, b, n in sent),
    )
    assert view_models.speed(synthetic, "bank") == Speed(people=3, seconds=0.5, out=200, between=30, back=12)
    assert view_models.speed(synthetic, "bank").a_second == 6
