"""A Host's side of alignment: which records both hold. Knows ids alone; no value of a record is opened."""

from __future__ import annotations

from dataclasses import dataclass
from hmac import compare_digest

from backend.errors import SecurityError
from backend.protocols.alignment.ids import knows
from backend.protocols.alignment.messages import AlignmentStarted, HiddenAnswer, HiddenIds, JointRecords, StartAlignment
from backend.protocols.alignment.methods import HostSide, host_side
from backend.protocols.terms.approvals import training_request
from backend.protocols.terms.noise import Noise
from backend.protocols.terms.permit import Ask, Asked, Kind, Permit, Reply
from backend.protocols.terms.records import Opened, Rows

IDS = {"ids": Rows(columns=())}  # everybody's id, and no column


@dataclass(frozen=True, repr=False)
class _Alignment:
    """An alignment in progress."""

    side: HostSide


def read_start(request: Asked) -> Ask:
    """Read the method of the alignment; for a training, the Host's operator is asked first.

    Raises
    ------
    SecurityError
        If no training was requested, and the conversation has no purpose that this Host has agreed to.
    """
    if request.session.purpose:
        approval = None
    else:
        approval = training_request(request)
    return Ask(opens=IDS, approval=approval)


def answer_start(permit: Permit, opened: Opened, message: StartAlignment, noise: Noise) -> Reply:
    """Begin an alignment."""
    side = host_side(message.method, opened["ids"].ids)
    permit.session.keep(_Alignment, _Alignment(side))
    yield (
        permit.guest,
        AlignmentStarted(message.conversation, side.records, side.open(message.records, message.opening)),
    )


def read_hidden(request: Asked) -> Ask:
    """Read hidden ids of the alignment in progress."""
    return Ask(subject=request.session.need(_Alignment, "no_alignment").side)


def read_joint(request: Asked) -> Ask:
    """Read which ids of the alignment in progress are joint."""
    return Ask(opens=IDS, subject=request.session.need(_Alignment, "no_alignment").side)


def answer_hidden(permit: Permit, opened: Opened, message: HiddenIds, noise: Noise) -> Reply:
    """Answer hidden ids."""
    side: HostSide = permit.ask.subject
    yield permit.guest, HiddenAnswer(message.conversation, side.take(message.piece))


def take_joint(permit: Permit, opened: Opened, message: JointRecords, noise: Noise) -> Reply:
    """Note which records are joint.

    Their number bounds what is answered about them, so records whose ids the Guest does not know do not count.
    """
    side: HostSide = permit.ask.subject
    rows = side.rows(message.joint)
    permit.session.drop(_Alignment)
    ids = opened["ids"].ids
    if not compare_digest(message.proof, knows(message.conversation, [ids[row] for row in rows.tolist()])):
        raise SecurityError("joint_ids_unproven")
    permit.session.rows = rows
    yield from ()


ALIGNMENT_KINDS = {
    StartAlignment: Kind(read_start, answer_start, begins=True),
    HiddenIds: Kind(read_hidden, answer_hidden),
    JointRecords: Kind(read_joint, take_joint),
}
