"""What one run disclosed to whom, from its transcript: field by field, and as the paper's Table II. Knows no message's content.

What a class of messages discloses is declared with the class (:mod:`backend.protocols.transport.catalogue`); here it is listed by party.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from backend.protocols.transport.message import MESSAGES, Message
from backend.protocols.transport.transcript import TranscriptEntry

# the one field of a class that is encrypted under the Guest's key; every other field travels in plaintext
CIPHERTEXTS = {
    "Gradients": "pairs",
    "MoreGradients": "pairs",
    "NodePairs": "pairs",
    "BinSums": "sums",
    "DecisionVectors": "vectors",
    "MoreVectors": "vectors",
    "EncryptedScores": "scores",
    "GroupPairs": "pairs",
    "MoreGroupPairs": "pairs",
    "GroupSums": "sums",
    "ReasonTerms": "terms",
    "MaskedContributions": "shares",
    "ContributionSums": "sums",
}
# in plaintext they disclose leaf weights and the sender's candidate leaves
VECTORS = {"DecisionVectors", "MoreVectors"}
PATHS = {"Walked", "CandidateLeaves", "PassOn"}  # disclose to the Guest where samples go at a Host's splits
VISITS = {"AskWalk", "PassOn"}  # disclose to a Host which samples reached its splits
IDS = {"DecisionVectors", "StartWalk", "AskCandidates", "AskReasons", "AskCohort"}  # disclose to a Host who is scored
PLAIN = "none"  # the scheme of a run without encryption

Extent = Literal["yes", "no", "shape", "own", "all", "some", "complete", "answers", "met", "sent"]


@dataclass(frozen=True)
class DisclosedField:
    """One field of one class of messages as it reached a party.

    Attributes
    ----------
    party, sender : str
        Who got it, from whom.
    kind, field : str
        Class of the message, and its field.
    key_of : str
        Whose key opens it; empty for plaintext.
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
        To what extent the Guest has it.
    hosts : dict of str to str
        The same for every Host.
    """

    what: str
    group: Literal["model", "data", "run"]
    guest: Extent
    hosts: dict[str, Extent]


def lines(transcript: Sequence[TranscriptEntry], guest: str, scheme: str) -> tuple[DisclosedField, ...]:
    """Return the fields that every party received, in the order of first receipt; the conversation's name is left out.

    Parameters
    ----------
    scheme : str
        The cipher of the run; with "none" nothing is encrypted.
    """
    counts = Counter((entry.receiver, entry.sender, entry.kind) for entry in transcript)
    shared = {field.name for field in fields(Message)}
    out = []
    for (party, sender, kind), messages in counts.items():
        names = [field.name for field in fields(MESSAGES[kind])]
        for name in names:
            if name in shared:
                continue
            encrypted = CIPHERTEXTS.get(kind) == name and scheme != PLAIN
            key_of = guest if encrypted else ""
            readable = not encrypted or party == guest
            out.append(DisclosedField(party, sender, kind, name, messages, encrypted, key_of, readable))
    return tuple(out)


def table_two(
    transcript: Sequence[TranscriptEntry],
    guest: str,
    hosts: Sequence[str],
    scheme: str,
    *,
    by_tree: bool = False,
    asked_before: Collection[str] = (),
) -> tuple[PartyDisclosure, ...]:
    """Fed-EINI, Table II, for the protocol that was run.

    What parties hold before any scoring is the same for every protocol: the Guest its partial model, a Host the trees' shape and its
    own splits, all of them the feature dictionary (the paper gives it to the Guest alone). Path, score and ids follow from the messages
    that reached each party.

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
    asked_before : collection of str
        Hosts that got decision vectors in an earlier attempt whose answers the Guest's journal kept.
    """
    received = {}
    for party in (guest, *hosts):
        received[party] = {entry.kind for entry in transcript if entry.receiver == party}
    for host in asked_before:
        received[host].add("DecisionVectors")
    path_at_guest: Extent = "complete" if received[guest] & PATHS else "answers" if by_tree else "own"
    plaintext = {host for host in hosts if scheme == PLAIN and received[host] & VECTORS}

    def each(extent: Extent) -> dict[str, Extent]:
        return dict.fromkeys(hosts, extent)

    def path_at(host: str) -> Extent:
        # beyond its own answers: who came to its splits, or which leaves the sender had left
        if received[host] & VISITS:
            return "met"
        if host in plaintext:
            return "sent"
        return "own"

    return (
        PartyDisclosure("structure", "model", "yes", each("shape")),
        PartyDisclosure("leaf_weights", "model", "yes", {h: "sent" if h in plaintext else "no" for h in hosts}),
        PartyDisclosure("parameters", "model", "yes", each("some")),
        PartyDisclosure("splits", "model", "own", each("own")),
        PartyDisclosure("local_data", "data", "own", each("own")),
        PartyDisclosure("feature_count", "data", "all", each("all")),
        PartyDisclosure("meanings", "data", "all", each("all")),
        PartyDisclosure("path", "data", path_at_guest, {h: path_at(h) for h in hosts}),
        PartyDisclosure("score", "run", "yes", each("no")),
        PartyDisclosure("ids", "run", "yes", {h: "yes" if received[h] & IDS else "no" for h in hosts}),
    )
