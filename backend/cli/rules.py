"""Rule packs from a shell: `rules list`, `check`, `add`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from backend.cli.output import AsJson, open_glassleaf, print_result
from backend.services.compliance import read_rule_pack

app = typer.Typer(
    add_completion=False, name="rules", no_args_is_help=True, help="The rule packs: list, check, add a custom one."
)


@app.command(name="list")
def list_rules(as_json: AsJson = False) -> None:
    """Name every pack with its version and day, and what is wrong with those that cannot be used."""
    with open_glassleaf() as glassleaf:
        packs, problems = glassleaf.compliance.rule_packs()
    rows = [{"name": p.name, "version": p.version, "as_of": str(p.as_of), "rules": len(p.rules)} for p in packs]
    lines = [f"{p['name']} {p['version']}, as of {p['as_of']}: {p['rules']} rules" for p in rows]
    print_result(
        {"packs": rows, "problems": problems}, "\n".join([*lines, *(f"Problem: {p}" for p in problems)]), as_json
    )


@app.command(name="check")
def check_rules(
    file: Annotated[Path, typer.Argument(help="A rule pack (docs/rules.md).")], as_json: AsJson = False
) -> None:
    """Say whether a pack can be used; every problem with its line."""
    pack = read_rule_pack(file)
    print_result(
        {"name": pack.name, "rules": len(pack.rules)}, f"{file}: {pack.name}, {len(pack.rules)} rules, usable.", as_json
    )


@app.command(name="add")
def add_rules(
    file: Annotated[Path, typer.Argument(help="A rule pack (docs/rules.md).")], as_json: AsJson = False
) -> None:
    """Apply a custom pack from now on."""
    with open_glassleaf() as glassleaf:
        pack = glassleaf.compliance.add_rule_pack(file)
    print_result({"name": pack.name, "rules": len(pack.rules)}, f"{pack.name} applies from now on.", as_json)
