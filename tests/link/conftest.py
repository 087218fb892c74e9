import pytest
from companies import make_companies


@pytest.fixture
def companies(tmp_path):
    return make_companies(tmp_path)
