"""What a report says of retraining: each model beside the one that it replaces. Knows the report alone."""

from __future__ import annotations

from backend.reports.blocks import Block, Facts, Heading, Table, Text
from backend.reports.schema import OutcomePairLine, Pair, Retrained
from backend.reports.sections.evidence import rates
from backend.reports.sections.writer import Writer, figure, minute, percent, whole

LEAK_FORMATS = {"named": percent, "without_dither": percent, "dither": figure}  # the others are whole numbers


def retrained(write: Writer) -> list[Block]:
    """Each model that was retrained beside the one that it replaces."""
    blocks: list[Block] = []
    for pair in write.content.retrained:
        blocks += [Heading(write("beside", before=pair.before, after=pair.after), 2), *_beside(write, pair)]
    return blocks or [write.text("not_retrained")]


def _beside(write: Writer, pair: Retrained) -> list[Block]:
    words = write.words
    figures = [(words(f"figure.{f.name}"), figure(f.before), figure(f.after)) for f in pair.figures]
    sizes = [(words(f"sizes.{f.name}"), whole(f.before), whole(f.after)) for f in pair.structure]
    halves = ((pair.before, pair.before_sha256), (pair.after, pair.after_sha256))
    gain = write.table(
        pair.gain,
        ("feature", 7, lambda g: write.named(g.name, g.meaning, g.meaning_zh)),
        ("party", 4, lambda g: write.party(g.party)),
        ("gain_before", 3, lambda g: _gain(write, g.before)),
        ("gain_after", 3, lambda g: _gain(write, g.after)),
        numeric=("gain_before", "gain_after"),
    )
    without = ", ".join(pair.without) or write("nothing")
    return [
        write.text("beside_without", without=without, created=minute(pair.created)),
        write.note("same_people" if pair.same_people else "other_people"),
        _two_models(write, "figure", [*figures, *sizes]),
        *_outcomes(write, pair.outcomes),
        _leaks(write, pair.leak),
        gain,
        Facts(tuple((write("half_of", model=model), digest) for model, digest in halves)),
    ]


def _gain(write: Writer, share: float | None) -> str:
    return write("not_given") if share is None else percent(share)


def _two_models(write: Writer, about: str, rows: list[tuple[str, str, str]]) -> Table:
    return write.table(
        rows,
        (about, 6, lambda row: row[0]),
        ("before", 3, lambda row: row[1]),
        ("after", 3, lambda row: row[2]),
        numeric=("before", "after"),
    )


def _outcomes(write: Writer, pairs: tuple[OutcomePairLine, ...]) -> list[Block]:
    """Decisions by group in both models, each with its interval and number of records."""
    blocks: list[Block] = []
    for feature in dict.fromkeys(pair.feature for pair in pairs):
        own = [pair for pair in pairs if pair.feature == feature]
        before, after = [p.before for p in own if p.before], [p.after for p in own if p.after]
        named = write.named(feature, own[0].meaning, own[0].meaning_zh)
        table = rates(write, [(write("side_before"), before), (write("side_after"), after)])
        blocks += [write.text("outcomes_by", feature=named), table]
    return blocks or [write.note("outcomes_not_measured")]


def _leaks(write: Writer, pairs: tuple[Pair, ...]) -> Table | Text:
    """What scores of both models give away, as measured before each was registered."""
    if not pairs:
        return write.note("leaks_not_measured")
    formats = ((p, LEAK_FORMATS.get(p.name, whole)) for p in pairs)
    rows = [(write(f"leaks_{p.name}"), written(p.before), written(p.after)) for p, written in formats]
    return _two_models(write, "score", rows)
