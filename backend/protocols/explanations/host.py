"""A Host's handler for reasons: multiplies encrypted terms by its factors, ranks the outcome or adds it up. Reads none of it.

The steps are those of :mod:`backend.protocols.explanations.guest`.
"""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import msgpack
import numpy as np

from backend.crypto.paillier.scheme import PaillierPublicSide
from backend.data.table import PartyTable
from backend.errors import QuestionRefused, SecurityError
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
)
from backend.protocols.explanations.shape import MAGNITUDE_BITS, ReasonShape
from backend.protocols.explanations.weighting import PersonWeighting, Weighting, weighting_of
from backend.protocols.host_state import (
    Answer,
    Answering,
    Flags,
    Handlers,
    HostSession,
    ServedModel,
    digest_of,
    members,
)
from backend.protocols.ranking.host import RankingHost
from backend.protocols.transport.codec import encode
from backend.protocols.transport.messages import HeldRecords
from backend.protocols.transport.packing import from_bitmap, to_bitmap
from backend.store.accountant import COHORT, REASONS, Question
from backend.trees.ensemble import Columns

RANKED = 2  # times that one question is ranked: once, and once more where the answer was lost


@dataclass(repr=False)
class _Request:
    """People whose terms are coming in, and what was done for them so far."""

    served: ServedModel
    shape: ReasonShape
    weighting: Weighting | PersonWeighting
    # of everybody who is answered about, by position among the ids; each is used once
    factors: dict[int, Decided]
    held: Flags
    asked: AskReasons | AskCohort
    digest: str  # of the question, without its terms
    masks: Flags | None = None  # (people, own features, 2), of sides that are passed on
    name: str = ""  # of the question about the person who is ranked, where it may be repeated
    cohort: Question | None = None  # as it is counted
    values_enc: Any = None  # of one person, to be ranked; of a cohort, added up
    sides: Flags | None = None  # (2, features): of that person, this Host's shares
    opened: OpenRanking | None = None

    def people(self, index: int) -> list[Decided]:
        """How those whose terms have come answer here: from that one on, as many of a cohort as share a message."""
        together = 1 if isinstance(self.weighting, PersonWeighting) else self.weighting.together
        indices = range(index, min(index + together, len(self.held)))
        if index % together or not indices or any(i not in self.factors for i in indices):
            raise SecurityError("terms_of_other_person")
        return [self.factors.pop(i) for i in indices]


@dataclass(frozen=True, repr=False)
class _Ranking:
    """One person's ranking, and the question that it answers; one without a name is counted anew each time."""

    host: RankingHost
    question: str
    structure: str


