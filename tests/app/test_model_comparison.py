"""How a change of quality is told, by the interval of the difference, never by the figures alone; and how importances are drawn."""

import math
import re

import pytest

from app import session
from app.panels import model_comparison
from app.texts import Texts
from backend.i18n import LANGUAGES
from backend.reports.model_comparison import QualityFigure, Shift
from tests.app.conftest import World


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


def test_a_features_pale_bar_stands_above_the_full_one_and_the_largest_share_is_as_wide_as_the_picture(
    world: World,
) -> None:
    view = session._view(str(world.home), world.record.id)
    (party, one), (other_party, other) = view.model.dictionary[:2]
    shifts = [Shift(party, one.name, 0.1, 0.4), Shift(other_party, other.name, None, 0.2)]
    svg = model_comparison._paired(Texts("en"), view, shifts, "")
    bars = re.findall('<rect [^>]*width="([^"]+)%" [^>]*opacity="([^"]+)"', svg)
    assert bars == [("25.00", "0.4"), ("100.00", "1.0"), ("0.00", "0.4"), ("50.00", "1.0")]
