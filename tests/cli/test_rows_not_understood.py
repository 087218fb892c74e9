"""What was not understood in a row is never "ok": ids in another form, unknown codes, people whom a Host does not hold."""

import csv
import io
import json

import pandas as pd
import pytest
from sqlalchemy import create_engine

from backend.data.dictionary import Feature, Kind
from backend.data.split import Division
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.training import TrainingRequest

WORDS = ("--cipher", "none")
PEOPLE = 400


def rows_of(seed: int = 7) -> list[dict[str, str]]:
    """People whose outcome follows their home and grade; ids of 8 digits."""
    rows = []
    for number in range(PEOPLE):
        home = ("rent", "own", "parents")[number % 3]
        grade = str(1 + number % 2)
        late = home == "rent" or (grade == "2" and number % 5 > 1)
        late = late if number % 11 else not late
        row = {"id": f"{number * seed + 11:08d}", "home": home, "grade": grade, "age": str(20 + number % 50)}
        rows.append({**row, "spend": str(number * 37 % 101), "late": "yes" if late else "no"})
    return rows


def csv_of(rows: list[dict[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@pytest.fixture(scope="module")
def trained(home, tmp_path_factory) -> str:
    """A federation with codes at the Guest and a model of it; returns the model's id."""
    table = tmp_path_factory.mktemp("codes") / "codes.csv"
    table.write_text(csv_of(rows_of()), encoding="utf-8")
    grade = Feature(name="grade", meaning="Grade", kind=Kind.CATEGORICAL)
    division = Division(
        "late", ("home", "grade", "age"), {"shop": ("spend",)}, "id", "yes", meanings={"grade": grade}, name="codes"
    )
    with Glassleaf(home, pools=False) as glassleaf:
        glassleaf.federations.init(table, division, home / "codes", "codes.csv")
        file = home / "codes" / "federation.toml"
        file.write_text(file.read_text().replace("[[hosts]]", "[[hosts]]\nbudget = 0"), encoding="utf-8")
        shop = home / "codes" / "shop.csv"  # the Host has 300 of the 400
        shop.write_text("".join(shop.read_text().splitlines(keepends=True)[:301]), encoding="utf-8")
        parameters = SecureBoostParameters(trees=4, depth=3, cipher="none")
        return glassleaf.training.start(TrainingRequest("codes", parameters)).get().id


@pytest.fixture
def sheet(tmp_path):
    def write(rows, *columns):
        chosen = [{name: row[name] for name in columns or ("id", "home", "grade", "age")} for row in rows]
        (tmp_path / "people.csv").write_text(csv_of(chosen), encoding="utf-8")
        return tmp_path / "people.csv"

    return write


def scores(run, model, path, *more):
    status, text, error = run("score", model, path, *WORDS, "--json", *more)
    return status, json.loads(text) if text else {}, error


def read(file):
    return list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))


def changed(rows, **functions):
    return [{**row, **{name: change(row[name]) for name, change in functions.items()}} for row in rows]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.lstrip("0"), "zeros at the start"),
        (lambda text: f"{int(text)}.0", ".0"),
        (lambda text: f"{text[:4]}-{text[4:]}", "dashes"),
        (lambda text: f"{text[:4]} {text[4:]}", "spaces"),
    ],
)
def test_ids_in_another_form_stop_the_sheet_before_anything_is_asked_and_name_the_cause(
    run, trained, sheet, change, said
):
    known = rows_of()[:30]
    for columns in ((), ("id",)):
        status, document, error = scores(run, trained, sheet(changed(known, id=change), *columns))
        assert status == 1 and not document
        assert "knows 0 of these 30 ids, and 30 more" in error and said in error
    assert scores(run, trained, sheet(known))[0] == 0


def test_fewer_than_ten_are_marked_and_new_people_pass(run, trained, sheet):
    few = changed(rows_of()[:3], id=lambda text: text.lstrip("0"))
    status, document, _ = scores(run, trained, sheet(few))
    assert status == 3 and document["counts"]["partial"] == 3
    remark = document["scores"][0]["remarks"][0]
    assert (remark["code"], remark["values"]["other_id"]) == ("id_written_otherwise", "'00000011'")
    new = changed(rows_of()[:12], id=lambda text: f"9{text[1:]}")
    status, document, _ = scores(run, trained, sheet(new))
    assert {remark["code"] for score in document["scores"] for remark in score["remarks"]} == {"not_held"}
    assert status == 3 and document["counts"] == {"ok": 0, "partial": 12, "refused": 0, "failed": 0}
    assert [note["code"] for note in document["notes"]] == ["ids_new_to_guest", "few_held"]
    assert document["notes"][0]["values"]["n"] == 12


