"""An agreement: what it may say, who has signed it, when it holds, what it amends."""

import json
import tomllib
from datetime import UTC, date, datetime, timedelta

import pytest
import tomli_w
from joserfc.util import urlsafe_b64encode
from refused import raises

from backend.data.dictionary import Feature
from backend.errors import FederationError, ParameterError, SecurityError
from backend.link.agreement import (
    Agreement,
    check_amends,
    dictionary_hash,
    load_agreement,
    load_in_force,
    named_share,
    sign,
    signers,
)
from backend.link.draft import AgreementTerms, draft


def now():
    return datetime.now(UTC)


def data(companies):
    return tomllib.loads(companies.path.read_text())


def test_all_three_have_signed_and_it_is_in_force(companies):
    assert signers(companies.path) == ("bank", "shop", "telecom")
    assert load_in_force(companies.path, "shop", now()).hash == companies.agreement.hash


def test_the_hash_is_of_what_it_says_not_of_how_it_is_written(companies):
    before = companies.agreement.hash
    companies.path.write_text("# a remark\n" + tomli_w.dumps(dict(reversed(data(companies).items()))))
    assert companies.agreement.hash == before and len(signers(companies.path)) == 3
    assert companies.agreement.canonical.isascii()


def test_another_share_of_people_that_sums_could_name_is_signed_by_nobody(companies):
    assert named_share(companies.agreement) == 0.5
    changed = data(companies)
    changed["purposes"][0].setdefault("floors", {})["named"] = 0.05
    companies.path.write_text(tomli_w.dumps(changed))
    assert named_share(load_agreement(companies.path)) == 0.05 and signers(companies.path) == ()


def test_one_changed_figure_is_signed_by_nobody(companies):
    changed = data(companies)
    changed["purposes"][0]["floors"] = {"budget": 1000}
    companies.path.write_text(tomli_w.dumps(changed))
    assert signers(companies.path) == ()
    with raises(SecurityError, "agreement_not_signed_here"):
        load_in_force(companies.path, "shop", now())


def test_nothing_is_answered_before_every_party_has_signed(companies):
    path = companies.amended("bank", "shop")
    with raises(SecurityError, "agreement_not_signed", parties=("telecom",)):
        load_in_force(path, "shop", now())
    with raises(SecurityError, "agreement_not_signed_here", party="telecom"):
        load_in_force(path, "telecom", now())
    sign(path, companies.identity("telecom"))
    load_in_force(path, "telecom", now())


def test_signing_twice_leaves_one_signature_and_the_text_as_people_wrote_it(companies):
    text = companies.path.read_text()
    companies.path.write_text(f"# read by Rita\n{text}")
    sign(companies.path, companies.identity("shop"))
    signed = companies.path.read_text()
    assert signed.startswith("# read by Rita\n") and signed.count("[[signatures]]") == 3
    assert set(signed.splitlines()) == {*text.splitlines(), "# read by Rita"}
    assert signers(companies.path) == ("bank", "shop", "telecom")


def with_signatures(companies, signatures):
    """Put others in place of the agreement's signatures."""
    document = data(companies) | {"signatures": signatures}
    companies.path.write_text(tomli_w.dumps(document))


def test_a_signature_counts_for_nobody_else(companies):
    """Shop's signature under telecom's name, and telecom's place taken by a second one of shop's."""
    bank, shop, telecom = data(companies)["signatures"]
    for forged in ({**shop, "protected": telecom["protected"]}, {**telecom, "signature": shop["signature"]}, shop):
        with_signatures(companies, [bank, shop, forged])
        assert signers(companies.path) == ("bank", "shop")


@pytest.mark.parametrize("header", [{"alg": "none"}, {"alg": "HS256"}, {"alg": "Ed25519", "crit": ["exp"], "exp": 1}])
def test_another_algorithm_is_no_signature(companies, header):
    bank, shop, telecom = data(companies)["signatures"]
    protected = urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip("=")
    with_signatures(companies, [bank, {**shop, "protected": protected}, telecom])
    assert signers(companies.path) == ("bank", "telecom")


@pytest.mark.parametrize("signature", [{}, {"protected": "e30"}, {"protected": "{", "signature": "x"}, {"a": "b"}])
def test_what_is_no_signature_is_named(companies, signature):
    with_signatures(companies, [signature])
    with pytest.raises(FederationError, match="signatures"):
        signers(companies.path)


def test_what_somebody_wrote_below_the_signatures_is_not_lost_by_signing(companies):
    text = companies.path.read_text()
    for below in ('[[purposes]]\nname = "more"\n', "[[signatures]]\n"):
        document = tomllib.loads(text)
        more = {**document["purposes"][0], "name": "more"}
        companies.path.write_text(f"{text}\n{tomli_w.dumps({'purposes': [more]})}" if "more" in below else text + below)
        with pytest.raises((SecurityError, FederationError)):
            sign(companies.path, companies.identity("shop"))
        companies.path.write_text(text)
    note = 'note = """\n[[signatures]]\n"""\n'
    companies.path.write_text(note + text)
    with raises(SecurityError, "signatures_not_last"):
        sign(companies.path, companies.identity("shop"))


