"""What a library user imports, and what is loaded with it."""

import pytest

import backend
from backend.services import Glassleaf


@pytest.mark.parametrize("name", backend.WHERE)
def test_every_public_name_is_where_the_table_says(name):
    assert getattr(backend, name).__module__.startswith("backend.")


def test_the_front_name_is_the_services(tmp_path):
    with backend.Glassleaf(tmp_path, pools=False) as opened:
        assert isinstance(opened, Glassleaf) and opened.models.all() == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchThing"):
        backend.NoSuchThing  # noqa: B018


def test_all_actors_of_a_home_share_one_set_of_workers_and_close_it_for_all(tmp_path):
    with Glassleaf(tmp_path, pools=False) as opened:
        first, second = opened.acting("ann", "analyst"), opened.acting("rita", "regulator")
        assert first._shared.workers is second._shared.workers is opened._shared.workers
        assert first.models is second.models and first.audit is not second.audit
