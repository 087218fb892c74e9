"""`backup` and `restore`: the whole home in one file, and back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import AsJson, PassphraseFile, check_out, open_glassleaf, print_result, read_passphrase, say
from backend.i18n import counted

if TYPE_CHECKING:
    from backend.store.home_backup import Contents

app = typer.Typer(add_completion=False)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="File to write; it may not be there yet.")],
    with_keys: Annotated[
        bool, typer.Option("--with-keys", help="Also the keys, encrypted under a passphrase (scrypt, AES-256-GCM).")
    ] = False,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the whole home into one file, also while it is in use; without its keys, unless they are asked for."""
    check_out(file)
    if with_keys:
        passphrase = read_passphrase(passphrase_file, new=True)
    else:
        passphrase = None
    with open_glassleaf() as glassleaf:
        outside = glassleaf.operation.outside()
        contents = glassleaf.operation.backup(file, passphrase)
        is_logged = glassleaf.operation.is_writable()
    if not is_logged:
        say("The home cannot be written, so the backup has no entry in its log.")
    for name, folder in outside:
        say(f"Not in the backup: the files of {name} lie in {folder}. Keep a copy of them, too.")
    if contents.keys_left:
        say(
            f"Not in the backup: {counted(contents.keys_left, 'keys')} (--with-keys). "
            "Without them Hosts refuse what is signed after a restore."
        )
    _print(contents, f"{file}: ", as_json)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="What `backup` wrote.")],
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Bring a home back into an empty GLASSLEAF_HOME: all of it or, if anything does not fit its hash, nothing."""
    from backend.services.operation import is_sealed
    from backend.services.operation import restore as bring_back

    if is_sealed(file):
        passphrase = read_passphrase(passphrase_file, new=False)
    else:
        passphrase = None
    with open_glassleaf() as glassleaf:
        contents = bring_back(file, glassleaf.home, passphrase)
        glassleaf.operation.note_restored(contents)
        _print(contents, f"{glassleaf.home}: ", as_json)


def _print(contents: Contents, what: str, as_json: bool) -> None:
    print_result(
        asdict(contents),
        f"{what}{contents.files} files, {counted(contents.keys, 'keys')}; manifest {contents.sha256}",
        as_json,
    )
