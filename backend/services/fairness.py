"""Evidence behind a compliance finding, measured: outcomes by group, and features that go with a protected attribute.

As the Guest sees it: scores, labels and its own columns; of a Host's feature the groups of at least 20 records and sums over them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from backend.compliance.assessment import DISPARITY, PROXIES
from backend.data.dictionary import Feature, Kind
from backend.data.federation import Federation
from backend.errors import FewRecords, HostRefused, ParameterError, QuestionRefused
from backend.evaluation.validation.words import members_of_rest, rest_in_words
from backend.fairness import disparity
from backend.fairness.age_discrimination import in_words as ages_in_words
from backend.fairness.alternatives import read_search
from backend.fairness.disparity import (
    BY_CUTOFF,
    DIFFERENCE,
    FOUR_FIFTHS,
    MEASURES,
    PAIR_P,
    RATIO,
    SCORE,
    SMD,
    Disparity,
    P,
    lower_over_higher,
    measure_in_words,
    widest,
)
from backend.fairness.disparity import REFERENCE as REFERENCE_GROUP
from backend.fairness.evidence import Basis, Evidence
from backend.fairness.marking import COARSE_BITS, Marking, bounds, check_cutoff, mark
from backend.fairness.proxies import Association, associations
from backend.fairness.proxies import as_evidence as proxy_evidence
from backend.i18n import LANGUAGES, Catalogue, Text, in_both, texts_in
from backend.jobs import Job, work
from backend.protocols.group_sums.contingency import ContingencyTable, Wanted
from backend.protocols.group_sums.grouping import (
    GROUP_LIMITS,
    MIN_GROUP,
    PAIR,
    Group,
    Grouped,
    features_of,
    group,
    read_groups,
    to_wire,
)
from backend.protocols.group_sums.guest import GroupQuestions, GroupTable
from backend.protocols.group_sums.values import Counts
from backend.protocols.transport.channel import Session
from backend.results import JOINT, TRAINING, ModelRecord
from backend.services.age_check import AgeChecks, AgeRequest
from backend.services.asked_sums import (
    GROUPS,
    GROUPS_OF,
    TEST,
    AnsweredSums,
    AskedSums,
    HostMarks,
    Key,
    Outcomes,
    Refused,
    ask_others,
    sum_own,
    with_first,
    without,
)
from backend.services.measurement import (
    AHEAD,
    ALIGNED,
    SCORED,
    KeyedRequest,
    Measurement,
    MeasurementContext,
    Rows,
    Sessions,
    asked_by,
    drawn,
    is_of_share,
    not_begun,
    of_outcomes,
    others_of_hosts,
    protected_of,
)
from backend.services.policies import line_for
from backend.store.accountant import WINDOW_DAYS

__all__ = [
    "BY_CUTOFF",
    "DIFFERENCE",
    "FOUR_FIFTHS",
    "GROUPS",
    "MEASURES",
    "MIN_GROUP",
    "PAIR",
    "PAIR_P",
    "RATIO",
    "REFERENCE_GROUP",
    "SCORE",
    "SMD",
    "WINDOW_DAYS",
    "Disparity",
    "DisparityRequest",
    "Fairness",
    "P",
    "Proxies",
    "ProxyRequest",
    "ages_in_words",
    "apart_from_rest",
    "features_of",
    "lower_over_higher",
    "measure_in_words",
    "members_of_rest",
    "widest",
]

RECORDS = 5000  # joint records that associations are measured on: V to ±0.03
BINS = 10  # of a feature that may go with it
_NOBODY = np.zeros((0, 0), dtype=np.int64)


@dataclass(frozen=True)
class DisparityRequest(KeyedRequest):
    """Outcomes of a model's decisions by the groups of one feature, of the Guest or of a Host.

    Attributes
    ----------
    cutoff : float
        ``decline`` at or above this probability of the positive label.
    reference : str
        The group that others are compared with: a code, or a bin's number; empty = `usual`.
    samples : int or None
        Test records drawn; None = all.
    groups : int
        Most groups of a number, or codes.
    crossed : str
        A second feature: then outcomes are by the groups of both together. The Guest holds one of the two at least, or one Host both;
        empty = none.
    usual : str
        The group, in English, that a search for alternatives compared with, so that both name one; if there is none such, the largest.
        One of five bins is none of four.
    """

    feature: str
    cutoff: float | None = None
    reference: str = ""
    samples: int | None = None
    groups: int = GROUPS
    usual: str = ""
    crossed: str = ""


@dataclass(frozen=True)
class ProxyRequest(KeyedRequest):
    """Which of the features a model was offered go with a protected attribute, which may be any feature of the federation.

    Attributes
    ----------
    records : int
        Joint records drawn, at most.
    groups, bins : int
        Most groups of the attribute, and of each feature.
    """

    attribute: str
    records: int = RECORDS
    groups: int = GROUPS
    bins: int = BINS


@dataclass(frozen=True)
class Proxies:
    """How closely features go with a protected attribute.

    Attributes
    ----------
    groups : tuple of Group
        Of the attribute.
    n : int
        Records.
    features : tuple of Association
        The closest first.
    not_examined : tuple of (str, str)
        (party, feature) that do not make two groups of 20 records, or would say who is in a group of the attribute.
    measured : str
        The first day, UTC, of an answer that a Host gave before and that was taken again; else empty.
    """

    party: str
    attribute: str
    groups: tuple[Group, ...]
    n: int
    features: tuple[Association, ...]
    not_examined: tuple[tuple[str, str], ...]
    measured: str = ""


class Fairness:
    """Measures evidence behind findings; the Compliance page and the report show it from then on."""

    def __init__(self, measurement: Measurement, ages: AgeChecks) -> None:
        self._measurement = measurement
        self._models = measurement.models
        self._ages = ages

    def start(self, request: DisparityRequest | ProxyRequest | AgeRequest) -> Job[Any]:
        """Measure whichever kind of evidence is asked for."""
        if isinstance(request, AgeRequest):
            return self._ages.start(request)
        if isinstance(request, ProxyRequest):
            return self.start_proxies(request)
        return self.start_disparity(request)

    def start_disparity(self, request: DisparityRequest) -> Job[Disparity]:
        """Measure outcomes by the groups of a feature, or of two together, in the background."""
        size = f"{DISPARITY} {request.feature} {request.crossed}".rstrip()
        return Job[Disparity](lambda job: self.disparity(request, job), 1, size=size).start()

    def disparity(self, request: DisparityRequest, job: Job[Any]) -> Disparity:
        """Do the same within a job that is under way, and return the result."""
        record = self._models.get(request.model_id)
        line = line_for(self._measurement.workspace, record, request.cutoff)
        request = replace(request, usual=self._searched_with(record, request.feature), cutoff=line.cutoff)
        name = measured_as(self._measurement.workspace.federation(record.federation), request)
        with self._measurement.asking(record, DISPARITY, name):
            result = measure_disparity(self._measurement.context(record), request, job)
        result = replace(result, policy=line.version)
        rows = disparity.as_evidence(result, self.names(record, result))
        basis = Basis(result.n, result.cutoff, measured=result.measured, policy=result.policy)
        self._keep(record, DISPARITY, name, rows, basis)
        return result

    def names(self, record: ModelRecord, result: Disparity) -> tuple[Text, ...]:
        """Return the names of the groups that were compared, then of those that are too small."""
        if result.pairs:
            first, second = (self._models.feature(record, name) for name in features_of(result.feature))
            return pair_names(result.pairs, first, second)
        groups = [outcome.group for outcome in result.groups]
        if groups:
            return group_names(groups, self._models.feature(record, result.feature))
        return ()

    def partners(self, record: ModelRecord, feature: str) -> tuple[Feature, ...]:
        """Return the features that one can be measured together with: the Guest holds one of the two, or one party both."""
        federation = self._measurement.workspace.federation(record.federation)
        guest = federation.guest.name
        party, _ = feature_of(federation, feature)
        partners = []
        for other_party, entry in federation.features():
            if entry.name != feature and (party == other_party or guest in (party, other_party)):
                partners.append(entry)
        return tuple(partners)

    def answers_once(self, record: ModelRecord, feature: str, crossed: str) -> str:
        """Return the Host of real people that holds both of two features, and so answers about both or about each; else nothing."""
        federation = self._measurement.workspace.federation(record.federation)
        if not crossed or federation.synthetic:
            return ""
        party, _ = feature_of(federation, feature)
        crossed_party, _ = feature_of(federation, crossed)
        if party == crossed_party != federation.guest.name:
            return party
        return ""

    def _searched_with(self, record: ModelRecord, feature: str) -> str:
        """Return the group, in English, that the last search by a feature compared with; empty if there was none."""
        measurement = self._models.measured(record, "alternatives").get(feature)
        if measurement:
            search = read_search(measurement.basis)
        else:
            search = None
        return search.words[search.reference].en if search else ""

    def start_proxies(self, request: ProxyRequest) -> Job[Proxies]:
        """Measure which features go with a protected attribute in the background."""

        def work(job: Job[Proxies]) -> Proxies:
            record = self._models.get(request.model_id)
            with self._measurement.asking(record, PROXIES, request.attribute):
                proxies = measure_proxies(self._measurement.context(record), request, job)
            rows = proxy_evidence(proxies.features)
            basis = Basis(proxies.n, measured=proxies.measured)
            self._keep(record, PROXIES, request.attribute, rows, basis)
            return proxies

        return Job(work, 1, size=f"{PROXIES} {request.attribute}").start()

    def _keep(self, record: ModelRecord, kind: str, feature: str, rows: Sequence[Evidence], basis: Basis) -> None:
        self._measurement.keep(record, kind, feature, [asdict(row) for row in rows], asdict(basis))


def group_names(groups: Sequence[Group], feature: Feature) -> tuple[Text, ...]:
    """Return the groups' names: a code's disclosed text, a bin by its place, and what was put together; no edge of a bin is known here."""
    bins = sum(group.kind == "bin" for group in groups)
    names = []
    for entry in groups:
        if entry.kind == "code":
            names.append(feature.categories.get(entry.name) or Text(entry.name))
        elif entry.kind == "bin":
            # A side of a cell says itself of how many it is: others may have been put together.
            place, _, of = entry.name.partition("/")
            names.append(in_both(bin_key(int(place), int(of or bins)), place=place, bins=int(of or bins)))
        elif entry.kind == "rest":
            names.append(_rest_in_words(groups, feature))
        else:
            names.append(in_both(f"measure.group_{entry.kind}"))
    return tuple(names)


def bin_key(place: int, bins: int) -> str:
    """Return the key of the words for a bin: the lowest, the highest, or one between."""
    if place == 1:
        return "measure.group_lowest"
    if place == bins:
        return "measure.group_highest"
    return "measure.group_bin"


def pair_names(pairs: Sequence[tuple[Group, Group] | None], first: Feature, second: Feature) -> tuple[Text, ...]:
    """Return the names of groups of two features together; None stands for all small ones, put together."""
    apart = [pair for pair in pairs if pair is not None]
    of_first = list(dict.fromkeys(first_group for first_group, _ in apart))
    of_second = list(dict.fromkeys(second_group for _, second_group in apart))
    first_names = dict(zip(of_first, group_names(of_first, first), strict=True))
    second_names = dict(zip(of_second, group_names(of_second, second), strict=True))
    names = []
    for pair in pairs:
        if pair is None:
            names.append(in_both("measure.other_pairs"))
            continue
        words = [first_names[pair[0]], second_names[pair[1]]]
        english = PAIR.join(text.en for text in words)
        chinese = PAIR.join(text.in_language("zh") for text in words)
        names.append(Text(english, chinese))
    return tuple(names)


def measured_as(federation: Federation, request: DisparityRequest) -> str:
    """Return the name that outcomes are kept under: the feature's, or of two those of both, in the federation's order."""
    if not request.crossed:
        return request.feature
    order = [feature.name for _, feature in federation.features()]
    names = (request.feature, request.crossed)
    return PAIR.join(sorted(names, key=lambda name: order.index(name) if name in order else 0))


def apart_from_rest(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the names of the groups that were not put together; an empty text stands for people without a value."""
    return tuple(group.name for group in groups if group.kind in ("code", "missing"))


