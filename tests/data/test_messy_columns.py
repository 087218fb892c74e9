"""Columns as banks have them: what is not surely meant is refused by its line or its cells, never read as something else."""

import time

import pytest

from backend.data.csv_file import parse_csv
from backend.data.dictionary import Feature, Kind
from backend.data.dictionary_file import parse_dictionary
from backend.data.federation import load_federation
from backend.data.number_forms import written_number
from backend.data.overview import overview
from backend.data.party_file import check_party
from backend.data.split import Division, plan_table
from backend.data.table import read_samples, sample_from_values
from backend.data.table_file import Reading
from backend.errors import AmbiguousFile, FederationError, SampleError
from backend.i18n import Text

PEOPLE = 200


def planned_table(cells, label=lambda i: ("no", "yes")[i % 2], **more):
    """The federation of a table with a column `x` whose cells are given by row, or the refusal."""
    rows = "".join(f"p{i},{cells(i)},{i},{label(i)}\n" for i in range(PEOPLE))
    text = parse_csv("people.csv", ("id,x,spend,late\n" + rows).encode())
    return plan_table(text, Division("late", ("x",), {"shop": ("spend",)}, "id", **more))


def planned(cells, **more):
    """The kind of a column `x` whose cells are given by row, or the refusal."""
    return planned_table(cells, **more).federation.guest.features[0].kind


def refused(cells, **more):
    with pytest.raises(FederationError) as caught:
        planned(cells, **more)
    return caught.value


def test_an_odd_cell_among_numbers_is_refused_by_its_line():
    error = refused(lambda i: "1_2" if i == 7 else str(i % 97))
    assert error.code == "cells_unreadable" and "'1_2' on line 9" in str(error)
    assert planned(lambda i: str(i % 97)) is Kind.NUMERIC
    assert planned(lambda i: ("a", "b", "1")[i % 3]) is Kind.CATEGORICAL


def feature_and_cells(cells, **more):
    """The feature of a column whose cells are given by row, its cells as a party's file has them, and the notes on the column."""
    plan = planned_table(cells, **more)
    notes = [(note.code, dict(note.values)) for note in plan.notes if note.column == "x"]
    return plan.federation.guest.features[0], plan.text.cells("x"), notes


@pytest.mark.parametrize(
    ("form", "unit", "first"),
    [
        ("{}%", "%", "'1%'"),
        ("{} ％", "%", "'1 ％'"),
        ("${}", "$", "'$1'"),
        ("{} €", "€", "'1 €'"),
        ("¥{}", "¥", "'¥1'"),
        ("{}元", "¥", "'1元'"),
        ("USD {}", "$", "'USD 1'"),
    ],
)
def test_percent_and_money_are_read_as_numbers_and_told(form, unit, first):
    feature, cells, notes = feature_and_cells(lambda i: form.format(i % 50 + 1))
    assert (feature.kind, feature.unit.en) == (Kind.NUMERIC, unit)
    assert cells == [str(i % 50 + 1) for i in range(PEOPLE)]
    assert notes == [("numbers_in_another_form", {"n": PEOPLE, "cell": first, "number": "1"})]


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("$1,200.50", "1200.50"),
        ("1.200,50 €", "1200.50"),
        ("1 234", "1234"),
        ("1\u202f234,5", "1234.5"),
        ("1'234.5", "1234.5"),
        ("(1 200)", "-1200"),
        ("($1,200.50)", "-1200.50"),
        ("-$1,200.50", "-1200.50"),
        ("1.234,50-", "-1234.50"),
        ("−12.5%", "-12.5"),
    ],
)
def test_thousands_and_amounts_below_zero_are_read_beside_others_of_their_sign(written, number):
    sign = next((sign for sign in "$€%" if sign in written), "")
    cells = feature_and_cells(lambda i: f'"{written}"' if i % 2 else f"{i + 1}{sign}")[1]
    assert (cells[0], cells[1]) == ("1", number)


def test_what_a_sign_or_a_bracket_leaves_open_is_asked_and_never_guessed():
    error = refused(lambda i: f"{i % 50 + 1}%" if i % 2 else "0.12")
    assert error.code == "number_signs_differ" and "'0.12' on line 2" in str(error) and "'2%' on line 3" in str(error)
    assert refused(lambda i: f"${i + 1}" if i % 2 else f"€{i + 1}").code == "number_signs_differ"
    # 1.200 € is a thousand or one and a bit; nothing in the file tells
    with pytest.raises(AmbiguousFile) as asked:
        planned(lambda i: f"{i % 9 + 1}.200 €")
    assert asked.value.question == "decimal" and asked.value.choices["comma"] == ("1.200 € → 1200",)
    assert feature_and_cells(lambda i: f"{i % 9 + 1}.200 €", reading=Reading(decimal="comma"))[1][0] == "1200"
    assert planned(lambda i: f"({i % 9})") is Kind.CATEGORICAL  # nothing beside them says that brackets mean below zero
    assert planned(lambda i: ("10%", "20%", "high")[i % 3]) is Kind.CATEGORICAL
    assert planned(lambda i: f"{i % 3 + 1}-") is Kind.CATEGORICAL  # marks at school
    zero = feature_and_cells(lambda i: "0" if i % 9 == 0 else f"{i}%")[1]
    assert zero[:2] == ["0", "1"]


