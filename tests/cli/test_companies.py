"""Two companies from nothing to a signed agreement by commands alone; and what `host check` says of a link."""

import json
import os
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import tomli_w
from companies import Links, agreement_data, free_port, make_companies

from backend.data.dictionary import Feature, Kind
from backend.link.agreement import PurposeFloors, dictionary_hash, load_agreement, sign, signers
from backend.link.config import load_config
from backend.link.identity import make_identity, party_toml
from backend.link.kinds import all_kinds
from backend.services import Glassleaf
from backend.services.companies import make_companies as make_folders
from backend.services.host_service import host_service, read_source
from backend.store.database import Database
from backend.store.party_store import PartyStore
from backend.trees.ensemble import Fork, HostModel, Skeleton, SplitRule
from backend.trees.serialization import dump_host

ROOT = Path(__file__).resolve().parents[2]
FEATURE = Feature(name="orders", meaning="Orders of a year")


@pytest.fixture
def links(tmp_path):
    made = Links(make_companies(tmp_path))
    yield made
    made.shut_down()


def test_keys_are_made_shown_and_renewed_and_no_secret_is_printed(run, tmp_path):
    keys, root = tmp_path / "keys", tmp_path / "stick"
    code, made, _ = run(
        "keys", "init", "--party", "shop", "--domain", "shop.example", "--keys", keys, "--root", root, "--json"
    )
    assert code == 0 and json.loads(made)["spiffe"] == "spiffe://shop.example/glassleaf/host"
    assert {file.stat().st_mode & 0o777 for file in [*keys.iterdir(), *root.iterdir()]} == {0o600}
    public = tomllib.loads((keys / "shop.party.toml").read_text())["parties"][0]
    assert public["signing"] == json.loads(made)["signing"] and "PRIVATE" not in (keys / "shop.party.toml").read_text()
    code, shown, _ = run("keys", "show", "--keys", keys)
    assert code == 0 and "valid until" in shown and "PRIVATE" not in shown + made
    before = (keys / "leaf.pem").read_bytes()
    assert run("keys", "renew", "--keys", keys)[0] == 1, "the root's key is elsewhere"
    assert run("keys", "renew", "--keys", keys, "--root", root)[0] == 0 and (keys / "leaf.pem").read_bytes() != before
    assert run("keys", "init", "--party", "shop", "--domain", "shop.example", "--keys", keys)[0] == 1
    assert (
        run("keys", "init", "--party", "x", "--domain", "x.example", "--keys", tmp_path / "x", "--role", "boss")[0] == 1
    )


def test_an_agreement_goes_from_party_to_party(run, tmp_path, links):
    companies = links.companies
    identities = {party: companies.identity(party) for party in ("bank", "shop", "telecom")}
    path = tmp_path / "agreement.toml"
    path.write_text(tomli_w.dumps(agreement_data(identities)))
    code, shown, _ = run("agreement", "show", path)
    assert code == 0 and "Consent" in shown and companies.agreement.purposes[0].title.en in shown
    for number, party in enumerate(identities):
        assert run("agreement", "verify", path)[0] == 1
        code, said, _ = run("agreement", "sign", path, "--keys", companies.keys(party), "--json")
        assert code == 0 and len(json.loads(said)["signed"]) == number + 1
    code, said, _ = run("agreement", "verify", path, "--json")
    assert code == 0 and json.loads(said)["in_force"]
    path.write_text(path.read_text().replace("retention_days = 28", "retention_days = 2800"))
    code, said, _ = run("agreement", "verify", path)
    assert code == 1 and "signed by nobody" in said


def host_folder(links: Links, port: int, dictionary: Feature = FEATURE) -> Path:
    """Shop's own folder, under an agreement that names the hash of its dictionary."""
    data = tomllib.loads(links.companies.path.read_text())
    data["purposes"][0]["dictionaries"] = {"shop": dictionary_hash((FEATURE,))}
    agreement = links.companies.amended(purposes=data["purposes"])
    folder = links.companies.folder / "shop"
    (folder / "shop.csv").write_text("ID,orders\nA1,3\nA2,4\n")
    features = {"features": [dictionary.model_dump(mode="json", exclude_defaults=True)]}
    (folder / "dictionary.toml").write_text(tomli_w.dumps(features))
    document = {
        "party": "shop",
        "agreement": str(agreement),
        "link": {"connect": {"bank": f"localhost:{port}"}},
        "source": {"file": "shop.csv", "id": "ID", "dictionary": "dictionary.toml"},
    }
    (folder / "host.toml").write_text(tomli_w.dumps(document))
    return folder


