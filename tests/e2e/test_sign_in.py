"""A sign-in in a real browser: the provider asks who it is, the dashboard shows the roles of the claim, and the way out leads out."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest

from app.session import WALKED
from app.texts import Texts
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


def test_the_roles_of_a_sign_in_are_the_providers_and_signing_out_ends_it(browser, tmp_path: Path) -> None:
    port = free_port()
    users = [mock.User(sub="ana", claims={"name": "Ana Li", "groups": ["supervision"]})]
    with mock.run_server_in_thread(user_claims=users) as provider:
        issuer = f"http://localhost:{provider.server_port}"
        with urllib.request.urlopen(f"{issuer}/.well-known/openid-configuration", timeout=60) as answer:  # noqa: S310 - our own
            assert json.load(answer)["issuer"] == issuer
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "sign-in.toml").write_text(SETTINGS.format(issuer=issuer))
        secrets = tmp_path / "secrets.toml"
        secrets.write_text(SECRETS.format(port=port, issuer=issuer))
        with served(tmp_path / "home", tmp_path / "dashboard.log", port, secrets, pools=False) as url:
            context = browser.new_context(locale="en-US")
            context.add_cookies([{"name": WALKED, "value": "1", "url": url}])  # not here for the first time
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            try:
                page.goto(f"{url}/audit?role=operator")
                page.get_by_role("button", name=T("sidebar.sign_in")).click()
                page.get_by_role("button", name="ana", exact=True).click()
                expect(page.get_by_text(T("sidebar.signed_in", name="Ana Li"))).to_be_visible(timeout=PATIENCE)
                expect(page.locator(".st-key-role input")).to_have_value(T("sidebar.role_regulator"), timeout=PATIENCE)
                page.get_by_role("button", name=T("sidebar.sign_out")).click()
                page.get_by_role("button", name="End session").click()
                page.goto(url)
                expect(page.get_by_role("button", name=T("sidebar.sign_in"))).to_be_visible(timeout=PATIENCE)
            except Exception as error:
                error.add_note(
                    f"{page.url} said:\n{page.inner_text('body')}\n{(tmp_path / 'dashboard.log').read_text()}"
                )
                raise
            finally:
                context.close()
