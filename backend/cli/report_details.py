"""What the operator says of a model, from a shell: `report-details` prints it as TOML, or takes a file that is filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from backend.cli.output import AsJson, ModelId, open_glassleaf, print_result, save
from backend.errors import ParameterError

app = typer.Typer(add_completion=False)


@app.command("report-details")
def report_details(
    model: ModelId,
    file: Annotated[
        Path | None, typer.Argument(help="A TOML file that is filled in; without one, what stands is printed.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to print to.")] = None,
    language: Annotated[str, typer.Option(help="en or zh, of what is printed.")] = "en",
    as_json: AsJson = False,
) -> None:
    """Print what the report's fields of the operator hold, to be filled in; or keep a file that is."""
    with open_glassleaf() as glassleaf:
        details = glassleaf.report_details
        if file is None:
            text = details.template(model, language)
            if out is not None:
                save(out, text.encode())
                text = f"Written to {out}. Fill it in, then run: glassleaf report-details {model} {out}"
        else:
            details.keep_toml(model, text_of(file))
            text = f"Kept; {len(details.missing(model))} fields are not provided."
        found = details.get(model)
        body = {"details": found.model_dump() if found else None, "missing": list(details.missing(model))}
    print_result(body, text, as_json)


def text_of(file: Path) -> str:
    """A file's text; raises ParameterError where it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"{file} cannot be read as UTF-8 text ({error}).") from None
