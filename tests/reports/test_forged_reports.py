"""Forgeries of a report: each file that shows a reader something else than what was issued is refused, or not called issued."""

import json
import re
import sqlite3
import subprocess
import sys
from functools import cache, partial

import pytest
from fpdf import FPDF
from inside import workspace_of

from backend.crypto.signing import SigningKey, public_pem
from backend.data.demo import write_demo
from backend.errors import ModelError, ParameterError
from backend.i18n import Catalogue
from backend.protocols.training.parameters import SecureBoostParameters
from backend.reports.document import canonical, sha256, sign_off_holds, to_json
from backend.reports.files import check
from backend.reports.render import fonts
from backend.reports.render.html_form import to_html
from backend.reports.render.pdf_form import ATTACHED
from backend.services import Glassleaf
from backend.services.reports import check_signed
from backend.services.training import TrainingRequest

DEEP = "[" * 200_000 + "]" * 200_000
LIE = "No findings. Approved by the regulator."


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def glassleaf(home):
    write_demo(home / "demo", rows=300)
    glassleaf = Glassleaf(home, pools=False, actor="ana", key_floor=512)
    glassleaf.federations.add(home / "demo")
    glassleaf.training.start(TrainingRequest("demo", SecureBoostParameters(trees=2, depth=2, cipher="none"))).get()
    glassleaf.reports.sign_off("latest", "Rita", "Read, and discussed with the owner.")
    yield glassleaf
    glassleaf.close()


@pytest.fixture(scope="module")
def written(glassleaf):
    """Each form of the report, written once it is asked for: a PDF takes seconds."""
    return cache(partial(glassleaf.reports.export, "latest"))


@pytest.fixture(scope="module")
def report(written):
    return check(written("json")).report


def changed(report, change, key=None):
    """The report with other content, hashes that fit again, and somebody's signature."""
    body = json.loads(to_json(report))
    change(body)
    body["content_sha256"] = sha256(body["content"])
    signature = body.pop("signature", None)
    body["sha256"] = sha256({name: part for name, part in body.items() if name != "sha256"})
    if key:
        signature |= {"public_key": key.public, "value": key.sign("report", body["sha256"])}
    return canonical({**body, "signature": signature} if signature else body) + "\n"


def pdf(*attached, page=LIE):
    drawn = FPDF()
    drawn.add_page()
    drawn.set_font("helvetica", size=12)
    drawn.cell(text=page)
    for number, text in enumerate(attached):
        drawn.embed_file(bytes=text.encode(), basename=ATTACHED if not number else f"{number}.json", compress=False)
    return bytes(drawn.output())


def wrapped(form, text):
    """A file of each form around a JSON text."""
    script = f'<script type="application/json" id="glassleaf-report">{text}</script>'
    return {"json": text.encode(), "html": f'<html lang="en">{script}</html>'.encode(), "pdf": pdf(text)}[form]


@pytest.mark.parametrize("form", ["json", "html", pytest.param("pdf", marks=pytest.mark.slow)])
def test_what_was_issued_is_called_issued_in_every_form(glassleaf, written, form):
    assert glassleaf.reports.check(written(form)).verdict == "issued"
    public = glassleaf.audit.public_key("demo")
    assert check_signed(written(form), public).verdict == check_signed(written(form), public_pem(public)).verdict
    assert check_signed(written(form), public).verdict == "issued"


@pytest.mark.parametrize("form", ["json", "html", "pdf"])
def test_a_forged_content_before_the_true_one_is_refused(report, form):
    with pytest.raises(ModelError, match="twice"):
        check(wrapped(form, '{"content":{},' + to_json(report)[1:]))
    nested = to_json(report).replace('"identity":{', '"identity":{"model":"another",', 1)
    with pytest.raises(ModelError, match="twice"):
        check(wrapped(form, nested))


