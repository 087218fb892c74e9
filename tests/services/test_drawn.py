"""Which test records are measured on, where some people have left the Guest's table since the training."""

from types import SimpleNamespace

import pytest

from backend.errors import ParameterError
from backend.services.measurement import drawn


def context(test_ids, table):
    row_of = {person: row for row, person in enumerate(table)}
    return SimpleNamespace(test_ids=test_ids, runtime=SimpleNamespace(table=SimpleNamespace(row_of=row_of)))


@pytest.mark.parametrize("samples", [None, 3, 2])
def test_people_who_have_left_the_table_are_not_measured(samples):
    rows = drawn(context(["a", "gone", "b"], ["x", "a", "b"]), samples, 1)
    assert sorted(rows.tolist()) == [1, 2]


def test_where_everybody_has_left_that_is_said():
    with pytest.raises(ParameterError, match="holds 0"):
        drawn(context(["gone"], ["a"]), None, 1)


@pytest.mark.parametrize("samples", [0, 3])
def test_more_records_than_the_model_has_are_refused(samples):
    with pytest.raises(ParameterError, match=f"{samples} test records were asked for; the model has 2"):
        drawn(context(["a", "b"], ["a", "b"]), samples, 1)