@pytest.mark.parametrize(
    "ids", [lambda number: f"C-{number}", lambda number: f"{number:09d}", lambda number: f"p{number}"]
)
@pytest.mark.parametrize("more", [("score",), ("score", "--out"), ("monitor",)])
def test_ids_that_look_like_none_of_the_hosts_stop_a_table_unless_they_are_meant(
    run, trained, sheet, tmp_path, ids, more
):
    rows = [{**row, "id": ids(number)} for number, row in enumerate(rows_of()[:40])]
    options = ("--out", tmp_path / "scores.parquet") if "--out" in more else ()
    words = (more[0], trained, sheet(rows), *options, "--cipher", "none", "--json")
    status, text, error = run(*words)
    assert status == 1 and not text and "40 of these 40 ids are unknown to the Guest and look like" in error
    status, text, _ = run(*words, "--ids", "as-written")
    assert status == 3 and json.loads(text)["partial" if len(more) > 1 or more == ("monitor",) else "notes"]


def test_people_whom_the_only_host_did_not_have_stop_a_sheet_unless_they_are_meant(run, trained, sheet):
    rows = rows_of()[295:325]
    status, _, error = scores(run, trained, sheet(rows))
    assert status == 1 and "the Host had 5 of these 30 ids at most" in error
    status, document, _ = scores(run, trained, sheet(rows), "--ids", "as-written")
    assert status == 3 and document["counts"] == {"ok": 5, "partial": 25, "refused": 0, "failed": 0}
    (note,) = document["notes"]
    assert (note["code"], note["values"]) == ("few_held", {"n": 5, "rows": 30})


def messy_rows():
    """Twelve people: one age is no number, one is missing, one home is unknown, two are spelt otherwise, two ages have another form."""
    rows = rows_of()[:12]
    changes = {0: {"age": "old"}, 1: {"age": ""}, 2: {"home": "castle"}, 3: {"home": "RENT"}, 4: {"home": "Rent"}}
    changes |= {5: {"age": "( 35 )"}, 6: {"age": " 1 020"}}
    return [{**row, **changes.get(number, {})} for number, row in enumerate(rows)]


@pytest.mark.parametrize("door", ["score", "score --out", "monitor", "page"])
def test_how_a_sheet_was_read_is_a_document_at_every_door(run, home, trained, sheet, tmp_path, monkeypatch, door):
    monkeypatch.setattr("backend.data.row_groups.GROUP", 5)
    account = tmp_path / "account.json"
    rows = messy_rows() if door != "monitor" else [*messy_rows(), *rows_of()[12:40]]
    file = sheet(rows)
    if door == "page":
        with Glassleaf(home, pools=False) as glassleaf:
            document = glassleaf.samples.account(trained, glassleaf.samples.read(trained, file))
    else:
        options = ("--out", tmp_path / "scores.parquet") if "--out" in door else ()
        run(door.split()[0], trained, file, "--cipher", "none", "--json", *options, "--account", account)
        document = json.loads(account.read_text(encoding="utf-8"))
    more = len(rows) - 12
    assert (document["rows"], document["usable"]) == (12 + more, 11 + more)
    columns = {column["name"]: column for column in document["columns"]}
    assert list(columns) == ["home", "grade", "age"]
    age = columns["age"]
    cells = {name: age[name] for name in ("values", "missing", "unreadable", "in_another_form")}
    assert cells == {"values": 10 + more, "missing": 1, "unreadable": 1, "in_another_form": 2}
    assert (age["low"], age["high"], age["kind"]) == (-35, 1020, "numeric")
    assert columns["home"]["unknown_codes"] == {"'castle'": 1, "'RENT'": 1, "'Rent'": 1}
    assert columns["home"]["codes"]["castle"] == 1
    assert document["rows_by_problem"] == {"cell_not_a_number": 1}
    assert document["rows_by_remark"] == {"code_unseen": 1, "code_written_otherwise": 2}
    assert "numbers_in_another_form" in [note["code"] for note in document["notes"]]


