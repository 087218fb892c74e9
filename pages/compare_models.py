"""Which of two models, and what changed?"""

from functools import partial

from app import session, user_jobs
from app.panels import frame, model_comparison
from backend.services.model_difference import DifferenceRequest

t = session.texts()
model_id = frame.model_or_stop(t, "compare_models")

view = session.view(model_id)
backend = session.service()
predecessor, successors = backend.models.lineage(model_id)
relatives = [*successors, *([predecessor] if predecessor else [])]
others = [
    *relatives,
    *(m for m in backend.models.all(view.record.federation) if m.id != model_id and m not in relatives),
]
ids = [record.id for record in others]
key = session.bind("other", ids, ids[0] if ids else None)


def beside() -> None:
    """Draw the model next to another one."""
    states = backend.models.states()
    model_comparison.choose(t, view, others, states, key, lambda: session.swap("model", "other"))
    other_id = session.publish("other") or ids[0]
    (pairing,) = user_jobs.works(f"{model_id}~{other_id}", "difference")
    comparison = backend.reports.compare(model_id, other_id)  # after the job's state: never older
    frame.section(t, "verdict.which")
    model_comparison.headline(t, view, comparison)
    pair = DifferenceRequest(model_id, other_id)
    model_comparison.pairing(t, view, comparison, pairing, lambda: backend.model_differences.start(pair))
    model_comparison.details(t, view, comparison)
    frame.fold(
        t("comparison.leaks_title"), "visibility", "compare_leaks_box", partial(model_comparison.leaks, t, comparison)
    )
    frame.fold(
        t("comparison.findings_title"),
        "flag",
        "compare_findings_box",
        partial(model_comparison.findings, t, view, comparison),
    )
    frame.fold(
        t("comparison.made_title"), "history", "compare_made_box", partial(model_comparison.made, t, view, comparison)
    )
    model_comparison.to_both(t, view, comparison)


frame.header(t, "compare_models", session.notices(), view.federation)
if others:
    beside()
else:
    model_comparison.alone(t)
