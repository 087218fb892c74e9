"""A scoring for a user: the run under their cipher, and what becomes of every row of their sheet."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from backend.crypto.workers import Workers
from backend.errors import ParameterError
from backend.jobs import Job
from backend.protocols.simulation.simulator import FederationRuntime
from backend.protocols.transport.channel import TranscriptEntry
from backend.results import Compiled, ModelRecord, ScoreBatch, ScoringRequest, Stage, sample_scores, stages


def score(
    runtime: FederationRuntime,
    record: ModelRecord,
    compiled: Compiled,
    request: ScoringRequest,
    job: Job[ScoreBatch],
    workers: Workers,
    *,
    counted: bool,
) -> ScoreBatch:
    """Score a sheet; rows with a problem are left out of the run and told in the result.

    Parameters
    ----------
    compiled : Compiled
        Of the record's model.
    counted : bool
        Whether simulated Hosts count the questions against their budgets.

    Raises
    ------
    ParameterError
        The cut-off is no probability, or the model's scores do not fit the cipher.
    PartyUnreachable, SecurityError, Cancelled
        See :meth:`backend.protocols.guest.GuestParty.score`.
    """
    if not 0.0 <= request.cutoff <= 1.0:
        raise ParameterError(f"The cut-off is {request.cutoff:g}; choose a probability from 0 to 1.")
    began = time.perf_counter()
    sheet = request.samples
    good = np.array([i for i in range(len(sheet.ids)) if i not in sheet.problems], dtype=np.intp)
    job.at("key", runtime.guest.name, 0)
    job.total = len(good)
    key = runtime.key(request.cipher, request.key_bits, compiled.guest)
    prepared = Stage("key", runtime.guest.name, time.perf_counter() - began)
    session = runtime.open_session(record.hosts, job.cancelled, counted=counted)
    job.read_transcript = session.transcript
    transcript: tuple[TranscriptEntry, ...] = ()
    try:
        for host, table in sheet.hosts.items():
            if host in record.hosts:
                runtime.play(session, host, table.take(good))
        own = sheet.guest.take(good)
        scored = runtime.guest.score(
            record.id, compiled.guest, own, key, session, workers=workers, canary=request.canaries, on_stage=job.at
        )
    finally:
        transcript = session.close()
        job.keep_transcript(transcript)
    job.at("done", runtime.guest.name, len(good))
    return ScoreBatch(
        model_id=record.id,
        cipher=key.scheme,
        key_bits=key.bits,
        cutoff=request.cutoff,
        scores=sample_scores(sheet, good, compiled, own, scored, request.cutoff),
        stages=(prepared, *stages(scored)),
        transcript=transcript,
        leaves=record.n_leaves,
        ciphertexts_per_sample=scored.entries,
        score_bits=record.score_bits,
        seconds=job.seconds,
        dither=scored.dither / float(1 << record.score_bits),
        canaries=scored.canaries,
    )


def summary(batch: ScoreBatch) -> dict[str, Any]:
    """What the Guest's store keeps of a scoring: counts and cipher; no score and no id."""
    failed = sum(one.status == "failed" for one in batch.scores)
    return {
        "rows": len(batch.scores) - failed,
        "failed": failed,
        "cipher": batch.cipher,
        "key_bits": batch.key_bits,
        "seconds": batch.seconds,
    }
