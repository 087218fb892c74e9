"""Conversations for scores, with the Host's own values or others, learn no more than was booked (docs/leak-oracle.md)."""

import pytest
from leak_conversations import check_conversations
from leak_moves import SCORES


@pytest.mark.parametrize("name", SCORES)
def test_no_conversation_learns_more_than_was_booked(name):
    check_conversations(name)
