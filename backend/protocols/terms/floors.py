"""All of a Host's floors in one object: what it insists on, whatever a Guest says. Knows no record."""

from __future__ import annotations

from dataclasses import dataclass

from backend.protocols.group_sums.disclosure_bound import NAMED

SCORE_BITS = 4  # binary digits of a score after the point; with fewer a Host's dither has no room


@dataclass(frozen=True)
class Floors:
    """What a Host insists on for every kind of question.

    Attributes
    ----------
    synthetic : bool
        Whether the people are made up and need no protection: a word in the federation, never inferred from a number.
    group_size : int
        Fewest people behind any number that leaves, scores alone excepted; 0 = as each protocol has it.
    named : float
        Share of a group's people whom sums could name at most to a Guest that marks people as it likes. It holds for every sum: groups,
        cohorts and bins of a training.
    score_bits : int
        Fewest binary digits of a score in a model's layout.
    joint_share : float
        Share of the joint records that a training has to take at least.
    """

    synthetic: bool = False
    group_size: int = 0
    named: float = NAMED
    score_bits: int = SCORE_BITS
    joint_share: float = 0.5

    def people(self, min_people: int) -> int:
        """Return the smallest number of people behind a number of a protocol that itself asks for `min_people`."""
        return max(min_people, self.group_size)

    @property
    def named_share(self) -> float:
        """Return how much of who is in a group its sums may carry; 0 = not limited, as for people who need no protection."""
        return 0.0 if self.synthetic else self.named
