"""Sections on claims: findings under rules, what was measured of groups, models retrained. Knows the report alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from backend.compliance.assessment import SEVERITY, Duty, Finding, Law, PackStamp, Question, wording
from backend.fairness.age_discrimination import AgeCheck, in_words
from backend.fairness.disparity import DIFFERENCE, MEASURES, PAIR_P, REFERENCE, P, measure_in_words, widest
from backend.fairness.evidence import Basis, Evidence
from backend.i18n import joined
from backend.reports.blocks import Block, Facts, Heading, Paragraph, Table
from backend.reports.schema import (
    Evidenced,
    OutcomePairLine,
    Pair,
    Retrained,
)
from backend.reports.sections.disparity import about_scores, beside_rates
from backend.reports.sections.validation import said
from backend.reports.sections.writer import (
    NONE,
    Writer,
    figure,
    gain,
    interval,
    minute,
    p_value,
    percent,
    points,
    problems,
    whole,
)

FIRST_PAGE_FEATURES = 6  # features on the first page
ACCEPTED = "selection rate"  # as backend.fairness.disparity.MEASURES names it
LEAK_FORMATS = {"named": percent, "without_dither": percent, "dither": figure}  # the others are whole numbers


def findings(write: Writer) -> list[Block]:
    """How many findings there are, of which features, and what was decided; questions; the annex has every rule."""
    assessment = write.content.assessment
    blocks: list[Block] = [Paragraph(_counted(write)), write.note("law_of", day=write.report.issued.law_of)]
    if assessment.findings:
        blocks.append(Paragraph(decided_in_words(write)))
    if waiting(write):
        blocks.append(Paragraph(write("questions_open", n=waiting(write)), "finding"))
    if assessment.questions:
        blocks += [write.text("questions_about"), _questions(write)]
    if assessment.not_understood:
        listed = write.listed(f"{column.feature} ({write.party(column.party)})" for column in assessment.not_understood)
        blocks.append(Paragraph(write("not_understood", listed=listed), "finding"))
    about = by_feature(write)
    if about:
        overview = write.table(
            about,
            ("feature", 6, lambda fs: write.feature(fs[0].feature)),
            ("party", 3, lambda fs: write.party(fs[0].party)),
            ("gain", 2, lambda fs: gain(fs[0].usage.gain_share)),
            ("findings", 6, lambda fs: statuses(write, fs)),
            ("undecided", 2, lambda fs: whole(sum(f.decision is None for f in fs))),
        )
        blocks.append(overview)
    return [*blocks, *problems(map(write.words.text, assessment.problems))]


def decided_in_words(write: Writer) -> str:
    """Return how many findings were confirmed, overridden or not decided, and how many people signed."""
    decided = Counter(f.decision.verdict if f.decision else "open" for f in write.content.assessment.findings)
    counts = {name: decided[name] for name in ("confirmed", "overridden", "open")}
    return write("answer_done", **counts, signed=sum(s.covers for s in write.report.issued.sign_offs))


def rule_by_rule(write: Writer) -> list[Block]:
    """Every finding, feature by feature, the worst first, with its evidence and what was decided; then what does not count."""
    assessment = write.content.assessment
    blocks: list[Block] = []
    quoted: dict[str, str] = {}
    for findings_of in by_feature(write):
        blocks += _flagged_feature(write, findings_of, quoted)
    for key, other_findings in (("set_aside", assessment.set_aside), ("not_in_force", assessment.not_in_force)):
        if other_findings:
            table = write.table(
                other_findings,
                ("feature", 5, lambda f: write.feature(f.feature)),
                ("rule", 8, lambda f: _citation(write, f)),
                ("matched", 3, lambda f: f.matched),
                ("law", 4, lambda f: _dates(write, f)),
            )
            blocks += [write.heading(key), table]
    return blocks


def waiting(write: Writer) -> int:
    """Unanswered questions."""
    return sum(question.answer is None for question in write.content.assessment.questions)


def _questions(write: Writer) -> Table:
    """What was asked of which feature, on which words, and what was answered."""
    words = write.words

    def suggested(q: Question) -> str:
        matched = words("compliance.matched", matched=q.sign.matched, place=words(f"compliance.in_{q.sign.matched_in}"))
        return joined(matched, words(f"questions.why_{q.sign.strength}", word=q.sign.weighed))

    def answered(q: Question) -> str:
        if q.answer is None:
            return write("unanswered")
        values = {"person": q.answer.person, "time": minute(q.answer.time), "reason": q.answer.reason}
        return write(f"answered_{q.answer.verdict}", **values)

    return write.table(
        write.content.assessment.questions,
        ("feature", 5, lambda q: write.feature(q.feature)),
        ("party", 3, lambda q: write.party(q.party)),
        ("asked", 5, lambda q: f"{words.text(q.title)}\n{_cited(write, q)}"),
        ("matched", 6, suggested),
        ("answer", 4, answered),
    )


def by_feature(write: Writer) -> list[list[Finding]]:
    """Return the findings of each feature, the worst first; the features by their worst finding, those in use before others."""
    severity: dict[str, int] = {status: place for place, status in enumerate(SEVERITY)}
    features: dict[tuple[str, str], list[Finding]] = {}
    for f in sorted(write.content.assessment.findings, key=lambda f: severity[f.status]):
        features.setdefault((f.party, f.feature), []).append(f)
    return sorted(features.values(), key=lambda fs: not fs[0].usage.splits)


def statuses(write: Writer, about: Sequence[Finding]) -> str:
    """Under how many rules a feature has which legal status, the worst first."""
    many = Counter(write.status(f) for f in about)
    return write.enumerated(write("status_times", status=status, n=n) for status, n in many.items())


def worst_flagged(write: Writer) -> str:
    """For a first page: how many findings there are, and the features that they are about, the worst first."""
    about = [fs for fs in by_feature(write) if fs[0].usage.splits]
    lines = [_counted(write)]
    if waiting(write):
        lines.append(write("questions_open", n=waiting(write)))
    for fs in about[:FIRST_PAGE_FEATURES]:
        where = {"party": write.party(fs[0].party), "share": gain(fs[0].usage.gain_share)}
        lines.append(write("flag", feature=write.feature(fs[0].feature), listed=statuses(write, fs), **where))
    if len(about) > FIRST_PAGE_FEATURES:
        lines.append(write("flag_more", n=len(about) - FIRST_PAGE_FEATURES, section=write("findings")))
    return "\n".join(lines)


def _counted(write: Writer) -> str:
    """Return how many findings there are, and how many are about features that the model uses."""
    findings = write.content.assessment.findings
    if not findings:
        return write("no_findings", n=write.content.assessment.assessed)
    n_used = sum(f.usage.splits > 0 for f in findings)
    return write("answer_flag", n=len(findings), features=len({(f.party, f.feature) for f in findings}), used=n_used)


def _cited(write: Writer, law: Law | Question) -> str:
    """Return a citation in the report's language."""
    return write.words.text(law.citation)


