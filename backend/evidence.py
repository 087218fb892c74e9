"""Evidence behind a compliance finding, measured: outcomes by group, and features that go with a protected attribute.

As the Guest sees it: scores, labels and its own columns; of a Host's feature the groups of at least 20 records and sums over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.assurance import fairness
from backend.assurance.fairness import Disparity
from backend.assurance.interpretation import Permuted, permuted
from backend.assurance.proxies import Association, associations
from backend.crypto.engines import Cipher
from backend.crypto.paillier import KEY_BITS
from backend.crypto.workers import Workers
from backend.data.dictionary import Feature
from backend.data.federation import Federation
from backend.data.table import PartyTable
from backend.errors import ParameterError
from backend.jobs import Job
from backend.protocols.alignment.exchange import align
from backend.protocols.channel import Conversation, TranscriptEntry
from backend.protocols.crossing import Crossing
from backend.protocols.group_sums import GroupQuestions, GroupTable
from backend.protocols.grouping import MIN_GROUP, MOST_GROUPS, Group, group
from backend.protocols.messages import OfferKey
from backend.protocols.room import Room
from backend.results import Compiled, ModelRecord
from backend.trees.ensemble import Columns, GuestModel

RECORDS = 5000  # joint records that associations are measured on: V to ±0.03
GROUPS = 5  # of a protected attribute that is a number
BINS = 10  # of a feature that may go with it
MOST_REPEATS = 20  # shufflings of one feature

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Ground:
    """What is measured, and with whom.

    Attributes
    ----------
    model : GuestModel
    compiled : Compiled
        Of the same model.
    test_ids : sequence of str
        Records that the model was not trained on; any joint ones of an imported model.
    workers : Workers
        Who encrypts when records are scored.
    """

    room: Room
    record: ModelRecord
    model: GuestModel
    compiled: Compiled
    test_ids: Sequence[str]
    workers: Workers


@dataclass(frozen=True)
class DisparityRequest:
    """Outcomes of a model's decisions by the groups of one feature, of the Guest or of a Host.

    Attributes
    ----------
    cutoff : float
        ``decline`` at or above this probability of the positive label.
    samples : int or None
        Test records drawn; None = all.
    groups : int
        Most groups of a number, or codes.
    cipher : {"paillier", "paillier-short", "none"}
    key_bits : int
        Of the sums by group; scores come under the fastest cipher that holds them.
    """

    model_id: str
    feature: str
    cutoff: float = 0.5
    samples: int | None = None
    groups: int = GROUPS
    cipher: Cipher = "paillier"
    key_bits: int = KEY_BITS
    seed: int = 7


@dataclass(frozen=True)
class ProxyRequest:
    """Which of the features a model was offered go with a protected attribute, which may be any feature of the federation.

    Attributes
    ----------
    records : int
        Joint records drawn, at most.
    groups, bins : int
        Most groups of the attribute, and of each feature.
    """

    model_id: str
    attribute: str
    records: int = RECORDS
    groups: int = GROUPS
    bins: int = BINS
    cipher: Cipher = "paillier"
    key_bits: int = KEY_BITS
    seed: int = 7


@dataclass(frozen=True)
class PermutationRequest:
    """What the Guest's features are worth to a model, on at most so many test records, each shuffled so many times."""

    model_id: str
    samples: int = 300
    repeats: int = 3
    cipher: Cipher = "paillier"
    seed: int = 7


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
        (party, feature) that do not make two groups of 20 records.
    """

    party: str
    attribute: str
    groups: tuple[Group, ...]
    n: int
    features: tuple[Association, ...]
    not_examined: tuple[tuple[str, str], ...]


def group_names(groups: Sequence[Group], feature: Feature) -> tuple[str, ...]:
    """Groups in words: a code's disclosed text, a bin by its place; no edge of a bin is known here."""
    bins = sum(group.kind == "bin" for group in groups)
    words = {"missing": "no value", "rest": "all smaller groups together"}
    return tuple(
        feature.categories.get(group.name, group.name)
        if group.kind == "code"
        else f"bin {group.name} of {bins} (1 = lowest values)"
        if group.kind == "bin"
        else words[group.kind]
        for group in groups
    )


