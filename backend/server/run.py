"""Serves an application on an address, which is this machine's own unless programs need tokens."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from backend.errors import ParameterError
from backend.ops.health import serving
from backend.ops.logs import log_as_json
from backend.ops.metrics import ProcessCounts
from backend.ops.open_files import raise_limit
from backend.server.app import Settings, create_app
from backend.server.guard import MAX_BODY
from backend.server.tokens import Tokens
from backend.services import Glassleaf

CLOSING_SECONDS = 10  # seconds that requests get to end
MAX_HEAD = 65_536  # bytes of a request without its body
WHOLE_REQUEST_SECONDS = (
    60.0  # seconds in which a request has to come whole: a program of a bank's sends a megabyte in less
)
CONNECTIONS = 512  # at once; a process may have 1,024 files open by default


class BoundedHttp(HttpToolsProtocol):
    """HTTP parsed in C, which by itself would keep a head, a body or trailers without an end, and wait for them for ever."""

    _head_bytes = 0  # bytes of a request that are not of its body
    _head = 0  # bytes of its address and headers: what comes in one read is parsed before it is counted above
    _unread = 0  # bytes of its body that came after its answer
    _due: asyncio.TimerHandle | None = None  # until when it has to be whole
    _since = 0.0  # when it connected, or its last request was whole

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note a new connection, which has to send a request in time."""
        super().connection_made(transport)
        self._since = time.monotonic()  # loop.time() is the same for all that it accepts at once
        self._due = self.loop.call_later(WHOLE_REQUEST_SECONDS, self.timeout_keep_alive_handler)
        if len(self.connections) > CONNECTIONS:
            self._make_room()

    def _make_room(self) -> None:
        """Close the connection that has been idle for longest, so that idle connections keep no caller out."""
        every = (connection for connection in self.connections if isinstance(connection, BoundedHttp))
        idle = (
            connection
            for connection in every
            if connection._due or connection.cycle is None or connection.cycle.response_complete
        )
        min(idle, key=lambda connection: connection._since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end of the connection."""
        self._come()
        super().connection_lost(exc)

    def _come(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def data_received(self, data: bytes) -> None:
        """Parse the data received; refuse a request with too much data besides its body."""
        if self._due is None:
            self._due = self.loop.call_later(WHOLE_REQUEST_SECONDS, self.timeout_keep_alive_handler)
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > MAX_HEAD and not self.transport.is_closing():
            self.send_400_response(f"At most {MAX_HEAD} bytes beside the body.")

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._head = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a piece of the address."""
        self._head += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._head += len(name) + len(value) + 4  # colon, space, end of the line
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Hand the request to the application, or refuse it for its head."""
        if self._head <= MAX_HEAD:
            super().on_headers_complete()
        elif not self.transport.is_closing():
            self.send_400_response(f"At most {MAX_HEAD} bytes beside the body.")

    def on_body(self, body: bytes) -> None:
        """A piece of the body, whose length the application looks at; of one that was answered before, so much is let pass."""
        if self._head > MAX_HEAD:
            return
        self._head_bytes -= len(body)
        self._unread += len(body) if self.cycle.response_complete else 0
        if self._unread > MAX_BODY:
            self.transport.abort()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The next request begins."""
        if self._head > MAX_HEAD:
            return
        self._come()
        self._head_bytes = self._unread = 0
        self._since = time.monotonic()
        super().on_message_complete()


def serve(
    glassleaf: Glassleaf, settings: Settings, address: str, port: int, ops_port: int = 0, *, json_logs: bool = False
) -> None:
    """Serve until stopped; with an `ops_port` also what operators ask for, on this machine's own address.

    Raises
    ------
    ParameterError
        There are no tokens, and the address is not this machine's own; or the `ops_port` is taken.
    """
    settings = replace(settings, open_to_all=not Tokens(glassleaf.home).all())
    if settings.open_to_all and not is_local(address):
        raise ParameterError("server_needs_token", address=address)
    if json_logs:
        log_as_json()
    metrics = ProcessCounts()
    metrics.watch("links_down", "Hosts whose link is not there", lambda: len(glassleaf.operation.links_down()))
    app = create_app(glassleaf, settings, metrics)
    options: dict[str, Any] = {
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": CLOSING_SECONDS,
    }
    options |= {"ws": "none"}  # not used here, and not bounded by BoundedHttp
    options |= {"log_config": None} if json_logs else {}
    raise_limit()
    gc.freeze()  # what is imported stays: a full collection looks at it no more while callers wait
    threading.Thread(target=glassleaf.operation.links_down, name="links", daemon=True).start()  # before anybody asks
    with serving(ops_port, partial(_not_ready, glassleaf), metrics.text) if ops_port else nullcontext():
        uvicorn.run(app, host=address, port=port, http=BoundedHttp, **options)


def _not_ready(glassleaf: Glassleaf) -> list[str]:
    """Return why the home can do no work now, in English: the reader is a program."""
    operation = glassleaf.operation
    return [problem.sentence() for problem in (*operation.not_ready(), *operation.links_down())]


def is_local(address: str) -> bool:
    """Return whether only this machine's own programs reach an address; a name other than ``localhost`` may be anybody's."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"
