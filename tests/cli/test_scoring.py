"""`score` and `samples` from a shell: who may be scored, and what a script can tell from the exit status."""

import json
import shlex
from datetime import UTC, datetime

import pandas as pd
import pytest
import typer

from backend.cli import scoring
from backend.data import row_groups
from backend.errors import (
    ApprovalDenied,
    ApprovalPending,
    Cancelled,
    GlassleafError,
    HostBusy,
    ParameterError,
    PartyUnreachable,
)
from backend.jobs import Job
from backend.remark import Remark, template
from backend.services import Glassleaf, streaming
from backend.services.scoring import ScoringRequest

WORDS = ("--cipher", "none")
DOWN = Remark("link_down", {"host": "shop", "since": "14:02", "why": Remark("link_cut")})
BUSY = Remark("lane_full", {"seconds": 1.0})


@pytest.fixture
def ids(run):
    status, text, _ = run("samples", "latest")
    column, *found = text.split()
    assert (status, column) == (0, "id") and len(found) > 10
    return found


@pytest.fixture
def sheet(tmp_path):
    def write(*people):
        (tmp_path / "people.csv").write_text("\n".join(["id", *people]), encoding="utf-8")
        return tmp_path / "people.csv"

    return write


def test_the_held_out_records_are_listed_as_a_sheet_that_can_be_scored(run, ids, sheet):
    listed = json.loads(run("samples", "latest", "--json")[1])
    assert listed["ids"] == ids and listed["column"] == "id"
    status, text, _ = run("score", "latest", sheet(*ids[:3]), *WORDS, "--json")
    assert status == 0 and [score["id"] for score in json.loads(text)["scores"]] == ids[:3]


def test_the_exit_status_says_whether_everybody_some_or_nobody_was_scored(run, ids, sheet):
    assert run("score", "latest", sheet(*ids[:2]), *WORDS)[0] == 0
    assert run("score", "latest", sheet(ids[0], "stranger"), *WORDS)[0] == 3
    assert run("score", "latest", sheet("stranger", "another"), *WORDS)[0] == 1


def test_scores_that_cannot_be_written_are_not_asked_for(run, ids, sheet, tmp_path):
    status, text, error = run("score", "latest", sheet(ids[0]), *WORDS, "--out", tmp_path / "no" / "scores.csv")
    assert (status, text) == (1, "") and "cannot be written" in error


def test_into_parquet_a_table_is_scored_in_groups_and_the_exit_status_is_the_same(run, ids, sheet, tmp_path):
    out = tmp_path / "scores.parquet"
    status, text, _ = run("score", "latest", sheet(*ids[:3], "stranger"), *WORDS, "--out", out, "--json")
    told = json.loads(text)
    assert status == 3 and (told["rows"], told["scored"], told["failed"]) == (4, 3, 1)
    assert pd.read_parquet(out).id.tolist() == [*ids[:3], "stranger"]
    kept = out.read_bytes()
    assert run("score", "latest", sheet("stranger"), *WORDS, "--out", out)[0] == 1
    assert out.read_bytes() == kept  # of nobody there is nothing to write
    assert "--out" in run("score", "latest", "sqlite:///people.db", *WORDS)[2]


def test_a_table_that_is_stopped_names_the_command_that_goes_on_with_it(run, ids, sheet, tmp_path, monkeypatch):
    monkeypatch.setattr(row_groups, "GROUP", 2)
    put_down = streaming._Partial.add

    def stopping(partial_file, *scored):
        put_down(partial_file, *scored)
        raise PartyUnreachable("nothing_sent", why=DOWN)

    out = tmp_path / "my scores.parquet"
    with monkeypatch.context() as patched:
        patched.setattr(streaming._Partial, "add", stopping)
        status, _, error = run("score", "latest", sheet(*ids[:5]), "--out", out, "--what-if", "0.4", *WORDS, "--json")
    assert status == 1 and "down since 14:02" in error and "of 5 rows" in error
    program, *words = shlex.split(error.splitlines()[-1])
    assert program == "glassleaf" and "latest" not in words and "--what-if" in words
    status, text, _ = run(*words)
    told = json.loads(text)
    assert status == 0 and (told["rows"], told["scored"]) == (5, 5) and told["resumed"] >= 2


@pytest.mark.parametrize(
    ("error", "stage", "goes_on"),
    [
        (Cancelled("stopped_by_user"), "score", True),
        (Cancelled("stopped_at_request"), "score", True),
        (HostBusy("host_refused", 1.0, "shop", why=BUSY), "mask", True),
        (ApprovalPending("shop", 3, datetime(2026, 11, 1, tzinfo=UTC)), "key", True),
        (ApprovalDenied("shop", "withdrawn", "2026-11-01", "no more"), "key", False),
        (ParameterError("cutoff_not_probability", cutoff=2.0), "score", False),
        (PartyUnreachable("nothing_sent", why=DOWN), "read", False),
    ],
)
def test_the_command_is_named_where_it_goes_on_and_nowhere_else(error, stage, goes_on):
    def work(job):
        job.at(stage, done=40)
        raise error

    with pytest.raises(GlassleafError) as raised:
        scoring._ended(Job(work, 100).start(), "glassleaf score m people.csv")
    said = str(raised.value)
    assert ("\n  glassleaf score m people.csv" in said and "40 of 100 rows" in said) == goes_on
    assert goes_on or raised.value is error
    for code in ("stopped_by_user", "stopped_at_request"):
        assert template(code, "en") not in said  # the scores before it are kept


def test_the_url_of_a_database_is_not_repeated(run, monkeypatch):
    monkeypatch.setattr(scoring, "in_groups", lambda source, out: True)
    monkeypatch.setattr(scoring, "_streamed", lambda glassleaf, request, again, as_json: typer.echo(again))
    url = "postgresql://ana:secret-word@db.bank.example/bank?password=other-word"
    status, said, _ = run("score", "latest", url, "--table", "applicants", "--out", "scores.csv")
    assert status == 0 and "-word" not in said
    assert shlex.split(said)[3:] == ["URL", "--out", "scores.csv", "--table", "applicants"]


def test_what_answers_have_given_away_is_printed_and_adds_up(run, home):
    glassleaf = Glassleaf(home, pools=False)
    person = glassleaf.models.test_ids(glassleaf.models.get("latest"))[-1]
    before = {told.host: told.person for told in glassleaf.leakage.given_away("latest", person)}
    glassleaf.scoring.start(
        ScoringRequest("latest", glassleaf.samples.of_person("latest", person), cipher="none")
    ).get()
    glassleaf.close()
    status, text, _ = run("given-away", "latest", "--person", person, "--json")
    told = json.loads(text)
    assert status == 0 and {host["host"] for host in told} == set(before)
    assert all(host["person"] - before[host["host"]] == pytest.approx(host["costs"]["score"]) for host in told)
    status, text, _ = run("given-away", "latest", "--person", person)
    assert status == 0 and all(host["host"] in text for host in told) and person in text
    assert run("given-away", "latest", "--person", "nobody")[0] == 1
