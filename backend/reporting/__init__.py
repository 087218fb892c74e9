"""Fills the canonical report with what the Guest's registry, store and audit log know; reads no Host's table and no Host's half."""

from __future__ import annotations

from backend.assurance.report.document import schema
from backend.assurance.report.outline import answers
from backend.reporting.content import content_of
from backend.reporting.files import FORMS, Checked, check, language_of_pdf
from backend.reporting.issued import issued_of, sign_offs_of
from backend.reporting.sources import Card, Sources

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
