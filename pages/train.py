"""How is a model made; can I make another?"""

import streamlit as st

from app import session
from app.panels import frame, training
from backend.service import SecureBoostParameters, TrainingRequest

t = session.texts()
frame.header(t, "train", session.notices())
backend = session.service()
federations = {federation.name: federation for federation in backend.federations()}
if not federations:
    frame.empty(t, backend.prepare_demo, session.page("train"))
    st.stop()

job = session.job("train")
running = job is not None and job.state == "running"
left, right = st.columns([6, 5], gap="large")
with left:
    frame.section(t, "train.who", "federation")
    training.federation(t, list(federations.values()), session.remember("train_federation", list(federations)))
    federation = federations[session.kept("train_federation")]
    hosts, excluded = training.parties(t, federation)
    frame.section(t, "train.how", "tree")
    chosen = training.parameters(t)
    training.cost(t, federation, chosen["cipher"], chosen["trees"], session.models())
    go = st.button(
        t("train.go"),
        type=frame.emphasis(),
        icon=":material/model_training:",
        disabled=running or not hosts,
        key="train_go",
    )
if go:
    session.start(
        "train",
        lambda: backend.start_training(
            TrainingRequest(federation.name, SecureBoostParameters(**chosen), hosts=hosts, exclude=excluded)
        ),
    )
    session.rerun()


@st.fragment(run_every=0.5)
def live() -> None:
    """Follow the running job; when it ends, draw the whole page once."""
    training.live(t, session.job("train"), federation)
    if session.job("train").state != "running":
        session.rerun()


with right:
    frame.section(t, "train.progress", "log_loss")
    if session.refused("train"):
        frame.problem(t, session.refused("train"))
    if running:
        live()
    elif job is None:
        st.info(t("train.not_yet"), icon=":material/model_training:")
    else:
        training.finished(t, job)
