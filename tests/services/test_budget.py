"""The Hosts' budgets through the services: rows that are not answered, and what is measured without being counted."""

import pytest

from backend.data.federation import load_federation, write_federation
from backend.remark import Remark
from backend.services import Glassleaf
from backend.services.protocol_comparison import ComparisonRequest
from backend.services.scoring import Scoring, ScoringRequest

KEY = 512  # bits: for arithmetic, not for secrets


@pytest.fixture(scope="module")
def home(demo_home):
    home = demo_home()
    glassleaf = Glassleaf(home, pools=False)
    federation = glassleaf.federations.get("demo")
    hosts = tuple(h.model_copy(update={"budget": 1}) for h in federation.hosts)
    write_federation(federation.model_copy(update={"hosts": hosts}), federation.folder)
    assert load_federation(federation.folder).hosts[0].budget == 1
    glassleaf.close()
    return home


@pytest.fixture
def glassleaf(home):
    glassleaf = Glassleaf(home, key_floor=KEY, pools=False)
    yield glassleaf
    glassleaf.close()


def people(glassleaf):
    """Two ids that every Host holds, at random but always the same."""
    record = glassleaf.models.get("latest")
    return [i for i, part in glassleaf.models.part_of(record).items() if part == "test"][:2]


def score(glassleaf, *ids, cipher="none"):
    sheet = glassleaf.samples.read("latest", "\n".join([glassleaf.federations.get("demo").guest.id, *ids]).encode())
    return glassleaf.scoring.start(ScoringRequest("latest", sheet, cipher=cipher, key_bits=KEY)).get()


def test_measuring_is_not_counted_and_scoring_is_even_over_a_restart(glassleaf, home):
    first, second = people(glassleaf)
    for _ in range(2):
        assert glassleaf.scoring.evaluate("latest", 2, key_bits=KEY).encrypted.n == 2
        compared = glassleaf.protocol_comparison.start(
            ComparisonRequest("latest", cipher="none", names=("fed-eini",))
        ).get()
        assert all(row.equal for row in compared.runs.rows)
    assert [s.status for s in score(glassleaf, first).scores] == ["ok"]
    again = Glassleaf(home, pools=False)
    try:
        batch = score(again, first, second)
        [*_, entry] = [e for e in again.audit.entries("demo") if e.action == "score"]
    finally:
        again.close()
    assert [s.status for s in batch.scores] == ["failed", "ok"]
    refused = batch.scores[0]
    hosts = [host.name for host in glassleaf.federations.get("demo").hosts]
    spent = [Remark("budget_spent_on_scores", {"host": host, "n": 1, "days": 28}) for host in hosts]
    assert refused.problem in [remark.sentence() for remark in spent]
    assert refused.units == 0 and refused.predictions == () and refused.decision == ""
    assert b"failed,,," in Scoring.csv(batch)
    assert (entry.body["rows"], entry.body["failed"]) == (2, 1)


def test_a_plain_cipher_is_counted_like_any_other(glassleaf):
    third = [i for i, part in glassleaf.models.part_of(glassleaf.models.get("latest")).items() if part == "test"][2]
    assert [score(glassleaf, third).scores[0].status for _ in range(2)] == ["ok", "failed"]
