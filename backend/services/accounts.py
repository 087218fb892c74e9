"""Who is signed in, and in which roles: from the claims of an identity provider (OpenID Connect Core 1.0, §2 and §5.1).

Streamlit keeps the session: it has checked the ID token's signature once, and keeps the claims for 30 days. So the claims' own times
are checked here, whenever anything is asked for in somebody's name (docs/decisions/who-decides.md).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from backend.data.bounded_text import read_toml
from backend.errors import FederationError, SignInError
from backend.services.roles import Role
from backend.store.schema import NAME_LENGTH

SIGN_IN_FILE = "sign-in.toml"
VARIABLE = "GLASSLEAF_SIGN_IN"  # path of the file, if it is not in the home
MAX_TIME = 1e11  # seconds since 1970, some three thousand years: no sign-in is later
LEEWAY = 60.0  # seconds that two clocks may be apart
Text = Annotated[str, StringConstraints(min_length=1)]


class SignIn(BaseModel):
    """How sign-ins are read; a field that is not known is refused.

    Attributes
    ----------
    issuer : str
        The one identity provider whose claims count, as it names itself (``iss``).
    claim : list of str
        Where in the claims the roles stand, e.g. ``["realm_access", "roles"]``; one word may stand alone.
    roles : dict of str to list of str
        Role → what the claim has to hold for it.
    hours : float
        How long a sign-in lasts, since ``auth_time`` (if a provider does not state it, since ``iat``).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    issuer: Text
    claim: Text | list[Text]
    roles: dict[Role, list[Text]] = Field(min_length=1)
    hours: float = Field(12.0, gt=0, le=24 * 30)


@dataclass(frozen=True)
class Account:
    """A user of the identity provider.

    Attributes
    ----------
    issuer, subject : str
        Together they name one person for good (OpenID Connect Core 1.0, §2); a name or an address may change hands.
    name : str
        What people call the account.
    roles : tuple of str
        That the claim grants, in the order of :data:`Role`.
    """

    issuer: str
    subject: str
    name: str
    roles: tuple[str, ...]

    @property
    def actor(self) -> str:
        """As the audit log names it. An issuer has no fragment, so that no two accounts are written alike."""
        return f"{self.issuer}#{self.subject}"


class Accounts:
    """The accounts of a home, or of a Host's folder."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @property
    def file(self) -> Path:
        """Return the file that says how sign-ins are read."""
        return Path(os.environ.get(VARIABLE) or self._home / SIGN_IN_FILE)

    def wanted(self) -> bool:
        """Return whether this home is for people who have signed in."""
        return bool(os.environ.get(VARIABLE)) or self.file.exists()

    def settings(self) -> SignIn:
        """Return what the file says; raises SignInError if it cannot be used: nobody is let in."""
        try:
            return SignIn.model_validate(read_toml(self.file, name=str(self.file)))
        except FederationError as error:
            raise SignInError("sign_in_settings_unreadable", why=error.remarks[0]) from error
        except ValidationError as error:
            problems = []
            for problem in error.errors():
                problems.append(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}")
            raise SignInError("sign_in_settings_wrong", file=self.file, wrong=tuple(problems)) from error

    def of_session(self, user: Mapping[str, Any]) -> Account | None:
        """Return the account of a page's session; None if no sign-in is needed.

        Parameters
        ----------
        user : mapping of str to object
            What Streamlit knows of it: nothing if no identity provider is set up, else ``is_logged_in`` and claims.

        Raises
        ------
        SignInError
            A sign-in is needed, since the home or Streamlit is set up for it; or see :meth:`account`.
        """
        if user.get("is_logged_in") is None:
            if self.wanted():
                raise SignInError("sign_in_without_provider", file=self.file)
            return None
        if not user["is_logged_in"]:
            raise SignInError("signed_out")
        return self.account(user)

    def account(self, claims: Mapping[str, Any], now: float | None = None) -> Account:
        """Return the account with these claims.

        Parameters
        ----------
        claims : mapping of str to object
            Of an ID token whose signature was checked.
        now : float, optional
            Seconds since 1970, UTC.

        Raises
        ------
        SignInError
            They have expired, the sign-in is too long ago, another provider made them, they grant no role, or they are unusable.
        """
        settings = self.settings()
        now = time.time() if now is None else now
        issuer = _text(claims, "iss")
        subject = _text(claims, "sub")
        if issuer != settings.issuer or "#" in issuer:
            raise SignInError("sign_in_of_other_provider", issuer=issuer[:80], file=self.file)
        expires = _time(claims, "exp")
        since = _time(claims, "auth_time" if "auth_time" in claims else "iat")
        if since > now + LEEWAY:
            raise SignInError("sign_in_in_future")
        if now >= expires + LEEWAY:
            raise SignInError("sign_in_expired")
        if now >= since + settings.hours * 3600:
            raise SignInError("sign_in_too_old", hours=settings.hours)
        claim_values = _held(claims, settings.claim)
        roles = tuple(role for role in get_args(Role) if claim_values & set(settings.roles.get(role, ())))
        if not roles:
            raise SignInError("no_role")
        name = next((claims[key] for key in ("email", "name") if isinstance(claims.get(key), str)), "") or subject
        account = Account(issuer, subject, name, roles)
        if len(account.actor) > NAME_LENGTH or not account.actor.isprintable():
            raise SignInError("sign_in_name_unusable", most=NAME_LENGTH)
        return account


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value.strip():
        raise SignInError("sign_in_lacks_text", claim=name)
    return value


def _time(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MAX_TIME:
        raise SignInError("sign_in_lacks_time", claim=name)
    return float(value)


def _held(claims: Mapping[str, Any], path: str | list[str]) -> frozenset[str]:
    """Return the texts at a place in the claims."""
    value: Any = claims
    for name in [path] if isinstance(path, str) else path:
        if isinstance(value, Mapping):
            value = value.get(name)
        else:
            value = None
    words = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    return frozenset(word for word in words if isinstance(word, str))
