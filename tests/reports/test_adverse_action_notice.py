"""A notice says true reasons in words, the form's only where they fit, and none where one is a prohibited basis."""

from datetime import UTC, datetime

import pytest

from backend.data.dictionary import Feature
from backend.errors import ParameterError
from backend.i18n import LANGUAGES, Catalogue
from backend.reports.adverse_action_notice import Blocker, Notice, NoticeLine, draw, form, form_reason
from backend.reports.render.pdf_page import SMALL, Page
from backend.store.model_states import ModelState, ModelStep, Standing


def feature(meaning, meaning_zh="", name="f"):
    return Feature(name=name, meaning=meaning, meaning_zh=meaning_zh)


@pytest.mark.parametrize(
    ("meaning", "learned", "of_guest", "words"),
    [
        ("Years at the present address", "down", True, "Length of residence"),
        ("Years at the present address", "up", True, None),  # longer is worse: the form's reason would say the opposite
        ("Months with the current employer", "down", False, "Length of employment"),
        ("Months with the same network", "down", False, None),
        ("Repayment status in May 2005: months of delay", "up", True, "Poor credit performance with us"),
        (
            "Repayment status in May 2005: months of delay",
            "up",
            False,
            "Delinquent past or present credit obligations with others",
        ),
        ("Phone bills paid late in the last 6 months", "up", False, None),  # no credit obligation
        (
            "Number of credit inquiries in the last year",
            "up",
            False,
            "Number of recent inquiries on credit bureau report",
        ),
        ("Debt to income ratio", "up", True, "Excessive obligations in relation to income"),
        ("Net income per month", "down", True, None),  # says nothing of the amount requested
        ("Bankruptcies in the last 7 years", "up", False, "Bankruptcy"),
        ("Bankruptcies in the last 7 years", "mixed", False, None),
        ("Value of the collateral", "down", True, "Value or type of collateral not sufficient"),
        ("Age of the applicant", "down", True, None),
    ],
)
def test_the_forms_words_are_taken_only_where_they_say_the_same(meaning, learned, of_guest, words):
    found = form_reason(feature(meaning), learned, of_guest=of_guest)
    assert (found.text if found else None) == words


def test_every_reason_of_the_table_is_one_of_the_forms_and_can_be_found():
    printed = {  # form C-1, part I, of which eight state what no column of a model can
        "Credit application incomplete", "Insufficient number of credit references provided",
        "Unacceptable type of credit references provided", "Unable to verify credit references",
        "Temporary or irregular employment", "Unable to verify employment", "Length of employment",
        "Income insufficient for amount of credit requested", "Excessive obligations in relation to income",
        "Unable to verify income", "Length of residence", "Temporary residence", "Unable to verify residence",
        "No credit file", "Limited credit experience", "Poor credit performance with us",
        "Delinquent past or present credit obligations with others", "Collection action or judgment",
        "Garnishment or attachment", "Foreclosure or repossession", "Bankruptcy",
        "Number of recent inquiries on credit bureau report", "Value or type of collateral not sufficient",
    }  # fmt: skip
    assert len(printed) == 23 and {reason.text for reason in form().reasons} <= printed
    for reason in form().reasons:
        chinese = feature("-", reason.phrases_zh[0])
        found = form_reason(chinese, reason.learned, of_guest=reason.party != "host")
        assert found is not None and reason.phrases_zh[0] in found.phrases_zh


APPROVAL = ModelStep(1, "m1", "in_review", "approved", "", "cy", "regulator", "2026-11-20T10:00:00")


def notice(*lines, state="in_use", approval=APPROVAL):
    standing = Standing(ModelState("m1", "", "", "ana", "ana", state), approval)
    return Notice("A & B Bank", "甲银行", "<p17>", "2026-11-21", "m1", lines, standing)


LATE = NoticeLine(feature("Repayment status of the card", "信用卡还款状态"), "Lender <Two>", "乙", False, "up")
OWN = NoticeLine(feature("Share of the granted credit in use", "授信额度使用率"), "A & B Bank", "甲银行", True, "mixed")
SEX = NoticeLine(
    feature("Sex of the client", "客户性别"),
    "A & B Bank",
    "甲银行",
    True,
    "up",
    (Blocker("15 USC 1691(a)(1)", "prohibited"),),
)


def test_a_notice_names_reasons_who_holds_them_and_which_way_they_work():
    text = draw(notice(LATE, OWN), "en", "txt").decode()
    assert (
        "Delinquent past or present credit obligations with others — Repayment status of the card (held by Lender <Two>)"
        in text
    )
    words = Catalogue("en")
    assert words("notice.way_up") in text and words("notice.way_mixed") in text
    assert words("notice.sources_others", parties="Lender <Two>") in text and form().source in text
    assert form().source not in draw(notice(OWN), "en", "txt").decode()
    chinese = draw(notice(LATE, OWN), "zh", "txt").decode()
    assert "信用卡还款状态" in chinese and "由乙持有" in chinese and "甲银行" in chinese


def test_names_that_look_like_tags_stay_text_in_html():
    page = draw(notice(LATE), "en", "html").decode()
    assert "<p17>" not in page and "&lt;p17&gt;" in page and "Lender &lt;Two&gt;" in page


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("state", "approval", "key"),
    [
        ("draft", None, "line_draft"),
        ("in_review", None, "line_in_review"),
        ("in_use", None, "line_in_use_demo"),
        ("retired", APPROVAL, "line_retired"),
        ("approved", APPROVAL, ""),
        ("in_use", APPROVAL, ""),
    ],
)
def test_a_notice_by_a_model_that_nobody_approved_says_that_it_must_not_be_sent(state, approval, key, language):
    words = Catalogue(language)
    shown = (notice(LATE, state=state, approval=approval), notice(SEX, state=state, approval=approval))
    for drawn in shown:
        text = draw(drawn, language, "txt").decode()
        assert (words("notice.unapproved", line="").strip() in text) == bool(key)
        assert not key or words(f"states.{key}") in text


@pytest.mark.parametrize("kind", ["txt", "html"])
def test_a_prohibited_basis_stops_the_whole_notice(kind):
    blocked = notice(LATE, SEX)
    text = draw(blocked, "en", kind).decode()
    words = Catalogue("en")
    assert blocked.blocked and words("notice.blocked") in text and "15 USC 1691(a)(1)" in text
    reasons = words("notice.reasons")  # upper case in plain text
    assert "Repayment status" not in text and reasons not in text and reasons.upper() not in text
    assert Catalogue("zh")("notice.blocked") in draw(blocked, "zh", kind).decode()


def test_a_notice_as_pdf_is_the_same_every_time():
    first = draw(notice(LATE, OWN), "en", "pdf")
    assert first.startswith(b"%PDF-") and first == draw(notice(LATE, OWN), "en", "pdf")


@pytest.mark.parametrize("control", ["\n", "\r", "\t", "\x0b", "\x1f", "\x85"])
def test_line_breaks_and_controls_in_a_text_leave_no_glyph_missing(control, caplog):
    line = NoticeLine(feature("Late payments"), f"Lender{control}Two", "乙", False, "up")
    assert draw(notice(line), "en", "pdf")
    page = Page(Catalogue("en"), datetime(2026, 11, 22, tzinfo=UTC))
    page.add_page()
    page.face(SMALL)
    page.cell(40, 4, page.one_line(f"a{control}b"))
    page.output()
    assert not caplog.records


def test_unknown_kinds_are_refused():
    with pytest.raises(ParameterError, match="txt, html, pdf"):
        draw(notice(OWN), "en", "docx")
