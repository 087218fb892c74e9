"""A messy file of one's own is read, mended by the presses that its columns offer, trained on, scored and explained."""

from dataclasses import replace

import pytest

from backend.data.federation import Federation
from backend.data.table import read_samples
from backend.data.table_file import Reading
from backend.errors import AmbiguousFile, FederationError
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.own_data import Draft, OwnHost
from backend.services.reasons import ReasonsRequest
from backend.services.training import TrainingRequest
from tests.messy import FILES, MessyFile
from tests.release_rule import EVERY_SCORE


@pytest.fixture
def glassleaf(tmp_path):
    with Glassleaf(tmp_path / "home", pools=False) as service:
        yield service


def begun(glassleaf: Glassleaf, file: MessyFile) -> Draft:
    """The draft of a file, once each question about it was answered."""
    how = Reading()
    asked = []
    while True:
        try:
            draft = glassleaf.own_data.begin(file.name, file.data, how)
        except AmbiguousFile as question:
            answer = file.answers[question.question]
            assert answer in question.choices
            asked.append(question.question)
            how = replace(how, **{question.question: answer})
            continue
        assert asked == list(file.answers)
        return draft


def mended(glassleaf: Glassleaf, file: MessyFile) -> Draft:
    service = glassleaf.own_data
    draft = begun(glassleaf, file)
    assert draft.id_column == file.id_column
    draft = draft.model_copy(update={"label": file.label})
    assert tuple(service.odd_rows(draft)) == file.leave_out
    draft = draft.model_copy(update={"leave_out": file.leave_out})
    if file.one_spelling:
        assert service.outcomes(draft, file.label).alike
        draft = draft.model_copy(update={"one_spelling": (file.label,)})
    outcomes = service.outcomes(draft, file.label)
    assert outcomes.tasks[0] == "binary" and not outcomes.empty and file.positive in outcomes.counts
    draft = draft.model_copy(update={"task": "binary", "positive": file.positive, "hosts": (OwnHost(title="Shop"),)})
    columns = [column for column in service.columns(draft) if column.name not in (file.id_column, file.label)]
    draft = draft.given([columns[0].name], 0).given([column.name for column in columns[1:]], 1)
    found = {}
    for column in columns:
        for oddity in column.odd:
            found[column.name] = oddity.mends[0]
            draft = draft.mend(column.name, oddity, oddity.mends[0])
            assert draft.mended(column.name, oddity) == oddity.mends[0]
    assert found == dict(file.mends)
    return service.save(draft.model_copy(update={"guest_title": "Bank", "title": "People", "name": "people"}))


def made(glassleaf: Glassleaf, file: MessyFile) -> Federation:
    return glassleaf.own_data.make(mended(glassleaf, file))


@pytest.mark.parametrize("name", FILES)
def test_a_messy_file_is_mended_by_what_its_columns_offer_trained_on_scored_and_explained(glassleaf, name):
    made(glassleaf, FILES[name])
    parameters = SecureBoostParameters(trees=2, depth=2, cipher="none")
    record = glassleaf.training.start(TrainingRequest("people", parameters, most_named=EVERY_SCORE)).get()
    person = glassleaf.samples.of_person(record.id, "p1")
    reasons = glassleaf.reasons.start(ReasonsRequest(record.id, person, cipher="rlwe")).get()
    (answer,) = reasons.people
    assert answer.score.scored and not answer.problems


def cells(federation: Federation, party: str, column: str) -> list[str]:
    header, *rows = (federation.folder / f"{party}.csv").read_text(encoding="utf-8").splitlines()
    place = header.split(",").index(column)
    return [row.split(",")[place] for row in rows]


def test_dates_of_three_forms_are_the_same_days_since_one_first_of_january(glassleaf):
    federation = made(glassleaf, FILES["three-forms-of-dates.csv"])
    days = [cells(federation, "guest", "opened"), *(cells(federation, "shop", name) for name in ("moved", "hired"))]
    assert days[0] == days[1] == days[2] and min(map(int, days[0])) == 4
    units = {feature.name: feature.unit.en for _, feature in federation.features()}
    assert units["opened"] == units["moved"] == units["hired"] == "days since 2000-01-01"
    # A sheet of people is read in the same unit, and no date is read that leaves its day open.
    sheet = glassleaf.federations.all()[0]
    read = read_samples(sheet, b"id,opened\np1,2000-01-15\np2,15/01/2000\np3,20000115\np4,10\n")
    assert read.guest.columns["opened"].tolist() == [14, 14, 14, 10]
    open_day = read_samples(sheet, b"id,opened\np1,03/04/2000\n")
    assert [remark.code for remark in open_day.problems[0]] == ["cell_not_one_day"]


