"""Reading a dictionary from CSV."""

import pytest

from backend.data.dictionary import ExpectedDirection, Feature, Kind
from backend.data.dictionary_file import read_dictionary, write_dictionary
from backend.errors import FederationError
from backend.i18n import Text


def read(tmp_path, text: str):
    (tmp_path / "dict.csv").write_text(text, encoding="utf-8")
    return read_dictionary(tmp_path / "dict.csv")


def test_a_row_becomes_a_feature_and_empty_cells_leave_the_default(tmp_path):
    features = read(
        tmp_path,
        "name,meaning,meaning_zh,unit,kind,expected_direction,sensitivity,categories\n"
        "sex,Sex,性别,,categorical,none,sex,1=male; 2=female\n"
        "income,Income,,CNY,,down,,\n",
    )
    assert features["sex"] == Feature(
        name="sex",
        meaning=Text("Sex", "性别"),
        kind=Kind.CATEGORICAL,
        sensitivity="sex",
        categories={"1": "male", "2": "female"},
    )
    assert features["income"].expected_direction is ExpectedDirection.DOWN
    assert features["income"].kind is Kind.NUMERIC


def test_units_and_codes_are_read_and_written_in_chinese_too(tmp_path):
    text = "name,meaning,unit,unit_zh,kind,categories,categories_zh\nage,Age,years,岁,,,\nhome,Home,,,categorical,r=rented;o=owned,r=租房\n"
    features = read(tmp_path, text)
    assert features["age"].unit == Text("years", "岁")
    assert features["home"].categories == {"r": Text("rented", "租房"), "o": Text("owned")}
    write_dictionary(list(features.values()), tmp_path / "again.csv")
    assert read_dictionary(tmp_path / "again.csv") == features


def test_bounds_of_a_number_are_read_and_written(tmp_path):
    features = read(tmp_path, "name,meaning,bounds\nincome,Income,0;1234567.5\nlimit,Limit,\n")
    assert features["income"].bounds == (0.0, 1234567.5) and features["limit"].bounds is None
    write_dictionary(list(features.values()), tmp_path / "again.csv")
    assert read_dictionary(tmp_path / "again.csv") == features


@pytest.mark.parametrize("row", ["numeric,3;0", "numeric,0;inf", "numeric,a;b", "numeric,1", "boolean,0;1"])
def test_bounds_that_cannot_be_a_numbers_are_refused(row, tmp_path):
    with pytest.raises(FederationError, match="bounds"):
        read(tmp_path, f"name,meaning,kind,bounds\nx,X,{row}\n")


def test_only_codes_that_there_are_can_be_translated(tmp_path):
    with pytest.raises(FederationError, match="categories_zh: found 'x', expected codes that 'categories' has too"):
        read(tmp_path, "name,meaning,kind,categories,categories_zh\nhome,Home,categorical,r=rented,x=租房\n")


def test_name_and_meaning_are_enough(tmp_path):
    assert list(read(tmp_path, "meaning;name\nIncome;income\n")) == ["income"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name,unit\na,CNY\n", "there is no column 'meaning'"),
        ("name,meaning,colour\na,A,red\n", "found an unknown column 'colour'"),
        ("name,meaning\na\n", "line 2: found 1 cell, expected 2"),
        ("name,meaning\na,A\na,B\n", "line 3: found 'a' a second time"),
        ("name,meaning\n,A\n", "line 2, name: found nothing"),
        ("name,meaning,kind\na,A,number\n", "line 2, kind: found 'number', expected one of"),
        ("name,meaning,categories\na,A,1=x;2\n", "line 2, categories: found '2', expected code=label pairs"),
        ("name,meaning,categories\na,A,1=x;1=y\n", "line 2, categories: found the code '1' twice"),
    ],
)
def test_a_fault_is_named_by_its_line(tmp_path, text, expected):
    with pytest.raises(FederationError) as refused:
        read(tmp_path, text)
    assert any(expected in problem for problem in refused.value.problems), refused.value.problems
