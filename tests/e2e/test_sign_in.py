"""A sign-in in a real browser: the provider asks who it is, dashboard and console let in by the roles of its claim."""

from __future__ import annotations

import json
import urllib.request
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from app.session import WALKED
from app.texts import Texts
from backend.errors import SignInError
from backend.services.host_operator import own_host
from backend.services.roles import titles_of
from backend.store.database import Database
from tests.e2e.serving import PATIENCE, free_port, served

mock = pytest.importorskip("oidc_provider_mock")
expect = pytest.importorskip("playwright.sync_api").expect
T = Texts("en")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # the provider's own
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

SETTINGS = """
issuer = "{issuer}"
claim = "groups"

[roles]
operator = ["data-owners"]
analyst = ["risk-analysts"]
regulator = ["supervision"]
"""
SECRETS = """
[auth]
redirect_uri = "http://localhost:{port}/oauth2callback"
cookie_secret = "a test's own secret of 32 letters"
client_id = "glassleaf"
client_secret = "anything"
server_metadata_url = "{issuer}/.well-known/openid-configuration"
"""


@contextmanager
def signing_in(browser, folder: Path, groups: dict[str, list[str]], app: str = "app/dashboard.py"):
    """A page, and where it is served, of a home (a Host's folder) that wants a sign-in; account → groups at the provider."""
    port, log = free_port(), folder / "dashboard.log"
    users = [mock.User(sub=sub, claims={"name": f"{sub.title()} Li", "groups": held}) for sub, held in groups.items()]
    with mock.run_server_in_thread(user_claims=users) as provider:
        issuer = f"http://localhost:{provider.server_port}"
        with urllib.request.urlopen(f"{issuer}/.well-known/openid-configuration", timeout=60) as answer:  # noqa: S310 - our own
            assert json.load(answer)["issuer"] == issuer
        (folder / "home").mkdir(exist_ok=True)
        (folder / "home" / "sign-in.toml").write_text(SETTINGS.format(issuer=issuer))
        secrets = folder / "secrets.toml"
        secrets.write_text(SECRETS.format(port=port, issuer=issuer))
        with served(folder / "home", log, port, secrets, pools=False, app=app) as url:
            context = browser.new_context(locale="en-US")
            context.add_cookies([{"name": WALKED, "value": "1", "url": url}])  # not here for the first time
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            try:
                yield page, url
            except Exception as error:
                error.add_note(f"{page.url} said:\n{page.inner_text('body')}\n{log.read_text()}")
                raise
            finally:
                context.close()


def enter(page, account: str) -> None:
    page.get_by_role("button", name=T("sidebar.sign_in")).click()
    page.get_by_role("button", name=account, exact=True).click()


def leave(page, url: str) -> None:
    page.get_by_role("button", name=T("sidebar.sign_out")).click()
    page.get_by_role("button", name="End session").click()
    page.goto(url)


def test_the_roles_of_a_sign_in_are_the_providers_and_signing_out_ends_it(browser, tmp_path: Path) -> None:
    with signing_in(browser, tmp_path, {"ana": ["supervision"]}) as (page, url):
        page.goto(f"{url}/audit?role=operator")
        enter(page, "ana")
        expect(page.get_by_text(T("sidebar.signed_in", name="Ana Li"))).to_be_visible(timeout=PATIENCE)
        expect(page.locator(".st-key-role input")).to_have_value(T("sidebar.role_regulator"), timeout=PATIENCE)
        leave(page, url)
        expect(page.get_by_role("button", name=T("sidebar.sign_in"))).to_be_visible(timeout=PATIENCE)


def test_a_hosts_console_lets_its_operators_in_and_logs_them(browser, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    Database(tmp_path / "home").close()  # all that a Host's folder has to hold
    groups = {"ana": ["supervision"], "ben": ["data-owners"]}
    with signing_in(browser, tmp_path, groups, "app/host.py") as (page, url):
        page.goto(url)
        enter(page, "ana")
        refusal = SignInError("console_for_operators", roles=titles_of(("regulator",)))
        expect(page.get_by_text(refusal.sentence("en"))).to_be_visible(timeout=PATIENCE)
        leave(page, url)
        enter(page, "ben")
        expect(page.get_by_text(T("sidebar.signed_in", name="Ben Li"))).to_be_visible(timeout=PATIENCE)
        expect(page.get_by_text(T("host.nothing_waits"))).to_be_visible(timeout=PATIENCE)
        with closing(own_host(tmp_path / "home", "shell")) as operator:
            (entry,) = operator.entries()
        assert entry.action == "sign-in" and entry.actor.endswith("#ben")
