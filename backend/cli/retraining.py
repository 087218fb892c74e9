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
        side_by_side = watched(glassleaf.retraining.start(request, _not_measured))
    print_result(comparison_as_dict(side_by_side), _text(side_by_side), as_json)


def _not_measured(old_model: str, new_model: str, waits: ApprovalPending) -> None:
    say(
        f"{new_model} is trained. Not measured: {waits} Then: glassleaf compare-models {old_model} {new_model} --measure"
    )


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
        first_model = glassleaf.models.get(first).id
        second_model = glassleaf.models.get(second).id
        if measure:
            watched(glassleaf.model_differences.start(DifferenceRequest(first_model, second_model)))
        side_by_side = glassleaf.reports.compare(first_model, second_model)
    print_result(comparison_as_dict(side_by_side), _text(side_by_side), as_json)


def _text(side_by_side: SideBySide) -> str:
    """Return which is better, fact by fact; then two columns: the first model's figures, the second's."""
    from backend.cli import language_of_shell

    words = Catalogue(language_of_shell())
    answer = [words.text(side_by_side.changes.headline)]
    for change in side_by_side.changes.changes:
        answer.append(f"{words(f'verdict.way_{change.way}')}: {words.text(change.sentence)}")
    rows = [("", side_by_side.before.record.id, side_by_side.after.record.id)]
    rows += [(f.name, f"{f.before:.4f}", f"{f.after:.4f}") for f in side_by_side.figures]
    sizes = asdict(side_by_side.before.sizes), asdict(side_by_side.after.sizes)
    rows += [(name.replace("_", " "), f"{sizes[0][name]:,}", f"{sizes[1][name]:,}") for name in sizes[0]]
    rows += [(f"gain of {s.feature}", _share(s.before), _share(s.after)) for s in side_by_side.shifts]
    rows += [
        (f"{p.feature}, {p.either.about}: {p.either.measure}", _measured(p.before), _measured(p.after))
        for p in side_by_side.outcomes
    ]
    rows += [
        (f"scores: {leak.name.replace('_', ' ')}", f"{leak.before:g}", f"{leak.after:g}") for leak in side_by_side.leaks
    ]
    rows += [(d.name, d.before or "–", d.after or "–") for d in side_by_side.differences]
    if side_by_side.same_people:
        people = "the same records"
    else:
        people = "DIFFERENT records: a part of any difference comes from that"
    wide = max(len(row[0]) for row in rows)
    return "\n".join(
        [
            *answer,
            *(f"{name:{wide}}  {first_text:>28}  {second_text:>28}" for name, first_text, second_text in rows),
            f"Measured on {people}.",
        ]
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
