"""How much the scores of a model give away, measured for a user: a joint audit in the simulation, width by width of the score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.errors import Cancelled, ParameterError, ReleaseRefused
from backend.jobs import Job
from backend.privacy.leakage import SCORE_BITS, LeakPoint, joint_audit, leak_curve
from backend.privacy.tradeoff import BITS, TradeoffPoint, tradeoff_curve
from backend.protocols.simulation.simulator import FederationRuntime
from backend.results import ModelRecord, ReleaseCheck
from backend.trees.ensemble import GuestModel
from backend.trees.folding import fold_structure

MOST_NAMED = 0.05  # share of scores; with the default dither 0.6 % on the credit-card data, without 85 %
FEWEST_RECORDS = 1000  # compared with; a score has few neighbours among fewer
RECORDS = 2000  # Host records that released scores are compared with at most


def measure_leaks(
    runtime: FederationRuntime,
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
    own = runtime.table.take(rows)
    widths = sorted({*SCORE_BITS, min(record.score_bits, max(SCORE_BITS))})
    hosts = _audited(runtime, record, model, own.ids, joint_ids, job)
    job.total, job.result = len(rows) * len(widths), ()
    job.at("leak_count", runtime.guest.name, 0)

    def person() -> None:
        job.done += 1
        _go_on(job)

    for point in leak_curve(model, own.columns, hosts, np.arange(len(rows)), widths, person):
        job.result = (*job.result, point)
    return job.result


def measure_frontier(
    runtime: FederationRuntime,
    record: ModelRecord,
    model: GuestModel,
    rows: NDArray[np.intp],
    joint_ids: Sequence[str],
    job: Job[tuple[TradeoffPoint, ...]],
) -> tuple[TradeoffPoint, ...]:
    """Resolution and dither against cover and quality, on some of the Guest's records; the points so far are the job's `result`.

    Parameters
    ----------
    rows, joint_ids
        As for :func:`measure_leaks`.

    Raises
    ------
    ParameterError
        There is no record to measure on.
    """
    if not len(rows):
        raise ParameterError(f"The model {record.id} has no test records to measure its scores on.")
    own = runtime.table.take(rows)
    hosts = _audited(runtime, record, model, own.ids, joint_ids, job)
    job.total, job.result = 0, ()
    job.at("leak_count", runtime.guest.name, 0)
    bits = sorted({*BITS, record.score_bits}, reverse=True)
    labels = runtime.labels()[rows]
    for point in tradeoff_curve(
        model, own.columns, labels, hosts, np.arange(len(rows)), bits=bits, on_point=lambda: _go_on(job)
    ):
        job.result = (*job.result, point)
    return job.result


def check_release(
    runtime: FederationRuntime,
    record: ModelRecord,
    model: GuestModel,
    rows: NDArray[np.intp],
    joint_ids: Sequence[str],
    job: Job[Any],
) -> ReleaseCheck | None:
    """What the scores of a new model would give away, on some records; None where no Host is asked or none holds them.

    Parameters
    ----------
    rows, joint_ids
        As for :func:`measure_leaks`.
    """
    chain = [step.host for step in fold_structure(model.skeletons, model.guest, model.hosts).steps]
    if not len(rows) or not chain:
        return None
    own = runtime.table.take(rows)
    job.at("leak_audit", runtime.guest.name)
    aside: Job[None] = Job(lambda _: None, 0)  # the job's own transcript is that of the training
    hosts = _audited(runtime, record, model, own.ids, joint_ids, aside)
    width = runtime.dither(chain)
    bits = sorted({*(b for b in BITS if b <= record.score_bits), record.score_bits}, reverse=True)
    labels = runtime.labels()[rows]
    points = list(
        tradeoff_curve(
            model,
            own.columns,
            labels,
            hosts,
            np.arange(len(rows)),
            bits=bits,
            dithers=(0.0, width),
            on_point=lambda: _go_on(job),
        )
    )
    first = points[0]  # the model's own resolution, with dither where it has units for it
    bare = next(p.unique for p in points if p.score_bits == first.score_bits and not p.dither)
    shared = {p.score_bits: p.unique for p in reversed(points)}  # with dither, which comes before none
    return ReleaseCheck(
        math.ldexp(width, model.outputs.scale),
        tuple((b, shared[b]) for b in bits),
        first.paths,
        len(rows),
        len(hosts),
        bare if first.dither else None,
    )


def finest(release: ReleaseCheck, most: float) -> int | None:
    """The finest resolution at which no larger share of scores than `most` identifies a path; None where the coarsest does, too."""
    return next((bits for bits, unique in release.unique if unique <= most), None)


def usual_bound(release: ReleaseCheck, synthetic: bool) -> float:
    """The largest share of scores that may identify a path where nobody says.

    :data:`MOST_NAMED` of real people's; all where people are made up, or where the records are so few that hardly any score could have
    company (:data:`FEWEST_RECORDS`).
    """
    return 1.0 if synthetic or release.records < FEWEST_RECORDS else MOST_NAMED


def refuse_if_named(release: ReleaseCheck, most: float) -> None:
    """Raise ReleaseRefused where the model's scores name more paths than `most` allows; it says which resolution would do."""
    if release.named <= most:
        return
    bits = finest(release, most)
    other = "train fewer trees or shallower ones"
    if bits is not None:
        other = f"train with --score-bits {bits} (--coarser does so by itself)"
    raise ReleaseRefused(
        f"{release.named:.1%} of {release.people} scores of this model fit one path only among {release.records:,} records; at most "
        f"{most:.1%} were to be. It was not registered: {other}, have the Hosts add wider dither, or allow more with --most-named.",
        release.named,
        most,
        bits,
    )


def _go_on(job: Job[Any]) -> None:
    if job.cancelled():
        raise Cancelled("Stopped; what was measured so far is kept.")


def _audited(
    runtime: FederationRuntime,
    record: ModelRecord,
    model: GuestModel,
    ids: Sequence[str],
    joint_ids: Sequence[str],
    job: Job[Any],
) -> NDArray[np.bool_]:
    """Leaves that no Host rules out, of some people first and then of others to compare with: a joint audit."""
    chosen = set(ids)
    known = (*ids, *(i for i in joint_ids if i not in chosen))[: max(RECORDS, len(ids))]
    job.at("leak_audit", runtime.guest.name, 0)
    session = runtime.open_session(record.hosts, job.cancelled, counted=False)
    try:
        return joint_audit(session, record.id, model, known)
    finally:
        job.keep_transcript(session.close())
