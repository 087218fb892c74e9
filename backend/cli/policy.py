"""`policy`: the line that a model decides by, proposed by one person and approved by another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.cli.output import AsJson, ModelId, day_of, open_glassleaf, print_result
from backend.errors import ParameterError
from backend.i18n import counted
from backend.services.policies import MARKS, PointScale, Policy, Treatments
from backend.services.roles import OPERATOR, REGULATOR, ROLES

if TYPE_CHECKING:
    from backend.services.policies import PolicyStanding, PolicyVersion

Person = Annotated[str, typer.Option("--as", help="Who proposes or approves (default: the system's user).")]
Role = Annotated[str, typer.Option(help=f"In which role: {', '.join(ROLES)}. Nobody is authenticated here.")]
NOBODY_SET = "Nobody has set a line: the base rate decides until a policy is approved (docs/decide.md)."
app = typer.Typer(
    add_completion=False, name="policy", no_args_is_help=True, help="The line that a model decides by (docs/decide.md)."
)


@app.command()
def show(model: ModelId = "latest", as_json: AsJson = False) -> None:
    """Show the policy that holds today, who set it, and what waits for approval."""
    with open_glassleaf() as glassleaf:
        standing = glassleaf.policies.standing(model)
    print_result(document_of(standing), _standing_text(standing), as_json)


@app.command()
def propose(
    model: ModelId,
    because: Annotated[str, typer.Option(help="The reason, 10 characters or more.")],
    decline: Annotated[
        float | None, typer.Option(help="Decline at or above this probability (a number: from this value).")
    ] = None,
    refer: Annotated[
        float | None, typer.Option(help="Refer to a person from here up to the line for declining.")
    ] = None,
    declines: Annotated[str, typer.Option(help="Of a number: decline above or below the line.")] = "above",
    points: Annotated[
        str, typer.Option(help="Points as BASE,ODDS,DOUBLE: 600,50,20 = 600 points at 50 to 1, 20 double the odds.")
    ] = "",
    treat: Annotated[
        list[str] | None,
        typer.Option(help=f"MARK=score, refer or refuse; marks: {', '.join(MARKS)}. Repeatable."),
    ] = None,
    owner: Annotated[str, typer.Option(help="Who answers for the policy (default: who proposes it).")] = "",
    first_day: Annotated[str, typer.Option("--from", help="First day, UTC, as 2027-06-30 (default: today).")] = "",
    person: Person = "",
    role: Role = OPERATOR,
    as_json: AsJson = False,
) -> None:
    """Propose a policy; it holds once a second person has approved it and its first day has come."""
    with open_glassleaf() as glassleaf:
        acting = glassleaf.acting(person, role)
        record = acting.models.get(model)
        if declines not in ("above", "below"):
            raise ParameterError("unknown_choice", option="--declines", value=declines, choices=("above", "below"))
        policy = Policy(
            task=record.task,
            decline_at=decline,
            refer_at=refer,
            declines="above" if declines == "above" else "below",
            points=_points(points),
            treatments=_treatments(treat or []),
        )
        day = day_of(first_day) if first_day else None
        acting.policies.propose(record.id, policy, owner=owner, reason=because, first_day=day)
        standing = acting.policies.standing(record.id)
        warnings = acting.policies.warnings(record.id, policy)
    lines = [f"Warning: {warning.sentence()}" for warning in warnings]
    print_result(document_of(standing), [*lines, *_standing_text(standing)], as_json)


@app.command()
def approve(
    model: ModelId,
    version: Annotated[int, typer.Option(help="Which version (default: the one that waits).")] = 0,
    because: Annotated[str, typer.Option(help="What the second person says.")] = "",
    person: Person = "",
    role: Role = REGULATOR,
    as_json: AsJson = False,
) -> None:
    """Approve the policy that waits, as a second person: not who proposed or owns it."""
    with open_glassleaf() as glassleaf:
        acting = glassleaf.acting(person, role)
        acting.policies.approve(model, version=version, reason=because)
        standing = acting.policies.standing(model)
    print_result(document_of(standing), _standing_text(standing), as_json)


@app.command()
def history(model: ModelId = "latest", as_json: AsJson = False) -> None:
    """List every version that was proposed: its line, who proposed and approved it, when and why."""
    with open_glassleaf() as glassleaf:
        versions = glassleaf.policies.history(model)
    lines = [_version_text(version) for version in versions]
    print_result([version_document(version) for version in versions], lines or [NOBODY_SET], as_json)


def _points(text: str) -> PointScale | None:
    if not text:
        return None
    parts = text.split(",")
    try:
        base, odds, double = parts
        return PointScale(int(base), float(odds), int(double))
    except ValueError:
        raise ParameterError("points_not_readable", text=text) from None


def _treatments(wishes: list[str]) -> Treatments:
    treatments: dict[str, Any] = {}
    for wish in wishes:
        mark, _, treatment = wish.partition("=")
        if mark not in MARKS:
            raise ParameterError("unknown_choice", option="--treat", value=wish, choices=MARKS)
        treatments[mark] = treatment
    return Treatments(**treatments)


def policy_text(policy: Policy) -> str:
    """Return a policy on one line."""
    number = policy.task == "number"
    lines = []
    if policy.refer_at is not None:
        lines.append(f"refer {_at(policy.refer_at, number, policy.task == 'classes', policy.declines)}")
    if policy.decline_at is not None:
        lines.append(f"decline {_at(policy.decline_at, number, False, policy.declines)}")
    if policy.points is not None:
        scale = policy.points
        odds = f"{scale.base_odds:g} to 1"
        lines.append(
            f"{counted(scale.base_points, 'points')} at {odds}, {scale.double} double the odds (rounded, halves up)"
        )
    unusual = []
    for mark in MARKS:
        if policy.treatments.of(mark) != "score":
            unusual.append(f"{mark} {policy.treatments.of(mark)}")
    if unusual:
        lines.append(f"unusual: {', '.join(unusual)}")
    return "; ".join(lines) or "no line"


def _at(line: float, number: bool, below: bool, declines: str) -> str:
    if below:
        return f"below {line:.1%}"
    if number:
        return f"from {line:g} {'up' if declines == 'above' else 'down'}"
    return f"at {line:.1%} or above"


def policy_line(policy: Policy) -> str:
    """Return which policy decided, for the end of a result."""
    if not policy.is_set:
        if policy.decline_at is None:
            line = ""
        else:
            line = f" Declined at {policy.decline_at:.1%} or above."
        return f"{NOBODY_SET}{line}"
    return f"Decided by version {policy.version} of the policy: {policy_text(policy)}."


def _standing_text(standing: PolicyStanding) -> list[str]:
    lines = [f"{standing.model_id}: {policy_line(standing.policy)}"]
    if standing.version is not None:
        lines.append(_version_text(standing.version))
    if standing.proposed is not None:
        lines.append(f"Waits for a second person: {_version_text(standing.proposed)}")
    lines += [f"Warning: {warning.sentence()}" for warning in standing.warnings]
    return lines


def _version_text(version: PolicyVersion) -> str:
    if version.approved:
        approved = f", approved by {version.approved_by} on {version.approved[:10]}"
    else:
        approved = ""
    return (
        f"version {version.version} ({version.state}), from {version.first_day}: {policy_text(version.policy)}; "
        f"owner {version.owner}, proposed by {version.proposed_by} on {version.proposed[:10]}{approved}: {version.reason}"
    )


def version_document(version: PolicyVersion) -> dict[str, Any]:
    """Return a version for JSON."""
    fields = ("version", "state", "owner", "reason", "first_day", "proposed_by", "proposed", "approved_by", "approved")
    return {**version.policy.plain(), **{name: getattr(version, name) for name in fields}, "note": version.note}


def document_of(standing: PolicyStanding) -> dict[str, Any]:
    """Return the policy that holds, and what waits, for JSON."""
    return {
        "model": standing.model_id,
        "set": standing.policy.is_set,
        "policy": standing.policy.plain(),
        "version": None if standing.version is None else version_document(standing.version),
        "proposed": None if standing.proposed is None else version_document(standing.proposed),
        "warnings": [warning.sentence() for warning in standing.warnings],
    }
