"""A later sheet of people, scored under encryption and judged by triggers that were set beforehand: stability, calibration, disparity.

As the Guest sees it: scores that its Hosts count like any, its own columns, sums over groups of at least 20 records. One Host's feature
is asked about once a run, so that no two answers differ by a person; its account refuses a second run on nearly the same people.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.paillier.keys import KEY_BITS
from backend.crypto.registry import Cipher
from backend.data.federation import Measure
from backend.data.table import PartyTable, SampleSheet, read_later_sheet
from backend.data.table_file import AS_IT_IS, Reading
from backend.errors import FederationError, FewRecords, HostRefused, PartyUnreachable, QuestionRefused, SampleError
from backend.evaluation.performance import CALIBRATION_BINS, stability
from backend.evaluation.validation import figures
from backend.evaluation.validation.monitoring import (
    Monitored,
    column_shift,
    ratios,
    read_monitored,
    shift,
    tenths,
    triggers,
)
from backend.evaluation.validation.slices import summed
from backend.evaluation.validation.suite import Figure, Found, overall
from backend.fairness import disparity
from backend.fairness.marking import Marking, bounds, check_cutoff, mark
from backend.jobs import Job, work
from backend.policy.bands import MeasuredLine
from backend.protocols.group_sums.grouping import MIN_GROUP, group
from backend.protocols.group_sums.guest import GroupQuestions
from backend.results import JOINT, MONITORING, SCORES, TRAINING, ModelRecord, ScoreBatch
from backend.services.asked_sums import GROUPS, AskedSums, people_hash
from backend.services.fairness import feature_of
from backend.services.measurement import ALIGNED, Measurement, MeasurementContext, Rows, Sessions, asked_by
from backend.services.policies import line_for
from backend.services.samples import Known, understood
from backend.services.scoring import Scoring, ScoringRequest

__all__ = ["LaterSheet", "Monitored", "Monitoring", "MonitoringRequest", "triggers"]

PARTS = ("test", JOINT, TRAINING)  # whose scores later ones are compared with: the first that is kept
# parts of the people that answers are kept about
LATER_PART = "later"
SHIFT = "shift"
CODE_REMARKS = ("code_unseen", "code_written_otherwise")  # codes of remarks on a code that the model does not know
REFERENCE = 2000  # training records at most that a Host's columns are compared with
# shares of the work that are done once the people are scored, and once acceptance is compared by the feature
SCORED = 0.05
BY_FEATURE = 0.25

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LaterSheet:
    """People of a later day.

    Attributes
    ----------
    outcomes : ndarray of float64
        ``(n_rows,)``: as labels; NaN if none is known yet.
    """

    sheet: SampleSheet
    outcomes: Floats = field(repr=False)


@dataclass(frozen=True)
class MonitoringRequest:
    """Monitor a model on a later sheet.

    Attributes
    ----------
    feature : str
        Of any party: acceptance is compared between its groups; empty = none.
    cipher : {"paillier", "paillier-short", "rlwe", "none"} or None
        Of the scores; None = the one suited to so many people.
    key_bits : int
        Of the sums by group, and of scores under Paillier.
    """

    model_id: str
    later: LaterSheet
    feature: str = ""
    cutoff: float | None = None
    cipher: Cipher | None = None
    key_bits: int = KEY_BITS
    seed: int = 7


class Monitoring:
    """Monitors models; the page and the report show the last run of each."""

    def __init__(self, measurement: Measurement, scoring: Scoring) -> None:
        self._measurement = measurement
        self._models = measurement.models
        self._scoring = scoring

    def read(
        self, model_id: str, source: bytes | Path, name: str = "samples", how: Reading = AS_IT_IS, label: str = ""
    ) -> LaterSheet:
        """Return a later sheet: CSV, XLSX or Parquet, its ids and codes compared with those that the Guest knows.

        Raises as :func:`backend.data.table.read_later_sheet` and :meth:`backend.services.samples.Known.stop`.
        """
        record = self._models.get(model_id)
        federation = self._measurement.workspace.federation(record.federation)
        sheet, outcomes = read_later_sheet(federation, source, name=name, how=how, label=label)
        known_ids = Known.of(self._measurement.workspace, self._models, record)
        known_ids.stop(sheet.ids, source.name if isinstance(source, Path) else name, how)
        return LaterSheet(understood(sheet, known_ids), outcomes)

    def start(self, request: MonitoringRequest) -> Job[Monitored]:
        """Monitor in the background; kept until it is repeated."""
        return Job[Monitored](lambda job: self.run(request, job), 0).start()

    def run(self, request: MonitoringRequest, job: Job[Any]) -> Monitored:
        """Do the same within a job that is under way, and return the result.

        Raises
        ------
        ParameterError
            The feature is not one of the federation, or the cut-off is not a probability.
        SampleError
            No person of the sheet could be scored, or too few.
        Cancelled, SecurityError, PartyUnreachable
            See :meth:`backend.protocols.transport.channel.Session.expect`.
        """
        record = self._models.get(request.model_id)
        sheet = request.later.sheet
        line = line_for(self._measurement.workspace, record, request.cutoff)
        check_cutoff(line.cutoff)
        context = self._measurement.context(record)
        if request.feature:
            feature_of(context.runtime.federation, request.feature)
        if sheet.usable < MIN_GROUP:
            raise SampleError("too_few_to_monitor", people=sheet.usable, least=MIN_GROUP)
        cipher = request.cipher or self._scoring.suited(record.id, sheet.usable)
        bare = replace(sheet, hosts={})  # no typed-in values in place of a Host's own
        # held until all of it is kept: who was scored is counted, and a run that a kill has broken off begins with the same scores
        scoring_request = ScoringRequest(record.id, bare, request.cutoff, cipher, request.key_bits, hold=True)
        with work.part(0.0, SCORED):
            batch = self._scoring.run(scoring_request, job)
        rows = np.array([i for i, score in enumerate(batch.scores) if score.scored], dtype=np.intp)
        if len(rows) < MIN_GROUP:
            why = next((score.problems for score in batch.scores if score.problems), ())
            code = "too_few_scored_because" if why else "too_few_scored"
            values = {"why": why} if why else {}
            raise SampleError(code, people=len(rows), least=MIN_GROUP, **values)
        margins = context.compiled.guest.margins([batch.scores[i].units for i in rows])
        run = _Run(context, request, line, rows, margins, job)
        run.of_scores(
            {
                part: measurement.rows[0]["margins"]
                for part, measurement in self._models.measured(record, SCORES).items()
            }
        )
        reference = self._before(context, record)
        run.of_guest(reference)
        with work.part(SCORED, BY_FEATURE):
            run.of_feature()
        with work.part(BY_FEATURE, 1.0):
            run.of_hosts(reference)
        run.of_rows(batch)
        monitored = run.result(len(sheet.ids) - len(rows))
        self._measurement.keep(record, MONITORING, "", [asdict(monitored)], {"n": monitored.n})
        self._scoring.handed_over(batch)
        return monitored

    def last(self, model_id: str) -> Monitored | None:
        """Return a model's last run; None if there was none."""
        return last_run(self._measurement, self._models.get(model_id))

    def _before(self, context: MeasurementContext, record: ModelRecord) -> PartyTable:
        """Return the Guest's training records; all joint ones of an imported model."""
        table = context.runtime.table
        part_of = self._models.part_of(record)
        rows = [i for i, name in enumerate(table.ids) if part_of.get(name) in (TRAINING, JOINT)]
        return table.take(np.array(rows, dtype=np.intp))