@dataclass(repr=False)
class ReasonsHandler:
    """Answers requests for reasons."""

    table: PartyTable
    answering: Answering

    def __post_init__(self) -> None:
        self.sessions = self.answering.sessions

    def handlers(self) -> Handlers:
        """What this handler answers."""
        return {
            AskReasons: self._ask_reasons,
            AskCohort: self._ask_cohort,
            ReasonTerms: self._reason_terms,
            OpenRanking: self._open_ranking,
            ChooseLabels: self._choose_labels,
        }

    def _ask_reasons(self, sender: str, asked: AskReasons) -> Answer:
        """Step 1 for names; everybody is a question of their own, since their terms come one after the other."""
        session, served = self._opened(sender, asked)
        columns, held = session.look_up(self.table, asked.ids)
        disclosed = shape_of(asked).told
        reached, message = np.zeros(len(held), dtype=np.uint8), HeldRecords(asked.conversation, to_bitmap(held))
        for i, known in enumerate(held.tolist()):
            # of whom there is no record nothing is counted, but their terms are bound to the question as anybody's
            people, name = asked.ids[i : i + 1] if known else (), of_person(asked.request, i)
            question = self._question(session, served, asked, people, disclosed, name)
            _, told_guest, _ = self.answering.count(question, asked.conversation, asked.ids[i : i + 1], held[i : i + 1])
            if told_guest.spent:
                reached[i] = told_guest.spent[0]
                message = replace(told_guest, held=message.held, spent=reached.tobytes())
        request = self._begin(session, served, asked, columns, held, reached == 0)
        if not served.plan.last:
            own = asked.features[served.index + 1]
            request.masks = random_flags(len(held), own, 2)
            message = replace(message, masks=to_bitmap(request.masks.ravel()))
        yield sender, message

    def _ask_cohort(self, sender: str, asked: AskCohort) -> Answer:
        """Step 1 for sums: all of the people, each for the first time within the window, or nobody.

        They are counted when all terms have come: what is broken off before has told nothing.
        """
        session, served = self._opened(sender, asked)
        columns, held = session.look_up(self.table, asked.ids)
        people = members(asked.ids, held)
        if len(set(asked.ids)) < len(asked.ids):
            raise SecurityError("cohort_names_twice")
        min_people = max(MIN_PEOPLE, self.answering.min_group)
        if len(people) < min_people:
            raise SecurityError("small_cohort", people=len(people), least=min_people)
        shape = shape_of(asked)
        disclosed = shape.sums_bits(len(asked.ids))
        self._check_carried(asked, shape, served, len(people), disclosed)
        question = self._question(session, served, asked, people, disclosed, "")
        self.answering.count_all(question, asked.conversation, only_look=True)
        request = self._begin(session, served, asked, columns, held, np.ones(len(asked.ids), dtype=bool))
        request.cohort = question
        yield sender, HeldRecords(asked.conversation, to_bitmap(held))

    def _check_carried(
        self, asked: AskCohort, shape: ReasonShape, served: ServedModel, people: int, bits: float
    ) -> None:
        """Raise SecurityError if sums could say how too many of a cohort's people answer here (decision 0042).

        All answers about one person take `capacity` bits; sums may carry a share of what it takes to name all people's.
        """
        layout = served.model.layout
        scale = 0 if layout is None else max(0, layout.scale)
        if asked.value_bits > shape.scale + MAGNITUDE_BITS + scale:
            raise SecurityError("values_too_long", bits=asked.value_bits, most=shape.scale + MAGNITUDE_BITS + scale)
        share = self.answering.named_share(asked.conversation)
        each = share * served.model.capacity
        if share and bits > people * each:
            wanted = ceil(bits / each) if each else 0
            raise SecurityError("cohort_could_name", bits=round(bits), people=people, wanted=wanted)

    @staticmethod
    def _question(
        session: HostSession,
        served: ServedModel,
        asked: AskReasons | AskCohort,
        people: tuple[str, ...],
        disclosed: float,
        request: str,
    ) -> Question:
        kind, capacity = COHORT if isinstance(asked, AskCohort) else REASONS, served.model.capacity
        return Question(session.guest, request, kind, served.structure, people, min(disclosed, capacity), capacity)

    def _opened(self, sender: str, asked: AskReasons | AskCohort) -> tuple[HostSession, ServedModel]:
        session, served = self.sessions.of(asked.conversation), self.answering.partial_models.get(asked.model_id)
        if not sender == session.guest == served.model.guest:
            raise SecurityError("reasons_by_other_than_guest")
        if not asked.ids:
            raise SecurityError("reasons_of_no_person")
        return session, served

    @staticmethod
    def _begin(
        session: HostSession,
        served: ServedModel,
        asked: AskReasons | AskCohort,
        columns: Columns,
        held: Flags,
        answered: Flags,
    ) -> _Request:
        """How people answer at this Host's splits is all that is kept of them."""
        plan, counts, cohort = served.plan, asked.features, isinstance(asked, AskCohort)
        compiled = CompiledFactors(served.model, served.step, asked.shares)
        own = counts[served.index + 1 :][:1]
        if len(counts) != plan.hosts + 1 or min(counts) < 0 or own != (len(compiled.names),):
            raise SecurityError("features_do_not_fit")
        shape = shape_of(asked)
        weighting: Weighting | PersonWeighting
        if cohort:
            weighting = weighting_of(session.cipher, compiled, shape, plan, len(asked.ids))
        else:
            weighting = PersonWeighting(session.cipher, compiled, shape, plan)
        factors = {
            i: Decided.of(compiled, {name: column[i : i + 1] for name, column in columns.items()}, bool(held[i]))
            for i in np.flatnonzero(answered).tolist()
        }
        same = hashlib.sha256(session.key + encode(replace(asked, conversation=""))).hexdigest()
        return session.keep(_Request, _Request(served, shape, weighting, factors, held, asked, same))

    def _reason_terms(self, sender: str, message: ReasonTerms) -> Answer:
        """Step 2; at a cohort's last people, step 3."""
        session = self.sessions.of(message.conversation)
        request = session.need(_Request, "Terms came before reasons were asked for.")
        served = request.served
        if sender != served.preceding:
            raise SecurityError("terms_of_other_sender", sender=served.preceding)
        decided, question = request.people(message.person), message.question
        self._keep_sample(session, request, message)
        if isinstance(request.asked, AskReasons):
            # a Host before this one made new bytes of the same question
            question = question if served.index else digest_of(request.digest, message.terms)
            name = of_person(request.asked.request, message.person)
            self.answering.bind(session.guest, name, message.conversation, question)
            request.name = name
            yield from self._one_of_many(request, message, decided[0], question)
        else:
            kept = np.concatenate([one.kept for one in decided], axis=1)
            yield from self._some_of_cohort(session, request, message, kept, question)

    def _one_of_many(self, request: _Request, message: ReasonTerms, decided: Decided, question: str) -> Answer:
        """Step 2 for names."""
        served, before, weighting = request.served, self._sides_before(request, message.sides), request.weighting
        if not isinstance(weighting, PersonWeighting):
            raise SecurityError("names_in_place_of_sums")
        if request.masks is not None:
            own = decided.sides ^ request.masks[message.person]
            sides = to_bitmap(np.concatenate([before, own]).ravel())
            terms = weighting.passed_on(message.terms, decided)
            yield served.following, ReasonTerms(message.conversation, message.person, terms, question, sides)
            return
        # the Guest's own features come first, of which it needs no share from here
        none = np.zeros((request.shape.features[0], 2), dtype=bool)
        request.values_enc = weighting.values(message.terms, decided)
        request.sides = np.concatenate([none, before, decided.sides]).T
        yield from self._share(self.sessions.of(message.conversation), request)

    @staticmethod
    def _sides_before(request: _Request, sides: bytes) -> Flags:
        """What the Hosts before this one passed on, ``(their features, 2)``."""
        count = sum(request.shape.features[1 : request.served.index + 1])
        return from_bitmap(sides, 2 * count).reshape(count, 2)

    def _some_of_cohort(
        self, session: HostSession, request: _Request, message: ReasonTerms, kept: Flags, question: str
    ) -> Answer:
        """Step 2 for sums; at the last people, step 3."""
        served, weighting = request.served, request.weighting
        if isinstance(weighting, PersonWeighting):
            raise SecurityError("sums_in_place_of_names")
        if not request.factors and request.cohort is not None:
            self.answering.count_all(request.cohort, message.conversation)
        if not served.plan.last:
            terms = weighting.passed_on(message.terms, kept)
            yield served.following, ReasonTerms(message.conversation, message.person, terms, question)
            return
        request.values_enc = weighting.values(message.terms, kept, request.values_enc)
        if not request.factors:
            session.drop(_Request)
            sums = weighting.sums(request.values_enc, len(request.held))
            yield served.following, ContributionSums(message.conversation, sums)

    def _keep_sample(self, session: HostSession, request: _Request, message: ReasonTerms) -> None:
        """Keep some people's terms for an auditor, as vectors are kept; those of nobody here would only displace them."""
        cipher, requests = session.cipher, self.answering.requests
        if requests is None or not isinstance(cipher, PaillierPublicSide):
            return
        if request.served.index or not request.held[message.person]:
            return
        if self.sessions.counts(message.conversation):
            subject = request.asked.ids[message.person]
            asked = request.asked.shares, request.asked.features, request.asked.value_bits
            row: bytes = msgpack.packb([message.terms, *asked])
            requests.note(request.asked.model_id, [subject], cipher.key.to_bytes(), [row], REASONS)

    def _open_ranking(self, sender: str, message: OpenRanking) -> Answer:
        session = self.sessions.of(message.conversation)
        request = session.need(_Request, "A ranking was opened before reasons were asked for.")
        if sender != session.guest or request.cohort or not request.served.plan.last:
            raise SecurityError("ranking_opened_out_of_turn")
        request.opened = message
        yield from self._share(session, request)

    @staticmethod
    def _share(session: HostSession, request: _Request) -> Answer:
        """Step 3, once a person's terms have come, through other Hosts maybe, and the Guest's offer: each is ranked once."""
        weighting, sides, opened = request.weighting, request.sides, request.opened
        if sides is None or opened is None or not isinstance(weighting, PersonWeighting):
            return
        ranking = weighting.ranking(request.values_enc, sides, request.shape)
        session.keep(_Ranking, _Ranking(ranking, request.name, request.served.structure))
        request.values_enc = request.sides = request.opened = None
        yield session.guest, MaskedContributions(opened.conversation, ranking.share(opened.offer))

    def _choose_labels(self, sender: str, message: ChooseLabels) -> Answer:
        session = self.sessions.of(message.conversation)
        ranking = session.need(_Ranking, "Labels were chosen of no ranking.")
        if sender != session.guest:
            raise SecurityError("labels_by_other_than_guest")
        session.drop(_Ranking)
        self._count_ranking(session.guest, ranking, message.conversation)
        yield sender, GarbledRanking(message.conversation, ranking.host.garble(message.choices))

    def _count_ranking(self, guest: str, ranking: _Ranking, conversation: str) -> None:
        """Raise QuestionRefused where a question was ranked :data:`RANKED` times before.

        A question is repeated uncounted in the same terms, but what else goes into a ranking is the Guest's word: one that shifted its
        shares, again and again, would find out how large each contribution is.
        """
        if not ranking.question or self.answering.account(conversation) is None:
            return
        for number in range(RANKED):
            name = f"{ranking.question}.ranked{number}"
            question = Question(guest, name, REASONS, ranking.structure, ())
            with suppress(QuestionRefused):  # that one is taken
                self.answering.count(question, conversation, (), np.zeros(0, dtype=bool))
                self.answering.bind(guest, name, conversation, secrets.token_hex(32))
                return
        raise QuestionRefused("ranked_too_often", times=RANKED)


def shape_of(asked: AskReasons | AskCohort) -> ReasonShape:
    """Sizes as they were asked for."""
    if isinstance(asked, AskCohort):
        return ReasonShape(asked.features, 1, asked.value_bits)
    return ReasonShape(asked.features, asked.names, asked.value_bits, asked.groups)


def random_flags(*shape: int) -> Flags:
    """``shape`` random bits from the operating system."""
    count = int(np.prod(shape))
    return from_bitmap(secrets.token_bytes((count + 7) // 8), count).reshape(shape)


def of_person(request: str, index: int) -> str:
    """Name of the question about one of the people of a request; none where it has none."""
    return request and f"{request}.{index}"
