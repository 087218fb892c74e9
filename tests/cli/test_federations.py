"""`init` from a shell on a table as nasty as a real one: it says how it read it, and asks instead of guessing."""

import json

import pytest

from backend.data.demo import write_demo
from backend.data.federation import load_federation, write_federation
from backend.i18n import Text
from backend.services import Glassleaf

HEADER = 'key,age,"amount, ""net""",phone,opened,rank,flat,void,class'
ROWS = [
    f"k{i},{20 + i},{i}.5,{'none' if i % 3 else 'yes'},{1 + i % 28:02d}.01.2020,{1 + i % 4},x,,{1 + i % 2}"
    for i in range(40)
]
ROWS[7] = ROWS[7].replace("k7,27", "k7,NA")
WISH = [
    "--id",
    "key",
    "--label",
    "class",
    "--guest",
    'age,"amount, ""net""",opened,rank',
    "--host",
    "telco=phone,flat,void",
]


@pytest.fixture
def home(tmp_path):
    """Empty: every table is new to it."""
    return tmp_path / "home"


@pytest.fixture
def table(tmp_path):
    (tmp_path / "t.csv").write_text("\n".join([HEADER, *ROWS]), encoding="utf-8")
    return tmp_path / "t.csv"


@pytest.fixture
def init(run, table, tmp_path):
    return lambda *more: run("init", table, *WISH, "--out", tmp_path / "out", *more)


@pytest.fixture
def read(init):
    status, text, _ = init("--positive", "2", "--missing", "age=NA", "--json")
    assert status == 0
    return json.loads(text)


def test_who_counts_as_positive_is_asked_where_it_would_be_guessed(init):
    status, text, error = init("--missing", "age=NA")
    assert (status, text) == (1, "") and "'1', '2'" in error and "--positive" in error


def test_a_number_column_with_a_text_names_the_option_that_would_say_it(init):
    status, _, error = init("--positive", "2")
    assert status == 1 and "'NA' on line 9" in error and "--missing age=NA" in error


def test_what_was_taken_as_missing_is_told_by_text_and_count(read):
    columns = {column["name"]: column for column in read["columns"]}
    assert columns["age"]["missing"] == {"NA": 1} and columns["void"]["missing"] == {"": 40}
    assert columns["phone"]["unclear"] == {"none": 26} and columns["phone"]["missing"] == {}
    assert columns["phone"]["codes"] == {"none": 26, "yes": 14}


def test_kinds_and_what_looks_odd_are_told_of_every_column(read):
    odd = {c["name"]: {mark for mark in ("constant", "empty", "dates", "few") if c[mark]} for c in read["columns"]}
    assert odd == {
        "age": set(),
        'amount, "net"': set(),
        "opened": {"dates"},
        "rank": {"few"},
        "phone": set(),
        "flat": {"constant"},
        "void": {"empty"},
    }
    kinds = {c["name"]: c["kind"] for c in read["columns"]}
    assert (kinds["age"], kinds["phone"], kinds["void"]) == ("numeric", "categorical", "numeric")


def test_who_is_positive_and_declined_is_told(read):
    label = read["label"]
    assert (label["positive"], label["declined"], label["outcomes"]) == ("2", "2", {"1": 20, "2": 20})


def test_the_text_says_who_is_declined_and_how_to_turn_it_round(init):
    status, text, _ = init("--positive", "2", "--missing", "*=NA")
    assert status == 0 and "class is '2'" in text and "--positive 1" in text and "telco: 3 features" in text


def test_the_dictionary_to_fill_in_is_read_again_as_it_is(init, read, run, table, tmp_path):
    file = read["dictionary"]["to_fill_in"]
    again = tmp_path / "again"
    status, _, error = run(
        "init", table, *WISH, "--positive", "2", "--dictionary", file, "--out", again, "--name", "again"
    )
    assert status == 0, error
    first, second = load_federation(tmp_path / "out"), load_federation(again)
    assert [f.missing for _, f in first.features()] == [f.missing for _, f in second.features()]
    assert [f.kind for _, f in first.features()] == [f.kind for _, f in second.features()]
    assert second.hosts[0].features[0].categories == {"none": Text("none"), "yes": Text("yes")}


@pytest.mark.parametrize("wish", ["age", "=NA", "age=", "age=na"])
def test_a_missing_text_that_cannot_be_is_refused_in_one_sentence(init, wish, tmp_path):
    status, text, error = init("--positive", "2", "--missing", wish)
    assert (status, text) == (1, "") and error.startswith("Error: ") and not (tmp_path / "out").exists()


def test_a_list_whose_quotation_mark_never_closes_is_refused(run, table, tmp_path):
    status, _, error = run(
        "init", table, "--label", "class", "--guest", 'age,"amount', "--host", "a=b", "--out", tmp_path
    )
    assert status == 1 and "double quotes" in error


def test_the_shipped_dictionary_is_pointed_to_where_it_fits(run, tmp_path):
    names = ["LIMIT_BAL", "SEX", "EDUCATION", "PAY_0", "PAY_2"]
    rows = [f"{1000 + i},{1 + i % 2},{1 + i % 3},0,{i % 5},{i % 2}" for i in range(20)]
    (tmp_path / "c.csv").write_text("\n".join([",".join([*names, "y"]), *rows]), encoding="utf-8")
    words = ("--label", "y", "--guest", "LIMIT_BAL,SEX", "--host", "p=EDUCATION,PAY_0,PAY_2", "--out", tmp_path / "o")
    status, text, _ = run("init", tmp_path / "c.csv", *words, "--json")
    assert status == 0 and json.loads(text)["dictionary"]["shipped"].endswith("credit_card/dictionary.csv")


