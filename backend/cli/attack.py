"""The attack lab from a shell: `attack`."""

from __future__ import annotations

from typing import Annotated

import typer

from backend.cli.output import AsJson, print_result, say
from backend.errors import ParameterError
from backend.services.attack_runs import AttackRuns, works

app = typer.Typer(add_completion=False)


@app.command()
def attack(
    names: Annotated[list[str] | None, typer.Argument(help="Attacks by their id, e.g. A1 T2.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them (minutes).")] = False,
    only_list: Annotated[bool, typer.Option("--list", help="List them instead.")] = False,
    seed: Annotated[int, typer.Option(help="Draws data and what an attacker chooses.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Run attacks without and with the defence; exit status 1 if one works against what is shipped."""
    if only_list:
        listed = [{"id": a.id, "name": a.name, "severity": a.severity} for a in AttackRuns.all()]
        print_result(listed, "\n".join(f"{a['id']:8} {a['severity']:10} {a['name']}" for a in listed), as_json)
        return
    if not names and not every:
        raise ParameterError("attack_not_named", known=tuple(a.id for a in AttackRuns.all()))
    results = AttackRuns.run([] if every else names or [], seed, lambda a: say(f"{a.id} {a.name} …"))
    lines = []
    for result in results:
        off = f"{result.defence_off:.1%}"
        if result.defence_on is None:
            on = "not shipped"
        else:
            on = f"{result.defence_on:.1%}"
        verdict = "WORKS" if works(result) else "fails"
        verdict += " (defence off by default)" if result.outcome.optional else ""
        lines.append(
            f"{result.id:8} without {off:>7}  with {on:>11}  guessing {result.chance:.1%}  {verdict}: {result.name}"
        )
    print_result(
        [result.as_dict() for result in results], lines, as_json, ok=not any(works(result) for result in results)
    )