def _citation(write: Writer, law: Law) -> str:
    return write(
        "law_line",
        title=write.words.text(law.title),
        citation=_cited(write, law),
        status=write.status(law),
    )


def _flagged_feature(write: Writer, about: Sequence[Finding], quoted: dict[str, str]) -> list[Block]:
    """What is known of a feature, once; then a row for each rule that speaks of it. A wording that was `quoted` under a feature before is
    not quoted again.
    """
    words = write.words
    f = about[0]
    if f.usage.splits:
        usage = write("usage", splits=f.usage.splits, share=gain(f.usage.gain_share))
    else:
        usage = words("compliance.no_use")
    matched = ((finding.matched, words(f"compliance.in_{finding.matched_in}")) for finding in about)
    checked = next((finding for finding in about if finding.check), None)
    facts = {
        "held_by": write.party(f.party),
        "matched": write.enumerated(
            dict.fromkeys(write("named", meaning=f"“{m}”", name=place) for m, place in matched)
        ),
        "used": usage,
        "proxy_evidence": proxies_of(write, f),
        "disparity": disparities_of(write, f),
        "elderly": elderly(write, checked) if checked else "",
    }
    rules = write.table(
        about,
        ("rule", 5, lambda f: _rule(write, f)),
        ("why", 9, lambda f: f"{words.text(f.explanation)}\n{_quoted_once(write, f, quoted)}"),
        ("remedy", 5, lambda f: words.text(f.remedy)),
        ("decided", 3, lambda f: _decision(write, f)),
    )
    return [
        Heading(write.says(write.feature(f.feature), statuses(write, about)), 2),
        write.facts({key: value for key, value in facts.items() if value}),
        *([_ages(write, checked.ages)] if checked and checked.ages else []),
        rules,
    ]


def _rule(write: Writer, f: Finding) -> str:
    """Return a rule with its status, provision, place and dates, each on a line."""
    words = write.words
    name = write("named", meaning=words.text(f.title), name=write.status(f))
    where = " · ".join(dict.fromkeys((words.text(f.pack), words.jurisdiction(f.jurisdiction))))
    return "\n".join((name, _cited(write, f), where, _dates(write, f)))


