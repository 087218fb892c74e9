"""A model moves from a shell: equal scores in the other home, and each pack that is not as it should be refused in words."""

import json
import re
import shutil

import pytest
from homes import copied_home

from backend.services import host_operator, model_packs
from backend.store import guest_rows
from backend.store.model_pack import Passphrase, read_pack

pytestmark = pytest.mark.usefixtures("quick_scrypt")

WORDS = "correct horse battery staple"


@pytest.fixture(scope="module")
def home(home_template, tmp_path_factory):
    """The old home: the demo, whose people are called real here, so that its Hosts add dither, and a model of it."""
    copy = copied_home(home_template, tmp_path_factory.mktemp("old") / "home")
    toml = copy / "demo" / "federation.toml"
    toml.write_text(toml.read_text().replace("synthetic = true", "synthetic = false"))
    return copy


@pytest.fixture
def passphrase(tmp_path):
    file = tmp_path / "passphrase"
    file.write_text(f"{WORDS}\n")
    file.chmod(0o600)
    return "--passphrase-file", file


@pytest.fixture
def new(home, run, monkeypatch, tmp_path):
    """The same party's other home: the same tables, no model."""
    folder = tmp_path / "new"
    shutil.copytree(home / "demo", folder / "demo")

    def call(*words):
        monkeypatch.setenv("GLASSLEAF_HOME", str(folder))
        try:
            return run(*words)
        finally:
            monkeypatch.setenv("GLASSLEAF_HOME", str(home))

    call.folder = folder
    assert call("models", "address", folder / "demo")[0] == 0
    return call


@pytest.fixture
def model(run):
    return json.loads(run("models", "--json")[1])[0]["id"]


@pytest.fixture
def packed(run, model, tmp_path, passphrase):
    out = tmp_path / "guest.pack"
    status, _, error = run("models", "pack", model, "--out", out, *passphrase)
    assert status == 0, error
    return out


def hosts_of(home):
    return sorted(
        f.name for f in (home / "parties" / "demo").iterdir() if (f / "store.db").exists() and f.name != "bank"
    )


def at(host):
    return "--federation", "demo", "--host", host


def content(file):
    return json.loads(json.loads(read_pack(file.read_bytes()).open(Passphrase(WORDS)))["content"])


def test_after_a_move_people_have_the_scores_that_they_had(run, new, home, model, packed, passphrase, tmp_path):
    ids = [line.split(",")[0] for line in (home / "demo" / "bank.csv").read_text().splitlines()[:6]]
    sheet = tmp_path / "ids.csv"
    sheet.write_text("\n".join(ids) + "\n")
    found = []
    signing = {}
    for host in hosts_of(home):
        receiver = json.loads(new("host", "models", "address", *at(host), "--json")[1])["sealing"]
        status, text, error = run(
            "host", "models", "pack", model, "--out", tmp_path / host, "--to", receiver, *at(host), "--json"
        )
        assert status == 0, error
        signing[host] = json.loads(text)["sender"]
    assert run("policy", "show", model)[0] == 0
    status, _, error = new("models", "unpack", "demo", packed, *passphrase)
    assert status == 0, error
    for host, key in signing.items():
        refused = new("host", "models", "unpack", tmp_path / host, *at(host))
        assert refused[0] == 1 and "--from" in refused[2]
        status, _, error = new("host", "models", "unpack", tmp_path / host, "--from", key, *at(host))
        assert status == 0, error
    for shell in (run, new):
        status, text, error = shell("score", model, sheet, "--cipher", "none", "--json")
        assert status == 0, error
        found.append([score["units"] for score in json.loads(text)["scores"]])
    assert found[0] == found[1] and len(found[0]) == 5


def test_no_secret_of_another_party_is_in_a_pack(run, home, model, packed, tmp_path, passphrase):
    guest = json.dumps(content(packed))
    every = []
    for host in hosts_of(home):
        out = tmp_path / host
        assert run("host", "models", "pack", model, "--out", out, *passphrase, *at(host))[0] == 0
        half = content(out)
        own = json.loads(next(row["text"] for row in half["rows"]["artefacts"] if row["model_id"] == model))
        thresholds = [repr(rule["threshold"]) for rule in own["rules"] if rule["threshold"] is not None]
        every += [threshold for threshold in thresholds if len(threshold) > 6]  # shorter ones are counts, too
        kept = json.loads(next(r["text"] for r in content(packed)["rows"]["artefacts"] if r["model_id"] == model))
        assert not {rule["feature"] for rule in kept["rules"]} & {rule["feature"] for rule in own["rules"]}
        assert own["salt"] not in guest
        weights = set(re.findall(r'"weight": ?(-?\d+\.\d{6,}[e\-\d]*)', json.dumps(kept)))
        assert weights and not any(weight in json.dumps(half) for weight in weights)
        assert "records" not in half["rows"] and "measurements" not in half["rows"]
    assert every and not any(threshold in guest for threshold in every)


