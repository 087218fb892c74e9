"""Two models side by side, on records and rows made by hand."""

import math
from dataclasses import replace

import pytest

from backend.compliance.assessment import ComplianceReport
from backend.evaluation.performance import Estimate
from backend.explain.importance import FeatureImportance
from backend.fairness.evidence import Evidence
from backend.i18n import Text
from backend.reports.model_comparison import Difference, OutcomePair, Shift, Side, Sizes, as_dict, compare
from backend.results import ModelRecord, ReleaseCheck
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, Split
from backend.trees.metrics import Metrics
from backend.trees.outputs import Outputs

RECORD = ModelRecord(
    id="m1", federation="f", created="2026", algorithm="secureboost", cipher="none", key_bits=0, content_hash="h1",
    guest="bank", hosts=("shop",), n_trees=1, n_leaves=2, depth=1, score_bits=10,
    metrics=Metrics(auc=0.75, ks=0.4, log_loss=0.5, accuracy=0.8, n=10, part="test"), parameters={"trees": 1, "depth": 1},
    seconds=1.0, parts={"test": 10}, curve=(), host_hashes={}, positive_rate=0.2, exclude=(),
)  # fmt: skip
SIZES = Sizes(trees=1, leaves=2, splits=1, hidden_splits=0, depth=1, used=1, offered=2, released=1)


def used(feature, share, party="bank"):
    count = int(share > 0)
    return FeatureImportance(count, count, share, share, party, feature, share, share, share)


USED = used("age", 0.6), used("sex", 0.4, "shop")


def side(record=RECORD, rows=USED, disparities=None, ids=("a", "b"), intervals=None):
    report = ComplianceReport(findings=(), assessed=2, packs=())
    return Side(record, SIZES, tuple(rows), report, disparities or {}, {}, frozenset(ids), intervals or {})


def test_a_change_is_better_or_worse_only_where_the_interval_of_the_difference_leaves_0_out():
    after = replace(RECORD, metrics=replace(RECORD.metrics, auc=0.7, ks=0.39, log_loss=0.4, accuracy=0.1))
    paired = (
        Estimate("auc", -0.05, -0.07, -0.03),
        Estimate("ks", -0.01, -0.02, 0.01),
        Estimate("log_loss", -0.1, -0.2, -0.05),
    )
    found = compare(side(), side(after), paired, 10)
    assert found.paired_on == 10
    assert {f.name: (f.low, f.high, f.better, f.paired) for f in found.figures if f.name != "accuracy"} == {
        "auc": (-0.07, -0.03, -1, True),
        "ks": (-0.02, 0.01, 0, True),
        "log_loss": (-0.2, -0.05, 1, True),  # a smaller loss
    }
    assert found.figures[-1].better == 0 and math.isnan(found.figures[-1].low)  # nothing is known of the accuracy


def test_where_the_two_were_not_paired_the_interval_is_made_of_both_ones_own():
    after = replace(RECORD, metrics=replace(RECORD.metrics, auc=0.7))
    own = {"auc": (0.72, 0.79)}, {"auc": (0.67, 0.73)}
    found = compare(side(intervals=own[0]), side(after, intervals=own[1])).figures[0]
    assert (found.low, found.high) == pytest.approx((-0.1, -0.05 + 0.03 * 2**0.5))  # 0.03 and 0.04 make 0.05
    assert (found.better, found.paired) == (-1, False)


def test_a_feature_that_was_left_out_is_not_given_and_one_that_nobody_uses_is_not_listed():
    before = side(rows=(used("age", 0.6), used("sex", 0.4, "shop"), used("idle", 0.0)))
    found = compare(before, side(rows=(used("age", 1.0), used("idle", 0.0))))
    assert found.shifts == (Shift("bank", "age", 0.6, 1.0), Shift("shop", "sex", 0.4, None))
    assert [shift.change for shift in found.shifts] == [0.4, -0.4]
    assert found.without == ("sex",)


def test_groups_are_paired_by_feature_group_and_measure():
    men, women = (
        Evidence(about=Text(name), measure="selection rate", n=30, value=0.5, low=0.4, high=0.6)
        for name in ("men", "women")
    )
    now = replace(men, value=0.45)
    found = compare(side(disparities={"sex": (men, women)}), side(disparities={"sex": (now,)}))
    assert found.outcomes == (OutcomePair("sex", men, now), OutcomePair("sex", women, None))
    assert found.outcomes[1].either is women


def test_only_what_was_done_differently_is_listed():
    after = replace(RECORD, exclude=("sex",), parameters={"trees": 2, "depth": 1})
    assert compare(side(), side(after)).differences == (Difference("exclude", "", "sex"), Difference("trees", "1", "2"))


def test_figures_of_other_people_are_not_called_comparable():
    assert compare(side(), side()).same_people
    assert not compare(side(), side(ids=("a", "c"))).same_people
    assert not compare(side(ids=()), side(ids=())).same_people


def test_sizes_are_counted_by_hand():
    nodes = (Split("bank", "age", 1, 2, True, 1.0, 4.0), Leaf(0.1, 2.0), Split("shop", "sex", 3, 4, True, 1.0, 2.0))
    tree = GuestTree((*nodes, Leaf(0.2, 1.0), Leaf(0.3, 1.0)))
    model = GuestModel("bank", ("shop",), (tree, GuestTree((Leaf(0.5, 4.0),))), (0.0,), 10, (), {})
    assert Sizes.of(model) == Sizes(2, 4, 2, 1, 2, 2, 0, 1)
    median = replace(model, outputs=Outputs(link="identity", aggregation="median"))
    assert Sizes.of(median).released == 2


def test_a_comparison_has_a_json_form():
    written = as_dict(compare(side(), side(rows=(used("age", 1.0),))))
    assert written["figures"]["auc"] == [0.75, 0.75] and written["gain_share"]["sex"] == [0.4, None]
    assert written["structure"]["leaves"] == [2, 2]


def test_what_scores_give_away_is_compared_where_both_were_measured():
    one = ReleaseCheck(0.0625, ((10, 0.02), (8, 0.01)), 12.0, 200, 2000, without_dither=0.8)
    other = ReleaseCheck(0.0, ((10, 0.5),), 3.0, 200, 2000)
    before, after = (replace(RECORD, release=release) for release in (one, other))
    assert compare(side(before), side()).leaks == ()
    assert compare(side(before), side(before)).leaks[-2] == Difference("without_dither", 0.8, 0.8)
    leaks = {leak.name: (leak.before, leak.after) for leak in compare(side(before), side(after)).leaks}
    assert leaks == {"score_bits": (10, 10), "dither": (0.0625, 0.0), "named": (0.02, 0.5), "paths": (12.0, 3.0)}
    assert as_dict(compare(side(before), side(after)))["leaks"]["named"] == [0.02, 0.5]
