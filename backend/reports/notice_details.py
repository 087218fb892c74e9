"""Whom a notice names, and how they are reached: the operator's words for each party, as a TOML file. Knows no model.

Each field is one that a notice states: 12 CFR 1002.9(a)(2) and (b)(1) name and address of the creditor and of the agency that supervises
it, 15 USC 1681m(a)(3) name, address and telephone number of a consumer reporting agency; PIPL Art. 17 the name of the handler of
personal information and how it is reached. An empty field is in the federation file, or missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from backend.data.federation import Federation, Party
from backend.data.label import Paragraphs, Prose
from backend.data.validation import field_problems
from backend.errors import ParameterError
from backend.i18n import Text
from backend.reports import toml_file
from backend.reports.language import words_in

REACHED = ("name", "address", "phone")
SUPERVISED = "supervisor"  # of the creditor alone
BILINGUAL = frozenset({"name", "address", "supervisor"})
AGENCY = "reporting_agency"  # of a Host alone


# Not a party of the federation file: each field may be left out, and then the file's counts.
class NoticeParty(BaseModel):
    """One party as notices state it; empty or None = as the federation file has it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Paragraphs = Text()
    address: Paragraphs = Text()
    phone: Prose = ""
    supervisor: Paragraphs = Text()
    reporting_agency: bool | None = None


def fields_of(creditor: bool) -> tuple[str, ...]:
    """Return the texts that a notice may state of a party; those in :data:`BILINGUAL` have two languages."""
    return (*REACHED, SUPERVISED) if creditor else REACHED


def label_of(name: str, language: str) -> str:
    """Return the key of a field's name in the catalogue."""
    if language == "zh" and name in BILINGUAL:
        return f"{name}_zh"
    return name


def stated(federation: Federation, details: Mapping[str, NoticeParty]) -> Federation:
    """Return the federation with what is kept in place of what its file says."""

    def of(party: Party) -> Party:
        stored = details.get(party.name, NoticeParty())
        update: dict[str, object] = {
            "title": _filled(stored.name, party.title),
            "address": _filled(stored.address, party.address),
            "phone": stored.phone or party.phone,
            "supervisor": _filled(stored.supervisor, party.supervisor),
        }
        if stored.reporting_agency is not None:
            update[AGENCY] = stored.reporting_agency
        return party.model_copy(update=update)

    return federation.model_copy(
        update={"guest": of(federation.guest), "hosts": tuple(of(host) for host in federation.hosts)}
    )


def of_file(federation: Federation) -> dict[str, NoticeParty]:
    """Return the details of each party, the creditor first."""
    details = {}
    for party in federation.parties:
        creditor = party.name == federation.guest.name
        fields = {name: getattr(party, name) for name in fields_of(creditor) if name != "name"}
        agency = None if creditor else party.reporting_agency
        details[party.name] = NoticeParty(name=party.title, **fields, reporting_agency=agency)
    return details


def missing(federation: Federation, language: str) -> tuple[tuple[str, str], ...]:
    """Party and field of what a notice in that language would call not provided."""
    lacking = []
    for party in federation.parties:
        creditor = party.name == federation.guest.name
        if not creditor and not party.reporting_agency:
            continue
        if not party.address.in_language(language):
            lacking.append((party.name, label_of("address", language)))
        if not party.phone:
            lacking.append((party.name, "phone"))
        # No language replaces the other: each law has its own supervisor.
        if language == "zh":
            supervisor = party.supervisor.zh
        else:
            supervisor = party.supervisor.en
        if creditor and not supervisor:
            lacking.append((party.name, label_of("supervisor", language)))
    return tuple(lacking)


def _filled(text: Text, fallback: Text) -> Text:
    """Return what was given, each language that is missing as it is known."""
    return Text(text.en or fallback.en, text.zh or fallback.zh)


def checked(fields_by_party: Mapping[str, Any], federation: Federation) -> dict[str, NoticeParty]:
    """Return what is kept of fields by party; raises ParameterError for a party or field that there is not, or a text that is too long."""
    parties = [p.name for p in federation.parties]
    if wrong := sorted(set(fields_by_party) - set(parties)):
        raise ParameterError("form_unknown_party", party=wrong[0], known=tuple(parties))
    parties_checked = {}
    for party, fields in fields_by_party.items():
        creditor = party == federation.guest.name
        field_names = (*fields_of(creditor), *(() if creditor else (AGENCY,)))
        if not isinstance(fields, Mapping):
            raise ParameterError("form_no_table", name=party)
        if unknown := sorted(set(fields) - set(field_names)):
            raise ParameterError("form_unknown_field", table=party, field=unknown[0], known=field_names)
        texts = {name: _stripped(value) for name, value in fields.items()}
        problems = field_problems(party, NoticeParty, texts)
        if problems:
            raise ParameterError(problems=problems)
        parties_checked[party] = NoticeParty.model_validate(texts)
    return parties_checked


def _stripped(value: object) -> object:
    """Return a text, or each language of one, without white space around it."""
    if isinstance(value, Mapping):
        return {key: _stripped(item) for key, item in value.items()}
    return value.strip() if isinstance(value, str) else value


def from_toml(text: str, federation: Federation) -> dict[str, NoticeParty]:
    """Inverse of :func:`to_toml`; raises ParameterError as :func:`checked`, or where the text is no TOML."""
    return checked(toml_file.tables(text, "glassleaf notice-details"), federation)


def to_toml(federation: Federation, language: str = "en") -> str:
    """Return the details of every party, each field under what it is for; empty ones to be filled in."""
    words = words_in(language)
    lines = [f"# {words('notice_details.file_note')}"]
    for party, details in of_file(federation).items():
        lines.append(f"\n[{party}]")
        for name in fields_of(details.reporting_agency is None):
            value = getattr(details, name)
            if isinstance(value, Text):
                for key, text in (("en", value.en), ("zh", value.zh)):
                    label = words(f"notice_details.{label_of(name, key)}")
                    lines += [f"# {label}", f"{name}.{toml_file.line(key, text)}"]
            else:
                lines += [f"# {words(f'notice_details.{name}')}", toml_file.line(name, value)]
        if details.reporting_agency is not None:
            lines += [f"# {words(f'notice_details.{AGENCY}')}", toml_file.line(AGENCY, details.reporting_agency)]
    return "\n".join(lines) + "\n"
