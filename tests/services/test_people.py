"""What is kept about a person: shown to whom it may be, forgotten where it may be, and never a new budget."""

import json
import sqlite3
from datetime import UTC, datetime
from functools import partial

import pytest
from inside import runtime_of, workspace_of

from backend.data.demo import write_demo
from backend.data.table import SampleSheet, read_table
from backend.errors import ParameterError, SecurityError, StoreError
from backend.protocols.simulation import simulator
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest
from backend.store.accountant import EVERYBODY
from backend.store.request_log import RequestLog
from backend.store.schema import AnswerRow

WHY = "asked to be erased"


@pytest.fixture(scope="module")
def glassleaf(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    write_demo(home / "demo", rows=300)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulator, "RequestLog", partial(RequestLog, rate=1.0))
        patch.setenv("GLASSLEAF_BUDGET", "1")
        glassleaf = Glassleaf(home, pools=False, actor="ana", key_floor=512)
        glassleaf.federations.add(home / "demo")
        glassleaf.training.start(
            TrainingRequest("demo", SecureBoostParameters(trees=4, depth=3, cipher="none", row_sample=0.9))
        ).get()
        yield glassleaf
        glassleaf.close()


@pytest.fixture(scope="module")
def people(glassleaf):
    """Test records that every Host holds, each used by one test."""
    record, federation = glassleaf.models.get("latest"), glassleaf.federations.get("demo")
    held = [read_table(federation, party.name).row_of for party in federation.parties]
    return iter([i for i in glassleaf.models.test_ids(record) if all(i in rows for rows in held)])


def score(glassleaf, *ids):
    table = runtime_of(glassleaf).table
    own = table.take([table.row_of[i] for i in ids])
    sheet = SampleSheet(own.ids, own, {}, {}, ())
    batch = glassleaf.scoring.start(ScoringRequest("latest", sheet, key_bits=512)).get()
    return [one.status for one in batch.scores]


def about(found, table):
    """Party → rows of one table."""
    return {one.party: one.about for one in found if one.table == table}


def hosts(glassleaf):
    return glassleaf.models.get("latest").hosts


def last(glassleaf):
    return glassleaf.audit.entries("demo")[-1]


def files(glassleaf):
    """Every byte of every party's folder."""
    return b"".join(file.read_bytes() for file in (glassleaf.home / "parties").rglob("*") if file.is_file())


def test_the_operator_sees_what_every_party_keeps_about_a_person(glassleaf, people):
    person = next(people)
    assert score(glassleaf, person) == ["ok"]
    found, record = glassleaf.people.show("demo", person), glassleaf.models.get("latest")
    assert about(found, "artefacts")[record.guest] == ({"model": record.id, "part": "test"},)
    for host in hosts(glassleaf):
        [answered] = [one for one in about(found, "answers")[host] if one["kind"] == "score"]
        assert (answered["guest"], answered["times"], answered["under"]) == (record.guest, 1, "id")
        assert len(about(found, "questions")[host]) == 1
        assert set(about(found, "records file")[host][0]) == {"file"}
    sampled = [{k: row[k] for k in ("kind", "model")} for rows in about(found, "requests").values() for row in rows]
    assert sampled == [{"kind": "score", "model": record.id} for _ in record.hosts]  # at each Host of the chain
    assert (last(glassleaf).action, last(glassleaf).body["what"]) == ("person", "show")


def test_an_answer_about_all_records_is_shown_as_one_about_everybody_and_stays(glassleaf, people):
    person, host = next(people), hosts(glassleaf)[0]
    runtime = runtime_of(glassleaf)
    with runtime.operator.database(host).write() as session:
        session.add(
            AnswerRow(
                subject=EVERYBODY,
                kind="table",
                structure="ages",
                guest="bank",
                day=datetime.now(UTC).date().toordinal(),
                asked=1,
                bits=1.0,
                capacity=1.0,
            )
        )
    glassleaf.people.forget("demo", person, WHY)
    [answered] = about(glassleaf.people.show("demo", person), "answers")[host]
    assert (answered["under"], answered["kind"], answered["times"]) == ("everybody", "table", 1)


def test_somebody_whom_no_party_knows_is_shown_as_such(glassleaf):
    found = glassleaf.people.show("demo", "nobody at all")
    kept = {one.table for one in found if one.about}
    assert kept <= {"answers", "runs"} and all(row["under"] == "everybody" for one in found for row in one.about)


def test_no_value_of_a_record_is_ever_shown(glassleaf, people):
    person, federation = next(people), glassleaf.federations.get("demo")
    score(glassleaf, person)
    shown = json.dumps([(one.about, one.note) for one in glassleaf.people.show("demo", person)])
    names = [feature.name for _, feature in federation.features()]
    assert [name for name in names if f'"{name}"' in shown] == []
    for party in federation.parties:
        table = read_table(federation, party.name)
        texts = [str(column[table.row_of[person]]) for column in table.columns.values()]
        assert [text for text in texts if len(text) > 4 and text in shown] == []