def measure_disparity(ground: Ground, request: DisparityRequest, job: Job[Disparity]) -> Disparity:
    """Score test records, then compare decisions and labels between the groups of a feature.

    Raises
    ------
    ParameterError
        The feature, the cut-off, the number of groups or samples is not usable, or the model does not tell two outcomes apart.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`backend.protocols.channel.Conversation.expect`.
    """
    fairness.check_cutoff(request.cutoff)
    room, task = ground.room, ground.record.task
    if task != "binary":
        raise ParameterError(f"Outcomes by group need a model of two outcomes; the task of this one is {task!r}.")
    party, feature = _feature(room.federation, request.feature)
    _check_groups(request.groups)
    rows = _drawn(ground, request.samples, request.seed)
    talks = _Talks(room, job)
    scored, margins = talks.score(ground, room.table.take(rows), request.cipher)
    rows, probabilities = rows[scored], ground.compiled.outputs.predict(margins)[:, 0]
    labels = room.labels()[rows] > 0
    if party == room.guest.name:
        own = group(feature, room.table.columns[feature.name][rows], request.groups)
        return fairness.from_records(
            party, feature.name, request.cutoff, own.groups, own.index, labels, probabilities, seed=request.seed
        )
    place = {row: i for i, row in enumerate(rows.tolist())}
    with talks.begin((party,)) as talk:
        questions, counted = talks.ask(talk, request.cipher, request.key_bits, lambda joint: np.isin(joint, rows))
        at = np.array([place[row] for row in counted.tolist()], dtype=np.intp)
        marks, largest = fairness.marks(probabilities[at] < request.cutoff, labels[at], probabilities[at])
        questions.send(marks, (party,), largest=largest, on_piece=talks.progress)
        job.at("sums", party)
        found = questions.ask({party: (feature.name,)}, request.groups)
    told = found.get((party, feature.name), GroupTable((), np.zeros((len(marks), 0), dtype=np.int64)))
    return fairness.from_sums(party, feature.name, request.cutoff, told.groups, told.sums, seed=request.seed)


def measure_proxies(ground: Ground, request: ProxyRequest, job: Job[Proxies]) -> Proxies:
    """How closely each of the features that the model was offered goes with an attribute, whichever parties hold the two.

    Raises
    ------
    ParameterError
        The attribute or a number is not usable, or the attribute does not make two groups of 20 records.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`backend.protocols.channel.Conversation.expect`.
    """
    room = ground.room
    party, attribute = _feature(room.federation, request.attribute)
    _check_groups(request.groups, request.bins)
    if request.records < 2 * MIN_GROUP:
        raise ParameterError(f"{request.records} records were to be examined; ask for {2 * MIN_GROUP} or more.")
    examined = [(p, f) for p, f in ground.model.dictionary if f.name != attribute.name]
    hosts = tuple(h for h in room.hosts if h == party or h in ground.record.hosts)
    talks = _Talks(room, job)
    with talks.begin(hosts) as talk:
        questions, rows = talks.ask(talk, request.cipher, request.key_bits, lambda joint: _some(joint, request))
        crossing = Crossing(
            questions,
            room.guest.name,
            room.table.take(rows).columns,
            examined,
            most=request.groups,
            bins=request.bins,
            at=job.at,
            on_piece=talks.progress,
        )
        groups, tables = crossing.tables(party, attribute)
    job.at("associations", room.guest.name)
    left = tuple((p, f.name) for p, f in examined if (p, f.name) not in tables)
    found = associations(tables, request.seed)
    return Proxies(party, attribute.name, groups, questions.records, found, left)


def measure_permutation(
    ground: Ground, request: PermutationRequest, job: Job[tuple[Permuted, ...]]
) -> tuple[Permuted, ...]:
    """What each of the Guest's features is worth: test records are scored again with its values shuffled, the largest fall first.

    The Hosts see one person several times while the Guest's columns change, as in the attack by differencing (SECURITY.md A8):
    simulated Hosts allow it for measuring, others count it. A Host's own features would have to be shuffled there; not offered.

    Raises
    ------
    ParameterError
        The number of samples or repeats is not usable.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`backend.protocols.channel.Conversation.expect`.
    """
    if not 1 <= request.repeats <= MOST_REPEATS:
        raise ParameterError(f"{request.repeats} repeats were asked for; choose 1 to {MOST_REPEATS}.")
    rows = _drawn(ground, min(request.samples, len(ground.test_ids)), request.seed)
    own, talks = ground.room.table.take(rows), _Talks(ground.room, job)

    def margins_of(columns: Columns, times: int) -> NDArray[np.float64]:
        table = PartyTable(own.party, own.ids * times, dict(columns))
        return talks.score(ground, table, request.cipher)[1]

    labels = ground.room.labels()[rows]
    worth = permuted(ground.model, own.columns, labels, margins_of, repeats=request.repeats, seed=request.seed)
    return tuple(sorted(worth, key=lambda p: (-p.fall, p.feature)))