def elderly(write: Writer, f: Finding) -> str:
    """Say whether elderly ages have a negative factor; empty if the rule does not ask."""
    if f.check:
        return in_words(write.words, f.ages, f.usage.splits > 0, f.ages_on.refused if f.ages_on else "")
    return ""


def _ages(write: Writer, ages: AgeCheck) -> Table:
    rows = [(write("ages_elderly"), percent(ages.predicted), "", "")]
    for gap in ages.gaps:
        younger = write("ages_younger", place=gap.place, classes=len(ages.gaps))
        rows.append(
            (
                younger,
                percent(gap.predicted),
                points(gap.worse),
                f"[{points(gap.low)}, {points(gap.high)}]",
            ),
        )
    return write.table(
        rows,
        ("ages", 6, lambda row: row[0]),
        ("mean_probability", 4, lambda row: row[1]),
        ("elderly_less", 4, lambda row: row[2]),
        ("interval_95", 5, lambda row: row[3]),
    )


def _dates(write: Writer, law: Law) -> str:
    if law.effective_to:
        end = write("until", day=law.effective_to)
    else:
        end = ""
    start = write("from_day" if law.force == "not_yet" else "since", day=law.effective_from)
    return start + end + write("as_of", day=law.as_of)


def _duty(write: Writer, duty: Duty) -> str:
    """Return which duty it is, from when and of whom."""
    dates = write.says(write(f"force_{duty.force}"), _dates(write, duty))
    whom = write.enumerated(write(f"whom_{whom}") for whom in duty.whom)
    return "\n".join((_citation(write, duty), dates, write.says(write("head_whom"), whom)))


def _wording(write: Writer, law: Law) -> str:
    return wording(write.words, law.quote, _source(write, law), law.as_of, law.checked)


def _source(write: Writer, law: Law) -> str:
    return write.words.text(law.quote_from)


def _quoted_once(write: Writer, f: Finding, quoted: dict[str, str]) -> str:
    if f.quote and f.quote in quoted:
        return write("quoted_above", feature=quoted[f.quote])
    quoted[f.quote] = write.feature(f.feature)
    return _wording(write, f)


def _demands(write: Writer, duty: Duty, numbers: Mapping[str, int]) -> str:
    """Return what it demands, and its wording with the number of the source."""
    number = numbers.get(_source(write, duty))
    remedy = write.says(write("head_remedy"), write.words.text(duty.remedy))
    quoted = wording(write.words, duty.quote, write("source_number", n=number), duty.as_of, duty.checked)
    return "\n".join((write.words.text(duty.explanation), quoted, remedy))


def _decision(write: Writer, f: Finding) -> str:
    d = f.decision
    if d is None:
        return write("undecided")
    text = write(f"decision_{d.verdict}", person=d.person, time=minute(d.time), reason=d.reason)
    return text + (write("earlier", n=f.earlier_decisions) if f.earlier_decisions else "")


def rules(write: Writer) -> list[Block]:
    """The rule packs, duties of the model as a whole, and where their wordings were read."""
    assessment = write.content.assessment
    scope = Paragraph(write.words.text(assessment.scope))
    packs = write.table(
        assessment.packs,
        ("pack", 5, lambda p: _pack(write, p)),
        ("version", 3, lambda p: p.version),
        ("as_of", 3, lambda p: p.as_of.isoformat()),
        ("jurisdiction", 4, lambda p: write.words.jurisdiction(p.jurisdiction)),
        ("scope", 7, lambda p: write.words.text(p.applies_to) or NONE),
        ("source", 7, lambda p: write.words.text(p.source)),
    )
    sources = dict.fromkeys(_source(write, duty) for duty in assessment.duties if duty.quote)
    numbers = {source: n for n, source in enumerate(sources, start=1)}
    duties = write.table(
        assessment.duties,
        ("duty", 6, lambda d: _duty(write, d)),
        ("demands", 14, lambda d: _demands(write, d, numbers)),
        ("offers", 5, lambda d: write.words.text(d.evidence)),
    )
    read = write.table(numbers.items(), ("number", 1, lambda item: str(item[1])), ("source", 20, lambda item: item[0]))
    words = write.text("words_version", version=assessment.words)
    blocks: list[Block] = [words, scope, packs, write.note("as_of_note"), write.heading("duties"), duties]
    if numbers:
        return [*blocks, write.heading("sources"), read]
    return blocks


