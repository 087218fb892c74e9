"""One federation whose Hosts are simulated: all parties in this process, one thread or more a Host, each with a store of its own.

Set up by the operator of a simulation, who may look at and change what Hosts keep; a Guest reaches them by messages only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from backend.crypto.paillier.bin_products import BinProducts
from backend.crypto.paillier.keys import KEY_BITS_FLOOR
from backend.crypto.signing import SigningKey
from backend.crypto.workers import Workers, cores
from backend.data.federation import Federation
from backend.data.table import PartyTable, read_table, records_version
from backend.protocols.guest_runtime import GuestRuntime, HostsOperator, OnReceipts, PoolLevel
from backend.protocols.host import HostParty
from backend.protocols.host_half import HostHalf
from backend.protocols.scoring.dither import usual_dither
from backend.protocols.scoring.host import PersonAtHost
from backend.protocols.simulation.hosts import SimulatedHosts
from backend.protocols.terms.approvals import Approvals
from backend.protocols.terms.floors import Floors
from backend.protocols.terms.permit import Kinds
from backend.protocols.terms.prices import book_approved, usual_max_bits
from backend.protocols.transport.network import Network
from backend.store.accountant import Accountant, Limits, usual_limit
from backend.store.database import Database, party_database
from backend.store.journal import Journal
from backend.store.key_file import kept_key
from backend.store.party_store import PartyStore
from backend.store.receipts import Receipts
from backend.store.request_log import RequestLog
from backend.store.schema import LoggedRow
from backend.trees.ensemble import Registered

HOST_POOL = 2048  # obfuscators kept ready


class SimulatedFederation(HostsOperator):
    """The Hosts of a federation as threads, with what they keep.

    Parameters
    ----------
    home : Path
        The Hosts' stores lie below it, one folder each.
    key_floor : int
        Shortest key, bits.
    pools : bool
        Whether obfuscators are made in the background.
    workers : Workers, optional
        Who does each Host's long work; default one process a core of this machine.
    kinds : Kinds
        More kinds of message that each Host answers.
    """

    simulated = True

    def __init__(
        self,
        federation: Federation,
        home: Path,
        network: Network,
        key_floor: int,
        pools: bool,
        workers: Workers | None = None,
        kinds: Kinds = MappingProxyType({}),
    ) -> None:
        self._workers = workers
        self._kinds = kinds
        self.federation = federation
        self._home = home
        self._key_floor = key_floor
        self._pools = pools
        self._widths: dict[str, float] = {}
        self._databases: dict[str, Database] = {}
        self._accounts: dict[str, Accountant] = {}
        self.served = SimulatedHosts(network, [self.host(h.name) for h in federation.hosts])

    def host(self, name: str) -> HostParty:
        """One Host as the federation file describes it."""
        party = self.federation.party(name)
        synthetic = self.federation.synthetic
        home = self._home / name
        if party.budget is None:
            answers = usual_limit(synthetic)
        else:
            answers = party.budget
        records = read_table(self.federation, name)
        if party.max_bits is None:
            bits = usual_max_bits(len(party.features), len(records.ids))
        else:
            bits = party.max_bits
        limits = Limits(
            answers, party.budget_total, 0.0 if synthetic and not party.max_bits else bits, synthetic=synthetic
        )
        if party.dither is None:
            self._widths[name] = usual_dither(synthetic)
        else:
            self._widths[name] = party.dither
        database = party_database(home, self.federation.name, name)
        table = self.federation.folder / party.file
        key = _signing_key(home) if party.approval == "ask" else None
        self._databases[name] = database
        version = records_version(sha256(table.read_bytes()).hexdigest(), party.features)
        self._accounts[name] = Accountant(database, limits, version)
        return HostParty(
            name,
            records,
            party.features,
            PartyStore(database),
            simulated=True,
            key_floor=self._key_floor,
            pool=HOST_POOL if self._pools else 0,
            tables=home,
            products=BinProducts(self._workers or Workers(cores())),
            accountant=self._accounts[name],
            requests=RequestLog(database),
            dither=self._widths[name],
            measures=party.measures,
            approvals="none"
            if key is None
            else Approvals(name, database, key, charge=partial(book_approved, self._accounts[name])),
            signing=key,
            receipts=Receipts(database),
            floors=Floors(synthetic=synthetic),
            draining=(home / "draining").exists,
            kinds=self._kinds,
        )

    def dither(self, host: str) -> float:
        """Width of what it adds to scores."""
        return self._widths[host]

    def logged(self, host: str) -> tuple[RequestLog | None, Callable[[str], Registered]]:
        """Its sample of requests, and model → what the Guest has told of its partial model."""
        party = self.served.hosts[host]
        return party.requests, party.registered

    def half(self, host: str, rows: Sequence[LoggedRow]) -> HostHalf:
        """What it hands an auditor who recomputes scores."""
        return self.served.hosts[host].half(rows)

    def account(self, host: str) -> Accountant:
        """The account of its answers."""
        return self._accounts[host]

    def capacity(self, host: str, model_id: str) -> float:
        """What all answers about a model can tell about one record at most, bits."""
        return self.served.hosts[host].capacity(model_id)

    def structure(self, host: str, model_id: str) -> str:
        """Under which name its account has a model."""
        return self.served.hosts[host].structure(model_id)

    def decision(self, host: str, model_id: str, person: str) -> PersonAtHost:
        """What it holds about one person, and which entries it keeps."""
        return self.served.hosts[host].decision(model_id, person)

    def database(self, host: str) -> Database:
        """What it keeps."""
        return self._databases[host]

    def leave_uncounted(self, host: str, conversation: str) -> None:
        """Have one conversation take nothing off budgets."""
        self.served.hosts[host].leave_uncounted(conversation)

    def play(self, host: str, conversation: str, guest: str, table: PartyTable) -> None:
        """Put other records in the place of its own, in one conversation."""
        self.served.hosts[host].play(conversation, guest, table)

    def pool_levels(self) -> tuple[PoolLevel, ...]:
        """Of every Host."""
        return tuple(PoolLevel(name, *host.pool_level()) for name, host in self.served.hosts.items())

    def stop(self, host: str | None = None) -> None:
        """Take one Host down, or all."""
        self.served.stop(host)

    def close(self) -> None:
        """Stop the Hosts and close what they keep."""
        self.served.stop()
        for database in self._databases.values():
            database.close()


class FederationRuntime(GuestRuntime):
    """A Guest and its simulated Hosts, on one network; parameters as those of the two."""

    def __init__(
        self,
        federation: Federation,
        home: Path,
        *,
        key_floor: int = KEY_BITS_FLOOR,
        pools: bool = True,
        on_key: Callable[[str, int], None] = lambda cipher, bits: None,
        journal: Journal | None = None,
        on_approval: Callable[[dict[str, Any]], None] = lambda decided: None,
        on_receipts: OnReceipts | None = None,
        workers: Workers | None = None,
        kinds: Kinds = MappingProxyType({}),
    ) -> None:
        network = Network()
        hosts = SimulatedFederation(federation, home, network, key_floor, pools, workers, kinds)
        super().__init__(
            federation,
            home,
            network.end(federation.guest.name),
            hosts,
            key_floor=key_floor,
            pools=pools,
            on_key=on_key,
            journal=journal,
            on_approval=on_approval,
            on_receipts=on_receipts,
            workers=workers,
        )
        self._simulated = hosts.served


def _signing_key(folder: Path) -> SigningKey:
    """What a Host signs with: made at its first use, and kept in its folder."""
    return SigningKey.from_numbers(kept_key(folder / "signing.key", lambda: SigningKey.generate().to_numbers())[0])
