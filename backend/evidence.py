"""Evidence behind a compliance finding, measured: outcomes by group, and features that go with a protected attribute.

As the Guest sees it: scores, labels and its own columns; of a Host's feature the groups of at least 20 records and sums over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.assurance import fairness
from backend.assurance.fairness import Disparity
from backend.assurance.proxies import Association, Table, associations
from backend.crypto.engines import Cipher
from backend.crypto.paillier import KEY_BITS
from backend.crypto.workers import Workers
from backend.data.dictionary import Feature
from backend.data.federation import Federation
from backend.errors import ParameterError
from backend.jobs import Job
from backend.protocols.alignment.exchange import align
from backend.protocols.channel import Conversation, TranscriptEntry
from backend.protocols.group_sums import GroupQuestions, GroupTable
from backend.protocols.grouping import MIN_GROUP, MOST_GROUPS, Group, Grouped, group
from backend.protocols.marks import Counts
from backend.protocols.messages import OfferKey
from backend.protocols.room import Room
from backend.results import Compiled, ModelRecord

RECORDS = 5000  # joint records that associations are measured on: V to ±0.03
GROUPS = 5  # of a protected attribute that is a number
BINS = 10  # of a feature that may go with it


@dataclass(frozen=True)
class DisparityRequest:
    """Outcomes of a model's decisions by the groups of one feature, of the Guest or of a Host.

    Attributes
    ----------
    cutoff : float
        ``decline`` at or above this probability of the positive label.
    samples : int or None
        Test records drawn (any joint ones of an imported model); None = all.
    groups : int
        Most groups of a number, or codes.
    cipher, key_bits
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


def measure_disparity(
    room: Room,
    record: ModelRecord,
    compiled: Compiled,
    test_ids: Sequence[str],
    request: DisparityRequest,
    job: Job[Disparity],
    workers: Workers,
) -> Disparity:
    """Score test records, then compare decisions and labels between groups.

    Raises
    ------
    ParameterError
        The feature, the cut-off, the number of groups or samples is not usable, or the model does not tell two outcomes apart.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`Conversation.expect`.
    """
    fairness.check_cutoff(request.cutoff)
    if record.task != "binary":
        raise ParameterError("Outcomes by group need a model of two outcomes; this one predicts several classes or a number.")
    party, feature = _feature(room.federation, request.feature)
    _check_groups(request.groups)
    drawn = _drawn(len(test_ids), request.samples, request.seed)
    table = room.table.take(np.array([room.table.row_of[test_ids[i]] for i in drawn], dtype=np.intp))
    said = _Said(job)
    job.total = len(table.ids)
    key = room.key("none", 0, compiled.guest) if request.cipher == "none" else room.bulk_key(KEY_BITS, compiled.guest)
    with said.by(room.converse(record.hosts, job.cancelled, counted=False)) as talk:
        scored = room.guest.score(record.id, compiled.guest, table, key, talk, workers=workers, on_stage=job.at)
    kept = np.array([i for i in range(len(table.ids)) if i not in scored.refused], dtype=np.intp)
    table = table.take(kept)
    margins = compiled.guest.margins([scored.units[i] for i in kept])
    probabilities = compiled.outputs.predict(margins)[:, 0]
    labels = room.labels()[[room.table.row_of[i] for i in table.ids]] > 0
    if party == room.guest.name:
        own = group(feature, table.columns[feature.name], request.groups)
        return fairness.from_records(
            party, feature.name, request.cutoff, own.groups, own.index, labels, probabilities, seed=request.seed
        )
    with said.by(room.converse((party,), job.cancelled)) as talk:
        place = {sample: i for i, sample in enumerate(table.ids)}
        questions, rows = _begin(room, talk, request.cipher, request.key_bits, job, lambda ids: [i in place for i in ids])
        at = np.array([place[room.table.ids[row]] for row in rows], dtype=np.intp)
        marks, largest = fairness.marks(probabilities[at] < request.cutoff, labels[at], probabilities[at])
        questions.send(marks, (party,), largest=largest, on_piece=_progress(room, job))
        job.at("sums", party)
        found = questions.ask({party: (feature.name,)}, request.groups).get((party, feature.name))
    told = found or GroupTable((), np.zeros((len(marks), 0), dtype=np.int64))
    return fairness.from_sums(party, feature.name, request.cutoff, told.groups, told.sums, seed=request.seed)
