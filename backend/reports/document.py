"""The canonical report on one model: its parts put together, and the hashes by which a copy is checked.

A sign-off names the hash of ``content``; the audit log names that of the whole document.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import Field, ValidationError

from backend.errors import ModelError
from backend.reports.schema import Content, Issued, Part

SCHEMA: Literal["glassleaf-report"] = "glassleaf-report"
VERSION = 2


class Report(Part):
    """The whole document."""

    schema_name: Literal["glassleaf-report"] = Field(SCHEMA, alias="schema")
    version: Literal[2] = 2
    content: Content
    content_sha256: str = Field(description="SHA-256 of `content`, canonically written; what a sign-off names")
    issued: Issued
    sha256: str = Field(description="SHA-256 of the document without this field, canonically written")

    def body(self) -> dict[str, Any]:
        """The document as plain JSON types."""
        return self.model_dump(mode="json", by_alias=True)


def make(content: Content, issued: Issued) -> Report:
    """Put a report together and compute its hashes."""
    parts = {"content": content.model_dump(mode="json"), "issued": issued.model_dump(mode="json")}
    document = {"schema": SCHEMA, "version": VERSION, "content_sha256": content_hash(content), **parts}
    whole = canonical({**document, "sha256": sha256(document)})
    # Read back, so that mappings are in canonical order here as in every copy, and both draw the same bytes.
    return Report.model_validate_json(whole)


def content_hash(content: Content) -> str:
    """SHA-256 of a content."""
    return sha256(content.model_dump(mode="json"))


def canonical(document: Any) -> str:
    """JSON in its one form: keys sorted, no spaces, ASCII only, no NaN."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def sha256(document: Any) -> str:
    """SHA-256 of a document's canonical form."""
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def to_json(report: Report) -> str:
    """The report as a file: its canonical form."""
    return canonical(report.body()) + "\n"


def read(text: str) -> Report:
    """A report as it was written.

    Raises
    ------
    ModelError
        The text is no report of this version, or its hashes do not fit: it was changed.
    """
    try:
        body = json.loads(text)
        report = Report.model_validate(body)
    except (ValueError, ValidationError) as error:
        raise ModelError(f"This is no report of version {VERSION}: {str(error).splitlines()[0]}") from error
    if sha256({key: value for key, value in body.items() if key != "sha256"}) != report.sha256:
        raise ModelError("The report does not have its hash: it was changed after it was issued. Ask for it again.")
    if sha256(body["content"]) != report.content_sha256:
        raise ModelError("The report's content does not have its hash: it was put together from two reports.")
    return report


def schema() -> str:
    """JSON Schema of a report, as in docs/report-schema.json."""
    return json.dumps(Report.model_json_schema(by_alias=True), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
