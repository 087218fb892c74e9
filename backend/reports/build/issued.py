"""What belongs to the day of a report: who asked, how much the model was used, who signed, the audit log."""

from __future__ import annotations

from backend.reports import schema as report
from backend.reports.build.sources import Sources
from backend.reports.build.traffic import use
from backend.reports.document import content_hash
from backend.store.audit_log import Verdict


def issued_of(
    sources: Sources, content: report.Content, verdict: Verdict, now: str, by: tuple[str, str]
) -> report.Issued:
    """What belongs to the day of the report; `by` is actor and role."""
    return report.Issued(
        time=now,
        actor=by[0],
        role=by[1],
        law_of=sources.compliance.on,
        sign_offs=sign_offs_of(sources, content),
        use=use(sources),
        audit=report.AuditLine(
            entries=verdict.entries,
            head_sha256=verdict.head.hash,
            holds=verdict.holds,
            problems=verdict.problems,
            witnesses=verdict.witnesses,
        ),
    )


def sign_offs_of(sources: Sources, content: report.Content) -> tuple[report.SignOffLine, ...]:
    """Every sign-off, and whether it covers this content."""
    digest = content_hash(content)
    return tuple(
        report.SignOffLine(
            person=s.person,
            role=s.role,
            statement=s.statement,
            report_sha256=s.report_hash,
            covers=s.report_hash == digest,
            time=s.time,
        )
        for s in sources.sign_offs
    )
