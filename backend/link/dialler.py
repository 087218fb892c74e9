"""The dialling side: one connection outwards, through a proxy if there is one, for ever renewed; it needs no open port."""

from __future__ import annotations

import logging
import random
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any, cast

import grpc
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_when_event_set, wait_random_exponential
from tenacity.nap import sleep_using_event

from backend.errors import SecurityError
from backend.link.causes import cause_of, unpacked
from backend.link.frames import DeliveryReceipt, unpack
from backend.link.handshake import CHECK
from backend.link.identity import host_name, validity
from backend.link.node import Node
from backend.link.outbox import Outgoing
from backend.link.peers import Peer
from backend.link.rpc import ATTACH, DELIVER, HELLO, INSTANCE, OPTIONS, WAIT, Inflow, Outflow
from backend.remark import Remark

_log = logging.getLogger("glassleaf")
# seconds between tries, full jitter; so long a command of the Guest waits for its Hosts
SHORTEST = 0.2
LONGEST = 5.0


def is_local(target: str) -> bool:
    """Return whether an address `host:port` is one of this machine's own: `localhost` or a loopback address."""
    host = target.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Connection:
    """One channel to a peer, opened and greeted; raises RpcError or SecurityError if that fails."""

    def __init__(self, node: Node, peer: Peer) -> None:
        identity = node.identity()
        settings = node.settings
        target = node.settings.options.connect.get(peer.name, peer.party.address)
        options: list[tuple[str, int | str]] = [
            *OPTIONS,
            # whoever the address leads to has to be this party
            ("grpc.ssl_target_name_override", host_name(peer.party.spiffe)),
            ("grpc.use_local_subchannel_pool", 1),  # no memory of an earlier failure
        ]
        if is_local(target):
            options.append(("grpc.enable_http_proxy", 0))  # no proxy leads back to this machine
        elif settings.options.proxy:
            options.append(("grpc.http_proxy", settings.options.proxy))
        credentials = grpc.ssl_channel_credentials(peer.party.bundle.encode(), identity.key, identity.chain)
        self.leaf = node.leaf_written()
        self.metadata = ((INSTANCE, CHECK if node.checking else node.instance),)
        self.channel = cast("Any", grpc.secure_channel(target, credentials, options=options))
        self.lost = threading.Event()
        try:
            began = time.monotonic()
            answer = self.channel.unary_unary(HELLO)(node.greeting(), timeout=settings.handshake)
            self.ahead = node.greeted(peer, answer).clock - time.time()  # seconds, of the peer's clock
            peer.latency = time.monotonic() - began
        except BaseException:
            self.close()
            raise
        self._deliver = self.channel.stream_unary(DELIVER)

    def close(self) -> None:
        """Close the channel without waiting for it.

        gRPC waits until what is being written has been taken. A line that ended in one direction takes nothing more, and never says so.
        """
        threading.Thread(target=self.channel.close, name="link close", daemon=True).start()

    def deliver(self, node: Node, message: Outgoing) -> DeliveryReceipt:
        """Deliver one message and return the peer's receipt."""
        seconds = max(1.0, message.deadline - time.time())
        answer = self._deliver(node.outgoing_frames(message), timeout=seconds, metadata=self.metadata)
        receipt = unpack(answer)
        if not isinstance(receipt, DeliveryReceipt) or receipt.id != message.id:
            raise SecurityError("not_a_receipt")
        return receipt


