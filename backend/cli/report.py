"""The report from a shell: `report` writes or checks one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.cli.output import AsJson, open_glassleaf, print_result, save, say
from backend.errors import ModelError, ParameterError
from backend.services.reports import schema

if TYPE_CHECKING:
    from backend.services import Glassleaf

app = typer.Typer(add_completion=False)
DRAWN = {
    "json": "The report has its hash.",
    "yes": "The report inside has its hash, and what is drawn is what this version draws from it.",
    "other": "The report inside has its hash. The pages are not those that this machine draws from it: other fonts or another version "
    "drew them, or they were changed. Trust the JSON.",
}


@app.command()
def report(
    model: Annotated[str, typer.Argument(help="Model id, the beginning of one, or 'latest'.")] = "latest",
    form: Annotated[str, typer.Option("--format", help="json, html or pdf (default: what --out ends in).")] = "",
    out: Annotated[Path | None, typer.Option(help="File to write; JSON goes to standard output without one.")] = None,
    language: Annotated[str, typer.Option(help="en or zh; JSON holds both.")] = "en",
    check_file: Annotated[Path | None, typer.Option("--check", help="Check a report's hashes instead.")] = None,
    print_schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of a report instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the canonical report on a model, or check one."""
    if print_schema:
        sys.stdout.write(schema())
        return
    with open_glassleaf() as glassleaf:
        if check_file is not None:
            print_result(*_checked(glassleaf, check_file), as_json)
            return
        chosen = form or (out.suffix.lower().removeprefix(".") if out else "json")
        if out is None and chosen != "json":
            raise ParameterError(f"A report as {chosen} needs a file; add --out FILE.")
        written = glassleaf.reports.export(model, chosen, language)
        if out is None:
            sys.stdout.write(written.decode())
            return
        if chosen == "pdf" and glassleaf.reports.language_of_pdf(language) != language:
            say("Note: no font with Chinese letters was found here (docs/report.md), so the PDF is in English.")
        save(out, written)
        made = glassleaf.reports.check(written).report
        body = {"file": str(out), "format": chosen, "sha256": made.sha256, "content_sha256": made.content_sha256}
        print_result(body, f"Report on {made.content.identity.model} written to {out}; SHA-256 {made.sha256}", as_json)


def _checked(glassleaf: Glassleaf, file: Path) -> tuple[dict[str, Any], str]:
    try:
        blob = file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file} cannot be read ({error.strerror}).") from error
    found = glassleaf.reports.check(blob)
    made = found.report
    named = [{"federation": name, "entry": e.number, "time": e.time, "actor": e.actor} for name, e in found.named_by]
    logged = "; ".join(f"entry {n['entry']} of {n['federation']}, {n['time']}, {n['actor']}" for n in named)
    text = (
        f"{DRAWN[found.drawn]}\nModel {made.content.identity.model}, issued {made.issued.time}, SHA-256 {made.sha256}\n"
    )
    text += f"Named by this home's audit log: {logged or 'no, so it was not issued from here'}"
    return {"drawn": found.drawn, "sha256": made.sha256, "named_by": named}, text
