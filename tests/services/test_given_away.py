"""What answers have given away, through the services: added up by Host, limited in bits, and shown beside what one more would tell."""

import pytest

from backend.data.federation import write_federation
from backend.errors import SampleError
from backend.services import Glassleaf
from backend.services.scoring import ScoringRequest

BITS = 512  # for arithmetic, not for secrets


@pytest.fixture
def home(demo_home):
    return demo_home()


@pytest.fixture
def opened(home):
    """Opens the home once the first Host's operator has set some limits."""
    services = []

    def open_with(**limits):
        with Glassleaf(home, pools=False) as before:
            federation = before.federations.get("demo")
        first = federation.hosts[0].model_copy(update=limits)
        write_federation(federation.model_copy(update={"hosts": (first, *federation.hosts[1:])}), federation.folder)
        services.append(Glassleaf(home, key_floor=BITS, pools=False))
        return services[-1]

    yield open_with
    for service in services:
        service.close()


def people(glassleaf):
    """Two people that every Host holds."""
    return glassleaf.models.test_ids(glassleaf.models.get("latest"))[:2]


def score(glassleaf, person):
    sheet = glassleaf.samples.of_person("latest", person)
    return glassleaf.scoring.start(ScoringRequest("latest", sheet, cipher="none", key_bits=BITS)).get().scores[0]


def test_before_any_answer_nothing_is_given_away_and_a_score_has_its_price(opened):
    for told in opened().leakage.given_away("latest"):
        assert (told.people, told.largest, told.limit, told.person) == (0, 0.0, None, None)
        assert all(0 < bits <= told.capacity for bits in told.costs.values())


def test_answers_add_up_to_what_was_said_that_they_cost(opened):
    glassleaf = opened()
    first, second = people(glassleaf)
    before = glassleaf.leakage.given_away("latest")
    score(glassleaf, first)
    for told, cost in zip(glassleaf.leakage.given_away("latest", first), before, strict=True):
        assert told.people == 1 and 0 < told.largest == told.person <= cost.costs["score"]  # never more than was said
    score(glassleaf, first)
    for told in glassleaf.leakage.given_away("latest", first):
        assert told.person == min(2 * told.costs["score"], told.capacity)
    assert [told.person for told in glassleaf.leakage.given_away("latest", second)] == [0.0] * len(before)


def test_a_host_refuses_what_would_exceed_its_limit_in_bits_and_says_so(opened):
    glassleaf = opened()
    host, cost = (told := glassleaf.leakage.given_away("latest")[0]).host, told.costs["score"]
    limited = opened(max_bits=cost * 1.5)
    person = people(limited)[0]
    assert score(limited, person).status == "ok"
    refused = score(limited, person)
    assert refused.status == "failed" and host in refused.problem and f"{cost * 1.5:g} bits" in refused.problem
    told = limited.leakage.given_away("latest", person)[0]
    assert told.limit == cost * 1.5 and told.person == cost <= told.limit


def test_a_host_without_any_limit_counts_nothing_and_is_not_shown_as_one_that_told_nothing(opened):
    glassleaf = opened(budget=0)
    score(glassleaf, people(glassleaf)[0])
    first, second, *_ = glassleaf.leakage.given_away("latest", people(glassleaf)[0])
    assert (first.people, first.largest, first.person) == (None, None, None) and second.people == 1


def test_an_id_that_nobody_knows_is_refused_instead_of_shown_as_untouched(opened):
    with pytest.raises(SampleError):
        opened().leakage.given_away("latest", "nobody")
