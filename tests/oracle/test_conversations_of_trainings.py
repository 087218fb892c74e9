"""Conversations of trainings, as far as the models that they give, learn no more than was booked (docs/leak-oracle.md)."""

import pytest
from leak_conversations import check_conversations
from leak_moves import TRAININGS


@pytest.mark.parametrize("name", TRAININGS)
def test_no_conversation_learns_more_than_was_booked(name):
    check_conversations(name)
