"""What a shell asks of two models at once: `retrain`, `side-by-side`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from backend.cli.output import AsJson, Bits, ModelId, open_glassleaf, print_result, watched
from backend.crypto.registry import cipher_named
from backend.services import Evidence, RetrainingRequest, SideBySide, side_by_side_json


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(name="retrain")(retrain)
    app.command(name="side-by-side")(side_by_side)


def retrain(
    model: ModelId,
    without: Annotated[str, typer.Option(help="Features to leave out, separated by commas.")],
    by: Annotated[str, typer.Option(help="Features by whose groups decisions of both are compared, by commas.")] = "",
    cutoff: Annotated[float, typer.Option(help="Decline at or above this probability.")] = RetrainingRequest.cutoff,
    cipher: Annotated[
        str, typer.Option(help="Of that comparison: paillier, paillier-short, or none (protects nothing).")
    ] = RetrainingRequest.cipher,
    bits: Bits = RetrainingRequest.key_bits,
    as_json: AsJson = False,
) -> None:
    """Train a model again without some features and show both side by side; the first one stays."""
    glassleaf = open_glassleaf()
    request = RetrainingRequest(
        glassleaf.model(model).id, _names(without), _names(by), cutoff, cipher_named(cipher), bits
    )
    found = watched(glassleaf.start_retraining(request))
    glassleaf.close()
    print_result(side_by_side_json(found), _text(found), as_json)


def side_by_side(
    first: ModelId,
    second: Annotated[str, typer.Argument(help="Another model of the same federation.")],
    as_json: AsJson = False,
) -> None:
    """Compare two models of a federation: quality, size, importance, measured outcomes, what scores give away."""
    glassleaf = open_glassleaf()
    found = glassleaf.side_by_side(glassleaf.model(first).id, glassleaf.model(second).id)
    glassleaf.close()
    print_result(side_by_side_json(found), _text(found), as_json)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _text(found: SideBySide) -> str:
    """Two columns: the first model's figures, the second's."""
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
    people = "the same records" if found.same_people else "DIFFERENT records: a part of any difference comes from that"
    wide = max(len(row[0]) for row in rows)
    return "\n".join(
        [*(f"{name:{wide}}  {one:>28}  {other:>28}" for name, one, other in rows), f"Measured on {people}."]
    )


def _share(share: float | None) -> str:
    return "not given" if share is None else f"{share:.1%}"


def _measured(row: Evidence | None) -> str:
    if row is None:
        return "not measured"
    return "not told" if row.value is None else f"{row.value:.3f} [{row.low:.3f}, {row.high:.3f}] n={row.n:,}"
