"""A Host's values of some features, permuted among some people by a permutation that it draws and keeps to itself."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.scoring.messages import PermuteValues

LEAST = 50  # people among whom values are dealt, at least


@dataclass(frozen=True)
class PermutedValues:
    """Whose values stand in for whose, for one conversation; of ages, several people may have the same giver.

    Attributes
    ----------
    features : tuple of str
        PermutedValues together: a person gets all of them from the same other person.
    givers : mapping of str to str
        Id → the id whose values it gets; of everybody who was named and has a record here.
    """

    features: tuple[str, ...]
    givers: Mapping[str, str] = field(repr=False)

    def of(self, ids: Sequence[str], held: Sequence[bool]) -> tuple[str, ...]:
        """Who gives to each of some people; those without a record here stay without.

        Raises
        ------
        SecurityError
            A person with a record was not among those whom values were dealt to.
        """
        if any(known and i not in self.givers for i, known in zip(ids, held, strict=True)):
            raise SecurityError("Values were permuted among other people than those to be scored; ask about all.")
        return tuple(self.givers.get(i, i) for i in ids)

    def names(self, ids: Sequence[str], used: Collection[str]) -> tuple[str, ...]:
        """What tells people apart by whose values of the `used` features they get: their own id where nothing of that is dealt.

        Who is asked about again with the same values is the same again, so that no number that is drawn for them averages out.
        """
        moved = sorted(set(self.features) & set(used))
        givers = self.of(ids, [False] * len(ids))
        return tuple(
            i if not moved or giver == i else "\0".join((i, giver, *moved))
            for i, giver in zip(ids, givers, strict=True)
        )


def deal(table: PartyTable, asked: PermuteValues) -> PermutedValues:
    """Draw a permutation of the people who have a record, uniformly and from the operating system's randomness.

    Raises
    ------
    SecurityError
        A feature is none of this Host's, or fewer than :data:`LEAST` of the people have a record here.
    """
    if not asked.features or not set(asked.features) <= set(table.columns):
        raise SecurityError("Values were to be permuted of a feature that is none of this Host's.")
    takers = takers_of(table, asked.ids)
    givers = list(takers)
    secrets.SystemRandom().shuffle(givers)
    return PermutedValues(asked.features, dict(zip(takers, givers, strict=True)))


def takers_of(table: PartyTable, ids: Sequence[str]) -> list[str]:
    """Those of some people who have a record, each once.

    Raises
    ------
    SecurityError
        They are fewer than :data:`LEAST`.
    """
    takers = [i for i in dict.fromkeys(ids) if i in table.row_of]
    if len(takers) < LEAST:
        raise SecurityError(
            f"Values were to be permuted among {len(takers)} people with a record here; {LEAST} or more are needed."
        )
    return takers
