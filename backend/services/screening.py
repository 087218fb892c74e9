"""Screening: what each feature of every party is worth, measured under encryption before anything is trained.

As the Guest sees it: labels, its own columns and dates. What comes back of a Host's feature is its groups, encrypted sums over them, and
about how many distinct values it has. The bands of the bank's own score are made here, of the Guest's features alone.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from backend.crypto.paillier.keys import KEY_BITS
from backend.crypto.registry import Cipher
from backend.data.cells import csv_text
from backend.data.dictionary import Feature, Kind
from backend.data.federation import Federation
from backend.errors import (
    ApprovalDenied,
    ApprovalPending,
    HostBusy,
    HostRefused,
    NotAgreed,
    ParameterError,
    PartyUnreachable,
    QuestionRefused,
    WrongAnswer,
)
from backend.evaluation.performance import moved_by
from backend.evaluation.screening import (
    Added,
    CountedFeature,
    Direction,
    Marking,
    Worth,
    added,
    banded,
    cell_marks,
    counted_here,
    direction,
    information_value,
    own_scores,
    weights_of_evidence,
    worth_added,
    worth_of,
)
from backend.jobs import Job
from backend.protocols.group_sums.distinct import present_values, range_of
from backend.protocols.group_sums.grouping import GROUP_LIMITS, MIN_GROUP, Group, group
from backend.protocols.group_sums.guest import GroupQuestions
from backend.protocols.group_sums.values import Counts
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.terms.prices import DISTINCT_BITS, grouping_bits, screening_bits
from backend.protocols.training.messages import ReportWrongAnswer
from backend.remark import Remark, read_plain
from backend.services.asked_sums import AnsweredSums, AskedSums, Key, Refused
from backend.services.audit import Auditor, Note, recorded
from backend.services.measurement import Sessions
from backend.services.workspace import Workspace
from backend.store.measurements import Kept, Measurements

SCREENING: Final = "screening"  # the purpose, and the kind of measurement that the result is kept as
BINS = 10  # of a feature
TOO_FEW_GROUPS = Remark("screened_too_few_groups", {"least": MIN_GROUP})
TOO_FEW_RECORDS = Remark("screened_too_few_records")
GROUP_DIVISOR = 4  # a group of no more than a quarter of the records has to bear the sums


@dataclass(frozen=True)
class ScreeningRequest:
    """Request for a screening.

    Attributes
    ----------
    before, since : str
        Drift is measured between people before the first day, month or year and those from the second one on, in the form of the Guest's
        time column. Both empty = no drift.
    records : int, optional
        Joint records drawn; None = all.
    bins : int
        Most groups of a feature.
    cipher : {"paillier", "paillier-short", "none"}
    """

    federation: str
    before: str = ""
    since: str = ""
    records: int | None = None
    bins: int = BINS
    cipher: Cipher = "paillier-short"
    key_bits: int = KEY_BITS
    seed: int = 7


@dataclass(frozen=True)
class ScreenedGroup:
    """A bin, or a code, of a feature.

    Attributes
    ----------
    kind, name : str
        See :class:`backend.protocols.group_sums.grouping.Group`.
    positives : int
        Of its `n` people, those with the positive outcome.
    weight : float
        Its weight of evidence: above 0, the positive outcome is more frequent than on average.
    """

    kind: str
    name: str
    n: int
    positives: int
    weight: float


@dataclass(frozen=True)
class ScreenedFeature:
    """The figures of a feature.

    Attributes
    ----------
    iv, iv_chance : float
        Information value, and the 95 % quantile of what chance alone would show.
    worth : {"nothing", "weak", "medium", "strong", "suspicious"}
        What the information value means.
    direction : {"rises", "falls", "mixed", "none", "codes"}
        How the positive outcome goes with the bins, from the lowest one on.
    missing, missing_most : float
        Share of people without a value, at least and at most: of fewer people than a group may have it is not told.
    fewest, most : int, int or None
        Distinct values; None = not bounded, or not told.
    psi, psi_chance : float or None
        Population stability index between the two periods, and its level by chance; None = not measured.
    added : float or None
        Information value within bands of the bank's own score; None for its own features, or if there are no bands.
    added_chance, added_p : float or None
        What chance would show on average, and how often it shows as much.
    adds : {"nothing", "weak", "medium", "strong", "suspicious", ""}
        What that means; empty if it was not measured.
    measured : str
        The day of an answer that was given before and serves again; else empty.
    """

    party: str
    feature: str
    iv: float
    iv_chance: float
    worth: Worth
    direction: Direction
    missing: float
    missing_most: float
    fewest: int
    most: int | None
    groups: tuple[ScreenedGroup, ...]
    psi: float | None = None
    psi_chance: float | None = None
    added: float | None = None
    added_chance: float | None = None
    added_p: float | None = None
    adds: Worth | None = None
    measured: str = ""


@dataclass(frozen=True)
class NotScreened:
    """A feature of which nothing can be said, and why: a remark in its plain form."""

    party: str
    feature: str
    why: Any

    @property
    def reason(self) -> Remark:
        """Return why."""
        return read_plain(self.why)


@dataclass(frozen=True)
class Screening:
    """A screening.

    Attributes
    ----------
    records, positives : int
        Joint records, and those with the positive outcome.
    bands : int
        Of the bank's own score; 1 = none, so that it is not known what features add.
    periods : (int, int) or None
        People before the first date, and from the second one on.
    bits : dict of str to float
        Host → what its answers were booked at, about each person.
    features : tuple of ScreenedFeature
        The highest information value first.
    """

    federation: str
    records: int
    positives: int
    bands: int
    before: str
    since: str
    periods: tuple[int, int] | None
    bits: dict[str, float]
    features: tuple[ScreenedFeature, ...]
    left_out: tuple[NotScreened, ...]


_SCREENING = TypeAdapter(Screening)


@dataclass(frozen=True)
class _Asking:
    """What answers are kept about: a federation, before there is a model."""

    runtime: GuestRuntime
    measurements: Measurements
    subject: str = SCREENING


class Screenings:
    """Screens features before there is a model; the last screening of a federation is kept."""

    def __init__(self, workspace: Workspace, auditor: Auditor) -> None:
        self._workspace = workspace
        self._auditor = auditor

    def start(self, request: ScreeningRequest) -> Job[Screening]:
        """Screen in the background."""
        return Job[Screening](lambda job: self.run(request, job), 1, size=f"{SCREENING} {request.federation}").start()

    def last(self, federation: str) -> Screening | None:
        """Return the last screening of a federation; None if there was none."""
        measurement = self._workspace.measurements(federation).of(SCREENING, SCREENING).get("")
        if measurement is None:
            return None
        return _SCREENING.validate_python(measurement.rows[0])

    def price(self, federation: str, bins: int = BINS) -> dict[str, float]:
        """Return Host → upper bound of the bits about each person that a screening is booked at."""
        about = self._workspace.federation(federation)
        records = len(self._workspace.runtime(federation).table.ids)
        return {host.name: screening_bits(host.features, records, bins) for host in about.hosts}

    @recorded("screen")
    def run(self, note: Note, request: ScreeningRequest, job: Job[Any]) -> Screening:
        """Screen within a job that is under way; see :func:`screen`."""
        note.federation = request.federation
        runtime = self._workspace.runtime(request.federation)
        measurements = self._workspace.measurements(request.federation)
        note.body = {"bins": request.bins, "dated": bool(request.since)}
        screening = screen(_Asking(runtime, measurements), request, job)
        note.body |= {"records": screening.records, "features": len(screening.features), "bits": screening.bits}

        def keep() -> None:
            measurements.put(SCREENING, SCREENING, "", Kept([_SCREENING.dump_python(screening, mode="json")], {}))

        note.keep = keep
        return screening


@dataclass(frozen=True, repr=False)
class _People:
    """The people whom a screening counts, ``(n,)`` each.

    Attributes
    ----------
    rows : ndarray of int
        Of the Guest's table.
    periods : list of ndarray
        Marks of people before the first date and from the second one on; empty without dates.
    """

    rows: NDArray[np.intp]
    labels: NDArray[np.bool_]
    periods: list[Counts]


def screen(context: _Asking, request: ScreeningRequest, job: Job[Any]) -> Screening:
    """Screen every feature of a federation.

    Raises
    ------
    ParameterError
        If the label has not two outcomes, or the dates, records or bins are not usable.
    NotAgreed, ApprovalPending, ApprovalDenied
        If a Host has not agreed to the purpose, or its operator has not decided, or is against it.
    WrongAnswer
        If a Host's sums are those of no records.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`backend.protocols.transport.channel.Session.expect`.
    """
    runtime = context.runtime
    federation = runtime.federation
    flags = _period_flags(runtime, request)
    _check(federation, request)
    sessions = Sessions(runtime, job, SCREENING)
    sums = AskedSums(context, sessions, SCREENING, request.bins, same_people=True)
    sums.recover(request.cipher, request.key_bits)
    hosts = runtime.hosts
    with sessions.begin(hosts) as session:
        # 1. Which records all parties have; a key.
        questions, rows = sessions.ask(
            session, request.cipher, request.key_bits, lambda joint: _drawn(len(joint), request)
        )
        people = _counted(runtime, rows, flags)
        # 2. The bank's own features in groups, and bands of its own score.
        job.at("own", runtime.guest.name)
        guest_groups = _own_groups(runtime, rows, request.bins)
        scores = own_scores(
            [grouped.index for _, grouped in guest_groups if grouped.groups], people.labels, request.seed
        )
        # 3. Marks: as many bands as groups of a quarter of the records can bear.
        cells, marking = _marked(questions, people, scores, request.bins)
        counted: dict[Key, CountedFeature] = {}
        for feature, grouped in guest_groups:
            if grouped.groups:
                marks = [*cells, *people.periods]
                counted[federation.guest.name, feature.name] = counted_here(
                    grouped.groups, grouped.index, marks, marking.bands
                )
        # 4. Sums by each Host's features, and about how many distinct values these have.
        host_answers = _HostAnswers(runtime, sums, questions, request.bins)
        try:
            job.at("ahead")
            host_answers.ask(runtime.table.take(rows).ids, marking, cells, people.periods)
            distinct = host_answers.distinct(job)
        except WrongAnswer as error:
            # The Host logs it, too: this process may not be the one that its operator started.
            for host in error.hosts:
                with suppress(PartyUnreachable):
                    session.send(host, ReportWrongAnswer(session.name, error.remarks[0]))
            raise
    counted |= host_answers.counted
    job.at("figures", runtime.guest.name)
    screened = []
    left_out = list(host_answers.left_out)
    tests = len(host_answers.counted)
    for party, feature in federation.features():
        key = party, feature.name
        if key in counted:
            measured = _figures(key, counted[key], None if party == federation.guest.name else tests)
            if party == federation.guest.name:
                column = runtime.table.columns[feature.name][rows]
            else:
                column = None
            screened.append(_completed(measured, distinct.get(key), column, host_answers.days.get(key, "")))
        elif party == federation.guest.name:
            left_out.append(NotScreened(party, feature.name, TOO_FEW_GROUPS.plain()))
    screened.sort(key=lambda feature: -feature.iv)
    n = len(rows)
    if people.periods:
        periods = (int(people.periods[0].sum()), int(people.periods[1].sum()))
    else:
        periods = None
    return Screening(
        federation.name,
        n,
        int(people.labels.sum()),
        marking.bands,
        request.before,
        request.since,
        periods,
        host_answers.bits,
        tuple(screened),
        tuple(left_out),
    )


def _check(federation: Federation, request: ScreeningRequest) -> None:
    low, high = GROUP_LIMITS
    if federation.label.task != "binary":
        raise ParameterError("screening_of_two_outcomes", task=federation.label.task)
    if not low <= request.bins <= high:
        raise ParameterError("groups_out_of_range", low=low, high=high, groups=request.bins)
    if request.records is not None and request.records < 2 * MIN_GROUP:
        raise ParameterError("too_few_records_asked", least=2 * MIN_GROUP, records=request.records)


def _period_flags(runtime: GuestRuntime, request: ScreeningRequest) -> list[NDArray[np.bool_]]:
    """Return who in the Guest's table is before the first date, and who from the second one on; nothing without dates."""
    if not request.before and not request.since:
        return []
    times = runtime.times()
    if times is None:
        raise ParameterError("screening_without_time")
    first = request.before or request.since
    second = request.since or request.before
    example = str(times[0]) if len(times) else ""
    if {len(first), len(second)} != {len(example)} or first > second:
        raise ParameterError("screening_dates", before=first, since=second, example=example)
    return [times < first, times >= second]