def _rest_in_words(groups: Sequence[Group], feature: Feature) -> Text:
    """Return who is in a group that was put together, and why."""
    apart = apart_from_rest(groups)
    sentences = {}
    for language in LANGUAGES:
        sentences[language] = rest_in_words(Catalogue(language), apart, texts_in(language, feature.categories))
    return Text(sentences["en"], sentences["zh"])


def measure_disparity(context: MeasurementContext, request: DisparityRequest, job: Job[Disparity]) -> Disparity:
    """Score test records, then compare decisions and labels between the groups of a feature, or of two together.

    Raises
    ------
    ParameterError
        A feature, the cut-off, the number of groups or samples is not usable, no two features together can be measured, or the model does
        not tell two outcomes apart.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`backend.protocols.transport.channel.Session.expect`.
    """
    line = 0.5 if request.cutoff is None else request.cutoff
    check_cutoff(line)
    request = replace(request, cutoff=line)
    runtime = context.runtime
    task = context.record.task
    if task != "binary":
        raise ParameterError("only_two_outcomes", task=task)
    grouping = _asked_features(runtime.federation, request)
    _check_groups(request.groups)
    key = (grouping.party, grouping.name)
    is_guest = grouping.party == runtime.guest.name
    rows = drawn(context if is_guest else of_outcomes(context), request.samples, request.seed)
    sessions = Sessions(runtime, job, "disparity")
    sums = AskedSums(context, sessions, TEST, request.groups)
    others = others_of_hosts(context, [feature.name for feature in grouping.features])
    features = others if is_guest else with_first(key, others)
    refused: Refused = {}
    if features:
        sums.recover(request.cipher, request.key_bits)
        with work.part(0.0, AHEAD):
            people = rows[_of_outcomes(context, rows)]
            refused = sessions.ask_ahead(context, people, features, request.groups, request)
        if key in refused:
            why = not_begun(context, grouping.name, refused[key], sums.summed_without(grouping.name))
            return _measured_before(context, sums, grouping, request, why)
    with work.part(AHEAD, SCORED):
        scored, margins = sessions.score(context, runtime.table.take(rows), request.cipher)
    if not len(scored):
        why = sums.scored_without(measured_as(runtime.federation, request))
        return _measured_before(context, sums, grouping, request, why)
    rows = rows[scored]
    outcomes = runtime.labels()[rows] > 0, context.compiled.outputs.predict(margins)[:, 0]
    others = without(others, refused)
    if not runtime.simulated:
        sum_own(context, sessions, rows, outcomes, line)
    if not is_guest:
        return _of_sums(context, sessions, request, grouping, rows, outcomes, others)
    result = _of_records(context, request, grouping, rows, outcomes)
    if others:
        with sessions.begin(tuple(others)) as session, work.part(SCORED, 1.0):
            questions, at = _questions(context, sessions, session, request, rows)
            ask_others(context, sessions, questions, rows[at], (outcomes[0][at], outcomes[1][at]), line, others)
    return result


