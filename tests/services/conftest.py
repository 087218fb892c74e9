"""Services on a light group and light obfuscators."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from light_group import light_group
from light_obfuscators import light_obfuscators

# as it is shipped: trainings and scores over links, and processes of their own
REAL = ("test_companies", "test_company_processes", "test_host_operation")
POOLS = ("test_protocol_comparison",)  # of true obfuscators


@pytest.fixture(scope="module", autouse=True)
def _light_crypto(request: pytest.FixtureRequest) -> Iterator[None]:
    """Aligning and encrypting would take most of all time."""
    if request.path.stem in REAL:
        yield
        return
    with light_group(), nullcontext() if request.path.stem in POOLS else light_obfuscators():
        yield
