"""The Host's own console: decides, shows own splits, and needs nothing but the Host's folder; in a simulation of synthetic people alone."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.panels import host_console
from app.texts import Texts, markdown
from backend.cli import main
from backend.data.federation import MEASURES, Federation, load_federation
from backend.errors import ModelError, SecurityError
from backend.protocols.host import _all_kinds
from backend.protocols.host_state import HostModels, Running, Sealed
from backend.protocols.terms.approvals import Approvals
from backend.protocols.transport.wire import LinkState
from backend.remark import Remark
from backend.services import Glassleaf
from backend.services.host_live import LIVE_FILE, WORK_KINDS
from backend.services.host_operator import own_host, simulated_host
from backend.services.roles import ANALYST, REGULATOR
from backend.store.accountant import Question
from backend.store.approvals import Approval
from backend.store.receipts import Receipt, Receipts
from backend.trees.serialization import load_guest, load_host, structure_hash
from tests.app.conftest import OFFSET, Opened, World, sign_in
from tests.app.reading_out import everything, prose, says

ROOT = Path(__file__).resolve().parents[2]
T = Texts("en")


@pytest.fixture
def folder(world: World, tmp_path: Path) -> Path:
    """A Host's folder alone, in which a model and a training wait; it has answered nobody yet."""
    where = tmp_path / "alone" / "telecom"
    shutil.copytree(world.fresh / "parties" / "demo" / "telecom", where, ignore=shutil.ignore_patterns("*.new"))
    wait(where, world)
    return where


def wait(where: Path, world: World) -> None:
    operator = own_host(where, "ana")
    approvals: Approvals = operator._approvals
    model = load_host(operator._store.artefact(world.record.id))
    about = {
        "trees": 6,
        "own_trees": 3,
        "own_splits": len(model.rules),
        "rows": 7,
        "capacity": 3.5,
        "hosts": ["telecom"],
    }
    approvals.ask(Approval("bank", "scoring", structure_hash(model), world.record.id, about))
    terms = {
        "algorithm": "secureboost",
        "trees": 20,
        "depth": 3,
        "bins": 32,
        "exclude": ["age"],
        "epsilon": 0.0,
        "rows": 400,
    }
    approvals.ask(Approval("bank", "training", "t" * 64, "secureboost", terms))
    stated = (("bank", "telecom", "DecisionVectors", 2_000, 0.1), ("telecom", "bank", "EncryptedScores", 500, 0.2))
    Receipts(operator._database).keep(Receipt("c" * 32, "telecom", "bank", stated))
    operator.close()


def console(folder: Path, monkeypatch: pytest.MonkeyPatch, **address: str) -> AppTest:
    monkeypatch.setenv("GLASSLEAF_HOST", str(folder))
    monkeypatch.setenv("GLASSLEAF_HOME", str(folder.parent / "no-home"))
    at = AppTest.from_file(str(ROOT / "app" / "host.py"), default_timeout=60)
    at.query_params.update(address)
    return at.run()


def test_a_link_names_the_consoles_language(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Texts("zh")("host.console_question") in everything(console(folder, monkeypatch, lang="zh"))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_console_shows_what_waits_with_own_thresholds_on_the_hosts_folder_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, language: str, world: World
) -> None:
    at = console(folder, monkeypatch)
    at.get_by_key("language").set_value(language)
    at.run()
    assert not at.exception
    said, t = everything(at), Texts(language)
    assert t("host.asks_scoring", guest="bank", name=world.record.id) in said
    assert t("host.asks_training", guest="bank", name=t("algorithm.name_secureboost")) in said
    assert t("algorithm.guest_secureboost") in said  # what a training tells the Guest about its records
    with closing(own_host(folder, "ana")) as operator:
        request = operator.request(1)
    assert request.approval.subject[:16] in said
    assert request.facts and all(fact.label.in_language(language) in said for fact in request.facts)
    assert str(OFFSET)[:4] in said  # its own thresholds
    assert "cccccccccccc,bank" in said and ",500,2000" in said  # what it sent and took, as its receipt states
    assert not (folder.parent / "no-home").exists()