@pytest.mark.parametrize("days", [-4, 368])
def test_outside_its_days_it_is_not_in_force(companies, days):
    with pytest.raises(SecurityError, match=r"valid from|ended on"):
        load_in_force(companies.path, "shop", now() + timedelta(days=days))


def test_whoever_is_no_party_or_has_other_keys_signs_nothing(companies):
    stranger = data(companies)
    stranger["parties"][1]["spiffe"] = "spiffe://other.example/glassleaf/host"
    path = companies.amended("bank", **stranger)
    with raises(SecurityError, "not_a_party"):
        sign(path, companies.identity("shop"))
    other = data(companies)
    other["parties"][1]["signing"] = "a" * 64
    path = companies.amended("bank", **other)
    with raises(SecurityError, "agreement_keys_differ"):
        sign(path, companies.identity("shop"))


def test_an_amendment_names_the_hash_of_the_one_before(companies):
    before = companies.agreement
    changed = data(companies) | {"previous": before.hash, "note": "More rows"}
    path = companies.folder / "second.toml"
    path.write_text(tomli_w.dumps(changed))
    with raises(SecurityError, "amends_not_named"):
        sign(path, companies.identity("shop"))
    assert sign(path, companies.identity("shop"), companies.path) == ("shop",)
    with raises(SecurityError, "amends_another"):
        check_amends(load_agreement(path), load_agreement(path))


@pytest.mark.parametrize(
    "change",
    [
        {"plaintext": True},
        {"valid_until": "tomorrow"},
        {"auditor": "xyz"},
        {"parties": []},
        {"format": 2},
    ],
)
def test_what_it_may_not_say_is_refused(companies, change):
    companies.path.write_text(tomli_w.dumps(data(companies) | change))
    with pytest.raises(FederationError):
        load_agreement(companies.path)


def test_text_of_another_form_is_refused_with_the_form_that_it_should_have(companies):
    changed = data(companies) | {"auditor": "xyz"}
    changed["parties"][0]["address"] = "nowhere"
    companies.path.write_text(tomli_w.dumps(changed))
    with pytest.raises(FederationError) as refused:
        load_agreement(companies.path)
    assert "address: found 'nowhere', expected a host and its port" in str(refused.value)
    assert "[0-9a-f]{64}" in str(refused.value) and "small letter" not in str(refused.value)


def test_an_agreement_whose_last_day_is_over_is_not_drafted():
    terms = AgreementTerms("T", "P", "L", date(2020, 1, 1), "link.bank.example:8443")
    with pytest.raises(ParameterError, match="The last day, 2020-01-01, is over"):
        draft((), terms)


def test_parties_and_purposes_have_to_fit_each_other(companies):
    def refused(edit):
        changed = data(companies)
        edit(changed)
        with pytest.raises(ValueError):
            Agreement.model_validate(changed)

    refused(lambda d: d["parties"][1].update(role="guest"))
    refused(lambda d: d["parties"][0].update(role="host"))
    refused(lambda d: d["parties"][1].update(sealing=d["parties"][2]["sealing"]))
    refused(lambda d: d["parties"][0].update(address=""))
    refused(lambda d: d["purposes"][0].update(kinds=["AskWalk"]))
    refused(lambda d: d["purposes"][0].update(floors={"named": 0.6}))
    refused(lambda d: d["purposes"][0].update(kinds=["NoSuchKind"]))
    refused(lambda d: d["purposes"][0].update(dictionaries={"stranger": "0" * 64}))
    refused(lambda d: d["purposes"][0].update(floors={"key_bits": 512}))
    refused(lambda d: d["purposes"].append(d["purposes"][0]))


def test_kinds_hold_while_their_purpose_is_open(companies):
    changed = data(companies)
    changed["purposes"][0] |= {"kinds": ["DecisionVectors"], "hours": "22:00-02:00", "valid_until": date(2026, 6, 1)}
    agreement = Agreement.model_validate(changed)
    night, noon = datetime(2026, 5, 1, 23, 0, tzinfo=UTC), datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
    assert "DecisionVectors" in agreement.allowed(night) and "Refusal" in agreement.allowed(noon)
    assert "DecisionVectors" not in agreement.allowed(noon)
    assert "DecisionVectors" not in agreement.allowed(datetime(2026, 6, 2, 1, 0, tzinfo=UTC))


def test_a_dictionarys_hash_is_of_its_features_in_any_order():
    one, two = Feature(name="a", meaning="A"), Feature(name="b", meaning="B")
    assert dictionary_hash((one, two)) == dictionary_hash((two, one)) != dictionary_hash((one,))
    assert dictionary_hash((one,)) != dictionary_hash((Feature(name="a", meaning="Another"),))
