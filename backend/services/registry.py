"""What is there: federations, models, rule packs, samples; and what a model's structure alone tells."""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Mapping
from copy import copy
from dataclasses import asdict
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import platformdirs
from numpy.typing import NDArray

from backend.compliance.assessment import (
    DISPARITY,
    ELDERLY,
    PROXIES,
    ComplianceReport,
    KeptOut,
    Usage,
    assess,
    with_evidence,
)
from backend.compliance.rule_pack import RulePack, add_rule_pack, load_packs, read_own_packs
from backend.crypto.baselines.textbook import encrypt_seconds
from backend.crypto.paillier.keys import KEY_BITS, KEY_BITS_FLOOR
from backend.crypto.workers import Workers, cores
from backend.data import table as tables
from backend.data.credit_card import NAME as CREDIT_CARD
from backend.data.credit_card import fetch_credit_card, split_credit_card
from backend.data.dictionary import Feature
from backend.data.federation import Federation
from backend.data.split import Division, split_table
from backend.data.table import SampleSheet
from backend.errors import ModelError, ParameterError, SampleError
from backend.explain.direction import LearnedDirection, learned_directions
from backend.explain.importance import FeatureImportance, feature_importance
from backend.fairness.age_discrimination import read_check
from backend.fairness.evidence import Basis, Evidence
from backend.protocols.simulation.simulator import FederationRuntime, PoolLevel
from backend.results import (
    Compiled,
    ModelRecord,
    read_record,
)
from backend.services import audit
from backend.services.audit import OPERATOR, ROLES, Auditor
from backend.services.cache import Cache
from backend.services.measurement import MeasurementContext
from backend.services.model_card import ModelCard
from backend.services.model_import import JOINT
from backend.services.workspace import Workspace
from backend.store.measurements import Kept
from backend.trees.compiled import candidate_leaves
from backend.trees.ensemble import GuestModel
from backend.trees.serialization import load_guest

DEMO = "demo"
RULES = "rules"  # the folder of one's own rule packs, below the home
PERMUTATION, MEANS, SCORES = (
    "permutation",
    "means",
    "scores",
)  # kinds of measurement, beside DISPARITY, PROXIES, ELDERLY
RECORDS_KEPT = 256  # records of models that are read once


