"""Fresh encryptions of zero: exactly the public key times v, and noise; never the same twice; no noisier than is counted."""

import numpy as np
import pytest

from backend.crypto.rlwe import seal, zeros
from backend.crypto.rlwe.parameters import PARAMETERS, RlweParameters, short_enough, zero_noise
from backend.crypto.rlwe.public import RlwePublicSide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.crypto.rlwe.sum_parameters import sum_parameters, sum_sets

LONGEST = max(sum_sets().values(), key=lambda p: p.plain_modulus)
SETS = [PARAMETERS["n8192-q120-t557057"], sum_parameters(18_000), LONGEST, PARAMETERS["n16384-q240-t8257537"]]


def sides(parameters: RlweParameters):
    guest = RlweKeySide(RlweSecretKey.generate(parameters))
    return guest, RlwePublicSide(guest.offer())


def coefficients(of, ciphertext):
    """``(2, primes, N)``: c0 and c1 modulo every prime of q; the ciphertext is of no use afterwards."""
    of.evaluator.transform_from_ntt_inplace(ciphertext)
    shape = 2, len(of.parameters.data_bits), of.parameters.degree
    return np.array([ciphertext[i] for i in range(np.prod(shape))], dtype=np.uint64).reshape(shape)


def noise_of(guest, ciphertext):
    """Bits of the noise."""
    bits = sum(guest.parameters.data_bits) - 1 - np.log2(guest.parameters.plain_modulus)
    return bits - guest.noise_budget(ciphertext)


@pytest.mark.parametrize("parameters", SETS, ids=lambda p: p.name)
def test_it_is_an_encryption_of_zero_with_less_noise_than_is_counted(parameters):
    guest, host = sides(parameters)
    made, plain = host.zeros.make(), seal.Plaintext()
    guest._decryptor.decrypt(made, plain)
    assert plain.is_zero() and noise_of(guest, made) <= np.log2(zero_noise(parameters.degree)) + 1


def test_no_two_are_alike_in_either_half():
    _, host = sides(sum_parameters(100))
    first, second = (coefficients(host.ring, host.zeros.make()) for _ in range(2))
    assert (np.count_nonzero(first == second, axis=(1, 2)) < 10).all()


def test_what_is_kept_ready_is_used_once_and_is_of_its_key_alone():
    _, host = sides(sum_parameters(100))
    _, other = sides(sum_parameters(100))
    host.zeros.fill()
    assert (host.zeros.ready, other.zeros.ready) == (zeros.FRESH, 0)
    found = [coefficients(host.ring, host.zeros.make()) for _ in range(zeros.FRESH + 1)]
    assert host.zeros.ready == 0 and len({one.tobytes() for one in found}) == zeros.FRESH + 1
    host.zeros.fill()
    host.zeros.make(bytes(8 * host.bits * len(host.ring.parameters.data_bits)))
    assert host.zeros.ready == zeros.FRESH  # noise of the caller's own goes into none of them


def test_what_was_taken_is_made_again_where_a_host_keeps_some_ready(monkeypatch):
    monkeypatch.setattr(zeros, "QUIET_SECONDS", 0.0)
    guest, host = sides(sum_parameters(100))
    host.zeros.make()
    assert host.zeros._filling is None and host.zeros.ready == 0
    host.zeros.keep_ready()
    host.zeros.make()
    host.zeros._filling.join()
    assert host.zeros.ready == zeros.FRESH
    plain = seal.Plaintext()
    guest._decryptor.decrypt(host.zeros.make(), plain)
    host.zeros._filling.join()
    assert plain.is_zero() and host.zeros.ready == zeros.FRESH


def test_a_forked_process_uses_none_that_the_other_one_has_on_hand(monkeypatch):
    _, host = sides(sum_parameters(100))
    host.zeros.fill()
    monkeypatch.setattr(zeros.os, "getpid", lambda: -1)
    kept = list(host.zeros._ready)
    assert all(host.zeros.make() is not one for one in kept) and host.zeros.ready == 0


def test_it_is_the_key_times_v_and_nothing_is_lost_with_the_prime_set_aside(monkeypatch):
    guest, host = sides(sum_parameters(100))
    of, degree = host.ring, host.bits
    monkeypatch.setattr(zeros, "error", lambda count: np.zeros(count, dtype=np.int64))
    drawn = np.zeros((2, degree), dtype=np.int64)
    drawn[0, 0], drawn[1, 3] = 1, -1
    left = iter(drawn)
    monkeypatch.setattr(zeros, "ternary", lambda count: next(left))
    key, moved = (coefficients(of, host.zeros.make()) for _ in range(2))
    moduli = np.array(of.parameters.moduli[:-1], dtype=np.uint64)[:, None]
    # times -X³: X^N is -1
    wanted = np.concatenate([key[:, :, -3:], (moduli - key[:, :, :-3]) % moduli], axis=2)
    assert (moved == wanted).all()
    assert noise_of(guest, of.ciphertext_of(key.tobytes())) <= np.log2(21) + 1


def test_noise_stands_in_both_halves_times_t(monkeypatch):
    _, host = sides(LONGEST)
    one, kept = np.zeros(host.bits, dtype=np.int64), []
    one[0] = 1
    monkeypatch.setattr(zeros, "ternary", lambda count: one)
    monkeypatch.setattr(zeros, "error", lambda count, draw=zeros.error: kept.append(draw(count)) or kept[-1])
    found = [coefficients(host.ring, host.zeros.make()).astype(object) for _ in range(2)]
    for half in range(2):
        errors = kept[3 - half] - kept[1 - half]  # drawn for c1 first
        for i, modulus in enumerate(LONGEST.moduli[:-1]):
            wanted = [LONGEST.plain_modulus * int(e) % modulus for e in errors]
            assert ((found[1] - found[0])[half, i] % modulus).tolist() == wanted


def test_errors_are_as_seal_draws_them():
    drawn = zeros.error(200_000)
    assert np.abs(drawn).max() <= 21 and abs(drawn.mean()) < 0.06 and abs((drawn**2).mean() - 10.5) < 0.25


def test_a_third_of_v_is_each_of_its_values(monkeypatch):
    drawn = zeros.ternary(200_000)
    assert np.abs(np.bincount(drawn + 1) / len(drawn) - 1 / 3).max() < 0.01
    words = iter([bytes([255, 4, 255, 254]), bytes([255, 2]), bytes([7])])
    monkeypatch.setattr(zeros, "random_bytes", lambda count: next(words))
    assert zeros.ternary(4).tolist() == [0, 0, 1, 1]


def test_what_would_be_noisier_than_is_counted_is_drawn_again(monkeypatch):
    guest, host = sides(sum_parameters(100))
    loud, calls = np.ones(host.bits, dtype=np.int64), []
    draws = iter([loud, np.arange(host.bits) % 3 - 1])
    monkeypatch.setattr(zeros, "ternary", lambda count: calls.append(count) or next(draws))
    assert noise_of(guest, host.zeros.make()) <= np.log2(zero_noise(host.bits)) + 1
    assert len(calls) == 2


@pytest.mark.parametrize("degree", [8192, 16384])
def test_hardly_any_draw_is_noisier(degree):
    # means: two thirds of v are not 0, and |e₁| is 2.59; ten standard deviations above
    nonzero, absolute = 2 * degree / 3 + 10 * (2 * degree / 9) ** 0.5, 2.59 * degree + 10 * (3.8 * degree) ** 0.5
    assert short_enough(degree, int(nonzero), int(absolute)) and not short_enough(degree, degree, 0)
