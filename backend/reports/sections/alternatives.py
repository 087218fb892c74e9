"""The section on less discriminatory alternatives: what was tried, what it would cost, and what was chosen. Knows the report alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backend.fairness.alternatives import IntervalFigure, Tried
from backend.reports.blocks import Block, Heading, Paragraph, Table
from backend.reports.schema import AlternativeLine, SearchLine
from backend.reports.sections.questions import retraining_in_words
from backend.reports.sections.writer import NONE, Writer, figure, minute, points, signed, whole
from backend.results import NOBODY


def chosen(write: Writer) -> list[Block]:
    """What retraining and searching came to, and what was chosen."""
    blocks: list[Block] = [Paragraph(retraining_in_words(write, pair)) for pair in write.content.retrained]
    if not blocks:
        blocks.append(write.text("not_retrained"))
    searches = write.content.searches
    for attribute in dict.fromkeys(search.attribute for search in searches):
        first = next(search for search in searches if search.attribute == attribute)
        feature_name = write.named(attribute, first.meaning)
        heading = Heading(write("lda_search", feature=feature_name, cutoff=write.line(first.cutoff, first.policy)), 2)
        blocks += [heading, *found_in_words(write, first), _chosen(write, first), write.text("lda_warning")]
    return [*blocks, *([] if searches else [write.text("lda_none")])]


def alternatives(write: Writer) -> list[Block]:
    """Every search at every decision."""
    searches = write.content.searches
    blocks = list[Block]()
    for attribute in dict.fromkeys(search.attribute for search in searches):
        of_attribute = [search for search in searches if search.attribute == attribute]
        constraints = _constraints(of_attribute)
        said = ""
        for search in of_attribute:
            feature_name = write.named(search.attribute, search.meaning)
            heading = Heading(
                write("lda_search", feature=feature_name, cutoff=write.line(search.cutoff, search.policy)), 2
            )
            how = _measured(write, search)
            # Of several cut-offs how gaps were measured is said once.
            blocks += [heading, *([] if how == said else [Paragraph(how, "note")]), _table(write, search, constraints)]
            said = how
        listed = (write("lda_constraints_are", place=k, constraints=text) for k, text in enumerate(constraints, 1))
        blocks += [Paragraph(line, "note") for line in listed]
    return [*blocks, write.note("lda_note")] if blocks else []


def _measured(write: Writer, search: SearchLine) -> str:
    """Return on whom gaps were measured, and against which group."""
    reference = write.words.text(search.reference)
    return write(f"lda_{search.source}", n=whole(search.n), reference=reference)


def _constraints(searches: Sequence[SearchLine]) -> tuple[str, ...]:
    """Return the constraints by which models differ from the first one, each once: a table names them by their place."""
    first = searches[0].alternatives[0].tried.constraints
    lines = (line.tried.constraints for search in searches for line in search.alternatives)
    return tuple(dict.fromkeys(text for text in lines if text and text != first))


def _chosen(write: Writer, search: SearchLine) -> Paragraph:
    choice = search.choice
    if choice is None:
        return write.text("lda_not_chosen")
    if choice.person == NOBODY:
        key = "lda_chosen_nobody"
    else:
        key = "lda_chosen"
    who = {"person": choice.person, "role": write.words.named("sidebar.role_", choice.role)}
    return write.text(key, name=choice.name, model=choice.model, time=minute(choice.time), reason=choice.reason, **who)


def found_in_words(write: Writer, search: SearchLine) -> list[Block]:
    """How many alternatives were trained, how many could not be compared, and what the others came to."""
    others = [line.point for line in search.alternatives[1:]]
    compared = sum(point.gap is not None for point in others)
    narrower = [point for point in others if point.narrower]
    blocks: list[Block] = [write.text("lda_trained", n=len(others), model=search.model)]
    if compared < len(others):
        blocks.append(write.text("lda_uncompared", n=len(others) - compared))
    if compared:
        counts = {"compared": compared, "narrower": len(narrower), "sure": sum(point.sure for point in narrower)}
        blocks.append(write.text("lda_found", tolerance=f"{search.tolerance:g}", **counts))
    return blocks


def _table(write: Writer, search: SearchLine, constraints: Sequence[str]) -> Table:
    first = search.alternatives[0]
    return write.table(
        search.alternatives,
        ("lda_model", 3, lambda a: f"{a.tried.name} {a.tried.model}"),
        ("lda_settings", 4, lambda a: settings(write, first.tried, a.tried, constraints)),
        ("lda_auc", 3, lambda a: _auc(a.point.auc)),
        (
            "lda_change",
            4,
            lambda a: NONE if a is first else _changed(write, signed, a.point.auc_change, a.point.auc_together),
        ),
        ("lda_gap", 4, lambda a: _gap(write, a)),
        (
            "lda_width",
            4,
            lambda a: NONE if a is first else _changed(write, points, a.point.gap_change, a.point.gap_together),
        ),
        ("lda_frontier", 2, lambda a: write("yes") if a.point.frontier else NONE),
    )


def settings(write: Writer, first: Tried, line: Tried, constraints: Sequence[str]) -> str:
    """Return what sets a model apart from the first one."""
    if line.without:
        changes = [write("lda_without", features=write.enumerated(line.without))]
    else:
        changes = []
    if line.constraints != first.constraints:
        if line.constraints:
            constraint = write("lda_constraints", place=constraints.index(line.constraints) + 1)
        else:
            constraint = ""
        changes.append(constraint or write("lda_unconstrained"))
    if line.depth != first.depth:
        changes.append(write("lda_depth", depth=line.depth))
    if line.reg_lambda != first.reg_lambda and line.reg_lambda is not None:
        changes.append(write("lda_lambda", value=f"{line.reg_lambda:g}"))
    return write.listed(changes) or write("lda_itself")


def _auc(interval_figure: IntervalFigure) -> str:
    return f"{figure(interval_figure.value)}\n[{figure(interval_figure.low)}, {figure(interval_figure.high)}]"


def _gap(write: Writer, line: AlternativeLine) -> str:
    point = line.point
    if point.gap is None:
        return write("too_few")
    if point.ratio is None:
        ratio = ""
    else:
        ratio = f"\n{write('lda_ratio', value=figure(point.ratio.value))}"
    return write.says(write.words.text(line.group), f"{_points(point.gap)}{ratio}")


def _changed(
    write: Writer, text_of: Callable[[float], str], single: IntervalFigure | None, together: IntervalFigure | None
) -> str:
    """Return a change with its own interval, and below it the one that holds together with all others."""
    if single is None:
        return NONE
    lines = [f"{text_of(single.value)} [{text_of(single.low)}, {text_of(single.high)}]"]
    if together is not None:
        lines.append(write("lda_together", low=text_of(together.low), high=text_of(together.high)))
    return "\n".join(lines)


def _points(figure: IntervalFigure) -> str:
    return f"{points(figure.value)} [{points(figure.low)}, {points(figure.high)}]"
