"""A table that is scored group by group is the same as in one batch, whatever it is read from and whenever it was stopped."""

import csv
import io
import json
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from answering import Answering
from homes import copied_home
from inside import workspace_of
from sqlalchemy import create_engine

from backend.data import row_groups
from backend.data.row_groups import LongFile, survey
from backend.data.table_file import Reading
from backend.errors import AmbiguousFile, Cancelled, GlassleafError, ParameterError, SampleError, StoreError
from backend.services import Glassleaf, streaming
from backend.services.scoring import ScoringRequest
from backend.services.streaming import StreamRequest, in_groups

GROUP = 48
PEOPLE = 200


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    monkeypatch.setattr(row_groups, "GROUP", GROUP)
    monkeypatch.setattr("backend.data.parquet_file.BATCH", 16)


@pytest.fixture(scope="module")
def unasked(home, tmp_path_factory):
    """A copy of the home in which nobody was asked about; only to be copied."""
    return copied_home(home, tmp_path_factory.mktemp("unasked") / "home")


@pytest.fixture(scope="module")
def glassleaf(home, unasked):
    with Glassleaf(home, pools=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def people(glassleaf):
    """Some hundred people of the demo with their own columns, one listed twice, one without an id, one with an unreadable cell."""
    own = glassleaf.samples.table("latest").drop(columns="part").head(PEOPLE).reset_index()
    frame = own.astype(object).where(own.notna(), "")
    numeric = next(name for name in own.columns[1:] if own[name].dtype == float and own[name].nunique() > 2)
    frame.loc[7, "id"], frame.loc[150, "id"] = "", frame.loc[3, "id"]
    frame.loc[60, numeric] = "many"
    return frame


@pytest.fixture
def sheet(people, tmp_path):
    people.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


def in_one_batch(glassleaf, sheet, cipher="none"):
    read = glassleaf.samples.read("latest", sheet)
    batch = glassleaf.scoring.start(ScoringRequest("latest", read, cipher=cipher), counted=False).get()
    return glassleaf.scoring.csv(batch)


def stream(glassleaf, source, out, **more):
    return glassleaf.streaming.start(StreamRequest("latest", source, out, **{"cipher": "none", **more})).get()


def test_in_groups_every_row_is_what_it_is_in_one_batch(glassleaf, sheet, tmp_path):
    done = stream(glassleaf, sheet, tmp_path / "scores.csv")
    assert (tmp_path / "scores.csv").read_bytes() == in_one_batch(glassleaf, sheet)
    assert (done.rows, done.scored, done.failed, done.resumed) == (PEOPLE, PEOPLE - 3, 3, 0)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["people.csv", "scores.csv"]


def test_under_encryption_too(glassleaf, sheet, tmp_path):
    done = stream(glassleaf, sheet, tmp_path / "scores.csv", cipher=None)
    assert done.cipher == "rlwe"
    assert (tmp_path / "scores.csv").read_bytes() == in_one_batch(glassleaf, sheet)


def test_parquet_and_a_database_give_the_same_scores(glassleaf, people, sheet, tmp_path):
    stream(glassleaf, sheet, tmp_path / "from_csv.parquet")
    people.astype(str).to_parquet(tmp_path / "people.parquet")
    stream(glassleaf, tmp_path / "people.parquet", tmp_path / "from_parquet.parquet")
    wanted = pd.read_csv(io.BytesIO(in_one_batch(glassleaf, sheet)), dtype={"id": str}, keep_default_na=False)
    url = f"sqlite:///{tmp_path / 'bank.db'}"
    engine = create_engine(url)
    people.astype(str).to_sql("applicants", engine, index=False)
    engine.dispose()
    stream(glassleaf, url, tmp_path / "from_database.parquet", table="applicants")
    for name in ("from_csv", "from_parquet", "from_database"):
        found = pd.read_parquet(tmp_path / f"{name}.parquet")
        expected = wanted
        if name == "from_database":  # in the order of the ids: of two rows with the same, another one is the first
            twice = set(wanted.id[wanted.id.duplicated()])
            found, expected = (t[~t.id.isin(twice)].sort_values("id", ignore_index=True) for t in (found, wanted))
        assert found.id.tolist() == expected.id.tolist() and found.status.tolist() == expected.status.tolist()
        shown = ["" if np.isnan(score) else f"{score:.6f}" for score in found.score]
        assert shown == expected.score.tolist()


def test_ids_alone_stand_for_the_guests_own_records(glassleaf, people, tmp_path):
    ids = [one for one in people.id.drop_duplicates() if one]
    (tmp_path / "ids.csv").write_text("\n".join(["id", *ids, "stranger"]))
    stream(glassleaf, tmp_path / "ids.csv", tmp_path / "scores.csv")
    assert (tmp_path / "scores.csv").read_bytes() == in_one_batch(glassleaf, tmp_path / "ids.csv")


def test_decimal_commas_in_the_last_group_hold_for_the_first(glassleaf, home, tmp_path):
    federation = glassleaf.federations.get("demo")
    numeric = next(f for f in federation.guest.features if f.kind.value == "numeric")
    names = [f.name for f in federation.guest.features]
    lines = [";".join(["id", *names])]
    for row in range(GROUP + 1):
        cells = {numeric.name: "1,5" if row == GROUP else "1,234"}
        lines.append(";".join([f"p{row}", *(cells.get(name, "") for name in names)]))
    (tmp_path / "commas.csv").write_text("\n".join(lines))
    known = survey(federation, LongFile(tmp_path / "commas.csv"), Reading())
    assert known.marks.decimal == ","
    read = row_groups.sheets(federation, LongFile(tmp_path / "commas.csv"), known, None)
    assert next(read).guest.columns[numeric.name][0] == 1.234
    (tmp_path / "open.csv").write_text("\n".join(lines[:-1]))
    with pytest.raises(AmbiguousFile):
        survey(federation, LongFile(tmp_path / "open.csv"), Reading())


@pytest.fixture
def one_answer(unasked, tmp_path, monkeypatch):
    """A home whose Hosts answer once about a person."""
    monkeypatch.setenv("GLASSLEAF_BUDGET", "1")
    with Glassleaf(copied_home(unasked, tmp_path / "home"), pools=False) as opened:
        yield opened


class KilledError(Exception):
    """Stands for a power cut."""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_stopped_at_any_write_it_goes_on_and_asks_nobody_twice(one_answer, people, tmp_path, monkeypatch, suffix):
    """Every write to the file and to its progress is broken off once, before and after it; the next run goes on to the next one."""
    frame = people.drop(index=[7, 60, 150])
    frame.to_csv(tmp_path / "people.csv", index=False)
    wanted = {
        row["id"]: row["score"]
        for row in csv.DictReader(io.StringIO(in_one_batch(one_answer, tmp_path / "people.csv").decode()))
    }
    out, stops = tmp_path / f"scores.{suffix}", 0
    writes = {"left": 0}

    def passed():
        writes["left"] -= 1
        if writes["left"] == 0:
            raise KilledError

    def breaking(real):
        def call(*arguments):
            passed()
            done = real(*arguments)
            passed()
            return done

        return call

    monkeypatch.setattr(streaming, "write_whole", breaking(streaming.write_whole))
    monkeypatch.setattr(streaming.os, "fsync", breaking(streaming.os.fsync))
    monkeypatch.setattr(streaming, "_as_parquet", breaking(streaming._as_parquet))
    monkeypatch.setattr(streaming, "_copied", breaking(streaming._copied))
    workspace = workspace_of(one_answer)

    def journal(federation):
        kept = workspace.journal(federation)
        return Answering(kept, {"handed_over": breaking(kept.handed_over)})

    of_journal = Answering(workspace, {"journal": journal})
    stopped = streaming.Streaming(of_journal, one_answer.models, one_answer.scoring)
    for at in range(1, 200):
        writes["left"] = at % 13 + 1  # every kind of write, in every group, is the next one to break
        request = StreamRequest("latest", tmp_path / "people.csv", out, cipher="none")
        job = stopped.start(request).wait()
        if job.state == "done":
            break
        stops += 1
    writes["left"] = 0
    assert job.state == "done" and stops > 5
    found = pd.read_csv(out, dtype={"id": str}) if suffix == "csv" else pd.read_parquet(out)
    assert found.id.tolist() == frame.id.tolist()
    assert found.status.isin(["ok", "partial"]).all()  # a second question about anybody would have been refused
    assert {i: f"{score:.6f}" for i, score in zip(found.id, found.score, strict=True)} == wanted
    assert {file.name for file in tmp_path.iterdir()} == {"home", "people.csv", out.name}
    again = one_answer.streaming.start(replace(request, out=tmp_path / "again.csv")).get()
    assert again.scored == 0  # and the budget is spent, once


def test_a_stop_is_passed_on_and_what_is_through_stays(one_answer, people, tmp_path):
    frame = people.drop(index=[7, 60, 150])
    frame.to_csv(tmp_path / "people.csv", index=False)
    request = StreamRequest("latest", tmp_path / "people.csv", tmp_path / "scores.csv", cipher="none")
    waits = threading.Event()

    def stopping(before):
        if before == streaming.IN_FLIGHT:  # the first group is through
            assert waits.wait(10)
            job.cancel()

    job = Begun(one_answer, stopping).streaming.start(request)
    waits.set()
    with pytest.raises(Cancelled):
        job.get()
    assert in_groups(request.source, request.out)
    with pytest.raises(ParameterError, match="another scoring"):
        one_answer.streaming.start(replace(request, what_if=0.4)).get()
    done = one_answer.streaming.start(request).get()
    assert done.resumed >= GROUP and done.failed == 0 and done.rows == len(frame)


class Begun:
    """Streaming over scorings that are noted as they begin, and give some answers set beforehand."""

    def __init__(self, glassleaf, on_begin=lambda count: None, answers=()):
        self.jobs, self._scoring, self._on_begin, self.answers = [], glassleaf.scoring, on_begin, dict(answers)
        scoring = Answering(glassleaf.scoring, {"start": self._start})
        self.streaming = streaming.Streaming(workspace_of(glassleaf), glassleaf.models, scoring)

    def _start(self, request):
        self._on_begin(len(self.jobs))
        self.jobs.append(self._scoring.start(request))
        return Answering(self.jobs[-1], self.answers)


def test_two_groups_are_under_way_at_once_and_never_more(glassleaf, sheet, tmp_path):
    flying = []

    def beginning(before):
        through = json.loads((tmp_path / "scores.csv.progress").read_text())["groups"]
        flying.append(before + 1 - through)

    begun = Begun(glassleaf, beginning)
    done = begun.streaming.start(StreamRequest("latest", sheet, tmp_path / "scores.csv", cipher="none")).get()
    assert max(flying) == streaming.IN_FLIGHT == 2 and len(begun.jobs) == -(-done.rows // GROUP)


def test_who_dies_with_two_groups_asked_about_has_both_from_the_journal(one_answer, people, tmp_path):
    frame = people.drop(index=[7, 60, 150])
    frame.to_csv(tmp_path / "people.csv", index=False)
    wanted = in_one_batch(one_answer, tmp_path / "people.csv")
    request = StreamRequest("latest", tmp_path / "people.csv", tmp_path / "scores.csv", cipher="none")

    def killed():
        raise KilledError

    # nobody stops what is under way: both groups are answered, and nothing of either is written down but in the journal
    begun = Begun(one_answer, answers={"get": killed, "cancel": lambda: None})
    assert begun.streaming.start(request).wait().state == "failed"
    first = begun.jobs[:]
    begun.answers.clear()
    assert [job.state for job in first] == ["done"] * 2
    done = begun.streaming.start(request).get()
    again = begun.jobs[2:4]
    assert [job.get().run for job in again] == [job.get().run for job in first]
    assert not any(entry.kind == "DecisionVectors" for job in again for entry in job.transcript)
    assert (done.scored, done.resumed) == (len(frame), 0)  # under a budget of one
    assert request.out.read_bytes() == wanted


def test_where_one_group_fails_the_other_is_stopped_and_nobody_of_either_is_lost(one_answer, people, tmp_path):
    frame = people.drop(index=[7, 60, 150])
    frame.to_csv(tmp_path / "people.csv", index=False)
    wanted = in_one_batch(one_answer, tmp_path / "people.csv")
    request = StreamRequest("latest", tmp_path / "people.csv", tmp_path / "scores.csv", cipher="none")

    def refused():
        raise GlassleafError("Refused.")

    begun = Begun(one_answer, answers={"get": refused})
    with pytest.raises(GlassleafError, match="Refused"):
        begun.streaming.start(request).get()
    assert len(begun.jobs) == 2 and all(job.state != "running" for job in begun.jobs)
    assert one_answer.streaming.start(request).get().scored == len(frame)
    assert request.out.read_bytes() == wanted


def test_a_table_that_changes_while_it_is_read_is_refused(glassleaf, sheet):
    federation = glassleaf.federations.get("demo")
    known = survey(federation, LongFile(sheet), Reading())
    sheet.write_text(sheet.read_text().replace("many", "few"))
    read = row_groups.sheets(federation, LongFile(sheet), known, None)
    next(read)
    with pytest.raises(SampleError, match="changed"):
        next(read)


def test_two_at_once_into_one_file_are_refused(glassleaf, sheet, tmp_path):
    with streaming.held_alone(tmp_path / "scores.csv.lock"), pytest.raises(StoreError, match="another process"):
        stream(glassleaf, sheet, tmp_path / "scores.csv")


def test_a_password_of_a_database_is_shown_nowhere(glassleaf, tmp_path):
    url = "sqlite:///secret-word/nowhere/bank.db"
    with pytest.raises(GlassleafError) as refused:
        stream(glassleaf, url, tmp_path / "scores.csv", table="applicants")
    assert "secret-word" not in str(refused.value)
    source = streaming.source_of(
        StreamRequest("latest", url, tmp_path / "s.csv", "t"), glassleaf.federations.get("demo")
    )
    assert "secret-word" not in repr(source)


def test_long_tables_are_scored_in_groups(sheet, tmp_path):
    assert not in_groups(sheet, tmp_path / "scores.csv") and in_groups(sheet, tmp_path / "scores.parquet")
    (tmp_path / "long.csv").write_text("id\n" + "x\n" * 5_001)
    assert in_groups(tmp_path / "long.csv", None)
    pd.DataFrame({"id": ["x"] * 5_001}).to_parquet(tmp_path / "long.parquet")
    assert in_groups(tmp_path / "long.parquet", None)
