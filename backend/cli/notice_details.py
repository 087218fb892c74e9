"""Whom notices name and how they are reached, from a shell: `notice-details` prints it as TOML, or takes a file that is filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from backend.cli.output import AsJson, open_glassleaf, print_result, save
from backend.cli.report_details import text_of

app = typer.Typer(add_completion=False)


@app.command("notice-details")
def notice_details(
    federation: Annotated[str, typer.Argument(help="Name of a federation of this home.")],
    file: Annotated[
        Path | None, typer.Argument(help="A TOML file that is filled in; without one, what stands is printed.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to print to.")] = None,
    language: Annotated[str, typer.Option(help="en or zh, of what is printed.")] = "en",
    as_json: AsJson = False,
) -> None:
    """Print names, addresses and agencies that notices state, to be filled in; or keep a file that is."""
    with open_glassleaf() as glassleaf:
        details = glassleaf.notice_details
        if file is None:
            text = details.template(federation, language)
            if out is not None:
                save(out, text.encode())
                text = f"Written to {out}. Fill it in, then run: glassleaf notice-details {federation} {out}"
        else:
            details.keep_toml(federation, text_of(file))
            text = "Kept; notices state it from now on."
        lacking = {one: [".".join(item) for item in details.missing(federation, one)] for one in ("en", "zh")}
        if file is not None and lacking["en"]:
            text += f" Not provided for a notice in English: {', '.join(lacking['en'])}."
        body = {"parties": {name: p.model_dump() for name, p in details.of(federation).items()}, "missing": lacking}
    print_result(body, text, as_json)
