"""A notice of adverse action: up to four specific principal reasons in words, or why there must be none. Knows names, no contribution.

A reason is a text of the feature dictionary: for a value above that of most people, below it, or, of codes, one that claims neither. Words
of Regulation B's form C-1 come before it only if they say the same (notices/regulation_b.yaml). Features that share them are one reason,
and so are those of one holder whose meanings differ in a month or a year alone. Where a reason is a prohibited basis, or an age of which it
was not shown that elderly people fare no worse, no notice is drawn: it would state an unlawful ground or hide it.

The English notice is one under United States law, the Chinese one under Chinese law: neither is a translation of the other.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Annotated, Literal, Protocol

import yaml
from pydantic import BaseModel, ConfigDict, Field

from backend.compliance.concepts import Concept, Pattern
from backend.compliance.phrases import FeatureTexts
from backend.compliance.rule_pack import words as compliance_words
from backend.data.dictionary import Feature, Side
from backend.data.federation import Party
from backend.errors import ParameterError
from backend.i18n import NO_TEXT, Catalogue, Text, joined
from backend.jobs.apart import apart
from backend.reports.blocks import Block, Facts, Heading, Outline, Paragraph
from backend.reports.language import said_at_once, words_in
from backend.reports.render.fonts import language_of_pdf
from backend.reports.render.html_form import page
from backend.reports.verdict.facts import Verdict
from backend.store.model_states import Standing
from backend.trees.backgrounds import Against
from backend.trees.ensemble import GuestModel

FORM_TABLE = files("backend.reports") / "notices" / "regulation_b.yaml"
MAX_REASONS = 4  # comment 9(b)(2)-1 of Regulation B: more than four is not likely to be helpful
FORMATS = ("txt", "html", "pdf")

MONTH_NAMES = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?"
)
# what names or counts a time: September 2005, Q3, month 4, 12 months, 2005 年 9 月
TIME_WORDS = re.compile(
    rf"\b(?:{MONTH_NAMES})\b\.?|\b(?:19|20)\d\d\b|\bq[1-4]\b|\b(?:day|week|month|quarter|year)s?[ -]\d+\b|"
    r"\b\d+(?:st|nd|rd|th)?[ -](?:day|week|month|quarter|year)s?\b|\d+ ?个?(?:天|日|周|月|季度|年)",
    re.IGNORECASE,
)

LEARNED = {"up": "above", "down": "below"}  # where a higher value raises the risk, it is a reason for those above

Holder = Literal["guest", "host", "any"]


class FormReason(Concept):
    """One reason of the form, and when it is accurate."""

    text: Text
    learned: Literal["up", "down"]
    party: Holder = "any"


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
    """Return the built-in table; read once."""
    return Form.model_validate(yaml.safe_load(FORM_TABLE.read_text(encoding="utf-8")))


def form_reason(feature: Feature, side: str, *, of_guest: bool) -> FormReason | None:
    """Return the form's words for a feature, if they are accurate.

    Parameters
    ----------
    side : {"above", "below", ""}
        On which side of most people the person is, where the other would have helped.
    of_guest : bool
        Whether the creditor itself holds the feature.
    """
    return next((reason for reason in _similar(feature, of_guest) if LEARNED[reason.learned] == side), None)


def _similar(feature: Feature, of_guest: bool) -> list[FormReason]:
    """Reasons of the form that are about the same, whichever way it works."""
    texts = FeatureTexts.of("", feature.meaning.en, feature.meaning.zh)
    party = "guest" if of_guest else "host"
    both = zip(form().reasons, form().patterns, strict=True)
    return [reason for reason, pattern in both if reason.party in ("any", party) and pattern.find(texts)]


def form_groups(model: GuestModel, items: Sequence[tuple[str, str]]) -> tuple[int, ...]:
    """Which features, by party and name, are one reason, a number each: the form has the same words for them, or only their months differ.

    It follows from meanings and holders, which all parties know.
    """
    about = [_about(model.feature(name), party, party == model.guest) for party, name in items]
    numbers = {reason: i for i, reason in enumerate(dict.fromkeys(about))}
    return tuple(numbers[reason] for reason in about)


def _about(feature: Feature, party: str, of_guest: bool) -> str:
    """Return what is the same of features that are one reason; no feature's name ends with a blank."""
    similar = _similar(feature, of_guest)
    if similar:
        return f"{similar[0].text} "
    timeless = TIME_WORDS.sub("", feature.meaning.en)
    if timeless == feature.meaning.en:
        return feature.name
    return f"{party} {feature.kind} {feature.unit.en} {timeless} "


class Texts(Protocol):
    """A catalogue's texts in one language."""

    def __call__(self, key: str, /, **values: object) -> str:
        """Find a text and fill it in."""

    def text(self, text: Text) -> str:
        """Return a text in the language."""


