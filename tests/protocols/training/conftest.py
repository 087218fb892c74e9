"""Trainings on a light group: how ids are aligned has tests of its own."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _light_group(quick_group: None) -> None:
    """Growing trees begins where ids are aligned."""
