"""Models trained for a user: who takes part, the run itself, the release check, and the record of the model that it gives."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend import __version__
from backend.crypto.interface import TrainingKeySide
from backend.data.demo import write_demo
from backend.data.federation import Federation
from backend.data.table import weight_columns
from backend.errors import Cancelled, FederationError, GlassleafError, ParameterError, QuestionRefused, ReleaseRefused
from backend.jobs import Job, work
from backend.privacy.foretold import foretell
from backend.protocols.alignment.outcome import METHODS
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.scoring.dither import DITHER
from backend.protocols.training.algorithms import ALGORITHMS, Parameters, rounds
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.guest import OPEN, Trained
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.protocols.training.parameters import CIPHERS, KEY_SIZES, SecureBoostParameters, write_constraints
from backend.remark import Remark
from backend.results import DEMO, MIN_RECORDS, RANKS, ModelRecord
from backend.services import audit
from backend.services.audit import Auditor, Note, recorded
from backend.services.leakage import MAX_IDENTIFYING
from backend.services.lifecycle import Lifecycle
from backend.services.registry import Registry
from backend.services.sealing import Sealing, candidate_of
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
FIRST_PARAMETERS = SecureBoostParameters(
    trees=5, depth=3
)  # of a first training over links, for which an audience can wait
_demo_lock = threading.Lock()  # several sessions may ask for the demo at once


@dataclass(frozen=True)
class TrainingRequest:
    """A training to be started; `hosts` None means all of the federation's, in its order.

    A model of which a larger share of scores than `most_named` would name their paths is refused (1 = none is; None = the usual bound,
    :func:`backend.services.leakage.usual_bound`) and kept sealed; with `coarser` its scores are rounded instead, to the finest scale that
    does. `approved_trees` are asked of the Hosts' operators if they are more than grow now: as many may be added to a sealed model.
    """

    federation: str
    parameters: Parameters
    hosts: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    most_named: float | None = None
    coarser: bool = False
    approved_trees: int = 0

    @property
    def approved(self) -> Parameters:
        """Return how Hosts are asked to let it grow, with all trees that may be added later.

        Raises
        ------
        ParameterError
            If trees of this algorithm cannot grow on.
        """
        if not self.approved_trees:
            return self.parameters
        if not isinstance(self.parameters, SecureBoostParameters):
            raise ParameterError("trees_cannot_grow_on", algorithm=self.parameters.ALGORITHM)
        return replace(self.parameters, trees=max(self.parameters.trees, self.approved_trees))


class Training:
    """Trains models and registers them."""

    def __init__(
        self,
        workspace: Workspace,
        models: Registry,
        auditor: Auditor,
        sealing: Sealing,
        lifecycle: Lifecycle,
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor
        self._sealing = sealing
        self._lifecycle = lifecycle

    def prepare_demo(self) -> str:
        """Write the built-in demo and train its first model on plaintext if they are missing; return its name.

        Raises FederationError if the home has other federations and not the demo: synthetic models have no place among a bank's own.

        Pages open on the model in use, so that the demo's first model is put in use as long as no user took a step with any.
        """
        return self.start_demo().get()

    def start_demo(self) -> Job[str]:
        """Prepare the demo in the background; if that is cancelled, the data stay for the next time."""
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
        if runtime.simulated:
            dither = runtime.dither(hosts)
        else:
            dither = DITHER
        outputs = max(1, len(runtime.federation.label.classes))
        share = foretell(rows, rounds(request.parameters), request.parameters.depth, dither, outputs)
        values = {
            "low": share.low,
            "high": share.high,
            "records": share.records,
            "bound": MAX_IDENTIFYING if request.most_named is None else request.most_named,
        }
        return Remark("scores_will_tell" if outputs == 1 else "scores_of_classes_will_tell", values)

    def start(self, request: TrainingRequest) -> Job[ModelRecord]:
        """Train in the background; the model is in the registry when the job is done."""
        parameters = request.parameters
        size = f"{request.federation} {parameters.ALGORITHM} {getattr(parameters, 'cipher', '')} {rounds(parameters)}"
        return Job[ModelRecord](lambda job: self.run(request, job), rounds(parameters), size=size).start()

    @recorded("train")
    def run(self, note: Note, request: TrainingRequest, job: Job[Any], retrained_from: str = "") -> ModelRecord:
        """Train within a job that is under way; see :func:`train` and :meth:`backend.services.sealing.Sealing.settle`."""
        note.federation = request.federation
        runtime = self._workspace.runtime(request.federation)
        note.body = {"algorithm": request.parameters.ALGORITHM, "excluded": len(request.exclude)}
        sealed_at = OPEN
        if runtime.simulated:
            if request.most_named is None:
                sealed_at = MAX_IDENTIFYING
            else:
                sealed_at = request.most_named
        grown, trained = train(runtime, request, job, sealed_at)
        origins = {
            m.id: m.retrained_from for m in self._models.all(request.federation)
        }  # the same model has the same id
        record = replace(grown, retrained_from=retrained_from or origins.get(grown.id, ""))
        candidate = candidate_of(record, trained, request.approved, request.most_named)
        settle = partial(self._sealing.settle, job=job, note=note, on_registered=lambda: forget(runtime, request))
        try:
            return settle(candidate)
        except ReleaseRefused as refused:
            if not request.coarser or refused.bits is None:
                raise
            return settle(self._sealing.at_bits(candidate, refused.bits))


def train(
    runtime: GuestRuntime, request: TrainingRequest, job: Job[ModelRecord], sealed_at: float = OPEN
) -> tuple[ModelRecord, Trained]:
    """Grow a model; every Host has kept its partial model when this returns.

    Parameters
    ----------
    sealed_at : float
        See :class:`backend.protocols.training.guest.TrainingClient`.

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
    key = _key(runtime, request.parameters)
    resumable = resumed(runtime, request)
    try:
        trained = _grown(runtime, request, hosts, key, weights, resumable, sealed_at, job)
    except GlassleafError as error:
        # A simulation's parties end together: nothing is left to go on with.
        if resumable is not None and (runtime.simulated or isinstance(error, Cancelled | QuestionRefused)):
            resumable.forget()
        raise
    return _record(runtime, request, trained, key, job), trained


