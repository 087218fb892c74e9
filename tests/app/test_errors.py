"""Errors that somebody who uses the pages can cause are Chinese on Chinese pages; of others it is said that they are English."""

import ast
import io
import re
import zipfile
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from app.errors import said, worded
from app.texts import Texts, catalogue
from backend.data.csv_file import MAX_ROW, SHOWN_CELL, FileLimits, listed
from backend.data.dictionary import Feature, Kind
from backend.data.federation import capped
from backend.data.remark import Remark
from backend.data.split import Division, plan_table
from backend.data.table import SAMPLES
from backend.data.table_file import read_table_file
from backend.errors import ApprovalDenied, ApprovalPending, Cancelled, GlassleafError, NotAgreed
from backend.jobs import Job
from backend.protocols.scoring.guest import LIMITS, refusals
from backend.protocols.transport.messages import EndConversation, HeldRecords
from backend.protocols.transport.network import Network
from backend.services import Glassleaf
from backend.services.scoring import failed_score
from tests.app.conftest import Opened, World, job_of, put_job
from tests.app.reading_out import everything

EN, ZH = Texts("en"), Texts("zh")
BACKEND = Path(__file__).resolve().parents[2] / "backend"
# raised below
TOO_LARGE = {
    "too_many_rows",
    "too_many_rows_counted",
    "too_wide",
    "too_long_row",
    "too_many_cells",
    "too_much_unpacked",
}
COMPOSED = TOO_LARGE | {
    "no_numbers",
    "no_numbers_marks",
    "budget",
    "budget_total",
    "budget_bits",
    "decimal_choice",
    "not_agreed",
    "denied",
    "withdrawn",
}
ENGLISH = re.compile(r"[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}")  # three English words in a row


def keys() -> list[str]:
    return [key.removeprefix("error.") for key in catalogue("en") if key.startswith("error.")]


def raised(act) -> str:
    with pytest.raises(GlassleafError) as caught:
        act()
    return str(caught.value)


