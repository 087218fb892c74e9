"""A federation made step by step says the same as `glassleaf init`, whatever form the table had; what fails leaves nothing."""

import io
import os
import time

import openpyxl
import pytest

from backend.data import split
from backend.errors import AmbiguousFile, FederationError
from backend.i18n import Text
from backend.services import Glassleaf
from backend.services.federations import Division
from backend.services.own_data import OwnHost

TABLE = "ID,age,income,home,late\n" + "".join(
    f"p{n},{20 + n},{1000 + n}.5,{'own' if n % 3 else 'NA'},{'no' if n % 4 else 'yes'}\n" for n in range(1, 41)
)


@pytest.fixture
def glassleaf(tmp_path):
    with Glassleaf(tmp_path / "home", pools=False) as service:
        yield service


def as_workbook(text):
    book = openpyxl.Workbook()
    for number, line in enumerate(text.splitlines()):
        cells = line.split(",")
        book.active.append(cells if not number else [cells[0], int(cells[1]), float(cells[2]), *cells[3:]])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def said(service, draft):
    """The draft with everything that its steps ask."""
    return service.save(
        draft.model_copy(
            update={
                "label": "late",
                "task": "binary",
                "positive": "yes",
                "label_meaning": Text("Pays late"),
                "guest": ("age",),
                "hosts": (OwnHost(title="Shop", columns=("income", "home")),),
                "entries": {"home": {"meaning": "Home", "kind": "categorical", "missing": "NA"}},
                "title": "People",
                "name": "people",
            }
        )
    )


def written(folder):
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}


@pytest.mark.parametrize("form", ["csv", "xlsx", "semicolons and commas"])
def test_the_pages_make_what_the_command_makes(glassleaf, tmp_path, form):
    data = {
        "csv": TABLE.encode(),
        "xlsx": as_workbook(TABLE),
        "semicolons and commas": TABLE.replace(",", ";").replace(".", ",").encode(),
    }[form]
    service = glassleaf.own_data
    draft = said(service, service.begin("people.csv", data))
    assert draft.id_column == "ID"
    read = service.overview(draft)[1]
    assert (read.positive, read.outcomes) == ("yes", {"no": 30, "yes": 10})
    made = service.make(draft)
    (tmp_path / "people.csv").write_text(TABLE, encoding="utf-8")
    (tmp_path / "dictionary.csv").write_text("name,meaning,kind,missing\nhome,Home,categorical,NA\n", encoding="utf-8")
    told = Division("late", ["age"], {"shop": ["income", "home"]}, "ID", "yes", "binary", tmp_path / "dictionary.csv")
    told = split.replace(told, name="people", title="People", label_meaning="Pays late")
    split.split_table(tmp_path / "people.csv", told, tmp_path / "by_hand")
    assert written(made.folder) == written(tmp_path / "by_hand")
    assert made.folder == glassleaf.home / "federations" / "people"
    assert [one.name for one in glassleaf.federations.all()] == ["people"]
    assert service.drafts() == [] and not list((glassleaf.home / "drafts").iterdir())


def test_a_draft_is_found_again_by_its_owner_alone(glassleaf):
    draft = said(glassleaf.own_data, glassleaf.own_data.begin("people.csv", TABLE.encode()))
    mine = glassleaf.acting(glassleaf._auditor.actor, "operator").own_data
    assert mine.drafts() == [draft] and mine.draft(draft.id) == draft
    theirs = glassleaf.acting("somebody else", "operator").own_data
    assert theirs.drafts() == [] and theirs.draft(draft.id) is None
    assert mine.draft("../../etc") is None


def test_what_is_no_table_or_leaves_something_open_begins_nothing(glassleaf):
    service = glassleaf.own_data
    for data, told in (
        (b"", "the file is empty"),
        (b"a,b\n", "a header but no row"),
        (b"People,,,\na,,,\n", "3 of 4 columns have no name"),
        (b"People,,,\na,b,c,d\n", "a title stands above the columns' names"),
    ):
        with pytest.raises(FederationError, match=f"people.csv.*{told}"):
            service.begin("people.csv", data)
    with pytest.raises(AmbiguousFile):
        service.begin("people.csv", "id,Stra\xdfe\n1,x\n".encode("latin-1"))
    assert not (glassleaf.home / "drafts").exists()


def test_columns_and_outcomes_are_told_in_advance(glassleaf):
    service = glassleaf.own_data
    draft = service.begin("people.csv", TABLE.encode())
    kinds = {column.name: column.kind for column in service.columns(draft)}
    assert kinds == {
        "ID": "categorical",
        "age": "numeric",
        "income": "numeric",
        "home": "categorical",
        "late": "boolean",
    }
    absent, constant = next(c for c in service.columns(draft) if c.name == "home").odd
    assert (absent.code, absent.cells, absent.blocks) == ("missing_texts", {"NA": 13}, False)
    assert constant.code == "constant"
    assert service.outcomes(draft, "late").tasks == ("binary",)
    assert service.outcomes(draft, "age").tasks[0] == "number" and service.outcomes(draft, "ID").tasks == ()
    assert service.outcomes(draft, "home").empty == 13


