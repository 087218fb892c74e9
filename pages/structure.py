"""How does the model decide?"""

import streamlit as st

from app import session
from app.panels import frame, person, tree
from backend.errors import GlassleafError

t = session.texts()
model_id = session.chosen_model()
if model_id is None:
    frame.header(t, "structure", session.notices())
    frame.empty(t, session.service().prepare_demo, session.page("train"))
    st.stop()

view = session.view(model_id)
numbers = [str(i + 1) for i in range(len(view.model.trees))]
key = session.bind("tree", numbers, numbers[0])
frame.header(t, "structure", session.notices(), view.federation)
with st.container(horizontal=True, vertical_alignment="bottom"):
    st.selectbox(
        t("structure.choose"), numbers, key=key, format_func=lambda n: tree.named(t, view, int(n) - 1), width=220,
        help=t("glossary.tree"),
    )  # fmt: skip
    overlay = st.toggle(
        t("structure.overlay"), key="structure_overlay", help=t("structure.overlay_help"), persist_state="session"
    )
index = int(session.publish("tree") or 1) - 1
candidates = None
if overlay:
    ids = person.options(session.samples(model_id), session.kept("sample"))
    chosen = person.known(t, ids, session.remember("sample", ids))
    try:
        sheet = session.service().sample_of(model_id, chosen)
        candidates = session.service().candidate_leaves(model_id, index, sheet)
    except GlassleafError as error:
        frame.problem(t, str(error))
tree.strip(t, view, index, session.choose)
parts = tree.parts(view, index)
top = tree.branch(t, view, index, session.remember(f"branch_{index}", parts)) if len(parts) > 1 else 0
sentence = tree.sentence(t, view, index)
if candidates is not None:
    sentence += " " + t("structure.left_open", n=len(candidates), leaves=len(view.model.trees[index].leaves))
frame.chart(
    t,
    tree.figure(t, view, index, candidates, top),
    sentence,
    tree.twin(t, view, index, candidates),
    "tree_picture",
)
tree.legend(t, view)
