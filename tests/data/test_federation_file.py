"""Loading and writing a federation file; every refusal says file, field, found, expected, what to do."""

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.data.dictionary import UNSHOWN, Feature
from backend.data.federation import Federation, Party, load_federation, write_federation
from backend.data.label import Label
from backend.errors import FederationError
from backend.i18n import Text


def refusals(folder) -> tuple[str, ...]:
    with pytest.raises(FederationError) as refused:
        load_federation(folder)
    return refused.value.problems


def test_a_federation_is_loaded_from_its_file_or_its_folder(tiny):
    federation = load_federation(tiny)
    assert federation == load_federation(tiny / "federation.toml")
    assert federation.folder == tiny
    assert [(party, feature.name) for party, feature in federation.features()] == [
        ("bank", "income"),
        ("bank", "home"),
        ("shop", "member"),
    ]
    assert federation.party("shop").title == Text("The shop")


def test_an_unknown_party_is_refused_with_the_known_ones(tiny):
    with pytest.raises(FederationError, match="no party 'telco'; the parties are bank, shop"):
        load_federation(tiny).party("telco")


def test_a_number_is_taken_for_the_positive_text(edit):
    edit("bank.csv", "yes", "1")
    assert load_federation(edit("federation.toml", 'positive = "yes"', "positive = 1")).label.positive == "1"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('name = "tiny"', 'name = "Tiny One"', "federation.toml, name: found 'Tiny One', expected a small letter"),
        ('title = "Tiny"\n', "", "federation.toml, title: found nothing, expected a value. Add it."),
        ('title = "Tiny"', 'title = ""', "federation.toml, title: found an empty text, expected something"),
        ('title = "Tiny"', "title = 3", "federation.toml, title: found 3, expected text in quotation marks"),
        ('title = "Tiny"', 'title = "T"\nsynthetic = "perhaps"', "synthetic: found 'perhaps', expected true or false"),
        ('title = "Tiny"', 'title = "T"\ncolour = 1', "federation.toml, colour: found an unknown key"),
        ('title = "Tiny"', 'title = "T"\nfolder = "/"', "federation.toml, folder: found an unknown key"),
        ('kind = "boolean"', 'kind = "bool"', "hosts 'shop', features 'member', kind: found 'bool', expected one of"),
        ('meaning = "Income"', "", "guest, features 'income', meaning: found nothing"),
        ('name = "income"', "", "guest, features #1, name: found nothing"),
        ('name = "shop"', 'name = "bank"', "name: found 2 parties called 'bank'"),
        (
            'name = "member"',
            'name = "income"',
            "features: found 'income' at bank, shop, expected every feature name once",
        ),
        ('name = "home"', 'name = "income"', "bank, features: found 'income' twice, expected"),
        ('name = "home"', 'name = "id"', "bank, features: found 'id', which is the id column"),
        ('name = "home"', 'name = "late"', "bank, features: found 'late', which is the label"),
        ('file = "shop.csv"', 'file = "../shop.csv"', "shop, file: found '../shop.csv', expected a path inside"),
        ('file = "shop.csv"', 'file = "/etc/passwd"', "shop, file: found '/etc/passwd', expected a path inside"),
        ('file = "shop.csv"', "file = 'C:\\shop.csv'", "expected a path inside"),
        ('file = "shop.csv"', 'file = "a\\u0000b"', "invisible character U+0000"),
        ('file = "shop.csv"', 'file = "none.csv"', "none.csv: no such file"),
        ('file = "shop.csv"', 'file = "."', "a folder or a pipe"),
        (
            'id = "customer"',
            'id = "id"',
            "shop.csv: there is no column 'id' (id column); the file has member, customer",
        ),
        ('column = "late"', 'column = "y"', "bank.csv: there is no column 'y' (label)"),
        ('name = "home"', 'name = "house"', "bank.csv: there is no column 'house' (feature)"),
        ('positive = "yes"', 'positive = "ja"', "the positive value 'ja' does not occur, found 'no', 'yes'"),
        ('name = "shop"', 'name = "shop"\nmax_bits = nan', "a number of bits from 0 (no limit) to 1,000,000"),
        ('name = "shop"', 'name = "shop"\nmax_bits = true', "a number of bits from 0 (no limit) to 1,000,000"),
        ('name = "shop"', 'name = "shop"\nbudget_total = 1.5', "a whole number from 0 (no limit) to 1,000,000"),
        ("[label]", "[label", "federation.toml: found text that is not TOML"),
    ],
)
def test_a_fault_in_the_federation_file_is_named(edit, old, new, expected):
    problems = refusals(edit("federation.toml", old, new))
    assert any(expected in problem for problem in problems), problems


