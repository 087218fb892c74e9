"""What was done with the models, by whom, and was the log changed?"""

from functools import partial

from app import session, user_jobs
from app.panels import audit, frame

t = session.texts()
model_id = frame.model_or_stop(t, "audit")

view = session.view(model_id)
backend = session.service()
federation = view.record.federation
frame.header(t, "audit", session.notices(), view.federation)
(checking,) = user_jobs.works(model_id, "audit")
audit.verify(t, view, checking, partial(backend.audit.start_verify, federation))
entries = backend.audit.entries(federation)
frame.section(t, "audit.entries")
matching = audit.filters(t, entries, view.federation, view.record)
audit.table(t, matching, frame.model_names(t, session.models(), view.federation))
audit.export(t, federation, lambda: backend.audit.export(federation))
