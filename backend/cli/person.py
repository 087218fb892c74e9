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
        found = glassleaf.people.show(glassleaf.federations.get(federation).name, person_id, party)
    print_result([asdict(one) for one in found], _text(found), as_json)


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
            found = glassleaf.people.preview(name, person_id)
        else:
            found = glassleaf.people.forget(name, person_id, because)
    if dry_run:
        heading = "Would be done; nothing was changed:"
    else:
        heading = "Done, and in the audit log:"
    lines = [heading, _text(found, erased=True)]
    print_result({"done": not dry_run, "found": [asdict(one) for one in found]}, lines, as_json)


@retention.command("show")
def show_retention(as_json: AsJson = False) -> None:
    """Show how long each table keeps a row, and why."""
    lines = [
        f"{table:14} {'no limit' if period.days is None else f'{period.days} days':>9}  {period.why}"
        for table, period in RETENTION.items()
    ]
    print_result({table: asdict(period) for table, period in RETENTION.items()}, lines, as_json)


@retention.command("apply")
def apply_retention(
    federation: Annotated[str, typer.Argument(help="A federation's name (default: every one that is known).")] = "",
    as_json: AsJson = False,
) -> None:
    """Delete what is older, at every party; done once a day whenever a federation is used, too."""
    with open_glassleaf() as glassleaf:
        if federation:
            known = [glassleaf.federations.get(federation)]
        else:
            known = glassleaf.federations.all()
        deleted = {one.name: glassleaf.people.expire(one.name) for one in known}
    lines = [
        f"{name}, {party}: {rows} of {table} deleted"
        for name, parties in deleted.items()
        for party, tables in parties.items()
        for table, rows in tables.items()
    ]
    print_result(deleted, lines or "Nothing is older than its table's time.", as_json)


def _text(found: Sequence[Holding], erased: bool = False) -> str:
    lines = []
    for party, holdings in groupby(found, key=lambda one: one.party):
        lines.append(f"{party}:")
        for one in holdings:
            what = f", {one.erasure}" if erased and one.about else ""
            lines.append(f"  {one.table}: {len(one.about) or 'nothing'}{what} ({one.note})")
            lines += [f"    {', '.join(f'{k} {v}' for k, v in row.items())}" for row in one.about]
    return "\n".join(lines)
