"""What does the model say about these people, and what was unusual?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import session, view_models
from app.panels import attention, costs, frame, person, policies, result, result_batch, run, upload
from app.panels.scoring import ScoringPanel
from app.texts import markdown
from backend.errors import GlassleafError
from backend.services.scoring import ScoringRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from backend.data.table import SampleSheet
    from backend.results import ScoreBatch
    from backend.services.job_registry import Upload

t = session.texts()
model_id = frame.model_or_stop(t, "people")

view = session.view(model_id)
backend = session.service()
panel = ScoringPanel(t, view, "people", session.samples(model_id))


def sheet_of(file: Upload) -> SampleSheet | None:
    """Draw what was read from a file; return it once its owner has said what the file leaves open."""
    take = partial(backend.samples.read, model_id, file.content, file.name)
    try:
        sheet = upload.read(t, "people", file.name, file.content, take)
    except GlassleafError as error:
        frame.problem(t, error)
        return None
    if sheet is not None:
        person.sheet(t, view, sheet)
        upload.account(t, "people_account", partial(backend.samples.account, model_id, sheet))
    return sheet


def question() -> Callable[[], None] | None:
    """Draw the field for the file, what was read, the cost and the button; return what asks for the scores."""
    file_column, sheet_column = st.columns([5, 6], gap="large")
    with file_column:
        file = person.upload(t, lambda: backend.samples.template(model_id))
        if file is None and panel.upload is not None:  # of a running scoring whose page was left
            file = panel.upload
            st.caption(f":material/attach_file: {t('jobs.upload', name=markdown(file.name))}")
    with sheet_column:
        sheet = sheet_of(file) if file is not None else None
        usable = sheet.usable if sheet is not None else 0
        cipher, bits = panel.cipher(max(1, usable))
        if usable:
            costs.line(t, view, backend.leakage.cost_of_answers(model_id), reasons=False)
        off = not usable or panel.running is not None
        offered = sheet is None or bool(usable)  # of a file without a usable row there is nothing to send
        pressed = offered and st.button(
            t("people.go"), type=frame.emphasis(), icon=":material/lock:", disabled=off, key="people_go"
        )

    def score() -> None:
        if sheet is not None:
            session.keep("typed", None)  # a file's values are not kept
            panel.begin(ScoringRequest(model_id, sheet, cipher=cipher, key_bits=bits, hold=True), upload=file)

    if pressed:
        score()
        session.rerun()
    return score if usable else None


def answered(ask: Callable[[], None] | None) -> ScoreBatch | None:
    """Draw what became of the last file; return its scores if there are any."""
    frame.refused(t, "people")
    job = panel.job
    if panel.running is not None:
        attention.to("people_answer", t("people.answer"), f"running:{id(panel.running)}", t("score.started"))
        panel.follow()
        return None
    batch = panel.last
    if batch is None:
        if job is not None and job.result is None:
            run.ended(t, job, again=ask)
        elif job is not None:
            st.info(t("score.other_model"), icon=":material/lock:")
        return None
    frame.section(t, "people.answer")
    unusual = st.container()
    figures = st.container()
    policy = session.policy(view)
    what_if = run.what_if_box(t, policy)
    batch = view_models.with_what_if(batch, what_if)
    with unusual:
        result_batch.unusual(t, view, batch)
    with figures:
        result_batch.draw(t, view, batch, view_models.speed(batch, view.model.guest))
        policies.line(t, policy)
        result_batch.histogram(t, view, batch)
    panel.received(batch)
    if panel.followed():
        token = f"done:{batch.run}:{batch.seconds}"
        attention.to("people_answer", t("people.answer"), token, result_batch.sentence(t, view, batch))
    frame.section(t, "score.table")
    result.take_home(t, batch, partial(backend.scoring.csv, batch))
    result_batch.table(t, view, batch)
    return batch


frame.header(t, "people", session.notices(), view.federation)
asking = question()
with st.container(key="people_answer"):
    scores = answered(asking)
if scores is not None:
    panel.how(scores)
