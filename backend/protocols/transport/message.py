"""What every message has in common, and which kinds there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

MESSAGES: dict[str, type[Message]] = {}
"""Name on the wire → class, of every message module that was imported; what is not in it is refused."""


@dataclass(frozen=True)
class Message:
    """What every message carries: the conversation it belongs to.

    A kind of message is a frozen dataclass that derives from this one and says what it `HOLDS` and who can read it
    (`READABLE_BY`); the transcript and docs/threat-model.md show both, and a test holds the three together.
    """

    HOLDS: ClassVar[str] = ""
    READABLE_BY: ClassVar[str] = ""
    conversation: str

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__name__ in MESSAGES:
            raise TypeError(f"Two kinds of message are called {cls.__name__}; the name is what travels on the wire.")
        MESSAGES[cls.__name__] = cls
