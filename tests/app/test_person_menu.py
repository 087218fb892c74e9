"""The menu of people on Score offers whom the Guest knows, whatever part of the records they are in."""

import pandas as pd
import pytest

from app.panels import person


@pytest.mark.parametrize(
    ("parts", "offered"),
    [
        (["joint", "joint", "not in training"], ["p0", "p1"]),  # an imported model has no other part
        (["training", "test", "joint"], ["p1"]),
        (["not in training", "not in training"], ["p0", "p1"]),
    ],
)
def test_people_of_the_first_part_that_there_is_can_be_picked(parts: list[str], offered: list[str]) -> None:
    people = pd.DataFrame({"part": parts}, index=[f"p{i}" for i in range(len(parts))])
    assert person.options(people, None) == offered
    assert person.options(people, "p1")[0] == "p1"