def _drawn(joint: int, request: ScreeningRequest) -> NDArray[np.bool_]:
    """Return flags of joint records that are drawn."""
    if joint < 2 * MIN_GROUP:
        raise ParameterError("too_few_records_asked", least=2 * MIN_GROUP, records=joint)
    flags = np.ones(joint, dtype=np.bool_)
    if request.records is not None and request.records < joint:
        selected = np.random.default_rng(request.seed).permutation(joint)[: request.records]
        flags = np.isin(np.arange(joint), selected)
    return flags


def _counted(runtime: GuestRuntime, rows: NDArray[np.intp], flags: list[NDArray[np.bool_]]) -> _People:
    """Return labels and periods of the people that count.

    Raises
    ------
    ParameterError
        If an outcome or a period has too few people: sums over fewer would tell their groups.
    """
    labels = runtime.labels()[rows] > 0
    rarest = int(min(labels.sum(), (~labels).sum()))
    if rarest < MIN_GROUP:
        raise ParameterError("screening_rare_outcome", people=rarest, least=MIN_GROUP)
    periods = [flag[rows].astype(np.int64) for flag in flags]
    for period in periods:
        if int(period.sum()) < MIN_GROUP:
            raise ParameterError("screening_rare_period", people=int(period.sum()), least=MIN_GROUP)
    between = len(rows) - sum(int(period.sum()) for period in periods)
    if periods and 0 < between < MIN_GROUP:
        raise ParameterError("screening_rare_period", people=between, least=MIN_GROUP)
    return _People(rows, labels, periods)


