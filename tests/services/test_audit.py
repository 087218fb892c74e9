"""The audit log through the service: every act leaves an entry, the Hosts witness it, and nothing personal is in it."""

import json
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import pytest
from inside import runtime_of, workspace_of

from backend.data.demo import write_demo
from backend.errors import Cancelled, ParameterError
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.audit import sheet_hash
from backend.services.protocol_comparison import ComparisonRequest
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest
from backend.store.audit_log import START, link

SMALL = SecureBoostParameters(trees=3, depth=2, cipher="none")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    write_demo(home / "demo", rows=300)
    return home


@pytest.fixture(scope="module")
def glassleaf(home):
    glassleaf = Glassleaf(home, pools=False, actor="ana", key_floor=512)
    glassleaf.federations.add(home / "demo")
    glassleaf.training.start(TrainingRequest("demo", SMALL)).get()
    yield glassleaf
    glassleaf.close()


def sheet_of(glassleaf, *ids):
    federation = glassleaf.federations.get("demo")
    return glassleaf.samples.read("latest", "\n".join([federation.guest.id, *ids]).encode())


def last(glassleaf):
    return glassleaf.audit.entries("demo")[-1]


def test_a_training_is_logged_with_hashes_counts_and_the_rule_packs(glassleaf):
    record = glassleaf.models.get("latest")
    entry = next(e for e in glassleaf.audit.entries("demo") if e.action == "train")
    assert (entry.actor, entry.role) == ("ana", "operator")
    assert entry.body["model_sha256"] == record.content_hash and entry.body["host_sha256"] == record.host_hashes
    assert entry.body["parts"] == record.parts and entry.body["outcome"] == "done"
    assert entry.body["rule_packs"] == {p.name: p.version for p in glassleaf.compliance.assess("latest").packs}


def test_a_key_is_logged_once_when_it_is_made(glassleaf):
    for _ in range(2):
        sheet = sheet_of(glassleaf, *glassleaf.samples.table("latest").index[:1])
        glassleaf.scoring.start(ScoringRequest("latest", sheet, cipher="paillier", key_bits=512)).get()
    made = [e.body for e in glassleaf.audit.entries("demo") if e.action == "key" and e.body["cipher"] == "paillier"]
    assert [body["key_bits"] for body in made] == [512]


def test_a_scoring_is_logged_without_an_id_a_value_or_a_score(glassleaf):
    frame = glassleaf.samples.table("latest")
    sheet = sheet_of(glassleaf, *frame.index[:2], "nobody-knows-me")
    batch = glassleaf.acting("bo", "analyst").scoring.start(ScoringRequest("latest", sheet, cipher="none")).get()
    entry = last(glassleaf)
    assert (entry.action, entry.actor, entry.role) == ("score", "bo", "analyst")
    assert entry.body["rows"] == 3 and entry.body["input_sha256"] == sheet_hash(sheet)
    text = glassleaf.audit.export("demo")
    values = {f"{v}" for v in frame.iloc[:2].drop(columns="part").to_numpy().ravel() if len(f"{v}") > 5}
    for secret in (
        *sheet.ids,
        *values,
        *(f"{s.margin:.3f}" for s in batch.scores),
        *(f"{s.units}" for s in batch.scores if s.units > 99),
    ):
        assert secret not in re.sub(
            r'"(hash|previous|salt|input_sha256|model_sha256)": "\w+"|"time": "[^"]+"', "", text
        )


def test_the_same_input_has_the_same_hash_and_another_value_another(glassleaf):
    ids = list(glassleaf.samples.table("latest").index[:3])
    assert sheet_hash(sheet_of(glassleaf, *ids)) == sheet_hash(sheet_of(glassleaf, *ids))
    assert sheet_hash(sheet_of(glassleaf, *ids)) != sheet_hash(sheet_of(glassleaf, *reversed(ids)))


def test_equal_acts_have_different_salts_so_that_a_hash_confirms_no_guess(glassleaf):
    for _ in range(2):
        glassleaf.audit.note_sign_in("test")
    first, second = (e.body for e in glassleaf.audit.entries("demo")[-2:])
    assert first["salt"] != second["salt"] and len(first["salt"]) == 32


def test_a_scoring_that_failed_is_logged_with_the_errors_type(glassleaf):
    with pytest.raises(ParameterError):
        glassleaf.scoring.start(ScoringRequest("latest", sheet_of(glassleaf, "x"), what_if=7, cipher="none")).get()
    assert last(glassleaf).body["outcome"] == "ParameterError"


def test_a_training_that_was_stopped_is_logged(glassleaf):
    job = glassleaf.training.start(TrainingRequest("demo", SMALL))
    job.cancel()
    with pytest.raises(Cancelled):
        job.get()
    assert last(glassleaf).action == "train" and last(glassleaf).body["outcome"] == "Cancelled"
    kept = runtime_of(glassleaf, "demo").audit_heads()
    assert {heads[0].number for heads in kept.values()} == {
        last(glassleaf).number
    }  # the same stop does not keep it from the Hosts


def test_a_comparison_is_logged(glassleaf):
    glassleaf.protocol_comparison.start(ComparisonRequest("latest", 1, cipher="none", names=("fed-eini",))).get()
    assert last(glassleaf).action == "compare" and last(glassleaf).body["rows"] == 1