@pytest.mark.parametrize("role", ["analyst", "regulator"])
def test_who_is_not_the_operator_sees_the_guest_alone(glassleaf, people, role):
    person, other = next(people), glassleaf.acting("rita", role)
    score(glassleaf, person)
    guest, before = glassleaf.models.get("latest").guest, len(glassleaf.audit.entries("demo"))
    assert {one.party for one in other.people.show("demo", person)} == {guest}
    assert {one.party for one in other.people.show("demo", person, guest)} == {guest}
    for host in hosts(glassleaf):
        with pytest.raises(SecurityError):
            other.people.show("demo", person, host)
    for refused in (
        lambda: other.people.preview("demo", person),
        lambda: other.people.forget("demo", person, WHY),
        lambda: other.people.expire("demo"),
    ):
        with pytest.raises(SecurityError):
            refused()
    assert len(glassleaf.audit.entries("demo")) == before + 2  # refused work has changed nothing
    assert about(glassleaf.people.preview("demo", person), "artefacts")[guest]


def test_one_party_can_be_asked_for_and_an_unknown_one_not(glassleaf, people):
    host = hosts(glassleaf)[0]
    assert {one.party for one in glassleaf.people.show("demo", next(people), host)} == {host}
    with pytest.raises(ParameterError):
        glassleaf.people.show("demo", "somebody", "nowhere")


@pytest.mark.parametrize("text", ["", " ", " *", "a ", "\udcff"])
def test_what_can_be_no_id_is_refused(glassleaf, text):
    for ask in (glassleaf.people.show, glassleaf.people.preview):
        with pytest.raises(ParameterError):
            ask("demo", text)
    with pytest.raises(ParameterError):
        glassleaf.people.forget("demo", text, WHY)


def test_a_preview_says_what_forgetting_does_and_changes_nothing(glassleaf, people):
    person = next(people)
    score(glassleaf, person)
    entries = len(glassleaf.audit.entries("demo"))
    preview = glassleaf.people.preview("demo", person)
    assert glassleaf.people.preview("demo", person) == preview and len(glassleaf.audit.entries("demo")) == entries
    assert glassleaf.people.forget("demo", person, WHY) == preview
    after = glassleaf.people.preview("demo", person)
    assert [one for one in after if one.about and one.erasure == "deleted"] == []
    for host in hosts(glassleaf):
        ways = {row["under"] for row in about(after, "answers")[host] if row["kind"] == "score"}
        assert ways == {"pseudonym"}


def test_forgetting_somebody_is_no_new_budget_for_asking_about_them(glassleaf, people):
    person = next(people)
    assert score(glassleaf, person) == ["ok"]
    glassleaf.people.forget("demo", person, WHY)
    assert score(glassleaf, person) == ["failed"]
    glassleaf.people.forget("demo", person, WHY)
    assert score(glassleaf, person) == ["failed"]


def test_the_id_stands_in_no_file_of_any_party_afterwards(glassleaf, people):
    person, other = next(people), next(people)
    score(glassleaf, person, other)
    quoted, beside = f'"{person}"'.encode(), f'"{other}"'.encode()
    assert quoted in files(glassleaf) and beside in files(glassleaf)  # in the parts
    glassleaf.people.forget("demo", person, WHY)
    assert quoted not in files(glassleaf) and beside in files(glassleaf)
    for host in hosts(glassleaf):
        rows = sqlite3.connect(glassleaf.home / "parties" / "demo" / host / "store.db")
        subjects = {s for (s,) in rows.execute("SELECT subject FROM answers UNION SELECT subject FROM requests")}
        assert person not in subjects and other in subjects
        rows.close()


def test_the_model_works_on_without_a_forgotten_person(glassleaf, people):
    person, other = next(people), next(people)
    record = glassleaf.models.get("latest")
    before = glassleaf.models.test_ids(record)
    glassleaf.people.forget("demo", person, WHY)
    assert glassleaf.models.test_ids(record) == [i for i in before if i != person]
    assert glassleaf.models.get("latest").parts == record.parts  # counts of the training stay what they were
    assert glassleaf.scoring.evaluate("latest", 5, key_bits=512).encrypted.n == 5
    assert score(glassleaf, other) == ["ok"]
    with Glassleaf(glassleaf.home, pools=False, key_floor=512) as again:
        assert person not in again.models.part_of(again.models.get("latest"))


def test_another_process_that_has_read_the_parts_sees_who_was_forgotten(glassleaf, people):
    person = next(people)
    with Glassleaf(glassleaf.home, pools=False, key_floor=512) as other:
        record = other.models.get("latest")
        assert person in other.models.part_of(record)
        glassleaf.people.forget("demo", person, WHY)
        assert person not in other.models.part_of(record)


