"""A notice of adverse action: up to four specific principal reasons in words, or why there must be none. Knows names, no contribution.

A reason is a feature's disclosed meaning and the direction that the model has learned; the words of Regulation B's form C-1 stand beside
it only where they say the same (notices/regulation_b.yaml). Where a reason is a prohibited basis, or an age of which it was not shown
that elderly people fare no worse, no notice is drawn: it would state an unlawful ground or hide it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from backend.compliance.phrases import Concept, FeatureTexts, Pattern
from backend.compliance.rule_pack import words as compliance_words
from backend.data.dictionary import Feature
from backend.errors import ParameterError
from backend.i18n import Catalogue
from backend.reports.blocks import Block, Facts, Heading, Outline, Text
from backend.reports.render.html_form import page
from backend.store.model_states import Standing

TABLE = files("backend.reports") / "notices" / "regulation_b.yaml"
MAX_REASONS = 4  # comment 9(b)(2)-1 of Regulation B: more than four is not likely to be helpful
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
        return tuple(reason.pattern(compliance_words().lists) for reason in self.reasons)


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
    texts = FeatureTexts.of("", feature.meaning, feature.meaning_zh)
    for reason, pattern in zip(form().reasons, form().patterns, strict=True):
        fits = reason.party in ("any", "guest" if of_guest else "host") and reason.learned == learned
        if fits and pattern.find(texts):
            return reason
    return None


@dataclass(frozen=True)
class Blocker:
    """Why a feature must not be a reason: a provision, in force and not overridden, and what it says of the feature.

    Attributes
    ----------
    why : {"prohibited", "negative", "undecided", "open"}
        A prohibited basis; or the age of elderly applicants scores worse, is not shown to score no worse, or was not checked.
    """

    law: str
    why: Literal["prohibited", "negative", "undecided", "open"]

    def in_words(self, say: Callable[..., str]) -> str:
        """Why, with the provision, from a catalogue."""
        return say(f"notice.why_{self.why}", law=self.law)


@dataclass(frozen=True)
class NoticeLine:
    """One reason.

    Attributes
    ----------
    party, party_zh : str
        Title of who holds it.
    learned : str
        What a higher value does to the risk: ``up``, ``down``, or no one direction.
    blockers : tuple of Blocker
    """

    feature: Feature
    party: str
    party_zh: str
    of_guest: bool
    learned: str
    blockers: tuple[Blocker, ...] = ()

    @cached_property
    def form_reason(self) -> FormReason | None:
        """The form's words, where they are accurate."""
        return form_reason(self.feature, self.learned, of_guest=self.of_guest)

    def meaning(self, words: Catalogue) -> str:
        """What the feature means."""
        return words.either(self.feature.meaning, self.feature.meaning_zh)

    def in_words(self, words: Catalogue) -> str:
        """The reason: the form's words where they fit, the feature's meaning, who holds it, which way it works."""
        way = words(f"notice.way_{self.learned if self.learned in ('up', 'down') else 'mixed'}")
        party = words.either(self.party, self.party_zh)
        own = words("notice.reason", meaning=self.meaning(words), party=party, way=way)
        found = self.form_reason
        return f"• {words.either(found.text, found.text_zh)} — {own}" if found else f"• {own}"


@dataclass(frozen=True)
class Notice:
    """What a notice is drawn from.

    Attributes
    ----------
    subject : str
        Id of the person.
    date : str
        ISO day.
    lines : tuple of NoticeLine
        By name of feature; their order says nothing.
    standing : Standing
        Of the model: whether it was approved.
    """

    creditor: str
    creditor_zh: str
    subject: str
    date: str
    model_id: str
    lines: tuple[NoticeLine, ...]
    standing: Standing

    @property
    def blocked(self) -> bool:
        """Whether a reason must not be one."""
        return any(line.blockers for line in self.lines)

    def outline(self, language: str) -> Outline:
        """The notice, or why there is none, as blocks."""
        words = Catalogue(language)
        facts = ("notice.subject", self.subject), ("notice.date", self.date), ("notice.model", self.model_id)
        title, blocks = ("notice.blocked", self._stopped) if self.blocked else ("notice.title", self._reasons)
        head = Facts(tuple((words(key), value) for key, value in facts))
        shown = (head, *self._unapproved(words), *blocks(words))
        return Outline(words(title), words.either(self.creditor, self.creditor_zh), shown)

    def _unapproved(self, words: Catalogue) -> Iterator[Block]:
        said = self.standing.said
        if said not in ("approved", "in_use"):
            yield Text(words("notice.unapproved", line=words(f"states.line_{said}")), "finding")

    def _stopped(self, words: Catalogue) -> Iterator[Block]:
        yield Text(words("notice.blocked_why"), "finding")
        for line in self.lines:
            if line.blockers:
                why = "; ".join(blocker.in_words(words) for blocker in line.blockers)
                yield Text(words("notice.blocked_line", meaning=line.meaning(words), why=why), "finding")
        yield Text(words("notice.blocked_do"))

    def _reasons(self, words: Catalogue) -> Iterator[Block]:
        others = sorted({words.either(line.party, line.party_zh) for line in self.lines if not line.of_guest})
        how = words("notice.how")
        if any(line.form_reason for line in self.lines):
            how += " " + words("notice.form", source=form().source, day=form().as_of)
        yield Text(words("notice.action"))
        yield Heading(words("notice.reasons"), 2)
        yield from [Text(line.in_words(words)) for line in self.lines] or [Text(words("notice.none"))]
        yield Heading(words("notice.sources"), 2)
        parties = words("words.comma").join(others)
        yield Text(words("notice.sources_others", parties=parties) if others else words("notice.sources_own"))
        yield Heading(words("notice.rights"), 2)
        yield Text(words("notice.ecoa"))
        yield Text(how, "note")


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
        raise ParameterError(f"A notice cannot be written as {kind!r}; choose one of {', '.join(FORMATS)}.")
    if kind == "pdf":
        # Slow to import, and few runs need it.
        from backend.reports.render.pdf_form import language_of_pdf, pages  # noqa: PLC0415

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