def test_a_sign_is_the_unit_and_a_dictionary_with_another_is_refused():
    pounds = {"x": Feature(name="x", meaning="An amount", unit=Text("GBP"))}
    assert refused(lambda i: f"${i + 1}", meanings=pounds).code == "sign_is_not_unit"
    assert feature_and_cells(lambda i: f"£{i + 1}", meanings=pounds)[0].unit == Text("GBP")
    assert refused(lambda i: "high" if i == 3 else f"{i + 1}%").code == "cells_unreadable"


def test_a_sheet_is_read_in_the_same_forms_if_the_unit_is_the_features(tiny):
    text = (tiny / "federation.toml").read_text(encoding="utf-8")
    assert 'name = "income"' in text
    (tiny / "federation.toml").write_text(
        text.replace('name = "income"', 'name = "income"\nunit = "EUR"', 1), encoding="utf-8"
    )
    federation = load_federation(tiny)
    sheet = read_samples(federation, "id;income;home\nx;1.200,50 €;own\ny;(3,5);own\nz;$5;own\nw;12;own\n".encode())
    assert sheet.guest.columns["income"].tolist()[:2] == [1200.5, -3.5]
    notes = [note for note in sheet.notes if note.code == "numbers_in_another_form"]
    assert [(note.column, note.values["n"], note.values["number"]) for note in notes] == [("income", 2, "1200.5")]
    assert [(row, remarks[0].code) for row, remarks in sheet.problems.items()] == [(2, "cell_of_another_unit")]
    with pytest.raises(AmbiguousFile):
        read_samples(federation, "id,income,home\nx,1.200 €,own\n".encode())
    typed = sample_from_values(federation, "x", {"income": "1.200 €", "home": "own"})
    assert [remark.code for remark in typed.problems[0]] == ["cell_not_a_number"]
    assert sample_from_values(federation, "x", {"income": "1.20 €"}).guest.columns["income"][0] == 1.2


def test_rows_without_an_outcome_or_id_and_repeated_ids_are_named_and_can_be_left_out():
    rows = [f"p{i},{i},{i},{('no', 'yes')[i % 2]}" for i in range(PEOPLE)]
    rows[3] = "p3,3,3,"
    rows[4] = "p4,4,4,NA"
    rows[5] = ",5,5,yes"
    rows[7] = "p6,7,7,yes"  # the id of the row before it
    rows[8] = "p3,8,8,no"  # the id of a row without an outcome
    rows[9] = "p9,9"
    text = parse_csv("people.csv", ("id,x,spend,late\n" + "\n".join(rows)).encode())

    def plan(*reasons):
        return plan_table(text, Division("late", ("x",), {"shop": ("spend",)}, "id", leave_out=reasons))

    with pytest.raises(FederationError) as caught:
        plan()
    assert {remark.code for remark in caught.value.remarks} == {
        "rows_without_label",
        "rows_without_id",
        "ids_repeated",
        "rows_ragged",
    }
    made = plan("no-outcome", "no-id", "repeated-id", "ragged")
    assert len(made.ids) == PEOPLE - 5 and made.ids.count("p3") == 1 and made.ids.count("p6") == 1
    assert [str(note.sentence()) for note in made.notes] == [
        "2 rows without an outcome were left out: line 5, line 6.",
        "1 row without an id was left out: line 7.",
        "1 row whose id an earlier row has was left out: line 9.",
        "1 row with a wrong number of cells was left out: line 11.",
    ]
    with pytest.raises(FederationError) as caught:
        plan("no-outcome", "ragged", "no-id")
    assert [remark.code for remark in caught.value.remarks] == ["ids_repeated"]


def test_spellings_of_one_code_or_outcome_are_joined_if_that_is_said():
    plan = planned_table(
        lambda i: ("Male", "male", "FEMALE", "Male")[i % 4],
        label=lambda i: ("No", "Yes", "yes", "No", "Yes")[i % 5],
        one_spelling=("x", "late"),
        positive="Yes",
    )
    assert set(plan.text.cells("x")) == {"Male", "FEMALE"} and set(plan.text.cells("late")) == {"No", "Yes"}
    joined = [(note.column, note.values["n"], note.values["spelling"]) for note in plan.notes]
    assert joined == [("late", 40, "'Yes'"), ("x", 50, "'Male'")]
    assert refused(str, one_spelling=("nobody",)).code == "one_spelling_of_nothing"
    assert "--one-spelling late" in str(refused(str, label=lambda i: ("No", "Yes", "yes")[i % 3]))


