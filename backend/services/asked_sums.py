"""Sums by groups of Hosts' features: asked for once, kept, and the source of what disparity, validation and monitoring say of them.

A Host that counts answers once about the groups of some people (docs/decisions/groups.md). So one question carries the marks of
all three (:mod:`backend.fairness.marking`), and where it is refused because it was answered before, the answer that the Guest has serves
again, with its day. The Guest has it already: no Host is asked, and nothing new is revealed. Holds sums over groups, no id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from backend.crypto.registry import Cipher
from backend.errors import FewRecords, HostRefused, PartyUnreachable, QuestionRefused, SecurityError
from backend.evaluation.validation.slices import summed
from backend.fairness.marking import COARSE_BITS, Marking, bounds, mark
from backend.jobs import work
from backend.protocols.group_sums.grouping import (
    MIN_GROUP,
    PAIR,
    Group,
    Grouped,
    WireGroup,
    group,
    merged,
    most_groups,
    read_groups,
    sides_of,
    to_wire,
)
from backend.protocols.group_sums.guest import GroupQuestions, GroupTable, SentMarks, key_in_words
from backend.protocols.group_sums.values import Counts
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.training.row_sets import unpack_rows
from backend.remark import Remark
from backend.services.measurement import MeasurementContext, Rows, Sessions
from backend.store.accountant import WINDOW_DAYS
from backend.store.measurements import Kept, Measurements

TEST = "test"  # the part of records that a model was not trained on
GROUPS_OF = "groups"  # of a Host's feature that it marked people by, in what an answer is about
KIND = "sums: "  # before the part of the people: the kind of measurement that answers are kept as
GROUPS = 5  # of a feature, by default
MARKED = 0.9  # share of a question when all marks are encrypted and sent; what is left are the Hosts' sums
Key = tuple[str, str]  # (party, feature)
Refused = dict[Key, HostRefused | QuestionRefused]
Outcomes = tuple[NDArray[np.bool_], NDArray[np.float64]]  # labels and probabilities of some records


@dataclass(frozen=True)
class AnsweredSums:
    """What a Host answered about one feature.

    Attributes
    ----------
    about : dict
        What was marked: the fields of a marking, say.
    max_groups : int
        Groups that were asked for, at most.
    people : str
        Hash of those who were marked (:func:`people_hash`).
    day : str
        On which it was measured, UTC.
    sums : ndarray of int64
        ``(marks, groups)``.
    """

    about: dict[str, Any]
    max_groups: int
    people: str
    day: str
    groups: tuple[Group, ...]
    sums: Counts

    @property
    def marking(self) -> Marking:
        """Return how outcomes were marked."""
        others = tuple(self.about["others"])
        groups = tuple((kind, name, n) for kind, name, n in self.about.get("crossed_groups", ()))
        return Marking(**{**self.about, "others": others, "crossed_groups": groups})

    def decided_at(self, cutoff: float) -> AnsweredSums:
        """Return the answer without decisions if they were marked at another cut-off: labels, scores and errors have none."""
        if self.marking.cutoff == cutoff:
            return self
        return replace(self, about={**self.about, "decisions": False})

    def in_groups(self, max_groups: int) -> AnsweredSums:
        """Return the answer in at most `max_groups` groups."""
        groups, index = merged(self.groups, max_groups)
        sums = summed(list(self.sums), index, len(groups)).reshape(len(self.sums), len(groups))
        return replace(self, groups=groups, sums=sums, max_groups=min(max_groups, self.max_groups))

    def of_each(self, name: str) -> dict[str, AnsweredSums]:
        """Return what the same sums say of each of two features alone, by its name; of small cells put together they say nothing.

        Within the window its Host answers about neither of them again.
        """
        if not self.groups or {group.kind for group in self.groups} != {"cell"}:
            return {}
        answers = {}
        cells = [sides_of(group) for group in self.groups]
        for feature, sides in zip(name.split(PAIR), zip(*cells, strict=True), strict=True):
            order = sorted(dict.fromkeys(sides), key=_place_of)
            index = np.array([order.index(side) for side in sides], dtype=np.intp)
            n = np.bincount(index, weights=[group.n for group in self.groups]).astype(np.int64)
            groups = [replace(side, name=_own_name(side), n=int(k)) for side, k in zip(order, n, strict=True)]
            sums = summed(list(self.sums), index, len(groups)).reshape(len(self.sums), len(groups))
            answers[feature] = replace(self, groups=tuple(groups), sums=sums)
        return answers


def _own_name(side: Group) -> str:
    """Return a group's name among the groups of its feature alone: of a bin its number."""
    if side.kind == "bin":
        return side.name.partition("/")[0]
    return side.name


