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
MAX_GREETING = 65_536  # bytes: of 64 parties each brings a signature of at most 1,000
CAPABILITIES = ("envelopes", "lanes")
CHECK = "check"  # of a greeting that only looks whether a link would stand
AMENDS = "amends "  # and a hash: of the agreement that the one of the greeting amends
_Text = Annotated[str, StringConstraints(max_length=300), AfterValidator(one_line)]
_Capability = Annotated[str, StringConstraints(max_length=1000), AfterValidator(one_line)]
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
    capabilities: Annotated[tuple[_Capability, ...], Field(max_length=96)] = CAPABILITIES


def greeting(party: str, agreement: str, instance: str, now: float, previous: str = "") -> Greeting:
    """What this side says; `previous` = the hash of the agreement that its own amends."""
    amends = (f"{AMENDS}{previous}",) if previous else ()
    return Greeting(party, PROTOCOL, schemas_hash(), agreement, now, instance, (*CAPABILITIES, *amends))


def pack_greeting(greeting: Greeting) -> bytes:
    """Return a greeting as bytes."""
    packed: bytes = msgpack.packb(asdict(greeting), use_bin_type=True)
    return packed


def unpack_greeting(blob: bytes) -> Greeting:
    """From bytes; raises SecurityError if they are none."""
    try:
        if len(blob) > MAX_GREETING:
            raise ValueError("length")
        return read_as(Greeting, blob)
    except MALFORMED as error:
        raise SecurityError("not_a_greeting") from error


def check_greeting(mine: Greeting, theirs: Greeting, expected: str) -> None:
    """Raise SecurityError, with who has to do what, unless both sides can talk to each other.

    Parameters
    ----------
    expected : str
        The party that the certificate names.
    """
    if theirs.party != expected:
        raise SecurityError("greeting_of_another_party", got=theirs.party, expected=expected)
    check_protocol(mine, theirs)
    check_agreement(mine, theirs)
    apart = theirs.clock - mine.clock
    if abs(apart) > MAX_SKEW:
        code = "clock_ahead" if apart > 0 else "clock_behind"
        raise SecurityError(code, party=theirs.party, own=mine.party, seconds=round(abs(apart)), limit=round(MAX_SKEW))


def check_agreement(mine: Greeting, theirs: Greeting) -> None:
    """Raise SecurityError unless both hold the same agreement; if one amends the other, with who has to start again."""
    if theirs.agreement == mine.agreement:
        return
    for old, new in ((mine, theirs), (theirs, mine)):
        if f"{AMENDS}{old.agreement}" in new.capabilities:
            raise SecurityError(
                "agreement_amended",
                newer=new.party,
                newer_hash=new.agreement[:12],
                older=old.party,
                older_hash=old.agreement[:12],
            )
    raise SecurityError(
        "agreements_differ",
        party=theirs.party,
        party_hash=theirs.agreement[:12],
        own=mine.party,
        own_hash=mine.agreement[:12],
    )


def check_protocol(mine: Greeting, theirs: Greeting) -> None:
    """Raise SecurityError, naming who has to upgrade, unless the two versions are the same or neighbours."""
    if not are_neighbours(mine.protocol, theirs.protocol):
        if mine.protocol < theirs.protocol:
            older = mine.party
        else:
            older = theirs.party
        raise SecurityError(
            "protocols_differ",
            party=theirs.party,
            party_protocol=dotted(theirs.protocol),
            own=mine.party,
            own_protocol=dotted(mine.protocol),
            older=older,
        )
    if mine.protocol == theirs.protocol and mine.schemas != theirs.schemas:
        raise SecurityError("messages_differ", party=theirs.party, own=mine.party, protocol=dotted(mine.protocol))


def are_neighbours(mine: tuple[int, int], theirs: tuple[int, int]) -> bool:
    """Return whether two versions of the protocol talk to each other: one major number, minor numbers at most one apart."""
    return mine[0] == theirs[0] and abs(mine[1] - theirs[1]) <= 1


def dotted(protocol: tuple[int, int]) -> str:
    """Return a version of the protocol as people write it: 1.0."""
    return f"{protocol[0]}.{protocol[1]}"
