"""Elderly ages are measured as if everything were in one hand, whoever holds the ages; the finding and the report show it."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from measurement_contexts import TrainedDemo
from typer.testing import CliRunner

from backend.cli import app
from backend.errors import Cancelled, NotAgreed, ParameterError
from backend.i18n import Catalogue
from backend.jobs import Job
from backend.protocols.scoring.age_classes import age_classes
from backend.services.age_check import AgeRequest, measure_ages
from backend.services.measurement import drawn

OWN, HOSTS = "age", "tenure_months"  # of the bank; of a Host, which says here that it is in years
PEOPLE = 150


def age_the_demo(demo):
    """Older people at the bank, and a Host whose numbers are years."""
    bank, toml = demo / "bank.csv", demo / "federation.toml"
    table = pd.read_csv(bank, dtype=str)
    table[OWN] = (pd.to_numeric(table[OWN]) + 12).astype(str)
    table.to_csv(bank, index=False)
    text = toml.read_text()
    at = text.index(f'name = "{HOSTS}"')
    months = '[hosts.features.unit]\nen = "months"\nzh = "个月"'
    assert months in text[at : at + 400]
    years = '[hosts.features.unit]\nen = "years"\nzh = "年"'
    toml.write_text(text[:at] + text[at:].replace(months, years, 1))


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    made = TrainedDemo(tmp_path_factory.mktemp("ages"), age_the_demo)
    yield made
    made.glassleaf.close()


def measuring(context, feature, **options):
    request = AgeRequest(context.record.id, feature, **{"cipher": "none", "samples": PEOPLE, **options})
    return Job(lambda job: measure_ages(context.measured, request, job), 0)


@pytest.mark.parametrize("name", [OWN, HOSTS])
def test_means_are_those_of_the_same_people_at_other_ages_in_one_hand(context, name):
    found = measuring(context, name).start().get()
    party, feature = next((p, f) for p, f in context.offered if f.name == name)
    ids = context.runtime.table.take(drawn(context.measured, PEOPLE, 7)).ids
    everybody, held = context.people.loc[list(ids)], context.people[name].dropna().to_numpy(dtype=float)
    assert (found.party, found.n, len(found.gaps)) == (party, PEOPLE, 4)
    outputs = context.measured.compiled.outputs
    for place, told in enumerate((found.predicted, *(gap.predicted for gap in found.gaps))):
        ages, times = np.unique(held[age_classes(feature, held)[place]], return_counts=True)
        at = np.array([outputs.predict(context.margins(everybody.assign(**{name: a}))[:, None])[:, 0] for a in ages])
        by_person = np.average(at, axis=0, weights=times)  # everybody's expectation over the ages of the class
        spread = np.average((at - by_person) ** 2, axis=0, weights=times).sum() ** 0.5 / PEOPLE
        assert told == pytest.approx(by_person.mean(), abs=5 * spread + 1e-3)


def test_under_encryption_it_is_measured_alike(context):
    plain, encrypted = (measuring(context, OWN, cipher=cipher).start().get() for cipher in ("none", "paillier"))
    assert plain == encrypted  # the Guest draws its own ages by the seed


def test_every_class_is_a_scoring_of_its_own_and_can_be_stopped(context):
    job = measuring(context, HOSTS).start()
    job.get()
    kinds = [entry.kind for entry in job.transcript]
    assert kinds.count("AssignAges") == kinds.count("AgesAssigned") == 5 and job.done == job.total == 5 * PEOPLE
    stopped = measuring(context, HOSTS)
    stopped.cancel()
    with pytest.raises(Cancelled):
        stopped.start().get()


@pytest.mark.parametrize(
    ("feature", "options", "reason"),
    [
        ("shoe_size", {}, "No split of the model uses shoe_size"),
        ("gender", {}, "does not give gender in years"),
        ("monthly_income", {}, "does not give monthly_income in years .unit CNY"),
        (OWN, {"samples": 49}, "49 people"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_words(context, feature, options, reason):
    with pytest.raises(ParameterError, match=reason):
        measuring(context, feature, **options).start().get()


def test_a_task_without_two_outcomes_has_no_negative_factor(context):
    other = replace(context.measured, record=replace(context.record, task="number"))
    with pytest.raises(ParameterError, match="two outcomes"):
        Job(lambda job: measure_ages(other, AgeRequest(context.record.id, OWN), job), 0).start().get()


def test_a_host_that_has_not_agreed_is_asked_for_nobodys_age(context, monkeypatch):
    monkeypatch.setattr(context.runtime._simulated.hosts["platform"], "_measures", ("disparity",))
    with pytest.raises(NotAgreed, match="platform does not allow the purpose 'age'"):
        measuring(context, HOSTS).start().get()


def test_too_few_elderly_people_are_told_of_by_nobody(tmp_path):
    young = TrainedDemo(tmp_path)  # the demo's people are 65 at most, and hardly anybody is 62
    request = AgeRequest(young.record.id, OWN, cipher="none", samples=PEOPLE)
    with pytest.raises(ParameterError, match="fewer than 20 of bank's records are 62 or older"):
        Job(lambda job: measure_ages(young.measured, request, job), 0).start().get()
    young.glassleaf.close()


def test_the_finding_the_report_and_the_log_show_it(context):
    glassleaf, model = context.glassleaf, context.record.id
    [finding] = [f for f in glassleaf.compliance.assess(model).findings if f.check]
    assert (finding.feature, finding.ages) == (OWN, None)
    page = glassleaf.reports.export(model, "html").decode()
    assert Catalogue("en")("document.elderly_open") in page
    done = glassleaf.fairness.start(AgeRequest(model, OWN, cipher="none")).get()
    [finding] = [f for f in glassleaf.compliance.assess(model).findings if f.check]
    assert finding.ages == done
    [line] = [f for f in glassleaf.reports.make(model).content.assessment.findings if f.check]
    assert (line.ages.verdict, line.ages.n) == (done.verdict, done.n)
    assert [g.worse for g in line.ages.gaps] == [round(g.worse, 4) for g in done.gaps]
    assert f"{done.gaps[0].worse:+.4f}" in glassleaf.reports.export(model, "html", "zh").decode()
    assert "elderly" in [e.action for e in glassleaf.audit.entries(context.record.federation)]


def test_the_shell_measures_it(context, monkeypatch):
    monkeypatch.setenv("GLASSLEAF_HOME", str(context.glassleaf.home))
    words = ["elderly", context.record.id, OWN, "--samples", str(PEOPLE), "--cipher", "none"]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0 and "younger, class 4 of 4" in told.output
    body = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)
    assert body["verdict"] in ("negative", "not_negative", "undecided") and len(body["gaps"]) == 4