def last_run(measurement: Measurement, record: ModelRecord) -> Monitored | None:
    """Return a model's last run, as it is kept."""
    stored = measurement.models.measured(record, MONITORING).get("")
    return read_monitored(stored.rows[0]) if stored else None


class _Run:
    """One run: what was found so far, of the people who were scored."""

    def __init__(
        self,
        context: MeasurementContext,
        request: MonitoringRequest,
        line: MeasuredLine,
        rows: Rows,
        margins: Floats,
        job: Job[Any],
    ) -> None:
        self._context = context
        self._request = request
        self._job = job
        self._line = line
        self._runtime = context.runtime
        self._outputs = context.compiled.outputs
        self._later = request.later.sheet.guest.take(rows)
        self._margins = margins
        self._predicted = self._outputs.predict(margins)
        self._outcomes = request.later.outcomes[rows]
        self._known = ~np.isnan(self._outcomes)
        self._binary = context.record.task == "binary"
        self._reference = ""
        self._unexamined: list[tuple[str, str]] = []
        self._again: list[tuple[str, str, str]] = []
        self.found: dict[str, Found] = {}
        self._partial = 0
        self._new_codes: dict[tuple[str, str], int] = {}

    def of_rows(self, batch: ScoreBatch) -> None:
        """How many rows were understood in part alone, and which codes the model does not know."""
        for score in batch.scores:
            self._partial += score.status == "partial"
            for remark in score.remarks:
                if remark.code in CODE_REMARKS:
                    key = remark.column, str(remark.values["cell"])
                    self._new_codes[key] = self._new_codes.get(key, 0) + 1

    def result(self, failed: int) -> Monitored:
        """Return the result, with a verdict on every trigger."""
        suite = triggers()
        has_outcome = self._known
        labels = self._outcomes[has_outcome]
        predicted = self._predicted[has_outcome]
        enough = len(labels) >= MIN_GROUP
        self.found["later_calibration"] = self._calibration(labels, predicted[:, 0])
        tests = suite.judge(self.found)
        if self._binary and enough:
            squared = float(((predicted[:, 0] - labels) ** 2).mean())
        else:
            squared = None
        return Monitored(
            model=self._context.record.id,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            version=suite.version,
            verdict=overall(tests),
            tests=tests,
            cutoff=self._line.cutoff,
            n=len(self._later.ids),
            failed=failed,
            outcomes=len(labels),
            reference=self._reference,
            feature=self._request.feature,
            brier=squared,
            tenths=tenths(labels, predicted, self._outputs.task) if enough else (),
            unexamined=tuple(self._unexamined),
            again=tuple(self._again),
            policy=self._line.version,
            partial=self._partial,
            new_codes=tuple((*key, n) for key, n in sorted(self._new_codes.items())),
        )

    def _calibration(self, labels: Floats, predicted: Floats) -> Found:
        if not self._binary:
            return "two_outcomes"
        if len(labels) < MIN_GROUP:
            return "few_people" if len(labels) else "no_outcomes"
        return figures.calibration_error(labels, predicted), figures.brier_skill(labels, predicted)

    def of_scores(self, scores_by_part: dict[str, Sequence[Any]]) -> None:
        """Scores against those that are kept of test records, else of training records."""
        self._reference = next((part for part in PARTS if part in scores_by_part), "")
        if not self._reference:
            self.found["score_shift"] = "no_scores"
            return
        reference_scores = np.array(scores_by_part[self._reference], dtype=np.float64)
        moved = stability(self._reference, reference_scores, "later", self._margins, self._outputs)
        if moved:
            self.found["score_shift"] = (figures.shift(replace(moved, part="")),)
        else:
            self.found["score_shift"] = "no_scores"

    def of_guest(self, reference: PartyTable) -> None:
        """The Guest's own columns against those of its training records."""
        guest_features = [(party, f) for party, f in self._context.model.dictionary if party == self._later.party]
        self.found["guest_columns"] = [
            column_shift(party, f, reference.columns[f.name], self._later.columns[f.name])
            for party, f in guest_features
            if f.name in reference.columns
        ] or "not_measured"

    @contextmanager
    def _guarded(self, test: str) -> Iterator[None]:
        """Within, a Host that refuses or is down leaves the test without a figure."""
        try:
            yield
        except (HostRefused, QuestionRefused):
            self.found[test] = "refused"
        except PartyUnreachable:
            self.found[test] = "unreachable"
        except (FewRecords, FederationError):  # nobody in common
            self.found[test] = "few_people"

    def of_feature(self) -> None:
        """Acceptance by the groups of the feature that was named."""
        if not self._binary:
            self.found["later_disparity"] = "two_outcomes"
        elif not self._request.feature:
            self.found["later_disparity"] = "no_feature_named"
        else:
            with self._guarded("later_disparity"):
                self.found["later_disparity"] = ratios(self._by_group())

    def _by_group(self) -> disparity.Disparity:
        party, feature = feature_of(self._runtime.federation, self._request.feature)
        probabilities = self._predicted[:, 0]
        seed = self._request.seed
        if party == self._runtime.guest.name:
            grouped = group(feature, self._later.columns[feature.name], GROUPS)
            marking = self._marking(probabilities, True)
            marks, _ = marking.marks(np.zeros(len(probabilities), dtype=np.bool_), probabilities)
            sums = summed(marks, grouped.index, len(grouped.groups)).reshape(len(marks), len(grouped.groups))
            return disparity.from_sums(party, feature.name, marking, grouped.groups, sums, seed=seed)
        key = party, feature.name
        asked_sums, sessions = self._sums("disparity", LATER_PART, GROUPS, self._later.ids)
        features = {party: (feature.name,)}
        with self._asking(sessions, features, self._later.ids, bounds()) as (questions, joint):
            nobody = np.zeros(len(joint), dtype=np.bool_)
            ids = self._later.take(joint).ids
            marking = self._marking(probabilities[joint], False)
            answers, refused = asked_sums.outcomes(questions, ids, nobody, probabilities[joint], marking, features)
        if key in refused:
            answers = asked_sums.kept([key], {"cutoff": self._line.cutoff}, ids)
            if key not in answers:
                raise refused[key]
            self._again.append((*key, answers[key].day))
        if not answers[key].groups:
            raise FewRecords("sheet_makes_no_groups", feature=feature.name, least=MIN_GROUP)
        return disparity.from_sums(*key, answers[key].marking, answers[key].groups, answers[key].sums, seed=seed)

    def _marking(self, probabilities: Floats, of_guest: bool) -> Marking:
        """Return how people are marked: by decision and score alone, since outcomes may be known of some."""
        marking = mark(
            self._line.cutoff, np.zeros(len(probabilities), dtype=np.bool_), probabilities, own_groups=of_guest
        )
        return replace(marking, labelled=False, labels=False)

    def _sums(self, purpose: Measure, part: str, groups: int, ids: Sequence[str]) -> tuple[AskedSums, Sessions]:
        """Sums about some people, after those whose answer a kill has lost."""
        sessions = Sessions(self._runtime, self._job, purpose)
        asked_sums = AskedSums(self._context, sessions, part, groups, same_people=True)
        asked_sums.recover(self._cipher, self._request.key_bits, ids)
        return asked_sums, sessions

    @property
    def _cipher(self) -> Cipher:
        """Of the sums."""
        if self._request.cipher == "none":
            return "none"
        return "paillier"

    @contextmanager
    def _asking(
        self, sessions: Sessions, features: Mapping[str, Sequence[str]], ids: Sequence[str], largest: Sequence[int]
    ) -> Iterator[tuple[GroupQuestions, Rows]]:
        """Yield questions about the people of `ids` that the Guest and all Hosts of `features` have, with these people's positions."""
        bits = self._request.key_bits
        with sessions.begin(tuple(features)) as session:
            with work.part(0.0, ALIGNED):
                questions, joint = sessions.ask(
                    session, self._cipher, bits, lambda joint: np.ones(len(joint), dtype=np.bool_), ids
                )
            if len(joint) < 2 * MIN_GROUP:
                raise FewRecords("too_few_known_to_all", people=len(joint), least=2 * MIN_GROUP)
            with work.part(ALIGNED, 1.0):
                yield questions, joint

    def of_hosts(self, reference: PartyTable) -> None:
        """Hosts' columns as their tables hold them today: later people among some training records, summed in common bins."""
        hosts = self._context.record.hosts
        if not hosts:
            self.found["host_columns"] = "no_host"
            return
        host_figures: list[Figure] = []
        with self._guarded("host_columns"):
            self._shifts(hosts, reference, host_figures)
            refused = any(name != self._request.feature for _, name in self._unexamined)
            self.found["host_columns"] = host_figures or ("refused" if refused else "few_people")

    def _shifts(self, hosts: tuple[str, ...], reference: PartyTable, host_figures: list[Figure]) -> None:
        later = set(self._later.ids)
        others = [i for i in reference.ids if i not in later and asked_by(i) == MONITORING]
        sampled = np.random.default_rng(self._request.seed).permutation(len(others))[:REFERENCE]
        ids = (*(others[k] for k in sampled.tolist()), *self._later.ids)
        features: dict[str, list[str]] = {host: [] for host in hosts}
        for party, feature in self._runtime.federation.features():
            if party in features and feature.name == self._request.feature:
                self._unexamined.append((party, feature.name))
            elif party in features:
                features[party].append(feature.name)
        sums, sessions = self._sums("validation", SHIFT, CALIBRATION_BINS, ids)
        with self._asking(sessions, features, ids, [1]) as (questions, joint):
            flags = joint >= len(sampled)
            if min(int(flags.sum()), int((~flags).sum())) < MIN_GROUP:
                raise FewRecords("part_known_to_few", least=MIN_GROUP)
            joint_ids = [ids[k] for k in joint.tolist()]
            about = {"later": people_hash([i for i in joint_ids if i in later])}
            tables, refused = sums.ask(questions, joint_ids, [flags.astype(np.int64)], [1], about, features)
        again = sums.kept(refused, about, joint_ids)
        self._again += [(*key, table.day) for key, table in again.items()]
        self._unexamined += [key for key in refused if key not in again]
        for (party, name), table in (tables | again).items():
            if not table.groups:
                continue
            later_counts = table.sums[0]
            sizes = np.array([g.n for g in table.groups], dtype=np.int64)
            host_figures.append(shift(sizes - later_counts, later_counts, party, name))
