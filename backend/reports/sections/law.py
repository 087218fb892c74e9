"""What a report says of the law: findings with their evidence and decisions, duties, rule packs. Knows the report alone."""

from __future__ import annotations

from backend.fairness.age_discrimination import in_words
from backend.reports.blocks import Block, Heading, Table, Text
from backend.reports.schema import AgeCheckLine, FindingLine, LawLine
from backend.reports.sections.evidence import disparities_of, proxies_of
from backend.reports.sections.writer import Writer, figure, minute, percent, problems, signed


def findings(write: Writer) -> list[Block]:
    """Every finding with its evidence and what was decided, then what does not count."""
    found = write.content.assessment
    blocks: list[Block] = [Text(flagged(write)), write.note("law_of", day=write.report.issued.law_of)]
    for finding in found.findings:
        blocks += _finding(write, finding)
    for key, rest in (("set_aside", found.set_aside), ("not_in_force", found.not_in_force)):
        if rest:
            table = write.table(
                rest,
                ("feature", 5, lambda f: write.feature(f.feature)),
                ("rule", 8, lambda f: _citation(write, f)),
                ("matched", 3, lambda f: f.matched),
                ("law", 4, lambda f: _dates(write, f)),
            )
            blocks += [write.heading(key), table]
    return [*blocks, *problems(found.problems)]


def flagged(write: Writer) -> str:
    """How many findings there are, and those about features that the model uses."""
    found = write.content.assessment.findings
    if not found:
        return write("no_findings", n=write.content.assessment.assessed)
    used = [f for f in found if f.splits]
    text = write("answer_flag", n=len(found), features=len({f.feature for f in found}), used=len(used))
    lines = (
        write(
            "flag",
            feature=write.feature(f.feature),
            party=write.party(f.party),
            share=percent(f.gain_share),
            rule=_citation(write, f),
        )
        for f in used
    )
    return "\n".join((text, *lines))


def _citation(write: Writer, law: LawLine) -> str:
    return f"{write.words.either(law.title, law.title_zh)}, {law.citation} ({write.status(law)})"


def _finding(write: Writer, f: FindingLine) -> list[Block]:
    words = write.words
    usage = write("usage", splits=f.splits, share=percent(f.gain_share)) if f.splits else words("compliance.no_use")
    facts = {
        "about": f"{write.feature(f.feature)} · {write.party(f.party)}",
        "rule": f"{words.either(f.title, f.title_zh)} · {f.pack} · {f.citation} · {f.jurisdiction}",
        "law": _dates(write, f),
        "matched": f"“{f.matched}” ({words(f'compliance.in_{f.matched_in}')})",
        "used": usage,
        "proxy_evidence": proxies_of(write, f),
        "disparity": disparities_of(write, f),
        "elderly": elderly(write, f),
        "why": words.either(f.explanation, f.explanation_zh),
        "remedy": words.either(f.remedy, f.remedy_zh),
        "decided": _decision(write, f),
    }
    return [
        Heading(f"{write.status(f)}: {write.meaning(write.features[f.feature])}", 2),
        write.facts({key: value for key, value in facts.items() if value}),
        *([_ages(write, f.ages)] if f.ages else []),
    ]


def elderly(write: Writer, f: FindingLine) -> str:
    """Whether elderly ages have a negative factor; empty where the rule does not ask."""
    return in_words(write.words, f.ages, f.splits > 0) if f.check else ""


def _ages(write: Writer, ages: AgeCheckLine) -> Table:
    rows = [(write("ages_elderly"), figure(ages.predicted), "", "")]
    for gap in ages.gaps:
        younger = write("ages_younger", place=gap.place, classes=len(ages.gaps))
        rows.append(
            (younger, figure(gap.predicted), signed(gap.worse), f"[{signed(gap.low)}, {signed(gap.high)}]"),
        )
    return write.table(
        rows,
        ("ages", 6, lambda row: row[0]),
        ("mean_probability", 4, lambda row: row[1]),
        ("elderly_less", 4, lambda row: row[2]),
        ("interval_95", 5, lambda row: row[3]),
        numeric=("mean_probability", "elderly_less", "interval_95"),
    )


def _dates(write: Writer, law: LawLine) -> str:
    end = write("until", day=law.effective_to) if law.effective_to else ""
    start = write("from_day" if law.force == "not_yet" else "since", day=law.effective_from)
    return start + end + write("as_of", day=law.as_of)


def _decision(write: Writer, f: FindingLine) -> str:
    d = f.decision
    if d is None:
        return write("undecided")
    text = write(f"decision_{d.decision}", person=d.person, time=minute(d.time), reason=d.reason)
    return text + (write("earlier", n=f.earlier_decisions) if f.earlier_decisions else "")


def rules(write: Writer) -> list[Block]:
    """The rule packs, and duties of the model as a whole."""
    found, either = write.content.assessment, write.words.either
    packs = write.table(
        found.packs,
        ("pack", 5, lambda p: either(p.title, p.title_zh)),
        ("version", 2, lambda p: p.version),
        ("as_of", 3, lambda p: p.as_of),
        ("jurisdiction", 3, lambda p: p.jurisdiction),
        ("source", 7, lambda p: p.source),
        ("origin", 3, lambda p: write("built_in" if p.built_in else "own_pack")),
    )
    duties = write.table(
        found.duties,
        ("duty", 7, lambda d: _citation(write, d)),
        ("force", 3, lambda d: f"{write(f'force_{d.force}')}: {_dates(write, d)}"),
        ("offers", 8, lambda d: either(d.evidence, d.evidence_zh)),
    )
    words = write.text("words_version", version=found.words)
    return [words, packs, write.note("as_of_note"), write.heading("duties"), duties]
