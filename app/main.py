"""The way between the pages: ``glassleaf run``, or ``python -m streamlit run app/dashboard.py`` in a clone."""

from __future__ import annotations

import sys
from functools import partial
from importlib.resources import files
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[1])
# In front of the folder that Streamlit was started in, which may hold another project's app/ or backend/.
if sys.path[0] != ROOT:
    sys.path.insert(0, ROOT)

import streamlit as st  # noqa: E402

from app import glossary, search, server_figures, session, user_jobs  # noqa: E402
from app.panels import finder, frame, links, navigation, sidebar, sign_in, tray, walk  # noqa: E402
from backend.errors import GlassleafError  # noqa: E402

ASSETS = Path(str(files("assets")))

server_figures.hide()
t = session.texts()
st.set_page_config(page_title="Glassleaf", page_icon=ASSETS / "mark.svg", layout="wide")
st.html(ASSETS / "page.css")
st.logo(ASSETS / "logo.svg", size="large", icon_image=ASSETS / "mark.svg")
with st.sidebar:
    frame.let_save(t)
try:
    if (why := session.why_out()) is not None:
        sign_in.draw(t, why)
        st.stop()
    role = session.role()
    here, page = navigation.find(t)
    session.arrive(here)
    if sign_in.from_elsewhere() and session.account() is None:
        sign_in.open_to_all(t)
    frame.broken(t, session.service().federations.broken())
    records = session.models()
    federations = {federation.name: federation for federation in session.service().federations.all()}
    states = session.service().models.states()
    user_jobs.new_draw()
    if not records and here == navigation.FIRST_PAGE:
        opening = session.opens_on()
    else:
        opening = ""
    if opening:
        links.go(opening)
    with st.sidebar:
        if records:
            first = session.service().models.opening() or records[0]
            key = session.bind("model", [record.id for record in records], first.id)
            sidebar.models(t, records, federations, states, key)
            session.publish("model")
        searching = finder.button(t)
        navigation.links(t, role)
        sidebar.footer(t, session.known_as(), session.roles())
        navigation.tell_browser(t, role, here, walked=not session.walking())
    st.html(ASSETS / "print.css")
    st.button("", icon=":material/refresh:", key="draw_again")  # unseen; assets/page.js presses it under another theme
    st.set_page_config(page_title=frame.tab_title(t, here, records, federations))
    session.note_sign_in()
    model_id = session.chosen_model()
    if searching:
        pages = [*navigation.listed(role), "help"]
        names = {
            record.id: frame.model_name(t, record, federations.get(record.federation), states[record.id].name)
            for record in records
        }
        view = session.view(model_id) if model_id else None
        find = partial(search.hits, search.everything(t, pages, names, view, glossary.terms()))
        sample_ids = session.samples(model_id).index if model_id and navigation.open_to("score", role) else ()
        finder.window(
            t,
            find,
            lambda typed: typed in sample_ids,
            partial(session.choose_person, model_id or ""),
        )
    if model_id and session.walking() and not session.presenting():
        walk.line(t, role, here, session.end_walk)
    places, others = tray.draw(t, here, model_id)
    if navigation.open_to(here, role):
        page.run()
    else:
        sidebar.not_for(t, here, navigation.FOR[here], session.known_as())
    if model_id and not session.presenting():
        navigation.next_step(t, role, here)
    if user_jobs.started():
        session.rerun()
    tray.follow(t, places, others)
except GlassleafError as error:
    frame.problem(t, error)
finally:
    session.depart()
