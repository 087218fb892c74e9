"""What is to be said about a sheet of samples, in the language of whoever reads it (assets/texts, section ``sheet``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from backend.i18n import Catalogue, listed_in


@dataclass(frozen=True, slots=True)
class Remark:
    """One sentence, or two.

    Attributes
    ----------
    key : str
        In the section ``sheet`` of the catalogues.
    values : mapping of str to str
        What the text is filled in with.
    row : int
        The row that it is about; 0 where it is about the sheet, or about a person who was typed in.
    column : str
        The column that it is about, if any.
    chinese : mapping of str to str
        Values that differ in Chinese.
    """

    key: str
    values: Mapping[str, object] = field(default_factory=dict)
    row: int = 0
    column: str = ""
    chinese: Mapping[str, object] = field(default_factory=dict)

    def text(self, language: str = "en") -> str:
        """Where, what and what to do: "Row 3, age: 'abc' is not a number. Correct it, or leave the cell empty."."""
        words = Catalogue(language)
        filled = {**self.values, **(self.chinese if language == "zh" else {})}
        filled = {name: listed_in(language, value) for name, value in filled.items()}
        return self._where(words) + words(f"sheet.{self.key}", **filled)

    def _where(self, words: Catalogue) -> str:
        if self.row and self.column:
            return words("sheet.at_cell", row=self.row, column=self.column)
        if self.row:
            return words("sheet.at_row", row=self.row)
        return words("sheet.at_column", column=self.column) if self.column else ""
