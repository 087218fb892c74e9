"""Three companies as processes: whichever is killed in the midst of a training or a table, the same model and scores come out, once."""

import csv
import json
from contextlib import suppress

import pytest
from companies import until
from host_processes import SECONDS, running

pytestmark = [pytest.mark.faults, pytest.mark.slow]
TRAIN = ("train", "companies", "--trees", "3", "--depth", "2", "--bins", "4", "--cipher", "rlwe", "--json")
ROWS, PEOPLE = 200, 8_300  # of two groups


def test_a_training_goes_on_whoever_is_killed(tmp_path):
    with running(tmp_path / "companies", ROWS) as companies:
        wanted = companies.run(*TRAIN)
        used = "select sum(used) from approval_uses join approvals using (number) where purpose = 'training'"
        before = {name: companies.asked(name, used) for name in companies.made.hosts}
        first = companies.begin(*TRAIN)
        until(lambda: companies.rounds() > 0 or first.poll() is not None, SECONDS)
        companies.break_off(first)
        broken_off = companies.rounds() > 0
        again = companies.begin(*TRAIN)
        for name in companies.made.hosts:
            companies.kill(name)
        out, err = companies.finish(again)
        assert again.returncode == 0, err
        found = json.loads(out)
        assert (found["id"], found["content_hash"]) == (wanted["id"], wanted["content_hash"])
        # killed behind its last step it had ended, and this was another training
        assert all(companies.asked(name, used) - before[name] == (1 if broken_off else 2) for name in before)


def test_a_table_is_scored_once_whoever_is_killed(tmp_path):
    with running(tmp_path / "companies", ROWS) as companies:
        companies.run(*TRAIN)
        own = (companies.made.guest / "bank.csv").read_text().splitlines()
        head, *known = own
        width = head.count(",")
        lines = [*known[:50], *(f"A{900_000 + i}" + "," * width for i in range(PEOPLE - 50))]
        sheet = tmp_path / "people.csv"
        sheet.write_text("\n".join([head, *lines]) + "\n")
        whole, out = tmp_path / "whole.csv", tmp_path / "scores.csv"
        score = ("score", "latest", sheet, "--cipher", "rlwe", "--json", "--out")
        companies.run(*score, whole)
        first = companies.begin(*score, out)
        progress = out.with_name("scores.csv.progress")
        until(lambda: through(progress) > 0 or first.poll() is not None, SECONDS)
        companies.break_off(first)
        again = companies.begin(*score, out)
        for name in companies.made.hosts:
            companies.kill(name)
        _, err = companies.finish(again)
        assert again.returncode in (0, 3), err
        assert rows(out) == rows(whole) and len(rows(out)) == PEOPLE
        # twice for two tables: each was counted once
        counts = [
            companies.asked(name, "select max(asked) from answers where kind = 'score'")
            for name in companies.made.hosts
        ]
        assert max(counts) == 2


def through(progress):
    with suppress(OSError, ValueError):
        return json.loads(progress.read_text())["groups"]
    return 0


def rows(path):
    with path.open(newline="") as file:
        return [(row["id"], row["score"]) for row in csv.DictReader(file)]
