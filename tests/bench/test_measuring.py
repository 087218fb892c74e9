"""What is measured is what is computed: the same scores as the protocol's, every second counted once."""

import pytest

from backend.crypto.paillier.scheme import PaillierKeySide, PaillierPublicSide
from backend.crypto.plain import PlainKeySide, PlainPublicSide
from backend.crypto.workers import Workers
from bench.cases import random_case
from bench.chain import Stopwatch, run_chain
from bench.parties import ServedParties
from bench.timing import interleaved, median_ratio, repeated


def test_a_span_inside_another_is_counted_once():
    clock = Stopwatch(iter([0.0, 1.0, 4.0, 10.0]).__next__)
    with clock.span("host", "fold"), clock.span("host", "refresh"):
        pass
    assert clock.seconds == {("host", "refresh"): 3.0, ("host", "fold"): 7.0}


def test_tasks_take_turns():
    order = []
    interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2)
    assert order == ["a", "b", "a", "b"]


def test_a_ratio_is_the_median_of_ratios():
    assert median_ratio([8.0, 8.0, 100.0], [4.0, 2.0, 1.0]) == 4.0


def test_what_takes_long_is_not_repeated(monkeypatch):
    monkeypatch.setattr("bench.timing.LONG", -1.0)
    assert repeated(lambda: 7, 5) == [7]


def test_a_random_case_has_the_leaves_it_was_asked_for():
    facts = random_case(40, n_hosts=2, n=3).facts()
    assert (facts["trees"], facts["depth"], facts["leaves"], facts["hosts"]) == (3, 4, 48, 2)


@pytest.mark.parametrize("hosts", [1, 3])
def test_a_chain_scores_as_the_parties_of_the_service_do(hosts, tmp_path, secret_key):
    case = random_case(32, hosts, n=4)
    key = PaillierKeySide(secret_key)
    plain = run_chain(case, PlainKeySide(), [PlainPublicSide() for _ in case.hosts], 4)
    encrypted = run_chain(case, key, [PaillierPublicSide(secret_key.public) for _ in case.hosts], 4)
    parties = ServedParties(case, 0, tmp_path)
    scored = parties.score(key, 4, Workers())
    parties.close()
    assert plain.units == encrypted.units == scored.units


def test_a_chain_counts_the_bytes_of_every_link_and_the_seconds_of_every_stage(secret_key):
    case = random_case(16, 1, n=1)
    entries, width = case.guest.folding.n_entries, secret_key.public.width
    run = run_chain(case, PaillierKeySide(secret_key), [PaillierPublicSide(secret_key.public)], 1)
    assert entries * width <= run.bytes["bank", "host1"] < entries * width + 200
    assert width <= run.bytes["host1", "bank"] < width + 200
    assert {stage for party, stage in run.seconds if party == "bank"} == {"encode", "encrypt", "serialise", "decrypt"}
    assert {stage for party, stage in run.seconds if party == "host1"} == {"serialise", "decide", "fold", "refresh"}
    assert run.total == pytest.approx(run.of("bank") + run.of("host1"))
