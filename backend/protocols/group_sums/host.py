"""A Host's side of sums over groups of people (disparity, proxies): adds up what it cannot read, merges small groups.

It may also send its own groups encrypted. Knows no label and no score. Rules read who was marked and with how many bits; the gate opens a
feature's values of these people alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import longest_half
from backend.crypto.interface import PairPublicSide
from backend.crypto.paillier.scheme import PaillierPublicSide
from backend.crypto.plain import PlainKeySide
from backend.data.dictionary import Kind as FeatureKind
from backend.errors import QuestionRefused, SecurityError
from backend.protocols.group_sums.disclosure_bound import least_size
from backend.protocols.group_sums.distinct import place_of
from backend.protocols.group_sums.grouping import (
    GROUP_LIMITS,
    MIN_GROUP,
    Grouped,
    features_of,
    group,
    group_together,
    is_age,
    most_groups,
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
from backend.protocols.group_sums.values import carried, half_of, pack, slots
from backend.protocols.host_state import digest_of
from backend.protocols.terms.approvals import sums_request
from backend.protocols.terms.noise import Noise
from backend.protocols.terms.permit import Ask, Asked, Charge, Kind, Permit, Reply, Sample
from backend.protocols.terms.prices import DISTINCT_BITS, grouping_bits
from backend.protocols.terms.records import Opened, Records, Rows
from backend.protocols.training.pair_pieces import IncomingPairs, pieces
from backend.protocols.training.row_sets import unpack_rows
from backend.store.accountant import GROUPS, Question
from backend.store.request_log import packed_question

MARKS = sha256().digest_size  # bytes before stored pairs: of which marks they are


@dataclass(frozen=True, repr=False)
class Marked:
    """Records that a party has sent pairs of, as far as they have come.

    Attributes
    ----------
    rows : ndarray of int
        ``(n,)``: of the Host's table.
    half : int
        Bits of half a pair.
    digest : hash
        Over all that was sent of them.
    """

    rows: NDArray[np.intp]
    half: int
    pairs: IncomingPairs
    digest: hashlib._Hash

    def add(self, piece: Sequence[bytes]) -> None:
        """Take the next piece; raises SecurityError as :meth:`IncomingPairs.add`."""
        self.pairs.add(piece)
        for blob in piece:
            self.digest.update(blob)


@dataclass(frozen=True, repr=False)
class HostGroups:
    """What was sent in one conversation about groups, at one Host.

    Attributes
    ----------
    rows : ndarray of int
        The joint records, in the common order.
    key : bytes
        The key that the Guest offered, as it came: under another one the same bytes are other numbers, and so another question.
    marked : dict of str to Marked
        By sender.
    """

    rows: NDArray[np.intp]
    cipher: PairPublicSide
    key: bytes
    marked: dict[str, Marked] = field(default_factory=dict)

    def take_pairs(self, sender: str, message: GroupPairs) -> None:
        """Replace the sender's last pairs by those of other joint records; this is the first piece of them."""
        rows = self.rows_of(message.rows)
        batches = len(message.pairs)
        digest = sha256(digest_of(self.key, message.rows, message.half, batches).encode())
        marked = Marked(rows, message.half, IncomingPairs(self.cipher, len(rows), batches), digest)
        self.marked[sender] = marked
        marked.add(message.pairs)

    def sent_by(self, source: str) -> Marked:
        """Return what a party has sent; raise SecurityError if it has sent nothing."""
        if source not in self.marked:
            raise SecurityError("pairs_not_sent", sender=source)
        return self.marked[source]

    def rows_of(self, packed: bytes) -> NDArray[np.intp]:
        """Return some joint records as rows of the Host's table."""
        return self.rows[unpack_rows(packed, len(self.rows))]


# Rules: what the gate reads of a message. No value of a record is here.


def read_pairs(request: Asked) -> Ask:
    """Read the people of encrypted pairs.

    Raises
    ------
    SecurityError
        If they come before the joint records, or their sums could identify too many people.
    """
    message: GroupPairs = request.message
    groups = _groups(request)
    longest = longest_half(groups.cipher.bits)
    if not 1 <= message.half <= longest:
        raise SecurityError("half_too_long", half=message.half, most=longest)
    people = len(groups.rows_of(message.rows))
    bits = carried(len(message.pairs), message.half)
    share = request.floors.named_share
    if share and bits > share * people:  # before memory is spent on them
        raise SecurityError("marks_too_long", bits=bits, people=people)
    return Ask(subject=groups)


