"""Sign-ins for measurements: what a browser keeps once an identity provider has answered, without a provider."""

from __future__ import annotations

import json
import time
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

from streamlit.web.server.starlette.starlette_app_utils import create_signed_value, generate_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME, XSRF_COOKIE_NAME

from backend.services.accounts import SIGN_IN_FILE

ISSUER = "https://sign-in.example"
SECRET = token_hex(32)
SETTINGS = f"""
issuer = "{ISSUER}"
claim = "groups"

[roles]
operator = ["operators"]
analyst = ["analysts"]
regulator = ["regulators"]
"""
SECRETS = f"""
[auth]
redirect_uri = "http://localhost:{{port}}/oauth2callback"
cookie_secret = "{SECRET}"
client_id = "glassleaf"
client_secret = "none"
server_metadata_url = "{ISSUER}/.well-known/openid-configuration"
"""


def want(home: Path, port: int) -> Path:
    """Have a home and the dashboard at `port` want a sign-in; returns the secrets to serve it with."""
    (home / SIGN_IN_FILE).write_text(SETTINGS)
    secrets = home / "secrets.toml"
    secrets.write_text(SECRETS.format(port=port))
    return secrets


def cookie(url: str, person: str) -> tuple[str, str]:
    """Name and value of the cookie by which the dashboard at `url` knows `person`, in every role, for an hour."""
    split = urlsplit(url)
    now = int(time.time())
    claims = {
        "origin": f"{split.scheme}://{split.netloc}",
        "is_logged_in": True,
        "iss": ISSUER,
        "sub": person,
        "name": person,
        "groups": ["operators", "analysts", "regulators"],
        "iat": now,
        "exp": now + 3600,
    }
    return USER_COOKIE_NAME, create_signed_value(SECRET, USER_COOKIE_NAME, json.dumps(claims)).decode()


def handshake(url: str, person: str) -> dict[str, Any]:
    """What a websocket has to say for the dashboard to know `person`: the cookie, and the token that a browser's own page repeats."""
    token = generate_xsrf_token_string()
    cookies = f"{'='.join(cookie(url, person))}; {XSRF_COOKIE_NAME}={token}"
    return {"additional_headers": {"Cookie": cookies}, "subprotocols": ["streamlit", token]}