def _questions(
    context: MeasurementContext, sessions: Sessions, session: Session, request: DisparityRequest, rows: Rows
) -> tuple[GroupQuestions, Rows]:
    """Return questions about the rows whose groups a Host may be asked about, and the places of these among the rows."""
    askable_rows = _of_outcomes(context, rows)
    questions, joint = sessions.ask_about(session, request, rows[askable_rows])
    return questions, askable_rows[joint]


def _of_outcomes(context: MeasurementContext, rows: Rows) -> Rows:
    """Return the places of the rows whose groups a Host may be asked about."""
    askable_ids = set(of_outcomes(context).test_ids)
    ids = context.runtime.table.take(rows).ids
    return np.array([place for place, person in enumerate(ids) if person in askable_ids], dtype=np.intp)


def _of_records(
    context: MeasurementContext,
    request: DisparityRequest,
    grouping: _Asked,
    rows: Rows,
    outcomes: Outcomes,
) -> Disparity:
    """Return outcomes by a feature of the Guest's, or by two of them together."""
    (feature,) = grouping.features
    crossed = grouping.crossed
    line = request.cutoff or 0.0
    labels, probabilities = outcomes
    columns = context.runtime.table.columns
    grouped = group(feature, columns[feature.name][rows], request.groups)
    if crossed is not None:
        crossed_groups = group(crossed, columns[crossed.name][rows], request.groups)
        return _pairs_of_records(context, request, feature, grouped, crossed_groups, probabilities < line)
    return disparity.from_records(
        context.runtime.guest.name,
        feature.name,
        mark(line, labels, probabilities, own_groups=True),
        grouped.groups,
        grouped.index,
        labels,
        probabilities,
        reference=compared_with(request, grouped.groups, feature),
        seed=request.seed,
    )


