"""Fills the canonical report with what the Guest's registry, store and audit log know; reads no Host's table and no
Host's partial model.
"""

from __future__ import annotations

from backend.reports.build.content import content_of
from backend.reports.build.issued import issued_of, sign_offs_of
from backend.reports.build.sources import Card, Sources

__all__ = ["Card", "Sources", "content_of", "issued_of", "sign_offs_of"]
