"""Hosts simulated in this process: one thread each, reached by messages only.

For the operator of a simulation, not for the Guest: it starts, stops and (for uploads that bring Host columns) feeds the Hosts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from backend.data.table import PartyTable
from backend.protocols.host import HostParty
from backend.protocols.transport.channel import Network
from backend.store.request_log import RequestLog
from backend.trees.ensemble import HostModel


class SimulatedHosts:
    """Threads that serve Hosts on a network."""

    def __init__(self, network: Network, hosts: Iterable[HostParty]) -> None:
        self._network = network
        self._hosts = {h.name: h for h in hosts}
        self._threads: dict[str, threading.Thread] = {}
        for host in self._hosts.values():
            network.open(host.name)
            thread = threading.Thread(target=host.serve, args=(network,), name=f"host-{host.name}", daemon=True)
            self._threads[host.name] = thread
            thread.start()

    def play(self, host: str, conversation: str, guest: str, table: PartyTable) -> None:
        """Let the user play `host` in one conversation."""
        self._hosts[host].play(conversation, guest, table)

    def leave_uncounted(self, conversation: str, hosts: Iterable[str]) -> None:
        """Let these Hosts answer one conversation outside their budgets and without dither."""
        for host in hosts:
            self._hosts[host].leave_uncounted(conversation)

    def keep(self, partial_model: HostModel, model_id: str) -> str:
        """Give a Host its partial model of a model that was not trained here; returns its hash."""
        return self._hosts[partial_model.host].keep(partial_model, model_id)

    def logged(self, host: str) -> tuple[RequestLog | None, Callable[[str], str]]:
        """What `host` hands an auditor: its sample of requests, and model → the reported hash of the Guest's partial model."""
        party = self._hosts[host]
        return party.requests, party.registered

    def pool_levels(self) -> dict[str, tuple[int, int]]:
        """Host → obfuscators ready, wanted."""
        return {name: host.pool_levels() for name, host in self._hosts.items()}

    def stop(self, host: str | None = None) -> None:
        """Stop one Host, or all."""
        for name in [host] if host else list(self._hosts):
            self._network.close(name)
            self._threads[name].join(timeout=10)
