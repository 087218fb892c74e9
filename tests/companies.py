"""A bank and two Hosts, each with its own folder and keys, and an agreement that all three have signed."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import tomli_w

from backend.link.agreement import Agreement, load_agreement, sign
from backend.link.config import LinkOptions
from backend.link.identity import PartyKeys, load_identity, make_identity, party_toml
from backend.link.kinds import PROTOCOLS, kinds_of
from backend.link.peers import MIB, LinkSettings
from backend.link.wire import LinkWire

IN_TIME = 120.0  # seconds; what is to come, comes by then on the slowest machine
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

    def identity(self, party: str) -> PartyKeys:
        return load_identity(self.keys(party))

    def amended(self, *signed_by: str, **changes: object) -> Path:
        """Another agreement with some values changed, signed by some (all, where none is named)."""
        data = tomllib.loads(self.path.read_text()) | changes
        data.pop("signatures", None)
        path = self.folder / f"agreement{len(list(self.folder.glob('agreement*.toml')))}.toml"
        path.write_text(tomli_w.dumps(data))
        for party in signed_by or ROLES:
            sign(path, self.identity(party), self.path if "previous" in changes else None)
        return path


def company_keys(folder: Path, party: str) -> PartyKeys:
    return make_identity(folder / party / "keys", f"{party}.example", ROLES[party])


def agreement_data(identities: dict[str, PartyKeys], address: str = "localhost:1") -> dict[str, object]:
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


PATIENT = LinkSettings(
    LinkOptions(heartbeat=5.0), grace=120.0, idle=60.0, handshake=60.0, message=8 * MIB, memory=64 * MIB
)
"""Small messages, and no verdict where the machine stands still for some seconds; a test that waits for an end sets it shorter."""


def changed(settings: LinkSettings, **changes) -> LinkSettings:
    """The settings with others, of which some are options of the configuration."""
    options = {name: changes.pop(name) for name in LinkOptions.model_fields if name in changes}
    return replace(settings, options=settings.options.model_copy(update=options), **changes)


def until(true: Callable[[], object], seconds: float = IN_TIME) -> None:
    """Wait for what is to become true; generous, since machines differ."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not become true in time"
        time.sleep(0.01)


@dataclass
class Links:
    """Wires of several parties of one test, shut down at its end; the bank's listens at a free port."""

    companies: Companies
    settings: LinkSettings = PATIENT
    wires: list[LinkWire] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        for variable in ("https_proxy", "grpc_proxy", "http_proxy"):  # of the machine that tests run on
            os.environ.pop(variable, None)

    def bank(self, **changes: object) -> LinkWire:
        wire = self._wire("bank", bind=f"localhost:{self.port}", **changes)
        self.port = wire.port
        return wire

    def host(self, party: str, port: int = 0, **changes: object) -> LinkWire:
        wire = self._wire(party, connect={"bank": f"localhost:{port or self.port}"}, **changes)
        wire.open()
        return wire

    def pair(self, line: Proxy | None = None, **changes: object) -> tuple[LinkWire, LinkWire]:
        """The bank's and shop's wires with a link between them, over a line if there is one; `changes` are both sides' settings."""
        bank = self.bank(**changes)
        if line is not None:
            line.target = self.port
        shop = self.host("shop", port=0 if line is None else line.port, **changes)
        self.up(shop)
        return bank, shop

    def _wire(self, party: str, agreement: Path | None = None, keys: Path | None = None, **changes: object) -> LinkWire:
        settings = changed(self.settings, **changes)
        wire = LinkWire(party, agreement or self.companies.path, keys or self.companies.keys(party), settings)
        self.wires.append(wire)
        return wire

    def up(self, *wires: LinkWire) -> None:
        """Wait until every Host of `wires` has its link."""
        for wire in wires:
            until(lambda wire=wire: wire.peer("bank").is_attached)
        bank = next((wire for wire in self.wires if wire.party == "bank"), None)
        if bank is not None:
            for wire in wires:
                until(lambda wire=wire: bank.peer(wire.party).is_attached)

    def shut_down(self) -> None:
        for wire in self.wires:
            wire.shut_down()


class Proxy:
    """A line between two parties that can be cut, hang and be mended; it keeps what passed."""

    def __init__(self) -> None:
        self.target, self.passed = 0, bytearray()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._open, self._flows, self._lock = threading.Event(), threading.Event(), threading.Lock()
        self._open.set()
        self._flows.set()

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._flows.set()
        self.cut()

    def cut(self) -> None:
        """Break what there is, and let nobody in."""
        self._open.clear()
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for end in (end for pair in pairs for end in pair):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def hang(self) -> None:
        """Take everything, pass nothing on."""
        self._flows.clear()

    def mend(self) -> None:
        self._open.set()
        self._flows.set()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if not self._open.is_set():
                near.close()
                continue
            try:
                far = socket.create_connection(("localhost", self.target))
            except OSError:
                near.close()
                continue
            with suppress(OSError):
                with self._lock:
                    self._pairs.append((near, far))
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while blob := one.recv(1 << 16):
                self._flows.wait()
                self.passed += blob
                other.sendall(blob)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