def _pack(write: Writer, pack: PackStamp) -> str:
    """Return the name of a rule pack, marked if it is not one of Glassleaf's."""
    title = write.words.text(pack.title)
    if pack.built_in:
        return title
    return write("named", meaning=title, name=write("own_pack"))


def evidence(write: Writer) -> list[Block]:
    """Outcome disparity and proxies, measured or not: of each feature the widest gap, or the strongest association."""
    content = write.content
    return [*_widest(write, "fairness", content.fairness), *_widest(write, "proxies", content.proxies)]


def _widest(write: Writer, key: str, evidence: tuple[Evidenced, ...] | None) -> list[Block]:
    """A row a feature; the annex has all rates."""
    blocks: list[Block] = [write.heading(key)]
    if not evidence:
        searched = key == "fairness" and write.content.searches
        if searched:
            unmeasured = "fairness_searched"
        else:
            unmeasured = f"{key}_not_measured"
        return [*blocks, write.text(unmeasured if evidence is None else "nothing_found")]
    rows = [(write.named(e.feature, e.meaning), *_furthest(write, key, e)) for e in evidence]
    table = write.table(
        rows,
        ("feature", 6, lambda row: row[0]),
        ("group" if key == "fairness" else "against", 6, lambda row: row[1]),
        ("gap_widest" if key == "fairness" else "measure", 6, lambda row: row[2]),
    )
    return [*blocks, table]


def _furthest(write: Writer, key: str, e: Evidenced) -> tuple[str, str]:
    """Return whom the largest figure is about, and the figure."""
    if e.on is not None and e.on.refused:
        return NONE, not_agreed(write, e.on)
    if key == "fairness":
        furthest = widest(e.measures)
        if furthest is None:
            return NONE, write("nothing_found")
        about = write("against_reference", group=_about(write, furthest), reference=reference_of(write, e.measures))
        return about, value(write, furthest)
    measured = [m for m in e.measures if m.value is not None]
    strongest = max(measured, key=lambda m: m.value or 0.0, default=None)
    if strongest is None:
        return NONE, write("nothing_found")
    return _about(write, strongest), f"{strongest.measure} {value(write, strongest)}"


def every_rate(write: Writer) -> list[Block]:
    """All that was measured of groups and proxies; nothing if nothing was."""
    content = write.content
    blocks = []
    for key, evidence in (("fairness", content.fairness), ("proxies", content.proxies)):
        if evidence:
            blocks += _claim(write, key, evidence)
    return blocks


def _claim(write: Writer, key: str, evidence: tuple[Evidenced, ...]) -> list[Block]:
    blocks: list[Block] = [write.heading(key)]
    if key == "fairness":
        blocks.append(write.note("together_note"))
        blocks += about_scores(write, [m for e in evidence for m in e.measures])
    for e in evidence:
        if e.on is not None and e.on.refused:
            blocks.append(Paragraph(write.says(write.named(e.feature, e.meaning), not_agreed(write, e.on))))
            continue
        if e.on is None:
            basis = ""
        else:
            basis = write("measured_on", on=_basis(write, e.on) + _compared_with(write, e.measures))
        nothing = "" if e.measures else write("and_nothing")
        blocks.append(Paragraph(write.named(e.feature, e.meaning) + basis + nothing))
        if e.measures and key == "proxies":
            blocks.append(_associations(write, e.measures))
        elif e.measures:
            blocks += [rates(write, [("", e.measures)]), *beside_rates(write, e.measures)]
    return blocks


def _compared_with(write: Writer, measures: Iterable[Evidence]) -> str:
    reference = reference_of(write, measures)
    if reference != NONE:
        return write("compared_with", reference=reference)
    return ""


def not_agreed(write: Writer, on: Basis) -> str:
    """That nothing was measured because a Host has not agreed."""
    return write.words("disparity.not_agreed", host=write.party(on.refused))


def proxies_of(write: Writer, f: Finding) -> str:
    """Return where it is said what is associated with a finding's feature, or that nothing was found or measured."""
    if f.proxies:
        return write("in_annex", annex=write("annex_evidence"))
    return _lines(write, f.proxies, f.proxies_on, "proxies", f.feature)


def disparities_of(write: Writer, f: Finding) -> str:
    """Return where it is said how far groups are apart, or that nothing was found or measured."""
    if f.disparities:
        return write("in_annex", annex=write("annex_evidence"))
    return _lines(write, f.disparities, f.disparities_on, "disparity", f.feature)


