"""Screening from a shell: `screen`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.atomic_file import write_whole
from backend.cli.output import AsJson, Bits, chosen_federation, open_glassleaf, print_result, watched
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
        done = watched(glassleaf.screening.start(request))
    if out is not None:
        write_whole(out, csv_of(done))
    print_result(asdict(done), _text(done), as_json)


def _text(done: Screening) -> list[str]:
    lines = [
        f"{done.records:,} joint records, {done.positives:,} with the positive outcome. "
        "Information value (IV) of each feature, the highest first; in brackets what chance alone shows in 1 of 20."
    ]
    lines += [_line(feature) for feature in done.features]
    lines += [f"  not screened: {one.feature} ({one.party}): {one.reason.sentence()}" for one in done.left_out]
    if done.bands == 1:
        lines.append(
            "What features add to yours is not known: too few records, or no feature of yours makes two groups."
        )
    else:
        lines.append(f"“Adds” is measured within {done.bands} bands of a scorecard of your own features.")
    for host, bits in done.bits.items():
        lines.append(f"{host}: at most {bits:.1f} bits about each person were booked.")
    return lines


def _line(one: ScreenedFeature) -> str:
    parts = [f"  {one.iv:.3f} [{one.iv_chance:.3f}] {one.feature} ({one.party}): {one.worth}, {one.direction}"]
    parts.append(f"missing {_missing(one)}, {_distinct(one)} distinct values")
    if one.psi is not None and one.psi_chance is not None:
        parts.append(f"PSI {one.psi:.3f} [{one.psi_chance:.3f}]")
    if one.adds is not None and one.added is not None and one.added_chance is not None:
        parts.append(f"adds {one.added:.3f} ({one.added_chance:.3f} by chance): {ADDS[one.adds]}")
    if one.measured:
        parts.append(f"answered on {one.measured}")
    return "; ".join(parts)


def _missing(one: ScreenedFeature) -> str:
    if one.missing == one.missing_most:
        return f"{one.missing:.1%}"
    return f"at most {one.missing_most:.1%}"


def _distinct(one: ScreenedFeature) -> str:
    if one.most is None:
        return f"{one.fewest:,} or more"
    if one.fewest == one.most:
        return f"{one.fewest:,}"
    return f"{one.fewest:,} to {one.most:,}"
