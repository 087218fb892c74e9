"""What counts as a missing value is said by the federation file, column by column."""

import pytest

from backend.data.dictionary import Feature
from backend.data.federation import load_federation, write_federation
from backend.data.split import EVERYWHERE, Division, split_table
from backend.data.table import read_samples, read_table
from backend.errors import FederationError

MARKS = ("none", "?", "NA", "nan", "null", "n/a", "None")
BANK = "id,income,home,late\n" + "".join(f"p{row},{row},{mark},{row % 2}\n" for row, mark in enumerate(MARKS))


@pytest.fixture
def odd(tmp_path):
    """A table whose text column holds nothing but texts that often mean a missing value.

    A dictionary says that they are codes: two of them differ in case only.
    """
    (tmp_path / "t.csv").write_text(BANK, encoding="utf-8")
    dictionary = tmp_path / "dictionary.csv"
    dictionary.write_text("name,meaning,kind\nhome,Home,categorical\n", encoding="utf-8")
    division = Division("late", ["income"], {"shop": ["home"]}, id_column="id", dictionary=dictionary)
    return split_table(tmp_path / "t.csv", division, tmp_path / "out").federation


def test_texts_such_as_none_are_categories_unless_the_file_says_otherwise(odd):
    assert tuple(read_table(odd, "shop").columns["home"]) == MARKS
    feature = odd.hosts[0].features[0].model_copy(update={"missing": ("?", "NA")})
    host = odd.hosts[0].model_copy(update={"features": (feature,)})
    write_federation(odd.model_copy(update={"hosts": (host,)}), odd.folder)
    column = read_table(load_federation(odd.folder), "shop").columns["home"]
    assert tuple(column) == ("none", None, None, "nan", "null", "n/a", "None")


def test_a_sheet_is_read_by_the_same_rule_as_the_tables(odd):
    sheet = read_samples(odd, b"id,income,home\na,1,none\nb,NA,?\n")
    assert list(sheet.hosts["shop"].columns["home"]) == ["none", "?"]
    assert list(sheet.problems) == [1] and "'NA'" in sheet.problem(1)


@pytest.mark.parametrize(("missing", "codes"), [(["a"], {"a": "A"}), ([" a"], {}), (["a\u202e"], {})])
def test_a_text_that_cannot_be_a_missing_value_is_refused(missing, codes):
    with pytest.raises(ValueError, match="missing"):
        Feature(name="f", meaning="F", kind="categorical", categories=codes, missing=missing)


def test_a_number_column_with_such_a_text_names_text_line_and_setting(tmp_path):
    (tmp_path / "t.csv").write_text("id,income,home,late\na,1,own,0\nb,NA,?,1\nc,2,own,1\n", encoding="utf-8")
    division = Division("late", ["income"], {"shop": ["home"]}, id_column="id")
    with pytest.raises(FederationError) as refused:
        split_table(tmp_path / "t.csv", division, tmp_path / "out")
    [problem] = refused.value.problems
    assert all(part in problem for part in ("'income'", "'NA' on line 3", 'missing = ["NA"]', "--missing income=NA"))


@pytest.mark.parametrize("wish", [{"income": ["NA"], "home": ["?"]}, {EVERYWHERE: ["?", "NA"]}])
def test_init_is_told_what_is_missing_and_writes_it_to_the_file(tmp_path, wish):
    (tmp_path / "t.csv").write_text("id,income,home,late\na,1,own,0\nb,NA,?,1\nc,2,own,1\n", encoding="utf-8")
    division = Division("late", ["income"], {"shop": ["home"]}, id_column="id", missing=wish)
    federation = split_table(tmp_path / "t.csv", division, tmp_path / "out").federation
    assert [feature.missing for _, feature in federation.features()] == [("NA",), ("?",)]
    assert list(read_table(federation, "shop").columns["home"]) == ["own", None, "own"]


def test_a_missing_text_that_no_cell_has_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text(BANK, encoding="utf-8")
    division = Division("late", ["income"], {"shop": ["home"]}, id_column="id", missing={"home": ["na"]})
    with pytest.raises(FederationError, match="found 'na' for 'home'"):
        split_table(tmp_path / "t.csv", division, tmp_path / "out")


def test_what_init_writes_is_its_owners_to_read_alone(odd):
    assert [(odd.folder / party.file).stat().st_mode & 0o077 for party in odd.parties] == [0, 0]


@pytest.mark.parametrize("strange", ["\u202e", "\x07", "\n", "\u2028", "\u200b", "\ufeff"])
@pytest.mark.parametrize("field", ["name", "meaning", "unit"])
def test_a_text_that_changes_how_its_surroundings_are_shown_is_refused(strange, field):
    with pytest.raises(ValueError, match=r"invisible character U\+"):
        Feature(**({"name": "f", "meaning": "F"} | {field: f"a{strange}b"}))
    with pytest.raises(ValueError, match=r"invisible character U\+"):
        Feature(name="f", meaning={"en": "F", "zh": f"a{strange}b"})
    with pytest.raises(ValueError, match=r"invisible character U\+"):
        Feature(name="f", meaning="F", kind="categorical", categories={"1": f"a{strange}b"})
