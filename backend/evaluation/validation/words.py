"""How a figure of the suite is named and written in one language; pages, reports and the command line share it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from backend.evaluation.validation.suite import Figure, Judged, Sense

Say = Callable[..., str]
OWN_SOURCE = "the suite's own"  # as suite.toml has it; the names of papers and libraries stay


def about_in_words(say: Say, figure: Figure, feature: str, party: str, codes: Mapping[str, str]) -> str:
    """What a figure is: its measure, and of which party, feature and group.

    Parameters
    ----------
    say : callable
        A catalogue.
    feature, party : str
        As they are shown; empty where the figure is about neither.
    codes : mapping of str to str
        Code of the feature → what it stands for.
    """
    measure = say(f"validation.measure_{figure.measure}")
    if figure.feature:
        if not (figure.kind or figure.group):
            return say("validation_words.about_feature", measure=measure, feature=feature)
        group = say(f"measure.group_{figure.kind}") if figure.kind in ("missing", "rest") else figure.group
        return say("validation_words.about", measure=measure, feature=feature, group=codes.get(group, group))
    return say("validation_words.about_party", measure=measure, party=party) if figure.party else measure


def value_in_words(figure: Figure, show: Callable[[float], str]) -> str:
    """The value with its interval; a dash where it is not disclosed."""
    if figure.value is None:
        return "–"
    ends = "" if figure.low is None or figure.high is None else f" [{show(figure.low)}, {show(figure.high)}]"
    return show(figure.value) + ends


def limit_in_words(say: Say, sense: Sense, warn: float | None, fail: float | None, certain: str) -> str:
    """Beyond what the test warns and fails, and whether the whole interval has to lie there."""
    ends = (("warn", warn), ("fail", fail))
    limits = say("words.comma").join(
        say(f"validation_words.{name}_{sense}", end=f"{end:g}") for name, end in ends if end is not None
    )
    return limits + (say(f"validation_words.certain_{certain}") if certain else "")


def room_used(judged: Judged) -> float | None:
    """How much of the room to failing is used up, 0 … 2 (1 = at the threshold); None where there is no such room."""
    end = judged.deciding
    if end is None or not judged.fail:
        return None
    share = end / judged.fail if judged.sense == "max" else judged.fail / end if end > 0 else 2.0
    return min(max(share, 0.0), 2.0)
