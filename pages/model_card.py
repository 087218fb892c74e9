"""How good is it, and on whom was that measured?"""

from functools import partial

import streamlit as st

from app import session, user_jobs
from app.panels import frame, model_card, model_card_charts, model_moves, offers
from backend.services.model_card import CardRequest

t = session.texts()
model_id = frame.model_or_stop(t, "model_card")

view = session.view(model_id)
backend = session.service()
(scoring,) = user_jobs.works(model_id, "card")
frame.header(t, "model_card", session.notices(), view.federation)
with st.spinner(t("card.drawing")):
    card = backend.model_cards.get(model_id)  # after the job's state: never older
if card.parts:
    frame.section(t, "card.how_good", "bootstrap")
    part = model_card.part(t, card)
    model_card.figures(t, view, card, part)
    model_card_charts.draw(t, view, part)
else:
    st.info(t("card.none"), icon=":material/fact_check:")
if card.shifts:
    frame.fold(
        t("card.stability"),
        "show_chart",
        "card_stability_box",
        partial(model_card.stability, t, view, card.shifts),
    )
frame.fold(t("card.identity"), "badge", "card_identity_box", partial(model_card.identity, t, view, card))
offers.button(t, view, scoring, "card.go", lambda: backend.model_cards.start(CardRequest(model_id)))
st.caption(t("card.again_why"))
model_moves.draw(t, backend.model_packs, view.federation.name, model_id)
