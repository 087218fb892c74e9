"""The report from a shell: `report` writes or checks one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from backend.cli.output import AsJson, open_glassleaf, print_result, save, say
from backend.errors import ModelError, ParameterError
from backend.remark import reason_of
from backend.services.reports import check_signed, schema

app = typer.Typer(add_completion=False)
STATUS = {"issued": 0, "elsewhere": 3, "other pages": 4}  # exit status; 1 = changed, 2 = a mistake in the command
DRAWN = {
    "json": "The report has its hash.",
    "yes": "The report inside has its hash, and what is drawn is what was issued or what this version draws from it.",
    "other": "The report inside has its hash. The pages are NOT those that this machine draws from it: other fonts or another version "
    "drew them, or they were changed. Do not rely on the pages; ask for the JSON.",
}


@app.command()
def report(
    model: Annotated[str, typer.Argument(help="Model id, the beginning of one, or 'latest'.")] = "latest",
    form: Annotated[str, typer.Option("--format", help="json, html or pdf (default: what --out ends in).")] = "",
    out: Annotated[Path | None, typer.Option(help="File to write; JSON goes to standard output without one.")] = None,
    language: Annotated[str, typer.Option(help="en or zh; JSON holds both.")] = "en",
    check_file: Annotated[
        Path | None,
        typer.Option(
            "--check",
            help="Check a report instead. Exit status: 0 issued and unchanged, 1 changed, 3 whole but not issued from this home or "
            "not signed with --key, 4 pages of a PDF that cannot be vouched for.",
        ),
    ] = None,
    key: Annotated[
        str, typer.Option(help="With --check: the Guest's public key (hexadecimal, PEM or a PEM file); needs no home.")
    ] = "",
    print_schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of a report instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the canonical report on a model, or check one."""
    if print_schema:
        sys.stdout.write(schema())
        return
    if check_file is not None:
        _check(check_file, key, as_json)
        return
    if key:
        raise ParameterError("key_without_check")
    with open_glassleaf() as glassleaf:
        chosen_form = form or (out.suffix.lower().removeprefix(".") if out else "json")
        if out is None and chosen_form != "json":
            raise ParameterError("report_needs_file", form=chosen_form)
        file_bytes = glassleaf.reports.export(model, chosen_form, language)
        if out is None:
            typer.echo(file_bytes, nl=False)  # bytes: no system may put its own line ends in
            return
        if chosen_form == "pdf" and glassleaf.reports.language_of_pdf(language) != language:
            say("Note: no font with Chinese letters was found here (docs/report.md), so the PDF is in English.")
        save(out, file_bytes)
        issued_report = glassleaf.reports.check(file_bytes).report
        body = {
            "file": str(out),
            "format": chosen_form,
            "sha256": issued_report.sha256,
            "content_sha256": issued_report.content_sha256,
        }
        print_result(
            body,
            f"Report on {issued_report.content.identity.model} written to {out}; SHA-256 {issued_report.sha256}",
            as_json,
        )


def _check(file: Path, key: str, as_json: bool) -> None:
    try:
        blob = file.read_bytes()
        if key and Path(key).is_file():
            public = Path(key).read_text()
        else:
            public = key
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError("report_or_key_not_read", file=file, why=reason_of(error)) from error
    if key:
        checked = check_signed(blob, public)
        if checked.signed_as_asked:
            vouched = "Signed with the key that was given."
        else:
            vouched = "NOT signed with the key that was given."
    else:
        with open_glassleaf() as glassleaf:
            checked = glassleaf.reports.check(blob)
        logged = "; ".join(f"entry {e.number} of {name}, {e.time}, {e.actor}" for name, e in checked.named_by)
        vouched = f"Named by this home's audit log: {logged or 'no, so it was NOT issued from here'}"
    report = checked.report
    document = {
        "verdict": checked.verdict,
        "drawn": checked.drawn,
        "content_sha256": report.content_sha256,
        "sha256": report.sha256,
        "public_key": report.public_key,
        "named_by": [
            {"federation": name, "entry": e.number, "time": e.time, "actor": e.actor} for name, e in checked.named_by
        ],
    }
    about = f"Model {report.content.identity.model}, issued {report.issued.time}"
    hashes = f"SHA-256 of the content {report.content_sha256}\nSHA-256 of the document {report.sha256}"
    if report.public_key:
        signed = f"Signed with the key {report.public_key}"
    else:
        signed = "Not signed (version 2)"
    print_result(document, "\n".join((DRAWN[checked.drawn], about, hashes, signed, vouched)), as_json)
    if checked.verdict != "issued":
        raise typer.Exit(STATUS[checked.verdict])