def _place_of(side: Group) -> tuple[bool, int]:
    """Return what orders groups of one feature: bins by their number, those who are no bin or code at the end."""
    return side.kind not in ("bin", "code"), int(_own_name(side)) if side.kind == "bin" else 0


# Marks that a Host makes: its name, its feature, groups at most, and of how many records at least.
HostMarks = tuple[str, str, int, int]


@dataclass(frozen=True)
class _Question:
    """A question that is asked: what is marked, of whom (a hash), since when, of which features, and in a conversation with whom.

    Attributes
    ----------
    min_size : int
        Records of the smallest group.
    known : tuple of WireGroup
        The groups, if they were known before.
    source : HostMarks, optional
        Whose marks they are, if not the Guest's.
    """

    about: dict[str, Any]
    people: str
    day: str
    asked: list[Key]
    hosts: tuple[str, ...]
    min_size: int = MIN_GROUP
    known: tuple[WireGroup, ...] = ()
    source: HostMarks | None = None

    @property
    def receivers(self) -> tuple[str, ...]:
        """Hosts that are asked for sums."""
        return tuple(dict.fromkeys(host for host, _ in self.asked))

    def pieces(self, sent_marks: SentMarks) -> list[bytes]:
        """Return the question and its bytes as the journal stores them."""
        details = {
            "key": sent_marks.key,
            "largest": sent_marks.largest,
            "totals": sent_marks.totals,
            "spread": sent_marks.spread,
            "pairs": len(sent_marks.pairs),
        }
        return [json.dumps({"question": asdict(self), **details}).encode(), sent_marks.rows, *sent_marks.pairs]

    @classmethod
    def read(cls, pieces: Sequence[bytes]) -> tuple[_Question, SentMarks] | None:
        """Return the question that these pieces hold; None if not all are written, so that nothing was sent yet."""
        if len(pieces) < 2 or len(pieces) < 2 + (body := json.loads(pieces[0]))["pairs"]:
            return None
        largest, totals, spread = (tuple(body[name]) for name in ("largest", "totals", "spread"))
        sent_marks = SentMarks(pieces[1], tuple(pieces[2:]), largest, totals, spread, body["key"])
        return _QUESTION.validate_python(body["question"]), sent_marks


class Asking(Protocol):
    """The subject and the parties of a question: a model that is measured, or a screening before there is a model."""

    @property
    def runtime(self) -> GuestRuntime:
        """Return the federation as its Guest runs it."""

    @property
    def measurements(self) -> Measurements:
        """Return what was measured before."""

    @property
    def subject(self) -> str:
        """Return what answers are kept about: a model's content hash, say."""


