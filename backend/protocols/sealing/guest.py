"""The Guest's side of sealed models: it measures, and asks every Host to open its half."""

from __future__ import annotations

from dataclasses import replace

from backend.protocols.scoring.packing import Packing
from backend.protocols.sealing.messages import ReleaseModel
from backend.protocols.training.messages import ModelKept
from backend.protocols.transport.channel import Session
from backend.trees.backgrounds import coarser_bands
from backend.trees.ensemble import GuestModel
from backend.trees.serialization import content_hash, dump_guest


def at_bits(model: GuestModel, score_bits: int) -> GuestModel:
    """Return the same trees with coarser scores: multiples of 2**-score_bits."""
    if model.bands is None:
        bands = None
    else:
        bands = coarser_bands(model.bands, model.score_bits - score_bits)
    return replace(model, score_bits=score_bits, bands=bands)


def release(session: Session, sealed_as: str, released_as: str, model: GuestModel, identified: float) -> dict[str, str]:
    """Have every Host of the conversation open the half that is sealed as `sealed_as`; return the halves' content hashes.

    Parameters
    ----------
    identified : float
        Share of scores that fit one path only; -1 = not measured.

    Raises
    ------
    HostRefused
        If a Host keeps it sealed: the share is larger than the approved one, or the approval of the training has ended.
    """
    layout = Packing(model).layout
    numbers = layout.score_bits, layout.slots, layout.slot_bits, layout.scale
    guest_hash = content_hash(dump_guest(model))
    session.broadcast(ReleaseModel(session.name, sealed_as, released_as, *numbers, guest_hash, identified))
    answers = session.expect_each(ModelKept, session.hosts)
    return {host: answers[host].content_hash for host in session.hosts}
