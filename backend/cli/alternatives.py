"""Less discriminatory models from a shell: `alternatives`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import AsJson, Bits, ModelId, measured_at, open_glassleaf, print_result, split_list, watched
from backend.errors import ParameterError
from backend.i18n import Catalogue, counted
from backend.services.alternatives import AlternativesRequest
from backend.services.scoring import cipher_named

if TYPE_CHECKING:
    from backend.fairness.alternatives import DecidedModels, IntervalFigure, Point, Search

app = typer.Typer(add_completion=False)


@app.command()
def alternatives(
    model: ModelId,
    attribute: Annotated[str, typer.Argument(help="A feature of any party, by whose groups people are compared.")],
    without: Annotated[
        list[str] | None,
        typer.Option(
            help="Features to leave out together, by commas; may be given again. Where nothing is varied: the attribute."
        ),
    ] = None,
    constraints: Annotated[
        list[str] | None, typer.Option(help="Monotone constraints, e.g. limit=-1,delay=+1; may be given again.")
    ] = None,
    expected: Annotated[
        bool, typer.Option("--expected", help="Also hold models to the dictionary's expected directions.")
    ] = False,
    depths: Annotated[str, typer.Option(help="Other depths, by commas.")] = "",
    lambdas: Annotated[str, typer.Option(help="Other L2 regularisation of leaf weights, by commas.")] = "",
    cutoffs: Annotated[str, typer.Option(help="Cut-offs of the model, by commas (default: the policy's line).")] = "",
    tolerance: Annotated[float, typer.Option(help="AUC that an alternative may lose.")] = AlternativesRequest.tolerance,
    reference: Annotated[
        str, typer.Option(help="Code of the group to compare with (default: as in `disparity`, else the largest).")
    ] = "",
    cipher: Annotated[
        str, typer.Option(help="Of sums by group: paillier, paillier-short, or none (protects nothing).")
    ] = AlternativesRequest.cipher,
    bits: Bits = AlternativesRequest.key_bits,
    show: Annotated[bool, typer.Option("--show", help="Only show the last search.")] = False,
    choose: Annotated[str, typer.Option(help="Take this model of the last search, and register it.")] = "",
    because: Annotated[str, typer.Option(help="Why, for the report.")] = "",
    as_json: AsJson = False,
) -> None:
    """Search for models that treat groups more alike, every combination trained as the model was; or choose one of them."""
    with open_glassleaf() as glassleaf:
        base = glassleaf.models.get(model).id
        service = glassleaf.alternatives
        if choose:
            record = service.choose(base, attribute, choose, because)
            warning = Catalogue("en")("document.lda_warning")
            text = f"{choose} is registered as {record.id}, a draft.\n{warning}"
            print_result(asdict(record) | {"warning": warning}, text, as_json)
            return
        if show:
            search = next((s for s in service.searches(base) if s.attribute == attribute), None)
            if search is None:
                raise ParameterError("not_searched_by", model=base, attribute=attribute, searched=())
        else:
            directions = [service.expected(base)] if expected else []
            varied = without or constraints or expected or depths or lambdas
            # If nothing is varied, the attribute is left out.
            left_out = without or ([] if varied else [attribute])
            stated_constraints = filter(None, [*(constraints or ()), *directions])
            request = AlternativesRequest(
                base,
                attribute,
                without=tuple(split_list(names) for names in left_out),
                constraints=tuple(dict.fromkeys(stated_constraints)),
                depths=tuple(int(depth) for depth in _numbers("--depths", depths)),
                lambdas=_numbers("--lambdas", lambdas),
                cutoffs=_numbers("--cutoffs", cutoffs),
                tolerance=tolerance,
                reference=reference,
                cipher=cipher_named(cipher),
                key_bits=bits,
            )
            search = watched(service.start(request))
    print_result(asdict(search), _text(search), as_json)


def _numbers(flag: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in split_list(text))
    except ValueError:
        raise ParameterError("not_numbers", option=flag, text=text) from None


def _text(search: Search) -> str:
    if search.source == "validation":
        part = "validation"
    else:
        part = "test"
    lines = [
        f"{counted(len(search.tried), 'models')} by {search.attribute} ({search.party}), gaps on {search.n:,} {part} records:"
    ]
    for tried in search.tried:
        if tried.without:
            settings = [f"without {', '.join(tried.without)}"]
        else:
            settings = []
        settings += [f"depth {tried.depth}", *([] if tried.reg_lambda is None else [f"λ {tried.reg_lambda:g}"])]
        settings += [f"constraints {tried.constraints}"] if tried.constraints else []
        lines.append(f"  {tried.name} {tried.model}: {'; '.join(settings)}")
    for decided in search.decisions:
        lines += _decision(search, decided)
    if search.choice:
        lines.append(f"Chosen: {search.choice.name} by {search.choice.person}: {search.choice.reason}")
    return "\n".join(lines)


def _decision(search: Search, decided: DecidedModels) -> list[str]:
    reference = search.group_in_words(search.groups[search.reference])
    lines = [
        f"Cut-off {measured_at(decided.cutoff, decided.policy)} of {search.tried[0].model}; gaps are against {reference}:"
    ]
    lines += [f"  {_point(search, point)}" for point in decided.points]
    narrower = decided.narrower()
    others = decided.points[1:]
    compared = sum(point.gap is not None for point in others)
    if compared < len(others):
        lines.append(f"  {len(others) - compared} of {len(others)} could not be compared.")
    if compared:
        sure = sum(point.sure for point in narrower)
        answer = f"{len(narrower)} of {compared} lose at most {search.tolerance:g} of AUC and have a narrower gap"
        lines.append(f"  {answer}; {sure} of them with 95 % for all together.")
    return lines


def _point(search: Search, point: Point) -> str:
    quality = f"AUC {_figure(point.auc)} ({point.auc_change.value:+.4f})  accepted {point.accepted:.1%}"
    if point.gap is None:
        return (
            f"{point.name}: {quality}  gap not measured: fewer than 20 people decided otherwise than by another model"
        )
    if point.ratio is None:
        ratio = ""
    else:
        ratio = f"  ratio {point.ratio.value:.3f}"
    together = _together(point)
    marks = []
    for word, is_so in (("frontier", point.frontier), ("narrower", point.narrower)):
        if is_so:
            marks.append(word)
    gap = f"{search.group_in_words(point.group)} {_figure(point.gap)}{ratio}{together}"
    return f"{point.name}: {quality}  {gap}{'  ' + ', '.join(marks) if marks else ''}"


def _together(point: Point) -> str:
    """Return the intervals that hold together for all alternatives."""
    if point.auc_together is None or point.gap_together is None:
        return ""
    auc, gap = (f"{change.low:+.4f}, {change.high:+.4f}" for change in (point.auc_together, point.gap_together))
    return f"  all together: change of AUC [{auc}], of the gap's width [{gap}]"


def _figure(figure: IntervalFigure) -> str:
    return f"{figure.value:.4f} [{figure.low:.4f}, {figure.high:.4f}]"
