"""Long work that makes or uses models: import, training, scoring, comparison, serving, attacks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from backend.attacks.lab import ATTACKS, Attack, run_all
from backend.attacks.result import AttackResult
from backend.attacks.result import text_of as attack_text
from backend.crypto.paillier.keys import KEY_BITS
from backend.data.demo import write_demo
from backend.data.table import SampleSheet
from backend.errors import Cancelled
from backend.jobs import Job
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.simulation.simulator import FederationRuntime
from backend.protocols.simulation.synthetic_model import SYNTHETIC, Shape, SyntheticFederation, make_up
from backend.protocols.training.algorithms import rounds
from backend.protocols.training.guest import Trained
from backend.protocols.training.parameters import SecureBoostParameters
from backend.results import (
    Compared,
    ComparisonRequest,
    Evaluation,
    ModelRecord,
    ScoreBatch,
    ScoringRequest,
    TrainingRequest,
    scores_csv,
    usual_protocols,
)
from backend.services import audit, forest_serving, protocol_comparison
from backend.services.forest_serving import ServingRequest, ServingTrial
from backend.services.leakage import check_release, finest, refuse_if_named, usual_bound
from backend.services.model_card import IMPORT, TRAINING, without_ids
from backend.services.model_import import JOINT, import_model
from backend.services.registry import DEMO, SCORES, Models
from backend.services.scoring_run import score, summary
from backend.services.training_run import train
from backend.store.measurements import Kept
from backend.trees.ensemble import GuestModel
from backend.trees.metrics import measure
from backend.trees.serialization import content_hash, dump_guest

RELEASE_PEOPLE = 200  # validation records on which a new model's scores are measured before it is registered
DEMO_PARAMETERS = SecureBoostParameters(trees=20, depth=3, learning_rate=0.3, cipher="none")


class Running(Models):
    """Long work that makes or uses models: import, training, scoring, comparison, serving, attacks."""

    def prepare_demo(self) -> str:
        """Write the built-in demo and grow its first model on plaintext, where they are missing; returns its name."""
        with self._demo_lock:
            if not (self.home / DEMO / "federation.toml").exists():
                write_demo(self.home / DEMO)
            self.add_federation(self.home / DEMO)
            if not self.models(DEMO):
                self.start_training(TrainingRequest(DEMO, DEMO_PARAMETERS)).get()
        return DEMO

    def import_model(
        self,
        federation: str,
        file: Path,
        *,
        features: Sequence[str] | None = None,
        categories: Path | None = None,
        score_bits: int = SecureBoostParameters.score_bits,
    ) -> tuple[ModelRecord, tuple[str, ...]]:
        """Register a model that another library trained (docs/import.md); returns its record and what to know of the file.

        Raises
        ------
        ModelError, ParameterError, FederationError
            See :func:`backend.services.model_import.import_model`.
        """
        done = import_model(self._catalogue.runtime(federation), file, features, categories, score_bits)
        aside: Job[None] = Job(lambda _: None, 0)
        record = self._released(done.record, done.model, done.part_of, JOINT, aside)
        self._register(record, done.model, done.part_of)
        self._keep_scores(record, {JOINT: without_ids(done.labels, done.margins, IMPORT)})
        digest = audit.file_hash(file)
        self._audit.note(federation, "import", audit.of_training(record, digest, self._pack_versions(record.id)))
        return record, done.notes

    def _released(
        self, record: ModelRecord, model: GuestModel, part_of: Mapping[str, str], part: str, job: Job[Any]
    ) -> ModelRecord:
        """The record with what the model's scores would give away, measured on some records of a part."""
        runtime = self._catalogue.runtime(record.federation)
        ids = [i for i, name in part_of.items() if name == part][:RELEASE_PEOPLE]
        rows = np.array([runtime.table.row_of[i] for i in ids], dtype=np.intp)
        return replace(record, release=check_release(runtime, record, model, rows, list(part_of), job))

    def _register(self, record: ModelRecord, model: GuestModel, part_of: dict[str, str]) -> None:
        store, parts = self._catalogue.guest_store(record.federation), json.dumps(part_of)
        store.put_artefact(f"{record.id}.parts", parts, content_hash(parts))
        store.put_artefact(record.id, dump_guest(model), record.content_hash)
        store.put_record(record.id, asdict(record))

    def start_training(self, request: TrainingRequest) -> Job[ModelRecord]:
        """Train in the background; the model is in the registry when the job is done."""
        return Job[ModelRecord](lambda job: self._train(request, job), rounds(request.parameters)).start()

    def _train(self, request: TrainingRequest, job: Job[Any], retrained_from: str = "") -> ModelRecord:
        asked = request.parameters
        tried = {"algorithm": asked.ALGORITHM, "excluded": len(request.exclude)}
        with self._audit.noting_failure(request.federation, "train", tried):
            grown, trained = self._fit_for_release(request, job)
            known = {m.id: m.retrained_from for m in self.models(request.federation)}  # the same model has the same id
            record = replace(grown, retrained_from=retrained_from or known.get(grown.id, ""))
            self._register(record, trained.model, trained.part_of)
            kept = {part: without_ids(*scores, TRAINING) for part, scores in trained.scores.items()}
            self._keep_scores(record, kept)
        digest = audit.federation_hash(self.federation(request.federation))
        body = audit.of_training(record, digest, self._pack_versions(record.id), job.transcript)
        self._audit.note(request.federation, "train", body)
        return record

    def _fit_for_release(self, request: TrainingRequest, job: Job[Any]) -> tuple[ModelRecord, Trained]:
        """A model of whose scores no larger share identifies a path than was allowed; trained once more where a coarser scale may be taken.

        Hosts keep one model a training, so that nobody names the same trees twice to get a second budget: hence the whole training again.

        Raises
        ------
        ReleaseRefused
            Too many scores would identify their path, and no coarser scale does or may be taken.
        """
        asked_bits = None
        while True:
            grown, trained = train(self._catalogue.runtime(request.federation), request, job)
            record = self._released(grown, trained.model, trained.part_of, "validation", job)
            if record.release is None:
                return record, trained
            usual = usual_bound(record.release, self.federation(record.federation).synthetic)
            most = usual if request.most_named is None else request.most_named
            bits = finest(record.release, most)
            if record.score_bits == bits or bits is None or not request.coarser:
                refuse_if_named(record.release, most)
                return replace(record, release=replace(record.release, asked_bits=asked_bits)), trained
            asked_bits = asked_bits or record.score_bits
            job.points, job.done = (), 0  # the curve of the model that follows
            request = replace(request, parameters=replace(request.parameters, score_bits=bits))

    def _keep_scores(self, record: ModelRecord, scores: Mapping[str, Kept]) -> None:
        for part, kept in scores.items():
            self._catalogue.measurements(record.federation).put(record.content_hash, SCORES, part, kept)
        self._cards.drop(record.id)  # last, so that none is made again of the scores that were there before

    def start_scoring(self, request: ScoringRequest, *, counted: bool = True) -> Job[ScoreBatch]:
        """Score in the background; what is not `counted` measures and leaves the simulated Hosts' budgets alone."""

        def work(job: Job[ScoreBatch]) -> ScoreBatch:
            record, digest = self.model(request.model_id), audit.sheet_hash(request.samples)
            tried = {**audit.of_model(record), "rows": len(request.samples.ids), "input_sha256": digest}
            with self._audit.noting_failure(record.federation, "score", tried):
                runtime, compiled = self._catalogue.runtime(record.federation), self._compiled_model(record)
                batch = score(runtime, record, compiled, request, job, self._workers, counted=counted)
            self._catalogue.guest_store(record.federation).put_score_job(record.id, summary(batch))
            body = audit.of_scoring(record, batch, digest, self._pack_versions(record.id), counted)
            self._audit.note(record.federation, "score", body)
            return batch

        return Job(work, len(request.samples.ids)).start()

    def evaluate(
        self,
        model_id: str,
        samples: int,
        key_bits: int = KEY_BITS,
        seed: int = 7,
        watch: Callable[[Job[ScoreBatch]], ScoreBatch] = Job.get,
    ) -> Evaluation:
        """Score `samples` random test records (any joint ones of an imported model) under encryption and measure them against the labels.

        Parameters
        ----------
        samples : int
            0 = none: the registered metrics on all test records only.
        watch : callable
            Follows the scoring to its end, e.g. to show progress.
        """
        record = self.model(model_id)
        if samples == 0:
            return Evaluation(record.metrics, None, 0.0)
        runtime = self._catalogue.runtime(record.federation)
        rows = self._test_rows(record, runtime, samples, seed)
        own = runtime.table.take(rows)
        sheet = SampleSheet(own.ids, own, {}, {}, ())
        request = ScoringRequest(record.id, sheet, key_bits=key_bits)
        batch = watch(self.start_scoring(request, counted=False))
        compiled = self._compiled_model(record)
        margins = compiled.guest.margins([s.units for s in batch.scores])
        metrics = measure(runtime.labels()[rows], margins, "test sample", compiled.outputs)
        return Evaluation(record.metrics, metrics, batch.seconds)

    @staticmethod
    def scores_csv(batch: ScoreBatch) -> bytes:
        """Results as CSV, safe to open in a spreadsheet."""
        return scores_csv(batch)

    def start_comparison(self, request: ComparisonRequest) -> Job[Compared]:
        """Score some test records by every protocol in the background, in the simulation; see :class:`ComparisonRequest`."""
        names = request.names or usual_protocols(request.samples)

        def work(job: Job[Compared]) -> Compared:
            record = self.model(request.model_id)
            told = {"protocols": len(names), "rows": request.samples, "cipher": request.cipher, "seed": request.seed}
            body = {**audit.of_model(record), **told, "synthetic": request.shape is not None}
            with self._audit.noting_failure(record.federation, "compare", body):
                done = self._compare(request, job)
            sent = audit.traffic(entry for row in done.runs.rows for entry in row.transcript)
            measured = {"key_bits": done.runs.key_bits, "traffic": sent, "outcome": audit.DONE}
            self._audit.note(record.federation, "compare", {**body, **measured})
            return done

        return Job(work, len(names)).start()

    def _compare(self, request: ComparisonRequest, job: Job[Compared]) -> Compared:
        record = self.model(request.model_id)
        runtime = self._catalogue.runtime(record.federation)
        if request.shape is not None:
            return self._compare_synthetic(request, request.shape, runtime, job)
        most = len(self._test_ids(record))
        protocol_comparison.check(request, most)
        own = runtime.table.take(self._test_rows(record, runtime, most, request.seed))
        model, compiled = self.guest_model(record.id), self._compiled_model(record).guest
        job.at("key", runtime.guest.name, 0)
        key = runtime.key(request.cipher, request.key_bits, compiled)
        warm_up = partial(self.start_key, record.federation, key.bits)
        context = protocol_comparison.ComparisonSetup(record.id, model, compiled, runtime, key, warm_up, own)
        return protocol_comparison.run(context, request, self._workers, job)

    def _compare_synthetic(
        self, request: ComparisonRequest, shape: Shape, runtime: FederationRuntime, job: Job[Compared]
    ) -> Compared:
        most = max(request.samples, *request.batches, 0)
        protocol_comparison.check(request, most)
        made = make_up(shape, most, request.seed)
        compiled = CompiledGuest(made.model)
        job.at("key", runtime.guest.name, 0)
        key = runtime.key(request.cipher, request.key_bits, compiled)
        with SyntheticFederation(made, key, pools=runtime.pools()[0].target > 0) as parties:
            own = made.tables[made.model.guest]
            context = protocol_comparison.ComparisonSetup(
                SYNTHETIC, made.model, compiled, parties, key, parties.warm_up, own
            )
            return protocol_comparison.run(context, request, self._workers, job)

    def start_serving(self, request: ServingRequest) -> Job[ServingTrial]:
        """Serve a forest in the background while one of its workers is lost, in the simulation; see :class:`ServingRequest`."""

        def work(job: Job[ServingTrial]) -> ServingTrial:
            record = self.model(request.model_id)
            runtime = self._catalogue.runtime(record.federation)
            forest_serving.check(request, len(self._test_ids(record)))
            own = runtime.table.take(self._test_rows(record, runtime, request.samples, request.seed))
            told = {**audit.of_model(record), "rows": request.samples, "batches": request.batches}
            with self._audit.noting_failure(record.federation, "serve", told):
                done = forest_serving.serve(
                    self.guest_model(record.id),
                    replace(request, model_id=record.id),
                    own,
                    lambda hosts: runtime.open_session(hosts, job.cancelled, counted=False),
                    job,
                )
            self._audit.note(record.federation, "serve", {**told, "outcome": audit.DONE})
            return done

        return Job(work, request.batches).start()

    @staticmethod
    def attacks() -> tuple[Attack, ...]:
        """The demonstrations of the attack lab, in the order of docs/attacks.md."""
        return tuple(ATTACKS.values())

    @staticmethod
    def start_attacks(names: Sequence[str], seed: int = 0) -> Job[tuple[AttackResult, ...]]:
        """Run demonstrations one after the other in the background; ``job.result`` holds those that are through."""

        def work(job: Job[tuple[AttackResult, ...]]) -> tuple[AttackResult, ...]:
            done: tuple[AttackResult, ...] = ()
            for place, name in enumerate(names):
                if job.cancelled():
                    raise Cancelled("The attacks were stopped; those that had run are kept.")
                job.at(attack_text(name), "", place)
                job.result = done = (*done, *run_all([name], seed))
            job.at("done", "", len(names))
            return done

        return Job(work, len(names)).start()
