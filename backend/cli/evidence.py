"""What a regulator has measured from a shell: `elderly`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from backend.cli.output import AsJson, ModelId, open_glassleaf, print_result, watched
from backend.crypto.registry import cipher_named
from backend.services import AgeCheck, AgeRequest

SAID = {
    "not_negative": "elderly ages score no worse than any class of younger ones",
    "negative": "elderly ages score WORSE than a class of younger ones",
    "undecided": "it is not disclosed whether elderly ages score worse than every class of younger ones; score more people",
}


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(name="elderly")(elderly)


def elderly(
    model: ModelId,
    feature: Annotated[str, typer.Argument(help="The age in years, of any party.")],
    samples: Annotated[int, typer.Option(help="Test records to score.")] = AgeRequest.samples,
    cipher: Annotated[
        str, typer.Option(help="Of the scores: paillier = the fastest that holds them; none protects nothing.")
    ] = AgeRequest.cipher,
    as_json: AsJson = False,
) -> None:
    """Check that the age of elderly applicants (62 or older) has no negative factor (12 CFR 1002.6(b)(2)); kept for the report."""
    glassleaf = open_glassleaf()
    try:
        request = AgeRequest(glassleaf.model(model).id, feature, samples, cipher_named(cipher))
        done = watched(glassleaf.start_ages(request))
    finally:
        glassleaf.close()
    print_result({**asdict(done), "verdict": done.verdict}, _text(done), as_json)


def _text(done: AgeCheck) -> str:
    lines = [
        f"{done.feature} ({done.party}), {done.n:,} test records, each scored at ages of every class: {SAID[done.verdict]}.",
        f"  ages of 62 or more: mean probability {done.predicted:.4f}",
    ]
    lines += [
        f"  younger, class {gap.place} of {len(done.gaps)} (1 = youngest): {gap.predicted:.4f}; elderly {gap.worse:+.4f} "
        f"[{gap.low:+.4f}, {gap.high:+.4f}]"
        for gap in done.gaps
    ]
    return "\n".join(lines)
