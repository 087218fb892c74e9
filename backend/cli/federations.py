"""Federations from a shell: `demo`, `init`, `credit-card`."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from backend.cli.models import model_text
from backend.cli.output import AsJson, open_glassleaf, print_result, split_list
from backend.errors import ParameterError

app = typer.Typer(add_completion=False)


@app.command()
def init(
    table: Annotated[Path, typer.Argument(help="One CSV with everything: ids, features, label.")],
    label: Annotated[str, typer.Option(help="Column to be predicted.")],
    guest: Annotated[str, typer.Option(help="The Guest's feature columns, separated by commas.")],
    host: Annotated[list[str], typer.Option(help="A Host and its feature columns: name=C,D. Repeat for more Hosts.")],
    out: Annotated[Path, typer.Option(help="Folder to write the federation to.")],
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column with each record's id (default: rows are numbered).")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="What the label is: binary, classes or number (default: read off its cells).")
    ] = None,
    positive: Annotated[str | None, typer.Option(help="Binary label's value that counts as 1, e.g. yes.")] = None,
    dictionary: Annotated[Path | None, typer.Option(help="CSV with name, meaning, unit, kind … per feature.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the federation (default: the table's).")] = None,
    label_meaning: Annotated[
        str | None, typer.Option(help="What the label (binary: the positive one) says about a person.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Split one table into the parties' files and a federation file."""
    from backend.services.federations import Division

    hosts: dict[str, tuple[str, ...]] = {}
    for text in host:
        party, equals, columns = text.partition("=")
        if not equals or not columns:
            raise ParameterError(f"--host {text!r} was given; write it as name=COLUMN,COLUMN.")
        if party in hosts:
            raise ParameterError(f"--host {party} was given twice; give all its columns at once.")
        hosts[party] = split_list(columns)
    division = Division(label, split_list(guest), hosts, id_column, positive, task, dictionary, name, label_meaning)
    with open_glassleaf() as glassleaf:
        federation = glassleaf.federations.init(table, division, out)
    parties = {p.name: [f.name for f in p.features] for p in federation.parties}
    text = "\n".join(f"  {party}: {len(features)} features" for party, features in parties.items())
    target = federation.label
    outcomes = target.positive or ", ".join(target.classes) or target.unit
    print_result(
        {"federation": federation.name, "folder": str(out), "task": target.task, "parties": parties},
        f"Federation {federation.name!r} written to {out}:\n{text}\n"
        f"  label {target.column}: {target.task}{f' ({outcomes})' if outcomes else ''}\nNext: glassleaf train {out}",
        as_json,
    )


@app.command()
def demo(as_json: AsJson = False) -> None:
    """Prepare the built-in demo federation and its first model (synthetic data)."""
    began = time.perf_counter()
    with open_glassleaf() as glassleaf:
        record = glassleaf.models.all(glassleaf.training.prepare_demo())[0]
    print_result(asdict(record), f"Demo ready in {time.perf_counter() - began:.1f} s. {model_text(record)}", as_json)


@app.command(name="credit-card")
def credit_card(
    out: Annotated[Path, typer.Option(help="Folder to write the federation to.")], as_json: AsJson = False
) -> None:
    """Fetch the 'default of credit card clients' data from OpenML and write it as a federation."""
    with open_glassleaf() as glassleaf:
        federation = glassleaf.federations.fetch_credit_card(out)
    print_result(
        {"federation": federation.name, "folder": str(out)},
        f"Federation {federation.name!r} written to {out}.\nNext: glassleaf train {out}",
        as_json,
    )
