"""The page of open points: what is broken, undecided, not measured or not provided, the gravest first. Knows the report alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from backend.reports.blocks import Block, Paragraph
from backend.reports.sections.operator import not_provided, said, undocumented
from backend.reports.sections.writer import Writer
from backend.reports.verdict.facts import Fact

VALIDATORS = ("test", "outcomes", "monitoring", "change", "leak", "quality", "proxies")
"""Kinds of facts that the validator of the model has to clear; the others are its owner's."""


class OpenPoint(NamedTuple):
    """One thing that has to be done, by `day` found."""

    gravity: str
    point: str
    owner: str
    day: str
    where: str


def open_points(write: Writer) -> list[Block]:
    """A row a point, the gravest first; by when they are to be closed, if the operator says so."""
    due = said(write).due
    points = list(_points(write))
    if not points:
        return [write.text("open_none")]
    table = write.table(
        points,
        ("gravity", 3, lambda point: point.gravity),
        ("open_point", 11, lambda point: point.point),
        ("owner", 4, lambda point: point.owner),
        ("since", 3, lambda point: point.day),
        ("act", 3, lambda point: point.where),
    )
    if due:
        by_when = write.text("open_due", due=due)
    else:
        by_when = Paragraph(write("open_no_due"), "finding")
    ratios = any(
        f.kind == "outcomes" and f.figure and f.state != "no_breach" for f in write.report.issued.verdict.facts
    )
    if ratios:
        note = [Paragraph(write("open_four_fifths"), "note")]
    else:
        note = []
    return [by_when, table, *note]


def _points(write: Writer) -> Iterator[OpenPoint]:
    words = write.words
    for fact in write.report.issued.verdict.facts:
        if fact.state != "no_breach":
            state = words(f"verdict.{fact.state}")
            page = words(f"{fact.page}.title")
            yield OpenPoint(state, words.text(fact.sentence), _owner(write, fact), _day(write, fact), page)
    empty = not_provided(write)
    today = write.report.issued.time[:10]
    lacking = write("open_not_provided")
    report = words("report.title")
    if empty:
        listed = write.enumerated(words(f"details.{name}") for name in empty)
        yield OpenPoint(lacking, write("open_details", n=len(empty), listed=listed), owner_of(write), today, report)
    for host in undocumented(write):
        party = write.party(host)
        yield OpenPoint(lacking, words("dossier.incomplete", host=party), party, today, words("features.title"))
    if not any(line.covers for line in write.report.issued.sign_offs):
        yield OpenPoint(lacking, write("status_unsigned"), validator_of(write), today, report)


def owner_of(write: Writer) -> str:
    """Return who answers for the model: as the operator's details say, else as the registry has it."""
    return said(write).owner or write.report.issued.standing.owner or write("open_no_owner")


def validator_of(write: Writer) -> str:
    """Return who validates the model."""
    return said(write).validator or write("open_no_validator")


def _owner(write: Writer, fact: Fact) -> str:
    if fact.kind in VALIDATORS:
        return validator_of(write)
    return owner_of(write)


def _day(write: Writer, fact: Fact) -> str:
    """Return the day on which a fact was found: of the suite's or the monitoring's run, else of the model, whose features do not change."""
    content = write.content
    if fact.kind in VALIDATORS and fact.kind != "monitoring" and content.validation is not None:
        return content.validation.made[:10]
    if fact.kind == "monitoring" and content.monitoring is not None:
        return content.monitoring.made[:10]
    return content.identity.created[:10]
