"""What a report says of groups: outcomes by group, and features associated with a protected one. Knows the report alone."""

from __future__ import annotations

from collections.abc import Sequence

from backend.fairness.disparity import measure_in_words
from backend.reports.blocks import Block, Table, Text
from backend.reports.schema import BasisLine, Evidenced, FindingLine, Measured
from backend.reports.sections.writer import Writer, figure, interval, percent, whole

ACCEPTED = "selection rate"  # as backend.fairness.disparity.MEASURES names it
GAPS = {"smallest over largest": "gap_smallest", "largest less smallest": "gap_largest"}


def evidence(write: Writer) -> list[Block]:
    """Outcome disparity and proxies, measured or not."""
    content = write.content
    return [*_claim(write, "fairness", content.fairness), *_claim(write, "proxies", content.proxies)]


def _claim(write: Writer, key: str, found: tuple[Evidenced, ...] | None) -> list[Block]:
    blocks: list[Block] = [write.heading(key)]
    if not found:
        return [*blocks, write.text(f"{key}_not_measured" if found is None else "nothing_found")]
    for e in found:
        basis = "" if e.on is None else write("measured_on", on=_basis(write, e.on))
        nothing = "" if e.measures else write("and_nothing")
        blocks.append(Text(write.named(e.feature, e.meaning, e.meaning_zh) + basis + nothing))
        if e.measures:
            blocks.append(_associations(write, e.measures) if key == "proxies" else rates(write, [("", e.measures)]))
    return blocks


def proxies_of(write: Writer, f: FindingLine) -> str:
    """What is associated with a finding's feature."""
    return _lines(write, f.proxies, f.proxies_on)


def disparities_of(write: Writer, f: FindingLine) -> str:
    """Who is accepted how often, and how far groups are apart in that; the other rates stand in the section about evidence."""
    if not f.disparities:
        return _lines(write, f.disparities, f.disparities_on)
    accepted = [_line(write, m) for m in f.disparities if m.measure.partition(", ")[0] == ACCEPTED]
    on = f.disparities_on
    return "\n".join((*accepted, *([] if on is None else [write("all_rates", on=_basis(write, on))])))


def _lines(write: Writer, measures: tuple[Measured, ...] | None, on: BasisLine | None) -> str:
    if measures is None:
        return write("not_measured")
    if measures:
        return "\n".join(_line(write, m) for m in measures)
    return write("nothing_found") + ("" if on is None else f" ({_basis(write, on)})")


def _line(write: Writer, m: Measured) -> str:
    return f"{_about(write, m)}: {measure_in_words(write.words, m.measure)} {value(write, m)}"


def _basis(write: Writer, on: BasisLine) -> str:
    """On how many records, and at which cut-off."""
    return write("on", n=whole(on.n)) + ("" if on.cutoff is None else write("at", cutoff=percent(on.cutoff)))


def _about(write: Writer, m: Measured) -> str:
    """A group, or another feature."""
    return write.feature(m.about) if m.about in write.features else write.words.either(m.about, m.about_zh)


def value(write: Writer, m: Measured, then: str = ", ") -> str:
    """A measured number with its interval and number of records, or that it is not disclosed."""
    if m.value is None:
        return write("too_few")
    ends = "" if m.low is None or m.high is None else f" [{figure(m.low)}, {figure(m.high)}]"
    return f"{figure(m.value)}{ends}{then}n = {whole(m.n)}"


def _associations(write: Writer, measures: Sequence[Measured]) -> Table:
    return write.table(
        measures,
        ("against", 6, lambda m: _about(write, m)),
        ("measure", 3, lambda m: m.measure),
        ("value", 2, lambda m: figure(m.value)),
        ("interval", 3, lambda m: interval(m.low, m.high)),
        ("n", 2, lambda m: whole(m.n)),
        numeric=("value", "interval", "n"),
    )


def rates(write: Writer, sides: Sequence[tuple[str, Sequence[Measured]]]) -> Table:
    """Groups by rates.

    Parameters
    ----------
    sides : sequence of (str, sequence of Measured)
        Measurements with what is added to a group's name, as of two models.
    """
    cells: dict[str, dict[str, dict[str, str]]] = {}  # group → side → rate → what stands there
    columns: dict[str, None] = {}  # in the order in which they first come
    for side, measures in sides:
        for m in measures:
            rate, _, gap = m.measure.partition(", ")
            group = write(GAPS[gap]) if gap in GAPS else _about(write, m)
            columns[rate] = None
            cells.setdefault(group, {}).setdefault(side, {})[rate] = value(write, m, "\n")
    return Table(
        head=(write("head_group"), *(measure_in_words(write.words, rate) for rate in columns)),
        rows=tuple(
            (group + side, *(row.get(rate, write("not_measured")) for rate in columns))
            for group, by_side in cells.items()
            for side, row in by_side.items()
        ),
        widths=(4, *(5 for _ in columns)),
    )
