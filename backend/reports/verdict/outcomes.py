"""Facts about groups of people: who is accepted how often, proxies of a protected feature, whether old age costs anything.

Acceptance is judged at the line of the model's policy. As long as no line was set, it is judged along all cut-offs that were
measured: no single one of them decides about a person.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from backend.compliance.assessment import DISPARITY, ELDERLY, PROXIES
from backend.fairness.age_discrimination import AgeCheck, AgeGap
from backend.fairness.disparity import BY_CUTOFF, DIFFERENCE, FOUR_FIFTHS, RATIO, REFERENCE
from backend.fairness.evidence import Evidence
from backend.fairness.intervals import TAILS, Z
from backend.i18n import Text
from backend.protocols.group_sums.grouping import features_of
from backend.remark import Remark
from backend.reports.verdict.facts import Fact, Figure, Kind, State, named, written
from backend.reports.verdict.known import Known

PAGE = "compliance"
POWER = 0.8  # chance with which the smallest gap that could be seen would have been seen (Cohen 1988)
SEEN_FROM_ERRORS = Z + NormalDist().inv_cdf(POWER)  # 2.80 standard errors
PROTECTED = ("prohibited", "conditional")  # status of a rule that makes a feature a protected one
SELECTION = "selection rate"


@dataclass(frozen=True)
class Comparison:
    """Acceptance of one group over that of the reference group, at one cut-off.

    Attributes
    ----------
    ratio, low, high : float
        The smaller of the two rates over the larger one, with an interval that holds together with those of all other comparisons.
    favoured : bool
        Whether this group is the one that is accepted more often.
    gap : Evidence or None
        This group's rate less the reference group's.
    cutoff : float or None
        None = the line that the decisions were measured at.
    """

    group: Text
    ratio: float
    low: float
    high: float
    favoured: bool
    n: int
    gap: Evidence | None
    cutoff: float | None

    @property
    def state(self) -> State:
        """Return how the ratio and its interval compare with four fifths."""
        if self.high < FOUR_FIFTHS:
            return "broken"
        return "undecided" if self.low < FOUR_FIFTHS else "no_breach"


def outcome_facts(model: Known) -> Iterator[Fact]:
    """Yield what is known about groups: acceptance, proxies, elderly ages; and for which protected features it was not measured."""
    if model.record.task == "binary":
        for feature in model.disparities:
            yield _acceptance(model, feature)
        yield from _not_measured(model, DISPARITY, model.disparities.keys())
    for feature in model.proxies:
        yield _proxies(model, feature)
    yield from _not_measured(model, PROXIES, model.proxies.keys())
    yield from _ages(model)


def line_is_set(model: Known, feature: str) -> bool:
    """Return whether a feature's groups were measured at a line that was set and is still in force."""
    basis = model.bases.get((DISPARITY, feature))
    return basis is not None and model.policy.is_set and basis.policy == model.policy.version


def comparisons(rows: Sequence[Evidence], *, along: bool) -> tuple[Comparison, ...]:
    """Return every group against the reference group, the worst first.

    Parameters
    ----------
    along : bool
        Whether to compare at every cut-off of the range, and not at the line.
    """
    rate = BY_CUTOFF if along else SELECTION
    ratios = [row for row in rows if row.measure == f"{rate}, {RATIO}" and row.value is not None]
    gaps = {(row.about, row.cutoff): row for row in rows if row.measure == f"{rate}, {DIFFERENCE}"}
    wider = _widening(len(ratios))
    groups_compared = [_comparison(row, gaps.get((row.about, row.cutoff)), wider) for row in ratios]
    return tuple(sorted(groups_compared, key=lambda group: (group.high >= FOUR_FIFTHS, group.low)))


def _widening(comparisons: int) -> float:
    """Return by what factor an interval of 95 % has to be wider so that this many hold together (Bonferroni)."""
    if comparisons < 2:
        return 1.0
    return NormalDist().inv_cdf(1 - TAILS[0] / comparisons) / Z


