"""Serve `/live`, `/ready` and `/metrics` next to a process's work, on this machine's loopback address unless its operator names another."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from backend.errors import ParameterError

LOOPBACK = "127.0.0.1"
REQUEST_SECONDS = 5.0  # seconds for a request's lines
POLL_SECONDS = 0.05  # how often it is checked whether the server is being closed
LOCAL = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")


class OpsServer:
    """An HTTP server that answers in its own threads until it is closed.

    Parameters
    ----------
    port : int
        0 = any free port; see :attr:`port`.
    address : str
        Name or number of the address; the default can be reached from this machine alone.
    ready : callable
        Returns the reasons why the process cannot work now, one sentence each; empty if it can.
    metrics : callable
        Returns all figures in Prometheus' text format.

    Raises
    ------
    ParameterError
        The port is taken, or the address is not one of this machine's.
    """

    def __init__(
        self, port: int, ready: Callable[[], Sequence[str]], metrics: Callable[[], bytes], address: str = LOOPBACK
    ) -> None:
        address = address.strip("[]")

        class Server(ThreadingHTTPServer):
            if ":" in address:
                address_family = socket.AF_INET6
            else:
                address_family = socket.AF_INET

        class Handler(BaseHTTPRequestHandler):
            timeout = REQUEST_SECONDS

            def do_GET(self) -> None:
                is_known = _is_known(self.headers.get("Host", ""), address)
                status, kind, body = _answer(self.path, is_known, ready, metrics)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that it is called by
                """Log nothing: a request every few seconds is not an event."""

            def version_string(self) -> str:
                return "glassleaf"

        try:
            self._server = Server((address, port), Handler)
        except OSError as error:
            raise ParameterError("ops_port_taken", port=port, address=address, reason=error.strerror or "-") from error
        serve = partial(self._server.serve_forever, poll_interval=POLL_SECONDS)
        self._thread = threading.Thread(target=serve, name="glassleaf-ops", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port on which the server answers."""
        return self._server.server_port

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def serving(
    port: int, ready: Callable[[], Sequence[str]], metrics: Callable[[], bytes], address: str = LOOPBACK
) -> AbstractContextManager[OpsServer]:
    """Within, a process answers on `port`; see :class:`OpsServer`."""
    return closing(OpsServer(port, ready, metrics, address))


def _is_known(host: str, address: str) -> bool:
    """Return whether a request's Host header names this machine, or the address that its operator has opened.

    A page in a browser could give this address a name of its own; requests under such a name are refused.
    """
    if LOCAL.fullmatch(host):
        return True
    name = re.sub(r":\d+$", "", host).strip("[]")
    try:
        return ipaddress.ip_address(name) is not None and not _is_loopback(address)
    except ValueError:  # a name
        return bool(name) and name == address


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _answer(
    path: str, is_known: bool, ready: Callable[[], Sequence[str]], metrics: Callable[[], bytes]
) -> tuple[HTTPStatus, str, bytes]:
    plain = "text/plain; charset=utf-8"
    if not is_known:
        return HTTPStatus.FORBIDDEN, plain, b"not under this name\n"
    if path == "/live":
        return HTTPStatus.OK, plain, b"live\n"
    if path == "/ready":
        try:
            problems = list(ready())
        except Exception as error:  # any error means that the process is not ready; its text may hold data
            problems = [type(error).__name__]
        if not problems:
            return HTTPStatus.OK, plain, b"ready\n"
        lines = "\n".join(problems) + "\n"
        return HTTPStatus.SERVICE_UNAVAILABLE, plain, lines.encode()
    if path == "/metrics":
        return HTTPStatus.OK, "text/plain; version=0.0.4; charset=utf-8", metrics()
    return HTTPStatus.NOT_FOUND, plain, b"/live, /ready, /metrics\n"
