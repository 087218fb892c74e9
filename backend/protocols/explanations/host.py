"""A Host's side of reasons: multiplies encrypted terms by its factors, ranks the outcome or adds it up. Reads none of it.

The steps are those of :mod:`backend.protocols.explanations.guest`. Rules read a message against the question it belongs to, and see no
value; the gate opens a person's record for the message that brings this person's terms, and nothing of it is kept.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import msgpack
import numpy as np

from backend.crypto.paillier.scheme import PaillierPublicSide
from backend.errors import SecurityError
from backend.protocols.approvals.messages import REASONS as APPROVED_REASONS
from backend.protocols.explanations.host_factors import CompiledFactors, Decided
from backend.protocols.explanations.messages import (
    MIN_PEOPLE,
    AskCohort,
    AskReasons,
    ChooseLabels,
    ContributionSums,
    GarbledRanking,
    MaskedContributions,
    OpenRanking,
    ReasonTerms,
    of_person,
)
from backend.protocols.explanations.shape import MAGNITUDE_BITS, RANKED, ReasonShape
from backend.protocols.explanations.weighting import PersonWeighting, Weighting, weighting_of
from backend.protocols.host_state import Flags, HostSession, ServedModel, digest_of, members
from backend.protocols.ranking.host import RankingHost
from backend.protocols.terms.approvals import model_request
from backend.protocols.terms.noise import Noise
from backend.protocols.terms.permit import Ask, Asked, Charge, Kind, Permit, Reply, Sample
from backend.protocols.terms.records import Opened, Records, Rows
from backend.protocols.transport.codec import encode
from backend.protocols.transport.packing import from_bitmap, to_bitmap
from backend.store.accountant import COHORT, REASONS, Question
from backend.store.request_log import packed_question
from backend.store.schema import Approval
from backend.trees.ensemble import Columns


@dataclass(repr=False)
class Reasons:
    """A question for reasons: the people whose terms are coming in, and what was made of them so far. It has no value of anybody.

    Attributes
    ----------
    digest : str
        SHA-256 of the question, without its terms.
    approval : Approval
        What the operator decides about, for each message that brings terms.
    missing : set of int
        Positions among the ids of whom terms may still come.
    cohort : Question, optional
        How sums are booked with the first terms; None = names are asked for.
    masks : ndarray of bool, optional
        ``(people, own features, 2)``: hides sides that are passed on; None at the last Host.
    name : str
        Of the question about the person who is ranked; empty = it cannot be repeated.
    values_enc : object
        Of one person, to be ranked; of a cohort, added up.
    sides : ndarray of bool, optional
        ``(2, features)``: of the person who is ranked, this Host's shares.
    """

    served: ServedModel
    compiled: CompiledFactors
    shape: ReasonShape
    weighting: Weighting | PersonWeighting
    question: AskReasons | AskCohort
    has_record: Flags
    digest: str
    approval: Approval
    missing: set[int] = field(default_factory=set)
    cohort: Question | None = None
    masks: Flags | None = None
    name: str = ""
    values_enc: Any = None
    sides: Flags | None = None
    opened: OpenRanking | None = None

    def take(self, index: int) -> range:
        """Return the people whose terms a message has, from that position on: as many of a cohort as share a message.

        Raises
        ------
        SecurityError
            If one of them is not answered about, or their terms have come.
        """
        if isinstance(self.weighting, PersonWeighting):
            together = 1
        else:
            together = self.weighting.together
        people = range(index, min(index + together, len(self.has_record)))
        if index % together or not people or not self.missing.issuperset(people):
            raise SecurityError("terms_of_other_person")
        self.missing.difference_update(people)
        return people

    def are_first(self, people: range) -> bool:
        """Return whether the terms that were just taken are the first ones of a cohort."""
        return len(self.missing) + len(people) == len(self.has_record)


@dataclass(frozen=True, repr=False)
class Ranking:
    """One person's ranking, and the name of the question that it answers; empty = it cannot be repeated."""

    host: RankingHost
    question: str
    structure: str


