"""At which line does the model decide, and what would another one mean?"""

from dataclasses import replace

import streamlit as st

from app import session
from app.panels import decision_line, frame, policies
from backend.services.roles import REGULATOR

t = session.texts()
model_id = frame.model_or_stop(t, "decide")

view = session.view(model_id)
backend = session.service()
frame.header(t, "decide", session.notices(), view.federation)
frame.outcome(t, session.outcome())
standing = backend.policies.standing(model_id)
policies.standing(t, standing)

frame.section(t, "decide.choose", "cutoff")
proposal = decision_line.bands(t, standing, view)
costs = decision_line.costs(t) if view.task == "binary" else None
frontier = backend.policies.frontier(model_id, proposal.declines, costs)
if frontier is None:
    st.info(t("decide.no_scores"), icon=":material/query_stats:")
else:
    decision_line.draw(t, frontier, standing, proposal)
st.caption(f":material/help: {t('decide.what_if')}")
if view.task == "binary":
    frame.section(t, "decide.groups")
    decision_line.by_group(t, view, backend.policies.by_group(model_id), standing, proposal)

person = session.decides_as()
if session.role() != REGULATOR:
    frame.section(t, "decide.propose")
    if view.task == "binary":
        proposal = replace(proposal, points=decision_line.points(t, standing.policy.points))
    with st.expander(t("decide.treatments"), icon=":material/rule:", key="decide_treatments"):
        treated = decision_line.treatments(t, standing.policy.treatments)
    proposal = replace(proposal, treatments=treated)
    policies.warned(t, backend.policies.warnings(model_id, proposal))
    with st.form("decide_propose", border=False):
        owner = st.text_input(t("decide.owner"), key="decide_owner")
        name = st.text_input(t("decide.person"), person, key="decide_person", disabled=bool(person))
        reason = st.text_area(t("decide.reason"), key="decide_reason")
        if st.form_submit_button(t("decide.propose_go"), icon=":material/send:", key="decide_propose_go"):
            session.attempt(
                t("decide.proposed"),
                lambda: backend.policies.propose(model_id, proposal, owner=owner, reason=reason, person=name),
            )
elif standing.proposed is not None:
    frame.section(t, "decide.approve")
    st.markdown(policies.bands(t, standing.proposed.policy))
    policies.described(t, standing.proposed.policy)
    with st.form("decide_approve", border=False):
        name = st.text_input(t("decide.person"), person, key="decide_person", disabled=bool(person))
        reason = st.text_area(t("decide.reason"), key="decide_reason")
        if st.form_submit_button(t("decide.approve_go"), icon=":material/check:", key="decide_approve_go"):
            session.attempt(
                t("decide.approved"), lambda: backend.policies.approve(model_id, reason=reason, person=name)
            )
frame.section(t, "decide.history")
policies.history(t, backend.policies.history(model_id))
