"""Whom a notice names, and how they are reached: the operator's words for each party, as a TOML file. Knows no model.

Each field is one that a notice states: 12 CFR 1002.9(a)(2) and (b)(1) name and address of the creditor and of the agency that supervises
it, 15 USC 1681m(a)(3) name, address and telephone number of a consumer reporting agency; PIPL Art. 17 the name of the handler of
personal information and how it is reached. What is empty stands in the federation file, or nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from backend.data.federation import Federation, Party
from backend.data.label import Prose
from backend.errors import ParameterError
from backend.i18n import Catalogue
from backend.reports import toml_file

REACHED = ("name", "name_zh", "address", "address_zh", "phone")
SUPERVISED = ("supervisor", "supervisor_zh")  # of the creditor alone
AGENCY = "reporting_agency"  # of a Host alone


class NoticeParty(BaseModel):
    """One party as notices state it; empty or None = as the federation file has it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Prose = ""
    name_zh: Prose = ""
    address: Prose = ""
    address_zh: Prose = ""
    phone: Prose = ""
    supervisor: Prose = ""
    supervisor_zh: Prose = ""
    reporting_agency: bool | None = None


def fields_of(creditor: bool) -> tuple[str, ...]:
    """Texts that a notice may state of a party."""
    return REACHED + SUPERVISED if creditor else REACHED


def stated(federation: Federation, kept: Mapping[str, NoticeParty]) -> Federation:
    """The federation with what is kept in place of what its file says."""

    def of(party: Party) -> Party:
        given = kept.get(party.name, NoticeParty())
        texts = {name: value for name in (*REACHED[2:], *SUPERVISED) if (value := getattr(given, name))}
        titles = {"title": given.name or party.title, "title_zh": given.name_zh or party.title_zh}
        flag = {} if given.reporting_agency is None else {AGENCY: given.reporting_agency}
        return party.model_copy(update={**titles, **texts, **flag})

    return federation.model_copy(
        update={"guest": of(federation.guest), "hosts": tuple(of(host) for host in federation.hosts)}
    )


def of_file(federation: Federation) -> dict[str, NoticeParty]:
    """What stands for each party, the creditor first."""
    return {
        p.name: NoticeParty(
            name=p.title,
            name_zh=p.title_zh,
            **{name: getattr(p, name) for name in fields_of(p.name == federation.guest.name)[2:]},
            reporting_agency=None if p.name == federation.guest.name else p.reporting_agency,
        )
        for p in federation.parties
    }


def missing(federation: Federation, language: str) -> tuple[tuple[str, str], ...]:
    """Party and field of what a notice in that language would call not provided."""
    own = "_zh" if language == "zh" else ""
    guest = federation.guest.name
    wanted = [(guest, f"address{own}"), (guest, "phone"), (guest, f"supervisor{own}")]
    for host in federation.hosts:
        if host.reporting_agency:
            wanted += [(host.name, f"address{own}"), (host.name, "phone")]
    return tuple((party, name) for party, name in wanted if not _given(federation.party(party), name))


def _given(party: Party, name: str) -> bool:
    """An address in English stands in a Chinese notice where there is no other; a supervisor does not, as it is another one."""
    return bool(getattr(party, name)) or (name == "address_zh" and bool(party.address))


def checked(given: Mapping[str, Any], federation: Federation) -> dict[str, NoticeParty]:
    """What is kept of fields by party; raises ParameterError for a party or field that there is not, or a text that is too long."""
    parties = [p.name for p in federation.parties]
    if wrong := sorted(set(given) - set(parties)):
        raise ParameterError(f"There is no party {wrong[0]!r}; the parties are {', '.join(parties)}.")
    found = {}
    for party, fields in given.items():
        creditor = party == federation.guest.name
        allowed = (*fields_of(creditor), *(() if creditor else (AGENCY,)))
        if not isinstance(fields, Mapping):
            raise ParameterError(f"{party} is a table: a field and its text on each line.")
        if unknown := sorted(set(fields) - set(allowed)):
            raise ParameterError(f"[{party}] has no field {unknown[0]!r}; its fields are {', '.join(allowed)}.")
        texts = {name: value.strip() if isinstance(value, str) else value for name, value in fields.items()}
        try:
            found[party] = NoticeParty.model_validate(texts)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ParameterError(
                f"{party}.{first['loc'][0]}: {first['msg']}. Give a text of at most 2,000 characters."
            ) from None
    return found


def from_toml(text: str, federation: Federation) -> dict[str, NoticeParty]:
    """Inverse of :func:`to_toml`; raises ParameterError as :func:`checked`, or where the text is no TOML."""
    return checked(toml_file.tables(text, "what `glassleaf notice-details` prints"), federation)


def to_toml(federation: Federation, language: str = "en") -> str:
    """What stands for every party, each field under what it is for; empty ones to be filled in."""
    words = Catalogue(language)
    lines = [f"# {words('notice_details.file_note')}"]
    for party, given in of_file(federation).items():
        lines.append(f"\n[{party}]")
        for name in fields_of(given.reporting_agency is None):
            lines += [f"# {words(f'notice_details.{name}')}", toml_file.line(name, getattr(given, name))]
        if given.reporting_agency is not None:
            lines += [f"# {words(f'notice_details.{AGENCY}')}", toml_file.line(AGENCY, given.reporting_agency)]
    return "\n".join(lines) + "\n"
