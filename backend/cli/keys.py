"""A party's keys from a shell: the Guest's for scoring with `keys list`, `backup`, `restore`, `rotate`; for links `init`, `renew`, `show`.

A passphrase is typed in or read from a file; an argument would stand in the list of processes.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import (
    AsJson,
    FederationName,
    PassphraseFile,
    check_out,
    open_glassleaf,
    print_result,
    read_passphrase,
    save,
)
from backend.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backend.link.identity import PartyKeys
    from backend.services.keys import Key

KeysFolder = Annotated[Path, typer.Option("--keys", help="Folder of the party's keys.")]
RootFolder = Annotated[
    Path | None,
    typer.Option(help="Folder of the root's key, which may be offline (default: root in the folder of the keys)."),
]
app = typer.Typer(
    add_completion=False,
    name="keys",
    no_args_is_help=True,
    help="Keys; no secret is ever shown. The Guest's for scoring: list, backup, restore, rotate. For links: init, renew, show.",
)


@app.command("list")
def list_keys(federation: FederationName, as_json: AsJson = False) -> None:
    """List every key: kind, size, when it was made, fingerprint."""
    with open_glassleaf() as glassleaf:
        keys = glassleaf.keys.all(glassleaf.federations.get(federation).name)
    _print(keys, "No key yet; the first scoring or training makes one.", as_json)


@app.command()
def backup(
    federation: FederationName,
    out: Annotated[Path, typer.Option(help="File to write; it may not be there yet.")],
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Write every key into one file, encrypted under a passphrase (scrypt, AES-256-GCM)."""
    check_out(out)
    passphrase = read_passphrase(passphrase_file, new=True)
    with open_glassleaf() as glassleaf:
        keys = glassleaf.keys.backup(glassleaf.federations.get(federation).name, passphrase, out)
    _print(keys, "", as_json)


@app.command()
def restore(
    federation: FederationName,
    file: Annotated[Path, typer.Argument(help="What `keys backup` wrote.")],
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Bring back the keys that are not here; one that is here and another is never overwritten."""
    passphrase = read_passphrase(passphrase_file, new=False)
    with open_glassleaf() as glassleaf:
        keys = glassleaf.keys.restore(glassleaf.federations.get(federation).name, passphrase, file)
    _print(keys, "Every key of the backup is here already.", as_json)


@app.command()
def rotate(
    federation: FederationName,
    file: Annotated[str, typer.Option("--key", help="One key, by its file (default: every key of a cipher).")] = "",
    now: Annotated[
        bool, typer.Option("--now", help="Also while a scoring or a measurement is under way: it is lost.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Retire keys: the next scoring makes new ones, and an auditor's sample can still be opened under the old."""
    with open_glassleaf() as glassleaf:
        keys = glassleaf.keys.rotate(glassleaf.federations.get(federation).name, file, now=now)
    _print(keys, "", as_json)


@app.command()
def init(
    party: Annotated[str, typer.Option(help="The party's name in the agreement, e.g. shop.")],
    domain: Annotated[str, typer.Option(help="The company's domain, e.g. shop.example.")],
    role: Annotated[str, typer.Option(help="guest or host.")] = "host",
    title: Annotated[str, typer.Option(help="For people (default: the party's name).")] = "",
    folder: KeysFolder = Path("keys"),
    root: RootFolder = None,
    as_json: AsJson = False,
) -> None:
    """Make a party's own root, a leaf of 30 days for links, and keys to sign and to seal with."""
    from backend.link.identity import make_identity, party_toml

    if role not in ("guest", "host"):
        raise ParameterError("unknown_choice", option="--role", value=role, choices=("guest", "host"))
    identity = make_identity(folder, domain, "guest" if role == "guest" else "host", root)
    public = folder / f"{party}.party.toml"
    save(public, party_toml(identity, party, title or party).encode())
    where = (root or folder / "root") / "root.key.pem"
    text = f"Keep {where} offline: it is needed to renew, not to run.\n"
    if role == "host":
        text += f"`glassleaf host disclose` puts {public} into the one file that you hand out."
    else:
        text += f"Give {public} to `glassleaf agreement draft`."
    print_result(_public(identity), f"{_public_text(identity)}\n{text}", as_json)


@app.command("renew")
def renew_leaf(folder: KeysFolder = Path("keys"), root: RootFolder = None, as_json: AsJson = False) -> None:
    """Write a new leaf of 30 days; links that run take it up by themselves."""
    from backend.link.identity import renew

    identity = renew(folder, root)
    print_result(_public(identity), _public_text(identity), as_json)


@app.command()
def show(folder: KeysFolder = Path("keys"), as_json: AsJson = False) -> None:
    """Show a party's public keys, and how long its leaf is valid."""
    from backend.link.identity import load_identity

    identity = load_identity(folder)
    print_result(_public(identity), _public_text(identity), as_json)


def _public(identity: PartyKeys) -> dict[str, str]:
    from backend.link.identity import fingerprint, validity

    return {
        "spiffe": identity.spiffe,
        "root": fingerprint(identity.bundle),
        "signing": identity.signing.public,
        "sealing": identity.sealing_public,
        "leaf": validity(identity.expires, datetime.now(UTC)).sentence(),
    }


def _public_text(identity: PartyKeys) -> str:
    return "\n".join(f"{name:8} {value}" for name, value in _public(identity).items())


def _print(keys: Sequence[Key], nothing: str, as_json: bool) -> None:
    lines = []
    for key in keys:
        retired = " (retired)" if key.retired else ""
        lines.append(f"{key.kind:9} {key.bits:>5}  {key.made}  {key.fingerprint}  {key.file}{retired}")
    print_result([asdict(key) for key in keys], lines or nothing, as_json)
