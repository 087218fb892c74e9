"""A Host's handler for scoring with Fed-EINI: masks encrypted vectors with its own choices, within its budget (Fed-EINI eq. 9, 10, 13)."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import Fold
from backend.crypto.paillier.scheme import PaillierPublicSide
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.host_budget import held_records, spend
from backend.protocols.host_models import HostModels, ServedModel
from backend.protocols.host_session import Answer, Handlers, HostSession, HostSessions
from backend.protocols.scoring.dither import dithers, half_units, headroom
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores, MoreVectors, PermuteValues
from backend.protocols.scoring.permuted_values_host import PermutedValues, deal
from backend.protocols.transport.held_records import look_up
from backend.protocols.transport.packing import from_bitmap, to_bitmap
from backend.store.query_budget import QueryBudget
from backend.store.request_log import RequestLog
from backend.trees.ensemble import Columns

MAX_PIECES = 1 << 14  # messages of one batch
_log = logging.getLogger("glassleaf")


@dataclass(repr=False)
class _Batch:
    """Samples whose decision vectors are coming in."""

    request: DecisionVectors
    partial_model: ServedModel
    fold: Fold
    dither: int
    spent: NDArray[np.bool_]
    missing: int


class ScoringHandler:
    """Answers decision vectors.

    Parameters
    ----------
    table : PartyTable
    halves : HostModels
    sessions : HostSessions
    budget : QueryBudget, optional
        None = questions are not counted.
    log : RequestLog, optional
        Where a sample of requests is kept for an auditor.
    dither : float
        Width on a logit of what is added to scores; 0 = nothing.
    """

    def __init__(
        self,
        table: PartyTable,
        partial_models: HostModels,
        sessions: HostSessions,
        budget: QueryBudget | None,
        log: RequestLog | None,
        dither: float,
    ) -> None:
        self._table, self._partial_models, self._sessions, self._budget = table, partial_models, sessions, budget
        self._requests, self._dither = log, dither

    def handlers(self) -> Handlers:
        """What this handler answers."""
        return {
            PermuteValues: self._permute_values,
            DecisionVectors: self._decision_vectors,
            MoreVectors: self._more_vectors,
        }

    def _permute_values(self, sender: str, asked: PermuteValues) -> Answer:
        session = self._sessions.of(asked.conversation)
        if sender != session.guest:
            raise SecurityError("Only the Guest may have values permuted.")
        session.keep(PermutedValues, deal(self._table, asked))
        return iter(())

    def _decision_vectors(self, sender: str, request: DecisionVectors) -> Answer:
        partial_model = self._partial_models.get(request.model_id)
        session = self._sessions.of(request.conversation)
        if session.guest != partial_model.model.guest or sender != partial_model.preceding:
            raise SecurityError(
                f"Vectors of this model come from {partial_model.preceding}, for its own Guest; others were refused."
            )
        if session.cipher is None:
            raise SecurityError("Scores were asked for before a key was offered.")
        if request.entries != len(partial_model.step.own):
            raise SecurityError(
                f"{len(partial_model.step.own)} entries a sample were expected, {request.entries} came."
            )
        if not 1 <= request.pieces <= MAX_PIECES:
            raise SecurityError(f"A batch of {request.pieces:,} messages was announced; 1 to {MAX_PIECES:,} can be.")
        columns, held = self._columns(session, request.ids)
        budget = self._budget if self._sessions.counts(request.conversation) else None
        spent = spend(budget, request.model_id, request.ids, held)
        yield partial_model.model.guest, held_records(budget, request.conversation, held, spent)
        keep, plan = partial_model.compiled.decide(columns, held), partial_model.plan
        if spent.any():  # nothing of such a person goes on, not even what carries other Hosts' conditions alone
            keep = np.where(spent, False, keep.T | ~np.array(plan.own, dtype=bool)[:, None]).T
            plan = replace(plan, own=(True,) * len(plan.own))
        if partial_model.plan.place == 0:
            self._keep_sample(session, request)
            request = replace(request, dither=0, spent=b"")  # a Guest has no say in what follows
        if request.spent:
            spent = spent | from_bitmap(request.spent, len(held))
        dither = self._half_units(request, partial_model)
        added = self._added(session, request, partial_model, held, spent, dither) if plan.last and dither else []
        fold = session.cipher.start_fold(keep, plan, added)
        batch = session.keep(_Batch, _Batch(request, partial_model, fold, dither, spent, request.pieces))
        yield from self._take_piece(session, batch, request.vectors)

    def _keep_sample(self, session: HostSession, request: DecisionVectors) -> None:
        """Keep some rows for an auditor; under RLWE there is nothing that a Guest could open."""
        cipher = session.cipher
        if self._requests is None or not isinstance(cipher, PaillierPublicSide) or request.pieces != 1:
            return
        if not self._sessions.counts(request.conversation):
            return
        if len(request.vectors) == len(request.ids) * request.entries * cipher.key.width:
            self._requests.note(request.model_id, request.ids, cipher.key.to_bytes(), request.vectors)

    def _half_units(self, request: DecisionVectors, partial_model: ServedModel) -> int:
        """Largest number that is added to a score: what this Host asks for, or what one before it did, if that is more."""
        layout = partial_model.model.layout
        if layout is None:  # kept before Hosts were told how scores are laid out
            if self._dither:
                _log.warning(
                    "%s: no dither, this half of %s is too old for it", partial_model.model.host, request.model_id
                )
            return 0
        if not 0 <= request.dither <= headroom(layout.dither_bits):
            raise SecurityError(
                f"A dither of {request.dither:,} units was asked for; this model leaves no room for it."
            )
        if not self._sessions.counts(request.conversation):
            return request.dither
        return max(request.dither, half_units(self._dither, layout.dither_bits))

    @staticmethod
    def _added(
        session: HostSession,
        request: DecisionVectors,
        partial_model: ServedModel,
        held: NDArray[np.bool_],
        spent: NDArray[np.bool_],
        dither: int,
    ) -> list[int]:
        """A number a person, the same whenever they are asked about; where values were permuted, one a person and giver."""
        if partial_model.model.layout is None:
            return []
        dealt, names = session.kept(PermutedValues), request.ids
        if dealt is not None:
            names = dealt.names(request.ids, {rule.feature for rule in partial_model.model.rules.values()})
        numbers = dithers(partial_model.model.salt, partial_model.model.layout, names, held, dither)
        return [
            0 if none else number for none, number in zip(spent, numbers, strict=True)
        ]  # an empty score would show it

    def _columns(self, session: HostSession, ids: tuple[str, ...]) -> tuple[Columns, NDArray[np.bool_]]:
        """The people's records; other people's values in the columns that were permuted."""
        columns, held = look_up(self._table, session, ids)
        dealt = session.kept(PermutedValues)
        if dealt is not None:
            theirs, _ = look_up(self._table, session, dealt.of(ids, held.tolist()))
            columns = {**columns, **{name: theirs[name] for name in dealt.features}}
        return columns, held

    def _more_vectors(self, sender: str, more: MoreVectors) -> Answer:
        session = self._sessions.of(more.conversation)
        batch = session.need(_Batch, "A piece of decision vectors came that belongs to no batch.")
        if sender != batch.partial_model.preceding:
            raise SecurityError(
                "A piece of decision vectors came from another party than the first piece; it was refused."
            )
        yield from self._take_piece(session, batch, more.vectors)

    @staticmethod
    def _take_piece(session: HostSession, batch: _Batch, vectors: bytes) -> Answer:
        batch.fold.add(vectors)
        batch.missing -= 1
        if batch.missing:
            return
        session.drop(_Batch)
        pieces = list(batch.fold.finish())
        request, partial_model = batch.request, batch.partial_model
        if partial_model.plan.last:
            yield partial_model.following, EncryptedScores(request.conversation, pieces[0], batch.dither)
            return
        n_out, count = partial_model.plan.n_out, len(pieces)
        spent = to_bitmap(batch.spent) if batch.spent.any() else b""
        first = DecisionVectors(
            request.conversation, request.model_id, request.ids, n_out, count, pieces[0], batch.dither, spent
        )
        yield partial_model.following, first
        for piece in pieces[1:]:
            yield partial_model.following, MoreVectors(request.conversation, piece)
