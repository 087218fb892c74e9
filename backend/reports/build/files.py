"""A report as a file, and what a check of such a file finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

from backend.reports import document as report
from backend.reports.render.html_form import read_html, to_html
from backend.store.audit_log import Entry

FORMS: dict[str, Callable[[report.Report, str], bytes]] = {
    "json": lambda made, language: report.to_json(made).encode(),
    "html": lambda made, language: to_html(made, language).encode(),
    "pdf": lambda made, language: _drawing().to_pdf(made, language),
}


def _drawing() -> ModuleType:
    """What draws and reads PDFs."""
    from backend.reports.render import pdf_form  # noqa: PLC0415 - slow to import, and few runs need it

    return pdf_form


def language_of_pdf(language: str) -> str:
    """The language that a PDF can be drawn in on this machine."""
    return str(_drawing().language_of_pdf(language))


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

    report: report.Report
    drawn: Literal["json", "yes", "other"]
    named_by: tuple[tuple[str, Entry], ...] = ()


def check(blob: bytes) -> Checked:
    """Read the report in a file of any form; check its hashes, and that what is drawn belongs to it.

    Raises
    ------
    ModelError
        The file holds no report, or was changed.
    """
    if blob.startswith(b"%PDF"):
        made = _drawing().read_pdf(blob)
        return Checked(made, "yes" if _drawing().is_drawn_here(blob, made) else "other")
    text = blob.decode("utf-8", errors="replace")
    if text.lstrip()[:1] == "<":
        return Checked(read_html(text), "yes")
    return Checked(report.read(text), "json")