def changed(name, packed, monkeypatch, run, model, new, passphrase, tmp_path):
    """A pack, or a home, that is not as it should be; returns the command's words after `models unpack`."""
    blob = packed.read_bytes()
    line, _, body = blob.partition(b"\n")
    if name == "tampered":
        packed.write_bytes(blob[:-1] + bytes([blob[-1] ^ 1]))
    elif name == "label":
        packed.write_bytes(line.replace(model.encode(), b"m" + b"0" * 10) + b"\n" + body)
    elif name == "cut":
        packed.write_bytes(blob[:20])
    elif name == "passphrase":
        other = tmp_path / "other"
        other.write_text("another five words altogether\n")
        other.chmod(0o600)
        return ("demo", packed, "--passphrase-file", other)
    elif name == "version":
        monkeypatch.setattr(model_packs, "__version__", "9.9")
    elif name == "party":
        toml = new.folder / "demo" / "federation.toml"
        toml.write_text(toml.read_text().replace('name = "bank"', 'name = "otherbank"', 1))
    elif name == "records":
        table = new.folder / "demo" / "bank.csv"
        table.write_text("\n".join(table.read_text().splitlines()[:-1]) + "\n")
    elif name == "home":
        packed.unlink()
        assert run("models", "pack", model, "--out", packed, "--to", "ab" * 32)[0] == 0
        return ("demo", packed)
    elif name == "sender":
        key = json.loads(new("models", "address", "demo", "--json")[1])["sealing"]
        packed.unlink()
        assert run("models", "pack", model, "--out", packed, "--to", key)[0] == 0
        return ("demo", packed)
    return ("demo", packed, *passphrase)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tampered", "does not open"),
        ("label", "does not open"),
        ("cut", "no packed model"),
        ("passphrase", "does not open"),
        ("version", "packed by Glassleaf"),
        ("party", "other"),
        ("records", "other records"),
        ("home", "sealed for the home"),
        ("sender", "--from"),
    ],
)
def test_a_pack_that_is_not_as_it_should_be_is_refused(
    name, words, packed, monkeypatch, run, model, new, passphrase, tmp_path
):
    asked = changed(name, packed, monkeypatch, run, model, new, passphrase, tmp_path)
    status, _, error = new("models", "unpack", *asked)
    assert status == 1 and words in error
    assert model not in new("models")[1]


def test_a_hosts_pack_that_is_not_as_it_should_be_is_refused_and_nothing_of_it_is_stored(
    run, new, home, model, packed, passphrase, monkeypatch, tmp_path
):
    host, other = hosts_of(home)[:2]
    file = tmp_path / "host.pack"
    assert run("host", "models", "pack", model, "--out", file, *passphrase, *at(host))[0] == 0
    good = file.read_bytes()
    line, _, body = good.partition(b"\n")

    def unpacked(blob=good, party=host):
        file.write_bytes(blob)
        return new("host", "models", "unpack", file, *passphrase, *at(party))

    def is_refused(result, words):
        assert result[0] == 1 and words in result[2], result

    is_refused(unpacked(good[:-1] + bytes([good[-1] ^ 1])), "does not open")
    is_refused(unpacked(line.replace(model.encode(), b"m" + b"0" * 10) + b"\n" + body), "does not open")
    is_refused(unpacked(good[:20]), "no packed model")
    is_refused(unpacked(party=other), f"{host} (host)")
    is_refused(unpacked(packed.read_bytes()), "bank (guest)")
    with monkeypatch.context() as patch:
        patch.setattr(host_operator, "__version__", "9.9")
        is_refused(unpacked(), "packed by Glassleaf")
    sealed = tmp_path / "sealed.pack"
    assert run("host", "models", "pack", model, "--out", sealed, "--to", "ab" * 32, *at(host))[0] == 0
    is_refused(new("host", "models", "unpack", sealed, *at(host)), "sealed for the home")
    table = new.folder / "demo" / f"{host}.csv"
    whole = table.read_text()
    table.write_text("\n".join(whole.splitlines()[:-1]) + "\n")
    is_refused(unpacked(), "other records")
    table.write_text(whole)
    # A half that is here already would be refused: nothing of the others was stored.
    status, _, error = unpacked()
    assert status == 0, error


def test_a_pack_of_another_home_of_the_party_sealed_for_this_one_opens_by_its_name(run, new, model, tmp_path):
    key = json.loads(new("models", "address", "demo", "--json")[1])["sealing"]
    out = tmp_path / "sealed"
    sender = json.loads(run("models", "pack", model, "--out", out, "--to", key, "--json")[1])["sender"]
    status, text, error = new("models", "unpack", "demo", out, "--from", sender, "--json")
    assert status == 0 and json.loads(text)["record"]["id"] == model, error
    status, _, error = new("models", "unpack", "demo", out, "--from", sender)
    assert status == 1 and "here already" in error


def test_policy_name_steps_and_their_people_move_along(run, new, model, tmp_path, passphrase):
    assert run("models", "describe", model, "--name", "Spring")[0] == 0
    assert run("models", "submit", model, "--as", "ada")[0] == 0
    out = tmp_path / "with-steps"
    assert run("models", "pack", model, "--out", out, *passphrase)[0] == 0
    assert new("models", "unpack", "demo", out, *passphrase)[0] == 0
    steps = [json.loads(shell("models", "history", model, "--json")[1]) for shell in (run, new)]
    for step in (*steps[0], *steps[1]):
        del step["number"]
    assert steps[0] == steps[1] and steps[0][0]["person"] == "ada"
    assert new("policy", "show", model, "--json")[1] == run("policy", "show", model, "--json")[1]
    assert json.loads(new("models", "--json")[1])[0]["name"] == "Spring"
    assert "unpack" in new("audit", "show", "demo", "--last", 50)[1]


def test_whichever_write_an_unpacking_ends_at_nothing_of_the_model_is_there(packed, new, passphrase, monkeypatch):
    whole = guest_rows.write_rows
    for end in range(1, 9):
        writes = 0

        def killed(session, table, rows):
            nonlocal writes
            writes += 1
            whole(session, table, rows)
            if writes == end:  # noqa: B023 - called in this turn
                session.flush()
                raise KeyboardInterrupt

        # patched: the process is stopped after one of the writes
        monkeypatch.setattr(guest_rows, "write_rows", killed)
        assert new("models", "unpack", "demo", packed, *passphrase)[0] != 0
        monkeypatch.setattr(guest_rows, "write_rows", whole)
        assert writes == end and "No model yet" in new("models")[1]
    assert new("models", "unpack", "demo", packed, *passphrase)[0] == 0