def _of_sums(
    context: MeasurementContext,
    sessions: Sessions,
    request: DisparityRequest,
    grouping: _Asked,
    rows: Rows,
    outcomes: Outcomes,
    others: dict[str, tuple[str, ...]],
) -> Disparity:
    """Return outcomes by a Host's feature or two, or acceptance by one and one of the Guest's; then ask about other features, too."""
    key = grouping.party, grouping.name
    crossed = grouping.crossed
    line = request.cutoff or 0.0
    table = context.runtime.table
    sums = AskedSums(context, sessions, TEST, request.groups)
    with sessions.begin(tuple(with_first(key, others))) as session, work.part(SCORED, 1.0):
        with work.part(0.0, ALIGNED):
            questions, at = _questions(context, sessions, session, request, rows)
        of_joint = outcomes[0][at], outcomes[1][at]
        index = None
        if crossed is None:
            marking = mark(line, *of_joint, own_groups=False)
        else:
            column = table.columns[crossed.name][rows[at]]
            marking, index = _crossed_marking(line, of_joint, crossed, column, request.groups, questions)
        features = with_first(key, {})
        if crossed is None and request.groups == GROUPS:  # the same marks serve for the others
            features = with_first(key, others)
            others = {}
        ids = table.take(rows[at]).ids
        with work.part(ALIGNED, 1.0):
            answers, late = sums.outcomes(questions, ids, *of_joint, marking, features, crossed=index)
        ask_others(context, sessions, questions, rows[at], of_joint, line, others)
    if key in late:  # another process was first
        return _measured_before(context, sums, grouping, request, late[key])
    return _from_answer(context, grouping, answers[key], request)


