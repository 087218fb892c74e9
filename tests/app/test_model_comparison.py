"""How a change of quality is told: by the interval of the difference, never by the figures alone."""

import math

import pytest

from app.panels import model_comparison
from app.texts import Texts
from backend.i18n import LANGUAGES
from backend.reports.model_comparison import QualityFigure


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("low", "high", "better", "paired", "key"),
    [
        (-0.004, 0.002, 0, True, "within"),
        (-0.04, -0.01, -1, True, "worse"),
        (0.01, 0.04, 1, False, "better"),
        (-0.04, 0.03, 0, False, "unclear"),
        (math.nan, math.nan, 0, False, "moved"),
    ],
)
def test_the_interval_of_the_difference_decides_between_better_worse_and_no_difference_shown(
    language, low, high, better, paired, key
):
    t = Texts(language)
    interval = {name: f"{'−' if end < 0 else '+'}{abs(end):.4f}" for name, end in (("low", low), ("high", high))}
    figures = {"figure": t("figure.auc"), "before": "0.8500", "after": "0.8490", **interval}
    assert model_comparison._moved(t, QualityFigure("auc", 0.85, 0.849, low, high, better, paired)) == t(
        f"comparison.{key}", **figures
    )
