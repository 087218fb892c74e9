"""How do I try Glassleaf on my own data, or bring a model of my own?"""

import streamlit as st

from app import session
from app.panels import controls, frame, own_data, own_model
from backend.errors import GlassleafError

OWN_DATA_WAYS = ("table", "model", "ready")

t = session.texts()
frame.header(t, "own_data", session.notices())
frame.outcome(t, session.outcome())
backend = session.service()
own_data.note(t)
way = controls.choice(t("own_data.way"), OWN_DATA_WAYS, "own_way", lambda name: t(f"own_data.way_{name}"))
federations = backend.federations.all()
try:
    if way == "table":
        own_data.table(t, backend.own_data)
    elif way == "ready":
        own_data.ready_made(
            t,
            backend.training.start_demo,
            backend.federations.start_credit_card,
            backend.federations.start_files,
        )
    elif federations:
        own_model.bring(t, federations, backend.model_import.outcomes, backend.model_import.start_upload)
    else:
        st.info(t("own_model.no_federation"), icon=":material/info:")
except GlassleafError as error:
    frame.problem(t, error)
if federations and way != "table":
    own_data.known(t, federations, backend.models.all)
