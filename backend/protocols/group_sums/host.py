"""A Host's handler for sums over groups of people (disparity, proxies): adds up what it cannot read, merges small groups.

It may also send its own groups encrypted. Knows no label and no score.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import longest_half
from backend.crypto.interface import PairPublicSide
from backend.crypto.paillier.scheme import PaillierPublicSide
from backend.crypto.plain import PlainKeySide
from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.group_sums.disclosure_bound import least_size
from backend.protocols.group_sums.grouping import GROUP_LIMITS, MIN_GROUP, Grouped, group, to_wire
from backend.protocols.group_sums.messages import (
    AskGroupPairs,
    AskGroupSums,
    GroupPairs,
    GroupPairsSent,
    GroupSums,
    MoreGroupPairs,
)
from backend.protocols.group_sums.values import carried, half_of, pack, slots
from backend.protocols.host_state import Answer, Answering, Handlers, ReceivedQuestion, digest_of
from backend.protocols.training.pair_pieces import IncomingPairs, pieces
from backend.protocols.training.row_sets import unpack_rows
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import ApprovalPending
from backend.store.accountant import GROUPS, Question

Allowed = Callable[[str, str, int, str], ApprovalPending | None]
"""Guest, conversation, people and question → what it gets instead of an answer, as :meth:`ApprovalGate.hold_sums` has it."""


@dataclass(frozen=True, repr=False)
class _Marked:
    """Records of the table that a party has sent pairs of, as far as they have come; `asked` is hashed as they do."""

    rows: NDArray[np.intp]
    half: int
    pairs: IncomingPairs
    asked: hashlib._Hash

    def add(self, piece: Sequence[bytes]) -> None:
        self.pairs.add(piece)
        for blob in piece:
            self.asked.update(blob)


@dataclass(repr=False)
class HostGroups:
    """One conversation about groups, of `min_group` records or more, at one Host; `rows` are its joint rows, in the common order.

    `key` is the one that the Guest offered, as it came: under another one the same bytes are other numbers, and so another question.
    """

    table: PartyTable
    features: Mapping[str, Feature]
    rows: NDArray[np.intp]
    cipher: PairPublicSide
    key: bytes
    min_group: int
    _marked: dict[str, _Marked] = field(default_factory=dict)  # by sender

    def take_pairs(self, sender: str, message: GroupPairs) -> None:
        """Keep encrypted pairs of some joint records instead of the sender's last ones; the first piece of them."""
        rows, longest = self.rows[unpack_rows(message.rows, len(self.rows))], longest_half(self.cipher.bits)
        if not 1 <= message.half <= longest:
            raise SecurityError("half_too_long", half=message.half, most=longest)
        batches = len(message.pairs)
        asked = hashlib.sha256(digest_of(self.key, message.rows, message.half, batches).encode())
        marked = _Marked(rows, message.half, IncomingPairs(self.cipher, len(rows), batches), asked)
        self._marked[sender] = marked
        marked.add(message.pairs)

    def take_more(self, sender: str, message: MoreGroupPairs) -> None:
        """Keep the next piece."""
        self._sent_by(sender).add(message.pairs)

    def check(self, features: Sequence[str], max_groups: int) -> None:
        """Raise SecurityError where a feature is none of this Host's or named twice, or the groups are too many or too few."""
        low, high = GROUP_LIMITS
        if len(self.features.keys() & set(features)) < len(features) or not low <= max_groups <= high:
            raise SecurityError("groups_not_possible", groups=max_groups, least=low, most=high)

    def check_carried(self, asked: AskGroupSums, min_size: int, share: float) -> None:
        """Raise SecurityError where sums could say of more than a `share` of a group's people that they are in it.

        By numbers alone that the Guest has sent: the refusal tells nothing of this Host's records, and nobody is counted.
        """
        marked = self._sent_by(asked.source)
        bits, n = carried(len(marked.pairs.batches), marked.half), len(marked.rows)
        wanted = least_size(bits, n, asked.most, share)
        if bits and min_size < wanted:
            raise SecurityError("sums_could_name_people", bits=bits, people=n, wanted=wanted, min_size=min_size)

    def people(self, packed: bytes) -> tuple[str, ...]:
        """Ids of some joint records."""
        return tuple(self.table.ids[row] for row in self.rows[unpack_rows(packed, len(self.rows))].tolist())

    def looks(self, sender: str, source: str) -> bool:
        """Whether the Guest only asks if it would be answered: it marked people with nothing, so that there is nothing to sum."""
        return sender == source and not self._sent_by(source).pairs.batches

    def pairs_of(self, source: str) -> tuple[tuple[str, ...], str]:
        """Of whom a party has sent pairs, and the hash of what it sent."""
        marked = self._sent_by(source)
        return tuple(self.table.ids[row] for row in marked.rows.tolist()), marked.asked.hexdigest()

    def _sent_by(self, source: str) -> _Marked:
        if source not in self._marked:
            raise SecurityError("pairs_not_sent", sender=source)
        return self._marked[source]

    def sums(self, message: AskGroupSums) -> GroupSums:
        """Sums of a party's pairs by the groups of some features, refreshed; features without groups are left out."""
        marked = self._sent_by(message.source)
        rows, batches = marked.rows, marked.pairs.batches
        min_size = max(self.min_group, message.least)
        grouped = [self._grouped(name, rows, message.most, min_size) for name in message.features]
        kept = [g for g in grouped if g.groups]
        # SecureBoost eq. 2, with one tree node of all records and a feature's groups as its bins
        node = np.arange(len(rows), dtype=np.intp), [(g.index, len(g.groups)) for g in kept]
        return GroupSums(
            message.conversation,
            message.source,
            tuple(g.feature for g in kept),
            tuple(to_wire(g.groups) for g in kept),
            tuple(self.cipher.bin_sums(pairs, [node], marked.half, alone=True)[0] for pairs in batches) if kept else (),
        )

    def marks_of(self, message: AskGroupPairs) -> Grouped:
        """The groups of a feature among some joint records, and which each is in."""
        return self._grouped(message.feature, self._of(message), message.most, max(self.min_group, message.least))

    def pairs(self, grouped: Grouped) -> bytes:
        """Which group each of some joint records is in, encrypted under the Guest's key: as many bytes of each number.

        Every group but the last is a mark of 0 or 1; nothing is encrypted where there are no groups.
        """
        marks = [(grouped.index == k).astype(np.int64) for k in range(len(grouped.groups) - 1)]
        ones, records = [1] * len(marks), len(grouped.index)
        layout = slots(ones, records, self.cipher.bits)
        return b"".join(self._encrypted(numbers, half_of(layout)) for numbers in pack(marks, ones, layout))

    def in_pieces(self, message: AskGroupPairs, groups: int, made: bytes) -> Iterator[GroupPairs | MoreGroupPairs]:
        """Messages with what :meth:`pairs` has made."""
        bits, records = self.cipher.bits, len(self._of(message))
        layout = slots([1] * max(0, groups - 1), records, bits) if groups > 1 else ()
        batches = layout[-1].number + 1 if layout else 0
        width = len(made) // max(1, batches * records)
        blobs = [made[k * records * width : (k + 1) * records * width] for k in range(batches)]
        for part in pieces(records, batches, bits):
            cut = tuple(blob[part.start * width : part.stop * width] for blob in blobs)
            if part.start:
                yield MoreGroupPairs(message.conversation, cut)
            else:
                yield GroupPairs(message.conversation, message.rows, half_of(layout), cut)

    def _of(self, message: AskGroupPairs) -> NDArray[np.intp]:
        return self.rows[unpack_rows(message.rows, len(self.rows))]

    def _grouped(self, name: str, rows: NDArray[np.intp], max_groups: int, min_size: int) -> Grouped:
        return group(self.features[name], self.table.columns[name][rows], max_groups, min_size)

    def _encrypted(self, numbers: Sequence[int], half: int) -> bytes:
        """Numbers under the Guest's public key, one fresh ciphertext each."""
        if not isinstance(self.cipher, PaillierPublicSide):
            return PlainKeySide().encrypt_joined(numbers, half)
        key, fresh = self.cipher.key, self.cipher.obfuscators.take(len(numbers))
        return key.dump(key.encrypt_with(m, r) for m, r in zip(numbers, fresh, strict=True))