def _groups(request: Asked) -> HostGroups:
    """Return the pairs that were sent so far; raise SecurityError if joint records or a key are missing."""
    session = request.session
    if session.rows is None or not isinstance(session.cipher, PairPublicSide):
        raise SecurityError("groups_before_alignment")
    previous = session.kept(HostGroups)
    return session.keep(HostGroups, previous or HostGroups(session.rows, session.cipher, session.key))


def read_more_pairs(request: Asked) -> Ask:
    """Read the next piece; raise SecurityError if its sender sent no first piece."""
    return Ask(subject=_groups(request).sent_by(request.sender))


@dataclass(frozen=True, repr=False)
class _Wanted:
    """Groups that are asked for.

    Attributes
    ----------
    min_size : int
        Records of the smallest group.
    only_look : bool
        Whether the Guest only asks if it would be answered: it marked people with nothing, so that there is nothing to sum.
    """

    groups: HostGroups
    rows: NDArray[np.intp]
    min_size: int
    only_look: bool = False


def read_sums(request: Asked) -> Ask:
    """Read the party whose pairs are summed, and the features. The sizes of a feature's groups are booked, and its sums.

    Raises
    ------
    SecurityError
        If a feature is not this Host's, or sums could reveal the group of too many people.
    """
    message: AskGroupSums = request.message
    groups = _groups(request)
    columns = _columns(request, message.features)
    _check_features(request, columns)
    marked = groups.sent_by(message.source)
    min_size = max(request.floors.people(MIN_GROUP), message.least)
    bits = carried(len(marked.pairs.batches), marked.half)
    people = len(marked.rows)
    # This uses only numbers that the Guest has sent: the refusal reveals nothing of this Host's records, and no person is counted.
    max_groups = max((most_groups(name, message.most) for name in message.features), default=message.most)
    min_allowed = least_size(bits, people, max_groups, request.floors.named_share)
    if bits and min_size < min_allowed:
        raise SecurityError("sums_could_name_people", bits=bits, people=people, wanted=min_allowed, min_size=min_size)
    only_look = message.source == request.sender and not marked.pairs.batches
    amount = 0 if only_look else people
    counting = _Counting(request, request.roster.ids(marked.rows), min_size, only_look)
    charges = []
    for feature in message.features:
        charges += counting.sizes(feature)
        # Sums of other numbers of the same people would reveal whose number changed.
        charges.append(counting.numbers(("sums", message.source, feature), marked.digest.hexdigest()))
    return Ask(
        opens={} if only_look else {"people": Rows(rows=marked.rows, columns=columns)},
        # The operator sees the number of people, also if the Guest only asks whether the question would be answered.
        approval=sums_request(request, people),
        amount=amount,
        volumes=[counting.name(("groups", feature)) for feature in message.features],
        charges=charges,
        sums=None if only_look else _sample(request, message.features, message.source, counting),
        subject=_Wanted(groups, marked.rows, min_size, only_look),
    )


def _sample(request: Asked, features: Sequence[str], source: str, counting: _Counting) -> Sample:
    """Return the question behind sums, or behind marked groups (`source` is empty), for an auditor who has all values."""
    columns = [request.features[name] for name in _columns(request, features)]
    kinds = {column.name: column.kind.value for column in columns}
    ages = [column.name for column in columns if is_age(column)]
    about = {"features": features, "kinds": kinds, "ages": ages, "source": source}
    sizes = {"most": request.message.most, "least": request.message.least, "smallest": counting.min_size}
    question = packed_question(counting.people, **about, **sizes)
    return Sample("", GROUPS, b"", (), lambda _: question, request.message.conversation)


def _columns(request: Asked, names: Iterable[str]) -> tuple[str, ...]:
    """Return the features that some questions read: each question is about one feature, or about two together."""
    columns = list[str]()
    for name in names:
        parts = features_of(name, request.features)
        columns += parts if len(parts) == 2 else [name]
    return tuple(columns)


