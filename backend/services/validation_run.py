"""One run of the validation suite: the data of its tests are asked for once, under encryption if a Host holds them.

As the Guest sees it: kept scores without ids, scores of test and training records made again, sums over groups of a Host's feature.
Every feature's groups are asked about in one question a part of the data, so that no two answers differ by a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import KeySide
from backend.crypto.registry import Cipher
from backend.data.dictionary import Feature, Kind
from backend.data.table import PartyTable
from backend.errors import ApprovalPending, HostRefused, ParameterError, PartyUnreachable, QuestionRefused
from backend.evaluation.performance import Performance, performance, stability
from backend.evaluation.validation import figures, slices
from backend.evaluation.validation.suite import (
    Figure,
    Found,
    Missing,
    OperatorConfig,
    Suite,
    Validation,
    overall,
)
from backend.explain.dependence import MIN_PEOPLE
from backend.explain.direction import learned_directions
from backend.explain.importance import by_tree, feature_importance
from backend.fairness.marking import mark
from backend.jobs import Job, work
from backend.protocols.group_sums.grouping import MIN_GROUP, group
from backend.protocols.scoring.permuted_values_guest import have_blanked, have_permuted
from backend.protocols.transport.channel import Session
from backend.results import JOINT, TRAINING
from backend.services.asked_sums import GROUPS, TEST, AnsweredSums, AskedSums, Key, Refused
from backend.services.compliance import MeasuredEvidence
from backend.services.measurement import ALIGNED, KeyedRequest, MeasurementContext, Rows, Sessions, drawn, of_outcomes
from backend.trees.serialization import content_hash, dump_guest

PROBES = 300  # test records that are scored with changed values
REPEATED_PEOPLE = 50  # test records that are scored a second time
NOISE_DEVIATIONS = 0.1  # standard deviations, added to the Guest's numbers
EXCHANGED = 0.2  # share of the people among whom a Host's values are exchanged
MIN_GAIN_SHARE = 0.05  # of the gain, from which a feature is tested to be missing
MAX_MISSING = 8  # features that are tested to be missing


Floats = NDArray[np.float64]
First = Callable[[Session, KeySide], None]
Sliced = dict[slices.Key, tuple[slices.Slice, ...]]


@dataclass(frozen=True)
class ValidationRequest(KeyedRequest):
    """Runs the suite on a model, and compares it with a challenger if one is named.

    Attributes
    ----------
    samples : int, optional
        Test records scored at most, and as many training records; None = all test records, so that no later question about groups finds
        some of them answered about and others not.
    """

    challenger: str = ""
    config: OperatorConfig = field(default_factory=OperatorConfig)
    samples: int | None = None


class ValidationRun:
    """One run of the suite: what was found so far, and what the tests share."""

    def __init__(
        self, context: MeasurementContext, request: ValidationRequest, suite: Suite, sessions: Sessions, job: Job[Any]
    ) -> None:
        self._context = context
        self._request = request
        self._suite = suite
        self._sessions = sessions
        self._job = job
        self._runtime = context.runtime
        self._outputs = context.compiled.outputs
        self._binary = context.record.task == "binary"
        self._chain = tuple(step.host for step in context.compiled.guest.folding.steps)
        self._labels = self._runtime.labels()
        self.found: dict[str, Found] = {} if self._binary else dict.fromkeys(_TWO_OUTCOMES, "two_outcomes")
        self._unexamined: set[Key] = set()
        self._again: set[tuple[str, str, str]] = set()
        self._without_decisions: set[Key] = set()
        self._rows: Rows = np.empty(0, dtype=np.intp)
        self._margins: Floats = np.empty((0, self._outputs.count))
        self._seen = 0

    def result(self, challenger: str) -> Validation:
        """Return the result, with a verdict on every test."""
        tests = self._suite.judge({"swap_sets": "no_challenger", "challenger": "no_challenger", **self.found})
        return Validation(
            self._context.record.id,
            datetime.now(UTC).isoformat(timespec="seconds"),
            self._suite.version,
            overall(tests),
            tests,
            self._suite.cutoff,
            len(self._rows),
            self._seen,
            challenger,
            self._suite.time,
            self._suite.tightened,
            tuple(sorted(self._unexamined)),
            tuple(sorted(self._again)),
            tuple(sorted(self._without_decisions)),
            self._suite.policy,
        )

    @contextmanager
    def guarded(self, *tests: str) -> Iterator[None]:
        """Within, a Host that refuses or is down leaves these tests without a figure; whatever else stops the run, a Host that has yet
        to decide, too.
        """
        reason: Missing = "refused"
        try:
            yield
        except ApprovalPending:
            raise
        except (HostRefused, QuestionRefused):
            pass
        except PartyUnreachable:
            reason = "unreachable"
        for test in tests:
            self.found.setdefault(test, reason)

    def check_features(self) -> None:
        """Raise ParameterError if the operator's file names what the federation does not have."""
        feature_names = {feature.name for _, feature in self._runtime.federation.features()}
        unknown = []
        for name in (self._suite.time, *self._suite.attributes):
            if name and name not in feature_names:
                unknown.append(name)
        if unknown:
            raise ParameterError("not_federation_features", names=tuple(unknown))

    # from the Guest's partial model and record alone

    def of_model(self) -> None:
        """Concentration, rank stability, leaf support, direction."""
        model = self._context.model
        gains = by_tree(self._context.model, "gain")
        parties, names = zip(*((party, feature.name) for party, feature in model.dictionary), strict=True)
        self.found["concentration"] = figures.concentration(parties, names, gains)
        self.found["rank_stability"] = figures.rank_agreement(gains, self._request.seed)
        self.found["leaf_support"] = (figures.thin_leaves(model),)
        shares = {row.feature: row.gain_share for row in feature_importance(model)}
        expected = []
        for d in learned_directions(model):
            if d.expected != "none" and d.learned in ("up", "down", "mixed"):
                expected.append((d.party, d.feature, d.learned, d.contradicts))
        if expected:
            self.found["monotonicity"] = figures.against_expectation(expected, shares)
        else:
            self.found["monotonicity"] = "no_direction"

    def of_record(self) -> None:
        """Note what scores would reveal, as measured before the model was registered."""
        release = self._context.record.release
        if not self._chain:
            self.found["leak"] = "no_host"
        elif release is None:
            self.found["leak"] = "not_measured"
        elif not release.measurable:
            self.found["leak"] = "few_records"
        else:
            self.found["leak"] = (Figure(measure="identifying", value=release.named, n=release.people),)

    # from scores that are kept without ids (docs/decisions/scores.md)

    def of_scores(self, scores_by_part: dict[str, tuple[Floats, Floats, Floats | None]]) -> None:
        """Discrimination, calibration, overfit and shift; all but shift by sample weights, if there are any."""
        test = next((part for part in ("test", JOINT) if part in scores_by_part), None)
        if test is None:
            for name in _OF_SCORES:
                self.found.setdefault(name, "no_scores")
            return
        labels, margins, weights = scores_by_part[test]
        unseen = performance(labels, margins, self._outputs, test, weights=weights)
        if self._binary:
            self._discrimination(unseen, labels, self._outputs.predict(margins)[:, 0], weights)
        if TRAINING not in scores_by_part:
            self.found["psi"] = self.found["overfit"] = "no_training_scores"
            return
        shift = stability(TRAINING, scores_by_part[TRAINING][1], test, margins, self._outputs)
        if shift:
            self.found["psi"] = (figures.shift(shift),)
        else:
            self.found["psi"] = "no_scores"
        if self._context.record.task != "number":
            labels, margins, weights = scores_by_part[TRAINING]
            on_training = performance(labels, margins, self._outputs, TRAINING, weights=weights)
            self.found["overfit"] = (figures.auc_gap(on_training, unseen),)

    def _discrimination(self, part: Performance, labels: Floats, p: Floats, weights: Floats | None) -> None:
        fit = [figures.calibration_error(labels, p, weights)]
        if weights is None:
            # With weights a probability may be of another population than the records, and these two test it against each of them.
            fit += [figures.hosmer_lemeshow(labels, p), figures.spiegelhalter(labels, p)]
        self.found |= {
            "auc": figures.discrimination(part),
            "ks": (figures.of_part(part, "ks"),),
            "precision_recall": (figures.precision_lift(labels, p, weights),),
            "brier": (figures.brier_skill(labels, p, weights),),
            "calibration": fit,
        }

    def of_evidence(self, protected: frozenset[str], evidence: MeasuredEvidence) -> None:
        """Proxies as they were measured; the Hosts are not asked a second time."""
        party_of = {row.feature: row.party for row in feature_importance(self._context.model) if row.splits}
        rows = []
        for attribute, proxies in evidence.proxies.items():
            for row in proxies:
                feature = row.about.en
                if row.measure == "Cramér's V" and feature in party_of:
                    party = party_of[feature]
                    figure = Figure(
                        row.value,
                        row.low,
                        row.high,
                        row.n,
                        measure="cramers_v",
                        party=party,
                        feature=feature,
                        group=attribute,
                    )
                    rows.append(figure)
        none: Missing = "not_measured" if protected else "no_attribute"
        self.found["proxies"] = rows or none

    # from people: scored again, and summed by group

    def of_people(self, protected: frozenset[str], training: Sequence[str]) -> None:
        """Slices of every feature of every party, on test and on training records."""
        context = of_outcomes(self._context)
        request = self._request
        rows = drawn(context, self._at_most(len(context.test_ids)), request.seed)
        with work.part(0.0, 0.02):
            scored, self._margins = self._score(rows)
        self._rows = rows[scored]
        if self._binary:
            test = self._sliced(TEST, self._rows, self._margins, (0.02, 0.48))
        else:
            test = {}
        if not len(scored) and not test:
            raise HostRefused("all_refused_before")
        if not self._binary:
            return
        self.found["group_calibration"] = slices.calibration_gaps(test)
        self.found["weak_spots"] = slices.weak_spots(test)
        protected_slices = {}
        for key, feature_slices in test.items():
            if key[1] in protected:
                protected_slices[key] = feature_slices
        if protected:
            ratios = slices.impact_ratios(protected_slices)
        else:
            ratios = "no_attribute"
        if ratios == "few_people" and self._without_decisions & protected_slices.keys():
            self.found["disparity"] = "without_decisions"
        else:
            self.found["disparity"] = ratios
        self.found["time"] = self._over_time(test)
        training_ids = [i for i in training if i in self._runtime.table.row_of]
        if not training_ids:
            self.found["overfit_regions"] = "no_training_scores"
            return
        rows = drawn(
            replace(context, test_ids=training_ids),
            self._at_most(min(len(training_ids), len(context.test_ids))),
            request.seed,
        )
        with work.part(0.48, 0.5):
            scored, margins = self._score(rows)
        self._seen = len(scored)
        training_slices = self._sliced(TRAINING, rows[scored], margins, (0.5, 0.92))
        self.found["overfit_regions"] = slices.region_gaps(test, training_slices)

    def _at_most(self, records: int) -> int:
        """Return the number of records to score."""
        samples = self._request.samples
        return records if samples is None else min(samples, records)

    def _over_time(self, test: Sliced) -> Found:
        """Periods of the feature that the operator names, else of the federation's time column, which the Guest holds."""
        times = self._runtime.times()
        if self._suite.time or times is None:
            named_periods = (
                slices.over_time(key, feature_slices)
                for key, feature_slices in test.items()
                if key[1] == self._suite.time
            )
            return next(named_periods, "few_people" if self._suite.time else "no_time")
        if not len(self._rows):
            return "refused"
        groups, index = slices.periods(times[self._rows], GROUPS)
        key = (self._runtime.guest.name, self._runtime.federation.time)
        outcomes = self._outcomes(self._rows, self._margins)
        marking = mark(self._suite.cutoff, *outcomes, own_groups=True)
        sums = slices.summed(marking.marks(*outcomes)[0], index, len(groups))
        return slices.over_time(key, slices.slices(groups, sums, marking))

    def _outcomes(self, rows: Rows, margins: Floats) -> tuple[NDArray[np.bool_], Floats]:
        """Labels and probabilities of some records."""
        return self._labels[rows] > 0, self._outputs.predict(margins)[:, 0]

    def _score(
        self, rows: Rows, cipher: Cipher | None = None, first: First = lambda session, key: None
    ) -> tuple[Rows, Floats]:
        """Of some rows, which were scored, and their margins."""
        return self._sessions.score(
            self._context, self._runtime.table.take(rows), cipher or self._request.cipher, first
        )

    def _sliced(self, part: str, rows: Rows, margins: Floats, share: tuple[float, float]) -> Sliced:
        """Return every feature's slices of some records: the Guest's by itself, a Host's from one question a feature.

        If no person could be scored, since all were scored before, the earlier sums serve.
        """
        guest = self._runtime.guest.name
        tables = dict[Key, AnsweredSums]()
        asked_sums = AskedSums(self._context, self._sessions, part, GROUPS)
        features: dict[str, list[str]] = {host: [] for host in self._context.record.hosts}
        refused = set[Key]()
        for party, feature in self._runtime.federation.features():
            if party in features:
                features[party].append(feature.name)
            elif party == guest and len(rows):
                grouped = group(feature, self._runtime.table.columns[feature.name][rows], GROUPS)
                tables[party, feature.name] = asked_sums.own(
                    grouped, *self._outcomes(rows, margins), self._suite.cutoff
                )
            elif party == guest:
                refused.add((party, feature.name))
        if features:
            asked_sums.recover(self._request.cipher, self._request.key_bits)
        if features and len(rows) >= 2 * MIN_GROUP:
            with work.part(*share):
                answered, by_hosts = self._summed_by_hosts(asked_sums, rows, margins, features)
            tables |= answered
            refused |= by_hosts.keys()
        elif not len(rows):
            refused |= {(host, name) for host, names in features.items() for name in names}
        earlier = {key: table.decided_at(self._suite.cutoff) for key, table in asked_sums.kept(refused, {}).items()}
        self._again |= {(*key, table.day) for key, table in earlier.items()}
        self._unexamined |= refused - earlier.keys()
        self._without_decisions |= {key for key, table in (tables | earlier).items() if not table.marking.decisions}
        sliced = {key: slices.slices(t.groups, t.sums, t.marking) for key, t in (tables | earlier).items()}
        return {key: grouped for key, grouped in sliced.items() if grouped}

    def _summed_by_hosts(
        self, asked_sums: AskedSums, rows: Rows, margins: Floats, features: dict[str, list[str]]
    ) -> tuple[dict[Key, AnsweredSums], Refused]:
        """Return what Hosts answer about people who were scored just now, and what they refuse."""
        with self._sessions.begin(tuple(features)) as session:
            with work.part(0.0, ALIGNED):
                questions, at = self._sessions.ask_about(session, self._request, rows)
            outcomes = self._outcomes(rows[at], margins[at])
            marking = mark(self._suite.cutoff, *outcomes, own_groups=False, undecided=True)
            with work.part(ALIGNED, 1.0):
                return asked_sums.outcomes(
                    questions, self._runtime.table.take(rows[at]).ids, *outcomes, marking, features
                )

    def exactness(self) -> None:
        """Encrypted scores against the same on plaintext, one by one; simulated Hosts answer plaintext, others refuse."""
        rounding = figures.rounding(self._context.model)
        if self._request.cipher == "none":
            self.found["exactness"] = "plaintext"
            return
        if not len(self._probes):
            self.found["exactness"] = "refused"
            return
        scored, plain = _some(self._score(self._probes, "none"))
        wrong = int((plain != self._margins[scored]).any(axis=1).sum())
        self.found["exactness"] = (Figure(measure="not_exact", value=float(wrong), n=len(scored)), rounding)

    def again(self) -> None:
        """The stored partial model against the record's hash, and some people scored a second time."""
        differs = content_hash(dump_guest(self._context.model)) != self._context.record.content_hash
        results = [Figure(measure="hash_differs", value=float(differs))]
        if len(self._probes):
            scored, second = _some(self._score(self._probes[:REPEATED_PEOPLE]))
            wrong = int((second != self._margins[scored]).any(axis=1).sum())
            results.append(Figure(measure="again_differs", value=float(wrong), n=len(scored)))
        self.found["reproducibility"] = results

    @property
    def _probes(self) -> Rows:
        """Rows that are scored with changed values: the first of those that were scored, in whose order the margins are."""
        return self._rows[:PROBES]

    # robustness

    def robustness(self) -> None:
        """Noise, a missing feature, a Host that is out."""
        if not self._binary:
            return
        if len(self._probes) < MIN_PEOPLE:
            self.found |= dict.fromkeys(("noise", "missing_feature", "host_out"), "few_people")
            return
        with work.part(0.94, 0.95):
            self.found["noise"] = self._noise()
        with work.part(0.95, 0.97):
            self.found["missing_feature"] = self._without_features()
        with work.part(0.97, 0.98):
            self.found["host_out"] = self._without_hosts()

    def _base(self, scored: Rows) -> tuple[Floats, Floats]:
        """Labels and probabilities of some probes as they are."""
        return self._labels[self._probes[scored]], self._outputs.predict(self._margins[scored])[:, 0]

    def _changed(self, table: PartyTable, first: First = lambda session, key: None) -> tuple[Rows, Floats]:
        """Return which probes were scored with changed values, and their probabilities."""
        scored, margins = _some(self._sessions.score(self._context, table, self._request.cipher, first))
        return scored, self._outputs.predict(margins)[:, 0]

    def _noise(self) -> Found:
        """Noise on the Guest's numbers; a Host's values, all of a person's together, exchanged among some people."""
        probes = self._runtime.table.take(self._probes)
        guest = self._runtime.guest.name
        draw = np.random.default_rng(self._request.seed)
        scored, changed = self._changed(PartyTable(probes.party, probes.ids, self._noisy(probes, draw)))
        labels, unchanged = self._base(scored)
        results = [
            figures.auc_fall("noise_fall", labels, unchanged, changed, guest),
            figures.flips(unchanged, changed, self._suite.cutoff, guest),
        ]
        crowd = np.arange(min(len(probes.ids), max(MIN_PEOPLE, round(EXCHANGED * len(probes.ids)))))
        some = probes.take(crowd)
        for host in self._chain:
            names = self._used(host)
            scored, moved = self._changed(some, lambda s, key: have_permuted(s, host, key, some.ids, names))  # noqa: B023 (called here)
            labels, unchanged = self._base(np.arange(len(probes.ids)))
            changed = unchanged.copy()
            changed[crowd[scored]] = moved
            results += [
                figures.auc_fall("noise_fall", labels, unchanged, changed, host),
                figures.flips(unchanged, changed, self._suite.cutoff, host),
            ]
        return results

    def _noisy(self, table: PartyTable, draw: np.random.Generator) -> dict[str, NDArray[np.generic]]:
        """Return the Guest's columns with noise on the numbers; what is missing stays so."""
        columns = dict(table.columns)
        for party, feature in self._context.model.dictionary:
            if party == self._runtime.guest.name and feature.kind is Kind.NUMERIC:
                values = columns[feature.name].astype(np.float64)
                columns[feature.name] = values + draw.normal(
                    0.0, NOISE_DEVIATIONS * float(np.nanstd(values)), len(values)
                )
        return columns

    def _used(self, party: str) -> tuple[str, ...]:
        """Return a party's features that the model splits by."""
        rows = feature_importance(self._context.model)
        return tuple(row.feature for row in rows if row.splits and row.party == party)

    def _without_features(self) -> Found:
        """AUC lost without each feature of weight, the largest first."""
        probes = self._runtime.table.take(self._probes)
        guest = self._runtime.guest.name
        results = []
        weighty = [row for row in feature_importance(self._context.model) if row.gain_share >= MIN_GAIN_SHARE][
            :MAX_MISSING
        ]
        for row in weighty:
            if row.party == guest:
                blank = {
                    **probes.columns,
                    row.feature: _blank(self._context.model.feature(row.feature), len(probes.ids)),
                }
                scored, changed = self._changed(PartyTable(probes.party, probes.ids, blank))
            else:
                scored, changed = self._changed(
                    probes,
                    lambda s, key: have_blanked(s, row.party, key, probes.ids, (row.feature,)),  # noqa: B023 (called here)
                )
            labels, unchanged = self._base(scored)
            results.append(figures.auc_fall("missing_fall", labels, unchanged, changed, row.party, row.feature))
        return results or "not_measured"

    def _without_hosts(self) -> Found:
        """Return the model's figures without each Host: it gives no person's values."""
        probes = self._runtime.table.take(self._probes)
        results = list[Figure]()
        for host in self._chain:
            # a Host leaves out one feature, or all of its own, whether or not the model splits by them
            names = tuple(feature.name for feature in self._runtime.federation.party(host).features)
            scored, changed = self._changed(probes, lambda s, key: have_blanked(s, host, key, probes.ids, names))  # noqa: B023 (called here)
            labels, unchanged = self._base(scored)
            results += figures.without_host(labels, unchanged, changed, host)
        return results or "no_host"

    # two models

    def beside(self, challenger: MeasurementContext) -> None:
        """The challenger on the same people."""
        people = self._runtime.table.take(self._rows)
        scored, margins = _some(self._sessions.score(challenger, people, self._request.cipher))
        labels = self._labels[self._rows[scored]]
        own_margins = self._margins[scored]
        outputs = self._outputs, challenger.compiled.outputs
        self.found["challenger"] = (figures.challenger_gain(labels, own_margins, margins, outputs, self._request.seed),)
        if self._binary:
            approved = []
            for out, model_margins in zip(outputs, (own_margins, margins), strict=True):
                approved.append(out.predict(model_margins)[:, 0] < self._suite.cutoff)
            self.found["swap_sets"] = figures.swap_sets(np.asarray(labels > 0), *approved)


_OF_SCORES = ("auc", "ks", "precision_recall", "brier", "calibration", "psi", "overfit")
# tests that need a model of two outcomes; others of a model of classes are set over it
_TWO_OUTCOMES = (
    "auc",
    "ks",
    "precision_recall",
    "brier",
    "calibration",
    "group_calibration",
    "overfit",
    "overfit_regions",
    "time",
    "noise",
    "missing_feature",
    "host_out",
    "weak_spots",
    "disparity",
    "swap_sets",
)


def _some(scored: tuple[Rows, Floats]) -> tuple[Rows, Floats]:
    """Return what was scored; raise HostRefused if no person was."""
    if not len(scored[0]):
        raise HostRefused("all_refused_before")
    return scored


def _blank(feature: Feature, n: int) -> NDArray[np.generic]:
    """Return a column without a value."""
    if feature.kind is Kind.CATEGORICAL:
        return np.full(n, None, dtype=object)
    return np.full(n, np.nan, dtype=np.float64)
