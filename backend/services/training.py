"""Models trained for a user: who takes part, the run itself, the release check, and the record of the model that it gives."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend import __version__
from backend.crypto.interface import TrainingKeySide
from backend.data.demo import write_demo
from backend.data.federation import Federation
from backend.data.table import weight_columns
from backend.errors import Cancelled, FederationError, ParameterError, QuestionRefused
from backend.jobs import Job, work
from backend.privacy.foretold import foretell
from backend.protocols.alignment.outcome import METHODS
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.scoring.dither import DITHER
from backend.protocols.training.algorithms import ALGORITHMS, Parameters, rounds
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.guest import Trained
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.protocols.training.parameters import CIPHERS, KEY_SIZES, SecureBoostParameters, write_constraints
from backend.remark import Remark
from backend.results import DEMO, MIN_RECORDS, RANKS, TRAINING, ModelRecord
from backend.services import audit
from backend.services.audit import Auditor, Note, recorded
from backend.services.compliance import Compliance
from backend.services.leakage import MAX_IDENTIFYING, finest, refuse_if_identifying, released, usual_bound
from backend.services.lifecycle import Lifecycle
from backend.services.model_card import ModelCards, without_ids
from backend.services.registry import Registry
from backend.services.waiting import LASTING, repeated
from backend.services.workspace import Workspace
from backend.store.trainings import GuestTraining
from backend.trees.serialization import content_hash, dump_guest

__all__ = [
    "ALGORITHMS",
    "CIPHERS",
    "KEY_SIZES",
    "METHODS",
    "Parameters",
    "SecureBoostParameters",
    "Training",
    "TrainingRequest",
    "write_constraints",
]

DEMO_PARAMETERS = SecureBoostParameters(trees=20, depth=3, learning_rate=0.3, cipher="none")
_demo_lock = threading.Lock()  # several sessions may ask for the demo at once


@dataclass(frozen=True)
class TrainingRequest:
    """A training to be started; `hosts` None means all of the federation's, in its order.

    A model of which a larger share of scores than `most_named` would name their paths is refused (1 = none is; None = the usual bound,
    :func:`backend.services.leakage.usual_bound`). With `coarser` it is trained once more instead, with the finest
    scale of scores that does.
    """

    federation: str
    parameters: Parameters
    hosts: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    most_named: float | None = None
    coarser: bool = False


class Training:
    """Trains models and registers them."""

    def __init__(
        self,
        workspace: Workspace,
        models: Registry,
        auditor: Auditor,
        cards: ModelCards,
        compliance: Compliance,
        lifecycle: Lifecycle,
    ) -> None:
        self._workspace, self._models, self._auditor = workspace, models, auditor
        self._cards, self._compliance, self._lifecycle = cards, compliance, lifecycle

    def prepare_demo(self) -> str:
        """Write the built-in demo and train its first model on plaintext, where they are missing; returns its name.

        Raises FederationError if the home has other federations and not the demo: synthetic models have no place beside a bank's own.

        Pages open on the model in use, so that the demo's first model is put in use as long as nobody took a step with any.
        """
        return self.start_demo().get()

    def start_demo(self) -> Job[str]:
        """Prepare the demo in the background; where that is cancelled, the data stay for the next time."""
        return Job[str](self._prepare_demo, rounds(DEMO_PARAMETERS)).start()

    def _prepare_demo(self, job: Job[Any]) -> str:
        with _demo_lock:
            others = self._workspace.others_than(DEMO)
            if others:
                raise FederationError("demo_beside_federations", federations=others)
            folder = self._workspace.home / DEMO
            if not (folder / "federation.toml").exists():
                write_demo(folder, dither=DITHER)  # as real Hosts do
            self._workspace.add(folder)
            if not self._models.all(DEMO):
                work.reached(0.0)  # the clock of the training starts here
                self.run(TrainingRequest(DEMO, DEMO_PARAMETERS), job)
            self._lifecycle.open_demo(DEMO)
        return DEMO

    def weight_columns(self, federation: str, exclude: Collection[str] = ()) -> tuple[str, ...]:
        """Return the columns of the Guest's file that may hold sample weights if these features are left out."""
        return weight_columns(self._workspace.federation(federation), exclude)

    def foretell(self, request: TrainingRequest) -> Remark | None:
        """Return what the scores of a training are likely to tell, from rows, trees and depth alone; None if no Host takes part."""
        runtime = self._workspace.runtime(request.federation)
        hosts = _chosen_hosts(runtime, request.hosts)
        if not hosts:
            return None
        rows = len(runtime.table.ids)
        if rows < MIN_RECORDS:
            return Remark("scores_will_not_be_measurable", {"records": rows, "least": MIN_RECORDS})
        # a real Host adds at least the usual dither, unless its agreement says otherwise
        dither = runtime.dither(hosts) if runtime.simulated else DITHER
        share = foretell(rows, rounds(request.parameters), request.parameters.depth, dither)
        values = {
            "share": share.share,
            "low": share.low,
            "high": share.high,
            "records": share.records,
            "bound": MAX_IDENTIFYING if request.most_named is None else request.most_named,
        }
        return Remark("scores_will_tell", values)

    def start(self, request: TrainingRequest) -> Job[ModelRecord]:
        """Train in the background; the model is in the registry when the job is done."""
        asked = request.parameters
        size = f"{request.federation} {asked.ALGORITHM} {getattr(asked, 'cipher', '')} {rounds(asked)}"
        return Job[ModelRecord](lambda job: self.run(request, job), rounds(asked), size=size).start()

    @recorded("train")
    def run(self, note: Note, request: TrainingRequest, job: Job[Any], retrained_from: str = "") -> ModelRecord:
        """Train within a job that is under way; see :func:`train` and :func:`backend.services.leakage.refuse_if_identifying`."""
        note.federation = request.federation
        runtime = self._workspace.runtime(request.federation)
        note.body = {"algorithm": request.parameters.ALGORITHM, "excluded": len(request.exclude)}
        grown, trained = self._fit_for_release(request, job)
        known = {m.id: m.retrained_from for m in self._models.all(request.federation)}  # the same model has the same id
        record = replace(grown, retrained_from=retrained_from or known.get(grown.id, ""))

        def keep() -> None:
            self._models.register(record, trained.model, trained.part_of, self._auditor.person)
            self._cards.keep_scores(
                record, {part: without_ids(*scores, TRAINING) for part, scores in trained.scores.items()}
            )
            digest = audit.federation_hash(self._workspace.federation(request.federation))
            note.body = audit.of_training(record, digest, self._compliance.pack_versions(), job.transcript)
            forget(runtime, request)

        note.keep = keep
        return record

    def _fit_for_release(self, request: TrainingRequest, job: Job[Any]) -> tuple[ModelRecord, Trained]:
        """A model of whose scores no larger share identifies a path than is allowed; trained once more where a coarser scale may be taken.

        Hosts keep one model a training, so that nobody registers the same trees twice to get a second budget: hence the whole
        training again.

        Raises
        ------
        ReleaseRefused
            Too many scores would identify their path, and no coarser scale does or may be taken.
        """
        asked_bits = None
        runtime = self._workspace.runtime(request.federation)
        while True:
            grown, trained = train(runtime, request, job)
            record = released(runtime, grown, trained.model, trained.part_of, "validation", job)
            if record.release is None:
                return record, trained
            allowed = usual_bound(record.release) if request.most_named is None else request.most_named
            bits = finest(record.release, allowed)
            if record.score_bits == bits or bits is None or not request.coarser:
                refuse_if_identifying(record.release, allowed, record.n_trees)
                return replace(
                    record, release=replace(record.release, asked_bits=asked_bits, most_named=allowed)
                ), trained
            asked_bits = asked_bits or record.score_bits
            job.begin_again()
            request = replace(request, parameters=replace(request.parameters, score_bits=bits))


