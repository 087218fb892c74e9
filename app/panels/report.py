"""The report's own first page, its files, and what people add to it: decisions on findings and sign-offs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

import streamlit as st

from app.panels import charts, frame, palette, reviews, run, upload
from app.panels.reviews import Attempt
from app.texts import Texts, cut, markdown, percent
from app.user_jobs import Work
from app.view_models import View
from backend.errors import GlassleafError
from backend.i18n import brief
from backend.results import NOBODY
from backend.services.reports import FORMS

if TYPE_CHECKING:
    from backend.data.federation import Federation
    from backend.jobs import Job
    from backend.reports.document import Report
    from backend.reports.files import Checked
    from backend.services.reports import ReportFile

MIME = {"json": "application/json", "html": "text/html", "pdf": "application/pdf"}
FORM_ICONS = {"html": "html", "pdf": "picture_as_pdf", "json": "data_object"}
MAX_BYTES = 5_000_000  # of a file that is checked
BARS_DRAWN = 10  # features drawn; the table holds all
REASON = 160  # letters of a reason that a row shows; the table of all rows holds all of it


def files(
    t: Texts,
    report: Report,
    export: Callable[[str, str, str], bytes],
    drawing: Work,
    start: Callable[[str, str, str], Job[ReportFile]],
    pdf_language: str,
    *,
    linked: bool,
) -> None:
    """Draw a button for each file format; the file is made, and logged, when it is pressed.

    `linked` = the Hosts are at other companies, where one may be silent: a file is made in the background, and saved by a second press.
    """
    model_id = report.content.identity.model
    with st.container(horizontal=True):
        for form in ("pdf", "html", "json"):
            words = t(f"report.file_{form}")
            look = frame.emphasis() if form == "pdf" else "secondary"
            if not linked:
                _download(model_id, form, partial(export, model_id, form, t.language), words, look)
                continue
            icon = f":material/{FORM_ICONS[form]}:"
            if st.button(words, type=look, icon=icon, key=f"report_{form}", disabled=drawing.busy):
                drawing.start(partial(start, model_id, form, t.language))
                drawing.redraw()
    _drawing(t, report, drawing)
    st.caption(t.joined(t("report.files_note"), t("report.files_ask_hosts") if linked else ""))
    if pdf_language != t.language:
        st.caption(f":material/translate: {t('report.no_font')}")


def _download(
    model_id: str,
    form: str,
    data: Callable[[], bytes] | bytes,
    words: str,
    look: Literal["primary", "secondary"] = "secondary",
) -> None:
    st.download_button(
        words,
        data=data,
        file_name=f"glassleaf-{model_id}.{form}",
        mime=MIME[form],
        type=look,
        key=f"report_save_{form}",
        icon=f":material/{FORM_ICONS[form]}:",
        on_click="ignore",
    )


def _drawing(t: Texts, report: Report, drawing: Work) -> None:
    """Draw how far the file is, or the one that was made last and whether it still says what is reported now."""
    job: Job[ReportFile] | None = drawing.job
    if drawing.refused:
        frame.problem(t, drawing.refused)
    if job is None:
        return
    if job.state == "running":
        stages = {"start": "stage.start"}
        frame.follow(t, job, lambda stage: t(stages.get(stage, f"report.stage_{stage}")), "report", drawing.redraw)
    elif job.result is None:
        run.ended(t, job)
    else:
        report_file = job.result
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            form = t(f"report.file_{report_file.form}")
            time = report_file.issued[:16].replace("T", " ")
            if report_file.form == "json":
                file = form
            else:
                file = t.noted(form, t(f"report.in_{report_file.language}"))
            same = report_file.content_sha256 == report.content_sha256
            words = t("report.file_ready" if same else "report.file_before", file=file, form=form, time=time)
            st.markdown(f":material/{'check_circle' if same else 'history'}: {words}", width="content")
            _download(report_file.model_id, report_file.form, report_file.file, t("report.file_save", form=form))


def answers(pairs: Sequence[tuple[str, str]]) -> None:
    """Draw a regulator's questions with their answers."""
    with st.container(border=True):
        for question, answer in pairs:
            lines = (markdown(line) for line in answer.splitlines())
            st.markdown("  \n".join((f"**{markdown(question)}**", *lines)))


