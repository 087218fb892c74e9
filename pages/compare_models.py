"""Which of two models, and what changed?"""

import streamlit as st

from app import session
from app.panels import frame, side_by_side

t = session.texts()
model_id = frame.model_or_stop(t, "compare_models")

view, backend = session.view(model_id), session.service()
before, after = backend.lineage(model_id)
relatives = [*after, *([before] if before else [])]
others = [*relatives, *(m for m in backend.models(view.record.federation) if m.id != model_id and m not in relatives)]
ids = [record.id for record in others]
key = session.bind("other", ids, ids[0] if ids else None)
frame.header(t, "compare_models", session.notices(), view.federation)
if not others:
    side_by_side.alone(t)
    st.stop()
side_by_side.choose(t, view, others, key, lambda: session.swap("model", "other"))
found = backend.side_by_side(model_id, session.publish("other"))
side_by_side.draw(t, view, found)
frame.section(t, "side_by_side.leaks_title")
side_by_side.leaks(t, found)
frame.section(t, "side_by_side.findings_title", "flag")
side_by_side.findings(t, view, found)
frame.section(t, "side_by_side.made_title")
side_by_side.made(t, view, found)
side_by_side.links(t, found)
