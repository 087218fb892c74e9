"""What the pages do with a sign-in: nobody passes without one that holds now, roles are the account's, decisions bear its name."""

import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.panels import sign_in as panel
from app.texts import Texts, markdown
from backend.services import Glassleaf
from backend.services.roles import ANALYST, OPERATOR, REGULATOR
from tests.app.conftest import Opened, World, sign_in
from tests.app.reading_out import heading_levels, says

T = Texts("en")


def keys(at: AppTest) -> list[str]:
    return [button.key for button in at.button]


def out(at: AppTest, code: str) -> None:
    """Nothing of the home is shown, and the page says why."""
    assert not at.exception and [title.value for title in at.title] == ["Glassleaf"] and not at.selectbox
    assert says(at, "sign_in.why") and (code == "signed_out" or says(at, code))


def test_nobody_gets_in_before_signing_in_where_that_is_asked_for(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(monkeypatch, is_logged_in=False)
    at = opened("overview")
    out(at, "signed_out")
    assert keys(at) == ["sign_in"]


@pytest.mark.parametrize(
    ("code", "claims"),
    [
        ("sign_in_expired", {"exp": 1_700_000_000}),
        ("sign_in_too_old", {"auth_time": 1_700_000_000}),
        ("no_role", {"groups": ["cooks"]}),
        ("sign_in_of_other_provider", {"iss": "https://id.evil"}),
    ],
)
def test_a_cookie_that_is_still_there_lets_nobody_in_whose_sign_in_does_not_hold(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, code: str, claims: dict[str, object]
) -> None:
    sign_in(monkeypatch, **claims)
    at = opened("audit")
    out(at, code)
    assert keys(at) == ["sign_in", "sign_out"]


def test_a_sign_in_that_ends_while_a_page_is_open_ends_there(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    sign_in(monkeypatch)
    at = opened("overview")
    assert not at.exception and at.title[0].value == T("overview.title") and at.selectbox
    sign_in(monkeypatch, exp=time.time() - 3600)
    out(at.run(), "sign_in_expired")
    with pytest.raises(Exception, match="expired"):
        session.service()


def test_settings_without_a_provider_let_nobody_in(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    sign_in(monkeypatch)
    monkeypatch.setattr(session.st, "user", {})
    at = opened("overview")
    out(at, "sign_in_without_provider")
    assert keys(at) == []


def test_a_provider_without_settings_lets_nobody_in(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sign_in(monkeypatch)
    monkeypatch.setenv("GLASSLEAF_SIGN_IN", str(tmp_path / "none.toml"))
    out(opened("overview"), "sign_in_settings_unreadable")


def test_the_roles_to_choose_from_are_the_accounts(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    sign_in(monkeypatch, held=(ANALYST, REGULATOR))
    at = opened("train", role=OPERATOR)
    assert at.selectbox(key="role").options == [T("sidebar.role_analyst"), T("sidebar.role_regulator")]
    assert at.title[0].value == T("train.title") and heading_levels(at) == [1]  # nothing of the page itself
    assert says(at, "sign_in.not_for", roles=T("sidebar.role_operator"))
    assert says(at, "next.go", page=T("overview.title"))  # and a way on
    assert session.service()._auditor.role in (ANALYST, REGULATOR)


def test_a_sign_in_is_logged_once_with_its_account(
    opened: Opened, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(monkeypatch, sub="once", email="once@example.org")
    at = opened("overview")
    at.run()
    assert says(at, "sidebar.signed_in", name=markdown("once@example.org"))
    with Glassleaf(world.home, pools=False) as glassleaf:
        signed_in = [e.actor for e in glassleaf.audit.entries("demo") if e.action == "sign-in"]
    assert signed_in.count("https://id.example#once") == 1  # others of other tests may stand beside


def test_a_decision_bears_the_accounts_name_and_asks_for_no_other(
    opened: Opened, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(monkeypatch, sub="cy")
    at = opened("report")
    assert not [field for field in at.text_input if field.key in ("report_signer", "report_reviewer")]
    at.text_area(key="report_statement").set_value("Read with its findings.")
    next(b for b in at.button if b.label == T("report.sign_go")).click().run()
    assert says(at, "report.signed")
    with Glassleaf(world.home, pools=False) as glassleaf:
        assert glassleaf.reports.sign_offs(world.record.id)[-1].person == "https://id.example#cy"


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:8501/overview", True),
        ("http://127.0.0.2:8501", True),
        ("http://[::1]:8501/", True),
        ("http://bank.localhost/", True),
        ("http://10.0.0.7:8501/", False),
        ("https://glassleaf.bank.example/audit", False),
        ("http://localhost.evil.example/", False),
    ],
)
def test_a_page_that_came_over_a_network_says_that_nobody_signs_in(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, url: str, local: bool
) -> None:
    monkeypatch.setattr("streamlit.runtime.context.ContextProxy.url", property(lambda self: url))
    assert panel.from_elsewhere() is not local
    if url in ("http://10.0.0.7:8501/", "http://localhost:8501/overview"):
        assert says(opened("overview"), "sign_in.open") is not local
    sign_in(monkeypatch)
    if not local and url.startswith("http://10"):
        assert not says(opened("overview"), "sign_in.open")