def _check_features(request: Asked, features: Sequence[str]) -> None:
    """Raise SecurityError if a feature is not this Host's or is named twice, or the groups are too many or too few."""
    max_groups = request.message.most
    low, high = GROUP_LIMITS
    if len(request.features.keys() & set(features)) < len(features) or not low <= max_groups <= high:
        raise SecurityError("groups_not_possible", groups=max_groups, least=low, most=high)


@dataclass(frozen=True, repr=False)
class _Counting:
    """What one message asks about some people, as it is booked before it is answered; or only looked at."""

    request: Asked
    people: tuple[str, ...]
    min_size: int
    only_look: bool = False

    def sizes(self, name: str) -> list[Charge]:
        """Return what is booked for the groups of a feature: of these people as often as wanted, of others with one of them in it never.

        Two sets of people that differ in one would tell that one's group; two smallest sizes, how many few people without a value are.
        So everything that is said of a feature within the window follows from one way to group these people, and is priced here.

        Groups of two features together are one way to group by each of the two: they follow from how each groups these people, so that
        both prices are booked; and neither feature is answered about alone, or together with a third one, since small cells would
        follow by subtraction.
        """
        charges = []
        columns = _columns(self.request, (name,))
        for column in columns:
            numeric = self.request.features[column].kind is FeatureKind.NUMERIC
            bits = grouping_bits(len(self.people), self.request.message.most, self.min_size, numeric=numeric)
            charges.append(self._charge(("groups", column), name if len(columns) > 1 else "", bits))
        return charges

    def numbers(self, about: tuple[str, ...], digest: str = "") -> Charge:
        """Return what is booked for numbers of this `digest` by a feature's groups: they follow from the groups."""
        return self._charge(about, digest, 0.0)

    def name(self, about: tuple[str, ...], digest: str = "") -> str:
        """Return the name of a question, the same if it is repeated."""
        message: AskGroupSums | AskGroupPairs = self.request.message
        how = f"{self.min_size} {message.most} {digest}".rstrip()
        return digest_of(self.request.session.guest, about, self.people, how)

    def _charge(self, about: tuple[str, ...], digest: str, bits: float) -> Charge:
        name = self.name(about, digest)
        question = Question(self.request.session.guest, name, GROUPS, digest_of(about), self.people, bits, bits)
        return Charge(question, all_or_none=True, only_look=self.only_look, digest="" if self.only_look else name)


def read_marks(request: Asked) -> Ask:
    """Read the feature whose groups are sent encrypted, and the receivers.

    The bytes are stored. So sums of them stay the same question to the Host that adds them up, even if the Guest's process was killed.

    Raises
    ------
    SecurityError
        If the feature is not this Host's, or the Guest itself is among the receivers.
    """
    message: AskGroupPairs = request.message
    groups = _groups(request)
    _check_features(request, (message.feature,))
    if request.session.guest in message.receivers:
        raise SecurityError("groups_to_guest")
    if len(set(message.receivers)) < len(message.receivers):
        raise SecurityError("groups_sent_twice")
    rows = groups.rows_of(message.rows)
    min_size = max(request.floors.people(MIN_GROUP), message.least)
    counting = _Counting(request, request.roster.ids(rows), min_size)
    charges = counting.sizes(message.feature)
    reply = ""
    if message.receivers:
        # The receivers cannot read the marks; sums of them are booked by the Host that adds them up.
        key = sha256(groups.key).hexdigest()
        charges.append(counting.numbers(("pairs", message.feature), key))
        reply = counting.name(("pairs", message.feature), key)
    return Ask(
        opens={"people": Rows(rows=rows, columns=(message.feature,))},
        approval=sums_request(request, len(rows)),
        amount=len(rows),
        volumes=[counting.name(("groups", message.feature))],
        charges=charges,
        sums=_sample(request, (message.feature,), "", counting),
        reply=reply,
        subject=_Wanted(groups, rows, min_size),
    )


