"""A Host's partial models: kept in its store, made ready for scoring once. No weight is in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from backend.crypto.interface import FoldPlan
from backend.errors import SecurityError
from backend.protocols.baselines.host_answers import HostPaths
from backend.protocols.scoring.fed_eini import CompiledHost, host_plan
from backend.trees.ensemble import HostModel
from backend.trees.folding import Step, fold_structure
from backend.trees.serialization import content_hash, dump_host, load_host


class HostStore(Protocol):
    """Where a Host keeps its halves of models."""

    def put_artefact(self, model_id: str, text: str, content_hash: str) -> None:
        """Store a half."""
        ...

    def artefact(self, model_id: str) -> str:
        """Read a half; raises ModelError where it is unknown or damaged."""
        ...


@dataclass(frozen=True, repr=False)
class ServedModel:
    """A model as this Host scores with it; `preceding` and `following` are its neighbours in the chain, the Guest at both ends."""

    model: HostModel
    step: Step
    compiled: CompiledHost
    plan: FoldPlan
    preceding: str
    following: str

    @cached_property
    def paths(self) -> HostPaths:
        """For the protocols that Fed-EINI is compared with."""
        return HostPaths(self.model)


class HostModels:
    """The halves of one Host.

    Parameters
    ----------
    host : str
    store : HostStore
    """

    def __init__(self, host: str, store: HostStore) -> None:
        self._host, self._store = host, store
        self._ready: dict[str, ServedModel] = {}

    def put(self, model: HostModel, model_id: str) -> str:
        """Keep a half; returns its content hash."""
        text = dump_host(model)
        self._store.put_artefact(model_id, text, content_hash(text))
        self._ready.pop(model_id, None)
        return content_hash(text)

    def get(self, model_id: str) -> ServedModel:
        """A half, ready for scoring.

        Raises
        ------
        ModelError
            It is unknown or damaged.
        SecurityError
            This Host owns no split of the model.
        """
        if model_id not in self._ready:
            model = load_host(self._store.artefact(model_id))
            folding = fold_structure(model.skeletons, model.guest, model.hosts)
            place = next((i for i, s in enumerate(folding.steps) if s.host == self._host), None)
            if place is None:
                raise SecurityError("This Host owns no split of the model, so it is not asked when somebody is scored.")
            step = folding.steps[place]
            ring = (model.guest, *(s.host for s in folding.steps), model.guest)
            compiled, plan = CompiledHost(step, model.rules), host_plan(folding, place)
            self._ready[model_id] = ServedModel(model, step, compiled, plan, ring[place], ring[place + 2])
        return self._ready[model_id]