@pytest.mark.parametrize("form", ["json", "html", "pdf"])
@pytest.mark.parametrize("text", [DEEP, '{"content":' * 100_000, '{"content":' + DEEP + "}"])
def test_deep_nesting_is_refused_in_words(form, text):
    with pytest.raises(ModelError, match=r"not a report.*too many nested brackets"):
        check(wrapped(form, text))


def test_bytes_other_than_the_canonical_ones_are_refused(report):
    text = to_json(report)
    for other in (
        text + " ",
        text + "\n",
        text[:-1],
        text.replace("\n", "\r\n"),
        "\ufeff" + text,
        " " + text,
        text.replace(":", ": ", 1),
        json.dumps(json.loads(text), separators=(",", ":")) + "\r\n",
        json.dumps(dict(reversed(json.loads(text).items())), separators=(",", ":")) + "\n",
        text.replace('"ana"', '"\\u0061na"', 1),
        text.replace('"version":1', '"version":1.0'),
        text + "\n<h1>Approved.</h1>",
    ):
        with pytest.raises(ModelError):
            check(other.encode())


def test_a_page_that_begins_as_json_is_refused(report):
    page = f'{{"content":"<html><h1>{LIE}</h1><!--",' + to_json(report)[1:]
    with pytest.raises(ModelError, match="twice"):
        check(page.encode())


def test_a_page_with_a_second_report_or_anything_else_is_refused(report):
    page, other = to_html(report, "en"), '<script type="application/json" id="glassleaf-report">{}</script>'
    for forged in (
        page.replace("<main>", f"<main>{other}"),
        page + other,
        page.replace("<main>", f"<main><h1>{LIE}</h1>"),
        page.replace('<html lang="en">', '<html lang="zh">'),
        page.replace('<html lang="en">', '<html lang="xx">'),
        page.replace("\n", "\r\n"),
        "\n" + page,
    ):
        with pytest.raises(ModelError):
            check(forged.encode())


def test_forged_pages_with_the_true_report_in_an_orphan_object_are_refused(report):
    genuine = canonical(report.body())
    orphan = f"99 0 obj\n<< /Length {len(genuine)} >>\nstream\n{genuine}\nendstream\nendobj\n".encode()
    for forged in (pdf('{"content":{"quality":"excellent"}}'), pdf()):
        for blob in (
            forged.replace(b"\nxref", b"\n" + orphan + b"xref", 1),
            forged + orphan,
            forged[:9] + b"\n" + orphan + forged[9:],
        ):
            with pytest.raises(ModelError):
                check(blob)


def test_a_second_attachment_or_another_name_is_refused(report):
    with pytest.raises(ModelError, match=r"report\.json"):
        check(pdf(canonical(report.body()), '{"approved":true}'))
    with pytest.raises(ModelError, match=r"report\.json"):
        check(pdf(canonical(report.body())).replace(b"report.json", b"raport.json"))


@pytest.mark.slow
def test_forged_pages_around_the_true_report_are_not_called_issued(glassleaf, report, written):
    around = pdf(canonical(report.body()))
    later = written("pdf") + b"\n% one more line"
    for blob in (around, later):
        for found in (glassleaf.reports.check(blob), check_signed(blob, report.public_key)):
            assert found.drawn == "other" and found.verdict != "issued"


@pytest.mark.slow
def test_whoever_has_a_pdf_written_and_checked_holds_neither_fonts_nor_libraries_of_one_function(home, written):
    (home / "report.pdf").write_bytes(written("pdf"))
    work = """
import sys
from pathlib import Path
from backend.services import Glassleaf
with Glassleaf(Path(sys.argv[1]), pools=False) as glassleaf:
    glassleaf.reports.export("latest", "pdf", "zh")
    assert glassleaf.reports.check((glassleaf.home / "report.pdf").read_bytes()).verdict == "issued"
    glassleaf.compliance.assess(glassleaf.models.get("latest").id)
print([name for name in ("fpdf", "pypdf", "sklearn", "scipy.stats") if name in sys.modules])
"""
    command = [sys.executable, "-c", work, str(home)]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout == "[]\n"