def _comparison(row: Evidence, gap: Evidence | None, wider: float) -> Comparison:
    """Return one comparison; its interval is widened on the logarithm of the ratio, where it is symmetric."""
    ratio = row.value or 0.0
    low = row.low or 0.0
    high = ratio if row.high is None else row.high
    if ratio > 0:
        low = ratio * (low / ratio) ** wider
        high = ratio * (high / ratio) ** wider
    else:
        high *= wider
    favoured = ratio > 1
    if favoured:
        # The reference group is the one that is accepted less often.
        inverse = 1 / low if low > 0 else float("inf")
        ratio = 1 / ratio
        low = 1 / high
        high = inverse
        gap = None if gap is None else _other_way(gap)
    return Comparison(row.about, ratio, low, high, favoured, row.n, gap, row.cutoff)


def _other_way(gap: Evidence) -> Evidence:
    """Return a difference as that of the reference group less the other one, as the ratio is then read."""
    if gap.value is None or gap.low is None or gap.high is None:
        return gap
    return replace(gap, value=-gap.value, low=-gap.high, high=-gap.low)


def reference_of(rows: Sequence[Evidence]) -> Text:
    """Return the group that the others are compared with."""
    return next((row.about for row in rows if row.measure == f"{SELECTION}, {REFERENCE}"), Text())


def smallest_gap(row: Evidence) -> float:
    """Return the smallest difference of two shares that this number of records would have shown, from the interval of the measured one.

    It is 2.80 standard errors: a difference as large is found with 80 % at a level of 5 %.
    """
    if row.low is None or row.high is None:
        return 0.0
    return SEEN_FROM_ERRORS * (row.high - row.low) / (2 * Z)


def _acceptance(model: Known, feature: str) -> Fact:
    rows = model.disparities[feature]
    name = model.name(feature)
    title = Remark("verdict_title_acceptance", {"feature": name}).both()
    along = not line_is_set(model, feature)
    at_one_line = not any(row.measure.startswith(BY_CUTOFF) for row in rows)
    if along and at_one_line and len(features_of(feature, model.features)) > 1:
        # If the Guest holds one of two features, both together are counted at one line alone, and no other one may lead.
        measured_on = model.bases.get((DISPARITY, feature))
        if measured_on is None or measured_on.cutoff is None:
            line_text = "–"
        else:
            line_text = written(measured_on.cutoff, "share")
        unjudged = Remark("verdict_pair_without_line", {"feature": name, "line": line_text})
        return Fact("outcomes", feature, "not_measured", title, unjudged.both(), PAGE)
    groups_compared = comparisons(rows, along=along)
    if not groups_compared:
        sentence = Remark("verdict_groups_too_small", {"feature": name})
        return Fact("outcomes", feature, "not_measured", title, sentence.both(), PAGE)
    worst = groups_compared[0]
    if worst.favoured:
        groups = (reference_of(rows), worst.group)
    else:
        groups = (worst.group, reference_of(rows))
    basis = model.bases.get((DISPARITY, feature))
    line = worst.cutoff
    if not along and basis is not None:
        line = basis.cutoff
    figure = Figure(worst.ratio, worst.low, worst.high, worst.n, "ratio")
    at = {"feature": name, "line": "–" if line is None else written(line, "share"), "n": len(groups_compared)}
    where = Remark("verdict_at_line", at)
    if along:
        where = Remark("verdict_not_at_line" if model.policy.is_set else "verdict_no_line_set", at)
    elif len(groups_compared) > 1:
        where = Remark("verdict_at_line_together", at)
    values = {
        "where": where,
        "group": groups[0],
        "other": groups[1],
        "ratio": figure.shown,
        "n": worst.n,
        "gap": _gap(worst.gap),
    }
    codes = {
        "broken": Remark("verdict_below_four_fifths", values),
        "undecided": Remark("verdict_four_fifths_undecided", values),
        "no_breach": Remark("verdict_above_four_fifths", values),
    }
    return Fact("outcomes", feature, worst.state, title, codes[worst.state].both(), PAGE, figure)


def _gap(row: Evidence | None) -> Remark:
    """Return the difference in percentage points, whether it is beyond chance, and the smallest one that could be seen."""
    if row is None or row.value is None or row.low is None or row.high is None:
        return Remark("verdict_gap_unknown")
    figure = Figure(row.value, row.low, row.high, row.n, "points")
    smallest = f"{100 * smallest_gap(row):.1f}"
    if row.low <= 0 <= row.high:
        return Remark("verdict_gap_within_chance", {"gap": figure.shown, "seen": smallest})
    return Remark("verdict_gap_beyond_chance", {"gap": figure.shown, "seen": smallest})


