"""Until when the certificate of each peer is valid that it showed last, kept beside this party's keys.

TLS refuses an expired certificate before the listening side learns whose it is. What the peer showed before says it.
"""

from __future__ import annotations

import logging
from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from backend.ops.atomic_file import write_whole

_log = logging.getLogger("glassleaf")
FILE = "peers.json"
_Ends: TypeAdapter[dict[str, AwareDatetime]] = TypeAdapter(dict[str, AwareDatetime])


class ShownLeaves:
    """SPIFFE id → end of the certificate that this peer showed last, UTC.

    Parameters
    ----------
    keys : Path
        Folder of this party's keys. One process has the links of a party, so one writes.
    """

    def __init__(self, keys: Path) -> None:
        self._file = keys / FILE
        self._ends = self._read()

    def end(self, spiffe: str) -> datetime | None:
        """Return when the certificate ends that a peer showed last; None if it has shown none."""
        return self._ends.get(spiffe)

    def note(self, spiffe: str, end: datetime) -> None:
        """Keep the end of the certificate that a peer shows now."""
        if self._ends.get(spiffe) == end:
            return
        self._ends = {**self._ends, spiffe: end}
        try:
            write_whole(self._file, _Ends.dump_json(self._ends))
        except OSError as error:  # only the next process misses it
            _log.warning("Until when a certificate is valid was not kept: %s", error.strerror)

    def _read(self) -> dict[str, datetime]:
        try:
            return _Ends.validate_json(self._file.read_bytes())
        except (OSError, ValidationError):  # it says what is shown to people, and is written again at the next link
            return {}