def test_a_column_that_is_there_twice_or_has_no_name_is_left_alone_and_named():
    rows = "".join(f"p{i},{i},{i},{i},{i},{('no', 'yes')[i % 2]},\n" for i in range(PEOPLE))
    text = parse_csv("people.csv", ("id,x,x,spend,more,late,\n" + rows).encode())
    with pytest.raises(FederationError) as caught:
        plan_table(text, Division("late", ("x",), {"shop": ("spend",)}, "id"))
    assert caught.value.code == "column_repeated"
    made = plan_table(text, Division("late", ("spend",), {"shop": ("more",)}, "id"))
    assert [note.code for note in made.notes] == ["repeated_columns_not_used", "unnamed_columns_not_used"]
    assert made.federation.about.en.endswith("Columns of nobody: 'x'.")


def test_a_used_column_that_a_file_has_twice_is_refused_at_every_door(tiny):
    federation = load_federation(tiny)
    with pytest.raises(SampleError, match="found 'income' more than once"):
        read_samples(federation, b"id,income,income,home\nx,1,2,own\n")
    sheet = read_samples(federation, b"id,income,odd,odd,home\nx,1,2,3,own\n")
    assert sheet.problems == {}
    feature = Feature(name="x", meaning="An amount")
    twice = check_party(parse_csv("host.csv", b"id,x,x\np,1,2\n"), "id", (feature,))
    assert [remark.code for remark in twice.problems] == ["column_repeated"]
    with pytest.raises(FederationError, match="found 'meaning' more than once"):
        parse_dictionary(parse_csv("d.csv", b"name,meaning,meaning\nx,one,two\n"))


def test_a_long_meaning_is_cut_and_told(tmp_path):
    (tmp_path / "d.csv").write_text(f"name,meaning\nx,{'long ' * 200}\n", encoding="utf-8")
    plan = planned_table(str, dictionary=tmp_path / "d.csv")
    meaning = plan.federation.guest.features[0].meaning.en
    assert len(meaning) == 500 and meaning.endswith("…")
    assert [(note.code, note.column) for note in plan.notes] == [("meaning_cut", "x")]


def test_yes_and_no_in_several_spellings_are_one_column_of_yes_and_no():
    assert planned(lambda i: ("Y", "yes", "1", "N", "no", "0")[i % 6]) is Kind.BOOLEAN
    assert planned(lambda i: ("是", "否")[i % 2]) is Kind.BOOLEAN


def reading(cells, **more):
    """How a column `x` was read whose cells are given by row."""
    plan = planned_table(cells, **more)
    return overview(plan.federation, plan.text, plan.ids).columns[0]


@pytest.mark.parametrize(
    ("codes", "asked"),
    [
        (("Y", "0", "N", "T"), {"0": 50}),
        (("own", "rent", "-1"), {"-1": 66}),
        (("yes", "no", "1", "0"), {"1": 50, "0": 50}),
        (("1", "2", "3+"), {}),
        (("own", "rent"), {}),
        (("Y", "N"), {}),
        (("1", "2", "3"), {}),
    ],
)
def test_a_code_that_is_written_unlike_the_others_is_asked_about(codes, asked):
    column = reading(lambda i: codes[i % len(codes)])
    assert column.unlike == asked and column.asked_about == (bool(asked) or column.few)


def test_a_text_beside_yes_and_no_is_asked_about():
    column = reading(lambda i: "S" if i < 3 else ("Y", "N")[i % 2])
    assert column.kind is Kind.CATEGORICAL and column.unlike == {"S": 3}


@pytest.mark.parametrize(
    ("cell", "asked"),
    [
        (lambda i: 90001 + i, True),
        (lambda i: 1000 + i, False),
        (lambda i: 500 * i, False),
        (lambda i: f"{20000 + i}.5", False),
        (lambda i: (53121, 53222)[i % 2], False),
    ],
)
def test_numbers_that_are_all_of_one_length_may_be_codes(cell, asked):
    assert reading(lambda i: str(cell(i))).same_length == asked


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
    assert "feature_twice_at_party" in {remark.code for remark in caught.value.remarks}


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


def test_a_cell_of_many_spaces_is_no_number_at_once():
    began = time.process_time()
    assert [written_number("(" + " " * 20_000 + end) for end in ("x", "1)")] == [None, None]
    assert time.process_time() - began < 1  # it took minutes
