"""The canonical report: JSON, HTML and PDF agree, nothing of a Host is in them, and a change of any of them shows."""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pypdfium2
import pytest

from backend.compliance.assessment import NotUnderstood, assess
from backend.compliance.rule_pack import load_packs
from backend.crypto.signing import SigningKey
from backend.data import rounding
from backend.data.demo import write_demo
from backend.data.dictionary import Feature, Kind
from backend.errors import ModelError, ParameterError
from backend.evaluation.validation import monitoring, suite
from backend.evaluation.validation.suite import Figure as SuiteFigure
from backend.evaluation.validation.suite import Judged, Validation
from backend.fairness.alternatives import IntervalFigure, Point
from backend.fairness.disparity import SMD
from backend.fairness.evidence import Evidence
from backend.i18n import LANGUAGES, Catalogue, Text, catalogue
from backend.protocols.training.parameters import SecureBoostParameters
from backend.reports.blocks import Facts, Heading, Outline, Paragraph, Table
from backend.reports.build import content_of
from backend.reports.document import canonical, make, read, schema, sha256, to_json, written
from backend.reports.files import check
from backend.reports.language import words_in
from backend.reports.render import fonts, html_form, pdf_form, pdf_page
from backend.reports.render.html_form import read_html, to_html
from backend.reports.render.pdf_form import to_pdf
from backend.reports.schema import (
    AlternativeLine,
    Evidenced,
    MeasuredEntry,
    ReasonsLine,
    SearchLine,
)
from backend.reports.sections import alternatives, answers, claims, model, open_points, operator, record, validation
from backend.reports.sections.validation import table
from backend.reports.sections.writer import Writer, bits, figure, gain, p_value, percent
from backend.reports.standards import STANDARDS
from backend.reports.verdict.facts import STATES, Figure
from backend.services import Glassleaf, reports
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest
from backend.store.database import Database
from backend.store.party_store import PartyStore
from backend.trees.serialization import load_host

ROOT = Path(__file__).resolve().parents[2]
CJK, DEJAVU = fonts.CHINESE_FONTS[0], fonts.SYMBOLS[0]
OFFSET = 770_000  # added to every number of a Host, so that none of them can turn up by chance
HOST_NUMBER = re.compile(r"(?<![\w.,-])77\d,?\d{3}(?:\.\d+)?(?![\w])")
HASH = re.compile(r"[0-9a-f]{64}")
HOSTILE = "</script><script>alert(1)</script> & <b>bold</b>"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    federation = write_demo(home / "demo", rows=400)
    for host in federation.hosts:
        file = federation.folder / host.file
        table = pd.read_csv(file, dtype=str)
        for feature in host.features:
            if feature.kind is Kind.NUMERIC:
                table[feature.name] = pd.to_numeric(table[feature.name]) + OFFSET
        table.to_csv(file, index=False)
    toml = home / "demo" / "federation.toml"
    meaning = next(f.meaning.en for f in federation.guest.features)
    toml.write_text(toml.read_text().replace(json.dumps(meaning, ensure_ascii=False), json.dumps(HOSTILE)))
    return home


@pytest.fixture(scope="module")
def glassleaf(home):
    glassleaf = Glassleaf(home, pools=False, actor="ana")
    glassleaf.federations.add(home / "demo")
    glassleaf.training.start(TrainingRequest("demo", SecureBoostParameters(trees=5, depth=3, cipher="none"))).get()
    federation = glassleaf.federations.get("demo")
    ids = "\n".join([federation.guest.id, *glassleaf.samples.table("latest").index[:2]])
    glassleaf.scoring.start(
        ScoringRequest("latest", glassleaf.samples.read("latest", ids.encode()), cipher="none")
    ).get()
    yield glassleaf
    glassleaf.close()


@pytest.fixture(scope="module")
def report(glassleaf):
    first = glassleaf.compliance.assess("latest").findings[0]
    glassleaf.reviews.decide("latest", first.rule_id, first.feature, "confirmed", "It has to go before use.", "Rita")
    glassleaf.reports.sign_off("latest", "Rita", "Read, and discussed with the owner.")
    return glassleaf.reports.make("latest")


@pytest.fixture(scope="module")
def pdf(report):
    """The report as a PDF in a language, drawn once."""
    return cache(partial(to_pdf, report))


class _Shown(HTMLParser):
    """The text of a page, without scripts and styles."""

    def __init__(self):
        super().__init__()
        self.parts, self._hidden = [], 0

    def handle_starttag(self, tag, attrs):
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag):
        self._hidden -= tag in ("script", "style")
        self.parts.append(" ")

    def handle_data(self, data):
        if not self._hidden:
            self.parts.append(data)


def html_text(page):
    shown = _Shown()
    shown.feed(page)
    return "".join(shown.parts)


def pdf_text(blob):
    """What a PDF says; what stands at the head and foot of every page is left out."""
    first, *others = [page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(blob)]
    pages = [first, *(page.split("\n", 1)[1] for page in others)]
    return "\n".join(re.sub(r"Page \d+ of \d+|第 \d+ 页，共 \d+ 页", "", page) for page in pages)


def squeezed(text):
    return re.sub(r"\s", "", text)


def numbers(report):
    """Every figure of the JSON as it has to be written."""
    content, issued = report.content, report.issued
    shown = [gain(f.usage.gain_share) for f in content.features if f.usage.splits]
    shown += [
        f"{f.strength:+.2f}".replace("-", "−") for f in content.features if f.usage.splits and f.learned != "unordered"
    ]
    shown += [gain(p.gain_share) for p in content.parties]
    shown += [f"{t.n:,}" for t in [content.quality]]
    shown += [figure(getattr(content.quality, k)) for k in ("auc", "ks", "log_loss", "accuracy")]
    shown += [gain(f.usage.gain_share) for f in content.assessment.findings if f.usage.splits]
    for lines in (content.training_traffic, issued.use.traffic):
        totals = {}
        for line in lines:  # the two Hosts stand on one row
            way = line.kind, line.sender == "bank", line.receiver == "bank"
            totals[way] = totals.get(way, 0) + line.bytes
        shown += [f"{total:,}" for total in totals.values()]
    shown += [report.sha256, report.content_sha256, content.identity.guest_sha256, issued.audit.head_sha256]
    return [*shown, *content.identity.host_sha256.values()]


