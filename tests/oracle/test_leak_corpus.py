"""What a Guest without manners once read from real Hosts (G1 to G14), said again to 6,561 tables: docs/leak-oracle.md."""

import pytest
from leak_crowd import Crowd
from leak_scripts import attacks_on_answers, attacks_on_training
from leak_worlds import LARGE, toy_floors

# Kind of message → how many of the corpus are answered; all others of these kinds are refused.
ANSWERED = {
    attacks_on_training: {"AskTraining": 1, "StartTraining": 1, "Gradients": 2, "MoreGradients": 2},
    attacks_on_answers: {"StatePurpose": 1, "BlankValues": 1, "DecisionVectors": 3},
}


@pytest.mark.parametrize("attacks", ANSWERED)
def test_no_known_attack_learns_more_than_was_booked_on_6561_tables(attacks):
    assert len(LARGE.tables) == 6561
    with toy_floors():
        crowd = Crowd(LARGE)
        for message in attacks(LARGE):
            crowd.say(message)
            verdict = crowd.verdict()
            assert verdict.holds, (type(message).__name__, verdict)
        assert not crowd.faults and not crowd.uneven()
    assert crowd.answers == ANSWERED[attacks]
    assert verdict.everybody > 0.0
    if attacks is attacks_on_training:
        assert verdict.named <= LARGE.floors.named