def test_merged_cells_have_the_value_that_a_person_sees(glassleaf):
    federation = made(glassleaf, FILES["title-and-merged-cells.xlsx"])
    branches = cells(federation, "guest", "branch")
    assert branches == [branch for branch in ("North", "South", "East", "West") for _ in range(60)]


def test_a_date_that_may_be_two_is_asked_and_never_guessed(glassleaf):
    rows = "".join(f"p{n},0{n % 9 + 1}/0{n % 7 + 1}/2020,{n},{('no', 'yes')[n % 2]}\n" for n in range(1, 60))
    service = glassleaf.own_data
    draft = service.begin("dates.csv", f"id,opened,income,late\n{rows}".encode())
    (opened,) = [column for column in service.columns(draft) if column.name == "opened"]
    (dates,) = opened.odd
    assert dates.mends[:2] == ("days_dmy", "days_mdy")
    said = {
        "label": "late",
        "task": "binary",
        "positive": "yes",
        "hosts": (OwnHost(title="Shop", columns=("income",)),),
    }
    draft = draft.model_copy(update=said).given(["opened"], 0)
    units = []
    for mend in dates.mends[:2]:
        federation, _ = service.overview(draft.mend("opened", dates, mend))
        units.append(federation.guest.features[0].unit.en)
    assert units == ["days since 2020-01-01", "days since 2020-01-01"]
    with pytest.raises(FederationError) as caught:
        service.overview(draft.model_copy(update={"days": {"opened": ""}}))
    assert [remark.code for remark in caught.value.remarks] == ["date_order_unclear"]


def with_column(service, column):
    """A draft of a table with such a column, and the column."""
    rows = "".join(f"p{n},{cell},{n},{('no', 'yes')[n % 2]}\n" for n, cell in enumerate(column))
    draft = service.begin("odd.csv", f"id,x,income,late\n{rows}".encode())
    return draft, next(one for one in service.columns(draft) if one.name == "x")


def test_a_mend_that_cannot_be_written_down_is_not_offered(glassleaf):
    for column in (["a;b"] * 3 + list(range(40)), ["$3", "£4", "€5"] * 20):
        _, x = with_column(glassleaf.own_data, column)
        assert x.odd and not any("missing" in oddity.mends for oddity in x.odd)


def test_what_was_mended_stays_when_a_dictionary_says_nothing_of_it_and_is_undone_once(glassleaf):
    service = glassleaf.own_data
    draft, x = with_column(service, ["9999"] * 8 + [str(n) for n in range(9, 61)])
    (odd,) = [oddity for oddity in x.odd if oddity.code == "sentinels"]
    mended = service.with_dictionary(draft.mend("x", odd, "missing"), "d.csv", b"name,meaning\nx,Amount")
    assert mended.missing("x") == ("9999",) and mended.entries["x"]["meaning"] == "Amount"
    undone = mended.model_copy(update={"days": {"x": "dmy"}}).unmend("x", odd).unmend("x", odd)
    assert undone.missing("x") == () and undone.days == {"x": "dmy"}


def odd(column):
    """What is odd about a column: code → texts."""
    return {oddity.code: set(oddity.cells) for oddity in column.odd}


def test_undoing_a_mend_gives_back_what_was_said_before_it(glassleaf):
    draft, x = with_column(glassleaf.own_data, ["NA", "9999"] * 4 + [str(n) for n in range(9, 61)])
    absent, far = x.odd
    draft = draft.saying("x", missing="NA;9999", kind="numeric")
    again = draft.mend("x", absent, "missing").mend("x", far, "missing").unmend("x", far)
    assert again.missing("x") == ("NA",)  # said before, and yet undone: a press does something
    _, dates = with_column(glassleaf.own_data, ["2024-01-31", "2024-02-01"] * 20)
    (days,) = dates.odd
    told = draft.saying("x", kind="categorical", missing="NA").mend("x", days, "days_dmy").unmend("x", days)
    assert told.entries["x"]["kind"] == "categorical" and told.missing("x") == ("NA",) and not told.days
    added = told.mend("x", far, "missing").mend("x", absent, "missing").unmend("x", far)
    assert added.missing("x") == ("NA",)