def features(t: Texts, view: View, report: Report) -> None:
    """Draw used features as bars, in the colour of their party, with the direction."""
    features_used = [f for f in report.content.features if f.usage.splits]
    # as every other page rounds them: a report holds shares that were rounded before
    gain = {f.name: f.usage.gain_share for f in features_used} | {
        row.feature: row.gain_share for row in view.importance
    }
    top = t.listed([markdown(brief(t.text(f.meaning))) for f in features_used[:2]])
    sentence = t(
        "report.sentence", n=len(features_used), top=top, share=percent(sum(gain[f.name] for f in features_used[:2]))
    )
    if len(features_used) > BARS_DRAWN:
        sentence = t.joined(sentence, t("report.first", n=BARS_DRAWN))
    bars = [
        charts.Bar(
            brief(t.text(f.meaning)),
            t("report.bar", share=percent(gain[f.name]), direction=frame.direction(t, view.task, f.learned)),
            gain[f.name],
            palette.mark(view.federation, f.party),
            warning=t("report.against") if f.contradicts else "",
        )
        for f in features_used[:BARS_DRAWN]
    ]

    def twin() -> frame.Columns:
        return {
            t("features.meaning"): [t.text(f.meaning) for f in features_used],
            t("words.party"): [palette.plain(t, view.federation, f.party) for f in features_used],
            t("words.gain"): [percent(gain[f.name]) for f in features_used],
            t("features.expected"): [frame.direction(t, view.task, f.expected) for f in features_used],
            t("features.learned"): [frame.direction(t, view.task, f.learned) for f in features_used],
            t("report.against"): [t("report.yes") if f.contradicts else "–" for f in features_used],
        }

    frame.chart(t, charts.bars(bars, sentence), sentence, twin, "report_features")


def decisions(
    t: Texts, view: View, report: Report, attempt: Attempt, review: Callable[..., object], account: str
) -> None:
    """Draw every finding with what was decided, and a form to decide on one, as `account` if there is a sign-in."""
    findings = report.content.assessment.findings
    if not findings:
        st.info(t("compliance.none", assessed=report.content.assessment.assessed), icon=":material/search_off:")
        return
    names = [f"{t.brief(view.model.feature(f.feature))} · {t.text(f.title)}" for f in findings]
    columns = {
        t("report.finding"): names,
        t("report.status"): [t(f"compliance.{f.status}") for f in findings],
        t("report.decision"): [t(f"report.{f.decision.verdict if f.decision else 'open'}") for f in findings],
        t("document.head_person"): [f.decision.person if f.decision else "–" for f in findings],
        t("report.reason"): [f.decision.reason if f.decision else "–" for f in findings],
    }
    short_columns = columns | {t("report.reason"): [cut(reason, REASON) for reason in columns[t("report.reason")]]}
    frame.rows(t, short_columns, "report_decisions", t("report.decide"), columns)
    box = frame.box(t("report.decide_form"), "gavel", "report_decide_box")
    if box is None:
        return
    with box:
        index = st.selectbox(
            t("report.finding"), range(len(findings)), format_func=names.__getitem__, key="report_finding"
        )
        finding = findings[index]
        waiting = [f.rule_id for f in findings if f.feature == finding.feature and f is not finding and not f.decision]
        rules = [finding.rule_id, *waiting]
        reviews.form(
            t,
            "report",
            attempt,
            lambda rule, *decision: review(rule, finding.feature, *decision),
            rules,
            account,
            t.brief(view.model.feature(finding.feature)),
        )


def check(t: Texts, report: Report, federation: Federation, checked: Callable[[bytes], Checked]) -> None:
    """Draw the hashes, and a place to upload a file that a reader was given."""
    st.markdown(t("report.hash_now"))
    st.code(report.content_sha256, language=None, wrap_lines=True)
    st.markdown(t("report.check_shell"))
    file = upload.file(t, t("report.check_file"), "report_check", MAX_BYTES // 10**6, list(FORMS))
    if file is None:
        return
    if file.size > MAX_BYTES:
        frame.problem(t, t("report.too_large"))
        return
    try:
        checked_file = checked(file.getvalue())
    except GlassleafError as error:
        st.error(frame.explained(t, error), icon=":material/gpp_bad:")
        return
    identity = checked_file.report.content.identity
    issued = checked_file.report.issued
    words = {"model": identity.model, "time": issued.time[:16].replace("T", " "), "actor": markdown(issued.actor)}
    holds = t("report.holds_nobody" if issued.actor == NOBODY else "report.holds", **words)
    text = t.joined(holds, t(f"report.drawn_{checked_file.drawn}"))
    if checked_file.verdict == "issued":
        st.success(text, icon=":material/verified:")
    else:
        st.warning(text, icon=":material/gpp_maybe:")
    same = checked_file.report.content_sha256 == report.content_sha256
    st.markdown(t("report.content_same" if same else "report.content_other"))
    st.code(checked_file.report.content_sha256, language=None, wrap_lines=True)
    for name, entry in checked_file.named_by:
        if name == federation.name:
            title = t.federation(federation)
        else:
            title = name
        st.markdown(t("report.named_by", number=f"{entry.number:,}", federation=markdown(title)))
    if not checked_file.named_by:
        st.markdown(t("report.not_named"))