class _Talks:
    """The conversations of one job, their transcripts one after the other."""

    def __init__(self, room: Room, job: Job[Any]) -> None:
        self._room, self.job = room, job
        self._said: tuple[TranscriptEntry, ...] = ()

    @contextmanager
    def begin(self, hosts: tuple[str, ...], *, counted: bool = True) -> Iterator[Conversation]:
        """One conversation, closed at the end."""
        talk = self._room.converse(hosts, self.job.cancelled, counted=counted)
        before = self._said
        self.job.read_transcript = lambda: (*before, *talk.transcript())
        try:
            yield talk
        finally:
            self._said = (*before, *talk.close())
            self.job.read_transcript = lambda: self._said

    def ask(
        self, talk: Conversation, cipher: Cipher, bits: int, choose: Callable[[Rows], NDArray[np.bool_]]
    ) -> tuple[GroupQuestions, Rows]:
        """Offer a key and align ids; `choose` tells which of the joint rows count. Returns these rows of the Guest's table."""
        guest = self._room.guest.name
        self.job.at("key", guest, 0)
        key = self._room.pair_key(cipher, bits)
        talk.broadcast(OfferKey(talk.name, key.scheme, key.offer()))
        self.job.at("align", guest)
        joint, _ = align(talk, guest, self._room.table.ids, "dh")
        counted = choose(joint)
        return GroupQuestions(talk, guest, key, counted), joint[counted]

    def score(self, ground: Ground, table: PartyTable, cipher: Cipher) -> tuple[Rows, NDArray[np.float64]]:
        """Rows of `table` that no Host refused, and their margins ``(rows, outputs.count)``; measuring leaves budgets alone."""
        room, job, compiled = self._room, self.job, ground.compiled.guest
        job.total = len(table.ids)
        job.at("key", room.guest.name, 0)
        key = room.key(cipher, 0, compiled) if cipher == "none" else room.bulk_key(KEY_BITS, compiled)
        with self.begin(ground.record.hosts, counted=False) as talk:
            scored = room.guest.score(
                ground.record.id, compiled, table, key, talk, workers=ground.workers, on_stage=job.at
            )
        kept = np.array([i for i in range(len(table.ids)) if i not in scored.refused], dtype=np.intp)
        return kept, compiled.margins([scored.units[i] for i in kept])

    def progress(self, done: int, total: int) -> None:
        """Ciphertexts made."""
        self.job.total = total
        self.job.at("marks", self._room.guest.name, done)


def _feature(federation: Federation, name: str) -> tuple[str, Feature]:
    for party, feature in federation.features():
        if feature.name == name:
            return party, feature
    raise ParameterError(f"{name} is no feature of this federation; choose one of its feature dictionary.")


def _check_groups(*numbers: int) -> None:
    least, most = MOST_GROUPS
    for number in numbers:
        if not least <= number <= most:
            raise ParameterError(f"A feature was to be divided into {number} groups; choose {least} to {most}.")


def _drawn(ground: Ground, samples: int | None, seed: int) -> Rows:
    """Rows of some test records in the Guest's table, or of all."""
    ids, row_of = ground.test_ids, ground.room.table.row_of
    count = len(ids) if samples is None else samples
    if not 1 <= count <= len(ids):
        raise ParameterError(f"{count} test records were asked for; the model has {len(ids):,}.")
    chosen = np.random.default_rng(seed).choice(len(ids), size=count, replace=False)
    return np.array([row_of[ids[i]] for i in chosen], dtype=np.intp)


def _some(joint: Rows, request: ProxyRequest) -> NDArray[np.bool_]:
    """Flags of at most so many joint rows, drawn."""
    chosen = np.random.default_rng(request.seed).permutation(len(joint))[: request.records]
    return np.isin(np.arange(len(joint)), chosen)