class Models:
    """What a home holds, and who asks; the parameters are those of :class:`backend.services.Glassleaf`."""

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
        self._catalogue = Workspace(self.home, key_floor, pools, self._key_made)
        self._audit = Auditor(self._catalogue, actor or audit.system_user(), role)
        self._workers = workers or Workers(cores())
        self._records: Cache[ModelRecord] = Cache(RECORDS_KEPT)  # by their stored text
        self._partial_models: Cache[GuestModel] = (
            Cache()
        )  # by content hash, as what follows from a half: it never changes
        self._compiled: Cache[Compiled] = Cache()
        self._importances: Cache[tuple[FeatureImportance, ...]] = Cache()
        self._learned: Cache[tuple[LearnedDirection, ...]] = Cache()
        self._parts: Cache[dict[str, str]] = Cache()  # by content hash and day of registration
        self._reports: Cache[ComplianceReport] = Cache()  # by content hash, day and rules
        self._cards: Cache[ModelCard] = Cache()  # by model
        self._lock, self._demo_lock = threading.RLock(), threading.Lock()

    def __repr__(self) -> str:
        return f"Glassleaf({str(self.home)!r})"

    def acting(self, actor: str, role: str) -> Self:
        """The same services for somebody else, so that the audit log names who did it; closing either closes both.

        Raises
        ------
        ParameterError
            There is no such role.
        """
        if role not in ROLES:
            raise ParameterError(f"The role is {role!r}; choose one of {', '.join(ROLES)}.")
        other = copy(self)
        other._audit = Auditor(self._catalogue, actor or audit.system_user(), role)
        return other

    def add_federation(self, path: Path) -> Federation:
        """Check a federation file and remember it under its name.

        Raises
        ------
        FederationError
            The file or a table is not usable, or another federation has the name.
        """
        return self._catalogue.add(path)

    def init(self, table: Path, division: Division, out: Path) -> Federation:
        """Split one table into a federation's files in `out` and remember it; see `split_table` for the errors."""
        split_table(table, division, out, lambda name: self._catalogue.check_name(name, out))
        return self.add_federation(out)

    def fetch_credit_card(self, out: Path) -> Federation:
        """Fetch the credit-card data from OpenML, split it in `out` and remember the federation."""
        self._catalogue.check_name(CREDIT_CARD, out)
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
            runtime = self._catalogue.runtime(federation)
            if bits in runtime.warmed:
                return
            runtime.warmed.add(bits)
        threading.Thread(target=runtime.warm_up, args=(bits,), name="warm-up", daemon=True).start()

    def pools(self, federation: str) -> tuple[PoolLevel, ...]:
        """Fill level of every party's pool of obfuscators."""
        return self._catalogue.runtime(federation).pools()

    def textbook_seconds(self, model_id: str, bits: int = KEY_BITS) -> float:
        """What plain `phe` would need for one sample's encryptions, a leaf each: leaves times a constant measured on this machine."""
        record = self.model(model_id)
        key = self._catalogue.runtime(record.federation).pair_key("paillier", bits)
        return record.n_leaves * encrypt_seconds(key.offer())

    def models(self, federation: str | None = None) -> list[ModelRecord]:
        """Records of all models, newest first."""
        names = [federation] if federation else [f.name for f in self.federations()]
        texts = [text for name in names for text in self._catalogue.guest_store(name).records()]
        records = [self._records.get(text, partial(_read, text)) for text in texts]
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
        """The Guest's partial model."""
        return self._partial_model(self.model(model_id))

    def _partial_model(self, record: ModelRecord) -> GuestModel:
        store = self._catalogue.guest_store(record.federation)
        return self._partial_models.get(record.content_hash, lambda: load_guest(store.artefact(record.id)))

    def _compiled_model(self, record: ModelRecord) -> Compiled:
        return self._compiled.get(record.content_hash, lambda: Compiled(self._partial_model(record)))

    def importance(self, model_id: str) -> tuple[FeatureImportance, ...]:
        """Every feature offered to the training, largest gain first."""
        return self._importance(self.model(model_id))

    def _importance(self, record: ModelRecord) -> tuple[FeatureImportance, ...]:
        return self._importances.get(record.content_hash, lambda: feature_importance(self._partial_model(record)))

    def directions(self, model_id: str) -> tuple[LearnedDirection, ...]:
        """Expected and learned direction of every feature."""
        record = self.model(model_id)
        return self._learned.get(record.content_hash, lambda: learned_directions(self._partial_model(record)))

    def compliance(self, model_id: str) -> ComplianceReport:
        """Findings of the rule packs on the disclosed dictionary, with their evidence in the model."""
        record = self.model(model_id)
        proxies, disparities = (self._measured(record, kind) for kind in (PROXIES, DISPARITY))
        ages = {name: read_check(kept.rows[0]) for name, kept in self._measured(record, ELDERLY).items()}
        return with_evidence(
            self._assessed(record), rows_of(proxies), rows_of(disparities), bases_of(proxies, disparities), ages
        )

    def kept_out(self, model_id: str) -> tuple[KeptOut, ...]:
        """Features that were kept out of the model's training and of which evidence was measured."""
        record = self.model(model_id)
        proxies, disparities = (self._measured(record, kind) for kind in (PROXIES, DISPARITY))
        goes_with, outcomes, bases = rows_of(proxies), rows_of(disparities), bases_of(proxies, disparities)
        return tuple(
            KeptOut(
                feature=name,
                proxies=goes_with.get(name),
                disparities=outcomes.get(name),
                proxies_on=bases.get((PROXIES, name)),
                disparities_on=bases.get((DISPARITY, name)),
            )
            for name in record.exclude
            if name in goes_with or name in outcomes
        )

    def _assessed(self, record: ModelRecord) -> ComplianceReport:
        """What the rules say of a model today, worked out once for a model, a day and a set of rules."""
        own, problems = read_own_packs(self.home / RULES)
        day, rules = date.today(), tuple(pack.model_dump_json() for pack in own)

        def made() -> ComplianceReport:
            usage = {
                row.feature: Usage(row.splits, row.trees, row.gain_share, row.cover_share)
                for row in self._importance(record)
            }
            packs = (*load_packs(), *own)
            return assess(self._partial_model(record).dictionary, usage, packs, on=day, problems=problems)

        return self._reports.get((record.content_hash, day, rules, problems), made)

    def _kept(self, model_id: str, kind: str) -> dict[str, Kept]:
        return self._measured(self.model(model_id), kind)

    def _measured(self, record: ModelRecord, kind: str) -> dict[str, Kept]:
        return self._catalogue.measurements(record.federation).of(record.content_hash, kind)

    def add_rule_pack(self, file: Path) -> RulePack:
        """Check a custom rule pack and apply it from now on; raises RulePackError with every problem found."""
        pack = add_rule_pack(file, self.home / RULES)
        for federation in self.federations():
            self._audit.note(federation.name, "rules", {"pack": pack.name, "version": pack.version})
        return pack

    def rule_packs(self) -> tuple[tuple[RulePack, ...], tuple[str, ...]]:
        """The built-in packs and one's own, and what is wrong with those that cannot be used."""
        own, problems = read_own_packs(self.home / RULES)
        return (*load_packs(), *own), tuple(problems)

    def samples(self, model_id: str) -> pd.DataFrame:
        """The Guest's own records with the part they had in training; no Host column."""
        record = self.model(model_id)
        runtime = self._catalogue.runtime(record.federation)
        frame = pd.DataFrame(dict(runtime.table.columns), index=pd.Index(runtime.table.ids, name="id", dtype="object"))
        part_of = self._part_of(record)
        frame["part"] = [part_of.get(i, "not in training") for i in runtime.table.ids]
        return frame

    def _part_of(self, record: ModelRecord) -> dict[str, str]:
        """Id of a joint record → the part it had in training; not to be changed in place."""

        def read() -> dict[str, str]:
            parts: dict[str, str] = json.loads(
                self._catalogue.guest_store(record.federation).artefact(f"{record.id}.parts")
            )
            return parts

        return self._parts.get((record.content_hash, record.created), read)

    def sample_of(self, model_id: str, sample_id: str) -> SampleSheet:
        """The Guest's record of a known id."""
        table = self._catalogue.runtime(self.model(model_id).federation).table
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

    def _test_ids(self, record: ModelRecord) -> list[str]:
        return [i for i, part in self._part_of(record).items() if part in ("test", JOINT)]

    def _test_rows(self, record: ModelRecord, runtime: FederationRuntime, samples: int, seed: int) -> NDArray[np.intp]:
        """Rows of the Guest's table: `samples` random test records."""
        test = self._test_ids(record)
        if not 0 <= samples <= len(test):
            raise ParameterError(f"{samples} test records were asked for; the model has {len(test):,}.")
        chosen = np.random.default_rng(seed).choice(len(test), size=samples, replace=False)
        return np.array([runtime.table.row_of[test[i]] for i in chosen], dtype=np.intp)

    def _context(self, record: ModelRecord) -> MeasurementContext:
        runtime = self._catalogue.runtime(record.federation)
        partial_model = self._compiled_model(record)
        return MeasurementContext(
            runtime, record, self._partial_model(record), partial_model, self._test_ids(record), self._workers
        )

    def _feature(self, record: ModelRecord, name: str) -> Feature:
        return next(f for _, f in self.federation(record.federation).features() if f.name == name)

    def _keep_measured(self, record: ModelRecord, kind: str, feature: str, rows: list[dict[str, Any]]) -> None:
        self._catalogue.measurements(record.federation).put(record.content_hash, kind, feature, Kept(rows, {}))
        body = {**audit.of_model(record), "feature": feature, "numbers": len(rows), "outcome": audit.DONE}
        self._audit.note(record.federation, kind, body)

    def _keep(self, record: ModelRecord, kind: str, feature: str, found: tuple[Evidence, ...], basis: Basis) -> None:
        kept = Kept([asdict(row) for row in found], asdict(basis))
        self._catalogue.measurements(record.federation).put(record.content_hash, kind, feature, kept)
        body = {**audit.of_model(record), "feature": feature, "numbers": len(found), "outcome": audit.DONE}
        self._audit.note(record.federation, kind, body)

    def _key_made(self, federation: str, cipher: str, bits: int) -> None:
        self._audit.note(federation, "key", {"cipher": cipher, "key_bits": bits}, tell=False)

    def _pack_versions(self, model_id: str) -> dict[str, str]:
        return {pack.name: pack.version for pack in self.compliance(model_id).packs}

    def dither(self, model_id: str) -> float:
        """Width on the margin of what the Hosts of a model add to every score; 0 = nothing."""
        record = self.model(model_id)
        partial_model = self._compiled_model(record)
        chain = [step.host for step in partial_model.guest.folding.steps]
        return math.ldexp(self._catalogue.runtime(record.federation).dither(chain), partial_model.outputs.scale)

    def close(self) -> None:
        """Stop all Hosts and background threads."""
        self._catalogue.close()
        self._workers.close()


def _read(text: str) -> ModelRecord:
    return read_record(json.loads(text))


def rows_of(kept: Mapping[str, Kept]) -> dict[str, tuple[Evidence, ...]]:
    """Feature → what was measured of it."""
    return {feature: tuple(Evidence(**row) for row in found.rows) for feature, found in kept.items()}


def bases_of(proxies: Mapping[str, Kept], disparities: Mapping[str, Kept]) -> dict[tuple[str, str], Basis]:
    """What each claim was measured on, where that was kept."""
    return {
        (claim, feature): Basis(**found.basis)
        for claim, kept in ((PROXIES, proxies), (DISPARITY, disparities))
        for feature, found in kept.items()
        if found.basis
    }
