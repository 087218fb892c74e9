"""A training for a user: who takes part, the run itself, and the record of the model that it gives."""

from __future__ import annotations

from datetime import UTC, datetime

from backend.data.federation import Federation
from backend.errors import ParameterError
from backend.jobs import Job
from backend.protocols.simulation.simulator import FederationRuntime
from backend.protocols.training.guest import Trained
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.results import RANKS, ModelRecord, TrainingRequest
from backend.trees.serialization import content_hash, dump_guest


def train(runtime: FederationRuntime, request: TrainingRequest, job: Job[ModelRecord]) -> tuple[ModelRecord, Trained]:
    """Grow a model; every Host has kept its half when this returns.

    Raises
    ------
    ParameterError
        A Host or a left-out feature is not of the federation, or no feature is left.
    FederationError, PartyUnreachable, SecurityError, Cancelled
        See :meth:`backend.protocols.guest.GuestParty.train`.
    """
    hosts = _chosen_hosts(runtime, request.hosts)
    _check_excluded(runtime.federation, hosts, request.exclude)
    job.at("key", runtime.guest.name)
    asked = request.parameters
    key = None if isinstance(asked, OpBoostParameters) else runtime.pair_key(asked.cipher, asked.key_bits)
    session = runtime.open_session(
        hosts, job.cancelled, counted=False
    )  # OpBoost scores its test records to measure the model
    job.read_transcript = session.transcript
    try:
        trained = runtime.guest.train(
            runtime.labels(),
            asked,
            key,
            session,
            exclude=request.exclude,
            on_stage=lambda stage: job.at(stage, runtime.guest.name),
            on_tree=job.tree_grown,
        )
    finally:
        job.keep_transcript(session.close())
    record = ModelRecord(
        id=trained.model_id,
        federation=request.federation,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        algorithm=asked.ALGORITHM,
        cipher=key.scheme if key else RANKS,
        key_bits=key.bits if key else 0,
        content_hash=content_hash(dump_guest(trained.model)),
        guest=runtime.guest.name,
        hosts=hosts,
        n_trees=len(trained.model.trees),
        n_leaves=trained.model.n_leaves,
        depth=max(t.depth for t in trained.model.trees),
        score_bits=asked.score_bits,
        metrics=trained.metrics,
        parameters=asked.as_dict(),
        seconds=job.seconds,
        parts=trained.parts,
        curve=job.points,
        host_hashes=trained.host_hashes,
        positive_rate=trained.positive_rate,
        alignment=trained.alignment,
        exclude=request.exclude,
        task=trained.model.outputs.task,
    )
    return record, trained


def _chosen_hosts(runtime: FederationRuntime, hosts: tuple[str, ...] | None) -> tuple[str, ...]:
    chosen = runtime.hosts if hosts is None else hosts
    unknown = [h for h in chosen if h not in runtime.hosts]
    if unknown:
        raise ParameterError(
            f"{', '.join(unknown)} is no Host of this federation; Hosts are: {', '.join(runtime.hosts)}."
        )
    return tuple(h for h in runtime.hosts if h in chosen)


def _check_excluded(federation: Federation, hosts: tuple[str, ...], exclude: tuple[str, ...]) -> None:
    names = [f.name for _, f in federation.features()]
    unknown = [e for e in exclude if e not in names]
    if unknown:
        raise ParameterError(f"{', '.join(unknown)} is no feature of this federation, so it cannot be left out.")
    parties = {federation.guest.name, *hosts}
    if all(f.name in exclude for party, f in federation.features() if party in parties):
        raise ParameterError("Every feature was left out; leave at least one in.")
