"""RLWE against plain integers, its noise against the proven bounds, and what a Host or a worker must refuse."""

import math
from functools import cache

import numpy as np
import pytest
import tenseal.sealapi as seal
from folds import LARGE, LARGEST, ONE_HOST, THREE_HOSTS, TWO_HOSTS, N, chain, masks, one_host, secret_key, send, through
from hypothesis import given, settings
from hypothesis import strategies as st
from tenseal.sealapi import util

from backend.crypto.interface import FoldPlan
from backend.crypto.plain import PlainKeySide, PlainPublicSide
from backend.crypto.rlwe import flooding, layout
from backend.crypto.rlwe import ring as ring_module
from backend.crypto.rlwe.fresh import read_fresh
from backend.crypto.rlwe.parameters import MARGIN_BITS, PARAMETERS, parameters_for
from backend.crypto.rlwe.public import RlwePublicSide
from backend.crypto.rlwe.ring import ring
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.errors import ParameterError, SecurityError

PLAIN = PlainKeySide(), PlainPublicSide()


@cache
def sides(name):
    guest = RlweKeySide(secret_key(name))
    return guest, RlwePublicSide(guest.offer())


def scores(guest, host, values, keeps, plans):
    pieces = send(guest, values)
    for keep, plan in zip(keeps, plans, strict=True):
        pieces = through(host, pieces, keep, plan)
    assert len(pieces) == 1
    return guest.decrypt(pieces[0], len(values))


def check(name, n, conditions, draw):
    values = draw.integers(-300, 300, (n, len(conditions)))
    plans = chain(conditions)
    keeps = masks(plans, n, draw)
    assert scores(*sides(name), values, keeps, plans) == scores(*PLAIN, values, keeps, plans)


@pytest.mark.parametrize("n", [1, 2, 5, 100, 3000, 5000, N])
def test_one_host_gives_the_same_integers_as_plain(n):
    draw = np.random.default_rng(n)
    check(ONE_HOST, n, draw.integers(0, 4, (23, 1)), draw)


@pytest.mark.parametrize(
    ("name", "hosts", "n"),
    [
        (TWO_HOSTS, 2, 1),
        (TWO_HOSTS, 2, 7),
        (TWO_HOSTS, 2, 4097),
        (THREE_HOSTS, 3, 2),
        (THREE_HOSTS, 3, N),
        (LARGE, 4, 3),
        (LARGEST, 5, 9000),
    ],
)
def test_a_chain_of_hosts_gives_the_same_integers_as_plain_folded_or_not(name, hosts, n):
    draw = np.random.default_rng(n)
    check(name, n, draw.integers(0, 3, (11, hosts)), draw)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 60), st.integers(1, 400), st.integers(0, 2**32 - 1))
def test_any_batch_gives_the_same_integers_as_plain(n, m, seed):
    draw = np.random.default_rng(seed)
    check(ONE_HOST, n, draw.integers(0, 3, (m, 1)), draw)


def test_the_largest_sums_come_back_with_their_sign():
    guest, host = sides(ONE_HOST)
    values = np.array([[guest.limit, -1, 5], [-guest.limit, 1, 7], [guest.limit - 1, 1, 0]])
    assert scores(guest, host, values, [np.ones((3, 3), dtype=bool)], [one_host(3)]) == [
        guest.limit + 4 - (2 * guest.limit + 1),  # one beyond the limit wraps round, as documented
        8 - guest.limit,
        guest.limit,
    ]


@pytest.mark.parametrize("beyond", [1, -1, 2**62, -(2**63)])
def test_a_number_beyond_the_limit_is_not_encrypted(beyond):
    guest, _ = sides(ONE_HOST)
    number = beyond + (guest.limit * (1 if beyond > 0 else -1) if abs(beyond) == 1 else 0)
    with pytest.raises(ParameterError, match=f"{abs(number):,} units was to be encrypted; this RLWE key holds 278,528"):
        guest.encrypt(np.array([[0, number]]))


def test_more_samples_than_slots_are_refused_on_both_sides():
    guest, host = sides(ONE_HOST)
    assert guest.rows_per_message(900) == N // 4 and sides(TWO_HOSTS)[0].rows_per_message(900) == N
    with pytest.raises(ParameterError, match="8,193 people in one message; this RLWE key takes 1 to 8,192"):
        guest.encrypt(np.zeros((N + 1, 1), dtype=np.int64))
    with pytest.raises(ParameterError, match="Send fewer"):
        host.start_fold(np.ones((N + 1, 1), dtype=bool), one_host(1))


