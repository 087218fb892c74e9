"""Columns as banks have them: what is not surely meant is refused by its line or its cells, never read as something else."""

import pytest

from backend.data.csv_file import parse_csv
from backend.data.dictionary import Feature, Kind
from backend.data.federation import load_federation
from backend.data.party_file import check_party
from backend.data.split import Division, plan_table
from backend.errors import FederationError
from backend.i18n import Text

PEOPLE = 200


def planned(cells, label=lambda i: ("no", "yes")[i % 2], **more):
    """The kind of a column `x` whose cells are given by row, or the refusal."""
    rows = "".join(f"p{i},{cells(i)},{i},{label(i)}\n" for i in range(PEOPLE))
    text = parse_csv("people.csv", ("id,x,spend,late\n" + rows).encode())
    division = Division("late", ("x",), {"shop": ("spend",)}, "id", **more)
    return plan_table(text, division).federation.guest.features[0].kind


def refused(cells, **more):
    with pytest.raises(FederationError) as caught:
        planned(cells, **more)
    return caught.value


def test_an_odd_cell_among_numbers_is_refused_by_its_line():
    error = refused(lambda i: "1_2" if i == 7 else str(i % 97))
    assert error.code == "cells_unreadable" and "'1_2' on line 9" in str(error)
    assert planned(lambda i: str(i % 97)) is Kind.NUMERIC
    assert planned(lambda i: ("a", "b", "1")[i % 3]) is Kind.CATEGORICAL


@pytest.mark.parametrize("form", ["{}%", "${}", "{} €", "¥{}", "{}元"])
def test_percent_and_money_are_not_read_as_codes(form):
    error = refused(lambda i: form.format(i % 50))
    assert error.code == "numbers_with_signs" and "without" not in str(error)


def test_a_leading_zero_makes_a_code():
    assert planned(lambda i: f"{i % 30 + 1:05d}") is Kind.CATEGORICAL
    assert planned(lambda i: "0.5" if i % 2 else "0") is Kind.NUMERIC


def test_codes_and_outcomes_that_differ_in_case_alone_are_asked_about():
    error = refused(lambda i: ("Male", "male", "FEMALE")[i % 3])
    assert (error.code, error.values["cells"]) == ("codes_alike", ("'Male'", "'male'"))
    error = refused(str, label=lambda i: ("No", "Yes", "yes")[i % 3])
    assert (error.code, error.values["values"]) == ("label_values_alike", ("'Yes'", "'yes'"))


def test_a_feature_that_is_named_twice_is_a_problem_of_the_federation_file(edit):
    edit("federation.toml", 'name = "home"', 'name = "income"')
    with pytest.raises(FederationError) as caught:
        load_federation(edit("federation.toml", 'title = "Tiny"', 'title = "Twice"'))
    assert "feature_at_two_parties" in {remark.code for remark in caught.value.remarks}


def test_whole_codes_are_one_code_with_and_without_decimals_in_a_partys_own_table():
    feature = Feature(name="x", meaning="A code", kind=Kind.CATEGORICAL)

    def codes(cells, kind=feature):
        text = parse_csv("host.csv", ("id,x\n" + "".join(f"p{i},{cell}\n" for i, cell in enumerate(cells))).encode())
        return check_party(text, "id", (kind,)).columns["x"].tolist()

    assert codes(["1", "1.0", " 1", "2.00", ""]) == ["1", "1", "1", "2", None]
    assert codes(["007", "7.0"]) == ["007", "7"]  # a zero at the start is a code's own
    assert codes(["1.0", "a"]) == ["1.0", "a"]
    described = feature.model_copy(update={"categories": {"1.0": Text("one")}})
    assert codes(["1.0"], described) == ["1.0"]