def _lines(write: Writer, measures: tuple[Evidence, ...] | None, on: Basis | None, test: str, feature: str) -> str:
    if measures is None and on is not None and on.refused:
        return not_agreed(write, on)
    if measures is None:
        in_suite = _in_suite(write, test, feature)
        if in_suite:
            return "\n".join((write("measured_in_suite"), *in_suite))
        return write("not_measured")
    if measures:
        return "\n".join(_line(write, m) for m in measures)
    if on is None:
        return write("nothing_found")
    return write("named", meaning=write("nothing_found"), name=_basis(write, on))


def _in_suite(write: Writer, test: str, feature: str) -> list[str]:
    """Return the figures about the feature among those that the validation suite shows of a test."""
    validation = write.content.validation
    if validation is None:
        return []
    lines = []
    for test_line in validation.tests:
        if test_line.id != test:
            continue
        for judged in test_line.figures:
            figure = judged.figure
            if feature == (figure.group if test == "proxies" else figure.feature):
                lines.append(write.says(*said(write, figure)))
    return lines


def _line(write: Writer, m: Evidence) -> str:
    return write.says(_about(write, m), f"{measure_in_words(write.words, m.measure)} {value(write, m)}")


def _basis(write: Writer, on: Basis) -> str:
    """Say on how many records; of decisions on which, and at which cut-off; and when, if on an earlier day."""
    if on.measured:
        earlier_day = write("before", day=on.measured)
    else:
        earlier_day = ""
    if on.cutoff is None:
        return write("on", n=whole(on.n)) + earlier_day
    part = write.part(write.content.quality.part)
    return (
        write("on_part", n=whole(on.n), part=part) + write("at", cutoff=write.line(on.cutoff, on.policy)) + earlier_day
    )


def _about(write: Writer, m: Evidence) -> str:
    """Return a group, or another feature."""
    if m.about.en in write.features:
        return write.feature(m.about.en)
    return write.words.text(m.about)


def value(write: Writer, m: Evidence, *, below: bool = False) -> str:
    """Return a measured number with its interval and, in brackets or `below`, its number of records; or that it is not disclosed."""
    if m.value is None:
        return write("too_few")
    rate, _, gap = m.measure.partition(", ")
    text_of: Callable[[float | None], str] = p_value if gap in (P, PAIR_P) else figure
    if rate in MEASURES:
        text_of = {"": percent, REFERENCE: percent, DIFFERENCE: points}.get(gap, text_of)
    unit = f" {write('points')}" if text_of is points else ""
    if m.low is None or m.high is None:
        ends = ""
    else:
        ends = f" [{text_of(m.low)}, {text_of(m.high)}]"
    figures = f"{text_of(m.value)}{ends}{unit}"
    records = write("on", n=whole(m.n))
    if below:
        return f"{figures}\n{records}"
    return write("named", meaning=figures, name=records)


def _associations(write: Writer, measures: Sequence[Evidence]) -> Table:
    return write.table(
        measures,
        ("against", 6, lambda m: _about(write, m)),
        ("measure", 3, lambda m: m.measure),
        ("value", 2, lambda m: figure(m.value)),
        ("interval", 3, lambda m: interval(m.low, m.high)),
        ("n", 2, lambda m: whole(m.n)),
    )


def rates(write: Writer, sides: Sequence[tuple[str, Sequence[Evidence]]]) -> Table:
    """Return groups by rates.

    The reference group has a row only if it differs between rates: else it is named above the table. Of two groups the chance of the
    widest gap is that of their one difference.

    Parameters
    ----------
    sides : sequence of (str, sequence of Evidence)
        Measurements with what is added to a group's name, as of two models.
    """
    every = [m for _, measures in sides for m in measures]
    references = {_about(write, m) for m in every if m.measure.endswith(f", {REFERENCE}")}
    compared = {m.about for m in every if m.measure.endswith(f", {PAIR_P}")}
    repeated = set()
    if len(references) == 1:
        repeated.add(REFERENCE)
    if len(compared) == 1:
        repeated.add(P)
    cells: dict[str, dict[str, dict[str, str]]] = {}  # group → side → rate → cell
    columns: dict[str, None] = {}  # in the order in which they first come
    for side, measures in sides:
        for m in measures:
            rate, _, gap = m.measure.partition(", ")
            if rate not in MEASURES or gap in repeated:
                continue
            if gap:
                group = write(f"gap_{gap.replace(' ', '_')}", group=_about(write, m))
            else:
                group = _about(write, m)
            columns[rate] = None
            if gap == REFERENCE:
                cell = _about(write, m)
            else:
                cell = value(write, m, below=True)
            cells.setdefault(group, {}).setdefault(side, {})[rate] = cell
    rows = []
    for group, by_side in cells.items():
        for side, row in by_side.items():
            rows.append((group + side, *(row.get(rate, write("not_measured")) for rate in columns)))
    return Table(
        head=(write("head_group"), *(measure_in_words(write.words, rate) for rate in columns)),
        rows=tuple(rows),
        widths=(4, *(5 for _ in columns)),
    )


