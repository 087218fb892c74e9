"""How a printed report words names, directions and numbers. Knows the report alone.

Numbers are written once, here: shares with two decimals of a percent, figures with four.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from backend.i18n import Catalogue, brief
from backend.reports.document import Report
from backend.reports.schema import FeatureLine
from backend.reports.schema_claims import LawLine


class Wording:
    """A report with the words of one language."""

    def __init__(self, report: Report, words: Catalogue) -> None:
        self.w, self._report, self._content = words, report, report.content
        self._titles = {p.name: words.either(p.title, p.title_zh) for p in self._content.parties}
        self._features = {f.name: f for f in self._content.features}

    def _d(self, key: str, **values: object) -> str:
        return self.w(f"document.{key}", **values)

    def _listed(self, parts: Iterable[str]) -> str:
        return self.w("document.semicolon").join(parts)

    def _meaning(self, feature: FeatureLine) -> str:
        return self.w.either(feature.meaning, feature.meaning_zh)

    def _brief(self, feature: FeatureLine) -> str:
        """Its meaning without what explains its values."""
        return brief(self._meaning(feature))

    def _named(self, name: str) -> str:
        feature = self._features.get(name)
        return self._d("named", meaning=self._brief(feature), name=name) if feature else name

    def _explained(self, name: str, meaning: str, meaning_zh: str) -> str:
        """A feature that need not be among those of the model."""
        return self._d("named", meaning=brief(self.w.either(meaning, meaning_zh)), name=name)

    def _direction(self, word: str) -> str:
        number = self._content.identity.task == "number" and word in ("up", "down")
        return self.w(f"direction.{word}_number" if number else f"direction.{word}")

    def _role(self, role: str) -> str:
        return self.w(f"words.{role}")

    def _status(self, law: LawLine) -> str:
        return self.w(f"compliance.{law.status}")

    def _party(self, name: str) -> str:
        return self._titles.get(name, name)

    def _heads(self, keys: Sequence[str]) -> tuple[str, ...]:
        return tuple(self._d(f"head_{key}") for key in keys)


def percent(share: float) -> str:
    """A share with all the digits that a report holds."""
    return f"{share * 100:.2f} %"


def whole(value: float | None) -> str:
    """A count."""
    return "–" if value is None else f"{value:,.0f}"


def figure(value: float | None) -> str:
    """A figure with all the digits that a report holds; a dash where there is none."""
    return "–" if value is None else f"{value:.4f}"


def minute(time: str) -> str:
    """An ISO time without fractions."""
    return time[:19].replace("T", " ") + (" UTC" if time.endswith(("+00:00", "Z")) else "")


def signed(value: float) -> str:
    """A difference of two figures."""
    return f"{value:+.4f}"