class AskedSums:
    """Sums by groups of Hosts' features, of one model and one part of the people.

    Parameters
    ----------
    part : str
        ``test``, ``training``, … or of a later sheet: answers about one part never serve for another.
    max_groups : int
        Groups of a feature, at most.
    same_people : bool
        Whether an answer serves again for the same people alone, and not for others drawn from the same part.
    """

    def __init__(
        self, context: Asking, sessions: Sessions, part: str, max_groups: int, *, same_people: bool = False
    ) -> None:
        self._context = context
        self._sessions = sessions
        self.max_groups = max_groups
        self._kind = KIND + part
        self._same = same_people

    def kept(self, keys: Iterable[Key], about: Mapping[str, Any], ids: Sequence[str] = ()) -> dict[Key, AnsweredSums]:
        """Return Hosts' earlier answers about this model and part, by feature, if the marks were `about` the same.

        Fewer groups follow from more, more from fewer do not.
        """
        stored = self._context.measurements.of(self._context.subject, self._kind)
        tables = {key: _read(stored[key[1]]) for key in keys if key[1] in stored}
        return {
            key: table.in_groups(self.max_groups)
            for key, table in tables.items()
            if table.max_groups >= self.max_groups
            and about.items() <= table.about.items()
            and (not self._same or table.people == people_hash(ids))
        }

    def scored_without(self, feature: str) -> HostRefused:
        """Return the error that says that Hosts have scored everybody, which features were summed then, and how to have another one."""
        instead = self.summed_without(feature)
        if instead is None:
            return HostRefused("all_refused_before")
        return HostRefused("scored_without", feature=feature, until=instead.values["until"], instead=instead)

    def summed_without(self, feature: str) -> Remark | None:
        """Return a remark about the other features that were summed; None if none was, or this one was among them."""
        stored = self._context.measurements.of(self._context.subject, self._kind)
        days = {}
        for name, answer in stored.items():
            if answer.rows[0]["groups"]:
                days[name] = str(answer.basis["day"])
        if not days or feature in days:
            return None
        day = max(days.values())
        until = (date.fromisoformat(day) + timedelta(days=WINDOW_DAYS)).isoformat()
        return Remark(
            "summed_without", {"feature": feature, "day": day, "answered": tuple(sorted(days)), "until": until}
        )

    def own(
        self, grouped: Grouped, labels: NDArray[np.bool_], probabilities: NDArray[np.float64], cutoff: float
    ) -> AnsweredSums:
        """Return outcomes by a feature of the Guest's, summed and stored like an answer: no Host is asked."""
        marking = mark(cutoff, labels, probabilities, own_groups=True)
        marks, _ = marking.marks(labels, probabilities)
        sums = summed(marks, grouped.index, len(grouped.groups))
        table = AnsweredSums(asdict(marking), self.max_groups, "", _today(), grouped.groups, sums)
        self.keep(grouped.feature, table)
        return table

    def outcomes(
        self,
        questions: GroupQuestions,
        ids: Sequence[str],
        labels: NDArray[np.bool_],
        probabilities: NDArray[np.float64],
        marking: Marking,
        features: Mapping[str, Sequence[str]],
        *,
        min_size: int = MIN_GROUP,
        crossed: NDArray[np.intp] | None = None,
    ) -> tuple[dict[Key, AnsweredSums], Refused]:
        """:meth:`ask` for what disparity, validation, monitoring and curves need of outcomes, all in one question; ``(records,)`` each.

        With coarse squares, then without a range of cut-offs, if not even halves of these records can bear the sums of more. `crossed` is
        each record's group of the feature that the marking crosses decisions with.
        """
        coarse = replace(marking, square_bits=COARSE_BITS)
        ways = marking, coarse, replace(coarse, others=())
        max_groups = self._most_groups(features)
        sizes = (questions.borne_by(bounds(w.flags, w.square_bits), max_groups) for w in ways)
        borne = (way for way, size in zip(ways, sizes, strict=True) if size <= questions.records // 2)
        marking = next(borne, ways[-1])
        marks, largest = marking.marks(labels, probabilities, crossed)
        return self.ask(questions, ids, marks, largest, asdict(marking), features, min_size=min_size)

    def ask(
        self,
        questions: GroupQuestions,
        ids: Sequence[str],
        marks: Sequence[Counts],
        largest: Sequence[int],
        about: dict[str, Any],
        features: Mapping[str, Sequence[str]],
        *,
        min_size: int = MIN_GROUP,
        known_groups: Sequence[Group] = (),
        refused: Refused | None = None,
    ) -> tuple[dict[Key, AnsweredSums], Refused]:
        """Ask about features of Hosts: ahead, then with marks; every answer is kept before the next question.

        Parameters
        ----------
        ids : sequence of str
            Of the records that count, in the questions' order.
        marks, largest
            See :meth:`GroupQuestions.send`.
        features : mapping of str to sequence of str
            Host → its features.
        min_size : int
            Records of the smallest group.
        known_groups : sequence of Group
            See :meth:`GroupQuestions.ask`.
        refused : dict, optional
            Known refusals; by default every feature is asked about ahead.

        Returns
        -------
        tables : dict
            Of a feature that does not make two groups without any.
        refused : dict
            Features that a Host would not, or did not, answer about; nothing was counted for them.
        """
        if refused is None:
            refused = self.refused_ahead(questions, features, min_size)
        keys = []
        for host, names in features.items():
            for name in names:
                if (host, name) not in refused:
                    keys.append((host, name))
        if not keys:
            return {}, refused
        if not known_groups and questions.borne_by(largest, self._most_groups(features)) > questions.records // 2:
            none = np.zeros(
                (len(marks), 0), dtype=np.int64
            )  # nobody is asked: no groups of these records can bear their sums
            unasked = AnsweredSums(about, self.max_groups, people_hash(ids), _today(), (), none)
            return dict.fromkeys(keys, unasked), refused
        question = _Question(about, people_hash(ids), _today(), keys, questions.hosts, min_size, to_wire(known_groups))
        with self._written_down(question) as write_question:
            with work.part(0.0, MARKED):
                progress = self._sessions.progress
                questions.send(marks, question.receivers, largest=largest, on_piece=progress, on_made=write_question)
            with work.part(MARKED, 1.0):
                answers, late = self._answers(questions, question, len(marks), work.reached)
        return answers, {**refused, **late}

    def ask_of_host(
        self, questions: GroupQuestions, ids: Sequence[str], source: HostMarks, features: Mapping[str, Sequence[str]]
    ) -> tuple[tuple[Group, ...], dict[Key, AnsweredSums], Refused]:
        """See :meth:`ask`; but a Host marks which group of its feature each record is in. Its groups come first.

        Hosts cannot be asked ahead: the Guest does not have that Host's marks.
        """
        keys = [(host, name) for host, names in features.items() for name in names]
        question = _Question({}, people_hash(ids), _today(), keys, questions.hosts, source=source)
        with self._written_down(question) as write_question:
            write_question(questions.made_by_host())
            return self._marked_by_host(questions, question, source)

    def _marked_by_host(
        self, questions: GroupQuestions, question: _Question, source: HostMarks
    ) -> tuple[tuple[Group, ...], dict[Key, AnsweredSums], Refused]:
        """Steps 1 and 2; a Host that is asked within a day to mark the same people sends the same bytes again."""
        host, feature, max_groups, min_size = source
        groups = questions.have_sent(host, feature, max_groups, question.receivers, min_size)
        if not groups:
            return (), {}, {}
        question = replace(question, about={GROUPS_OF: [list(g) for g in to_wire(groups)]})
        return groups, *self._answers(questions, question, len(groups) - 1)

    @contextmanager
    def _written_down(self, question: _Question) -> Iterator[Callable[[SentMarks], None]]:
        """A function that writes a question into the journal, to be called before anything is sent; once all is kept, it is forgotten."""
        journal = self._context.runtime.journal
        if journal is None:
            run = None
        else:
            run = journal.run(self._question, fresh=True)

        def write(sent_marks: SentMarks) -> None:
            if run is not None:
                run.batch(0)
                for number, piece in enumerate(question.pieces(sent_marks)):
                    run.sending(0, number, piece)

        try:
            yield write
            if journal is not None and run is not None:
                journal.handed_over(run.name)
        finally:
            if journal is not None:
                journal.ended(run)

    def _answers(
        self,
        questions: GroupQuestions,
        question: _Question,
        marks: int,
        reached: Callable[[float], None] = lambda share: None,
    ) -> tuple[dict[Key, AnsweredSums], Refused]:
        """Step 2 of marks that are with Hosts, a feature at a time; what came is kept before the next is asked about."""
        answers: dict[Key, AnsweredSums] = {}
        refused: Refused = {}
        stored = self._context.measurements.of(self._context.subject, self._kind)
        if question.source is None:
            source = None
        else:
            source = question.source[0]
        known_groups = read_groups(question.known, questions.records)
        for number, (host, name) in enumerate(question.asked):
            self._sessions.job.at("sums", host)
            reached(number / len(question.asked))
            try:
                tables = questions.ask(
                    {host: (name,)}, self.max_groups, source, min_size=question.min_size, known_groups=known_groups
                )
            except (HostRefused, QuestionRefused) as error:  # another process was first
                refused[host, name] = error
                continue
            none = GroupTable((), np.zeros((marks, 0), dtype=np.int64))
            table = tables.get((host, name), none)
            answers[host, name] = AnsweredSums(
                question.about, self.max_groups, question.people, question.day, table.groups, table.sums
            )
            if table.groups or name not in stored:  # no groups say nothing that would be worth an earlier answer
                self.keep(name, answers[host, name])
            for feature, alone in answers[host, name].of_each(name).items():
                if feature not in stored:
                    self.keep(feature, alone)
        return answers, refused

    def _most_groups(self, features: Mapping[str, Sequence[str]]) -> int:
        """Return how many groups a question about any of these can have at most."""
        names = [name for of_host in features.values() for name in of_host]
        return max((most_groups(name, self.max_groups) for name in names), default=self.max_groups)

    def refused_ahead(self, questions: GroupQuestions, features: Mapping[str, Sequence[str]], min_size: int) -> Refused:
        """See :meth:`backend.services.measurement.Sessions.refused_ahead`."""
        return self._sessions.refused_ahead(questions, features, self.max_groups, min_size)

    def recover(self, cipher: Cipher, bits: int, ids: Sequence[str] | None = None) -> None:
        """Have answers that a killed Guest did not keep given again: the same bytes about the same people, which tell nothing new.

        A Host that answered them does not count them again, and refuses if its records have changed since. Of the same people only
        (`ids`, default the Guest's own records), within a day, and as long as the key is the same; else what was asked is given up. Where a
        Host of it is down or refuses, it is kept for later: other Hosts may be asked meanwhile.
        """
        journal = self._context.runtime.journal
        if journal is None:
            return
        for run in journal.broken_off(self._question):
            entry = None
            with suppress(QuestionRefused):  # another process has the answer by now
                entry = _Question.read(run.batch(0).sent)
            if entry is not None:  # else it was not sent, or another process is writing it now
                try:
                    self._ask_again(*entry, cipher, bits, ids)
                except (PartyUnreachable, HostRefused):
                    continue  # by one of its Hosts, which another measurement need not ask: it waits for that, within its day
                journal.handed_over(run.name)

    def _ask_again(
        self, question: _Question, sent_marks: SentMarks, cipher: Cipher, bits: int, ids: Sequence[str] | None
    ) -> None:
        """Send the same bytes again if they can be read and the people are the same."""
        runtime = self._context.runtime
        if sent_marks.key != key_in_words(runtime.keys.pair(cipher, bits)):
            return
        everybody = runtime.table.ids if ids is None else ids
        with self._sessions.begin(question.hosts) as session, work.part(0.0, 0.0):
            questions, rows = self._sessions.ask(
                session, cipher, bits, lambda joint: _flags(sent_marks.rows, len(joint)), everybody
            )
            same = people_hash([everybody[row] for row in rows.tolist()]) == question.people
            if same and questions.made_by_host().rows == sent_marks.rows:
                self._repeated(questions, question, sent_marks)

    def _repeated(self, questions: GroupQuestions, question: _Question, sent_marks: SentMarks) -> None:
        """Ask what was asked before; a Host sends its marks as it sent them then.

        If the Hosts would answer all of it now, they have answered nothing: nothing is lost, and the next measurement asks for itself.
        """
        if question.source is None:
            features = {}
            for host in question.receivers:
                features[host] = [name for holder, name in question.asked if holder == host]
            if self.refused_ahead(questions, features, question.min_size):
                questions.repeat(sent_marks, question.receivers)
                self._answers(questions, question, len(sent_marks.largest))
            return
        with suppress(HostRefused, QuestionRefused):
            self._marked_by_host(questions, question, question.source)

    @property
    def _question(self) -> str:
        """Return what the journal knows questions about this model and part by; after a rotation of keys it knows none of before."""
        retired = self._context.runtime.keys.retired
        parts = [self._context.subject, self._kind, str(self.max_groups), *retired]
        return sha256(" ".join(parts).encode()).hexdigest()

    def keep(self, feature: str, table: AnsweredSums) -> None:
        """Keep an answer, in place of an earlier one about the same model and part; the Guest's own sums too."""
        body = {"about": table.about, "groups": to_wire(table.groups), "sums": table.sums.tolist()}
        basis = {
            "most": table.max_groups,
            "people": table.people,
            "day": table.day,
            "n": sum(g.n for g in table.groups),
        }
        self._context.measurements.put(self._context.subject, self._kind, feature, Kept([body], basis))


def ask_others(
    context: MeasurementContext,
    sessions: Sessions,
    questions: GroupQuestions,
    rows: Rows,
    outcomes: Outcomes,
    cutoff: float,
    others: Mapping[str, Sequence[str]],
) -> None:
    """Ask about features that were not to be measured, as a validation asks about them; the answers are kept for when they are.

    Parameters
    ----------
    rows : ndarray of int
        ``(records,)``: of the Guest's table, in the questions' order.
    """
    if not others or len(rows) < 2 * MIN_GROUP:
        return
    ids = context.runtime.table.take(rows).ids
    sums = AskedSums(context, sessions, TEST, GROUPS)
    with suppress(FewRecords):
        sums.outcomes(questions, ids, *outcomes, mark(cutoff, *outcomes, own_groups=False, undecided=True), others)


def sum_own(context: MeasurementContext, sessions: Sessions, rows: Rows, outcomes: Outcomes, cutoff: float) -> None:
    """Store sums of outcomes by all features of the Guest's if these people will not be scored again."""
    sums = AskedSums(context, sessions, TEST, GROUPS)
    runtime = context.runtime
    for feature in runtime.federation.guest.features:
        sums.own(group(feature, runtime.table.columns[feature.name][rows], GROUPS), *outcomes, cutoff)


def with_first(key: Key, others: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return features by Host with one before all others."""
    host, name = key
    features = {host: (name, *others.get(host, ()))}
    for other_host, names in others.items():
        features.setdefault(other_host, tuple(names))
    return features


def without(features: Mapping[str, Sequence[str]], keys: Collection[Key]) -> dict[str, tuple[str, ...]]:
    """Return features by Host without some of them; a Host of which none is left is left out, too."""
    remaining = {host: tuple(name for name in names if (host, name) not in keys) for host, names in features.items()}
    return {host: names for host, names in remaining.items() if names}


_QUESTION = TypeAdapter(_Question)


def _read(measurement: Kept) -> AnsweredSums:
    body = measurement.rows[0]
    basis = measurement.basis
    groups = read_groups([(kind, name, n) for kind, name, n in body["groups"]], basis["n"])
    sums = np.array(body["sums"], dtype=np.int64).reshape(len(body["sums"]), len(groups))
    return AnsweredSums(body["about"], basis["most"], basis["people"], basis["day"], groups, sums)


def _flags(rows: bytes, n: int) -> NDArray[np.bool_]:
    """Return which of `n` joint records are marked; none if there are too few by now."""
    try:
        return unpack_rows(rows, n)
    except SecurityError:
        return np.zeros(n, dtype=np.bool_)


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def people_hash(ids: Sequence[str]) -> str:
    """SHA-256 of ids in any order, in hexadecimal."""
    return sha256("\n".join(sorted(ids)).encode()).hexdigest()
