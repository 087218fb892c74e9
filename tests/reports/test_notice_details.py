"""Names and addresses of notices: read from a file as printed, kept with the federation, stated, and "not provided" where absent."""

import re
from pathlib import Path

import pytest

from backend.data.federation import Federation
from backend.errors import ParameterError
from backend.i18n import LANGUAGES, Catalogue, catalogue
from backend.reports.notice_details import (
    AGENCY,
    NoticeParty,
    checked,
    fields_of,
    from_toml,
    label_of,
    missing,
    of_file,
    stated,
    to_toml,
)
from backend.services.reasons import methods

ROOT = Path(__file__).resolve().parents[2]
TEXT = "1 \"Main\" St\nand 'more' \\ 大街"


@pytest.fixture
def federation(glassleaf) -> Federation:
    return glassleaf.notice_details.federation("demo")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_file_that_was_printed_reads_back_the_same(federation, language):
    assert from_toml(to_toml(federation, language), federation) == of_file(federation)
    host = federation.hosts[0].name
    full = {p: dict.fromkeys(fields_of(p == "bank"), TEXT) for p in ("bank", host)}
    full[host][AGENCY] = True
    filled = stated(federation, checked(full, federation))
    assert from_toml(to_toml(filled, language), filled) == of_file(filled)
    assert filled.party(host).phone == TEXT and filled.party(host).reporting_agency


def test_what_is_lacking_follows_from_the_language_and_from_who_is_an_agency(federation):
    host = federation.hosts[0].name
    bare = {p.name: NoticeParty(**{AGENCY: None if p.name == "bank" else False}) for p in federation.parties}
    empty = stated(federation, bare)
    assert set(missing(empty, "en")) >= {("bank", "phone")}
    agency = stated(federation, {**bare, host: NoticeParty(reporting_agency=True, phone="1")})
    lacks = set(missing(agency, "en")) - set(missing(empty, "en"))
    assert lacks == ({(host, "address")} if not federation.party(host).address else set())
    chinese = stated(federation, {"bank": NoticeParty(address="x", phone="1", supervisor="CFPB")})
    assert set(missing(chinese, "en")) == set() and missing(chinese, "zh") == (("bank", "supervisor_zh"),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[bank\n", "not TOML"),
        ("[nobody]\n", "no party nobody"),
        ("bank = 'x'\n", "bank is a table"),
        ("[bank]\nfax = 'x'\n", "no field fax"),
        ("[bank]\nreporting_agency = true\n", "no field reporting_agency"),
        ("[telecom]\nsupervisor = 'x'\n", "no field supervisor"),
        ("[telecom]\nreporting_agency = 'yes'\n", "telecom, reporting_agency: "),
        ("[bank]\nphone = 1\n", "bank, phone: "),
        ("[bank]\nphone = '''" + "x" * 2001 + "'''\n", "at most 2,000"),
        ('[bank]\nphone = "a\\u202eb"\n', "U\\+202E"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_words(federation, text, words):
    with pytest.raises(ParameterError, match=words):
        from_toml(text, federation)


def test_what_is_kept_is_stated_and_logged_and_the_rest_follows_the_federation_file(glassleaf):
    details, before = glassleaf.notice_details, glassleaf.notice_details.of("demo")
    details.keep("demo", {"bank": {**before["bank"].model_dump(exclude={AGENCY}), "phone": " 555-0100 "}})
    assert details.federation("demo").guest.phone == "555-0100"
    assert details._versions("demo")[-1]["parties"] == {"bank": {"phone": "555-0100"}}  # nothing of the file's own
    with pytest.raises(ParameterError, match="Nothing was changed"):
        details.keep_toml("demo", details.template("demo"))
    details.keep_toml("demo", details.template("demo").replace("555-0100", "555-0199"))
    assert [v["parties"]["bank"]["phone"] for v in details._versions("demo")] == ["555-0100", "555-0199"]
    logged = [e.body["changed"] for e in glassleaf.audit.entries("demo") if e.action == "notice-details"]
    assert logged == [["bank"], ["bank"]]


def test_every_word_is_asked_for_and_there():
    code = "".join(f.read_text() for folder in ("app", "pages", "backend") for f in (ROOT / folder).rglob("*.py"))
    asked = set(re.findall(r"""["']((?:notice_details|compared)\.[a-z_0-9]+)["']""", code))
    fields = (*fields_of(creditor=True), AGENCY)
    asked |= {f"notice_details.{label_of(name, language)}" for name in fields for language in LANGUAGES}
    asked |= {f"notice_details.absent_{name}" for name in ("address", "phone", "supervisor")}
    groups = ("all", "approved", "covers")
    asked |= {f"compared.{way}{group}" for group in groups for way in ("", "said_", "notice_", "report_")} | {
        "compared.only_covers"
    }
    assert asked == {key for key in catalogue("en") if key.split(".")[0] in ("notice_details", "compared")}
    assert methods and Catalogue("zh")("notice_details.absent", field="x")
