"""Who saw what in one run, out of its transcript: field by field, and as the paper's Table II. Knows no message's content.

What a class of message can tell stands with the class (:mod:`backend.protocols.transport.catalogue`); here it is laid out for each party.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

from backend.protocols.transport.channel import TranscriptEntry
from backend.protocols.transport.message import MESSAGES, Message

CIPHERTEXTS = {
    "Gradients": "pairs",
    "BinSums": "sums",
    "DecisionVectors": "vectors",
    "MoreVectors": "vectors",
    "EncryptedScores": "scores",
    "GroupPairs": "pairs",
    "GroupSums": "sums",
    "ReasonTerms": "terms",
    "MaskedContributions": "shares",
    "ContributionSums": "sums",
}  # the one field of a class that is encrypted under the Guest's key; every other field travels as it is
PATHS = ("Walked", "CandidateLeaves", "PassOn")  # tell the Guest where samples go at a Host's splits
MET = ("AskWalk", "PassOn")  # tell a Host which samples have come to its splits
NAMED = ("DecisionVectors", "StartWalk", "AskCandidates", "AskReasons", "AskCohort")  # tell a Host who is scored
PLAIN = "none"  # the scheme of a run without encryption

Told = Literal["yes", "no", "shape", "own", "all", "some", "complete", "answers", "met", "sent"]


@dataclass(frozen=True)
class DisclosedField:
    """One field of one class of messages as it reached a party.

    Attributes
    ----------
    party, sender : str
        Who got it, from whom.
    kind, field : str
        Class of the message, and its field.
    messages : int
    encrypted : bool
    key_of : str
        Whose key opens it; empty for plain text.
    readable : bool
        Whether the party that got it can read it.
    """

    party: str
    sender: str
    kind: str
    field: str
    messages: int
    encrypted: bool
    key_of: str
    readable: bool


@dataclass(frozen=True)
class PartyDisclosure:
    """One line of Table II.

    Attributes
    ----------
    what : str
        Which information: ``structure``, ``leaf_weights``, ``parameters``, ``splits``, ``local_data``, ``feature_count``,
        ``meanings``, ``path`` as in the paper, then ``score`` and ``ids``.
    group : {"model", "data", "run"}
        The paper's two halves, and what is not in the paper.
    guest : str
        What the Guest has of it.
    hosts : dict of str to str
        The same for every Host.
    """

    what: str
    group: Literal["model", "data", "run"]
    guest: Told
    hosts: dict[str, Told]


def lines(transcript: Sequence[TranscriptEntry], guest: str, scheme: str) -> tuple[DisclosedField, ...]:
    """What every party got, in the order in which it first came; the conversation's name is left out.

    Parameters
    ----------
    scheme : str
        The cipher of the run; with "none" what should be encrypted travels in the clear.
    """
    found = Counter((entry.receiver, entry.sender, entry.kind) for entry in transcript)
    shared = {field.name for field in fields(Message)}
    return tuple(
        _line(party, sender, kind, field.name, count, guest, scheme)
        for (party, sender, kind), count in found.items()
        for field in fields(MESSAGES[kind])
        if field.name not in shared
    )


def _line(party: str, sender: str, kind: str, field: str, messages: int, guest: str, scheme: str) -> DisclosedField:
    encrypted = CIPHERTEXTS.get(kind) == field and scheme != PLAIN
    return DisclosedField(
        party, sender, kind, field, messages, encrypted, guest if encrypted else "", not encrypted or party == guest
    )


def table_two(
    transcript: Sequence[TranscriptEntry], guest: str, hosts: Sequence[str], scheme: str, *, by_tree: bool = False
) -> tuple[PartyDisclosure, ...]:
    """Fed-EINI, Table II, for the protocol that was run.

    What parties hold before any scoring is the same for every protocol: the Guest its half of the model, a Host the trees' shape and
    its own splits, all of them the feature dictionary (the paper gives it to the Guest alone). Path, score and ids are read off the
    messages that reached each party.

    Parameters
    ----------
    transcript : sequence of TranscriptEntry
        Of one scoring, by any protocol.
    hosts : sequence of str
        The model's.
    scheme : str
        The cipher of the run, "none" for plaintext.
    by_tree : bool
        Whether the Guest decrypts the answer of every tree (a median), not their sum.
    """
    got = {party: {entry.kind for entry in transcript if entry.receiver == party} for party in (guest, *hosts)}
    opened = scheme == PLAIN
    way: Told = "complete" if got[guest] & {*PATHS} else "answers" if by_tree else "own"

    def each(told: Told) -> dict[str, Told]:
        return dict.fromkeys(hosts, told)

    return (
        PartyDisclosure("structure", "model", "yes", each("shape")),
        PartyDisclosure(
            "leaf_weights", "model", "yes", {h: "sent" if opened and _vectors(got[h]) else "no" for h in hosts}
        ),
        PartyDisclosure("parameters", "model", "yes", each("some")),
        PartyDisclosure("splits", "model", "own", each("own")),
        PartyDisclosure("local_data", "data", "own", each("own")),
        PartyDisclosure("feature_count", "data", "all", each("all")),
        PartyDisclosure("meanings", "data", "all", each("all")),
        PartyDisclosure("path", "data", way, {h: _path(got[h], opened) for h in hosts}),
        PartyDisclosure("score", "run", "yes", each("no")),
        PartyDisclosure("ids", "run", "yes", {h: "yes" if got[h] & {*NAMED} else "no" for h in hosts}),
    )


def _vectors(kinds: set[str]) -> bool:
    return bool(kinds & {"DecisionVectors", "MoreVectors"})


def _path(kinds: set[str], opened: bool) -> Told:
    """What a Host knows of the way beyond its own answers: who came to its splits, or which leaves the sender had left."""
    if kinds & {*MET}:
        return "met"
    return "sent" if opened and _vectors(kinds) else "own"