@dataclass(frozen=True)
class _Asked:
    """By whose groups outcomes are counted.

    Attributes
    ----------
    features : tuple of Feature
        Of the party: one, or two of a Host together.
    crossed : Feature, optional
        The Guest's, by which decisions are counted, too.
    """

    party: str
    features: tuple[Feature, ...]
    crossed: Feature | None = None

    @property
    def name(self) -> str:
        """Return the name of the feature, or of two together, as a Host is asked for it."""
        return PAIR.join(feature.name for feature in self.features)


def _asked_features(federation: Federation, request: DisparityRequest) -> _Asked:
    """Return by whose groups outcomes are counted.

    Raises
    ------
    ParameterError
        A feature is unknown, both are one, or two Hosts hold them.
    """
    party, feature = feature_of(federation, request.feature)
    if not request.crossed:
        return _Asked(party, (feature,))
    crossed_party, crossed = feature_of(federation, request.crossed)
    if crossed.name == feature.name:
        raise ParameterError("crossed_with_itself", feature=feature.name)
    guest = federation.guest.name
    if crossed_party == guest:
        return _Asked(party, (feature,), crossed)
    if party == guest:
        return _Asked(crossed_party, (crossed,), feature)
    if party == crossed_party:
        by_name = {feature.name: feature, crossed.name: crossed}
        return _Asked(party, tuple(by_name[name] for name in features_of(measured_as(federation, request))))
    raise ParameterError("held_by_two_hosts", feature=feature.name, other=crossed.name)


