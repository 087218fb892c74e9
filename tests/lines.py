"""A line that a test sets: proposed by one person, approved by another, nobody treated otherwise."""

from backend.policy.bands import MARKS, Policy, Treatments
from backend.services import Glassleaf
from backend.services.roles import ANALYST, REGULATOR

ALL_SCORED = Treatments(**dict.fromkeys(MARKS, "score"))


def decide_at(glassleaf: Glassleaf, line: float, model: str = "latest", **fields: object) -> Policy:
    """Have the model decide at a line from now on, unless it does; return the policy that holds."""
    model_id = glassleaf.models.get(model).id
    wanted = Policy(decline_at=line, **{"treatments": ALL_SCORED} | fields)  # type: ignore[arg-type]
    held = glassleaf.policies.in_force(model_id)
    if held.is_set and held.plain() | {"version": 0} == wanted.plain():
        return held
    proposing = glassleaf.acting("ana", ANALYST).policies
    proposing.propose(model_id, wanted, owner="olga", reason="set by a test of decisions")
    glassleaf.acting("rita", REGULATOR).policies.approve(model_id)
    return glassleaf.policies.in_force(model_id)
