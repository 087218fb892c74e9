"""Screening from a shell: `screen`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import AsJson, Bits, chosen_federation, open_glassleaf, print_result, watched
from backend.ops.atomic_file import write_whole
from backend.results import DEMO
from backend.services.scoring import cipher_named
from backend.services.screening import ScreeningRequest, csv_of

if TYPE_CHECKING:
    from backend.services.screening import ScreenedFeature, Screening

app = typer.Typer(add_completion=False)
ADDS = {
    "nothing": "adds nothing to what you have",
    "weak": "adds a little",
    "medium": "adds something",
    "strong": "adds much",
    "suspicious": "adds suspiciously much: is it known before the outcome?",
}


@app.command()
def screen(
    federation: Annotated[str, typer.Argument(help="A federation's name, or its folder.")] = DEMO,
    before: Annotated[
        str, typer.Option(help="Drift: people before this day, month or year, in the form of the time column.")
    ] = "",
    since: Annotated[str, typer.Option(help="Drift: people from this day, month or year on.")] = "",
    records: Annotated[int | None, typer.Option(help="Joint records to draw (default: all).")] = None,
    bins: Annotated[int, typer.Option(help="Most groups of a feature.")] = ScreeningRequest.bins,
    cipher: Annotated[
        str, typer.Option(help="paillier-short; paillier; or none (protects nothing).")
    ] = ScreeningRequest.cipher,
    bits: Bits = ScreeningRequest.key_bits,
    out: Annotated[Path | None, typer.Option(help="Write a row a feature into this CSV file, too.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure what each party's features are worth before anything is trained: information value, what they add, missing, drift."""
    with open_glassleaf() as glassleaf:
        request = ScreeningRequest(
            chosen_federation(glassleaf, federation),
            before=before,
            since=since,
            records=records,
            bins=bins,
            cipher=cipher_named(cipher),
            key_bits=bits,
        )
        screening = watched(glassleaf.screening.start(request))
    if out is not None:
        write_whole(out, csv_of(screening))
    print_result(asdict(screening), _text(screening), as_json)


def _text(screening: Screening) -> list[str]:
    lines = [
        f"{screening.records:,} joint records, {screening.positives:,} with the positive outcome. "
        "Information value (IV) of each feature, the highest first; in brackets what chance alone shows in 1 of 20."
    ]
    lines += [_line(feature) for feature in screening.features]
    lines += [
        f"  not screened: {screened.feature} ({screened.party}): {screened.reason.sentence()}"
        for screened in screening.left_out
    ]
    if screening.bands == 1:
        lines.append(
            "What features add to yours is not known: too few records, or no feature of yours makes two groups."
        )
    else:
        lines.append(f"“Adds” is measured within {screening.bands} bands of a scorecard of your own features.")
    for host, bits in screening.bits.items():
        lines.append(f"{host}: at most {bits:.1f} bits about each person were booked.")
    return lines


def _line(screened: ScreenedFeature) -> str:
    parts = [
        f"  {screened.iv:.3f} [{screened.iv_chance:.3f}] {screened.feature} ({screened.party}): {screened.worth}, {screened.direction}"
    ]
    parts.append(f"missing {_missing(screened)}, {_distinct(screened)} distinct values")
    if screened.psi is not None and screened.psi_chance is not None:
        parts.append(f"PSI {screened.psi:.3f} [{screened.psi_chance:.3f}]")
    if screened.adds is not None and screened.added is not None and screened.added_chance is not None:
        parts.append(f"adds {screened.added:.3f} ({screened.added_chance:.3f} by chance): {ADDS[screened.adds]}")
    if screened.measured:
        parts.append(f"answered on {screened.measured}")
    return "; ".join(parts)


def _missing(screened: ScreenedFeature) -> str:
    if screened.missing == screened.missing_most:
        return f"{screened.missing:.1%}"
    return f"at most {screened.missing_most:.1%}"


def _distinct(screened: ScreenedFeature) -> str:
    if screened.most is None:
        return f"{screened.fewest:,} or more"
    if screened.fewest == screened.most:
        return f"{screened.fewest:,}"
    return f"{screened.fewest:,} to {screened.most:,}"
