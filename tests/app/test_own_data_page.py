"""The page "Your data": from a table to a federation that can be trained on, and a model that is proved before it is kept."""

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost
from streamlit.testing.v1 import AppTest

from app import session
from app.panels import attention
from app.texts import Texts
from backend.errors import FederationError, ReleaseRefused
from backend.i18n import Text
from backend.jobs import Job, work
from backend.remark import Remark
from backend.services import Glassleaf
from backend.services.federations import Federations
from backend.services.import_proof import Proof
from backend.services.job_registry import Upload
from backend.services.leakage import MAX_IDENTIFYING
from backend.services.model_import import Brought
from tests.app.conftest import Opened, World, _fresh, job_of
from tests.app.reading_out import everything, says

T = Texts("en")
TABLE = "ID,age,income,home,late\n" + "".join(
    f"p{n},{20 + n},{1000 + n},{'own' if n % 3 else 'rent'},{'no' if n % 4 else 'yes'}\n" for n in range(1, 41)
)


def begun(opened: Opened, data: bytes = TABLE.encode(), name: str = "people.csv") -> AppTest:
    at = opened("own_data")
    at.file_uploader(key="own_upload").upload(name, data)
    return at.run()


def key(at: AppTest, name: str) -> str:
    return f"own_{at.session_state['kept:own_draft']}_{name}"


def pressed(at: AppTest, name: str) -> AppTest:
    return at.button(key=name).click().run()


def with_outcome(at: AppTest) -> AppTest:
    at.selectbox(key=key(at, "label")).select("late").run()
    at.radio(key=key(at, "positive_late")).set_value("yes").run()
    at.text_input(key=key(at, "meaning_late")).set_value("Pays late").run()
    return pressed(at, "own_next")


def with_columns(at: AppTest) -> AppTest:
    at.text_input(key=key(at, "title_1")).set_value("Shop").run()
    at.selectbox(key=key(at, "party_age")).select_index(0).run()
    return pressed(at, "own_give_1")


def with_parties(at: AppTest) -> AppTest:
    return pressed(with_columns(at), "own_next")


MESSY = "ID,age,income,home,late\n" + "".join(
    f'p{n},{20 + n}.5 %,"${1000 + n}.25",{("Own", "own", "rent")[n % 3]},{"" if n == 9 else ("no", "yes", "Yes")[n % 3]}\n'
    for n in range(1, 41)
)


def test_a_messy_table_is_mended_by_one_press_each_and_the_page_says_how_it_was_read(opened_empty: Opened) -> None:
    at = begun(opened_empty, (MESSY + "p3,1 %,$1.25,own,no\n").encode())
    at.selectbox(key=key(at, "label")).select("late").run()
    assert not at.exception and at.button(key="own_next").disabled
    labels = [box.label.replace("\\", "") for box in at.checkbox]
    assert any("Leave out 1 row without an outcome: line 10" in label for label in labels)
    assert any("Leave out 1 row whose id an earlier row has: line 42" in label for label in labels)
    assert any("late: take" in label and "Yes" in label for label in labels)
    for name in ("leave_out_no-outcome", "one_spelling_late"):
        at.checkbox(key=key(at, name)).check().run()
    at.radio(key=key(at, "positive_late")).set_value("yes").run()
    assert at.button(key="own_next").disabled and says(at, "own_data.rows_to_mend")  # the repeated id is left
    at.checkbox(key=key(at, "leave_out_repeated-id")).check().run()
    assert not at.button(key="own_next").disabled
    pressed(at, "own_next")
    at = with_columns(at)
    assert at.button(key="own_next").disabled  # Own and own
    assert says(at, "own_data.need_you", n=1) and "The same, written differently: `Own` 13×" in everything(at)
    pressed(at, key(at, "mend_home_0_one_spelling"))
    assert not at.exception and not at.button(key="own_next").disabled
    assert "Taken as one: `Own` 13×" in everything(at) and not says(at, "own_data.need_you", n=1)
    assert T("upload.account") in [button.proto.label for button in at.get("download_button")]
    shown = everything(at).replace("\\", "")
    assert "40 cells were read as numbers" not in shown and "39 cells were read as numbers" in shown
    assert "1 row without an outcome was left out: line 10" in shown
    pressed(pressed(at, "own_next"), "own_make")
    assert job_of("federation").wait(60).state == "done"
    (made,) = session.service().federations.all()
    units = {feature.name: feature.unit.en for _, feature in made.features()}
    assert (units["age"], units["income"]) == ("%", "$")
    guest = (made.folder / "guest.csv").read_text(encoding="utf-8").splitlines()
    assert guest[:2] == ["ID,age,late", "p1,21.5,yes"] and len(guest) == 40


