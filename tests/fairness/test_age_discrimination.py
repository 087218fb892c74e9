"""Whether elderly ages have a negative factor: worked out by hand, and sure only where the interval is."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from scipy.stats import norm

from backend.errors import ParameterError
from backend.fairness.age_discrimination import MIN_PEOPLE, check_ages, in_words, read_check
from backend.i18n import LANGUAGES, Catalogue

N = 400


def people(*shifts, noise=0.0):
    """Probabilities at elderly ages, and at younger ones that are lower by so much."""
    draw = np.random.default_rng(1)
    elderly = draw.uniform(0.2, 0.8, N)
    return elderly, [elderly - shift - noise * draw.normal(size=N) for shift in shifts]


def test_differences_and_intervals_by_hand():
    elderly = np.array([0.5, 0.7] * 50)
    found = check_ages("host", "age", elderly, [elderly - np.array([0.1, 0.3] * 50), elderly + 0.2])
    first, second = found.gaps
    assert (found.n, found.predicted) == (100, pytest.approx(0.6))
    assert (first.place, first.predicted, first.worse) == (1, pytest.approx(0.4), pytest.approx(0.2))
    half = norm.ppf(1 - 0.05 / 4) * np.std([0.1, 0.3] * 50, ddof=1) / 10  # two classes, both sides
    assert (first.low, first.high) == (pytest.approx(0.2 - half), pytest.approx(0.2 + half))
    assert (second.worse, second.low, second.high) == (pytest.approx(-0.2),) * 3
    assert found.verdict == "negative"


def test_elderly_ages_that_score_better_than_every_class_are_not_negative():
    assert check_ages("h", "age", *people(-0.1, -0.02)).verdict == "not_negative"


def test_the_most_favoured_class_decides_not_the_average():
    found = check_ages("h", "age", *people(-0.2, -0.2, 0.05))
    assert found.verdict == "negative" and max(found.gaps, key=lambda gap: gap.worse).place == 3
    assert np.mean([gap.worse for gap in found.gaps]) < 0


def test_an_age_that_changes_nothing_is_not_negative():
    found = check_ages("h", "age", *people(0.0, 0.0))
    assert found.verdict == "not_negative" and {gap.high for gap in found.gaps} == {0}


def test_a_difference_within_chance_is_undecided():
    assert check_ages("h", "age", *people(0.0, noise=0.1)).verdict == "undecided"


def test_intervals_hold_together_as_often_as_they_claim():
    draw, wrong = np.random.default_rng(5), 0
    for _ in range(400):
        elderly = draw.normal(0.5, 0.1, 100)
        found = check_ages("h", "age", elderly, [elderly - draw.normal(0, 0.05, 100) for _ in range(4)])
        wrong += any(not gap.low <= 0 <= gap.high for gap in found.gaps)
    assert wrong / 400 < 0.09  # 5 % are allowed; four intervals of 95 % each would give 19 %


def test_too_few_people_are_refused():
    with pytest.raises(ParameterError, match="49 people"):
        check_ages("h", "age", np.full(MIN_PEOPLE - 1, 0.5), [np.full(MIN_PEOPLE - 1, 0.4)])


def test_a_kept_check_comes_back():
    found = check_ages("h", "age", *people(0.1, -0.1))
    assert read_check(json.loads(json.dumps(asdict(found)))) == found


@pytest.mark.parametrize("language", LANGUAGES)
def test_in_words_it_names_the_class_that_fares_best_and_says_what_is_not_known(language):
    say = Catalogue(language)
    negative = in_words(say, check_ages("h", "age", *people(-0.2, 0.05)), is_split=True)
    assert "+0.0500" in negative and "2" in negative and "-0.2000" not in negative
    sentences = {negative, in_words(say, check_ages("h", "age", *people(-0.1)), is_split=True)}
    sentences |= {in_words(say, None, is_split=True), in_words(say, None, is_split=False)}
    assert len(sentences) == 4