def test_a_dictionary_fills_in_the_meanings(glassleaf):
    service = glassleaf.own_data
    draft = said(service, service.begin("people.csv", TABLE.encode()))
    rows = "name,meaning,meaning_zh,unit\nage,Age,年龄,years\nlate,Late payer,,\nother,Other,,\n"
    draft = service.with_dictionary(draft, "d.csv", rows.encode())
    assert (draft.entries["age"]["meaning_zh"], draft.label_meaning.en, "other" in draft.entries) == (
        "年龄",
        "Late payer",
        False,
    )
    before = {column.name: column.kind for column in service.columns(draft)}
    draft = service.with_dictionary(draft, "d.csv", b"name,meaning\nhome,Home\nage,Age\n")  # names no kind
    kinds = {
        feature.name: feature.kind.value for party in service.overview(draft)[0].parties for feature in party.features
    }
    assert kinds["home"] == before["home"] == "categorical" and kinds["age"] == "numeric"
    with pytest.raises(FederationError, match=r"d\.csv: there is no column 'meaning'"):
        service.with_dictionary(draft, "d.csv", b"name\nage\n")


def test_a_meaning_in_chinese_alone_is_a_meaning(glassleaf):
    service = glassleaf.own_data
    draft = said(service, service.begin("people.csv", TABLE.encode()))
    draft = draft.model_copy(update={"entries": {"age": {"meaning_zh": "年龄"}}})
    _, read = service.overview(draft)
    assert {column.name for column in read.columns if column.described} == {"age"}


def test_what_fails_leaves_nothing_half_written(glassleaf, monkeypatch, tmp_path):
    service = glassleaf.own_data
    draft = said(service, service.begin("people.csv", TABLE.encode()))
    real = split.load_federation

    def full(path, **settings):
        raise OSError("no space left")

    monkeypatch.setattr(split, "load_federation", full)
    with pytest.raises(OSError, match="no space"):
        service.make(draft)
    assert not list((glassleaf.home / "federations").iterdir()) and service.draft(draft.id) == draft
    monkeypatch.setattr(split, "load_federation", real)
    service.make(draft)
    again = said(service, service.begin("people.csv", TABLE.encode()))
    before = written(glassleaf.home / "federations" / "people")
    with pytest.raises(FederationError, match="There is a federation people already"):
        service.make(again)
    assert written(glassleaf.home / "federations" / "people") == before and service.draft(again.id) == again


def test_a_federation_is_added_from_its_files_whole_or_not_at_all(glassleaf):
    service = glassleaf.own_data
    made = service.make(said(service, service.begin("p.csv", TABLE.encode())))
    files = {name: text.encode() for name, text in written(made.folder).items()}
    other = files | {"federation.toml": files["federation.toml"].replace(b'name = "people"', b'name = "others"')}
    assert glassleaf.federations.add_files(other).name == "others"
    with pytest.raises(FederationError, match="already"):
        glassleaf.federations.add_files(other)
    with pytest.raises(FederationError, match=r"shop\.csv: no such file"):
        glassleaf.federations.add_files({name: data for name, data in files.items() if name != "shop.csv"})
    assert {folder.name for folder in (glassleaf.home / "federations").iterdir()} == {"people", "others"}


def test_a_draft_that_nobody_touches_for_a_month_is_deleted_with_its_table(glassleaf):
    old, kept = (glassleaf.own_data.begin("people.csv", TABLE.encode()) for _ in range(2))
    folder = glassleaf.home / "drafts" / old.id
    then = time.time() - 30 * 86_400 - 1
    os.utime(folder / "draft.json", (then, then))
    assert [draft.id for draft in glassleaf.own_data.drafts()] == [kept.id]
    assert not folder.exists()


def test_a_number_that_stands_apart_is_offered_as_no_value(glassleaf):
    rows = ""
    for n in range(1, 90):
        days = -1 if n % 2 else n
        past_due = {3: 96, 4: 98, 5: 98, 6: 96}.get(n, n % 4)
        rows += f"{n},{-999 if n % 9 == 0 else n % 50},{days},{past_due},{'yes' if n % 3 else 'no'}\n"
    draft = glassleaf.own_data.begin("apart.csv", f"id,spend,days,past_due,late\n{rows}".encode())
    apart = {}
    for column in glassleaf.own_data.columns(draft):
        for oddity in column.odd:
            if oddity.code == "sentinels":
                apart[column.name] = oddity.cells
    assert apart == {"spend": {"-999": 9}, "days": {"-1": 45}, "past_due": {"96": 2, "98": 2}}
