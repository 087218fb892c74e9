"""The listening side: one port, mTLS alone. Every call is checked for whom its certificate names before a byte of it is believed."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from threading import BoundedSemaphore
from typing import Any, cast

import grpc

from backend.errors import ParameterError, SecurityError
from backend.link.causes import cause_of, packed
from backend.link.frames import BusyError, pack_control
from backend.link.handshake import CHECK, MAX_GREETING
from backend.link.identity import validity
from backend.link.node import Node
from backend.link.peers import MAX_CALLS, NOT_CALLED, Peer
from backend.link.rpc import AFTER, ATTACH, DELIVER, HELLO, INSTANCE, OPTIONS, WAIT, Inflow, Outflow, delivered
from backend.ops.open_files import ENOUGH, raise_limit
from backend.remark import Remark

_log = logging.getLogger("glassleaf")
BUSY_SECONDS = 0.5
CLOSING_SECONDS = 2.0  # for calls to end; one that writes to a line which takes nothing more is left
LEAF_SECONDS = 60.0  # between looks at this side's own certificate
UNPROVEN_SECONDS = 30.0  # a handshake without a greeting is remembered so long
GREETING_SECONDS = 2.0  # from a handshake to its greeting
UNPROVEN = 3  # handshakes without a greeting that are no accident: a peer tries again within 5 s
# Causes that no greeting has given.
PASSIVE = {"link_not_called", "link_left", "link_cut", "link_silent", "link_stuck", "link_not_proven"}
OF_CERTIFICATES = {"own_certificate_refused", "shown_certificate_expired"}
REFUSALS = 32  # calls that are being refused
_Context = Any  # grpc.ServicerContext, whose stubs lack auth_context's values


class Listener(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in its stubs alone
    """Answers the peers of a party that dial in.

    Parameters
    ----------
    address : str
        host:port to listen at; port 0 = any that is free.

    Raises
    ------
    ParameterError
        The port is taken.
    """

    def __init__(self, node: Node, address: str) -> None:
        self._node = node
        self._watched: dict[int, tuple[_Context, float]] = {}  # call → until when something has to come on it
        self._attached: dict[_Context, tuple[Peer, Outflow, _Ended]] = {}
        self._flows: dict[str, Outflow] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._leaf = node.leaf_written()
        self._expires: datetime | None = None  # of this side's certificate
        self._unproven = deque[float](maxlen=REFUSALS)  # when handshakes began whose greeting has not come
        workers = REFUSALS + (node.settings.rpcs + MAX_CALLS) * len(node.peers)
        options = [
            *OPTIONS,
            ("grpc.so_reuseport", 0),
            ("grpc.max_concurrent_streams", 100),
            ("grpc.server_handshake_timeout_ms", int(node.settings.handshake * 1000)),
            # Who shows no certificate is cut after `handshake` seconds; until then strangers leave files for the rest of the process.
            ("grpc.max_allowed_incoming_connections", (raise_limit() or ENOUGH) // 2),
        ]
        self._calls = _Calls()
        self._server = grpc.server(
            cast("Any", self._calls), handlers=[self], options=options, maximum_concurrent_rpcs=workers
        )
        credentials = grpc.dynamic_ssl_server_credentials(
            self._certificate(), cast("Any", self._renewed), require_client_authentication=True
        )
        try:
            self.port: int = self._server.add_secure_port(address, credentials)
        except RuntimeError:
            raise ParameterError("cannot_listen", address=address) from None
        self._server.start()
        self._look_at_leaf()
        self._look_at_links()
        self._watcher = threading.Thread(target=self._watch, name="link watch", daemon=True)
        self._watcher.start()

    def close(self) -> None:
        """End every call and stop."""
        self._stopped.set()
        for flow in list(self._flows.values()):
            flow.end()
        self._server.stop(grace=1.0).wait(CLOSING_SECONDS)
        self._calls.shutdown()
        self._watcher.join()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        """The three calls of the link; bytes in, bytes out."""
        method = handler_call_details.method
        if method == HELLO:
            # as a stream, whose handler begins before the greeting has come: it takes a place, and has a deadline
            return grpc.stream_unary_rpc_method_handler(self._hello)
        if method == DELIVER:
            return grpc.stream_unary_rpc_method_handler(self._deliver)
        if method == ATTACH:
            return grpc.stream_stream_rpc_method_handler(self._attach)
        return None

    def _certificate(self) -> grpc.ServerCertificateConfiguration:
        identity = self._node.identity()
        roots = b"".join(peer.party.bundle.encode() + b"\n" for peer in self._node.peers.values())
        return grpc.ssl_server_certificate_configuration([(identity.key, identity.chain)], root_certificates=roots)

    def _renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the new leaf if one was written; gRPC asks at each handshake."""
        self._unproven.append(time.monotonic())
        leaf = self._node.leaf_written()
        if leaf == self._leaf:
            return None
        try:
            configuration = self._certificate()
        except SecurityError:
            _log.warning("The renewed certificate cannot be used; the one before stays.")
            return None
        self._leaf = leaf
        return configuration

    def _peer(self, context: _Context) -> Peer:
        """Whom the certificate of this call names; a stranger's call ends here."""
        proven = context.auth_context()
        spiffe = b"".join(proven.get("peer_spiffe_id", ())).decode(errors="replace")
        chain = b"\n".join(proven.get("x509_pem_cert_chain", ()) or proven.get("x509_pem_cert", ()))
        try:
            return self._node.peer_of(spiffe, chain)
        except SecurityError as error:
            _log.warning("A call was refused: %s", cause_of(error))
            context.abort(grpc.StatusCode.UNAUTHENTICATED, packed(cause_of(error)))
            raise

    def _hello(self, requests: Iterator[bytes], context: _Context) -> bytes:
        peer = self._peer(context)
        with suppress(IndexError):  # one of them was this one's
            self._unproven.pop()
        with self._place(peer.beside, context):
            try:
                request = next(self._in_time(requests, context, self._node.settings.handshake), b"")
            except grpc.RpcError as error:  # cut, by the other side or for being late
                error.__traceback__ = None
                return b""
            try:
                if len(request) > MAX_GREETING:
                    raise SecurityError("greeting_too_long", n=len(request), limit=MAX_GREETING)
                self._node.greeted(peer, request)
            except SecurityError as error:
                peer.failed(cause_of(error))
                if error.code != "agreement_not_signed":
                    context.abort(grpc.StatusCode.FAILED_PRECONDITION, packed(cause_of(error)))
            # A peer that lacks signatures gets those that are here; until all are, it has not greeted.
            return self._node.greeting()

    @contextmanager
    def _place(self, places: BoundedSemaphore, context: _Context) -> Iterator[None]:
        """Take one of a peer's own places for a call; a peer that has none left is told to try again."""
        if not places.acquire(blocking=False):
            self._busy(context)
        try:
            yield
        finally:
            places.release()
            self._watched.pop(id(context), None)

    def _greeted(self, context: _Context) -> Peer:
        """Return the peer; its present process must have greeted."""
        peer = self._peer(context)
        instance = dict(context.invocation_metadata()).get(INSTANCE, "")
        if not peer.instance or instance != peer.instance:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, packed(Remark("greet_first")))
        return peer

    def _deliver(self, requests: Iterator[bytes], context: _Context) -> bytes:
        checking = dict(context.invocation_metadata()).get(INSTANCE) == CHECK
        if checking:
            peer = self._peer(context)
        else:
            peer = self._greeted(context)
        with self._place(peer.calls, context):
            try:
                frames = self._in_time(requests, context, self._node.settings.idle)
                return pack_control(delivered(self._node, peer, frames, checking))
            except BusyError:
                self._busy(context)
            except SecurityError as error:
                _log.warning("A call was refused: %s", cause_of(error), extra={"party": peer.name})
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, packed(cause_of(error)))
            except grpc.RpcError as error:  # the call was cut, by the other side or for being idle
                error.__traceback__ = None  # gRPC keeps the error with the call: a circle that would keep the call open
        return b""

    @staticmethod
    def _busy(context: _Context) -> None:
        context.set_trailing_metadata(((AFTER, str(BUSY_SECONDS)),))
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, packed(Remark("link_busy")))

    def _in_time(self, requests: Iterator[bytes], context: _Context, longest: float) -> Iterator[bytes]:
        """The same, cut if nothing comes for `longest` seconds."""
        self._watched[id(context)] = (context, time.monotonic() + longest)
        for request in requests:
            yield request
            self._watched[id(context)] = (context, time.monotonic() + longest)

    def _attach(self, requests: Iterator[bytes], context: _Context) -> Iterator[bytes]:
        """Attach a peer's stream; yield what is sent to it."""
        peer = self._greeted(context)
        if not peer.beside.acquire(blocking=False):
            self._busy(context)
        flow = Outflow(self._node, peer)
        inflow = Inflow(self._node, peer, flow)
        with self._lock:
            previous_flow = self._flows.get(peer.name)
            self._flows[peer.name] = flow
        if previous_flow is not None:  # half open: the dialling side has begun again
            previous_flow.end()
        peer.came_up()
        ended = _Ended()
        self._attached[context] = peer, flow, ended
        context.add_callback(flow.end)
        threading.Thread(
            target=self._read, args=(requests, inflow, flow, ended), name="link reader", daemon=True
        ).start()
        try:
            yield from flow.frames()
        finally:
            self._detach(context, inflow.left)

    def _detach(self, context: _Context, peer_stops: bool = False) -> None:
        """Note once that an attached stream has ended, and free its place.

        The first thread that notices the end calls this: gRPC does not end a call that writes to a line which takes nothing more.
        """
        attached = self._attached.pop(context, None)
        if attached is None:
            return
        peer, flow, ended = attached
        flow.end()
        with self._lock:
            if self._flows.get(peer.name) is flow:
                del self._flows[peer.name]
        peer.beside.release()
        if peer_stops:
            why = Remark("link_left")
        else:
            why = ended.why or Remark("link_cut")
        peer.went_down(why, peer_stops, here=self._stopped.is_set())

    @staticmethod
    def _read(requests: Iterator[bytes], inflow: Inflow, flow: Outflow, ended: _Ended) -> None:
        """Until the stream ends by either side."""
        try:
            for frame in requests:
                inflow.take(frame)
        except SecurityError as error:
            ended.why = cause_of(error)
        except grpc.RpcError as error:
            error.__traceback__ = None
        finally:
            inflow.end()
            flow.end()

    def _look_at_leaf(self) -> None:
        """See whether this side's certificate has expired: peers end the handshake without a word here."""
        try:
            expires = self._node.identity().expires
        except SecurityError:  # it is being written, or cannot be read; the next look says more
            return
        self._expires = expires

    def _look_at_links(self) -> None:
        """Say of each link that is down which certificate is in its way: TLS refuses it before the caller is known."""
        now = datetime.now(UTC)
        for peer in self._node.peers.values():
            if peer.is_attached:
                why = None
            else:
                why = self._certificate_in_the_way(peer, now)
            if why is not None:
                peer.failed(why)

    def _certificate_in_the_way(self, peer: Peer, now: datetime) -> Remark | None:
        """Return why a peer's handshake fails; None if something else is known of the link."""
        if self._expires is not None and self._expires < now:
            return Remark("own_certificate_refused", {"validity": validity(self._expires, now)})
        if peer.expires is not None and peer.expires < now:
            return Remark("shown_certificate_expired", {"validity": validity(peer.expires, now)})
        if peer.cause.code not in PASSIVE:
            return NOT_CALLED if peer.cause.code in OF_CERTIFICATES else None
        if self._n_unproven() >= UNPROVEN:
            return Remark("link_not_proven", {"host": peer.name})
        return NOT_CALLED if peer.cause.code == "link_not_proven" else None

    def _n_unproven(self) -> int:
        """Return how many handshakes of late were not followed by a greeting."""
        now = time.monotonic()
        return sum(GREETING_SECONDS < now - began < UNPROVEN_SECONDS for began in list(self._unproven))

    def _watch(self) -> None:
        """Cut calls on which nothing comes, and attached streams whose peer is silent or takes nothing: gRPC itself would wait for it."""
        look = time.monotonic() + LEAF_SECONDS
        while not self._stopped.wait(min(WAIT, self._node.settings.idle / 4)):
            if time.monotonic() > look:
                look = time.monotonic() + LEAF_SECONDS
                self._look_at_leaf()
            self._look_at_links()
            for attached, (peer, flow, ended) in list(self._attached.items()):
                if peer.is_silent or flow.is_stuck:
                    ended.why = Remark("link_silent" if peer.is_silent else "link_stuck")
                    attached.cancel()
                    self._detach(attached)
            for context, until in list(self._watched.values()):
                if time.monotonic() > until:
                    context.cancel()


class _Calls(Executor):
    """A thread a call, as many as the server lets in; none keeps a process from ending, as a pool's do while a Host is attached."""

    def __init__(self) -> None:
        self._open = set[Future[Any]]()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start `fn` at once in a new thread."""
        future = Future[Any]()
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        threading.Thread(target=self._run, args=(future, fn, args, kwargs), name="link", daemon=True).start()
        return future

    @staticmethod
    def _run(future: Future[Any], fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        finally:
            del future, fn, args, kwargs  # an error refers to this frame, and would keep the call open

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait a moment for what is open; calls are cancelled by their server."""
        if wait:
            wait_for(list(self._open), CLOSING_SECONDS)


class _Ended:
    """Why an attached stream ended."""

    def __init__(self) -> None:
        self.why: Remark | None = None