@dataclass(frozen=True, repr=False)
class _Counting:
    """Counts what one message asks about some people, before it is answered; or only looks whether it would be."""

    answering: Answering
    guest: str
    asked: AskGroupSums | AskGroupPairs
    people: tuple[str, ...]
    min_size: int
    only_look: bool = False

    def sizes(self, feature: str) -> None:
        """Sizes of a feature's groups among the people: of these people as often as wanted, of others with one of them in it never.

        Two sets of people that differ in one would tell that one's group; two smallest sizes, how many few people without a value are.
        """
        self.numbers(("groups", feature))

    def name(self, about: tuple[str, ...], digest: str = "") -> str:
        """Of the question, the same where it is repeated."""
        return digest_of(self.guest, about, self.people, f"{self.min_size} {self.asked.most} {digest}".rstrip())

    def waits(self, feature: str, allowed: Allowed) -> ApprovalPending | None:
        """What the Guest gets instead, where this Host's operator has not decided about sums by group."""
        people = 0 if self.only_look else len(self.people)
        return allowed(self.guest, self.asked.conversation, people, self.name(("groups", feature)))

    def numbers(self, about: tuple[str, ...], digest: str = "", *, read: bool = True) -> ReceivedQuestion:
        """What is made of numbers of this `digest`; nothing is disclosed where it goes to those who cannot `read` it."""
        bits = log2(max(1, self.asked.most)) if read else 0.0
        name, conversation = self.name(about, digest), self.asked.conversation
        question = Question(self.guest, name, GROUPS, digest_of(about), self.people, bits, bits)
        self.answering.count_all(question, conversation, only_look=self.only_look)
        if self.only_look:
            return ReceivedQuestion(None, self.guest, name, None)
        return self.answering.bind(self.guest, name, conversation, name)


