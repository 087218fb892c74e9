"""A Guest waits for a Host's operator, who decides in a shell; both logs and receipts say the same, and where they do not, it is said."""

import json
import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from homes import copied_home
from release_rule import EVERY_SCORE
from typer.testing import CliRunner

from backend.cli import app
from backend.cli.host import _details, _request_json
from backend.data.dictionary import Feature
from backend.data.federation import load_federation, write_federation
from backend.data.table import read_table
from backend.errors import ApprovalPending, HostRefused, ParameterError, SecurityError, SignInError, StoreError
from backend.i18n import Text
from backend.link.agreement import Purpose
from backend.protocols.terms.prices import training_bits, usual_max_bits
from backend.protocols.training.parameters import SecureBoostParameters
from backend.remark import Remark
from backend.server.problems import problem_of
from backend.services import Glassleaf
from backend.services.host_operator import HostOperator, Request, operator_of, own_host, simulated_host
from backend.services.reconciliation import read_side, reconcile, reconcile_pairs
from backend.services.request_facts import Counterparts
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest
from backend.store.accountant import Limits
from backend.store.approvals import Approval
from backend.store.database import Database

HOST = "telecom"


@dataclass
class Told:
    """What a Guest and a Host's operator were told while a score and a training were asked for and allowed."""

    home: Path
    waits: dict[str, ApprovalPending] = field(default_factory=dict)
    requests: tuple[Request, ...] = ()
    scored: int = 0
    volume: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def told(demo_home):
    told = Told(demo_home())
    federation = load_federation(told.home / "demo")
    hosts = tuple(h.model_copy(update={"approval": "ask" if h.name == HOST else None}) for h in federation.hosts)
    write_federation(federation.model_copy(update={"hosts": hosts}), federation.folder)
    training = TrainingRequest("demo", SecureBoostParameters(trees=2, depth=2, cipher="none"), most_named=EVERY_SCORE)
    with closing(Glassleaf(told.home, pools=False)) as glassleaf:
        for name, work in (
            ("score", lambda: score(glassleaf)),
            ("train", lambda: glassleaf.training.start(training).get()),
        ):
            with pytest.raises(ApprovalPending) as waits:
                work()
            told.waits[name] = waits.value
        with closing(own_host(folder(told.home, HOST), "ana")) as operator:
            told.requests = operator.requests(waiting=True)
            operator.approve(1, later(), 5)
            operator.approve(2, later(), 1)
        told.scored = len(score(glassleaf).scores)
        glassleaf.training.start(training).get()
        for name, work in (
            ("score", lambda: score(glassleaf, 4)),
            ("train", lambda: glassleaf.training.start(training).get()),
        ):
            with pytest.raises(HostRefused) as refused:
                work()
            told.volume[name] = str(refused.value)
    return told


@pytest.fixture
def glassleaf(told, tmp_path):
    with closing(Glassleaf(copied_home(told.home, tmp_path / "home"), pools=False)) as glassleaf:
        yield glassleaf


def later():
    return date.today() + timedelta(days=30)


def folder(home, party):
    return home / "parties" / "demo" / party


def score(glassleaf, people=3):
    """With the demo's first model, on plaintext; of a Host that is busy at once."""
    [*_, record] = glassleaf.models.all()
    sheet = glassleaf.samples.read(record.id, "\n".join(["id", *ids(glassleaf, people)]).encode())
    return glassleaf.scoring.start(ScoringRequest(record.id, sheet, cipher="none", timeout=0)).get()


def ids(glassleaf, people):
    return glassleaf._shared.workspace.runtime("demo").table.ids[:people]


def test_a_score_and_a_training_wait_are_decided_and_stand_in_both_logs(told, glassleaf):
    for waits in told.waits.values():
        assert waits.host == HOST
        assert (problem_of(waits).status, problem_of(waits).headers) == (202, {"Retry-After": "60"})
    training, scoring = told.requests
    assert (training.approval.purpose, scoring.approval.purpose) == ("training", "scoring")
    assert len(scoring.splits) == scoring.approval.about["own_splits"] and training.splits == ()
    assert told.scored == 3 and all("volume" in refused for refused in told.volume.values())
    grown, first = glassleaf.models.all()
    with closing(own_host(folder(glassleaf.home, HOST), "ana")) as operator:
        allowed = {one.id: one.purposes for one in operator.models()}
        assert allowed == {first.id: ("scoring",), grown.id: ()}  # the new model waits again
        assert operator.verify_log().holds
        noted = [entry.body["what"] for entry in operator.entries() if entry.action == "approval"]
    assert noted.count("approved") == 2 and noted.count("refused: approved_volume_reached") == 2
    entries = glassleaf.audit.entries("demo")
    states = [entry.body["state"] for entry in entries if entry.action == "approval"]
    assert states == ["waiting", "waiting", "granted", "granted"]
    outcomes = [entry.body["outcome"] for entry in entries if entry.action in ("score", "train")]
    assert outcomes.count("ApprovalPending") == 2


