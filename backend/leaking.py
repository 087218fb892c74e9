"""How much the scores of a model give away, measured for a user: a joint audit in the simulation, width by width of the score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.assurance.leakage import SCORE_BITS, LeakPoint, joint_audit, leak_curve
from backend.errors import ParameterError
from backend.jobs import Job
from backend.protocols.room import Room
from backend.results import ModelRecord
from backend.trees.ensemble import GuestModel

RECORDS = 2000  # Host records that released scores are compared with at most


def measure_leaks(
    room: Room,
    record: ModelRecord,
    model: GuestModel,
    rows: NDArray[np.intp],
    joint_ids: Sequence[str],
    job: Job[tuple[LeakPoint, ...]],
) -> tuple[LeakPoint, ...]:
    """Read the meter for some of the Guest's records; the points so far are the job's `result`.

    Parameters
    ----------
    rows : ndarray of int
        ``(n,)`` rows of the Guest's table.
    joint_ids : sequence of str
        Records that all parties hold; some of them, besides those of `rows`, are what scores are compared with.

    Raises
    ------
    ParameterError
        There is no record to read the meter for.
    """
    if not len(rows):
        raise ParameterError(f"The model {record.id} has no test records to read the meter for.")
    own = room.table.take(rows)
    chosen = set(own.ids)
    known = (*own.ids, *(i for i in joint_ids if i not in chosen))[:RECORDS]
    widths = sorted({*SCORE_BITS, min(record.score_bits, max(SCORE_BITS))})
    job.at("leak_audit", room.guest.name, 0)
    talk = room.converse(record.hosts, job.cancelled, counted=False)
    try:
        hosts = joint_audit(talk, record.id, model, known)
    finally:
        job.keep_transcript(talk.close())
    job.total, job.result = len(rows) * len(widths), ()
    job.at("leak_count", room.guest.name, 0)

    def person() -> None:
        job.done += 1
        talk.check()

    for point in leak_curve(model, own.columns, hosts, np.arange(len(rows)), widths, person):
        job.result = (*job.result, point)
    return job.result