def _own_groups(runtime: GuestRuntime, rows: NDArray[np.intp], bins: int) -> list[tuple[Feature, Any]]:
    """Return the Guest's features with their groups among some rows."""
    grouped = []
    for feature in runtime.federation.guest.features:
        grouped.append((feature, group(feature, runtime.table.columns[feature.name][rows], bins)))
    return grouped


def _marked(
    questions: GroupQuestions, people: _People, scores: NDArray[np.float64] | None, bins: int
) -> tuple[list[Counts], Marking]:
    """Return marks of cells, and the marking: with fewer bands if there are too few records for the sums of more."""
    band, bands = banded(scores, people.labels)
    marking = Marking.new(bands, dated=bool(people.periods))
    while bands > 1 and questions.borne_by(marking.largest, bins) > questions.records // GROUP_DIVISOR:
        band, bands = banded(scores, people.labels, bands - 1)
        marking = Marking.new(bands, dated=bool(people.periods))
    return cell_marks(people.labels, band, bands), marking


class _HostAnswers:
    """The Hosts' answers in one screening.

    Attributes
    ----------
    counted : dict
        (Host, feature) → its counts.
    days : dict
        (Host, feature) → the day of an answer that was given before.
    bits : dict
        Host → what its answers are booked at, about each person.
    """

    def __init__(self, runtime: GuestRuntime, sums: AskedSums, questions: GroupQuestions, bins: int) -> None:
        self._runtime = runtime
        self._sums = sums
        self._questions = questions
        self._bins = bins
        self.counted: dict[Key, CountedFeature] = {}
        self.days: dict[Key, str] = {}
        self.left_out: list[NotScreened] = []
        self.bits = {host.name: 0.0 for host in runtime.federation.hosts}

    def ask(self, ids: tuple[str, ...], marking: Marking, cells: list[Counts], periods: list[Counts]) -> None:
        """Ask every Host for sums by each of its features, and count what is answered.

        Raises
        ------
        ApprovalPending, ApprovalDenied, NotAgreed, HostBusy
            If a Host has not agreed, or cannot say now.
        WrongAnswer
            If sums are those of no records, or a number's groups are codes, or codes' are bins.
        """
        about = _about(marking, cells, periods)
        features = {host.name: [feature.name for feature in host.features] for host in self._runtime.federation.hosts}
        marks = marking.marks(cells, periods)
        ahead = self._refused_ahead(features)
        answers, refused = self._sums.ask(self._questions, ids, marks, marking.largest, about, features, refused=ahead)
        for refusal in refused.values():
            _raise_if_undecided(refusal)
        # A secret factor belongs to one question; what was marked is the same.
        same = {name: value for name, value in about.items() if name != "factors"}
        stored = self._sums.kept(refused, same, ids)
        for (host, feature), refusal in refused.items():
            if (host, feature) in stored:
                self.days[host, feature] = stored[host, feature].day
            else:
                self.left_out.append(NotScreened(host, feature, refusal.remarks[0].plain()))
        min_size = self._questions.least_asked(self._bins, self._runtime.guest.name)
        kinds = {feature.name: feature.kind for _, feature in self._runtime.federation.features()}
        for (host, feature), answer in {**answers, **stored}.items():
            numeric = kinds[feature] is Kind.NUMERIC
            if any(group.kind == ("code" if numeric else "bin") for group in answer.groups):
                raise WrongAnswer("groups_not_as_asked", host=host, feature=feature)
            # That there are not two groups is an answer, too.
            if min_size <= self._questions.records // 2:
                self.bits[host] += grouping_bits(self._questions.records, self._bins, min_size, numeric=numeric)
            if answer.groups:
                self.counted[host, feature] = self._read(host, marking, answer)
            elif min_size > self._questions.records // 2:
                self.left_out.append(NotScreened(host, feature, TOO_FEW_RECORDS.plain()))
            else:
                self.left_out.append(NotScreened(host, feature, TOO_FEW_GROUPS.plain()))

    def _refused_ahead(self, features_by_host: dict[str, list[str]]) -> Refused:
        """Return which features a Host would refuse, up to the first that it would answer; so nothing is encrypted in vain.

        Each question about thirty thousand people takes a Host a second. The features after it are refused when they are asked about.
        """
        refused: Refused = {}
        for host, features in features_by_host.items():
            for feature in features:
                refusals = self._sums.refused_ahead(self._questions, {host: (feature,)}, MIN_GROUP)
                for refusal in refusals.values():
                    _raise_if_undecided(refusal)
                if not refusals:
                    break
                refused |= refusals
        return refused

    def _read(self, host: str, marking: Marking, answer: AnsweredSums) -> CountedFeature:
        host_marking = replace(marking, factors=tuple(answer.about["factors"]))
        return host_marking.read(host, answer.groups, answer.sums)

    def distinct(self, job: Job[Any]) -> dict[Key, tuple[int, int | None, int]]:
        """Return (Host, feature) → its fewest and most distinct values, and the people below whom a group is not told."""
        counts: dict[Key, tuple[int, int | None, int]] = {}
        min_asked = self._questions.least_asked(self._bins, self._runtime.guest.name)
        for host, feature in self.counted:
            job.at("distinct", host)
            groups = self.counted[host, feature].groups
            n_groups = sum(group.kind in ("bin", "code") for group in groups)
            try:
                place, min_size = self._questions.distinct(host, feature)
                self.bits[host] += DISTINCT_BITS
            except (HostRefused, QuestionRefused):
                # Asked about others of these people within the window, say.
                counts[host, feature] = n_groups, None, max(min_asked, min(group.n for group in groups))
                continue
            fewest, max_values = range_of(place)
            if max_values is not None and max_values < n_groups:
                raise WrongAnswer(
                    "fewer_values_than_groups", host=host, feature=feature, most=max_values, groups=n_groups
                )
            counts[host, feature] = max(fewest, n_groups), max_values, max(min_size, min_asked)
        return counts


