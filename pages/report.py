"""What do I file, and can I verify it?"""

from functools import partial

from app import session, user_jobs
from app.panels import frame, palette, report, report_details, reviews, verdict

t = session.texts()
model_id = frame.model_or_stop(t, "report")

view = session.view(model_id)
backend = session.service()
frame.header(t, "report", session.notices(), view.federation)
frame.outcome(t, session.outcome(), far=True)
(drawing,) = user_jobs.works(model_id, "report")
full_report = backend.reports.make(model_id, ask_hosts=False)  # one that is silent would hold up the page
report.files(
    t,
    full_report,
    backend.reports.export,
    drawing,
    backend.reports.start_file,
    backend.reports.language_of_pdf(t.language),
    linked=view.federation.link is not None,
)
frame.section(t, "report.first_page")
verdict.draw(t, full_report.issued.verdict, "report")
frame.fold(
    t("report.questions"),
    "quiz",
    "report_answers_box",
    lambda: report.answers(backend.reports.answers(full_report, t.language)),
)


def details() -> None:
    """Draw what the operator provides for the report, and what is missing."""
    provided = backend.report_details
    states = backend.models.states()
    others = [record for record in backend.models.all(view.federation.name) if record.id != model_id]
    report_details.panel(
        t,
        report_details.ReportDetailsPanel(
            {party: palette.plain(t, view.federation, party) for party in provided.parties(model_id)},
            partial(provided.keep, model_id),
            partial(provided.keep_toml, model_id),
            partial(provided.template, model_id, t.language),
            provided.get(model_id),
            provided.missing(model_id),
            {record.id: frame.model_name(t, record, view.federation, states[record.id].name) for record in others},
        ),
        session.attempt,
    )


frame.fold(t("details.title"), "edit_note", "report_details_box", details)
frame.fold(t("report.used"), "bar_chart", "report_used_box", partial(report.features, t, view, full_report))
frame.fold(
    t("report.decide"),
    "gavel",
    "report_decisions_box",
    lambda: report.decisions(
        t,
        view,
        full_report,
        session.attempt,
        lambda *decision: backend.reviews.decide(model_id, *decision),
        session.decides_as(),
    ),
)
signing = reviews.SignOffs(
    full_report.issued.sign_offs,
    partial(backend.reports.sign_off_holds, model_id),
    partial(backend.reports.sign_off, model_id),
    session.decides_as(),
)
frame.fold(
    t("report.sign"),
    "signature",
    "report_sign_box",
    partial(reviews.sign_offs, t, signing, "report", session.attempt),
)
frame.fold(
    t("report.check"),
    "verified",
    "report_check_box",
    partial(report.check, t, full_report, view.federation, backend.reports.check),
)