def test_two_parties_receipts_agree_and_what_one_changes_is_said(glassleaf, tmp_path):
    bank, host = read_side(folder(glassleaf.home, "bank")), read_side(folder(glassleaf.home, HOST))
    found = reconcile(bank, host)
    assert found.conversations > 3 and found.approvals == 2 and found.differences == ()
    exports = tmp_path / "bank.jsonl", tmp_path / "telecom.jsonl"
    exports[0].write_text(glassleaf.audit.export("demo", receipts=True))
    with closing(own_host(folder(glassleaf.home, HOST), "ana")) as operator:
        exports[1].write_text(operator.export())
    assert reconcile(*map(read_side, exports)).differences == ()

    first = host.receipts[0]
    entries = tuple((a, b, kind, size + 1, work) for a, b, kind, size, work in first.entries)
    said = reconcile(bank, replace(host, receipts=(replace(first, entries=entries), *host.receipts[1:]))).differences
    assert {"receipt_not_signed", "counts_differ"} <= {difference.code for difference in said}
    said = reconcile(bank, replace(host, receipts=host.receipts[1:])).differences
    values = {"party": "bank", "other": HOST, "conversation": first.conversation[:12]}
    assert said == (Remark("receipt_of_one_side", {**values, "time": first.created[:16]}),)
    said = reconcile(replace(bank, receipts=(replace(first, entries=entries), *bank.receipts)), host).differences
    values = {"party": HOST, "other": "bank", "conversation": first.conversation[:12]}
    assert said == (Remark("other_receipt_shown", values),)
    wider = tuple({**one, "per_day": 10**6} if one.get("state") == "granted" else one for one in bank.approvals)
    assert len(reconcile(replace(bank, approvals=wider), host).differences) == 2
    with pytest.raises(ParameterError, match="Name two parties"):
        reconcile(bank, bank)

    # Of three parties each two are compared, by the command, too; what one has lost is said of the pair that it is in.
    shop = tmp_path / "shop.jsonl"
    shop.write_text('{"party": "shop"}\n')
    done = CliRunner().invoke(app, ["audit", "reconcile", *map(str, (*exports, shop)), "--json"])
    pairs = json.loads(done.stdout)
    assert done.exit_code == 0 and [len(pair["differences"]) for pair in pairs] == [0, 0, 0]
    assert [pair["parties"] for pair in pairs] == [["bank", HOST], ["bank", "shop"], [HOST, "shop"]]
    lines = exports[1].read_text().splitlines()
    own = next(line for line in lines if json.loads(line).get("receipt", {}).get("party") == HOST)
    exports[1].write_text("\n".join(line for line in lines if line != own) + "\n")
    done = CliRunner().invoke(app, ["audit", "reconcile", *map(str, (*exports, shop)), "--json"])
    assert done.exit_code == 1 and [len(pair["differences"]) for pair in json.loads(done.stdout)] == [1, 0, 0]
    with pytest.raises(ParameterError, match="two parties or more"):
        reconcile_pairs([bank])


def test_a_host_that_drains_takes_on_nothing_new(glassleaf):
    with closing(own_host(folder(glassleaf.home, HOST), "ana")) as operator:
        assert operator.drain() and not operator.drain() and operator.draining
        with pytest.raises(HostRefused, match="takes on nothing new"):
            score(glassleaf)
        assert operator.drain(end=True) and not operator.draining


def test_a_withdrawn_approval_ends_the_next_score_and_its_reason_is_read(glassleaf):
    with closing(own_host(folder(glassleaf.home, HOST), "ana")) as operator:
        operator.withdraw(1, "the contract has ended")
        with pytest.raises(HostRefused, match="the contract has ended"):
            score(glassleaf)
        person = ids(glassleaf, 1)[0]
        assert sum(one.times for one in operator.budget(person).answers if one.kind == "score") >= 1
        assert any(one.about for one in operator.left(person))
        with pytest.raises(ParameterError, match="not an id"):
            operator.budget(" x")