@dataclass(frozen=True, repr=False)
class _Terms:
    """Terms that have come, as their rule has read them.

    Attributes
    ----------
    digest : str
        SHA-256 of question and terms.
    """

    reasons: Reasons
    digest: str


# Rules: what the gate reads of a message. No value of a record is here.


def read_reasons(request: Asked) -> Ask:
    """Step 1 for names. Each person is a separate question, since their terms arrive one after the other.

    Nothing is booked about people without a record, but their terms are bound to the question like all others.

    Raises
    ------
    SecurityError
        If another party than the model's Guest asks, or for another shape.
    """
    message: AskReasons = request.message
    served = _served(request)
    reasons = _question(request, served)
    disclosed = reasons.shape.told
    charges = []
    for i, has_record in enumerate(reasons.has_record.tolist()):
        people = message.ids[i : i + 1] if has_record else ()
        name = of_person(message.request, i)
        question = _booked(request.session, served, REASONS, people, disclosed, name)
        charges.append(Charge(question, record_of=served.features))
    return Ask(
        approval=reasons.approval,
        amount=len(message.ids),
        volume_of=message.request,
        charges=charges,
        has_record=reasons.has_record,
        subject=reasons,
    )


def read_cohort(request: Asked) -> Ask:
    """Step 1 for sums: all people must be asked about for the first time within the window, or the message is refused.

    They are booked with the first terms (:func:`read_terms`): a question that ends before has revealed nothing.

    Raises
    ------
    SecurityError
        As :func:`read_reasons`; if too few people have a record, one is named twice, or sums could reveal too much.
    """
    message: AskCohort = request.message
    served = _served(request)
    people = members(message.ids, request.roster.held(message.ids))
    if len(set(message.ids)) < len(message.ids):
        raise SecurityError("cohort_names_twice")
    min_people = request.floors.people(MIN_PEOPLE)
    if len(people) < min_people:
        raise SecurityError("small_cohort", least=min_people)
    shape = shape_of(message)
    disclosed = shape.sums_bits(len(message.ids))
    _check_sums(request, served, shape, len(people), disclosed)
    reasons = _question(request, served)
    reasons.cohort = _booked(request.session, served, COHORT, people, disclosed, message.request)
    return Ask(
        approval=reasons.approval,
        amount=len(message.ids),
        volume_of=message.request,
        charges=[Charge(reasons.cohort, all_or_none=True, only_look=True)],
        has_record=reasons.has_record,
        subject=reasons,
    )


def _served(request: Asked) -> ServedModel:
    """Return the model; raise SecurityError if another party than its Guest asks, or the message names no person."""
    served = request.models.get(request.message.model_id)
    if not request.sender == request.session.guest == served.model.guest:
        raise SecurityError("reasons_by_other_than_guest")
    if not request.message.ids:
        raise SecurityError("reasons_of_no_person")
    return served


def _question(request: Asked, served: ServedModel) -> Reasons:
    """Return the question; raise SecurityError if its sizes do not fit the model, or no suitable key was offered."""
    message: AskReasons | AskCohort = request.message
    session = request.session
    plan = served.plan
    compiled = CompiledFactors(served.model, served.step, message.shares)
    counts = message.features
    n_features = counts[served.index + 1 :][:1]
    if len(counts) != plan.hosts + 1 or min(counts) < 0 or n_features != (len(compiled.names),):
        raise SecurityError("features_do_not_fit")
    shape = shape_of(message)
    weighting: Weighting | PersonWeighting
    if isinstance(message, AskCohort):
        weighting = weighting_of(session.cipher, compiled, shape, plan, len(message.ids))
    else:
        weighting = PersonWeighting(session.cipher, compiled, shape, plan)
    digest = hashlib.sha256(session.key + encode(replace(message, conversation=""))).hexdigest()
    approval = model_request(request, served, APPROVED_REASONS, len(message.ids))
    return Reasons(served, compiled, shape, weighting, message, request.roster.held(message.ids), digest, approval)


