"""Two models, fact by fact: is the second better, worse, or is no change measurable? A change is one only if its interval says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, isnan
from typing import Literal, Protocol, get_args

from backend.compliance.assessment import DISPARITY
from backend.fairness.disparity import DIFFERENCE
from backend.fairness.evidence import Evidence
from backend.fairness.intervals import of_difference
from backend.i18n import NO_TEXT, Text, in_both
from backend.remark import Remark
from backend.reports.verdict.facts import Fact, Figure, Verdict, named, written
from backend.reports.verdict.known import Known
from backend.reports.verdict.outcomes import SELECTION, reference_of, smallest_gap

Way = Literal["worse", "better", "not_measured", "same"]
WAYS: tuple[Way, ...] = get_args(Way)  # in the order in which they are read
DECISIVE = ("auc", "accuracy", "rmse")  # the figures of quality that are compared, if they apply


class Changed(Protocol):
    """A figure of quality in both models (:class:`backend.reports.model_comparison.QualityFigure`)."""

    @property
    def name(self) -> str:
        """Figure of quality."""

    @property
    def before(self) -> float:
        """Of the first model."""

    @property
    def after(self) -> float:
        """Of the second model."""

    @property
    def low(self) -> float:
        """Lower end of the difference's interval; NaN if none is known."""

    @property
    def high(self) -> float:
        """Upper end of it."""

    @property
    def better(self) -> int:
        """+1, -1, or 0 if the interval holds 0."""


@dataclass(frozen=True)
class Change:
    """One fact in both models.

    Attributes
    ----------
    way : {"worse", "better", "not_measured", "same"}
        Of the second model against the first; "same" = no measurable change.
    wider : bool
        Of a gap between groups: whether it is wider in the second model, measurably or not.
    """

    kind: Literal["quality", "outcomes", "rule", "leak", "test"]
    about: str
    way: Way
    title: Text
    sentence: Text
    wider: bool = False


@dataclass(frozen=True)
class Changes:
    """What is better and what is worse in the second model; `headline` answers which of the two is better."""

    before: str
    after: str
    headline: Text
    changes: tuple[Change, ...]

    def of(self, way: Way) -> tuple[Change, ...]:
        """Return the changes of one way."""
        return tuple(change for change in self.changes if change.way == way)


NOTHING_COMPARED = Changes("", "", NO_TEXT, ())


def changes(
    first: Known,
    second: Known,
    quality: Sequence[Changed],
    verdicts: tuple[Verdict, Verdict],
) -> Changes:
    """Compare two models of one federation.

    Parameters
    ----------
    quality : sequence
        Figures of quality of both, with the intervals of their differences.
    verdicts : (Verdict, Verdict)
        Of the first and the second model.
    """
    unordered = [
        *_quality(quality),
        *_gaps(first, second),
        *_rules(second, verdicts),
        *_leak(first, second),
        *_tests(*verdicts),
    ]
    ordered = tuple(sorted(unordered, key=lambda change: (WAYS.index(change.way), not change.wider)))
    return Changes(first.record.id, second.record.id, _headline(ordered), ordered)


def _headline(changes_found: Sequence[Change]) -> Text:
    """Return which of two models is better."""
    titles: dict[str, list[Text]] = {way: [] for way in WAYS}
    for change in changes_found:
        titles[change.way].append(change.title)
    values = {"better": named(titles["better"]), "worse": named(titles["worse"])}
    if titles["better"] and titles["worse"]:
        answer = Remark("verdict_which_neither", values)
    elif titles["better"]:
        answer = Remark("verdict_which_second", values)
    elif titles["worse"]:
        answer = Remark("verdict_which_first", values)
    else:
        answer = Remark("verdict_which_same", {"n": len(titles["same"])})
    missing = titles["not_measured"]
    if missing:
        return Remark("verdict_which_missing", {"answer": answer, "titles": named(missing)}).both()
    return answer.both()


def _quality(figures: Sequence[Changed]) -> Iterator[Change]:
    for figure in figures:
        if figure.name not in DECISIVE:
            continue
        title = in_both(f"figure.{figure.name}")
        values = {
            "figure": title,
            "before": f"{figure.before:.4f}",
            "after": f"{figure.after:.4f}",
            "low": f"{figure.low:+.4f}".replace("-", "−"),
            "high": f"{figure.high:+.4f}".replace("-", "−"),
        }
        if isnan(figure.low):
            yield Change("quality", figure.name, "not_measured", title, Remark("verdict_moved", values).both())
        elif figure.better > 0:
            yield Change("quality", figure.name, "better", title, Remark("verdict_improves", values).both())
        elif figure.better < 0:
            yield Change("quality", figure.name, "worse", title, Remark("verdict_worsens", values).both())
        else:
            yield Change("quality", figure.name, "same", title, Remark("verdict_no_change", values).both())