def checked(run, folder):
    code, said, _ = run("host", "check", "--config", folder / "host.toml", "--json")
    return code, {one["step"]: one for one in json.loads(said)}


def test_a_host_whose_everything_is_well_is_told_so_and_a_running_link_is_not_disturbed(run, links, monkeypatch):
    folder = host_folder(links, 0)
    agreement = Path(tomllib.loads((folder / "host.toml").read_text())["agreement"])
    bank = links.bank(agreement=agreement)
    (folder / "host.toml").write_text(
        (folder / "host.toml").read_text().replace("localhost:0", f"localhost:{bank.port}")
    )
    shop = links.host("shop", agreement=agreement)
    links.up(shop)
    before = bank.peer("shop").instance
    code, found = checked(run, folder)
    monkeypatch.setattr("backend.services.host_check.LARGE_HOST_RECORDS", 2)
    more = checked(run, folder)[1]
    assert [step for step in more if step not in found] == ["sums"] and "50 %" in more["sums"]["words"]
    assert code == 0 and all(one["ok"] for one in found.values())
    assert list(found) == [
        "source", "store", "dictionary", "limit", "certificate", "agreement", "proxy", "port", "handshake", "clock", "latency", "echo",
    ]  # fmt: skip
    assert bank.peer("shop").instance == before and bank._node.memory.used == 0


@pytest.mark.parametrize(
    ("codec", "encoding", "decimal", "cells", "value"),
    [
        ("cp1252", "latin-1", "comma", ("3,5", "1.204,25"), 1204.25),
        ("gb18030", "gbk", "point", ("3.5", "1,204.25"), 1204.25),
        ("utf-8", "", "comma", ("3,5", "4"), 4.0),
    ],
)
def test_a_table_in_the_companys_own_writing_is_read_as_host_toml_says(
    run, links, codec, encoding, decimal, cells, value
):
    folder = host_folder(links, 0)
    meaning = "订单金额" if encoding == "gbk" else "Größe der Bestellungen"
    table = f"ID;{meaning};orders\nA1;;{cells[0]}\nA2;;{cells[1]}\n"
    (folder / "shop.csv").write_bytes(table.encode(codec))
    (folder / "dictionary.csv").write_bytes(f"name,meaning\norders,{meaning}\n".encode(codec))
    document = tomllib.loads((folder / "host.toml").read_text())
    document["source"]["dictionary"] = "dictionary.csv"
    (folder / "host.toml").write_text(tomli_w.dumps(document))
    _, found = checked(run, folder)
    assert not found["source"]["ok"] and ("`encoding` in host.toml" in found["source"]["words"]) == bool(encoding)
    document["source"] |= {"decimal": decimal} | ({"encoding": encoding} if encoding else {})
    (folder / "host.toml").write_text(tomli_w.dumps(document))
    _, found = checked(run, folder)
    assert found["source"]["ok"], found["source"]["words"]
    config = load_config(folder / "host.toml")
    assert config.features()[0].meaning.en == meaning
    records, _ = read_source(config)
    assert records.columns["orders"].tolist() == [3.5, value]


def test_a_store_that_cannot_be_written_and_keys_that_cannot_be_read_are_told_before_a_host_serves(
    run, links, monkeypatch
):
    folder = host_folder(links, 0)
    (folder / "shop.db").mkdir()  # nobody can open it, not even root
    code, found = checked(run, folder)
    assert code == 1 and not found["store"]["ok"] and "shop.db" in found["store"]["words"]
    assert "`store` and `keys` in host.toml" in found["store"]["fix"]
    (folder / "shop.db").rmdir()
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).name != "keys")
    leaf = folder / "keys" / "leaf.pem"
    leaf.unlink()
    leaf.mkdir()  # is there, and nobody can read it
    code, found = checked(run, folder)
    assert code == 1 and "keys" in found["store"]["words"]
    assert "is there and cannot be read" in found["certificate"]["words"]