def _crossed_marking(
    line: float,
    outcomes: tuple[NDArray[np.bool_], NDArray[np.float64]],
    crossed: Feature,
    column: NDArray[np.generic],
    max_groups: int,
    questions: GroupQuestions,
) -> tuple[Marking, NDArray[np.intp]]:
    """Return how decisions are crossed with a feature of the Guest's, and each record's group.

    Small groups are put together until no sum is about few people and the Host's groups can bear all sums.

    Raises
    ------
    ParameterError
        The feature does not make two such groups.
    """
    refused = ParameterError("fewer_than_two_groups", feature=crossed.name, least=MIN_GROUP)
    min_size = MIN_GROUP
    while True:
        grouped = group(crossed, column, max_groups, min_size)
        if not grouped.groups:
            raise refused
        try:
            marking = mark(
                line, *outcomes, own_groups=False, crossed=(crossed.name, to_wire(grouped.groups), grouped.index)
            )
        except FewRecords:
            refused = FewRecords("few_records_together", feature=crossed.name, cutoff=line, least=MIN_GROUP)
        else:
            shortest = bounds(replace(marking, others=()).flags, COARSE_BITS)
            if questions.borne_by(shortest, max_groups) <= questions.records // 2:
                return marking, grouped.index
        min_size += min_size // 2


def _pairs_of_records(
    context: MeasurementContext,
    request: DisparityRequest,
    feature: Feature,
    grouped: Grouped,
    crossed_grouped: Grouped,
    accepted: NDArray[np.bool_],
) -> Disparity:
    """Return acceptance by two features of the Guest's together."""
    shape = len(grouped.groups), len(crossed_grouped.groups)
    people = np.zeros(shape, dtype=np.int64)
    accepted_counts = np.zeros(shape, dtype=np.int64)
    if people.size:
        np.add.at(people, (grouped.index, crossed_grouped.index), 1)
        np.add.at(accepted_counts, (grouped.index, crossed_grouped.index), accepted.astype(np.int64))
    sides = {grouped.feature: grouped.groups, crossed_grouped.feature: crossed_grouped.groups}
    return _pairs(context, request, feature.name, sides, people, accepted_counts, "records")


def _pairs(
    context: MeasurementContext,
    request: DisparityRequest,
    first: str,
    sides: Mapping[str, Sequence[Group]],
    people: Counts,
    accepted: Counts,
    source: Literal["records", "sums"],
) -> Disparity:
    """Return acceptance by two features together, in the order that they are kept in; `first` is that of the rows."""
    federation = context.runtime.federation
    name = measured_as(federation, request)
    names = features_of(name)
    if names[0] != first:
        people = people.T
        accepted = accepted.T
    parties = dict.fromkeys(feature_of(federation, feature_name)[0] for feature_name in names)
    return disparity.of_pairs(
        PAIR.join(parties),
        name,
        request.cutoff or 0.0,
        (sides[names[0]], sides[names[1]]),
        people,
        accepted,
        source,
        reference=request.reference,
        seed=request.seed,
    )


def _measured_before(
    context: MeasurementContext,
    sums: AskedSums,
    grouping: _Asked,
    request: DisparityRequest,
    refused: HostRefused | QuestionRefused,
) -> Disparity:
    """Return the Host's earlier answer about this model and decision; raise the Host's refusal if there is none."""
    key = grouping.party, grouping.name
    about: dict[str, object] = {"cutoff": request.cutoff}
    if grouping.crossed is not None:
        about["crossed"] = grouping.crossed.name
    table = sums.kept([key], about).get(key)
    if table is None or not table.marking.decisions:
        raise refused
    return replace(_from_answer(context, grouping, table, request), measured=table.day)


def _from_answer(
    context: MeasurementContext, grouping: _Asked, table: AnsweredSums, request: DisparityRequest
) -> Disparity:
    """Return outcomes by the groups of one feature, by those of two of a Host, or by those of one of each party."""
    marking = table.marking
    if len(grouping.features) > 1:
        return disparity.of_cells(
            grouping.party,
            grouping.name,
            marking,
            table.groups,
            table.sums,
            reference=request.reference,
            seed=request.seed,
        )
    (feature,) = grouping.features
    if grouping.crossed is not None:
        groups, people, accepted = marking.cells(table.groups, table.sums) if table.groups else ((), _NOBODY, _NOBODY)
        sides = {marking.crossed: groups, feature.name: table.groups}
        return _pairs(context, request, marking.crossed, sides, people, accepted, "sums")
    return disparity.from_sums(
        grouping.party,
        feature.name,
        marking,
        table.groups,
        table.sums,
        reference=compared_with(request, table.groups, feature),
        seed=request.seed,
    )


