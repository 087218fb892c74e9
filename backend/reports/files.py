"""A report as a file in one of three formats, and what a check of such a file finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from backend.errors import ModelError
from backend.jobs.apart import apart
from backend.reports.document import Report, read, to_json
from backend.reports.render.html_form import read_html, to_html
from backend.store.audit_log import Entry

MAX_BYTES = 5_000_000  # of a file that is checked

FORMS: dict[str, Callable[[Report, str], bytes]] = {
    "json": lambda report, language: to_json(report).encode(),
    "html": lambda report, language: to_html(report, language).encode(),
    # Fonts and pages take a fifth of a gigabyte.
    "pdf": lambda report, language: apart(_to_pdf, report, language),
}


def _to_pdf(report: Report, language: str) -> bytes:
    from backend.reports.render.pdf_form import to_pdf  # noqa: PLC0415 - slow to import, and few runs need it

    return to_pdf(report, language)


def _checked_pdf(blob: bytes) -> Checked:
    from backend.reports.render.pdf_form import is_drawn_here, read_pdf  # noqa: PLC0415 - as above

    report = read_pdf(blob)
    return Checked(report, "yes" if is_drawn_here(blob, report) else "other")


@dataclass(frozen=True)
class Checked:
    """What a check of a report's file found.

    Attributes
    ----------
    drawn : {"json", "yes", "other"}
        Whether what a reader sees is what is drawn from the report inside: nothing is drawn in JSON; ``other``: a PDF that other
        fonts or another version drew, or that was changed, and that the audit log does not name.
    named_by : tuple of (str, Entry)
        Federation and entry of its audit log that name the report; none if it was not issued from this home.
    signed_as_asked : bool
        Whether a reader's public key is the one that signed it.
    """

    report: Report
    drawn: Literal["json", "yes", "other"]
    named_by: tuple[tuple[str, Entry], ...] = ()
    signed_as_asked: bool = False

    @property
    def verdict(self) -> Literal["issued", "elsewhere", "other pages"]:
        """Whole and issued by whom it says; whole, but no known key vouches for it; or only the report inside a PDF is."""
        if not self.named_by and not self.signed_as_asked:
            return "elsewhere"
        return "other pages" if self.drawn == "other" else "issued"


def check(blob: bytes) -> Checked:
    """Read the report in a file of any format; check its hashes, and that what is drawn belongs to it.

    Raises
    ------
    ModelError
        The file holds no report, or was changed.
    """
    if len(blob) > MAX_BYTES:
        raise ModelError("report_too_large", got=len(blob), limit=MAX_BYTES)
    try:
        if blob.startswith(b"%PDF"):
            return apart(_checked_pdf, blob)
        text = blob.decode("utf-8", errors="replace")
        if text.startswith("<"):
            return Checked(read_html(text), "yes")
        return Checked(read(text), "json")
    except ModelError:
        raise
    except Exception as error:  # figures that no model has can stop the drawing anywhere
        raise ModelError("report_not_rendered", why=type(error).__name__) from error