@dataclass(frozen=True)
class Blocker:
    """Why a feature must not be a reason: a provision, in force and not overridden, and what it says of the feature.

    Attributes
    ----------
    why : {"prohibited", "asked", "negative", "undecided", "open"}
        A prohibited basis, or that question is open; or the age of elderly applicants scores worse, is not shown to score no
        worse, or was not checked.
    """

    law: Text
    why: Literal["prohibited", "asked", "negative", "undecided", "open"]

    def in_words(self, say: Texts) -> str:
        """Why, with the provision."""
        return say(f"notice.why_{self.why}", law=say.text(self.law))


def why_blocked(blockers: Sequence[Blocker], say: Texts) -> str:
    """Return all that is said against a feature."""
    return say("document.semicolon").join(blocker.in_words(say) for blocker in blockers)


@dataclass(frozen=True)
class NoticeLine:
    """One feature that is a reason.

    Attributes
    ----------
    holder : Text
        Title of who holds it.
    side : {"above", "below", ""}
        On which side of most people on record the person is, where medians would have lowered the score; empty = no side was asked about.
    """

    feature: Feature
    holder: Text
    of_guest: bool
    side: str
    blockers: tuple[Blocker, ...] = ()

    @cached_property
    def form_reason(self) -> FormReason | None:
        """The form's words, if they are accurate."""
        return form_reason(self.feature, self.side, of_guest=self.of_guest)

    @cached_property
    def about(self) -> str:
        """What it is about: the same for features that are one reason."""
        return _about(self.feature, self.holder.en, self.of_guest)

    def meaning(self, words: Catalogue) -> str:
        """Return what the feature means."""
        return words.text(self.feature.meaning)

    def text(self, language: str) -> str:
        """Return the dictionary's text for this side; empty if it has none."""
        side: Side = "either"
        if self.side == "above":
            side = "above"
        elif self.side == "below":
            side = "below"
        reason = self.feature.reason.get(side, Text())
        return reason.zh if language == "zh" else reason.en


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
    address, phone, supervisor : Text, str, Text
        The creditor's, and who supervises it under the law of each language; empty if the federation file does not say.
    sources : tuple of Party
        All that the score rests on besides the creditor, whether or not a reason names them.
    probability : float
        The score, which is stated where a source is a consumer reporting agency.
    against : {"all", "approved", "covers"}
        Whom the person was compared with (:mod:`backend.trees.backgrounds`).
    compared : int
        Records in that group.
    policy : int
        Version of the policy that declined; 0 = no line was set.
    verdict : Verdict or None
        What is true of the model; None = it was not judged.
    """

    creditor: Text
    subject: str
    date: str
    model_id: str
    lines: tuple[NoticeLine, ...]
    standing: Standing
    address: Text = NO_TEXT
    phone: str = ""
    supervisor: Text = NO_TEXT
    sources: tuple[Party, ...] = ()
    probability: float = float("nan")
    against: Against = "covers"
    compared: int = 0
    policy: int = 0
    verdict: Verdict | None = None

    @property
    def blocked(self) -> bool:
        """Whether a reason must not be one."""
        return any(line.blockers for line in self.lines)

    def outline(self, language: str) -> Outline:
        """Return the notice, or why there is none, as blocks.

        Raises
        ------
        ParameterError
            A reason has no text in the dictionary, or there are more than a notice states.
        """
        words = words_in(language)
        address = words.text(self.address)
        facts = (
            ("notice.creditor_address", address or absent(words, "address")),
            ("notice.creditor_phone", self.phone or absent(words, "phone")),
            ("notice.subject", self.subject),
            ("notice.date", self.date),
            ("notice.model", self.model_id),
            (
                "notice.policy",
                words("notice.policy_version", version=self.policy) if self.policy else words("notice.policy_none"),
            ),
        )
        title, blocks = ("notice.blocked", self._stopped) if self.blocked else ("notice.title", self._reasons)
        head = Facts(tuple((words(key), value) for key, value in facts))
        all_blocks = (head, *self._unapproved(words), *self._broken(words), *blocks(words))
        return Outline(words(title), words.text(self.creditor), all_blocks)

    def merged(self, language: str) -> list[list[NoticeLine]]:
        """Lines by reason; raises ParameterError if one cannot be stated."""
        bare = [line.feature.name for line in self.lines if not line.text(language)]
        if bare:
            if language == "zh":
                raise ParameterError("reason_without_chinese_text", features=tuple(bare))
            raise ParameterError("reason_without_english_text", features=tuple(bare))
        reasons: dict[str, list[NoticeLine]] = {}
        for line in self.lines:
            reasons.setdefault(line.about, []).append(line)
        if len(reasons) > MAX_REASONS:
            raise ParameterError("notice_of_many_reasons", limit=MAX_REASONS, asked=len(reasons))
        return list(reasons.values())

    def _unapproved(self, words: Catalogue) -> Iterator[Block]:
        state_line = self.standing.said
        if state_line not in ("approved", "in_use"):
            yield Paragraph(words("notice.unapproved", line=words(f"states.line_{state_line}")), "finding")

    def _broken(self, words: Catalogue) -> Iterator[Block]:
        """Yield what is broken about the model, for the person who sends the notice."""
        if self.verdict is not None and self.verdict.state == "broken":
            yield Paragraph(words("notice.broken", headline=words.text(self.verdict.headline)), "finding")

    def _stopped(self, words: Catalogue) -> Iterator[Block]:
        yield Paragraph(words("notice.blocked_why"), "finding")
        for line in self.lines:
            if line.blockers:
                why = why_blocked(line.blockers, words)
                yield Paragraph(words("notice.blocked_line", meaning=line.meaning(words), why=why), "finding")
        yield Paragraph(words("notice.blocked_do"))

    def _reasons(self, words: Catalogue) -> Iterator[Block]:
        american = words.language != "zh"
        compared = words(f"compared.notice_{self.against}", people=f"{self.compared:,}")
        how = joined(words("notice.how"), words("compared.notice_side"))
        if any(not line.side for line in self.lines):
            how = joined(how, words("notice.sideless"))
        if american and any(line.form_reason for line in self.lines):
            how = joined(how, words("notice.form", source=form().source, day=form().as_of))
        yield Paragraph(words("notice.action"))
        yield Heading(words("notice.reasons"), 2)
        yield Paragraph(compared)
        reasons = [_one_reason(lines, words, american) for lines in self.merged(words.language)]
        yield from [Paragraph(reason) for reason in reasons] or [Paragraph(words("notice.none"))]
        yield Heading(words("notice.sources"), 2)
        yield from self._sources(words)
        yield Heading(words("notice.rights"), 2)
        if american:
            supervisor = self.supervisor.en
        else:
            supervisor = self.supervisor.zh
        yield Paragraph(words("notice.law", supervisor=supervisor or absent(words, "supervisor")))
        yield Paragraph(how, "note")

    def _sources(self, words: Catalogue) -> Iterator[Block]:
        """12 CFR 1002.9 with 15 USC 1681m(a) for agencies and (b) for others; PIPL Art. 23 and 24."""
        agencies = [source for source in self.sources if source.reporting_agency]
        others = [words.text(source.title) for source in self.sources if not source.reporting_agency]
        if not self.sources:
            yield Paragraph(words("notice.sources_own"))
        if others:
            yield Paragraph(words("notice.sources_others", parties=words("words.comma").join(others)))
        for source in agencies:
            address = words.text(source.address) or absent(words, "address")
            agency = words.text(source.title)
            phone = source.phone or absent(words, "phone")
            yield Paragraph(words("notice.sources_agency", agency=agency, address=address, phone=phone))
        if self.sources:
            yield Paragraph(words("notice.sources_part"))
        if agencies:
            yield Paragraph(words("notice.score", score=f"{100 * self.probability:.1f}", day=self.date))


def absent(words: Catalogue, field: str) -> str:
    """Return the text if there is no address, a telephone number or a supervisor."""
    return words("notice_details.absent", field=words(f"notice_details.absent_{field}"))


def _one_reason(lines: Sequence[NoticeLine], words: Catalogue, american: bool) -> str:
    """Return the form's words, if they fit, and the texts of all features that are this reason."""
    form_words = dict.fromkeys(line.form_reason.text.en for line in lines if american and line.form_reason)
    between = words("notice.between")
    texts_by_party = dict[str, list[str]]()
    for line in lines:
        texts_by_party.setdefault(words.text(line.holder), []).append(line.text(words.language))
    several = []
    for party, party_texts in texts_by_party.items():
        text = said_at_once(party_texts, words)
        if text == between.join(party_texts) and len(party_texts) > 1:
            key = "notice.reason_several"
        else:
            key = "notice.reason"
        several.append(words(key, text=text, party=party))
    texts = between.join(several)
    if form_words:
        return f"• {'; '.join(form_words)} — {texts}"
    return f"• {texts}"


