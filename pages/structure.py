"""How does the model decide?"""

import streamlit as st

from app import session, view_models
from app.panels import frame, person, tree, tree_choice
from backend.errors import GlassleafError

t = session.texts()
model_id = frame.model_or_stop(t, "structure")

view = session.view(model_id)
numbers = [str(i + 1) for i in view_models.by_gain(view.model.trees)]  # what matters most comes first
key = session.bind("tree", numbers, numbers[0])
place = session.detail("node", "tree", tree_choice.nodes(view, st.session_state[key]))
frame.header(t, "structure", session.notices(), view.federation)
with st.container(horizontal=True, vertical_alignment="bottom"):
    st.selectbox(
        t("structure.choose"), numbers, key=key, format_func=lambda n: tree_choice.named(t, view, int(n) - 1), width=220,
        help=t("glossary.tree"),
    )  # fmt: skip
    overlay = st.toggle(
        t("structure.overlay"), key="structure_overlay", help=t("structure.overlay_help"), persist_state="session"
    )
index = int(session.publish("tree") or numbers[0]) - 1
candidates = None
if overlay:
    ids = person.options(session.samples(model_id), session.kept("sample"))
    person_id = person.known(t, ids, session.remember("sample", ids))
    try:
        sheet = session.service().samples.of_person(model_id, person_id)
        candidates = session.service().models.candidate_leaves(model_id, index, sheet)
    except GlassleafError as error:
        frame.problem(t, error)
tree_choice.strip(t, view, index, session.choose)
marked = int(place) if place is not None else None
parts = tree_choice.parts(view, index)
if marked is not None and session.once(f"marked_{index}", marked):
    session.choose(f"branch_{index}", tree_choice.part_with(view, index, marked))
top = tree_choice.branch(t, view, index, session.remember(f"branch_{index}", parts)) if len(parts) > 1 else 0
sentence = tree.sentence(t, view, index)
if marked is not None:
    tree_choice.mark(t, view, index, marked)
if candidates is not None:
    sentence = t.joined(
        sentence, t("structure.left_open", n=len(candidates), leaves=len(view.model.trees[index].leaves))
    )
st.markdown(sentence)
with st.container(key="tree_wide"):  # assets/page.css shows one of the two
    frame.picture(tree.figure(t, view, index, candidates, top, marked), sentence, "tree_picture")
    tree.legend(t, view)
with st.container(key="tree_narrow"):
    tree.outline(t, view, index, candidates, top, marked)
frame.table_twin(t, tree.twin(t, view, index, candidates), sentence, "tree_picture")
