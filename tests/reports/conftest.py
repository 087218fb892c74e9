"""The service on a home with the demo's parties and one model."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from light_obfuscators import light_obfuscators

from backend.services import Glassleaf


@pytest.fixture(scope="module", autouse=True)
def _light_crypto(quick_group: None) -> Iterator[None]:
    """Reports are of models, however their ids were aligned and whatever was encrypted."""
    with light_obfuscators():
        yield


@pytest.fixture(scope="module")
def glassleaf(home: Path) -> Iterator[Glassleaf]:
    service = Glassleaf(home, pools=False, actor="ana")
    yield service
    service.close()
