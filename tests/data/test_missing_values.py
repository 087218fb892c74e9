"""What counts as a missing value is said by the federation file, column by column; older files keep the meaning that they had."""

import csv

import pytest

from backend.data.demo import write_demo
from backend.data.dictionary import Feature
from backend.data.federation import load_federation, write_federation
from backend.data.missing import EARLIER
from backend.data.split import EVERYWHERE, Division, split_table
from backend.data.table import read_samples, read_table
from backend.errors import FederationError

MARKS = ("none", "?", "NA", "nan", "null", "n/a", "None")
BANK = "id,income,home,late\n" + "".join(f"p{row},{row},{mark},{row % 2}\n" for row, mark in enumerate(MARKS))


@pytest.fixture
def odd(tmp_path):
    """A table whose text column holds nothing but texts that often mean a missing value."""
    (tmp_path / "t.csv").write_text(BANK, encoding="utf-8")
    division = Division("late", ["income"], {"shop": ["home"]}, id_column="id")
    return split_table(tmp_path / "t.csv", division, tmp_path / "out")


def without_format(federation):
    file = federation.folder / "federation.toml"
    file.write_text(file.read_text(encoding="utf-8").replace("format = 2\n", ""), encoding="utf-8")
    return file


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


def test_an_older_file_keeps_its_list_and_stays_an_older_file(odd):
    file = without_format(odd)
    text = file.read_text(encoding="utf-8")
    old = load_federation(file)
    assert list(read_table(old, "shop").columns["home"]) == [None] * len(MARKS)
    write_federation(old, old.folder)
    assert file.read_text(encoding="utf-8") == text


def test_a_code_that_an_older_file_discloses_is_still_no_missing_value(odd):
    file = without_format(odd)
    with file.open("a", encoding="utf-8") as end:
        end.write('categories = { none = "no home", "?" = "not told" }\n')
    column = read_table(load_federation(file), "shop").columns["home"]
    assert tuple(column) == ("none", "?", None, None, None, None, None)


def test_missing_texts_need_the_format_that_has_them(odd):
    file = without_format(odd)
    with file.open("a", encoding="utf-8") as end:
        end.write('missing = ["?"]\n')
    with pytest.raises(FederationError, match="Add format = 2"):
        load_federation(file)


def test_an_unknown_format_is_refused(odd):
    file = odd.folder / "federation.toml"
    file.write_text(file.read_text(encoding="utf-8").replace("format = 2", "format = 3"), encoding="utf-8")
    with pytest.raises(FederationError, match=r"federation\.toml, format: found 3"):
        load_federation(file)


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
    federation = split_table(tmp_path / "t.csv", division, tmp_path / "out")
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
@pytest.mark.parametrize("field", ["name", "meaning", "meaning_zh", "unit"])
def test_a_text_that_changes_how_its_surroundings_are_shown_is_refused(strange, field):
    with pytest.raises(ValueError, match=r"invisible character U\+"):
        Feature(**({"name": "f", "meaning": "F"} | {field: f"a{strange}b"}))
    with pytest.raises(ValueError, match=r"invisible character U\+"):
        Feature(name="f", meaning="F", kind="categorical", categories={"1": f"a{strange}b"})


def test_the_built_in_demo_writes_no_text_that_ever_was_a_missing_value(tmp_path):
    federation = write_demo(tmp_path, rows=200)
    for party in federation.parties:
        with (tmp_path / party.file).open(encoding="utf-8", newline="") as file:
            assert not {cell for row in csv.reader(file) for cell in row} & set(EARLIER)