def compared_with(request: DisparityRequest, groups: Sequence[Group], feature: Feature) -> str:
    """Return the group to compare with: the one that was asked for, or that a search compared with; empty = the largest."""
    names = zip(group_names(groups, feature), groups, strict=True)
    return request.reference or next((g.name or g.kind for words, g in names if words.en == request.usual), "")


def measure_proxies(context: MeasurementContext, request: ProxyRequest, job: Job[Proxies]) -> Proxies:
    """Return how closely each of the features that the model was offered goes with an attribute, whichever parties hold the two.

    Raises
    ------
    ParameterError
        The attribute or a number is not usable, or the attribute does not make two groups of 20 records.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`backend.protocols.transport.channel.Session.expect`.
    """
    runtime = context.runtime
    party, attribute = feature_of(runtime.federation, request.attribute)
    _check_groups(request.groups, request.bins)
    if request.records < 2 * MIN_GROUP:
        raise ParameterError("too_few_records_asked", least=2 * MIN_GROUP, records=request.records)
    examined = [(p, f) for p, f in context.model.dictionary if f.name != attribute.name]
    hosts = tuple(h for h in runtime.hosts if h == party or h in context.record.hosts)
    sessions = Sessions(runtime, job, "proxies")
    sums = []
    for max_groups in sorted({request.groups, request.bins}):
        sums.append(AskedSums(context, sessions, f"{PROXIES} {attribute.name}", max_groups, same_people=True))
    for group_sums in sums:
        group_sums.recover(request.cipher, request.key_bits)
    with sessions.begin(hosts) as session:
        with work.part(0.0, ALIGNED):
            questions, rows = sessions.ask(
                session, request.cipher, request.key_bits, lambda joint: _some(context, joint, request)
            )
        table = runtime.table.take(rows)
        client = _Crossed(
            questions,
            table.ids,
            {group_sums.max_groups: group_sums for group_sums in sums},
            partial(not_begun, context, attribute.name),
        )
        crossing = ContingencyTable(
            client,
            runtime.guest.name,
            table.columns,
            examined,
            max_groups=request.groups,
            bins=request.bins,
            at=job.at,
        )
        with work.part(ALIGNED, 1.0):
            groups, tables = crossing.tables(party, attribute)
    job.at("associations", runtime.guest.name)
    unmeasured = tuple((p, f.name) for p, f in examined if (p, f.name) not in tables)
    feature_proxies = associations(tables, request.seed)
    return Proxies(party, attribute.name, groups, questions.records, feature_proxies, unmeasured, client.day)


