"""What a Host has not agreed to is not measured, and finding, report, log and command say so."""

from contextlib import closing

import pytest
from inside import runtime_of
from release_rule import EVERY_SCORE
from typer.testing import CliRunner

from backend.cli import app
from backend.data.federation import MEASURES, load_federation, write_federation
from backend.errors import NotAgreed
from backend.i18n import LANGUAGES, Catalogue
from backend.protocols.training.forest import ForestParameters
from backend.services import Glassleaf
from backend.services.alternatives import AlternativesRequest
from backend.services.explanation import MeansRequest, PermutationRequest
from backend.services.fairness import DisparityRequest, ProxyRequest
from backend.services.forest_serving import ServingRequest
from backend.services.model_card import CardRequest
from backend.services.model_difference import DifferenceRequest
from backend.services.training import TrainingRequest

HOST = "telecom"  # holds gender
SENTENCE = "Not measured: the Host has not agreed"


@pytest.fixture
def glassleaf(demo_home):
    glassleaf = Glassleaf(demo_home(), pools=False)
    yield glassleaf
    glassleaf.close()


def agree(glassleaf, *purposes):
    """Have the Host agree to these purposes and no others."""
    runtime_of(glassleaf)._simulated.hosts[HOST]._measures = purposes


def finding_of(glassleaf, record):
    return next(f for f in glassleaf.compliance.assess(record.id).findings if f.feature == "gender")


def test_without_a_hosts_agreement_the_figure_says_so_everywhere(glassleaf):
    [record, *_] = glassleaf.models.all()
    agree(glassleaf, "proxies")
    with pytest.raises(NotAgreed, match=SENTENCE):
        glassleaf.fairness.start_disparity(DisparityRequest(record.id, "gender", cipher="none")).get()
    found = finding_of(glassleaf, record)
    assert found.disparities is None and found.disparities_on.refused == HOST and found.proxies_on is None
    told = next(e for e in glassleaf.reports.make(record.id).content.fairness if e.feature == "gender")
    assert (told.on.refused, told.measures) == (HOST, ())
    assert SENTENCE in glassleaf.reports.export(record.id, "html").decode()
    entry = glassleaf.audit.entries(record.federation)
    assert any(e.action == "disparity" and e.body["outcome"] == "not agreed" and e.body["host"] == HOST for e in entry)


def test_the_federation_file_states_a_hosts_policy_and_the_command_says_what_it_refuses(demo_home, monkeypatch):
    with closing(Glassleaf(demo_home(), pools=False)) as glassleaf:
        [record, *_] = glassleaf.models.all()
        federation = runtime_of(glassleaf).federation
    policy = {HOST: ("proxies",)}
    hosts = tuple(h.model_copy(update={"measures": policy.get(h.name, ())}) for h in federation.hosts)
    write_federation(federation.model_copy(update={"hosts": hosts}), federation.folder)
    assert [h.measures for h in load_federation(federation.folder).hosts] == [policy.get(h.name, ()) for h in hosts]
    monkeypatch.setenv("GLASSLEAF_HOME", str(glassleaf.home))
    refused = CliRunner().invoke(app, ["disparity", record.id, "gender"])
    assert refused.exit_code != 0 and SENTENCE in str(refused.exception) + refused.output


def test_what_was_measured_before_stays_and_what_is_measured_later_takes_the_place(glassleaf):
    [record, *_] = glassleaf.models.all()
    request = DisparityRequest(record.id, "gender", cipher="none")
    agree(glassleaf)
    with pytest.raises(NotAgreed):
        glassleaf.fairness.start_disparity(request).get()
    agree(glassleaf, "disparity")
    glassleaf.fairness.start_disparity(request).get()
    assert finding_of(glassleaf, record).disparities_on.refused == ""
    agree(glassleaf)
    with pytest.raises(NotAgreed):
        glassleaf.fairness.start_disparity(request).get()
    found = finding_of(glassleaf, record)
    assert found.disparities and found.disparities_on.refused == ""


@pytest.mark.parametrize("purpose", ["proxies", "curves", "shuffles", "comparisons", "alternatives", "card", "leaks"])
def test_every_measurement_asks_for_its_own_purpose(glassleaf, purpose):
    [record, *_] = glassleaf.models.all()
    agree(glassleaf, *(set(MEASURES) - {purpose}))
    begin = {
        "proxies": lambda: glassleaf.fairness.start_proxies(ProxyRequest(record.id, "gender", cipher="none")),
        "curves": lambda: glassleaf.explanation.start_means(MeansRequest(record.id, "basket_mix", cipher="none")),
        "shuffles": lambda: glassleaf.explanation.start_permutation(PermutationRequest(record.id, cipher="none")),
        "comparisons": lambda: glassleaf.model_differences.start(
            DifferenceRequest(record.id, record.id, cipher="none")
        ),
        "alternatives": lambda: glassleaf.alternatives.start(
            AlternativesRequest(record.id, "gender", depths=(1,), cipher="none")
        ),
        "card": lambda: glassleaf.model_cards.start(CardRequest(record.id, samples=20, cipher="none")),
        "leaks": lambda: glassleaf.leakage.start_curve(record.id, 20),
    }[purpose]
    with pytest.raises(NotAgreed) as refused:
        begin().get()
    assert (refused.value.host, refused.value.purpose) == (HOST, purpose)
    if purpose == "alternatives":  # refused before anything was trained, and logged
        last = glassleaf.audit.entries("demo")[-1]
        assert (last.action, last.body["outcome"], last.body["host"]) == ("alternatives", "not agreed", HOST)


def test_a_forest_is_trained_without_agreement_and_served_where_the_host_agrees_to_just_that(glassleaf):
    forest = ForestParameters(trees=4, depth=2, bins=8, cipher="none")
    agree(glassleaf, "proxies")
    record = glassleaf.training.start(TrainingRequest("demo", forest, most_named=EVERY_SCORE)).get()
    request = ServingRequest(record.id, samples=4, batches=3, workers=2, lost_at=3)
    with pytest.raises(NotAgreed):
        glassleaf.forest_serving.start(request).get()
    agree(glassleaf, "serving")
    assert len(glassleaf.forest_serving.start(request).get().batches) == 3


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sentence_names_the_host(language):
    assert HOST in Catalogue(language)("disparity.not_agreed", host=HOST)