def _key(runtime: GuestRuntime, parameters: Parameters) -> TrainingKeySide | None:
    """Under which gradients are sent; None if ranks are, in plaintext."""
    if isinstance(parameters, OpBoostParameters):
        return None
    return runtime.keys.training(parameters.cipher, parameters.key_bits, len(runtime.table.ids))


def _grown(
    runtime: GuestRuntime,
    request: TrainingRequest,
    hosts: tuple[str, ...],
    key: TrainingKeySide | None,
    weights: NDArray[np.float64] | None,
    resumable: GuestTraining | None,
    sealed_at: float,
    job: Job[Any],
) -> Trained:
    """Return the model that the Hosts grow with the Guest: in one conversation or, after a break, continued in the next one."""
    has_begun = False

    def at(stage: str) -> None:
        nonlocal has_begun
        has_begun = True
        job.at(stage, runtime.guest.name)

    def ask() -> Trained:
        job.begin_again()
        # OpBoost scores its test records to measure the model
        session = runtime.open_session(hosts, job.cancelled, counted=False)
        job.read_transcript = session.transcript
        try:
            if request.most_named is None:
                most_named = MAX_IDENTIFYING
            else:
                most_named = request.most_named
            runtime.ask_training(session, request.approved, request.exclude, most_named)
            return runtime.guest.train(
                runtime.labels(),
                request.parameters,
                key,
                session,
                exclude=request.exclude,
                on_stage=at,
                on_tree=job.tree_grown,
                times=runtime.times(),
                resumed=resumable,
                weights=weights,
                sealed_at=sealed_at,
            )
        finally:
            job.keep_transcript(session.close())

    # before it has begun, the caller gets an error at once if a Host is down
    return repeated(ask, runtime, hosts, job, LASTING if resumable else 0.0, waits_for_links=lambda: has_begun)


def _record(
    runtime: GuestRuntime,
    request: TrainingRequest,
    trained: Trained,
    key: TrainingKeySide | None,
    job: Job[Any],
) -> ModelRecord:
    parameters = request.parameters
    return ModelRecord(
        id=trained.model_id,
        federation=request.federation,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        algorithm=parameters.ALGORITHM,
        cipher=key.scheme if key else RANKS,
        key_bits=key.bits if key else 0,
        content_hash=content_hash(dump_guest(trained.model)),
        guest=trained.model.guest,
        hosts=trained.model.hosts,
        n_trees=len(trained.model.trees),
        n_leaves=trained.model.n_leaves,
        depth=max(t.depth for t in trained.model.trees),
        score_bits=parameters.score_bits,
        metrics=trained.metrics,
        parameters=parameters.as_dict(),
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
    if (training := resumed(runtime, request)) is not None:
        training.forget()


def resumed(runtime: GuestRuntime, request: TrainingRequest) -> GuestTraining | None:
    """Return the training as far as it has come, if it may continue after a break or once it is sealed: its trees follow from the seed.

    Ranks with noise (OpBoost) are grown at the Guest alone, and if Hosts hide the order of bins, they number them otherwise each time. How
    many trees grow now, and whether they stop early, changes none of those that have grown.
    """
    parameters = request.approved
    if runtime.journal is None or not isinstance(parameters, SecureBoostParameters | ForestParameters):
        return None
    if getattr(parameters, "shuffle_sides", False):
        return None
    follows_from = [
        __version__,  # another version may grow other trees
        audit.federation_hash(runtime.federation),
        parameters.ALGORITHM,
        parameters.as_dict() | {"early_stopping": 0},
        _chosen_hosts(runtime, request.hosts),
        sorted(request.exclude),
        request.most_named,  # the Hosts have approved it, and keep the model sealed at it
    ]
    question = sha256(json.dumps(follows_from, sort_keys=True).encode()).hexdigest()
    return runtime.journal.training(runtime.guest.name, question)


def _chosen_hosts(runtime: GuestRuntime, hosts: tuple[str, ...] | None) -> tuple[str, ...]:
    selected = runtime.hosts if hosts is None else hosts
    unknown = [h for h in selected if h not in runtime.hosts]
    if unknown:
        raise ParameterError("unknown_hosts", names=tuple(unknown), known=tuple(runtime.hosts))
    return tuple(h for h in runtime.hosts if h in selected)


def _check_excluded(federation: Federation, hosts: tuple[str, ...], exclude: tuple[str, ...]) -> None:
    names = [f.name for _, f in federation.features()]
    unknown = [e for e in exclude if e not in names]
    if unknown:
        raise ParameterError("excluded_not_in_federation", names=tuple(unknown))
    parties = {federation.guest.name, *hosts}
    if all(f.name in exclude for party, f in federation.features() if party in parties):
        raise ParameterError("all_features_excluded")
