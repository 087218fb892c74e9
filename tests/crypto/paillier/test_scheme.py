"""Paillier against public vectors, against `phe`, and against plain integers."""

import gmpy2
import numpy as np
import phe
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.crypto.fixedpoint import HALF_SLOT, half_slot
from backend.crypto.interface import FoldPlan
from backend.crypto.paillier.bin_products import BinProducts
from backend.crypto.paillier.keys import PaillierPublicKey, PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide, PaillierPublicSide
from backend.crypto.plain import PlainKeySide, PlainPublicSide
from backend.crypto.workers import Workers
from backend.errors import SecurityError


def read_vectors(file):
    cases, case = [], {}
    for line in file.read_text().splitlines():
        name, _, value = line.strip().rstrip(",").partition(" = ")
        if name == "TEST":
            case = {}
            cases.append(case)
        elif name and name != "RESULT":
            case[name] = mpz(value, 16)
    return cases


def plan_of(target, own, n_out):
    """A chain of one Host (or its first)."""
    return FoldPlan(target, own, n_out, tuple(range(len(target))), 0, 1 if n_out == 1 else 2)


def fold(host, blob, keep, plan):
    folding = host.start_fold(keep, plan)
    folding.add(blob)
    (folded,) = folding.finish()
    return folded


def test_encryption_gives_the_public_vectors(shared_vectors):
    cases = read_vectors(shared_vectors / "paillier-encrypt.txt")
    assert len(cases) > 5
    for case in cases:
        key = PaillierPublicKey(case["N"])
        obfuscator = gmpy2.powmod(case["R"], key.n, key.n2)
        assert key.encrypt_with(int(case["PLAINTEXT"]), obfuscator) == case["CIPHERTEXT"]


def test_decryption_gives_the_public_vectors(shared_vectors):
    cases = read_vectors(shared_vectors / "paillier-decrypt.txt")
    assert len(cases) > 5
    for case in cases:
        side = PaillierKeySide(PaillierSecretKey(case["P"], case["Q"]))
        n = side.public.n
        assert side.decrypt_numbers([case["CIPHERTEXT"]])[0] % n == case["PLAINTEXT"] % n


def test_addition_gives_the_public_vectors(shared_vectors, monkeypatch):
    cases = read_vectors(shared_vectors / "paillier-add.txt")
    assert len(cases) > 50
    for case in cases:
        host = PaillierPublicSide(PaillierPublicKey(case["N"]))
        monkeypatch.setattr(host.obfuscators, "take", lambda count: [mpz(1)] * count)
        both = host.key.dump([case["CIPHERTEXT1"], case["CIPHERTEXT2"]])
        assert (
            int.from_bytes(fold(host, both, np.ones((1, 2), dtype=bool), plan_of((0, 0), (True, True), 1)), "big")
            == (case["CIPHERTEXT"])
        )


def test_phe_reads_our_ciphertexts_and_we_read_those_of_phe(secret_key, key_side):
    public = phe.PaillierPublicKey(int(secret_key.public.n))
    private = phe.PaillierPrivateKey(public, int(secret_key.p), int(secret_key.q))
    numbers = [0, 1, -1, 12345678901234567890, -(2**200)]
    ours = key_side.encrypt_numbers(numbers)
    assert [private.decrypt(phe.EncryptedNumber(public, int(c), 0)) for c in ours] == numbers
    theirs = [mpz(public.encrypt(m).ciphertext()) for m in numbers]
    assert key_side.decrypt_numbers(theirs) == numbers
    total = sum((phe.EncryptedNumber(public, int(c), 0) for c in ours), public.encrypt(0))
    assert key_side.decrypt_numbers([mpz(total.ciphertext())]) == [sum(numbers)]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-(2**400), 2**400), min_size=1, max_size=5))
def test_every_integer_comes_back(numbers):
    side = PaillierKeySide(PaillierSecretKey(mpz(KEY.p), mpz(KEY.q)))
    assert side.decrypt_numbers(side.encrypt_numbers(numbers)) == numbers