def test_a_table_becomes_a_federation_that_can_be_trained_on(opened_empty: Opened) -> None:
    at = begun(opened_empty)
    assert not at.exception and at.button(key="own_next").disabled
    assert says(at, "own_data.simulated")
    at = with_outcome(at)
    assert at.button(key="own_next").disabled and says(at, "own_data.parties_need")
    at = with_columns(at)
    assert not at.exception and says(at, "own_data.readings")
    assert "1,001 to 1,040" in everything(at)
    at = pressed(at, "own_next")
    at = pressed(at, "own_make")
    assert job_of("federation").wait(60).state == "done"
    at.run()
    assert not at.exception and says(at, "own_data.made", name="People")
    (federation,) = session.service().federations.all()
    assert (federation.name, federation.label.positive, federation.label.meaning) == (
        "people",
        "yes",
        Text("Pays late"),
    )
    assert [(party, feature.name) for party, feature in federation.features()] == [
        ("guest", "age"),
        ("shop", "income"),
        ("shop", "home"),
    ]
    assert federation.party("shop").title.en == "Shop"
    train = at.switch_page("../pages/train.py").run()
    assert train.selectbox(key="train_federation").value == "people"


def test_a_problem_stands_in_its_columns_row_and_speaks_of_the_control_beside_it(opened_empty: Opened) -> None:
    at = with_columns(with_outcome(begun(opened_empty)))
    at.selectbox(key=key(at, "kind_home")).select("numeric").run()
    assert not at.exception and at.button(key="own_next").disabled and says(at, "own_data.need_you", n=1)
    (row,) = [words.value for words in at.markdown if "does not fit what the column is read as" in words.value]
    assert "own" in row and "Choose another kind" in row
    assert " --" not in everything(at) and "federation file" not in everything(at)
    at.selectbox(key=key(at, "kind_home")).select("categorical").run()
    assert not at.button(key="own_next").disabled and not says(at, "own_data.need_you", n=1)


def test_several_columns_are_given_to_a_party_at_once_and_one_can_be_taken_back(opened_empty: Opened) -> None:
    at = with_outcome(begun(opened_empty))
    at.multiselect(key=key(at, "several")).set_value(["age", "income"]).run()
    pressed(at, "own_give_0")
    (draft,) = session.service().own_data.drafts()
    assert draft.guest == ("age", "income") and draft.hosts[0].columns == ()
    at.selectbox(key=key(at, "party_income")).set_value(1).run()
    (draft,) = session.service().own_data.drafts()
    assert draft.guest == ("age",) and draft.hosts[0].columns == ("income",)
    at.selectbox(key=key(at, "party_age")).set_value(None).run()
    (draft,) = session.service().own_data.drafts()
    assert draft.guest == () and at.button(key="own_next").disabled


def test_what_was_begun_is_found_again_in_another_tab(opened_empty: Opened) -> None:
    first = with_outcome(begun(opened_empty))
    draft = first.session_state["kept:own_draft"]
    second = opened_empty("own_data")
    assert says(second, "own_data.unfinished_one", file="people.csv")
    second = pressed(second, f"own_open_{draft}")
    assert not second.exception and second.number_input(key=key(second, "hosts")).value == 1
    second = pressed(second, f"own_drop_{draft}_yes")
    assert session.service().own_data.drafts() == [] and not second.exception


def test_bad_input_gets_words_and_writes_nothing(opened_empty: Opened) -> None:
    at = begun(opened_empty, b"\x89PNG\r\n\x1a\n\x00\x00", "people.csv")
    assert not at.exception and "people.csv" in at.warning[0].value
    at = begun(opened_empty, TABLE.replace("p7,27,1007,own,no", "p7,27,1007,own,").encode())
    at.selectbox(key=key(at, "label")).select("late").run()
    assert says(at, "own_data.label_gaps", n=1, column="late") and at.button(key="own_next").disabled
    assert not (session.service().home / "federations").exists()