def _booked(
    session: HostSession, served: ServedModel, kind: str, people: tuple[str, ...], disclosed: float, request: str
) -> Question:
    capacity = served.model.capacity
    return Question(session.guest, request, kind, served.structure, people, min(disclosed, capacity), capacity)


def _check_sums(request: Asked, served: ServedModel, shape: ReasonShape, people: int, bits: float) -> None:
    """Raise SecurityError if sums could reveal the answers of too many of a cohort's people (docs/decisions/groups.md).

    All answers about one person take `capacity` bits; sums may carry a share of the bits for all people.
    """
    message: AskCohort = request.message
    layout = served.model.layout
    scale = 0 if layout is None else max(0, layout.scale)
    max_bits = shape.scale + MAGNITUDE_BITS + scale
    if message.value_bits > max_bits:
        raise SecurityError("values_too_long", bits=message.value_bits, most=max_bits)
    share = request.floors.named_share
    each = share * served.model.capacity
    if share and bits > people * each:
        min_people = ceil(bits / each) if each else 0
        raise SecurityError("cohort_could_name", bits=round(bits), people=len(message.ids), wanted=min_people)


def read_terms(request: Asked) -> Ask:
    """Step 2: read the people of the terms, and open their records.

    All of a cohort is booked with its first terms, before a row of it is opened. Its question is bound without its terms, which are too
    large to be kept for a repetition: it has one answer for all terms. Terms for names are bound to the question about their person.

    Raises
    ------
    SecurityError
        If they come from the wrong party, or are not expected.
    """
    message: ReasonTerms = request.message
    reasons = request.session.need(Reasons, "terms_before_reasons")
    served = reasons.served
    if request.sender != served.preceding:
        raise SecurityError("terms_of_other_sender", sender=served.preceding)
    people = reasons.take(message.person)
    # The preceding Host makes new bytes of the same question.
    if served.index:
        digest = message.question
    else:
        digest = digest_of(reasons.digest, message.terms)
    charges = []
    if reasons.cohort is None:
        reasons.name = of_person(reasons.question.request, message.person)
        binds = (reasons.name, digest)
    else:
        binds = (reasons.cohort.request, reasons.digest)
        if reasons.are_first(people):
            charges.append(Charge(reasons.cohort, all_or_none=True))
    ids = tuple(reasons.question.ids[i] for i in people)
    return Ask(
        opens={"people": Rows(ids=ids, columns=served.features)},
        approval=reasons.approval,
        charges=charges,
        binds=binds,
        reply="" if reasons.cohort is None else reasons.cohort.request,
        has_record=reasons.has_record[people.start : people.stop],
        sample=_sample(request, reasons, ids),
        sums=_sample_of_sums(reasons) if charges else None,
        subject=_Terms(reasons, digest),
    )


def _sample(request: Asked, reasons: Reasons, ids: tuple[str, ...]) -> Sample | None:
    """Return one person's terms, of which some are stored for an auditor, at every Host of the chain.

    Under RLWE the Guest could open nothing, so only the person's place in the question is stored.
    """
    cipher = request.session.cipher
    if reasons.cohort is not None:
        request_id = ""
    else:
        request_id = reasons.question.request
    key = b""
    terms = b""
    if isinstance(cipher, PaillierPublicSide) and (request_id or not reasons.served.index):
        key = cipher.key.to_bytes()
        terms = request.message.terms
    if not request_id and not terms:
        return None
    sizes = reasons.question.shares, reasons.question.features, reasons.question.value_bits
    if isinstance(reasons.question, AskReasons):
        groups = reasons.question.groups
    else:
        groups = ()
    row: bytes = msgpack.packb([terms, *sizes, groups])
    first = request.message.person
    return Sample(reasons.question.model_id, REASONS, key, ids, lambda _: row, request_id, first=first)


