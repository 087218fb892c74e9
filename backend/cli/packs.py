"""Common parts of `models` and `host models`: options and lines of a model that moves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import read_passphrase
from backend.errors import ParameterError
from backend.services.pack_files import MAX_BYTES, Passphrase, read_pack

if TYPE_CHECKING:
    from backend.services import Glassleaf
    from backend.services.pack_files import HomeKeys

PackOut = Annotated[Path, typer.Option("--out", help="File to write; it may not be there yet.")]
PackFile = Annotated[Path, typer.Argument(help="What `pack` wrote at the other home.")]
Receiver = Annotated[
    str, typer.Option("--to", help="Sealing key of the home that is to open it, as `address` prints it there.")
]
Sender = Annotated[
    str, typer.Option("--from", help="Signing key of the home that packed, if this home signs with another one.")
]


def known_federation(glassleaf: Glassleaf, text: str) -> str:
    """Return the name of a federation by its folder, file or name; one by its folder is remembered in this home."""
    place = Path(text)
    federations = glassleaf.federations
    if place.exists():
        return federations.add(place).name
    return federations.get(text).name


def pack_key(receiver: str, passphrase_file: Path | None) -> Passphrase | str:
    """Return what a pack is sealed with: the receiving home's key, or a passphrase; raises ParameterError if both are given."""
    if receiver and passphrase_file is not None:
        raise ParameterError("pack_key_or_passphrase")
    return receiver or Passphrase(read_passphrase(passphrase_file, new=True))


def read_pack_file(file: Path, passphrase_file: Path | None) -> tuple[bytes, Passphrase | None]:
    """Return a pack, and the passphrase if it is under one."""
    with file.open("rb") as opened:
        blob = opened.read(MAX_BYTES + 1)
    if read_pack(blob).receiver:
        return blob, None
    return blob, Passphrase(read_passphrase(passphrase_file, new=False))


def home_keys_text(keys: HomeKeys) -> list[str]:
    """Return a home's public keys, a line each."""
    return [f"sealing  {keys.sealing}", f"signing  {keys.signing}"]


def packed_text(out: Path, keys: HomeKeys) -> list[str]:
    """Return where a pack was written, and what the receiving home asks for."""
    return [f"Written to {out}.", f"Signed with {keys.signing} (`--from` at a home that signs with another key)."]
