"""How the importances of two models are drawn beside each other."""

import re

from app import session
from app.panels import model_comparison
from app.texts import Texts
from backend.reports.model_comparison import Shift
from tests.app.conftest import World


def test_a_features_pale_bar_stands_above_the_full_one_and_the_largest_share_is_as_wide_as_the_picture(
    world: World,
) -> None:
    view = session._view(str(world.home), world.record.id)
    (party, one), (other_party, other) = view.model.dictionary[:2]
    shifts = [Shift(party, one.name, 0.1, 0.4), Shift(other_party, other.name, None, 0.2)]
    svg = model_comparison._paired(Texts("en"), view, shifts, "")
    bars = re.findall('<rect [^>]*width="([^"]+)%" [^>]*opacity="([^"]+)"', svg)
    assert bars == [("25.00", "0.4"), ("100.00", "1.0"), ("0.00", "0.4"), ("50.00", "1.0")]
