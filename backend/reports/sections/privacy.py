"""What a report says of who saw what: the messages that travelled in training and scoring, and what a score gives away.

Knows the report alone.
"""

from __future__ import annotations

from collections import defaultdict

from backend.reports.blocks import Block, Table, Text
from backend.reports.schema import Traffic
from backend.reports.sections.writer import Writer, percent, problems, whole


def privacy(write: Writer) -> list[Block]:
    """Who saw what: in training, in scoring, and every class of message that really travelled."""
    i, use, trained = write.content.identity, write.report.issued.use, write.content.training_traffic
    algorithm = "imported" if i.algorithm.startswith("imported") else i.algorithm
    training = {
        "guest_learned": write.words.named("algorithm.guest_", algorithm),
        "hosts_learned": write.words.named("algorithm.hosts_", algorithm),
    }
    scoring = {
        "guest_learned": write("guest_scoring", numbers=write.content.structure.outputs),
        "hosts_learned": write("hosts_scoring"),
    }
    plaintext = [write("in_the_clear", n=whole(use.in_the_clear))] if use.in_the_clear else []
    compared = [write("compared", n=use.comparisons)] if use.comparisons else []
    return [
        write.text("promise"),
        write.heading("in_training"),
        write.facts(training),
        _traffic(write, trained) if trained else write.note("no_training_traffic"),
        write.heading("in_scoring"),
        write.facts(scoring),
        write.text("use", scorings=whole(use.scorings), rows=whole(use.rows), failed=whole(use.failed)),
        *problems((*plaintext, *compared)),
        *([_traffic(write, use.traffic)] if use.traffic else []),
        *_leak(write),
    ]


def _traffic(write: Writer, lines: tuple[Traffic, ...]) -> Table:
    """A row for each class and way: to Hosts, to the Guest, or from Host to Host."""
    guest = write.content.parties[0].name
    ways: dict[tuple[str, bool, bool], list[Traffic]] = defaultdict(list)
    for t in lines:
        ways[t.kind, t.sender == guest, t.receiver == guest].append(t)
    return write.table(
        ways.values(),
        ("message", 4, lambda ts: _message(write, ts[0], "title", ts[0].kind)),
        ("way", 4, lambda ts: _way(write, ts)),
        ("holds", 6, lambda ts: _message(write, ts[0], "holds", ts[0].holds)),
        ("readable", 5, lambda ts: _message(write, ts[0], "readable", ts[0].readable_by)),
        ("messages", 2, lambda ts: whole(sum(t.messages for t in ts))),
        ("bytes", 3, lambda ts: whole(sum(t.bytes for t in ts))),
        numeric=("messages", "bytes"),
    )


def _way(write: Writer, lines: list[Traffic]) -> str:
    ends = ([t.sender for t in lines], [t.receiver for t in lines])
    return " → ".join(", ".join(map(write.party, dict.fromkeys(names))) for names in ends)


def _message(write: Writer, t: Traffic, what: str, otherwise: str) -> str:
    key = f"{t.kind}.{what}"
    text = write.words.named("message.", key)
    return otherwise if text == key else text


def _leak(write: Writer) -> list[Block]:
    """What a score gives away, as it was measured before the model was registered."""
    found = write.content.release
    if found is None:
        return [write.heading("leak"), write.text("leak_not_measured")]
    text = write(
        "leak_is",
        named=percent(found.named),
        people=whole(found.people),
        records=whole(found.records),
        bits=found.score_bits,
        dither=write("leak_dither", width=f"{found.dither:.4f}") if found.dither else write("leak_plain"),
        paths=f"{found.paths:g}",
    )
    without = "" if found.named_without is None else write("leak_without", share=percent(found.named_without))
    return [write.heading("leak"), Text(text + without), write.note("leak_note")]
