"""A Host's long batches, folded by workers of its own: the same sums, and what leaves the Host is refreshed and flooded by it alone."""

from functools import cache

import numpy as np
import pytest
from folds import ONE_HOST, TWO_HOSTS, N, chain, masks, one_host, secret_key, send, through

from backend.crypto.plain import PlainKeySide, PlainPublicSide
from backend.crypto.rlwe import folding, public
from backend.crypto.rlwe.public import RlwePublicSide
from backend.crypto.rlwe.ring import ring
from backend.crypto.rlwe.scheme import RlweKeySide
from backend.crypto.workers import Workers
from backend.errors import SecurityError

THREADS = Workers(2, "threading")  # as a cluster: any backend of joblib's but loky


@cache
def guest(name):
    return RlweKeySide(secret_key(name))


@pytest.fixture
def apart(monkeypatch):
    """Batches of any length go to workers; the pieces that did."""
    pieces, fold = [], folding.folded_apart
    monkeypatch.setattr("backend.crypto.rlwe.layout.PIECE_BYTES", 600_000)
    monkeypatch.setattr(public, "PARALLEL_MIN", 1)
    monkeypatch.setattr(public, "folded_apart", lambda piece: pieces.append(piece) or fold(piece))
    return pieces


@pytest.mark.parametrize("n", [3, 1000, 5000])
def test_workers_give_the_sums_that_plain_arithmetic_gives(apart, n):
    draw = np.random.default_rng(n)
    plans = chain(draw.integers(0, 3, (40, 2)))
    values, keeps = draw.integers(-500, 500, (n, 40)), masks(plans, n, draw)
    key, hosts = guest(TWO_HOSTS), RlwePublicSide(guest(TWO_HOSTS).offer(), workers=THREADS)
    found, plain = send(key, values), send(PlainKeySide(), values)
    for keep, plan in zip(keeps, plans, strict=True):
        found, plain = through(hosts, found, keep, plan), through(PlainPublicSide(), plain, keep, plan)
    assert key.decrypt(found[0], n) == PlainKeySide().decrypt(plain[0], n)
    assert {piece.fresh for piece in apart} == {True, False}


def test_processes_of_this_machine_give_them_too(monkeypatch):
    monkeypatch.setattr(public, "PARALLEL_MIN", 1)
    key, n = guest(ONE_HOST), 2000
    values, keep = np.full((n, 9), 7), np.random.default_rng(1).random((n, 9)) < 0.5
    host = RlwePublicSide(key.offer(), workers=Workers(2))
    assert (
        key.decrypt(through(host, send(key, values), keep, one_host(9))[0], n) == (values * keep).sum(axis=1).tolist()
    )


def test_a_batch_that_nothing_is_left_of_gives_zeros(apart):
    key, none = guest(ONE_HOST), np.zeros((5, 4), dtype=bool)
    host = RlwePublicSide(key.offer(), workers=THREADS)
    assert key.decrypt(through(host, send(key, np.ones((5, 4), dtype=np.int64)), none, one_host(4))[0], 5) == [0] * 5
    assert apart


def test_short_batches_and_single_workers_stay_in_this_process(monkeypatch):
    monkeypatch.setattr(public, "folded_apart", None)
    key, values = guest(ONE_HOST), np.ones((N // 2, 4), dtype=np.int64)
    for workers in (Workers(1), THREADS):
        host = RlwePublicSide(key.offer(), workers=workers)
        assert key.decrypt(through(host, send(key, values), values > 0, one_host(4))[0], N // 2) == [4] * (N // 2)


def test_a_damaged_ciphertext_is_refused_by_a_worker_too(apart):
    key = guest(ONE_HOST)
    fold = RlwePublicSide(key.offer(), workers=THREADS).start_fold(np.ones((1, 1), dtype=bool), one_host(1))
    fold.add(bytes(ring(ONE_HOST).seeded_width))
    with pytest.raises(SecurityError, match="damaged"):
        list(fold.finish())


def test_what_a_worker_is_handed_and_gives_back_names_no_key(apart):
    key = guest(ONE_HOST)
    host = RlwePublicSide(key.offer(), workers=THREADS)
    through(host, send(key, np.ones((5, 4), dtype=np.int64)), np.ones((5, 4), dtype=bool), one_host(4))
    [piece] = apart
    assert set(vars(piece)) == {"name", "blob", "fresh", "keep", "targets"} and "kept" not in repr(piece)
