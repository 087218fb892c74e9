"""What does the model say about this person, and why?"""

from functools import partial

import streamlit as st

from app import session, view_models
from app.panels import engine, frame, person, reasons, result, run, upload
from backend.errors import GlassleafError
from backend.services.reasons import ReasonsRequest
from backend.services.scoring import ScoringRequest

t = session.texts()
model_id = frame.model_or_stop(t, "score")

view, backend = session.view(model_id), session.service()
frame.header(t, "score", session.notices(), view.federation)
people = session.samples(model_id)
sheet = done = None
left, right = st.columns([5, 7], gap="large")
with left:
    frame.section(t, "score.who", "sample")
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
        elif (file := person.upload(t, lambda: backend.samples.template(model_id))) is not None:
            take = partial(backend.samples.read, model_id, file.getvalue(), file.name)
            sheet = upload.read(t, "score", file.name, take)
            if sheet is not None:
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
    if (
        (sheet is None or sheet.usable)
        and st.button(t("score.go"), type=frame.emphasis(), icon=":material/lock:", disabled=not idle, key="score_go")
        and sheet is not None
    ):
        request = ScoringRequest(model_id, sheet, cutoff, cipher, bits, hold=True)
        session.keep("typed", sheet if way == "type" else None)  # for the leak meter; uploads are not kept
        session.start("score", lambda: backend.scoring.start(request))
        session.rerun()
    pools = partial(run.pools, t, view, partial(backend.federations.pools, view.record.federation), cipher)
    if why is not None and why.state == "running":
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