def _gaps(first: Known, second: Known) -> Iterator[Change]:
    """Yield how the widest gap by each feature moved; not measured if only one model has it, or at another line."""
    for feature in dict.fromkeys((*first.disparities, *second.disparities)):
        name = second.name(feature)
        title = Remark("verdict_title_gap", {"feature": name}).both()
        pair = _widest_pair(first, second, feature)
        if pair is None:
            sentence = Remark("verdict_gap_not_comparable", {"feature": name})
            yield Change("outcomes", feature, "not_measured", title, sentence.both())
        else:
            yield _gap(name, feature, title, reference_of(second.disparities[feature]), *pair)


def _widest_pair(first_model: Known, second_model: Known, feature: str) -> tuple[Evidence, Evidence] | None:
    """Return the same group's gap in both models, of the group whose gap is the widest in either; None if none is in both."""
    rows = [model.disparities.get(feature, ()) for model in (first_model, second_model)]
    if not all(rows) or reference_of(rows[0]) != reference_of(rows[1]):
        return None
    bases = [model.bases.get((DISPARITY, feature)) for model in (first_model, second_model)]
    if bases[0] is None or bases[1] is None or bases[0].cutoff != bases[1].cutoff:
        return None
    first = _differences(rows[0])
    second = _differences(rows[1])
    shared = [group for group in first if group in second]
    if not shared:
        return None
    widest = max(shared, key=lambda group: max(abs(first[group].value or 0), abs(second[group].value or 0)))
    return first[widest], second[widest]


def _differences(rows: Sequence[Evidence]) -> Mapping[Text, Evidence]:
    """Return group → its acceptance less the reference group's, of groups that are large enough."""
    measure = f"{SELECTION}, {DIFFERENCE}"
    return {row.about: row for row in rows if row.measure == measure and row.value is not None}


def _gap(name: Text, feature: str, title: Text, reference: Text, first_gap: Evidence, second_gap: Evidence) -> Change:
    first = _figure(first_gap)
    second = _figure(second_gap)
    moved = second.value - first.value
    low, high = difference_of(first, second)
    sign = -1 if first.value < 0 else 1
    narrower = abs(second.value) < abs(first.value)
    measurable = (low > 0 or high < 0) and sign * second.value > 0
    values = {
        "feature": name,
        "group": second_gap.about,
        "reference": reference,
        "before": first.shown,
        "after": second.shown,
        "change": Figure(moved, low, high, unit="points").shown,
        "seen": f"{100 * smallest_gap(Evidence(about=second_gap.about, measure='', n=0, value=moved, low=low, high=high)):.1f}",
    }
    sentence = Remark("verdict_gap_same", values)
    way: Way = "same"
    if measurable and narrower:
        sentence = Remark("verdict_gap_narrower", values)
        way = "better"
    elif measurable:
        sentence = Remark("verdict_gap_wider", values)
        way = "worse"
    elif abs(second.value) > abs(first.value):
        sentence = Remark("verdict_gap_perhaps_wider", values)
    if _within_chance(first) and not _within_chance(second):
        sentence = Remark("verdict_gap_now_shown", {"what": sentence})
    return Change("outcomes", feature, way, title, sentence.both(), wider=abs(second.value) > abs(first.value))


def _figure(row: Evidence) -> Figure:
    value = row.value or 0.0
    low = value if row.low is None else row.low
    high = value if row.high is None else row.high
    return Figure(value, low, high, row.n, "points")


def _within_chance(figure: Figure) -> bool:
    """Return whether the interval holds "no difference"."""
    return figure.low is not None and figure.high is not None and figure.low <= 0 <= figure.high


def difference_of(first: Figure, second: Figure) -> tuple[float, float]:
    """Return the interval of `second` less `first` from the intervals of both (Zou and Donner 2008), as if of different people.

    Both are of the same people, whose differences are smaller: the interval is wider than need be, and claims no change without one.
    """
    moved = second.value - first.value
    below = hypot(second.value - _low(second), _high(first) - first.value)
    above = hypot(_high(second) - second.value, first.value - _low(first))
    return moved - below, moved + above


def _low(figure: Figure) -> float:
    return figure.value if figure.low is None else figure.low


def _high(figure: Figure) -> float:
    return figure.value if figure.high is None else figure.high