KEY = PaillierSecretKey.generate(512, floor=512)
SIDES = (PaillierKeySide(KEY), PaillierPublicSide(KEY.public)), (PlainKeySide(), PlainPublicSide())


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_folding_encrypted_equals_folding_plain(data):
    n, m = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    n_out = data.draw(st.integers(1, m))
    values = np.array(
        data.draw(st.lists(st.integers(-(2**40), 2**40), min_size=n * m, max_size=n * m)), dtype=np.int64
    ).reshape(n, m)
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=n * m, max_size=n * m))).reshape(n, m)
    own = tuple(data.draw(st.lists(st.booleans(), min_size=m, max_size=m)))
    target = tuple(data.draw(st.lists(st.integers(0, n_out - 1), min_size=m, max_size=m)))
    plan = plan_of(target, own, n_out)
    expected = [
        sum(int(values[i, e]) for e in range(m) if target[e] == o and (keep[i, e] or not own[e]))
        for i in range(n)
        for o in range(n_out)
    ]
    for guest, host in SIDES:
        folded = fold(host, guest.encrypt(values), keep, plan)
        assert guest.decrypt(folded, n * n_out) == expected


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_bin_sums_encrypted_equal_bin_sums_plain(data):
    n, n_bins = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 9))
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    g, h = draw.integers(-(2**30), 2**30, n), draw.integers(0, 2**28, n)
    rows = np.flatnonzero(draw.random(n) < 0.7)
    bins = draw.integers(0, n_bins, len(rows))
    answers, half = [], data.draw(st.sampled_from([half_slot(n), HALF_SLOT]))
    for guest, host in SIDES:
        pairs = host.load_pairs(guest.encrypt_pairs(g, h, half), n)
        (sums,) = host.bin_sums(pairs, [(rows, [(bins, n_bins)] * 2)], half)
        answers.append(np.stack(guest.decrypt_sums(sums, 2 * n_bins, half)))
    assert (answers[0] == answers[1]).all()
    assert answers[0][0, :n_bins].sum() == g[rows].sum()


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_sums_made_by_several_processes_are_those_of_one(seed, n_nodes):
    draw = np.random.default_rng(seed)
    guest = SIDES[0][0]
    g, h = draw.integers(-(2**30), 2**30, 1500), draw.integers(0, 2**28, 1500)
    nodes = []
    for _ in range(n_nodes):
        rows = np.flatnonzero(draw.random(1500) < 0.9)
        counts = [int(draw.integers(1, 7)) for _ in range(5)]
        nodes.append((rows, [(draw.integers(0, count, len(rows)), count) for count in counts]))
    makers = (
        Workers(1),
        Workers(2),
        Workers(2, "threading"),
    )  # the last as a cluster, which reads no file of this machine
    alone, shared, cluster = (PaillierPublicSide(KEY.public, products=BinProducts(workers)) for workers in makers)
    blob = guest.encrypt_pairs(g, h)
    for node, *sums in zip(
        nodes, *(side.bin_sums(side.load_pairs(blob, 1500), nodes) for side in (alone, shared, cluster)), strict=True
    ):
        n_sums = sum(count for _, count in node[1])
        expected = [np.bincount(index, weights=g[node[0]], minlength=count) for index, count in node[1]]
        for blob_of_sums in sums:
            assert (guest.decrypt_sums(blob_of_sums, n_sums)[0] == np.concatenate(expected)).all()
    assert cluster._products._shared is None


def test_a_node_without_rows_and_a_bin_without_rows_sum_to_zero():
    guest, host = SIDES[0]
    pairs = host.load_pairs(guest.encrypt_pairs(np.array([5, -7]), np.array([1, 2])), 2)
    nothing = np.array([], dtype=np.intp)
    empty, one = host.bin_sums(pairs, [(nothing, [(nothing, 3)]), (np.array([1]), [(np.array([2]), 3)])])
    assert guest.decrypt_sums(empty, 3)[0].tolist() == [0, 0, 0]
    assert guest.decrypt_sums(one, 3)[0].tolist() == [0, 0, -7]


def test_short_obfuscators_are_decrypted_like_full_ones():
    side = PaillierKeySide(KEY, obfuscation="short")
    numbers = [0, 5, -(2**100)] * 30
    sent = side.encrypt_numbers(numbers)
    assert SIDES[0][0].decrypt_numbers(sent) == numbers and len(set(sent)) == 90


def test_a_payload_makes_the_same_side_for_a_worker(key_side):
    twin = PaillierKeySide.from_worker_payload(key_side.worker_payload())
    assert twin.offer() == key_side.offer()
    assert key_side.decrypt_numbers(twin.encrypt_numbers([1, -2])) == [1, -2]


