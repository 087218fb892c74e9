"""A Host's desk for reasons: weighs encrypted terms with factors of its own, ranks the outcome or adds it up. Reads none of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.cipher import WeightedPublicSide
from backend.crypto.paillier import PaillierPublicSide
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.hosting.halves import Half, Halves
from backend.protocols.hosting.records import look_up
from backend.protocols.hosting.session import Answer, Handlers, Session, Sessions
from backend.protocols.inference.ranking.host import RankingHost
from backend.protocols.inference.reasons.cohort import LEAST, Cohorts
from backend.protocols.inference.reasons.host_side import CompiledFactors, PersonTerms
from backend.protocols.inference.reasons.terms import ReasonShape
from backend.protocols.messages import (
    AskCohort,
    AskReasons,
    ChooseLabels,
    ContributionSums,
    GarbledRanking,
    HeldRecords,
    MaskedContributions,
    OpenRanking,
    ReasonTerms,
    to_bitmap,
)
from backend.store.query_budget import QueryBudget

REASONS = "reasons"  # what is counted in the budget, for itself


@dataclass(repr=False)
class _Request:
    """People whose terms are coming in, and what was done for them so far."""

    half: Half
    side: WeightedPublicSide
    shape: ReasonShape
    terms: PersonTerms
    factors: dict[
        int, NDArray[np.bool_]
    ]  # of everybody who is answered about, by place among the ids; each is used once
    cohort: bool
    values_enc: list[Any] | None = None  # of one person, to be ranked; of a cohort, added up
    opened: OpenRanking | None = None

    def person(self, place: int) -> NDArray[np.bool_]:
        """The 0/1 of a person whose terms have come."""
        if place not in self.factors:
            raise SecurityError("Terms came of somebody who is not answered about, or twice; they were refused.")
        return self.factors.pop(place)


class ReasonsDesk:
    """Answers requests for reasons.

    Parameters
    ----------
    table : PartyTable
    halves : Halves
    sessions : Sessions
    budget : QueryBudget, optional
        None = questions are not counted.
    cohorts : Cohorts
        Which cohorts were answered before.
    """

    def __init__(
        self,
        table: PartyTable,
        halves: Halves,
        sessions: Sessions,
        budget: QueryBudget | None,
        cohorts: Cohorts,
    ) -> None:
        self._table, self._halves, self._sessions = table, halves, sessions
        self._budget, self._cohorts = budget, cohorts

    def handlers(self) -> Handlers:
        """What this desk answers."""
        return {
            AskReasons: self._ask_reasons,
            AskCohort: self._ask_cohort,
            ReasonTerms: self._reason_terms,
            OpenRanking: self._open_ranking,
            ChooseLabels: self._choose_labels,
        }

    def _ask_reasons(self, sender: str, asked: AskReasons) -> Answer:
        session = self._opened(sender, asked)
        half = self._halves.get(asked.model_id)
        _, held = look_up(self._table, session, asked.ids)
        spent = np.zeros(len(held), dtype=bool)
        if self._budget is not None and session.played is None and asked.conversation not in self._sessions.uncounted:
            counted = np.flatnonzero(held)
            spent[counted] = self._budget.take(asked.model_id, [asked.ids[i] for i in counted], REASONS)
        self._begin(session, half, asked, asked.names, ~spent)
        if self._budget is None or not spent.any():
            yield sender, HeldRecords(asked.conversation, to_bitmap(held))
        else:
            told = to_bitmap(spent), self._budget.limit, self._budget.days
            yield sender, HeldRecords(asked.conversation, to_bitmap(held), *told)

    def _ask_cohort(self, sender: str, asked: AskCohort) -> Answer:
        session = self._opened(sender, asked)
        half = self._halves.get(asked.model_id)
        _, held = look_up(self._table, session, asked.ids)
        members = [i for i, known in zip(asked.ids, held.tolist(), strict=True) if known]
        if len(set(asked.ids)) < len(asked.ids):
            raise SecurityError("A cohort named somebody twice; name everybody once.")
        if session.played is None:
            self._cohorts.admit(asked.model_id, members)
        elif len(members) < LEAST:
            raise SecurityError(f"A cohort of {len(members)} people was asked about; {LEAST} or more are needed.")
        self._begin(session, half, asked, 1, np.ones(len(asked.ids), dtype=bool))
        yield sender, HeldRecords(asked.conversation, to_bitmap(held))

    def _opened(self, sender: str, asked: AskReasons | AskCohort) -> Session:
        session = self._sessions.of(asked.conversation)
        if sender != session.guest:
            raise SecurityError("Only the Guest may ask for reasons.")
        if not asked.ids:
            raise SecurityError("Reasons were asked for, but of nobody.")
        return session

    def _begin(
        self, session: Session, half: Half, asked: AskReasons | AskCohort, names: int, answered: NDArray[np.bool_]
    ) -> None:
        """Look the people up; how they answer at this Host's splits is all that is kept of them."""
        side, place = session.cipher, half.plan.place
        if not isinstance(side, WeightedPublicSide):
            raise SecurityError(
                "Reasons were asked for under no key that can weigh numbers; offer a Paillier key first."
            )
        compiled = CompiledFactors(half.model, half.step, asked.shares)
        if len(asked.features) != half.plan.hosts + 1 or asked.features[place + 1] != len(compiled.names):
            raise SecurityError(
                "The numbers of features that were named do not fit the model; the request was refused."
            )
        shape = ReasonShape(asked.features, names, asked.value_bits, side.bits)
        columns, held = look_up(self._table, session, asked.ids)
        factors = {
            i: compiled.decide({name: column[i : i + 1] for name, column in columns.items()}, bool(held[i]))
            for i in np.flatnonzero(answered).tolist()
        }
        terms = PersonTerms(side, compiled, shape, place + 1)
        session.keep(_Request, _Request(half, side, shape, terms, factors, isinstance(asked, AskCohort)))

    def _reason_terms(self, sender: str, message: ReasonTerms) -> Answer:
        session = self._sessions.of(message.conversation)
        request = session.need(_Request, "Terms came before reasons were asked for.")
        kept, half = request.person(message.person), request.half
        if not half.plan.last:
            terms = request.terms.passed_on(message.terms, kept)
            yield half.following, ReasonTerms(message.conversation, message.person, terms)
            return
        values_enc = request.terms.last(message.terms, kept)
        if not request.cohort:
            request.values_enc = values_enc
            yield from self._share(session, request)
            return
        before = request.values_enc or []
        both = [([*before[i : i + 1], one], [1] * (1 + bool(before))) for i, one in enumerate(values_enc)]
        request.values_enc = [request.side.weighted_sums(pair, [(range(len(pair)), ones)])[0] for pair, ones in both]
        if not request.factors:
            session.drop(_Request)
            yield half.following, ContributionSums(message.conversation, request.side.refreshed(request.values_enc))

    def _open_ranking(self, sender: str, message: OpenRanking) -> Answer:
        session = self._sessions.of(message.conversation)
        request = session.need(_Request, "A ranking was opened before reasons were asked for.")
        if sender != session.guest or request.cohort or not request.half.plan.last:
            raise SecurityError("A ranking was opened where none can be; it was refused.")
        request.opened = message
        yield from self._share(session, request)

    @staticmethod
    def _share(session: Session, request: _Request) -> Answer:
        """Once a person's terms have come, through other Hosts maybe, and the Guest's offer: each is ranked once."""
        if request.values_enc is None or request.opened is None:
            return
        if not isinstance(request.side, PaillierPublicSide):
            raise SecurityError("Names are ranked under a Paillier key only; offer one.")
        values_enc, opened = request.terms.spread(request.values_enc), request.opened
        request.values_enc = request.opened = None
        ranking = session.keep(RankingHost, RankingHost(request.side, values_enc, request.shape.ranking))
        yield session.guest, MaskedContributions(opened.conversation, ranking.share(opened.offer))

    def _choose_labels(self, sender: str, message: ChooseLabels) -> Answer:
        session = self._sessions.of(message.conversation)
        ranking = session.need(RankingHost, "Labels were chosen of no ranking.")
        if sender != session.guest:
            raise SecurityError("Only the Guest may choose labels.")
        session.drop(RankingHost)
        yield sender, GarbledRanking(message.conversation, ranking.garble(message.choices))
