"""The verdict of one model from everything that is known about it."""

from __future__ import annotations

from collections.abc import Iterable

from backend.verdict.facts import Fact, Verdict, verdict_of
from backend.verdict.known import Known
from backend.verdict.model import model_facts
from backend.verdict.outcomes import outcome_facts
from backend.verdict.rules import rule_facts


def judge(known: Known, more: Iterable[Fact] = ()) -> Verdict:
    """Return the verdict of a model.

    Parameters
    ----------
    more : iterable of Fact
        What it changed against the model that it replaces.
    """
    return verdict_of(known.record.id, (*rule_facts(known), *outcome_facts(known), *model_facts(known), *more))