def test_a_batch_of_one_piece_takes_no_second(key_side, public_side):
    folding = public_side.start_fold(np.ones((1, 1), dtype=bool), plan_of((0,), (True,), 1))
    with pytest.raises(SecurityError, match="ended 1 piece early"):
        list(folding.finish())
    folding.add(key_side.encrypt(np.array([[1]])))
    with pytest.raises(SecurityError, match="after the last one of its batch"):
        folding.add(key_side.encrypt(np.array([[1]])))


def test_a_folded_reply_never_repeats_nor_shows_what_came_in(key_side, public_side):
    batch = key_side.encrypt(np.array([[5, 0, 7]]))
    keep = np.array([[True, False, True]])
    plan = plan_of((0, 1, 2), (True, True, False), 3)
    width = public_side.key.width
    replies = [fold(public_side, batch, keep, plan) for _ in range(2)]
    entries = [[r[i : i + width] for i in range(0, len(r), width)] for r in replies]
    sent = [batch[i : i + width] for i in range(0, len(batch), width)]
    came_in = {*sent, (1).to_bytes(width, "big")}
    assert came_in.isdisjoint(entries[0][:2])  # kept, dropped: both fresh
    assert entries[0][0] != entries[1][0] and entries[0][1] != entries[1][1]
    assert entries[0][2] == sent[2]  # no condition of this Host: nothing was computed


def test_a_ciphertext_outside_the_group_is_refused(secret_key, public_side):
    width, n, n2 = public_side.key.width, secret_key.public.n, secret_key.public.n2
    for bad in (mpz(0), n2, secret_key.p, secret_key.p * 12345, n):
        with pytest.raises(SecurityError, match="refused"):
            public_side.load(int(bad).to_bytes(width, "big"), 1, 1)


def test_a_vector_of_another_length_is_refused_before_it_is_read(public_side):
    with pytest.raises(SecurityError, match="2 items of 128 bytes were expected, got 255 bytes"):
        public_side.load(bytes(255), 1, 2)


@pytest.mark.parametrize("bits", [256, 1024, 2046, 2049, 16384])
def test_a_key_outside_the_allowed_sizes_is_not_made(bits):
    with pytest.raises(SecurityError, match="2,048 to 8,192"):
        PaillierSecretKey.generate(bits)


def test_a_short_public_key_is_refused(secret_key):
    with pytest.raises(SecurityError, match="at least 2,048"):
        PaillierPublicKey.from_bytes(secret_key.public.to_bytes())


def test_a_key_that_is_no_product_of_two_large_primes_is_refused():
    prime = gmpy2.next_prime(mpz(1) << 600)
    for n in (prime, prime * 3, prime * prime, mpz(1) << 700):
        with pytest.raises(SecurityError, match="two large primes"):
            PaillierPublicKey.from_bytes(int(n).to_bytes(200, "big"), floor=512)


def test_a_key_has_exactly_the_bits_asked_for_and_never_shows_its_factors(secret_key):
    assert secret_key.public.bits == 512
    side = PaillierKeySide(secret_key)
    shown = repr(secret_key) + repr(side) + repr(side.obfuscators)
    assert str(secret_key.p) not in shown and f"{int(secret_key.p):x}" not in shown


def test_a_key_survives_its_file(secret_key):
    assert PaillierSecretKey.from_numbers(secret_key.to_numbers(), floor=512) == secret_key
    for damaged in ({}, {"p": "zz", "q": "1"}, {"p": "4", "q": "6"}):
        with pytest.raises(SecurityError, match="delete it"):
            PaillierSecretKey.from_numbers(damaged, floor=512)


def test_what_a_guest_hides_above_the_sums_it_announced_does_not_come_back():
    """Pairs of 500 bits under halves of 8: of a sum come 16 bits, and of three that share a ciphertext 48."""
    guest, host = SIDES[0]
    marks = [1 << (40 * i + 60) for i in range(9)]
    pairs = host.load_pairs(guest.encrypt_joined(marks, 8), 9)
    node = np.arange(9), [(np.arange(9) % 3, 3)]
    hidden = [sum(marks[k::3]) for k in range(3)]
    for options, together in (({"alone": True}, hidden), ({}, [sum(h << (16 * k) for k, h in enumerate(hidden))])):
        read = [
            guest.decrypt_numbers(host.key.load(host.bin_sums(pairs, [node], 8, **options)[0], len(together)))
            for _ in "ab"
        ]
        low = (1 << (16 if options else 48)) - 1
        assert [x & low for x in read[0]] == [x & low for x in together]
        assert all(x >> 60 != own >> 60 and x != other for x, other, own in zip(*read, together, strict=True))