def train(runtime: GuestRuntime, request: TrainingRequest, job: Job[ModelRecord]) -> tuple[ModelRecord, Trained]:
    """Grow a model; every Host has kept its partial model when this returns.

    Raises
    ------
    ParameterError
        A Host or a left-out feature is not of the federation, or no feature is left.
    ApprovalPending
        A Host's operator has not decided yet.
    FederationError, PartyUnreachable, SecurityError, Cancelled
        See :meth:`backend.protocols.guest.GuestParty.train`.
    """
    hosts = _chosen_hosts(runtime, request.hosts)
    _check_excluded(runtime.federation, hosts, request.exclude)
    weights = runtime.weights(request.parameters.weights, request.exclude)
    job.at("key", runtime.guest.name)
    key, kept = _key(runtime, request.parameters), resumed(runtime, request)
    try:
        trained = _grown(runtime, request, hosts, key, weights, kept, job)
    except (Cancelled, QuestionRefused):
        if kept is not None:
            kept.forget()
        raise
    return _record(runtime, request, trained, key, job), trained


def _key(runtime: GuestRuntime, asked: Parameters) -> TrainingKeySide | None:
    """Under which gradients are sent; None where ranks are, in plaintext."""
    if isinstance(asked, OpBoostParameters):
        return None
    return runtime.keys.training(asked.cipher, asked.key_bits, len(runtime.table.ids))


