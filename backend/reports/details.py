"""What only the operator can say about a model, as a TOML file: its fields in groups, a template, and how a filled one is read.

Knows no model; what is empty is reported as not provided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backend.errors import ParameterError
from backend.reports import toml_file
from backend.reports.language import words_in
from backend.reports.schema import DetailsSection

FIELD_GROUPS: Mapping[str, tuple[str, ...]] = {
    "use": (
        "intended_use", "barred_use", "owner", "tier", "process", "affected", "harms", "oversight", "complaints",
    ),
    "data": ("population", "period", "assumptions"),
    "tests": ("challenger", "sensitivity"),
    "monitoring": ("monitoring", "triggers", "overrides"),
    "validation": ("validator", "validation", "changes", "due"),
}  # fmt: skip
BY_PARTY = ("lineage", "data_quality")
DETAIL_FIELDS = tuple(name for names in FIELD_GROUPS.values() for name in names)


def checked(fields: Mapping[str, Any], parties: Sequence[str]) -> DetailsSection:
    """Details from fields; white space around them is taken away, and parties of which nothing is said are left out.

    Raises
    ------
    ParameterError
        An unknown field or party, a value that is not a text, or a text that is too long.
    """
    if unknown := sorted(set(fields) - {*DETAIL_FIELDS, *BY_PARTY}):
        raise ParameterError("details_unknown_field", field=unknown[0], known=(*DETAIL_FIELDS, *BY_PARTY))
    for name in BY_PARTY:
        table = fields.get(name, {})
        if not isinstance(table, Mapping):
            raise ParameterError("form_no_table", name=name)
        if wrong := sorted(set(table) - set(parties)):
            raise ParameterError("form_unknown_party", party=wrong[0], known=tuple(parties))
    texts = {name: toml_file.prose(name, fields.get(name, "")) for name in DETAIL_FIELDS}
    tables: dict[str, dict[str, str]] = {}
    for name in BY_PARTY:
        tables[name] = {}
        for party, value in fields.get(name, {}).items():
            text = toml_file.prose(f"{name}.{party}", value)
            if text:
                tables[name][party] = text
    return DetailsSection(**texts, **tables)


def from_toml(text: str, parties: Sequence[str]) -> DetailsSection:
    """Details from a TOML file as :func:`to_toml` writes it; raises ParameterError as :func:`checked`, or if it is not TOML."""
    fields: dict[str, Any] = {}
    for group, table in toml_file.tables(text, "glassleaf report-details").items():
        if group in BY_PARTY:
            fields[group] = table
            continue
        if group not in FIELD_GROUPS or not isinstance(table, Mapping):
            raise ParameterError("details_unknown_table", table=group, known=(*FIELD_GROUPS, *BY_PARTY))
        if wrong := sorted(set(table) - set(FIELD_GROUPS[group])):
            raise ParameterError("form_unknown_field", table=group, field=wrong[0], known=tuple(FIELD_GROUPS[group]))
        fields |= table
    return checked(fields, parties)


def to_toml(details: DetailsSection, parties: Sequence[str], language: str = "en") -> str:
    """Details as TOML, each field under the question that it answers; empty ones to be filled in."""
    words = words_in(language)
    lines = [f"# {words('details.file_note')}"]
    for group, names in FIELD_GROUPS.items():
        lines.append(f"\n[{group}]")
        for name in names:
            lines += [f"# {words(f'details.{name}_help')}", toml_file.line(name, getattr(details, name))]
    for name in BY_PARTY:
        lines += [f"\n# {words(f'details.{name}_help')}", f"[{name}]"]
        lines += [toml_file.line(party, getattr(details, name).get(party, "")) for party in parties]
    return "\n".join(lines) + "\n"


def missing(details: DetailsSection | None, parties: Sequence[str]) -> tuple[str, ...]:
    """Return the fields that were not provided; one by party is missing until each party has its text."""
    section = details or DetailsSection()
    empty = [name for name in DETAIL_FIELDS if not getattr(section, name)]
    return (*empty, *(name for name in BY_PARTY if set(getattr(section, name)) < set(parties)))
