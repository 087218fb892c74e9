"""RIAC computes what App. C says, and protects nothing (docs/attacks.md T1)."""

import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import ParameterError
from backend.research.attacks import riac_labels
from backend.research.riac import RiacKey, add

KEY = RiacKey.generate()


def test_a_ciphertext_is_that_of_equations_5_to_7(monkeypatch):
    key = RiacKey((mpz(101), mpz(10007)), (mpz(3), mpz(5)), r=mpz(7), s=mpz(11))
    monkeypatch.setattr("backend.research.riac.secrets.randbelow", lambda n: 13)  # y
    # h = 77; c1 = 13·11 mod 101 = 42, c2 = 1 + 13·77 mod 101 = 93; times 3 mod 101: 25, 77; times 5: 125, 385
    assert key.encrypt([1]) == [(125, 385)]
    assert key.decrypt([(mpz(125), mpz(385))]) == [1]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-(2**200), 2**200), min_size=1, max_size=20))
def test_sums_of_ciphertexts_are_ciphertexts_of_sums(values):
    pairs = KEY.encrypt(values)
    assert KEY.decrypt(pairs) == values
    total = pairs[0]
    for pair in pairs[1:]:
        total = add(total, pair, KEY.modulus)
    assert KEY.decrypt([total]) == [sum(values)]


def test_a_key_without_room_for_its_rounds_is_not_made():
    with pytest.raises(ParameterError, match="at least"):
        RiacKey.generate(bits=400, rounds=5)


def test_a_key_never_shows_its_secrets():
    assert str(KEY.r) not in repr(KEY) and str(KEY.moduli[0]) not in repr(KEY)
    assert "BROKEN" in RiacKey.__doc__


def test_known_plaintexts_give_the_others_away(measured):
    assert measured("T1").rates["known_plaintext"] == 1.0


def test_a_lattice_of_riac_has_the_labels_as_its_shortest_vector():
    labels = [1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1]
    basis = riac_labels.hidden_lattice([*zip(*KEY.encrypt(labels), strict=True)], KEY.modulus)
    assert len(basis) == riac_labels.RANK
    assert basis[0] in (labels, [-x for x in labels])
