"""What only the operator can say: read from a file as printed, refused in words where it is wrong, reported as it was written."""

import re
from pathlib import Path

import pytest

from backend.errors import ParameterError
from backend.i18n import LANGUAGES, Catalogue, catalogue
from backend.reports.blocks import Heading, Outline
from backend.reports.build.issued import CHANGES
from backend.reports.details import BY_PARTY, DETAIL_FIELDS, FIELD_GROUPS, checked, from_toml, missing, to_toml
from backend.reports.render import html_form
from backend.reports.schema import DetailsSection, DossierColumn
from backend.reports.sections import ANNEXES, SECTIONS, operator
from backend.reports.sections.writer import Writer
from backend.reports.standards import MEASURED_SUBJECTS, STANDARDS

PARTIES = ("bank", "telecom")
ROOT = Path(__file__).resolve().parents[2]
TEXT = "3 \"quoted\"\nand 'more' \\ 贷款"
FULL = {**dict.fromkeys(DETAIL_FIELDS, TEXT), **{name: dict.fromkeys(PARTIES, "x") for name in BY_PARTY}}
SR26_HEADINGS = {  # as the bulletin's highlights name them, with the subjects below each
    "Overview of model risk": ("sr26_materiality",),
    "Model development and model use": ("sr26_development", "sr26_testing", "sr26_use"),
    "Model validation and monitoring": ("sr26_validation", "sr26_outcomes", "sr26_monitoring", "sr26_challenge"),
    "Governance and controls": ("sr26_governance", "sr26_documentation", "sr26_inventory"),
    "Vendor and other third-party products": ("sr26_third_parties",),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("details", [DetailsSection(), checked(FULL, PARTIES)])
def test_a_file_that_was_printed_reads_back_the_same(details, language):
    assert from_toml(to_toml(details, PARTIES, language), PARTIES) == details


def test_what_is_empty_is_missing_until_each_party_has_said_it():
    assert set(missing(None, PARTIES)) == {*DETAIL_FIELDS, *BY_PARTY}
    assert missing(checked(FULL, PARTIES), PARTIES) == ()
    assert missing(checked({**FULL, "lineage": {"bank": "x", "telecom": "  "}}, PARTIES), PARTIES) == ("lineage",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[use\n", "not TOML"),
        ("[usage]\n", "no table \\[usage\\]"),
        ("[use]\npurpose = 'x'\n", "no field purpose"),
        ("[use]\ntier = 1\n", "tier: expected text in quotation marks"),
        ("[use]\ntier = '''" + "x" * 2001 + "'''\n", "at most 2,000"),
        ('[use]\ntier = "a\\u202eb"\n', "U\\+202E"),
        ("[lineage]\nnobody = 'x'\n", "no party nobody"),
        ("lineage = 'x'\n", "lineage is a table"),
        ("use = 'x'\n", "no table \\[use\\]"),
        ("x = " + "[" * 5000, "nested too deep"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_words(text, words):
    with pytest.raises(ParameterError, match=words):
        from_toml(text, PARTIES)


def test_every_heading_of_each_standard_is_mapped_to_a_section_or_to_who_has_to():
    asked = [subject for subjects in STANDARDS.values() for subject in subjects]
    assert len(STANDARDS["sr26"]) == 12 and len({s.key for s in asked}) == len(asked)
    for subject in asked:
        assert subject.sections or subject.key == "sr26_inventory" or subject.who == "provider", subject.key
        assert set(subject.sections) <= {*SECTIONS, *ANNEXES} and set(subject.measured) <= set(MEASURED_SUBJECTS)
        assert set(subject.fields) <= {*DETAIL_FIELDS, *BY_PARTY}
    named = {name for subject in asked for name in subject.fields}
    assert named == {*DETAIL_FIELDS, *BY_PARTY}, "each field serves a standard"


def test_each_heading_of_sr_26_2_is_answered_or_the_report_says_who_has_to(glassleaf):
    """A bare model's report names who has to provide what is lacking; nothing of the operator's is lacking once it is provided."""
    subjects = {subject.key: subject for subject in STANDARDS["sr26"]}
    assert [key for keys in SR26_HEADINGS.values() for key in keys] == list(subjects)
    assert all(
        catalogue("en")[f"mapping.{key}"].startswith(f"{head}: ")
        for head, keys in SR26_HEADINGS.items()
        for key in keys
    )
    bare = glassleaf.reports.make(glassleaf.models.all()[0].id)
    parties = [p.name for p in bare.content.parties]
    given = checked(
        {**dict.fromkeys(DETAIL_FIELDS, TEXT), **{name: dict.fromkeys(parties, "x") for name in BY_PARTY}}, parties
    )
    full = bare.model_copy(update={"content": bare.content.model_copy(update={"details": given})})
    for language in LANGUAGES:
        words = Catalogue(language)
        lacking, still = dict(standing(bare, language)), dict(standing(full, language))
        for key, subject in subjects.items():
            name = words(f"mapping.{key}")
            assert all(section(bare, language, each) for each in subject.sections)
            if subject.fields or subject.measured or not subject.sections:
                assert lacking[name].startswith(words(f"mapping.who_{subject.who}")), key
            assert not [field for field in subject.fields if words(f"details.{field}") in still[name]]
        assert still[words("mapping.sr26_materiality")] == "–"


def standing(made, language):
    """What the report's table of SR 26-2 says: each subject, and what is lacking of it."""
    blocks = operator.standards(Writer(made, Catalogue(language)))
    title = Catalogue(language)("mapping.sr26")
    at = next(i for i, block in enumerate(blocks) if isinstance(block, Heading) and block.text == title)
    return [(subject, lacking) for subject, _, lacking in blocks[at + 1].rows]


def section(made, language, name):
    """What a section says, headings aside."""
    return [
        block
        for block in {**SECTIONS, **ANNEXES}[name](Writer(made, Catalogue(language)))
        if not isinstance(block, Heading)
    ]


def test_what_is_kept_is_reported_logged_and_an_earlier_version_stays(glassleaf):
    record, details = glassleaf.models.all()[0], glassleaf.report_details
    before = glassleaf.reports.make(record.id)
    assert before.content.details is None
    details.keep(record.id, {"intended_use": " Small loans. ", "owner": "Ana"})
    details.keep_toml(record.id, details.template(record.id).replace("Small loans.", "Small loans, not cards."))
    made = glassleaf.reports.make(record.id)
    assert made.content.details.intended_use == "Small loans, not cards." and made.content.details.owner == "Ana"
    assert made.content_sha256 != before.content_sha256  # a sign-off of what stood before covers an earlier content
    assert [v.details.intended_use for v in details.history(record.id)] == ["Small loans.", "Small loans, not cards."]
    logged = [e.body["changed"] for e in glassleaf.audit.entries("demo") if e.action == "details"]
    assert logged == [["intended_use", "owner"], ["intended_use"]]
    assert [c.detail for c in made.issued.changes if c.action == "details"] == ["intended_use, owner", "intended_use"]
    with pytest.raises(ParameterError, match="Nothing was changed"):
        details.keep_toml(record.id, details.template(record.id))


def test_a_challenger_is_another_registered_model_of_the_federation(glassleaf):
    record = glassleaf.models.all()[0]
    for named, words in ((record.id, "not another model"), ("nothing", "challenger cannot be found")):
        with pytest.raises(ParameterError, match=words):
            glassleaf.report_details.keep(record.id, {"challenger": named})


def test_every_word_of_these_sections_is_asked_for_and_there():
    code = "".join(f.read_text() for folder in ("app", "pages", "backend") for f in (ROOT / folder).rglob("*.py"))
    asked = set(re.findall(r"""["']((?:details|dossier|mapping)\.[a-z_0-9]+)["']""", code))
    fields = {f"details.{name}{end}" for name in (*DETAIL_FIELDS, *BY_PARTY) for end in ("", "_help")}
    asked |= fields | {f"details.group_{name}" for name in FIELD_GROUPS} | {"details.name", "details.note"}
    asked |= {f"details.change_{name.replace('-', '_')}" for name in CHANGES}
    asked |= {f"dossier.{name}_help" for name in ("source", "lawful_basis", "refresh", "owner")}
    asked |= {
        f"dossier.head_{name}"
        for name in ("column", "source", "basis", "refresh", "owner", "missing", "bands", "drift")
    }
    drifts = DossierColumn.model_fields["drift"].annotation.__args__
    asked |= {f"dossier.drift_{name.replace(' ', '_')}" for name in drifts}
    asked |= {f"mapping.{name}" for name in STANDARDS} | {f"mapping.lacks_{name}" for name in MEASURED_SUBJECTS}
    subjects = [subject for subjects in STANDARDS.values() for subject in subjects]
    asked |= {f"mapping.{s.key}" for s in subjects} | {f"mapping.who_{s.who}" for s in subjects}
    asked |= {f"mapping.head_{name}" for name in ("subject", "where", "lacks")}
    asked -= {"dossier.json", "dossier.toml"}  # files
    known = {re.sub(r"\.(one|other)$", "", key) for key in catalogue("en")}
    assert asked == {key for key in known if key.split(".")[0] in ("details", "dossier", "mapping")}


def test_a_printed_page_names_the_model_and_no_name_can_leave_the_style():
    hostile = 'a"}</style><script>alert(1)</script>\\ 贷款'
    page = html_form.page(Outline("t", "s", (), hostile), "en")
    head = page[page.index("@top-left") : page.index("</style>")]
    assert page.count("<script") == 0 and page.count("</style>") == 1 and "\\008d37" in head
    shown = re.sub(
        r"\\([0-9a-f]{6})", lambda found: chr(int(found[1], 16)), head[head.index('"') + 1 : head.rindex('"')]
    )
    assert shown == hostile
