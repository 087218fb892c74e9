"""A model file brought along: to which federation it belongs, and what was proved about it before anything is kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import session, user_jobs
from app.panels import frame, links, run, upload
from app.texts import Texts, markdown, number
from backend.services.job_registry import Upload

if TYPE_CHECKING:
    from backend.data.federation import Federation
    from backend.jobs import Job
    from backend.services.model_import import Brought

    Bring = Callable[..., Job[Brought]]

IMPORT_JOB = "import"
TYPES = ["json", "ubj", "txt"]
MEGABYTES = 50


def bring(t: Texts, federations: Sequence[Federation], outcomes: Callable[[str], Sequence[str]], begin: Bring) -> None:
    """Choose a federation and a file; check it, or check and keep it."""
    st.markdown(t("own_model.hint"))
    by_name = {federation.name: federation for federation in federations}
    file_column, options_column = st.columns(2, gap="large")
    with file_column:
        name = st.selectbox(
            t("own_model.federation"),
            list(by_name),
            key=session.remember("own_model_federation", list(by_name)),
            format_func=t.federations(federations).__getitem__,
            help=t("glossary.federation"),
        )
        file = upload.file(t, t("own_model.file"), "own_model_file", MEGABYTES, TYPES)
    with options_column:
        options = _options(t, by_name[name], outcomes)
    job = user_jobs.find(IMPORT_JOB)
    idle = file is not None and user_jobs.running(job) is None
    with st.container(horizontal=True):
        checked = st.button(t("own_model.check"), icon=":material/fact_check:", disabled=not idle, key="own_check")
        imported = st.button(
            t("own_model.import"), type=frame.emphasis(), icon=":material/add:", disabled=not idle, key="own_import"
        )
    if file is not None and (checked or imported):
        data = file.getvalue()
        user_jobs.start(
            IMPORT_JOB, lambda: begin(name, file.name, data, keep=imported, **options), upload=Upload(file.name, data)
        )
        session.rerun()
    if frame.refused(t, IMPORT_JOB):
        return
    if job is not None:
        _job(t, job)


def _job(t: Texts, job: Job[Brought]) -> None:
    """Draw how far the checks are, or what became of them."""
    file = user_jobs.upload(IMPORT_JOB)
    if file is not None:
        st.caption(f":material/description: {t('importing.kept', name=markdown(file.name))}")
    if job.state == "running":
        frame.follow(t, job, partial(_stage, t), "import", session.rerun)
    elif job.state == "done" and job.result is not None:
        _proof(t, job.result)
    else:
        run.ended(t, job)


def _stage(t: Texts, stage: str) -> str:
    key = f"importing.stage_{stage}"
    return t(key if t.has(key) else f"stage.{stage}")


def _options(t: Texts, federation: Federation, outcomes: Callable[[str], Sequence[str]]) -> dict[str, Any]:
    """What a file may leave open."""
    with st.expander(t("own_model.options"), icon=":material/tune:", key="own_model_options"):
        names = st.text_area(
            t("own_model.features"), key="own_model_features", help=t("own_model.features_help"), max_chars=100_000
        )
        categories = upload.file(t, t("own_model.categories"), "own_model_categories", 5, ["json"])
        bits = st.number_input(
            t("own_model.score_bits"), 4, 24, 10, key="own_model_bits", help=t("own_model.bits_help")
        )
        most_named = st.number_input(
            t("release.max_share"),
            min_value=0.0,
            max_value=100.0,
            value=None,
            step=1.0,
            format="%g",
            key="own_model_max_named",
            help=t("own_model.max_share_help"),
            placeholder=t("release.usual"),
        )
        label_is = None
        if federation.label.task == "binary":
            label_is = st.selectbox(
                t("own_model.label_is"),
                outcomes(federation.name),
                index=None,
                key=f"own_model_label_{federation.name}",
                placeholder=t("own_model.label_is_open"),
                help=t("own_model.label_is_help", label=markdown(t.label(federation))),
            )
    features = [part.strip() for part in names.replace("\n", ",").split(",") if part.strip()]
    return {
        "features": features or None,
        "categories": None if categories is None else categories.getvalue(),
        "score_bits": int(bits),
        "label_is": label_is,
        "most_named": None if most_named is None else most_named / 100,
    }


def _proof(t: Texts, imported: Brought) -> None:
    """Draw what was shown: on how many records, against what, and how far apart."""
    proof = imported.proof
    with st.container(border=True):
        st.markdown(f":material/verified: **{t('own_model.proved', file=markdown(imported.file))}**")
        if proof.against:
            against = t("own_model.by_library", library=markdown(proof.against))
        else:
            against = t("own_model.by_model")
        counts = {"rows": f"{proof.rows:,}", "against": against}
        st.markdown(t("own_model.proof", **counts, difference=f"{proof.difference:.2g}", bound=f"{proof.bound:.2g}"))
        if not math.isnan(proof.auc):
            st.markdown(t("own_model.auc", auc=number(proof.auc)), help=t("glossary.auc"))
        for note in proof.notes:
            st.caption(f":material/info: {frame.explained(t, note)}")
        if not imported.model_id:
            st.caption(t("own_model.not_kept"))
        else:
            st.markdown(t("own_model.kept"))
            links.to_model(imported.model_id, t("own_model.open"))
