"""Products of powers equal those taken one by one, and Paillier's weighted sums are sums of the plaintexts."""

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.crypto.paillier.keys import PaillierPublicKey
from backend.crypto.paillier.scheme import PaillierPublicSide
from backend.crypto.paillier.weighted_products import weighted_product
from backend.crypto.plain import PlainKeySide, PlainPublicSide

MODULUS = mpz(10007)
EXPONENTS = st.integers(-(1 << 40), 1 << 40)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 10006), st.one_of(st.integers(-3, 3), EXPONENTS)), max_size=60))
def test_a_product_of_powers_is_that_of_the_powers_one_by_one(pairs):
    wanted = mpz(1)
    for base, e in pairs:
        wanted = wanted * gmpy2.powmod(base, e, MODULUS) % MODULUS
    assert weighted_product([mpz(b) for b, _ in pairs], [e for _, e in pairs], MODULUS) == wanted


def test_two_powers_worked_out_by_hand():
    assert weighted_product([mpz(2), mpz(3)], [5, -2], mpz(11)) == 32 * gmpy2.invert(9, 11) % 11


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(-(1 << 60), 1 << 60), EXPONENTS), max_size=8))
def test_weighted_sums_joined_sums_and_what_is_sent_are_those_of_plaintext(key_side, public_side, pairs):
    values, weights = [v for v, _ in pairs], [w for _, w in pairs]
    half = list(range(0, len(pairs), 2))
    sums = [(list(range(len(pairs))), weights), (half, [weights[i] for i in half]), ([], [])]
    plain = PlainPublicSide()
    terms = plain.load_terms(PlainKeySide().encrypt(np.array([values], dtype=object)), len(pairs))
    wanted = plain.weighted_sums(terms, sums)
    assert wanted[0] == sum(v * w for v, w in pairs) and wanted[2] == 0
    terms_enc = public_side.load_terms(key_side.encrypt(np.array([values], dtype=object)), len(pairs))
    sums_enc = public_side.weighted_sums(terms_enc, sums)
    assert key_side.decrypt_numbers(sums_enc) == wanted
    assert key_side.decrypt(public_side.refreshed(sums_enc), 3) == wanted
    assert key_side.decrypt_numbers([public_side.joined(sums_enc, 130)]) == [plain.joined(wanted, 130)]
    assert plain.joined([5, -1], 4) == 5 - 16


def test_what_is_sent_shows_nothing_of_how_it_was_computed(key_side, public_side):
    term_enc = public_side.load_terms(key_side.encrypt(np.array([[7]])), 1)
    for sums in ([([0], [1])], [([0], [0])], [([], [])]):  # the same number, no number: c^1 = c, c^0 = 1
        (sent_enc,) = public_side.key.load(public_side.refreshed(public_side.weighted_sums(term_enc, sums)), 1)
        assert sent_enc not in (term_enc[0], 1)


@pytest.fixture(scope="module")
def vectors(shared_vectors):
    """Numbers by name, a test each: N, CIPHERTEXT1, PLAINTEXT2, and CIPHERTEXT, the product."""
    text = (shared_vectors / "paillier-mult.txt").read_text()
    tests = [block for block in text.split("TEST = ") if block.strip()]
    lines = [[line.split(" = ") for line in block.splitlines()[1:] if " = " in line] for block in tests]
    return [{name: mpz(value.strip().rstrip(","), 16) for name, value in found} for found in lines]


def test_products_with_a_plaintext_are_those_of_the_public_vectors(vectors):
    assert len(vectors) > 3
    for v in vectors:
        side = PaillierPublicSide(PaillierPublicKey(v["N"]))
        found = side.weighted_sums([v["CIPHERTEXT1"]], [([0], [int(v["PLAINTEXT2"])])])
        assert found == [v["CIPHERTEXT"]]