def test_an_unknown_role_is_refused(glassleaf):
    with pytest.raises(ParameterError, match="operator, analyst, regulator"):
        glassleaf.acting("eve", "admin")


def test_the_hosts_witness_the_log_and_a_cut_shows(glassleaf, home):
    glassleaf.audit.note_sign_in("test")
    assert glassleaf.audit.verify("demo").holds
    assert set(glassleaf.audit.verify("demo").witnesses) == {h.name for h in glassleaf.federations.get("demo").hosts}
    file = home / "parties" / "demo" / glassleaf.federations.get("demo").guest.name / "store.db"
    with sqlite3.connect(file) as database:
        database.execute("delete from audit where number = (select max(number) from audit)")
    database.close()
    problems = glassleaf.audit.verify("demo").problems
    assert len(problems) == len(glassleaf.federations.get("demo").hosts) and "was cut off" in problems[0]
    glassleaf.audit.note_sign_in("test")  # another entry in its place does not hide it
    assert any("was rewritten" in p for p in glassleaf.audit.verify("demo").problems)


def forged(file, gone):
    """What the Guest alone can do: the log without its entry `gone`, in a chain that holds."""
    with sqlite3.connect(file) as database:
        texts = [text for (text,) in database.execute("select text from audit order by number")]
        database.execute("delete from audit")
        previous = START
        for number, text in enumerate((t for i, t in enumerate(texts, start=1) if i != gone), start=1):
            fields = json.loads(text)
            fields[0], fields[6] = number, previous
            rewritten = json.dumps(fields, sort_keys=True, ensure_ascii=False)
            previous = link(previous, sha256(rewritten.encode()).hexdigest())
            database.execute("insert into audit values (?, ?, ?)", (number, rewritten, previous))
    database.close()


@pytest.mark.parametrize("restarted", [False, True])
def test_an_entry_deleted_and_the_chain_made_again_shows_though_two_more_follow(tmp_path, caplog, restarted):
    write_demo(tmp_path / "demo", rows=200)
    glassleaf = Glassleaf(tmp_path, pools=False, actor="ana", key_floor=512)
    glassleaf.federations.add(tmp_path / "demo")
    for _ in range(4):
        glassleaf.audit.note_sign_in("test")
    if restarted:
        glassleaf.close()
        glassleaf = Glassleaf(tmp_path, pools=False, actor="ana", key_floor=512)
    assert glassleaf.audit.verify("demo").problems == () == tuple(caplog.records)
    forged(tmp_path / "parties" / "demo" / "bank" / "store.db", gone=3)
    for _ in range(2):
        glassleaf.audit.note_sign_in("test")
    hosts = {host.name for host in glassleaf.federations.get("demo").hosts}
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]  # the Hosts refuse both new heads
    verdict = glassleaf.audit.verify("demo")
    assert set(verdict.witnesses) == hosts and len(verdict.problems) == len(hosts)
    assert all("Entry 3" in problem for problem in verdict.problems)
    glassleaf.close()


def test_two_processes_that_write_one_log_are_no_fork_to_its_hosts(tmp_path, caplog):
    write_demo(tmp_path / "demo", rows=200)
    both = [Glassleaf(tmp_path, pools=False, actor=name, key_floor=512) for name in ("ana", "ben")]
    both[0].federations.add(tmp_path / "demo")
    for _ in range(3):
        for glassleaf in both:  # each remembers an older head of the Hosts than they keep
            glassleaf.audit.note_sign_in("test")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: both[i % 2].audit.note_sign_in("test"), range(12)))
    for glassleaf in both:
        verdict = glassleaf.audit.verify("demo")
        assert verdict.problems == () and verdict.entries == 19  # and the one key
        glassleaf.close()
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_signing_key_that_was_replaced_is_refused_by_the_hosts_and_shows(tmp_path, caplog):
    write_demo(tmp_path / "demo", rows=200)
    for _ in range(2):
        with Glassleaf(tmp_path, pools=False, actor="ana", key_floor=512) as glassleaf:
            glassleaf.federations.add(tmp_path / "demo")
            glassleaf.audit.note_sign_in("test")
            verdict = glassleaf.audit.verify("demo")
        key = tmp_path / "parties" / "demo" / "bank" / "signing.key"
        assert key.stat().st_mode & 0o777 == 0o600
        secret = json.loads(key.read_text())["secret"]
        assert secret not in repr(workspace_of(glassleaf).signing_key("demo")) and secret not in caplog.text
        key.unlink()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert len(verdict.problems) == 2 and not verdict.holds


def test_the_signing_key_is_logged_once_like_any_key(glassleaf):
    made = [e.body for e in glassleaf.audit.entries("demo") if e.action == "key" and e.body["cipher"] == "ed25519"]
    assert [body["key_bits"] for body in made] == [256]


def test_a_host_that_is_down_stops_no_entry(glassleaf):
    runtime = runtime_of(glassleaf)
    runtime.operator.stop(runtime.hosts[0])
    before = len(glassleaf.audit.entries("demo"))
    glassleaf.audit.note_sign_in("test")
    assert len(glassleaf.audit.entries("demo")) == before + 1


def test_an_export_is_lines_of_json_and_logged_itself(glassleaf):
    lines = [json.loads(line) for line in glassleaf.audit.export("demo").splitlines()]
    assert lines[-1]["action"] == "export" and lines[-1]["body"]["what"] == "audit"
