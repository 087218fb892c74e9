"""An auditor with the halves of all parties recomputes scores: honest ones pass, a constant that a Host has planted is found."""

import json
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from inside import runtime_of, workspace_of

from backend.cli import main
from backend.data.table import SampleSheet
from backend.privacy.halves import load_guest_half
from backend.privacy.re_performance import re_perform
from backend.protocols.host_half import load_half, rows_of
from backend.protocols.scoring import host as scoring_host
from backend.protocols.scoring.fed_eini import CompiledHost
from backend.protocols.simulation import simulator
from backend.services import Glassleaf
from backend.services.re_performance import guest_half
from backend.services.scoring import ScoringRequest
from backend.store.request_log import RequestLog
from backend.trees.serialization import dump_host, load_host

CONSTANT = 1 << 10  # a logit, in units of 2^-10


@pytest.fixture(scope="module")
def place(demo_home):
    return demo_home()


@pytest.fixture(scope="module")
def glassleaf(place):
    opened = Glassleaf(place, key_floor=512, pools=False)
    yield opened
    opened.close()


@pytest.fixture
def shell(monkeypatch, capsys):
    """Run a command of the shell; returns its exit status and what it printed."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["backend", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), capsys.readouterr().out

    return run


def everybody(glassleaf, people, cipher="rlwe"):
    record = glassleaf.models.get("latest")
    table = runtime_of(glassleaf).table.take(people)
    sheet = SampleSheet(table.ids, table, {}, {}, ())
    return glassleaf.scoring.start(ScoringRequest(record.id, sheet, cipher=cipher, key_bits=512)).get()


def plant(monkeypatch, constant=CONSTANT):
    honest = scoring_host._added

    def lying(vectors, ids, held, spent, dither, noise):
        numbers = honest(vectors, ids, held, spent, dither, noise) or [0] * len(ids)
        return [number + constant for number in numbers]

    # patched: a Host that lies in an answer of its own
    monkeypatch.setattr(scoring_host, "_added", lying)


def halves_of(glassleaf):
    here = runtime_of(glassleaf)
    own = {host: here.operator.half(host, ()) for host in here.hosts}
    return [
        here.operator.half(host, [row for other in own if other != host for row in rows_of(own[other])])
        for host in here.hosts
    ]


def test_a_planted_constant_in_a_run_of_a_thousand_scores_is_found(glassleaf, place, monkeypatch, shell):
    everybody(glassleaf, range(100))
    honest = glassleaf.audit.re_perform("demo")
    assert honest.scores > 1 and honest.differences == () and honest.not_covered == ()
    plant(monkeypatch)
    batch = everybody(glassleaf, range(100, 1100))
    assert sum(score.scored for score in batch.scores) == 1000  # nobody has noticed
    found = glassleaf.audit.re_perform("demo")
    moved = [one for one in found.differences if one.why.code == "score_differs"]
    assert 120 < len(moved) < 270 and found.scores == honest.scores + len(moved)
    record = glassleaf.models.get("latest")
    last = runtime_of(glassleaf).hosts[-1]
    assert {one.parties for one in moved} and all(record.id == one.model_id for one in moved)
    assert all(one.by == (1.0,) and {runtime_of(glassleaf).guest.name, last} <= set(one.parties) for one in moved)
    logged = [entry for entry in glassleaf.audit.entries("demo") if entry.action == "re-perform"]
    assert [entry.body["differences"] for entry in logged] == [0, len(moved)]
    monkeypatch.setenv("GLASSLEAF_HOME", str(place))
    code, said = shell("audit", "re-perform", "demo", "--json")
    assert code == 1
    assert [one["code"] for one in json.loads(said)[0]["differences"]] == ["score_differs"] * len(moved)


@pytest.fixture
def sampled(demo_home, monkeypatch):
    """A home of its own whose Hosts keep every request; three people were scored under Paillier."""
    monkeypatch.setattr(simulator, "RequestLog", partial(RequestLog, rate=1.0))
    opened = Glassleaf(demo_home(), key_floor=512, pools=False)
    everybody(opened, range(3), "paillier")
    yield opened
    opened.close()


def test_under_paillier_every_step_is_opened_and_a_half_that_lies_is_named(sampled):
    here = runtime_of(sampled)
    halves = halves_of(sampled)
    store = workspace_of(sampled).guest_store("demo")
    half = guest_half(here, store, halves)
    # both halves go through files
    halves = [load_half(one.dump()) for one in halves]
    half = load_guest_half(half.dump())
    honest = re_perform(half, halves, 512)
    assert honest.scores == 3 and honest.opened == 3 * len(halves) and honest.differences == ()

    # The Guest states other values than it has sent.
    [request] = half.statements
    stated = half.statements[request]
    lies = {name: column[::-1] if column.dtype == object else -column - 1000 for name, column in stated.columns.items()}
    changed = replace(half, statements={request: replace(stated, columns=lies)})
    found = re_perform(changed, halves, 512).differences
    assert found and {(one.parties, one.why.code) for one in found} == {((half.guest,), "entries_differ")}

    # The Guest hands over a score that nobody has computed.
    units = (stated.units[0] + 512, *stated.units[1:])
    changed = replace(half, statements={request: replace(stated, units=units)})
    [one] = re_perform(changed, halves, 512).differences
    assert one.place == 0 and one.by == (0.5,) and half.guest in one.parties

    # A Host calls its constant dither.
    last = halves[-1]
    claimed = replace(last, rows=tuple(replace(row, added=row.added + CONSTANT) for row in last.rows))
    found = re_perform(half, [*halves[:-1], claimed], 512).differences
    assert {one.why.code for one in found if one.parties == (last.host,)} == {"added_beyond_dither"}

    # A Host shows other thresholds than it answered by: the hash that it told at the training binds it.
    [(model_id, text)] = last.models.items()
    shown = load_host(text)
    moved = {
        key: rule if rule.threshold is None else replace(rule, threshold=rule.threshold + 1.0)
        for key, rule in shown.rules.items()
    }
    other = replace(last, models={model_id: dump_host(replace(shown, rules=moved))})
    found = re_perform(half, [*halves[:-1], other], 512).differences
    assert ((last.host,), "other_half_registered") in {(one.parties, one.why.code) for one in found}

    # A Host's records have changed: said, and not called covered.
    later = replace(last, rows=tuple(replace(row, changed=True) for row in last.rows))
    performed = re_perform(half, [*halves[:-1], later], 512)
    assert performed.scores == 0 and [(why.code, n) for why, n in performed.not_covered] == [
        ("records_changed_since", 3)
    ]


def test_another_persons_record_is_found_if_the_host_shows_the_true_one(sampled, monkeypatch):
    honest = CompiledHost.decide

    def another(compiled, columns, held):
        return honest(compiled, {name: np.roll(column, 1) for name, column in columns.items()}, held)

    with monkeypatch.context() as patch:
        # patched: a Host that lies in an answer of its own
        patch.setattr(CompiledHost, "decide", another)
        batch = everybody(sampled, range(10, 18), "paillier")
        assert sum(score.scored for score in batch.scores) == 8  # nobody has noticed
    found = sampled.audit.re_perform("demo")
    assert found.scores == 11 and found.differences
    hosts = set(runtime_of(sampled).hosts)
    assert all(set(one.parties) & hosts for one in found.differences)


def test_the_shell_finds_it_too_from_the_files_of_all_parties(demo_home, tmp_path, monkeypatch, shell):
    home = demo_home()
    monkeypatch.setenv("GLASSLEAF_HOME", str(home))
    monkeypatch.setattr(simulator, "RequestLog", partial(RequestLog, rate=1.0))
    with monkeypatch.context() as patch:
        plant(patch)
        opened = Glassleaf(home, key_floor=512, pools=False)
        everybody(opened, range(60), "none")
        hosts = runtime_of(opened).hosts
        opened.close()

    for also in ((), tuple(f"{host}.half" for host in hosts)):
        for host in hosts:
            others = [part for name in also if name != f"{host}.half" for part in ("--also", tmp_path / name)]
            code, _ = shell(
                "host", "sample", "--federation", "demo", "--host", host, "--out", tmp_path / f"{host}.half", *others
            )
            assert code == 0
    samples = [tmp_path / f"{host}.half" for host in hosts]
    assert shell("audit", "half", "demo", *samples, "--out", tmp_path / "bank.half")[0] == 0
    flags = [part for file in samples for part in ("--sample", file)]
    code, said = shell("audit", "re-perform", "--half", tmp_path / "bank.half", *flags)
    assert (
        code == 1 and "60 scores, reasons of 0 people and 0 sums recomputed" in said and "+1.0000 on the margin" in said
    )
    code, said = shell("audit", "re-perform", "demo", "--json")
    assert code == 1 and len(json.loads(said)[0]["differences"]) == 60
