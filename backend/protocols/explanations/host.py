"""A Host's handler for reasons: multiplies encrypted terms by its factors, ranks the outcome or adds it up. Reads none of it.

The steps are those of :mod:`backend.protocols.explanations.guest`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.explanations.cohort import MIN_PEOPLE, Cohorts
from backend.protocols.explanations.host_factors import CompiledFactors
from backend.protocols.explanations.messages import (
    AskCohort,
    AskReasons,
    ChooseLabels,
    ContributionSums,
    GarbledRanking,
    MaskedContributions,
    OpenRanking,
    ReasonTerms,
)
from backend.protocols.explanations.shape import ReasonShape
from backend.protocols.explanations.weighting import Weighting, weighting_of
from backend.protocols.host_state import (
    Answer,
    Handlers,
    HostModels,
    HostSession,
    HostSessions,
    ServedModel,
    count_question,
)
from backend.protocols.ranking.host import RankingHost
from backend.protocols.transport.messages import HeldRecords
from backend.protocols.transport.packing import to_bitmap
from backend.store.query_budget import QueryBudget
from backend.trees.ensemble import Columns

REASONS = "reasons"  # what is counted in the budget, for itself


@dataclass(repr=False)
class _Request:
    """People whose terms are coming in, and what was done for them so far."""

    served: ServedModel
    shape: ReasonShape
    weighting: Weighting
    # of everybody who is answered about, by position among the ids; each is used once
    factors: dict[int, NDArray[np.bool_]]
    cohort: bool
    values_enc: Any = None  # of one person, to be ranked; of a cohort, added up
    opened: OpenRanking | None = None

    def person(self, index: int) -> NDArray[np.bool_]:
        """The 0/1 of a person whose terms have come."""
        if index not in self.factors:
            raise SecurityError("Terms came of somebody who is not answered about, or twice; they were refused.")
        return self.factors.pop(index)


@dataclass(repr=False)
class ReasonsHandler:
    """Answers requests for reasons.

    Parameters
    ----------
    table : PartyTable
    partial_models : HostModels
    sessions : HostSessions
    budget : QueryBudget, optional
        None = questions are not counted.
    cohorts : Cohorts
        Which cohorts were answered before.
    """

    table: PartyTable
    partial_models: HostModels
    sessions: HostSessions
    budget: QueryBudget | None
    cohorts: Cohorts

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
        """Step 1 for names."""
        session, served = self._opened(sender, asked)
        columns, held = session.look_up(self.table, asked.ids)
        budget = self.budget if self.sessions.counts(asked.conversation) else None
        spent, message = count_question(budget, asked.conversation, asked.model_id, asked.ids, held, REASONS)
        self._begin(session, served, asked, columns, held, ~spent)
        yield sender, message

    def _ask_cohort(self, sender: str, asked: AskCohort) -> Answer:
        """Step 1 for sums; they are not counted, for cohorts have a rule of their own."""
        session, served = self._opened(sender, asked)
        columns, held = session.look_up(self.table, asked.ids)
        members = [i for i, known in zip(asked.ids, held.tolist(), strict=True) if known]
        if len(set(asked.ids)) < len(asked.ids):
            raise SecurityError("A cohort named somebody twice; name everybody once.")
        if session.played is None:
            self.cohorts.admit(asked.model_id, members)
        elif len(members) < MIN_PEOPLE:
            raise SecurityError(f"A cohort of {len(members)} people was asked about; {MIN_PEOPLE} or more are needed.")
        self._begin(session, served, asked, columns, held, np.ones(len(asked.ids), dtype=bool))
        yield sender, HeldRecords(asked.conversation, to_bitmap(held))

    def _opened(self, sender: str, asked: AskReasons | AskCohort) -> tuple[HostSession, ServedModel]:
        session, served = self.sessions.of(asked.conversation), self.partial_models.get(asked.model_id)
        if not sender == session.guest == served.model.guest:
            raise SecurityError("Only the Guest of a model may ask for reasons.")
        if not asked.ids:
            raise SecurityError("Reasons were asked for, but of nobody.")
        return session, served

    @staticmethod
    def _begin(
        session: HostSession,
        served: ServedModel,
        asked: AskReasons | AskCohort,
        columns: Columns,
        held: NDArray[np.bool_],
        answered: NDArray[np.bool_],
    ) -> None:
        """How people answer at this Host's splits is all that is kept of them."""
        plan, counts, cohort = served.plan, asked.features, isinstance(asked, AskCohort)
        compiled = CompiledFactors(served.model, served.step, asked.shares)
        own = counts[served.index + 1 :][:1]
        if len(counts) != plan.hosts + 1 or min(counts) < 0 or own != (len(compiled.names),):
            raise SecurityError("The numbers of features do not fit the model; the request was refused.")
        shape = ReasonShape(counts, 1 if isinstance(asked, AskCohort) else asked.names, asked.value_bits)
        weighting = weighting_of(session.cipher, compiled, shape, plan, len(asked.ids) if cohort else 0)
        factors = {
            i: compiled.decide({name: column[i : i + 1] for name, column in columns.items()}, bool(held[i]))
            for i in np.flatnonzero(answered).tolist()
        }
        session.keep(_Request, _Request(served, shape, weighting, factors, cohort))

    def _reason_terms(self, sender: str, message: ReasonTerms) -> Answer:
        """Step 2; at a cohort's last person, step 3."""
        session = self.sessions.of(message.conversation)
        request = session.need(_Request, "Terms came before reasons were asked for.")
        served = request.served
        if sender != served.preceding:
            raise SecurityError(f"Terms for this model come from {served.preceding}; others were refused.")
        kept = request.person(message.person)
        if not served.plan.last:
            terms = request.weighting.passed_on(message.terms, kept)
            yield served.following, ReasonTerms(message.conversation, message.person, terms)
            return
        before = request.values_enc if request.cohort else None
        request.values_enc = request.weighting.values(message.terms, kept, before)
        if not request.cohort:
            yield from self._share(session, request)
        elif not request.factors:
            session.drop(_Request)
            sums = request.weighting.sums(request.values_enc)
            yield served.following, ContributionSums(message.conversation, sums)

    def _open_ranking(self, sender: str, message: OpenRanking) -> Answer:
        session = self.sessions.of(message.conversation)
        request = session.need(_Request, "A ranking was opened before reasons were asked for.")
        if sender != session.guest or request.cohort or not request.served.plan.last:
            raise SecurityError("A ranking was opened where none can be; it was refused.")
        request.opened = message
        yield from self._share(session, request)

    @staticmethod
    def _share(session: HostSession, request: _Request) -> Answer:
        """Step 3, once a person's terms have come, through other Hosts maybe, and the Guest's offer: each is ranked once."""
        if request.values_enc is None or request.opened is None:
            return
        blinded, opened = partial(request.weighting.blinded, request.values_enc), request.opened
        request.values_enc = request.opened = None
        ranking = session.keep(RankingHost, RankingHost(blinded, request.shape.ranking))
        yield session.guest, MaskedContributions(opened.conversation, ranking.share(opened.offer))

    def _choose_labels(self, sender: str, message: ChooseLabels) -> Answer:
        session = self.sessions.of(message.conversation)
        ranking = session.need(RankingHost, "Labels were chosen of no ranking.")
        if sender != session.guest:
            raise SecurityError("Only the Guest may choose labels.")
        session.drop(RankingHost)
        yield sender, GarbledRanking(message.conversation, ranking.garble(message.choices))