def test_a_page_of_html_that_begins_like_a_pdf_is_refused(report):
    page = f"%PDF-1.7\n<html><h1>{LIE}</h1>\n<!--\n1 0 obj\nstream\n{canonical(report.body())}\nendstream\n-->"
    with pytest.raises(ModelError):
        check(page.encode())


@pytest.mark.slow
def test_a_pdf_that_was_issued_here_is_known_again_where_other_fonts_are_installed(glassleaf, monkeypatch):
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(fonts, "LATIN", ())
        elsewhere.setattr(fonts, "CHINESE_FONTS", ())
        blob = glassleaf.reports.export("latest", "pdf")
    assert check(blob).drawn == "other"
    assert glassleaf.reports.check(blob).verdict == "issued"


def test_a_forgery_with_new_hashes_and_a_signature_of_its_own_is_whole_but_not_issued(glassleaf, report):
    def better(body):
        body["content"]["quality"]["auc"] = 0.999

    with pytest.raises(ModelError, match="signature"):
        check(changed(report, better).encode())
    blob = changed(report, better, SigningKey.generate()).encode()
    assert glassleaf.reports.check(blob).verdict == "elsewhere"
    assert check_signed(blob, report.public_key).verdict == "elsewhere"


def test_a_signature_cannot_be_taken_off_but_replaced(glassleaf, report):
    def unsigned(body):
        del body["signature"]

    with pytest.raises(ModelError, match="not a report"):
        check(changed(report, unsigned).encode())
    signed_again = changed(report, lambda body: None, SigningKey.generate()).encode()
    assert check(signed_again).report.sha256 == report.sha256  # the same document, vouched for by somebody else
    assert glassleaf.reports.check(signed_again).verdict == "elsewhere"


def test_figures_that_no_model_has_are_refused_in_words(report):
    def stretched(body):
        body["issued"]["time"] = "yesterday"
        for feature in body["content"]["features"]:
            feature["party"] = feature["expected"] = "nobody"

    key = SigningKey.generate()
    text = changed(report, stretched, key)
    for form in ("html", "pdf"):
        with pytest.raises(ModelError):
            check(wrapped(form, text.removesuffix("\n")))


def test_a_file_without_end_is_not_read():
    with pytest.raises(ModelError, match="at most 5,000,000"):
        check(b" " * 5_000_001)


def test_a_key_that_is_none_is_refused(written):
    for key in ("", "nobody", "ab" * 31, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"):
        with pytest.raises(ParameterError, match="public key"):
            check_signed(written("json"), key)


def test_a_statement_changed_in_the_store_does_not_have_its_signature(glassleaf, home):
    before = glassleaf.reports.make("latest")
    [line] = before.issued.sign_offs
    model = before.content.identity.guest_sha256
    assert sign_off_holds(line, model, before.public_key) and glassleaf.reports.sign_off_holds("latest", line)
    assert not sign_off_holds(line, "0" * 64, before.public_key)
    assert not sign_off_holds(line, model, SigningKey.generate().public)
    with sqlite3.connect(home / "parties" / "demo" / "bank" / "store.db") as database:
        database.execute("update signoffs set statement = 'Approved without conditions.'")
    database.close()
    after = glassleaf.reports.make("latest")
    assert not glassleaf.reports.sign_off_holds("latest", after.issued.sign_offs[0])
    wrong = Catalogue("en")("document.signed_wrong")
    assert wrong in to_html(after, "en") and wrong not in to_html(before, "en")


@pytest.mark.parametrize("form", ["json", "html", pytest.param("pdf", marks=pytest.mark.slow)])
def test_no_secret_half_of_a_key_is_in_any_file(glassleaf, written, form):
    secret = workspace_of(glassleaf).signing_key("demo").to_numbers()["secret"].encode()
    assert not re.search(secret, written(form), re.I)
    assert secret.decode() not in glassleaf.audit.export("demo")