def test_the_commands_work_on_a_folder_and_on_a_simulated_host(glassleaf, monkeypatch, tmp_path):
    monkeypatch.setenv("GLASSLEAF_HOME", str(glassleaf.home))
    simulated = ["--federation", "demo", "--host", HOST]
    own = ["--folder", str(folder(glassleaf.home, HOST))]

    def run(*words):
        done = CliRunner().invoke(app, ["host", *map(str, words)])
        return done.exit_code, done.output if done.exception is None or done.exit_code else str(done.exception)

    for which in (simulated, own):
        assert run("inbox", "--all", *which)[1].count("asks for") == 2
        assert "tree " in run("show", 1, *which)[1]
        assert run("models", "list", *which)[0] == 0 and run("log", "verify", *which)[0] == 0
        person = ids(glassleaf, 1)[0]
        assert (
            "score" in run("budget", "--person", person, *which)[1]
            and "answers: " in run("left", "--person", person, *which)[1]
        )
    assert run("withdraw", 1, "--because", "for now", *simulated)[0] == 0
    assert run("approve", 1, "--until", later().isoformat(), "--per-day", 7, *simulated)[0] == 0
    assert json.loads(run("show", 1, "--json", *own)[1])["per_day"] == 7
    assert run("withdraw", 1, "--because", "over", *own)[0] == 0
    assert run("drain", *own)[1] != run("drain", "--end", *own)[1]
    assert run("log", "export", "--out", tmp_path / "log.jsonl", *simulated)[0] == 0
    assert read_side(tmp_path / "log.jsonl").party == HOST
    for wrong in (["--federation", "demo"], [*simulated, *own], ["--folder", str(tmp_path)]):
        assert run("inbox", *wrong)[0] == 1
    assert run("approve", 1, "--until", "tomorrow", "--per-day", 7, *own)[0] == 1


def test_only_the_operator_of_a_simulation_reaches_its_hosts(glassleaf):
    for role in ("analyst", "regulator"):
        with pytest.raises(SecurityError, match="Only the operator"):
            glassleaf.acting("ana", role).host_operator("demo", HOST)
    with pytest.raises(ParameterError, match="is not a Host"):
        glassleaf.host_operator("demo", "bank")


def test_a_host_at_its_own_company_is_opened_by_its_host_toml(tmp_path):
    where = tmp_path / "shop"
    where.mkdir()
    with pytest.raises(StoreError, match="not a Host's folder"):
        own_host(where, "ana")
    (where / "keys").mkdir(mode=0o700)
    (where / "records.csv").write_text("id,spend\na,1\nb,2\n")
    (where / "dictionary.toml").write_text('[[features]]\nname = "spend"\nmeaning = "What was spent"\n')
    (where / "host.toml").write_text(
        'party = "shop"\n[source]\nfile = "records.csv"\nid = "id"\ndictionary = "dictionary.toml"\n[limits]\nbudget = 3\n'
    )
    with closing(own_host(where, "ana")) as operator:
        assert operator.name == "shop" and operator.limits.answers == 3 and "spend" in operator.features
        assert operator.requests() == () and operator.budget("a").left["score"] == 3
    assert (where / "shop.db").exists() and (where / "keys" / "signing.key").stat().st_mode & 0o077 == 0
    assert read_side(where).party == "shop"


SIGN_IN = """
issuer = "https://id.shop.example"
claim = "groups"

[roles]
operator = ["data-owners"]
analyst = ["interns"]
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A Host's folder that wants a sign-in."""
    monkeypatch.delenv("GLASSLEAF_SIGN_IN", raising=False)
    Database(tmp_path).close()
    (tmp_path / "sign-in.toml").write_text(SIGN_IN)
    return tmp_path


def session_of(*groups, **changed):
    """What is known of somebody's session who has signed in a moment ago."""
    now = time.time()
    claims = {"iss": "https://id.shop.example", "sub": "ana", "exp": now + 3600, "auth_time": now, "groups": groups}
    return {"is_logged_in": True} | claims | changed


@pytest.mark.parametrize(
    ("user", "code"),
    [
        ({}, "sign_in_without_provider"),
        ({"is_logged_in": False}, "signed_out"),
        (("interns", {}), "console_for_operators"),
        (("cooks", {}), "no_role"),
        (("data-owners", {"iss": "https://id.evil"}), "sign_in_of_other_provider"),
        (("data-owners", {"exp": 1_700_000_000}), "sign_in_expired"),
        (("data-owners", {"auth_time": 1_700_000_000}), "sign_in_too_old"),
    ],
)
def test_a_hosts_page_is_for_its_operators_who_have_signed_in(shop, user, code):
    user = user if isinstance(user, dict) else session_of(user[0], **user[1])
    for place in (shop, shop / "host.toml"):  # the folder, or the file in it
        for opens in (lambda place: own_host(place, "root", user), lambda place: operator_of(place, user)):
            with pytest.raises(SignInError) as raised:
                opens(place)
            assert raised.value.code == code
    own_host(shop, "root").close()  # whoever reaches the folder in a shell has everything


