"""What a garbled Bloom filter as printed loses, and what ids hidden on raw X25519 show; neither happens in what is shipped."""

import pytest
from gmpy2 import mpz

from backend.research.attacks import raw_curve


def test_insertion_as_printed_loses_most_ids_and_ours_none(measured):
    outcome = measured("T2")
    assert outcome.off.rate > 0.9
    assert outcome.on.right == 0
    assert 0.5 < outcome.rates["lost_3_hashes"] < outcome.rates["lost_8_hashes"] < outcome.rates["lost_32_hashes"]


def test_the_ladder_computes_the_vector_of_rfc_7748():
    scalar = 31029842492115040904895560451863089656472772604678260265531221036453811406496
    u = mpz(34426434033919594451155107781188821651316167215306631574996226621102155684838)
    expected = bytes.fromhex("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552")
    assert int(raw_curve.ladder(scalar, u)).to_bytes(32, "little") == expected


def test_eight_times_a_point_of_order_eight_is_nothing():
    assert raw_curve.ladder(8, raw_curve.ORDER_8) == 0
    assert raw_curve.ladder(4, raw_curve.ORDER_8) == 0  # the point of order 2
    assert raw_curve.ladder(9, raw_curve.ORDER_8) == raw_curve.ORDER_8


@pytest.mark.parametrize("u", [4, 5, 9, 123456789])
def test_a_multiple_stays_on_the_curve_or_on_its_twist(u):
    assert raw_curve.on_curve(mpz(u)) == raw_curve.on_curve(raw_curve.ladder(12345678 * 8, mpz(u)))


def test_small_order_reads_a_scalar_that_is_not_clamped_and_our_group_refuses_its_identity(measured):
    assert measured("T3").rates == {"small_order": 1.0, "identity_accepted": 0.0}
