"""Evidence from a shell: `disparity`, `proxies`, `elderly`, `given-away`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import AsJson, Bits, Cutoff, ModelId, measured_at, open_glassleaf, print_result, watched
from backend.i18n import Catalogue, counted
from backend.services.age_check import AgeRequest
from backend.services.fairness import MIN_GROUP, DisparityRequest, ProxyRequest, apart_from_rest, members_of_rest
from backend.services.scoring import cipher_named

if TYPE_CHECKING:
    from backend.fairness.age_discrimination import AgeCheck
    from backend.fairness.disparity import Disparity
    from backend.fairness.evidence import Measured
    from backend.privacy.given_away import GivenAway
    from backend.protocols.group_sums.grouping import Group

app = typer.Typer(add_completion=False)
VERDICTS = {
    "not_negative": "elderly ages score no worse than any class of younger ones",
    "negative": "elderly ages score WORSE than a class of younger ones",
    "undecided": "it is not disclosed whether elderly ages score worse than every class of younger ones; score more people",
}


@app.command()
def disparity(
    model: ModelId,
    feature: Annotated[str, typer.Argument(help="A feature of any party.")],
    cutoff: Cutoff = None,
    reference: Annotated[
        str, typer.Option(help="Compare with this group: a code, or a bin's number; default the largest.")
    ] = "",
    together_with: Annotated[
        str,
        typer.Option(
            "--with", help="A second feature: outcomes by both together, of one party or with one of the Guest's."
        ),
    ] = "",
    bits: Bits = DisparityRequest.key_bits,
    as_json: AsJson = False,
) -> None:
    """Measure decisions by the groups of a feature, encrypted where a Host holds it; kept for findings and reports."""
    with open_glassleaf() as glassleaf:
        record = glassleaf.models.get(model)
        request = DisparityRequest(record.id, feature, cutoff, reference, key_bits=bits, crossed=together_with)
        result = watched(glassleaf.fairness.start_disparity(request))
        groups = [outcome.group for outcome in result.groups]
        disclosed = glassleaf.models.feature(record, feature)
        names = dict(zip((*groups, *result.small), glassleaf.fairness.names(record, result), strict=True))
        called = partial(_named, names={group: name.en for group, name in names.items()})
        if result.measured:
            answered_before = f", answered by the Host before, on {result.measured}"
        else:
            answered_before = ""
        cutoff_text = measured_at(result.cutoff, result.policy)
        lines = [
            f"{result.feature} ({result.party}), {counted(result.n, 'records')}, cut-off {cutoff_text}{answered_before}:"
        ]
        for outcome in result.groups:
            rates = "  ".join(f"{name} {_share(rate)}" for name, rate in outcome.rates.items())
            lines.append(f"  {called(outcome.group)}, n={outcome.group.n:,}: {rates}")
        lines += [f"  {called(group)}: suppressed, fewer than {MIN_GROUP} records" for group in result.small]
        for gap in result.gaps:
            if gap.reference is None:
                continue
            lines.append(
                f"  {gap.measure}, against {called(gap.reference)}; p that all differ by chance alone: {gap.p:.4f}"
            )
            for group_gap in gap.others:
                difference = f"difference {_share(group_gap.difference)}, ratio {_share(group_gap.ratio)}"
                lines.append(f"    {called(group_gap.group)}: {difference}, p {group_gap.p:.4f}")
        lines += _without_cutoff(result, called)
        lines += _by_cutoff(result, called)
        document = asdict(result)
        if any(group.kind == "rest" for group in groups):
            codes, without_value = members_of_rest(apart_from_rest(groups), disclosed.categories)
            document["rest"] = {"codes": codes, "without_value": without_value}
            lines.append(f"  {Catalogue('en')('document.together_note')}")
        print_result(
            document, "\n".join(lines if result.groups else [*lines, "  no two groups of 20 records"]), as_json
        )


def _without_cutoff(result: Disparity, called: Callable[[Group], str]) -> list[str]:
    """Scores against the reference group's."""
    if result.scores:
        lines = ["  scores, without a cut-off:"]
    else:
        lines = []
    return lines + [
        f"    {called(s.group)}: standardised mean difference {_share(s.smd)}, p {s.p:.4f}" for s in result.scores
    ]


