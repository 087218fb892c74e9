"""The way between the pages: ``glassleaf run``, or ``python -m streamlit run app/main.py`` in a clone."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[1])
# In front of the folder that Streamlit was started in, which may hold another project's app/ or backend/.
if sys.path[0] != ROOT:
    sys.path.insert(0, ROOT)

import streamlit as st  # noqa: E402

from app import session  # noqa: E402
from app.panels import frame, sidebar  # noqa: E402
from backend.errors import GlassleafError  # noqa: E402
from backend.services.audit import ANALYST, OPERATOR, REGULATOR, ROLES  # noqa: E402

ICONS = {
    "overview": "home",
    "features": "dictionary",
    "structure": "account_tree",
    "importance": "leaderboard",
    "model_card": "fact_check",
    "compliance": "gavel",
    "compare_models": "compare_arrows",
    "score": "lock",
    "privacy": "visibility",
    "protocols": "flag",
    "attack_lab": "bug_report",
    "train": "model_training",
    "report": "description",
    "audit": "receipt_long",
}
FIRST = {REGULATOR: ("report", "audit")}  # role: pages that stand above the others
FOR = {
    "train": (OPERATOR,),
    "score": (OPERATOR, ANALYST),
}  # page: whose it is; a courtesy, for roles are not authenticated

ASSETS = Path(str(files("assets")))

t = session.texts()
st.set_page_config(page_title="Glassleaf", page_icon=ASSETS / "mark.svg", layout="wide")
st.html(ASSETS / "page.css")
st.logo(ASSETS / "logo.svg", size="large", icon_image=ASSETS / "mark.svg")
if session.signed_in() is False:
    sidebar.sign_in(t)
    st.stop()
role = session.role()
first = FIRST.get(role, ())
here = st.navigation(
    [
        st.Page(
            session.page(name),
            title=t(f"{name}.title"),
            icon=f":material/{icon}:",
            url_path=name,
            default=name == "overview",
            help=t(f"{name}.question"),
            visibility="visible" if role in FOR.get(name, ROLES) else "hidden",
        )
        for name, icon in sorted(ICONS.items(), key=lambda item: item[0] not in first)
    ],
    expanded=True,
)
try:
    frame.broken(t, session.service().federations.broken())
    with st.sidebar:
        records = session.models()
        if records:
            federations = {federation.name: federation for federation in session.service().federations.all()}
            key = session.bind("model", [record.id for record in records], records[0].id)
            sidebar.models(t, records, federations, key)
            session.publish("model")
        sidebar.language(t, "language")
        sidebar.role(t, "role", session.account())
        sidebar.version()
    session.note_sign_in()
    if role in FOR.get(here.url_path, ROLES):
        here.run()
    else:
        sidebar.not_for(t, FOR[here.url_path])
except GlassleafError as error:
    frame.problem(t, str(error))
