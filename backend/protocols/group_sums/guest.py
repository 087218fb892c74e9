"""The Guest asks for sums by group: encrypted marks of the joint records go out, sums by the groups of a Host's features come in.

The histogram protocol of training (SecureBoost §3.2, eq. 2) on other numbers: what the Guest wants to relate to a Host's feature
(a decision, a label, the group of a protected attribute) instead of gradients. The Guest learns sums over groups of at least
:data:`backend.protocols.group_sums.grouping.MIN_GROUP` records, and no Host's value of any record. Marks may also be a Host's own: it
encrypts them under the Guest's key and sends them to the Hosts that add them up, so that two Hosts' features are related and the Guest
sees sums only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import PairKeySide
from backend.errors import ParameterError, SecurityError, WrongAnswer
from backend.protocols.group_sums.disclosure_bound import least_size, smallest_size, spread_of
from backend.protocols.group_sums.distinct import LADDER
from backend.protocols.group_sums.grouping import (
    MIN_GROUP,
    PAIR,
    Group,
    WireGroup,
    are_as_asked,
    are_cells_as_asked,
    most_groups,
    read_groups,
    to_wire,
)
from backend.protocols.group_sums.messages import (
    AskDistinct,
    AskGroupPairs,
    AskGroupSums,
    DistinctValues,
    GroupPairs,
    GroupPairsSent,
    GroupSums,
    MoreGroupPairs,
)
from backend.protocols.group_sums.statement import GroupStatement, name_of_sums
from backend.protocols.group_sums.values import Counts, Slot, carried, half_of, pack, slots, unpack
from backend.protocols.training.pair_pieces import pieces
from backend.protocols.training.row_sets import pack_rows
from backend.protocols.transport.channel import Session
from backend.protocols.transport.packing import chunks
from backend.store.journal import Journal

CHUNK_RECORDS = 256  # records encrypted between two looks at the cancel flag: a second at 3,072 bits on a busy machine


@dataclass(frozen=True, repr=False)
class GroupTable:
    """Sums of marks by the groups of one feature.

    Attributes
    ----------
    groups : tuple of Group
        With how many records each has.
    sums : ndarray of int64
        ``(marks, groups)``.
    """

    groups: tuple[Group, ...]
    sums: Counts


@dataclass(frozen=True, repr=False)
class SentMarks:
    """The Guest's own marks as they go out, so that a killed Guest can send the same bytes again, which is the same question.

    Attributes
    ----------
    rows : bytes
        Which joint records are marked (:func:`pack_rows`).
    pairs : tuple of bytes
        Ciphertexts of these records, batch by batch.
    largest, totals : tuple of int
        The largest value of each mark, and its sum over all of these records.
    spread : tuple of float
        The variance of each mark over them.
    key : str
        Scheme and bits of the Guest's key that they are encrypted under.
    """

    rows: bytes
    pairs: tuple[bytes, ...]
    largest: tuple[int, ...]
    totals: tuple[int, ...]
    spread: tuple[float, ...]
    key: str


@dataclass(frozen=True)
class _Sent:
    """Marks that are with Hosts: where they lie in the pairs, the largest value of each, and their totals over all records.

    `spread` is the variance of each where the Guest knows it: not of a Host's, of which it knows the feature. `marks` are the Guest's
    own, unless another process made them.
    """

    layout: tuple[Slot, ...]
    largest: tuple[int, ...]
    totals: tuple[int, ...]
    spread: tuple[float, ...] = ()
    feature: str = ""
    marks: tuple[Counts, ...] | None = None


def pairs_a_record(largest: Sequence[int], records: int, bits: int) -> int:
    """How many ciphertexts of a record carry marks of these largest values, to be summed over `records` of them, under a key of `bits`."""
    if largest:
        return slots(largest, records, bits)[-1].number + 1
    return 0


class GroupQuestions:
    """One conversation about groups of the joint records that count (`rows`), after a key was offered and ids were aligned.

    `named` is the share of a group's people whom Hosts let sums name at most (:func:`least_size`); 0 = not limited. Into the `journal` it
    is written how each sum came about, for an auditor.
    """

    def __init__(
        self,
        session: Session,
        guest: str,
        key: PairKeySide,
        rows: NDArray[np.bool_],
        named_share: float = 0.0,
        journal: Journal | None = None,
    ) -> None:
        self._journal = journal
        self._session = session
        self._guest = guest
        self._key = key
        self._rows = rows
        self._named = named_share
        self.records = int(np.count_nonzero(rows))
        self._sent: dict[str, _Sent] = {}  # by whose marks they are

    @property
    def hosts(self) -> tuple[str, ...]:
        """With whom ids were aligned."""
        return tuple(self._session.hosts)

    def made_by_host(self) -> SentMarks:
        """What the Guest sends where marks are a Host's: of whom they are to be."""
        return SentMarks(pack_rows(self._rows), (), (), (), (), key_in_words(self._key))

    def send(
        self,
        marks: Sequence[Counts],
        hosts: Collection[str],
        *,
        largest: Sequence[int] | None = None,
        on_piece: Callable[[int, int], None] = lambda n_done, total: None,
        on_made: Callable[[SentMarks], None] = lambda sent_marks: None,
    ) -> None:
        """Step 1: the Guest's own marks, encrypted, the same bytes to every one of `hosts`.

        Parameters
        ----------
        marks : sequence of ndarray of int64
            ``(records,)`` each.
        largest : sequence of int, optional
            The largest value of each mark; 1 by default.
        on_piece : callable
            Called with the number of ciphertexts that are done, and of all.
        on_made : callable
            Called with the encrypted marks before they are sent.

        Raises
        ------
        ParameterError
            A mark is more than the largest.
        """
        bounds = tuple(largest or [1] * len(marks))
        layout = slots(bounds, self.records, self._key.bits)
        numbers = pack(marks, bounds, layout)
        half = half_of(layout)
        total = len(numbers) * self.records
        pairs = tuple(
            b"".join(self._encrypted(of_records, half, i * self.records, total, on_piece))
            for i, of_records in enumerate(numbers)
        )
        on_piece(total, total)
        totals = tuple(int(mark.sum()) for mark in marks)
        sent_marks = SentMarks(pack_rows(self._rows), pairs, bounds, totals, spread_of(marks), key_in_words(self._key))
        on_made(sent_marks)
        self.repeat(sent_marks, hosts)
        self._sent[self._guest] = replace(self._sent[self._guest], marks=tuple(marks))

    def repeat(self, sent_marks: SentMarks, hosts: Collection[str]) -> None:
        """Repeat step 1 with bytes that were encrypted earlier, about the same records; in pieces."""
        if sent_marks.key != key_in_words(self._key) or sent_marks.rows != pack_rows(self._rows):
            raise ParameterError("marks_of_other_records")
        layout = slots(sent_marks.largest, self.records, self._key.bits)
        name = self._session.name
        widths = [len(blob) // max(1, self.records) for blob in sent_marks.pairs]
        for part in pieces(self.records, len(sent_marks.pairs), self._key.bits):
            self._session.check()
            blobs = tuple(
                blob[part.start * width : part.stop * width]
                for blob, width in zip(sent_marks.pairs, widths, strict=True)
            )
            is_first = part.start > 0
            piece = (
                MoreGroupPairs(name, blobs) if is_first else GroupPairs(name, sent_marks.rows, half_of(layout), blobs)
            )
            for host in hosts:
                self._session.send(host, piece)
        self._sent[self._guest] = _Sent(layout, sent_marks.largest, sent_marks.totals, sent_marks.spread)

    def _encrypted(
        self, numbers: list[int], half: int, n_done: int, total: int, on_piece: Callable[[int, int], None]
    ) -> Iterator[bytes]:
        """Yield ciphertexts of a number a record; `n_done` ciphertexts came before them."""
        for part in chunks(len(numbers), CHUNK_RECORDS):
            self._session.check()
            on_piece(n_done + part.start, total)
            yield self._key.encrypt_joined(numbers[part.start : part.stop], half)

    def would_answer(self, host: str, features: Sequence[str], max_groups: int, min_size: int = MIN_GROUP) -> None:
        """Before step 1: raise what the Host would refuse these sums with if they were asked for now. It counts nothing and tells no group.

        A repetition in the same bytes, which only marks that nobody encrypts can be, is refused like any other second question.

        Raises
        ------
        Cancelled, PartyUnreachable, SecurityError
            See :meth:`Session.expect`; the Host's account leaves no room for the question, say.
        """
        name = self._session.name
        self._session.send(host, GroupPairs(name, pack_rows(self._rows), 1, ()))
        self._session.send(host, AskGroupSums(name, self._guest, tuple(features), max_groups, min_size))
        if self._session.expect_each(GroupSums, [host])[host].features:
            raise SecurityError("answered_out_of_turn", host=host)

    def borne_by(self, largest: Sequence[int], max_groups: int) -> int:
        """Records of the smallest groups of which sums of marks of these largest values may be asked for; more than half if none."""
        layout = slots(largest, self.records, self._key.bits)
        return least_size(_carried(layout), self.records, max_groups, self._named)

    def have_sent(
        self, host: str, feature: str, max_groups: int, receivers: Sequence[str], min_size: int = MIN_GROUP
    ) -> tuple[Group, ...]:
        """Step 1 if the marks are a Host's: a mark for each group of its feature but the last. Returns the groups; empty = too few."""
        rows = pack_rows(self._rows)
        name = self._session.name
        self._session.send(host, AskGroupPairs(name, rows, feature, max_groups, tuple(receivers), min_size))
        answer = self._session.expect_each(GroupPairsSent, [host])[host]
        if answer.feature != feature:
            raise SecurityError("answered_out_of_turn", host=host)
        if answer.groups:
            groups = self._groups(host, feature, answer.groups, max_groups, min_size)
        else:
            groups = ()
        ones = (1,) * max(0, len(groups) - 1)
        layout = slots(ones, self.records, self._key.bits)
        self._sent[host] = _Sent(layout, ones, tuple(g.n for g in groups[:-1]), feature=feature, marks=())
        return groups

    def ask(
        self,
        features_of: Mapping[str, Sequence[str]],
        max_groups: int,
        source: str | None = None,
        *,
        min_size: int = MIN_GROUP,
        known_groups: Sequence[Group] = (),
    ) -> dict[tuple[str, str], GroupTable]:
        """Step 2: sums of the marks that `source` (default the Guest) has sent, by groups of the Hosts' features.

        Parameters
        ----------
        features_of : mapping of str to sequence of str
            Host → its features; two together are named as :func:`backend.protocols.group_sums.grouping.features_of` reads them.
        max_groups : int
            Bins or codes a feature.
        min_size : int
            Records of the smallest group; a Host merges those below its own minimum in any case. It is raised if sums of the marks could
            reveal the members of a smaller group (:mod:`backend.protocols.group_sums.disclosure_bound`).
        known_groups : sequence of Group
            The groups of `min_size` records or more, if they are known; the marks must be those that groups of these sizes can bear.

        Returns
        -------
        dict of (str, str) to GroupTable
            By (Host, feature); a feature without at least two groups is left out. No Host is asked if no feature can have two groups.

        Raises
        ------
        Cancelled, PartyUnreachable, SecurityError
            See :meth:`Session.expect`; or an answer's groups or sums do not add up to what was sent.
        """
        sender = source or self._guest
        features_by_host = {host: tuple(features) for host, features in features_of.items() if features}
        if not known_groups:
            names = [name for features in features_by_host.values() for name in features]
            max_of_all = max((most_groups(name, max_groups) for name in names), default=max_groups)
            min_size = self.least_asked(max_of_all, sender, min_size)
            if min_size > self.records // 2:
                return {}
        for host, features in features_by_host.items():
            self._session.send(host, AskGroupSums(self._session.name, sender, features, max_groups, min_size))
        answers = self._session.expect_each(GroupSums, features_by_host)
        tables = {}
        for host, features in features_by_host.items():
            for feature, table in self._read(host, features, sender, answers[host], max_groups, min_size).items():
                self._state(
                    name_of_sums(self._session.name, host, sender, feature, max_groups, min_size), sender, table
                )
                tables[host, feature] = table
        return tables

    def _state(self, name: str, sender: str, table: GroupTable) -> None:
        """Write down how sums came about."""
        sent = self._sent[sender]
        if self._journal is None or sent.marks is None:
            return
        statement = GroupStatement(sender, sent.feature, sent.marks, to_wire(table.groups), table.sums)
        self._journal.state_answer(name, statement.dump())

    def distinct(self, host: str, feature: str) -> tuple[int, int]:
        """Return the place of a Host's feature on :data:`backend.protocols.group_sums.distinct.LADDER`, and the Host's smallest group.

        Raises
        ------
        Cancelled, PartyUnreachable, SecurityError
            See :meth:`Session.expect`; or the answer is about another feature, or no place.
        """
        self._session.send(host, AskDistinct(self._session.name, pack_rows(self._rows), feature))
        answer = self._session.expect_each(DistinctValues, [host])[host]
        if answer.feature != feature or len(answer.place) != 1 or answer.place[0] > len(LADDER):
            raise SecurityError("answered_out_of_turn", host=host)
        return answer.place[0], answer.least

    def least_asked(self, max_groups: int, sender: str, min_size: int = MIN_GROUP) -> int:
        """Return the size of the smallest group that sums of a party's marks are asked for; more than half of the records if there is none.

        It is `min_size` if the party has sent no marks.
        """
        sent = self._sent.get(sender)
        if sent is None:
            return min_size
        borne = least_size(_carried(sent.layout), self.records, max_groups, self._named)
        return smallest_size(sent.spread, self.records, max_groups, max(min_size, borne))

    def _groups(
        self, host: str, feature: str, reported: Sequence[WireGroup], max_groups: int, min_size: int
    ) -> tuple[Group, ...]:
        """Return a feature's groups as a Host reports them.

        Raises
        ------
        WrongAnswer
            If they are not groups of these records that were asked for.
        """
        with suppress(SecurityError):
            groups = read_groups(reported, self.records)
            if are_as_asked(groups, max_groups, min_size):
                return groups
            if PAIR in feature and are_cells_as_asked(groups, max_groups, min_size):
                return groups
        raise WrongAnswer("groups_not_as_asked", host=host, feature=feature)

    def _read(
        self, host: str, features: tuple[str, ...], sender: str, answer: GroupSums, max_groups: int, min_size: int
    ) -> dict[str, GroupTable]:
        sent = self._sent[sender]
        fits = len(answer.features) == len(answer.groups) == len(set(answer.features) & set(features))
        batches = sent.layout[-1].number + 1 if answer.features else 0
        if not fits or answer.source != sender or len(answer.sums) != batches:
            raise SecurityError("answered_out_of_turn", host=host)
        if not answer.features:
            return {}
        groups = []
        for feature, reported in zip(answer.features, answer.groups, strict=True):
            groups.append(self._groups(host, feature, reported, max_groups, min_size))
        ends = np.cumsum([len(of_feature) for of_feature in groups])
        half = half_of(sent.layout)
        n = int(ends[-1])
        sums = unpack([self._key.decrypt_joined(blob, n, half) for blob in answer.sums], sent.layout)
        parts = zip(answer.features, groups, np.split(sums, ends[:-1], axis=1), strict=True)
        tables = {feature: GroupTable(of_feature, part) for feature, of_feature, part in parts}
        if not all(_possible(table, sent) for table in tables.values()):
            raise WrongAnswer("group_sums_do_not_add_up", host=host)
        return tables


def _carried(layout: Sequence[Slot]) -> int:
    if layout:
        return carried(layout[-1].number + 1, half_of(layout))
    return 0


def key_in_words(key: PairKeySide) -> str:
    """Scheme and bits."""
    return f"{key.scheme} {key.bits}"


def _possible(table: GroupTable, sent: _Sent) -> bool:
    """Whether sums are those of the marks that were sent, as far as the Guest can check."""
    largest = np.outer(sent.largest, [g.n for g in table.groups])
    within = (table.sums >= 0) & (table.sums <= largest)
    return tuple(table.sums.sum(axis=1).tolist()) == sent.totals and bool(within.all())