def test_a_half_that_is_kept_sealed_is_marked(folder: Path, monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    assert not says(console(folder, monkeypatch), "half_sealed")
    with closing(own_host(folder, "ana")) as operator:
        HostModels(operator.name, operator._store).seal(world.record.id, Sealed(0.05, ""))
    assert says(console(folder, monkeypatch), "half_sealed", bound="5 %")
    monkeypatch.setattr(sys, "argv", ["glassleaf", "host", "models", "list", "--folder", str(folder)])
    printed = StringIO()
    with redirect_stdout(printed), pytest.raises(SystemExit):
        main()
    assert Remark("half_sealed", {"bound": "5 %"}).sentence() in printed.getvalue()


def test_a_request_is_approved_and_withdrawn_in_the_console(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = console(folder, monkeypatch)
    at.button(key="own_1_approve").click().run()
    assert not at.exception and T("host.approved", number=1) in everything(at)
    at.text_input(key="own_2_deny_because").set_value("not in the agreement").run()
    at.button(key="own_2_deny").click().run()
    assert T("host.nothing_waits") in everything(at)
    operator = own_host(folder, "ben")
    granted, denied = operator.request(1).approval, operator.request(2).approval
    assert (granted.state, granted.per_day, denied.state, denied.reason) == (
        "granted",
        7,
        "denied",
        "not in the agreement",
    )
    assert operator.models()[0].purposes == ("scoring",)
    operator.withdraw(1, "over")
    operator.close()
    # the page that is open still offers to withdraw
    at.text_input(key="own_1_withdraw_because").set_value("late").run()
    assert not at.exception and T("host.state_withdrawn", person="ben", day=granted.decided[:10]) in everything(at)


def test_nobody_sees_a_hosts_console_before_signing_in_where_that_is_asked_for(
    folder: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(monkeypatch, is_logged_in=False)
    at = console(folder, monkeypatch)
    assert [title.value for title in at.title] == ["Glassleaf"] and says(at, "console.why") and not at.subheader
    assert [button.key for button in at.button] == ["sign_in"] and world.record.id not in everything(at)
    sign_in(monkeypatch, held=(ANALYST, REGULATOR))
    at.run()
    assert says(at, "console_for_operators") and not at.subheader and world.record.id not in everything(at)
    sign_in(monkeypatch, email="rita@telecom.example")
    at.run()
    assert says(at, "sidebar.signed_in", name=markdown("rita@telecom.example")) and len(at.subheader) == 4
    at.button(key="own_1_approve").click().run()
    with closing(own_host(folder, "ben")) as operator:
        assert operator.request(1).approval.person == "https://id.example#rita"
        assert [e.actor for e in operator.entries() if e.action == "sign-in"] == ["https://id.example#rita"]


def test_whose_role_was_taken_away_decides_nothing_on_the_page_that_is_still_open(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sign_in(monkeypatch)
    at = console(folder, monkeypatch)
    settings = Path(os.environ["GLASSLEAF_SIGN_IN"]).read_text(encoding="utf-8")
    (tmp_path / "sign-in.toml").write_text(settings.replace('operator = ["operator"]', 'operator = ["others"]'))
    monkeypatch.setenv("GLASSLEAF_SIGN_IN", str(tmp_path / "sign-in.toml"))
    at.button(key="own_1_approve").click().run()
    assert not at.exception and says(at, "console_for_operators") and not at.subheader
    with closing(own_host(folder, "ben")) as operator:
        assert operator.request(1).approval.state == "waiting"


def test_a_console_that_is_opened_over_a_network_says_that_nobody_signs_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not says(console(folder, monkeypatch), "console.open")
    elsewhere = property(lambda self: "https://console.telecom.example/")
    monkeypatch.setattr("streamlit.runtime.context.ContextProxy.url", elsewhere)
    assert says(console(folder, monkeypatch), "console.open")
    sign_in(monkeypatch)
    assert not says(console(folder, monkeypatch), "console.open")


def test_what_somebody_else_decided_first_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = console(folder, monkeypatch)
    operator = own_host(folder, "ben")
    operator.deny(1, "first")
    operator.close()
    at.button(key="own_1_approve").click().run()
    operator = own_host(folder, "ben")
    state = operator.request(1).approval.state
    operator.close()
    assert not at.exception and state == "granted"  # an operator may reconsider a denial


def test_what_is_asked_while_the_page_is_open_is_shown_by_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = {"own_trees": 1, "trees": 1, "own_splits": 1, "rows": 1, "capacity": 1.0}
    drawn, asked = host_console.draw, Approval("bank", "reasons", "r" * 64, "later", about)

    def ask_behind(*given: Any) -> None:
        """Somebody asks once the page is drawn: the page's clock finds it."""
        drawn(*given)
        with closing(own_host(folder, "ana")) as operator:
            operator._approvals.ask(asked)

    monkeypatch.setattr(host_console, "draw", ask_behind)
    at = console(folder, monkeypatch)
    assert not at.exception and T("host.asks_reasons", guest="bank", name="later") in everything(at)


def test_what_left_about_a_person_is_shown_and_looking_is_logged_without_the_id(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = console(folder, monkeypatch)
    at.text_input(key="own_person").set_value("A100062").run()
    at.button(key="own_left").click().run()
    assert not at.exception and T("host.table_questions") in everything(at)
    operator = own_host(folder, "ana")
    assert "A100062" not in operator.export() and "person" in [one.action for one in operator.entries()]
    operator.close()


def test_a_folder_that_is_no_hosts_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = console(tmp_path, monkeypatch)
    assert (
        not at.exception and at.warning[0].title == T("host.failed") if hasattr(at.warning[0], "title") else at.warning
    )


def test_the_console_loads_nothing_that_reads_labels_or_leaf_weights() -> None:
    script = (
        "import sys, json; import app.panels.host_console, backend.services.host_operator;"
        "print(json.dumps([m for m in sys.modules if m.startswith(('backend', 'app'))]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
    )
    loaded = set(json.loads(done.stdout))
    guests = {
        "backend.protocols.guest",
        "backend.services.scoring",
        "backend.services.training",
        "backend.services.reports",
    }
    assert "backend.services.host_operator" in loaded and not loaded & guests
    assert not [
        m for m in loaded if m.endswith(".guest") or m.startswith(("backend.protocols.simulation", "backend.reports"))
    ]
    assert "app.session" not in loaded


def test_in_a_simulation_an_operator_looks_as_a_host_of_synthetic_people_only(
    home: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSLEAF_HOME", str(home))
    with Glassleaf(home, pools=False) as glassleaf:
        with pytest.raises(SecurityError, match="Only the operator"):
            glassleaf.acting("ana", "analyst").host_operator("demo", "telecom")
        real = replace_synthetic(home)
        with pytest.raises(SecurityError, match="synthetic people only"):
            glassleaf.host_operator("demo", "telecom", on_page=True)
        glassleaf.host_operator("demo", "telecom").close()  # whoever runs the shell runs all parties
    real()


def replace_synthetic(home: Path):
    file = load_federation(home / "demo").folder / "federation.toml"
    before = file.read_text()
    file.write_text(before.replace("synthetic = true", "synthetic = false"))
    return lambda: file.write_text(before)


def test_looking_as_a_host_on_the_dashboard_shows_its_side(world: World, opened: Opened) -> None:
    at = opened("host")
    assert not at.exception and str(OFFSET)[:4] not in everything(at)
    assert T("host.choose") in prose(at)
    operator = simulated_host(world.home, world.federation, "telecom", "ana")
    assert operator.models() and operator.name == "telecom"
    operator.close()
    at.get_by_key("host_look").set_value("telecom").run()
    assert not at.exception and says(at, "host.look_note")
    assert str(OFFSET)[:4] in everything(at)
    # it asks nobody, so nothing waits and no receipts are kept: the page says so
    assert T("waits.not_asked") in prose(at) and T("waits.no_receipts") in prose(at)
    assert T("host.nothing_allowed") not in everything(at) and T("host.choose") not in prose(at)


def test_a_guests_partial_model_is_none_for_a_host(world: World) -> None:
    """A Host's store holds Hosts' artefacts; what reads them refuses a Guest's."""
    guest = Glassleaf(world.home, pools=False)
    text = guest._shared.workspace.guest_store("demo").artefact(world.record.id)
    guest.close()
    assert load_guest(text).trees
    with pytest.raises(ModelError):
        load_host(text)


def test_a_guest_sees_which_hosts_it_reaches_and_why_not(world: World) -> None:
    federation = load_federation(world.fresh / "demo")
    why = Remark("link_down", {"host": "telecom", "since": "14:02", "why": Remark("link_cut")})
    links = {"telecom": LinkState(False, "14:02", why)}
    at = AppTest.from_function(_link_page, args=(federation, links), default_timeout=60).run()
    assert not at.exception
    [line] = at.markdown
    said = f"{T.party(federation, 'telecom')}: down since 14:02. {Remark('link_cut').sentence()}"
    assert line.value == f"- :gray[○] {markdown(said)}"


def _link_page(federation: "Federation", links: "dict[str, LinkState]") -> None:
    from app.panels import host_links  # noqa: PLC0415 - a page of its own
    from app.texts import Texts  # noqa: PLC0415 (as above)

    host_links.draw(Texts("en"), federation, links)


def test_every_purpose_has_its_words() -> None:
    for purpose in ("training", "scoring", "reasons", *MEASURES):
        assert T(f"host.purpose_{purpose}") and T.has(f"host.asks_{host_console._kind(purpose)}")


def test_an_open_console_shows_links_what_runs_and_what_was_given_and_stops_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.services.host_live.FRESH_SECONDS", 3600.0)  # however slow the page is here
    at = console(folder, monkeypatch)
    assert says(at, "host.not_serving") and says(at, "host.given_nothing")
    with closing(own_host(folder, "ana")) as operator:
        keys = operator._folder
        operator._account.count(Question("bank", "", "score", "s", ("A1", "A2"), 2.5, 20.0))
    training = "a" * 32
    alike = "a" * 31 + "b"
    asking = {"conversation": "b" * 32, "guest": "bank", "last": "AskApproval", "messages": 1, "quiet": 0.0}
    work = {"conversation": training, "guest": "bank", "last": "AskBinSums", "messages": 9, "quiet": 0.0}
    why = Remark("link_silent")
    down = Remark("link_down", {"host": "relay", "since": "9:30", "why": why})
    document = {
        "links": {
            "bank": LinkState(True, "14:02", Remark("link_up", {"host": "bank", "since": "14:02"})).plain(),
            "relay": LinkState(False, "9:30", down).plain(),
        },
        "running": [
            work | {"stopped": False},
            work | {"conversation": alike, "stopped": True},
            asking | {"stopped": False},
        ],
    }
    (keys / LIVE_FILE).write_text(json.dumps(document))
    at = console(folder, monkeypatch)
    assert not at.exception
    assert says(at, "host.connected", since="14:02")
    assert says(at, "host.not_connected", since="9:30", why=why.sentence())
    assert says(at, "host.runs", work=T("host.work_training"), guest="bank")
    assert says(at, "host.given", n=2, bits="2.50")
    # To ask for approval reads no record: it is no work that could be stopped.
    buttons = [button for button in at.button if "_stop_" in str(button.key)]
    assert [button.disabled for button in buttons] == [False, True]
    buttons[0].click().run()
    asked = Running(**work, stopped=False).id
    assert (keys / f"stop-{asked}").exists() and says(at, "host.done_stop")
    with closing(own_host(folder, "ana")) as operator:
        assert operator.entries()[-1].action == "stop"


def test_a_console_at_rest_says_what_was_answered_last(
    folder: Path, monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    monkeypatch.setattr("backend.services.host_live.FRESH_SECONDS", 3600.0)
    with closing(own_host(folder, "ana")) as operator:
        receipts = Receipts(operator._database)
        asked = ("bank", "telecom", "AskApproval", 300, 0.1)  # reads no record
        receipts.keep(Receipt("d" * 32, "telecom", "bank", (asked,)))
        last, _ = sorted(operator.receipts(), key=lambda one: one.conversation)
        (operator._folder / LIVE_FILE).write_text(json.dumps({"links": {}, "running": []}))
    at = console(folder, monkeypatch)
    work = T("host.runs", work=T("host.work_scoring"), guest="bank")
    assert says(at, "host.last_work", work=work, time=last.created[:16].replace("T", " "))
    # What runs stands above what is asked.
    assert [title.value for title in at.subheader][:2] == [T("host.section_running"), T("host.section_waiting", n=2)]


def test_each_kind_of_message_that_reads_records_is_work_that_an_operator_can_read_the_name_of() -> None:
    for work, kinds in WORK_KINDS.items():
        assert T.has(f"host.work_{work}") and kinds
        assert {host_console.work_of(kind.__name__) for kind in kinds} <= set(WORK_KINDS)
    named = {kind for kinds in WORK_KINDS.values() for kind in kinds}
    assert set(_all_kinds()) == named
    assert host_console.work_of("AskApproval") == ""
