"""The federations of a home: added, split from one table, fetched, listed, and their parties' pools warmed up."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from backend.crypto.paillier.keys import KEY_BITS
from backend.data.dates import ORDERS
from backend.data.federation import FILE_NAME, PLACES, PRODUCTS, Federation, load_federation
from backend.data.overview import ColumnReading, Overview, overview
from backend.data.split import LEFT_OUT, TO_FILL_IN, Division, split_table
from backend.data.table_file import Reading
from backend.errors import Cancelled, FederationError
from backend.jobs import Job, work
from backend.results import DEMO

if TYPE_CHECKING:
    from backend.protocols.guest_runtime import PoolLevel
    from backend.protocols.transport.wire import LinkState
    from backend.services.workspace import Workspace

__all__ = [
    "LEFT_OUT",
    "ORDERS",
    "PLACES",
    "PRODUCTS",
    "TO_FILL_IN",
    "ColumnReading",
    "Division",
    "Federations",
    "Overview",
    "Reading",
]
# share of the work that fetching is, where it comes first, and after which the rest is a check
FETCHED = 0.5
SPLIT = 0.9
FOLDER = "federations"  # of the home: those that were made in a browser


@contextmanager
def _whole(out: Path) -> Iterator[None]:
    """Where the work is stopped within, a folder that was not there before is gone again."""
    existed = out.exists()
    try:
        yield
    except Cancelled:
        if not existed:
            shutil.rmtree(out, ignore_errors=True)
        raise


class Federations:
    """Federations by name."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def all(self) -> list[Federation]:
        """Return every remembered federation that can be used, the demo first; see :meth:`broken` for the others."""
        return sorted(self._workspace.federations(), key=lambda f: (f.name != DEMO, f.name))

    def broken(self) -> dict[str, FederationError]:
        """Return the federations whose file or store is there but cannot be used: name → its folder, and why it cannot.

        Its models are not listed; everything else goes on without it.
        """
        return self._workspace.broken()

    def others_than(self, demo: str = DEMO) -> tuple[str, ...]:
        """Return the names of a home's federations if it does not have the `demo`, which then stays out of it; else nothing."""
        return self._workspace.others_than(demo)

    def get(self, name: str) -> Federation:
        """One federation; raises FederationError if the name is unknown."""
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

    def init(self, table: Path, division: Division, out: Path, name: str = "") -> Federation:
        """Split one table (problems call it `name`) into a federation's files in `out` and remember it; errors as of `split_table`."""
        return self.init_with_account(table, division, out, name)[0]

    def init_with_account(
        self, table: Path, division: Division, out: Path, name: str = ""
    ) -> tuple[Federation, Overview]:
        """See :meth:`init`; also return how the table was read."""
        with _whole(out):
            with work.part(0.0, SPLIT):
                planned = split_table(
                    table, division, out, lambda federation: self._workspace.check_name(federation, out), name
                )
            return self.add(out), overview(planned.federation, planned.text, planned.ids, planned.notes)

    def add_files(self, files: Mapping[str, bytes]) -> Federation:
        """Check a federation file and the parties' tables, handed in by their names, and keep them in the home, whole or not at all.

        Raises
        ------
        FederationError
            The files are no usable federation, or another one has its name.
        """
        home = self._workspace.home / FOLDER
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = Path(tempfile.mkdtemp(prefix=".new.", dir=home))
        try:
            for name, data in files.items():
                (draft / Path(name).name).write_bytes(data)
            out = home / load_federation(draft).name
            self._workspace.check_name(out.name, out)
            if out.exists():
                raise FederationError("federation_exists", federation=out.name)
            with _whole(out):
                draft.rename(out)
                return self.add(out)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def fetch_credit_card(self, out: Path, at: Callable[[str], None] = lambda stage: None) -> Federation:
        """Fetch the credit-card data from OpenML, split it in `out` and remember the federation; `at` is called with each stage."""
        from backend.data.credit_card import FEDERATION, fetch_credit_card, split_credit_card  # noqa: PLC0415 (as above)

        self._workspace.check_name(FEDERATION, out)
        with _whole(out):
            out.mkdir(parents=True, exist_ok=True)
            at("fetch")
            with work.part(0.0, FETCHED):
                table = fetch_credit_card(out / "credit_card.csv")
            at("split")
            with work.part(FETCHED, SPLIT):
                split_credit_card(table, out)
            return self.add(out)

    def start_credit_card(self) -> Job[Federation]:
        """See :meth:`fetch_credit_card`; into the home and in the background."""
        out = self._workspace.home / FOLDER / "credit_card"
        return Job[Federation](lambda job: self.fetch_credit_card(out, job.at), 0, size="fetched").start()

    def start_files(self, files: Mapping[str, bytes]) -> Job[Federation]:
        """See :meth:`add_files`; in the background."""

        def add(job: Job[Federation]) -> Federation:
            job.at("check")
            return self.add_files(files)

        return Job[Federation](add, 0, size="files").start()

    def warm_up(self, federation: str, bits: int = KEY_BITS) -> None:
        """Make the Guest's key and start all pools in the background; a second call does nothing."""
        self._workspace.warm_up(federation, bits)

    def links(self, federation: str) -> dict[str, LinkState]:
        """Return each Host's link; empty if Hosts are simulated. Raises PartyUnreachable if there are no links to be had."""
        return self._workspace.runtime(federation).links()

    def pools(self, federation: str) -> tuple[PoolLevel, ...]:
        """Fill level of every party's pool of obfuscators."""
        return self._workspace.runtime(federation).pools()
