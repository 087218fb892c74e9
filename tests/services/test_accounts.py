"""Who is let in, in which role, and what each role is refused by the services, whatever page or program asks."""

import math
from pathlib import Path

import pytest
from release_rule import EVERY_SCORE

from backend.errors import SecurityError, SignInError
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.accounts import LEEWAY, SIGN_IN_FILE, VARIABLE, Accounts
from backend.services.reasons import ReasonsRequest
from backend.services.roles import ROLES, WHOSE
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest

ISSUER, NOW = "https://id.example", 1_700_000_000
SETTINGS = """
issuer = "https://id.example"
claim = ["realm_access", "roles"]
hours = 8

[roles]
operator = ["risk-operators"]
analyst = ["risk-analysts", "interns"]
regulator = ["supervision"]
"""
WHY = "read with the whole team"


def claims(*roles: str, sub: str = "ana", **changed: object) -> dict[str, object]:
    held = {"iss": ISSUER, "sub": sub, "email": f"{sub}@bank.example", "exp": NOW + 300, "auth_time": NOW - 60}
    return held | {"realm_access": {"roles": list(roles)}} | changed


@pytest.fixture
def accounts(tmp_path: Path) -> Accounts:
    (tmp_path / SIGN_IN_FILE).write_text(SETTINGS)
    return Accounts(tmp_path)


def refused(accounts: Accounts, given: dict[str, object], now: float = NOW) -> str:
    with pytest.raises(SignInError) as raised:
        accounts.account(given, now)
    return raised.value.code


def test_an_account_is_issuer_and_subject_with_the_roles_of_its_claim(accounts):
    found = accounts.account(claims("supervision", "cooks", "interns"), NOW)
    assert (found.actor, found.name) == ("https://id.example#ana", "ana@bank.example")
    assert found.roles == ("analyst", "regulator")


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"exp": NOW - LEEWAY}, "sign_in_expired"),
        ({"exp": NOW + 10**9, "auth_time": NOW - 8 * 3600}, "sign_in_too_old"),
        ({"auth_time": NOW + LEEWAY + 1}, "sign_in_in_future"),
        ({"exp": math.inf}, "sign_in_lacks_time"),
        ({"exp": math.nan}, "sign_in_lacks_time"),
        ({"exp": 10**400}, "sign_in_lacks_time"),
        ({"exp": True}, "sign_in_lacks_time"),
        ({"exp": None}, "sign_in_lacks_time"),
        ({"auth_time": "yesterday"}, "sign_in_lacks_time"),
        ({"auth_time": None, "iat": NOW}, "sign_in_lacks_time"),
        ({"iss": "https://id.example.evil"}, "sign_in_of_other_provider"),
        ({"iss": ""}, "sign_in_lacks_text"),
        ({"sub": None}, "sign_in_lacks_text"),
        ({"sub": "a\nb"}, "sign_in_name_unusable"),
        ({"sub": "s" * 400}, "sign_in_name_unusable"),
        ({"realm_access": {}}, "no_role"),
        ({"realm_access": "risk-operators"}, "no_role"),
        ({"realm_access": {"roles": "risk-operators, interns"}}, "no_role"),
        ({"realm_access": {"roles": [["interns"]]}}, "no_role"),
        ({"realm_access.roles": ["interns"], "realm_access": {}}, "no_role"),
    ],
)
def test_claims_that_do_not_hold_let_nobody_in(accounts, changed, code):
    accounts.account(claims("interns"), NOW)
    assert refused(accounts, claims("interns") | changed) == code


def test_a_sign_in_ends_at_both_times(accounts):
    lasting = claims("interns", exp=NOW + 10**6, auth_time=NOW)
    accounts.account(lasting, NOW + 8 * 3600 - 1)
    assert refused(accounts, lasting, NOW + 8 * 3600) == "sign_in_too_old"
    accounts.account(claims("interns"), NOW + 299)
    assert refused(accounts, claims("interns"), NOW + 300 + LEEWAY) == "sign_in_expired"


def test_without_auth_time_a_sign_in_counts_from_its_token(accounts):
    given = claims("interns", exp=NOW + 10**6, iat=NOW - 8 * 3600)
    given.pop("auth_time")
    assert refused(accounts, given) == "sign_in_too_old"
    accounts.account(given | {"iat": NOW - 5}, NOW)
    given.pop("iat")
    assert refused(accounts, given) == "sign_in_lacks_time"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "issuer = ",
        SETTINGS + "\nadmin = ['everybody']",
        SETTINGS.replace("hours = 8", "hours = 0"),
        SETTINGS.replace("hours = 8", "days = 8"),
        SETTINGS.replace('issuer = "https://id.example"', ""),
        SETTINGS.split("[roles]", maxsplit=1)[0] + "roles = {}",
        SETTINGS.replace('["supervision"]', "[1]"),
    ],
)
def test_settings_that_cannot_be_used_let_nobody_in(accounts, text):
    accounts.file.write_text(text)
    assert accounts.wanted() and refused(accounts, claims("interns")).startswith("sign_in_settings_")


