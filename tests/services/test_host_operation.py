"""A Host's process as its operator sees it: health, figures and log lines that name nobody, and how it stops."""

import http.client
import io
import json
import logging
import shutil
import signal
import subprocess
import sys
import tomllib
from contextlib import closing
from dataclasses import replace
from datetime import date
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread, current_thread

import numpy as np
import pandas as pd
import pytest
import tomli_w
from companies import until
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import create_engine

from backend.data.csv_file import TABLE
from backend.data.row_groups import DatabaseTable, read_database
from backend.data.table import records_version
from backend.errors import FederationError, ParameterError, SecurityError, StoreError
from backend.link.agreement import load_agreement, sign
from backend.link.config import load_config
from backend.link.identity import load_identity
from backend.link.wire import LinkWire
from backend.ops.logs import JsonLines
from backend.protocols.approvals.messages import REASONS, SCORING, TRAINING, AskTraining
from backend.protocols.purposes.messages import StatePurpose
from backend.protocols.transport.messages import ApprovalPending, EndConversation, OfferKey, Refusal
from backend.protocols.transport.receipts import sign_receipt
from backend.services.companies import make_companies
from backend.services.host_live import FRESH_SECONDS, LIVE_FILE, read_live
from backend.services.host_operator import own_host
from backend.services.host_service import (
    HostService,
    agreed_models,
    agreed_volume,
    check_account,
    host_service,
    read_source,
)
from backend.services.reconciliation import HandedOver, read_side, reconcile
from backend.store.approvals import Approval, ApprovalBook
from backend.store.database import Database, timestamp
from backend.store.party_store import PartyStore
from backend.store.receipts import Receipt

ONE, TWO, THREE = "1" * 32, "2" * 32, "3" * 32


