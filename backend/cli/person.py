"""People's rights from a shell: `person show`, `person forget`; and how long things are kept: `retention show`, `retention apply`."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import AsJson, FederationName, open_glassleaf, print_result
from backend.services.people import RETENTION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backend.services.people import Holding

Person = Annotated[str, typer.Argument(metavar="ID", help="The person's id, as the tables hold it.")]
app = typer.Typer(add_completion=False)
person = typer.Typer(no_args_is_help=True, help="What the parties keep about a person: show it, or forget the person.")
retention = typer.Typer(
    no_args_is_help=True, help="How long each table of a party's database keeps a row: show, apply."
)
app.add_typer(person, name="person")
app.add_typer(retention, name="retention")


@person.command()
def show(
    federation: FederationName,
    person_id: Person,
    party: Annotated[
        str, typer.Option(help="One party (default: all; the user of a shell operates the simulation).")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show everything that each party's database keeps about an id: counts, days and models, no value of another party."""
    with open_glassleaf() as glassleaf:
        holdings = glassleaf.people.show(glassleaf.federations.get(federation).name, person_id, party)
    print_result([asdict(holding) for holding in holdings], _text(holdings), as_json)


@person.command()
def forget(
    federation: FederationName,
    person_id: Person,
    because: Annotated[
        str, typer.Option(help="Why; stands in the audit log, so without the id. Needed unless nothing is done.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a person at every party; answers keep counting under a pseudonym, and each party's own table is its own to change."""
    with open_glassleaf() as glassleaf:
        name = glassleaf.federations.get(federation).name
        if dry_run:
            holdings = glassleaf.people.preview(name, person_id)
        else:
            holdings = glassleaf.people.forget(name, person_id, because)
    if dry_run:
        heading = "Would be done; nothing was changed:"
    else:
        heading = "Done, and in the audit log:"
    lines = [heading, _text(holdings, erased=True)]
    print_result({"done": not dry_run, "found": [asdict(holding) for holding in holdings]}, lines, as_json)


@retention.command("show")
def show_retention(as_json: AsJson = False) -> None:
    """Show how long each table keeps a row, and why."""
    lines = []
    for table, period in RETENTION.items():
        if period.days is None:
            limit = "no limit"
        else:
            limit = f"{period.days} days"
        lines.append(f"{table:14} {limit:>9}  {period.why}")
    print_result({table: asdict(period) for table, period in RETENTION.items()}, lines, as_json)


@retention.command("apply")
def apply_retention(
    federation: Annotated[str, typer.Argument(help="A federation's name (default: every one that is known).")] = "",
    as_json: AsJson = False,
) -> None:
    """Delete what is older, at every party; done once a day whenever a federation is used, too."""
    with open_glassleaf() as glassleaf:
        if federation:
            federations = [glassleaf.federations.get(federation)]
        else:
            federations = glassleaf.federations.all()
        deleted = {entry.name: glassleaf.people.expire(entry.name) for entry in federations}
    lines = []
    for name, parties in deleted.items():
        for party, tables in parties.items():
            for table, rows in tables.items():
                lines.append(f"{name}, {party}: {rows} of {table} deleted")
    print_result(deleted, lines or "Nothing is older than its table's time.", as_json)


def _text(all_holdings: Sequence[Holding], erased: bool = False) -> str:
    lines = []
    for party, holdings in groupby(all_holdings, key=lambda holding: holding.party):
        lines.append(f"{party}:")
        for holding in holdings:
            if erased and holding.about:
                what = f", {holding.erasure}"
            else:
                what = ""
            lines.append(f"  {holding.table}: {len(holding.about) or 'nothing'}{what} ({holding.note})")
            lines += [f"    {', '.join(f'{k} {v}' for k, v in row.items())}" for row in holding.about]
    return "\n".join(lines)
