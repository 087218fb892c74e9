"""JSON that two readers could read as two things is refused."""

import json

import pytest

from backend.data.bounded_text import RepeatedNameError, json_values


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '[{"b":{"a":1,"\\u0061":2}}]', '{"":0,"x":1,"":2}'])
def test_a_name_that_stands_twice_in_one_object_is_refused(text):
    assert json.loads(text)
    with pytest.raises(RepeatedNameError):
        json_values(text)


def test_the_same_name_in_two_objects_is_no_repetition():
    assert json_values('[{"a":1},{"a":{"a":2}}]') == [{"a": 1}, {"a": {"a": 2}}]
