"""Two models at once from a shell: `retrain` and `compare-models`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import AsJson, Bits, Cutoff, ModelId, open_glassleaf, print_result, say, split_list, watched
from backend.i18n import Catalogue
from backend.services.model_difference import DifferenceRequest
from backend.services.reports import comparison_as_dict
from backend.services.retraining import RetrainingRequest
from backend.services.scoring import cipher_named

if TYPE_CHECKING:
    from backend.errors import ApprovalPending
    from backend.fairness.evidence import Evidence
    from backend.reports.model_comparison import SideBySide

app = typer.Typer(add_completion=False)


@app.command()
def retrain(
    model: ModelId,
    without: Annotated[str, typer.Option(help="Features to leave out, separated by commas.")],
    by: Annotated[str, typer.Option(help="Features by whose groups decisions of both are compared, by commas.")] = "",
    cutoff: Cutoff = None,
    cipher: Annotated[
        str, typer.Option(help="Of that comparison: paillier, paillier-short, or none (protects nothing).")
    ] = RetrainingRequest.cipher,
    bits: Bits = RetrainingRequest.key_bits,
    as_json: AsJson = False,
) -> None:
    """Train a model again without some features and show both side by side; the first one stays."""
    with open_glassleaf() as glassleaf:
        request = RetrainingRequest(
            glassleaf.models.get(model).id, split_list(without), split_list(by), cutoff, cipher_named(cipher), bits
        )
        found = watched(glassleaf.retraining.start(request, _not_measured))
    print_result(comparison_as_dict(found), _text(found), as_json)


def _not_measured(before: str, after: str, waits: ApprovalPending) -> None:
    say(f"{after} is trained. Not measured: {waits} Then: glassleaf compare-models {before} {after} --measure")


@app.command(name="compare-models")
def compare_models(
    first: ModelId,
    second: Annotated[str, typer.Argument(help="Another model of the same federation.")],
    measure: Annotated[
        bool, typer.Option("--measure", help="Score test records by both first, and pair them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two models of a federation: quality, size, importance, measured outcomes, what scores give away."""
    with open_glassleaf() as glassleaf:
        before = glassleaf.models.get(first).id
        after = glassleaf.models.get(second).id
        if measure:
            watched(glassleaf.model_differences.start(DifferenceRequest(before, after)))
        found = glassleaf.reports.compare(before, after)
    print_result(comparison_as_dict(found), _text(found), as_json)


def _text(found: SideBySide) -> str:
    """Which is better, fact by fact; then two columns: the first model's figures, the second's."""
    from backend.cli import language_of_shell

    words = Catalogue(language_of_shell())
    answer = [words.text(found.changes.headline)]
    for change in found.changes.changes:
        answer.append(f"{words(f'verdict.way_{change.way}')}: {words.text(change.sentence)}")
    rows = [("", found.before.record.id, found.after.record.id)]
    rows += [(f.name, f"{f.before:.4f}", f"{f.after:.4f}") for f in found.figures]
    sizes = asdict(found.before.sizes), asdict(found.after.sizes)
    rows += [(name.replace("_", " "), f"{sizes[0][name]:,}", f"{sizes[1][name]:,}") for name in sizes[0]]
    rows += [(f"gain of {s.feature}", _share(s.before), _share(s.after)) for s in found.shifts]
    rows += [
        (f"{p.feature}, {p.either.about}: {p.either.measure}", _measured(p.before), _measured(p.after))
        for p in found.outcomes
    ]
    rows += [(f"scores: {leak.name.replace('_', ' ')}", f"{leak.before:g}", f"{leak.after:g}") for leak in found.leaks]
    rows += [(d.name, d.before or "–", d.after or "–") for d in found.differences]
    if found.same_people:
        people = "the same records"
    else:
        people = "DIFFERENT records: a part of any difference comes from that"
    wide = max(len(row[0]) for row in rows)
    return "\n".join(
        [*answer, *(f"{name:{wide}}  {one:>28}  {other:>28}" for name, one, other in rows), f"Measured on {people}."]
    )


def _share(share: float | None) -> str:
    return "not given" if share is None else f"{share:.1%}"


def _measured(row: Evidence | None) -> str:
    if row is None:
        return "not measured"
    if row.value is None:
        return "suppressed"
    if row.low is None or row.high is None:
        ends = ""
    else:
        ends = f" [{row.low:.3f}, {row.high:.3f}]"
    return f"{row.value:.3f}{ends} n={row.n:,}"