def standing_of(report, **changed):
    """The report of a model that has come further."""
    standing = report.issued.standing.model_copy(update=changed)
    return make(written(report.content), report.issued.model_copy(update={"standing": standing}), SigningKey.generate())


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_page_says_whether_somebody_approved_the_model(report, language):
    words = Catalogue(language)
    assert (report.issued.standing.state, report.issued.standing.owner) == ("draft", "ana")
    approved = {"approved_by": "Cy", "approved_at": "2026-11-20T10:00:00.000+00:00", "approved_because": "read by all"}
    for made, line in (
        (report, words("states.line_draft")),
        (standing_of(report, state="in_use"), words("states.line_in_use_demo")),
        (standing_of(report, state="in_use", **approved), words("states.line_in_use", person="Cy", day="2026-11-20")),
    ):
        assert line in html_text(to_html(made, language))
    first = pypdfium2.PdfDocument(to_pdf(made, language))[0].get_textpage().get_text_range()
    assert squeezed(line) in squeezed(first)
    assert words("document.approved_because", reason="read by all") in html_text(to_html(made, language))


def test_a_step_of_the_model_changes_no_content_that_somebody_signed(report):
    further = standing_of(report, state="in_review", name="Default 90 d")
    assert further.content_sha256 == report.content_sha256 and further.sha256 != report.sha256
    assert read(to_json(further)) == further


