"""The suite's tests and thresholds as data, an operator's file on top, and the verdict of each test. Pure: knows figures, no model.

An operator's file may tighten a threshold, set one where the suite has none, make another test a floor, and switch off what is no floor.
It can loosen nothing; what was switched off is in the result with the reason given.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from backend.data.bounded_text import read_toml
from backend.data.rounding import Rounded
from backend.data.validation import field_problems
from backend.errors import ParameterError
from backend.fairness.evidence import Measured
from backend.i18n import Text
from backend.remark import Remark

Sense = Literal["min", "max"]
Verdict = Literal["pass", "undecided", "warn", "fail", "not_provided", "off"]
Overall = Literal["pass", "undecided", "warn", "fail", "incomplete"]
Missing = Literal[
    "two_outcomes",
    "no_scores",
    "no_training_scores",
    "no_time",
    "no_challenger",
    "no_host",
    "no_direction",
    "no_attribute",
    "no_outcomes",
    "no_feature_named",
    "few_people",
    "without_decisions",
    "few_trees",
    "few_records",
    "not_measured",
    "plaintext",
    "refused",
    "unreachable",
]
EXCUSED: frozenset[Missing] = frozenset({"two_outcomes", "no_host", "no_direction", "no_attribute", "few_trees"})
"""Where a floor has nothing to measure; any other gap leaves the whole incomplete."""
WORST: dict[Verdict, int] = {"fail": 4, "warn": 3, "undecided": 2, "pass": 1, "not_provided": 0, "off": 0}
MAX_BYTES = 100_000  # of an operator's file
CUTOFF = 0.5


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MeasureLimits(_Part):
    """Thresholds of one measure.

    Attributes
    ----------
    sense : {"min", "max"}
        Whether smaller or larger values are worse.
    warn, fail : float or None
        The test warns or fails if the whole interval is beyond it.
    """

    measure: str
    sense: Sense
    warn: float | None = None
    fail: float | None = None

    @property
    def last(self) -> float | None:
        """The limit that a test has to stay within to pass."""
        return self.warn if self.fail is None else self.fail

    def worse(self, value: float, than: float) -> bool:
        """Return whether a value is beyond another in the bad direction."""
        return value < than if self.sense == "min" else value > than


class Test(_Part):
    """One test: its limits, and where they come from."""

    __test__ = False  # pytest collects what is called so

    id: str
    group: str
    floor: bool
    source: Text
    reason: str
    limit: tuple[MeasureLimits, ...]


class _File(_Part):
    version: str
    test: tuple[Test, ...]


class OwnLimit(_Part):
    """Thresholds of one measure as an operator tightens them."""

    warn: float | None = None
    fail: float | None = None


class OperatorConfig(_Part):
    """An operator's file.

    Attributes
    ----------
    cutoff : float or None
        ``decline`` at or above this probability of the positive label.
    time : str
        The feature, of any party, that says when a record is from.
    attributes : tuple of str
        Protected features in addition to those that the rules find.
    limits : dict of str to OwnLimit
        Measure → tighter thresholds.
    floors : tuple of str
        More tests that must be measured.
    off : dict of str to str
        Test → why it is switched off.
    """

    cutoff: float | None = Field(None, gt=0, lt=1)
    time: str = ""
    attributes: tuple[str, ...] = ()
    limits: dict[str, OwnLimit] = {}
    floors: tuple[str, ...] = ()
    off: dict[str, str] = {}


@dataclass(frozen=True, kw_only=True)
class Figure(Measured):
    """One measured number of a test.

    Attributes
    ----------
    party, feature : str
        What it is about; empty = the whole.
    kind, group : str
        The group of the feature, as :class:`backend.protocols.group_sums.grouping.Group`.
    apart : tuple of str
        Of a group that was put together: the codes with a group of their own, and an empty text if people without a value have one.
    """

    measure: str
    party: str = ""
    feature: str = ""
    kind: str = ""
    group: str = ""
    apart: tuple[str, ...] = ()

    def ends(self, sense: Sense) -> tuple[float | None, float | None]:
        """Return the best and the worst end of its interval; its value twice, if it has none."""
        low = self.value if self.low is None else self.low
        high = self.value if self.high is None else self.high
        return (high, low) if sense == "min" else (low, high)


@dataclass(frozen=True)
class Judged:
    """A figure with its thresholds and what follows.

    Attributes
    ----------
    shows_from : float or None
        Of an undecided figure the value at which a breach would show with an interval as wide as this one; else None.
    """

    figure: Figure
    sense: Sense
    warn: Rounded | None
    fail: Rounded | None
    verdict: Verdict
    shows_from: Rounded | None = None


@dataclass(frozen=True)
class Tested:
    """One test's verdict.

    Attributes
    ----------
    missing : str
        Why it was not provided; empty if it was.
    because : str
        The operator's reason, if it was switched off.
    figures : tuple of Judged
        All of them, the worst first.
    """

    id: str
    group: str
    floor: bool
    source: Text
    verdict: Verdict
    missing: str = ""
    because: str = ""
    figures: tuple[Judged, ...] = ()


Again = tuple[tuple[str, str, str], ...]
"""(party, feature, day) of answers that a Host had given before."""


def by_day(again: Again) -> dict[str, list[tuple[str, str]]]:
    """Day → (party, feature) of what was answered on it."""
    days: dict[str, list[tuple[str, str]]] = {}
    for party, feature, day in sorted(again, key=lambda answer: answer[2]):
        days.setdefault(day, []).append((party, feature))
    return days


@dataclass(frozen=True)
class Validation:
    """What the suite found of a model.

    Attributes
    ----------
    version : str
        Of the suite.
    n, training : int
        Test and training records that were scored.
    challenger : str
        Another model's id, or empty.
    tightened : tuple of str
        Measures whose thresholds are the operator's.
    unexamined : tuple of (str, str)
        (party, feature) about whose groups a Host refused to answer.
    without_decisions : tuple of (str, str)
        (party, feature) whose groups a Host answered about, but not about decisions at this cut-off.
    policy : int or None
        Version of the policy whose line the cut-off is; None = another line.
    """

    model: str
    made: str
    version: str
    verdict: Overall
    tests: tuple[Tested, ...]
    cutoff: Rounded
    n: int
    training: int
    challenger: str = ""
    time: str = ""
    tightened: tuple[str, ...] = ()
    unexamined: tuple[tuple[str, str], ...] = ()
    again: Again = ()
    without_decisions: tuple[tuple[str, str], ...] = ()
    policy: int | None = None

    def count(self, verdict: Verdict) -> int:
        """Return how many tests have a verdict."""
        return sum(test.verdict == verdict for test in self.tests)

    @property
    def off(self) -> tuple[Tested, ...]:
        """Tests that the operator switched off."""
        return tuple(test for test in self.tests if test.verdict == "off")


def _read_figure(row: Mapping[str, Any]) -> Figure:
    """Return a figure as it was stored."""
    return Figure(**{**row, "apart": tuple(row.get("apart", ()))})


def read_tests(stored: list[dict[str, Any]]) -> tuple[Tested, ...]:
    """Tests as they were kept."""

    def tested(row: dict[str, Any]) -> Tested:
        figures = (
            Judged(**{**stored_figure, "figure": _read_figure(stored_figure["figure"])})
            for stored_figure in row["figures"]
        )
        return Tested(**{**row, "source": Text(**row["source"]), "figures": tuple(figures)})

    return tuple(map(tested, stored))


def read_validation(stored: dict[str, Any]) -> Validation:
    """Return a validation as it was kept (``dataclasses.asdict``, from JSON)."""
    lists = {
        "tests": read_tests(stored["tests"]),
        "tightened": tuple(stored["tightened"]),
        "unexamined": tuple((party, feature) for party, feature in stored["unexamined"]),
        "again": tuple((party, feature, day) for party, feature, day in stored.get("again", ())),
        "without_decisions": tuple((party, feature) for party, feature in stored.get("without_decisions", ())),
    }
    return Validation(**{**stored, **lists})


Found = Sequence[Figure] | Missing
"""What a test measured, or why it could not."""


@dataclass(frozen=True)
class Suite:
    """The tests in force, and what an operator's file changed.

    Attributes
    ----------
    tightened : tuple of str
        Measures whose thresholds are the operator's.
    policy : int or None
        Version of the policy whose line the cut-off is; None = another line.
    """

    version: str
    tests: tuple[Test, ...]
    cutoff: float = CUTOFF
    policy: int | None = None
    time: str = ""
    attributes: tuple[str, ...] = ()
    tightened: tuple[str, ...] = ()
    off: Mapping[str, str] = field(default_factory=dict)

    def judge(self, measured: Mapping[str, Found]) -> tuple[Tested, ...]:
        """Return every test's verdict, in the suite's order; a test that nothing was found for was not measured."""
        return tuple(self._tested(test, measured.get(test.id, "not_measured")) for test in self.tests)

    def _tested(self, test: Test, measured: Found) -> Tested:
        blank = Tested(test.id, test.group, test.floor, test.source, "not_provided")
        if test.id in self.off:
            return replace(blank, verdict="off", because=self.off[test.id])
        if isinstance(measured, str):
            return replace(blank, missing=measured)
        limits = {limit.measure: limit for limit in test.limit}
        judged = [judge(limits[figure.measure], figure) for figure in measured]
        if all(entry.figure.value is None for entry in judged):
            return replace(blank, missing="few_people")
        judged.sort(key=_badness, reverse=True)
        return replace(blank, verdict=judged[0].verdict, figures=tuple(judged))


def overall(tested: Sequence[Tested]) -> Overall:
    """Return the whole suite's verdict: failed by any test; incomplete if a floor is missing that has something to measure."""
    verdicts = {test.verdict for test in tested}
    if "fail" in verdicts:
        return "fail"
    if any(test.floor and test.verdict == "not_provided" and test.missing not in EXCUSED for test in tested):
        return "incomplete"
    ordered: tuple[Overall, ...] = ("warn", "undecided")
    return next((verdict for verdict in ordered if verdict in verdicts), "pass")