def test_an_encoding_is_asked_before_anything_is_kept(opened_empty: Opened) -> None:
    at = begun(opened_empty, TABLE.replace("rent", "gemietet für").encode("latin-1"))
    assert not at.exception and session.service().own_data.drafts() == []
    (question,) = [radio for radio in at.radio if radio.key and radio.key.endswith("_encoding")]
    question.set_value("latin-1").run()
    assert not at.exception and len(session.service().own_data.drafts()) == 1


def test_the_demo_is_made_in_the_background_and_can_be_stopped(opened_empty: Opened) -> None:
    at = opened_empty("own_data")
    at.get_by_key("own_way").set_value("ready").run()
    at.button(key="own_go_demo").click().run()
    at.button(key="cancel_demo").click().run()
    assert job_of("demo").wait().state == "cancelled"
    at.run()
    assert not at.exception and T("empty.cancelled") in [info.value for info in at.info]
    assert at.button(key="own_go_demo")


def test_a_federation_that_is_made_is_on_every_page_can_be_stopped_and_leaves_its_draft(
    opened_empty: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = threading.Event()

    def add(self: Federations, path: Path) -> None:
        while not going.wait(0.02):
            work.check()

    # patched: a federation that is made until somebody stops it
    monkeypatch.setattr(Federations, "add", add)
    at = pressed(with_parties(with_outcome(begun(opened_empty))), "own_make")
    assert not at.exception and says(at, "own_data.stage_split") and not at.button(key="cancel_federation").disabled
    assert T("jobs.kind_federation") in " ".join(link.label for link in opened_empty("score").get("page_link"))
    other = opened_empty("own_data")
    assert says(other, "own_data.stage_split")
    other.button(key="cancel_federation").click().run()
    assert job_of("federation").wait(60).state == "cancelled"
    at.run()
    assert not at.exception and says(at, "stage.cancelled") and at.button(key="own_make")
    assert not (session.service().home / "federations" / "people").exists()


def test_public_data_are_fetched_in_the_background(opened_empty: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(self: Federations, out: Path, at: Callable[[str], None]) -> None:
        at("fetch")
        raise FederationError("OpenML cannot be reached.")

    # patched: stands for OpenML, which no test asks
    monkeypatch.setattr(Federations, "fetch_credit_card", fetch)
    at = opened_empty("own_data")
    at.get_by_key("own_way").set_value("ready").run()
    at.button(key="own_go_credit_card").click().run()
    assert job_of("federation").wait(60).state == "failed"
    at.run()
    assert not at.exception and "OpenML cannot be reached." in everything(at)
    assert not at.button(key="own_go_credit_card").disabled


def test_the_page_is_the_operators(opened_empty: Opened) -> None:
    at = opened_empty("own_data")
    at.selectbox(key="role").select("analyst").run()
    assert says(at, "sidebar.not_for", roles=T("sidebar.role_operator"))


@pytest.fixture(scope="module")
def booster(world: World) -> bytes:
    """A model of two columns, one of the Guest and one of a Host, as XGBoost would save it."""
    guest, host = world.federation.guest, world.federation.hosts[0]
    tables = [
        pd.read_csv(world.federation.folder / party.file, dtype=str).set_index(party.id) for party in (guest, host)
    ]
    names = [next(f.name for f in party.features if f.kind == "numeric") for party in (guest, host)]
    joined = tables[0].join(tables[1][[names[1]]], how="inner")
    x = joined[names].apply(pd.to_numeric)
    y = (joined[world.federation.label.column] == world.federation.label.positive).to_numpy(dtype=np.float64)
    made = xgboost.train({"max_depth": 2, "nthread": 1, "objective": "binary:logistic"}, xgboost.DMatrix(x, y), 2)
    return bytes(made.save_raw("json"))


def test_a_model_is_proved_before_it_is_kept(opened: Opened, booster: bytes, glassleaf: Glassleaf) -> None:
    before = [record.id for record in glassleaf.models.all()]
    at = opened("own_data")
    at.get_by_key("own_way").set_value("model")
    at.run()
    assert at.button(key="own_check").disabled
    at.file_uploader(key="own_model_file").upload("mine.json", booster)
    at = checked(at)
    assert not at.exception and says(at, "own_model.proved", file="mine.json") and says(at, "own_model.not_kept")
    done = job_of("import")
    assert done.through == done.total == done.result.proof.rows > 0
    assert [record.id for record in glassleaf.models.all()] == before
    at.file_uploader(key="own_model_file").upload("mine.json", b"{}")
    at = checked(at)
    assert not at.exception and at.warning


def test_the_share_that_is_allowed_for_a_model_file_is_held_and_recorded_in_the_model(
    home: Path, booster: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = on_model(_fresh(home, monkeypatch))  # a home of its own: the model stays there
    glassleaf = session.service()
    before = [record.id for record in glassleaf.models.all()]
    at.file_uploader(key="own_model_file").upload("mine.json", booster)
    at.number_input(key="own_model_max_named").set_value(0.0)
    pressed(at.run(), "own_import")
    job_of("import").wait(60)
    at.run()
    assert not at.exception and isinstance(job_of("import").failure, ReleaseRefused)
    assert [record.id for record in glassleaf.models.all()] == before
    # Two trees of two columns name every path here: more than the usual bound, and no more than all.
    assert MAX_IDENTIFYING < job_of("import").failure.named <= 1.0
    at.number_input(key="own_model_max_named").set_value(100.0)
    pressed(at.run(), "own_import")
    job_of("import").wait(60)
    record = glassleaf.models.get(job_of("import").result.model_id)
    assert record.release.named <= record.release.most_named == 1.0


def checked(at: AppTest) -> AppTest:
    """The page once its check of a model has ended."""
    pressed(at.run(), "own_check")
    job_of("import").wait(60)
    return at.run()


def on_model(opened: Opened) -> AppTest:
    at = opened("own_data")
    at.get_by_key("own_way").set_value("model")
    return at.run()


def test_a_name_that_is_taken_is_said_where_the_reader_looks(opened_empty: Opened) -> None:
    for _ in range(2):
        at = pressed(with_parties(with_outcome(begun(opened_empty))), "own_make")
        job_of("federation").wait(60)
    at.run()
    assert says(at, "federation_exists", federation="people")
    assert any(attention.ATTENTION_MARK in html.proto.body for html in at.get("html"))


@pytest.mark.parametrize(("language", "first"), [("en", "meaning"), ("zh", "meaning_zh")])
def test_the_meaning_beside_a_column_is_the_one_in_the_readers_language(
    opened_empty: Opened, language: str, first: str
) -> None:
    at = with_columns(with_outcome(begun(partial(opened_empty, lang=language))))
    at.text_input(key=key(at, f"{first}_age")).set_value("Age in years").run()
    (draft,) = session.service().own_data.drafts()
    assert draft.entries["age"] == {first: "Age in years"}


def test_what_a_proof_notes_is_in_chinese(opened: Opened) -> None:
    notes = (Remark("texts_not_in_model", {"name": "'home'"}),)
    found = Brought("demo", "mine.json", Proof(40, "", 0.001, 0.01, 0.75, notes), "")
    session.service().jobs.of("").start("import", lambda: Job(lambda job: found, 0).start())
    job_of("import").wait(60)
    at = opened("own_data", lang="zh")
    at.get_by_key("own_way").set_value("model")
    assert says(at.run(), "texts_not_in_model", "zh", name="'home'")


def test_a_check_that_runs_shows_its_rows_after_a_reload_and_can_be_stopped(
    opened: Opened, go: threading.Event
) -> None:
    def work(job: Job[None]) -> None:
        job.total = 5000
        job.at("prove", "", 1250)
        while not go.wait(0.01):
            job.check()

    session.service().jobs.of("").start("import", lambda: Job(work, 0).start(), upload=Upload("mine.json", b"{}"))
    while job_of("import").through < 1250:
        time.sleep(0.01)
    for _ in range(2):
        at = on_model(opened)
        assert not at.exception and says(at, "importing.stage_prove") and says(at, "importing.kept", name="mine.json")
        assert T("stage.count", done="1,250", total="5,000") in everything(at)
        assert at.button(key="own_check").disabled and at.button(key="own_import").disabled
    at.button(key="cancel_import").click().run()
    job_of("import").wait(60)
    assert says(at.run(), "stage.cancelled") and not says(at, "importing.kept", name="mine.json")
