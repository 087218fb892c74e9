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
    """Return a sentence for each day on which Hosts gave answers that were taken again."""
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
    section = write.content.validation
    if section is None:
        return [write.text("validation_none")]
    say = write.words
    lines = []
    for test in section.tests:
        if test.verdict == "off":
            lines.append(say("validation.switched_off", test=say(f"validation.test_{test.id}"), because=test.because))
    if section.unexamined:
        lines.append(say("validation.unexamined", listed=by_party(write, section.unexamined)))
    if section.tightened:
        names = (say(f"validation.measure_{name}") for name in section.tightened)
        lines.append(say("validation.tightened", listed=write.listed(names)))
    repeated = answered_before(write, section.again)
    if section.without_decisions:
        repeated.append(say("validation.without_decisions", listed=by_party(write, section.without_decisions)))
    return [
        Paragraph(counts(write, section), "finding" if section.verdict == "fail" else "plain"),
        *(Paragraph(line, "finding") for line in lines),
        *map(Paragraph, repeated),
        Paragraph(say("validation.made", version=section.version, made=minute(section.made)), "note"),
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
    """Return what was measured, and of which feature."""
    what = write.words.named("audit.did_", line.action)
    if line.about:
        return write.says(what, write.feature(line.about))
    return what


def every_test(write: Writer) -> list[Block]:
    """A row a test; nothing if the suite was not run."""
    section = write.content.validation
    if section is None:
        return []
    return [table(write, section.tests)]


def verdicts_of(write: Writer, ids: Collection[str]) -> str:
    """Return the verdicts of some of the suite's tests; empty if it was not run, or did not make them."""
    section = write.content.validation
    if section:
        tests = [test for test in section.tests if test.id in ids and test.figures]
    else:
        tests = []
    say = write.words
    return write.listed(
        write.says(say(f"validation.test_{test.id}"), say(f"validation.verdict_{test.verdict}")) for test in tests
    )


def counts(write: Writer, section: Validation) -> str:
    """Return how many tests have which verdict."""
    many = {}
    for name, verdict in (
        ("passed", "pass"),
        ("undecided", "undecided"),
        ("warned", "warn"),
        ("failed", "fail"),
        ("missing", "not_provided"),
        ("off", "off"),
    ):
        many[name] = sum(test.verdict == verdict for test in section.tests)
    return write.words(
        "validation.sentence", n=whole(section.n), cutoff=write.line(section.cutoff, section.policy), **many
    )


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
    return "\n".join(_line(write, figure_line) for figure_line in test.figures[:1])


def _line(write: Writer, figure_line: Judged) -> str:
    about, value = said(write, figure_line.figure)
    measure = figure_line.figure.measure
    limits = limit_in_words(write.words, measure, figure_line.sense, figure_line.warn, figure_line.fail)
    smallest_seen = seen_in_words(write.words, measure, figure_line.sense, figure_line.shows_from)
    return write.says(about, f"{value}\n{limits}{smallest_seen}")


def said(write: Writer, tested: Figure) -> tuple[str, str]:
    """Return what a figure is about, and its value."""
    feature = write.features.get(tested.feature)
    if tested.measure == "cramers_v":
        codes = {tested.group: write.feature(tested.group)}
    elif feature:
        codes = write.codes(feature)
    else:
        codes = {}
    about = about_in_words(write.words, tested, write.feature(tested.feature), write.party(tested.party), codes)
    return about, value_in_words(write.words, tested, figure)
