"""A bank and two Hosts, each with its own folder and keys, and an agreement that all three have signed."""

from __future__ import annotations

import shutil
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import tomli_w

from backend.link.agreement import Agreement, load_agreement, sign
from backend.link.identity import Identity, load_identity, make_identity, party_toml
from backend.link.kinds import PROTOCOLS, kinds_of

ROLES = {"bank": "guest", "shop": "host", "telecom": "host"}


@dataclass(frozen=True)
class Companies:
    """Folders with keys and the signed agreement, by party."""

    folder: Path
    path: Path

    @property
    def agreement(self) -> Agreement:
        return load_agreement(self.path)

    def keys(self, party: str) -> Path:
        return self.folder / party / "keys"

    def identity(self, party: str) -> Identity:
        return load_identity(self.keys(party))

    def amended(self, *signed_by: str, **changes: object) -> Path:
        """Another agreement with some values changed, signed by some (all, where none is named)."""
        data = tomllib.loads(self.path.read_text()) | changes
        path = self.folder / f"agreement{len(list(self.folder.glob('agreement*.toml')))}.toml"
        path.write_text(tomli_w.dumps(data))
        for party in signed_by or ROLES:
            sign(path, self.identity(party))
        return path


def company_keys(folder: Path, party: str) -> Identity:
    return make_identity(folder / party / "keys", f"{party}.example", ROLES[party])


def agreement_data(identities: dict[str, Identity], address: str = "localhost:1") -> dict[str, object]:
    today = datetime.now(UTC).date()
    parties = [tomllib.loads(party_toml(one, name, name.title()))["parties"][0] for name, one in identities.items()]
    parties[0]["address"] = address
    purpose = {
        "name": "score",
        "title": "Credit scores of applicants",
        "legal_basis": "Consent, Article 6(1)(a) GDPR",
        "kinds": [kind for protocol in PROTOCOLS for kind in kinds_of(protocol)],
        "dictionaries": {"shop": "0" * 64, "telecom": "1" * 64},
        "retention_days": 28,
        "valid_until": today + timedelta(days=300),
    }
    return {
        "title": "Scores between bank, shop and telecom",
        "valid_from": today - timedelta(days=3),
        "valid_until": today + timedelta(days=365),
        "parties": parties,
        "purposes": [purpose],
    }


@cache
def _template() -> Path:
    folder = Path(mkdtemp(prefix="companies-"))
    identities = {party: company_keys(folder, party) for party in ROLES}
    path = folder / "agreement.toml"
    path.write_text(tomli_w.dumps(agreement_data(identities)))
    for identity in identities.values():
        sign(path, identity)
    return folder


def make_companies(folder: Path) -> Companies:
    """The same three companies in a folder of a test's own."""
    shutil.copytree(_template(), folder / "companies")
    return Companies(folder / "companies", folder / "companies" / "agreement.toml")