def test_a_named_file_that_is_not_there_lets_nobody_in(tmp_path, monkeypatch):
    assert not Accounts(tmp_path).wanted()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "mounted.toml"))
    assert (
        Accounts(tmp_path).wanted() and refused(Accounts(tmp_path), claims("interns")) == "sign_in_settings_unreadable"
    )


@pytest.fixture(scope="module")
def glassleaf(demo_home):
    with Glassleaf(demo_home(), pools=False, actor="cli") as opened:
        (opened.home / SIGN_IN_FILE).write_text(SETTINGS)
        yield opened


def signed_in(glassleaf: Glassleaf, role: str, sub: str = "ana", *held: str) -> Glassleaf:
    given = {"operator": "risk-operators", "analyst": "interns", "regulator": "supervision"}
    return glassleaf.signed_in(glassleaf.accounts.account(claims(given[role], *held, sub=sub), NOW), role)


def test_nobody_acts_in_a_role_that_the_account_has_not(glassleaf):
    account = glassleaf.accounts.account(claims("interns"), NOW)
    for role in ("operator", "regulator", "admin"):
        with pytest.raises(SignInError):
            glassleaf.signed_in(account, role)


def test_a_regulator_can_neither_train_nor_score_nor_name_reasons(glassleaf):
    other, model = signed_in(glassleaf, "regulator"), glassleaf.models.get("latest").id
    models, ids = len(glassleaf.models.all()), glassleaf.models.test_ids(glassleaf.models.get(model))
    sheet = glassleaf.samples.of_person(model, ids[0])
    for job in (
        other.training.start(
            TrainingRequest("demo", SecureBoostParameters(trees=1, depth=1, cipher="none"), most_named=EVERY_SCORE)
        ),
        other.scoring.start(ScoringRequest(model, sheet, cipher="none")),
        other.reasons.start(ReasonsRequest(model, sheet)),
    ):
        with pytest.raises(SecurityError, match="the current role is regulator"):
            job.get()
    assert len(glassleaf.models.all()) == models
    with pytest.raises(SecurityError, match="the current role is regulator"):
        other.own_data.begin("a.csv", b"id,y\n1,0\n")


def test_every_action_of_a_role_is_a_real_ones(glassleaf):
    source = "".join(f.read_text() for f in (Path(__file__).parents[2] / "backend" / "services").glob("*.py"))
    for action, roles in WHOSE.items():
        named = f'@recorded("{action}")' in source or f'require("{action}")' in source or f'= "{action}"' in source
        assert named or action in ("alternatives", "alternative-choice"), action
        assert set(roles) < set(ROLES)


def test_the_log_names_issuer_and_subject(glassleaf):
    signed_in(glassleaf, "analyst").lifecycle.describe("latest", name="Named by Ana")
    entry = glassleaf.audit.entries("demo")[-1]
    assert (entry.action, entry.actor, entry.role) == ("describe", "https://id.example#ana", "analyst")


def test_whoever_trained_a_model_decides_nothing_about_it_in_another_role_or_under_another_name(glassleaf):
    model = (
        signed_in(glassleaf, "operator")
        .training.start(
            TrainingRequest(
                "demo", SecureBoostParameters(trees=1, depth=2, cipher="none", seed=3), most_named=EVERY_SCORE
            )
        )
        .get()
    )
    ana = signed_in(glassleaf, "operator")
    ana.lifecycle.step(model.id, "submit")
    both = signed_in(glassleaf, "regulator", "ana", "risk-operators")
    finding = next(iter(both.reviews.undecided(model.id)))
    with pytest.raises(SecurityError, match="trained the model"):
        both.lifecycle.step(model.id, "approve", reason=WHY)
    with pytest.raises(SecurityError, match="under that name only"):
        both.lifecycle.step(model.id, "approve", person="cy", reason=WHY)
    with pytest.raises(SecurityError, match="nor sign it off"):
        both.reports.sign_off(model.id, "", "I stand by it.")
    with pytest.raises(SecurityError, match="under that name only"):
        both.reports.sign_off(model.id, "Rita", "I stand by it.")
    with pytest.raises(SecurityError, match="can neither override its findings"):
        both.reviews.decide(model.id, finding.rule_id, finding.feature, "overridden", WHY, "")
    with pytest.raises(SecurityError, match="under that name only"):
        both.reviews.decide(model.id, finding.rule_id, finding.feature, "overridden", WHY, "Rita")

    cy = signed_in(glassleaf, "regulator", "cy")
    assert cy.reviews.decide(model.id, finding.rule_id, finding.feature, "overridden", WHY, "").person.endswith("#cy")
    assert cy.reports.sign_off(model.id, "", "Read with its findings.").person == "https://id.example#cy"
    cy.lifecycle.step(model.id, "approve", reason=WHY)
    (*_, step) = glassleaf.lifecycle.history(model.id)
    assert (step.person, step.role, step.after) == ("https://id.example#cy", "regulator", "approved")


def test_two_accounts_of_one_name_are_two_people(glassleaf):
    one = glassleaf.accounts.account(claims("interns", email="kim@bank.example", sub="1"), NOW)
    two = glassleaf.accounts.account(claims("interns", email="kim@bank.example", sub="2"), NOW)
    assert one.name == two.name and one.actor != two.actor
