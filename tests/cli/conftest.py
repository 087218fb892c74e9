"""Commands on short keys."""

from collections.abc import Iterator

import pytest
from short_keys import shorter_keys


@pytest.fixture(scope="module", autouse=True)
def _short_keys() -> Iterator[None]:
    with shorter_keys():
        yield
