"""How is a model made; can I make another?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import session, user_jobs
from app.panels import frame, release, run, training
from backend.services.training import TrainingRequest

if TYPE_CHECKING:
    from backend.jobs import Job
    from backend.results import ModelRecord
    from backend.services.sealing import Sealed

t = session.texts()
frame.header(t, "train", session.notices())
backend = session.service()
federations = {federation.name: federation for federation in backend.federations.all()}
if not federations:
    frame.empty(t, backend.training.start_demo)
    st.stop()

job = user_jobs.find("train")
running = user_jobs.running(job)
who, how = st.columns(2, gap="large")
with who:
    frame.section(t, "train.who", "federation")
    training.federation(t, list(federations.values()), session.remember("train_federation", list(federations)))
    federation = federations[session.kept("train_federation")]
    task = federation.label.task
    hosts, excluded = training.parties(t, federation)
with how:
    frame.section(t, "train.algorithm", "tree")
    algorithm = training.algorithm(t, task)
growth, people = st.columns(2, gap="large")
with people:
    method = training.alignment(t, algorithm)
with growth:
    frame.section(t, "train.how", "leaf_weight")
    ordered = training.ordered(t, federation, hosts, excluded)
    columns = backend.training.weight_columns(federation.name, excluded)
    parameters = training.parameters(t, algorithm, task, method, ordered, columns)
    max_named, coarser, approved_trees = release.bound(t, algorithm)


def begin(request: TrainingRequest) -> None:
    """Start a training."""
    user_jobs.start("train", lambda: backend.training.start(request), about=request)


def change(model: Sealed, step: Callable[[], Job[ModelRecord]]) -> None:
    """Change a sealed model, and have it measured again."""
    user_jobs.start("train", step, about=TrainingRequest(model.record.federation, model.approved, model.record.hosts))
    session.rerun()


def discard(model: Sealed) -> None:
    """Delete a sealed model."""
    backend.sealed_models.discard(federation.name, model.record.id)
    session.rerun()


with people:
    frame.section(t, "train.start")
    if parameters is not None:
        training.cost(t, federation, parameters, session.models())
        request = TrainingRequest(federation.name, parameters, hosts, excluded, max_named, coarser, approved_trees)
        if hosts:
            release.foretold(t, backend.training.foretell(request))
    ready = hosts and parameters is not None and not running
    icon = ":material/model_training:"
    pressed = st.button(t("train.go"), type=frame.emphasis(), icon=icon, disabled=not ready, key="train_go")
    if pressed and parameters is not None:
        begin(request)
        job = user_jobs.find("train")
        running = user_jobs.running(job)
if job is not None or user_jobs.refused("train") is not None:
    with people:  # below the button, in view
        frame.section(t, "train.progress", "rmse" if task == "number" else "log_loss")
        job_request = user_jobs.about("train")
        whose = federations.get(job_request.federation, federation) if job_request else federation
        frame.refused(t, "train")
        if running:
            run.train(t, whose, running, job_request.parameters.ALGORITHM, session.rerun)
        elif job is not None and not release.refused(t, job):
            run.trained(t, whose, job, partial(begin, job_request) if job_request else None)

sealed = backend.sealed_models
steps = release.Steps(
    coarser=lambda model: change(model, partial(sealed.start_coarser, federation.name, model.record.id, model.bits)),
    grow=lambda model, trees: change(model, partial(sealed.start_growing, federation.name, model.record.id, trees)),
    measure=lambda model: change(model, partial(sealed.start_measuring, federation.name, model.record.id)),
    discard=discard,
)
release.sealed(t, sealed.all(federation.name), bool(running), steps)
models = backend.models.all(federation.name)
if models:
    frame.section(t, "train.models", "model")
    training.models(t, federation, models, backend.models.states())
    frame.fold(t("train.learned"), "visibility", "train_learned_box", partial(training.learned, t, models))
