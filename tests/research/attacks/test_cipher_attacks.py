"""Attacks on replies, chains, keys and numbers under Paillier: each succeeds without its defence and fails against what is shipped."""

from math import prod

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz

from backend.crypto.paillier.key_certificate import challenges
from backend.crypto.paillier.keys import PaillierPublicKey
from backend.crypto.registry import open_offer
from backend.errors import SecurityError
from backend.research.attacks.bad_key import forged, leaky_key
from backend.research.attacks.keys import element_of_order, fold_alone, honest_keys, host_of, logarithm
from backend.research.attacks.phe_leaks import read_kept
from backend.research.attacks.unrefreshed_reply import SmoothKey


@pytest.mark.parametrize("id_", ["A1", "A2", "A3", "A4", "A9", "T1", "T3"])
def test_the_attack_reads_everything_without_the_defence_and_guesses_with_it(measured, id_):
    outcome = measured(id_)
    assert outcome.off.rate == 1.0 and outcome.off.beats(outcome.chance)
    assert not outcome.on.beats(outcome.chance)  # wrong once in 10^9 runs: keys are drawn again


def test_a_guest_with_an_honest_key_reads_paths_only_from_a_reply_that_is_not_refreshed(measured):
    assert measured("A1").rates == {"honest_key_off": 1.0, "honest_key_on": 0.0}


def test_a_smooth_key_gives_the_logarithm_of_any_power():
    smooth = SmoothKey.draw(np.random.default_rng(3), 256)
    for exponent in (0, 1, 2**150 + 12345):
        power = gmpy2.powmod(smooth.generator, smooth.key.n * exponent, smooth.key.n)
        assert smooth.logarithm(power) == exponent
    assert smooth.key.bits == 256


def test_a_key_whose_factors_divide_each_other_minus_one_is_read_through_where_no_certificate_is_asked_for(measured):
    outcome = measured("A2-key")
    assert outcome.off.rate == 1.0 and outcome.off.trials >= 150
    assert not outcome.on.beats(outcome.chance)  # wrong once in 10^9 runs: keys are drawn again


def test_no_certificate_of_a_leaky_key_can_be_made_though_its_owner_knows_every_factor(key_bits):
    small, q = leaky_key(np.random.default_rng(4), key_bits)
    n = prod(small, start=q)
    certificate, width = forged(small, q), (n.bit_length() + 7) // 8
    roots = [int.from_bytes(certificate[i : i + width], "big") for i in range(0, len(certificate), width)]
    assert [gmpy2.powmod(root, n, n) for root in roots] != challenges(n)
    with pytest.raises(SecurityError, match="certificate is wrong"):
        open_offer("paillier", int(n).to_bytes(width, "big") + certificate, 512, 0, None, None)


def test_the_leaky_key_shares_factors_with_its_own_totient_and_looks_like_any_other(key_bits):
    small, q = leaky_key(np.random.default_rng(4), key_bits)
    assert gmpy2.is_prime(q) and all((q - 1) % p == 0 and p > 1 << 16 for p in small)
    assert host_of(PaillierPublicKey(prod(small, start=q))).bits >= key_bits


def test_a_bad_ciphertext_is_refused_by_the_shipped_host(key_bits):
    keys = honest_keys(key_bits)
    bad = keys.guest.encrypt_numbers([5])[0] * keys.secret.p % keys.host.key.n2
    with pytest.raises(SecurityError, match="shares a factor"):
        fold_alone(keys.host, [bad], np.array([True]))


def test_a_toy_key_is_not_accepted(measured):
    assert measured("A9").rates["toy_key_accepted"] == 0.0


def test_logarithms_are_found_in_a_subgroup_of_small_order():
    prime = mpz(30 * 257 * 263 + 1)
    g = element_of_order(np.random.default_rng(0), prime, [257, 263])
    for exponent in (0, 1, 255, 256, 40_000):
        assert logarithm(g, gmpy2.powmod(g, exponent, prime), prime, 16) == exponent


def test_what_a_host_kept_shows_in_products_of_phe():
    assert read_kept([mpz(7), mpz(8)], [mpz(1), mpz(8)], mpz(15)) == [False, True]