def read_with(glassleaf, column, mend):
    """The feature and the Guest's cells of a column that one press has mended."""
    service = glassleaf.own_data
    draft, x = with_column(service, column)
    draft = draft.mend("x", x.odd[0], mend)
    assert draft.kind(x) == "numeric" and draft.mended("x", x.odd[0]) == mend
    draft = draft.model_copy(update={"label": "late", "task": "binary", "positive": "yes", "name": "people"})
    draft = draft.model_copy(update={"hosts": (OwnHost(title="Shop", columns=("income",)),)}).given(["x"], 0)
    _, overview = service.overview(draft)
    federation = service.make(service.save(draft))
    return federation.guest.features[0].unit.en, cells(federation, "guest", "x"), {note.code for note in overview.notes}


@pytest.mark.parametrize(
    ("column", "mend", "unit", "numbers", "note"),
    [
        (["29.3%", "0.293", "0%", "7.25%"], "shares", "", ["0.293", "0.293", "0", "0.0725"], "percent_as_shares"),
        (["29.3%", "0.293", "0%", "7.25%"], "same_sign", "%", ["29.3", "0.293", "0", "7.25"], "sign_assumed"),
        (["$12.5", "(12.5)", "$7.5", "0"], "same_sign", "$", ["12.5", "-12.5", "7.5", "0"], "sign_assumed"),
    ],
)
def test_numbers_with_and_without_a_sign_are_read_as_one_press_says(glassleaf, column, mend, unit, numbers, note):
    found_unit, found, notes = read_with(glassleaf, column * 10, mend)
    assert (found_unit, found[:4]) == (unit, numbers) and note in notes


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (["2024-03-31", "2024-04-01", "2024-05-07", "45382", "45383"] * 8, {"serials", "dates"}),
        (["2024-03-31", "2024-04-01", "2024-05-07", "soon", "later"] * 8, {"no_dates", "dates"}),
        (["2024-03-31", "2024-04-01", "9999-12-31", "1900-01-01"] * 10, {"no_days", "dates"}),
        (["1958-03-31", "1990-04-01", "1970-01-01", "1970-01-01"] * 10, {"dates"}),
        (["1k", "2k", "5k", "20"] * 10, {"with_digits"}),
        (["1/2", "1/2/3", "2", "3"] * 10, {"with_digits"}),
        (["A1", "B2", "3+", "own"] * 10, set()),
        (["Y", "yes", "no", "perhaps", "never"] * 8, {"short_forms"}),
        (["N", "S", "E", "W", "no"] * 8, set()),
        (["$3", "£4", "€5"] * 20, {"signs"}),
    ],
)
def test_what_was_not_understood_is_said_in_its_columns_row(glassleaf, column, said):
    _, x = with_column(glassleaf.own_data, column)
    assert set(odd(x)) == said and all(oddity.mends for oddity in x.odd)


def test_letters_and_words_for_yes_become_one_by_one_press(glassleaf):
    service = glassleaf.own_data
    draft, x = with_column(service, ["Y", "yes", "no", "perhaps", "never"] * 8)
    draft = draft.mend("x", x.odd[0], "one_spelling")
    draft = draft.model_copy(update={"label": "late", "task": "binary", "positive": "yes", "name": "people"})
    draft = draft.model_copy(update={"hosts": (OwnHost(title="Shop", columns=("income",)),)}).given(["x"], 0)
    federation = service.make(service.save(draft))
    assert sorted(set(cells(federation, "guest", "x"))) == ["Y", "never", "no", "perhaps"]


def test_a_mend_that_would_be_refused_for_a_texts_length_or_letters_is_not_offered(glassleaf):
    for text in ("x" * 300, "soon\u00ad", "a;b"):
        _, x = with_column(glassleaf.own_data, [*(["2024-03-31", "2024-04-02", "2024-05-07"] * 14), text])
        (others,) = [oddity for oddity in x.odd if oddity.code == "no_dates"]
        assert others.mends == (), text