def test_every_page_after_the_first_says_which_model_it_is_about(report, pdf):
    _, *others = [page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(pdf("en"))]
    assert len(others) > 3 and all(report.content.identity.model in page.split("\n", 1)[0] for page in others)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_page_says_what_is_true_of_the_model_and_settings_are_in_words(report, language):
    shown, words = html_text(to_html(report, language)), Catalogue(language)
    verdict = report.issued.verdict
    assert verdict.facts and words.text(verdict.headline) in shown
    assert not [fact.sentence for fact in verdict.facts if words.text(fact.sentence) not in shown]
    assert words("alignment.name_dh") in shown
    assert not [cell for cell in ("False", "True", "None", "dh", "0.0") if f">{cell}<" in to_html(report, language)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_open_points_have_a_page_with_gravity_owner_and_day_and_no_fact_is_said_twice(report, language, pdf):
    words, write = Catalogue(language), Writer(report, Catalogue(language))
    verdict = report.issued.verdict
    bad = [fact for fact in verdict.facts if fact.state != "no_breach"]
    _, table, *_ = open_points.open_points(write)
    order = [words(f"verdict.{state}") for state in STATES[:-1]] + [write("open_not_provided")]
    gravity = [order.index(row[0]) for row in table.rows]
    assert gravity == sorted(gravity) and [row[1] for row in table.rows[: len(bad)]] == [
        words.text(fact.sentence) for fact in bad
    ]
    assert all(owner and re.fullmatch(r"\d{4}-\d\d-\d\d", day) for _, _, owner, day, _ in table.rows)
    shown = html_text(to_html(report, language))
    assert [words.text(fact.sentence) for fact in verdict.facts if shown.count(words.text(fact.sentence)) != 1] == []
    pages = [page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(pdf(language))]
    annexes = next(n for n, page in enumerate(pages) if write("annexes_note", listed="@").split("@")[0][:20] in page)
    assert annexes <= 12  # pages of substance
    alone = next(page for page in pages if f"2. {write('open_points')}" in page)
    assert f"1. {write('summary')}" not in alone and f"3. {write('purpose')}" not in alone


@pytest.mark.parametrize("language", ["en", "zh"])
def test_open_points_on_acceptance_say_what_four_fifths_is(report, language):
    def notes(of):
        write = Writer(of, Catalogue(language))
        return [block.text for block in open_points.open_points(write) if getattr(block, "tone", "") == "note"]

    said = Catalogue(language)("document.open_four_fifths")
    facts = report.issued.verdict.facts
    by_ratio = replace(facts[0], kind="outcomes", state="broken", figure=Figure(0.5, 0.4, 0.6, 200, "ratio"))
    verdict = replace(report.issued.verdict, facts=(by_ratio, *facts[1:]))
    issued = report.issued.model_copy(update={"verdict": verdict})
    assert notes(report.model_copy(update={"issued": issued})) == [said]
    assert notes(report) == [] or any(fact.kind == "outcomes" and fact.figure for fact in facts)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rate_of_all_people_stands_beside_that_of_those_measured_each_with_its_people(report, language):
    write = Writer(report, Catalogue(language))
    rows = dict(row for block in model.quality(write) if isinstance(block, Facts) for row in block.rows)
    quality = report.content.quality
    measured = report.content.performance.calibration
    n = sum(row.n for row in measured)
    share = sum(row.n * row.observed for row in measured) / n
    everybody = sum(quality.rows.values())
    assert n == quality.n < everybody
    of_all = {"share": percent(quality.positive_rate), "part": write.part("joint"), "n": f"{everybody:,}"}
    of_measured = {"share": percent(share), "part": write.part("test"), "n": f"{n:,}"}
    assert rows[write("positive_rate")] == write("rate_of", **of_all)
    assert rows[write("positive_rate_measured")] == write("rate_of", **of_measured)


def test_what_the_suite_measured_of_sensitivity_counts_where_sr_26_2_asks_for_it(report):
    measured = (Judged(SuiteFigure(measure="noise_fall", value=0.1), "max", 0.05, 0.2, "warn"),)
    noise = suite.Tested("noise", "stability", False, Text("S", "出处"), "warn", figures=measured)
    validated = Validation("m", "", "1", "warn", (noise,), 0.5, 99, 99)
    words = Catalogue("en")
    for section, measured in ((None, False), (validated, True)):
        content = report.content.model_copy(update={"validation": section})
        write = Writer(report.model_copy(update={"content": content}), words)
        said = [block.text for block in operator.tests(write) if isinstance(block, Paragraph)]
        assert ("sensitivity" in operator.not_provided(write)) != measured
        assert any(words("validation.test_noise") in text for text in said) == measured
        (subject,) = (one for one in STANDARDS["sr26"] if one.key == "sr26_testing")
        assert (words("details.sensitivity") in operator.answered(write, subject)[1]) != measured


def test_the_test_log_names_each_measurement_with_its_entry_of_the_audit_log(glassleaf, report):
    entries = {entry.number: entry for entry in glassleaf.audit.entries("demo")}
    for line in report.issued.test_log:
        assert (entries[line.number].hash, entries[line.number].action) == (line.entry_sha256, line.action)
    line = MeasuredEntry(
        number=3, time="2026-11-30T08:00:00", action="validation", about="", actor="ana", entry_sha256="ab" * 32
    )
    issued = report.issued.model_copy(update={"test_log": (line,)})
    write = Writer(report.model_copy(update={"issued": issued}), Catalogue("en"))
    (log,) = (block for block in validation.test_log(write) if isinstance(block, Table))
    assert log.rows == (("2026-11-30 08:00:00", "validation", "ana", "3 · abababababababab"),)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_of_the_json_is_in_the_html_and_in_the_pdf(report, language, pdf):
    page, pdf = squeezed(html_text(to_html(report, language))), squeezed(pdf_text(pdf(language)))
    wanted = [squeezed(number) for number in numbers(report)]
    assert len(wanted) > 50
    assert [n for n in wanted if n not in page] == [] and [n for n in wanted if n not in pdf] == []


def test_the_html_and_the_pdf_hold_the_same_numbers_as_often(report, pdf):
    def counted(text):
        return sorted(re.findall(r"\d+(?:[.,]\d+)*", text))

    page, pdf = counted(html_text(to_html(report, "en"))), counted(pdf_text(pdf("en")))
    short = [n for n in page if len(n) > 3 and page.count(n) != pdf.count(n)]
    assert len(page) > 300 and short == []


@pytest.mark.parametrize("form", ["json", "html", pytest.param("pdf", marks=pytest.mark.slow)])
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_threshold_value_or_place_of_a_host_is_in_a_report(glassleaf, home, report, form, language):
    record, thresholds = glassleaf.models.get("latest"), []
    for host in glassleaf.federations.get("demo").hosts:
        store = PartyStore(Database(home / "parties" / "demo" / host.name))
        rules = load_host(store.artefact(record.id)).rules.values()
        thresholds += [r.threshold for r in rules if r.threshold is not None and r.threshold > OFFSET / 2]

    assert thresholds
    blob = glassleaf.reports.export("latest", form, language)
    text = pdf_text(blob) + canonical(pdf_form.read_pdf(blob).body()) if form == "pdf" else blob.decode()
    text = re.sub(r'"bytes":\d+', "", HASH.sub("", text))
    assert HOST_NUMBER.search(f"below {thresholds[0]:.1f} months") and not HOST_NUMBER.search(text)
    assert not [t for t in thresholds if f"{t:.6g}" in text or f"{t:,.1f}" in text]
    assert str(home) not in text and "federation.toml" not in text
    assert not [i for i in glassleaf.samples.table("latest").index[:50] if re.search(rf"\b{re.escape(str(i))}\b", text)]


@pytest.mark.parametrize("form", ["json", "html", pytest.param("pdf", marks=pytest.mark.slow)])
def test_a_written_report_passes_its_check_and_the_log_names_it(glassleaf, form):
    blob = glassleaf.reports.export("latest", form)
    made = check(blob).report
    entry = glassleaf.audit.entries("demo")[-1]
    assert [(name, e.number) for name, e in glassleaf.reports.check(blob).named_by] == [("demo", entry.number)]
    assert entry.action == "report" and entry.body["report_sha256"] == made.sha256 and entry.body["format"] == form


def test_a_changed_number_in_the_json_shows(glassleaf):
    text = glassleaf.reports.export("latest", "json").decode()
    body = json.loads(text)
    body["content"]["quality"]["auc"] = 0.999
    with pytest.raises(ModelError, match="does not match its hash"):
        read(json.dumps(body))
    body["sha256"] = sha256({k: v for k, v in body.items() if k not in ("sha256", "signature")})
    with pytest.raises(ModelError, match="content does not match its hash"):
        read(json.dumps(body))


def test_a_changed_word_on_the_page_shows(report):
    page = to_html(report, "en")
    assert read_html(page) == report
    word = Catalogue("en")("document.undecided")
    assert word in page
    with pytest.raises(ModelError, match="not what this version draws"):
        read_html(page.replace(word, "Approved."))
    with pytest.raises(ModelError, match="holds no report"):
        read_html("<html lang='en'></html>")


@pytest.mark.slow
def test_a_changed_pdf_differs_from_one_that_was_drawn_here(report, pdf):
    blob = pdf("en")
    assert pdf_form.is_drawn_here(blob, report)
    assert (check(blob).drawn, check(blob + b"\n% one more line").drawn) == ("yes", "other")
    auc = f'"auc":{report.content.quality.auc}'.encode()
    assert auc in blob
    with pytest.raises(ModelError, match="does not match its hash"):
        check(blob.replace(auc, auc[:-1] + (b"1" if auc[-1:] != b"1" else b"2")))


def by_hand(command, file):
    """What a reader's shell prints, run as it was copied."""
    shell = command.replace("python3", shlex.quote(sys.executable), 1).replace("report.json", shlex.quote(str(file)))
    return subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=False, timeout=120
    ).stdout.strip()


