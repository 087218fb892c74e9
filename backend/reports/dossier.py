"""A Host's dossier of its columns: the form that its owner fills in, the file that the Host signs, and how the Guest reads that.

The file holds no value, no threshold and no path: meanings, what people wrote, and coarse shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import tomli_w
from pydantic import Field

from backend.crypto.signing import SigningKey, is_signed
from backend.data.bounded_text import MAX_BYTES, json_values
from backend.data.dictionary import Feature
from backend.data.federation import Federation, Party
from backend.errors import FederationError, ParameterError, SecurityError
from backend.evaluation.column_summary import ColumnSummary
from backend.reports import toml_file
from backend.reports.document import canonical, sha256
from backend.reports.language import words_in
from backend.reports.schema import DossierColumn, DossierSection, Drift, Part

WRITTEN = ("source", "lawful_basis", "refresh", "owner")
"""What a person writes of each column, or once for all."""
KIND = "dossier"  # of the signed statement: federation, and the SHA-256 of the rest

Answers = dict[str, dict[str, str]]


class DossierFile(Part):
    """A dossier as it travels."""

    schema_name: Literal["glassleaf-dossier"] = Field("glassleaf-dossier", alias="schema")
    version: Literal[1] = 1
    federation: str
    dossier: DossierSection


def template(party: Party, answers: Answers, language: str = "en") -> str:
    """Return the form as TOML: once for all columns, then each column under its meaning; what a column leaves empty holds for all."""
    words = words_in(language)
    lines = [f"# {words('dossier.file_note')}", "[all]"]
    for name in WRITTEN:
        lines += [f"# {words(f'dossier.{name}_help')}", toml_file.line(name, answers.get("", {}).get(name, ""))]
    for feature in party.features:
        meaning = words.text(feature.meaning).replace("\n", " ")
        unit = words.unit(feature.unit, feature.meaning)
        lines.append(f"\n# {meaning} [{unit}]" if unit else f"\n# {meaning}")
        column_answers = answers.get(feature.name, {})
        lines.append(
            tomli_w.dumps({"columns": {feature.name: {name: column_answers.get(name, "") for name in WRITTEN}}}).strip()
        )
    return "\n".join(lines) + "\n"


def answers_of(text: str, party: Party) -> Answers:
    """Return what people wrote: column → field → text, under "" what holds for all.

    Raises
    ------
    ParameterError
        The file is no TOML, or names a column or field that there is not, or leaves one without an answer.
    """
    body = toml_file.tables(text, "glassleaf dossier template")
    columns = body.get("columns", {})
    if set(body) - {"all", "columns"} or not isinstance(columns, Mapping):
        raise ParameterError("dossier_other_tables")
    column_names = [feature.name for feature in party.features]
    if unknown := sorted(set(columns) - set(column_names)):
        raise ParameterError("dossier_unknown_column", host=party.name, column=unknown[0])
    answers = {"": _fields("all", body.get("all", {}))} | {name: _fields(name, columns[name]) for name in columns}
    for name in column_names:
        empty = [field for field in WRITTEN if not written(answers, name, field)]
        if empty:
            raise ParameterError("dossier_with_gaps", column=name, fields=tuple(empty))
    return answers


def written(answers: Answers, column: str, field: str) -> str:
    """Return what was written of a column: its own, else what holds for all."""
    return answers.get(column, {}).get(field, "") or answers.get("", {}).get(field, "")


def _fields(where: str, table: object) -> dict[str, str]:
    if not isinstance(table, Mapping) or set(table) - set(WRITTEN):
        raise ParameterError("dossier_other_fields", table=where, fields=tuple(WRITTEN))
    return {name: toml_file.prose(f"[{where}] {name}", text) for name, text in table.items()}


def sign(
    federation: str,
    party: Party,
    answers: Answers,
    summaries: Mapping[str, ColumnSummary],
    day: str,
    since: Sequence[tuple[str, Mapping[str, Drift]]],
    trained: Mapping[str, int],
    key: SigningKey,
) -> DossierFile:
    """Return the dossier, signed.

    Parameters
    ----------
    since : sequence of (str, mapping)
        Days of trainings, ascending, and each column's drift since the records of then.
    trained : mapping of str to int
        Model → the place of its training among these.
    """
    last: Mapping[str, Drift] = since[-1][1] if since else {}
    columns = []
    for feature in party.features:
        statements = {name: written(answers, feature.name, name) for name in WRITTEN}
        column = DossierColumn(
            **_disclosed(feature),
            **statements,
            **vars(summaries[feature.name]),
            drift=last.get(feature.name, "not measured"),
            drifts=tuple(drifts[feature.name] for _, drifts in since),
        )
        columns.append(column)
    draft = DossierSection(
        host=party.name,
        day=day,
        reference=since[-1][0] if since else "",
        references=tuple(of for of, _ in since),
        trained=dict(trained),
        columns=tuple(columns),
        public_key=key.public,
        signature="",
    )
    signature = key.sign(KIND, federation, digest(draft))
    return DossierFile(federation=federation, dossier=draft.model_copy(update={"signature": signature}))


def _disclosed(feature: Feature) -> dict[str, Any]:
    return {"name": feature.name, "meaning": feature.meaning, "unit": feature.unit, "codes": dict(feature.categories)}


def digest(dossier: DossierSection) -> str:
    """SHA-256 of what is signed: everything but the signature."""
    return sha256(dossier.model_dump(mode="json", exclude={"signature"}))


def fits(federation: str, dossier: DossierSection) -> bool:
    """Return whether the signature is that of the key that the dossier names."""
    return is_signed(dossier.public_key, dossier.signature, KIND, federation, digest(dossier))


def to_text(file: DossierFile) -> str:
    """Return the file: its canonical form."""
    return canonical(file.model_dump(mode="json", by_alias=True)) + "\n"


def read(text: str, federation: Federation) -> DossierSection:
    """Return a dossier of one of the federation's Hosts, whose signature fits and which speaks of the columns as they are disclosed.

    Raises
    ------
    ParameterError
        The file is no dossier, is of another federation, or documents other columns or meanings.
    SecurityError
        The signature does not fit.
    """
    if len(text) > MAX_BYTES:
        raise ParameterError("text_file_too_large", file="dossier", limit=MAX_BYTES)
    try:
        file = DossierFile.model_validate(json_values(text))
    except (ValueError, RecursionError) as error:
        raise ParameterError("no_dossier", why=str(error).splitlines()[0]) from None
    dossier = file.dossier
    if file.federation != federation.name:
        raise ParameterError("dossier_of_other_federation", got=file.federation, expected=federation.name)
    if not fits(federation.name, dossier):
        raise SecurityError("dossier_signature_wrong")
    host = next((party for party in federation.hosts if party.name == dossier.host), None)
    if host is None:
        raise ParameterError("dossier_of_unknown_host", name=dossier.host, federation=federation.name)
    reported = []
    for c in dossier.columns:
        reported.append({"name": c.name, "meaning": c.meaning, "unit": c.unit, "codes": c.codes})
    check_columns(reported, [_disclosed(feature) for feature in host.features], host.name)
    return dossier


def check_columns(reported: Sequence[dict[str, Any]], disclosed: Sequence[dict[str, Any]], host: str) -> None:
    """Raise ParameterError if a dossier speaks of other columns than the federation file, or of the same ones otherwise."""
    by_name: Callable[[Sequence[dict[str, Any]]], dict[str, Any]] = lambda rows: {row["name"]: row for row in rows}  # noqa: E731
    reported_rows = by_name(reported)
    disclosed_rows = by_name(disclosed)
    if len(reported_rows) != len(reported) or set(reported_rows) != set(disclosed_rows):
        differing = sorted(set(reported_rows) ^ set(disclosed_rows))
        if not differing:
            raise ParameterError("dossier_column_repeated", host=host)
        raise ParameterError("dossier_columns_differ", host=host, column=differing[0])
    for name, row in reported_rows.items():
        wrong = [field for field, value in row.items() if value != disclosed_rows[name][field]]
        if wrong:
            raise ParameterError("dossier_field_differs", column=name, field=wrong[0], host=host)


def previous(text: str) -> DossierSection:
    """Return a dossier that the Guest took in before; raises FederationError if it cannot be read."""
    try:
        return DossierSection.model_validate(json_values(text))
    except (ValueError, RecursionError) as error:
        raise FederationError("stored_dossier_unreadable", why=str(error).splitlines()[0]) from None
