"""The pages Score and Score a file: who is chosen, one job at a time, and a result that can be taken home."""

import io
from collections.abc import Callable

import pandas as pd
import pytest
from inside import runtime_of
from streamlit.testing.v1 import AppTest

from app import session
from app.panels import attention
from app.texts import Texts
from backend.services import Glassleaf
from tests.app.conftest import Opened, World, job_of
from tests.app.reading_out import everything, says

T = Texts("en")


def finished(at: AppTest, kind: str = "score") -> AppTest:
    job_of(kind).wait(120)
    return at.run()


def scored(at: AppTest, kind: str = "score") -> AppTest:
    return finished(at.button(key=f"{kind}_go").click().run(), kind)


def test_a_picked_person_is_scored_with_encryption(opened: Opened, world: World) -> None:
    at = scored(opened("score"))
    assert not at.exception
    batch = job_of("score").result
    assert batch.cipher == "paillier"
    assert len(batch.scores) == 1
    assert {metric.label for metric in at.metric} == {T(f"score.{k}") for k in ("probability", "decision")}
    for host in world.federation.hosts:
        assert any(host.title.en in text.value for text in at.markdown)


def test_pressing_twice_starts_one_job(opened: Opened) -> None:
    at = opened("score")
    at.button(key="score_go").click().run()
    first = job_of("score")
    if first.state == "running":
        assert at.button(key="score_go").disabled
    finished(at)
    assert job_of("score") is first


def test_someone_else_is_drawn_from_the_menu(opened: Opened) -> None:
    at = opened("score")
    at.button(key="random_person").click().run()
    assert not at.exception
    assert at.selectbox(key="sample").value in at.selectbox(key="sample").options


def test_a_person_narrowed_to_by_a_range_is_inside_it(opened: Opened, world: World) -> None:
    at = opened("score")
    at.selectbox(key="score_filter").select("age").run()
    at.slider(key="score_filter_age").set_range(30.0, 35.0).run()
    assert not at.exception
    frame = session.samples(world.record.id)
    assert frame.loc[at.selectbox(key="sample").value, "age"] in range(30, 36)


def test_a_typed_in_stranger_is_scored_without_the_hosts(opened: Opened, world: World) -> None:
    at = opened("score")
    at.get_by_key("score_way").set_value("type")
    at.run()
    at = scored(at)
    assert not at.exception
    score = job_of("score").result.scores[0]
    assert set(score.not_held_by) == {host.name for host in world.federation.hosts}
    hosts = len(score.not_held_by)
    assert hosts > 1 and says(at, "score.not_held", n=hosts) and not says(at, "score.not_held", n=1)


def test_a_what_if_is_another_counted_question_that_decides_nothing(opened: Opened, world: World) -> None:
    at = scored(opened("score"))
    person = at.selectbox(key="sample").value
    at.toggle(key="score_assume").set_value(True).run()
    assert says(at, "cost.same")  # nothing differs yet
    at.number_input(key=f"assumed_{person}_age").set_value(61.0).run()
    assert says(at, "cost.both") and says(at, "cost.again") and not says(at, "cost.same")
    at = scored(at)
    assert not at.exception and says(at, "score.assumed", id=person)
    with pytest.raises(KeyError):
        at.get_by_key("download_scores")
    service = session.service()
    real = service.samples.of_person(world.record.id, person)
    assert service.reasons.scored_before(world.record.id, real) is not None  # the decision is still remembered
    last = [entry.body for entry in service.audit.entries("demo") if entry.action == "score"][-1]
    assert last["assumed"] and last["counted"] and last["decisions"] == {}


def uploaded(opened: Opened, content: bytes, name: str = "people.csv") -> AppTest:
    at = opened("people")
    at.file_uploader(key="people_upload").upload(name, content)
    return at.run()


def template(world: World) -> pd.DataFrame:
    glassleaf = Glassleaf(world.home, pools=False)
    try:
        return pd.read_csv(io.BytesIO(glassleaf.samples.template(world.record.id)), dtype=str)
    finally:
        glassleaf.close()


def test_an_uploaded_template_is_scored_as_a_batch(opened: Opened, world: World) -> None:
    at = scored(uploaded(opened, template(world).to_csv(index=False).encode()), "people")
    assert not at.exception
    assert len(job_of("people").result.scores) == 2
    assert says(at, "score.batch_sentence", n=2, people=2)


def many(world: World, ids: Callable[[int], str], **values: str) -> bytes:
    """A sheet of twelve people with the Guest's values, or others, and these ids."""
    sheet = template(world)
    sheet = pd.concat([sheet.iloc[:1]] * 12, ignore_index=True)
    return sheet.assign(**values, id=[ids(number) for number in range(12)]).to_csv(index=False).encode()


def test_people_whom_hardly_any_host_holds_and_codes_in_another_form_are_said_with_their_scores(
    opened: Opened, world: World
) -> None:
    at = uploaded(opened, many(world, lambda number: f"no {number}/7", home_ownership="RENT"))
    (question,) = [one for one in at.radio if one.key.endswith("_ids")]
    at = scored(question.set_value("as-written").run(), "people")
    assert T("upload.account") in [button.proto.label for button in at.get("download_button")]
    batch = job_of("people").result
    assert {score.status for score in batch.scores} == {"partial"}
    (note,) = [note for note in batch.notes if note.code == "few_held"]
    assert note.values == {"n": 0, "rows": 12}
    shown = everything(at).replace("\\", "")
    assert note.sentence("en") in shown
    assert "In 12 rows, for example: home_ownership: 'RENT' differs from the code 'rent'" in shown


