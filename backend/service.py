"""The one door for app, pages and the command line: everything a user can do, as the Guest sees it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import platformdirs
from numpy.typing import NDArray

from backend import auditing, comparing
from backend.assurance.compliance import ComplianceReport, Evidence, Finding, Usage, assess
from backend.assurance.direction import LearnedDirection, learned_directions
from backend.assurance.fairness import Disparity
from backend.assurance.fairness import as_evidence as disparity_evidence
from backend.assurance.importance import FeatureImportance, feature_importance
from backend.assurance.leakage import LeakMeter, LeakPoint, Reading
from backend.assurance.ledger import Line as LedgerLine
from backend.assurance.ledger import Row as LedgerRow
from backend.assurance.ledger import lines as ledger_lines
from backend.assurance.ledger import table_two
from backend.assurance.proxies import as_evidence as proxy_evidence
from backend.assurance.report import Report, make
from backend.assurance.report import content_hash as report_content_hash
from backend.assurance.rule_pack import RulePack, add_rule_pack, load_packs, read_own_packs
from backend.auditing import ANALYST, OPERATOR, REGULATOR, ROLES, Auditor
from backend.catalogue import Catalogue
from backend.crypto.paillier import KEY_BITS, KEY_BITS_FLOOR
from backend.crypto.textbook import encrypt_seconds
from backend.crypto.workers import Workers, cores
from backend.data import table as tables
from backend.data.credit_card import fetch_credit_card, split_credit_card
from backend.data.demo import write_demo
from backend.data.dictionary import ExpectedDirection, Feature, Kind
from backend.data.federation import Federation, Party
from backend.data.label import Label
from backend.data.split import split_table
from backend.data.table import SampleSheet
from backend.errors import ModelError, ParameterError, SampleError
from backend.evidence import (
    DisparityRequest,
    Ground,
    Proxies,
    ProxyRequest,
    group_names,
    measure_disparity,
    measure_proxies,
)
from backend.importing import JOINT, import_model
from backend.jobs import Job
from backend.leaking import measure_leaks
from backend.protocols.alignment.exchange import Alignment
from backend.protocols.alignment.methods import METHODS
from backend.protocols.batches import BATCHES, PAIR, Lead, Point, leads
from backend.protocols.channel import TranscriptEntry
from backend.protocols.comparison import PROTOCOLS, Comparison, Row
from backend.protocols.inference.fed_eini import CompiledGuest
from backend.protocols.inference.learned import Learned
from backend.protocols.made_up import MADE_UP, SHAPE_LIMITS, MadeUpRoom, Shape, make_up
from backend.protocols.network import Link
from backend.protocols.room import PoolLevel, Room
from backend.protocols.training.algorithms import ALGORITHMS, Parameters, rounds
from backend.protocols.training.decision_tree import DecisionTreeParameters
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.protocols.training.parameters import CIPHERS, KEY_SIZES, SecureBoostParameters, TreeProgress
from backend.reporting import FORMS, Checked, Sources, answers, check, content_of, issued_of, language_of_pdf
from backend.results import (
    NODE_BY_NODE_SAMPLES,
    RANKS,
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
    scores_csv,
    usual_protocols,
)
from backend.scoring import score, summary
from backend.store.audit_log import Entry, Verdict
from backend.store.reviews import Review, ReviewVerdict, SignOff
from backend.training import train
from backend.trees.artefact import content_hash, dump_guest, load_guest
from backend.trees.candidates import candidate_leaves
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, Rule, Split
from backend.trees.metrics import Metrics, measure

__all__ = [
    "ALGORITHMS", "ANALYST", "BATCHES", "CIPHERS", "FORMS", "KEY_SIZES", "MADE_UP", "METHODS",
    "NODE_BY_NODE_SAMPLES", "OPERATOR", "PAIR", "PROTOCOLS", "RANKS", "REGULATOR", "ROLES", "SHAPE_LIMITS",
    "Alignment", "Checked", "Compared", "Comparison", "ComparisonRequest", "ComplianceReport",
    "DecisionTreeParameters", "Disparity", "DisparityRequest", "Entry", "Evaluation", "Evidence",
    "ExpectedDirection", "Feature", "FeatureImportance", "Federation", "Finding", "ForestParameters", "Glassleaf",
    "GuestModel", "GuestTree", "Job", "Kind", "Label", "Lead", "Leaf", "LeakPoint", "Learned", "LearnedDirection",
    "LedgerLine", "LedgerRow", "Link", "Metrics", "ModelRecord", "OpBoostParameters", "Parameters", "Party",
    "Point", "PoolLevel", "Proxies", "ProxyRequest", "Reading", "Report", "Review", "Row", "Rule", "RulePack",
    "SampleSheet", "Score", "ScoreBatch", "ScoringRequest", "SecureBoostParameters", "Shape", "SignOff", "Split",
    "Stage", "TrainingRequest", "TranscriptEntry", "TreeProgress", "Usage", "Verdict", "leads", "usual_protocols",
]  # fmt: skip

DEMO = "demo"
DISPARITY, PROXIES = "disparity", "proxies"  # kinds of evidence
RULES = "rules"  # the folder of one's own rule packs, below the home
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
    actor, role : str
        Who the audit log says it was; default the operating system's user, as operator. Nobody is authenticated here.
    """

    def __init__(
        self,
        home: Path | None = None,
        *,
        key_floor: int = KEY_BITS_FLOOR,
        pools: bool = True,
        workers: Workers | None = None,
        actor: str = "",
        role: str = OPERATOR,
    ) -> None:
        chosen = home or os.environ.get("GLASSLEAF_HOME") or platformdirs.user_data_path("glassleaf")
        self.home = Path(chosen).expanduser()
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._catalogue = Catalogue(self.home, key_floor, pools, self._key_made)
        self._audit = Auditor(self._catalogue, actor or auditing.system_user(), role)
        self._workers = workers or Workers(cores())
        self._halves: dict[str, GuestModel] = {}  # by content hash: a half never changes
        self._compiled: dict[str, Compiled] = {}
        self._lock, self._demo_lock = threading.RLock(), threading.Lock()

    def __repr__(self) -> str:
        return f"Glassleaf({str(self.home)!r})"

    def acting(self, actor: str, role: str) -> Glassleaf:
        """The same door for somebody else, so that the audit log names who did it; closing either closes both.

        Raises
        ------
        ParameterError
            There is no such role.
        """
        if role not in ROLES:
            raise ParameterError(f"The role is {role!r}; choose one of {', '.join(ROLES)}.")
        other = copy(self)
        other._audit = Auditor(self._catalogue, actor or auditing.system_user(), role)
        return other

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
        id_column: str | None,
        label: str,
        positive: str | None,
        task: str | None = None,
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
            task=task,
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
        own, problems = read_own_packs(self.home / RULES)
        return assess(
            model.dictionary,
            usage,
            (*load_packs(), *own),
            problems=problems,
            proxies=self._measured(model_id, PROXIES),
            disparities=self._measured(model_id, DISPARITY),
        )

    def _measured(self, model_id: str, kind: str) -> dict[str, tuple[Evidence, ...]]:
        record = self.model(model_id)
        found = self._catalogue.measurements(record.federation).of(record.content_hash, kind)
        return {feature: tuple(Evidence(**row) for row in rows) for feature, rows in found.items()}

    def add_rule_pack(self, file: Path) -> RulePack:
        """Check a rule pack of one's own and apply it from now on; raises RulePackError with every problem found."""
        pack = add_rule_pack(file, self.home / RULES)
        for federation in self.federations():
            self._audit.note(federation.name, "rules", {"pack": pack.name, "version": pack.version})
        return pack

    def rule_packs(self) -> tuple[tuple[RulePack, ...], tuple[str, ...]]:
        """The built-in packs and one's own, and what is wrong with those that cannot be used."""
        own, problems = read_own_packs(self.home / RULES)
        return (*load_packs(), *own), tuple(problems)

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
        digest = auditing.file_hash(file)
        self._audit.note(
            federation, "import", auditing.of_training(done.record, digest, self._pack_versions(done.record.id))
        )
        return done.record, done.notes

    def _register(self, record: ModelRecord, model: GuestModel, part_of: dict[str, str]) -> None:
        store, parts = self._catalogue.guest_store(record.federation), json.dumps(part_of)
        store.put_artefact(f"{record.id}.parts", parts, content_hash(parts))
        store.put_artefact(record.id, dump_guest(model), record.content_hash)
        store.put_record(record.id, asdict(record))

    def start_training(self, request: TrainingRequest) -> Job[ModelRecord]:
        """Train in the background; the model is in the registry when the job is done."""

        def work(job: Job[ModelRecord]) -> ModelRecord:
            asked = request.parameters
            tried = {"algorithm": asked.ALGORITHM, "excluded": len(request.exclude)}
            with self._audit.noting_failure(request.federation, "train", tried):
                record, trained = train(self._catalogue.room(request.federation), request, job)
                self._register(record, trained.model, trained.part_of)
            digest = auditing.federation_hash(self.federation(request.federation))
            body = auditing.of_training(record, digest, self._pack_versions(record.id), job.transcript)
            self._audit.note(request.federation, "train", body)
            return record

        return Job(work, rounds(request.parameters)).start()

    def start_scoring(self, request: ScoringRequest, *, counted: bool = True) -> Job[ScoreBatch]:
        """Score in the background; what is not `counted` measures and leaves the simulated Hosts' budgets alone."""

        def work(job: Job[ScoreBatch]) -> ScoreBatch:
            record, digest = self.model(request.model_id), auditing.sheet_hash(request.samples)
            tried = {**auditing.of_model(record), "rows": len(request.samples.ids), "input_sha256": digest}
            with self._audit.noting_failure(record.federation, "score", tried):
                room, compiled = self._catalogue.room(record.federation), self._compiled_half(record)
                batch = score(room, record, compiled, request, job, self._workers, counted=counted)
            self._catalogue.guest_store(record.federation).put_score_job(record.id, summary(batch))
            body = auditing.of_scoring(record, batch, digest, self._pack_versions(record.id), counted)
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
        room = self._catalogue.room(record.federation)
        rows = self._test_rows(record, room, samples, seed)
        own = room.table.take(rows)
        sheet = SampleSheet(own.ids, own, {}, {}, ())
        request = ScoringRequest(record.id, sheet, key_bits=key_bits)
        batch = watch(self.start_scoring(request, counted=False))
        compiled = self._compiled_half(record)
        margins = compiled.guest.margins([s.units for s in batch.scores])
        metrics = measure(room.labels()[rows], margins, "test sample", compiled.outputs)
        return Evaluation(record.metrics, metrics, batch.seconds)

    def start_comparison(self, request: ComparisonRequest) -> Job[Compared]:
        """Score some test records by every protocol in the background, in the simulation; see :class:`ComparisonRequest`."""
        names = request.names or usual_protocols(request.samples)

        def work(job: Job[Compared]) -> Compared:
            record = self.model(request.model_id)
            told = {"protocols": len(names), "rows": request.samples, "cipher": request.cipher, "seed": request.seed}
            body = {**auditing.of_model(record), **told, "made_up": request.shape is not None}
            with self._audit.noting_failure(record.federation, "compare", body):
                done = self._compare(request, job)
            sent = auditing.traffic(entry for row in done.runs.rows for entry in row.transcript)
            measured = {"key_bits": done.runs.key_bits, "traffic": sent, "outcome": auditing.DONE}
            self._audit.note(record.federation, "compare", {**body, **measured})
            return done

        return Job(work, len(names)).start()

    def _compare(self, request: ComparisonRequest, job: Job[Compared]) -> Compared:
        record = self.model(request.model_id)
        room = self._catalogue.room(record.federation)
        if request.shape is not None:
            return self._compare_made_up(request, request.shape, room, job)
        most = len(self._test_ids(record))
        comparing.check(request, most)
        own = room.table.take(self._test_rows(record, room, most, request.seed))
        model, compiled = self.guest_model(record.id), self._compiled_half(record).guest
        job.at("key", room.guest.name, 0)
        key = room.key(request.cipher, request.key_bits, compiled)
        warm_up = partial(self.start_key, record.federation, key.bits)
        ground = comparing.Ground(record.id, model, compiled, room, key, warm_up, own)
        return comparing.run(ground, request, self._workers, job)

    def _compare_made_up(self, request: ComparisonRequest, shape: Shape, room: Room, job: Job[Compared]) -> Compared:
        most = max(request.samples, *request.batches, 0)
        comparing.check(request, most)
        made = make_up(shape, most, request.seed)
        compiled = CompiledGuest(made.model)
        job.at("key", room.guest.name, 0)
        key = room.key(request.cipher, request.key_bits, compiled)
        with MadeUpRoom(made, key, pools=room.pools()[0].target > 0) as parties:
            own = made.tables[made.model.guest]
            ground = comparing.Ground(MADE_UP, made.model, compiled, parties, key, parties.warm_up, own)
            return comparing.run(ground, request, self._workers, job)

    def _test_ids(self, record: ModelRecord) -> list[str]:
        return [i for i, part in self._part_of(record).items() if part in ("test", JOINT)]

    def _test_rows(self, record: ModelRecord, room: Room, samples: int, seed: int) -> NDArray[np.intp]:
        """Rows of the Guest's table: `samples` random test records."""
        test = self._test_ids(record)
        if not 0 <= samples <= len(test):
            raise ParameterError(f"{samples} test records were asked for; the model has {len(test):,}.")
        chosen = np.random.default_rng(seed).choice(len(test), size=samples, replace=False)
        return np.array([room.table.row_of[test[i]] for i in chosen], dtype=np.intp)

    # what a run tells -------------------------------------------------------------------------------------------------

    def ledger(self, batch: ScoreBatch) -> tuple[tuple[LedgerRow, ...], tuple[LedgerLine, ...]]:
        """Who saw what in a scoring: the paper's Table II, and every field of every message."""
        record = self.model(batch.model_id)
        by_tree = self.guest_model(record.id).outputs.aggregation == "median"
        return (
            table_two(batch.transcript, record.guest, record.hosts, batch.cipher, by_tree=by_tree),
            ledger_lines(batch.transcript, record.guest, batch.cipher),
        )

    def leak_meter(self, model_id: str, score: Score) -> Reading:
        """What one released score leaves open of the Hosts' answers: the naive count and its entropy.

        Raises
        ------
        SampleError
            The score is of no record of the Guest's as it stands: typed in or uploaded values are not kept.
        ParameterError
            The model's leaves hold several numbers each.
        """
        record = self.model(model_id)
        own, expectation = self.sample_of(record.id, score.id).guest, self._compiled_half(record).expectation
        known = score.base + score.guest_part
        if score.status != "ok" or not np.isclose(expectation.given(own.columns, 1)[0], known, equal_nan=True).any():
            raise SampleError(
                f"The score of {score.id!r} was made of other values than those in the Guest's table, and these are not kept. "
                "Score the person as the table has it."
            )
        return LeakMeter(self.guest_model(record.id)).read(own.columns, [score.units])[0]

    def start_leak_curve(self, model_id: str, people: int = 100, seed: int = 7) -> Job[tuple[LeakPoint, ...]]:
        """Read the meter for some test records at several widths of the score: a joint audit that only simulated Hosts answer.

        The points so far are in the job's `result`.
        """

        def work(job: Job[tuple[LeakPoint, ...]]) -> tuple[LeakPoint, ...]:
            record = self.model(model_id)
            body = {**auditing.of_model(record), "people": people, "seed": seed}
            with self._audit.noting_failure(record.federation, "leak-audit", body):
                room = self._catalogue.room(record.federation)
                rows = self._test_rows(record, room, min(people, len(self._test_ids(record))), seed)
                points = measure_leaks(
                    room, record, self.guest_model(record.id), rows, list(self._part_of(record)), job
                )
            self._audit.note(record.federation, "leak-audit", {**body, "outcome": auditing.DONE})
            return points

        return Job(work, 0).start()

    # reviews and reports ----------------------------------------------------------------------------------------------

    def review(
        self, model_id: str, rule: str, feature: str, verdict: ReviewVerdict, reason: str, person: str
    ) -> Review:
        """Confirm or override a finding, with a reason; what was decided before is kept.

        Raises
        ------
        ParameterError
            The model has no such finding, or a field is not usable.
        """
        record = self.model(model_id)
        if not any((f.rule_id, f.feature) == (rule, feature) for f in self.compliance(record.id).findings):
            raise ParameterError(
                f"The model {record.id} has no finding of the rule {rule!r} on the feature {feature!r}."
            )
        done = self._catalogue.reviews(record.federation).review(
            record.content_hash, rule, feature, verdict, reason, person
        )
        body = {
            **auditing.of_model(record),
            "rule": rule,
            "feature": feature,
            "verdict": verdict,
            "number": done.number,
        }
        self._audit.note(record.federation, "override", {**body, "person": done.person})
        return done

    def reviews(self, model_id: str) -> tuple[Review, ...]:
        """Every decision about the model's findings, oldest first."""
        record = self.model(model_id)
        return self._catalogue.reviews(record.federation).history(record.content_hash)

    def sign_off(self, model_id: str, person: str, statement: str) -> SignOff:
        """State something about the model as it is reported now; the statement names the hash of the report's content."""
        record = self.model(model_id)
        digest = report_content_hash(content_of(self._sources(record)))
        done = self._catalogue.reviews(record.federation).sign_off(
            record.content_hash, person, self._audit.role, statement, digest
        )
        body = {**auditing.of_model(record), "content_sha256": digest, "number": done.number, "person": done.person}
        self._audit.note(record.federation, "sign-off", body)
        return done

    def report(self, model_id: str) -> Report:
        """The canonical report as of now; looking at it is not logged, :meth:`export_report` is."""
        record = self.model(model_id)
        sources = self._sources(record)
        content, now = content_of(sources), datetime.now(UTC).isoformat(timespec="seconds")
        by = (self._audit.actor, self._audit.role)
        return make(content, issued_of(sources, content, self.verify_audit(record.federation), now, by))

    def export_report(self, model_id: str, form: str, language: str = "en") -> bytes:
        """The report as a file; the audit log keeps its hash.

        Parameters
        ----------
        form : {"json", "html", "pdf"}
        language : {"en", "zh"}
            JSON holds both. A PDF is English where this machine has no font with Chinese letters.

        Raises
        ------
        ParameterError
            There is no such form or language.
        """
        if form not in FORMS:
            raise ParameterError(f"The format is {form!r}; choose one of {', '.join(FORMS)}.")
        record = self.model(model_id)
        report = self.report(record.id)
        written = FORMS[form](report, language)
        body = {
            **auditing.of_model(record),
            "format": form,
            "language": language,
            "content_sha256": report.content_sha256,
        }
        self._audit.note(record.federation, "report", {**body, "report_sha256": report.sha256})
        return written

    @staticmethod
    def report_answers(report: Report, language: str) -> tuple[tuple[str, str], ...]:
        """A regulator's questions, each with what the report answers."""
        return answers(report, language)

    @staticmethod
    def language_of_pdf(language: str) -> str:
        """The language that a PDF can be drawn in on this machine."""
        return language_of_pdf(language)

    def check_report(self, blob: bytes) -> Checked:
        """Check a report's file, and look for it in this home's audit logs; raises ModelError where it was changed."""
        checked = check(blob)
        named = [
            (federation.name, entry)
            for federation in self.federations()
            for entry in self.audit_entries(federation.name)
            if entry.action == "report" and entry.body.get("report_sha256") == checked.report.sha256
        ]
        return replace(checked, named_by=tuple(named))

    def _sources(self, record: ModelRecord) -> Sources:
        return Sources(
            record=record,
            federation=self.federation(record.federation),
            model=self.guest_model(record.id),
            importance=self.importance(record.id),
            directions=self.directions(record.id),
            compliance=self.compliance(record.id),
            reviews=self.reviews(record.id),
            sign_offs=self._catalogue.reviews(record.federation).sign_offs(record.content_hash),
            entries=self.audit_entries(record.federation),
            disparities=self._measured(record.id, DISPARITY) or None,
            proxies=self._measured(record.id, PROXIES) or None,
        )

    # evidence ---------------------------------------------------------------------------------------------------------

    def start_disparity(self, request: DisparityRequest) -> Job[Disparity]:
        """Measure outcomes by the groups of a feature in the background; the findings and the report show it from then on."""

        def work(job: Job[Disparity]) -> Disparity:
            record = self.model(request.model_id)
            done = measure_disparity(self._ground(record), request, job)
            names = group_names([outcome.group for outcome in done.groups], self._feature(record, request.feature))
            self._keep(record, DISPARITY, request.feature, disparity_evidence(done, names))
            return done

        return Job(work, 1).start()

    def start_proxies(self, request: ProxyRequest) -> Job[Proxies]:
        """Measure which features go with a protected attribute in the background; the findings and the report show it."""

        def work(job: Job[Proxies]) -> Proxies:
            record = self.model(request.model_id)
            done = measure_proxies(self._ground(record), request, job)
            self._keep(record, PROXIES, request.attribute, proxy_evidence(done.features))
            return done

        return Job(work, 1).start()

    def _ground(self, record: ModelRecord) -> Ground:
        room = self._catalogue.room(record.federation)
        half = self._compiled_half(record)
        return Ground(room, record, self.guest_model(record.id), half, self._test_ids(record), self._workers)

    def _feature(self, record: ModelRecord, name: str) -> Feature:
        return next(f for _, f in self.federation(record.federation).features() if f.name == name)

    def _keep(self, record: ModelRecord, kind: str, feature: str, found: tuple[Evidence, ...]) -> None:
        kept = self._catalogue.measurements(record.federation)
        kept.put(record.content_hash, kind, feature, [asdict(row) for row in found])
        body = {**auditing.of_model(record), "feature": feature, "numbers": len(found), "outcome": auditing.DONE}
        self._audit.note(record.federation, kind, body)

    # audit ------------------------------------------------------------------------------------------------------------

    def _key_made(self, federation: str, cipher: str, bits: int) -> None:
        self._audit.note(federation, "key", {"cipher": cipher, "key_bits": bits}, tell=False)

    def _pack_versions(self, model_id: str) -> dict[str, str]:
        return {pack.name: pack.version for pack in self.compliance(model_id).packs}

    def audit_entries(self, federation: str) -> list[Entry]:
        """Everything that was logged about a federation, oldest first."""
        return self._catalogue.audit_log(federation).entries()

    def verify_audit(self, federation: str) -> Verdict:
        """Check the log's chain, and against what its Hosts were told of it."""
        return self._audit.verify(federation)

    def export_audit(self, federation: str) -> str:
        """The log as lines of JSON, a line an entry; exporting is logged too, as the last line."""
        self._audit.note(federation, "export", {"what": "audit"})
        return self._catalogue.audit_log(federation).export()

    def note_sign_in(self, way: str) -> None:
        """Log in every federation that the actor signed in, by `way` (the identity provider's name)."""
        for federation in self.federations():
            self._audit.note(federation.name, "sign-in", {"way": way})

    @staticmethod
    def scores_csv(batch: ScoreBatch) -> bytes:
        """Results as CSV, safe to open in a spreadsheet."""
        return scores_csv(batch)

    def close(self) -> None:
        """Stop all Hosts and background threads."""
        self._catalogue.close()
        self._workers.close()
