"""Every word on a page comes from the catalogues in assets/texts; this file finds it, fills it in and formats numbers.

Knows nothing of widgets or sessions.
"""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from backend.i18n import (
    NO_MEANING,
    brief,
    catalogue,
    demo_in,
    fill,
    joined,
    jurisdiction_in,
    template,
    texts_in,
    unit_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from backend.data.dictionary import Feature
    from backend.data.federation import Federation
    from backend.data.label import Label
    from backend.i18n import Text

UNITS = (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48))  # seconds in one, and from how many on the next is used
DAY = 86_400  # seconds

_ADDRESS = re.compile(r"https?:(?=//)|www(?=\.)|[-.\w+](?=@)", re.IGNORECASE)  # what GitHub's Markdown makes a link of
_JOINED = "\u2060"  # word joiner: neither seen nor a place to break a line
UNBROKEN = "\u00a0"  # between a figure and its unit, so that no line ends there
_MARKDOWN = re.compile(r"([\\`*_\[\]<>#$~|:{}])")
# Streamlit draws icons, badges and emoji of these, backslash or not; it also makes arrows of "->"
_SHORTCODE = re.compile(r":(?=[\w+-]+[:\[/])")


def markdown(text: str) -> str:
    """`text` so that Markdown shows it letter by letter: whatever a federation file says stays text.

    No address becomes a link, and no ``:material/verified:`` our own icon.
    """
    unlinked = _ADDRESS.sub(lambda match: match[0] + _JOINED, text)
    plain = _SHORTCODE.sub(":" + _JOINED, unlinked)
    return _MARKDOWN.sub(r"\\\1", plain)


