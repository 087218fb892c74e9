"""A Host's side of scoring: masks encrypted vectors with its own 0/1, within its budget. Must not know a weight or a score.

Fed-EINI Algorithm 1 for the samples of a batch, at one Host of the chain of §III-B:

1. The Guest's vector, or the previous Host's result, arrives                                   (W(i-1) of eq. 13)
2. Host → Guest: whose records it holds, and about whom its budget is exhausted                 (ours)
   A question that is repeated is recognised: not counted again, and answered with the same bytes.
3. Its own 0/1 of every entry; a sample without a record goes by default sides                  (Stage 1, eq. 9)
4. W(i) = W(i-1) ∘ W_Host; entries whose remaining conditions agree are added up                (Stage 2, eq. 10 and 13)
5. → next Host: W(i), fresh. Last Host → Guest: one ciphertext a sample, moved by its dither    (eq. 14; the dither is ours)

Steps 1 and 2 are rules of the gate (:mod:`backend.protocols.terms.gate`), which reads no value; the others are handlers.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from backend.crypto.fixedpoint import hidden_above
from backend.crypto.interface import Fold, PublicSide
from backend.crypto.paillier.scheme import PaillierPublicSide
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.approvals.messages import SCORING
from backend.protocols.host_state import Flags, HostSession, ServedModel, members
from backend.protocols.scoring.dither import half_units, headroom
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores, MoreVectors
from backend.protocols.scoring.permuted_values_host import OtherValues
from backend.protocols.terms.approvals import model_request
from backend.protocols.terms.noise import Noise
from backend.protocols.terms.permit import Ask, Asked, Charge, Kind, Permit, Reply, Sample
from backend.protocols.terms.records import Opened, Rows
from backend.protocols.transport.codec import encode
from backend.protocols.transport.packing import from_bitmap, to_bitmap
from backend.store.accountant import SCORE, Question

MAX_PIECES = 1 << 14  # messages of one batch
MAX_SUM_BITS = 1 << 14  # bits of the longest number that any key holds


@dataclass(frozen=True, repr=False)
class PersonAtHost:
    """What a Host holds about one person and what it does with the person's entries: it never leaves the Host.

    Attributes
    ----------
    values : dict of str to Any
        Feature → value; empty if it holds no record.
    entries : tuple of (bool or None)
        Whether it keeps each entry that arrives; None if none of its splits has a say.
    """

    values: dict[str, Any]
    entries: tuple[bool | None, ...]


@dataclass(frozen=True, repr=False)
class _Vectors:
    """The first piece of decision vectors, as the rule has read it.

    Attributes
    ----------
    question : DecisionVectors
        What was asked, without its vectors; its request is empty if it cannot be repeated.
    digest : hash
        Over key, question and vectors, as far as they have come.
    """

    served: ServedModel
    cipher: PublicSide
    question: DecisionVectors
    digest: Any
    other_values: OtherValues | None


@dataclass(repr=False)
class Batch:
    """Samples whose decision vectors are coming in.

    Attributes
    ----------
    missing : int
        Pieces that have not come.
    spent : ndarray of bool
        About whom this Host or one before it answers nothing.
    dither : int
        Largest number that is added to a score, units.
    fold : Fold, optional
        The sums so far; None until the first piece was answered.
    """

    vectors: _Vectors
    missing: int
    spent: Flags
    dither: int
    fold: Fold | None = None


# Rules: what the gate reads of a message. No value of a record is here.


def read_vectors(request: Asked) -> Ask:
    """Step 1: read the first piece of a batch; a score of each person with a record here is booked.

    Raises
    ------
    SecurityError
        If it comes from another party, before a key, or in another shape.
    """
    message: DecisionVectors = request.message
    served = request.models.get(message.model_id)
    cipher = _check(request, served)
    has_record = request.roster.held(message.ids)
    opens = {"people": Rows(ids=message.ids, columns=served.features, charged=True)}
    other_values = request.session.kept(OtherValues)
    if other_values is not None:
        other_values.check(message.ids, has_record)
        opens["sources"] = Rows(ids=other_values.sources_of(message.ids), columns=other_values.features)
    question = replace(message, vectors=b"", conversation="")
    if served.index == 0:
        question = replace(question, dither=0, spent=b"", question="")  # a Guest must not set these
    if other_values is not None:
        question = replace(question, request="")  # with other values it is another question, whatever its request id
    digest = hashlib.sha256(request.session.key + encode(question))
    digest.update(message.vectors)
    if message.pieces == 1:
        digest_of_batch = question.question or digest.hexdigest()
    else:
        digest_of_batch = ""
    score = _counted(request.session, question, served, has_record)
    return Ask(
        opens=opens,
        approval=model_request(request, served, SCORING, len(message.ids)),
        amount=len(message.ids),
        volume_of=question.request,
        charges=[Charge(score, digest=digest_of_batch, record_of=served.features)],
        others=[] if other_values is None else other_values.charges(request.session.guest, served, score),
        reply=question.request if message.pieces == 1 else "",
        has_record=has_record,
        sample=_sample(request, question, cipher),
        subject=_Vectors(served, cipher, question, digest, other_values),
    )


def _check(request: Asked, served: ServedModel) -> PublicSide:
    """Return the cipher; raise SecurityError if vectors come from another party, before a key or in another shape."""
    message: DecisionVectors = request.message
    cipher = request.session.cipher
    if request.session.guest != served.model.guest or request.sender != served.preceding:
        raise SecurityError("vectors_of_other_sender", sender=served.preceding)
    if cipher is None:
        raise SecurityError("no_key_offered")
    if message.entries != len(served.step.host_conditions):
        raise SecurityError("other_number_of_entries", asked=len(served.step.host_conditions), got=message.entries)
    if message.sum_bits < 0:
        raise SecurityError("negative_score_bits", sum_bits=message.sum_bits)
    if message.sum_bits > MAX_SUM_BITS:  # before a number as long is made
        raise SecurityError("too_many_score_bits", sum_bits=message.sum_bits, most=MAX_SUM_BITS)
    if not 1 <= message.pieces <= MAX_PIECES:
        raise SecurityError("too_many_pieces", got=message.pieces, most=MAX_PIECES)
    if served.index == 0 and message.pieces > 1 and isinstance(cipher, PaillierPublicSide):
        raise SecurityError("paillier_in_pieces")
    layout = served.model.layout
    if layout is not None and served.index and not 0 <= message.dither <= headroom(layout.dither_bits):
        raise SecurityError("no_room_for_dither", dither=message.dither)
    return cipher


def _counted(session: HostSession, question: DecisionVectors, served: ServedModel, has_record: Flags) -> Question:
    """Return the booked question: a score of each person with a record, by the structure of the trees.

    The Guest states the bits of a score; this Host knows the score's scale, and counts at least the bits of a range of 1.
    """
    capacity = served.model.capacity
    layout = served.model.layout
    floor = layout.score_bits if layout is not None else capacity
    if question.sum_bits:
        disclosed = min(capacity, max(question.sum_bits, floor))
    else:
        disclosed = capacity
    people = members(question.ids, has_record)
    return Question(session.guest, question.request, SCORE, served.structure, people, disclosed, capacity)


def _sample(request: Asked, question: DecisionVectors, cipher: PublicSide) -> Sample | None:
    """Return the rows of which some are stored for an auditor.

    Every Host of a chain keeps the message that it received. Under RLWE a person has no separate ciphertexts: only the place is kept.
    """
    message: DecisionVectors = request.message
    request_id = question.request
    if isinstance(cipher, PaillierPublicSide):
        size = message.entries * cipher.key.width
        if len(message.vectors) == len(message.ids) * size:

            def row(i: int) -> bytes:
                return message.vectors[i * size : (i + 1) * size]

            key = cipher.key.to_bytes()
            return Sample(message.model_id, SCORE, key, message.ids, row, request_id, question.dither)
    if not request_id:
        return None
    return Sample(message.model_id, SCORE, b"", message.ids, lambda i: b"", request_id, question.dither)


def read_more(request: Asked) -> Ask:
    """Read the next piece; with the last one the question is bound to its bytes.

    Raises
    ------
    SecurityError
        If it belongs to no batch, or comes from another party than the first piece.
    """
    message: MoreVectors = request.message
    batch = request.session.need(Batch, "piece_of_no_batch")
    if request.sender != batch.vectors.served.preceding:
        raise SecurityError("piece_of_other_sender")
    batch.vectors.digest.update(message.vectors)
    if batch.missing > 1:
        return Ask(subject=batch)
    question = batch.vectors.question
    # The preceding Host makes new bytes of the same question.
    digest = question.question or batch.vectors.digest.hexdigest()
    return Ask(binds=(question.request, digest), reply=question.request, subject=batch)


# Handlers: what is answered to a message that has a permit.


def answer_vectors(permit: Permit, opened: Opened, message: DecisionVectors, noise: Noise) -> Reply:
    """Steps 2 to 4, and 5 if the batch is one message."""
    vectors: _Vectors = permit.ask.subject
    served = vectors.served
    # Step 2.
    yield permit.guest, permit.held_records()
    # Step 3.
    people = opened["people"]
    columns = people.columns
    if vectors.other_values is not None:
        columns = {**columns, **vectors.other_values.columns(opened["sources"], message.ids)}
        vectors.other_values.note_told(served, permit.ask.charges[0].question)
    keep = served.compiled.decide(columns, people.has_record)
    plan = served.plan
    spent = permit.spent
    if spent.any():
        # No entry of such a person is passed on, not even one with other Hosts' conditions alone.
        keep = np.where(spent, False, keep.T | ~np.array(plan.is_own, dtype=bool)[:, None]).T
        plan = replace(plan, is_own=(True,) * len(plan.is_own))
    if vectors.question.spent:
        spent = spent | from_bitmap(vectors.question.spent, len(spent))
    # Step 4, for the vectors that have arrived.
    dither = _half_units(permit, vectors, noise)
    if plan.last:
        addends = _added(vectors, message.ids, people.has_record, spent, dither, noise)
    else:
        addends = []
    batch = Batch(vectors, message.pieces, spent, dither, vectors.cipher.start_fold(keep, plan, addends))
    permit.session.keep(Batch, batch)
    yield from _take_piece(permit, batch, message.conversation, message.vectors)


def answer_more(permit: Permit, opened: Opened, message: MoreVectors, noise: Noise) -> Reply:
    """Step 4 for the next piece, and step 5 after the last one."""
    yield from _take_piece(permit, permit.ask.subject, message.conversation, message.vectors)


def _half_units(permit: Permit, vectors: _Vectors, noise: Noise) -> int:
    """Return the largest number that is added to a score: what this Host asks for, or what one before it did, if that is more."""
    layout = vectors.served.model.layout
    if layout is None:
        return 0
    if not permit.request.counted:
        return vectors.question.dither
    return max(vectors.question.dither, half_units(noise.width, layout.dither_bits))


def _added(
    vectors: _Vectors, ids: tuple[str, ...], has_record: Flags, spent: Flags, dither: int, noise: Noise
) -> list[int]:
    """Return the number that is added to each person's sum: dither, and a random multiple of 2^sum_bits.

    Dither is the same whenever the person is asked about; with other values, it is one a person and source. The random multiple hides
    all bits above the width that the Guest announced and that was booked.
    """
    layout = vectors.served.model.layout
    numbers = [0] * len(ids)
    if layout is not None and dither:
        names = ids
        if vectors.other_values is not None:
            names = vectors.other_values.identities(ids, vectors.served.features)
        numbers = noise.dithers(vectors.served.structure, layout, names, has_record, dither)
    width = vectors.question.sum_bits
    if width:
        above = hidden_above(width, vectors.cipher.room)
    else:
        above = 0
    addends = []
    for number, refused in zip(numbers, spent.tolist(), strict=True):
        if refused:
            addends.append(0)  # an empty score would show its number
        else:
            addends.append(number + ((1 + noise.below(above)) << width if above else 0))
    return addends if any(addends) else []


def _take_piece(permit: Permit, batch: Batch, conversation: str, vectors: bytes) -> Reply:
    """Step 4 as far as vectors have come; step 5 once all have."""
    fold = batch.fold
    if fold is None:
        raise SecurityError("piece_of_no_batch")
    fold.add(vectors)
    batch.missing -= 1
    if batch.missing:
        return
    permit.session.drop(Batch)
    question = batch.vectors.question
    served = batch.vectors.served
    if served.plan.last:
        if permit.stored is None:
            scores = next(iter(fold.finish()))
        else:
            scores = permit.stored
        yield served.following, EncryptedScores(conversation, scores, batch.dither)
        return
    pieces = list(fold.finish())
    passed_on = replace(
        question,
        conversation=conversation,
        entries=served.plan.n_out,
        pieces=len(pieces),
        vectors=pieces[0],
        dither=batch.dither,
        spent=to_bitmap(batch.spent) if batch.spent.any() else b"",
        question=question.question or batch.vectors.digest.hexdigest(),
    )
    yield served.following, passed_on
    for piece in pieces[1:]:
        yield served.following, MoreVectors(conversation, piece)


SCORING_KINDS = {
    DecisionVectors: Kind(read_vectors, answer_vectors, passed_on=True, reply="scores"),
    MoreVectors: Kind(read_more, answer_more, passed_on=True, reply="scores"),
}


def decision(table: PartyTable, served: ServedModel, person: str) -> PersonAtHost:
    """Return steps 3 and 4 about one person, for this Host's operator; no message is sent and no question counted."""
    is_known = person in table.row_of
    rows = np.array([table.row_of.get(person, 0)], dtype=np.intp)
    columns = table.take(rows).columns
    keep = served.compiled.decide(columns, np.array([is_known]))[0]
    entries = tuple(bool(keeps) if is_own else None for keeps, is_own in zip(keep, served.plan.is_own, strict=True))
    return PersonAtHost({name: column[0] for name, column in columns.items()} if is_known else {}, entries)
