"""Upper bounds, in bits, of what answers tell about one person: what is booked before a question is answered.

A bound holds for a Guest that knows every other person's record and lies in its messages. It depends on what was approved and on how
many records there are, never on a value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import sha256
from math import log2

from backend.data.dictionary import Feature, Kind
from backend.errors import SecurityError
from backend.protocols.approvals.messages import AskTraining
from backend.protocols.group_sums.grouping import GROUP_LIMITS, MIN_GROUP
from backend.store.accountant import EVERYBODY, TABLE, Accountant, Question
from backend.store.schema import Approval

SCORE_BITS = 32.0  # of one honest score: 10 binary digits after the point, up to 22 before it
DISTINCT_BITS = 1.0  # of how many distinct values a feature has: one person's value adds one to the others', or none
REASON_BITS = 64.0  # of one honest set of reasons: the four largest of some 300 features and their sides, ranked twice


def column_bits(records: int) -> float:
    """Return what the bins of one feature, of all records, can tell about one person's value.

    Bins are made of the order of values, and a cut is half-way between two of them. As one value moves over the whole line and the others
    stay, the bins of all records change only when it passes another value, or when half the way from another value to it passes a third:
    at most 2·n places (n records). Between and at these are 4·n + 1 outcomes, and a missing value is one more. A category is one of
    those of the others, or a new one: at most n + 2 outcomes.

    Examples
    --------
    >>> round(column_bits(3), 2)
    3.81
    """
    return log2(4 * max(records, 0) + 2)


def grouping_bits(records: int, max_groups: int, min_size: int, *, numeric: bool) -> float:
    """Return what the groups of one feature, among some people, can tell about one person's value.

    Groups are made of the people that are asked about, so that only the order of their values counts. As one value moves over the whole
    line and the others stay, each of the `max_groups` - 1 cuts moves once, at one of the others' values: before it, at it and behind it
    are three outcomes of one cut, so that q groups have 2·q - 1, and 2·q if every distinct value is a group of its own. A missing value
    is one more. A code is named only if it has `min_size` people: of the others at most (records - 1) / (`min_size` - 1) can come to be
    named with this person, and all codes that are not named are one outcome. Sizes and sums of groups follow from who is in which.

    Parameters
    ----------
    records : int
        People that are asked about.
    max_groups : int
        Bins or codes that are asked for.
    min_size : int
        Records of the smallest group.
    numeric : bool
        Whether the feature is a number, and not codes.

    Examples
    --------
    >>> round(grouping_bits(30_000, 10, 20, numeric=True), 2)
    4.39
    >>> round(grouping_bits(30_000, 10, 20, numeric=False), 2)
    10.63
    """
    if numeric:
        return log2(2 * max_groups + 1)
    nameable = max(records - 1, 0) // max(min_size - 1, 1)
    return log2(nameable + 2)


def screening_bits(features: Iterable[Feature], records: int, max_groups: int = max(GROUP_LIMITS)) -> float:
    """Return the most that a screening of features can tell about one person: their groups, and a bit each for distinct values."""
    bits = 0.0
    for feature in features:
        numeric = feature.kind is Kind.NUMERIC
        bits += grouping_bits(records, max_groups, MIN_GROUP, numeric=numeric) + DISTINCT_BITS
    return bits


def training_bits(features: int, records: int) -> float:
    """Return what a training can tell about one person: all of its messages follow from the bins of the features that it uses."""
    return features * column_bits(records)


@dataclass(frozen=True)
class TableFacts:
    """What a price depends on: no value of a record.

    Attributes
    ----------
    features : tuple of str
        Names of the Host's.
    records : int
        How many.
    ids : str
        SHA-256 of whose they are, in hexadecimal.
    """

    features: tuple[str, ...]
    records: int
    ids: str

    def used(self, exclude: Collection[str]) -> list[str]:
        """Return the features without those that are left out."""
        return [name for name in self.features if name not in exclude]


def facts_of_table(features: Collection[str], ids: Collection[str]) -> TableFacts:
    """Return what prices depend on."""
    return TableFacts(tuple(features), len(ids), sha256("\0".join(ids).encode(errors="surrogatepass")).hexdigest())


def approved_structure(guest: str, training: AskTraining, facts: TableFacts) -> str:
    """Return the structure that an approved training is booked under: all that its answers depend on, besides the records.

    The training rows are those that came first with the same bins and draw. Another algorithm, or more and deeper trees, reveal nothing
    beyond the bins of all records.
    """
    training_facts = (training.draw, training.bins, training.hide_order, sorted(training.exclude), training.noise_terms)
    parts = (guest, *training_facts, facts.ids)
    return sha256(repr(parts).encode()).hexdigest()


def approved_question(guest: str, request: str, structure: str, features: int, records: int) -> Question:
    """Return what is booked for a training that was approved."""
    bits = training_bits(features, records)
    return Question(guest, request, TABLE, structure, (EVERYBODY,), bits, bits)


def training_question(guest: str, request: str, features: int, records: int, *binned: bytes | str) -> Question:
    """Return what is booked for a training before its first answer.

    Parameters
    ----------
    features : int
        Of this Host, without those that are left out.
    binned : bytes or str
        All that the bins follow from besides the records. A training with the same bins tells nothing more, and costs nothing more.
    """
    digest = sha256()
    for part in binned:
        encoded = part if isinstance(part, bytes) else part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    bits = training_bits(features, records)
    return Question(guest, request, TABLE, digest.hexdigest(), (EVERYBODY,), bits, bits)


def usual_max_bits(features: int, records: int) -> float:
    """Return the bits a person and window that a Host allows by default: one approved training, one score and one set of reasons."""
    return training_bits(features, records) + SCORE_BITS + REASON_BITS


def book_approved(accountant: Accountant, approval: Approval) -> None:
    """Book a training when it is approved: all that it can reveal is allowed from then on.

    Raises
    ------
    SecurityError
        If it could reveal more about a person than the remaining bits of this window.
    """
    about = approval.about
    question = approved_question(approval.guest, "", about["structure"], about["features"], about["rows"])
    if accountant.count(question, all_or_none=True).any():
        limits = accountant.limits
        disclosed = accountant.given_away((EVERYBODY,))[EVERYBODY]
        remaining = max(0.0, limits.bits - disclosed)
        raise SecurityError(
            "training_beyond_bits", bits=question.bits, left=remaining, most=limits.bits, days=limits.days
        )
