"""The Guest's keys from a shell: `keys list`, `backup`, `restore`, `rotate`.

A passphrase is typed in or read from a file; an argument would stand in the list of processes.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import AsJson, check_out, open_glassleaf, print_result, read_passphrase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backend.services.keys import Key

Federation = Annotated[str, typer.Argument(help="A federation's name.")]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        help="File that holds the passphrase as its first line, readable by you alone (default: it is asked for)."
    ),
]
app = typer.Typer(
    add_completion=False,
    name="keys",
    no_args_is_help=True,
    help="The Guest's keys: list, backup, restore, rotate. No number of a key is ever shown.",
)


@app.command("list")
def list_keys(federation: Federation, as_json: AsJson = False) -> None:
    """List every key: kind, size, when it was made, fingerprint."""
    with open_glassleaf() as glassleaf:
        keys = glassleaf.keys.all(glassleaf.federations.get(federation).name)
    _print(keys, "No key yet; the first scoring or training makes one.", as_json)


@app.command()
def backup(
    federation: Federation,
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
    federation: Federation,
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
    federation: Federation,
    file: Annotated[str, typer.Option("--key", help="One key, by its file (default: every key of a cipher).")] = "",
    now: Annotated[bool, typer.Option("--now", help="Also while a scoring is under way: its scores are lost.")] = False,
    as_json: AsJson = False,
) -> None:
    """Retire keys: the next scoring makes new ones, and an auditor's sample can still be opened under the old."""
    with open_glassleaf() as glassleaf:
        keys = glassleaf.keys.rotate(glassleaf.federations.get(federation).name, file, now=now)
    _print(keys, "", as_json)


def _print(keys: Sequence[Key], nothing: str, as_json: bool) -> None:
    lines = [
        f"{key.kind:9} {key.bits:>5}  {key.made}  {key.fingerprint}  {key.file}{' (retired)' if key.retired else ''}"
        for key in keys
    ]
    print_result([asdict(key) for key in keys], "\n".join(lines) or nothing, as_json)
