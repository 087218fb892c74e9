"""Protocols on a light group and light obfuscators: how ids are aligned and ciphertexts made fresh has tests of its own."""

from collections.abc import Iterator

import pytest
from light_group import light_group
from light_obfuscators import light_obfuscators

REAL = ("alignment/", "test_boundary.py", "test_lanes.py")  # as it is shipped


@pytest.fixture(scope="module", autouse=True)
def _light_crypto(request: pytest.FixtureRequest) -> Iterator[None]:
    """What is tested here is what parties do with them."""
    if any(real in request.path.as_posix() for real in REAL):
        yield
        return
    with light_group(), light_obfuscators():
        yield