class _Crossed:
    """Asks for sums about the same people, and takes again what was answered about them before.

    Attributes
    ----------
    day : str
        The first day of an answer that was taken again; empty = every Host was asked.
    refused : callable
        Makes the error of a refusal before the first question.
    """

    def __init__(
        self,
        questions: GroupQuestions,
        ids: Sequence[str],
        sums: Mapping[int, AskedSums],
        refused: Callable[[HostRefused | QuestionRefused], HostRefused | QuestionRefused] = lambda error: error,
    ) -> None:
        self._questions = questions
        self._ids = ids
        self._sums = sums
        self._refused = refused
        self.day = ""

    def sums(
        self,
        marks: Sequence[Counts],
        wanted: Wanted,
        max_groups: int,
        known: Sequence[Group] = (),
        min_size: int = MIN_GROUP,
    ) -> dict[Key, GroupTable]:
        """Of the Guest's marks."""
        asked_sums = self._sums[max_groups]
        about = _of_marks(marks)
        ones = [1] * len(marks)
        answers, refused = asked_sums.ask(
            self._questions, self._ids, marks, ones, about, wanted, min_size=min_size, known_groups=known
        )
        if answers:
            refusals = refused
        else:
            refusals = {key: self._refused(error) for key, error in refused.items()}
        return self._answered(answers, asked_sums.kept(refused, about, self._ids), refusals)

    def borne_by(self, marks: int, max_groups: int) -> int:
        """See :meth:`GroupQuestions.borne_by`."""
        return self._questions.borne_by([1] * marks, max_groups)

    def ahead(self, wanted: Wanted, max_groups: int, min_size: int) -> None:
        """Raise what a Host would refuse them with, unless it has answered before."""
        asked_sums = self._sums[max_groups]
        refused = asked_sums.refused_ahead(self._questions, wanted, min_size)
        refusals = {key: self._refused(error) for key, error in refused.items()}
        self._answered({}, asked_sums.kept(refused, {}, self._ids), refusals)

    def sums_of_host(
        self, source: HostMarks, wanted: Wanted, max_groups: int
    ) -> tuple[tuple[Group, ...], dict[Key, GroupTable]]:
        """Of a Host's marks; if it marks these people no more, under another key since a rotation, say, all from before."""
        asked_sums = self._sums[max_groups]
        try:
            groups, answers, refused = asked_sums.ask_of_host(self._questions, self._ids, source, wanted)
        except (HostRefused, QuestionRefused) as error:
            keys = [(host, name) for host, names in wanted.items() for name in names]
            stored = asked_sums.kept(keys, {}, self._ids)
            stated_groups = []
            for answer in stored.values():
                if GROUPS_OF in answer.about:
                    stated_groups.append(answer.about[GROUPS_OF])
            first = stated_groups[0] if stated_groups else None
            # All of them have to be of one question.
            if len(stated_groups) < max(1, len(keys)) or any(groups != first for groups in stated_groups):
                raise
            groups = read_groups([(kind, name, n) for kind, name, n in stated_groups[0]], self._questions.records)
            return groups, self._answered({}, stored, dict.fromkeys(keys, error))
        about = {GROUPS_OF: [list(group) for group in to_wire(groups)]}
        return groups, self._answered(answers, asked_sums.kept(refused, about, self._ids), refused)

    def _answered(
        self, answers: Mapping[Key, AnsweredSums], stored: Mapping[Key, AnsweredSums], refused: Refused
    ) -> dict[Key, GroupTable]:
        """Features that have groups; raises the first refusal of what was not answered before either."""
        for key, refusal in refused.items():
            if key not in stored:
                raise refusal
        days = [answer.day for answer in stored.values()]
        self.day = min(filter(None, [self.day, *days]), default="")
        return {
            key: GroupTable(answer.groups, answer.sums)
            for key, answer in {**answers, **stored}.items()
            if answer.groups
        }


def _of_marks(marks: Sequence[Counts]) -> dict[str, str]:
    """Return what sums of some marks are about: their hash, which the Guest keeps."""
    return {"marks": sha256(b"".join(mark.tobytes() for mark in marks)).hexdigest()}


def _most_groups(feature: Feature, limit: int) -> int:
    if feature.kind is Kind.NUMERIC:
        return limit
    return min(limit, max(2, len(feature.categories)))


def feature_of(federation: Federation, name: str) -> tuple[str, Feature]:
    """Return a feature of any party, and its holder; raise ParameterError if no feature has that name."""
    for party, feature in federation.features():
        if feature.name == name:
            return party, feature
    raise ParameterError("unknown_feature", feature=name)


def _check_groups(*numbers: int) -> None:
    low, high = GROUP_LIMITS
    for number in numbers:
        if not low <= number <= high:
            raise ParameterError("groups_out_of_range", low=low, high=high, groups=number)


def _some(context: MeasurementContext, joint: Rows, request: ProxyRequest) -> NDArray[np.bool_]:
    """Return flags of joint rows that are drawn.

    Of synthetic people they are drawn from all; else from those about whom no other measurement asks, by no other protected attribute.
    """
    eligible = np.arange(len(joint))
    if not context.runtime.federation.synthetic:
        protected = protected_of(context)
        own_rows = []
        for index, person in enumerate(context.runtime.table.take(joint).ids):
            part = context.part_of.get(person, TRAINING)
            may_ask = part in (TRAINING, JOINT) and asked_by(person) == PROXIES
            if may_ask and is_of_share(person, request.attribute, protected):
                own_rows.append(index)
        eligible = np.array(own_rows, dtype=np.intp)
    selected = np.random.default_rng(request.seed).permutation(eligible)[: request.records]
    return np.isin(np.arange(len(joint)), selected)
