"""A forest served for a user while one of its workers is lost, in the simulation (:mod:`backend.research.baselines.forest_trial`)."""

from __future__ import annotations

from dataclasses import replace

from backend.jobs import Job
from backend.research.baselines.forest_trial import ServedBatch, ServingRequest, ServingTrial, check, serve
from backend.services.audit import Auditor, Note, recorded
from backend.services.registry import Registry
from backend.services.workspace import Workspace

__all__ = ["ForestServing", "ServedBatch", "ServingRequest", "ServingTrial"]


class ForestServing:
    """Serves forests, in the simulation."""

    def __init__(self, workspace: Workspace, models: Registry, auditor: Auditor) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor

    def start(self, request: ServingRequest) -> Job[ServingTrial]:
        """Serve a forest in the background while one of its workers is lost; see :class:`ServingRequest`."""
        return Job[ServingTrial](lambda job: self._serve(request, job), request.batches).start()

    @recorded("serve")
    def _serve(self, note: Note, request: ServingRequest, job: Job[ServingTrial]) -> ServingTrial:
        record = self._models.get(request.model_id)
        runtime = self._workspace.runtime(record.federation)
        check(request, len(self._models.test_ids(record)))
        people = runtime.table.take(self._models.test_rows(record, request.samples, request.seed))
        note.about(record, rows=request.samples, batches=request.batches)
        return serve(
            self._models.partial_model(record),
            replace(request, model_id=record.id),
            people,
            lambda hosts: runtime.open_session(hosts, job.cancelled, counted=False, purpose="serving"),
            job,
        )