def test_a_fault_is_reported_once_and_without_the_words_of_the_library(edit):
    problems = refusals(edit("federation.toml", 'title = "Tiny"', "title = 3"))
    assert len(problems) == 1
    assert "pydantic" not in problems[0]
    assert "Input should" not in problems[0]


def test_a_federation_without_hosts_is_refused(edit, tiny):
    text = (tiny / "federation.toml").read_text(encoding="utf-8")
    (tiny / "federation.toml").write_text(text[: text.index("[[hosts]]")], encoding="utf-8")
    assert refusals(tiny) == (
        "federation.toml, hosts: found no Host, expected at least one. Add a [[hosts]] table with its features.",
    )


def test_a_party_without_features_is_refused(tiny):
    text = (tiny / "federation.toml").read_text(encoding="utf-8")
    (tiny / "federation.toml").write_text(text[: text.index("[[hosts.features]]")], encoding="utf-8")
    assert "federation.toml, shop, features: found none, expected at least one" in refusals(tiny)[0]


def test_an_absent_or_unreadable_federation_file_is_refused(tmp_path):
    assert "no such file" in refusals(tmp_path)[0]
    (tmp_path / "federation.toml").write_bytes(b'name = "\xff"')
    assert "not UTF-8" in refusals(tmp_path)[0]
    (tmp_path / "federation.toml").write_text("hosts = 3\nguest = []\n")
    assert any("hosts: found 3, expected a list" in problem for problem in refusals(tmp_path))


def test_a_link_out_of_the_folder_is_refused(tiny, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "shop.csv"
    outside.write_text((tiny / "shop.csv").read_text(encoding="utf-8"), encoding="utf-8")
    (tiny / "shop.csv").unlink()
    (tiny / "shop.csv").symlink_to(outside)
    assert "a link out of the federation file's folder" in refusals(tiny)[0]


def test_parties_without_a_common_id_are_refused(tiny):
    (tiny / "shop.csv").write_text("customer,member\nx,1\n", encoding="utf-8")
    assert "shop.csv, column 'customer': none of its ids occurs in bank.csv" in refusals(tiny)[0]


def test_problems_of_all_files_are_collected(tiny, edit):
    edit("federation.toml", 'title = "Tiny"', 'title = ""')
    edit("bank.csv", "10", "ten")
    edit("shop.csv", "TRUE", "maybe")
    assert [problem.split(":")[0] for problem in refusals(tiny)] == [
        "federation.toml, title",
        "bank.csv, column 'income' (numeric)",
        "shop.csv, column 'member' (boolean)",
    ]


def test_a_long_list_of_problems_is_cut_and_the_rest_counted(tiny):
    text = (tiny / "federation.toml").read_text(encoding="utf-8")
    more = "".join(f'[[hosts.features]]\nname = "q{n}"\nmeaning = "Q"\n' for n in range(30))
    (tiny / "federation.toml").write_text(text + more, encoding="utf-8")
    problems = refusals(tiny)
    assert len(problems) == 21
    assert problems[-1] == "… and 10 more."


def test_tables_are_left_alone_where_that_is_asked_for(tiny):
    (tiny / "bank.csv").unlink()
    assert load_federation(tiny, check_tables=False).name == "tiny"


text = st.text(st.characters(codec="utf-8", exclude_categories=UNSHOWN), min_size=1, max_size=40)


def label(**fields):
    return Label(**{"column": "y", "meaning": "Y"} | fields)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("", "label, positive: found an empty text, expected the cell text that counts as 1"),
        ('positive = ""', "label, positive: found an empty text, expected the cell text that counts as 1"),
        ("positive = true", "label, positive: found true, expected text in quotation marks"),
        ('task = "ranking"', "label, task: found 'ranking', expected one of 'binary', 'classes' or 'number'"),
        ('positive = "yes"\nunit = "EUR"', "label, unit: found 'EUR', expected nothing, because it belongs to task"),
        ('positive = "yes"\nclasses = ["a", "b", "c"]', "label, classes: found a list, expected nothing, because"),
        ('task = "number"\npositive = "yes"', 'belongs to task = "binary" and the task is "number"'),
        ('task = "number"\nclasses = ["a", "b", "c"]', 'belongs to task = "classes" and the task is "number"'),
        ('task = "classes"', "label, classes: found a list, expected 3 to 32 different cell texts, one a class"),
        ('task = "classes"\nclasses = ["no", "yes"]', "expected 3 to 32 different cell texts"),
        ('task = "classes"\nclasses = ["a", "b", "a"]', "expected 3 to 32 different cell texts"),
        ('task = "classes"\nclasses = ["a", "b", ""]', "expected 3 to 32 different cell texts"),
        (f'task = "classes"\nclasses = {list(range(33))}', "expected 3 to 32 different cell texts"),
        ('task = "classes"\nclasses = ["a", "b", []]', "label, classes #3: found a list, expected text in"),
        ('task = "classes"\nclasses = "abc"', "label, classes: found 'abc', expected a list"),
    ],
)
def test_a_label_says_what_its_task_needs_and_nothing_else(edit, fields, expected):
    problems = refusals(edit("federation.toml", 'positive = "yes"', fields))
    assert len(problems) == 1
    assert expected in problems[0]


