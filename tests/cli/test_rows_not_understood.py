"""What was not understood in a row is never "ok": ids in another form, unknown codes, people whom a Host does not hold."""

import csv
import io
import json

import pandas as pd
import pytest

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
        parameters = SecureBoostParameters(trees=4, depth=3, cipher="none")
        return glassleaf.training.start(TrainingRequest("codes", parameters, most_named=1.0)).get().id


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