def test_how_the_guests_own_table_was_read_is_a_document_for_validate(run, trained, tmp_path):
    account = tmp_path / "account.json"
    run("validate", trained, "--samples", "20", "--cipher", "none", "--account", account)
    document = json.loads(account.read_text(encoding="utf-8"))
    assert document["rows"] == document["usable"] == PEOPLE
    columns = {column["name"]: column for column in document["columns"]}
    assert (
        columns["home"]["codes"] == {"rent": 134, "own": 133, "parents": 133} and not columns["home"]["unknown_codes"]
    )
    assert (columns["age"]["low"], columns["age"]["high"], columns["age"]["missing"]) == (20, 69, 0)


def test_a_decimal_comma_is_said_where_a_sheet_is_scored(run, trained, sheet):
    rows = changed(rows_of()[:12], age=lambda text: f"{text},5")
    document = scores(run, trained, sheet(rows))[1]
    (note,) = [note for note in document["notes"] if note["code"] == "numbers_with_commas"]
    assert note["column"] == "age" and note["values"] == {"n": 12, "cell": "'20,5'", "number": "20.5"}


def test_two_ids_that_differ_in_writing_alone_are_named(run, trained, sheet):
    rows = rows_of()[:3]
    rows[2] = {**rows[2], "id": rows[0]["id"].lstrip("0")}
    _, document, _ = scores(run, trained, sheet(rows))
    (note,) = [note for note in document["notes"] if note["code"] == "ids_alike"]
    assert note["values"]["n"] == 1 and "'11' for '00000011'" in note["sentence"]


def test_what_is_counted_is_counted_over_all_groups_of_a_long_table(run, trained, sheet, tmp_path, monkeypatch):
    monkeypatch.setattr("backend.data.row_groups.GROUP", 50)
    monkeypatch.setattr("backend.data.parquet_file.BATCH", 50)
    rows = [{**row, "home": "castle" if number % 2 else "RENT"} for number, row in enumerate(rows_of()[:200])]
    table = tmp_path / "long.parquet"
    pd.DataFrame(rows)[["id", "home", "grade", "age"]].to_parquet(table)
    status, document, _ = scores(run, trained, table, "--out", tmp_path / "scores.parquet")
    counted = {note["values"]["example"]["code"]: note["values"]["n"] for note in document["notes"]}
    assert status == 3 and document["partial"] == 200
    assert counted == {"code_written_otherwise": 100, "code_unseen": 100}


def test_people_whom_no_host_holds_are_counted_over_all_groups_of_a_long_table(
    run, trained, sheet, tmp_path, monkeypatch
):
    monkeypatch.setattr("backend.data.row_groups.GROUP", 50)
    rows = rows_of()[250:400]  # the Host has the first 50 of them
    words = ("--ids", "as-written", "--out", tmp_path / "scores.parquet")
    status, document, _ = scores(run, trained, sheet(rows), *words)
    (note,) = [note for note in document["notes"] if note["code"] == "few_held"]
    assert status == 3 and note["values"] == {"n": 50, "rows": 150}


def test_monitoring_names_new_codes_and_the_share_of_rows_understood_in_part(run, trained, sheet):
    rows = rows_of()[:40]
    for number in range(10):
        rows[number] = {
            **rows[number],
            "home": "castle" if number < 6 else "Own",
            "grade": f"{rows[number]['grade']}.0",
        }
    words = ("monitor", trained, sheet(rows), "--cipher", "none")
    document = json.loads(run(*words, "--json")[1])
    assert document["partial"] == 10
    assert document["new_codes"] == [["home", "'Own'", 4], ["home", "'castle'", 6]]


def test_a_whole_code_has_one_value_in_whatever_form(run, trained, sheet):
    plain = scores(run, trained, sheet(rows_of()[:8]))
    for form in (lambda text: f"{text}.0", lambda text: f"0{text}", lambda text: f" {text}"):
        status, document, _ = scores(run, trained, sheet(changed(rows_of()[:8], grade=form)))
        assert status == 0
        assert [s["units"] for s in document["scores"]] == [s["units"] for s in plain[1]["scores"]]


