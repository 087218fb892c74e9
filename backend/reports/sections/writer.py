"""How names, directions and numbers of a report are written in one language. Knows the report alone.

Numbers are written once, here: shares with two decimals of a percent, those of the gain with one, figures with four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from backend.compliance.assessment import Law
from backend.i18n import Catalogue, Text, brief
from backend.policy.bands import line_kind
from backend.reports.blocks import Block, Facts, Heading, Paragraph, Table
from backend.reports.document import Report
from backend.reports.schema import FeatureLine

NONE = "–"
SMALLEST = 0.0001  # what a figure of four decimals can tell
NUMERIC = {  # columns aligned to the right
    "records", "splits", "gain", "strength", "gain_before", "gain_after", "before", "after", "value", "interval", "interval_95", "n",
    "predicted", "observed", "cutoff", "true_positive", "false_positive", "lead", "psi", "chance", "messages", "bytes",
    "mean_probability", "elderly_less", "days", "champion", "challenger", "answered_about", "most_bits", "limit_bits", "undecided",
}  # fmt: skip
T = TypeVar("T")


class Writer:
    """A report with the words of one language: ``write("title", title=name)`` is the text ``document.title``."""

    def __init__(self, report: Report, words: Catalogue) -> None:
        self.report = report
        self.content = report.content
        self.words = words
        self.features = {f.name: f for f in report.content.features}
        self._titles = {p.name: words.text(p.title) for p in report.content.parties}

    def __call__(self, key: str, /, **values: object) -> str:
        """Return a text of the report."""
        return self.words(f"document.{key}", **values)

    def listed(self, parts: Iterable[str]) -> str:
        """Several parts in one sentence."""
        return self("semicolon").join(parts)

    def enumerated(self, parts: Iterable[str]) -> str:
        """Several words in a row."""
        return self.words("words.comma").join(parts)

    def party(self, name: str) -> str:
        """Return a party's title."""
        return self._titles.get(name, name)

    def says(self, who: str, text: str) -> str:
        """Return a name, a colon and what is said about it."""
        return self.words("words.says", who=who, said=text)

    def role(self, role: str) -> str:
        """Guest or Host."""
        return self.words(f"words.{role}")

    def part(self, part: str) -> str:
        """Return a part of the data."""
        return self.words.named("document.part_", part)

    def meaning(self, feature: FeatureLine) -> str:
        """Return what a feature means."""
        return self.words.text(feature.meaning)

    def unit(self, feature: FeatureLine) -> str:
        """Return a feature's unit."""
        return self.words.unit(feature.unit, feature.meaning)

    def codes(self, feature: FeatureLine) -> dict[str, str]:
        """Return the meanings of a feature's codes."""
        return self.words.texts(feature.codes)

    def feature(self, name: str) -> str:
        """Return one of the model's features by its meaning and name, without what explains its values; others by name alone."""
        feature = self.features.get(name)
        return self.named(name, feature.meaning) if feature else name

    def named(self, name: str, meaning: Text) -> str:
        """Return a feature that need not be among those of the model."""
        return self("named", meaning=brief(self.words.text(meaning)), name=name)

    def direction(self, way: str) -> str:
        """Return which way a feature moves the prediction."""
        number = self.content.identity.task == "number" and way in ("up", "down")
        return self.words(f"direction.{way}_number" if number else f"direction.{way}")

    def status(self, law: Law) -> str:
        """Return the legal status of a feature under a rule, in a word or two."""
        return self.words(f"compliance.{law.status}")

    def line(self, cutoff: float, version: int | None) -> str:
        """Return a cut-off that something was measured at, and whose line it is."""
        return self.words(f"policy.at_{line_kind(version)}", cutoff=percent(cutoff), version=version)

    def heading(self, key: str) -> Heading:
        """Return a heading within a section."""
        return Heading(self(key), 2)

    def text(self, key: str, **values: object) -> Paragraph:
        """A paragraph."""
        return Paragraph(self(key, **values))

    def note(self, key: str, **values: object) -> Paragraph:
        """A remark."""
        return Paragraph(self(key, **values), "note")

    def facts(self, values: Mapping[str, str]) -> Facts:
        """Values under the names that their keys have in the catalogue."""
        return Facts(tuple((self(key), value) for key, value in values.items()))

    def table(self, items: Iterable[T], *columns: tuple[str, int, Callable[[T], str]]) -> Table:
        """One row per item; a column is the key of its heading, its relative width, and a function from item to cell."""
        return Table(
            head=tuple(self(f"head_{key}") for key, _, _ in columns),
            rows=tuple(tuple(cell(item) for _, _, cell in columns) for item in items),
            widths=tuple(width for _, width, _ in columns),
            numeric=tuple(i for i, (key, _, _) in enumerate(columns) if key in NUMERIC),
        )


def problems(texts: Iterable[str]) -> list[Block]:
    """Problems, each a paragraph in the colour of findings."""
    return [Paragraph(problem, "finding") for problem in texts]


def percent(share: float | None) -> str:
    """Return a share with all the digits that a report holds; a dash if there is none."""
    return NONE if share is None else f"{share * 100:.2f}\u00a0%"


def gain(share: float) -> str:
    """Return a share of the gain, as pages show it: with one decimal, below 1 % with two digits."""
    if share >= 0.01 or not share:
        return f"{share * 100:.1f}\u00a0%"
    return f"{share * 100:.2g}\u00a0%"


def whole(value: float | None) -> str:
    """Return a count; a dash if there is none."""
    return NONE if value is None else f"{value:,.0f}"


def figure(value: float | None) -> str:
    """Return a figure with all the digits that a report holds; a dash if there is none."""
    if value is None:
        return NONE
    return f"{value:z.4f}".replace("-", "−")


def bits(value: float | None) -> str:
    """Return what answers reveal, an upper bound of which more digits say nothing; a dash if there is none."""
    return NONE if value is None else f"{value:,.1f}"


def p_value(value: float | None) -> str:
    """Return a p-value; no test is certain, so that what rounds to 0 reads as less than the last digit."""
    if value is not None and value < SMALLEST:
        return f"< {SMALLEST}"
    return figure(value)


def interval(low: float | None, high: float | None, show: Callable[[float | None], str] = figure) -> str:
    """From one figure to another."""
    return f"{show(low)} – {show(high)}"


def signed(value: float) -> str:
    """Return a difference of two figures."""
    return f"{value:+.4f}".replace("-", "−")


def points(value: float | None) -> str:
    """Return a difference of two shares, in percentage points."""
    if value is None:
        return NONE
    return f"{value * 100:+.2f}".replace("-", "−")


def minute(time: str) -> str:
    """Return an ISO time without fractions."""
    return time[:19].replace("T", " ") + (" UTC" if time.endswith(("+00:00", "Z")) else "")