@dataclass(repr=False)
class GroupSumsHandler:
    """Answers questions about groups."""

    name: str
    table: PartyTable
    features: Mapping[str, Feature]
    answering: Answering
    allowed: Allowed

    def handlers(self) -> Handlers:
        """What this handler answers."""
        return {
            GroupPairs: self._group_pairs,
            MoreGroupPairs: self._more_pairs,
            AskGroupSums: self._group_sums,
            AskGroupPairs: self._ask_group_pairs,
        }

    def _groups(self, message: Message) -> HostGroups:
        session = self.answering.sessions.of(message.conversation)
        if session.rows is None or not isinstance(session.cipher, PairPublicSide):
            raise SecurityError("groups_before_alignment")
        min_group = max(MIN_GROUP, self.answering.min_group)
        groups = session.kept(HostGroups) or HostGroups(
            self.table, self.features, session.rows, session.cipher, session.key, min_group
        )
        return session.keep(HostGroups, groups)

    def _group_pairs(self, sender: str, pairs: GroupPairs) -> None:
        groups, share = self._groups(pairs), self.answering.named_share(pairs.conversation)
        bits, n = carried(len(pairs.pairs), pairs.half), int(unpack_rows(pairs.rows, len(groups.rows)).sum())
        if share and bits > share * n:  # before memory is spent on them
            raise SecurityError("marks_too_long", bits=bits, people=n)
        groups.take_pairs(sender, pairs)

    def _more_pairs(self, sender: str, more: MoreGroupPairs) -> None:
        self._groups(more).take_more(sender, more)

    def _group_sums(self, sender: str, asked: AskGroupSums) -> Answer:
        groups = self._groups(asked)
        groups.check(asked.features, asked.most)  # before anything is counted
        people, digest = groups.pairs_of(asked.source)
        only_look, min_size = groups.looks(sender, asked.source), max(groups.min_group, asked.least)
        groups.check_carried(asked, min_size, self.answering.named_share(asked.conversation))
        counting = _Counting(self.answering, sender, asked, people, min_size, only_look)
        for feature in asked.features:
            waits = counting.waits(feature, self.allowed)
            if waits is not None:
                yield sender, waits
                return
        with self.answering.together(asked.conversation):
            for feature in asked.features:
                counting.sizes(feature)
                # sums of other numbers of the same people would tell whose number changed
                counting.numbers(("sums", asked.source, feature), digest)
        yield sender, GroupSums(asked.conversation, asked.source, (), (), ()) if only_look else groups.sums(asked)

    def _ask_group_pairs(self, sender: str, asked: AskGroupPairs) -> Answer:
        groups = self._groups(asked)
        groups.check((asked.feature,), asked.most)
        if sender in asked.receivers:
            raise SecurityError("groups_to_guest")
        if len(set(asked.receivers)) < len(asked.receivers):
            raise SecurityError("groups_sent_twice")
        people, min_size = groups.people(asked.rows), max(groups.min_group, asked.least)
        counting = _Counting(self.answering, sender, asked, people, min_size)
        waits = counting.waits(asked.feature, self.allowed)
        if waits is not None:
            yield sender, waits
            return
        grouped, received = groups.marks_of(asked), None
        with self.answering.together(asked.conversation):
            counting.sizes(asked.feature)
            if asked.receivers:
                # sums of the same bytes are the same question to whoever adds them up, also after a Guest was killed; bytes that are
                # kept serve for the marks in them alone, since what was counted of the groups may be forgotten sooner
                digest = digest_of(groups.key, grouped.index.tobytes())
                received = counting.numbers(("pairs", asked.feature), digest, read=False)
        if received is not None:
            made = received.answer(lambda: groups.pairs(grouped))
            yield from self._handed_on(groups, asked, groups.in_pieces(asked, len(grouped.groups), made))
        yield sender, GroupPairsSent(asked.conversation, asked.feature, to_wire(grouped.groups))

    def _handed_on(
        self, groups: HostGroups, asked: AskGroupPairs, made: Iterator[GroupPairs | MoreGroupPairs]
    ) -> Answer:
        for piece in made:
            for receiver in asked.receivers:
                if receiver != self.name:
                    yield receiver, piece
                elif isinstance(piece, GroupPairs):
                    groups.take_pairs(self.name, piece)
                else:
                    groups.take_more(self.name, piece)
