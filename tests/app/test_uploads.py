"""A file stays with whoever handed it in, on whatever page they look meanwhile, until they remove it or hand in another."""

from __future__ import annotations

import pytest
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.testing.v1 import AppTest

from app.texts import size
from tests.app.conftest import Opened
from tests.app.reading_out import everything, says

SHEET = b"id\nZZ1\nZZ2\n"
TABLE = b"id,age,late\n" + b"".join(b"%d,%d,1\n" % (n, n) for n in range(40))


def elsewhere_and_back(at: AppTest, page: str) -> AppTest:
    at.switch_page("../pages/features.py").run()
    at.switch_page(f"../pages/{page}.py").run()
    assert not at.exception
    return at


@pytest.fixture
def scoring(opened: Opened) -> AppTest:
    at = opened("people")
    at.file_uploader(key="people_upload").upload("people.csv", SHEET).run()
    return at


def test_a_sheet_that_was_not_yet_scored_is_there_after_another_page_was_looked_at(scoring: AppTest) -> None:
    assert "people.csv" not in everything(scoring)  # its field shows it
    at = elsewhere_and_back(scoring, "people")
    assert says(at, "upload.stays", name="people.csv", size=size(11))
    assert says(at, "upload.rows", n=2, rows=2, usable=0, bad=2)


def test_a_file_is_gone_everywhere_once_it_was_removed(scoring: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[str] = []
    monkeypatch.setattr(MemoryUploadedFileManager, "remove_file", lambda _, __, file_id: dropped.append(file_id))
    file_id = scoring.file_uploader(key="people_upload").value.file_id
    at = elsewhere_and_back(scoring, "people")
    at.button(key="people_upload_remove_0").click().run()
    assert "people.csv" not in everything(at) and at.button(key="people_go")
    assert dropped == [file_id]
    assert "people.csv" not in everything(elsewhere_and_back(at, "people"))


def test_what_was_taken_out_of_its_field_does_not_come_back(scoring: AppTest) -> None:
    scoring.file_uploader(key="people_upload").clear().run()
    assert "people.csv" not in everything(elsewhere_and_back(scoring, "people"))


def test_another_sheet_takes_the_place_of_the_one_of_before(scoring: AppTest) -> None:
    at = elsewhere_and_back(scoring, "people")
    at.file_uploader(key="people_upload").upload("others.csv", b"id\nZZ3\n").run()
    assert "people.csv" not in everything(at) and says(at, "upload.rows", n=1, rows=1, usable=0, bad=1)
    at = elsewhere_and_back(at, "people")
    assert "people.csv" not in everything(at) and says(at, "upload.stays", name="others.csv", size=size(7))


def test_files_of_a_field_for_several_are_added_to_those_of_before_and_removed_one_by_one(opened: Opened) -> None:
    at = opened("own_data")
    at.get_by_key("own_way").set_value("ready")
    at.run()
    at.file_uploader(key="own_files").upload("bank.csv", b"id\n1\n").run()
    at = elsewhere_and_back(at, "own_data")
    at.file_uploader(key="own_files").upload("shop.csv", b"id\n1\n").run()
    at = elsewhere_and_back(at, "own_data")
    assert says(at, "upload.stays", name="bank.csv", size=size(5)) and says(
        at, "upload.stays", name="shop.csv", size=size(5)
    )
    at.button(key="own_files_remove_0").click().run()
    assert "bank.csv" not in everything(at) and says(at, "upload.stays", name="shop.csv", size=size(5))


def test_a_file_is_nobody_elses(scoring: AppTest, opened: Opened) -> None:
    at = opened("people")
    assert "people.csv" not in everything(at)
    assert "people.csv" in everything(elsewhere_and_back(scoring, "people"))


def test_a_table_that_has_become_a_draft_is_not_taken_again(opened: Opened) -> None:
    at = opened("own_data")
    at.file_uploader(key="own_upload").upload("loans.csv", TABLE).run()
    at.button(key="own_later").click().run()
    assert not at.exception and at.file_uploader(key="own_upload").value is None
    assert not says(at, "upload.stays", name="loans.csv", size=size(len(TABLE)))


def test_ids_that_look_like_none_of_the_hosts_are_asked_about(opened: Opened) -> None:
    at = opened("people")
    sheet = b"id\n" + b"".join(b"no %d/7\n" % number for number in range(12))
    at.file_uploader(key="people_upload").upload("new.csv", sheet).run()
    assert says(at, "upload.why_ids", file="new.csv")
    (question,) = [one for one in at.radio if one.key.endswith("_ids")]
    assert not says(at, "upload.rows", n=12, rows=12, usable=0, bad=12)
    question.set_value("as-written").run()
    assert says(at, "upload.rows", n=12, rows=12, usable=0, bad=12)