def _sample_of_sums(reasons: Reasons) -> Sample | None:
    """Return the question behind a cohort's sums, stored when they are booked; None if the Guest has no name for it."""
    question_asked = reasons.question
    if not question_asked.request:
        return None
    question = packed_question(question_asked.ids, shares=question_asked.shares)
    return Sample(question_asked.model_id, COHORT, b"", (), lambda _: question, question_asked.request)


def read_ranking(request: Asked) -> Ask:
    """Read the start of a ranking; raise SecurityError if no names were requested, or another Host ranks."""
    reasons = request.session.need(Reasons, "ranking_before_reasons")
    if request.sender != request.session.guest or reasons.cohort is not None or not reasons.served.plan.last:
        raise SecurityError("ranking_opened_out_of_turn")
    return Ask(approval=reasons.approval, subject=reasons)


def read_labels(request: Asked) -> Ask:
    """Read which ranking ends. The answer is counted, since a question is ranked :data:`RANKED` times at most.

    A question is repeated with the same terms, but a ranking's other inputs are the Guest's word: a Guest that shifted its shares again
    and again would find out the size of each contribution.

    Raises
    ------
    SecurityError
        If no ranking was begun.
    """
    ranking = request.session.need(Ranking, "labels_of_no_ranking")
    if request.sender != request.session.guest:
        raise SecurityError("labels_by_other_than_guest")
    request.session.drop(Ranking)
    charges = []
    if ranking.question:
        question = Question(request.session.guest, ranking.question, REASONS, ranking.structure, ())
        charges.append(Charge(question, times=RANKED))
    return Ask(charges=charges, subject=ranking)


# Handlers: what is answered to a message that has a permit.


def answer_reasons(permit: Permit, opened: Opened, message: AskReasons, noise: Noise) -> Reply:
    """Say who is answered about; a Host whose sides are passed on sends masks of them."""
    reasons: Reasons = permit.ask.subject
    reasons.missing = set(np.flatnonzero(~permit.spent).tolist())
    reply = permit.held_records()
    if not reasons.served.plan.last:
        reasons.masks = noise.flags(len(message.ids), message.features[reasons.served.index + 1], 2)
        reply = replace(reply, masks=to_bitmap(reasons.masks.ravel()))
    permit.session.drop(Ranking)
    permit.session.keep(Reasons, reasons)
    yield permit.guest, reply


def answer_cohort(permit: Permit, opened: Opened, message: AskCohort, noise: Noise) -> Reply:
    """Say of whom there is a record."""
    reasons: Reasons = permit.ask.subject
    reasons.missing = set(range(len(message.ids)))
    permit.session.drop(Ranking)
    permit.session.keep(Reasons, reasons)
    yield permit.guest, permit.held_records()


def answer_terms(permit: Permit, opened: Opened, message: ReasonTerms, noise: Noise) -> Reply:
    """Step 2; at a cohort's last people, step 3."""
    terms: _Terms = permit.ask.subject
    if terms.reasons.cohort is None:
        yield from _weigh_person(permit, terms, message, opened["people"])
    else:
        yield from _weigh_cohort(permit, terms, message, opened["people"], noise)


def _people(records: Records) -> list[tuple[Columns, bool]]:
    """Return the columns of each of some people, ``(1,)`` each, and whether there is a record."""
    has_record = records.has_record.tolist()
    return [
        ({name: column[i : i + 1] for name, column in records.columns.items()}, has_record[i])
        for i in range(len(has_record))
    ]


