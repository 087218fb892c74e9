"""The models of a home: their records, the Guest's partial models, and the rows that they were trained and tested on.

The only place that knows how models are stored; what a Host keeps of a model never comes here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from backend.data.id_forms import KnownIds
from backend.errors import ModelError, ParameterError
from backend.i18n import Text
from backend.results import DEMO, JOINT, ModelRecord, read_record
from backend.services.cache import Cache

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from backend.data.dictionary import Feature
    from backend.data.table import SampleSheet
    from backend.explain.contribution import Expectation
    from backend.protocols.scoring.fed_eini import CompiledGuest
    from backend.services.workspace import Workspace
    from backend.store.measurements import Kept
    from backend.store.schema import ModelState
    from backend.trees.ensemble import GuestModel
    from backend.trees.outputs import Outputs

RECORDS_KEPT = 256  # records of models that are read once
DERIVED_KEPT = 96  # partial models and what follows from them: some six things of sixteen models
NONE_YET = Text("none yet; train one first", "暂无，请先训练")
T = TypeVar("T")


def _is_demo(record: ModelRecord) -> bool:
    """Return whether a model is of the built-in federation: next to a bank's own it is never the one that is meant."""
    return record.federation == DEMO


class Compiled:
    """The forms of the Guest's partial model that are worked out once, for all scorings."""

    guest: CompiledGuest
    expectation: Expectation
    outputs: Outputs
    known_codes: Mapping[str, frozenset[str]]

    def __init__(self, model: GuestModel) -> None:
        from backend.explain.contribution import Expectation  # noqa: PLC0415 (a list of models needs neither)
        from backend.protocols.scoring.fed_eini import CompiledGuest  # noqa: PLC0415

        self.guest = CompiledGuest(model)
        self.expectation = Expectation(model)
        self.outputs = model.outputs
        self.known_codes = model.known_codes


