"""Commands on short keys and a light group."""

from collections.abc import Iterator

import pytest
from light_group import light_group
from light_obfuscators import light_obfuscators
from short_keys import shorter_keys


@pytest.fixture(scope="module", autouse=True)
def _short_keys() -> Iterator[None]:
    with shorter_keys(), light_group(), light_obfuscators():
        yield
