"""What the operator alone can say, from a shell: `report-details` of a model, `notice-details` of a federation.

Each prints it as TOML, or takes a file that is filled in.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from backend.cli.output import AsJson, FederationName, ModelId, open_glassleaf, print_result, save, text_of

FilledIn = Annotated[
    Path | None, typer.Argument(help="A TOML file that is filled in; without one, what stands is printed.")
]
Out = Annotated[Path | None, typer.Option(help="File to print to.")]
Language = Annotated[str, typer.Option(help="en or zh, of what is printed.")]
app = typer.Typer(add_completion=False)


@app.command("report-details")
def report_details(
    model: ModelId, file: FilledIn = None, out: Out = None, language: Language = "en", as_json: AsJson = False
) -> None:
    """Print what the report's fields of the operator hold, to be filled in; or keep a file that is."""
    with open_glassleaf() as glassleaf:
        details = glassleaf.report_details
        if file is None:
            text = _printed(details.template(model, language), out, f"report-details {model}")
        else:
            details.keep_toml(model, text_of(file))
            text = f"Kept; {len(details.missing(model))} fields are not provided."
        section = details.get(model)
        body = {"details": section.model_dump() if section else None, "missing": list(details.missing(model))}
    print_result(body, text, as_json)


@app.command("notice-details")
def notice_details(
    federation: FederationName,
    file: FilledIn = None,
    out: Out = None,
    language: Language = "en",
    as_json: AsJson = False,
) -> None:
    """Print names, addresses and agencies that notices state, to be filled in; or keep a file that is."""
    with open_glassleaf() as glassleaf:
        details = glassleaf.notice_details
        if file is None:
            text = _printed(details.template(federation, language), out, f"notice-details {federation}")
        else:
            details.keep_toml(federation, text_of(file))
            text = "Kept; notices state it from now on."
        lacking = {}
        for notice_language in ("en", "zh"):
            lacking[notice_language] = [".".join(item) for item in details.missing(federation, notice_language)]
        if file is not None and lacking["en"]:
            text += f" Not provided for a notice in English: {', '.join(lacking['en'])}."
        body = {"parties": {name: p.model_dump() for name, p in details.of(federation).items()}, "missing": lacking}
    print_result(body, text, as_json)


def _printed(template: str, out: Path | None, command: str) -> str:
    """Return the template itself, or where it was written to and how it is handed in."""
    if out is None:
        return template
    save(out, template.encode())
    return f"Written to {out}. Fill it in, then run: glassleaf {command} {out}"
