"""What do I file, and can I verify it?"""

import streamlit as st

from app import session
from app.panels import frame, report

t = session.texts()
model_id = session.chosen_model()
if model_id is None:
    frame.header(t, "report", session.notices())
    frame.empty(t, session.service().prepare_demo, session.page("train"))
    st.stop()

view, backend = session.view(model_id), session.service()
frame.header(t, "report", session.notices(), view.federation)
frame.told(t, session.told())
made = backend.report(model_id)
report.files(t, model_id, backend.export_report, backend.language_of_pdf(t.language))
frame.section(t, "report.first_page")
report.answers(t, backend.report_answers(made, t.language))
frame.section(t, "report.used", "gain")
report.features(t, view, made)
frame.section(t, "report.decide")
report.decisions(t, view, made, session.attempt, lambda **given: backend.review(model_id, **given))
frame.section(t, "report.sign")
report.sign_offs(t, made, session.attempt, lambda **given: backend.sign_off(model_id, **given))
frame.section(t, "report.check")
report.check(t, made, backend.check_report)