def _by_cutoff(result: Disparity, called: Callable[[Group], str]) -> list[str]:
    """Adverse-impact ratios over the range of cut-offs."""
    if result.cutoffs:
        lines = ["  adverse-impact ratio by cut-off:"]
    else:
        lines = []
    for at in result.cutoffs:
        ratios = "  ".join(f"{called(group_ratio.group)} {_share(group_ratio.ratio)}" for group_ratio in at.others)
        lines.append(f"    {at.cutoff:.1%}: {ratios}")
    return lines


@app.command()
def proxies(
    model: ModelId,
    attribute: Annotated[str, typer.Argument(help="The protected attribute, of any party.")],
    bits: Bits = ProxyRequest.key_bits,
    as_json: AsJson = False,
) -> None:
    """Measure which features go with an attribute, without moving data; kept for findings and reports."""
    with open_glassleaf() as glassleaf:
        result = watched(
            glassleaf.fairness.start_proxies(ProxyRequest(glassleaf.models.get(model).id, attribute, key_bits=bits))
        )
        lines = [f"{attribute} ({result.party}), {counted(result.n, 'records')}:"]
        lines += [
            f"  {'found' if a.found else '  –  '}  {a.feature}: Cramér's V {a.v:.3f} [{a.v_low:.3f}, {a.v_high:.3f}]"
            for a in result.features
        ]
        print_result(asdict(result), lines, as_json)


@app.command()
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
    with open_glassleaf() as glassleaf:
        request = AgeRequest(glassleaf.models.get(model).id, feature, samples, cipher=cipher_named(cipher))
        check = watched(glassleaf.age_check.start(request))
    print_result(asdict(check), _text(check), as_json)


def _text(check: AgeCheck) -> str:
    lines = [
        f"{check.feature} ({check.party}), {check.n:,} test records, each scored at ages of every class: {VERDICTS[check.verdict]}.",
        f"  ages of 62 or more: mean probability {check.predicted:.4f}",
    ]
    lines += [
        f"  younger, class {gap.place} of {len(check.gaps)} (1 = youngest): {gap.predicted:.4f}; elderly {gap.worse:+.4f} "
        f"[{gap.low:+.4f}, {gap.high:+.4f}]"
        for gap in check.gaps
    ]
    return "\n".join(lines)


@app.command(name="given-away")
def given_away(
    model: ModelId,
    person: Annotated[str, typer.Option(help="An id: print that person's total too.")] = "",
    as_json: AsJson = False,
) -> None:
    """Print what the Hosts' answers have given away at most, in bits, and what one more about a model would (simulated Hosts)."""
    with open_glassleaf() as glassleaf:
        amounts = glassleaf.leakage.given_away(glassleaf.models.get(model).id, person)
    lines = [
        "Upper bounds in bits (10 single out one of 1,024 possibilities); trainings and measurements are not in them."
    ]
    print_result(
        [asdict(amount) for amount in amounts],
        "\n".join([*lines, *(_given_away(amount, person) for amount in amounts)]),
        as_json,
    )


def _given_away(amount: GivenAway, person: str) -> str:
    if amount.people is None:
        lines = [f"{amount.host}: has no limit, so nothing is counted"]
    else:
        if amount.limit is None:
            limit = "none"
        else:
            limit = f"{amount.limit:g}"
        lines = [
            f"{amount.host}: {counted(amount.people, 'people')} answered about in {counted(amount.days, 'days')}, "
            f"at most {_up(amount.largest)} about one; limit {limit}"
        ]
    if amount.person is not None:
        lines.append(f"  {person}: at most {_up(amount.person)}")
    costs = ", ".join(f"{kind} {_up(bits)}" for kind, bits in amount.costs.items()) or "nothing"
    return "\n".join([*lines, f"  one answer of this model at most: {costs}; all of them {_up(amount.capacity)}"])


def _up(bits: float | None) -> str:
    """Return an upper bound as text, rounded up."""
    return f"{math.ceil(10 * (bits or 0.0)) / 10:.1f}"


def _named(group: Group, names: Mapping[Group, str]) -> str:
    """Return what a group is called: a code or a bin by its own name, what was put together in words."""
    if group.kind in ("rest", "pair", "elderly"):
        return names[group]
    return f"{group.kind} {group.name}".strip()


def _share(rate: Measured) -> str:
    if rate.value is None:
        return "suppressed"
    if rate.low is None:
        return f"{rate.value:.3f}"
    return f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]"
