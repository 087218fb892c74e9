"""Random conversations with a toy world: after each of their moves the account is not below what the Guest learned."""

from __future__ import annotations

import gc
import json
import os
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from math import ceil

from hypothesis import HealthCheck, given, settings
from leak_crowd import Crowd
from leak_moves import CONVERSATIONS, Begun
from leak_scripts import Script
from leak_worlds import toy_floors

EXAMPLES = int(os.environ.get("LEAK_EXAMPLES") or 100)  # conversations of a kind; `make fuzz` has more
ANSWERS = 20  # that a kind has to have got at least: refusals alone prove nothing


def check_conversations(name: str) -> None:
    """Check some conversations of a kind, and that enough of their messages were answered."""
    kind = CONVERSATIONS[name]
    answers: Counter[str] = Counter()

    @settings(max_examples=ceil(EXAMPLES / kind.ways), deadline=None, suppress_health_check=list(HealthCheck))
    @given(kind.conversations)
    def converse(begun: Begun) -> None:
        crowd = Crowd(kind.world)
        said(crowd, [begun.first])
        *others, last = begun.ways
        for moves in others:
            answers.update(in_a_copy(lambda moves=moves: said(crowd, moves)))
        answers.update(said(crowd, last))

    with toy_floors():
        converse()
    for message in kind.answered:
        assert answers[message] >= ANSWERS, answers


def said(crowd: Crowd, moves: list[Script]) -> Counter[str]:
    """Say some moves to a crowd; return how many messages of which kind were answered in its conversation."""
    for move in moves:
        for message in move:
            crowd.say(message)
        verdict = crowd.verdict()
        assert verdict.holds, verdict
    assert not crowd.faults, crowd.faults
    assert not crowd.uneven(), "the account of tables that the Guest cannot tell apart differs"
    return crowd.answers


def in_a_copy(work: Callable[[], Counter[str]]) -> Counter[str]:
    """Return what work gives in a copy of this process, whose Hosts stay as they are.

    Raises
    ------
    AssertionError
        If it fails there.
    """
    told, tell = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, none of which the copy needs
        copy = os.fork()
    if copy == 0:
        gc.disable()  # it would touch, and so copy, all that is in memory
        failed = 0
        try:
            text = json.dumps(work())
        except BaseException:
            text = traceback.format_exc()
            failed = 1
        with os.fdopen(tell, "w") as pipe:
            pipe.write(text)
        os._exit(failed)
    os.close(tell)
    with os.fdopen(told) as pipe:
        text = pipe.read()
    _, status = os.waitpid(copy, 0)
    assert status == 0, text
    return Counter(json.loads(text))
