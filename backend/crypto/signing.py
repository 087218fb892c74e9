"""Ed25519 signatures (RFC 8032) of a party over short statements; the secret half never shows.

A statement is a list of a kind and its fields, as JSON without spaces, ASCII only. The kind comes first, so that a signature under a
head of the audit log is none under a sign-off.
"""

from __future__ import annotations

import json
import re

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from backend.errors import ParameterError, SecurityError

_PUBLIC = re.compile(r"[0-9a-f]{64}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")


class SigningKey:
    """A party's secret signing key; its `repr` names the public half alone."""

    def __init__(self, secret: Ed25519PrivateKey) -> None:
        self._secret = secret
        self.public = secret.public_key().public_bytes_raw().hex()

    @classmethod
    def generate(cls) -> SigningKey:
        """A new key, from the operating system's randomness."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_numbers(cls, numbers: dict[str, str]) -> SigningKey:
        """A stored key; raises SecurityError if the halves do not belong together, or are no key."""
        try:
            key = cls(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(numbers["secret"])))
        except (KeyError, ValueError):
            key = None
        if key is None or key.public != numbers.get("public"):
            raise SecurityError("signing_key_damaged")
        return key

    def to_numbers(self) -> dict[str, str]:
        """Both halves, for the key file; secret."""
        return {"secret": self._secret.private_bytes_raw().hex(), "public": self.public}

    def __repr__(self) -> str:
        return f"SigningKey(public={self.public})"

    def sign(self, kind: str, *fields: str | int) -> str:
        """Signature of a statement: 128 hexadecimal digits."""
        return self._secret.sign(statement(kind, *fields)).hex()


def statement(kind: str, *fields: str | int) -> bytes:
    """What is signed."""
    return json.dumps([f"glassleaf {kind}", *fields], separators=(",", ":"), ensure_ascii=True).encode()


def is_signed(public: str, signature: str, kind: str, *fields: str | int) -> bool:
    """Whether `signature` was made over the statement with the secret half of `public`; both in hexadecimal."""
    if not _PUBLIC.fullmatch(public) or not _SIGNATURE.fullmatch(signature):
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), statement(kind, *fields))
    except (InvalidSignature, ValueError):
        return False
    return True


def public_pem(public: str) -> str:
    """A public key as PEM (RFC 8410)."""
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def read_public(text: str) -> str:
    """A public key in hexadecimal, from hexadecimal or PEM; raises ParameterError if it is neither."""
    text = text.strip()
    if _PUBLIC.fullmatch(text.lower()):
        return text.lower()
    try:
        key = load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ParameterError("unreadable_public_key")
    return key.public_bytes_raw().hex()
