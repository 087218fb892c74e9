"""Evidence that was measured is kept, shown by the findings and the report, and written into the audit log."""

import pytest
from typer.testing import CliRunner

from backend.cli import app
from backend.service import DisparityRequest, Glassleaf, ProxyRequest


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    door = Glassleaf(tmp_path_factory.mktemp("evidence"), pools=False)
    door.prepare_demo()
    yield door
    door.close()


def test_a_disparity_is_on_the_finding_and_in_the_report(door):
    [record] = door.models()
    assert door.report(record.id).content.fairness in (None, ())
    done = door.start_disparity(DisparityRequest(record.id, "gender", cipher="none")).get()
    [finding, *_] = [f for f in door.compliance(record.id).findings if f.feature == "gender"]
    assert finding.disparities is not None and finding.proxies is None
    shown = [e for e in finding.disparities if e.measure == "selection rate"]
    assert [e.n for e in shown] == [g.rates["selection rate"].n for g in done.groups]
    assert "code" not in shown[0].about  # the dictionary's word for the code
    assert door.report(record.id).content.fairness
    assert door.audit_entries(record.federation)[-1].action == "disparity"


def test_the_planted_proxy_is_found_and_kept(door):
    [record] = door.models()
    found = door.start_proxies(ProxyRequest(record.id, "gender", cipher="none")).get()
    assert "basket_mix" in [a.feature for a in found.features if a.found]
    [finding, *_] = [f for f in door.compliance(record.id).findings if f.feature == "gender"]
    assert "basket_mix" in [e.about for e in finding.proxies]


def test_rules_of_ones_own_apply_and_broken_ones_are_named(door, tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSLEAF_HOME", str(door.home))
    broken = tmp_path / "mine.yaml"
    broken.write_text("name: [")
    refused = CliRunner().invoke(app, ["rules", "check", str(broken)])
    assert refused.exit_code != 0 and "line" in str(refused.exception)
    listed = CliRunner().invoke(app, ["rules", "list"])
    assert listed.exit_code == 0 and "ecoa" in listed.output