def test_a_bank_is_told_what_is_wrong_and_how_to_fix_it(run, tmp_path):
    out = tmp_path / "three"
    made = make_folders(out, 200)

    def bank():
        code, said, _ = run("check", made.guest, "--json")
        return code, {one["step"]: one for one in json.loads(said)}

    code, found = bank()
    assert code == 0 and not any(one["fix"] for one in found.values())
    assert list(found) == ["home", "table", "features", "certificate", "agreement", "listen"]
    with socket.create_server(("127.0.0.1", made.port)):
        code, found = bank()
    assert code == 1 and not found["listen"]["ok"] and "`bind`" in found["listen"]["fix"]
    (made.guest / "keys" / "leaf.pem").unlink()
    agreement = made.guest / "agreement.toml"
    agreement.write_text(agreement.read_text().partition("[[signatures]]")[0])
    code, found = bank()
    assert code == 1 and list(found)[-1] == "agreement"
    agreement.unlink()
    assert bank()[1]["agreement"]["code"] == "check_no_agreement"
    assert "glassleaf keys renew" in found["certificate"]["fix"] and "agreement verify" in found["agreement"]["fix"]
    _, text, _ = run("check", made.guest)
    assert text.count("WRONG") == text.count("to fix it") == 2


def test_a_webhook_that_others_can_read_or_that_is_none_is_told_before_a_host_serves(run, links):
    folder = host_folder(links, free_port())
    text = (folder / "host.toml").read_text()
    assert "webhook" not in checked(run, folder)[1]
    (folder / "host.toml").write_text(f'webhook_file = "hook"\n{text}')
    hook = folder / "hook"
    for address, mode, code in (
        ("https://chat.example/1", 0o644, "secret_readable_by_others"),
        ("chat.example", 0o600, "webhook_not_web"),
        ("https://chat.example/1", 0o600, "check_webhook"),
    ):
        hook.write_text(address)
        hook.chmod(mode)
        found = checked(run, folder)[1]["webhook"]
        assert (found["code"], bool(found["fix"])) == (code, code != "check_webhook")


def test_a_host_of_two_guests_serves_one_at_a_time_from_one_account(run, links, tmp_path):
    companies = links.companies
    folder = host_folder(links, free_port())
    lender = make_identity(tmp_path / "lender", "lender.example", "guest")
    document = tomllib.loads((folder / "host.toml").read_text())
    agreed = tomllib.loads(Path(document["agreement"]).read_text())
    agreed["parties"][0] = tomllib.loads(party_toml(lender, "lender", "Lender"))["parties"][0] | {
        "address": agreed["parties"][0]["address"]
    }
    agreed.pop("signatures")
    path = tmp_path / "lender.toml"
    path.write_text(tomli_w.dumps(agreed))
    for identity in (lender, companies.identity("shop"), companies.identity("telecom")):
        sign(path, identity)
    second = document | {"agreement": str(path), "ops": ""}
    second["link"] = {"connect": {"lender": f"localhost:{free_port()}"}}
    (folder / "lender.toml").write_text(tomli_w.dumps(second))
    (folder / "apart.toml").write_text(tomli_w.dumps(second | {"store": f"sqlite:///{tmp_path}/apart.db"}))
    (folder / "host.toml").write_text(tomli_w.dumps(document | {"ops": ""}))

    first = host_service(folder / "host.toml")
    try:
        status, _, at_once = run("host", "serve", "--config", folder / "lender.toml")
    finally:
        first.wire.shut_down()
        first.database.close()
    assert status == 1 and "a Host serves one Guest at a time. Stop that process first" in at_once
    status, _, apart = run("host", "serve", "--config", folder / "apart.toml")
    assert status == 1 and "Answers to bank are counted in another database" in apart
    assert "all Guests of a Host have one account there, and one of them is served at a time" in apart
    service = host_service(folder / "lender.toml")  # from the same database, once the other one has stopped
    service.wire.shut_down()
    service.database.close()


