"""Pages say what went wrong in the language of the reader, and call Hosts by their titles."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from app.errors import worded
from app.texts import Texts
from backend.errors import ApprovalDenied, ApprovalPending, GlassleafError, NotAgreed, ParameterError
from backend.jobs import Job
from backend.remark import Remark
from backend.services import Glassleaf
from tests.app.conftest import Opened, put_job
from tests.app.reading_out import everything

EN, ZH = Texts("en"), Texts("zh")
ENGLISH = re.compile(r"[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}")  # three English words in a row


def raised(act: Callable[[], object]) -> GlassleafError:
    with pytest.raises(GlassleafError) as caught:
        act()
    return caught.value


def test_what_waits_or_was_denied_is_said_in_chinese() -> None:
    now = datetime.now(UTC)
    for past, words in (
        (timedelta(0), "不到一分钟前"),
        (timedelta(hours=2), "2 小时前"),
        (timedelta(days=3), "3 天前"),
    ):
        assert words in worded(ZH, ApprovalPending("telecom", 3, now - past, now))
    for state, words in (("denied", "拒绝了此请求"), ("withdrawn", "撤回了批准")):
        assert words in worded(ZH, ApprovalDenied("telecom", state, "2026-11-23", "over"))


def test_errors_that_services_raise_are_said_in_chinese(glassleaf: Glassleaf) -> None:
    for act in (
        lambda: glassleaf.models.get("m-unknown"),
        lambda: glassleaf.federations.get("nowhere"),
    ):
        error = raised(act)
        assert not ENGLISH.search(worded(ZH, error)), error
    assert not ENGLISH.search(worded(ZH, NotAgreed("telecom", "disparity")))


@pytest.mark.parametrize(("t", "part"), [(EN, "There is no model"), (ZH, "没有模型")])
def test_a_page_says_why_a_job_failed_in_the_language_of_the_reader(opened: Opened, t: Texts, part: str) -> None:
    def fail(job: Job[None]) -> None:
        raise ParameterError("challenger_unknown", why=Remark("unknown_model", {"model": "m1", "known": ("m2",)}))

    put_job("train", Job(fail, 1).start().wait(60))
    assert part in everything(opened("train", lang=t.language))


@pytest.mark.parametrize(("t", "title"), [(EN, "Rowan Telecom"), (ZH, "花楸电信")])
def test_a_host_is_called_by_its_title(opened: Opened, t: Texts, title: str) -> None:
    def fail(job: Job[None]) -> None:
        raise NotAgreed("telecom", "disparity")

    put_job("train", Job(fail, 1).start().wait(60))
    shown = everything(opened("train", lang=t.language))
    assert title in shown and "telecom" not in shown


def test_a_value_that_reads_like_a_field_stays_as_it_is() -> None:
    error = GlassleafError("unknown_federation", federation="{known} <b>x</b>", known=("demo",))
    assert "{known} <b>x</b>" in worded(ZH, error)


def test_several_hosts_are_listed_by_their_titles() -> None:
    titles = {"telecom": "Rowan Telecom", "platform": "Hazel Market"}
    remark = Remark("unknown_hosts", {"names": ("x",), "known": ("y",), "hosts": tuple(titles)})
    assert remark.sentence("en", titles.__getitem__) == "x: not a Host of this federation. Its Hosts are y."