@pytest.mark.parametrize(
    ("text", "code", "known"),
    [
        ("RENT", "code_written_otherwise", "'rent'"),
        (" Ow-n", "code_written_otherwise", "'own'"),
        ("castle", "code_unseen", None),
    ],
)
def test_a_code_that_nobody_trained_on_is_marked_and_counted(run, trained, sheet, tmp_path, text, code, known):
    rows = rows_of()[:6]
    rows[1] = {**rows[1], "home": text}
    out = tmp_path / "scores.csv"
    status, document, _ = scores(run, trained, sheet(rows), "--out", out)
    (remark,) = document["scores"][1]["remarks"]
    assert (status, document["scores"][1]["status"]) == (3, "partial")
    assert (remark["code"], remark["column"], remark["values"].get("known")) == (code, "home", known)
    assert document["notes"][-1]["code"] == "marked_rows" and document["notes"][-1]["values"]["n"] == 1
    lines = read(out)
    assert [line["status"] for line in lines] == ["ok", "partial", *["ok"] * 4]
    assert lines[1]["remarks"] == f"{code}:home"


def test_into_parquet_rows_have_the_same_status_and_remarks(run, trained, sheet, tmp_path):
    rows = rows_of()[:6]
    rows[2] = {**rows[2], "home": "castle"}
    out = tmp_path / "scores.parquet"
    status, document, _ = scores(run, trained, sheet(rows), "--out", out)
    assert status == 3 and (document["scored"], document["partial"], document["failed"]) == (6, 1, 0)
    found = pd.read_parquet(out)
    assert found.status.tolist() == ["ok", "ok", "partial", "ok", "ok", "ok"]
    assert found.remarks[2] == "code_unseen:home"
    lost = changed(rows_of()[:30], id=lambda text: text.lstrip("0"))
    assert "zeros at the start" in scores(run, trained, sheet(lost), "--out", tmp_path / "lost.parquet")[2]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_spent_budget_takes_no_score_from_a_file_that_has_it(run, home, tmp_path, monkeypatch, form):
    monkeypatch.setenv("GLASSLEAF_BUDGET", "1")
    with Glassleaf(home, pools=False) as glassleaf:
        demo = glassleaf.models.all("demo")[0]
        known = glassleaf.models.test_ids(demo)[: 5 if form == "csv" else 10][-5:]
        column = glassleaf.federations.get("demo").guest.id
    out = tmp_path / f"scores.{form}"
    people = tmp_path / "people.csv"
    people.write_text("\n".join([column, *known[:3]]), encoding="utf-8")
    assert run("score", demo.id, people, *WORDS, "--out", out)[0] == 0
    load = pd.read_parquet if form == "parquet" else pd.read_csv
    before = load(out)
    people.write_text("\n".join([column, *known[:4]]), encoding="utf-8")
    status, text, _ = run("score", demo.id, people, *WORDS, "--out", out, "--json")
    after = load(out)
    assert status == 3 and json.loads(text)["kept"] == 3
    assert after.status.tolist() == ["ok"] * 4 and after.score.tolist()[:3] == before.score.tolist()
    assert after.remarks.tolist()[:3] == ["kept_from_earlier_file"] * 3
    # another model's scores are not kept
    before.assign(model="another").to_csv(out) if form == "csv" else before.assign(model="another").to_parquet(out)
    people.write_text("\n".join([column, *known]), encoding="utf-8")
    assert run("score", demo.id, people, *WORDS, "--out", out, "--json")[0] == 3
    assert load(out).status.tolist() == [*["failed"] * 4, "ok"]
    assert "kept_from_earlier_file" not in str(load(out).remarks.tolist())


def test_rows_that_an_earlier_file_has_are_kept_if_they_cannot_be_scored_again(run, trained, sheet, tmp_path):
    rows = rows_of()[:4]
    out = tmp_path / "scores.csv"
    assert scores(run, trained, sheet(rows[:3]), "--out", out)[0] == 0
    before = read(out)
    broken = [{**row, "age": "old"} for row in rows[:2]]  # these cannot be read now
    status, document, _ = scores(run, trained, sheet([*broken, *rows[2:]]), "--out", out)
    after = read(out)
    assert (status, document["kept"]) == (3, 2)
    assert [line["score"] for line in after[:3]] == [line["score"] for line in before]
    assert [line["remarks"] for line in after] == ["kept_from_earlier_file", "kept_from_earlier_file", "", ""]
    assert [line["status"] for line in after] == ["ok"] * 4


