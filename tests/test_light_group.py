"""The light group is a group of ristretto255's order: alignments come out as plain intersections, and what is no element is refused."""

import numpy as np
import pytest
from light_group import element, light_group

from backend.crypto import ristretto
from backend.errors import SecurityError
from backend.protocols.alignment import dh

SCALARS = ristretto.random_scalars(3)


def test_an_alignment_finds_what_plain_sets_have_in_common():
    ids, others = [f"id{i}" for i in range(40)], [f"id{i}" for i in range(20, 90)]
    with light_group():
        host, guest = dh.DhHost(others), dh.DhGuest(dh.BlindedIds("bank", ids))
        guest.opened(host.records, host.open(len(ids), guest.open()))
        for piece in guest.pieces():
            guest.take(host.take(piece))
        assert np.flatnonzero(guest.positions() >= 0).tolist() == list(range(20, 40))


def test_multiples_sums_and_inverses_go_together_as_in_the_group_itself():
    def same():
        a, b, c = SCALARS
        point = ristretto.hash_to_group(b"x", b"domain")
        times = ristretto.multiply
        assert times(a, times(b, point)) == times(b, times(a, point)) != point
        assert times(ristretto.invert([c])[0], times(c, point)) == point
        assert times(a, ristretto.add(point, times(b, point))) == ristretto.add(
            times(a, point), times(a, times(b, point))
        )
        assert ristretto.subtract(ristretto.add(point, ristretto.multiply_base(a)), point) == ristretto.multiply_base(a)

    same()
    with light_group():
        same()


@pytest.mark.parametrize("wrong", [bytes(32), bytes(31), b"\xff" * 32, element(7)[:-1] + b"\xff"])
def test_what_is_no_element_is_refused(wrong):
    for refused in ((SCALARS[0], wrong), (wrong[:31], element(7)), (bytes(32), element(7))):
        with light_group(), pytest.raises(SecurityError):
            ristretto.multiply(*refused)
