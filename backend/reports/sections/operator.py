"""Sections on what people have to say: what the model is for, its data, tests, monitoring and validation; and what each standard asks.

A field that was not provided reads "not provided"; nothing replaces it. Knows the report alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from backend.i18n import joined
from backend.reports.blocks import Block, Facts, Heading, Paragraph, Table
from backend.reports.details import BY_PARTY, FIELD_GROUPS, missing
from backend.reports.dossier import fits
from backend.reports.schema import ChangeLine, DetailsSection, DossierColumn, DossierSection
from backend.reports.sections.validation import answered_before, by_party, table, verdicts_of
from backend.reports.sections.writer import T, Writer, figure, interval, minute, percent, whole
from backend.reports.standards import STANDARDS, Subject
from backend.results import NOBODY

SENSITIVITY = ("noise", "missing_feature", "host_out", "weak_spots")
"""Tests of the suite that change the inputs and look at the scores."""

DETAIL_PREFIXES = {"state": "states.step_", "override": "report."}  # action → the prefix of the keys of its details


def said(write: Writer) -> DetailsSection:
    """Return what the operator provided."""
    return write.content.details or DetailsSection()


def not_provided(write: Writer) -> tuple[str, ...]:
    """Return the operator's fields that are empty; what the suite measured of sensitivity replaces a text about it."""
    empty = missing(write.content.details, [p.name for p in write.content.parties])
    return tuple(name for name in empty if name != "sensitivity" or not verdicts_of(write, SENSITIVITY))


def undocumented(write: Writer) -> list[str]:
    """Hosts without a dossier of every column that the model was offered."""
    documented = {d.host: {c.name for c in d.columns} for d in write.content.dossiers or ()}
    offered: dict[str, set[str]] = {p.name: set() for p in write.content.parties if p.role == "host"}
    for feature in write.content.features:
        if feature.party in offered:
            offered[feature.party].add(feature.name)
    return [host for host, names in offered.items() if host not in documented or names - documented[host]]


def _facts(write: Writer, names: Iterable[str]) -> Facts:
    """What was provided; what was not is among the open points."""
    details = said(write)
    rows = []
    for name in names:
        text = getattr(details, name)
        if text:
            rows.append((write.words(f"details.{name}"), text))
    return Facts(tuple(rows))


def _provided(write: Writer, names: Iterable[str]) -> list[Block]:
    """What was provided, or that nothing was."""
    facts = _facts(write, names)
    if facts.rows:
        return [facts]
    return [Paragraph(write("nothing_provided"))]


def purpose(write: Writer) -> list[Block]:
    """What the model is for, and who answers for it."""
    return _provided(write, FIELD_GROUPS["use"])


def data(write: Writer) -> list[Block]:
    """Population and period; what each party says of its data; which Hosts documented their columns."""
    details = said(write)
    words = write.words
    blocks = _provided(write, FIELD_GROUPS["data"])
    rows = []
    for party in write.content.parties:
        texts = [getattr(details, name).get(party.name, "") for name in BY_PARTY]
        if any(texts):
            rows.append((write.party(party.name), *texts))
    if rows:
        head = (write("head_party"), *(words(f"details.{name}") for name in BY_PARTY))
        blocks.append(Table(head, tuple(rows), (3, 6, 6)))
    for dossier in write.content.dossiers or ():
        blocks.append(Paragraph(words("dossier.of", host=write.party(dossier.host), day=dossier.day)))
    return blocks


def dossiers(write: Writer) -> list[Block]:
    """What each Host signs of its columns."""
    blocks: list[Block] = []
    for dossier in write.content.dossiers or ():
        blocks += _dossier(write, dossier)
    return blocks


def _dossier(write: Writer, dossier: DossierSection) -> list[Block]:
    words = write.words
    signed = fits(write.content.identity.federation, dossier)
    dossier = dossier.since(write.content.identity.model)
    if dossier.reference:
        reference = words("dossier.against", day=dossier.reference)
    else:
        reference = words("dossier.no_reference")
    statements = _table(
        write,
        _alike(dossier.columns),
        ("column", 5, lambda alike: "\n".join(_column(write, c) for c in alike)),
        ("source", 4, lambda alike: alike[0].source),
        ("basis", 4, lambda alike: alike[0].lawful_basis),
        ("refresh", 3, lambda alike: alike[0].refresh),
        ("owner", 3, lambda alike: alike[0].owner),
    )
    figures = _table(
        write,
        dossier.columns,
        ("column", 4, lambda c: c.name),
        ("missing", 3, lambda c: about(write, c.missing)),
        ("bands", 8, lambda c: _bands(write, c)),
        ("drift", 3, lambda c: words(f"dossier.drift_{c.drift.replace(' ', '_')}")),
    )
    return [
        Heading(words("dossier.of", host=write.party(dossier.host), day=dossier.day), 2),
        Paragraph(
            words("dossier.signed" if signed else "dossier.signed_wrong", key=dossier.public_key),
            "plain" if signed else "finding",
        ),
        Paragraph(reference),
        statements,
        figures,
        Paragraph(words("dossier.bands_note"), "note"),
    ]


