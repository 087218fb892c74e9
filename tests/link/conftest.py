import pytest
from companies import Links, make_companies


@pytest.fixture
def companies(tmp_path):
    return make_companies(tmp_path)


@pytest.fixture
def links(companies):
    made = Links(companies)
    yield made
    made.shut_down()