def read_distinct(request: Asked) -> Ask:
    """Read the feature and the people whose distinct values are counted.

    One more person's value adds one to the count or nothing, so that an answer reveals one bit about a person. A question about other
    people that include one of these is refused within the window: two counts would reveal whether that person's value is a new one.

    Raises
    ------
    SecurityError
        If the feature is not this Host's, or the people are fewer than the Host insists on.
    """
    message: AskDistinct = request.message
    groups = _groups(request)
    if message.feature not in request.features:
        raise SecurityError("not_a_feature_here", feature=message.feature)
    rows = groups.rows_of(message.rows)
    min_people = request.floors.people(MIN_GROUP)
    if len(rows) < min_people:
        raise SecurityError("too_few_people_counted", people=len(rows), least=min_people)
    people = request.roster.ids(rows)
    about = ("distinct", message.feature)
    guest = request.session.guest
    name = digest_of(guest, about, people)
    question = Question(guest, name, GROUPS, digest_of(about), people, DISTINCT_BITS, DISTINCT_BITS)
    return Ask(
        opens={"people": Rows(rows=rows, columns=(message.feature,))},
        # A volume counts people whose groups are summed; here nothing is summed.
        approval=sums_request(request, len(rows)),
        charges=[Charge(question, all_or_none=True, digest=name)],
        reply=name,
    )


# Handlers: what is answered to a message that has a permit.


def answer_pairs(permit: Permit, opened: Opened, message: GroupPairs, noise: Noise) -> Reply:
    """Take the first piece of encrypted pairs."""
    groups: HostGroups = permit.ask.subject
    groups.take_pairs(permit.request.sender, message)
    return iter(())


def answer_more_pairs(permit: Permit, opened: Opened, message: MoreGroupPairs, noise: Noise) -> Reply:
    """Take the next piece of encrypted pairs."""
    marked: Marked = permit.ask.subject
    marked.add(message.pairs)
    return iter(())


def answer_sums(permit: Permit, opened: Opened, message: AskGroupSums, noise: Noise) -> Reply:
    """Add up a party's pairs by the groups of some features, refreshed; features without groups are left out."""
    subject: _Wanted = permit.ask.subject
    if subject.only_look:
        yield permit.guest, GroupSums(message.conversation, message.source, (), (), ())
        return
    grouped = []
    for name in message.features:
        grouped.append(_grouped(permit, opened["people"], name, subject.min_size))
    yield permit.guest, sums_by(subject.groups, message, grouped)


def answer_distinct(permit: Permit, opened: Opened, message: AskDistinct, noise: Noise) -> Reply:
    """Answer the approximate number of distinct values of a feature."""
    place = permit.stored
    if place is None:
        place = bytes([place_of(opened["people"].columns[message.feature])])
    min_people = permit.floors.people(MIN_GROUP)
    yield permit.guest, DistinctValues(message.conversation, message.feature, place, min_people)


def _grouped(permit: Permit, people: Records, feature: str, min_size: int) -> Grouped:
    """Return the groups of a feature, or of two together, among some people."""
    max_groups = permit.request.message.most
    grouped = []
    for name in _columns(permit.request, (feature,)):
        grouped.append(group(permit.request.features[name], people.columns[name], max_groups, min_size))
    if len(grouped) == 1:
        return grouped[0]
    return group_together(grouped[0], grouped[1], min_size)


def sums_by(groups: HostGroups, message: AskGroupSums, grouped: Sequence[Grouped]) -> GroupSums:
    """Return sums by the groups in `grouped`; features without groups are left out."""
    marked = groups.sent_by(message.source)
    batches = marked.pairs.batches
    grouped_features = [g for g in grouped if g.groups]
    # SecureBoost eq. 2, with one tree node of all records and a feature's groups as its bins
    node = np.arange(len(marked.rows), dtype=np.intp), [(g.index, len(g.groups)) for g in grouped_features]
    sums = []
    if grouped_features:
        for pairs in batches:
            [sums_of_batch] = groups.cipher.bin_sums(pairs, [node], marked.half, alone=True)
            sums.append(sums_of_batch)
    return GroupSums(
        message.conversation,
        message.source,
        tuple(g.feature for g in grouped_features),
        tuple(to_wire(g.groups) for g in grouped_features),
        tuple(sums),
    )


