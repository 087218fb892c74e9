"""A training and a score wait for a Host's operator: said calmly, for whom and since when; asked again once it was decided."""

from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.panels import waits
from app.texts import Texts
from backend.data.federation import load_federation, write_federation
from backend.jobs import Job, Silence, Waits
from backend.remark import Remark
from backend.services.host_operator import HostOperator
from tests.app.conftest import Opened, World, _fresh, forget_jobs, job_of
from tests.app.reading_out import everything, says

HOST = "telecom"
AGAIN = "waits_again"
TITLES = {"en": "Rowan Telecom", "zh": "花楸电信"}


@pytest.fixture
def opened(home: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> Opened:
    federation = load_federation(home / "demo")
    hosts = tuple(h.model_copy(update={"approval": "ask" if h.name == HOST else None}) for h in federation.hosts)
    write_federation(federation.model_copy(update={"hosts": hosts}), home / "demo")
    return _fresh(home, monkeypatch)


def later() -> date:
    return datetime.now(UTC).date() + timedelta(days=30)


def operator() -> closing[HostOperator]:
    return closing(session.service().acting("olga", "operator").host_operator("demo", HOST))


def asked(at: AppTest, button: str, job: str) -> AppTest:
    """The page once the job that the button starts has ended."""
    at.button(key=button).click().run()
    job_of(job).wait(120)
    at = at.run()
    assert not at.exception
    return at


def waits_here(at: AppTest, number: int, language: str = "en") -> bool:
    t = Texts(language)
    words = {"host": TITLES[language], "number": number}
    return says(at, "waits.title", language, **words, past=t("waits.moment")) and says(
        at, "waits.ask", language, **words
    )


def reasons(at: AppTest, language: str) -> list[str]:
    """The notices of a denial or withdrawal, which quote the operator's reason."""
    return [info.value for info in at.info if says(info.value, "waits.because", language)]


def in_chinese(at: AppTest) -> AppTest:
    at.get_by_key("language").set_value("zh")
    return at.run()


def test_a_training_waits_and_goes_on_once_it_is_approved(opened: Opened, home: Path) -> None:
    at = opened("train")
    at.number_input(key="train_secureboost_trees").set_value(2)
    at.get_by_key("train_cipher").set_value("none")
    at = asked(at.run(), "train_go", "train")
    with operator() as there:
        [request] = there.requests(waiting=True)
        number = request.approval.number
    assert waits_here(at, number) and not at.warning
    elsewhere = opened("overview")
    assert Texts("en")("waits.tray", host=TITLES["en"]) in everything(elsewhere)
    at = in_chinese(at)
    assert waits_here(at, number, "zh")

    at = asked(at, AGAIN, "train")
    assert waits_here(at, number, "zh")  # not decided yet: the same request
    with operator() as there:
        there.approve(number, later(), 1)
    at = asked(at, AGAIN, "train")
    assert job_of("train").result.n_trees == 2
    assert AGAIN not in [button.key for button in at.button]
    forget_jobs(home)


def test_a_score_waits_is_denied_with_a_reason_approved_after_all_and_withdrawn(opened: Opened, home: Path) -> None:
    at = asked(opened("score"), "score_go", "score")
    with operator() as there:
        [number] = [r.approval.number for r in there.requests(waiting=True) if r.approval.purpose == "scoring"]
    assert waits_here(at, number) and not at.warning
    with operator() as there:
        there.deny(number, "not in the *agreement*")
    at = asked(at, AGAIN, "score")
    assert says(at, "waits.denied", host=TITLES["en"])
    assert any("not in the \\*agreement\\*" in said for said in reasons(at, "en"))
    assert says(in_chinese(at), "waits.change", "zh", host=TITLES["zh"])
    with operator() as there:
        there.approve(number, later(), 100)
    at = asked(at, AGAIN, "score")
    assert job_of("score").result.scores[0].status == "ok"
    with operator() as there:
        there.withdraw(number, "over")
    at = asked(at, "score_go", "score")
    assert says(at, "waits.withdrawn", "zh", host=TITLES["zh"])
    assert any("over" in said for said in reasons(at, "zh"))
    forget_jobs(home)


@pytest.mark.parametrize("language", TITLES)
def test_who_holds_work_up_is_named_in_the_tray_too(opened: Opened, language: str) -> None:
    opened("help")
    job, t = Job(lambda job: None, 1), Texts(language)
    assert waits.state(t, job) == ""
    job.silence = Silence((HOST,), 6.0)
    assert waits.state(t, job) == t("pause.tray_silent", hosts=TITLES[language])
    job.waits = Waits("down", (HOST,), Remark("moments"))
    assert waits.state(t, job) == t("pause.tray_waits", hosts=TITLES[language])
    job.cancel()
    assert waits.state(t, job) == ""


@pytest.mark.parametrize(
    ("seconds", "said"), [(30, ""), (179, "2 min"), (90 * 60, "90 min"), (2.5 * 3600, "2 h"), (71 * 3600, "2 days")]
)
def test_how_long_it_waits_is_said_in_whole_units(seconds: float, said: str) -> None:
    t = Texts("en")
    assert t.past(seconds).replace("\u00a0", " ") == (said or t("waits.moment"))