def ask(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"Host": "localhost"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def figures(port):
    """(name, label) → value."""
    return {
        (sample.name.removeprefix("glassleaf_host_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(ask(port, "/metrics")[1])
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_created"))
    }


@pytest.fixture(scope="module")
def companies(tmp_path_factory):
    return make_companies(tmp_path_factory.mktemp("operated") / "companies", 100)


@pytest.fixture
def config(companies):
    return load_config(companies.hosts["telecom"] / "host.toml")


@pytest.fixture
def host(companies):
    """A Host that is served by a thread."""
    service = host_service(companies.hosts["telecom"] / "host.toml")
    thread = Thread(target=service.serve, daemon=True)
    thread.start()
    yield service, thread
    service.stop()
    thread.join(60)
    assert not thread.is_alive()


@pytest.fixture
def bank(companies):
    """The Guest's end of the links."""
    with LinkWire("bank", companies.guest / "agreement.toml", companies.guest / "keys") as wire:
        wire.open()
        yield wire


@pytest.fixture
def lines():
    """What the process logs, as lines of JSON."""
    stream, logger = io.StringIO(), logging.getLogger("glassleaf")
    handler, level = logging.StreamHandler(stream), logger.level
    handler.setFormatter(JsonLines())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    logger.removeHandler(handler)
    logger.setLevel(level)


def answer(wire, message):
    """Send a message to the Host; returns what comes back."""
    until(lambda: wire.peer("telecom").is_attached)
    wire.send("telecom", message)
    delivery = wire.receive(timeout=60)
    assert delivery is not None
    return delivery.message


def test_what_is_too_old_is_forgotten_only_while_the_guests_clock_agrees(request, monkeypatch):
    """At a clock that is a month ahead all that was counted would be too old, and gone when the clock is set."""
    times = []
    monkeypatch.setattr("backend.services.host_service.expire", times.append)
    monkeypatch.setattr("backend.services.host_service.LINK_CHECK_SECONDS", 0.02)
    service, _ = request.getfixturevalue("host")
    until(lambda: service.wire.is_up("telecom"))
    assert not times
    request.getfixturevalue("bank")
    until(lambda: times == [service.database])


def test_without_a_link_it_lives_and_is_not_ready(host):
    port = host[0].operation.port
    assert ask(port, "/live") == (200, "live\n")
    until(lambda: ask(port, "/ready")[1].startswith("bank: down since"))
    assert ask(port, "/ready")[0] == 503
    assert figures(port)["link_up",] == 0


def test_with_a_link_it_is_ready_until_it_is_drained_or_its_agreement_or_store_is_gone(
    host, bank, companies, monkeypatch
):
    service = host[0]
    port = service.operation.port
    until(lambda: ask(port, "/ready")[0] == 200)
    assert figures(port)["link_up",] == 1
    operator = own_host(companies.hosts["telecom"], "ana")
    operator.drain()
    assert ask(port, "/ready") == (503, "The Host takes on nothing new.\n")
    operator.drain(end=True)
    operator.close()
    assert ask(port, "/ready")[0] == 200
    over = service.wire.agreement.model_copy(update={"valid_until": service.wire.agreement.valid_from})
    with monkeypatch.context() as changed:
        changed.setattr(service.wire._node, "agreement", over)
        assert ask(port, "/ready") == (503, "The agreement is not valid today.\n")
    service.database.close()
    with monkeypatch.context() as changed:
        changed.setattr(service.operation._book, "_database", Gone())
        assert ask(port, "/ready") == (503, "The store cannot be reached or written.\n")
        assert figures(port)["approvals_waiting",] != figures(port)["approvals_waiting",]  # not a number


class Gone:
    """A database that cannot be reached."""

    def read(self):
        raise StoreError("database_not_read", database="store.db", reason="gone")


def test_messages_refusals_and_what_waits_are_counted_and_logged_with_the_conversation_alone(host, bank, lines):
    service = host[0]
    port = service.operation.port
    book = ApprovalBook(service.database)
    book.ask(Approval("bank", "scores", "a" * 64, "m1", {}))
    before = figures(port)
    refusal = answer(bank, OfferKey(ONE, "none", b""))
    assert isinstance(refusal, Refusal) and "Plaintext" in refusal.why.sentence()
    until(lambda: figures(port).get(("refused_total", "OfferKey")) == 1)
    found = figures(port)
    assert found["kind_seconds_count", "OfferKey"] == 1 and before["approvals_waiting",] == 1
    assert [found["queue_length", lane] for lane in ("online", "bulk", "training")] == [0, 0, 0]
    text = ask(port, "/metrics")[1]
    features = [feature.name for feature in service.config.features()]
    assert not any(name in text for name in (*features, *list(service.party._gate.table.ids)[:50], ONE))
    (line,) = [line for line in lines() if line.get("conversation") == ONE]
    assert line["event"] == "A message was refused: %s" and line["error"] == "SecurityError"


class Chat(BaseHTTPRequestHandler):
    """An operator's chat that takes a notice once it has been down for one call."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, json.loads(body)))
        self.send_response(503 if len(self.server.got) == 1 else 200)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_a_request_that_waits_is_logged_counted_and_told_to_the_operators_webhook(companies, bank, lines, monkeypatch):
    monkeypatch.setattr("backend.ops.webhook.DELAYS", (0.0, 0.01))
    chat = HTTPServer(("127.0.0.1", 0), Chat)
    chat.got = []
    Thread(target=chat.serve_forever, daemon=True).start()
    folder = companies.hosts["telecom"]
    text = (folder / "host.toml").read_text()
    secret = folder / "webhook-url"
    secret.write_text(f"http://127.0.0.1:{chat.server_port}/hooks/s3cret\n")
    secret.chmod(0o600)
    (folder / "told.toml").write_text(f'webhook_file = "webhook-url"\n{text}')
    service = host_service(folder / "told.toml")
    thread = Thread(target=service.serve, daemon=True)
    thread.start()
    try:
        asked = answer(
            bank, AskTraining(ONE, algorithm="secureboost", trees=1, depth=2, bins=4, exclude=(), hide_order=False)
        )
        assert isinstance(asked, ApprovalPending)
        until(lambda: len(chat.got) == 2)
    finally:
        service.stop()
        thread.join(60)
        chat.shutdown()
        chat.server_close()
        secret.unlink()
        (folder / "told.toml").unlink()
    path, notice = chat.got[1]
    assert path == "/hooks/s3cret" and chat.got[0] == chat.got[1]
    about = {"party": "telecom", "guest": "bank", "number": asked.number, "purpose": TRAINING}
    assert notice == {"event": "request_waits", **about, "text": notice["text"], "text_zh": notice["text_zh"]}
    assert f"request {asked.number} of bank waits" in notice["text"] and str(asked.number) in notice["text_zh"]
    (line,) = [line for line in lines() if line["event"].startswith("A request waits for the operator")]
    assert line["party"] == "bank" and line["numbers"] == [asked.number]
    assert "s3cret" not in json.dumps(lines())


def test_a_question_that_comes_while_a_host_starts_is_answered_once_it_serves(companies, bank):
    service = host_service(companies.hosts["telecom"] / "host.toml")
    until(lambda: bank.peer("telecom").is_attached)
    bank.open(ONE)
    bank.send("telecom", StatePurpose(ONE, "card"))
    until(lambda: not any(bank.peer("telecom").outbox.depth().values()))  # the link has taken it
    thread = Thread(target=service.serve, daemon=True)
    thread.start()
    try:
        assert bank.receive(ONE, timeout=20) is not None
    finally:
        service.stop()
        thread.join(60)


def test_told_to_end_it_waits_for_open_work_and_takes_on_nothing_new(host, bank):
    service, thread = host
    answer(bank, OfferKey(ONE, "none", b""))  # opens a conversation, which is open though the key was refused
    service.end()
    refusal = answer(bank, OfferKey(TWO, "none", b""))
    assert isinstance(refusal, Refusal) and refusal.wait > 0 and "takes on nothing new" in refusal.why.sentence()
    assert thread.is_alive()
    bank.send("telecom", EndConversation(ONE))
    thread.join(60)
    assert not thread.is_alive()


def test_work_that_does_not_end_is_not_waited_for_for_ever(host, bank, monkeypatch):
    service, thread = host
    monkeypatch.setattr("backend.services.host_service.ENDING_SECONDS", 0.1)
    monkeypatch.setattr(service.party, "open_work", lambda quiet: 1)
    service.end()
    thread.join(60)
    assert not thread.is_alive()


def test_told_twice_it_stops_at_once(host, monkeypatch):
    service, thread = host
    monkeypatch.setattr(service.party, "open_work", lambda quiet: 1)
    service.end()
    service.end()
    thread.join(20)  # open work would be waited for longer
    assert not thread.is_alive()


SERVING = "The Host answers over its link; figures are shown on port %d."


def test_a_process_logs_lines_of_json_alone_and_ends_well(companies):
    command = [sys.executable, "-m", "glassleaf", "host", "serve", "--log", "json"]
    command += ["--config", companies.hosts["platform"] / "host.toml"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        first = json.loads(process.stderr.readline())
        while first["event"] != SERVING:  # the link is tried meanwhile, and nobody listens
            assert first["event"] == "The link to %s cannot be made: %s" and first["party"] == "bank", process.kill()
            first = json.loads(process.stderr.readline())
        assert ask(first["numbers"][0], "/live")[0] == 200
        process.send_signal(signal.SIGTERM)
        out, more = process.communicate(timeout=120)
    assert process.returncode == 0 and out == ""
    assert all(json.loads(line)["event"] for line in more.splitlines())


def test_a_model_needs_no_asking_where_a_purpose_lists_it_by_the_hosts_own_name_for_it(companies, tmp_path):
    store, elsewhere = PartyStore(Database(tmp_path)), PartyStore(Database())
    name = store.agreed_name("a" * 64)
    assert name == store.agreed_name("a" * 64) and name != elsewhere.agreed_name("a" * 64)
    agreement = load_agreement(companies.guest / "agreement.toml")
    (purpose,) = agreement.purposes
    scores = purpose.model_copy(update={"models": (name,), "kinds": ("DecisionVectors",), "rows_per_day": 7})
    agreed = agreed_models(agreement.model_copy(update={"purposes": (purpose, scores)}), store)
    assert agreed(Approval("bank", SCORING, "a" * 64, "m1", {})) == (scores.valid_until, 7)
    for asked, subject in ((REASONS, "a"), (TRAINING, "a"), ("fairness", "a"), (SCORING, "b")):
        assert agreed(Approval("bank", asked, subject * 64, "m1", {})) is None
    assert agreed_models(agreement, store)(Approval("bank", SCORING, "a" * 64, "m1", {})) is None


def test_what_all_models_may_be_asked_about_a_day_is_what_purposes_that_allow_the_question_say(companies):
    agreement = load_agreement(companies.guest / "agreement.toml")
    (purpose,) = agreement.purposes
    scores = purpose.model_copy(update={"kinds": ("DecisionVectors",), "rows_per_day": 7})
    reasons = purpose.model_copy(update={"kinds": ("AskReasons", "DecisionVectors"), "rows_per_day": 5})

    def volumes(*purposes):
        agreed = agreement.model_copy(update={"purposes": purposes})
        return [agreed_volume(agreed, asked) for asked in (SCORING, REASONS, "fairness")]

    assert volumes(scores, reasons) == [12, 5, 12]
    assert volumes(scores, purpose) == [0, 0, 0]  # one that sets no limit


def test_a_host_keeps_to_the_volume_and_the_groups_of_its_agreement(companies, config, tmp_path):
    folder = tmp_path / "agreed"
    shutil.copytree(companies.guest.parent, folder)
    path = folder / "telecom" / "agreement.toml"
    changed = tomllib.loads(path.read_text())
    changed["purposes"][0]["rows_per_day"], changed["purposes"][0]["floors"]["group_size"] = 3, 77
    changed["purposes"][0]["floors"]["budget"] = 2
    path.write_text(tomli_w.dumps(changed, multiline_strings=True))
    for party in folder.iterdir():
        sign(path, load_identity(party / "keys"))
    toml = folder / "telecom" / "host.toml"
    toml.write_text(tomli_w.dumps(tomllib.loads(toml.read_text()) | {"limits": {"budget": 3}}))
    with closing(own_host(folder / "telecom", "ana")) as operator:
        assert operator.limits.answers == 2  # its inbox says what is answered, not what the Host alone would answer
    service = HostService(config.model_copy(update={"folder": folder / "telecom", "ops": ""}))
    try:
        approvals, wanted = service.party.approvals, Approval("bank", SCORING, "a" * 64, "m1", {})
        approvals.approve(approvals.ask(wanted).number, "ana", date(2100, 1, 1), 100)
        with pytest.raises(SecurityError, match="agreement allows for this purpose is reached: 3 a day"):
            approvals.ask(wanted, 4)
        assert service.party._gate.floors.group_size == 77
    finally:
        service.wire.shut_down()
        service.database.close()


def test_a_guest_has_one_account_whatever_agreements_and_names_there_are(companies, tmp_path):
    """Two databases would have each person asked about twice, by one Guest or by two; so would two names of one Guest in one of them."""
    agreement, file = load_agreement(companies.guest / "agreement.toml"), tmp_path / "accounts.json"
    one, two = (Database(f"sqlite:///{tmp_path / name}.db") for name in ("one", "two"))
    check_account(file, agreement, one)
    written = file.stat().st_mtime_ns
    check_account(file, agreement, one)  # it starts again, and nothing is written
    assert file.stat().st_mtime_ns == written
    with pytest.raises(FederationError, match="counted in another database"):
        check_account(file, agreement, two)
    parties = [p.model_copy(update={"name": "lender"} if p.role == "guest" else {}) for p in agreement.parties]
    with pytest.raises(FederationError, match="under the name bank"):
        check_account(file, agreement.model_copy(update={"parties": tuple(parties)}), one)
    others = [p.model_copy(update={"spiffe": f"{p.spiffe}2"} if p.role == "guest" else {}) for p in agreement.parties]
    another = agreement.model_copy(update={"parties": tuple(others)})
    with pytest.raises(FederationError, match="counted in another database"):
        check_account(file, another, two)
    check_account(file, another, one)  # one account of both Guests
    file.write_text('{"cut": ["off"')
    with pytest.raises(FederationError, match=r"cut off\. Restore it from a backup"):
        check_account(file, agreement, one)
    assert file.read_text() == '{"cut": ["off"'
    one.close(), two.close()


def test_a_host_that_serves_writes_down_where_its_account_is(host, companies):
    assert (companies.hosts["telecom"] / "keys" / "accounts.json").exists()


def test_a_port_that_is_taken_is_said_and_nothing_is_left_open(host, config):
    changed = {"ops": f"127.0.0.1:{host[0].operation.port}", "store": "sqlite://", "keys": "other keys"}
    shutil.copytree(config.path(config.keys), config.path("other keys"), ignore=shutil.ignore_patterns("*.lock"))
    taken = config.model_copy(update=changed)
    with pytest.raises(ParameterError, match="cannot be used"):
        HostService(taken)


def test_without_an_address_nothing_is_shown(config):
    service = HostService(config.model_copy(update={"ops": ""}))
    assert service.operation.port == 0
    service.wire.shut_down()
    service.database.close()


def test_records_in_a_database_are_those_of_the_file_in_which_they_were(config, tmp_path):
    wanted, version = read_source(config)
    assert version == records_version(
        sha256(config.path(config.source.file).read_bytes()).hexdigest(), config.features()
    )
    records = pd.read_csv(config.path(config.source.file), dtype=str, keep_default_na=False)
    url = f"sqlite:///{tmp_path / 'records.db'}"
    engine = create_engine(url)
    records.assign(salary="not asked for").sample(frac=1, random_state=0).to_sql("customers", engine, index=False)
    source = {"kind": "sql", "url": url, "table": "customers", "file": ""}
    config = config.model_copy(update={"source": config.source.model_copy(update=source)})
    found, version = read_source(config)
    assert found.columns.keys() == wanted.columns.keys() and sorted(found.ids) == sorted(wanted.ids)
    asked = DatabaseTable(url, "customers", config.source.id, tuple(wanted.columns))
    assert set(read_database(asked)[0].header) == {config.source.id, *wanted.columns}
    rows = [found.ids.index(one) for one in wanted.ids]
    for name, column in wanted.columns.items():
        np.testing.assert_array_equal(found.columns[name][rows], column)
    assert read_source(config)[1] == version
    first = next(iter(wanted.columns))
    later = records.assign(**{first: records[first].to_numpy()[::-1]})
    later.to_sql("customers", engine, index=False, if_exists="replace")
    assert read_source(config)[1] != version
    records.rename(columns={first: "other"}).to_sql("customers", engine, index=False, if_exists="replace")
    with pytest.raises(FederationError, match=first):
        read_source(config)
    engine.dispose()


def test_a_database_larger_than_a_table_may_be_is_refused(config, tmp_path):
    url = f"sqlite:///{tmp_path / 'records.db'}"
    pd.DataFrame({"id": ["a", "b", "c"]}).to_sql("people", url, index=False)
    with pytest.raises(FederationError, match="more than 2 rows"):
        read_database(DatabaseTable(url, "people", "id"), replace(TABLE, max_rows=2))


def test_the_thread_that_takes_signals_waits_for_no_message(config, monkeypatch):
    service, waited = HostService(config), []
    monkeypatch.setattr(service.party, "serve", lambda wire: waited.append(current_thread()))
    service.serve()
    assert waited and waited != [current_thread()]


def test_what_ends_a_host_in_the_midst_of_serving_is_raised(config, monkeypatch):
    service = HostService(config)

    def fails(wire):
        raise StoreError("database_not_read", database="store.db", reason="gone")

    monkeypatch.setattr(service.party, "serve", fails)
    with pytest.raises(StoreError, match="gone"):
        service.serve()


def test_the_console_sees_links_and_open_work_and_stops_it(request, companies):
    folder = companies.hosts["telecom"]
    with closing(own_host(folder, "ana")) as operator:
        assert operator.live is None  # nothing answers
        request.getfixturevalue("host")
        bank = request.getfixturevalue("bank")
        until(lambda: operator.live is not None and operator.live.links["bank"].up)
        assert operator.live.running == ()

        odd = "../../keys/1111"  # a Guest chooses its conversation's name
        bank.open(odd)
        offer = OfferKey(odd, "paillier", b"no key")
        assert isinstance(answered(bank, odd, offer), Refusal)
        purpose = StatePurpose(odd, "card")
        assert not isinstance(answered(bank, odd, purpose), Refusal)
        until(lambda: [one.messages for one in operator.live.running] == [2])
        [shown] = operator.live.running
        assert (shown.conversation, shown.guest, shown.last, shown.stopped) == (odd, "bank", "StatePurpose", False)

        with pytest.raises(ParameterError) as none:
            operator.stop(TWO)
        assert none.value.code == "work_not_running"
        operator.stop(shown.id)
        until(lambda: operator.live.running[0].stopped)
        refused = answered(bank, odd, purpose)
        assert isinstance(refused, Refusal) and refused.why.code == "stopped_by_operator"
        assert operator.entries()[-1].action == "stop"
        # Other work goes on.
        bank.open(TWO)
        assert not isinstance(answered(bank, TWO, StatePurpose(TWO, "card")), Refusal)


def test_what_a_process_has_shown_is_not_believed_once_it_is_silent(host, companies, monkeypatch):
    folder = companies.hosts["telecom"] / "keys"
    until(lambda: read_live(folder) is not None)
    written = (folder / LIVE_FILE).stat().st_mtime
    monkeypatch.setattr("backend.services.host_live.time.time", lambda: written + FRESH_SECONDS + 1)
    assert read_live(folder) is None
    (folder / LIVE_FILE).write_bytes(b"{")
    monkeypatch.undo()
    assert read_live(folder) is None or read_live(folder).links


def answered(wire, conversation, message):
    """Send a message in a conversation of its own; returns what comes back there."""
    wire.send("telecom", message)
    delivery = wire.receive(conversation, timeout=60)
    assert delivery is not None
    return delivery.message


def stated(companies, *entries):
    """The bank's own account of conversation :data:`THREE`, kept now, as it would hand it over."""
    key = load_identity(companies.guest / "keys").signing
    receipt = sign_receipt(THREE, "bank", entries, key)
    own = Receipt(THREE, "bank", "", receipt.entries, timestamp(), key.public, receipt.signature)
    return HandedOver("bank", (own,), ())


def test_a_host_that_is_stopped_in_the_midst_of_a_conversation_keeps_its_receipt_and_reconcile_names_the_restart(
    companies, bank, request, tmp_path
):
    folder = companies.hosts["telecom"]
    service = host_service(folder / "host.toml")
    thread = Thread(target=service.serve, daemon=True)
    thread.start()
    until(lambda: bank.is_up("telecom"))
    bank.open(THREE)
    answer = answered(bank, THREE, StatePurpose(THREE, "card"))
    service.stop()
    thread.join(60)
    request.getfixturevalue("host")  # the next process
    until(lambda: bank.is_up("telecom"))
    bank.open(TWO)
    answered(bank, TWO, StatePurpose(TWO, "card"))  # a link stands before the process has logged its start
    file = tmp_path / "telecom.jsonl"
    with closing(own_host(folder, "ana")) as operator:
        file.write_text(operator.export())
    host = read_side(file)
    [own] = [one for one in host.receipts if one.conversation == THREE]
    assert [entry[2] for entry in own.entries] == ["StatePurpose", type(answer).__name__]
    host = replace(host, receipts=(own,))  # other tests have left others

    asked, got = own.entries
    said = stated(companies, asked, got, ("bank", "telecom", "EndConversation", 40, 0.0))
    found = reconcile(said, host)
    assert found.differences == () and [one.code for one in found.broken_off] == ["broken_off"]
    # Killed, the process kept no receipt; the start says why.
    killed = replace(host, receipts=())
    assert [one.code for one in reconcile(said, killed).broken_off] == ["broken_off"]
    booked = replace(killed, booked={THREE: 2})
    assert reconcile(said, booked).broken_off[0].values["n"] == 2
    # Without a start, it is a loss; and whoever states the end of a conversation states all of it.
    assert [one.code for one in reconcile(said, replace(killed, starts=())).differences] == ["receipt_of_one_side"]
    key = load_identity(folder / "keys").signing
    ended = sign_receipt(THREE, "telecom", [got, said.receipts[0].entries[2]], key)
    lies = replace(host, receipts=(replace(own, entries=ended.entries, signature=ended.signature),))
    assert [one.code for one in reconcile(said, lies).differences] == ["counts_differ"]
    # So does a bank that lost its receipt of what it had ended, whenever its processes began.
    lost = replace(said, receipts=(), starts=host.starts)
    assert [one.code for one in reconcile(lost, lies).differences] == ["receipt_of_one_side"]
    unended = replace(host, receipts=(own,))
    assert [one.code for one in reconcile(lost, unended).broken_off] == ["broken_off"]
