"""A report as an outline in one language, one function per section; HTML and PDF are drawn from the same outline, so that they agree."""

from __future__ import annotations

from collections.abc import Callable

from backend.reports.blocks import Block, Heading, Outline
from backend.reports.document import Report
from backend.reports.language import words_in
from backend.reports.sections import alternatives, claims, model, operator, record, summary, validation
from backend.reports.sections.writer import Writer, minute

SECTIONS: dict[str, Callable[[Writer], list[Block]]] = {  # in the order of a regulator's questions
    "summary": summary.summary,
    "identity": model.identity,
    "purpose": operator.purpose,
    "parties": model.parties,
    "data": operator.data,
    "features": model.features,
    "findings": claims.findings,
    "evidence": claims.evidence,
    "retrained": claims.retrained,
    "alternatives": alternatives.alternatives,
    "quality": model.quality,
    "validation": validation.validation,
    "tests": operator.tests,
    "monitoring": operator.monitoring,
    "privacy": record.privacy,
    "limits": record.limits,
    "governance": operator.governance,
    "decisions": record.sign_offs,
    "audit": record.audit,
    "verify": record.verify,
    "dictionary": model.dictionary,
    "rules": claims.rules,
    "standards": operator.standards,
}


def outline(report: Report, language: str) -> Outline:
    """The report in one language, section by section."""
    write = Writer(report, words_in(language))
    identity = report.content.identity
    blocks: list[Block] = []
    for number, (key, section) in enumerate(SECTIONS.items(), start=1):
        blocks += [Heading(f"{number}. {write(key)}"), *section(write)]
    title = write("title", title=write.words.text(identity.title))
    return Outline(
        title,
        write("subtitle", model=identity.model, time=minute(report.issued.time), version=report.version),
        tuple(blocks),
        f"{title} · {identity.model}",
    )


def answers(report: Report, language: str) -> tuple[tuple[str, str], ...]:
    """The summary: a regulator's seven questions, each with its answer."""
    return summary.answers(Writer(report, words_in(language)))
