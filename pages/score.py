"""What does the model say about this person, and why?"""

from functools import partial

import streamlit as st

from app import session, view_models
from app.panels import engine, frame, person, reasons, result, run
from app.texts import markdown
from backend.errors import GlassleafError
from backend.services.reasons import ReasonsRequest
from backend.services.scoring import ScoringRequest

t = session.texts()
model_id = frame.model_or_stop(t, "score")

view, backend = session.view(model_id), session.service()
frame.header(t, "score", session.notices(), view.federation)
people = session.samples(model_id)
sheet = done = given = None
left, right = st.columns([5, 7], gap="large")
with left:
    frame.section(t, "score.who", "sample")
    held = session.upload("score")  # of a running job that was left
    if held is not None and session.once("held_upload", held.name):
        session.choose("score_way", "upload")
    way = person.way(t)
    chosen = session.kept("sample")
    try:
        if way == "pick":
            if chosen := person.pick(t, view, people, session.remember, session.draw):
                sheet = backend.samples.of_person(model_id, chosen)
                person.card(t, view, person.row(people, chosen))
        elif way == "type":
            start = person.row(people, chosen) if chosen in people.index else None
            sheet = backend.samples.typed_in(model_id, *person.typed(t, view, start))
        elif (given := person.upload(t, lambda: backend.samples.template(model_id)) or held) is not None:
            if given is held:
                st.caption(f":material/attach_file: {t('jobs.upload', name=markdown(given.name))}")
            sheet = backend.samples.read(model_id, given.content)
            person.sheet(t, view, sheet)
    except GlassleafError as error:
        frame.problem(t, str(error))

with right:
    frame.section(t, "score.answer", "probability")
    speeds = session.speeds(model_id, view.model.guest)
    cipher, bits = engine.pick(t, speeds, one_output=view.model.outputs.slots(view.record.n_trees) == 1)
    engine.hint(t, cipher, len(sheet.ids) if sheet else 0, speeds)
    if cipher == "paillier":
        backend.federations.warm_up(view.record.federation, bits)
    cutoff = run.cutoff(t, view.task)
    job, why = session.job("score"), session.job("reasons")
    running = session.running(job)
    idle = sheet is not None and not running
    icon = ":material/lock:"
    pressed = st.button(t("score.go"), type=frame.emphasis(), icon=icon, disabled=not idle, key="score_go")
    if pressed and sheet is not None:
        request = ScoringRequest(model_id, sheet, cutoff, cipher, bits, hold=True)
        session.keep("typed", sheet if way == "type" else None)  # for the leak meter; uploads are not kept
        session.start("score", lambda: backend.scoring.start(request), upload=given)
        job = session.job("score")
        running = session.running(job)
    pools = partial(run.pools, t, view, partial(backend.federations.pools, view.record.federation), cipher)
    if (why is not None and why.state == "running") or (not running and session.busy()):
        pools()
    elif not running:
        run.pools_filling(pools)
    if session.refused("score"):
        frame.problem(t, session.refused("score"))
    if running:
        run.follow(t, view, running, lambda: session.progress("score"), session.rerun, pools)
    elif job is None:
        st.info(t("score.not_yet"), icon=":material/lock:")
    elif job.result is None:
        run.ended(t, job)
    elif job.result.model_id == model_id:
        done = view_models.decided(job.result, cutoff)
        result.draw(t, view, done, partial(backend.scoring.csv, done))
        if session.once("handed_over", done.run):
            backend.scoring.handed_over(done)
        if reasons.asked(t, view, done, sheet, why) and sheet is not None:
            wanted = ReasonsRequest(model_id, sheet, cutoff=cutoff, cipher=cipher, key_bits=bits, scored=done)
            session.start("reasons", lambda: backend.reasons.start(wanted))
            session.rerun()
        reasons.draw(t, view, done, why, backend.reasons.notice, session.rerun)
    else:
        st.info(t("score.other_model"), icon=":material/lock:")
if done is not None:
    slot, textbook_bits = result.below(t, view, done), engine.textbook_bits(done)
    result.textbook(t, slot, done, backend.models.textbook_seconds(model_id, textbook_bits), textbook_bits)
