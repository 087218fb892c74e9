"""A home that an older version wrote opens, scores and verifies.

``homes/0.1.0.zip`` was written by version 0.1.0 itself (commit b471a9c) with ``homes/make_home.py``, which says how. No secret key is
in it: a key is made again, and answers do not depend on it.
"""

import json
import zipfile
from pathlib import Path

import pytest
from homes import settled

from backend.fairness.disparity import MEASURES
from backend.services import Glassleaf
from backend.services.scoring import ScoringRequest

HOMES = Path(__file__).with_name("homes")
BITS = 512


@pytest.fixture(scope="module", params=sorted(path.name for path in HOMES.glob("*.zip")))
def old_home(request, tmp_path_factory):
    home = tmp_path_factory.mktemp("old-home")
    with zipfile.ZipFile(HOMES / request.param) as archive:
        archive.extractall(home)
    return settled(home)  # a user who moved nothing has the federation where it lies


@pytest.fixture(scope="module")
def expected(old_home):
    return json.loads((old_home / "expected.json").read_text())


@pytest.fixture(scope="module")
def glassleaf(old_home):
    opened = Glassleaf(old_home, key_floor=BITS, pools=False)
    yield opened
    opened.close()


def test_its_audit_log_verifies_with_the_hosts_heads(glassleaf, expected):
    verdict = glassleaf.audit.verify("demo")
    assert verdict.problems == ()
    assert list(verdict.witnesses) == expected["witnesses"] != []
    old = glassleaf.audit.entries("demo")[: expected["audit"]["entries"]]
    assert (old[-1].number, old[-1].hash) == (expected["audit"]["head"]["number"], expected["audit"]["head"]["hash"])


def test_its_models_are_listed_newest_first(glassleaf, expected):
    assert [record.id for record in glassleaf.models.all("demo")] == expected["models"]


def test_a_sample_gets_the_score_that_the_old_version_gave(glassleaf, expected):
    for model, scores in expected["scores"].items():
        for person, score in scores.items():
            request = ScoringRequest(model, glassleaf.samples.of_person(model, person), key_bits=BITS)
            (found,) = glassleaf.scoring.start(request).get().scores
            assert {name: getattr(found, name) for name in score} == score


def test_a_report_that_it_issued_checks_and_is_named_in_its_log(glassleaf, old_home):
    checked = glassleaf.reports.check((old_home / "report.json").read_bytes())
    assert [federation for federation, _ in checked.named_by] == ["demo"]


def test_what_was_decided_and_stated_is_there(glassleaf, expected):
    boosted = expected["models"][-1]
    (review,) = glassleaf.reviews.history(boosted)
    assert {name: getattr(review, name) for name in expected["review"]} == expected["review"]
    assert [line.person for line in glassleaf.reports.sign_offs(boosted)] == ["R. Egulator"]


def test_what_was_measured_is_there(glassleaf, expected):
    boosted = expected["models"][-1]
    assert {p.feature or p.party: p.fall for p in glassleaf.explanation.permutation(boosted)} == expected["permutation"]
    [finding, *_] = [f for f in glassleaf.compliance.assess(boosted).findings if f.feature == "gender"]
    assert finding.disparities and finding.proxies is not None
    # gaps that 0.1.0 measured had intervals that could not hold "no difference"; the rates were right
    assert {row.measure for row in finding.disparities} == set(MEASURES)


def test_a_report_is_made_of_it_today(glassleaf, expected):
    glassleaf.reports.check(glassleaf.reports.export(expected["models"][-1], "json"))