def in_code() -> set[str]:
    """Every text of the backend, with a mark where a value is filled in."""
    found = set()
    for source in BACKEND.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values]
                found.add("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def test_every_english_text_is_that_of_an_error_in_the_code() -> None:
    code = in_code()
    texts = {key: re.sub(r"\{\w+\}", "{}", catalogue("en")[f"error.{key}"]) for key in keys()}
    assert not [key for key, text in texts.items() if text not in code and key not in COMPOSED]
    assert len(texts) >= 50


@pytest.mark.parametrize("key", [key for key in keys() if key != "decimal_choice"])
def test_each_is_read_again_and_said_in_chinese_with_its_own_values(key: str) -> None:
    holes = dict.fromkeys(re.findall(r"\{(\w+)\}", catalogue("en")[f"error.{key}"]), "")
    values = {name: f"v{place}" for place, name in enumerate(holes)}
    if "why" in values:
        values["why"] = EN("error.all_excluded")
    english, shown = EN(f"error.{key}", **values), said(ZH, EN(f"error.{key}", **values))
    assert said(EN, english) == english
    assert shown == ZH(f"error.{key}", **{**values, **({"why": ZH("error.all_excluded")} if "why" in values else {})})
    assert not ENGLISH.search(shown)


def test_what_waits_or_was_denied_is_said_in_chinese() -> None:
    now = datetime.now(UTC)
    for past, words in (
        (timedelta(0), "不到一分钟前"),
        (timedelta(hours=2), "2 小时前"),
        (timedelta(days=3), "3 天前"),
    ):
        assert words in worded(ZH, ApprovalPending("telecom", 3, now - past, now))
    for state, words in (("denied", "拒绝了此请求"), ("withdrawn", "撤回了批准")):
        found = worded(ZH, ApprovalDenied("telecom", state, "2026-11-23", "over"))
        assert words in found and ZH("frame.in_english") not in found


def test_a_host_that_has_answered_enough_is_said_in_chinese() -> None:
    for limit, purpose in product(("budget", "total", "bits"), (" for scores", "")):
        answer = HeldRecords("c", b"\x80", bytes([LIMITS.index(limit)]), 3, 20, 12.5, 30)
        (why,) = refusals("telecom", answer, 1, purpose).values()
        shown = said(ZH, why)
        assert "telecom" in shown and "30" in shown and not ENGLISH.search(shown)


def test_errors_that_services_raise_are_said_in_chinese(glassleaf: Glassleaf, world: World) -> None:
    read, model = glassleaf.samples.read, world.record.id
    guest = world.federation.guest
    for act in (
        lambda: read(model, b"", "people.csv"),
        lambda: read(model, guest.id.encode() + b"\n", "people.csv"),
        lambda: read(model, b"who\nA1\n", "people.csv"),
        lambda: read(model, f"{guest.id},{guest.features[0].name}\nA1,3\n".encode(), "people.csv"),
        lambda: read(model, b"PK\x03\x04 no workbook", "people.xlsx"),
        lambda: read(model, "id\nA1 für\n".encode("latin-1"), "people.csv"),
        lambda: glassleaf.samples.of_person(model, "nobody"),
        lambda: glassleaf.models.get("m-unknown"),
        lambda: glassleaf.federations.get("nowhere"),
        lambda: Network().send("bank", "telecom", EndConversation("c")),
        lambda: Job(lambda job: job.cancel() or job.check(), 1).start().get(),
        lambda: Job(lambda job: 1 // 0, 1).start().get(),
    ):
        english = raised(act)
        shown = said(ZH, english)
        assert shown != english and not ENGLISH.search(shown), english
    assert not ENGLISH.search(said(ZH, str(NotAgreed("telecom", "disparity"))))
    assert not ENGLISH.search(said(ZH, f"telecom refused: {EN('error.not_counted')}"))


def test_a_file_that_is_too_large_is_said_in_chinese_with_its_own_figures() -> None:
    book, table = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(book, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("[Content_Types].xml", "")
        packed.writestr("xl/worksheets/sheet1.xml", b"<c/>" * 2_000_000)
    parquet.write_table(pa.table({"id": ["x"] * 6000, "odd": [[1]] * 6000}), table)
    small = FileLimits(max_bytes=1_000_000, max_rows=99, max_columns=9, max_cells=100)
    said_of = {
        "too_many_rows": lambda: read_table_file(b"a\n" + b"1\n" * 200, "t.csv", limits=small),
        "too_wide": lambda: read_table_file(b"a,b\n" + b"1,2\n" * 200, "t.csv", limits=small),
        "too_long_row": lambda: read_table_file(b"a\n" + b"x," * MAX_ROW, "t.csv"),
        "too_many_cells": lambda: read_table_file(book.getvalue(), "t.xlsx", limits=SAMPLES),
        "too_much_unpacked": lambda: read_table_file(book.getvalue(), "t.xlsx", limits=small),
        "too_many_rows_counted": lambda: read_table_file(table.getvalue(), "t.parquet", limits=small),
        "no_single_values": lambda: read_table_file(table.getvalue(), "t.parquet"),
    }
    for key, act in said_of.items():
        english = raised(act)
        shown = said(ZH, english)
        assert re.fullmatch(re.sub(r"\\{\w+\\}", ".+", re.escape(catalogue("en")[f"error.{key}"])), english), english
        assert not ENGLISH.search(shown) and re.findall(r"\d[\d,]*", shown) == re.findall(r"\d[\d,]*", english)
    assert said_of.keys() - {"no_single_values"} == TOO_LARGE


def test_what_is_wrong_with_ones_own_table_is_said_in_chinese() -> None:
    days = [f"2020-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 11)]
    rows = [
        f"{i},{'NA' if i % 9 == 0 else i},{day},备注{i},{'abc' if i == 7 else i},{i % 2}" for i, day in enumerate(days)
    ]
    table = read_table_file("\n".join(["编号,年龄,开户,备注,月数,逾期", *rows]).encode(), "表.csv")
    months = Feature(name="月数", meaning="Months", kind=Kind.NUMERIC)
    hosts, meanings = {"t": ("开户", "备注", "月数")}, {"月数": months}
    english = raised(lambda: plan_table(table, Division("逾期", ("年龄",), hosts, "编号", meanings=meanings)))
    keys_of = ("no_numbers_marks", "no_numbers", "look_like_dates", "too_many_codes")
    assert len(english.splitlines()) == len(keys_of)
    shown = said(ZH, english)
    assert not ENGLISH.search(shown) and ZH("frame.in_english") not in shown
    assert "'NA'（第 2 行）" in shown and "等（另有 11 项）" in shown


def test_an_english_line_with_a_chinese_name_in_it_is_announced_as_english() -> None:
    english = "表.csv, column '年龄': something new went wrong here."
    assert said(ZH, english) == f"{ZH('frame.in_english')}\n{english}"


def test_what_a_list_leaves_out_is_counted_in_the_readers_language() -> None:
    strange = listed(["'a'", "'b'", "'c'"], 2)
    remark = Remark("undisclosed", {"column": "home", "codes": strange, "known": "own"})
    assert "and 1 more" in remark.text("en") and "另有 1 项" in remark.text("zh")
    english = EN("error.no_single_values", file="t", columns=strange)
    assert "另有 1 项" in said(ZH, english) and "more" not in said(ZH, english)


def test_what_is_wrong_with_a_row_is_said_in_chinese_where_it_stands_in_an_error() -> None:
    remarks = [Remark("not_a_number", {"cell": "'abc'"}, 3, "age"), Remark("no_id", {}, 4), Remark("no_id", {})]
    english = "\n".join(["None of the 5 rows can be scored; nothing was sent.", *(one.text("en") for one in remarks)])
    shown = said(ZH, english).splitlines()
    assert shown[1:] == [one.text("zh") for one in remarks] and not ENGLISH.search("\n".join(shown))
    assert not ENGLISH.search(said(ZH, "\n".join(capped(["There is no id. Fill it in."] * 99)[-1:])))


def test_an_error_that_nobody_translated_stays_as_it_is_under_a_chinese_line() -> None:
    english = "Something new went wrong. Do something."
    assert said(ZH, english) == f"{ZH('frame.in_english')}\n{english}" and said(EN, english) == english
    assert said(ZH, "一条中文说明。") == "一条中文说明。"
    assert len(english) < SHOWN_CELL * 4 and str(Cancelled(english)) == english


def test_a_value_that_reads_like_an_error_cannot_put_words_into_another_ones_mouth() -> None:
    name = "{why} <b>x</b>"
    assert said(ZH, EN("error.empty_file", file=name)) == ZH("error.empty_file", file=name)


def test_a_chinese_page_says_why_a_job_failed_in_chinese(opened: Opened) -> None:
    def fail(job: Job[None]) -> None:
        job.cancel()
        raise GlassleafError(EN("error.host_down", host="telecom"))

    put_job("train", Job(fail, 1).start().wait(60))
    assert job_of("train").state == "failed"
    assert ZH("error.host_down", host="松风电信").split("：")[0] in everything(opened("train", lang="zh"))
    assert EN("error.host_down", host="Rowan Telecom").split(":")[0] in everything(opened("train", lang="en"))


@pytest.mark.parametrize(("t", "title"), [(EN, "Rowan Telecom"), (ZH, "松风电信")])
def test_a_refused_score_names_the_host_by_its_title(opened: Opened, world: World, t: Texts, title: str) -> None:
    opened("score")
    answer = HeldRecords("c", b"\x80", bytes([LIMITS.index("budget")]), 3, 20, 12.5, 30)
    (problem,) = refusals("telecom", answer, 1).values()
    titles = {host.name: t.party(world.federation, host.name) for host in world.federation.hosts}
    shown = said(t, failed_score("A1", problem).problem, titles.__getitem__)
    assert shown.count(title) == problem.count("telecom") == 2
    assert "telecom" not in shown and t("frame.in_english") not in shown


@pytest.mark.parametrize(("t", "title"), [(EN, "Hazel Market"), (ZH, "枫叶商城")])
def test_a_host_whose_link_is_down_is_named_by_its_title_with_the_reason(opened: Opened, t: Texts, title: str) -> None:
    def fail(job: Job[None]) -> None:
        since = EN("error.down_since", host="platform", time="14:02", why=EN("error.link_left"))
        raise GlassleafError(EN("error.link_down", why=since))

    put_job("train", Job(fail, 1).start().wait(60))
    found = everything(opened("train", lang=t.language)).replace("\\", "")
    since = t("error.down_since", host=title, time="14:02", why=t("error.link_left"))
    assert t("error.link_down", why=since) in found
    assert "platform: down" not in found and ZH("frame.in_english") not in found


def test_several_hosts_are_listed_as_the_language_does() -> None:
    text = EN("error.no_answer", hosts="telecom, platform", seconds=75)
    titles = {"telecom": "Rowan Telecom", "platform": "Hazel Market"}
    assert said(EN, text, titles.__getitem__) == text.replace("telecom, platform", "Rowan Telecom and Hazel Market")