def _grown(
    runtime: GuestRuntime,
    request: TrainingRequest,
    hosts: tuple[str, ...],
    key: TrainingKeySide | None,
    weights: NDArray[np.float64] | None,
    kept: GuestTraining | None,
    job: Job[Any],
) -> Trained:
    """What the Hosts grow with the Guest, in one conversation or, after a break, in the next one from where the last one came to."""
    begun = False

    def at(stage: str) -> None:
        nonlocal begun
        begun = True
        job.at(stage, runtime.guest.name)

    def ask() -> Trained:
        job.begin_again()
        # OpBoost scores its test records to measure the model
        session = runtime.open_session(hosts, job.cancelled, counted=False)
        job.read_transcript = session.transcript
        try:
            most_named = MAX_IDENTIFYING if request.most_named is None else request.most_named
            runtime.ask_training(session, request.parameters, request.exclude, most_named)
            return runtime.guest.train(
                runtime.labels(),
                request.parameters,
                key,
                session,
                exclude=request.exclude,
                on_stage=at,
                on_tree=job.tree_grown,
                times=runtime.times(),
                resumed=kept,
                weights=weights,
            )
        finally:
            job.keep_transcript(session.close())

    # before it has begun, whoever asks is told at once which Host is down
    return repeated(ask, runtime, hosts, job, LASTING if kept else 0.0, waits_for_links=lambda: begun)


def _record(
    runtime: GuestRuntime,
    request: TrainingRequest,
    trained: Trained,
    key: TrainingKeySide | None,
    job: Job[Any],
) -> ModelRecord:
    asked = request.parameters
    return ModelRecord(
        id=trained.model_id,
        federation=request.federation,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        algorithm=asked.ALGORITHM,
        cipher=key.scheme if key else RANKS,
        key_bits=key.bits if key else 0,
        content_hash=content_hash(dump_guest(trained.model)),
        guest=trained.model.guest,
        hosts=trained.model.hosts,
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
        label_bits=trained.label_bits,
        choice_bits=trained.choice_bits,
        test_from=trained.test_from,
    )


def forget(runtime: GuestRuntime, request: TrainingRequest) -> None:
    """A training is through, and what came of it is kept: the next one of the same terms is another."""
    if (kept := resumed(runtime, request)) is not None:
        kept.forget()


def resumed(runtime: GuestRuntime, request: TrainingRequest) -> GuestTraining | None:
    """As far as this training has come, where it may go on after a break: with Hosts at their own companies, and trees that follow from
    the seed.

    A simulation's parties end together; ranks with noise (OpBoost) are grown at the Guest alone; and where Hosts hide the order of bins,
    they number them otherwise each time.
    """
    asked = request.parameters
    if runtime.simulated or runtime.journal is None or not isinstance(asked, SecureBoostParameters | ForestParameters):
        return None
    if getattr(asked, "shuffle_sides", False):
        return None
    follows_from = [
        __version__,  # another version may grow other trees
        audit.federation_hash(runtime.federation),
        asked.ALGORITHM,
        asked.as_dict(),
        _chosen_hosts(runtime, request.hosts),
        sorted(request.exclude),
    ]
    question = sha256(json.dumps(follows_from, sort_keys=True).encode()).hexdigest()
    return runtime.journal.training(runtime.guest.name, question)


def _chosen_hosts(runtime: GuestRuntime, hosts: tuple[str, ...] | None) -> tuple[str, ...]:
    chosen = runtime.hosts if hosts is None else hosts
    unknown = [h for h in chosen if h not in runtime.hosts]
    if unknown:
        raise ParameterError("unknown_hosts", names=tuple(unknown), known=tuple(runtime.hosts))
    return tuple(h for h in runtime.hosts if h in chosen)


def _check_excluded(federation: Federation, hosts: tuple[str, ...], exclude: tuple[str, ...]) -> None:
    names = [f.name for _, f in federation.features()]
    unknown = [e for e in exclude if e not in names]
    if unknown:
        raise ParameterError("excluded_not_in_federation", names=tuple(unknown))
    parties = {federation.guest.name, *hosts}
    if all(f.name in exclude for party, f in federation.features() if party in parties):
        raise ParameterError("all_features_excluded")