def _column(write: Writer, column: DossierColumn) -> str:
    """Return a column by its meaning and name."""
    unit = write.words.unit(column.unit, column.meaning)
    return write.named(column.name, column.meaning) + (f" [{unit}]" if unit else "")


def _bands(write: Writer, column: DossierColumn) -> str:
    """Return how a column's values are spread: by code or by band."""
    codes = write.words.texts(column.codes)
    return write.listed(write.says(codes.get(name, name), about(write, share)) for name, share in column.bands) or "–"


def about(write: Writer, share: float) -> str:
    """Return a share that was rounded before it left its Host."""
    return write.words("dossier.about", share=f"{100 * share:.0f}")


def _alike(columns: Iterable[DossierColumn]) -> list[list[DossierColumn]]:
    """Columns of which the Host writes the same, together."""
    groups: dict[tuple[str, ...], list[DossierColumn]] = {}
    for c in columns:
        groups.setdefault((c.source, c.lawful_basis, c.refresh, c.owner), []).append(c)
    return list(groups.values())


def _table(write: Writer, rows: Iterable[T], *columns: tuple[str, int, Callable[[T], str]]) -> Table:
    return Table(
        tuple(write.words(f"dossier.head_{key}") for key, _, _ in columns),
        tuple(tuple(cell(row) for _, _, cell in columns) for row in rows),
        tuple(width for _, width, _ in columns),
    )


def tests(write: Writer) -> list[Block]:
    """On the latest period, next to a challenger, and under changes of the inputs."""
    words = write.words
    pair = write.content.challenger
    blocks: list[Block] = [
        Heading(words("details.out_of_time"), 2),
        Paragraph(_latest(write)),
        Heading(words("details.challenger"), 2),
    ]
    if pair is None:
        blocks.append(Paragraph(words("details.no_challenger")))
    else:
        table = write.table(
            pair.figures,
            ("figure", 6, lambda line: words(f"figure.{line.name}")),
            ("champion", 3, lambda line: figure(line.before)),
            ("challenger", 3, lambda line: figure(line.after)),
        )
        same = words("details.same_people" if pair.same_people else "details.other_people")
        challenged = words("details.challenged", model=pair.before, challenger=pair.after)
        blocks += [Paragraph(joined(challenged, same)), table]
    blocks.append(Heading(words("details.sensitivity"), 2))
    provided = said(write).sensitivity
    measured = verdicts_of(write, SENSITIVITY)
    if provided:
        blocks.append(Paragraph(provided))
    if measured:
        blocks.append(write.text("sensitivity_of_suite", listed=measured))
    if provided or measured:
        return blocks
    return [*blocks, Paragraph(words("details.not_provided"))]


def _latest(write: Writer) -> str:
    out_of_time = write.content.out_of_time
    if out_of_time is None:
        return write.words("details.no_time")
    return write.words("details.latest", day=out_of_time.test_from, n=out_of_time.n)


def monitoring(write: Writer) -> list[Block]:
    """The plan, what sets it off, and how far predictions have moved within the data of this model."""
    performance = write.content.performance
    lines = performance.stability if performance else ()
    moved = sum(line.psi > line.chance for line in lines)
    if lines:
        measured = write.words("details.stable", moved=moved, n=len(lines))
    else:
        measured = write.words("details.not_stable")
    return [*_provided(write, FIELD_GROUPS["monitoring"]), Paragraph(measured), *_monitored(write)]


