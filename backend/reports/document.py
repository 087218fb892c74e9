"""The canonical report on one model: its parts put together, and the hashes and the signature by which a copy is checked.

A sign-off names the hash of ``content``; the audit log names that of the whole document, and the Guest's key signs it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from backend.crypto.signing import SigningKey, is_signed
from backend.data.bounded_text import json_values
from backend.errors import ModelError
from backend.remark import Remark
from backend.reports.schema import Content, Issued, Part, SignOffLine

SCHEMA: Literal["glassleaf-report"] = "glassleaf-report"
VERSION: Literal[1] = 1
MAX_REPORT = 64 << 20  # letters
# Kinds of signed statements: a document's hash; model, person, role, statement, report and time of a sign-off
KIND = "report"
SIGN_OFF = "sign-off"


class Signature(Part):
    """Who vouches for a document, in hexadecimal."""

    algorithm: Literal["Ed25519"]
    public_key: str = Field(description="32 bytes")
    value: str = Field(description="64 bytes, over the statement in docs/report.md")


class Report(Part):
    """The whole document."""

    schema_name: Literal["glassleaf-report"] = Field(SCHEMA, alias="schema")
    version: Literal[1]
    content: Content
    content_sha256: str = Field(description="SHA-256 of `content`, canonically written; what a sign-off names")
    issued: Issued
    sha256: str = Field(description="SHA-256 of the document without this field and `signature`, canonically written")
    signature: Signature = Field(description="of the Guest, over `sha256`")

    def body(self) -> dict[str, Any]:
        """Return the document as plain JSON types."""
        return self.model_dump(mode="json", by_alias=True)

    @property
    def public_key(self) -> str:
        """Return the key of its signature."""
        return self.signature.public_key


def make(content: str, issued: Issued, key: SigningKey) -> Report:
    """Put a report together from a content as :func:`written`, compute its hashes and sign it."""
    parts: dict[str, Any] = {
        "content_sha256": digest_of(content),
        "schema": SCHEMA,
        "version": VERSION,
        "issued": issued.model_dump(mode="json"),
    }
    values = {"content": content} | {name: canonical(value) for name, value in parts.items()}
    digest = digest_of(_object(values))
    signature = {"algorithm": "Ed25519", "public_key": key.public, "value": key.sign(KIND, digest)}
    text = _object(values | {"sha256": canonical(digest), "signature": canonical(signature)})
    # Read back, so that mappings are in canonical order here as in every copy, and both draw the same bytes.
    return Report.model_validate_json(text)


def written(content: Content) -> str:
    """Return a content in canonical form."""
    return canonical(content.model_dump(mode="json"))


def _object(values: Mapping[str, str]) -> str:
    """Return the canonical form of an object whose values are in theirs, so that a large one is written once."""
    return f"{{{','.join(f'{canonical(name)}:{values[name]}' for name in sorted(values))}}}"


def sign_off_holds(line: SignOffLine, model_sha256: str, public_key: str) -> bool:
    """Return whether a statement about a model was signed with this key."""
    fields = (model_sha256, line.person, line.role, line.statement, line.report_sha256, line.time)
    return line.public_key == public_key and is_signed(public_key, line.signature, SIGN_OFF, *fields)


def canonical(document: Any) -> str:
    """JSON in its one form: keys sorted, no spaces, ASCII only, no NaN."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def sha256(document: Any) -> str:
    """SHA-256 of a document's canonical form."""
    return digest_of(canonical(document))


def digest_of(text: str) -> str:
    """SHA-256 of what is in canonical form."""
    return hashlib.sha256(text.encode()).hexdigest()


def to_json(report: Report) -> str:
    """Return the report as a file: its canonical form."""
    return canonical(report.body()) + "\n"


def read(text: str) -> Report:
    """Return a report as :func:`to_json` writes it, to the byte.

    Raises
    ------
    ModelError
        As :func:`parse`; or the text is another form of the report.
    """
    report = parse(text)
    if to_json(report) != text:
        raise ModelError("report_not_canonical")
    return report


def parse(text: str) -> Report:
    """Return a report in JSON.

    Raises
    ------
    ModelError
        The text is no report, or its hashes or its signature do not fit: it was changed.
    """
    if len(text) > MAX_REPORT:
        raise ModelError("text_file_too_large", file="report", limit=MAX_REPORT)
    try:
        body = json_values(text)
        report = Report.model_validate(body)
        digest = sha256({key: value for key, value in body.items() if key not in ("sha256", "signature")})
        content_digest = sha256(body["content"])
    except (ValueError, RecursionError) as error:
        why = Remark("too_many_brackets") if isinstance(error, RecursionError) else str(error).splitlines()[0]
        raise ModelError("no_report", version=VERSION, why=why) from error
    if digest != report.sha256:
        raise ModelError("report_hash_differs")
    if content_digest != report.content_sha256:
        raise ModelError("report_content_differs")
    if not is_signed(report.public_key, report.signature.value, KIND, report.sha256):
        raise ModelError("report_signature_wrong")
    return report


def schema() -> str:
    """JSON Schema of a report, as in docs/report-schema.json."""
    return json.dumps(Report.model_json_schema(by_alias=True), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
