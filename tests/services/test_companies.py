"""Hosts at their own companies: the same Guest over real links, the same trees and scores, and no file of one in another's."""

import shutil
import tomllib
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path
from threading import Thread

import pandas as pd
import pytest
import tomli_w
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import func, select
from streamlit.testing.v1 import AppTest

from app import session
from app.texts import Texts
from backend.data.demo import write_demo
from backend.data.federation import load_federation
from backend.errors import ApprovalPending, FederationError, NotAgreed, NotAvailable, ParameterError
from backend.link.agreement import load_agreement
from backend.link.config import load_config
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.age_check import AgeRequest
from backend.services.companies import make_companies, part_companies
from backend.services.explanation import MeansRequest
from backend.services.fairness import DisparityRequest
from backend.services.host_operator import own_host
from backend.services.host_service import HostService, host_service
from backend.services.linked import check_parties
from backend.services.protocol_comparison import ComparisonRequest
from backend.services.reasons import ReasonsRequest
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest
from backend.services.validation import ValidationRequest
from backend.store.schema import AnswerRow
from backend.trees.serialization import load_host

ROOT = Path(__file__).resolve().parents[2]
ROWS = 300  # of which more than 50 are test records
PARAMETERS = SecureBoostParameters(trees=2, depth=2, bins=4, cipher="rlwe")
UNTIL = date(2100, 1, 1)
OWN, YEARS = "age", "overdue_bills_6m"  # of the bank; of the telecom, whose numbers are years here: 40, 65, 90 …
UNWILLING = "telecom"  # does not agree to one of the purposes of measuring


def older(folder):
    """The demo with more elderly applicants at the bank, and a Host's number that is in years and has one value below 62."""
    write_demo(folder, rows=ROWS)
    for file, column, change in (("bank.csv", OWN, lambda n: n + 12), ("telecom.csv", YEARS, lambda n: 40 + 25 * n)):
        table = pd.read_csv(folder / file, dtype=str)
        table[column] = [one if pd.isna(one) else str(change(int(one))) for one in table[column]]
        table.to_csv(folder / file, index=False)
    toml = folder / "federation.toml"
    toml.write_text(toml.read_text().replace(f'name = "{YEARS}"\n', f'name = "{YEARS}"\nunit = "years"\n'))
    return load_federation(folder)


@contextmanager
def served(companies):
    """Every Host, served by threads of this process over its own wire."""
    services = [host_service(folder / "host.toml") for folder in companies.hosts.values()]
    threads = [Thread(target=service.serve, daemon=True) for service in services]
    for thread in threads:
        thread.start()
    try:
        yield services
    finally:
        for service in services:
            service.stop()
        for thread in threads:
            thread.join(30)


def allow_all(companies):
    """What every Host's operator does at its own folder."""
    for folder in companies.hosts.values():
        operator = own_host(folder, "operator")
        for request in operator.requests(waiting=True):
            operator.approve(request.approval.number, UNTIL, 10_000)
        operator.close()


def trained(glassleaf, folder, companies=None):
    name = glassleaf.federations.add(folder).name
    while True:
        try:
            return glassleaf.training.start(TrainingRequest(name, PARAMETERS)).get()
        except ApprovalPending:
            allow_all(companies)


def scored(glassleaf, record, companies=None):
    people = glassleaf.samples.table(record.id).head(12)
    sheet = glassleaf.samples.read(record.id, people.to_csv().encode())
    while True:
        try:
            return glassleaf.scoring.start(ScoringRequest(record.id, sheet, cipher="rlwe")).get()
        except ApprovalPending:
            allow_all(companies)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Companies, and their Hosts as they are served."""
    demo = older(tmp_path_factory.mktemp("whole") / "demo")
    companies = part_companies(demo, tmp_path_factory.mktemp("apart") / "companies")
    config = companies.hosts[UNWILLING] / "host.toml"
    told = tomllib.loads(config.read_text())
    told["limits"]["measures"].remove("disparity")
    config.write_text(tomli_w.dumps(told))
    with served(companies) as services:
        yield companies, services


@pytest.fixture(scope="module")
def apart(hosts):
    """Companies that are served, their bank's services, its model and scores of some people."""
    companies = hosts[0]
    with Glassleaf(companies.home, pools=False) as glassleaf:
        record = trained(glassleaf, companies.guest, companies)
        yield companies, glassleaf, record, scored(glassleaf, record, companies)


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """The same people, model and scores in one process."""
    folder = tmp_path_factory.mktemp("together")
    older(folder / "demo")
    with Glassleaf(folder / "home", pools=False) as glassleaf:
        record = trained(glassleaf, folder / "demo")
        yield glassleaf, record, scored(glassleaf, record)


