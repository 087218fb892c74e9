"""Random conversations with a toy world: after each of its moves the account is not below what the Guest learned."""

from __future__ import annotations

import os
from collections import Counter

from hypothesis import HealthCheck, given, settings
from leak_crowd import Crowd
from leak_moves import CONVERSATIONS
from leak_scripts import Script
from leak_worlds import toy_floors

EXAMPLES = int(os.environ.get("LEAK_EXAMPLES") or 40)  # conversations of a kind; of some that take long, a share of it
ANSWERS = 20  # that a kind has to have got at least: refusals alone prove nothing


def check_conversations(name: str) -> None:
    """Check some conversations of a kind, and that enough of their messages were answered."""
    kind = CONVERSATIONS[name]
    answers: Counter[str] = Counter()

    @settings(max_examples=max(1, round(kind.share * EXAMPLES)), deadline=None, suppress_health_check=list(HealthCheck))
    @given(kind.conversations)
    def converse(conversation: list[Script]) -> None:
        crowd = Crowd(kind.world)
        for move in conversation:
            for message in move:
                crowd.say(message)
            verdict = crowd.verdict()
            assert verdict.holds, verdict
        assert not crowd.faults, crowd.faults
        assert not crowd.uneven(), "the account of tables that the Guest cannot tell apart differs"
        answers.update(crowd.answers)

    with toy_floors():
        converse()
    for message in kind.answered:
        assert answers[message] >= ANSWERS, answers
