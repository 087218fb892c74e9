"""What was done with the models, by whom, and was the log changed?"""

from app import session
from app.panels import audit, frame

t = session.texts()
model_id = frame.model_or_stop(t, "audit")

view, backend = session.view(model_id), session.service()
federation = view.record.federation
frame.header(t, "audit", session.notices(), view.federation)
audit.verify(t, view, lambda: backend.audit.verify(federation))
entries = backend.audit.entries(federation)
frame.section(t, "audit.entries")
shown = audit.filters(t, entries, view.federation, view.record)
audit.chart(t, shown)
audit.table(t, shown)
audit.export(t, federation, lambda: backend.audit.export(federation))