def code(text: str) -> str:
    """`text` as Markdown's code, such as a column's name: letter by letter, whatever marks are in it."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    around = " " if len(fence) > 1 else ""
    return f"{fence}{around}{_SHORTCODE.sub(':' + _JOINED, text)}{around}{fence}"


def label(text: str) -> str:
    """`text` for a chart, where ``<`` and ``&`` would start a tag."""
    return html.escape(text, quote=False)


def cut(text: str, width: int) -> str:
    """Return the beginning of `text` in about `width` letters (Chinese letters count double)."""
    length = 0
    for index, letter in enumerate(text):
        length += 2 if letter > "\u2e80" else 1
        if length > width:
            return text[:index].rstrip() + "…"
    return text


def wrap(text: str, width: int, lines: int = 3) -> str:
    """`text` for a chart broken into at most `lines` lines of about `width` letters (Chinese letters count double)."""
    rows: list[str] = [""]
    size = 0
    for word in re.findall(r"(?:[\u2e80-\uffff]|[^\s\u2e80-\uffff]+)\s*", text):
        wide = 2 if word[0] > "\u2e80" else 1
        length = len(word.rstrip()) * wide
        if size and size + length > width:
            rows.append("")
            size = 0
        rows[-1] += word
        size += len(word) * wide
    if len(rows) > lines:
        rows = [*rows[: lines - 1], rows[lines - 1].rstrip() + "…"]
    return "<br>".join(label(row.rstrip()) for row in rows)


class Texts:
    """The catalogue of one language: ``t(key, name=value)``.

    A value called ``n`` chooses between singular and plural where the catalogue has both, and the words for none if it has those.
    Whole numbers are shown with thousands signs.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._texts = catalogue(language)

    def __call__(self, key: str, /, **values: object) -> str:
        """Find a text and fill it in."""
        return fill(template(self._texts, key, values), self.language, values)

    def has(self, key: str) -> bool:
        """True if the catalogue holds `key`."""
        return key in self._texts

    def meaning(self, feature: Feature) -> str:
        """Return what a feature says about a person, in the chosen language where its owner gave it."""
        return self._noted(self.text(feature.meaning))

    def _noted(self, meaning: str) -> str:
        """Return a meaning; if the owner gave none, with that note in the chosen language."""
        name = meaning.removesuffix(NO_MEANING)
        if name == meaning:
            return meaning
        return self.noted(name.rstrip(), self("words.no_meaning"))

    def unit(self, of: Feature | Label) -> str:
        """Return the unit of a feature or a label in the chosen language."""
        return unit_in(self.language, of.unit, of.meaning)

    def after(self, of: Feature) -> str:
        """Return a feature's unit as it follows a number; a scale such as 0–100 in brackets, so that it is not read as another number."""
        unit = self.unit(of)
        if unit[:1].isdigit():
            return f" ({unit})"
        if unit:
            return f" {unit}"
        return ""

    def codes(self, feature: Feature) -> dict[str, str]:
        """Return the meanings of a feature's codes, in the chosen language where its owner gave it."""
        return texts_in(self.language, feature.categories)

    def brief(self, feature: Feature) -> str:
        """Return a feature's meaning without what explains its values, if it is long: for charts and sentences."""
        return brief(self.meaning(feature))

    def model(self, name: str) -> str:
        """Return what a model is called in the chosen language."""
        return demo_in(self.language, name)

    def written(self, words: str) -> str:
        """Return what a user wrote, as it is; a text of the demo, in the chosen language."""
        return demo_in(self.language, words)

    def party(self, federation: Federation, name: str) -> str:
        """Return a party's title in the chosen language."""
        return self.text(federation.party(name).title)

    def federation(self, federation: Federation) -> str:
        """Return a federation's title in the chosen language."""
        return self.text(federation.title)

    def federations(self, every: Iterable[Federation]) -> dict[str, str]:
        """Short name → title, with the short name where others have the same title: a menu cannot tell equal lines apart."""
        titles = {federation.name: self.federation(federation) for federation in every}
        many = Counter(titles.values())
        return {name: self.noted(title, name if many[title] > 1 else "") for name, title in titles.items()}

    def label(self, federation: Federation) -> str:
        """Return what is predicted, in the chosen language."""
        label = federation.label
        text = self.text(label.meaning)
        if self.language == "zh" and text.endswith(NO_MEANING):  # made of the column's name and its value
            text = text.replace(f" is {label.positive} ", f" = {label.positive} ")
        return self._noted(text)

    def jurisdiction(self, name: str) -> str:
        """Return where a rule pack applies."""
        return jurisdiction_in(self._texts, name)

    def text(self, text: Text) -> str:
        """Return a text in the chosen language."""
        return text.in_language(self.language)

    def listed(self, words: list[str]) -> str:
        """Return a list in words: "a, b and c"."""
        if len(words) < 2:
            return "".join(words)
        return self("words.and", before=self("words.comma").join(words[:-1]), last=words[-1])

    def noted(self, words: str, note: str) -> str:
        """Words with a note in the language's brackets; without a note the words alone."""
        if note:
            if self.language == "zh":
                return f"{words}（{note}）"
            return f"{words} ({note})"
        return words

    @staticmethod
    def joined(*sentences: str) -> str:
        """Sentences one after the other, without a space after a Chinese full stop; empty ones are left out."""
        return joined(*sentences)

    def duration(self, seconds: float) -> str:
        """Seconds in the unit that fits, with three significant digits."""
        return self._lasting(seconds, number)

    def about(self, seconds: float) -> str:
        """Return what is expected to take so long, in the unit that fits: two significant digits, for it was not measured."""
        return self._lasting(seconds, lambda value: bare(float(f"{value:.2g}")))

    def _lasting(self, seconds: float, write: Callable[[float], str]) -> str:
        if seconds < 1:
            return f"{write(seconds * 1000)}{UNBROKEN}{self('words.ms')}"
        for unit, length, end in UNITS:
            if seconds < end * length:
                return f"{write(seconds / length)}{UNBROKEN}{self(f'words.{unit}')}"
        return self("words.days", days=write(seconds / DAY))

    def past(self, seconds: float) -> str:
        """Return how long ago something was, in whole units."""
        if seconds < 60:
            return self("waits.moment")
        for unit, length, end in UNITS[1:]:
            if seconds < end * length:
                return f"{int(seconds // length)}{UNBROKEN}{self(f'words.{unit}')}"
        return self("words.days", days=str(int(seconds // DAY)))


def number(value: float) -> str:
    """Three significant digits, thousands separated, a true minus sign: 1,290; 0.783; −12.4."""
    if math.isnan(value):
        return "–"
    if value < 0:
        return f"−{number(-value)}"
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    digits = 3 - len(str(int(value))) if value >= 1 else 3
    if value >= 0.001:
        return f"{value:,.{digits}f}"
    return f"{value:.2g}"


def bare(value: float) -> str:
    """As `number`, without zeros at the end: 1.5, 30,500, 24."""
    text = number(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def signed(value: float) -> str:
    """Three decimals with the sign always shown (a true minus sign)."""
    return f"{value:+.3f}".replace("-", "−")


def amount(value: float, unit: str) -> str:
    """Return a number with its unit, which may be empty: 1,290 €."""
    return f"{number(value)}{UNBROKEN}{unit}".rstrip()


def percent(share: float) -> str:
    """Return a share 0..1 as percent with at most three significant digits: 61 %, 7.4 %, 0.12 %; a dash if there is none."""
    if math.isnan(share):
        return "–"
    value = share * 100
    if value == 0 or value >= 99.95:
        return f"{value:.0f}{UNBROKEN}%"
    if abs(value) >= 1:
        return f"{value:.1f}{UNBROKEN}%"
    return f"{value:.2g}{UNBROKEN}%"


def size(count: int) -> str:
    """Return a number of bytes with a unit."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{bare(amount)}{UNBROKEN}{unit}"
        amount /= 1000
    return f"{number(amount)}{UNBROKEN}GB"