def tree_of(glassleaf, record):
    return glassleaf.models.partial_model(record).trees


def test_trees_are_those_of_the_simulation_and_each_host_keeps_its_own_thresholds(apart, together):
    companies, glassleaf, record, _ = apart
    other, simulated, _ = together
    assert tree_of(glassleaf, record) == tree_of(other, simulated)
    runtime = other.federations._workspace.runtime(simulated.federation)
    for host, folder in companies.hosts.items():
        operator = own_host(folder, "operator")
        rules = load_host(operator._store.artefact(record.id)).rules
        operator.close()
        here = runtime._simulated.hosts[host]._partial_models._store.artefact(simulated.id)
        assert rules == load_host(here).rules


def test_scores_are_those_of_the_simulation_to_the_last_bit(apart, together):
    assert len(apart[3].scores) == 12
    assert [s.margin for s in apart[3].scores] == [s.margin for s in together[2].scores]


def explained(glassleaf, record, companies=None):
    sheet = glassleaf.samples.of_person(record.id, glassleaf.models.test_ids(record)[0])
    while True:
        try:
            return glassleaf.reasons.start(ReasonsRequest(record.id, sheet)).get().people[0]
        except ApprovalPending:
            allow_all(companies)


@pytest.fixture(scope="module")
def reasons(apart):
    """Of one person, over links."""
    companies, glassleaf, record, _ = apart
    return explained(glassleaf, record, companies)


def test_reasons_are_those_of_the_simulation(reasons, together):
    here, there = reasons, explained(*together[:2])
    assert here.status == "ok" and here.reasons == there.reasons and here.score.margin == there.score.margin


def test_the_report_says_what_the_simulations_says_but_for_what_only_a_simulation_measures(apart, together):
    here, there = (glassleaf.reports.make(record.id).content for glassleaf, record in (apart[1:3], together[:2]))
    for part in ("features", "structure", "proxies", "quality"):
        assert getattr(here, part) == getattr(there, part), part
    assert here.release is None and there.release is not None
    assert [(party.name, party.role) for party in here.parties] == [(party.name, party.role) for party in there.parties]


def test_what_a_host_has_not_agreed_to_measure_is_not_measured_in_words_and_so_in_the_report(apart):
    _, glassleaf, record, _ = apart
    feature = next(
        p.features[0].name for p in glassleaf.federations.get(record.federation).hosts if p.name == UNWILLING
    )
    with pytest.raises(
        NotAgreed, match=f"^Not measured: the Host has not agreed. {UNWILLING} does not allow the purpose"
    ):
        glassleaf.fairness.start_disparity(DisparityRequest(record.id, feature)).get()
    (line,) = glassleaf.reports.make(record.id).content.fairness
    assert line.feature == feature and not line.measures and line.on.refused == UNWILLING


def counted(companies):
    """Answers that all Hosts have counted."""
    found = 0
    for folder in companies.hosts.values():
        with closing(own_host(folder, "operator")) as operator, operator._database.read() as session:
            found += session.scalar(select(func.sum(AnswerRow.asked))) or 0
    return found


def test_a_measurement_waits_for_every_operator_before_anybody_is_counted_and_what_one_denies_is_said_to_be_refused(
    apart, hosts
):
    companies, glassleaf, record, _ = apart
    chain = [step.host for step in glassleaf.models.compiled(record).guest.folding.steps]
    asked, before = ValidationRequest(record.id, samples=20), counted(companies)
    with pytest.raises(ApprovalPending):
        glassleaf.validation.start(asked).get()
    for host in chain:
        with closing(own_host(companies.hosts[host], "operator")) as operator:
            (request,) = operator.requests(waiting=True)
            assert request.approval.purpose == "validation"
            operator.deny(request.approval.number, "not this one")
    missing = {test.id: test.missing for test in glassleaf.validation.start(asked).get().tests}
    assert {missing[name] for name in ("group_calibration", "weak_spots", "exactness")} == {"refused"}
    assert counted(companies) == before


