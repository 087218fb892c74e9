"""The federations of a home: added, split from one table, fetched, listed, and their parties' pools warmed up."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from backend.crypto.paillier.keys import KEY_BITS
from backend.data.federation import FILE_NAME, Federation
from backend.data.overview import ColumnReading, Overview, overview
from backend.data.split import TO_FILL_IN, Division, split_table
from backend.results import DEMO

if TYPE_CHECKING:
    from backend.protocols.simulation.simulator import PoolLevel
    from backend.services.workspace import Workspace

__all__ = ["TO_FILL_IN", "ColumnReading", "Division", "Federations", "Overview"]


class Federations:
    """Federations by name."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def all(self) -> list[Federation]:
        """Every remembered federation that can be used, the demo first; see :meth:`broken` for the others."""
        return sorted(self._workspace.federations(), key=lambda f: (f.name != DEMO, f.name))

    def broken(self) -> dict[str, str]:
        """Name of a federation whose file or store is there but cannot be used → where it lies, and why it cannot.

        Its models are not listed; everything else goes on without it.
        """
        return self._workspace.broken()

    def get(self, name: str) -> Federation:
        """One federation; raises FederationError where the name is unknown."""
        return self._workspace.federation(name)

    def sha256(self, name: str) -> str:
        """SHA-256 of a federation's file, hexadecimal."""
        return sha256((self.get(name).folder / FILE_NAME).read_bytes()).hexdigest()

    def add(self, path: Path) -> Federation:
        """Check a federation file and remember it under its name.

        Raises
        ------
        FederationError
            The file or a table is not usable, or another federation has the name.
        """
        return self._workspace.add(path)

    def init(self, table: Path, division: Division, out: Path) -> Federation:
        """Split one table into a federation's files in `out` and remember it; see `split_table` for the errors."""
        split_table(table, division, out, lambda name: self._workspace.check_name(name, out))
        return self.add(out)

    def overview(self, name: str) -> Overview:
        """How a federation's tables were read, for whoever holds them all."""
        return overview(self.get(name))

    def fetch_credit_card(self, out: Path) -> Federation:
        """Fetch the credit-card data from OpenML, split it in `out` and remember the federation."""
        from backend.data.credit_card import NAME, fetch_credit_card, split_credit_card  # noqa: PLC0415 (as above)

        self._workspace.check_name(NAME, out)
        out.mkdir(parents=True, exist_ok=True)
        split_credit_card(fetch_credit_card(out / "credit_card.csv"), out)
        return self.add(out)

    def warm_up(self, federation: str, bits: int = KEY_BITS) -> None:
        """Make the Guest's key and start all pools in the background; a second call does nothing."""
        self._workspace.warm_up(federation, bits)

    def pools(self, federation: str) -> tuple[PoolLevel, ...]:
        """Fill level of every party's pool of obfuscators."""
        return self._workspace.runtime(federation).pools()
