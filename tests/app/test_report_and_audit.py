"""The regulator's pages: the report's first page and its files, decisions, sign-offs, the log and its check; and the role switch."""

import ast
import importlib
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app import session
from app.panels import frame
from app.texts import Texts, markdown
from backend import errors, services
from backend.crypto.signing import SigningKey
from backend.data.federation import GuestLink
from backend.errors import GlassleafError
from backend.i18n import LANGUAGES
from backend.jobs import Job
from backend.reports.document import canonical, make
from backend.reports.schema import Issued
from backend.results import NOBODY
from backend.services import Glassleaf
from backend.store.audit_log import Entry, Head, Verdict
from tests.app.conftest import Answers, Opened, World, job_of
from tests.app.reading_out import everything, says

T = Texts("en")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_report_page_answers_a_regulators_questions(opened: Opened, world: World, language: str) -> None:
    at = opened("report", lang=language)
    glassleaf = Glassleaf(world.home, pools=False)
    answers = glassleaf.reports.answers(glassleaf.reports.make(world.record.id), language)
    glassleaf.close()
    shown = everything(at).replace("\\\\", "")
    assert len(answers) == 7 and all(question in shown for question, _ in answers)


def test_there_is_a_button_for_every_form_of_the_report(opened: Opened) -> None:
    at = opened("report")
    named = {button.proto.label for button in at.get("download_button")}  # one press each
    assert named >= {T("report.file_pdf"), T("report.file_html"), T("report.file_json")}


