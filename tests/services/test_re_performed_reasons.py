"""An auditor with all halves recomputes reasons and sums: honest ones pass, what a Host has planted is found by the shell."""

import json
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from inside import runtime_of

from backend.cli import main
from backend.data.table import SampleSheet
from backend.i18n import Text
from backend.protocols.explanations import weighting
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.group_sums import host as group_host
from backend.protocols.ranking import host as ranking_host
from backend.protocols.simulation import simulator
from backend.services import Glassleaf
from backend.services.fairness import DisparityRequest, ProxyRequest
from backend.services.reasons import CohortRequest, ReasonsRequest
from backend.store.request_log import RequestLog

ADDED = 3  # logits that are added to a cohort's sum of 60 people


@pytest.fixture
def glassleaf(demo_home, monkeypatch):
    """A home of its own whose Hosts keep every request."""
    home = demo_home()
    monkeypatch.setenv("GLASSLEAF_HOME", str(home))
    monkeypatch.setattr(simulator, "RequestLog", partial(RequestLog, rate=1.0))
    opened = Glassleaf(home, key_floor=512, pools=False)
    yield opened
    opened.close()


@pytest.fixture
def shell(monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["backend", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), capsys.readouterr().out

    return run


def name_reasons(glassleaf, people, cipher, key_bits=1024):
    record = glassleaf.models.get("latest")
    table = runtime_of(glassleaf).table.take(people)
    sheet = SampleSheet(table.ids, table, {}, {}, ())
    return glassleaf.reasons.start(ReasonsRequest(record.id, sheet, names=2, cipher=cipher, key_bits=key_bits)).get()


def found_by(shell):
    code, said = shell("audit", "re-perform", "demo", "--json")
    [found] = json.loads(said)
    return code, found


def test_honest_reasons_and_sums_are_recomputed_and_nothing_differs(glassleaf, shell):
    record = glassleaf.models.get("latest")
    people = name_reasons(glassleaf, range(3), "rlwe").people
    assert any(person.reasons for person in people)
    glassleaf.reasons.start_cohort(CohortRequest(record.id, samples=60, cipher="none")).get()
    glassleaf.fairness.start_disparity(DisparityRequest(record.id, "gender", cipher="none")).get()
    glassleaf.fairness.start_proxies(ProxyRequest(record.id, "gender", cipher="none")).get()
    code, found = found_by(shell)
    assert found["differences"] == [] and code == 0
    assert found["reasons"] == 3 and found["sums"] > 3


def test_sums_by_two_features_together_and_by_an_age_are_recomputed_as_the_host_grouped_them(glassleaf, shell):
    record = glassleaf.models.get("latest")
    features = runtime_of(glassleaf)._simulated.hosts["telecom"]._gate.features
    months = features["tenure_months"]
    # Those aged 62 or more are a group of their own.
    features["tenure_months"] = months.model_copy(update={"meaning": Text("Age", "年龄"), "unit": Text("years", "岁")})
    for together in ("", "gender"):
        request = DisparityRequest(record.id, "tenure_months", 0.2, cipher="none", crossed=together)
        done = glassleaf.fairness.start_disparity(request).get()
        assert any("elderly" in outcome.group.kind + outcome.group.name for outcome in done.groups)
    code, found = found_by(shell)
    assert found["differences"] == [] and code == 0 and found["sums"] == 2


@pytest.mark.slow
def test_under_paillier_the_terms_that_came_to_each_host_are_opened(glassleaf):
    name_reasons(glassleaf, range(2), "paillier")
    honest = glassleaf.audit.re_perform("demo")
    hosts = CompiledTerms(glassleaf.models.guest_model("latest")).chain
    assert honest.reasons == 2 and honest.differences == ()
    assert honest.opened >= 2 * len(hosts)


def test_a_constant_that_a_host_has_planted_in_a_reason_is_found(glassleaf, shell, monkeypatch):
    honest = ranking_host.secret_order
    terms = CompiledTerms(glassleaf.models.guest_model("latest"))
    shape = terms.shape(1)

    def lying(n):
        order = honest(n).astype(object)
        # the last feature gets a logit more
        order[-1] += 1 << (shape.scale + shape.ranking.tie_bits)
        return order

    with monkeypatch.context() as patch:
        # patched: a Host that lies in an answer of its own
        patch.setattr(ranking_host, "secret_order", lying)
        people = name_reasons(glassleaf, range(4), "rlwe").people
    planted = terms.items[-1][1]
    # of somebody whose value is on the side asked about; nobody has noticed
    assert any(planted in {reason.feature for reason in person.reasons} for person in people)
    code, found = found_by(shell)
    wrong = [one for one in found["differences"] if one["code"] == "names_differ"]
    assert code == 1 and found["reasons"] == 4 and wrong
    last = runtime_of(glassleaf).hosts[-1]
    assert all(last in one["parties"] and one["by"][0] > 0 and planted in one["words"] for one in wrong)


def test_a_constant_that_a_host_has_planted_in_a_cohorts_sum_is_found_with_its_size(glassleaf, shell, monkeypatch):
    honest = weighting.blind

    def lying(shape, people, room, below):
        return honest(shape, people, room, below) + (ADDED << shape.scale)

    record = glassleaf.models.get("latest")
    with monkeypatch.context() as patch:
        # patched: a Host that lies in an answer of its own
        patch.setattr(weighting, "blind", lying)
        glassleaf.reasons.start_cohort(CohortRequest(record.id, samples=60, cipher="none")).get()
    code, found = found_by(shell)
    wrong = [one for one in found["differences"] if one["code"] == "sum_differs"]
    assert code == 1 and found["sums"] == 1 and wrong
    assert all(abs(one["by"][0] - ADDED) < 0.1 and one["kind"] == "cohort" for one in wrong)


def test_members_that_a_host_has_moved_between_groups_are_found(glassleaf, shell, monkeypatch):
    honest = group_host.group

    def lying(*args):
        grouped = honest(*args)
        return replace(grouped, index=np.roll(grouped.index, 1))

    record = glassleaf.models.get("latest")
    with monkeypatch.context() as patch:
        # patched: a Host that lies in an answer of its own
        patch.setattr(group_host, "group", lying)
        glassleaf.fairness.start_disparity(DisparityRequest(record.id, "gender", cipher="none")).get()
    code, found = found_by(shell)
    wrong = [one for one in found["differences"] if one["code"] == "group_sums_differ"]
    assert code == 1 and wrong and all(one["kind"] == "groups" and any(one["by"]) for one in wrong)


def test_groups_that_no_value_gives_are_the_hosts_own(glassleaf, shell, monkeypatch):
    honest = group_host.group

    def other_sizes(feature, column, most, least):
        shorter = column.copy()
        shorter[: len(column) // 4] = shorter[0]
        return honest(feature, shorter, most, least)

    record = glassleaf.models.get("latest")
    with monkeypatch.context() as patch:
        # patched: a Host that lies in an answer of its own
        patch.setattr(group_host, "group", other_sizes)
        glassleaf.fairness.start_disparity(DisparityRequest(record.id, "gender", cipher="none")).get()
    _, found = found_by(shell)
    [wrong] = [one for one in found["differences"] if one["code"] == "groups_differ"]
    assert wrong["parties"] == [
        next(h for h in runtime_of(glassleaf).hosts if "gender" in wrong["words"] and h in wrong["parties"])
    ]