def test_a_decision_is_the_accounts_whoever_runs_the_page(shop):
    with closing(own_host(shop, "root", session_of("data-owners"))) as operator:
        asked = operator._approvals.ask(Approval("bank", "scoring", "s" * 64, "model", {}))
        operator.note_sign_in("oidc")
        assert operator.approve(asked.number, later(), 5).approval.person == "https://id.shop.example#ana"
        assert {entry.actor for entry in operator.entries()[1:]} == {"https://id.shop.example#ana"}


def test_nothing_of_a_hosts_is_shown_or_done_once_the_sign_in_does_not_hold_any_more(shop):
    user = session_of("data-owners")
    with closing(own_host(shop, "root", user)) as operator:
        asked = operator._approvals.ask(Approval("bank", "scoring", "s" * 64, "model", {}))
        given = {
            "request": (asked.number,),
            "approve": (asked.number, later(), 5),
            "deny": (asked.number, "no"),
            "withdraw": (asked.number, "no"),
            "budget": ("a",),
            "left": ("a",),
            "note_sign_in": ("oidc",),
        }
        steps = [name for name in vars(HostOperator) if not name.startswith("_") and name != "close"]
        assert {"approve", "models", "export", "drain", "left", "draining"} <= set(steps)
        (shop / "sign-in.toml").write_text(SIGN_IN.replace("data-owners", "others"))  # the role was taken away
        for name in steps:
            with pytest.raises(SignInError, match="no role"):
                found = getattr(operator, name)
                found(*given.get(name, ()))
        (shop / "sign-in.toml").write_text(SIGN_IN)
        user["exp"] = 1_700_000_000
        with pytest.raises(SignInError, match="expired"):
            operator.approve(asked.number, later(), 5)
    with closing(own_host(shop, "root")) as operator:
        assert operator.request(asked.number).approval.state == "waiting" and len(operator.entries()) == 1


def test_without_settings_and_without_a_provider_a_hosts_page_asks_nobody(shop):
    (shop / "sign-in.toml").unlink()
    with closing(own_host(shop, "root", {})) as operator:
        operator.drain()
        assert operator.entries()[-1].actor == "root"
    with pytest.raises(SignInError, match="no such file"):  # a provider without settings lets nobody in
        own_host(shop, "root", session_of("data-owners"))


def test_an_export_that_is_none_is_refused(tmp_path):
    for text, code in (
        ("no json\n", "not_a_log_line"),
        ('{"action": "x"}\n', "export_without_party"),
        ('{"receipt": {"party": 1}}\n', "not_a_log_line"),
    ):
        (tmp_path / "x").write_text(text)
        with pytest.raises(ParameterError) as refused:
            read_side(tmp_path / "x")
        assert refused.value.code == code
    with pytest.raises(ParameterError) as refused:
        read_side(Path(tmp_path))
    assert refused.value.code == "not_a_party_folder"


def test_what_sums_could_name_is_said_beside_a_request_that_asks_for_them(tmp_path):
    about = {"trees": 1, "own_trees": 1, "own_splits": 1, "rows": 0, "capacity": 3.0, "hosts": ["h"]}
    asked = HostOperator("h", tmp_path, Database(tmp_path), (), Limits(1), lambda: "ana", naming_share=0.05)
    with closing(asked) as operator:
        for purpose in ("disparity", "scoring"):
            operator._approvals.ask(Approval("bank", purpose, purpose, "m", about))
        found = {one.approval.purpose: one for one in operator.requests()}
    assert [found[purpose].naming_share for purpose in ("disparity", "scoring")] == [0.05, 0.0]
    assert [_request_json(found[purpose])["named"] for purpose in ("disparity", "scoring")] == [0.05, 0.0]
    assert [any("at most 5 %" in line for line in _details(found[purpose], "en")) for purpose in found] == [
        purpose == "disparity" for purpose in found
    ]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_shell_prints_every_fact_that_the_operator_needs_before_deciding(tmp_path, language):
    """Who, purpose with legal basis and retention, own columns and the cost, of a training too; and no list as Python writes it."""
    terms = {"algorithm": "secureboost", "trees": 3, "depth": 2, "bins": 8, "exclude": [], "epsilon": 0.0, "rows": 90}
    training = Approval("bank", "training", "t" * 64, "secureboost", terms)
    agreed = Purpose(
        name="score",
        title=Text("Credit scores", "信用评分"),
        legal_basis=Text("Consent, form 12", "同意书"),
        kinds=("StartTraining",),
        dictionaries={},
        retention_days=30,
        valid_until=date(2100, 1, 1),
    )
    bill = Feature(name="bill", meaning=Text("Monthly bill", "月账单"))
    counterparts = Counterparts({"bank": Text("Linden Bank", "林登银行")}, (agreed,))
    opened = HostOperator(
        "h", tmp_path, Database(tmp_path), (bill,), Limits(1), lambda: "ana", counterparts=counterparts
    )
    with closing(opened) as operator:
        number = operator._approvals.ask(training).number
        request = operator.request(number)
        lines = "\n".join(_details(request, language))
    for fact in request.facts:
        assert fact.label.in_language(language) in lines
    for said in (
        Text("Linden Bank", "林登银行"),
        agreed.title,
        agreed.legal_basis,
        bill.meaning,
        Text("30 days", "30"),
    ):
        assert said.in_language(language) in lines
    assert "[]" not in lines and "exclude: –" in lines


