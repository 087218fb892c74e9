"""Services on a light group."""

from collections.abc import Iterator

import pytest
from light_group import light_group

# ristretto255 itself: a training, a score and processes of their own
REAL = ("test_service", "test_companies", "test_company_processes", "test_host_operation")


@pytest.fixture(scope="module", autouse=True)
def _light_group(request: pytest.FixtureRequest) -> Iterator[None]:
    """Aligning would take half of all time."""
    if request.path.stem in REAL:
        yield
        return
    with light_group():
        yield
