"""The section on the validation suite: every test's verdict with thresholds and sources. Knows the report alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from backend.evaluation.validation.suite import Again, Figure, Judged, Tested, Validation, by_day
from backend.evaluation.validation.words import about_in_words, limit_in_words, seen_in_words, value_in_words
from backend.reports.blocks import Block, Paragraph, Table
from backend.reports.schema import MeasuredEntry
from backend.reports.sections.writer import Writer, figure, minute, whole
from backend.results import NOBODY


def by_party(write: Writer, keys: Iterable[tuple[str, str]]) -> str:
    """Features, party by party."""
    parties: dict[str, list[str]] = {}
    for party, feature in keys:
        parties.setdefault(party, []).append(write.feature(feature))
    return write.listed(f"{write.party(party)} · {write.enumerated(names)}" for party, names in parties.items())


def answered_before(write: Writer, again: Again) -> list[str]:
    """A sentence a day on which Hosts gave answers that were taken again."""
    return [
        write.words(
            "validation.answered",
            day=day,
            listed=by_party(write, keys),
        )
        for day, keys in by_day(again).items()
    ]


def validation(write: Writer) -> list[Block]:
    """How many tests have which verdict, what was switched off or tightened, and a row a test."""
    found = write.content.validation
    if found is None:
        return [write.text("validation_none")]
    say = write.words
    lines = [
        say("validation.switched_off", test=say(f"validation.test_{test.id}"), because=test.because)
        for test in found.tests
        if test.verdict == "off"
    ]
    if found.unexamined:
        lines.append(say("validation.unexamined", listed=by_party(write, found.unexamined)))
    if found.tightened:
        names = (say(f"validation.measure_{name}") for name in found.tightened)
        lines.append(say("validation.tightened", listed=write.listed(names)))
    before = answered_before(write, found.again)
    if found.without_decisions:
        before.append(say("validation.without_decisions", listed=by_party(write, found.without_decisions)))
    return [
        Paragraph(counts(write, found), "finding" if found.verdict == "fail" else "plain"),
        *(Paragraph(line, "finding") for line in lines),
        *map(Paragraph, before),
        Paragraph(say("validation.made", version=found.version, made=minute(found.made)), "note"),
        *test_log(write),
    ]


def test_log(write: Writer) -> list[Block]:
    """Which tests were made, when and by whom, with the hash of the log's entry; the signature on the report covers it."""
    lines = write.report.issued.test_log
    if not lines:
        return []
    nobody = write.words("details.history_nobody")
    log = write.table(
        lines,
        ("time", 4, lambda line: minute(line.time)),
        ("test_made", 5, lambda line: _made(write, line)),
        ("person", 3, lambda line: nobody if line.actor == NOBODY else line.actor),
        ("entry", 8, lambda line: f"{line.number} · {line.entry_sha256[:16]}"),
    )
    return [write.heading("test_log"), log, write.note("test_log_note")]


def _made(write: Writer, line: MeasuredEntry) -> str:
    """What was measured, and of which feature."""
    what = write.words.named("audit.did_", line.action)
    if line.about:
        return write.says(what, write.feature(line.about))
    return what


def every_test(write: Writer) -> list[Block]:
    """A row a test; nothing if the suite was not run."""
    found = write.content.validation
    return [] if found is None else [table(write, found.tests)]


def verdicts_of(write: Writer, ids: Collection[str]) -> str:
    """The verdicts of some of the suite's tests; empty if it was not run, or did not make them."""
    found = write.content.validation
    if found:
        tests = [test for test in found.tests if test.id in ids and test.figures]
    else:
        tests = []
    say = write.words
    return write.listed(
        write.says(say(f"validation.test_{test.id}"), say(f"validation.verdict_{test.verdict}")) for test in tests
    )


def counts(write: Writer, found: Validation) -> str:
    """How many tests have which verdict."""
    many = {
        name: sum(test.verdict == verdict for test in found.tests)
        for name, verdict in (
            ("passed", "pass"),
            ("undecided", "undecided"),
            ("warned", "warn"),
            ("failed", "fail"),
            ("missing", "not_provided"),
            ("off", "off"),
        )
    }
    return write.words("validation.sentence", n=whole(found.n), cutoff=write.line(found.cutoff, found.policy), **many)


def table(write: Writer, tests: Iterable[Tested]) -> Table:
    """A row a test: verdict, worst figure with its thresholds, source."""
    say = write.words
    rows = tuple(
        (
            say(f"validation.test_{test.id}"),
            say(f"validation.verdict_{test.verdict}"),
            _worst(write, test),
            say.text(test.source),
        )
        for test in tests
    )
    head = tuple(say(f"validation.head_{name}") for name in ("test", "verdict", "figure", "source"))
    return Table(head, rows, (4, 2, 8, 6))


def _worst(write: Writer, test: Tested) -> str:
    say = write.words
    if test.verdict == "off":
        return test.because
    if test.missing:
        return say(f"validation.missing_{test.missing}")
    return "\n".join(_line(write, one) for one in test.figures[:1])


def _line(write: Writer, one: Judged) -> str:
    about, value = said(write, one.figure)
    measure = one.figure.measure
    limits = limit_in_words(write.words, measure, one.sense, one.warn, one.fail)
    seen = seen_in_words(write.words, measure, one.sense, one.shows_from)
    return write.says(about, f"{value}\n{limits}{seen}")


def said(write: Writer, one: Figure) -> tuple[str, str]:
    """What a figure is about, and its value."""
    known = write.features.get(one.feature)
    if one.measure == "cramers_v":
        codes = {one.group: write.feature(one.group)}
    elif known:
        codes = write.codes(known)
    else:
        codes = {}
    about = about_in_words(write.words, one, write.feature(one.feature), write.party(one.party), codes)
    return about, value_in_words(write.words, one, figure)
