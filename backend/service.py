"""The one door for app, pages and the command line: everything a user can do, as the Guest sees it."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import platformdirs
from numpy.typing import NDArray

from backend.assurance.compliance import ComplianceReport, Finding, Usage, assess
from backend.assurance.direction import LearnedDirection, learned_directions
from backend.assurance.importance import FeatureImportance, feature_importance
from backend.catalogue import Catalogue
from backend.crypto.cipher import KeySide
from backend.crypto.paillier import KEY_BITS, KEY_BITS_FLOOR, PaillierKeySide
from backend.crypto.textbook import encrypt_seconds
from backend.crypto.workers import Workers, cores
from backend.data import table as tables
from backend.data.credit_card import fetch_credit_card, split_credit_card
from backend.data.demo import write_demo
from backend.data.dictionary import ExpectedDirection, Feature, Kind
from backend.data.federation import Federation, Party
from backend.data.split import split_table
from backend.data.table import SampleSheet
from backend.errors import ModelError, ParameterError, SampleError
from backend.importing import JOINT, import_model
from backend.jobs import Job
from backend.protocols.channel import TranscriptEntry
from backend.protocols.comparison import PROTOCOLS, Comparison, Row, compare, protocols
from backend.protocols.inference.learned import Learned
from backend.protocols.network import Link
from backend.protocols.room import PoolLevel, Room
from backend.protocols.training.parameters import SecureBoostParameters, TreeProgress
from backend.results import (
    NODE_BY_NODE_SAMPLES,
    Compared,
    ComparisonRequest,
    Compiled,
    Evaluation,
    ModelRecord,
    Score,
    ScoreBatch,
    ScoringRequest,
    Stage,
    TrainingRequest,
    read_record,
    sample_scores,
    scores_csv,
    stages,
    usual_protocols,
)
from backend.trees.artefact import content_hash, dump_guest, load_guest
from backend.trees.candidates import candidate_leaves
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, Rule, Split
from backend.trees.metrics import Metrics, measure

__all__ = [
    "NODE_BY_NODE_SAMPLES", "PROTOCOLS", "Compared", "Comparison", "ComparisonRequest", "ComplianceReport",
    "Evaluation", "ExpectedDirection", "Feature", "FeatureImportance", "Federation", "Finding", "Glassleaf",
    "GuestModel", "GuestTree", "Job", "Kind", "Leaf", "Learned", "LearnedDirection", "Link", "Metrics", "ModelRecord",
    "Party", "PoolLevel", "Row", "Rule", "SampleSheet", "Score", "ScoreBatch", "ScoringRequest", "Split", "Stage",
    "SecureBoostParameters", "TrainingRequest", "TranscriptEntry", "TreeProgress", "Usage", "usual_protocols",
]  # fmt: skip

DEMO = "demo"
POOLS_WAIT = 15.0  # seconds that a comparison waits for obfuscators at most
HALVES_KEPT = 16  # models read once and kept in memory
DEMO_PARAMETERS = SecureBoostParameters(trees=20, depth=3, learning_rate=0.3, cipher="none")


class Glassleaf:
    """The Guest's door.

    Parameters
    ----------
    home : Path, optional
        Where state lives; default ``GLASSLEAF_HOME``, else the platform's user data folder.
    key_floor : int
        Shortest key, bits; lower only in tests.
    pools : bool
        Whether obfuscators are made in the background.
    workers : Workers, optional
        Who encrypts bulk uploads; default one process a core of this machine.
    """

    def __init__(
        self,
        home: Path | None = None,
        *,
        key_floor: int = KEY_BITS_FLOOR,
        pools: bool = True,
        workers: Workers | None = None,
    ) -> None:
        chosen = home or os.environ.get("GLASSLEAF_HOME") or platformdirs.user_data_path("glassleaf")
        self.home = Path(chosen).expanduser()
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._catalogue = Catalogue(self.home, key_floor, pools)
        self._workers = workers or Workers(cores())
        self._halves: dict[str, GuestModel] = {}  # by content hash: a half never changes
        self._compiled: dict[str, Compiled] = {}
        self._lock, self._demo_lock = threading.RLock(), threading.Lock()

    def __repr__(self) -> str:
        return f"Glassleaf({str(self.home)!r})"

    # federations ------------------------------------------------------------------------------------------------------

    def prepare_demo(self) -> str:
        """Write the built-in demo and grow its first model on plain numbers, where they are missing; returns its name."""
        with self._demo_lock:
            if not (self.home / DEMO / "federation.toml").exists():
                write_demo(self.home / DEMO)
            self.add_federation(self.home / DEMO)
            if not self.models(DEMO):
                self.start_training(TrainingRequest(DEMO, DEMO_PARAMETERS)).get()
        return DEMO

    def add_federation(self, path: Path) -> Federation:
        """Check a federation file and remember it under its name.

        Raises
        ------
        FederationError
            The file or a table is not usable, or another federation has the name.
        """
        return self._catalogue.add(path)

    def init(
        self,
        table: Path,
        *,
        id_column: str,
        label: str,
        positive: str | None,
        guest: Sequence[str],
        hosts: Mapping[str, Sequence[str]],
        dictionary: Path | None,
        out: Path,
        name: str | None,
        label_meaning: str | None = None,
    ) -> Federation:
        """Split one table into a federation's files in `out` and remember it; see `split_table` for the errors."""
        split_table(
            table,
            id_column=id_column,
            label=label,
            positive=positive,
            guest=guest,
            hosts=hosts,
            dictionary=dictionary,
            out=out,
            name=name,
            label_meaning=label_meaning,
        )
        return self.add_federation(out)

    def fetch_credit_card(self, out: Path) -> Federation:
        """Fetch the credit-card data from OpenML, split it in `out` and remember the federation."""
        out.mkdir(parents=True, exist_ok=True)
        split_credit_card(fetch_credit_card(out / "credit_card.csv"), out)
        return self.add_federation(out)

    def federations(self) -> list[Federation]:
        """Every remembered federation whose file is still there, the demo first."""
        return sorted(self._catalogue.all(), key=lambda f: (f.name != DEMO, f.name))

    def federation(self, name: str) -> Federation:
        """One federation; raises FederationError where the name is unknown."""
        return self._catalogue.federation(name)

    def start_key(self, federation: str, bits: int = KEY_BITS) -> None:
        """Make the Guest's key and start all pools in the background; a second call does nothing."""
        with self._lock:
            room = self._catalogue.room(federation)
            if bits in room.warmed:
                return
            room.warmed.add(bits)
        threading.Thread(target=room.warm_up, args=(bits,), name="warm-up", daemon=True).start()

    def pools(self, federation: str) -> tuple[PoolLevel, ...]:
        """Fill level of every party's pool of obfuscators."""
        return self._catalogue.room(federation).pools()

    def textbook_seconds(self, model_id: str, bits: int = KEY_BITS) -> float:
        """What plain `phe` would need for one sample's encryptions, a leaf each: leaves times a constant measured on this machine."""
        record = self.model(model_id)
        key = self._catalogue.room(record.federation).pair_key("paillier", bits)
        return record.n_leaves * encrypt_seconds(key.offer())

    # models -----------------------------------------------------------------------------------------------------------

    def models(self, federation: str | None = None) -> list[ModelRecord]:
        """Records of all models, newest first."""
        names = [federation] if federation else [f.name for f in self.federations()]
        records = [read_record(body) for name in names for body in self._catalogue.guest_store(name).records()]
        return sorted(records, key=lambda r: r.created, reverse=True)

    def model(self, model_id: str) -> ModelRecord:
        """A model by id, unique beginning of an id, or ``latest``.

        Raises
        ------
        ModelError
            No model, or more than one, has such an id.
        """
        records = self.models()
        if model_id == "latest" and records:
            return records[0]
        found = [r for r in records if r.id.startswith(model_id)]
        exact = [r for r in found if r.id == model_id]
        if len(exact or found) == 1:
            return (exact or found)[0]
        known = ", ".join(r.id for r in records[:5]) or "none yet; train one first"
        how_many = "No model" if not found else f"{len(found)} models"
        raise ModelError(f"{how_many} found for {model_id!r}. Known, newest first: {known}.")

    def guest_model(self, model_id: str) -> GuestModel:
        """The Guest's half."""
        record = self.model(model_id)
        if record.content_hash not in self._halves:
            if len(self._halves) >= HALVES_KEPT:
                self._halves.pop(next(iter(self._halves)))
            self._halves[record.content_hash] = load_guest(
                self._catalogue.guest_store(record.federation).artefact(record.id)
            )
        return self._halves[record.content_hash]

    def _compiled_half(self, record: ModelRecord) -> Compiled:
        if record.content_hash not in self._compiled:
            if len(self._compiled) >= HALVES_KEPT:
                self._compiled.pop(next(iter(self._compiled)))
            self._compiled[record.content_hash] = Compiled(self.guest_model(record.id))
        return self._compiled[record.content_hash]

    def importance(self, model_id: str) -> tuple[FeatureImportance, ...]:
        """Every feature offered to the training, largest gain first."""
        return feature_importance(self.guest_model(model_id))

    def directions(self, model_id: str) -> tuple[LearnedDirection, ...]:
        """Expected and learned direction of every feature."""
        return learned_directions(self.guest_model(model_id))

    def compliance(self, model_id: str) -> ComplianceReport:
        """Findings of the rule packs on the disclosed dictionary, with their evidence in the model."""
        model = self.guest_model(model_id)
        usage = {
            row.feature: Usage(row.splits, row.trees, row.gain_share, row.cover_share)
            for row in feature_importance(model)
        }
        return assess(model.dictionary, usage)

    # samples ----------------------------------------------------------------------------------------------------------

    def samples(self, model_id: str) -> pd.DataFrame:
        """The Guest's own records with the part they had in training; no Host column."""
        record = self.model(model_id)
        room = self._catalogue.room(record.federation)
        frame = pd.DataFrame(dict(room.table.columns), index=pd.Index(room.table.ids, name="id", dtype="object"))
        part_of = self._part_of(record)
        frame["part"] = [part_of.get(i, "not in training") for i in room.table.ids]
        return frame

    def _part_of(self, record: ModelRecord) -> dict[str, str]:
        parts: dict[str, str] = json.loads(
            self._catalogue.guest_store(record.federation).artefact(f"{record.id}.parts")
        )
        return parts

    def sample_of(self, model_id: str, sample_id: str) -> SampleSheet:
        """The Guest's record of a known id."""
        table = self._catalogue.room(self.model(model_id).federation).table
        if sample_id not in table.row_of:
            raise SampleError(
                f"The Guest holds no record {sample_id!r}. Choose an id from its table, or type the values in."
            )
        own = table.take(np.array([table.row_of[sample_id]], dtype=np.intp))
        return SampleSheet((sample_id,), own, {}, {}, ())

    def sample_from_values(self, model_id: str, sample_id: str, values: dict[str, str | float | None]) -> SampleSheet:
        """A typed-in sample: the Guest's features by name."""
        return tables.sample_from_values(self.federation(self.model(model_id).federation), sample_id, values)

    def read_samples(self, model_id: str, source: bytes | Path) -> SampleSheet:
        """An uploaded CSV; raises SampleError where the sheet as a whole is not usable."""
        return tables.read_samples(self.federation(self.model(model_id).federation), source)

    def sample_template(self, model_id: str) -> bytes:
        """A CSV to fill in: the Guest's id and features, and two of its own records."""
        record = self.model(model_id)
        federation = self.federation(record.federation)
        frame = self.samples(record.id).drop(columns="part").head(2)
        frame.index.name = federation.guest.id
        text: str = frame.to_csv()
        return text.encode()

    def candidate_leaves(self, model_id: str, tree: int, sample: SampleSheet) -> tuple[int, ...]:
        """Node numbers of the leaves that the Guest cannot rule out for the sheet's first row."""
        model = self.guest_model(model_id)
        if not 0 <= tree < len(model.trees):
            raise ModelError(f"The model has trees 0 to {len(model.trees) - 1}; tree {tree} was asked for.")
        first = sample.guest.take(np.array([0], dtype=np.intp))
        kept = candidate_leaves(model.skeletons, model.rules, first.columns, 1)[tree][0]
        return tuple(leaf for leaf, k in zip(model.trees[tree].leaves, kept, strict=True) if k)

    # long work --------------------------------------------------------------------------------------------------------

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
            See :func:`backend.importing.import_model`.
        """
        done = import_model(self._catalogue.room(federation), file, features, categories, score_bits)
        self._register(done.record, done.model, done.part_of)
        return done.record, done.notes

    def _register(self, record: ModelRecord, model: GuestModel, part_of: dict[str, str]) -> None:
        store, parts = self._catalogue.guest_store(record.federation), json.dumps(part_of)
        store.put_artefact(f"{record.id}.parts", parts, content_hash(parts))
        store.put_artefact(record.id, dump_guest(model), record.content_hash)
        store.put_record(record.id, asdict(record))

    def start_training(self, request: TrainingRequest) -> Job[ModelRecord]:
        """Train in the background; the model is in the registry when the job is done."""
        return Job(lambda job: self._train(request, job), request.parameters.trees).start()

    def _train(self, request: TrainingRequest, job: Job[ModelRecord]) -> ModelRecord:
        room = self._catalogue.room(request.federation)
        hosts = self._chosen_hosts(room, request.hosts)
        self._check_excluded(room.federation, hosts, request.exclude)
        job.at("key", room.guest.name)
        key = room.pair_key(request.parameters.cipher, request.parameters.key_bits)
        talk = room.converse(hosts, job.cancelled)
        job.read_transcript = talk.transcript

        try:
            trained = room.guest.train(
                room.labels(),
                request.parameters,
                key,
                talk,
                exclude=request.exclude,
                on_stage=lambda stage: job.at(stage, room.guest.name),
                on_tree=job.tree_grown,
            )
        finally:
            job.read_transcript = _constant(talk.close())
        record = ModelRecord(
            id=trained.model_id,
            federation=request.federation,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            algorithm="SecureBoost GBDT",
            cipher=key.scheme,
            key_bits=key.bits,
            content_hash=content_hash(dump_guest(trained.model)),
            guest=room.guest.name,
            hosts=hosts,
            n_trees=len(trained.model.trees),
            n_leaves=trained.model.n_leaves,
            depth=max(t.depth for t in trained.model.trees),
            score_bits=request.parameters.score_bits,
            metrics=trained.metrics,
            parameters=request.parameters.as_dict(),
            seconds=job.seconds,
            parts=trained.parts,
            curve=job.points,
            host_hashes=trained.host_hashes,
            positive_rate=trained.positive_rate,
            alignment=trained.alignment,
            exclude=request.exclude,
        )
        self._register(record, trained.model, trained.part_of)
        return record

    def start_scoring(self, request: ScoringRequest) -> Job[ScoreBatch]:
        """Score in the background."""
        return Job(lambda job: self._score(request, job), len(request.samples.ids)).start()

    def _score(self, request: ScoringRequest, job: Job[ScoreBatch]) -> ScoreBatch:
        if not 0.0 <= request.cutoff <= 1.0:
            raise ParameterError(f"The cut-off is {request.cutoff:g}; choose a probability from 0 to 1.")
        began = time.perf_counter()
        record = self.model(request.model_id)
        compiled = self._compiled_half(record)
        room = self._catalogue.room(record.federation)
        sheet = request.samples
        good = np.array([i for i in range(len(sheet.ids)) if i not in sheet.problems], dtype=np.intp)
        job.at("key", room.guest.name, 0)
        job.total = len(good)
        key = room.key(request.cipher, request.key_bits, compiled.guest)
        prepared = Stage("key", room.guest.name, time.perf_counter() - began)
        talk = room.converse(record.hosts, job.cancelled)
        job.read_transcript = talk.transcript
        transcript: tuple[TranscriptEntry, ...] = ()
        try:
            for host, table in sheet.hosts.items():
                if host in record.hosts:
                    room.play(talk, host, table.take(good))
            own = sheet.guest.take(good)
            scored = room.guest.score(record.id, compiled.guest, own, key, talk, workers=self._workers, on_stage=job.at)
        finally:
            transcript = talk.close()
            job.read_transcript = _constant(transcript)
        job.at("done", room.guest.name, len(good))
        batch = ScoreBatch(
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
        )
        summary = {"rows": len(good), "failed": len(sheet.problems), "cipher": key.scheme, "key_bits": key.bits}
        self._catalogue.guest_store(record.federation).put_score_job(record.id, summary | {"seconds": batch.seconds})
        return batch

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
        room = self._catalogue.room(record.federation)
        rows = self._test_rows(record, room, samples, seed)
        own = room.table.take(rows)
        sheet = SampleSheet(own.ids, own, {}, {}, ())
        batch = watch(self.start_scoring(ScoringRequest(record.id, sheet, key_bits=key_bits)))
        margins = np.array([s.logit for s in batch.scores])
        return Evaluation(record.metrics, measure(room.labels()[rows], margins, "test sample"), batch.seconds)

    def start_comparison(self, request: ComparisonRequest) -> Job[Compared]:
        """Score some test records by every protocol in the background, in the simulation; see :class:`ComparisonRequest`."""
        return Job(
            lambda job: self._compare(request, job), len(request.names or usual_protocols(request.samples))
        ).start()

    def _compare(self, request: ComparisonRequest, job: Job[Compared]) -> Compared:
        record = self.model(request.model_id)
        compiled = self._compiled_half(record).guest
        room = self._catalogue.room(record.federation)
        if request.samples < 1:
            raise ParameterError(f"Protocols were to be compared on {request.samples} test records; ask for 1 or more.")
        own = room.table.take(self._test_rows(record, room, request.samples, request.seed))
        job.at("key", room.guest.name, 0)
        key = room.key(request.cipher, request.key_bits, compiled)
        wanted = (request.samples + 1) * max(1, compiled.folding.n_entries)  # one sample is not counted
        pools = self._pools_for(record, room, key, wanted, job)
        names = request.names if request.names is not None else usual_protocols(request.samples)
        runs = compare(
            protocols(room.guest, self.guest_model(record.id), compiled, key, workers=self._workers),
            record.id,
            own,
            key,
            lambda: room.converse(record.hosts, job.cancelled),
            names=names,
            on_protocol=lambda name: job.at(name, room.guest.name, names.index(name)),
        )
        job.at("done", room.guest.name, len(names))
        return Compared(record.id, pools, runs)

    def _pools_for(
        self, record: ModelRecord, room: Room, key: KeySide, wanted: int, job: Job[Compared]
    ) -> Literal["warm", "cold", "none"]:
        """Give the parties' pools some seconds to hold `wanted` obfuscators; what became of it."""
        if not isinstance(key, PaillierKeySide):
            return "none"
        if wanted > min(level.target for level in room.pools()):
            return "cold"
        self.start_key(record.federation, key.bits)
        job.at("pools", room.guest.name)
        until = time.perf_counter() + POOLS_WAIT
        while time.perf_counter() < until and not job.cancelled():
            ready = [key.obfuscators.ready, *(p.ready for p in room.pools() if p.party in record.hosts)]
            if min(ready) >= wanted:
                return "warm"
            time.sleep(0.1)
        return "cold"

    def _test_rows(self, record: ModelRecord, room: Room, samples: int, seed: int) -> NDArray[np.intp]:
        """Rows of the Guest's table: `samples` random test records."""
        test = [i for i, part in self._part_of(record).items() if part in ("test", JOINT)]
        if not 0 <= samples <= len(test):
            raise ParameterError(f"{samples} test records were asked for; the model has {len(test):,}.")
        chosen = np.random.default_rng(seed).choice(len(test), size=samples, replace=False)
        return np.array([room.table.row_of[test[i]] for i in chosen], dtype=np.intp)

    @staticmethod
    def scores_csv(batch: ScoreBatch) -> bytes:
        """Results as CSV, safe to open in a spreadsheet."""
        return scores_csv(batch)

    def close(self) -> None:
        """Stop all Hosts and background threads."""
        self._catalogue.close()
        self._workers.close()

    @staticmethod
    def _chosen_hosts(room: Room, hosts: tuple[str, ...] | None) -> tuple[str, ...]:
        chosen = room.hosts if hosts is None else hosts
        unknown = [h for h in chosen if h not in room.hosts]
        if unknown:
            raise ParameterError(
                f"{', '.join(unknown)} is no Host of this federation; Hosts are: {', '.join(room.hosts)}."
            )
        return tuple(h for h in room.hosts if h in chosen)

    @staticmethod
    def _check_excluded(federation: Federation, hosts: tuple[str, ...], exclude: tuple[str, ...]) -> None:
        names = [f.name for _, f in federation.features()]
        unknown = [e for e in exclude if e not in names]
        if unknown:
            raise ParameterError(f"{', '.join(unknown)} is no feature of this federation, so it cannot be left out.")
        parties = {federation.guest.name, *hosts}
        if all(f.name in exclude for party, f in federation.features() if party in parties):
            raise ParameterError("Every feature was left out; leave at least one in.")


def _constant(transcript: tuple[TranscriptEntry, ...]) -> Callable[[], tuple[TranscriptEntry, ...]]:
    return lambda: transcript