class Registry:
    """Models by id."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._records: Cache[ModelRecord] = Cache(RECORDS_KEPT)  # by their stored text
        self._derived: Cache[object] = Cache(DERIVED_KEPT)  # by kind and content hash: a partial model never changes

    def all(self, federation: str | None = None) -> list[ModelRecord]:
        """Records of all models, newest first."""
        if federation:
            names = [federation]
        else:
            names = [f.name for f in self._workspace.federations()]
        texts = [text for name in names for text in self._workspace.guest_store(name).records()]
        records = [self._records.get(text, partial(_read, text)) for text in texts]
        return sorted(records, key=lambda r: r.created, reverse=True)

    def with_sealed(self, federation: str) -> list[ModelRecord]:
        """Return records of a federation's models, also of those that were not released: for erasing a person."""
        sealed = []
        for sealed_model in self._workspace.sealed_models(federation).all():
            sealed.append(json.dumps(sealed_model.body))
        return self.all(federation) + [_read(text) for text in sealed]

    def get(self, model_id: str) -> ModelRecord:
        """Return a model by id, unique beginning of an id, or ``latest``.

        Raises
        ------
        ModelError
            No model, or more than one, has such an id.
        """
        names = [federation.name for federation in self._workspace.federations()]
        texts = [text for name in names if (text := self._workspace.guest_store(name).record(model_id)) is not None]
        if len(texts) == 1:  # nearly always, and every page asks many times
            return self._records.get(texts[0], partial(_read, texts[0]))
        records = self.all()
        if model_id == "latest" and records:
            newest = min(records, key=_is_demo)  # of the bank's own federations if they have any
            if _is_demo(newest) and self._workspace.has_beside(DEMO):
                raise ModelError("latest_beside_demo", model=newest.id)
            return newest
        exact = [record for record in records if record.id == model_id]
        matching = exact or [record for record in records if record.id.startswith(model_id)]
        if len(matching) == 1:
            return matching[0]
        known_models = tuple(record.id for record in records[:5]) or NONE_YET
        if matching:
            raise ModelError("ambiguous_model", model=model_id, count=len(matching), known=known_models)
        broken = tuple(self._workspace.broken())  # names alone: programs read this, too
        if broken:
            raise ModelError("unknown_model_broken", model=model_id, known=known_models, broken=broken)
        raise ModelError("unknown_model", model=model_id, known=known_models)

    def states(self) -> dict[str, ModelState]:
        """Model → what it is called and how far it has come (:mod:`backend.services.lifecycle`)."""
        names = (federation.name for federation in self._workspace.federations())
        return {model: state for name in names for model, state in self._workspace.model_states(name).all().items()}

    def opening(self) -> ModelRecord | None:
        """Return the model that pages open on: the newest in use, else the newest that is not retired; None without models."""
        states = self.states()
        records = self.all()
        ranks = {"in_use": 0, "retired": 2}

        def order(record: ModelRecord) -> tuple[bool, int]:
            return _is_demo(record), ranks.get(states[record.id].state, 1)

        return min(records, key=order, default=None)

    def lineage(self, model_id: str) -> tuple[ModelRecord | None, tuple[ModelRecord, ...]]:
        """Return the model that a model was retrained from (None if it is gone), and those retrained from it, newest first."""
        record = self.get(model_id)
        others = self.all(record.federation)
        predecessor = next((m for m in others if m.id == record.retrained_from), None)
        return predecessor, tuple(m for m in others if m.retrained_from == record.id)

    def guest_model(self, model_id: str) -> GuestModel:
        """Return the Guest's partial model."""
        return self.partial_model(self.get(model_id))

    def partial_model(self, record: ModelRecord) -> GuestModel:
        """Return the Guest's partial model of a record."""

        def load() -> GuestModel:
            from backend.trees.serialization import load_guest  # noqa: PLC0415 (a list of models reads none)

            return load_guest(self._workspace.guest_store(record.federation).artefact(record.id))

        return self.derived("partial model", record, load)

    def compiled(self, record: ModelRecord) -> Compiled:
        """Return the Guest's partial model, ready to score with."""
        return self.derived("compiled", record, lambda: Compiled(self.partial_model(record)))

    def derived(self, kind: Hashable, record: ModelRecord, make: Callable[[], T]) -> T:
        """Return what follows from a partial model alone, made once; `kind` stands for one type."""
        return cast(T, self._derived.get((kind, record.content_hash), make))

    def register(self, record: ModelRecord, model: GuestModel, part_of: Mapping[str, str], maker: str) -> None:
        """Store a new model, a draft of `maker`: the partial model, the part of every joint record, then the record that names both."""
        from backend.trees.serialization import dump_guest  # noqa: PLC0415 (as above)

        store = self._workspace.guest_store(record.federation)
        with self._workspace.database(record.federation).write():
            store.put_artefact(parts_of(record), json.dumps(dict(part_of)))
            store.put_artefact(record.id, dump_guest(model))
            store.put_record(record.id, asdict(record))
            self._workspace.model_states(record.federation).begin(record.id, maker)

    def part_of(self, record: ModelRecord) -> dict[str, str]:
        """Id of a joint record → the part it had in training; not to be changed in place."""
        store = self._workspace.guest_store(record.federation)

        def read() -> dict[str, str]:
            return cast(dict[str, str], json.loads(store.artefact(parts_of(record))))

        # by what is stored: a person may have been erased since
        return self.derived(("parts", store.content_hash(parts_of(record))), record, read)

    def joint_ids(self, record: ModelRecord) -> KnownIds:
        """Return the ids of joint records, which every Host had when the model was trained or imported."""
        version = self._workspace.guest_store(record.federation).content_hash(parts_of(record))
        return self.derived(("joint ids", version), record, lambda: KnownIds(tuple(self.part_of(record))))

    def forget(self, record: ModelRecord, person: str) -> None:
        """Take a person out of the parts of a model's joint records; metrics and counts stay those of the training."""
        with self._workspace.database(record.federation).write():
            parts = {i: part for i, part in self.part_of(record).items() if i != person}
            self._workspace.guest_store(record.federation).put_artefact(parts_of(record), json.dumps(parts))

    def test_ids(self, record: ModelRecord) -> list[str]:
        """Records that the model was not trained on; any joint ones of an imported model."""
        return [i for i, part in self.part_of(record).items() if part in ("test", JOINT)]

    def test_rows(self, record: ModelRecord, samples: int, seed: int) -> NDArray[np.intp]:
        """``(samples,)`` rows of the Guest's table: random test records.

        Raises
        ------
        ParameterError
            There are fewer.
        """
        import numpy as np  # noqa: PLC0415 (as above)

        row_of = self._workspace.runtime(record.federation).table.row_of
        test = [i for i in self.test_ids(record) if i in row_of]
        if not 0 <= samples <= len(test):
            raise ParameterError("test_records_missing", samples=samples, available=len(test))
        selected = np.random.default_rng(seed).choice(len(test), size=samples, replace=False)
        return np.array([row_of[test[i]] for i in selected], dtype=np.intp)

    def feature(self, record: ModelRecord, name: str) -> Feature:
        """Return the dictionary's entry of a feature of the model's federation."""
        return next(f for _, f in self._workspace.federation(record.federation).features() if f.name == name)

    def measured(self, record: ModelRecord, kind: str) -> dict[str, Kept]:
        """Feature → what was measured of the model, of one kind."""
        return self._workspace.measurements(record.federation).of(record.content_hash, kind)

    def dither(self, model_id: str) -> float:
        """Width on the margin of what the Hosts of a model add to every score; 0 = nothing."""
        record = self.get(model_id)
        compiled = self.compiled(record)
        chain = [step.host for step in compiled.guest.folding.steps]
        return math.ldexp(self._workspace.runtime(record.federation).dither(chain), compiled.outputs.scale)

    def candidate_leaves(self, model_id: str, tree: int, sample: SampleSheet) -> tuple[int, ...]:
        """Node numbers of the leaves that the Guest cannot rule out for the sheet's first row."""
        import numpy as np  # noqa: PLC0415 (as above)

        from backend.trees.compiled import candidate_leaves  # noqa: PLC0415 (as above)

        model = self.guest_model(model_id)
        if not 0 <= tree < len(model.trees):
            raise ModelError("unknown_tree", last=len(model.trees) - 1, tree=tree)
        first = sample.guest.take(np.array([0], dtype=np.intp))
        possible = candidate_leaves(model.skeletons, model.rules, first.columns, 1)[tree][0]
        return tuple(leaf for leaf, k in zip(model.trees[tree].leaves, possible, strict=True) if k)


def parts_of(record: ModelRecord) -> str:
    """Name of the artefact that holds the part of every joint record."""
    return f"{record.id}.parts"


def _read(text: str) -> ModelRecord:
    return read_record(json.loads(text))
