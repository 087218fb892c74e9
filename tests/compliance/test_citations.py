"""Citations in Chinese: no English act or provision is left where a Chinese form exists."""

import re

import pytest

from backend.compliance.citations import in_chinese
from backend.compliance.rule_pack import load_packs


@pytest.mark.parametrize(
    ("citation", "written"),
    [
        (
            "15 USC 1691(a); 12 CFR 1002.2(u), 4(a)",
            "《美国法典》第 15 编第 1691(a) 条；《联邦法规汇编》第 12 编第 1002.2(u)、4(a) 条",
        ),
        ("PIPL Art. 24, first paragraph", "《个人信息保护法》第 24 条第一款"),
        (
            "Regulation (EU) 2024/1689 Art. 6(2), Annex III 5(b)",
            "欧盟《人工智能法》（条例 2024/1689）第 6(2) 条，附件三 5(b)",
        ),
        ("11 CCR § 7150 and following", "《加州法规汇编》第 11 编第 7150 条及以下"),
        ("Credit Policy 12", "Credit Policy 12"),
    ],
)
def test_a_citation_is_written_in_chinese(citation: str, written: str) -> None:
    assert in_chinese(citation) == written


def test_no_built_in_citation_keeps_an_english_provision() -> None:
    shown = {in_chinese(rule.citation) for pack in load_packs() for rule in pack.rules}
    kept = {word for text in shown for word in re.findall(r"[A-Za-z]{3,}", re.sub(r"Texas .*\(2015\)", "", text))}
    assert kept <= {"FEAT", "SCHUFA"}