def test_the_entry_says_what_was_done_without_the_id(glassleaf, people):
    person, other = next(people), next(people)
    score(glassleaf, person)
    glassleaf.people.forget("demo", person, WHY)
    entry, record = last(glassleaf), glassleaf.models.get("latest")
    assert (entry.action, entry.body["what"], entry.body["because"]) == ("person", "forget", WHY)
    for host in record.hosts:
        assert entry.body["changed"][host]["answers"] >= 1 and entry.body["changed"][host]["questions"] == 1
    assert entry.body["changed"][record.guest] == {"artefacts": 1, "decisions": 1}
    assert person not in glassleaf.audit.export("demo")
    glassleaf.people.show("demo", person)
    again = last(glassleaf).body["person"]
    glassleaf.people.show("demo", other)
    # who holds the Guest's secret can look it up
    assert again == entry.body["person"] != last(glassleaf).body["person"]


@pytest.mark.parametrize("why", ["", "short", "   asked    ", "x" * 5000])
def test_nobody_is_forgotten_without_a_reason(glassleaf, people, why):
    person = next(people)
    with pytest.raises(ParameterError):
        glassleaf.people.forget("demo", person, why)
    assert about(glassleaf.people.preview("demo", person), "artefacts")[glassleaf.models.get("latest").guest]


def test_a_reason_that_names_the_id_never_reaches_the_log(glassleaf, people):
    person = next(people)
    for why in (f"letter of {person} of 3 May", f"letter of ({person.lower()})"):
        with pytest.raises(ParameterError):
            glassleaf.people.forget("demo", person, why)
    assert person not in glassleaf.audit.export("demo")


def test_a_guest_that_fails_to_forget_says_so_and_can_do_it_again(glassleaf, people, monkeypatch):
    person, record = next(people), glassleaf.models.get("latest")
    score(glassleaf, person)

    def full(*_):
        raise OSError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(glassleaf.people._models, "forget", full)
        with pytest.raises(OSError, match="no space"):
            glassleaf.people.forget("demo", person, WHY)
    assert last(glassleaf).body["outcome"] == "OSError"
    assert person in glassleaf.models.part_of(record)
    glassleaf.people.forget("demo", person, WHY)
    assert person not in glassleaf.models.part_of(record) and score(glassleaf, person) == ["failed"]


def test_a_sudden_end_leaves_an_entry_of_what_was_begun(glassleaf, people, monkeypatch):
    person, record = next(people), glassleaf.models.get("latest")
    score(glassleaf, person)

    def killed(*_):
        raise SystemExit

    with monkeypatch.context() as broken:
        broken.setattr(glassleaf.people._models, "forget", killed)  # the Hosts have forgotten, the Guest has not
        with pytest.raises(SystemExit):
            glassleaf.people.forget("demo", person, WHY)
    entry = last(glassleaf)
    assert (entry.body["what"], entry.body["outcome"]) == ("forget", "begun") and entry.body["person"]
    glassleaf.people.forget("demo", person, WHY)
    assert last(glassleaf).body["outcome"] == "done" and person not in glassleaf.models.part_of(record)


def test_what_is_too_old_goes_when_a_federation_is_used_and_the_log_says_so(glassleaf, people):
    score(glassleaf, next(people))
    host = hosts(glassleaf)[0]
    file = glassleaf.home / "parties" / "demo" / host / "store.db"

    def age():
        rows = sqlite3.connect(file)
        old = rows.execute("UPDATE questions SET day = day - 40").rowcount
        rows.commit()
        rows.close()
        return old

    old = age()
    entries = len(glassleaf.audit.entries("demo"))
    runtime_of(glassleaf)  # was used today: nothing goes until tomorrow
    assert len(glassleaf.audit.entries("demo")) == entries
    assert glassleaf.people.expire("demo") == {host: {"questions": old}}
    assert last(glassleaf).action == "retention" and last(glassleaf).body["deleted"] == {host: {"questions": old}}
    score(glassleaf, next(people))
    old = age()
    with Glassleaf(glassleaf.home, pools=False, key_floor=512) as fresh:
        runtime_of(fresh)
        assert last(fresh).action == "retention" and last(fresh).body["deleted"] == {host: {"questions": old}}
        assert fresh.people.expire("demo") == {}
        assert workspace_of(fresh).expire("demo") == {} and last(fresh).body["deleted"] == {host: {"questions": old}}


def test_what_cannot_be_deleted_stops_nobody_but_who_asked_for_it(glassleaf, people):
    score(glassleaf, next(people))
    rows = sqlite3.connect(glassleaf.home / "parties" / "demo" / hosts(glassleaf)[0] / "store.db")
    rows.execute("UPDATE questions SET day = day - 40")
    rows.execute("CREATE TRIGGER full BEFORE DELETE ON questions BEGIN SELECT RAISE(ABORT, 'full'); END")
    rows.commit()
    try:
        with Glassleaf(glassleaf.home, pools=False, key_floor=512) as fresh:
            assert runtime_of(fresh).hosts
            with pytest.raises(StoreError):
                fresh.people.expire("demo")
    finally:
        rows.execute("DROP TRIGGER full")
        rows.close()
