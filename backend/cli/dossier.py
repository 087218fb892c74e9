"""A Host's dossier of its columns from a shell: `template`, `sign` at the Host; `take`, `show` at the Guest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import AsJson, FederationName, open_glassleaf, print_result, save, text_of
from backend.i18n import counted

if TYPE_CHECKING:
    from backend.reports.schema import DossierSection

Host = Annotated[str, typer.Argument(help="Name of the Host.")]
app = typer.Typer(
    add_completion=False,
    name="dossier",
    no_args_is_help=True,
    help="What a Host documents and signs about its columns (docs/report.md).",
)


@app.command()
def template(
    federation: FederationName,
    host: Host,
    out: Annotated[Path | None, typer.Option(help="File to write.")] = None,
    language: Annotated[str, typer.Option(help="en or zh.")] = "en",
    as_json: AsJson = False,
) -> None:
    """At the Host: print the form, with what was signed last."""
    with open_glassleaf() as glassleaf:
        text = glassleaf.host_dossier(federation, host).template(language)
    if out is not None:
        save(out, text.encode())
    print_result({"form": text}, text if out is None else f"Written to {out}.", as_json)


@app.command()
def sign(
    federation: FederationName,
    host: Host,
    file: Annotated[Path, typer.Argument(help="The form that is filled in.")],
    out: Annotated[Path, typer.Option(help="File to write the signed dossier to.")] = Path("dossier.json"),
    as_json: AsJson = False,
) -> None:
    """At the Host: measure its own table, sign the dossier and write it to a file for the Guest."""
    with open_glassleaf() as glassleaf:
        host_dossier = glassleaf.host_dossier(federation, host)
        host_dossier.sign(text_of(file))
        save(out, host_dossier.signed().encode())
        key = host_dossier.public_key()
    print_result({"file": str(out), "public_key": key}, f"Signed, and written to {out}. The Host's key: {key}", as_json)


@app.command()
def take(
    federation: FederationName,
    file: Annotated[Path, typer.Argument(help="A dossier that a Host has signed.")],
    key: Annotated[str, typer.Option(help="The Host's public key, got by another way than the file.")] = "",
    as_json: AsJson = False,
) -> None:
    """At the Guest: check a dossier's signature and columns, and keep it; the reports hold it from then on."""
    with open_glassleaf() as glassleaf:
        dossier = glassleaf.dossiers.take(federation, text_of(file), key)
    print_result(dossier.model_dump(), f"The signature fits. {_line(dossier)}", as_json)


@app.command()
def show(federation: FederationName, as_json: AsJson = False) -> None:
    """At the Guest: the dossiers that were taken in, and the Hosts without one."""
    with open_glassleaf() as glassleaf:
        dossiers = glassleaf.dossiers.of(federation)
        lacking = glassleaf.dossiers.lacking(federation)
    lines = [*map(_line, dossiers), *(f"{host}: no dossier" for host in lacking)]
    body = {"dossiers": [dossier.model_dump() for dossier in dossiers], "lacking": list(lacking)}
    print_result(body, lines, as_json)


def _line(dossier: DossierSection) -> str:
    return f"{dossier.host}: {counted(len(dossier.columns), 'columns')}, {dossier.day}, key {dossier.public_key}"
