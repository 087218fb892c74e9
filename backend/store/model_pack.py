"""One party's half of a model in one file, sealed: under a passphrase (scrypt, AES-256-GCM), or for a home's key (HPKE, RFC 9180).

The first line says in the clear whose half it is and how it is sealed; it is bound to the rest, so neither can be exchanged. Knows no
table and no meaning of a row.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from backend.errors import ParameterError, SecurityError
from backend.store.key_backup import NONCE, PASSPHRASE_MIN, SALT, file_key

FORMAT = "glassleaf model 1"
SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
MAX_BYTES = 1 << 28  # of a pack: a model with the parts of four million records and all that was measured
MAX_LABEL = 1 << 12  # bytes of the first line
SECRET_KEY = "sealing.key"  # noqa: S105 - the name of a file
_HEX_32 = r"^[0-9a-f]{64}$"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Label(_Part):
    """The part of a pack in plain text.

    Attributes
    ----------
    version : str
        Of the Glassleaf that packed.
    sender : str
        Public signing key of the home that packed, in hexadecimal.
    """

    format: Literal["glassleaf model 1"] = "glassleaf model 1"
    version: str = Field(max_length=40)
    role: Literal["guest", "host"]
    federation: str = Field(max_length=200)
    party: str = Field(max_length=200)
    model: str = Field(max_length=40)
    sender: str = Field(pattern=_HEX_32)


class _Lock(_Part):
    """How a pack is sealed: `receiver` is a home's public key; else `salt` and `nonce` go with a passphrase."""

    receiver: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    salt: str = ""
    nonce: str = ""


class _First(_Part):
    label: Label
    lock: _Lock


@dataclass(frozen=True)
class Passphrase:
    """Seals and opens with a text that both homes know."""

    text: str


@dataclass(frozen=True)
class SealedPack:
    """A pack as it was read, not opened yet.

    Attributes
    ----------
    receiver : str
        Public key of the home that it is sealed for, in hexadecimal; empty = it is under a passphrase.
    """

    label: Label
    receiver: str
    _lock: _Lock
    _bound: bytes
    _body: bytes

    def open(self, key: Passphrase | X25519PrivateKey) -> bytes:
        """Return the body.

        Raises
        ------
        SecurityError
            If it does not open: the key is another one, or a byte was changed.
        """
        try:
            if isinstance(key, Passphrase):
                cipher = AESGCM(file_key(key.text, bytes.fromhex(self._lock.salt)))
                return cipher.decrypt(bytes.fromhex(self._lock.nonce), self._body, self._bound)
            return SUITE.decrypt(self._body, key, self._bound)
        except (InvalidTag, ValueError):
            raise SecurityError("pack_not_opened") from None


def seal_pack(label: Label, body: bytes, key: Passphrase | str) -> bytes:
    """Return a pack.

    Parameters
    ----------
    key : Passphrase or str
        Or the public key of the home that is to open it, in hexadecimal.

    Raises
    ------
    ParameterError
        If the passphrase is too short, or the key is no public key.
    """
    if isinstance(key, Passphrase):
        if len(key.text) < PASSPHRASE_MIN:
            raise ParameterError("passphrase_too_short", found=len(key.text), least=PASSPHRASE_MIN)
        salt = secrets.token_bytes(SALT)
        nonce = secrets.token_bytes(NONCE)
        bound = _first_line(label, _Lock(salt=salt.hex(), nonce=nonce.hex()))
        return bound + AESGCM(file_key(key.text, salt)).encrypt(nonce, body, bound)
    try:
        public = X25519PublicKey.from_public_bytes(bytes.fromhex(key))
    except ValueError:
        raise ParameterError("not_a_home_key", found=key[:80]) from None
    bound = _first_line(label, _Lock(receiver=key.lower()))
    return bound + SUITE.encrypt(body, public, bound)


def read_pack(file: bytes) -> SealedPack:
    """Return a pack as it is read from a file, sealed.

    Raises
    ------
    ParameterError
        If it is no pack, or was cut.
    """
    line, newline, body = file.partition(b"\n")
    try:
        first = _First.model_validate_json(line if newline and len(line) <= MAX_LABEL else b"")
        bytes.fromhex(first.lock.salt + first.lock.nonce)
    except (ValidationError, ValueError):
        raise ParameterError("not_a_model_pack", expected=FORMAT) from None
    return SealedPack(first.label, first.lock.receiver, first.lock, line + newline, body)


def _first_line(label: Label, lock: _Lock) -> bytes:
    return json.dumps({"label": label.model_dump(), "lock": lock.model_dump()}).encode() + b"\n"