def _not_measured(model: Known, claim: str, measured: Collection[str]) -> Iterator[Fact]:
    """Yield one fact about the protected features for which a claim was not measured."""
    protected = []
    for f in model.compliance.findings:
        if f.status in PROTECTED and f.usage.splits:
            protected.append(f.feature)
    lacking = [name for name in dict.fromkeys((*protected, *model.record.exclude)) if name not in measured]
    if not lacking:
        return
    names = named([model.name(name) for name in lacking])
    refused = [model.bases[claim, name].refused for name in lacking if (claim, name) in model.bases]
    hosts = tuple(model.title(host) for host in dict.fromkeys(filter(None, refused)))
    values = {"features": names, "n": len(lacking)}
    if claim == DISPARITY:
        title = Remark("verdict_title_acceptance_of", values)
        sentence = Remark("verdict_acceptance_not_measured", values)
    else:
        title = Remark("verdict_title_proxies_of", values)
        sentence = Remark("verdict_proxies_not_measured", values)
    if hosts:
        sentence = Remark("verdict_not_agreed", {"what": sentence, "parties": hosts})
    kind: Kind = "outcomes" if claim == DISPARITY else "proxies"
    yield Fact(kind, "", "not_measured", title.both(), sentence.both(), PAGE)


def _proxies(model: Known, feature: str) -> Fact:
    """Return what goes with a protected feature; how close is too close is for a person to say."""
    rows = model.proxies[feature]
    name = model.name(feature)
    title = Remark("verdict_title_proxies", {"feature": name}).both()
    basis = model.bases.get((PROXIES, feature))
    if not rows:
        sentence = Remark("verdict_no_proxies", {"feature": name, "n": basis.n if basis else 0})
        return Fact("proxies", feature, "no_breach", title, sentence.both(), PAGE)
    closest = rows[0]
    figure = Figure(closest.value or 0.0, closest.low, closest.high, closest.n, "ratio")
    values = {"feature": name, "closest": model.name(closest.about.en), "v": figure.shown, "n": len(rows)}
    sentence = Remark("verdict_proxies", {**values, "records": closest.n})
    return Fact("proxies", feature, "undecided", title, sentence.both(), PAGE, figure)


def _ages(model: Known) -> Iterator[Fact]:
    """Yield whether elderly ages have a negative factor, if a rule asks and the model uses the feature."""
    features_seen: set[str] = set()
    for finding in model.compliance.findings:
        if not finding.check or not finding.usage.splits or finding.feature in features_seen:
            continue
        features_seen.add(finding.feature)
        title = Remark("verdict_title_elderly").both()
        if finding.ages is None:
            if (ELDERLY, finding.feature) in model.bases:
                refused = model.bases[ELDERLY, finding.feature].refused
            else:
                refused = ""
            sentence = Remark("verdict_elderly_not_measured")
            if refused:
                sentence = Remark("verdict_not_agreed", {"what": sentence, "parties": (model.title(refused),)})
            yield Fact("ages", finding.feature, "not_measured", title, sentence.both(), PAGE)
            continue
        yield _age_fact(finding.feature, title, finding.ages)


def _age_fact(feature: str, title: Text, check: AgeCheck) -> Fact:
    worst = _worst_gap(check)
    figure = Figure(worst.worse, worst.low, worst.high, check.n, "points")
    values = {
        "gap": figure.shown,
        "n": check.n,
        "seen": f"{100 * SEEN_FROM_ERRORS * (worst.high - worst.low) / (2 * Z):.1f}",
    }
    if check.verdict == "negative":
        return Fact("ages", feature, "broken", title, Remark("verdict_elderly_worse", values).both(), PAGE, figure)
    if check.verdict == "undecided":
        return Fact(
            "ages", feature, "undecided", title, Remark("verdict_elderly_undecided", values).both(), PAGE, figure
        )
    return Fact("ages", feature, "no_breach", title, Remark("verdict_elderly_no_worse", values).both(), PAGE, figure)


def _worst_gap(check: AgeCheck) -> AgeGap:
    """Return the younger class against which elderly ages fare worst."""
    return max(check.gaps, key=lambda gap: gap.low)
