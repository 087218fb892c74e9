"""What a model is worth, to whom it is fair and what its scores give away: measured, kept and read again."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import numpy as np

from backend.compliance.assessment import DISPARITY, ELDERLY, PROXIES
from backend.data.table import SampleSheet
from backend.errors import ParameterError, SampleError
from backend.explain.dependence import Dependence, GroupMeans, partial_dependence
from backend.explain.importance import Measure as ImportanceMeasure
from backend.explain.permutation import Permuted
from backend.explain.stability import Interaction, SteadyImportance, agreement, interactions, steady_importance
from backend.fairness.age_discrimination import AgeCheck
from backend.fairness.disparity import Disparity
from backend.fairness.disparity import as_evidence as disparity_evidence
from backend.fairness.evidence import Basis
from backend.fairness.proxies import as_evidence as proxy_evidence
from backend.jobs import Job
from backend.privacy.disclosure import DisclosedField as LedgerLine
from backend.privacy.disclosure import PartyDisclosure as LedgerRow
from backend.privacy.disclosure import lines as ledger_lines
from backend.privacy.disclosure import table_two
from backend.privacy.leakage import LeakMeter, LeakPoint, LeakReading
from backend.privacy.tradeoff import TradeoffPoint
from backend.protocols.scoring.dither import half_units
from backend.reports.adverse_action_notice import draw as draw_notice
from backend.results import (
    ModelRecord,
    Score,
    ScoreBatch,
)
from backend.services import audit
from backend.services.age_check import AgeRequest, measure_ages
from backend.services.explanation import (
    MeansRequest,
    PermutationRequest,
    measure_means,
    measure_permutation,
    read_means,
)
from backend.services.fairness import (
    DisparityRequest,
    Proxies,
    ProxyRequest,
    group_names,
    measure_disparity,
    measure_proxies,
)
from backend.services.leakage import measure_frontier, measure_leaks
from backend.services.model_card import CardRequest, ModelCard, make_card, measure_card
from backend.services.reasons import (
    CohortImportance,
    CohortRequest,
    Reason,
    Reasons,
    ReasonsRequest,
    give_reasons,
    mean_contributions,
    notice_of,
    of_reasons,
)
from backend.services.registry import MEANS, PERMUTATION, SCORES
from backend.services.running import Running


class Measuring(Running):
    """What a model is worth, to whom it is fair and what its scores give away: measured, kept and read again."""

    def ledger(self, batch: ScoreBatch) -> tuple[tuple[LedgerRow, ...], tuple[LedgerLine, ...]]:
        """Who saw what in a scoring: the paper's Table II, and every field of every message."""
        record = self.model(batch.model_id)
        by_tree = self.guest_model(record.id).outputs.aggregation == "median"
        return (
            table_two(batch.transcript, record.guest, record.hosts, batch.cipher, by_tree=by_tree),
            ledger_lines(batch.transcript, record.guest, batch.cipher),
        )

    def leak_meter(self, model_id: str, score: Score, sample: SampleSheet | None = None) -> LeakReading:
        """What one released score leaves open of the Hosts' answers: the naive count and its entropy.

        Parameters
        ----------
        sample : SampleSheet, optional
            What the score was made of, a row; default the Guest's record of that id.

        Raises
        ------
        SampleError
            The score was not made of these values; typed in or uploaded ones are not kept.
        """
        record = self.model(model_id)
        moved = half_units(self.dither(record.id), record.score_bits)
        own = (sample or self.sample_of(record.id, score.id)).guest
        expectation = self._compiled_model(record).expectation
        known = score.base + score.guest_part
        if score.status != "ok" or not np.isclose(expectation.given(own.columns, 1)[0], known, equal_nan=True).any():
            raise SampleError(
                f"The score of {score.id!r} was made of other values than those in the Guest's table or just typed in, and "
                "uploaded ones are not kept. Score the person as the table has it, or type the values in."
            )
        return LeakMeter(self.guest_model(record.id)).read(own.columns, [score.units], moved)[0]

    def start_leak_curve(self, model_id: str, people: int = 100, seed: int = 7) -> Job[tuple[LeakPoint, ...]]:
        """Read the meter for some test records at several widths of the score: a joint audit that only simulated Hosts answer.

        The points so far are in the job's `result`.
        """

        def work(job: Job[tuple[LeakPoint, ...]]) -> tuple[LeakPoint, ...]:
            record = self.model(model_id)
            body = {**audit.of_model(record), "people": people, "seed": seed}
            with self._audit.noting_failure(record.federation, "leak-audit", body):
                runtime = self._catalogue.runtime(record.federation)
                rows = self._test_rows(record, runtime, min(people, len(self._test_ids(record))), seed)
                points = measure_leaks(
                    runtime, record, self.guest_model(record.id), rows, list(self._part_of(record)), job
                )
            self._audit.note(record.federation, "leak-audit", {**body, "outcome": audit.DONE})
            return points

        return Job(work, 0).start()

    def start_frontier(self, model_id: str, people: int = 500, seed: int = 7) -> Job[tuple[TradeoffPoint, ...]]:
        """Resolution and dither of scores against cover and quality on some test records: a joint audit in the simulation.

        The points so far are in the job's `result`.
        """

        def work(job: Job[tuple[TradeoffPoint, ...]]) -> tuple[TradeoffPoint, ...]:
            record = self.model(model_id)
            body = {**audit.of_model(record), "people": people, "seed": seed}
            with self._audit.noting_failure(record.federation, "leak-audit", body):
                runtime = self._catalogue.runtime(record.federation)
                rows = self._test_rows(record, runtime, min(people, len(self._test_ids(record))), seed)
                points = measure_frontier(
                    runtime, record, self.guest_model(record.id), rows, list(self._part_of(record)), job
                )
            self._audit.note(record.federation, "leak-audit", {**body, "outcome": audit.DONE})
            return points

        return Job(work, 0).start()

    def steady_importance(
        self, model_id: str, measure: ImportanceMeasure = "gain", *, by_party: bool = False
    ) -> tuple[SteadyImportance, ...]:
        """Each feature's or party's share of gain, splits or cover with its interval over the trees, largest first."""
        return steady_importance(self.guest_model(model_id), measure, by_party=by_party)

    def agreement(self, model_id: str) -> float:
        """Rank correlation of importances in even and odd trees, -1 … 1; NaN where too few split to tell."""
        return agreement(self.guest_model(model_id))

    def interactions(self, model_id: str) -> tuple[Interaction, ...]:
        """Pairs of features that meet on paths, the largest gain first."""
        return interactions(self.guest_model(model_id))

    def partial_dependence(self, model_id: str, feature: str) -> Dependence:
        """What the model says on average if everybody had the same value of one of the Guest's features; asks no Host."""
        record = self.model(model_id)
        columns = self._catalogue.runtime(record.federation).table.columns
        return partial_dependence(
            self.guest_model(record.id), self._compiled_model(record).expectation, feature, columns
        )

    def start_permutation(self, request: PermutationRequest) -> Job[tuple[Permuted, ...]]:
        """Measure what every feature in use and every party is worth, in the background; kept until it is measured again."""

        def work(job: Job[tuple[Permuted, ...]]) -> tuple[Permuted, ...]:
            record = self.model(request.model_id)
            done = measure_permutation(self._context(record), request, job)
            self._keep_measured(record, PERMUTATION, "", [asdict(row) for row in done])
            return done

        return Job(work, 0).start()

    def permutation(self, model_id: str) -> tuple[Permuted, ...]:
        """What the last measuring of worth came to; empty where there was none."""
        kept = self._kept(model_id, PERMUTATION).get("")
        return tuple(Permuted(**row) for row in kept.rows) if kept else ()

    def start_means(self, request: MeansRequest) -> Job[GroupMeans]:
        """Measure mean predictions by tenths of a Host's feature in the background; kept until it is measured again."""

        def work(job: Job[GroupMeans]) -> GroupMeans:
            record = self.model(request.model_id)
            done = measure_means(self._context(record), request, job)
            self._keep_measured(record, MEANS, request.feature, [asdict(done)])
            return done

        return Job(work, 0).start()

    def means(self, model_id: str) -> dict[str, GroupMeans]:
        """Host's feature → mean predictions by its groups, as far as they were measured."""
        return {feature: read_means(kept.rows[0]) for feature, kept in self._kept(model_id, MEANS).items()}

    def model_card(self, model_id: str) -> ModelCard:
        """How good a model is and on whom that was measured; without parts where no scores of it are kept."""
        record = self.model(model_id)
        return self._cards.get(
            record.id, lambda: make_card(record, self._partial_model(record).outputs, self._measured(record, SCORES))
        )

    def start_model_card(self, request: CardRequest) -> Job[ModelCard]:
        """Score test records again in the background; the card is made of these from then on."""

        def work(job: Job[ModelCard]) -> ModelCard:
            record = self.model(request.model_id)
            self._keep_scores(record, measure_card(self._context(record), request, job))
            self._audit.note(record.federation, SCORES, {**audit.of_model(record), "outcome": audit.DONE})
            return self.model_card(record.id)

        return Job(work, 0).start()

    def start_disparity(self, request: DisparityRequest) -> Job[Disparity]:
        """Measure outcomes by the groups of a feature in the background; the findings and the report show it from then on."""
        return Job[Disparity](lambda job: self._disparity(request, job), 1).start()

    def _disparity(self, request: DisparityRequest, job: Job[Any]) -> Disparity:
        record = self.model(request.model_id)
        done = measure_disparity(self._context(record), request, job)
        feature, groups = self._feature(record, request.feature), [outcome.group for outcome in done.groups]
        names, names_zh = (group_names(groups, feature, language) for language in ("en", "zh"))
        found = disparity_evidence(done, names, names_zh)
        self._keep(record, DISPARITY, request.feature, found, Basis(done.n, done.cutoff))
        return done

    def start_proxies(self, request: ProxyRequest) -> Job[Proxies]:
        """Measure which features go with a protected attribute in the background; the findings and the report show it."""

        def work(job: Job[Proxies]) -> Proxies:
            record = self.model(request.model_id)
            done = measure_proxies(self._context(record), request, job)
            self._keep(record, PROXIES, request.attribute, proxy_evidence(done.features), Basis(done.n))
            return done

        return Job(work, 1).start()

    def start_evidence(self, request: DisparityRequest | ProxyRequest | AgeRequest) -> Job[Any]:
        """Measure whichever kind of evidence is asked for."""
        if isinstance(request, AgeRequest):
            return self.start_ages(request)
        return self.start_proxies(request) if isinstance(request, ProxyRequest) else self.start_disparity(request)

    def start_ages(self, request: AgeRequest) -> Job[AgeCheck]:
        """Measure what the model makes of elderly ages in the background; the finding and the report show it from then on."""

        def work(job: Job[AgeCheck]) -> AgeCheck:
            record = self.model(request.model_id)
            done = measure_ages(self._context(record), request, job)
            self._keep_measured(record, ELDERLY, request.feature, [asdict(done)])
            return done

        return Job(work, 0).start()

    def start_reasons(self, request: ReasonsRequest) -> Job[Reasons]:
        """Names of what raised people's scores most, in the background; a question of its own about everybody in the sheet."""

        def work(job: Job[Reasons]) -> Reasons:
            record, digest = self.model(request.model_id), audit.sheet_hash(request.samples)
            tried = {**audit.of_model(record), "rows": len(request.samples.ids), "input_sha256": digest}
            with self._audit.noting_failure(record.federation, "reasons", tried):
                runtime, model = self._catalogue.runtime(record.federation), self.guest_model(record.id)
                told = self._told_of_features(record)
                done = give_reasons(runtime, record, model, self._compiled_model(record), request, told, job)
            self._audit.note(record.federation, "reasons", of_reasons(record, done, digest))
            return done

        return Job(work, len(request.samples.ids)).start()

    def _told_of_features(self, record: ModelRecord) -> dict[str, Reason]:
        """What is said of a feature that is a reason; a finding that was overridden with a reason blocks nothing."""
        standing = self._catalogue.reviews(record.federation).standing(record.content_hash)
        blockers: dict[str, list[str]] = {}
        for finding in self.compliance(record.id).findings:
            review = standing.get((finding.rule_id, finding.feature))
            if finding.status == "prohibited" and (review is None or review.verdict != "overridden"):
                blockers.setdefault(finding.feature, []).append(finding.citation)
        return {
            d.feature: Reason(d.party, d.feature, d.expected, d.learned, tuple(blockers.get(d.feature, ())))
            for d in self.directions(record.id)
        }

    def notice(self, reasons: Reasons, sample_id: str, language: str, kind: str) -> bytes:
        """A notice of adverse action for one declined person, or why there is none, as txt, html or pdf; logged by its hash.

        Raises
        ------
        ParameterError
            The person was not declined or has no reasons, or the language or the kind is unknown.
        """
        record = self.model(reasons.model_id)
        person = next((p for p in reasons.people if p.score.id == sample_id), None)
        if person is None:
            raise ParameterError(f"No reasons were asked for about {sample_id!r}; ask for them first.")
        day = datetime.now(UTC).date().isoformat()
        federation = self.federation(record.federation)
        drawn = notice_of(person, self.guest_model(record.id), federation, record.id, day)
        file = draw_notice(drawn, language, kind)
        told = {"language": language, "kind": kind, "blocked": drawn.blocked, "sha256": sha256(file).hexdigest()}
        self._audit.note(record.federation, "notice", {**audit.of_model(record), **told, "outcome": audit.DONE})
        return file

    def start_cohort_importance(self, request: CohortRequest) -> Job[tuple[CohortImportance, ...]]:
        """Mean SHAP contributions of all features over a group of at least 50 people, under encryption, in the background."""

        def work(job: Job[tuple[CohortImportance, ...]]) -> tuple[CohortImportance, ...]:
            record = self.model(request.model_id)
            body = {**audit.of_model(record), "people": len(request.ids) or request.samples, "seed": request.seed}
            body["cipher"] = request.cipher
            with self._audit.noting_failure(record.federation, "cohort", body):
                done = mean_contributions(self._context(record), request, job)
            told = {"traffic": audit.traffic(job.transcript), "outcome": audit.DONE}
            self._audit.note(record.federation, "cohort", {**body, **told})
            return done

        return Job(work, 0).start()
