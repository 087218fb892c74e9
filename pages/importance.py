"""What matters most to the model, and in which direction?"""

from functools import partial

import streamlit as st

from app import session, user_jobs
from app.panels import (
    frame,
    importance,
    importance_curves,
    importance_directions,
    importance_pairs,
    importance_shap,
    offers,
)
from backend.services.explanation import MeansRequest, PermutationRequest
from backend.services.reasons import CohortRequest

t = session.texts()
model_id = frame.model_or_stop(t, "importance")

view = session.view(model_id)
backend = session.service()
worth, shap, means = user_jobs.works(model_id, "worth", "shap", "means")
frame.header(t, "importance", session.notices(), view.federation)
measure, everything = importance.chosen(t, view)
rows: importance.Rows = ()
parties: importance.Rows = ()
if measure == importance.WORTH:
    rows = measured = backend.explanation.permutation(model_id)
    parties = importance.parties(view, measured)
    st.markdown(t("importance.worth_why"), help=t("glossary.permutation"))
    words = "importance.worth_again" if rows else "importance.worth_go"
    offers.button(t, view, worth, words, lambda: backend.explanation.start_permutation(PermutationRequest(model_id)))
elif measure == importance.SHAP:
    st.markdown(t("importance.shap_why"), help=t("glossary.shap"))
    offers.button(t, view, shap, "importance.shap_go", lambda: backend.reasons.start_cohort(CohortRequest(model_id)))
    if shap.job is not None and shap.job.result is not None:
        importance_shap.contributions(t, view, shap.job.result, everything)
else:
    rows = session.steady(model_id, measure)
    parties = session.steady(model_id, measure, by_party=True)
if rows:
    features_column, parties_column = st.columns([7, 4], gap="large")
    with features_column:
        frame.section(t, "importance.by_feature", importance.term(measure))
        importance.by_feature(t, view, measure, rows, everything)
    with parties_column:
        frame.section(t, "importance.by_party", "host")
        importance.by_party(t, view, measure, parties)
        importance.whiskers(t, view, measure, rows, backend.explanation.agreement(model_id))

importance_directions.contradictions(t, view)
frame.fold(
    t("importance.directions_title"),
    "swap_vert",
    "importance_directions_box",
    partial(importance_directions.directions, t, view),
)
frame.fold(
    t("importance.pairs_title"),
    "join",
    "importance_pairs_box",
    lambda: importance_pairs.pairs(t, view, session.pairs(model_id)),
)


def what_if() -> None:
    """Draw what one feature does to the score if everybody had the same value of it."""
    offered = importance_curves.features(view)
    feature = importance_curves.choose(t, view, session.remember("curve_feature", offered)) if offered else None
    if feature is None:
        st.markdown(t("importance.no_split"))
        return
    if importance_curves.held_by_guest(view, feature):
        importance_curves.own(t, view, partial(backend.explanation.partial_dependence, model_id, feature))
        return
    feature_means = backend.explanation.means(model_id).get(feature)
    if feature_means is None:
        st.markdown(t("importance.means_why"))
    else:
        importance_curves.means(t, view, feature_means)
    words = "importance.means_again" if feature_means else "importance.means_go"
    request = MeansRequest(model_id, feature)
    offers.button(t, view, means, words, lambda: backend.explanation.start_means(request))


frame.fold(t("importance.curves_title"), "timeline", "importance_curves_box", what_if)