def draw(notice: Notice, language: str, kind: str) -> bytes:
    """Return the notice as a file.

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
        raise ParameterError("unknown_notice_format", format=kind, known=FORMATS)
    if kind == "pdf":
        pdf_language = language_of_pdf(language)
        return apart(
            _pages,
            notice.outline(pdf_language),
            pdf_language,
            dt.datetime.fromisoformat(notice.date).replace(tzinfo=dt.UTC),
        )
    notice_outline = notice.outline(language)
    return (page(notice_outline, language) if kind == "html" else _as_text(notice_outline, words_in(language))).encode()


def _pages(notice_outline: Outline, language: str, time: dt.datetime) -> bytes:
    from backend.reports.render.pdf_form import pages  # noqa: PLC0415 - slow to import, and few runs need it

    return bytes(pages(notice_outline, language, time).output())


def _as_text(notice_outline: Outline, words: Catalogue) -> str:
    lines = [notice_outline.title, notice_outline.subtitle, ""]
    for block in notice_outline.blocks:
        match block:
            case Facts(rows):
                lines += [*(words("words.says", who=name, said=value) for name, value in rows), ""]
            case Heading(text):
                lines += [text.upper() if text.isascii() else text]
            case Paragraph(text):
                lines += [text, ""]
            case _:
                raise TypeError("a notice holds headings, facts and paragraphs only")
    return "\n".join(lines)