def verdict_of(limit: MeasureLimits, figure: Figure) -> Verdict:
    """Return what one figure shows, by its interval: every measure is judged so.

    It fails or warns if the whole interval is beyond the limit. It passes if the whole interval is within the last limit, which rules a
    failure out, and the figure itself within the first one. In between the records do not decide. A figure that is not disclosed is
    not provided.
    """
    best, worst = figure.ends(limit.sense)
    if figure.value is None or best is None or worst is None:
        return "not_provided"
    if limit.fail is not None and limit.worse(best, limit.fail):
        return "fail"
    if limit.warn is not None and limit.worse(best, limit.warn):
        return "warn"
    if limit.last is not None and limit.worse(worst, limit.last):
        return "undecided"
    if limit.warn is not None and limit.worse(figure.value, limit.warn):
        return "undecided"
    return "pass"


def judge(limit: MeasureLimits, figure: Figure) -> Judged:
    """Return the figure with its thresholds and its verdict."""
    verdict = verdict_of(limit, figure)
    best, _ = figure.ends(limit.sense)
    shows_from = None
    if verdict == "undecided" and figure.value is not None and best is not None and limit.last is not None:
        shows_from = limit.last + figure.value - best
    return Judged(figure, limit.sense, limit.warn, limit.fail, verdict, shows_from)


