"""Asking a Host's operator to allow a training or a model, before anything that reads a record."""

from __future__ import annotations

from dataclasses import KW_ONLY

from backend.protocols.training.opboost.noise_terms import NoiseTerms
from backend.protocols.transport.message import GUEST, HOST, LISTS, Message

# purposes beside those of measuring
TRAINING = "training"
SCORING = "scoring"
REASONS = "reasons"
SCREENING = "screening"  # of features, before any model
IMPORT = "import"  # of a model that was not trained here
NOT_MEASURED = (-1.0, -1.0)  # share of scores that fit one path only, and the largest allowed, if nobody measured them
APPROVAL = "approval"  # what a Host's signature to the Guest is under


class AskTraining(NoiseTerms, Message, readable_by=HOST, max_bytes=LISTS):
    """Guest → Host: may this conversation train, in this way? The Host holds the Guest to what it says here.

    `trees` is the most that will come. Of ranks (OpBoost) `bins` is 0, and `map` to `levels` say how values are desensitised
    (:class:`backend.protocols.training.opboost.maps.Noise`). `draw` is the Guest's name for how it chooses training rows: the rows that
    come first under an approval are those of all its trainings. `most_named` is the largest share of scores that may fit one path only:
    the Guest's word, for the operator to read.
    """

    HOLDS = (
        "how a model is to be trained: algorithm, trees, depth, bins; which of its features are left out; "
        "which share of scores may fit one path"
    )
    _: KW_ONLY
    algorithm: str
    trees: int
    depth: int
    bins: int
    exclude: tuple[str, ...]
    hide_order: bool
    draw: str = ""
    most_named: float = 0.05


class AskApproval(Message, readable_by=HOST):
    """Guest → Host: may this model be asked about, for this purpose, of so many people to begin with?

    `named` is the share of scores that fit one path only, as the Guest measured it, and `most_named` the largest that it accepts; -1 = not
    measured. Both are for the operator to read: no bound rests on them.
    """

    HOLDS = "which model is to be asked about, for which purpose, of how many people to begin with; the share of scores that fit one path"
    model_id: str
    purpose: str
    rows: int
    named: float = -1.0
    most_named: float = -1.0


# Not the Host's approval: what a Host stores of a request stays with it, and this is what the Guest may read.
class ApprovalGranted(Message, readable_by=GUEST):
    """Host → Guest: its operator allows it; until when, how much a day, and the Host's signature over that.

    It names the parties, so that it verifies alone: the Guest's audit log stores it. `number` 0 = this Host asks no operator, and signs
    nothing. `until` is the last UTC day, ISO 8601; `per_day` counts people, or trainings.
    """

    HOLDS = "what a Host's operator allows, until when and how much a day; the Host's public key and signature"
    host: str
    guest: str
    number: int
    purpose: str
    name: str
    until: str = ""
    per_day: int = 0
    decided: str = ""
    public_key: str = ""
    signature: str = ""

    @property
    def signed_fields(self) -> tuple[str | int, ...]:
        """Return what the Host signs."""
        return (
            self.host,
            self.guest,
            self.number,
            self.purpose,
            self.name,
            self.until,
            self.per_day,
            self.decided,
        )