def test_where_hosts_are_at_other_companies_every_file_is_a_job_that_can_be_stopped(
    opened: Opened, world: World, answers: Answers, go: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = session.view
    apart = world.federation.model_copy(update={"link": GuestLink()})
    monkeypatch.setattr(session, "view", lambda model: replace(whole(model), federation=apart))
    answers["reports.start_file"] = lambda model, form, language: asking(go, "ask")
    at = opened("report")
    assert {button.proto.label for button in at.get("download_button")}.isdisjoint(
        {T("report.file_pdf"), T("report.file_html"), T("report.file_json")}
    )
    at.button(key="report_json").click().run()
    job = job_of(f"report:{world.record.id}")
    assert not at.exception and at.button(key="report_html").disabled and T("report.stage_ask") in everything(at)
    at.button(key="cancel_report").click().run()
    assert job.wait(60).state == "cancelled"


def test_asking_the_hosts_is_a_stage_of_its_own_with_words_in_both_languages(world: World) -> None:
    glassleaf, stages = Glassleaf(world.home, pools=False), list[str]()
    glassleaf.reports.make(world.record.id, at=stages.append)
    glassleaf.close()
    assert stages == ["collect", "ask"]
    assert all(Texts(language)(f"report.stage_{stage}") for language in LANGUAGES for stage in stages)


def test_a_decision_is_kept_logged_and_shown(opened: Opened, world: World) -> None:
    at = opened("report")
    at.radio(key="report_verdict").set_value("confirmed")
    at.text_area(key="report_reason").set_value("It has to go before use.")
    at.text_input(key="report_reviewer").set_value("Rita")
    next(b for b in at.button if b.label == T("report.decide_go")).click().run()
    assert not at.exception and says(at.success[0].value, "report.decided", n=1)
    assert says(at.toast[0].value, "report.decided", n=1)
    assert at.text_area(key="report_reason").value == ""
    assert "It has to go before use." in everything(at)
    glassleaf = Glassleaf(world.home, pools=False)
    entry = glassleaf.audit.entries("demo")[-1]
    assert (entry.action, entry.actor, entry.role) == ("override", NOBODY, "operator")
    assert glassleaf.reviews.history(world.record.id)[-1].person == "Rita"
    glassleaf.close()


def test_a_reason_that_is_too_short_is_refused_in_words(opened: Opened) -> None:
    at = opened("report")
    at.radio(key="report_verdict").set_value("confirmed")
    at.text_area(key="report_reason").set_value("no")
    at.text_input(key="report_reviewer").set_value("Rita")
    next(b for b in at.button if b.label == T("report.decide_go")).click().run()
    assert not at.exception
    for shown in (at.warning[0].value, at.toast[0].value):  # the form stands far below
        assert says(shown, "review_text_length", field="reason", found=2, least=10)


def test_a_sign_off_is_shown_as_covering_the_report(opened: Opened) -> None:
    at = opened("report")
    at.text_input(key="report_signer").set_value("Rita")
    at.text_area(key="report_statement").set_value("Read, and discussed with the owner.")
    next(b for b in at.button if b.label == T("report.sign_go")).click().run()
    assert not at.exception and T("report.covers_yes") in everything(at)
    assert at.text_area(key="report_statement").value == ""
    assert T("report.signature_fits") in everything(at)


def test_a_report_that_is_handed_in_is_checked(opened: Opened, world: World) -> None:
    at = opened("report")
    blob = session.service().reports.export(world.record.id, "json")  # the service that the page asks
    at.get_by_key("report_check").upload("report.json", blob, "application/json").run()
    assert T("report.drawn_json") in at.success[0].value and says(at, "report.content_same")
    said = T("report.named_by", number="#", federation=markdown(T.federation(world.federation))).split("#")[1]
    assert any(line.value.endswith(said) for line in at.markdown)  # the title, not the folder's name
    body = json.loads(blob)
    body["content"]["assessment"]["packs"] = body["content"]["assessment"]["packs"][:-1]
    forged = make(canonical(body["content"]), Issued.model_validate(body["issued"]), SigningKey.generate())
    body = forged.body()  # a whole report that nobody here has issued
    at.get_by_key("report_check").upload("report.json", (canonical(body) + "\n").encode(), "application/json").run()
    assert not at.success and T("report.not_named") in everything(at)
    assert says(at, "report.content_other") and body["content_sha256"] in everything(at)
    body["issued"]["actor"] = "somebody else"
    at.get_by_key("report_check").upload("report.json", json.dumps(body).encode(), "application/json").run()
    assert any("was changed" in error.value for error in at.error)


def asking(go: threading.Event, stage: str) -> Job[Any]:
    """What waits for a Host that does not answer."""

    def work(job: Job[Any]) -> None:
        job.at(stage)
        while not go.wait(0.01):
            job.check()

    return Job(work, 0).start()


def test_the_log_is_checked_when_asked_for(opened: Opened, world: World) -> None:
    at = opened("audit")
    assert not at.success
    at.button(key="audit_verify").click().run()
    job_of(f"audit:{world.record.id}").wait(60)
    at = opened("audit")
    assert not at.exception and says(at.success[0].value, "audit.holds")


def test_a_check_that_waits_for_a_silent_host_says_so_and_can_be_stopped(
    opened: Opened, world: World, answers: Answers, go: threading.Event
) -> None:
    answers["audit.start_verify"] = lambda federation: asking(go, "start")
    at = opened("audit")
    at.button(key="audit_verify").click().run()
    assert not at.exception and T("audit.verifying") in everything(at) and at.button(key="audit_verify").disabled
    at.button(key="cancel_audit").click().run()
    job_of(f"audit:{world.record.id}").wait(60)
    assert says(opened("audit"), "stage.cancelled")


def test_a_broken_log_is_reported_with_every_problem(opened: Opened, world: World, answers: Answers) -> None:
    verdict = Verdict(3, Head(3, "a" * 64), ("Entry 2 was changed.", "Entry 3 does not follow."), ())
    answers["audit.start_verify"] = lambda federation: Job(lambda job: verdict, 0).start()
    opened("audit").button(key="audit_verify").click().run()
    job_of(f"audit:{world.record.id}").wait(60)
    at = opened("audit")
    assert "Entry 2 was changed" in at.error[0].value and T("audit.no_witness") in at.error[0].value


def test_filters_keep_what_was_asked_for(opened: Opened) -> None:
    at = opened("audit")
    every = len(at.dataframe[-1].value)
    at.multiselect(key="audit_action").select("train").run()
    assert not at.exception and 1 <= len(at.dataframe[-1].value) < max(every, 2)
    assert set(at.dataframe[-1].value[T("audit.action")]) == {T("audit.did_train")}


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_an_entry_is_about_is_in_words(opened: Opened, answers: Answers, world: World, language: str) -> None:
    words = Texts(language)
    called = frame.model_name(words, world.record, world.federation, "")
    bodies: dict[str, dict[str, object]] = {
        "validate": {"model": world.record.id, "feature": ""},
        "key": {"cipher": "ed25519", "key_bits": 256},
        "state": {"model": "m1", "step": "use"},
        "retrain": {"model": "m1", "new_model": "m2"},
        "override": {"model": "m1", "rule": "ecoa_sex", "feature": "gender", "verdict": "confirmed", "person": "Rita"},
        "train": {"outcome": "ApprovalPending"},
        "score": {"outcome": "MemoryError"},
    }
    logged = [
        Entry(number, "2026-11-24T10:00:00", "ana", "operator", action, body, "", "0" * 64)
        for number, (action, body) in enumerate(bodies.items(), 1)
    ]
    answers["audit.entries"] = lambda federation: logged
    assert list(opened("audit", lang=language).dataframe[-1].value[words("audit.with")])[::-1] == [
        called,
        words("engine.label_ed25519"),
        f"m1 · {words('states.step_use')}",
        "m1 → m2",
        f"m1 · ecoa_sex · gender · {words('report.confirmed')} · Rita",
        words("audit.ended_ApprovalPending"),
        words("audit.failed", error="MemoryError"),
    ]


def test_every_action_that_is_logged_has_words_in_both_languages() -> None:
    found = logged()
    assert {"difference", "elderly", "validation", "monitoring", "rules", "retention", "person"} < found
    for language in LANGUAGES:
        assert not [action for action in sorted(found) if not Texts(language).has(f"audit.did_{action}")]


def test_every_error_of_ours_that_ends_work_has_words_in_both_languages() -> None:
    ours = [name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, GlassleafError)]
    assert {"ApprovalPending", "Cancelled", "PartyUnreachable"} < set(ours)
    for language in LANGUAGES:
        words = Texts(language)
        assert not [name for name in ours if name != "GlassleafError" and not words.has(f"audit.ended_{name}")]


