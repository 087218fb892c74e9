"""The certificate of a key: honest keys have one, keys whose n shares a factor with φ(n) have none, and it fits one key only."""

import gmpy2
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.crypto.paillier.key_certificate import (
    FACTORS_BELOW,
    ROOTS,
    SOUNDNESS,
    certify,
    challenges,
    check,
    split,
)
from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.registry import open_offer
from backend.errors import SecurityError


def opened(offer):
    return open_offer("paillier", offer, 512, 0, None, None)[0]


@settings(max_examples=10, deadline=None)
@given(st.integers(48, 200))
def test_every_honest_key_proves_its_form(half):
    key = PaillierSecretKey.generate(2 * half, floor=96)
    check(key.public.n, certify(key.p, key.q))


def test_as_many_roots_as_the_soundness_asks_for_come_from_n_alone(secret_key):
    n = secret_key.public.n
    assert ROOTS * FACTORS_BELOW >= SOUNDNESS == 128
    assert challenges(n) == challenges(mpz(int(n))) and len(set(challenges(n))) == ROOTS
    assert not set(challenges(n)) & set(challenges(n + 2))


def test_a_host_opens_an_offer_and_reads_the_same_key(key_side):
    offer = key_side.offer()
    n, certificate = split(offer)
    assert n == key_side.public.to_bytes() and len(certificate) == ROOTS * len(n)
    assert opened(offer).key == key_side.public
    assert key_side.offer() == offer  # made once


def test_a_key_without_a_certificate_is_refused(key_side):
    with pytest.raises(SecurityError, match="certificate of 0 bytes"):
        opened(key_side.public.to_bytes())


def test_another_keys_certificate_is_refused(key_side):
    other = PaillierKeySide(PaillierSecretKey.generate(512, floor=512))
    with pytest.raises(SecurityError, match="certificate is wrong"):
        opened(key_side.public.to_bytes() + split(other.offer())[1])


@pytest.mark.parametrize("place", range(ROOTS))
def test_one_wrong_root_is_enough(key_side, place):
    n, certificate = split(key_side.offer())
    wrong = bytearray(certificate)
    wrong[(place + 1) * len(n) - 1] ^= 1
    with pytest.raises(SecurityError, match="certificate is wrong"):
        opened(n + bytes(wrong))


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_a_root_has_one_way_of_being_written(key_side, shift):
    """A root plus n is a root, too; only the one between 0 and n is taken."""
    n, certificate = split(key_side.offer())
    root = int.from_bytes(certificate[: len(n)], "big") + shift * int(key_side.public.n)
    fits = 0 < root < 1 << 8 * len(n)
    changed = (root if fits else 0).to_bytes(len(n), "big") + certificate[len(n) :]
    if shift == 0:
        check(key_side.public.n, changed)
        return
    with pytest.raises(SecurityError):
        check(key_side.public.n, changed)


def leaky():
    """q is 1 modulo p, so that p divides n and φ(n)."""
    p = gmpy2.next_prime(mpz(1) << 40)
    q = 2 * p + 1
    while not gmpy2.is_prime(q):
        q += 2 * p
    return p, q


def test_a_key_of_the_wrong_form_gets_no_certificate_even_from_its_owner():
    p, q = leaky()
    with pytest.raises(SecurityError, match="in common with its totient"):
        certify(p, q)
    with pytest.raises(SecurityError, match="in common with its totient"):
        certify(p, p)


def test_hardly_any_challenge_of_such_a_key_has_a_root():
    p, q = leaky()
    has_root = [gmpy2.powmod(c, (q - 1) // p, q) == 1 for c in challenges(p * q)]
    assert not any(has_root)  # right with a probability of all but 8 in 2^40
