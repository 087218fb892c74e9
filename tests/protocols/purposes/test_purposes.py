"""A Host's policy decides what is measured with it; what it has not agreed to, it does not answer."""

import pytest
from actors import running
from refused import raises
from worlds import GUEST, random_world

from backend.data.federation import MEASURES
from backend.errors import NotAgreed, SecurityError
from backend.protocols.group_sums.messages import AskDistinct, AskGroupPairs, AskGroupSums, GroupPairs, MoreGroupPairs
from backend.protocols.purposes.messages import StatePurpose
from backend.protocols.purposes.protocol import ADMITS, MEASURING, check_purpose, state_purpose
from backend.protocols.scoring.messages import AssignAges, BlankValues, PermuteValues
from backend.protocols.transport.channel import Session
from backend.protocols.transport.message import MESSAGES


def stated(purpose, *, simulated=True, measures=None, first="host0"):
    """State a purpose to a world's Hosts, of which the first has a policy."""
    world = random_world(1, 2)
    options = {first: {"measures": measures}}
    with running(world, simulated=simulated, options=options) as (_, network, _):
        session = Session(network.end(GUEST), "c1", tuple(world.hosts), timeout=120)
        try:
            state_purpose(session, purpose)
        finally:
            session.close()


def test_a_simulated_host_agrees_to_everything_and_a_real_one_to_nothing():
    for purpose in MEASURES:
        stated(purpose)
    with raises(NotAgreed, "not_agreed"):
        stated("disparity", simulated=False)


def test_a_host_agrees_to_what_its_policy_names():
    stated("curves", measures=("curves", "age"))
    with pytest.raises(NotAgreed) as refused:
        stated("disparity", measures=("curves", "age"))
    assert (refused.value.host, refused.value.purpose) == ("host0", "disparity")


def test_a_purpose_that_nobody_knows_is_refused():
    with raises(SecurityError, "unknown_purpose"):
        stated("gossip")


@pytest.mark.parametrize("purpose", MEASURES)
def test_each_purpose_admits_its_kinds_of_message_and_no_others(purpose):
    for kind in MEASURING:
        message = kind.__new__(kind)
        if kind in ADMITS[purpose]:
            check_purpose(message, purpose)
        else:
            with raises(SecurityError, "kind_not_agreed"):
                check_purpose(message, purpose)
        with raises(SecurityError, "kind_not_agreed"):
            check_purpose(message, "")


def test_all_that_sums_groups_or_moves_values_is_measuring():
    sums = {GroupPairs, MoreGroupPairs, AskGroupSums, AskGroupPairs, AskDistinct}
    assert {*sums, AssignAges, PermuteValues, BlankValues} == MEASURING
    assert {"StatePurpose", "PurposeAnswered"} <= set(MESSAGES)


def test_a_host_with_a_policy_answers_no_measurement_without_its_purpose():
    world = random_world(1, 1)
    (host,) = world.hosts
    asked = AskGroupSums("c1", GUEST, ("x",), 4)
    with running(world, options={host: {"measures": ("curves",)}}) as (_, _, served):
        party = served.hosts[host]
        for purpose, reason in (
            ("", "this Host has not agreed to"),
            ("disparity", "this Host has not agreed to"),
            ("curves", "before ids"),
        ):
            if purpose:
                list(party.answer(GUEST, StatePurpose("c1", purpose)))
            with pytest.raises(SecurityError, match=reason if purpose else "has not agreed to"):
                list(party.answer(GUEST, asked))
        with raises(SecurityError, "kind_not_agreed"):
            list(party.answer(GUEST, PermuteValues("c1", ("p1",), ("x",))))
        # a purpose that is refused takes the place of the one that was agreed to
        list(party.answer(GUEST, StatePurpose("c1", "proxies")))
        with raises(SecurityError, "kind_not_agreed"):
            list(party.answer(GUEST, asked))