def _rules(second_model: Known, verdicts: tuple[Verdict, Verdict]) -> Iterator[Change]:
    """Yield which flagged features one model uses and the other does not."""
    first = _flagged(verdicts[0])
    second = _flagged(verdicts[1])
    for feature in dict.fromkeys((*first, *second)):
        name = {"feature": second_model.name(feature)}
        if feature in first and feature in second:
            title = Remark("verdict_title_use", name).both()
            sentence = Remark("verdict_still_in_use", {"what": second[feature].sentence})
            yield Change("rule", feature, "same", title, sentence.both())
        elif feature in first:
            title = Remark("verdict_title_no_use", name).both()
            sentence = Remark("verdict_no_longer_in_use", {"what": first[feature].sentence})
            yield Change("rule", feature, "better", title, sentence.both())
        else:
            title = Remark("verdict_title_new_use", name).both()
            sentence = Remark("verdict_newly_in_use", {"what": second[feature].sentence})
            yield Change("rule", feature, "worse", title, sentence.both())


def _flagged(verdict: Verdict) -> dict[str, Fact]:
    """Return feature in use → the worst fact about rules that object to it."""
    worst: dict[str, Fact] = {}
    for fact in verdict.of("rule"):
        if _in_use(fact):
            worst.setdefault(fact.about, fact)
    return worst


def _in_use(fact: Fact) -> bool:
    """Return whether a rule objects to a feature that the model uses."""
    return fact.state in ("broken", "undecided") and fact.figure is not None and fact.figure.value > 0


def _leak(first_model: Known, second_model: Known) -> Iterator[Change]:
    """Yield how many scores fit one path only in both models."""
    releases = first_model.record.release, second_model.record.release
    title = Remark("verdict_title_leak").both()
    if releases[0] is None and releases[1] is None:
        return
    if releases[0] is None or releases[1] is None or not (releases[0].measurable and releases[1].measurable):
        yield Change("leak", "", "not_measured", title, Remark("verdict_leak_not_comparable").both())
        return
    first = releases[0]
    second = releases[1]
    low, high = of_difference(second.named, second.people, first.named, first.people)
    values = {"before": written(first.named, "share"), "after": written(second.named, "share")}
    if low > 0:
        yield Change("leak", "", "worse", title, Remark("verdict_leak_more", values).both())
    elif high < 0:
        yield Change("leak", "", "better", title, Remark("verdict_leak_less", values).both())
    else:
        yield Change("leak", "", "same", title, Remark("verdict_leak_same", values).both())


def _tests(first: Verdict, second: Verdict) -> Iterator[Change]:
    """Yield which tests of the validation fail in one model only."""
    title = Remark("verdict_title_validation").both()
    sides = [side.of("test") for side in (first, second)]
    if not all(any(fact.state != "not_measured" for fact in side) for side in sides):
        yield Change("test", "", "not_measured", title, Remark("verdict_tests_not_comparable").both())
        return
    failing = [{fact.about: fact for fact in side if fact.state == "broken"} for side in sides]
    for test in dict.fromkeys((*failing[0], *failing[1])):
        if test in failing[0] and test in failing[1]:
            fact = failing[1][test]
            yield Change("test", test, "same", fact.title, fact.sentence)
        elif test in failing[0]:
            fact = failing[0][test]
            yield Change(
                "test", test, "better", fact.title, Remark("verdict_no_longer", {"what": fact.sentence}).both()
            )
        else:
            fact = failing[1][test]
            yield Change("test", test, "worse", fact.title, fact.sentence)
    if not failing[0] and not failing[1]:
        yield Change("test", "", "same", title, Remark("verdict_no_test_fails").both())


def change_facts(comparison: Changes, name: str) -> Iterator[Fact]:
    """Yield what a model changed against the one that it replaces, as facts about it.

    Parameters
    ----------
    name : str
        What the replaced model is called.
    """
    worse = [
        change for change in comparison.changes if change.way == "worse" or (change.wider and change.way == "same")
    ]
    for change in worse:
        title = Remark("verdict_title_change", {"what": change.title, "model": name})
        sentence = Remark("verdict_change", {"what": change.sentence, "model": name})
        yield Fact("change", change.about, "undecided", title.both(), sentence.both(), "compare_models")
    missing = comparison.of("not_measured")
    if missing:
        title = Remark("verdict_title_change_missing", {"model": name})
        values = {"model": name, "titles": named([change.title for change in missing])}
        sentence = Remark("verdict_change_missing", values)
        yield Fact("change", "", "not_measured", title.both(), sentence.both(), "compare_models")
    better = comparison.of("better")
    if better:
        title = Remark("verdict_title_change_better", {"model": name})
        values = {"model": name, "titles": named([change.title for change in better])}
        sentence = Remark("verdict_change_better", values)
        yield Fact("change", "better", "no_breach", title.both(), sentence.both(), "compare_models")
