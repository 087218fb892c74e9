"""An agreement to begin with, from what parties hand out: all public. It is read and changed before anybody signs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

import tomli_w
from pydantic import Field

from backend.data.dictionary import Feature
from backend.data.federation import Slug
from backend.data.label import Line, Title
from backend.data.strict_model import StrictModel
from backend.data.validation import field_problems
from backend.errors import FederationError, ParameterError
from backend.link.agreement import AgreedParty, Agreement, dictionary_hash
from backend.link.config import HostConfig, read_form
from backend.link.kinds import PROTOCOLS, kinds_of

RETENTION = 180  # days, if nothing else is agreed on


# Not a party of the federation file: a Host hands out these fields and no other.
class _Disclosing(StrictModel):
    name: Slug
    title: Title
    id: Line
    features: Annotated[tuple[Feature, ...], Field(min_length=1)]


class _HandedOut(StrictModel):
    parties: Annotated[tuple[AgreedParty, ...], Field(min_length=1)]
    hosts: tuple[_Disclosing, ...] = ()


@dataclass(frozen=True)
class Draft:
    """What the Guest goes on with: the agreement's text, and the tables ``[[hosts]]`` of its ``federation.toml``."""

    agreement: str
    hosts: str


@dataclass(frozen=True)
class AgreementTerms:
    """What people have agreed on.

    Attributes
    ----------
    title, purpose, legal_basis : str
        Of the agreement; of its one purpose.
    until : date
        Last day of both, UTC.
    address : str
        host:port where the Guest listens.
    rows_per_day : int
        0 = not limited.
    """

    title: str
    purpose: str
    legal_basis: str
    until: date
    address: str
    rows_per_day: int = 0


def disclosure(config: HostConfig) -> str:
    """All that a Host hands out, as TOML: its public keys, its id column and its dictionary, no value.

    Raises
    ------
    FederationError
        `keys init` has not made what the party hands out, or it cannot be read.
    """
    handed_out = config.path(config.keys) / f"{config.party}.party.toml"
    (party,) = read_form(handed_out, _HandedOut).parties
    host = _Disclosing(name=config.party, title=party.title, id=config.source.id, features=config.features())
    document = {"parties": [party.model_dump(mode="json", exclude_defaults=True)], "hosts": [_document(host)]}
    return tomli_w.dumps(document, multiline_strings=True)


def _document(host: _Disclosing) -> dict[str, Any]:
    return host.model_dump(mode="json", exclude_defaults=True)


def draft(parties: Sequence[Path], terms: AgreementTerms) -> Draft:
    """Return ``agreement.toml`` with one purpose, every kind of message and the usual floors; and the Hosts' disclosures.

    Parameters
    ----------
    parties : sequence of Path
        One file of each party: from the Guest the one that `glassleaf keys init` made, from a Host its :func:`disclosure`.

    Raises
    ------
    FederationError
        A file cannot be read, or the parties do not make an agreement; it lists every problem.
    ParameterError
        The last day has passed, or a Host has not disclosed its dictionary.
    """
    today = datetime.now(UTC).date()
    if terms.until < today:
        raise ParameterError("last_day_over", day=terms.until, today=today)
    party_tables = []
    disclosed: list[_Disclosing] = []
    for path in parties:
        document_of_party = read_form(path, _HandedOut)
        party_tables += [party.model_dump(mode="json") for party in document_of_party.parties]
        disclosed += document_of_party.hosts
    hashes = {host.name: dictionary_hash(host.features) for host in disclosed}
    hosts = [table["name"] for table in party_tables if table["role"] == "host"]
    missing = sorted(set(hosts) - set(hashes))
    if missing:
        raise ParameterError("disclosure_missing", hosts=tuple(missing))
    for table in party_tables:
        if table["role"] == "guest":
            table["address"] = terms.address
    purpose: dict[str, Any] = {
        "name": "scores",
        "title": terms.purpose,
        "legal_basis": terms.legal_basis,
        "kinds": [kind for protocol in PROTOCOLS for kind in kinds_of(protocol)],
        "rows_per_day": terms.rows_per_day,
        "retention_days": RETENTION,
        "valid_until": terms.until,
        "dictionaries": {name: hashes[name] for name in hosts},
        "floors": {"key_bits": 3072, "budget": 1, "dither": 0.0625, "group_size": 50},
    }
    begins = {"valid_from": today, "valid_until": terms.until}
    document = {"title": terms.title, **begins, "parties": party_tables, "purposes": [purpose]}
    if problems := field_problems("agreement.toml", Agreement, document):
        raise FederationError(problems=problems)
    text = tomli_w.dumps(document, multiline_strings=True)
    return Draft(text, tomli_w.dumps({"hosts": [_document(host) for host in disclosed]}, multiline_strings=True))