def copied(text):
    [command] = re.findall(r"python3 -c.*?report\.json", text, re.S)
    return command


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_lines_for_readers_without_glassleaf_run_as_they_are_copied_and_refuse_repeated_names(
    report, tmp_path, language, pdf
):
    pdf = copied(pdf_text(pdf(language)).replace("\r", ""))
    shown = copied(html_text(to_html(report, language)))
    text = to_json(report)
    body = json.loads(text) | {"content_sha256": "0" * 64}
    whole = sha256({name: part for name, part in body.items() if name not in ("sha256", "signature")})
    file = tmp_path / "report of the bank.json"
    for command in (pdf, shown, shown.replace("\n", " ")):
        for given, said in (
            (text, "True"),
            (text.replace('"actor":"ana"', '"actor":"eve"'), "False"),
            ('{"content":"No findings. Approved.",' + text[1:], "False"),
            (text.replace(":", ": "), "False"),
            (canonical(body | {"sha256": whole}) + "\n", "False"),  # the document has its hash, its content another
        ):
            file.write_text(given)
            verdict, digest = by_hand(command, file).split()
            assert verdict == said and (digest == report.content_sha256 or said == "False")


def test_what_is_no_report_is_refused():
    with pytest.raises(ModelError, match="not a report of version 1"):
        read("{}")
    with pytest.raises(ModelError, match="not a report of version 1"):
        read("not json")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_feature_that_nobody_explains_is_named_as_a_question(report, language):
    told = Catalogue(language)("document.not_understood", listed="@").split("@")[0]
    assert told not in html_text(to_html(report, language))
    line = NotUnderstood(party=report.content.parties[1].name, feature="zq17")
    found = replace(report.content.assessment, not_understood=(line,))
    asked = make(written(report.content.model_copy(update={"assessment": found})), report.issued, SigningKey.generate())
    shown = html_text(to_html(asked, language))
    assert f"{told}zq17 (" in shown


@pytest.fixture(scope="module")
def asking(glassleaf, report):
    """The report with one open question about a Host's feature."""
    sources = glassleaf.reports._sources(glassleaf.models.get("latest"))
    zq17 = Feature(name="zq17", meaning="Average of spouses here")
    questions = assess([(report.content.parties[1].name, zq17)], {}).questions
    content = content_of(replace(sources, compliance=replace(sources.compliance, questions=questions)))
    return make(written(content), report.issued, SigningKey.generate())


@pytest.mark.parametrize("language", LANGUAGES)
def test_open_questions_are_counted_and_told_with_their_words(report, asking, language):
    words, told = Catalogue(language), Catalogue(language)("document.questions_open", n=1)
    assessment = replace(report.content.assessment, questions=())
    none = report.model_copy(update={"content": report.content.model_copy(update={"assessment": assessment})})
    assert told not in html_text(to_html(none, language)) and read(to_json(asking)) == asking
    shown = html_text(to_html(asking, language))
    assert shown.count(told) == 1 and "spouses" in shown and words("questions.why_single") in shown


def test_a_hostile_meaning_stays_text(report):
    assert any(f.meaning.en == HOSTILE for f in report.content.features)
    page = to_html(report, "en")
    assert "<b>bold" not in page and page.count("<script") == 1 and page.count("</script>") == 1


def test_a_page_needs_nothing_from_elsewhere(report):
    assert not re.search(r"""(?:src|href)=|url\(|@import""", to_html(report, "en"))


def test_decisions_and_sign_offs_are_in_the_report_and_a_sign_off_covers_its_content_only(glassleaf, report):
    decided = [f.decision for f in report.content.assessment.findings if f.decision]
    assert [d.reason for d in decided] == ["It has to go before use."]
    assert [(s.person, s.role, s.covers) for s in report.issued.sign_offs] == [("Rita", "operator", True)]
    last = glassleaf.compliance.assess("latest").findings[-1]
    glassleaf.reviews.decide(
        "latest", last.rule_id, last.feature, "overridden", "Allowed under the stated conditions.", "Rita"
    )
    assert [s.covers for s in glassleaf.reports.make("latest").issued.sign_offs] == [False]
    assert [e.action for e in glassleaf.audit.entries("demo") if e.action in ("override", "sign-off")] == [
        "override",
        "sign-off",
        "override",
    ]


def test_a_finding_that_there_is_not_cannot_be_overridden(glassleaf):
    with pytest.raises(ParameterError, match="has no finding"):
        glassleaf.reviews.decide("latest", "ecoa-sex", "no_such_feature", "overridden", "For no reason at all.", "Rita")


