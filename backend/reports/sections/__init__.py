"""What a report says in one language, a function a section; the HTML and the PDF both draw it, so that they agree."""

from __future__ import annotations

from collections.abc import Callable

from backend.i18n import Catalogue
from backend.reports.blocks import Block, Heading, Outline
from backend.reports.document import Report
from backend.reports.sections import evidence, law, model, privacy, provenance, quality, retrained, summary
from backend.reports.sections.writer import Writer, minute

SECTIONS: dict[str, Callable[[Writer], list[Block]]] = {  # in the order of a regulator's questions
    "summary": summary.summary,
    "identity": model.identity,
    "parties": model.parties,
    "features": model.features,
    "findings": law.findings,
    "evidence": evidence.evidence,
    "retrained": retrained.retrained,
    "quality": quality.quality,
    "privacy": privacy.privacy,
    "limits": provenance.limits,
    "decisions": provenance.sign_offs,
    "audit": provenance.audit,
    "verify": provenance.verify,
    "dictionary": model.dictionary,
    "rules": law.rules,
}


def outline(report: Report, language: str) -> Outline:
    """The report in one language, section by section."""
    write, identity = Writer(report, Catalogue(language)), report.content.identity
    blocks: list[Block] = []
    for number, (key, section) in enumerate(SECTIONS.items(), start=1):
        blocks += [Heading(f"{number}. {write(key)}"), *section(write)]
    return Outline(
        write("title", title=write.words.either(identity.title, identity.title_zh)),
        write("subtitle", model=identity.model, time=minute(report.issued.time), version=report.version),
        tuple(blocks),
    )


def answers(report: Report, language: str) -> tuple[tuple[str, str], ...]:
    """The summary: a regulator's seven questions, each with its answer."""
    return summary.answers(Writer(report, Catalogue(language)))
