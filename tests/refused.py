"""What a test expects to be raised, by class and code: the error's own, or the one that a Host gave in a refusal."""

from contextlib import contextmanager

import pytest

from backend.remark import Remark


def codes(error):
    """Return the codes of an error and of the remarks among its values."""
    named = []
    for remark in error.remarks:
        named.append(remark.code)
        named += [value.code for value in remark.values.values() if isinstance(value, Remark)]
    return named


@contextmanager
def raises(error_class, code, /, **values):
    """Expect an error of a class with this code; `values` are compared with those of the remark that has it."""
    with pytest.raises(error_class) as caught:
        yield caught
    error = caught.value
    assert code in codes(error)
    remarks = [
        *error.remarks,
        *(v for remark in error.remarks for v in remark.values.values() if isinstance(v, Remark)),
    ]
    given = next(remark for remark in remarks if remark.code == code).values
    assert {name: given.get(name) for name in values} == values
