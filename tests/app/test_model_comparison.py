"""How a change of quality is told: as better or worse only beyond the first model's interval."""

import math

import pytest

from app.panels import model_comparison
from app.texts import Texts, number
from backend.i18n import LANGUAGES
from backend.reports.model_comparison import Figure


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("after", "interval", "better", "key"),
    [
        (0.849, (0.835, 0.865), 0, "within"),
        (0.8, (0.835, 0.865), -1, "worse"),
        (0.9, (0.835, 0.865), 1, "better"),
        (0.849, (math.nan, math.nan), 0, "moved"),
        (0.8500001, (math.nan, math.nan), 0, "same"),
    ],
)
def test_a_change_within_the_interval_is_no_gain_and_no_loss(language, after, interval, better, key):
    t = Texts(language)
    low, high = map(number, interval)
    figures = {"figure": t("figure.auc"), "before": number(0.85), "after": number(after), "low": low, "high": high}
    assert model_comparison._moved(t, Figure("auc", 0.85, after, *interval, better)) == t(
        f"comparison.{key}", **figures
    )
    assert ("**" in t(f"comparison.{key}", **figures)) == (key in ("better", "worse", "same"))