def _badness(judged: Judged) -> tuple[int, float]:
    """Worst verdict first, then how far the figure itself is in the bad direction of its limit."""
    value = judged.figure.value
    bound = next((b for b in (judged.fail, judged.warn) if b is not None), 0.0)
    if value is None:
        apart = 0.0
    elif judged.sense == "min":
        apart = bound - value
    else:
        apart = value - bound
    return WORST[judged.verdict], float(apart)


def standard() -> Suite:
    """Return the suite as it is shipped."""
    return shipped("suite.toml")


@cache
def shipped(name: str) -> Suite:
    """Return the tests and thresholds of a data file of this package."""
    text = (files("backend.evaluation.validation") / name).read_text(encoding="utf-8")
    read = _File(**tomllib.loads(text))
    return Suite(read.version, read.test)


def with_config(suite: Suite, config: OperatorConfig) -> Suite:
    """Return the suite with an operator's file on top.

    Raises
    ------
    ParameterError
        With every problem: an unknown test or measure, a threshold that is looser than the suite's, a floor that is switched off, a
        test that is switched off without a reason.
    """
    measures = {limit.measure: limit for test in suite.tests for limit in test.limit}
    tests = {test.id: test for test in suite.tests}
    problems = []
    for name in config.limits:
        if name not in measures:
            problems.append(Remark("unknown_measure", {"measure": name, "known": tuple(measures)}))
    for name in (*config.off, *config.floors):
        if name not in tests:
            problems.append(Remark("unknown_test", {"test": name, "known": tuple(tests)}))
    for name, operator_limit in config.limits.items():
        problems += _loosened(measures[name], operator_limit) if name in measures else []
    for name, why in config.off.items():
        if name in tests and (tests[name].floor or name in config.floors):
            problems.append(Remark("floor_switched_off", {"test": name}))
        elif not why.strip():
            problems.append(Remark("switched_off_without_reason", {"test": name}))
    if problems:
        raise ParameterError(problems=problems)
    changed = []
    for test in suite.tests:
        limits = tuple(_tightened(limit, config.limits.get(limit.measure)) for limit in test.limit)
        floor = test.floor or test.id in config.floors
        changed.append(test.model_copy(update={"floor": floor, "limit": limits}))
    return Suite(
        suite.version,
        tuple(changed),
        cutoff=config.cutoff or suite.cutoff,
        time=config.time,
        attributes=config.attributes,
        tightened=tuple(config.limits),
        off=config.off,
    )


def _loosened(limit: MeasureLimits, operator_limit: OwnLimit) -> list[Remark]:
    """Return a problem for each limit that is looser than the suite's."""
    if limit.sense == "max":
        code = "limit_too_high"
    else:
        code = "limit_too_low"
    problems = []
    for name, old, new in (("warn", limit.warn, operator_limit.warn), ("fail", limit.fail, operator_limit.fail)):
        if old is not None and new is not None and limit.worse(new, old):
            values = {"measure": limit.measure, "name": name, "new": new, "old": old}
            problems.append(Remark(code, values))
    return problems


def _tightened(limit: MeasureLimits, operator_limit: OwnLimit | None) -> MeasureLimits:
    if operator_limit is None:
        thresholds = {}
    else:
        thresholds = {name: value for name, value in operator_limit if value is not None}
    return limit.model_copy(update=thresholds)


def read_config(file: Path) -> OperatorConfig:
    """Return an operator's file (TOML).

    Raises
    ------
    ParameterError
        It cannot be read, is no TOML, or has a field or value that is not known.
    """
    data = read_toml(file, ParameterError, max_bytes=MAX_BYTES)
    problems = field_problems(file.name, OperatorConfig, data)
    if problems:
        raise ParameterError(problems=problems)
    return OperatorConfig.model_validate(data)