@pytest.mark.parametrize("column", ["id", "grade"])
def test_floats_that_may_have_been_several_whole_numbers_are_no_ids_and_no_codes(run, trained, tmp_path, column):
    rows = [{**row, column: float(2**53 + 2 * number)} for number, row in enumerate(rows_of()[:4])]
    table = tmp_path / "people.parquet"
    pd.DataFrame(rows)[["id", "home", "grade", "age"]].to_parquet(table)
    status, document, error = scores(run, trained, table)
    assert status == 1 and "too large to tell it from its neighbours" in error + json.dumps(document)
    whole = pd.DataFrame(rows).astype({column: "int64"})[["id", "home", "grade", "age"]]
    whole.to_parquet(table)
    assert scores(run, trained, table)[0] == 3


@pytest.mark.parametrize("column", ["id", "grade"])
def test_floats_of_a_database_that_may_have_been_several_whole_numbers_are_no_ids_and_no_codes(
    run, trained, tmp_path, column
):
    rows = [{**row, column: float(2**53 + 2 * number)} for number, row in enumerate(rows_of()[:4])]
    url = f"sqlite:///{tmp_path / 'bank.db'}"
    engine = create_engine(url)
    frame = pd.DataFrame(rows)[["id", "home", "grade", "age"]]
    frame.to_sql("floats", engine, index=False)
    frame.astype({column: "int64"}).to_sql("whole", engine, index=False)
    engine.dispose()
    out = tmp_path / "scores.csv"
    words = ("score", trained, url, "--out", out, "--cipher", "none", "--json")
    status, text, _ = run(*words, "--table", "floats")
    assert status == 1 and json.loads(text)["failed"] == 4
    assert all("too large to tell it from its neighbours" in line["problem"] for line in read(out))
    status, text, _ = run(*words, "--table", "whole")
    assert status == 3 and json.loads(text)["partial"] == 4


def test_floats_that_may_have_been_several_ids_make_no_federation(run, tmp_path):
    rows = [{**row, "id": float(2**53 + 2 * number)} for number, row in enumerate(rows_of()[:4])]
    pd.DataFrame(rows).to_parquet(tmp_path / "table.parquet")
    words = ("init", tmp_path / "table.parquet", "--label", "late", "--guest", "age", "--host", "shop=spend")
    status, _, error = run(*words, "--id", "id", "--out", tmp_path / "made")
    assert status == 1 and "too large to tell" in error


def test_numbers_that_stand_for_no_value_are_asked_about_and_the_account_is_a_file(run, tmp_path):
    rows = [{**row, "spend": "-999" if number % 40 == 0 else row["spend"]} for number, row in enumerate(rows_of())]
    rows[1] = {**rows[1], "id": "11"}  # beside 00000011
    for number in range(30):
        rows[number] = {**rows[number], "home": "unknown"}
    (tmp_path / "table.csv").write_text(csv_of(rows), encoding="utf-8")
    account = tmp_path / "account.json"
    words = (
        "init",
        tmp_path / "table.csv",
        "--label",
        "late",
        "--guest",
        "age,home",
        "--host",
        "shop=spend",
        "--id",
        "id",
    )
    status, text, _ = run(*words, "--name", "apart", "--out", tmp_path / "a", "--account", account)
    assert status == 0 and "'-999' 10 stand apart from the other numbers" in text and "--missing spend=-999" in text
    document = json.loads(account.read_text(encoding="utf-8"))
    (spend,) = [column for column in document["columns"] if column["name"] == "spend"]
    assert [note["code"] for note in document["notes"]] == ["ids_alike"] and "'11' for '00000011'" in text
    assert document["unclear"] == ["home", "spend"] and spend["unclear"] == {"-999": 10} and spend["low"] == -999
    more = ("--missing", "spend=-999", "--name", "meant", "--out", tmp_path / "b", "--json")
    document = json.loads(run(*words, *more)[1])
    (spend,) = [column for column in document["columns"] if column["name"] == "spend"]
    assert document["unclear"] == ["home"] and spend["low"] == 0 and spend["missing"] == {"-999": 10}
