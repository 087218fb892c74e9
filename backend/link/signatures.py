"""The signatures of an agreement as a process has them: those of its file, and those that peers bring when they greet.

So a Host that has signed carries nothing back: its signature comes to the Guest over the link, and from there to the other Hosts.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from backend.errors import FederationError, SecurityError
from backend.link.agreement import Agreement, Signature, add_signatures, load_agreement, signer_of

_log = logging.getLogger("glassleaf")
SIGNED = "signed "  # and a signature: header and signature in base64url, with a point between them


class Signatures:
    """The signatures of one agreement that hold.

    Parameters
    ----------
    path : Path
        agreement.toml, which gets the signatures that peers bring.
    """

    def __init__(self, path: Path, agreement: Agreement) -> None:
        self._path = path
        self._agreement = agreement
        self._known: dict[str, Signature] = {}  # by party
        self._lock = threading.Lock()
        self._learn(agreement.signatures)

    @property
    def missing(self) -> tuple[str, ...]:
        """Parties whose signature is not here."""
        return tuple(party.name for party in self._agreement.parties if party.name not in self._known)

    def check(self) -> None:
        """Raise SecurityError if a party has not signed yet."""
        if missing := self.missing:
            raise SecurityError("agreement_not_signed", parties=missing)

    def packed(self) -> tuple[str, ...]:
        """Return the signatures as texts of a greeting."""
        return tuple(f"{SIGNED}{signature.protected}.{signature.signature}" for signature in self._known.values())

    def take(self, texts: Iterable[str]) -> None:
        """Take the valid ones of a peer's signatures, and read the file again."""
        if not self.missing:
            return
        signatures = []
        for text in texts:
            signature = _unpacked(text)
            if signature is not None:
                signatures.append(signature)
        with self._lock:
            if self._learn(signatures):
                self._write()
            if self.missing:
                with suppress(FederationError):  # it is being written
                    self._learn(load_agreement(self._path).signatures)

    def _learn(self, signatures: Iterable[Signature]) -> bool:
        """Add valid signatures, and return whether one of them is new."""
        by_signer = dict(self._known)
        for signature in signatures:
            signer = signer_of(self._agreement, signature)
            if signer:
                by_signer.setdefault(signer, signature)
        is_more = len(by_signer) > len(self._known)
        self._known = by_signer  # replaced in one step, since greetings read it at the same time
        return is_more

    def _write(self) -> None:
        try:
            add_signatures(self._path, self._agreement, list(self._known.values()))
        except (OSError, FederationError, SecurityError) as error:  # this process has them all the same
            _log.warning("Signatures were not written to the agreement: %s", error)


def _unpacked(text: str) -> Signature | None:
    if not text.startswith(SIGNED):
        return None
    protected, _, signature = text.removeprefix(SIGNED).partition(".")
    try:
        return Signature(protected=protected, signature=signature)
    except ValidationError:
        return None