def test_a_database_server_that_is_down_is_said_and_is_no_empty_home(run, tmp_path, monkeypatch):
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    made = make_folders(tmp_path / "three", 100)
    with Glassleaf(made.home, pools=False) as glassleaf:
        glassleaf.federations.add(made.guest)
    monkeypatch.setenv("GLASSLEAF_HOME", str(made.home))
    assert run("models", "list")[:2] == (0, "No model yet. Run `glassleaf demo` or `glassleaf train`.\n")
    monkeypatch.setenv(
        "GLASSLEAF_STORE", f"postgresql+psycopg://glassleaf@127.0.0.1:{free_port()}/{{federation}}_{{party}}"
    )
    for command in (("models", "list"), ("audit", "show", "companies")):
        status, said, err = run(*command)
        assert status == 1 and "does not answer" in said + err and "GLASSLEAF_STORE" in said + err, command
        assert "No model yet" not in said
    status, said, _ = run("check", made.guest, "--json")
    (found,) = [one for one in json.loads(said) if one["step"] == "federations"]
    assert status == 1 and found["code"] == "database_server_refuses" and found["fix"]
    config = made.hosts["telecom"] / "host.toml"
    config.write_text(f'store = "postgresql+psycopg://glassleaf@127.0.0.1:{free_port()}/telecom"\n{config.read_text()}')
    status, found = checked(run, made.hosts["telecom"])
    assert status == 1 and found["store"]["code"] == "database_server_refuses"


def test_codes_that_no_model_knows_and_ids_that_are_alike_are_told_by_the_host_itself(run, links):
    kind = Feature(name="orders", meaning="Kind of orders", kind=Kind.CATEGORICAL)
    folder = host_folder(links, 0, kind)
    (folder / "shop.csv").write_text("ID,orders\n007,1.0\n7,2.0\n9,5.0\n", encoding="utf-8")
    _, found = checked(run, folder)
    assert found["ids"]["words"].startswith("1 id differs from another one in writing only ('7' for '007')")
    rules = {(0, 0): SplitRule("orders", True, left_categories=frozenset("1"), right_categories=frozenset("2"))}
    tree = Skeleton({0: Fork("shop", 1, 2)})
    model = HostModel("shop", "bank", ("shop",), (tree,), rules, "salt")
    database = Database(f"sqlite:///{folder / 'shop.db'}")
    PartyStore(database).put_artefact("m1", dump_host(model))
    database.close()
    _, found = checked(run, folder)
    assert found["codes"]["ok"] and "codes of 'orders': '5', in 1 record" in found["codes"]["words"]


def test_what_is_wrong_is_said_in_words(run, links):
    folder = host_folder(links, 1, Feature(name="orders", meaning="Something else"))
    (folder / "shop.csv").write_text("ID\nA1\n")
    code, found = checked(run, folder)
    assert code == 1
    assert "orders" in found["source"]["words"] and "hash" in found["dictionary"]["words"]
    assert found["certificate"]["ok"] and not found["port"]["ok"] and "refuses connections" in found["port"]["words"]
    assert "handshake" not in found, "what rests on a step that failed is left out"
    (folder / "keys" / "leaf.pem").unlink()
    assert not checked(run, folder)[1]["certificate"]["ok"]


def test_a_bank_under_another_agreement_is_named(run, links):
    bank = links.bank()
    folder = host_folder(links, bank.port)
    code, found = checked(run, folder)
    assert code == 1 and "another agreement" in found["handshake"]["words"]


def test_a_check_says_whose_signature_is_missing_and_fetches_those_that_the_bank_has(run, links):
    folder = host_folder(links, 0)
    config = tomllib.loads((folder / "host.toml").read_text())
    purposes = tomllib.loads(Path(config["agreement"]).read_text())["purposes"]
    own, of_bank = (links.companies.amended(party, purposes=purposes) for party in ("shop", "bank"))
    bank = links.bank(agreement=of_bank)
    document = {**config, "agreement": str(own), "link": {"connect": {"bank": f"localhost:{bank.port}"}}}
    (folder / "host.toml").write_text(tomli_w.dumps(document))
    code, found = checked(run, folder)
    assert (code, found["agreement"]["ok"]) == (1, True) and "bank, telecom still to sign" in found["agreement"][
        "words"
    ]
    assert not found["handshake"]["ok"] and "not signed by telecom" in found["handshake"]["words"]
    assert signers(own) == signers(of_bank) == ("bank", "shop")


