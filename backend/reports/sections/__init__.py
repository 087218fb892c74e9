"""A report as an outline in one language, one function per section; HTML and PDF are drawn from the same outline, so that they agree."""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_uppercase

from backend.reports.blocks import Block, Heading, Outline
from backend.reports.document import Report
from backend.reports.language import words_in
from backend.reports.sections import (
    alternatives,
    claims,
    model,
    open_points,
    operator,
    questions,
    record,
    summary,
    validation,
)
from backend.reports.sections.writer import Writer, minute

Section = Callable[[Writer], list[Block]]
SECTIONS: dict[str, Section] = {  # the verdict, what is open, then in the order of a regulator's questions
    "summary": summary.summary,
    "open_points": open_points.open_points,
    "purpose": operator.purpose,
    "identity": model.identity,
    "parties": model.parties,
    "data": operator.data,
    "features": model.features,
    "findings": claims.findings,
    "evidence": claims.evidence,
    "alternatives": alternatives.chosen,
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
}
ALONE = ("open_points", "purpose")  # sections that begin a page: so the open points have one of their own
ANNEXES: dict[str, Section] = {  # tables, wording and method: what a section rests on
    "parameters": model.parameters,
    "annex_features": model.features_table,
    "annex_findings": claims.rule_by_rule,
    "annex_evidence": claims.every_rate,
    "retrained": claims.retrained,
    "annex_alternatives": alternatives.alternatives,
    "annex_quality": model.quality_tables,
    "annex_validation": validation.every_test,
    "annex_monitoring": operator.monitoring_tables,
    "annex_data": operator.dossiers,
    "annex_traffic": record.traffic,
    "history": operator.history,
    "dictionary": model.dictionary,
    "rules": claims.rules,
    "standards": operator.standards,
}


def outline(report: Report, language: str) -> Outline:
    """Return the report in one language, section by section, then the annexes that hold something."""
    write = Writer(report, words_in(language))
    identity = report.content.identity
    blocks: list[Block] = []
    for number, (key, section) in enumerate(SECTIONS.items(), start=1):
        alone = key in ALONE
        blocks += [Heading(f"{number}. {write(key)}", new_page=alone), *section(write)]
    filled = [(key, annex_blocks) for key, annex in ANNEXES.items() if (annex_blocks := annex(write))]
    listed = write.enumerated(
        f"{letter} {write(key)}" for letter, (key, _) in zip(ascii_uppercase, filled, strict=False)
    )
    blocks += [Heading(write("annexes"), new_page=True), write.text("annexes_note", listed=listed)]
    for letter, (key, annex_blocks) in zip(ascii_uppercase, filled, strict=False):
        blocks += [Heading(f"{letter}. {write(key)}"), *annex_blocks]
    title = write("title", title=write.words.text(identity.title))
    return Outline(
        title,
        write("subtitle", model=identity.model, time=minute(report.issued.time), version=report.version),
        tuple(blocks),
        f"{title} · {identity.model}",
    )


def answers(report: Report, language: str) -> tuple[tuple[str, str], ...]:
    """Return the summary: a regulator's seven questions, each with its answer."""
    return questions.answers(Writer(report, words_in(language)))