def test_what_was_not_measured_is_reported_as_not_measured(report):
    assert report.content.fairness is None and report.content.proxies is None
    page, words = html_text(to_html(report, "en")), Catalogue("en")
    assert all(words(f"document.{claim}_not_measured") in page for claim in ("fairness", "proxies"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_annex_on_rates_says_nothing_twice(report, language):
    men, women = Text("men", "男"), Text("women", "女")
    rate = "selection rate"
    measures = (
        Evidence(about=women, measure=rate, n=400, value=0.7, low=0.6, high=0.8),
        Evidence(about=men, measure=rate, n=400, value=0.8, low=0.7, high=0.9),
        Evidence(about=men, measure=f"{rate}, reference", n=400, value=None),
        Evidence(about=women, measure=f"{rate}, difference", n=800, value=-0.1, low=-0.2, high=-0.01),
        Evidence(about=women, measure=f"{rate}, pair p", n=800, value=0.03),
        Evidence(about=Text("all"), measure=f"{rate}, p", n=800, value=0.03),
        Evidence(about=women, measure="score", n=400, value=0.3, low=0.2, high=0.4),
        Evidence(about=women, measure=f"score, {SMD}", n=800, value=0.3, low=0.2, high=0.4),
    )
    about = [Evidenced(feature=name, meaning=Text(name), on=None, measures=measures) for name in ("sex", "age")]
    content = report.content.model_copy(update={"fairness": tuple(about)})
    blocks = claims.every_rate(Writer(report.model_copy(update={"content": content}), Catalogue(language)))
    said = [block.text for block in blocks if isinstance(block, Paragraph)]
    assert len(said) == len(set(said))
    rates_of = next(block for block in blocks if isinstance(block, Table))
    assert len(rates_of.rows) == 4  # both rates, their difference and its chance: no row for the reference, no second p


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_measured_is_in_every_form_with_its_interval(glassleaf, report, language):
    feature = report.content.features[0].name
    measured = Evidence(about=Text("women"), measure="selection rate", n=1234, value=0.71239, low=0.6512, high=0.7701)
    few = Evidence(about=Text("others"), measure="selection rate", n=7, value=None, low=None, high=None)
    sources = glassleaf.reports._sources(glassleaf.models.get("latest"))
    sources = replace(sources, disparities={feature: (measured, few)}, proxies={})
    made = make(written(content_of(sources)), report.issued, SigningKey.generate())
    for text in (html_text(to_html(made, language)), pdf_text(to_pdf(made, language))):
        assert all(shown in squeezed(text) for shown in ("71.24", "65.12", "77.01", "1,234", "women"))
        assert text.count(Catalogue(language)("document.fairness_not_measured")) == 0
    assert made.content.fairness[0].measures[0].value == 0.7124 and made.content.proxies == ()


def test_findings_stand_by_feature_the_worst_first_and_what_was_measured_of_it_once(report):
    found = report.content.assessment
    women = Evidence(about=Text("women"), measure="selection rate", n=1234, value=0.7, low=0.6, high=0.8)
    in_use = replace(found.findings[0].usage, splits=1)
    lines = [replace(finding, disparities=(women,), usage=in_use) for finding in found.findings]
    twice = next(f for f in lines if [other.feature for other in lines].count(f.feature) > 1)
    other = next(f for f in lines if f.feature != twice.feature)
    both = [finding for finding in lines if finding.feature == twice.feature]
    mild = [replace(finding, status="indicator") for finding in both[1:]]
    mixed = (
        *mild,
        replace(other, status="conditional"),
        replace(both[0], status="prohibited"),
    )
    content = report.content.model_copy(update={"assessment": replace(found, findings=mixed)})
    writer = Writer(make(written(content), report.issued, SigningKey.generate()), Catalogue("en"))
    blocks = claims.rule_by_rule(writer)
    headed = [block.text for block in blocks if isinstance(block, Heading)][:2]
    assert [writer.feature(f) in head for f, head in zip((twice.feature, other.feature), headed, strict=True)] == [
        True
    ] * 2
    shown = [dict(block.rows)[writer("disparity")] for block in blocks if isinstance(block, Facts)]
    assert shown == [writer("in_annex", annex=writer("annex_evidence"))] * 2
    rules = [block.rows for block in blocks if isinstance(block, Table) and block.head[0] == writer("head_rule")]
    assert [len(rows) for rows in rules[:2]] == [len(both), 1] and writer.status(
        replace(both[0], status="prohibited")
    ) in rules[0][0][0]


def test_a_finding_says_where_the_suite_alone_measured_its_feature(report):
    finding = replace(report.content.assessment.findings[0], disparities=None, disparities_on=None)
    figure = SuiteFigure(measure="impact_ratio", value=0.9, n=99, feature=finding.feature, kind="code", group="1")
    judged = Judged(figure, "min", None, 0.8, "pass")
    one = suite.Tested("disparity", "fairness", True, Text("S", "出处"), "pass", figures=(judged,))
    validated = Validation("m", "", "1", "pass", (one,), 0.5, 99, 99)
    for section, key in ((validated, "measured_in_suite"), (None, "not_measured")):
        content = report.content.model_copy(update={"validation": section})
        writer = Writer(report.model_copy(update={"content": content}), Catalogue("en"))
        first, *figures = claims.disparities_of(writer, finding).splitlines()
        assert (
            first == writer(key) and len(figures) == (section is validated) and all("0.9000" in one for one in figures)
        )


def test_the_report_counts_what_travelled(glassleaf, report):
    assert {t.kind for t in report.content.training_traffic} >= {"BinSums", "TakeSplit", "KeepModel"}
    assert {t.kind for t in report.issued.use.traffic} >= {"DecisionVectors", "EncryptedScores"}
    assert report.issued.use.rows == report.issued.use.in_the_clear == 2


@pytest.mark.parametrize(("cipher", "said"), [("none", True), ("rlwe", False)])
def test_what_travelled_in_the_clear_in_training_is_not_called_encrypted(report, cipher, said):
    identity = report.content.identity.model_copy(update={"cipher": cipher})
    content = report.content.model_copy(update={"identity": identity})
    writer = Writer(make(written(content), report.issued, SigningKey.generate()), Catalogue("en"))
    assert (Paragraph(writer("trained_in_the_clear"), "finding") in record.privacy(writer)) == said


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_answers_have_given_away_is_in_every_form_by_host(glassleaf, report, language, pdf):
    told, words = glassleaf.leakage.given_away("latest"), Catalogue(language)
    lines = report.issued.given_away
    assert [(line.host, line.people, line.limit) for line in lines] == [(t.host, t.people, t.limit) for t in told]
    assert all(line.people == 2 and line.largest > 0 for line in lines)
    for text in (
        html_text(to_html(report, language)),
        *([pdf_text(pdf(language))] if language == "en" else []),
    ):
        assert squeezed(words("document.given_away")) in squeezed(text)
        assert all(squeezed(bits(line.largest)) in squeezed(text) for line in lines)


@pytest.mark.parametrize("language", LANGUAGES)
def test_whom_people_were_compared_with_is_in_the_report(report, language):
    words = Catalogue(language)
    assert report.issued.reasons == () and words("compared.report") not in html_text(to_html(report, language))
    lines = (ReasonsLine(against="all", people=1234, notices=7), ReasonsLine(against="covers", people=3, notices=0))
    asked = make(written(report.content), report.issued.model_copy(update={"reasons": lines}), SigningKey.generate())
    text = squeezed(html_text(to_html(asked, language)))
    assert squeezed(words("compared.report_all", people="1,234", notices="7")) in text
    assert squeezed(words("compared.report_covers", people="3", notices="0")) in text
    assert read(to_json(asked)) == asked


def test_a_report_that_cannot_ask_the_hosts_says_nothing_of_their_answers(report):
    issued = report.issued.model_copy(update={"given_away": None})
    without = make(written(report.content), issued, SigningKey.generate())
    assert read(to_json(without)) == without
    assert Catalogue("en")("document.given_away") not in html_text(to_html(without, "en"))


def test_an_unknown_form_or_language_is_refused(glassleaf):
    with pytest.raises(ParameterError, match="json, html, pdf"):
        glassleaf.reports.export("latest", "docx")
    with pytest.raises(ParameterError) as refused:
        glassleaf.reports.export("latest", "html", "fr")
    assert refused.value.code == "unknown_language"


@pytest.mark.slow
def test_without_a_font_with_chinese_letters_the_pdf_is_english(report, monkeypatch):
    monkeypatch.setattr(fonts, "CHINESE_FONTS", ())
    assert fonts.language_of_pdf("zh") == "en"
    assert Catalogue("en")("document.summary") in pdf_text(to_pdf(report, "zh"))


@pytest.mark.slow
def test_without_any_font_the_pdf_is_drawn_all_the_same(report, monkeypatch):
    monkeypatch.setattr(fonts, "CHINESE_FONTS", ())
    monkeypatch.setattr(fonts, "LATIN", ())
    text = squeezed(pdf_text(to_pdf(report, "en")))
    assert [n for n in numbers(report) if squeezed(n).replace("−", "-") not in text] == []  # Latin-1 has no minus sign


@pytest.mark.slow
@pytest.mark.skipif(not all(font.installed() for font in (CJK, DEJAVU)), reason="a machine without these fonts")
def test_letters_that_the_chosen_font_lacks_come_from_another(monkeypatch):
    monkeypatch.setattr(fonts, "CHINESE_FONTS", ())
    monkeypatch.setattr(fonts, "LATIN", (CJK,))
    page = pdf_page.Page(Catalogue("en"), datetime.now(UTC))
    assert [page._family(letter) for letter in "a信Ա"] == ["latin", "latin", "symbols"]  # the last one is Armenian
    page.output()  # closes the fonts' files


def test_headings_of_both_levels_and_what_they_head_go_to_one_page():
    page, words = pdf_page.Page(Catalogue("en"), datetime.now(UTC)), "word " * 60
    below = [
        Heading("Gaps", 2),
        Paragraph(words),
        Paragraph(words),
        Table(("a", "b"), tuple(("x", "y") for _ in range(9)), (1, 1)),
    ]
    inner, outer = (pdf_form._together(page, blocks) for blocks in (below, [Heading("Alternatives", 1), *below]))
    assert outer - inner == 16  # the outer heading's own height: nothing that the inner one keeps is left out
    page.output()  # closes the fonts' files


def test_sentences_below_a_heading_stand_on_the_page_of_the_first_part_that_they_introduce():
    page, words = pdf_page.Page(Catalogue("en"), datetime.now(UTC)), Paragraph("word")
    part, introduced = [Heading("SR 26-2", 2), Table(("a",), (("x",),), (1,))], [Heading("Standards"), words]
    outer, inner = pdf_form._together(page, [*introduced, *part]), pdf_form._together(page, part)
    assert outer - inner == pytest.approx(16 + pdf_form._height(page, words))
    assert pdf_form._together(page, [*introduced, Heading("Rules")]) == 16 + pdf_form._height(page, words)
    page.output()  # closes the fonts' files


def test_no_line_of_a_paragraph_and_no_row_of_a_table_is_alone_on_a_page(monkeypatch):
    page, words, put = pdf_page.Page(Catalogue("en"), datetime.now(UTC)), Catalogue("en"), []
    monkeypatch.setattr(page, "put", lambda x, y, text, *rest: put.append((page.page, text)))
    for count in (2, 3, 4, 9):
        parts = [f"part{i}" for i in range(count)]
        for block in (Paragraph("\n".join(parts)), Table(("Head",), tuple((part,) for part in parts), (1,))):
            places = set()
            for room in range(8, 60):
                page.add_page()
                page.set_y(page.page_break_trigger - room)
                first = page.page
                put.clear()
                pdf_form._draw(page, block, words)
                drawn = [number - first for number, text in put if text.startswith("part")]
                places.add((drawn.count(0), drawn.count(1)))
            assert {sum(place) for place in places} == {count} and not any(1 in place for place in places)
            assert len(places) == (2 if count < 4 else count - 1)  # whole here, whole on the next page, or apart
    page.output()  # closes the fonts' files


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_search_says_that_acceptance_by_group_was_measured(report, language):
    words, search = Catalogue(language), SearchLine.model_construct()
    searched = make_writer(report.content.model_copy(update={"searches": (search,)}), report, language)
    unsearched = Writer(report, words)
    for writer, key in (
        (searched, "document.fairness_searched"),
        (unsearched, "document.fairness_not_measured"),
    ):
        said = "\n".join(b.text for b in claims.evidence(writer) if isinstance(b, Paragraph))
        assert words(key) in said


def make_writer(content, report, language):
    return Writer(report.model_copy(update={"content": content}), Catalogue(language))


def test_the_schema_in_the_documents_is_that_of_the_code():
    assert (ROOT / "docs" / "report-schema.json").read_text(encoding="utf-8") == schema(), (
        "run: python -m backend report --schema > docs/report-schema.json"
    )


def test_every_word_of_a_printed_report_is_asked_for():
    files = [*(ROOT / "backend" / "reports").rglob("*.py"), ROOT / "backend" / "fairness" / "age_discrimination.py"]
    code = "".join(f.read_text() for f in files)
    named = set(re.findall(r'["\x27]([a-z_0-9]+)["\x27]', code)) | set(re.findall(r"document\.([a-z_0-9]+)", code))
    composed = {  # first words of the keys whose last ones come out of a result
        "ask", "limit", "head", "gap", "cipher", "aggregation", "decision", "force", "part", "elderly", "scores", "leaks",
        "parameter", "whom", "model", "status", "lda", "tag", "demo", "answered",
    }  # fmt: skip
    keys = [key.removeprefix("document.") for key in catalogue("en") if key.startswith("document.")]
    unused = [k for k in keys if k not in named and k.split("_")[0] not in composed and not k.endswith("_not_measured")]
    assert unused == []


def test_an_unknown_language_has_no_words():
    with pytest.raises(ParameterError) as refused:
        words_in("de")
    assert refused.value.code == "unknown_language" and "en, zh" in str(refused.value)


def test_that_nothing_contradicts_an_expectation_is_said_only_where_one_was_stated(report):
    words = Catalogue("en")
    used = sum(f.expected != "none" for f in report.content.features if f.usage.splits)
    unstated = tuple(f.model_copy(update={"expected": "none", "contradicts": False}) for f in report.content.features)
    agreeing = tuple(f.model_copy(update={"contradicts": False}) for f in report.content.features)

    def said(features):
        content = report.content.model_copy(update={"features": features})
        return " ".join(answer for _, answer in answers(report.model_copy(update={"content": content}), "en"))

    assert words("document.nothing_expected") in said(unstated)
    assert words("document.not_against", n=used) in said(agreeing) and used > 0


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "–"), (0.0, "< 0.0001"), (0.00009, "< 0.0001"), (0.0001, "0.0001"), (1, "1.0000")]
)
def test_no_p_value_reads_as_0(report, value, shown):
    assert p_value(value) == shown
    measured = Evidence(about=Text(), measure="selection rate, pair p", n=50, value=value, low=None, high=None)
    said = claims.value(Writer(report, Catalogue("en")), measured)
    assert said == (catalogue("en")["document.too_few"] if value is None else f"{shown} (n\u00a0=\u00a050)")


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_are_numbered_and_what_a_model_was_trained_on_is_in_words(report, language, pdf):
    pages = pypdfium2.PdfDocument(pdf(language))
    words = Catalogue(language)
    for number, page in enumerate(pages, start=1):
        assert words("document.page", n=number, all=len(pages)) in page.get_textpage().get_text_range()
    identity = report.content.identity.model_copy(update={"cipher": "rlwe", "key_bits": 8192})
    parameters = identity.parameters | {"cipher": "rlwe", "key_bits": "3072"}
    changed = report.content.model_copy(update={"identity": identity.model_copy(update={"parameters": parameters})})
    shown = html_text(to_html(make(written(changed), report.issued, SigningKey.generate()), language))
    assert shown.count(words("document.cipher_rlwe", bits=8192)) == 2 and "3072" not in shown and "3,072" not in shown