def _raise_if_undecided(refusal: HostRefused | QuestionRefused) -> None:
    """Raise what holds for all of a Host's features: its operator has not decided, say."""
    if isinstance(refusal, (ApprovalPending, ApprovalDenied, NotAgreed, HostBusy)):
        raise refusal


def _about(marking: Marking, cells: list[Counts], periods: list[Counts]) -> dict[str, Any]:
    """Return what sums are about: what was marked, as a hash that the Guest keeps, and how."""
    marked = sha256(b"".join(mark.tobytes() for mark in [*cells, *periods])).hexdigest()
    return {"bands": marking.bands, "dated": marking.dated, "marks": marked, "factors": list(marking.factors)}


def _figures(key: Key, counted: CountedFeature, tests: int | None) -> ScreenedFeature:
    """Return the figures of a feature. What it adds is measured if it is a Host's: `tests` is the number of these."""
    outcomes = counted.outcomes
    iv, iv_chance = information_value(outcomes)
    weights = weights_of_evidence(outcomes)
    groups = []
    for side, counts, weight in zip(counted.groups, outcomes.tolist(), weights.tolist(), strict=True):
        groups.append(ScreenedGroup(side.kind, side.name, side.n, counts[1], weight))
    feature = ScreenedFeature(
        *key,
        iv=iv,
        iv_chance=iv_chance,
        worth=worth_of(outcomes),
        direction=direction(counted.groups, outcomes),
        missing=_missing(counted.groups),
        missing_most=_missing(counted.groups),
        fewest=0,
        most=None,
        groups=tuple(groups),
    )
    if counted.periods is not None:
        psi, psi_chance = moved_by(counted.periods[0], counted.periods[1])
        feature = replace(feature, psi=psi, psi_chance=psi_chance)
    if tests is None or counted.cells.shape[1] == 1:
        return feature
    more: Added = added(counted.cells)
    return replace(
        feature,
        added=more.value,
        added_chance=more.chance,
        added_p=more.p,
        adds=worth_added(more, tests),
    )


