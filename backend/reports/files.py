"""A report as a file in one of three formats, and what a check of such a file finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

from backend.reports.document import Report, read, to_json
from backend.reports.render.html_form import read_html, to_html
from backend.store.audit_log import Entry

FORMS: dict[str, Callable[[Report, str], bytes]] = {
    "json": lambda report, language: to_json(report).encode(),
    "html": lambda report, language: to_html(report, language).encode(),
    "pdf": lambda report, language: _pdf_form().to_pdf(report, language),
}


def _pdf_form() -> ModuleType:
    # Slow to import, and few runs need it.
    from backend.reports.render import pdf_form  # noqa: PLC0415

    return pdf_form


def language_of_pdf(language: str) -> str:
    """The language that a PDF can be drawn in on this machine."""
    return str(_pdf_form().language_of_pdf(language))


@dataclass(frozen=True)
class Checked:
    """What a check of a report's file found.

    Attributes
    ----------
    report : Report
    drawn : {"json", "yes", "other"}
        Whether what a reader sees is what is drawn from the report inside: nothing is drawn in JSON; ``other``: a PDF that other
        fonts or another version drew, or that was changed.
    named_by : tuple of (str, Entry)
        Federation and entry of its audit log that name the report; none where it was not issued from this home.
    """

    report: Report
    drawn: Literal["json", "yes", "other"]
    named_by: tuple[tuple[str, Entry], ...] = ()


def check(blob: bytes) -> Checked:
    """Read the report in a file of any format; check its hashes, and that what is drawn belongs to it.

    Raises
    ------
    ModelError
        The file holds no report, or was changed.
    """
    if blob.startswith(b"%PDF"):
        report = _pdf_form().read_pdf(blob)
        return Checked(report, "yes" if _pdf_form().is_drawn_here(blob, report) else "other")
    text = blob.decode("utf-8", errors="replace")
    if text.lstrip()[:1] == "<":
        return Checked(read_html(text), "yes")
    return Checked(read(text), "json")
