"""Who learned what?"""

from functools import partial

import streamlit as st

from app import session, user_jobs
from app.panels import frame, links, navigation, person, privacy, release, run
from backend.errors import GlassleafError

t = session.texts()
model_id = frame.model_or_stop(t, "privacy")

view = session.view(model_id)
backend = session.service()
frame.header(t, "privacy", session.notices(), view.federation)

frame.section(t, "privacy.ledger", "table_two")
last = user_jobs.newest("score", "people")
batch = last.result if last is not None and last.result is not None and last.result.model_id == model_id else None
if batch is None and not navigation.open_to("score", session.role()):
    roles = t.listed([t(f"sidebar.role_{role}") for role in navigation.FOR["score"]])
    st.info(t("privacy.run_of_others", roles=roles), icon=":material/lock:")
    links.page("report", t("report.title"), "description")
elif batch is None:
    of_other_model = last is not None and last.result is not None
    st.info(t("privacy.other_model" if of_other_model else "privacy.no_run"), icon=":material/lock:")
    links.page("score", t("privacy.to_score"))
else:
    rows, lines = backend.leakage.disclosures(batch)
    privacy.table_two(t, view, batch, rows, lines)
    privacy.fields(t, view, lines)

typed = session.kept("typed")
# an upload's values are not kept
sample_ids = session.samples(model_id).index
entered = typed.ids if typed is not None else ()
scored = [score for score in batch.scores if score.scored] if batch else []
scores = [score for score in scored if score.id in sample_ids or score.id in entered]
if batch is not None:
    frame.section(t, "privacy.meter", "leak_meter")
if batch is not None and not scores:
    st.info(t("privacy.not_held"), icon=":material/speed:")
elif batch is not None:
    score = privacy.person(t, scores)
    read = session.kept("leak", (None, None, None))
    count = partial(backend.leakage.meter, model_id, score, typed, batch.dither)
    try:
        if read[0] is not score:
            bound = backend.leakage.bound(model_id, score, typed, batch.dither)
            read = score, count() if bound.countable else None, bound
            session.keep("leak", read)
        if read[1] is not None:
            privacy.reading(t, score, read[1])
        elif privacy.bounded(t, score, read[2]):
            session.keep("leak", (score, count(), read[2]))
            session.rerun()
    except GlassleafError as error:
        frame.problem(t, error)

apart = view.federation.link is not None  # Hosts are at their own companies
frame.section(t, "privacy.told", "given_away")
if apart:
    st.info(t("linked.told"), icon=":material/domain:")
else:
    ids = person.options(session.samples(model_id), session.kept("sample"))
    person_id = person.known(t, ids, session.remember("privacy_told", ids)) if ids else ""
    try:
        privacy.told(t, view, backend.leakage.given_away(model_id, person_id), person_id)
    except GlassleafError as error:
        frame.problem(t, error)

frame.section(t, "privacy.widths", "score_bits")
if apart:
    st.info(t("linked.widths"), icon=":material/domain:")
else:
    release.before(t, view.record)
    job = user_jobs.find(f"leak:{model_id}")
    running = user_jobs.running(job)
    points = (job.result if job is not None else None) or ()
    if not points and not running:
        st.caption(t("privacy.widths_hint"))

    def measure() -> None:
        """Start measuring what narrower scores would leak."""
        user_jobs.start(f"leak:{model_id}", lambda: backend.leakage.start_curve(model_id))

    if st.button(
        t("privacy.go"), type=frame.emphasis(), icon=":material/speed:", disabled=bool(running), key="privacy_go"
    ):
        measure()
        job = user_jobs.find(f"leak:{model_id}")
        points = ()
        running = user_jobs.running(job)
    if running:
        privacy.follow(t, running, points, session.rerun)
    if points:
        privacy.curve(t, view, points)
    if job is not None:
        run.ended(t, job, "privacy.cancelled", again=measure)

if not apart:
    frame.section(t, "privacy.frontier", "dither")
    work = user_jobs.find(f"frontier:{model_id}")
    working = user_jobs.running(work)
    tradeoff = (work.result if work is not None else None) or ()
    if not tradeoff and not working:
        st.caption(t("privacy.frontier_hint"))
    if st.button(t("privacy.go"), icon=":material/balance:", disabled=bool(working), key="frontier_go"):
        user_jobs.start(f"frontier:{model_id}", lambda: backend.leakage.start_tradeoff(model_id))
        work = user_jobs.find(f"frontier:{model_id}")
        tradeoff = ()
        working = user_jobs.running(work)
    if working:
        privacy.follow(t, working, tradeoff, session.rerun, "frontier")
    if tradeoff and not working:
        privacy.frontier(t, view, tradeoff, backend.models.dither(model_id))
    if work is not None and work.state in ("failed", "cancelled"):
        frame.problem(t, work.failure or "")
