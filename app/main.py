"""The way between the pages: ``python -m streamlit run app/main.py`` from the root of the repository."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

import streamlit as st  # noqa: E402

from app import session  # noqa: E402
from app.panels import frame, sidebar  # noqa: E402
from backend.errors import GlassleafError  # noqa: E402

ICONS = {
    "overview": "home",
    "features": "dictionary",
    "structure": "account_tree",
    "importance": "leaderboard",
    "compliance": "gavel",
    "score": "lock",
    "protocols": "flag",
    "train": "model_training",
}

t = session.texts()
st.set_page_config(page_title="Glassleaf", page_icon=ROOT / "assets" / "mark.svg", layout="wide")
st.logo(ROOT / "assets" / "logo.svg", size="large", icon_image=ROOT / "assets" / "mark.svg")
here = st.navigation(
    [
        st.Page(
            session.page(name),
            title=t(f"{name}.title"),
            icon=f":material/{icon}:",
            url_path=name,
            default=name == "overview",
            help=t(f"{name}.question"),
        )
        for name, icon in ICONS.items()
    ]
)
try:
    with st.sidebar:
        records = session.models()
        if records:
            federations = {federation.name: federation for federation in session.service().federations()}
            key = session.bind("model", [record.id for record in records], records[0].id)
            sidebar.models(t, records, federations, key)
            session.publish("model")
        sidebar.language(t, "language")
    here.run()
except GlassleafError as error:
    frame.problem(t, str(error))
