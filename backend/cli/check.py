"""`check`: whether a Guest would work, as `host check` says of a Host."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import AsJson, check_link, open_glassleaf, print_result

if TYPE_CHECKING:
    from backend.link.check import CheckedStep

app = typer.Typer(add_completion=False)


@app.command()
def check(
    federation: Annotated[str, typer.Argument(help="A federation's name, or the folder of its federation.toml.")],
    as_json: AsJson = False,
) -> None:
    """Check a Guest's home, table, keys, agreement and port, and say how to fix what is wrong; then exit status 1."""
    check_link()
    from backend.services.guest_check import check_guest

    with open_glassleaf() as glassleaf:
        folder = Path(federation)
        if not folder.exists():
            folder = glassleaf.federations.get(federation).folder
        print_steps(check_guest(glassleaf.operation, folder), as_json)


def print_steps(steps: Iterable[CheckedStep], as_json: bool) -> None:
    """Print every step of a check: whether it is well, what was found, and below what is wrong, how to fix it."""
    from backend.cli import language_of_shell

    language = language_of_shell()
    rows = []
    lines = []
    for step in steps:
        sentence = step.remark.sentence(language)
        if step.fix is not None:
            fix = step.fix.sentence(language)
        else:
            fix = ""
        rows.append({"step": step.step, "ok": step.ok, "code": step.remark.code, "words": sentence, "fix": fix})
        lines.append(f"{'well ' if step.ok else 'WRONG'}  {step.step:12} {sentence}")
        if fix:
            lines.append(f"       {'to fix it':12} {fix}")
    print_result(rows, lines, as_json, ok=all(row["ok"] for row in rows))