def test_a_label_without_a_task_is_binary():
    assert label(positive="1").task == "binary"
    with pytest.raises(ValueError, match="counts as 1"):
        label()


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        (label(positive="1"), {"positive": "1"}),
        (label(task="number"), {"task": "number"}),
        (label(task="number", unit="EUR"), {"task": "number", "unit": "EUR"}),
        (label(task="classes", classes=("b", "a", "no")), {"task": "classes", "classes": ["b", "a", "no"]}),
    ],
)
def test_a_federation_file_tells_of_a_label_what_is_not_a_default(tiny, fields, written):
    federation = load_federation(tiny).model_copy(update={"label": fields})
    file = write_federation(federation, tiny)
    assert tomllib.loads(file.read_text(encoding="utf-8"))["label"] == {"column": "y", "meaning": "Y"} | written
    assert load_federation(tiny, check_tables=False).label == fields


@settings(deadline=None, max_examples=50)
@given(title=text, meaning=text, codes=st.dictionaries(text, text, max_size=3), mark=text)
def test_what_is_written_is_loaded_again(tmp_path_factory, title, meaning, codes, mark):
    folder = tmp_path_factory.mktemp("written")
    missing = () if mark in codes or mark != mark.strip() else (mark,)
    feature = Feature(name="f", meaning=meaning, kind="categorical", categories=codes, missing=missing)
    guest = Party(name="g", title=title, file="g.csv", id="id", features=(feature,))
    host = Party(
        name="h", title="H", about=Text("", "甲方"), file="h.csv", id="id", features=(Feature(name="x", meaning="X"),)
    )
    label = Label(column="y", positive="1", meaning=meaning)
    federation = Federation(name="f", title=title, label=label, guest=guest, hosts=(host,), folder=folder)
    write_federation(federation, folder)
    assert load_federation(folder, check_tables=False) == federation


def test_limits_are_read_back_as_written_and_left_out_where_nobody_gave_one(tiny):
    federation = load_federation(tiny)
    assert {"budget_total", "max_bits"}.isdisjoint(write_federation(federation, tiny).read_text().split())
    limited = federation.hosts[0].model_copy(update={"budget_total": 0, "max_bits": 12.5})
    write_federation(federation.model_copy(update={"hosts": (limited,)}), tiny)
    assert load_federation(tiny).hosts[0] == limited


def test_a_table_that_is_a_link_to_itself_is_named(tiny):
    table = tiny / load_federation(tiny).guest.file
    table.unlink()
    table.symlink_to(table)
    with pytest.raises(FederationError, match=rf"{table.name}: cannot be read"):
        load_federation(tiny)


def test_brackets_in_brackets_without_end_are_refused(tmp_path):
    (tmp_path / "federation.toml").write_text("a = " + "[" * 50_000)
    with pytest.raises(FederationError):
        load_federation(tmp_path)
