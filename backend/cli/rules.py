"""Rule packs from a shell: `rules list`, `check`, `add`, `try`, `calendar`, `measure`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.cli.output import AsJson, open_glassleaf, print_result
from backend.i18n import counted
from backend.services.compliance import read_rule_pack

if TYPE_CHECKING:
    from backend.compliance.calendar import LawDate
    from backend.compliance.recall import WilsonShare
    from backend.services.compliance import ComplianceReport

PARTS = {"all": "all", "meaning": "with a meaning", "name": "a name alone", "new": "a meaning not in earlier lists"}
WHY = {
    "single": "nothing else says so",
    "doubted": "such words were often about something else",
    "weak": "a word with several senses",
    "disputed": "columns known so far speak against it: {word}",
    "proposed": "no phrase says so; columns known so far do: {word}",
}
MEASURES = (  # of recall.Recall, in the order of printing
    "statute",
    "statute_flagged",
    "proxies",
    "proxies_flagged",
    "precision",
    "precision_asked",
    "questions",
    "questions_right",
    "silent",
    "not_understood",
)

app = typer.Typer(
    add_completion=False,
    name="rules",
    no_args_is_help=True,
    help="The rule packs: list, check, add a custom one; try them on a list of columns; when the law changes.",
)


@app.command(name="list")
def list_rules(as_json: AsJson = False) -> None:
    """Name every pack with its version and day, and what is wrong with those that cannot be used."""
    with open_glassleaf() as glassleaf:
        packs, problems = glassleaf.compliance.rule_packs()
    rows = [{"name": p.name, "version": p.version, "as_of": str(p.as_of), "rules": len(p.rules)} for p in packs]
    lines = [
        f"{p['name']} {p['version']}, as of {p['as_of']}: {p['rules']} rule{'s' * (p['rules'] != 1)}" for p in rows
    ]
    print_result({"packs": rows, "problems": problems}, [*lines, *(f"Problem: {p}" for p in problems)], as_json)


@app.command(name="check")
def check_rules(
    file: Annotated[
        Path | None, typer.Argument(help="A rule pack (docs/rules.md); without one, the applied ones.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say whether a pack can be used, every problem with its line; without a file, which rules were checked long ago or with no text."""
    if file is not None:
        pack = read_rule_pack(file)
        text = f"{file}: {pack.name}, {counted(len(pack.rules), 'rules')}, usable."
        print_result({"name": pack.name, "rules": len(pack.rules)}, text, as_json)
        return
    with open_glassleaf() as glassleaf:
        calendar = glassleaf.compliance.calendar()
    lines = [f"With the official wording: {calendar.quoted}; all others are paraphrases."]
    for title, rules in (
        ("Last checked over a year ago", calendar.stale),
        ("Never compared with an official text", calendar.unchecked),
    ):
        lines += [f"{title}: {len(rules)}", *(f"  {rule.as_of} {rule.rule_id}: {rule.citation}" for rule in rules)]
    listed = {"stale": calendar.stale, "unchecked": calendar.unchecked}
    document = {name: [asdict(rule) for rule in rules] for name, rules in listed.items()}
    print_result({"quoted": calendar.quoted, **document}, lines, as_json)


@app.command(name="add")
def add_rules(
    file: Annotated[Path, typer.Argument(help="A rule pack (docs/rules.md).")], as_json: AsJson = False
) -> None:
    """Apply a custom pack from now on."""
    with open_glassleaf() as glassleaf:
        pack = glassleaf.compliance.add_rule_pack(file)
    print_result({"name": pack.name, "rules": len(pack.rules)}, f"{pack.name} applies from now on.", as_json)


