"""What does the model know about people, and from whom?"""

from functools import partial

import streamlit as st

from app import session
from app.panels import dictionary, dossiers, feature_card, frame

t = session.texts()
model_id = frame.model_or_stop(t, "features")

view = session.view(model_id)
names = [row.feature for row in view.importance]
key = session.bind("feature", names, names[0])
session.adopt("search", "features_search", clear=dictionary.FILTER_KEYS)
frame.header(t, "features", session.notices(), view.federation)
frame.outcome(t, session.outcome(), far=True)
filters = dictionary.filters(t, view)
session.announce("search", filters.typed)
rows = dictionary.matching(view, filters)
row_names = [feature.name for _, feature in rows]


def select() -> None:
    """Open the card of the row that was clicked."""
    row = session.selected_row("features_table")
    if row is not None and row < len(row_names):
        session.choose("feature", row_names[row])


st.markdown(dictionary.summary(t, view, len(rows)))
if filters.secureboost:
    dictionary.lost(t, view)
if rows:
    dictionary.table(t, view, rows, filters.secureboost, select)
else:
    st.info(t("features.none"), icon=":material/search_off:")
frame.section(t, "features.closer")
dictionary.picker(t, view, names, filters.secureboost, key)
feature = session.publish("feature") or names[0]
if filters.secureboost and view.model.owner_of(feature) != view.model.guest:
    st.info(t("features.card_hidden"), icon=":material/visibility_off:")
else:
    feature_card.card(t, view, feature)
if view.model.hosts:
    backend = session.service()
    name = view.federation.name
    frame.section(t, "dossier.title")
    signed = backend.dossiers.of(name)
    lacking = backend.dossiers.lacking(name)
    dossiers.panel(t, view, signed, lacking, session.attempt, partial(backend.dossiers.take, name))
