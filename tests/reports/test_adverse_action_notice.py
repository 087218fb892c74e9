"""A notice says true reasons in words, the form's only where they fit, and none where one is a prohibited basis."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from backend.data.dictionary import Feature
from backend.data.federation import Party
from backend.errors import ParameterError
from backend.i18n import LANGUAGES, Catalogue, Text
from backend.reports.adverse_action_notice import (
    LEARNED,
    Blocker,
    Notice,
    NoticeLine,
    absent,
    draw,
    form,
    form_groups,
    form_reason,
)
from backend.reports.render.pdf_page import SMALL_POINTS, Page
from backend.store.model_states import Standing
from backend.store.schema import ModelState, ModelStep
from backend.trees.ensemble import GuestModel


def feature(meaning, meaning_zh="", name="f"):
    sides = {"above": ": more than most", "below": ": less than most", "either": ""}
    reason = {side: Text(f"Your {meaning}{text}", f"您的{meaning_zh}（{side}）") for side, text in sides.items()}
    return Feature(name=name, meaning=Text(meaning, meaning_zh), reason=reason)


@pytest.mark.parametrize(
    ("meaning", "side", "of_guest", "words"),
    [
        ("Years at the present address", "below", True, "Length of residence"),
        # longer is worse: the form's reason would say the opposite
        ("Years at the present address", "above", True, None),
        ("Months with the current employer", "below", False, "Length of employment"),
        ("Months with the same network", "below", False, None),
        ("Repayment status in May 2005: months of delay", "above", True, "Poor credit performance with us"),
        (
            "Repayment status in May 2005: months of delay",
            "above",
            False,
            "Delinquent past or present credit obligations with others",
        ),
        ("Phone bills paid late in the last 6 months", "above", False, None),  # no credit obligation
        (
            "Number of credit inquiries in the last year",
            "above",
            False,
            "Number of recent inquiries on credit bureau report",
        ),
        ("Debt to income ratio", "above", True, "Excessive obligations in relation to income"),
        ("Net income per month", "below", True, None),  # says nothing of the amount requested
        ("Bankruptcies in the last 7 years", "above", False, "Bankruptcy"),
        ("Bankruptcies in the last 7 years", "", False, None),
        ("Value of the collateral", "below", True, "Value or type of collateral not sufficient"),
        ("Age of the applicant", "below", True, None),
    ],
)
def test_the_forms_words_are_taken_only_where_they_say_the_same(meaning, side, of_guest, words):
    found = form_reason(feature(meaning), side, of_guest=of_guest)
    assert (found.text.en if found else None) == words


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
    assert len(printed) == 23 and {reason.text.en for reason in form().reasons} <= printed
    for reason in form().reasons:
        chinese = feature("-", reason.chinese_phrases[0])
        found = form_reason(chinese, LEARNED[reason.learned], of_guest=reason.party != "host")
        assert found is not None and reason.chinese_phrases[0] in found.chinese_phrases


APPROVAL = ModelStep("m1", "in_review", "approved", "", "cy", "regulator", "2026-11-20T10:00:00")


def notice(*lines, state="in_use", approval=APPROVAL, **more):
    standing = Standing(ModelState("m1", "", "", "ana", "ana", state), approval)
    return Notice(Text("A & B Bank", "甲银行"), "<p17>", "2026-11-21", "m1", lines, standing, **more)


def late(month="", side="above"):
    text = feature(f"Repayment status of the card{month}", f"信用卡还款状态{month}", f"late{month}")
    return NoticeLine(text, Text("Lender <Two>", "乙"), False, side)


LATE = late()
OWN = NoticeLine(feature("share of credit in use", "授信额度使用率", "own"), Text("A & B Bank", "甲银行"), True, "")
SEX = NoticeLine(
    feature("Sex of the client", "客户性别"),
    Text("A & B Bank", "甲银行"),
    True,
    "above",
    (Blocker(Text("15 USC 1691(a)(1)"), "prohibited"),),
)
LENDER = Party(name="lender", title=Text("Lender <Two>", "乙"), id="id")
AGENCY = Party(
    name="bureau", title=Text("Bureau", "征信中心"), address=Text("1 Main St", "主街 1 号"), phone="1-800-1",
    reporting_agency=True, id="id",
)  # fmt: skip


def english(made):
    return draw(made, "en", "txt").decode()


def test_a_notice_states_the_text_of_the_persons_own_side_and_none_where_no_other_would_have_helped():
    text = english(notice(LATE, OWN))
    form_words = "Delinquent past or present credit obligations with others"
    assert f"{form_words} — Your Repayment status of the card: more than most (held by Lender <Two>)" in text
    assert "• Your share of credit in use (held by A & B Bank)" in text and form().source in text
    assert form().source not in english(notice(OWN))
    unsure = english(notice(late(side="")))
    assert form_words not in unsure and "• Your Repayment status of the card (held" in unsure
    chinese = draw(notice(LATE, OWN), "zh", "txt").decode()
    assert "您的信用卡还款状态（above）（由乙持有）" in chinese and "甲银行" in chinese


def test_reasons_that_share_the_forms_words_are_one_and_free_a_place():
    months = [late(f" {m}") for m in "12345"]
    others = [
        NoticeLine(feature(f"thing {i}", f"事{i}", f"thing{i}"), Text("A & B Bank", "甲银行"), True, "")
        for i in range(3)
    ]
    text = english(notice(*months, *others))
    assert text.count("•") == 4 and text.count("Delinquent past or present") == 1
    assert "Your Repayment status of the card 1, 2, 3, 4 and 5: more than most" in text
    assert text.count("held by Lender <Two>)") == 1
    with pytest.raises(ParameterError, match="at most 4 reasons; 5"):
        english(notice(*months, *others, OWN))


def test_a_reason_without_a_text_for_its_side_is_not_stated():
    bare = replace(LATE, feature=LATE.feature.model_copy(update={"reason": {"either": Text("Late")}}))
    with pytest.raises(ParameterError, match="late have no English text"):
        english(notice(bare))
    assert "• Late" in english(notice(replace(bare, side="")))
    english_only = replace(
        LATE,
        feature=LATE.feature.model_copy(
            update={"reason": {side: Text(text.en) for side, text in LATE.feature.reason.items()}}
        ),
    )
    assert english(notice(english_only))
    with pytest.raises(ParameterError, match="in Chinese"):
        draw(notice(english_only), "zh", "txt")


@pytest.mark.parametrize("language", LANGUAGES)
def test_sources_are_named_by_what_they_are_and_a_score_beside_an_agency_only(language):
    words = Catalogue(language)

    def shown(*sources):
        return draw(
            notice(OWN, sources=sources, probability=0.634, phone="1", address=Text("2"), supervisor=Text("3", "3")),
            language,
            "txt",
        ).decode()

    own, lender, agency = shown(), shown(LENDER), shown(LENDER, AGENCY)
    title = words.text(LENDER.title)
    assert words("notice.sources_own") in own and words("notice.sources_part") not in own
    assert words("notice.sources_others", parties=title) in lender and words("notice.sources_part") in lender
    reached = {"address": words.text(AGENCY.address), "phone": "1-800-1"}
    assert words("notice.sources_agency", agency=words.text(AGENCY.title), **reached) in agency
    assert reached["address"] not in lender
    assert words("notice.score", score="63.4", day="2026-11-21") in agency and "63.4" not in lender
    assert (
        absent(words, "phone") in shown(AGENCY.model_copy(update={"phone": ""}))
        and absent(words, "phone") not in agency
    )


def test_each_language_stands_on_its_own_law():
    more = {
        "address": Text("1 Bank St", "银行街 1 号"),
        "supervisor": Text("CFPB, Washington", "网信办"),
        "sources": (LENDER, AGENCY),
        "probability": 0.6,
    }
    text, chinese = english(notice(LATE, **more)), draw(notice(LATE, **more), "zh", "txt").decode()
    assert "1 Bank St" in text and "CFPB, Washington" in text and "15 USC 1681m(a)" in text and "60 days" in text
    assert "银行街 1 号" in chinese and "网信办" in chinese and "个人信息保护法》第二十四条" in chinese
    assert "征信业管理条例" in chinese and "美国" not in chinese and "USC" not in chinese and "CFPB" not in chinese
    assert f"{Catalogue('zh')('notice.subject')}：<p17>\n" in chinese and ": " not in chinese
    assert form().reasons[0].text.zh not in chinese and "逾期债务" not in chinese  # the form is the United States'


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_nobody_provided_a_notice_calls_not_provided(language):
    words = Catalogue(language)
    bare = draw(notice(LATE), language, "txt").decode()
    assert all(absent(words, name) in bare for name in ("address", "phone", "supervisor"))
    whole = {"address": Text("1 Bank St"), "phone": "555-0100", "supervisor": Text("CFPB", "网信办")}
    full = draw(notice(LATE, **whole), language, "txt").decode()
    assert "555-0100" in full and not any(absent(words, name) in full for name in ("address", "phone", "supervisor"))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("against", ["all", "approved", "covers"])
def test_a_notice_says_whom_the_person_was_compared_with(against, language):
    words = Catalogue(language)
    text = draw(notice(LATE, against=against, compared=1200), language, "txt").decode()
    assert words(f"compared.notice_{against}", people="1,200") in text and ("1,200" in text) == (against != "covers")
    others = {"all", "approved", "covers"} - {against}
    assert not any(words(f"compared.notice_{other}", people="1,200") in text for other in others)


def test_features_of_which_the_form_says_the_same_are_one_group():
    names = ["Repayment status in May", "Repayment status in June", "Years at the present address", "Shoe size"]
    dictionary = tuple(("host", feature(name, name=f"f{i}")) for i, name in enumerate(names))
    model = GuestModel("bank", ("host",), (), (0.0,), 10, (*dictionary, ("bank", feature(names[0], name="own"))), {})
    items = [*((party, f.name) for party, f in dictionary), ("bank", "own")]
    assert form_groups(model, items) == (0, 0, 1, 2, 3)  # late with others, and late with us


@pytest.mark.parametrize(
    ("first", "other", "one"),
    [
        ("Bill statement of September 2005", "Bill statement of May 2005", True),
        ("Orders in the last 12 months", "Orders in the last 3 months", True),
        ("Balance, month 4", "Balance, month 11", True),
        ("Bill statement of May 2005", "Amount paid in May 2005", False),
        ("Score of source 1", "Score of source 2", False),
        ("Age of the applicant", "Age of the account", False),
    ],
)
def test_months_of_one_thing_at_one_holder_are_one_reason(first, other, one):
    dictionary = (
        ("host", feature(first, name="a")),
        ("host", feature(other, name="b")),
        ("bank", feature(first, name="c")),
    )
    model = GuestModel("bank", ("host",), (), (0.0,), 10, dictionary, {})
    groups = form_groups(model, [(party, f.name) for party, f in dictionary])
    assert (groups[0] == groups[1]) == one and groups[2] not in groups[:2]


def test_months_of_one_thing_are_one_line_in_both_languages():
    months = [
        NoticeLine(
            Feature(
                name=f"BILL{number}",
                meaning=f"Bill of {english_month} 2005",
                reason={
                    "above": Text(f"Bill of {english_month} 2005: higher than most", f"2005 年 {number} 月账单：偏高")
                },
            ),
            Text("A & B Bank", "甲银行"),
            True,
            "above",
        )
        for number, english_month in ((12, "December"), (9, "September"), (10, "October"))
    ]
    assert "• Bill of September, October and December 2005: higher than most (held by A & B Bank)" in english(
        notice(*months)
    )
    assert "• 2005 年 9、10、12 月账单：偏高（由甲银行持有）" in draw(notice(*months), "zh", "txt").decode()


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
    line = NoticeLine(feature("Late payments"), Text(f"Lender{control}Two", "乙"), False, "above")
    assert draw(notice(line), "en", "pdf")
    page = Page(Catalogue("en"), datetime(2026, 11, 22, tzinfo=UTC))
    page.add_page()
    page.face(SMALL_POINTS)
    page.cell(40, 4, page.one_line(f"a{control}b"))
    page.output()
    assert not caplog.records


def test_unknown_kinds_are_refused():
    with pytest.raises(ParameterError, match="txt, html, pdf"):
        draw(notice(OWN), "en", "docx")