class Dialler:
    """Keeps one link up, and delivers what waits for the peer."""

    def __init__(self, node: Node, peer: Peer) -> None:
        self._node = node
        self._peer = peer
        self._stopped = threading.Event()
        self._connection: Connection | None = None
        self._flow: Outflow | None = None
        peer.dialled()
        self._thread = threading.Thread(target=self._run, name=f"link to {peer.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take leave and stop."""
        self._stopped.set()
        if self._flow is not None:
            self._flow.end(leaves=True)
        self._peer.outbox.close()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            connection = self._connect()
            if connection is not None:
                self._attach(connection)
                self._stopped.wait(random.uniform(SHORTEST / 2, SHORTEST))

    def _connect(self) -> Connection | None:
        """Try until the link is up, and show each failure as the link's state; None once the dialler is stopped."""
        tries = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, grpc.RpcError | SecurityError)),
            wait=wait_random_exponential(multiplier=SHORTEST, max=LONGEST, min=SHORTEST),
            stop=stop_when_event_set(self._stopped),
            sleep=sleep_using_event(self._stopped),
            after=self._note,
            retry_error_callback=lambda state: None,
        )
        connection: Connection | None = tries(Connection, self._node, self._peer)
        return connection

    def _note(self, state: RetryCallState) -> None:
        if state.outcome is not None:
            error = state.outcome.exception()
        else:
            error = None
        if error is not None:
            self._peer.failed(reason(error, self._node))

    def _attach(self, connection: Connection) -> None:
        """Hold the link until it ends, by either side, or because there is a new certificate."""
        flow = Outflow(self._node, self._peer)
        inflow = Inflow(self._node, self._peer, flow)
        call: Any = connection.channel.stream_stream(ATTACH)(flow.frames(), metadata=connection.metadata)
        self._connection = connection
        self._flow = flow
        why = Remark("link_ended")
        up = False
        watch = threading.Thread(target=self._watch, args=(connection, call, flow), name="link watch", daemon=True)
        try:
            for frame in call:
                if not up:
                    up = True
                    self._peer.came_up()
                    watch.start()
                inflow.take(frame)
        except grpc.RpcError as error:
            why = reason(error, self._node)
        except SecurityError as error:
            why = cause_of(error)
        finally:
            connection.lost.set()
            self._connection = None
            self._flow = None
            flow.end()
            with suppress(Exception):
                call.cancel()
            connection.close()
            if up:
                watch.join()
                self._peer.went_down(why, here=self._stopped.is_set())
            else:
                self._peer.failed(why)
                self._peer.outbox.put_back()
            inflow.end()

    def _watch(self, connection: Connection, call: Any, flow: Outflow) -> None:
        """Cut a link that is silent, and take leave where this side stops or has a new certificate."""
        while not connection.lost.wait(WAIT):
            if self._peer.is_silent or flow.is_stuck:
                call.cancel()
                return
            if self._stopped.is_set() or self._node.leaf_written() != connection.leaf:
                flow.end(leaves=self._stopped.is_set())  # the stream ends when the other side has seen it
                if not connection.lost.wait(5.0):
                    call.cancel()
                return


def _code(error: Any) -> Any:
    return error.code() if hasattr(error, "code") else None


_DETAILS = {
    "certificate has expired": "peer_certificate_expired",
    "certificate is not yet valid": "peer_certificate_not_valid_yet",
    "CERTIFICATE_VERIFY_FAILED": "peer_certificate_of_another",
    "Hostname Verification": "peer_certificate_of_another",
    "Socket closed": "link_closed_by_peer",
}
"""What TLS and gRPC say in a failure's details → the cause's code; the first that fits."""
_STATES = {
    grpc.StatusCode.UNAVAILABLE: "link_unanswered",
    grpc.StatusCode.DEADLINE_EXCEEDED: "link_late",
    grpc.StatusCode.CANCELLED: "link_silent",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "link_busy",
}
"""gRPC's state of a call that failed → the cause's code."""


def reason(error: BaseException, node: Node) -> Remark:
    """Return why a link fails: what the peer says, else what gRPC and TLS say."""
    if isinstance(error, SecurityError):
        return cause_of(error)
    state = _code(error)
    details = str(getattr(error, "details", str)() or "")

    # The peer itself says why.
    cause = unpacked(details)
    if cause is not None:
        return cause

    # Peers refuse an expired certificate of this side without a word.
    with suppress(SecurityError):
        expires = node.identity().expires
        now = datetime.now(UTC)
        if expires < now:
            return Remark("own_certificate_refused", {"validity": validity(expires, now)})

    for phrase, code in _DETAILS.items():
        if phrase in details:
            return Remark(code)
    proxy = node.settings.proxy_address
    if proxy and "proxy" in details.lower():
        return Remark("proxy_refused", {"proxy": f"http://{proxy}"})
    return Remark(_STATES[state]) if state in _STATES else Remark("link_failed", {"state": str(state)})
