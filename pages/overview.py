"""What is this model, whose data is in it, is it ready to use?"""

from functools import partial

import streamlit as st

from app import session
from app.panels import frame, lifecycle, overview, parties, verdict

t = session.texts()
model_id = frame.model_or_stop(t, "overview")

view = session.view(model_id)
backend = session.service()
standing = backend.lifecycle.standing(model_id)
undecided = backend.reviews.undecided(model_id)
frame.header(t, "overview", session.notices(), view.federation)
outcome = session.outcome()
manage = partial(session.keep, "managing")
if session.kept("managing") == model_id:
    states = backend.models.states()
    lifecycle.window(
        t,
        lifecycle.Manager(
            session.decides_as(),
            session.role(),
            standing,
            backend.lifecycle.offers(model_id),
            backend.lifecycle.history(model_id),
            lambda other_id: t.model(states[other_id].name) or other_id,
            outcome,
            session.attempt,
            (view.federation.places, view.federation.product),
            lambda name, note, owner, places, product: backend.lifecycle.describe(
                model_id, name=name, text=note, owner=owner, places=places, product=product
            ),
            lambda step, person, reason: backend.lifecycle.step(model_id, step, person=person, reason=reason),
            partial(manage, None),
        ),
    )
else:
    frame.outcome(t, outcome)
overview.sentence(t, view)
overview.named(t, standing)
overview.bar(t, standing, len(view.compliance.unanswered), partial(manage, model_id))
overview.actions(t, session.role(), len(undecided))
verdict_column, parties_column = st.columns([1, 1], gap="large")  # on a phone the answers come first
with verdict_column:
    verdict.draw(t, backend.verdicts.of(model_id), "overview")
with parties_column:
    parties.network(t, view)
    overview.figures(t, view)


def holdings() -> None:
    """Draw what each company holds, and what of it no message shows."""
    overview.privacy(t, view)
    parties.holdings(t, view)


frame.fold(t("overview.who_holds"), "domain", "overview_holdings_box", holdings)
backend.federations.warm_up(view.record.federation)  # last: it reads the parties' tables
