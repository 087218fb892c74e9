"""The verdict of one model from everything that is known about it."""

from __future__ import annotations

from collections.abc import Iterable

from backend.reports.verdict.facts import Fact, Verdict, verdict_of
from backend.reports.verdict.known import Known
from backend.reports.verdict.model import model_facts
from backend.reports.verdict.outcomes import outcome_facts
from backend.reports.verdict.rules import rule_facts


def judge(model: Known, more: Iterable[Fact] = ()) -> Verdict:
    """Return the verdict of a model.

    Parameters
    ----------
    more : iterable of Fact
        What it changed against the model that it replaces.
    """
    return verdict_of(model.record.id, (*rule_facts(model), *outcome_facts(model), *model_facts(model), *more))