def test_other_ways_of_scoring_are_not_run_on_real_hosts_and_this_is_said(apart):
    _, glassleaf, record, _ = apart
    with pytest.raises(NotAvailable, match="runs at its own company"):
        glassleaf.protocol_comparison.start(ComparisonRequest(record.id)).get()


def kinds(transcript, ends=("EndConversation", "ConversationReceipt", "AskApproval", "ApprovalGranted")):
    return sorted((e.sender, e.receiver, e.kind) for e in transcript if e.kind not in ends)


def test_the_transcript_has_what_hosts_state_that_they_sent_each_other(apart, together):
    assert kinds(apart[3].transcript) == kinds(together[2].transcript)


def test_a_host_counts_people_and_kinds_and_its_figures_name_nobody(apart, hosts, reasons):
    asked = 0
    for service in hosts[1]:
        text = service.operation._metrics.text().decode()
        found = {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        outcomes = ("answered", "no_record", "limit_reached")
        people = [found["glassleaf_host_people_total", outcome] for outcome in outcomes]
        if ("glassleaf_host_kind_seconds_count", "DecisionVectors") in found:  # it owns a split of the model
            assert sum(people) == 12 + 1 and people[2] == 0  # of the scores and the reasons
            asked += 1
        assert found["glassleaf_host_kind_seconds_count", "StartTraining"] == 1
        words = {name for feature in service.config.features() for name in (feature.name, feature.meaning.en)}
        assert not any(word in text for word in words | {apart[2].id, *service.party._gate.table.ids})
    assert asked


def test_no_folder_has_anothers_table_or_secret(apart):
    companies = apart[0]
    folders = {"bank": companies.guest, **companies.hosts}
    for name, folder in folders.items():
        tables = {path.name for path in folder.rglob("*.csv")}
        assert len(tables) == 1
        for other, elsewhere in folders.items():
            if other != name:
                assert not tables & {path.name for path in elsewhere.rglob("*.csv")}
                secrets = [*(elsewhere / "keys").rglob("*.key*"), elsewhere / "keys" / "leaf.pem"]
                assert len(secrets) >= 4
                for content in (secret.read_bytes() for secret in secrets):
                    assert all(content not in path.read_bytes() for path in folder.rglob("*") if path.is_file())
    hosts = tomllib.loads((companies.guest / "federation.toml").read_text())["hosts"]
    assert all("file" not in host and "budget" not in host and host["features"] for host in hosts)


def test_what_only_a_hosts_operator_has_is_not_available_in_words(apart):
    _, glassleaf, record, _ = apart
    runtime = glassleaf.federations._workspace.runtime(record.federation)
    host, person = runtime.hosts[0], runtime.table.ids[0]
    asked = [
        lambda: glassleaf.leakage.given_away(record.id),
        lambda: glassleaf.demonstration.look_as(record.id, host, person),
        lambda: glassleaf.people.show(record.federation, person, party=host),
        lambda: glassleaf.host_operator(record.federation, host),
        lambda: runtime.operator.database(host),
        lambda: runtime.operator.account(host),
        lambda: runtime.operator.logged(host),
        lambda: runtime.operator.stop(host),
        lambda: runtime.play(runtime.open_session(()), host, runtime.table),
    ]
    for ask in asked:
        with pytest.raises(NotAvailable, match=r"runs at its own company\. Ask its operator there"):
            ask()
    assert record.release is None  # a joint audit shows records; only a simulation makes one
    assert set(glassleaf.federations._workspace.databases(record.federation)) == {"bank"}
    assert [level.party for level in runtime.pools()] == ["bank"]


def test_while_one_process_has_the_links_another_asks_hosts_through_it(apart):
    companies, _, record, batch = apart
    with Glassleaf(companies.home) as second:
        again = scored(second, record, companies)
        assert [one.margin for one in again.scores] == [one.margin for one in batch.scores]
        assert all(link.up for link in second.federations.links(record.federation).values())


@pytest.mark.slow
@pytest.mark.parametrize(("page", "key"), [("privacy", "told"), ("privacy", "widths"), ("host", "host")])
def test_pages_say_what_only_hosts_operators_see(apart, monkeypatch, page, key):
    monkeypatch.setenv("GLASSLEAF_HOME", str(apart[0].home))
    at = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=60)
    at.switch_page(f"../pages/{page}.py").run()
    session.service().close()
    session._service.clear()
    assert not at.exception and not at.warning
    assert any(Texts("en")(f"linked.{key}") in text.value for text in (*at.info, *at.markdown))