def _monitored(write: Writer) -> list[Block]:
    """The last run on a later sheet, with its day and what it came to."""
    say = write.words
    run = write.content.monitoring
    if run is None:
        return [write.text("monitoring_none")]
    counted = {"n": whole(run.n), "failed": whole(run.failed), "outcomes": whole(run.outcomes)}
    blocks: list[Block] = [
        Heading(say("monitoring.figures"), 2),
        Paragraph(joined(say("monitoring.run_on", made=minute(run.made)), say("monitoring.sentence", **counted))),
        Paragraph(say("policy.measured", cutoff=write.line(run.cutoff, run.policy))),
        Paragraph(say(f"monitoring.overall_{run.verdict}"), "finding" if run.verdict == "fail" else "plain"),
    ]
    blocks += [Paragraph(line) for line in answered_before(write, run.again)]
    return [*blocks, Paragraph(say("monitoring.note"), "note")]


def monitoring_tables(write: Writer) -> list[Block]:
    """Every trigger of the last monitoring run, and calibration by tenths; nothing if there was none."""
    say = write.words
    run = write.content.monitoring
    if run is None:
        return []
    blocks: list[Block] = [table(write, run.tests)]
    if run.brier is not None:
        blocks.append(Facts(((say("monitoring.brier"), figure(run.brier)),)))
    if run.tenths:
        columns = write.table(
            run.tenths,
            ("predicted", 3, lambda row: percent(row.predicted)),
            ("observed", 3, lambda row: percent(row.observed)),
            ("interval_95", 5, lambda row: interval(row.low, row.high, percent)),
            ("n", 2, lambda row: whole(row.n)),
        )
        blocks += [Heading(say("monitoring.tenths"), 2), columns]
    if run.unexamined:
        blocks.append(Paragraph(say("monitoring.unexamined", listed=by_party(write, run.unexamined))))
    return blocks


def governance(write: Writer) -> list[Block]:
    """Who validated the model, and what is going to change."""
    return _provided(write, FIELD_GROUPS["validation"])


def history(write: Writer) -> list[Block]:
    """The software; what was changed, by whom and when."""
    words = write.words
    issued = write.report.issued
    versions = ", ".join(f"{name} {version}" for name, version in issued.versions.items())
    blocks: list[Block] = [Heading(words("details.versions"), 2), Paragraph(versions)]
    if issued.changes:
        nobody = words("details.history_nobody")
        rows = tuple(
            (minute(c.time), _change(write, c), nobody if c.actor == NOBODY else c.actor) for c in issued.changes
        )
        head = (write("head_time"), words("details.head_change"), write("head_person"))
        blocks += [Heading(words("details.history"), 2), Table(head, rows, (4, 8, 3))]
    return blocks


def _change(write: Writer, line: ChangeLine) -> str:
    words = write.words
    prefix = DETAIL_PREFIXES.get(line.action, "details.")
    parts = (part for part in line.detail.split(", ") if part)
    names = [write.party(part) if line.action == "dossier" else words.named(prefix, part) for part in parts]
    text = words(f"details.change_{line.action.replace('-', '_')}")
    if names:
        return write.says(text, write.listed(names))
    return text


def standards(write: Writer) -> list[Block]:
    """What each standard asks, mapped to the section that answers it or to who has to."""
    blocks: list[Block] = [Paragraph(write.words("mapping.note"), "note")]
    for name, subjects in STANDARDS.items():
        rows = tuple((write.words(f"mapping.{s.key}"), *answered(write, s)) for s in subjects)
        head = tuple(write.words(f"mapping.head_{key}") for key in ("subject", "where", "lacks"))
        blocks += [Heading(write.words(f"mapping.{name}"), 2), Table(head, rows, (6, 5, 6))]
    return blocks


def answered(write: Writer, subject: Subject) -> tuple[str, str]:
    """Return where a report answers a subject, and what is not provided with who has to; a dash if nothing is lacking."""
    words = write.words
    where = write.listed(write(key) for key in subject.sections)
    missing_fields = set(not_provided(write))
    fields = [words(f"details.{name}") for name in subject.fields if name in missing_fields]
    lacking = [*fields, *(words(f"mapping.lacks_{name}") for name in subject.measured if _lacks(write, name))]
    who = words(f"mapping.who_{subject.who}")
    if not subject.sections:
        return "–", words("mapping.elsewhere", who=who)
    return where, words("mapping.lacking", who=who, listed=write.listed(lacking)) if lacking else "–"


def _lacks(write: Writer, name: str) -> bool:
    content = write.content
    return {
        "suite": content.validation is None,
        "performance": content.performance is None,
        "fairness": content.fairness is None,
        "out_of_time": content.out_of_time is None,
        "dossiers": bool(undocumented(write)),
        "monitoring": content.monitoring is None,
        "sign_off": not any(s.covers for s in write.report.issued.sign_offs),
    }[name]
