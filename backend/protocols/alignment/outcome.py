"""Which ways to align there are, and how an alignment went. Loads none of them: records of models name both."""

from __future__ import annotations

from dataclasses import dataclass

METHODS = ("dh", "bloom")


@dataclass(frozen=True)
class Alignment:
    """How an alignment went, as the Guest may show it.

    Attributes
    ----------
    method : {"dh", "bloom"}
    records : dict of str to int
        Party → records it brought.
    held : dict of str to int
        Host → the Guest's records that it holds too.
    joint : int
        Records that every party holds.
    """

    method: str
    records: dict[str, int]
    held: dict[str, int]
    joint: int
    seconds: float
