"""Every message that may leave a party: a frozen dataclass, its schema, and who can read what in it.

A message travels as msgpack with its class's schema, never as pickle. `HOLDS` and `READABLE_BY` are what the transcript and
`docs/threat-model.md` say about a class; a test holds the three together.
"""

from backend.protocols.messages.alignment import AlignmentStarted, HiddenAnswer, HiddenIds, JointRecords, StartAlignment
from backend.protocols.messages.audit import AskAuditHead, AuditHead, KeepAuditHead
from backend.protocols.messages.conversation import EndConversation, OfferKey, Refusal
from backend.protocols.messages.groups import AskGroupPairs, AskGroupSums, GroupPairs, GroupPairsSent, GroupSums
from backend.protocols.messages.message import Message
from backend.protocols.messages.packed import chunks, from_bitmap, from_numbers, to_bitmap, to_numbers
from backend.protocols.messages.reasons import (
    AskCohort,
    AskReasons,
    ChooseLabels,
    ContributionSums,
    GarbledRanking,
    MaskedContributions,
    OpenRanking,
    ReasonTerms,
)
from backend.protocols.messages.scoring import (
    AgesDealt,
    DealAges,
    DealValues,
    DecisionVectors,
    EncryptedScores,
    HeldRecords,
    MoreVectors,
)
from backend.protocols.messages.training import (
    AskBinSums,
    BinSums,
    FeatureBins,
    Gradients,
    KeepModel,
    ModelKept,
    Ranks,
    SplitRows,
    StartRanks,
    StartTraining,
    TakeRankSplits,
    TakeSplit,
)
from backend.protocols.messages.walking import AskCandidates, AskWalk, CandidateLeaves, PassOn, StartWalk, Walked
from backend.protocols.messages.wire import MAX_MESSAGE, MESSAGES, decode, encode

__all__ = [
    "MAX_MESSAGE",
    "MESSAGES",
    "AgesDealt",
    "AlignmentStarted",
    "AskAuditHead",
    "AskBinSums",
    "AskCandidates",
    "AskCohort",
    "AskGroupPairs",
    "AskGroupSums",
    "AskReasons",
    "AskWalk",
    "AuditHead",
    "BinSums",
    "CandidateLeaves",
    "ChooseLabels",
    "ContributionSums",
    "DealAges",
    "DealValues",
    "DecisionVectors",
    "EncryptedScores",
    "EndConversation",
    "FeatureBins",
    "GarbledRanking",
    "Gradients",
    "GroupPairs",
    "GroupPairsSent",
    "GroupSums",
    "HeldRecords",
    "HiddenAnswer",
    "HiddenIds",
    "JointRecords",
    "KeepAuditHead",
    "KeepModel",
    "MaskedContributions",
    "Message",
    "ModelKept",
    "MoreVectors",
    "OfferKey",
    "OpenRanking",
    "PassOn",
    "Ranks",
    "ReasonTerms",
    "Refusal",
    "SplitRows",
    "StartAlignment",
    "StartRanks",
    "StartTraining",
    "StartWalk",
    "TakeRankSplits",
    "TakeSplit",
    "Walked",
    "chunks",
    "decode",
    "encode",
    "from_bitmap",
    "from_numbers",
    "to_bitmap",
    "to_numbers",
]