def retrained(write: Writer) -> list[Block]:
    """Each retrained model next to the one that it replaces."""
    blocks: list[Block] = []
    for pair in write.content.retrained:
        blocks += [Heading(write("beside", before=pair.before, after=pair.after), 2), *_beside(write, pair)]
    return blocks


def _beside(write: Writer, pair: Retrained) -> list[Block]:
    words = write.words
    figures = [(words(f"figure.{f.name}"), figure(f.before), figure(f.after)) for f in pair.figures]
    sizes = [(words(f"sizes.{f.name}"), whole(f.before), whole(f.after)) for f in pair.structure]
    halves = ((pair.before, pair.before_sha256), (pair.after, pair.after_sha256))
    shares = write.table(
        pair.gain,
        ("feature", 7, lambda g: write.named(g.name, g.meaning)),
        ("party", 4, lambda g: write.party(g.party)),
        ("gain_before", 3, lambda g: _gain(write, g.before)),
        ("gain_after", 3, lambda g: _gain(write, g.after)),
    )
    without = write.enumerated(pair.without) or write("nothing")
    return [
        write.text("beside_without", without=without, created=minute(pair.created)),
        write.note("same_people" if pair.same_people else "other_people"),
        _two_models(write, "figure", [*figures, *sizes]),
        *_outcomes(write, pair.outcomes),
        _leaks(write, pair.leak),
        shares,
        Facts(tuple((write("half_of", model=model), digest) for model, digest in halves)),
    ]


def _gain(write: Writer, share: float | None) -> str:
    return write("not_given") if share is None else gain(share)


def _two_models(write: Writer, about: str, rows: list[tuple[str, str, str]]) -> Table:
    return write.table(
        rows,
        (about, 6, lambda row: row[0]),
        ("before", 3, lambda row: row[1]),
        ("after", 3, lambda row: row[2]),
    )


def _outcomes(write: Writer, pairs: tuple[OutcomePairLine, ...]) -> list[Block]:
    """Decisions by group in both models, each with its interval and number of records."""
    blocks: list[Block] = []
    alone: list[str] = []
    for feature in dict.fromkeys(pair.feature for pair in pairs):
        of_feature = [pair for pair in pairs if pair.feature == feature]
        first_rates = [p.before for p in of_feature if p.before]
        second_rates = [p.after for p in of_feature if p.after]
        feature_name = write.named(feature, of_feature[0].meaning)
        if not first_rates or not second_rates:
            alone.append(feature_name)
            continue
        table = rates(write, [(write("side_before"), first_rates), (write("side_after"), second_rates)])
        at = declined_at(write, of_feature[0]) + _compared_with(write, first_rates)
        blocks += [write.text("outcomes_by", feature=feature_name, at=at), table]
    if alone:
        blocks.append(write.note("outcomes_of_one", listed=write.listed(alone)))
    return blocks or [write.note("outcomes_not_measured")]


def reference_of(write: Writer, measures: Iterable[Evidence]) -> str:
    """Return the group that acceptance rates are compared with; a dash if none was measured."""
    rows = (m for m in measures if m.measure == f"{ACCEPTED}, {REFERENCE}")
    return next((_about(write, m) for m in rows), NONE)


def declined_at(write: Writer, pair: OutcomePairLine) -> str:
    """From which probability decisions declined, behind a sentence; empty if it was not recorded."""
    if pair.cutoff is not None:
        return write("declined_at", cutoff=percent(pair.cutoff))
    return ""


def _leaks(write: Writer, pairs: tuple[Pair, ...]) -> Table | Paragraph:
    """What scores of both models give away, as measured before each was registered."""
    if not pairs:
        return write.note("leaks_not_measured")
    rows = []
    for pair in pairs:
        text_of = LEAK_FORMATS.get(pair.name, whole)
        rows.append((write(f"leaks_{pair.name}"), text_of(pair.before), text_of(pair.after)))
    return _two_models(write, "score", rows)
