"""The message by which a Host gets its half of a model that another library trained."""

from __future__ import annotations

from backend.protocols.transport.message import HOST, PEOPLE, Lane, Message


class KeepImport(Message, readable_by=HOST, max_bytes=PEOPLE, lane=Lane.TRAINING):
    """Guest → Host: keep this half of a model that was not trained here. Its thresholds are known to whoever made the model.

    `partial_model` is the Host's half as :func:`backend.trees.serialization.dump_host` writes it.
    """

    HOLDS = "the Host's splits of an imported model with their thresholds; layout of scores; hash of the Guest's partial model"
    model_id: str
    partial_model: str