def test_what_parties_hand_out_makes_an_agreement_that_all_can_sign(run, links, tmp_path):
    companies = links.companies
    folder = companies.folder / "shop"
    features = {"features": [FEATURE.model_dump(mode="json", exclude_defaults=True)]}
    (folder / "dictionary.toml").write_text(tomli_w.dumps(features))
    source = {"file": "shop.csv", "id": "ID", "dictionary": "dictionary.toml"}
    (folder / "host.toml").write_text(tomli_w.dumps({"party": "shop", "source": source}))
    (folder / "shop.csv").write_text("ID,orders\nA1,3\n")
    (folder / "keys" / "shop.party.toml").write_text(party_toml(companies.identity("shop"), "shop", "Shop"))
    before = checked(run, folder)[1]["dictionary"]
    assert before["ok"] and dictionary_hash((FEATURE,)) in before["words"], "it is needed before there is an agreement"
    out = tmp_path / "shop.toml"
    assert run("host", "disclose", "--config", folder / "host.toml", "--out", out)[0] == 0
    for option, place in (("--folder", folder), ("--folder", folder / "host.toml"), ("--config", folder)):
        assert run("host", "disclose", option, place, "--out", tmp_path / "again.toml")[0] == 0
        assert (tmp_path / "again.toml").read_bytes() == out.read_bytes()
        assert run("host", "inbox", option, place)[:2] == (0, "Nothing waits.\n")
        (tmp_path / "again.toml").unlink()
    (host,) = tomllib.loads(out.read_text())["hosts"]
    assert (host["title"], host["id"], "A1,3" in out.read_text()) == ("Shop", "ID", False)

    bank = tmp_path / "bank.party.toml"
    bank.write_text(party_toml(companies.identity("bank"), "bank", "Bank"))
    file = tmp_path / "agreement.toml"
    terms = ("--title", "Bank and shop", "--purpose", "Scores", "--legal-basis", "Consent", "--until", "2100-01-01")
    options = ("--address", "link.bank.example:8443", "--out", file, "--hosts", tmp_path / "hosts.toml")
    code, _, said = run("agreement", "draft", bank, folder / "keys" / "shop.party.toml", *terms, *options)
    assert code == 1 and "shop" in said, "without what the Host discloses"
    words = ("agreement", "draft", bank, out, *terms, *options)
    assert run(*words)[0] == 0
    assert tomllib.loads((tmp_path / "hosts.toml").read_text()) == {"hosts": [host]}
    made = load_agreement(file)
    assert made.guest.address == "link.bank.example:8443" and made.hosts[0].address == ""
    assert made.purposes[0].dictionaries == {"shop": dictionary_hash((FEATURE,))}
    assert set(made.purposes[0].kinds) == all_kinds() and made.purposes[0].floors == PurposeFloors()
    assert run(*words)[0] == 1, "what is there may be signed already"
    file.unlink()
    (tmp_path / "hosts.toml").write_text("[[hosts]]\nname = 'another'\n")
    code, _, said = run(*words)
    assert code == 1 and "hosts.toml" in said and not file.exists(), "what another draft wrote stays"
    (tmp_path / "hosts.toml").unlink()
    assert run(*words)[0] == 0
    killed = [sys.executable, "tests/faults/killed_drafts.py", tmp_path / "killed", bank, out, *terms, *options[:2]]
    (tmp_path / "killed").mkdir()
    done = subprocess.run(
        [str(word) for word in killed],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["whole"] == 0 and found["between"] > 0 and found["wrong"] == []
    for party in ("bank", "shop"):
        assert run("agreement", "sign", file, "--keys", companies.keys(party))[0] == 0
    assert run("agreement", "verify", file)[0] == 0
