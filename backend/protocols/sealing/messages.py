"""The message that opens a sealed model."""

from __future__ import annotations

from backend.protocols.transport.message import HOST, Lane, Message


# Its layout is four plain numbers: they are a layout only once the Host has checked them.
class ReleaseModel(Message, readable_by=HOST, lane=Lane.TRAINING):
    """Guest → Host: open the half that you keep sealed as `model_id`; from now on it is called `released_as`.

    Its scores may have become coarser since: `score_bits`, `slots`, `slot_bits` and `scale` are their layout, and `guest_hash` is that of
    the Guest's partial model at these bits. `named` is the share of scores that fit one path only, as the Guest measured it; -1 = there
    were too few records to compare scores with.
    """

    HOLDS = (
        "which sealed model is to be opened, and its name from then on; layout of scores; hash of the Guest's partial "
        "model; the share of scores that fit one path"
    )
    model_id: str
    released_as: str
    score_bits: int
    slots: int
    slot_bits: int
    scale: int
    guest_hash: str
    named: float