@app.command(name="try")
def try_rules(
    file: Annotated[
        Path, typer.Argument(help="A CSV file: name, meaning, meaning_zh, unit, codes (1: Married; 2: Single).")
    ],
    as_json: AsJson = False,
) -> None:
    """Say what would be flagged and what asked of a list of columns, by which rule and on which words; nothing is kept."""
    with open_glassleaf() as glassleaf:
        tried, notes = glassleaf.compliance.try_list(file)
    flagged = _flagged(tried)
    questions = _asked(tried)
    unclear = [column.feature for column in tried.not_understood]
    features = len({row["feature"] for row in flagged})
    head = (
        f"{counted(tried.assessed, 'columns')}, {features} flagged, {len(questions)} asked about (no finding until answered), "
        f"{len(unclear)} not understood (ask for their meanings)."
    )
    lines = [
        f"{r['feature']}: {r['status']}, {r['rule']} ({r['pack']}): {r['matched']!r} in {r['matched_in']}"
        for r in flagged
    ]
    lines += [
        f"{r['feature']}: is this about: {r['title']}? {r['matched']!r} in {r['matched_in']} suggests it ({r['why']})"
        for r in questions
    ]
    lines += [f"{name}: not understood: no rule knows the name, and it has no meaning" for name in unclear]
    lines += [note.sentence() for note in notes]
    document = {"columns": tried.assessed, "on": tried.on, "words": tried.words}
    document |= {
        "flagged": flagged,
        "questions": questions,
        "not_understood": unclear,
        "meaning_cut": [note.column for note in notes],
    }
    print_result(document, [head, *lines], as_json)


def _flagged(tried: ComplianceReport) -> list[dict[str, Any]]:
    return [
        {
            "feature": finding.feature,
            "status": finding.status,
            "rule": finding.rule_id,
            "pack": str(finding.pack),
            "jurisdiction": finding.jurisdiction,
            "citation": str(finding.citation),
            "whom": list(finding.whom),
            "matched": finding.matched,
            "matched_in": finding.matched_in,
        }
        for finding in tried.findings
    ]


def _asked(tried: ComplianceReport) -> list[dict[str, Any]]:
    return [
        {
            "feature": question.feature,
            "about": question.about,
            "title": str(question.title),
            "citation": str(question.citation),
            "matched": question.sign.matched,
            "matched_in": question.sign.matched_in,
            "why": WHY[question.sign.strength].format(word=question.sign.weighed),
        }
        for question in tried.questions
    ]


@app.command(name="calendar")
def calendar(
    model: Annotated[str, typer.Option(help="Also what changed since this model's last report.")] = "",
    as_json: AsJson = False,
) -> None:
    """Say which rules are in force, which are coming, which ended, and what changed since a model's last report."""
    with open_glassleaf() as glassleaf:
        rule_calendar = glassleaf.compliance.calendar(model)
    counts = f"{rule_calendar.quoted} with the official wording, {len(rule_calendar.unchecked)} not compared with an official text"
    lines = [f"{rule_calendar.on}: {counted(rule_calendar.in_force, 'rules')} in force; {counts}."]
    if rule_calendar.since:
        lines += [
            f"Changed since the report of {rule_calendar.since}:",
            *([_line(date, rule_calendar.on) for date in rule_calendar.changed] or ["  nothing"]),
        ]
    for title, dates in (("Coming:", rule_calendar.coming), ("Ended:", rule_calendar.ended)):
        lines += [title, *([_line(date, rule_calendar.on) for date in dates] or ["  nothing"])]
    print_result(asdict(rule_calendar), lines, as_json)


def _line(date: LawDate, on: str) -> str:
    word = {"starts": "from", "started": "in force since", "ends": "until", "checked": "checked on"}[date.change_on(on)]
    return f"  {word} {date.day} {date.title} ({date.citation}): {', '.join(date.whom)}"


@app.command(name="measure")
def measure(as_json: AsJson = False) -> None:
    """Print how much of the built-in list of labelled columns is flagged or asked about: totals with 95 % intervals, no row."""
    with open_glassleaf() as glassleaf:
        measured = glassleaf.compliance.recall()
    lines = [f"Terms of version {measured.words}; list {measured.sha256}"]
    for part in measured.parts:
        lines.append(f"{part.language}, {PARTS[part.part]}: {counted(part.rows, 'columns')}")
        for name in MEASURES:
            lines.append(f"  {name}: {_share(getattr(part, name))}")
    print_result(asdict(measured), lines, as_json)


def _share(share: WilsonShare) -> str:
    return f"{share.hits} of {share.n} ({share.share:.1%}, {share.low:.1%} to {share.high:.1%})"
