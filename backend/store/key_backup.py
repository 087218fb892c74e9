"""A party's keys in one file under a passphrase: scrypt (RFC 7914) makes the file's key, AES-256-GCM encrypts. Knows no key's meaning."""

from __future__ import annotations

import json
import secrets
import unicodedata

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from pydantic import TypeAdapter, ValidationError

from backend.errors import ParameterError, SecurityError

FORMAT = "glassleaf keys 1"
# 128 MiB and some 0.4 s a guess; OWASP's cheat sheet on storing passwords
N = 1 << 17
R = 8
P = 1
SALT = 16  # bytes, RFC 7914 §2
NONCE = 12  # bytes, NIST SP 800-38D §5.2.1.1
PASSPHRASE_MIN = 12  # characters
MAX_BYTES = 1 << 28  # of a backup file: some sixty keys of RLWE's largest ring, 4 MB each as text
_ENVELOPE = TypeAdapter(dict[str, str])


def seal(body: bytes, passphrase: str, about: str) -> bytes:
    """Encrypt; `about` is said in the file in the clear and cannot be changed.

    Raises
    ------
    ParameterError
        The passphrase is shorter than :data:`PASSPHRASE_MIN` characters, or the file would be longer than :data:`MAX_BYTES`, so that
        :func:`unseal` would refuse it.
    """
    if len(passphrase) < PASSPHRASE_MIN:
        raise ParameterError("passphrase_too_short", found=len(passphrase), least=PASSPHRASE_MIN)
    salt = secrets.token_bytes(SALT)
    nonce = secrets.token_bytes(NONCE)
    blob = AESGCM(file_key(passphrase, salt)).encrypt(nonce, body, _bound(about))
    parts = {"salt": salt.hex(), "nonce": nonce.hex(), "body": blob.hex()}
    file = json.dumps({"format": FORMAT, "about": about, **parts}).encode()
    if len(file) > MAX_BYTES:
        raise ParameterError("keys_exceed_backup", found=len(file), most=MAX_BYTES)
    return file


def unseal(file: bytes, passphrase: str) -> tuple[str, bytes]:
    """Return what the file says it is about, and the body.

    Raises
    ------
    ParameterError
        It is no backup of keys, or was cut.
    SecurityError
        The passphrase is another one, or the file was changed.
    """
    try:
        parts = _ENVELOPE.validate_json(file if len(file) <= MAX_BYTES else b"")
        salt, nonce, blob = (bytes.fromhex(parts[name]) for name in ("salt", "nonce", "body"))
        is_complete = parts["format"] == FORMAT and len(salt) == SALT and len(nonce) == NONCE
        about = parts["about"]
    except (ValidationError, ValueError, KeyError):
        is_complete = False
    if not is_complete:
        raise ParameterError("not_a_key_backup", expected=FORMAT)
    try:
        return about, AESGCM(file_key(passphrase, salt)).decrypt(nonce, blob, _bound(about))
    except InvalidTag:
        raise SecurityError("wrong_passphrase") from None


def file_key(passphrase: str, salt: bytes) -> bytes:
    """Return the key of a file, 32 bytes, by scrypt."""
    text = unicodedata.normalize("NFKC", passphrase)  # the same letters from every keyboard
    return Scrypt(salt, 32, N, R, P).derive(text.encode(errors="surrogatepass"))


def _bound(about: str) -> bytes:
    return json.dumps([FORMAT, about]).encode()
