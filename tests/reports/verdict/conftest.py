"""A model known by hand: features, findings, decisions, groups and tests, each with an answer that can be seen at once."""

import math

import pytest

from backend.compliance.assessment import ComplianceReport, Finding, Usage
from backend.data.dictionary import Feature, Kind
from backend.fairness.evidence import Basis, Evidence
from backend.fairness.intervals import of_difference, of_ratio
from backend.i18n import NO_MEANING, Text
from backend.policy.bands import Policy
from backend.reports.verdict.known import Known
from backend.results import ModelRecord
from backend.store.reviews import Review
from backend.trees.metrics import Metrics

MEN, WOMEN, OTHERS = Text("men", "男"), Text("women", "女"), Text("others", "其他")


def feature(name, meaning="", zh=""):
    return Feature(name=name, meaning=Text(meaning or f"{name} {NO_MEANING}", zh), kind=Kind.NUMERIC)


def finding(name, rule="r1", splits=3, status="prohibited"):
    return Finding(
        rule_id=rule,
        title=Text(f"Rule {rule}", f"规则 {rule}"),
        pack=Text("Pack", "规则包"),
        citation=Text("1", "1"),
        jurisdiction="EU",
        as_of="2026-01-01",
        status=status,
        effective_from="2020-01-01",
        effective_to="",
        force="in_force",
        explanation=Text("why", "原因"),
        remedy=Text("do", "处理"),
        party="bank",
        feature=name,
        meaning=Text(name),
        matched=name,
        matched_in="name",
        usage=Usage(splits, splits, 0.2 if splits else 0.0, 0.2),
    )


def review(name, verdict, rule="r1", number=1):
    return Review(number, "h", rule, name, verdict, "a good reason", "Rita", "2026-11-20T10:00:00")


def acceptance(groups, cutoff=None):
    """Evidence of (group, accepted, n), the first being the reference group; at a cut-off of the range if one is given."""
    rate = "selection rate" if cutoff is None else "selection rate by cut-off"
    (base, accepted, n), *others = groups
    rows = [Evidence(about=base, measure="selection rate, reference", n=n, value=accepted / n, low=0.0, high=1.0)]
    for group, own, own_n in others:
        ends = of_difference(own / own_n, own_n, accepted / n, n)
        about = {"about": group, "cutoff": cutoff}
        rows.append(Evidence(own / own_n - accepted / n, *ends, own_n + n, measure=f"{rate}, difference", **about))
        ratio = own / own_n / (accepted / n)
        ends = of_ratio(own / own_n, own_n, accepted / n, n)
        rows.append(Evidence(ratio, *ends, own_n + n, measure=f"{rate}, ratio", **about))
    return tuple(rows)


RECORD = ModelRecord(
    id="m1", federation="f", created="2026", algorithm="secureboost", cipher="none", key_bits=0, content_hash="h",
    guest="bank", hosts=(), n_trees=1, n_leaves=2, depth=1, score_bits=10,
    metrics=Metrics(auc=0.75, ks=0.4, log_loss=0.5, accuracy=0.8, n=10, part="test"), parameters={},
    seconds=1.0, parts={"test": 10}, curve=(), host_hashes={}, positive_rate=0.2, exclude=(),
)  # fmt: skip


@pytest.fixture
def known():
    """What is known about a model; whatever is not given is unknown."""

    def make(features=(), splits=None, findings=(), reviews=(), record=RECORD, policy_version=1, **given):
        offered = tuple(("bank", one) for one in features or (feature("age", "Age of the applicant", "年龄"),))
        usual = {
            "record": record,
            "features": {one.name: one for _, one in offered},
            "offered": offered,
            "splits": splits or {one.name: 1 for _, one in offered},
            "titles": {"bank": Text("Bank", "银行"), "shop": Text("Shop", "商店")},
            "compliance": ComplianceReport(findings=tuple(findings), assessed=len(offered), packs=()),
            "reviews": {(one.rule, one.feature): one for one in reviews},
            "directions": (),
            "disparities": {},
            "proxies": {},
            "bases": {},
            "validation": None,
            "monitored": None,
            "quality": None,
            "policy": Policy(decline_at=0.3, version=policy_version),
        }
        return Known(**(usual | given))

    return make


@pytest.fixture
def at_line():
    """The basis of groups that were measured at the policy's own line."""
    return {("disparity", "sex"): Basis(400, 0.3, policy=1)}


def close(one, other):
    return math.isclose(one, other, rel_tol=1e-9)
