"""One fact about a model, with its state, sentence and figure; and the verdict that all facts make together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from backend.data.rounding import Rounded
from backend.fairness.evidence import Measured
from backend.i18n import Text
from backend.remark import Remark

State = Literal["broken", "undecided", "not_measured", "no_breach"]
STATES: tuple[State, ...] = get_args(State)  # worst first
Kind = Literal[
    "rule",
    "outcomes",
    "ages",
    "test",
    "monitoring",
    "change",
    "question",
    "leak",
    "quality",
    "direction",
    "policy",
    "proxies",
    "meaning",
]
KINDS: tuple[Kind, ...] = get_args(Kind)  # of two facts in one state the first kind is worse
Unit = Literal["ratio", "share", "points", "number"]
TITLES_NAMED = 3  # titles that a headline names


@dataclass(frozen=True)
class Figure(Measured):
    """A measured number, as a fact states it.

    Attributes
    ----------
    unit : {"ratio", "share", "points", "number"}
        A share is written as percent, a difference of two shares in percentage points.
    """

    value: Rounded
    unit: Unit = "number"

    @property
    def shown(self) -> str:
        """Return the number with its interval, the same in every language: ``0.83 [0.76, 0.91]``."""
        value = written(self.value, self.unit)
        if self.low is None or self.high is None:
            return value
        return f"{value} [{written(self.low, self.unit)}, {written(self.high, self.unit)}]"


def written(value: float, unit: Unit) -> str:
    """Return a number in the digits of its unit.

    Examples
    --------
    >>> written(-0.0382, "points"), written(0.6142, "share").replace("\u00a0", " "), written(0.8312, "ratio")
    ('−3.8', '61.4 %', '0.83')
    """
    if unit == "points":
        return f"{100 * value:+.1f}".replace("-", "−")
    if unit == "share":
        return f"{100 * value:.1f}\u00a0%"
    if unit == "ratio":
        return f"{value:.2f}"
    return _three_digits(value).replace("-", "−")


def _three_digits(value: float) -> str:
    """Return a number with three significant digits, zeros among them."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1:
        return f"{value:.2f}"
    if size >= 0.001 or size == 0:
        return f"{value:.3f}"
    return f"{value:.2g}"


@dataclass(frozen=True)
class Fact:
    """One thing that is true of a model.

    Attributes
    ----------
    about : str
        Name of the feature or id of the test; empty for a fact about the whole model.
    state : {"broken", "undecided", "not_measured", "no_breach"}
        A rule or a limit is broken; it is open (a person has to decide, or there are too few records); it was not measured;
        it was measured and no breach was shown.
    title : Text
        A few words, as a headline names it.
    page : str
        Where to act: name of the page.
    """

    kind: Kind
    about: str
    state: State
    title: Text
    sentence: Text
    page: str
    figure: Figure | None = None


@dataclass(frozen=True)
class Verdict:
    """All facts about one model, the worst first.

    Attributes
    ----------
    headline : Text
        The worst facts by their titles, and the number of facts in each state.
    """

    model: str
    headline: Text
    facts: tuple[Fact, ...]

    @property
    def state(self) -> State:
        """Return the worst state."""
        return self.facts[0].state if self.facts else "not_measured"

    def count(self, state: State) -> int:
        """Return the number of facts in a state."""
        return sum(fact.state == state for fact in self.facts)

    def of(self, *kinds: Kind) -> tuple[Fact, ...]:
        """Return the facts of some kinds, the worst first."""
        return tuple(fact for fact in self.facts if fact.kind in kinds)


def verdict_of(model: str, facts: Iterable[Fact]) -> Verdict:
    """Return the verdict that facts make, the worst first."""
    ordered = tuple(sorted(facts, key=lambda fact: (STATES.index(fact.state), KINDS.index(fact.kind))))
    return Verdict(model, _headline(ordered), ordered)


def named(titles: Sequence[Text | Remark | str], max_titles: int = TITLES_NAMED) -> tuple[object, ...]:
    """Return the first titles as a list for a sentence, and the number of the others."""
    n_more = len(titles) - max_titles
    if n_more <= 0:
        return tuple(titles)
    return (*titles[:max_titles], Remark("verdict_more", {"n": n_more}))


def _headline(facts: Sequence[Fact]) -> Text:
    """Return the first sentence wherever the model is shown."""
    state = facts[0].state if facts else "not_measured"
    titles = [fact.title for fact in facts if fact.state == state]
    counts = []
    for each_state in STATES:
        n = sum(fact.state == each_state for fact in facts)
        if n:
            counts.append(Remark(f"verdict_count_{each_state}", {"n": n}))
    return Remark(f"verdict_headline_{state}", {"titles": named(titles), "counts": tuple(counts)}).both()
