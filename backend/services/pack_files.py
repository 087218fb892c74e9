"""One party's rows about a model as a signed and sealed file, and back once it is this party's. Knows no table of any party."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pydantic import BaseModel, ConfigDict, ValidationError

from backend.crypto.signing import SigningKey, is_signed
from backend.errors import ParameterError, SecurityError
from backend.store.key_backup import PASSPHRASE_MIN
from backend.store.key_file import kept_key
from backend.store.model_pack import MAX_BYTES, SECRET_KEY, Label, Passphrase, read_pack, seal_pack
from backend.store.model_rows import Rows

__all__ = [
    "MAX_BYTES",
    "PASSPHRASE_MIN",
    "HomeKeys",
    "Label",
    "Passphrase",
    "home_keys",
    "packed",
    "read_pack",
    "unpacked",
]
KIND = "model pack"  # of what is signed


@dataclass(frozen=True)
class HomeKeys:
    """Public keys of a party's home, in hexadecimal.

    Attributes
    ----------
    sealing : str
        What a pack for this home is sealed with.
    signing : str
        What this home's packs are signed with.
    """

    sealing: str
    signing: str


class _Body(BaseModel):
    """The sealed part; `signature` is over label and content."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: str
    signature: str


class _Content(BaseModel):
    """One party's data about a model; `records` names the version of its records."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    records: str
    rows: dict[str, list[dict[str, Any]]]


def home_key(folder: Path) -> X25519PrivateKey:
    """Return the key that packs for a party's home are sealed for, made at the first use and stored in its folder of keys."""
    numbers, _ = kept_key(
        folder / SECRET_KEY, lambda: {"secret": X25519PrivateKey.generate().private_bytes_raw().hex()}
    )
    try:
        return X25519PrivateKey.from_private_bytes(bytes.fromhex(numbers["secret"]))
    except (KeyError, ValueError):
        raise SecurityError("stored_key_damaged", file=str(folder / SECRET_KEY)) from None


def home_keys(folder: Path, signing: SigningKey) -> HomeKeys:
    """Return the public keys of a party's home."""
    return HomeKeys(home_key(folder).public_key().public_bytes_raw().hex(), signing.public)


def packed(label: Label, records: str, rows: Rows, signing: SigningKey, key: Passphrase | str) -> bytes:
    """Return a signed and sealed pack of a party's rows."""
    content = _Content(records=records, rows=rows).model_dump_json()
    body = _Body(content=content, signature=signing.sign(KIND, *_statement(label, content)))
    return seal_pack(label, body.model_dump_json().encode(), key)


def unpacked(
    file: bytes,
    expected: Label,
    folder: Path,
    passphrase: Passphrase | None,
    sender: str,
    records: Callable[[], str],
) -> tuple[Label, Rows]:
    """Return label and rows of a pack, once it is of this party, version and records, and signed by a home that is trusted.

    Parameters
    ----------
    expected : Label
        The label that the pack must have, but for the model; its sender is this home.
    folder : Path
        Of the party's keys.
    sender : str
        Public signing key of the home that packed; empty = with a passphrase any, else this home's own.
    records : callable
        Version of the party's records here.

    Raises
    ------
    ParameterError
        If it is no pack, of another version, or sealed otherwise.
    SecurityError
        If it is another party's, was changed, is not signed as it should be, or goes with other records.
    """
    if len(file) > MAX_BYTES:
        raise ParameterError("pack_too_large", most=MAX_BYTES)
    pack = read_pack(file)
    label = pack.label
    # 1. whose it is, from the first line
    if (label.role, label.federation, label.party) != (expected.role, expected.federation, expected.party):
        pack_owner = f"{label.party} ({label.role}) in {label.federation}"
        expected_owner = f"{expected.party} ({expected.role}) in {expected.federation}"
        raise SecurityError("pack_of_other_party", found=pack_owner, expected=expected_owner)
    if label.version != expected.version:
        raise ParameterError("pack_of_other_version", found=label.version, expected=expected.version)
    # 2. open it
    key: Passphrase | X25519PrivateKey
    if pack.receiver:
        key = home_key(folder)
        public_key = key.public_key().public_bytes_raw().hex()
        if public_key != pack.receiver:
            raise SecurityError("pack_for_other_home", found=pack.receiver, expected=public_key)
        trusted = sender or expected.sender
    else:
        if passphrase is None:
            raise ParameterError("pack_needs_passphrase")
        key = passphrase
        trusted = sender or label.sender  # who knows the passphrase may pack
    try:
        body = _Body.model_validate_json(pack.open(key))
    except ValidationError:
        raise SecurityError("pack_not_opened") from None
    # 3. check the signer: anybody who knows a home's public key can seal for it
    if label.sender != trusted:
        raise SecurityError("pack_of_other_sender", found=label.sender, expected=trusted)
    if not is_signed(label.sender, body.signature, KIND, *_statement(label, body.content)):
        raise SecurityError("pack_not_signed")
    try:
        content = _Content.model_validate_json(body.content)
    except ValidationError:
        raise SecurityError("pack_not_opened") from None
    # 4. the same records
    here = records()
    if content.records != here:
        raise SecurityError("pack_of_other_records", found=content.records[:16], expected=here[:16])
    return label, content.rows


def _statement(label: Label, content: str) -> tuple[str, str]:
    return label.model_dump_json(), sha256(content.encode()).hexdigest()
