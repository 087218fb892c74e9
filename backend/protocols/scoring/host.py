"""A Host's side of scoring: masks encrypted vectors with its own 0/1, within its budget. Must not know a weight or a score.

Fed-EINI Algorithm 1 for the samples of a batch, at one Host of the chain of §III-B:

1. The Guest's vector, or the previous Host's result, arrives                                   (W(i-1) of eq. 13)
2. Host → Guest: whose records it holds, and about whom its budget is exhausted                 (ours)
   A question that is repeated is recognised: not counted again, and answered with the same bytes.
3. Its own 0/1 of every entry; a sample without a record goes by default sides                  (Stage 1, eq. 9)
4. W(i) = W(i-1) ∘ W_Host; entries whose remaining conditions agree are added up                (Stage 2, eq. 10 and 13)
5. → next Host: W(i), fresh. Last Host → Guest: one ciphertext a sample, moved by its dither    (eq. 14; the dither is ours)
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from backend.crypto.interface import Fold, PublicSide
from backend.crypto.paillier.scheme import PaillierPublicSide
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.host_state import (
    Answer,
    Answering,
    Flags,
    Handlers,
    HostSession,
    ReceivedQuestion,
    ServedModel,
    members,
)
from backend.protocols.scoring.dither import Dither, dithers, half_units, headroom
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores, MoreVectors
from backend.protocols.scoring.permuted_values_host import OtherValues
from backend.protocols.transport.codec import encode
from backend.protocols.transport.packing import from_bitmap, to_bitmap
from backend.store.accountant import SCORE, Question
from backend.trees.ensemble import Columns

MAX_PIECES = 1 << 14  # messages of one batch
_log = logging.getLogger("glassleaf")


@dataclass(frozen=True, repr=False)
class PersonAtHost:
    """What a Host holds about one person and what it does with the person's entries: it never leaves the Host.

    Attributes
    ----------
    values : dict of str to Any
        Feature → value; empty where it holds no record.
    entries : tuple of (bool or None)
        Whether it keeps each entry that arrives; None where none of its splits has a say.
    """

    values: dict[str, Any]
    entries: tuple[bool | None, ...]


@dataclass(repr=False)
class _Batch:
    """Samples whose decision vectors are coming in."""

    request: DecisionVectors
    served: ServedModel
    fold: Fold
    dither: int
    spent: Flags
    missing: int
    digest: Any
    known: ReceivedQuestion | None


@dataclass(repr=False)
class ScoringHandler:
    """Answers decision vectors."""

    table: PartyTable
    answering: Answering
    dither: Dither

    def __post_init__(self) -> None:
        self.sessions = self.answering.sessions

    def handlers(self) -> Handlers:
        """What this handler answers."""
        return {DecisionVectors: self._decision_vectors, MoreVectors: self._more_vectors}

    def decision(self, model_id: str, person: str) -> PersonAtHost:
        """Steps 3 and 4 about one person, for this Host's own operator; nothing is sent and nothing counted."""
        served, known = self.answering.partial_models.get(model_id), person in self.table.row_of
        rows = np.array([self.table.row_of.get(person, 0)], dtype=np.intp)
        columns = self.table.take(rows).columns
        keep = served.compiled.decide(columns, np.array([known]))[0]
        entries = tuple(bool(kept) if own else None for kept, own in zip(keep, served.plan.own, strict=True))
        return PersonAtHost({name: column[0] for name, column in columns.items()} if known else {}, entries)

    def _decision_vectors(self, sender: str, request: DecisionVectors) -> Answer:
        """Steps 1 to 4, and 5 where the batch is one message."""
        session, served, cipher = self._checked(sender, request)
        columns, held = self._columns(session, request.ids)
        if served.index == 0:
            request = replace(request, dither=0, spent=b"", question="")  # a Guest has no say in these
        # with other values it is another question, whatever it is called
        name = request.request if session.kept(OtherValues) is None else ""
        asked = replace(request, vectors=b"", conversation="", request=name)
        digest = hashlib.sha256(session.key + encode(asked))
        question = self._question(session, asked, served, held)
        whole = _completed(digest, request) if request.pieces == 1 else ""
        spent, message, known = self.answering.count(question, request.conversation, request.ids, held, whole)
        yield session.guest, message
        keep, plan = served.compiled.decide(columns, held), served.plan
        if spent.any():
            # nothing of such a person goes on, not even what carries other Hosts' conditions alone
            keep = np.where(spent, False, keep.T | ~np.array(plan.own, dtype=bool)[:, None]).T
            plan = replace(plan, own=(True,) * len(plan.own))
        if served.index == 0:
            self._keep_sample(session, request, held & ~spent)
        if request.spent:
            spent = spent | from_bitmap(request.spent, len(held))
        dither = self._half_units(request, served)
        added = self._added(session, request, served, held, spent, dither) if plan.last and dither else []
        fold = cipher.start_fold(keep, plan, added)
        batch = session.keep(_Batch, _Batch(asked, served, fold, dither, spent, request.pieces, digest, known))
        yield from self._take_piece(session, batch, request.conversation, request.vectors)

    @staticmethod
    def _question(session: HostSession, request: DecisionVectors, served: ServedModel, held: Flags) -> Question:
        """What is counted: a score of everybody held, by the structure of the trees.

        How many bits a score has is the Guest's word; this Host knows its scale, and counts no less than a range of 1 has.
        """
        capacity, layout = served.model.capacity, served.model.layout
        floor = layout.score_bits if layout is not None else capacity
        disclosed = min(capacity, max(request.sum_bits, floor) if request.sum_bits else capacity)
        people = members(request.ids, held)
        return Question(session.guest, request.request, SCORE, served.structure, people, disclosed, capacity)

    def _checked(self, sender: str, request: DecisionVectors) -> tuple[HostSession, ServedModel, PublicSide]:
        """Step 1: refuse vectors of another party, before a key or of another shape."""
        served, session = self.answering.partial_models.get(request.model_id), self.sessions.of(request.conversation)
        preceding, entries = served.preceding, len(served.step.own)
        if session.guest != served.model.guest or sender != preceding:
            raise SecurityError("vectors_of_other_sender", sender=preceding)
        if session.cipher is None:
            raise SecurityError("no_key_offered")
        if request.entries != entries:
            raise SecurityError("other_number_of_entries", asked=entries, got=request.entries)
        if request.sum_bits < 0:
            raise SecurityError("negative_score_bits", sum_bits=request.sum_bits)
        if not 1 <= request.pieces <= MAX_PIECES:
            raise SecurityError("too_many_pieces", got=request.pieces, most=MAX_PIECES)
        if served.index == 0 and request.pieces > 1 and isinstance(session.cipher, PaillierPublicSide):
            raise SecurityError("paillier_in_pieces")
        return session, served, session.cipher

    def _columns(self, session: HostSession, ids: tuple[str, ...]) -> tuple[Columns, Flags]:
        """The people's records; other people's values in the columns that were permuted, none in those that were blanked."""
        columns, held = session.look_up(self.table, ids)
        other = session.kept(OtherValues)
        if other is not None:
            columns = {**columns, **other.columns(session, self.table, ids, held.tolist())}
        return columns, held

    def _keep_sample(self, session: HostSession, request: DecisionVectors, answered: Flags) -> None:
        """Keep some rows of people answered about for an auditor; under RLWE there is nothing that a Guest could open."""
        cipher, requests = session.cipher, self.answering.requests
        if requests is None or not isinstance(cipher, PaillierPublicSide):
            return
        size = request.entries * cipher.key.width
        if self.sessions.counts(request.conversation) and len(request.vectors) == len(request.ids) * size:
            rows = [request.vectors[i * size : (i + 1) * size] for i in np.flatnonzero(answered).tolist()]
            requests.note(request.model_id, members(request.ids, answered), cipher.key.to_bytes(), rows)

    def _half_units(self, request: DecisionVectors, served: ServedModel) -> int:
        """Largest number that is added to a score: what this Host asks for, or what one before it did, if that is more."""
        layout = served.model.layout
        if layout is None:  # kept before Hosts learnt how scores are laid out
            if self.dither.width:
                host, model_id = served.model.host, request.model_id
                _log.warning("%s: no dither, this partial model of %s is too old for it", host, model_id)
            return 0
        if not 0 <= request.dither <= headroom(layout.dither_bits):
            raise SecurityError("no_room_for_dither", dither=request.dither)
        if not self.sessions.counts(request.conversation):
            return request.dither
        return max(request.dither, half_units(self.dither.width, layout.dither_bits))

    def _added(
        self,
        session: HostSession,
        request: DecisionVectors,
        served: ServedModel,
        held: Flags,
        spent: Flags,
        dither: int,
    ) -> list[int]:
        """A number a person, the same whenever they are asked about; with other values, one a person and what stands in."""
        model = served.model
        if model.layout is None:
            return []
        other, names = session.kept(OtherValues), request.ids
        if other is not None:
            names = other.identities(request.ids, {rule.feature for rule in model.rules.values()})
        numbers = dithers(self.dither.secret(served.structure), model.layout, names, held, dither)
        # an empty score would show its number
        return [0 if none else number for none, number in zip(spent, numbers, strict=True)]

    def _more_vectors(self, sender: str, more: MoreVectors) -> Answer:
        session = self.sessions.of(more.conversation)
        batch = session.need(_Batch, "A piece of decision vectors came that belongs to no batch.")
        if sender != batch.served.preceding:
            raise SecurityError("piece_of_other_sender")
        yield from self._take_piece(session, batch, more.conversation, more.vectors)

    def _take_piece(self, session: HostSession, batch: _Batch, conversation: str, vectors: bytes) -> Answer:
        """Step 4 as far as vectors have come; step 5 once all have."""
        batch.fold.add(vectors)
        batch.digest.update(vectors)
        batch.missing -= 1
        if batch.missing:
            return
        session.drop(_Batch)
        request, served, to = batch.request, batch.served, batch.served.following
        # a Host before this one made new bytes of the same question
        digest = request.question or batch.digest.hexdigest()
        known = batch.known or self.answering.bind(session.guest, request.request, conversation, digest)
        if served.plan.last:
            scores = known.answer(lambda: next(iter(batch.fold.finish())))
            yield to, EncryptedScores(conversation, scores, batch.dither)
            return
        pieces = list(batch.fold.finish())
        spent = to_bitmap(batch.spent) if batch.spent.any() else b""
        passed_on = replace(request, conversation=conversation, entries=served.plan.n_out, pieces=len(pieces))
        yield to, replace(passed_on, vectors=pieces[0], dither=batch.dither, spent=spent, question=digest)
        for piece in pieces[1:]:
            yield to, MoreVectors(conversation, piece)


def _completed(begun: Any, request: DecisionVectors) -> str:
    """SHA-256 of a question that came in one piece; of one that another Host has passed on, what that one vouches for."""
    whole = begun.copy()
    whole.update(request.vectors)
    return request.question or str(whole.hexdigest())
