"""Conversations about names of reasons, cohorts and groups, learn no more than was booked (docs/leak-oracle.md)."""

import pytest
from leak_conversations import check_conversations
from leak_moves import SUMS_AND_NAMES


@pytest.mark.parametrize("name", SUMS_AND_NAMES)
def test_no_conversation_learns_more_than_was_booked(name):
    check_conversations(name)