def make_marks(permit: Permit, opened: Opened, message: AskGroupPairs, noise: Noise) -> bytes:
    """Return the group of each of some joint records, encrypted under the Guest's key: the same number of bytes for each number.

    Every group but the last is a mark of 0 or 1; without groups nothing is encrypted. A hash of the marks comes first.
    """
    subject: _Wanted = permit.ask.subject
    cipher = subject.groups.cipher
    grouped = _grouped(permit, opened["people"], message.feature, subject.min_size)
    marks = [(grouped.index == k).astype(np.int64) for k in range(len(grouped.groups) - 1)]
    ones = [1] * len(marks)
    layout = slots(ones, len(grouped.index), cipher.bits)
    numbers = []
    for batch in pack(marks, ones, layout):
        numbers.append(_encrypted(cipher, batch, half_of(layout)))
    return _digest_of_marks(grouped) + b"".join(numbers)


def _digest_of_marks(grouped: Grouped) -> bytes:
    """Return SHA-256 of who is in which group; it does not leave the Host."""
    return sha256(grouped.index.astype("<i8").tobytes()).digest()


def _encrypted(cipher: Any, numbers: Sequence[int], half: int) -> bytes:
    """Return numbers under the Guest's public key, one fresh ciphertext each."""
    if not isinstance(cipher, PaillierPublicSide):
        return PlainKeySide().encrypt_joined(numbers, half)
    key = cipher.key
    fresh = cipher.obfuscators.take(len(numbers))
    return key.dump(key.encrypt_with(m, r) for m, r in zip(numbers, fresh, strict=True))


def answer_marks(permit: Permit, opened: Opened, message: AskGroupPairs, noise: Noise) -> Reply:
    """Send the marks to the receivers, and the groups to the Guest.

    Raises
    ------
    QuestionRefused
        If the marks were sent before, and differ now.
    """
    subject: _Wanted = permit.ask.subject
    grouped = _grouped(permit, opened["people"], message.feature, subject.min_size)
    if message.receivers:
        stored_marks = permit.stored or b""
        if stored_marks[:MARKS] != _digest_of_marks(grouped):
            raise QuestionRefused("records_changed")
        for piece in in_pieces(subject.groups.cipher, message, grouped, stored_marks[MARKS:]):
            yield from _hand_on(permit, subject.groups, message, piece)
    yield permit.guest, GroupPairsSent(message.conversation, message.feature, to_wire(grouped.groups))


def in_pieces(
    cipher: PairPublicSide, message: AskGroupPairs, grouped: Grouped, marks_enc: bytes
) -> Iterator[GroupPairs | MoreGroupPairs]:
    """Yield messages with encrypted marks."""
    records = len(grouped.index)
    if grouped.groups:
        layout = slots([1] * max(0, len(grouped.groups) - 1), records, cipher.bits)
    else:
        layout = ()
    batches = layout[-1].number + 1 if layout else 0
    width = len(marks_enc) // max(1, batches * records)
    blobs = [marks_enc[k * records * width : (k + 1) * records * width] for k in range(batches)]
    for part in pieces(records, batches, cipher.bits):
        cut = tuple(blob[part.start * width : part.stop * width] for blob in blobs)
        if part.start:
            yield MoreGroupPairs(message.conversation, cut)
        else:
            yield GroupPairs(message.conversation, message.rows, half_of(layout), cut)


def _hand_on(permit: Permit, groups: HostGroups, message: AskGroupPairs, piece: GroupPairs | MoreGroupPairs) -> Reply:
    """Send a piece to each receiver; take it if this Host is one."""
    host = permit.request.models.host
    for receiver in message.receivers:
        if receiver != host:
            yield receiver, piece
        elif isinstance(piece, GroupPairs):
            groups.take_pairs(host, piece)
        else:
            groups.sent_by(host).add(piece.pairs)


GROUP_KINDS = {
    GroupPairs: Kind(read_pairs, answer_pairs, passed_on=True),
    MoreGroupPairs: Kind(read_more_pairs, answer_more_pairs, passed_on=True),
    AskGroupSums: Kind(read_sums, answer_sums),
    AskGroupPairs: Kind(read_marks, answer_marks, makes=make_marks),
    AskDistinct: Kind(read_distinct, answer_distinct, reply="place"),
}
