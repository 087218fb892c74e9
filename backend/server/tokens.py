"""Bearer tokens of callers (RFC 6750) with the models that each reaches. Only their SHA-256 is stored.

A token is 256 random bits, so its plain hash does not reveal it; a password would need a slow one.
"""

from __future__ import annotations

import hmac
import secrets
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from backend.errors import ParameterError, SecurityError
from backend.ops.atomic_file import held_alone, write_whole

TOKENS_FILE = "tokens.json"
PREFIX = "gl_"  # so that scanners of repositories recognise one that leaked
NAME_MAX = 60


@dataclass(frozen=True)
class Token:
    """One program that may ask.

    Attributes
    ----------
    digest : str
        SHA-256 of the token, in hexadecimal.
    models : tuple of str
        Ids that it may ask; empty = all.
    """

    name: str
    digest: str
    models: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Token({self.name!r})"

    def reaches(self, model_id: str) -> bool:
        """Return whether it may ask this model."""
        return not self.models or model_id in self.models


_STORED = TypeAdapter(tuple[Token, ...])


class Tokens:
    """The tokens of one home."""

    def __init__(self, home: Path) -> None:
        self._file = home / "server" / TOKENS_FILE
        self._read: tuple[tuple[int, int], tuple[Token, ...]] = (0, 0), ()

    def all(self) -> tuple[Token, ...]:
        """Return every token; read again when the file has changed.

        Raises
        ------
        SecurityError
            The file is damaged: no caller is let in.
        """
        try:
            about = self._file.stat()
            stamp = about.st_mtime_ns, about.st_size
            if self._read[0] != stamp:
                self._read = stamp, _STORED.validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return ()
        except (OSError, ValidationError) as error:
            raise SecurityError("tokens_damaged", file=str(self._file)) from error
        return self._read[1]

    def add(self, name: str, models: tuple[str, ...] = ()) -> str:
        """Make a token; it is shown this once."""
        if not 1 <= len(name) <= NAME_MAX or not name.isprintable():
            raise ParameterError("token_name_length", limit=NAME_MAX)
        token = PREFIX + secrets.token_urlsafe(32)
        with self._changing():
            if any(existing.name == name for existing in self.all()):
                raise ParameterError("token_exists", name=name)
            self._write((*self.all(), Token(name, _digest(token), models)))
        return token

    def revoke(self, name: str) -> None:
        """Delete a token; the next request that bears it is refused."""
        with self._changing():
            remaining = tuple(existing for existing in self.all() if existing.name != name)
            if len(remaining) == len(self.all()):
                raise ParameterError("unknown_token", name=name)
            self._write(remaining)

    def find(self, token: str) -> Token | None:
        """Return the token, if it is one; compared with each in constant time."""
        digest = _digest(token)
        match = None
        for candidate in self.all():
            if hmac.compare_digest(candidate.digest, digest):
                match = candidate
        return match

    def _changing(self) -> AbstractContextManager[None]:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return held_alone(self._file.with_name(f"{TOKENS_FILE}.lock"))

    def _write(self, tokens: tuple[Token, ...]) -> None:
        write_whole(self._file, _STORED.dump_json(tokens))


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
