"""How a figure of the suite is named and written in one language; pages, reports and the command line share it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from backend.evaluation.validation.suite import Figure, Judged, Sense

Say = Callable[..., str]
POINTS = {"group_gap", "ece", "period_gap", "out_shift", "swap_excess"}  # differences of two shares
SHARE_MEASURES = {
    "noise_flips", "top_share", "thin_leaves", "contradicting", "mixed", "identifying", "swapped",
}  # fmt: skip
GAINS = {"top_share", "contradicting", "mixed"}  # shares of the gain, written with one decimal as everywhere
NAMED_MEMBERS = 5  # of the groups that were put together
COUNT_MEASURES = {"not_exact", "hash_differs", "again_differs"}
MOST_ROOM = 2.0  # times the room to failing; a bar ends there


def about_in_words(say: Say, figure: Figure, feature: str, party: str, codes: Mapping[str, str]) -> str:
    """Return what a figure is: its measure, and of which party, feature and group.

    Parameters
    ----------
    say : callable
        A catalogue.
    feature, party : str
        As they are shown; empty if the figure is about neither.
    codes : mapping of str to str
        Code of the feature → its meaning; of Cramér's V: attribute → what it means.
    """
    measure = say(f"validation.measure_{figure.measure}")
    if figure.feature:
        if not (figure.kind or figure.group):
            return say("validation_words.about_feature", measure=measure, feature=feature)
        if figure.measure == "cramers_v":  # its group is the attribute that the feature goes with
            attribute = codes.get(figure.group, figure.group)
            return say("validation_words.about_pair", measure=measure, feature=feature, attribute=attribute)
        names_by_kind = {
            "elderly": say("measure.group_elderly"),
            "missing": say("measure.group_missing"),
            "rest": rest_in_words(say, figure.apart, codes),
            "bin": say("validation_words.bin", place=figure.group),
        }
        group = names_by_kind.get(figure.kind) or codes.get(figure.group, figure.group)
        return say("validation_words.about", measure=measure, feature=feature, group=group)
    if figure.party:
        return say("validation_words.about_party", measure=measure, party=party)
    return measure


def members_of_rest(apart: Collection[str], codes: Iterable[str]) -> tuple[tuple[str, ...], bool]:
    """Return the codes that have no group of their own, and whether people without a value have none, so that they are with them.

    The party that holds the feature says only that some are together. These follow from the groups that it names, and say nothing of
    who occurs.

    Parameters
    ----------
    apart : collection of str
        Codes with a group of their own; with an empty text if people without a value have one.
    codes : iterable of str
        That the feature's dictionary lists.
    """
    return tuple(code for code in codes if code not in apart), "" not in apart


def rest_in_words(say: Say, apart: Collection[str], codes: Mapping[str, str]) -> str:
    """Return who is in a group that was put together, and why; see :func:`members_of_rest`.

    Parameters
    ----------
    say : callable
        A catalogue.
    codes : mapping of str to str
        Code of the feature → its meaning; empty if no dictionary lists them.
    """
    listed, without_value = members_of_rest(apart, codes)
    names = list(dict.fromkeys(codes[code] for code in listed))  # several codes may have one text
    members = names[:NAMED_MEMBERS]
    if len(names) > NAMED_MEMBERS:
        members.append(say("measure.group_more", n=len(names) - NAMED_MEMBERS))
    comma = say("words.comma")
    texts = [codes.get(code, code) for code in apart if code]
    if not listed and texts:
        members.append(say("measure.group_but", codes=comma.join(texts)))
    elif not listed:
        members.append(say("measure.group_other"))
    if without_value:
        members.append(say("measure.group_perhaps_missing"))
    return say("measure.group_rest_of", members=comma.join(members))


def value_in_words(say: Say, figure: Figure, show: Callable[[float], str]) -> str:
    """Return the value in its unit, with its interval and how many records are behind it; a dash if it is not disclosed.

    Parameters
    ----------
    say : callable
        A catalogue.
    show : callable
        Writes a figure that has no unit.
    """
    if figure.value is None:
        return "–"
    if figure.n:
        records = say("validation_words.records", n=f"{figure.n:,}")
    else:
        records = ""
    if figure.measure == "psi":  # its lower end says only whether chance explains it
        return show(figure.value) + say(f"validation_words.{'beyond' if figure.low else 'within'}_chance") + records

    def shown(value: float) -> str:
        if figure.measure in COUNT_MEASURES:
            return f"{value:,.0f}"
        if figure.measure not in POINTS | SHARE_MEASURES:
            return show(value)
        return f"{100 * value:z.{1 if figure.measure in GAINS else 2}f}".replace("-", "−")

    if figure.low is None or figure.high is None:
        ends = ""
    else:
        ends = f" [{shown(figure.low)}, {shown(figure.high)}]"
    return shown(figure.value) + ends + _unit(say, figure.measure) + records


def limit_in_words(say: Say, measure: str, sense: Sense, warn: float | None, fail: float | None) -> str:
    """Beyond what the test warns and fails, in the unit of the value."""

    def shown(end: float) -> str:
        if measure in POINTS | SHARE_MEASURES:
            scaled = f"{100 * end:g}"
        else:
            scaled = f"{end:g}"
        return scaled + _unit(say, measure)

    return say("words.comma").join(
        say(f"validation_words.{name}_{sense}", end=shown(end))
        for name, end in (("warn", warn), ("fail", fail))
        if end is not None
    )


def _unit(say: Say, measure: str) -> str:
    """Return the unit that a measure's numbers are followed by; empty if it has none."""
    if measure in SHARE_MEASURES:
        return "\u00a0%"
    if measure in POINTS:
        return f" {say('validation_words.points')}"
    return ""


def seen_in_words(say: Say, measure: str, sense: Sense, shows_from: float | None) -> str:
    """Return the value at which a breach would have shown; empty if the figure is not undecided."""
    if shows_from is None:
        return ""
    if measure in POINTS | SHARE_MEASURES:
        scaled = f"{100 * shows_from:.1f}"
    else:
        scaled = f"{shows_from:.2f}"
    return say(f"validation_words.shows_{sense}", end=scaled.replace("-", "−") + _unit(say, measure))


def headroom_used(judged: Judged) -> tuple[float, float, float] | None:
    """How much of the room to failing a figure and the best and worst end of its interval use up, 0 … :data:`MOST_ROOM` (1 = at the limit).

    None if there is no such room.
    """
    best, worst = judged.figure.ends(judged.sense)
    limit = judged.fail
    if not limit or judged.figure.value is None or best is None or worst is None:
        return None

    def used(end: float) -> float:
        share = MOST_ROOM
        if judged.sense == "max":
            share = end / limit
        elif end > 0:
            share = limit / end
        return min(max(share, 0.0), MOST_ROOM)

    return used(judged.figure.value), used(best), used(worst)