def test_pieces_are_whole_ciphertexts_of_bounded_size_and_cover_every_entry():
    guest, _ = sides(ONE_HOST)
    assert guest.pieces(5, 900) == [range(900)]
    assert guest.pieces(1, 0) == [range(0)]
    for n, m in ((5000, 700), (900, 4000)):
        pieces = guest.pieces(n, m)
        assert [e for piece in pieces for e in piece] == list(range(m))
        assert len(pieces) > 1 and all(piece.start % (N // n) == 0 for piece in pieces)
        assert all(-(-len(p) // (N // n)) * ring(ONE_HOST).seeded_width <= layout.PIECE_BYTES for p in pieces)


def test_a_batch_in_several_pieces_gives_the_same_integers(monkeypatch):
    monkeypatch.setattr(layout, "PIECE_BYTES", 900_000)
    draw = np.random.default_rng(8)
    guest, _ = sides(TWO_HOSTS)
    assert len(guest.pieces(5000, 11)) == 3
    check(TWO_HOSTS, 5000, draw.integers(0, 3, (11, 2)), draw)
    check(TWO_HOSTS, 1000, draw.integers(0, 3, (70, 2)), draw)


def test_a_batch_without_entries_gives_zeros():
    guest, host = sides(ONE_HOST)
    plan = FoldPlan((), (), 1, (), 0, 1)
    assert scores(guest, host, np.zeros((3, 0), dtype=np.int64), [np.ones((3, 0), dtype=bool)], [plan]) == [0, 0, 0]


def test_encryption_sends_a_seed_in_place_of_half_the_ciphertext():
    guest, _ = sides(ONE_HOST)
    of, values = ring(ONE_HOST), np.array([[1, 2, 3]])
    blobs = [guest.encrypt(values) for _ in range(2)]
    assert len(blobs[0]) == of.seeded_width < 1.01 * (N * 2 * 8)
    halves = [[read_fresh(of, blob)[2 * N + i] for i in range(64)] for blob in (*blobs, blobs[0])]
    assert halves[0] == halves[2] and not set(halves[0]) & set(halves[1])


def test_a_reply_shares_nothing_with_its_input_nor_with_another_reply():
    guest, host = sides(ONE_HOST)
    of, n = ring(ONE_HOST), 3
    pieces = send(guest, np.array([[5, 0, 7], [1, 2, 3], [-4, 4, 4]]))
    keep = np.array([[True, False, True]] * 3)
    replies = [of.ciphertext(through(host, pieces, keep, one_host(3))[0], of.last) for _ in range(2)]
    for half in (0, N):
        seen = [{reply[half + i] for i in range(100)} for reply in replies]
        assert seen[0].isdisjoint(seen[1])
    slots = []
    for reply in replies:
        plain = seal.Plaintext()
        guest._decryptor.decrypt(reply, plain)
        slots.append(np.array(of.encoder.decode_int64(plain)))
    assert (slots[0] == slots[1]).mean() < 0.01
    sums = [s[: N // n * n].reshape(-1, n).sum(axis=0) % PARAMETERS[ONE_HOST].plain_modulus for s in slots]
    assert sums[0].tolist() == sums[1].tolist() == [12, 4, 0]


@pytest.mark.parametrize("n", [1, 3, 2731, 5000, N])
def test_mask_slots_of_a_sample_sum_to_zero_and_all_others_are_random(n):
    of = ring(ONE_HOST)
    t, blocks = of.parameters.plain_modulus, N // n
    first, second = layout.block_mask(of, n), layout.block_mask(of, n)
    assert first.min() >= 0 and first.max() < t
    assert not (first[: blocks * n].reshape(blocks, n).sum(axis=0) % t).any()
    free = np.r_[: (blocks - 1) * n if blocks > 1 else 0, blocks * n : N]
    assert len(free) == 0 or (first[free] == second[free]).mean() < 0.01
    assert len(free) < 1000 or abs(first[free].mean() / t - 0.5) < 0.05


def test_an_intermediate_host_refreshes_what_it_computed_and_passes_the_rest_on():
    guest, host = sides(TWO_HOSTS)
    of, n = ring(TWO_HOSTS), 5000
    conditions = np.array([[1, 1], [0, 2], [2, 3]])
    first, _ = chain(conditions)
    pieces = send(guest, np.ones((n, 3), dtype=np.int64))
    keep = np.ones((n, 3), dtype=bool)
    keep[:, 2] = False
    sent = [read_fresh(of, pieces[0][i * of.seeded_width :][: of.seeded_width]) for i in range(3)]
    outputs = [through(host, pieces, keep, first)[0] for _ in range(2)]
    got = [[of.ciphertext(o[i * of.full_width :][: of.full_width], of.first) for i in range(3)] for o in outputs]
    at = {int(e): int(first.target[e]) for e in range(3)}
    for e, same in ((0, False), (1, True), (2, False)):
        for half in (0, 3 * N):
            coefficients = [{c[half + i] for i in range(50)} for c in (sent[e], got[0][at[e]], got[1][at[e]])]
            assert (coefficients[0] == coefficients[1]) is same
            assert (coefficients[1] == coefficients[2]) is same


def budget_before_flooding(name, hosts, n, m):
    guest, host = sides(name)
    draw = np.random.default_rng(hosts)
    plans = chain(draw.integers(1, 4, (m, hosts)))
    pieces = send(guest, draw.integers(-guest.limit, guest.limit + 1, (n, m)))
    for keep, plan in zip(masks(plans, n, draw), plans, strict=True):
        fold = host.start_fold(keep, plan)
        for piece in pieces:
            fold.add(piece)
        if not plan.last:
            pieces = list(fold.finish())
    return guest.noise_budget(fold._sums[0])


@pytest.mark.parametrize(
    ("name", "hosts", "n", "m"),
    [
        (ONE_HOST, 1, 8192, 60),
        (ONE_HOST, 1, 5, 900),
        (TWO_HOSTS, 2, 8192, 12),
        (TWO_HOSTS, 2, 5, 900),
        (THREE_HOSTS, 3, 5, 900),
        (LARGE, 3, 5, 900),
        (LARGEST, 5, 5, 900),
    ],
)
def test_measured_noise_is_below_the_bound_and_40_bits_below_the_flood(name, hosts, n, m):
    guest, host = sides(name)
    parameters = PARAMETERS[name]
    q_bits = math.log2(math.prod(parameters.moduli[:-1]))
    before, flooded = budget_before_flooding(name, hosts, n, m), guest.noise_budget(host.floods.take(1)[0])
    noise = q_bits - 1 - before - math.log2(parameters.plain_modulus)  # bits of E
    flood = q_bits - 1 - flooded - math.log2(parameters.plain_modulus)
    assert noise <= math.log2(parameters.noise(hosts, m)) + 1
    assert flood >= math.log2(parameters.flood) - 1
    assert flood - noise >= MARGIN_BITS + math.log2(parameters.degree)


@pytest.mark.parametrize("name", [ONE_HOST, TWO_HOSTS, LARGE])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_flood_is_still_decrypted(name, sign, monkeypatch):
    guest, host = sides(name)
    parameters = PARAMETERS[name]
    extreme = [sign * (parameters.flood + parameters.noise_allowed // 2)] * parameters.degree
    scaled = [parameters.plain_modulus * f for f in extreme]
    residues = b"".join(np.array([f % m for f in scaled], dtype="<u8").tobytes() for m in parameters.moduli[:-1])
    monkeypatch.setattr(host.floods, "take", lambda count: [host.zeros.make(residues)])
    values = np.array([[3, -4]])
    assert scores(guest, host, values, [np.array([[True, True]])], [one_host(2)]) == [-1]


def test_flooding_is_uniform_over_its_whole_width():
    _, host = sides(ONE_HOST)
    parameters = host.ring.parameters
    digits = flooding.drawn(*parameters.flood_range, parameters.degree)
    numbers = [sum(int(d) << (32 * i) for i, d in enumerate(column)) for column in zip(*digits, strict=True)]
    assert min(numbers) >= 0 and max(numbers) < 2 * parameters.flood
    drawn = np.array([number / parameters.flood - 1 for number in numbers])
    assert drawn.min() < -0.99 and drawn.max() > 0.99
    assert abs(drawn.mean()) < 0.03 and abs((drawn**2).mean() - 1 / 3) < 0.03


@pytest.mark.parametrize("name", [ONE_HOST, LARGEST])
def test_floods_have_the_residues_of_one_integer(name, monkeypatch):
    parameters, kept = PARAMETERS[name], []
    monkeypatch.setattr(flooding, "drawn", lambda *of, drawn=flooding.drawn: kept.append(drawn(*of)) or kept[-1])
    residues = np.frombuffer(flooding.flood(parameters), dtype="<u8").reshape(-1, parameters.degree)
    for i in range(0, parameters.degree, 101):
        f = sum(int(d[i]) << (32 * k) for k, d in enumerate(kept[0])) - parameters.flood
        assert residues[:, i].tolist() == [parameters.plain_modulus * f % m for m in parameters.moduli[:-1]]


def test_every_parameter_set_has_128_bits_against_quantum_computers_and_40_bits_of_margin():
    for parameters in PARAMETERS.values():
        total = math.prod(parameters.moduli).bit_length()
        assert total <= util.seal_he_std_parms_128_tq(parameters.degree)
        assert ring(parameters.name).context.key_context_data().qualifiers().sec_level == seal.SEC_LEVEL_TYPE.TC128
        assert parameters.plain_modulus % (2 * parameters.degree) == 1
        most = parameters.max_noise
        assert parameters.degree * parameters.noise_allowed << MARGIN_BITS <= 2 * parameters.flood
        assert most - most // (1 << 30) <= parameters.flood + parameters.noise_allowed <= most


def test_the_cheapest_parameters_that_hold_are_chosen():
    assert parameters_for(1, 1500).name == ONE_HOST
    assert parameters_for(1, 6000).name == TWO_HOSTS
    assert parameters_for(1, 1500, largest=300_000).name == TWO_HOSTS
    assert parameters_for(2, 1500).name == TWO_HOSTS
    assert parameters_for(3, 1500).name == THREE_HOSTS
    assert parameters_for(3, 1500, largest=100_000).name == LARGE
    assert parameters_for(4, 1500).name == LARGE
    assert parameters_for(5, 10_000).name == LARGEST
    for hosts, largest in ((6, 0), (1, 2**24)):
        with pytest.raises(ParameterError, match="score with paillier"):
            parameters_for(hosts, 100, largest)


def test_a_host_refuses_a_key_too_small_to_hide_its_part():
    _, host = sides(ONE_HOST)
    for plan in (one_host(6000), chain(np.ones((1, 2), dtype=int))[0]):
        with pytest.raises(SecurityError, match="Offer a key of a larger parameter set"):
            host.start_fold(np.ones((N, len(plan.is_own)), dtype=bool), plan)


def test_a_piece_of_another_length_is_refused_before_it_is_read():
    guest, host = sides(ONE_HOST)
    width = ring(ONE_HOST).seeded_width
    fold = host.start_fold(np.ones((1, 2), dtype=bool), one_host(2))
    with pytest.raises(SecurityError, match=f"1 item of {width:,} bytes were expected, got 5 bytes"):
        fold.add(bytes(5))
    with pytest.raises(SecurityError, match=r"item of .* expected"):
        guest.decrypt(bytes(5), 1)


def test_a_batch_with_a_piece_too_many_or_too_few_is_refused():
    guest, host = sides(ONE_HOST)
    fold = host.start_fold(np.ones((1, 2), dtype=bool), one_host(2))
    with pytest.raises(SecurityError, match="early"):
        list(fold.finish())
    piece = guest.encrypt(np.array([[1, 2]]))
    fold.add(piece)
    with pytest.raises(SecurityError, match="after the last one of its batch"):
        fold.add(piece)


def test_a_damaged_ciphertext_is_refused():
    guest, host = sides(ONE_HOST)
    good = guest.encrypt(np.array([[1]]))
    last = ring(ONE_HOST).parameters.moduli[1]
    bad = [bytes(len(good)), b"\xff" * len(good), good[:-8] + last.to_bytes(8, "little")]
    bad.append(good[: len(good) // 2].ljust(len(good), b"\0"))
    for blob in bad:
        with pytest.raises(SecurityError, match=r"damaged|refused"):
            host.start_fold(np.ones((1, 1), dtype=bool), one_host(1)).add(blob)
    good = through(host, [good], np.ones((1, 1), dtype=bool), one_host(1))[0]
    bad = [bytes(len(good)), b"\xff" * len(good), good[:-1] + b"\1", good[1:] + b"\0"]
    for at in (5, 9, 40, 61, 77):  # compression, length, parameters, form, size
        bad.append(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
    bad.append(good[: len(good) // 2].ljust(len(good), b"\0"))
    for blob in bad:
        with pytest.raises(SecurityError, match=r"damaged|refused"):
            guest.decrypt(blob, 1)


def test_a_ciphertext_that_hides_nothing_is_refused():
    _, host = sides(ONE_HOST)
    of = host.ring
    bare = ring_module.written(of.ciphertext_of(bytes(4 * N * 8)))
    with pytest.raises(SecurityError, match="another form"):
        of.ciphertext(of.pad(bare, of.full_width), of.first)


def test_a_ciphertext_of_another_level_or_parameter_set_is_refused():
    guest, host = sides(ONE_HOST)
    reply = through(host, send(guest, np.array([[1]])), np.ones((1, 1), dtype=bool), one_host(1))[0]
    with pytest.raises(SecurityError, match="another form"):
        ring(ONE_HOST).ciphertext(reply, ring(ONE_HOST).first)
    guest, host = sides(TWO_HOSTS)
    other = through(host, send(guest, np.array([[1]])), np.ones((1, 1), dtype=bool), one_host(1))[0]
    for level in (ring(ONE_HOST).first, ring(ONE_HOST).last):
        with pytest.raises(SecurityError, match="refused"):
            ring(ONE_HOST).ciphertext(other, level)


@pytest.mark.parametrize("name", [b"", b"n4096-q109-t65537", b"\xff\xfe", ONE_HOST.encode()[:-1]])
def test_an_unknown_parameter_set_is_refused(name):
    with pytest.raises(SecurityError, match="is unknown; expected one of"):
        RlwePublicSide(name + b"\n" + secret_key(ONE_HOST).public)


def test_a_public_key_that_is_none_is_refused():
    of, good = ring(ONE_HOST), secret_key(ONE_HOST).public
    weak = seal.Ciphertext(of.context, of.context.key_parms_id(), 2)
    bad = {
        "of another set": secret_key(TWO_HOSTS).public,
        "a ciphertext": RlweKeySide(secret_key(ONE_HOST)).encrypt(np.array([[1]])),
        "cut off": good[:-100],
        "empty": b"",
        "too long": good.ljust(of.key_width + 1, b"\0"),
        "nothing random": ring_module.written(weak),
    }
    for key in bad.values():
        with pytest.raises(SecurityError, match=r"refused|damaged|at most"):
            RlwePublicSide(ONE_HOST.encode() + b"\n" + key)


def test_a_key_survives_its_file():
    key = secret_key(ONE_HOST)
    numbers = key.to_numbers()
    assert all(isinstance(v, str) for v in numbers.values())
    assert RlweSecretKey.from_numbers(numbers) == key
    other = RlweSecretKey.generate(PARAMETERS[ONE_HOST]).to_numbers()
    damaged = (
        {},
        numbers | {"secret": "?"},
        numbers | {"secret": numbers["secret"][:400]},
        numbers | {"parameters": "x"},
    )
    for wrong in (*damaged, numbers | {"public": other["public"]}):
        with pytest.raises(SecurityError, match="delete it, and a new key is made"):
            RlweSecretKey.from_numbers(wrong)


def test_a_worker_rebuilds_the_key_side_from_its_payload():
    guest, host = sides(ONE_HOST)
    worker = RlweKeySide.from_worker_payload(guest.worker_payload())
    assert worker.offer() == guest.offer()
    pieces = send(worker, np.array([[4, -9]]))
    assert guest.decrypt(through(host, pieces, np.ones((1, 2), dtype=bool), one_host(2))[0], 1) == [-5]
    with pytest.raises(SecurityError, match="another cipher"):
        RlweKeySide.from_worker_payload({"scheme": "rlwe", "parameters": ONE_HOST, "secret": "p", "public": "q"})


def test_no_side_shows_its_key():
    key = secret_key(ONE_HOST)
    shown = repr(key) + repr(RlweKeySide(key)) + repr(RlwePublicSide(RlweKeySide(key).offer()))
    assert ONE_HOST in shown and len(shown) < 500 and repr(key.secret)[2:40] not in shown


def test_a_system_without_memory_files_uses_private_temporary_ones(monkeypatch):
    monkeypatch.delattr("os.memfd_create", raising=False)
    parameters = parameters_for(1, 10)
    side = RlweKeySide(RlweSecretKey.generate(parameters))
    host = RlwePublicSide(side.offer())
    folding = host.start_fold(np.ones((2, 3), dtype=bool), FoldPlan((0, 0, 0), (True,) * 3, 1, (0, 1, 2), 0, 1))
    folding.add(side.encrypt(np.array([[1, 2, 3], [-4, 5, -6]])))
    (reply,) = folding.finish()
    assert side.decrypt(reply, 2) == [6, -5]