@pytest.mark.parametrize("above", range(36, 52))
def test_a_sentence_stands_on_a_page_with_its_table_and_a_remark_with_the_end_of_it(above):
    rows = tuple((f"row {n}", "1") for n in range(4))
    blocks = (
        *(Paragraph(f"filler {n}") for n in range(above)), Paragraph("What follows."), Table(("head", "n"), rows, (1, 1)),
        Paragraph("The remark.", "note"),
    )  # fmt: skip
    drawn = pdf_form.pages(Outline("Title", "below", blocks), "en", datetime(2026, 11, 1, tzinfo=UTC))
    texts = [page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(bytes(drawn.output()))]
    assert all(("What follows." in text) <= ("row 0" in text) for text in texts)
    assert all(("The remark." in text) <= ("row 3" in text) for text in texts)


def test_sources_of_the_suite_are_in_the_reports_language(report):
    known = (*suite.standard().tests, *monitoring.triggers().tests)
    assert all(one.source.zh and one.source.zh != one.source.en for one in known)
    lines = [suite.Tested("auc", "quality", True, Text("S", zh), "pass") for zh in ("出处", "")]
    assert [row[-1] for row in table(Writer(report, Catalogue("zh")), lines).rows] == ["出处", "S"]
    assert [row[-1] for row in table(Writer(report, Catalogue("en")), lines).rows] == ["S", "S"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_where_a_dutys_wording_was_read_stands_once_and_by_its_number_at_the_duty(report, language):
    words = Catalogue(language)
    _, scope, packs, *_, duties, _, read = claims.rules(Writer(report, words))
    assert scope == Paragraph(words.text(report.content.assessment.scope)) and scope.text
    scopes = {words.text(pack.applies_to) for pack in load_packs()}
    assert scopes and scopes == {scope for *_, scope, _ in packs.rows}
    quoted = [duty for duty in report.content.assessment.duties if duty.quote]
    sources = [words.text(duty.quote_from) for duty in quoted]
    assert len(read.rows) == len(set(sources)) < len(quoted) > 30
    numbers = {source: n for n, source in read.rows}
    for duty, source in zip(quoted, sources, strict=True):
        cell = next(demands for _, demands, _ in duties.rows if duty.quote in demands)
        assert words("document.source_number", n=numbers[source]) in cell and source not in cell


def test_parameters_are_off_or_in_percent_where_a_reader_would_say_so(report):
    parameters = {"goss_top": "0.0", "goss_other": "0.2", "row_sample": "0.632", "learning_rate": "0.3"}
    identity = report.content.identity.model_copy(update={"parameters": parameters})
    content = report.content.model_copy(update={"identity": identity})
    (shown,) = model.parameters(Writer(report.model_copy(update={"content": content}), Catalogue("en")))
    assert [value for _, value in shown.rows][:4] == ["off", "0.2", "63.2\u00a0%", "0.3"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_page_names_the_worst_features_and_says_where_the_others_are(report, language):
    words = Catalogue(language)
    first = report.content.assessment.findings[0]
    first = replace(first, usage=replace(first.usage, splits=1))

    def answer(**statuses: str) -> list[str]:
        found = tuple(replace(first, feature=f, status=status) for f, status in statuses.items())
        assessment = replace(report.content.assessment, findings=found, questions=())
        content = report.content.model_copy(update={"assessment": assessment})
        found_there = dict(answers(report.model_copy(update={"content": content}), language))
        return found_there[words("document.ask_flag")].splitlines()

    mild = {f"mild{n}": "informational" for n in range(claims.FIRST_PAGE_FEATURES)}
    _, *lines, more = answer(**mild, worst="prohibited", spared="informational")
    assert len(lines) == claims.FIRST_PAGE_FEATURES and more == words(
        "document.flag_more", n=2, section=words("document.findings")
    )
    assert lines[0].startswith("worst") and words("compliance.prohibited") in lines[0]
    assert len(answer(**mild)) == 1 + claims.FIRST_PAGE_FEATURES


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_first_page_names_the_weightiest_features_against_expectation_and_counts_the_others(report, language):
    words, line = Catalogue(language), next(f for f in report.content.features if f.usage.splits)

    def answer(many: int) -> str:
        features = tuple(
            line.model_copy(update={"meaning": Text(f"m{n}.", f"m{n}."), "contradicts": True}) for n in range(many)
        )
        content = report.content.model_copy(update={"features": features})
        return dict(answers(report.model_copy(update={"content": content}), language))[words("document.ask_way")]

    section = words("document.features")
    assert words("document.against_more", n=140, section=section) in answer(claims.FIRST_PAGE_FEATURES + 140)
    assert "m5." in answer(146) and "m6." not in answer(146)
    assert section not in answer(claims.FIRST_PAGE_FEATURES)


def _search(*gaps: IntervalFigure | None) -> SearchLine:
    """The first model and one alternative a gap, the last of them narrower."""
    auc = IntervalFigure(0.8, 0.7, 0.9)
    points = [Point(f"c{n}", 0.5, 0.8, auc, auc, auc, gap=gap) for n, gap in enumerate(gaps)]
    points[-1] = replace(points[-1], narrower=True)
    lines = [AlternativeLine.model_construct(point=point) for point in points]
    return SearchLine.model_construct(model="m1", tolerance=0.002, alternatives=tuple(lines))


@pytest.mark.parametrize("language", LANGUAGES)
def test_alternatives_that_could_not_be_compared_are_counted_apart(report, language):
    words, gap = Catalogue(language), IntervalFigure(0.1, 0.0, 0.2)
    write = Writer(report, words)

    def said(search: SearchLine) -> list[str]:
        return [block.text for block in alternatives.found_in_words(write, search)]

    assert said(_search(gap, None, gap)) == [
        words("document.lda_trained", n=2, model="m1"),
        words("document.lda_uncompared", n=1),
        words("document.lda_found", compared=1, narrower=1, sure=0, tolerance="0.002"),
    ]
    assert [words("document.lda_uncompared", n=2)] == said(_search(gap, None, None))[1:]
    assert len(said(_search(gap, gap))) == 2


def test_a_content_is_written_again_only_once_what_it_is_made_of_has_changed(glassleaf, report, monkeypatch):
    before, wrote = glassleaf.reports.make("latest"), []
    monkeypatch.setattr(reports, "content_of", lambda sources: wrote.append(sources) or content_of(sources))
    again = glassleaf.acting("ben", "regulator").reports.make("latest")
    assert (again.content, again.issued.actor, wrote) == (before.content, "ben", [])
    glassleaf.report_details.keep("latest", {"owner": "Ana"})
    after = glassleaf.reports.make("latest")
    assert len(wrote) == 1 and after.content.details.owner == "Ana" and before.content.details is None


def test_a_share_of_the_gain_is_rounded_once_and_reads_as_on_pages():
    assert [gain(rounding.gain(share)) for share in (0.31549, 0.00123, 0.0, 1.0)] == [
        f"{text}\u00a0%" for text in ("31.5", "0.12", "0.0", "100.0")
    ]


def test_a_table_of_three_columns_is_scrolled_on_a_phone_where_a_cell_is_long():
    def drawn(cell):
        return html_form.page(Outline("", "", (Table(("a", "b", "c"), (("x", cell, "y"),), (1, 3, 1)),)), "en")

    assert '<table class="many">' in drawn("word " * 100) and '<table class="many">' not in drawn("word")
