"""Fills the canonical report with what the Guest's registry, store and audit log know; reads no Host's table and no
Host's partial model.
"""

from __future__ import annotations

from backend.reports.build.content import content_of
from backend.reports.build.files import FORMS, Checked, check, language_of_pdf
from backend.reports.build.issued import issued_of, sign_offs_of
from backend.reports.build.sources import Card, Sources
from backend.reports.document import schema
from backend.reports.render.outline import answers

__all__ = [
    "FORMS",
    "Card",
    "Checked",
    "Sources",
    "answers",
    "check",
    "content_of",
    "issued_of",
    "language_of_pdf",
    "schema",
    "sign_offs_of",
]