MESSY = "id,rate,net,home,spend,spend,late,\n" + "".join(
    f"p{i},{i % 50 + 1}.5 %,{f'({i + 1}.25)' if i % 7 == 0 else f'{i + 1}.25'},{('Own', 'own', 'rent')[i % 3]},1,2,"
    f"{'' if i == 5 else ('No', 'Yes', 'yes')[i % 3]},\n"
    for i in range(90)
)
MESSY_WISH = ("--id", "id", "--label", "late", "--positive", "Yes", "--guest", "rate,home", "--host", "shop=net")


def test_what_was_read_otherwise_and_left_out_is_in_the_account_of_init(run, tmp_path):
    (tmp_path / "m.csv").write_text(MESSY + "p3,1 %,1,own,1,2,No,\n", encoding="utf-8")
    words = ("init", tmp_path / "m.csv", *MESSY_WISH, "--out", tmp_path / "m")
    status, _, error = run(*words)
    assert status == 1 and "--one-spelling late" in error
    status, _, error = run(*words, "--one-spelling", "*")
    assert (
        status == 1 and "--leave-out no-outcome" in error and "line 7" in error and "--leave-out repeated-id" in error
    )
    status, _, error = run(*words, "--leave-out", "rows")
    assert status == 1 and "no-outcome" in error
    account = tmp_path / "account.json"
    mends = ("--one-spelling", "*", "--leave-out", "no-outcome", "--leave-out", "repeated-id", "--account", account)
    status, text, error = run(*words, *mends)
    assert status == 0, error
    document = json.loads(account.read_text(encoding="utf-8"))
    notes = {(note["code"], note.get("column", "")): note["values"] for note in document["notes"]}
    assert notes["numbers_in_another_form", "rate"] == {"n": 89, "cell": "'1.5 %'", "number": "1.5"}
    assert notes["numbers_below_zero", "net"] == {"n": 13, "cell": "'(1.25)'", "number": "-1.25"}
    assert notes["spellings_joined", "late"] == {"n": 29, "cells": ["'yes'"], "spelling": "'Yes'"}
    assert notes["repeated_columns_not_used", ""]["columns"] == ["'spend'"]
    assert notes["unnamed_columns_not_used", ""]["numbers"] == [8]
    assert [values["n"] for (code, _), values in notes.items() if code == "rows_left_out"] == [1]
    assert [note["sentence"] for note in document["notes"]] == [
        line.removeprefix("Note: ") for line in text.splitlines() if line.startswith("Note: ")
    ]
    assert "1 row without an outcome was left out: line 7." in text
    assert document["label"]["outcomes"] == {"No": 30, "Yes": 59}
    units = {column["name"]: column["unit"]["en"] for column in document["columns"]}
    assert units == {"rate": "%", "home": "", "net": ""}


@pytest.fixture
def broken(tmp_path):
    """A home with a federation that works and one whose file was damaged."""
    home = tmp_path / "home"
    for name in ("demo", "other"):
        written = write_demo(home / name, rows=100)
        write_federation(written.model_copy(update={"name": name}), home / name)
        with Glassleaf(home, pools=False) as glassleaf:
            glassleaf.federations.add(home / name)
    (home / "other" / "federation.toml").write_text("name = [")
    return home


@pytest.mark.usefixtures("broken")
def test_federations_are_listed_and_a_broken_one_with_its_reason(run):
    status, text, _ = run("federations", "--json")
    body = json.loads(text)
    assert status == 1 and [f["name"] for f in body["federations"]] == ["demo"]
    assert list(body["broken"]) == ["other"] and "federation.toml" in body["broken"]["other"]
    status, text, _ = run("federations")
    assert status == 1 and [line.split()[0] for line in text.splitlines()] == ["demo", "other"]


@pytest.mark.usefixtures("broken")
def test_models_are_listed_beside_a_broken_federation_which_is_named(run):
    status, text, beside = run("models", "--json")
    assert status == 1 and json.loads(text) == [] and "other: " in beside and "federation.toml" in beside
    status, text, beside = run("models")
    assert status == 1 and not text.strip() and "other: " in beside  # that there is no model is not known


def test_where_people_live_and_what_the_model_is_for_stand_in_the_federation(init, tmp_path):
    status, _, _ = init(
        "--positive", "2", "--missing", "age=NA", "--place", "us_colorado", "--place", "uk", "--product", "card"
    )
    made = load_federation(tmp_path / "out")
    assert (status, made.places, made.product) == (0, ("us_colorado", "uk"), "card")


@pytest.mark.parametrize("wish", [("--place", "texas"), ("--product", "cards")])
def test_a_place_or_product_that_no_law_knows_is_refused_with_those_there_are(init, wish):
    status, _, error = init("--positive", "2", "--missing", "age=NA", *wish)
    assert status == 1 and wish[1] in error and ("us_colorado" in error or "mortgage" in error)


def test_dates_become_days_and_a_title_is_named_by_its_row(run, table, tmp_path):
    table.write_text("\n".join(["Customers of 2020", "", HEADER, *ROWS]), encoding="utf-8")
    wish = ["init", table, *WISH, "--out", tmp_path / "out", "--positive", "2", "--missing", "age=NA", "--json"]
    status, _, error = run(*wish, "--days", "opened")
    assert status == 1 and "--header 3" in error
    status, text, _ = run(*wish, "--days", "opened", "--header", "3")
    assert status == 0
    (opened,) = [column for column in json.loads(text)["columns"] if column["name"] == "opened"]
    assert (opened["kind"], opened["unit"]["en"]) == ("numeric", "days since 2020-01-01")
    assert (opened["low"], opened["high"]) == (0.0, 27.0)
    assert run(*wish, "--days", "nothing", "--header", "3")[0] == 1
    assert run(*wish, "--header", "none")[0] != 0
