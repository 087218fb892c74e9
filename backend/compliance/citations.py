"""How a citation reads in Chinese: acts by their official or usual Chinese names, provisions as 条. Knows no rule."""

from __future__ import annotations

import re

_ACTS = {
    "Regulation (EU) 2024/1689": "欧盟《人工智能法》（条例 2024/1689）",
    "Directive (EU) 2023/2225": "欧盟指令 2023/2225",
    "Directive 2004/113/EC": "欧盟指令 2004/113/EC",
    "Directive 2000/43/EC": "欧盟指令 2000/43/EC",
    "Charter of Fundamental Rights": "《欧盟基本权利宪章》",
    "TFEU": "《欧盟运行条约》",
    "CJEU": "欧盟法院",
    "27 February 2025": "2025-02-27",
    "7 December 2023": "2023-12-07",
    "UK GDPR": "英国《通用数据保护条例》",
    "GDPR": "欧盟《通用数据保护条例》",
    "PIPL": "《个人信息保护法》",
    "Equality Act 2010": "英国《2010 年平等法》",
    "Schedule 3 para. 20A": "附表 3 第 20A 段",
    "Federal Reserve SR": "美联储 SR",
    "Federal Register": "《联邦公报》",
    "State Council Decree 631 Art. 14": "国务院令第 631 号",
    "Framework Act on AI": "韩国《人工智能基本法》",
    "Credit Information Use and Protection Act": "韩国《信用信息使用及保护法》",
    "HKMA circulars of 1 November 2019 and 5 November 2019": "香港金融管理局 2019-11-01 与 2019-11-05 通函",
    "Code of Practice on Consumer Credit Data": "《个人信贷资料实务守则》",
    "MAS FEAT Principles, 12 November 2018": "新加坡金融管理局 FEAT 原则（2018-11-12）",
    "OSFI Guideline E-23 (2027)": "加拿大金融机构监督办公室 E-23 号指引（2027）",
    "RBI (Digital Lending) Directions, 2025": "印度储备银行《数字贷款指引》（2025）",
    "Digital Personal Data Protection Act, 2023": "印度《数字个人数据保护法》（2023）",
    "New York Executive Law § 296-a and comparable acts": "《纽约州行政法》第 296-a 条及类似法律",
    "Colorado SB": "科罗拉多州 SB",
    "State law": "州法",
    "Annex III": "附件三",
    "Annex IV": "附件四",
    "Appendix C": "附录 C",
    "None: no statute names it": "无：法律未明文提及",
    ", annex": " 附录",
    " and comment ": "、评注 ",
}
_AROUND = {  # what follows a provision
    " and following": "及以下",
    ", first paragraph": "第一款",
    ", third paragraph": "第三款",
    ", as they stood before ": "（此前文本，修订见",
    ", as amended by ": "（修订见",
}
_ONE = (
    r"(?:\d[\w.-]*|\([\w]+\))(?:\(\w+\))*(?:–(?:\d[\w.-]*|\(\w+\))(?:\(\w+\))*)?"  # a provision, or several from – to
)
_LIST = rf"({_ONE}(?:, {_ONE})*)"
_PROVISIONS = (
    (rf"(\d+) USC {_LIST}", r"《美国法典》第 \1 编第 \2 条"),
    (rf"(\d+) CFR {_LIST}", r"《联邦法规汇编》第 \1 编第 \2 条"),
    (rf"(\d+) CCR § {_LIST}", r"《加州法规汇编》第 \1 编第 \2 条"),
    (rf"(?:Art\.|s\.) {_LIST}", r"第 \1 条"),
)


def in_chinese(citation: str) -> str:
    """A citation in Chinese; what it does not know stays as it is."""
    for act, name in _ACTS.items():
        citation = citation.replace(act, name)
    for pattern, written in _PROVISIONS:
        for found in list(re.finditer(pattern, citation)):
            citation = citation.replace(found[0], found.expand(written).replace(", ", "、"), 1)
    for around, written in _AROUND.items():
        citation = citation.replace(around, written)
    citation = re.sub(r"(?<=[》）]) (?=第)", "", citation.replace("; ", "；").replace(", ", "，"))
    return citation + "）" if citation.count("（") > citation.count("）") else citation