def _weigh_person(permit: Permit, terms: _Terms, message: ReasonTerms, records: Records) -> Reply:
    """Step 2 for names."""
    reasons = terms.reasons
    served = reasons.served
    weighting = reasons.weighting
    if not isinstance(weighting, PersonWeighting):
        raise SecurityError("names_in_place_of_sums")
    ((columns, has_record),) = _people(records)
    decided = Decided.of(reasons.compiled, weighting.drop_factors, columns, has_record)
    sides_before = _sides_before(reasons, message.sides)
    if reasons.masks is not None:
        masked_sides = decided.sides ^ reasons.masks[message.person]
        sides = to_bitmap(np.concatenate([sides_before, masked_sides]).ravel())
        passed_on = weighting.passed_on(message.terms, decided)
        yield served.following, ReasonTerms(message.conversation, message.person, passed_on, terms.digest, sides)
        return
    # The Guest's own features come first, of which it needs no share from here.
    none = np.zeros((reasons.shape.features[0], 2), dtype=bool)
    reasons.values_enc = weighting.values(message.terms, decided)
    reasons.sides = np.concatenate([none, sides_before, decided.sides]).T
    yield from _share(permit, reasons)


def _sides_before(reasons: Reasons, sides: bytes) -> Flags:
    """Return what the Hosts before this one passed on, ``(their features, 2)``."""
    count = sum(reasons.shape.features[1 : reasons.served.index + 1])
    return from_bitmap(sides, 2 * count).reshape(count, 2)


def _weigh_cohort(permit: Permit, terms: _Terms, message: ReasonTerms, records: Records, noise: Noise) -> Reply:
    """Step 2 for sums; at the last people, step 3."""
    reasons = terms.reasons
    served = reasons.served
    weighting = reasons.weighting
    if isinstance(weighting, PersonWeighting):
        raise SecurityError("sums_in_place_of_names")
    holds = np.concatenate([reasons.compiled.decide(*person) for person in _people(records)], axis=1)
    if not served.plan.last:
        passed_on = weighting.passed_on(message.terms, holds)
        yield served.following, ReasonTerms(message.conversation, message.person, passed_on, terms.digest)
        return
    reasons.values_enc = weighting.values(message.terms, holds, reasons.values_enc)
    if not reasons.missing:
        permit.session.drop(Reasons)
        sums = permit.stored
        if sums is None:
            sums = weighting.sums(reasons.values_enc, len(reasons.has_record), noise.below)
        yield served.following, ContributionSums(message.conversation, sums)


def answer_ranking(permit: Permit, opened: Opened, message: OpenRanking, noise: Noise) -> Reply:
    """Take the Guest's offer."""
    reasons: Reasons = permit.ask.subject
    reasons.opened = message
    yield from _share(permit, reasons)


def _share(permit: Permit, reasons: Reasons) -> Reply:
    """Step 3, once a person's terms have come, through other Hosts maybe, and the Guest's offer: each is ranked once."""
    weighting = reasons.weighting
    sides = reasons.sides
    offer = reasons.opened
    if sides is None or offer is None or not isinstance(weighting, PersonWeighting):
        return
    ranking = weighting.ranking(reasons.values_enc, sides, reasons.shape)
    permit.session.keep(Ranking, Ranking(ranking, reasons.name, reasons.served.structure))
    reasons.values_enc = None
    reasons.sides = None
    reasons.opened = None
    yield permit.guest, MaskedContributions(offer.conversation, ranking.share(offer.offer))


def answer_labels(permit: Permit, opened: Opened, message: ChooseLabels, noise: Noise) -> Reply:
    """Garble the circuit that names the largest contributions."""
    ranking: Ranking = permit.ask.subject
    yield permit.guest, GarbledRanking(message.conversation, ranking.host.garble(message.choices))


REASONS_KINDS = {
    AskReasons: Kind(read_reasons, answer_reasons),
    AskCohort: Kind(read_cohort, answer_cohort),
    ReasonTerms: Kind(read_terms, answer_terms, passed_on=True, reply="sums"),
    OpenRanking: Kind(read_ranking, answer_ranking),
    ChooseLabels: Kind(read_labels, answer_labels),
}


def shape_of(question: AskReasons | AskCohort) -> ReasonShape:
    """Return the requested sizes."""
    if isinstance(question, AskCohort):
        return ReasonShape(question.features, 1, question.value_bits)
    return ReasonShape(question.features, question.names, question.value_bits, question.groups)
