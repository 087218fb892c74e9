"""What does a Host's operator see and decide? In a simulation on synthetic people: look as one of its Hosts."""

import streamlit as st

from app import session
from app.panels import frame, host_console, host_links
from app.texts import markdown
from backend.errors import GlassleafError

t = session.texts()
model_id = frame.model_or_stop(t, "host")
federation = session.view(model_id).federation
backend = session.service()
frame.header(t, "host", session.notices(), federation)
simulated = federation.link is None
st.markdown(t("host.intro") if simulated else t("linked.host"))
if not simulated:
    try:
        host_links.draw(t, federation, backend.federations.links(federation.name))
    except GlassleafError as error:
        frame.problem(t, error)
if simulated and not federation.synthetic:
    st.info(t("host.real_people"), icon=":material/lock:")
elif simulated:
    hosts = [party.name for party in federation.hosts]
    looked = st.segmented_control(
        t("host.look_as"), hosts, format_func=lambda name: markdown(t.party(federation, name)), key="host_look"
    )
    if looked is None:
        st.info(t("host.choose"), icon=":material/touch_app:")
    else:
        st.caption(f":material/science: {t('host.look_note')}")
        try:
            operator = backend.host_operator(federation.name, looked, on_page=True)
            host_console.draw(t, operator, f"host_{looked}")
            operator.close()
        except GlassleafError as error:
            frame.problem(t, error)
