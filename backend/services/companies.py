"""The demo's bank and Hosts as companies of their own: a folder each, with throw-away keys and an agreement that all have signed.

For trying it on one machine: the person who makes the folders has seen all keys. Between companies each makes its own (docs/deploy.md).
"""

from __future__ import annotations

import secrets
import shutil
import socket
import tempfile
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import tomli_w

from backend.crypto.paillier.keys import KEY_BITS_FLOOR
from backend.data.bounded_text import parse_toml
from backend.data.demo import write_demo
from backend.data.federation import MEASURES, Federation, GuestLink, Party, write_federation
from backend.errors import ParameterError
from backend.link.agreement import dictionary_hash, sign
from backend.link.identity import PartyKeys, make_identity, party_toml
from backend.link.kinds import PROTOCOLS, kinds_of
from backend.store.accountant import usual_limit

AGREEMENT = "agreement.toml"
KEYS = "keys"
HOME = "home"
FEDERATION = "companies"  # of the federation; the demo that is simulated is another one
VALID_DAYS = 30  # that the agreement is valid


@dataclass(frozen=True)
class Companies:
    """The folders that were made.

    Attributes
    ----------
    guest : Path
        The Guest's folder: its table and federation file; its home is below it.
    hosts : dict of str to Path
        Host → its folder: its table, dictionary and ``host.toml``.
    port : int
        Where the Guest listens.
    """

    guest: Path
    hosts: dict[str, Path]
    port: int

    @property
    def home(self) -> Path:
        """For ``GLASSLEAF_HOME``."""
        return self.guest / HOME


def make_companies(folder: Path, rows: int = 6000, port: int = 0) -> Companies:
    """Write one folder a company below `folder`, each without anything of another's that is not public.

    Parameters
    ----------
    rows : int
        Applicants at the bank.
    port : int
        Where the Guest listens on this machine; 0 = a free one.

    Raises
    ------
    ParameterError
        There is something in the folder already.
    """
    with tempfile.TemporaryDirectory(prefix="glassleaf-") as temporary_folder:
        return part_companies(write_demo(Path(temporary_folder), rows=rows), folder, port)


def part_companies(federation: Federation, folder: Path, port: int = 0, budget: int | None = None) -> Companies:
    """Return the parties of any simulated federation as companies of their own; its tables are copied.

    Parameters
    ----------
    budget : int, optional
        Questions that every Host answers about a person; None = as for synthetic people, 0 = no limit.

    Raises
    ------
    ParameterError
        There is something in the folder already.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ParameterError("folder_not_empty", folder=folder)
    folder.mkdir(parents=True, exist_ok=True)
    port = port or _free_port()
    if budget is None:
        budget = usual_limit(federation.synthetic)
    folders = {party.name: folder / party.name for party in federation.parties}
    for party in federation.parties:
        folders[party.name].mkdir()
        shutil.copy(federation.folder / party.file, folders[party.name] / party.file)
    identities = {name: _keys(folders[name], name, name == federation.guest.name) for name in folders}
    _agree(federation, identities, folders, port, budget)
    guest = folders.pop(federation.guest.name)
    write_federation(_guests(federation, port), guest)
    for name, home in folders.items():
        _write_host(federation.party(name), home, budget)
    return Companies(guest, folders, port)


def _keys(folder: Path, name: str, guest: bool) -> PartyKeys:
    return make_identity(folder / KEYS, f"{name}-{secrets.token_hex(4)}.example", "guest" if guest else "host")


def _agree(
    federation: Federation, identities: dict[str, PartyKeys], folders: dict[str, Path], port: int, budget: int
) -> None:
    """One agreement, signed by every party with its own key, in each folder."""
    today = datetime.now(UTC).date()
    parties = []
    for party in federation.parties:
        handed_out = party_toml(identities[party.name], party.name, party.title.en)
        [agreed] = parse_toml("agreement", handed_out.encode())["parties"]
        agreed["title"] = party.model_dump(mode="json", include={"title"})["title"]
        parties.append(agreed)
    parties[0]["address"] = f"localhost:{port}"
    purpose = {
        "name": "credit",
        "title": {"en": "Credit scores of applicants", "zh": "贷款申请人信用评分"},
        "legal_basis": {"en": "A demonstration with synthetic people", "zh": "以合成人员进行的演示"},
        "kinds": [kind for protocol in PROTOCOLS for kind in kinds_of(protocol)],
        "dictionaries": {host.name: dictionary_hash(host.features) for host in federation.hosts},
        "floors": {"key_bits": KEY_BITS_FLOOR, "budget": budget, "dither": 0.0, "group_size": 10},
        "retention_days": VALID_DAYS,
        "valid_until": today + timedelta(days=VALID_DAYS),
    }
    document = {
        "title": f"{federation.title}: throw-away keys",
        "valid_from": today - timedelta(days=1),
        "valid_until": today + timedelta(days=VALID_DAYS),
        "synthetic": federation.synthetic,
        "parties": parties,
        "purposes": [purpose],
    }
    first, *others = folders.values()
    (first / AGREEMENT).write_text(tomli_w.dumps(document, multiline_strings=True), encoding="utf-8")
    for identity in identities.values():
        sign(first / AGREEMENT, identity)
    for folder in others:
        shutil.copy(first / AGREEMENT, folder / AGREEMENT)


def _guests(federation: Federation, port: int) -> Federation:
    """Return the federation file at the Guest: of Hosts it has what they disclose, no table."""
    private_settings = {
        "budget": None,
        "budget_total": None,
        "max_bits": None,
        "dither": None,
        "measures": None,
        "file": "",
    }
    hosts = tuple(host.model_copy(update=private_settings) for host in federation.hosts)
    link = GuestLink(agreement=AGREEMENT, keys=KEYS, bind=f"localhost:{port}")
    return federation.model_copy(update={"name": FEDERATION, "hosts": hosts, "link": link, "folder": Path()})


def _write_host(party: Party, folder: Path, budget: int) -> None:
    features = []
    for feature in party.features:
        features.append(feature.model_dump(mode="json", exclude_defaults=True))
    (folder / "dictionary.toml").write_text(tomli_w.dumps({"features": features}), encoding="utf-8")
    document: dict[str, Any] = {
        "party": party.name,
        "agreement": AGREEMENT,
        "keys": KEYS,
        "ops": "127.0.0.1:0",
        "source": {"kind": "csv", "file": party.file, "id": party.id, "dictionary": "dictionary.toml"},
        "limits": {"budget": budget, "dither": 0.0, "measures": list(MEASURES)},
    }
    (folder / "host.toml").write_text(tomli_w.dumps(document), encoding="utf-8")


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        return int(probe.getsockname()[1])