def test_who_was_not_signed_in_is_shown_in_words(opened: Opened, answers: Answers, world: World) -> None:
    glassleaf = Glassleaf(world.home, pools=False)
    entry = replace(glassleaf.audit.entries("demo")[-1], actor=NOBODY)
    glassleaf.close()
    answers["audit.entries"] = lambda federation: [entry]
    assert says(opened("audit", lang="zh"), "audit.nobody", "zh")


def logged() -> set[str]:
    """What services hand to the audit log as an action, written out or as a name of the module."""
    found = set()
    for file in Path(services.__path__[0]).glob("*.py"):
        known = vars(importlib.import_module(f"backend.services.{file.stem}".removesuffix(".__init__")))
        for call in (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            place = {"recorded": 0, "note": 1, "_note": 1, "keep": 1, "asking": 1}.get(name)
            if place is None or len(call.args) <= place:
                continue
            action = call.args[place]
            value = action.value if isinstance(action, ast.Constant) else known.get(getattr(action, "id", ""))
            found |= {value} if isinstance(value, str) else set()
    return found


def test_the_regulator_sees_report_and_audit_and_which_pages_are_for_other_roles(opened: Opened) -> None:
    at = opened("audit")
    at.get_by_key("role").set_value("regulator")
    at.run()
    assert at.title[0].value == T("audit.title")
    at.switch_page("../pages/train.py").run()
    assert at.title[0].value == T("train.title") and says(at.info[0].value, "sidebar.not_for")
    at.get_by_key("role").set_value("operator")
    at.run()
    assert at.title[0].value == T("train.title")


def test_the_role_stands_in_the_log(opened: Opened, world: World) -> None:
    at = opened("report")
    at.get_by_key("role").set_value("regulator")
    at.run()
    at.text_input(key="report_signer").set_value("Rita")
    at.text_area(key="report_statement").set_value("Read in the role of a regulator.")
    next(b for b in at.button if b.label == T("report.sign_go")).click().run()
    glassleaf = Glassleaf(world.home, pools=False)
    assert glassleaf.audit.entries("demo")[-1].role == "regulator"
    glassleaf.close()


def test_looking_at_a_report_asks_no_host_and_a_file_asks_all(glassleaf: Glassleaf, world: World) -> None:
    reports = glassleaf.reports
    looked, filed = reports.make(world.record.id, ask_hosts=False), reports.make(world.record.id)
    assert not looked.issued.audit.witnesses and set(filed.issued.audit.witnesses) == set(world.record.hosts)
    assert looked.content_sha256 == filed.content_sha256
