"""Commands for an analyst: `importance`, `what-if`, `model-card`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, cast

import typer

from backend.cli.output import AsJson, ModelId, open_glassleaf, print_result, watched
from backend.cli.policy import document_of, policy_line
from backend.errors import ParameterError
from backend.i18n import counted
from backend.services.explanation import MEASURES, MeansRequest, PermutationRequest, Permuted
from backend.services.model_card import CardRequest

if TYPE_CHECKING:
    from backend.explain.dependence import Level
    from backend.explain.importance import Measure
    from backend.explain.stability import SteadyImportance
    from backend.services.model_card import ModelCard

app = typer.Typer(add_completion=False)
PERMUTATION = "permutation"


@app.command()
def importance(
    model: ModelId = "latest",
    measure: Annotated[str, typer.Option(help=f"{', '.join(MEASURES)} or {PERMUTATION} (asks the Hosts).")] = "gain",
    samples: Annotated[int, typer.Option(help="Permutation: test records to score.")] = PermutationRequest.samples,
    repeats: Annotated[int, typer.Option(help="Permutation: shufflings a feature.")] = PermutationRequest.repeats,
    as_json: AsJson = False,
) -> None:
    """Rank features and parties by what they are worth to a model, with 95 % intervals, directions and pairs that meet."""
    if measure not in (*MEASURES, PERMUTATION):
        raise ParameterError("unknown_choice", option="--measure", value=measure, choices=(*MEASURES, PERMUTATION))
    with open_glassleaf() as glassleaf:
        model_id = glassleaf.models.get(model).id
        rows: tuple[Permuted, ...] | tuple[SteadyImportance, ...]
        if measure == PERMUTATION:
            worth = watched(glassleaf.explanation.start_permutation(PermutationRequest(model_id, samples, repeats)))
            rows = tuple(sorted(worth, key=lambda row: (not row.feature, -row.fall)))
        else:
            split_measure = cast("Measure", measure)
            parties = glassleaf.explanation.steady_importance(model_id, split_measure, by_party=True)
            rows = (*glassleaf.explanation.steady_importance(model_id, split_measure), *parties)
        directions = {d.feature: d for d in glassleaf.explanation.directions(model_id)}
        pairs = glassleaf.explanation.interactions(model_id)
        agreement = glassleaf.explanation.agreement(model_id)
    body = {
        "model": model_id,
        "measure": measure,
        "rows": [asdict(row) for row in rows],
        "directions": [asdict(direction) for direction in directions.values()],
        "pairs": [asdict(pair) for pair in pairs],
        "agreement": agreement,
    }
    lines = [f"{model_id} by {measure}:"]
    for row in rows:
        value = row.fall if isinstance(row, Permuted) else row.share
        feature_direction = directions.get(row.feature)
        if feature_direction is not None and feature_direction.contradicts:
            against = "  AGAINST EXPECTATION"
        else:
            against = ""
        if feature_direction is not None:
            learned = f"  {feature_direction.learned}"
        else:
            learned = ""
        name = row.feature or "all of it"
        lines.append(f"  {row.party}  {name:24} {_estimate(value, row.low, row.high)}{learned}{against}")
    print_result(body, lines, as_json)


@app.command(name="what-if")
def what_if(
    model: ModelId,
    feature: Annotated[str, typer.Argument(help="A feature of any party that the model was offered.")],
    samples: Annotated[
        int | None, typer.Option(help="A Host's feature: test records to score; all by default.")
    ] = MeansRequest.samples,
    bits: Annotated[int, typer.Option(help="A Host's feature: Paillier key size.")] = MeansRequest.key_bits,
    as_json: AsJson = False,
) -> None:
    """Say how the answer moves with a feature: set for everybody if it is the Guest's, else as encrypted means by tenth."""
    with open_glassleaf() as glassleaf:
        record = glassleaf.models.get(model)
        if any(
            f.name == feature
            for party, f in glassleaf.models.guest_model(record.id).dictionary
            if party == record.guest
        ):
            curve = glassleaf.explanation.partial_dependence(record.id, feature)
            lines = []
            for level in curve.levels:
                lines.append(f"  {_level_text(level)} ({level.share:.1%} of records): {_numbers(level.predicted)}")
            print_result(asdict(curve), [f"{feature} ({curve.party}), set for everybody:", *lines], as_json)
            return
        request = MeansRequest(record.id, feature, samples, key_bits=bits)
        means = watched(glassleaf.explanation.start_means(request))
    lines = []
    for row in means.groups:
        lines.append(
            f"  {row.group.kind} {row.group.name}, n={row.group.n:,}: {_numbers(row.mean)} [{_numbers(row.low)}, {_numbers(row.high)}]"
        )
    if means.measured:
        source = f", from what {means.party} answered on {means.measured}"
    else:
        source = ""
    text = [
        f"{feature} ({means.party}), {means.n:,} test records{source}:",
        *(lines or ["  no two groups of 50 records"]),
    ]
    print_result(asdict(means), text, as_json)


@app.command(name="model-card")
def model_card(
    model: ModelId = "latest",
    again: Annotated[int, typer.Option(help="Score so many test records again first; 0 = as it is kept.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Say how good a model is and on whom that was measured."""
    with open_glassleaf() as glassleaf:
        record = glassleaf.models.get(model)
        if again:
            card = watched(glassleaf.model_cards.start(CardRequest(record.id, again)))
        else:
            card = glassleaf.model_cards.get(record.id)
        standing = glassleaf.policies.standing(record.id)
    document = {**card.as_dict(), "policy": document_of(standing)}
    print_result(document, [*_card_lines(card), f"  {policy_line(standing.policy)}"], as_json)


def _level_text(level: Level) -> str:
    if level.code or level.missing:
        return level.code or "no value"
    ends = [] if level.low is None else [f"from {level.low:g}"]
    return " ".join(ends + ([] if level.high is None else [f"below {level.high:g}"]))


def _card_lines(card: ModelCard) -> list[str]:
    record = card.record
    lines = [
        f"{record.id}  {record.federation}  {record.algorithm}, {counted(record.n_trees, 'trees')}, made {record.created[:19]}"
    ]
    for part in card.parts:
        lines.append(f"  {part.part}, n={part.n:,} (scores from {card.sources[part.part]}):")
        lines += [f"    {f.name:9} {_estimate(f.value, f.low, f.high)}" for f in part.figures]
    for shift in card.shifts:
        if shift.moved:
            verdict = "more than chance"
        else:
            verdict = "within chance"
        lines.append(f"  PSI {shift.reference} to {shift.part}: {shift.psi:.4f}, {verdict} ({shift.chance:.4f})")
    if card.parts:
        return lines
    return [*lines, "  No scores are kept; score test records again with --again N."]


def _estimate(value: float, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"{value:.4f}"
    return f"{value:.4f} [{low:.4f}, {high:.4f}]"


def _numbers(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.4f}" for value in values)