def test_the_meter_reads_a_score_with_the_dither_that_came_with_it(apart):
    _, glassleaf, record, batch = apart
    for score in batch.scores:
        read = glassleaf.leakage.meter(record.id, score, dither=batch.dither)
        assert 1 <= read.count <= read.combinations


def test_a_federation_file_that_says_something_else_than_the_agreement_is_refused(apart):
    companies = apart[0]
    federation, agreement = load_federation(companies.guest), load_agreement(companies.guest / "agreement.toml")
    check_parties(federation, agreement)
    first, *others = federation.hosts
    with pytest.raises(FederationError, match="differ from those that it agreed to disclose"):
        fewer = first.model_copy(update={"features": first.features[1:]})
        check_parties(federation.model_copy(update={"hosts": (fewer, *others)}), agreement)
    with pytest.raises(FederationError, match="names bank and"):
        check_parties(federation.model_copy(update={"hosts": tuple(others)}), agreement)


def test_a_host_that_would_disclose_something_else_than_it_signed_does_not_start(apart, tmp_path):
    config = load_config(next(iter(apart[0].hosts.values())) / "host.toml")
    dictionary = tomllib.loads(config.path("dictionary.toml").read_text())
    other = tmp_path / "dictionary.toml"
    other.write_text(tomli_w.dumps({"features": dictionary["features"][1:]}))
    source = config.source.model_copy(update={"dictionary": str(other)})
    # keys of its own: who has the links of those in the folder is a Host that serves
    shutil.copytree(config.path(config.keys), tmp_path / "keys", ignore=shutil.ignore_patterns("*.lock"))
    changed = {"source": source, "store": f"sqlite:///{tmp_path / 'store.db'}", "keys": str(tmp_path / "keys")}
    with pytest.raises(FederationError, match="the agreement names"):
        HostService(config.model_copy(update=changed))


def test_companies_are_made_into_an_empty_folder_only(tmp_path):
    (tmp_path / "something").write_text("")
    with pytest.raises(ParameterError, match="is not empty"):
        make_companies(tmp_path, ROWS)


def elderly(glassleaf, record, feature, companies=None):
    while True:
        try:
            return glassleaf.age_check.start(AgeRequest(record.id, feature, samples=50, cipher="rlwe")).get()
        except ApprovalPending:
            allow_all(companies)


@pytest.mark.parametrize(("feature", "party"), [(OWN, "bank"), (YEARS, "telecom")])
def test_elderly_ages_are_measured_as_in_the_simulation_whoever_holds_them(apart, together, feature, party):
    companies, glassleaf, record, _ = apart
    with closing(own_host(companies.hosts["telecom"], "operator")) as operator:
        splits = [split for model in operator.models() for split in model.splits if split.name == YEARS]
    # whichever elderly age is drawn decides nothing
    assert splits and all(split.rule.threshold <= 65 for split in splits)
    here, before = elderly(glassleaf, record, feature, companies), counted(companies)
    assert (here.party, here.n, len(here.gaps)) == (party, 50, 4 if feature == OWN else 1)
    assert here == elderly(*together[:2], feature)
    again = elderly(glassleaf, record, feature)  # approved for this purpose; everybody is counted once a class
    times, left = divmod(counted(companies) - before, 1 + len(here.gaps))
    assert (
        again == here and not left and here.n - 5 < times <= here.n + 2
    )  # a draw of ages counts for everybody, and so does its use


@pytest.mark.slow
def test_one_curve_has_real_hosts_asked_about_all_features_with_the_scores_that_they_count(apart):
    companies, glassleaf, record, _ = apart
    host, *_ = record.hosts
    first, *_ = glassleaf.federations.get(record.federation).party(host).features
    request = MeansRequest(record.id, first.name, samples=200)
    while True:
        try:
            assert not glassleaf.explanation.start_means(request).get().measured
            break
        except ApprovalPending:
            allow_all(companies)
    summed = glassleaf.models.measured(record, "sums: test")
    asked = {
        feature.name for party in glassleaf.federations.get(record.federation).parties for feature in party.features
    }
    assert set(summed) == asked