def test_ids_in_another_form_stop_the_page_and_name_the_cause(opened: Opened, world: World) -> None:
    known = template(world).id[0]
    others = [one.lower() for one in known_ids(world)[:12]]
    assert known.lower() != known
    at = uploaded(opened, many(world, lambda number: others[number]))
    assert "knows 0 of these 12 ids" in everything(at) and "upper and lower case" in everything(at)
    assert at.button(key="people_go").disabled


def known_ids(world: World) -> list[str]:
    glassleaf = Glassleaf(world.home, pools=False)
    try:
        return glassleaf.models.test_ids(glassleaf.models.get(world.record.id))
    finally:
        glassleaf.close()


def test_a_bad_row_is_named_and_does_not_stop_the_others(opened: Opened, world: World) -> None:
    sheet = template(world)
    sheet.loc[0, "age"] = "old"
    at = uploaded(opened, sheet.to_csv(index=False).encode())
    assert not at.exception
    assert "old" in everything(at) or "age" in everything(at)
    at = scored(at, "people")
    assert [score.status for score in job_of("people").result.scores] == ["failed", "ok"]
    assert says(at, "people.failed", n=1, people=1)
    assert [warning.value for warning in at.warning if says(warning.value, "people.failed", n=1, people=1)]
    # the table has a row each, with its remark, and is one that a click on a head sorts
    (table,) = [frame.value for frame in at.dataframe if T("score.note") in frame.value]
    assert list(table[T("score.id")]) == list(sheet["id"]) and "old" in table[T("score.note")][0]


@pytest.mark.parametrize(
    "content",
    [b"", b"\x89PNG\r\n\x1a\n\x00\x00", b"name,age\nx,1\n", b"PK\x03\x04"],
    ids=["empty", "a picture", "no id column", "no workbook"],
)
def test_a_wrong_upload_is_explained_and_cannot_be_scored(opened: Opened, content: bytes) -> None:
    at = uploaded(opened, content)
    assert not at.exception
    assert at.warning
    assert at.button(key="people_go").disabled


def test_an_encoding_is_asked_with_what_it_would_say_and_scored_once_it_is_chosen(opened: Opened, world: World) -> None:
    known = template(world)["id"][0]
    at = uploaded(opened, f"id\n{known}\nMüller\n".encode("utf-16"))
    (question,) = [radio for radio in at.radio if radio.key and radio.key.endswith("_encoding")]
    assert not at.exception and question.value is None and at.button(key="people_go").disabled
    question.set_value("utf-16").run()
    assert not at.button(key="people_go").disabled
    assert says(at, "upload.rows", n=2, rows=2, usable=1, bad=1) and "Müller" in everything(at)
    at.file_uploader(key="people_upload").upload("another.csv", f"id\n{known}\nMeyer\n".encode("utf-16"))
    at.run()
    (question,) = [radio for radio in at.radio if radio.key and radio.key.endswith("_encoding")]
    assert question.value is None and at.button(key="people_go").disabled


def test_where_no_row_can_be_used_no_button_is_offered_and_each_reason_is_whole(opened: Opened) -> None:
    at = uploaded(opened, b"id\nZZ1\nZZ2\n")
    assert not at.exception and not [button for button in at.button if button.key == "people_go"]
    assert says(at, "upload.none_usable")
    listed = everything(at).replace("\\", "")
    assert all(f"Row {row}: " in listed and f"'ZZ{row - 1}'" in listed for row in (2, 3))


def test_the_policy_decides_and_the_slider_is_a_what_if_that_says_so(opened: Opened) -> None:
    at = opened("score")
    at.slider(key="score_cutoff").set_value(1).run()
    at = scored(at)
    score = job_of("score").result.scores[0]
    policy = session.service().policies.in_force("latest")
    assert (score.decision, score.policy) == (policy.judge(score.probability).decision, policy.version)
    for percent, word in ((1, "decline"), (99, "accept")):
        at.slider(key="score_cutoff").set_value(percent).run()
        assert not at.exception
        shown = next(m for m in at.metric if m.label == T("score.decision")).value
        assert shown.endswith(T(f"score.{score.decision}"))
        assert says(at, "policy.what_if_says", decision=T(f"score.{word}"))


def test_a_slider_is_forgotten_and_a_second_user_sees_the_policy(opened: Opened) -> None:
    at = opened("score")
    line = at.slider(key="score_cutoff").value
    at.slider(key="score_cutoff").set_value(7).run()
    assert opened("score").slider(key="score_cutoff").value == line


def test_a_host_that_goes_down_is_named(opened: Opened, world: World) -> None:
    at = opened("score")
    glassleaf, host = session.service(), world.federation.hosts[0]
    runtime_of(glassleaf).operator.stop(host.name)
    try:
        at = scored(at)
        assert not at.exception
        assert any(T.party(world.federation, host.name) in warning.value.replace("\\", "") for warning in at.warning)
        assert not at.button(key="score_go").disabled
    finally:
        glassleaf.close()
        session._service.clear()  # whoever comes next opens the home again


def focused(at: AppTest) -> bool:
    """Whether the page moves the focus to an answer, or did."""
    return any(attention.ATTENTION_MARK in html.proto.body for html in at.get("html"))


def test_whoever_opens_the_page_and_finds_an_answer_of_before_keeps_the_focus(opened: Opened) -> None:
    assert focused(scored(opened("score")))
    at = opened("score")
    assert at.metric and not focused(at)


def test_what_follows_an_announcement_keeps_its_place_when_the_page_is_drawn_again() -> None:
    page = "import streamlit as st; from app.panels import attention\n"
    page += "attention.to('answer', 'Answer', 'done', 'It is there.'); st.header('Why?')"
    at = AppTest.from_string(page, default_timeout=60).run()
    first = [one.type for one in at.main.children.values()]
    assert [one.type for one in at.run().main.children.values()] == first and first[-1] == "header"