RECORDS = 6_000


def test_the_operators_own_process_books_a_training_and_shows_the_default_of_bits(told, tmp_path):
    """Its default of bits follows from how many records the request was made about: the process has no records."""
    federation = load_federation(told.home / "demo").model_copy(update={"synthetic": False})
    features = len(federation.party(HOST).features)
    with closing(simulated_host(tmp_path, federation, HOST, "ana")) as operator:
        bits = operator.max_bits
        assert bits == pytest.approx(usual_max_bits(features, len(read_table(federation, HOST).ids)))
        about = {"structure": "s1", "features": features, "rows": RECORDS, "exclude": [], "trees": 1}
        for number in (1, 2):
            asked = Approval("bank", "training", str(number), "secureboost", {**about, "structure": f"s{number}"})
            operator._approvals.ask(asked)
        operator.approve(1, later(), 1)
        assert operator._account.given_away(["p"])["p"] == pytest.approx(training_bits(features, RECORDS))
        with pytest.raises(SecurityError) as refused:
            operator.approve(2, later(), 1)
        assert refused.value.code == "training_beyond_bits"


@pytest.mark.parametrize("together", [True, False])
def test_scores_are_allowed_together_with_their_training_or_wait_for_their_own_request(told, tmp_path, together):
    home = copied_home(told.home, tmp_path / "home")
    training = TrainingRequest(
        "demo", SecureBoostParameters(trees=2, depth=2, bins=12, cipher="none"), most_named=EVERY_SCORE
    )
    with closing(Glassleaf(home, pools=False)) as glassleaf:
        with pytest.raises(ApprovalPending):
            glassleaf.training.start(training).get()
        with closing(own_host(folder(home, HOST), "ana")) as operator:
            number = operator.requests(waiting=True)[0].approval.number
            scores = (later(), 7) if together else None
            operator.approve(number, later(), 1, scores)
        record = glassleaf.training.start(training).get()
        sheet = glassleaf.samples.read(record.id, "\n".join(["id", *ids(glassleaf, 3)]).encode())
        request = ScoringRequest(record.id, sheet, cipher="none", timeout=0)
        if not together:
            with pytest.raises(ApprovalPending):
                glassleaf.scoring.start(request).get()
            return
        assert len(glassleaf.scoring.start(request).get().scores) == 3
        with closing(own_host(folder(home, HOST), "ben")) as operator:
            grant = next(one for one in operator.requests() if one.approval.name == record.id).approval
            # The operator who allowed the training stands in the log, with the terms of the scores.
            assert (grant.state, grant.purpose, grant.person, grant.per_day) == ("granted", "scoring", "ana", 7)
            assert grant.until == later().isoformat()
            operator.withdraw(grant.number, "over")  # it ends like any other
        with pytest.raises(HostRefused):
            glassleaf.scoring.start(request).get()


def test_scores_are_allowed_together_with_a_training_only(told, tmp_path):
    with closing(own_host(folder(copied_home(told.home, tmp_path / "home"), HOST), "ana")) as operator:
        number = next(one.approval.number for one in operator.requests() if one.approval.purpose == "scoring")
        with pytest.raises(ParameterError) as refused:
            operator.approve(number, later(), 5, (later(), 5))
    assert refused.value.code == "scores_go_with_training"


def test_the_operator_reads_how_many_scores_fit_one_path_as_the_guest_measured_it(told):
    _, scoring = told.requests
    about = scoring.approval.about
    assert 0.0 <= about["named"] <= 1.0 and 0.0 < about["most_named"] <= 1.0
    facts = {fact.value.code for fact in scoring.facts if not isinstance(fact.value, Text)}
    assert "request_named" in facts
