"""Whether a party's link would stand, step by step, in words; looks and measures, and disturbs no link that stands."""

from __future__ import annotations

import math
import os
import socket
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from backend.errors import GlassleafError, SecurityError
from backend.link.agreement import days_left, load_signed, signers
from backend.link.causes import cause_of
from backend.link.frames import ECHO
from backend.link.handshake import MAX_SKEW
from backend.link.identity import load_identity, validity
from backend.link.node import Node
from backend.link.outbox import Outgoing
from backend.link.peers import MIB, LinkSettings, Peer
from backend.link.rpc import HELLO, require_grpc
from backend.protocols.transport.wire import new_conversation
from backend.remark import Remark

if TYPE_CHECKING:
    from backend.link.dialler import Connection

TIMES = 5  # greetings of which the median is taken
CONNECT_SECONDS = 10.0  # seconds for a connection


_FIXES = {
    "home": "fix_home",
    "federations": "fix_federations",
    "table": "fix_table",
    "features": "fix_features",
    "source": "fix_source",
    "store": "fix_store",
    "codes": "fix_store",
    "webhook": "fix_webhook",
    "dictionary": "fix_dictionary",
    "certificate": "fix_certificate",
    "agreement": "fix_agreement",
    "keys": "fix_keys",
    "listen": "fix_listen",
    "proxy": "fix_proxy",
    "port": "fix_port",
    "handshake": "fix_handshake",
    "echo": "fix_echo",
}
"""Step that can fail → the code of what mends it."""


@dataclass(frozen=True)
class CheckedStep:
    """One step of a check: whether it passed, and a remark about it."""

    step: str
    ok: bool
    remark: Remark

    @property
    def fix(self) -> Remark | None:
        """The remark that says what to do; None if the step passed."""
        return None if self.ok else Remark(_FIXES[self.step])


def check_link(party: str, agreement: Path, keys: Path, settings: LinkSettings) -> Iterator[CheckedStep]:
    """Check keys, agreement and each link that this party dials; steps that depend on a failed one are left out."""
    require_grpc()
    certificate = _certificate(keys)
    yield certificate
    signed = _agreement(party, agreement)
    yield signed
    if not certificate.ok or not signed.ok:
        return
    try:
        node = Node(party, agreement, keys, settings)
    except GlassleafError as error:
        yield CheckedStep("keys", False, cause_of(error))
        return
    node.checking = True
    if node.party.address and (node.is_guest or not node.agreement.guest.address):
        yield _port_here(settings.listens_at(node.party.address))
        return
    for peer in node.peers.values():
        yield from _dial(node, peer)


def _certificate(keys: Path) -> CheckedStep:
    try:
        identity = load_identity(keys)
    except GlassleafError as error:
        return CheckedStep("certificate", False, cause_of(error))
    now = datetime.now(UTC)
    values = {"spiffe": identity.spiffe, "validity": validity(identity.expires, now)}
    ok = identity.expires > now
    return CheckedStep("certificate", ok, Remark("check_certificate" if ok else "check_certificate_expired", values))


def _agreement(party: str, path: Path) -> CheckedStep:
    now = datetime.now(UTC)
    if not path.exists():
        return CheckedStep("agreement", False, Remark("check_no_agreement", {"file": str(path)}))
    try:
        agreement = load_signed(path, party, now)
        signed = signers(path)
    except GlassleafError as error:
        return CheckedStep("agreement", False, cause_of(error))
    missing = tuple(agreed_party.name for agreed_party in agreement.parties if agreed_party.name not in signed)
    if missing:
        return CheckedStep(
            "agreement", True, Remark("check_agreement_signed_here", {"hash": agreement.hash[:12], "parties": missing})
        )
    values = {"hash": agreement.hash[:12], "n": days_left(agreement, now)}
    return CheckedStep("agreement", True, Remark("check_agreement", values))


def _dial(node: Node, peer: Peer) -> Iterator[CheckedStep]:
    from grpc import RpcError  # noqa: PLC0415 - extra link

    from backend.link.dialler import Connection, reason  # noqa: PLC0415

    address = node.settings.options.connect.get(peer.name, peer.party.address)
    proxy = node.settings.proxy_address
    if proxy:
        reached = _reach("proxy", proxy)
    else:
        yield CheckedStep("proxy", True, Remark("check_no_proxy"))
        reached = _reach("port", address)
    yield reached
    if not reached.ok:
        return
    try:
        connection = Connection(node, peer)
    except (RpcError, SecurityError) as error:
        yield CheckedStep("handshake", False, Remark("check_peer", {"party": peer.name, "why": reason(error, node)}))
        return
    try:
        yield CheckedStep("handshake", True, Remark("check_handshake", {"party": peer.name}))
        clock = {"seconds": round(abs(connection.ahead), 1), "party": peer.name, "limit": round(MAX_SKEW)}
        yield CheckedStep("clock", True, Remark("check_clock", clock))
        yield _latency(node, connection)
        yield _echo(node, peer, connection)
    except (RpcError, SecurityError) as error:
        yield CheckedStep("echo", False, Remark("check_peer", {"party": peer.name, "why": reason(error, node)}))
    finally:
        connection.channel.close()


def _reach(step: str, address: str) -> CheckedStep:
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except socket.gaierror:
        return CheckedStep(step, False, Remark("name_not_resolved", {"name": host}))
    except ConnectionRefusedError:
        return CheckedStep(step, False, Remark("connection_refused", {"address": address}))
    except OSError as error:
        why = error.strerror or type(error).__name__
        return CheckedStep(step, False, Remark("address_silent", {"address": address, "reason": why}))
    return CheckedStep(step, True, Remark("check_address", {"address": address}))


def _port_here(address: str) -> CheckedStep:
    host, port = address.rsplit(":", 1)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), int(port)))
        except OSError as error:
            why = error.strerror or type(error).__name__
            return CheckedStep("listen", False, Remark("check_port_taken", {"address": address, "reason": why}))
    return CheckedStep("listen", True, Remark("check_port_free", {"address": address}))


def _latency(node: Node, connection: Connection) -> CheckedStep:
    seconds = []
    for _ in range(TIMES):
        began = time.monotonic()
        connection.channel.unary_unary(HELLO)(node.greeting(), timeout=CONNECT_SECONDS)
        seconds.append(time.monotonic() - began)
    values = {"milliseconds": round(statistics.median(seconds) * 1000, 1), "n": TIMES}
    return CheckedStep("latency", True, Remark("check_latency", values))


def _echo(node: Node, peer: Peer, connection: Connection) -> CheckedStep:
    blob = os.urandom(MIB)
    message = Outgoing(new_conversation(), ECHO, peer.party.spiffe, blob, "online", time.time() + 60, sequence=1)
    began = time.monotonic()
    connection.deliver(node, message)
    seconds = max(time.monotonic() - began, math.ulp(1.0))
    return CheckedStep("echo", True, Remark("check_echo", {"milliseconds": round(seconds * 1000)}))
