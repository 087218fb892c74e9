"""A Host's side of sealed models. The Host decides: it opens one within what its operator has approved, and gives none of it away before.

The gate refuses every question about a sealed model (:meth:`backend.protocols.terms.gate.Gate.open`), except if a simulation measures
without counting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256

from backend.errors import SecurityError
from backend.protocols.approvals.messages import NOT_MEASURED
from backend.protocols.host_state import HostModels
from backend.protocols.scoring.dither import check_layout
from backend.protocols.sealing.messages import ReleaseModel
from backend.protocols.terms.approvals import training_request
from backend.protocols.terms.noise import Noise
from backend.protocols.terms.permit import Ask, Asked, Kind, Kinds, Permit
from backend.protocols.terms.records import Opened
from backend.protocols.training.messages import ModelKept
from backend.protocols.transport.message import Message
from backend.trees.ensemble import HostModel, Layout
from backend.trees.serialization import dump_host


@dataclass(frozen=True, repr=False)
class _Release:
    """A half as it will be kept."""

    half: HostModel


def read_release(request: Asked) -> Ask:
    """Read which sealed model is to be opened.

    Raises
    ------
    SecurityError
        If it is not sealed or not this Guest's, more scores fit one path than its training's approval allows, or its scores would be
        finer than in training.
    """
    message: ReleaseModel = request.message
    approval = training_request(request)
    models = request.models
    models.check_owner(message.model_id, request.sender)
    models.check_owner(message.released_as, request.sender)
    if models.is_open(message.released_as):
        # The same model was opened before, and has been trained again.
        opened_before = models.half(message.released_as)
        if opened_before.guest_hash != message.guest_hash:
            raise SecurityError("model_kept_already")
        return Ask(approval=approval, subject=_Release(opened_before))
    seal = models.sealed(message.model_id)
    if seal is None and not models.is_open(message.model_id):
        raise SecurityError("model_not_sealed", model=message.model_id)
    # Coarser scores of an open model reveal less than its own.
    if seal is not None:
        if approval is not None and approval.subject != seal.training:
            raise SecurityError("release_of_another_training", model=message.model_id)
        if message.named != NOT_MEASURED[0] and not 0.0 <= message.named <= seal.most_named:
            raise SecurityError("release_names_too_many", named=message.named, most=seal.most_named)
    sealed = models.half(message.model_id)
    if request.floors.synthetic:
        min_digits = 0
    else:
        min_digits = request.floors.score_bits
    layout = check_layout(Layout(message.score_bits, message.slots, message.slot_bits, message.scale), min_digits)
    trained_layout = sealed.layout
    if trained_layout is None or layout.score_bits > trained_layout.score_bits:
        raise SecurityError("release_of_finer_scores", bits=layout.score_bits)
    if (layout.slots, layout.scale) != (trained_layout.slots, trained_layout.scale):
        raise SecurityError("impossible_layout")
    return Ask(approval=approval, subject=_Release(replace(sealed, layout=layout, guest_hash=message.guest_hash)))


def answer_release(
    permit: Permit, opened: Opened, message: ReleaseModel, noise: Noise
) -> Iterator[tuple[str, Message]]:
    """Answer the hash of the half as it is kept from now on."""
    release: _Release = permit.ask.subject
    digest = sha256(dump_host(release.half).encode()).hexdigest()
    yield permit.guest, ModelKept(message.conversation, message.released_as, digest)


def store_release(models: HostModels, permit: Permit, reply: Message) -> None:
    """Store the half under its new name, open."""
    message: ReleaseModel = permit.request.message
    release: _Release = permit.ask.subject
    if not isinstance(reply, ModelKept):
        return
    if models.is_open(message.released_as):
        if models.sealed(message.model_id) is not None:
            models.discard(message.model_id)
    else:
        models.open_half(permit.guest, message.model_id, release.half, message.released_as)


SEALING_KINDS: Kinds = {ReleaseModel: Kind(read_release, answer_release, begins=True, sealed=True, store=store_release)}
