"""Facts about the model itself: tests, quality, directions, meanings, what its scores tell, and whether the line was set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backend.evaluation.performance import Estimate, Performance
from backend.evaluation.validation.suite import Figure as Measured
from backend.evaluation.validation.suite import Tested, standard
from backend.evaluation.validation.words import POINTS, SHARE_MEASURES, about_in_words, limit_in_words, value_in_words
from backend.i18n import LANGUAGES, Catalogue, Text, in_both
from backend.remark import Remark
from backend.reports.verdict.facts import Fact, Figure, Kind, State, Unit, named, written
from backend.reports.verdict.known import Known, has_meaning
from backend.results import told_by_scores

CHANCE_LEVEL = {"auc": 0.5, "r2": 0.0}  # a figure of quality → its value for a model that knows nothing
REPEATED_TESTS = ("leak",)  # tests of the suite that repeat another fact of the verdict
SAID_BY_FEATURE = ("proxies", "disparity")  # tests of which another fact says by feature that they were not measured


def model_facts(model: Known) -> Iterator[Fact]:
    """Yield every fact about the model itself."""
    yield from _suite(model)
    yield from _monitoring(model)
    yield _quality(model)
    yield from _directions(model)
    yield _meanings(model)
    yield from _leak(model)
    if model.record.task != "classes" and not model.policy.is_set:
        yield _no_line(model)


def _suite(model: Known) -> Iterator[Fact]:
    """Yield the validation: each test that fails or warns, then those undecided, those not measured and those that pass."""
    run = model.validation
    if run is None:
        title = Remark("verdict_title_validation").both()
        yield Fact("test", "", "not_measured", title, Remark("verdict_no_validation").both(), "validation")
        return
    tests = [test for test in run.tests if test.id not in REPEATED_TESTS]
    yield from _tests(model, "test", "validation", tests)


def _monitoring(model: Known) -> Iterator[Fact]:
    """Yield the same of the last run on later data."""
    run = model.monitored
    if run is None:
        title = Remark("verdict_title_monitoring").both()
        yield Fact("monitoring", "", "not_measured", title, Remark("verdict_no_monitoring").both(), "validation")
        return
    yield from _tests(model, "monitoring", "validation", run.tests)


def _tests(model: Known, kind: Kind, page: str, tests: Sequence[Tested]) -> Iterator[Fact]:
    for test in tests:
        if test.verdict == "fail":
            yield _test(model, kind, page, test, "broken")
        elif test.verdict == "warn":
            yield _test(model, kind, page, test, "undecided")
    undecided = [test for test in tests if test.verdict == "undecided"]
    if undecided:
        yield _listed(kind, page, undecided, "undecided")
    missing = [test for test in tests if test.verdict == "not_provided" and test.id not in SAID_BY_FEATURE]
    if missing:
        yield _listed(kind, page, missing, "not_measured")
    off = [test for test in tests if test.verdict == "off"]
    if off:
        yield _switched_off(kind, page, off)
    passed = [test for test in tests if test.verdict == "pass"]
    if passed:
        yield _listed(kind, page, passed, "no_breach")


def _name(test: Tested) -> Text:
    return in_both(f"validation.test_{test.id}")


def _test(model: Known, kind: Kind, page: str, test: Tested, state: State) -> Fact:
    """Return one test that fails or warns, with its worst figure and its limits."""
    worst = test.figures[0]
    words = []
    limits = []
    for language in LANGUAGES:
        say = Catalogue(language)
        figure = worst.figure
        if figure.feature:
            feature = model.name(figure.feature).in_language(language)
        else:
            feature = ""
        if figure.party:
            party = model.title(figure.party).in_language(language)
        else:
            party = ""
        entry = model.features.get(figure.feature)
        codes = say.texts(entry.categories) if entry else {}
        if figure.measure == "cramers_v":
            codes = {figure.group: model.name(figure.group).in_language(language)}
        about = about_in_words(say, figure, feature, party, codes)
        value = value_in_words(say, figure, lambda value: written(value, "number"))
        words.append(say("words.says", who=about, said=value))
        limits.append(limit_in_words(say, figure.measure, worst.sense, worst.warn, worst.fail))
    values = {"test": _name(test), "figure": Text(*words), "limits": Text(*limits)}
    if state == "broken":
        sentence = Remark("verdict_test_fails", values)
    else:
        sentence = Remark("verdict_test_warns", values)
    title = Remark("verdict_title_test_fails" if state == "broken" else "verdict_title_test_warns", values)
    return Fact(kind, test.id, state, title.both(), sentence.both(), page, _measured(worst.figure))


def _measured(figure: Measured) -> Figure | None:
    """Return a figure of the suite with its unit; None if too few people are behind it."""
    if figure.value is None:
        return None
    unit: Unit = "number"
    if figure.measure in POINTS:
        unit = "points"
    elif figure.measure in SHARE_MEASURES:
        unit = "share"
    return Figure(figure.value, figure.low, figure.high, figure.n, unit)


def _listed(kind: Kind, page: str, tests: Sequence[Tested], state: State) -> Fact:
    """Return several tests as one fact, each by its name."""
    names = tuple(_name(test) for test in tests)
    values = {"n": len(tests), "tests": named(names, 4 if state == "no_breach" else len(names))}
    if state == "not_measured":
        title = Remark("verdict_title_tests_missing", values)
        sentence = Remark("verdict_tests_missing", values)
    elif state == "undecided":
        title = Remark("verdict_title_tests_undecided", values)
        sentence = Remark("verdict_tests_undecided", values)
    else:
        title = Remark("verdict_title_tests_pass", values)
        sentence = Remark("verdict_tests_pass", values)
    return Fact(kind, "", state, title.both(), sentence.both(), page)


def _switched_off(kind: Kind, page: str, tests: Sequence[Tested]) -> Fact:
    names = tuple(_name(test) for test in tests)
    values = {"n": len(tests), "tests": names}
    title = Remark("verdict_title_tests_off", values)
    return Fact(kind, "off", "not_measured", title.both(), Remark("verdict_tests_off", values).both(), page)


def deciding(quality: Performance) -> Estimate | None:
    """Return the figure whose value for a model that knows nothing is known."""
    return next((estimate for name in CHANCE_LEVEL if (estimate := quality.figure(name)) is not None), None)


def _quality(model: Known) -> Fact:
    title = Remark("verdict_title_quality").both()
    estimate = deciding(model.quality) if model.quality else None
    if model.quality is None or estimate is None:
        return Fact("quality", "", "not_measured", title, Remark("verdict_quality_not_measured").both(), "model_card")
    figure = Figure(estimate.value, estimate.low, estimate.high, model.quality.n)
    chance = CHANCE_LEVEL[estimate.name]
    values = {
        "figure": in_both(f"figure.{estimate.name}"),
        "value": figure.shown,
        "n": model.quality.n,
        "chance": f"{chance:g}",
    }
    if model.quality.part != "test":
        sentence = Remark("verdict_quality_on_known", values)
        return Fact("quality", "", "undecided", title, sentence.both(), "model_card", figure)
    if estimate.high < chance:
        return Fact(
            "quality", "", "broken", title, Remark("verdict_quality_worse", values).both(), "model_card", figure
        )
    if estimate.low <= chance:
        sentence = Remark("verdict_quality_undecided", values)
        return Fact("quality", "", "undecided", title, sentence.both(), "model_card", figure)
    return Fact("quality", "", "no_breach", title, Remark("verdict_quality", values).both(), "model_card", figure)


def _directions(model: Known) -> Iterator[Fact]:
    """Yield whether features push the way their owners expect; nothing if no feature of the model has an order."""
    title = Remark("verdict_title_direction").both()
    in_use = [direction for direction in model.directions if model.splits.get(direction.feature, 0)]
    against = [direction for direction in in_use if direction.contradicts]
    expected = [direction for direction in in_use if direction.expected != "none"]
    if against:
        values = {"n": len(against), "features": named([model.name(direction.feature) for direction in against])}
        sentence = Remark("verdict_direction_against", values)
        yield Fact("direction", "", "undecided", title, sentence.both(), "compliance")
    elif expected:
        sentence = Remark("verdict_direction", {"n": len(expected), "used": len(in_use)})
        yield Fact("direction", "", "no_breach", title, sentence.both(), "compliance")
    elif in_use:
        yield Fact("direction", "", "not_measured", title, Remark("verdict_no_direction").both(), "compliance")


def _meanings(model: Known) -> Fact:
    """Return how many features have a meaning."""
    n_offered = len(model.offered)
    bare = [feature.name for _, feature in model.offered if not has_meaning(feature)]
    in_use = [name for name in bare if model.splits.get(name, 0)]
    values = {"part": n_offered - len(bare), "whole": n_offered, "used": len(in_use)}
    if not bare:
        title = Remark("verdict_title_meanings").both()
        return Fact("meaning", "", "no_breach", title, Remark("verdict_meanings", values).both(), "features")
    title = Remark("verdict_title_no_meaning", {"n": len(bare)}).both()
    if in_use:
        return Fact("meaning", "", "broken", title, Remark("verdict_no_meaning_in_use", values).both(), "features")
    return Fact("meaning", "", "undecided", title, Remark("verdict_no_meaning", values).both(), "features")


def _leak(model: Known) -> Iterator[Fact]:
    """Yield what scores tell, by the limits of the suite; nothing if no Host takes part."""
    if not model.record.hosts:
        return
    title = Remark("verdict_title_leak").both()
    release = model.record.release
    sentence = told_by_scores(release, model.record.score_bits).both()
    if release is None or not release.measurable:
        yield Fact("leak", "", "not_measured", title, sentence, "privacy")
        return
    limit = next(limit for test in standard().tests for limit in test.limit if limit.measure == "identifying")
    state: State = "no_breach"
    if limit.fail is not None and release.named > limit.fail:
        state = "broken"
    elif limit.warn is not None and release.named > limit.warn:
        state = "undecided"
    values = {"what": sentence, "limit": written(limit.fail or 0.0, "share")}
    remark = Remark("verdict_leak_above" if state == "broken" else "verdict_leak_within", values)
    figure = Figure(release.named, n=release.people, unit="share")
    yield Fact("leak", "", state, title, remark.both(), "privacy", figure)


def _no_line(model: Known) -> Fact:
    title = Remark("verdict_title_no_line").both()
    if model.policy.decline_at is None:
        return Fact("policy", "", "undecided", title, Remark("verdict_without_line").both(), "decide")
    line = written(model.policy.decline_at, "share")
    return Fact("policy", "", "undecided", title, Remark("verdict_no_line", {"line": line}).both(), "decide")
