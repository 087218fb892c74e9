"""The first words on a link: which protocol, messages and agreement each side knows, and what its clock says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import msgpack
from pydantic import AfterValidator, Field, StringConstraints

from backend.errors import SecurityError
from backend.link.frames import MALFORMED, PROTOCOL, read_as
from backend.link.kinds import schemas_hash
from backend.remark import one_line

MAX_SKEW = 120.0  # seconds that two clocks may be apart
MAX_GREETING = 16_384  # bytes
CAPABILITIES = ("envelopes", "lanes")
CHECK = "check"  # of a greeting that only looks whether a link would stand
AMENDS = "amends "  # and a hash: of the agreement that the one of the greeting amends
_Text = Annotated[str, StringConstraints(max_length=300), AfterValidator(one_line)]
_Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_Number = Annotated[int, Field(ge=0, lt=10_000)]


@dataclass(frozen=True)
class Greeting:
    """What each side says of itself.

    Attributes
    ----------
    protocol : (int, int)
    schemas : str
        Hash over the message schemas.
    agreement : str
        Hash of the agreement.
    clock : float
        Seconds since 1970.
    instance : str
        Random for each start of a process: whoever starts again has forgotten its conversations.
    """

    party: _Text
    protocol: tuple[_Number, _Number]
    schemas: _Hash
    agreement: _Hash
    clock: Annotated[float, Field(ge=0, lt=1e12)]
    instance: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    capabilities: Annotated[tuple[_Text, ...], Field(max_length=32)] = CAPABILITIES


def greeting(party: str, agreement: str, instance: str, now: float, previous: str = "") -> Greeting:
    """What this side says; `previous` = the hash of the agreement that its own amends."""
    amends = (f"{AMENDS}{previous}",) if previous else ()
    return Greeting(party, PROTOCOL, schemas_hash(), agreement, now, instance, (*CAPABILITIES, *amends))


def pack_greeting(own: Greeting) -> bytes:
    """As bytes."""
    packed: bytes = msgpack.packb(asdict(own), use_bin_type=True)
    return packed


def unpack_greeting(blob: bytes) -> Greeting:
    """From bytes; raises SecurityError where they are none."""
    try:
        if len(blob) > MAX_GREETING:
            raise ValueError("length")
        return read_as(Greeting, blob)
    except MALFORMED as error:
        raise SecurityError("What came is no greeting of a Glassleaf party; it was refused.") from error


def check_greeting(mine: Greeting, theirs: Greeting, expected: str) -> None:
    """Raise SecurityError, with who has to do what, unless both sides can talk to each other.

    Parameters
    ----------
    expected : str
        The party that the certificate names.
    """
    if theirs.party != expected:
        raise SecurityError(f"{theirs.party} greets with the certificate of {expected}; it was refused.")
    check_protocol(mine, theirs)
    check_agreement(mine, theirs)
    apart = theirs.clock - mine.clock
    if abs(apart) > MAX_SKEW:
        ahead = "ahead of" if apart > 0 else "behind"
        raise SecurityError(
            f"The clock of {theirs.party} is {abs(apart):,.0f} s {ahead} that of {mine.party}; at most {MAX_SKEW:g} s are accepted. "
            "Set both by NTP."
        )


def check_agreement(mine: Greeting, theirs: Greeting) -> None:
    """Raise SecurityError unless both hold the same agreement; where one amends the other, with who has to start again."""
    if theirs.agreement == mine.agreement:
        return
    for old, new in ((mine, theirs), (theirs, mine)):
        if f"{AMENDS}{old.agreement}" in new.capabilities:
            raise SecurityError(
                f"{new.party} holds an agreement ({new.agreement[:12]}…) that amends the one of {old.party} ({old.agreement[:12]}…). "
                f"{old.party} has to take the new one, signed by all, and start again."
            )
    raise SecurityError(
        f"{theirs.party} holds another agreement ({theirs.agreement[:12]}…) than {mine.party} ({mine.agreement[:12]}…). "
        "Compare `glassleaf agreement show` on both sides."
    )


def check_protocol(mine: Greeting, theirs: Greeting) -> None:
    """Raise SecurityError, naming who has to upgrade, unless the two versions are the same or neighbours."""
    (major, minor), (their_major, their_minor) = mine.protocol, theirs.protocol
    if major != their_major or abs(minor - their_minor) > 1:
        older = mine.party if mine.protocol < theirs.protocol else theirs.party
        raise SecurityError(
            f"{theirs.party} speaks protocol {their_major}.{their_minor}, {mine.party} {major}.{minor}: {older} has to upgrade Glassleaf."
        )
    if mine.protocol == theirs.protocol and mine.schemas != theirs.schemas:
        raise SecurityError(
            f"{theirs.party} and {mine.party} speak protocol {major}.{minor} with different messages: "
            "one of them runs an altered version. Install the same release on both sides."
        )
