"""`monitor`: a model on a later sheet, with an exit status that a pipeline can stop at."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import (
    AccountFile,
    AsJson,
    Bits,
    Cutoff,
    Decimal,
    Encoding,
    Header,
    Ids,
    ModelId,
    Sheet,
    measured_at,
    open_glassleaf,
    print_result,
    save_account,
    watched,
)
from backend.cli.scoring import remark_document
from backend.cli.validation import STATUS, answered_before, worst
from backend.i18n import Catalogue
from backend.services.monitoring import MonitoringRequest
from backend.services.samples import Reading
from backend.services.scoring import cipher_named

if TYPE_CHECKING:
    from backend.services.monitoring import Monitored

app = typer.Typer(add_completion=False)


@app.command()
def monitor(
    model: ModelId,
    later: Annotated[
        Path,
        typer.Argument(
            metavar="SHEET", help="CSV, XLSX or Parquet with the id column and the Guest's features of later people."
        ),
    ],
    label: Annotated[
        str, typer.Option(help="Column of the outcomes; default: the federation's label where the sheet has it.")
    ] = "",
    feature: Annotated[str, typer.Option(help="Compare acceptance between the groups of this feature.")] = "",
    cutoff: Cutoff = None,
    cipher: Annotated[str, typer.Option(help="Of the scores; default: the one suited to so many people.")] = "",
    bits: Bits = MonitoringRequest.key_bits,
    encoding: Encoding = "",
    decimal: Decimal = "",
    sheet: Sheet = "",
    header: Header = "",
    ids: Ids = "",
    account: AccountFile = None,
    as_json: AsJson = False,
) -> None:
    """Score later people under encryption and compare them with the model's own data; exit status 3 where a trigger is reached."""
    scoring_cipher = cipher_named(cipher) if cipher else None
    with open_glassleaf() as glassleaf:
        record = glassleaf.models.get(model)
        read = glassleaf.monitoring.read(
            record.id, later, how=Reading(encoding, decimal, sheet, header, ids), label=label
        )
        if account is not None:
            save_account(account, glassleaf.samples.account(record.id, read.sheet))
        request = MonitoringRequest(record.id, read, feature, cutoff, scoring_cipher, bits)
        monitored = watched(glassleaf.monitoring.start(request))
    notes = read.sheet.notes
    document = {**asdict(monitored), "notes": [remark_document(note) for note in notes]}
    lines = [*(f"Note: {note.sentence()}" for note in notes), _text(monitored)]
    print_result(document, lines, as_json)
    if STATUS[monitored.verdict]:
        raise typer.Exit(STATUS[monitored.verdict])


def _text(monitored: Monitored) -> str:
    say = Catalogue("en")
    many = {"n": f"{monitored.n:,}", "failed": f"{monitored.failed:,}", "outcomes": f"{monitored.outcomes:,}"}
    lines = [f"{monitored.model}: {say(f'monitoring.overall_{monitored.verdict}')}", say("monitoring.sentence", **many)]
    lines.append(say("policy.measured", cutoff=measured_at(monitored.cutoff, monitored.policy)))
    lines.append(
        say(
            "monitoring.partial",
            n=monitored.partial,
            people=f"{monitored.n:,}",
            share=f"{monitored.partial / monitored.n:.1%}",
        )
    )
    for feature, code, n in monitored.new_codes:
        lines.append(say("monitoring.new_code", n=n, feature=feature, code=code))
    lines += [
        f"  {test.verdict.replace('_', ' '):12}  {say(f'validation.test_{test.id}')}: {worst(say, test)}"
        for test in monitored.tests
    ]
    if monitored.brier is not None:
        lines.append(f"{say('monitoring.brier')}: {monitored.brier:.4f}")
    for row in monitored.tenths:
        shares = {"predicted": f"{row.predicted:.3f}", "observed": f"{row.observed:.3f}", "n": f"{row.n:,}"}
        lines.append("  " + say("monitoring.tenth", **shares))
    if monitored.unexamined:
        lines.append(say("monitoring.unexamined", listed=", ".join(f"{f} ({p})" for p, f in monitored.unexamined)))
    lines += answered_before(say, monitored.again)
    return "\n".join(lines)
