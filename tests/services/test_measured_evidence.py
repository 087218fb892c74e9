"""Evidence that was measured is kept, shown by the findings and the report, and written into the audit log."""

import pytest
from typer.testing import CliRunner

from backend.cli import app
from backend.data.dictionary import Feature, Kind
from backend.fairness.evidence import Basis
from backend.i18n import LANGUAGES, Catalogue, Text
from backend.protocols.group_sums.grouping import Group
from backend.services import Glassleaf, fairness
from backend.services.fairness import DisparityRequest, ProxyRequest, group_names


@pytest.fixture(scope="module")
def glassleaf(demo_home):
    glassleaf = Glassleaf(demo_home(), pools=False)
    yield glassleaf
    glassleaf.close()


def test_a_disparity_is_on_the_finding_and_in_the_report(glassleaf):
    [record] = glassleaf.models.all()
    assert glassleaf.reports.make(record.id).content.fairness in (None, ())
    done = glassleaf.fairness.start_disparity(DisparityRequest(record.id, "gender", cipher="none")).get()
    [finding, *_] = [f for f in glassleaf.compliance.assess(record.id).findings if f.feature == "gender"]
    assert finding.disparities is not None and finding.proxies is None
    shown = [e for e in finding.disparities if e.measure == "selection rate"]
    assert [e.n for e in shown] == [g.rates["selection rate"].n for g in done.groups]
    assert "code" not in shown[0].about.en  # the dictionary's word for the code
    assert glassleaf.reports.make(record.id).content.fairness
    assert glassleaf.audit.entries(record.federation)[-1].action == "disparity"


@pytest.mark.slow
def test_the_planted_proxy_is_found_and_kept(glassleaf):
    [record] = glassleaf.models.all()
    found = glassleaf.fairness.start_proxies(ProxyRequest(record.id, "gender", cipher="none")).get()
    assert "basket_mix" in [a.feature for a in found.features if a.found]
    [finding, *_] = [f for f in glassleaf.compliance.assess(record.id).findings if f.feature == "gender"]
    assert "basket_mix" in [e.about.en for e in finding.proxies]


def test_rules_of_ones_own_apply_and_broken_ones_are_named(glassleaf, tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSLEAF_HOME", str(glassleaf.home))
    broken = tmp_path / "mine.yaml"
    broken.write_text("name: [")
    refused = CliRunner().invoke(app, ["rules", "check", str(broken)])
    assert refused.exit_code != 0 and "line" in str(refused.exception)
    listed = CliRunner().invoke(app, ["rules", "list"])
    assert listed.exit_code == 0 and "ecoa" in listed.output
    checked = CliRunner().invoke(app, ["rules", "check"])
    assert "china_credit_gbt_45574: GB/T 45574-2025" in checked.output


@pytest.mark.slow
def test_that_nothing_was_found_is_told_with_its_number_of_records_on_the_finding_and_in_the_report(
    glassleaf, monkeypatch
):
    [record, *_] = glassleaf.models.all()
    monkeypatch.setattr(fairness, "proxy_evidence", lambda features: ())  # as if no feature went with it
    done = glassleaf.fairness.start_proxies(ProxyRequest(record.id, "marital_status", records=400, cipher="none")).get()
    [finding, *_] = [f for f in glassleaf.compliance.assess(record.id).findings if f.feature == "marital_status"]
    assert finding.proxies == () and finding.proxies_on == Basis(done.n) == Basis(400)
    told = next(e for e in glassleaf.reports.make(record.id).content.proxies if e.feature == "marital_status")
    assert told.measures == () and (told.on.n, told.on.cutoff) == (400, None)
    words = Catalogue("en")
    measured = words("document.measured_on", on=words("document.on", n=400))
    assert (
        f"(marital_status){measured}{words('document.and_nothing')}"
        in glassleaf.reports.export(record.id, "html").decode()
    )


def test_a_disparity_keeps_the_cut_off_that_it_was_measured_at(glassleaf):
    [record, *_] = glassleaf.models.all()
    done = glassleaf.fairness.start_disparity(DisparityRequest(record.id, "gender", 0.3, cipher="none")).get()
    [finding, *_] = [f for f in glassleaf.compliance.assess(record.id).findings if f.feature == "gender"]
    assert finding.disparities_on == Basis(done.n, 0.3)


def test_groups_are_named_in_both_languages():
    codes = {"r": "rented", "o": "owned"}
    feature = Feature(name="home", meaning="Home", kind=Kind.CATEGORICAL, categories=codes)
    groups = [Group("code", "r", 30), Group("code", "x", 30), Group("rest", "", 25), Group("missing", "", 40)]
    for language in LANGUAGES:
        say = Catalogue(language)
        rest = say("measure.group_rest_of", members="owned")  # people without a value have a group of their own
        named = ("rented", "x", rest, say("measure.group_missing"))
        assert tuple(map(say.text, group_names(groups, feature))) == named
    translated = feature.model_copy(
        update={"categories": feature.categories | {"r": Text(feature.categories["r"].en, "租房")}}
    )
    assert [name.in_language("zh") for name in group_names(groups, translated)[:2]] == ["租房", "x"]
    bins = [Group("bin", str(i), 30) for i in (1, 2, 3)]
    for language in LANGUAGES:
        say = Catalogue(language)
        keys = ("measure.group_lowest", "measure.group_bin", "measure.group_highest")
        named = tuple(say(key, place=place, bins=3) for place, key in enumerate(keys, 1))
        assert tuple(map(say.text, group_names(bins, feature))) == named
