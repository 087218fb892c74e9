"""A notice of adverse action: up to four specific principal reasons in words, or why there must be none. Knows names, no contribution.

A reason is a feature's disclosed meaning and the direction that the model has learned; the words of Regulation B's form C-1 stand beside
it only where they say the same (notices/regulation_b.yaml). Where a reason is a prohibited basis no notice is drawn: it would state an
unlawful ground or hide it.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from backend.compliance.phrases import Concept, Pattern, PhraseMatch
from backend.compliance.rule_pack import words
from backend.data.dictionary import Feature
from backend.errors import ParameterError
from backend.i18n import Catalogue
from backend.reports.blocks import Block, Facts, Heading, Outline, Text
from backend.reports.render.html_form import page

TABLE = Path(__file__).parent / "notices" / "regulation_b.yaml"
MOST_REASONS = 4  # by convention; comment 9(b)(2)-1 of Regulation B: more than four is not likely to be helpful
FORMATS = ("txt", "html", "pdf")

Party = Literal["guest", "host", "any"]


class FormReason(Concept):
    """One reason of the form, and when it is accurate."""

    text: str
    text_zh: str
    learned: Literal["up", "down"]
    party: Party = "any"


class Form(BaseModel):
    """The reasons of the form that a feature can state."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    as_of: dt.date
    reasons: Annotated[tuple[FormReason, ...], Field(min_length=1)]

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """What each reason looks for."""
        return tuple(reason.pattern(words().lists) for reason in self.reasons)


@cache
def form() -> Form:
    """The built-in table; read once."""
    return Form.model_validate(yaml.safe_load(TABLE.read_text(encoding="utf-8")))


def form_reason(feature: Feature, learned: str, *, of_guest: bool) -> FormReason | None:
    """The form's words for a feature, where they are accurate.

    Parameters
    ----------
    learned : str
        What a higher value does to the risk in the model.
    of_guest : bool
        Whether the creditor itself holds the feature.
    """
    nothing, meaning, meaning_zh = (PhraseMatch.of(text) for text in ("", feature.meaning, feature.meaning_zh))
    for reason, pattern in zip(form().reasons, form().patterns, strict=True):
        fits = reason.party in ("any", "guest" if of_guest else "host") and reason.learned == learned
        if fits and pattern.find(nothing, meaning, meaning_zh):
            return reason
    return None


@dataclass(frozen=True)
class NoticeLine:
    """One reason.

    Attributes
    ----------
    feature : Feature
    party, party_zh : str
        Title of who holds it.
    of_guest : bool
    learned : str
        What a higher value does to the risk: ``up``, ``down``, or no one direction.
    blockers : tuple of str
        Provisions of which the feature is a prohibited basis, in force and not overridden.
    """

    feature: Feature
    party: str
    party_zh: str
    of_guest: bool
    learned: str
    blockers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Notice:
    """What a notice is drawn from.

    Attributes
    ----------
    creditor, creditor_zh : str
    subject : str
        Id of the person.
    date : str
        ISO day.
    model_id : str
    lines : tuple of NoticeLine
        By name of feature; their order says nothing.
    """

    creditor: str
    creditor_zh: str
    subject: str
    date: str
    model_id: str
    lines: tuple[NoticeLine, ...]

    @property
    def blocked(self) -> bool:
        """Whether a reason is a prohibited basis."""
        return any(line.blockers for line in self.lines)

    def outline(self, language: str) -> Outline:
        """The notice, or why there is none, as blocks."""
        says = Catalogue(language)
        creditor = says.either(self.creditor, self.creditor_zh)
        head = Facts(
            (
                (says("notice.subject"), self.subject),
                (says("notice.date"), self.date),
                (says("notice.model"), self.model_id),
            )
        )
        if self.blocked:
            stopped: list[Block] = [head, Text(says("notice.blocked_why"), "finding")]
            stopped += [
                Text(
                    says("notice.blocked_line", meaning=_meaning(line, says), law="; ".join(line.blockers)),
                    "finding",
                )
                for line in self.lines
                if line.blockers
            ]
            stopped.append(Text(says("notice.blocked_do")))
            return Outline(says("notice.blocked"), creditor, tuple(stopped))
        blocks: list[Block] = [head, Text(says("notice.action")), Heading(says("notice.reasons"), 2)]
        blocks += [Text(_said(line, says)) for line in self.lines] or [Text(says("notice.none"))]
        others = sorted({says.either(line.party, line.party_zh) for line in self.lines if not line.of_guest})
        blocks.append(Heading(says("notice.sources"), 2))
        shown = (
            says("notice.sources_others", parties=says("words.comma").join(others))
            if others
            else says("notice.sources_own")
        )
        blocks += [Text(shown), Heading(says("notice.rights"), 2), Text(says("notice.ecoa"))]
        how = says("notice.how")
        if any(_form_reason(line) for line in self.lines):
            how += " " + says("notice.form", source=form().source, day=form().as_of)
        blocks.append(Text(how, "note"))
        return Outline(says("notice.title"), creditor, tuple(blocks))


def _form_reason(line: NoticeLine) -> FormReason | None:
    return form_reason(line.feature, line.learned, of_guest=line.of_guest)


def _meaning(line: NoticeLine, says: Catalogue) -> str:
    return says.either(line.feature.meaning, line.feature.meaning_zh)


def _said(line: NoticeLine, says: Catalogue) -> str:
    """A reason in words: the form's where they fit, the feature's meaning, who holds it, which way it works."""
    found = _form_reason(line)
    way = says(f"notice.way_{line.learned}" if line.learned in ("up", "down") else "notice.way_mixed")
    own = says("notice.reason", meaning=_meaning(line, says), party=says.either(line.party, line.party_zh), way=way)
    return f"• {says.either(found.text, found.text_zh)} — {own}" if found else f"• {own}"


def draw(notice: Notice, language: str, kind: str) -> bytes:
    """The notice as a file.

    Parameters
    ----------
    language : {"en", "zh"}
    kind : {"txt", "html", "pdf"}

    Raises
    ------
    ParameterError
        The language or the kind is unknown.
    """
    if kind not in FORMATS:
        raise ParameterError(f"A notice was asked for as {kind!r}; choose one of {', '.join(FORMATS)}.")
    if kind == "pdf":
        from backend.reports.render.pdf_form import language_of_pdf, pages  # noqa: PLC0415 - slow to import, and few runs need it

        shown = language_of_pdf(language)
        time = dt.datetime.fromisoformat(notice.date).replace(tzinfo=dt.UTC)
        return bytes(pages(notice.outline(shown), shown, time).output())
    drawn = notice.outline(language)
    return (page(drawn, language) if kind == "html" else _as_text(drawn)).encode()


def _as_text(drawn: Outline) -> str:
    lines = [drawn.title, drawn.subtitle, ""]
    for block in drawn.blocks:
        match block:
            case Facts(rows):
                lines += [*(f"{name}: {value}" for name, value in rows), ""]
            case Heading(text):
                lines += [text.upper() if text.isascii() else text]
            case Text(text):
                lines += [text, ""]
            case _:
                raise ParameterError("A notice holds headings, facts and paragraphs only.")
    return "\n".join(lines)
