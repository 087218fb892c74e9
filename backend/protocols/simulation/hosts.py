"""Hosts simulated in this process: one thread each, reached by messages only.

For the operator of a simulation, not for the Guest: it starts, stops and (for uploads that bring Host columns) feeds the Hosts.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

from backend.protocols.host import HostParty
from backend.protocols.transport.network import Network

_log = logging.getLogger("glassleaf")


class SimulatedHosts:
    """Threads that serve Hosts on a network."""

    def __init__(self, network: Network, hosts: Iterable[HostParty]) -> None:
        self._network = network
        self.hosts = {h.name: h for h in hosts}
        self._threads: dict[str, threading.Thread] = {}
        for host in self.hosts.values():
            network.open(host.name)
            thread = threading.Thread(target=self._serve, args=(host,), name=f"host-{host.name}", daemon=True)
            self._threads[host.name] = thread
            thread.start()

    def _serve(self, host: HostParty) -> None:
        """Serve until stopped. Whatever ends the thread, the Host is down from then on, and who waits for it is told."""
        try:
            host.serve(self._network.end(host.name))
        except BaseException as error:  # its text may hold data, its type not
            _log.error("%s stopped: an internal error (%s)", host.name, type(error).__name__)
        finally:
            self._network.close(host.name)

    def stop(self, host: str | None = None) -> None:
        """Stop one Host, or all."""
        for name in [host] if host else list(self.hosts):
            self._network.close(name)
            self._threads[name].join(timeout=10)
