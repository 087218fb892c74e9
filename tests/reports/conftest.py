"""The service on a home with the demo's parties and one model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.services import Glassleaf


@pytest.fixture(scope="module")
def glassleaf(home: Path) -> Iterator[Glassleaf]:
    service = Glassleaf(home, pools=False, actor="ana")
    yield service
    service.close()
