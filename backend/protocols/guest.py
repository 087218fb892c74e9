"""The Guest: drives a training or a scoring with its labels, leaf weights and secret key. Holds nothing of a Host's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import KeySide, TrainingKeySide
from backend.crypto.workers import Workers
from backend.data.federation import Federation
from backend.data.table import PartyTable
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.guest import SERIAL, OnStage, Scored, ScoringClient, ignore_stages
from backend.protocols.training.algorithms import Parameters
from backend.protocols.training.guest import OPEN, Trained, TrainingClient
from backend.protocols.training.joint import FromTheStart, Resumed
from backend.protocols.training.parameters import TreeProgress
from backend.protocols.transport.channel import Session


class GuestParty:
    """The Guest's side of training and scoring."""

    def __init__(self, federation: Federation, table: Callable[[], PartyTable]) -> None:
        self.name = federation.guest.name
        self._federation = federation
        self._table = table

    def train(
        self,
        labels: NDArray[np.float64],
        parameters: Parameters,
        key: TrainingKeySide | None,
        session: Session,
        *,
        exclude: Sequence[str] = (),
        on_stage: Callable[[str], None] = lambda stage: None,
        on_tree: Callable[[TreeProgress], None] = lambda progress: None,
        times: NDArray[np.str_] | None = None,
        resumed: Resumed | None = None,
        weights: NDArray[np.float64] | None = None,
        sealed_at: float = OPEN,
    ) -> Trained:
        """Train on the joint records; see :class:`backend.protocols.training.guest.TrainingClient`."""
        client = TrainingClient(
            self._federation,
            self._table(),
            parameters,
            session,
            exclude=exclude,
            on_stage=on_stage,
            on_tree=on_tree,
            times=times,
            resumed=resumed or FromTheStart(),
            weights=weights,
            sealed_at=sealed_at,
        )
        return client.train(labels, key)

    def score(
        self,
        model_id: str,
        compiled: CompiledGuest,
        table: PartyTable,
        key: KeySide,
        session: Session,
        *,
        workers: Workers = SERIAL,
        canary: bool = False,
        on_stage: OnStage = ignore_stages,
    ) -> Scored:
        """Score every row of `table` with Fed-EINI, and without a journal; see :class:`backend.protocols.scoring.guest.ScoringClient`."""
        return ScoringClient(self.name, model_id, compiled, table, key, session, workers, canary, on_stage).score()