def _missing(groups: tuple[Group, ...]) -> float:
    """Return the share of people who have no value, as far as they are a group."""
    people = sum(group.n for group in groups)
    return sum(group.n for group in groups if group.kind == "missing") / people


def _completed(
    measured: ScreenedFeature,
    distinct: tuple[int, int | None, int] | None,
    column: NDArray[np.generic] | None,
    day: str,
) -> ScreenedFeature:
    """Return a feature with its distinct and missing values: the Guest's own are counted, a Host's are as it tells them."""
    if column is not None:
        present = present_values(column)
        share = 1 - len(present) / len(column)
        values = len(set(present.tolist()))
        return replace(measured, missing=share, missing_most=share, fewest=values, most=values)
    if distinct is None:
        return replace(measured, measured=day)
    fewest, max_values, min_size = distinct
    people = sum(group.n for group in measured.groups)
    missing_most = measured.missing or (min_size - 1) / people
    return replace(measured, fewest=fewest, most=max_values, missing_most=missing_most, measured=day)


def csv_of(screening: Screening) -> bytes:
    """Return a screening as a CSV file, a row a feature."""
    columns = [field.name for field in fields(ScreenedFeature) if field.name != "groups"]
    lines = [columns]
    for feature in screening.features:
        cells = [getattr(feature, name) for name in columns]
        lines.append(["" if cell is None else str(cell) for cell in cells])
    return csv_text(lines).encode("utf-8-sig")
