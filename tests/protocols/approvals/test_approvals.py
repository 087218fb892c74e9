"""Nothing that reads a record is answered before the Host's operator allows it; what is allowed ends, is withdrawn and is used up."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from actors import MODEL_ID, running, score
from refused import raises
from sqlalchemy import Engine, event, text
from sqlalchemy.orm import Session as OrmSession
from worlds import GUEST, random_world

from backend.crypto.plain import PlainKeySide
from backend.crypto.signing import SigningKey
from backend.errors import ApprovalPending, HostRefused, ParameterError, SecurityError
from backend.protocols.alignment.exchange import align
from backend.protocols.approvals.guest import ask, is_signed_approval, training_terms
from backend.protocols.approvals.messages import ApprovalGranted, AskApproval, AskTraining
from backend.protocols.group_sums.messages import AskGroupSums, GroupPairs, GroupSums
from backend.protocols.host_state import Sealed
from backend.protocols.purposes.protocol import state_purpose
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import DecisionVectors, PermuteValues
from backend.protocols.sealing.messages import ReleaseModel
from backend.protocols.terms.approvals import AGREEMENT, REASON_MAX, Approvals
from backend.protocols.terms.floors import Floors
from backend.protocols.training.messages import KeepModel, StartRanks, StartTraining, TakeSplit
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.training.row_sets import pack_rows
from backend.protocols.transport import messages as sent
from backend.protocols.transport.channel import Session
from backend.protocols.transport.message import MESSAGES
from backend.protocols.transport.messages import OfferKey
from backend.store.accountant import Accountant, Limits
from backend.store.approvals import MAX_WAITING, Approval, ApprovalBook
from backend.store.database import Database
from backend.trees.ensemble import Layout
from backend.trees.serialization import dump_host

KEY = SigningKey.generate()
WORLD = random_world(3, 2, n=12)
DAY = date(2026, 5, 4)
LATER = date(2026, 6, 30)


class Clock:
    def __init__(self):
        self.day = DAY

    def __call__(self):
        return self.day


@contextmanager
def asking(world=WORLD, agreed=lambda _: None, **more):
    """A world whose first Host asks its operator; its approvals, the day there, and what it counts."""
    clock, database = Clock(), Database()
    approvals = Approvals("host0", database, KEY, clock, agreed)
    accountant = Accountant(database, Limits(5, 0), today=clock)
    options = {"host0": {"approvals": approvals, "accountant": accountant, **more}}
    with running(world, options=options) as (guest, network, served):
        yield guest, network, served, approvals, clock, accountant


def scored(guest, network, name="c", world=WORLD):
    return score(world, guest, network, PlainKeySide(), name)[0]


def told(accountant):
    return accountant.largest_given_away()[0]


def test_a_score_waits_until_the_operator_allows_it_and_nobody_is_counted_before():
    with asking() as (guest, network, _, approvals, _, accountant):
        for _ in range(2):
            with pytest.raises(ApprovalPending, match="Waits for host0's approval, asked") as waits:
                scored(guest, network)
        (request,) = approvals.book.all()
        assert (waits.value.host, waits.value.number) == ("host0", request.number) and told(accountant) == 0
        assert (request.guest, request.purpose, request.name, request.state) == (GUEST, "scoring", MODEL_ID, "waiting")
        assert request.about["rows"] == 12 and request.about["own_splits"] == len(WORLD.hosts["host0"].rules)
        approvals.approve(request.number, "ana", LATER, 24)
        assert list(scored(guest, network).units) == [WORLD.oracle(WORLD.row(i)) for i in WORLD.tables[GUEST].ids]
        assert told(accountant) and approvals.book.used(request.number) == 12
        what = [entry.body["what"] for entry in approvals.log.entries()]
        assert what == ["asked", "approved"] and approvals.log.verify({}).holds


def test_sums_by_group_wait_for_the_operator_where_the_agreement_says_so_and_use_its_volume_once_a_feature():
    with asking(sums=True, floors=Floors(synthetic=True), measures=("disparity",)) as (
        _,
        network,
        _,
        approvals,
        _,
        accountant,
    ):
        people = len(WORLD.tables["host0"].ids)
        session, side = Session(network.end(GUEST), "c", ("host0",), timeout=60), PlainKeySide()
        state_purpose(session, "disparity")
        session.broadcast(OfferKey("c", side.scheme, side.offer()))
        rows, _ = align(session, GUEST, WORLD.tables["host0"].ids, "dh")
        first, second = list(WORLD.tables["host0"].columns)[:2]

        def asked(feature, marked=1):
            pairs = (side.encrypt_joined([1] * len(rows), 20),) * marked
            session.send("host0", GroupPairs("c", pack_rows(np.ones(len(rows), dtype=bool)), 20, pairs))
            session.send("host0", AskGroupSums("c", GUEST, (feature,), 4))
            return session.expect(GroupSums)

        for marked in (0, 1):
            with pytest.raises(ApprovalPending):
                asked(first, marked)
        (request,) = approvals.book.all()
        assert (request.purpose, request.name) == ("disparity", "sums by group") and told(accountant) == 0
        # where all others wait: in the list that inbox and console show
        assert (request.guest, request.state, request.about) == (GUEST, "waiting", {"rows": people})
        approvals.approve(1, "ana", LATER, people)
        asked(first), asked(first), asked(second, 0)  # a second time it is the same question
        assert approvals.book.used(1) == people == told(accountant)
        with raises(HostRefused, "approved_volume_reached"):
            asked(second)
        approvals.withdraw(1, "ana", "enough")
        with pytest.raises(HostRefused, match="enough"):
            asked(first)
        session.close()


def test_what_the_guest_is_told_holds_no_threshold_and_nothing_of_the_hosts_own_record():
    with asking() as (_, network, _, approvals, _, _):
        session = Session(network.end(GUEST), "c1", WORLD.model.hosts, timeout=120)
        question = AskApproval("c1", MODEL_ID, "scoring", 3)
        with pytest.raises(ApprovalPending):
            ask(session, GUEST, {"host0": question})
        approvals.approve(1, "ana", LATER, 24)
        (allowed,) = ask(session, GUEST, {"host0": question, "host1": question})  # host1 asks nobody
        session.close()
    assert is_signed_approval(allowed) and (allowed.until, allowed.per_day) == (LATER.isoformat(), 24)
    assert approvals.book.get(1).subject not in json.dumps(vars(allowed))
    assert not is_signed_approval(replace(allowed, per_day=25)) and not is_signed_approval(replace(allowed, guest="x"))


def test_what_the_agreement_lists_needs_no_asking_until_the_operator_withdraws_it():
    def agreed(wanted):
        return (LATER, 24) if wanted.purpose == "scoring" else None

    with asking(agreed=agreed) as (guest, network, _, approvals, clock, accountant):
        assert list(scored(guest, network).units) == [WORLD.oracle(WORLD.row(i)) for i in WORLD.tables[GUEST].ids]
        (grant,) = approvals.book.all()
        assert (grant.state, grant.person, grant.until) == ("granted", AGREEMENT, LATER.isoformat())
        assert (grant.per_day, approvals.book.used(1)) == (24, 12) and told(accountant)
        log = [(entry.body["what"], entry.actor) for entry in approvals.log.entries()]
        assert log == [("asked", GUEST), ("approved", AGREEMENT)]
        clock.day = LATER + timedelta(days=1)
        with pytest.raises(ApprovalPending):
            scored(guest, network)  # the agreement is over; its operator decides
        clock.day = DAY
        approvals.deny(2, "ana", "no longer")
        with pytest.raises(HostRefused, match="no longer"):
            scored(guest, network)


def test_a_listed_model_that_was_withdrawn_stays_so():
    with asking(agreed=lambda wanted: (LATER, 1000)) as (guest, network, _, approvals, _, _):
        scored(guest, network)
        approvals.withdraw(1, "ana", "looked at it again")
        with pytest.raises(HostRefused, match="looked at it again"):
            scored(guest, network)
        assert len(approvals.book.all()) == 1


def test_a_grant_ends_with_its_last_day_and_a_new_request_waits():
    with asking() as (guest, network, _, approvals, clock, _):
        with pytest.raises(ApprovalPending):
            scored(guest, network)
        approvals.approve(1, "ana", LATER, 24)
        clock.day = LATER
        scored(guest, network)
        clock.day = LATER + timedelta(days=1)
        with pytest.raises(ApprovalPending) as waits:
            scored(guest, network)
        assert waits.value.number == 2 and approvals.book.get(1).expired(clock.day)
        with raises(ParameterError, "day_is_over"):
            approvals.approve(2, "ana", LATER, 24)


def test_a_grant_that_is_withdrawn_between_two_batches_ends_with_the_next_one():
    with asking() as (_, _, served, approvals, _, accountant):
        host = served.hosts["host0"]
        list(host.answer(GUEST, OfferKey("c", "none", b"")))
        assert kinds(host.answer(GUEST, vectors(WORLD, ids=slice(0, 4)))) == ["ApprovalPending"]
        approvals.approve(1, "ana", LATER, 24)
        assert "DecisionVectors" in kinds(host.answer(GUEST, vectors(WORLD, ids=slice(0, 4))))
        before = told(accountant)
        approvals.withdraw(1, "ana", "the contract has ended")
        with raises(SecurityError, "approval_withdrawn", reason="the contract has ended"):
            list(host.answer(GUEST, vectors(WORLD, ids=slice(4, 8))))
        assert told(accountant) == before
        what = [entry.body["what"] for entry in approvals.log.entries()]
        assert what == ["asked", "approved", "withdrawn", "refused: approval_withdrawn"]
        approvals.approve(1, "ana", LATER, 24)
        assert "DecisionVectors" in kinds(host.answer(GUEST, vectors(WORLD, ids=slice(4, 8))))


def test_a_volume_is_used_before_anybody_is_counted_and_a_repeated_question_uses_none():
    with asking() as (_, _, served, approvals, clock, accountant):
        host = served.hosts["host0"]
        list(host.answer(GUEST, OfferKey("c", "none", b"")))
        list(host.answer(GUEST, vectors(WORLD, ids=slice(0, 1))))
        approvals.approve(1, "ana", LATER, 6)
        four = vectors(WORLD, ids=slice(0, 4), request="r1")
        list(host.answer(GUEST, four))
        list(host.answer(GUEST, four))
        assert approvals.book.used(1) == 4
        before = told(accountant)
        for _ in range(2):
            with raises(SecurityError, "approved_volume_reached", per_day=6, used=4, amount=4):
                list(host.answer(GUEST, vectors(WORLD, ids=slice(4, 8), request="r2")))
        assert told(accountant) == before and approvals.book.used(1) == 4
        assert [e.body["what"] for e in approvals.log.entries()].count("refused: approved_volume_reached") == 1
        list(host.answer(GUEST, vectors(WORLD, ids=slice(4, 6), request="r3")))
        clock.day += timedelta(days=1)
        list(host.answer(GUEST, vectors(WORLD, ids=slice(4, 8), request="r2")))
        assert approvals.book.used(1) == 4


def test_what_operators_grant_together_is_no_more_a_day_than_the_agreement_allows():
    agreed, clock = {"scoring": 10}, Clock()
    approvals = Approvals("host0", Database(), KEY, clock, volume=lambda purpose: agreed.get(purpose, 0))
    wanted = {name: Approval(GUEST, "scoring", name * 64, name, {}) for name in "ab"}
    wanted["r"] = Approval(GUEST, "reasons", "a" * 64, "a", {})
    for one in wanted.values():
        approvals.approve(approvals.ask(one).number, "ana", LATER, 8)
    approvals.ask(wanted["a"], 8)
    with raises(SecurityError, "agreed_volume_reached", per_day=10, used=8, amount=3):
        approvals.ask(wanted["b"], 3)
    approvals.ask(wanted["b"], 2)
    with raises(SecurityError, "approved_volume_reached", per_day=8):
        approvals.ask(wanted["a"], 1)
    approvals.ask(wanted["r"], 8)
    clock.day += timedelta(days=1)
    approvals.ask(wanted["b"], 8)
    assert [e.body["what"] for e in approvals.log.entries()].count("refused: agreed_volume_reached") == 1


def test_a_host_that_is_killed_between_the_volume_and_the_count_uses_the_volume_once():
    with asking() as (_, _, served, approvals, _, accountant):
        host = served.hosts["host0"]
        list(host.answer(GUEST, OfferKey("c", "none", b"")))
        list(host.answer(GUEST, vectors(WORLD, ids=slice(0, 1))))
        grant = approvals.approve(1, "ana", LATER, 9)
        approvals.ask(grant, 4, (GUEST, "r"))  # and it is killed
        four = vectors(WORLD, ids=slice(0, 4), request="r")
        list(host.answer(GUEST, four))
        list(host.answer(GUEST, four))
        assert approvals.book.used(1) == 4 and told(accountant)
        approvals.ask(grant, 1, (GUEST, "s"))
        list(host.answer(GUEST, vectors(WORLD, ids=slice(4, 8), request="s")))  # the same name for more people
        assert approvals.book.used(1) == 9


class Killed(BaseException):
    """The process has ended: nothing catches it."""


@contextmanager
def killed_at(place):
    """The process ends at its write of that number, each of which has a moment before it is kept and one after; 0 = never."""
    writes = []

    def passed(*about):
        writes.append(about)
        if len(writes) == place:
            raise Killed

    moments = (Engine, "commit"), (OrmSession, "after_commit")
    for owner, name in moments:
        event.listen(owner, name, passed)
    try:
        with suppress(Killed):
            yield writes
    finally:
        for owner, name in moments:
            event.remove(owner, name, passed)


def test_killed_at_any_write_a_host_uses_the_volume_and_counts_once(tmp_path):
    def host_of(folder, served):
        """The Host as a process that has just started on that folder."""
        host, database = served.hosts["host0"], Database(folder)
        approvals, host.accountant = (
            Approvals("host0", database, KEY, Clock()),
            Accountant(database, Limits(5, 0), today=Clock()),
        )
        host._gate = replace(host._gate, approvals=approvals, accountant=host.accountant)
        return host, approvals

    def asked(folder, place, served):
        host, _ = host_of(folder, served)
        with killed_at(place) as writes:
            list(host.answer(GUEST, vectors(WORLD, ids=slice(0, 4), request="r")))
        return len(writes)

    def counted(approvals):
        with approvals._database.read() as session:
            return session.scalars(text("select asked from answers")).all()

    with asking() as (_, _, served, _, _, _):
        host, approvals = host_of(tmp_path / "0", served)
        list(host.answer(GUEST, OfferKey("c", "none", b"")))
        list(host.answer(GUEST, vectors(WORLD, ids=slice(0, 1))))
        approvals.approve(1, "ana", LATER, 9)
        template = tmp_path / "granted"
        shutil.copytree(tmp_path / "0", template)
        last, whole = asked(tmp_path / "0", 0, served), counted(approvals)
        assert whole and set(whole) == {1}
        # grant, volume, count and bytes are one transaction; the reply is stored in another
        assert last == 2
        for place in range(1, last + 1):
            folder = shutil.copytree(template, tmp_path / f"{place}")
            assert asked(folder, place, served) == place
            asked(folder, 0, served)
            host, approvals = host_of(folder, served)
            assert approvals.book.used(1) == 4
            assert counted(approvals) == whole


def test_what_is_refused_is_noted_though_nothing_is_used(tmp_path):
    approvals = Approvals("host0", Database(tmp_path), KEY, Clock())
    wanted = Approval(GUEST, "scoring", "s", MODEL_ID, {})
    approvals.ask(wanted, 9)
    assert approvals.book.used(1) == 0  # it waits
    approvals.approve(1, "ana", LATER, 8)
    with raises(SecurityError, "approved_volume_reached"):
        approvals.ask(wanted, 9, (GUEST, "r"))
    assert approvals.book.used(1) == 0
    approvals.ask(wanted, 8, (GUEST, "r"))
    approvals.withdraw(1, "ana", "over")
    with pytest.raises(SecurityError, match="over"):
        approvals.ask(wanted, 8, (GUEST, "r"))
    again = Approvals("host0", Database(tmp_path), KEY, Clock())
    what = [entry.body["what"] for entry in again.log.entries()]
    assert what == ["asked", "approved", "refused: approved_volume_reached", "withdrawn"] and again.book.used(1) == 8


def test_a_host_that_counts_nothing_takes_each_question_for_a_new_one():
    with asking(accountant=Accountant(Database(), Limits(0, 0, synthetic=True))) as (_, _, served, approvals, _, _):
        host = served.hosts["host0"]
        list(host.answer(GUEST, OfferKey("c", "none", b"")))
        list(host.answer(GUEST, vectors(WORLD, ids=slice(0, 1))))
        approvals.approve(1, "ana", LATER, 9)
        for _ in range(2):
            list(host.answer(GUEST, vectors(WORLD, ids=slice(0, 4), request="r")))
        assert approvals.book.used(1) == 8


def test_permuted_values_under_the_name_of_a_counted_question_use_the_volume():
    world = random_world(5, 1, n=80)
    with asking(world) as (_, _, served, approvals, _, _):
        host, ids = served.hosts["host0"], world.tables[GUEST].ids
        list(host.answer(GUEST, OfferKey("c", "none", b"")))
        asked = vectors(world, request="r")
        list(host.answer(GUEST, asked))
        approvals.approve(1, "ana", LATER, 100)
        list(host.answer(GUEST, asked))
        list(host.answer(GUEST, PermuteValues("c", ids, ("host0_x",))))
        with raises(SecurityError, "approved_volume_reached"):
            list(host.answer(GUEST, asked))


def test_the_same_model_under_another_name_is_the_same_request_and_one_tree_more_is_another():
    more = random_world(3, 2, n_trees=5, n=12)
    with asking() as (_, _, served, approvals, _, _):
        host = served.hosts["host0"]
        list(host.answer(GUEST, OfferKey("c", "none", b"")))
        same = replace(WORLD.hosts["host0"], salt="other", guest_hash="f" * 64)
        host._store.put_artefact("m-again", dump_host(same))
        host._store.put_artefact("m-more", dump_host(more.hosts["host0"]))
        assert len(more.hosts["host0"].skeletons) == len(same.skeletons) + 1
        list(host.answer(GUEST, vectors(WORLD)))
        approvals.deny(1, "ana", "not this one")
        with raises(SecurityError, "approval_denied", reason="not this one"):
            list(host.answer(GUEST, replace(vectors(WORLD), model_id="m-again")))
        assert len(approvals.book.all()) == 1
        assert kinds(host.answer(GUEST, replace(vectors(more), model_id="m-more"))) == ["ApprovalPending"]
        approvals.approve(1, "ana", LATER, 100)
        assert "DecisionVectors" in kinds(host.answer(GUEST, replace(vectors(WORLD), model_id="m-again")))
        (granted,) = host.answer(GUEST, AskApproval("c", "m-again", "scoring", 1))
        assert isinstance(granted[1], ApprovalGranted) and granted[1].name == "m-again" and granted[1].number == 1


def test_scores_reasons_and_each_measurement_are_requests_of_their_own():
    with asking() as (_, _, served, approvals, _, _):
        host = served.hosts["host0"]
        for purpose in ("scoring", "reasons", "age"):
            list(host.answer(GUEST, AskApproval("c", MODEL_ID, purpose, 1)))
        assert [one.purpose for one in approvals.book.all()] == ["age", "reasons", "scoring"]
        with raises(SecurityError, "unknown_purpose"):
            list(host.answer(GUEST, AskApproval("c", MODEL_ID, "gossip", 1)))


def test_every_question_about_a_model_is_held():
    assert {name for name, kind in MESSAGES.items() if "model_id" in kind.__dataclass_fields__} == {
        "AskCandidates",
        "StartWalk",
        "DecisionVectors",
        "AskReasons",
        "AskCohort",
        "AskApproval",
        "KeepModel",
        "KeepImport",
        "ModelKept",
        "ReleaseModel",
    }


@pytest.mark.parametrize("field", ["guest", "per_day", "until", "subject", "state"])
def test_a_forged_grant_is_none(field):
    values = {"guest": GUEST, "per_day": 10**6, "until": "2099-01-01", "state": "granted"}
    with asking() as (_, _, served, approvals, _, _):
        host = served.hosts["host0"]
        list(host.answer(GUEST, OfferKey("c", "none", b"")))
        list(host.answer(GUEST, vectors(WORLD)))
        real = approvals.book.get(1).subject
        if field in ("guest", "subject"):  # a grant for something else is bent to this
            with approvals._database.write() as session:
                session.execute(text(f"update approvals set {field} = 'other'"))  # noqa: S608
        if field != "state":
            approvals.approve(1, "ana", LATER, 100)
        with approvals._database.write() as session:
            changed = {**values, "subject": real}[field]
            session.execute(text(f"update approvals set {field} = :changed"), {"changed": changed})  # noqa: S608
            session.execute(text("update approvals set until = '2099-01-01' where until = ''"))
        with raises(SecurityError, "approval_changed"):
            list(host.answer(GUEST, vectors(WORLD)))
        assert "refused: approval_changed" in [entry.body["what"] for entry in approvals.log.entries()]


def test_a_guest_that_pretends_to_be_another_uses_none_of_its_grants():
    with asking() as (guest, network, served, approvals, _, _):
        with pytest.raises(ApprovalPending):
            scored(guest, network)
        approvals.approve(1, "ana", LATER, 100)
        host = served.hosts["host0"]
        list(host.answer("other_bank", OfferKey("d", "none", b"")))
        with pytest.raises(SecurityError, match="for its own Guest"):
            list(host.answer("other_bank", replace(vectors(WORLD), conversation="d")))
        with raises(SecurityError, "model_of_another_guest"):
            list(host.answer("other_bank", AskApproval("d", MODEL_ID, "scoring", 1)))
        with raises(SecurityError, "model_of_another_guest"):
            list(host.answer("host1", AskApproval("d", MODEL_ID, "scoring", 1)))
        assert len(approvals.book.all()) == 1 and approvals.book.used(1) == 0
        # by name alone it would wait: trainings are nobody's yet
        assert kinds(host.answer("other_bank", terms("d"))) == ["ApprovalPending"]
        assert approvals.book.get(2).guest == "other_bank"


def test_of_two_who_decide_at_once_one_does(tmp_path):
    Database(tmp_path)
    books = [Approvals("host0", Database(tmp_path), KEY, Clock()) for _ in range(2)]
    books[0].ask(Approval(GUEST, "scoring", "s", MODEL_ID, {}))

    def decide(which):
        try:
            return books[which].approve(1, f"p{which}", LATER, which + 1).person
        except ParameterError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        first, second = sorted(pool.map(decide, range(2)), key=lambda result: not isinstance(result, str))
    assert first in ("p0", "p1") and second.values["person"] == first
    grant = books[0].book.get(1)
    assert grant.person == first and books[0].ask(grant).state == "granted"
    assert [e.body["what"] for e in books[1].log.entries()] == ["asked", "approved"]


def test_of_two_processes_that_use_the_last_of_a_volume_one_does(tmp_path):
    Database(tmp_path)
    books = [Approvals("host0", Database(tmp_path), KEY, Clock()) for _ in range(4)]
    books[0].ask(Approval(GUEST, "scoring", "s", MODEL_ID, {}))
    books[0].approve(1, "ana", LATER, 10)
    with ThreadPoolExecutor(4) as pool:
        left = list(pool.map(lambda one: one.book.use(1, 4), books))
    assert sorted(left) == [-1, -1, 2, 6] and books[0].book.used(1) == 8


def test_what_was_decided_takes_its_next_step_only():
    approvals = Approvals("host0", Database(), KEY, Clock())
    approvals.ask(Approval(GUEST, "scoring", "s", MODEL_ID, {}))
    for wrong in (lambda: approvals.withdraw(1, "ana", "why"), lambda: approvals.approve(1, "ana", LATER, 0)):
        with pytest.raises(ParameterError):
            wrong()
    for reason in ("", "  ", "x" * (REASON_MAX + 1)):
        with raises(ParameterError, "approval_reason_length"):
            approvals.deny(1, "ana", reason)
    approvals.deny(1, "ana", "why")
    approvals.approve(1, "ben", LATER, 5)
    with raises(ParameterError, "no_such_step", state="granted", person="ben"):
        approvals.deny(1, "ana", "why")
    approvals.withdraw(1, "ana", "why")
    with raises(ParameterError, "unknown_request", number=2):
        approvals.approve(2, "ana", LATER, 5)


def test_no_guest_fills_the_operators_list():
    book = ApprovalBook(Database(), Clock())
    for number in range(MAX_WAITING):
        book.ask(Approval(GUEST, "training", str(number), "secureboost", {}))
    with raises(SecurityError, "too_many_requests_wait"):
        book.ask(Approval(GUEST, "training", "more", "secureboost", {}))
    assert book.ask(Approval("other", "training", "more", "secureboost", {}))[1]


def terms(conversation, **changed):
    values = {"trees": 2, "depth": 3, "bins": 8, "exclude": (), "hide_order": False, "epsilon": 0.0, **changed}
    return AskTraining(conversation, algorithm="secureboost", **values)


def test_a_training_is_held_to_what_was_allowed():
    with asking() as (_, _, served, approvals, _, _):
        host = served.hosts["host0"]
        list(host.answer(GUEST, OfferKey("c", "none", b"")))
        host._sessions.find("c", GUEST).rows = np.arange(4)
        start = StartTraining("c", pack_rows(np.ones(4, dtype=bool)), 8, (), False)
        with raises(SecurityError, "training_not_asked_for"):
            list(host.answer(GUEST, start))
        assert kinds(host.answer(GUEST, terms("c"))) == ["ApprovalPending"] == kinds(host.answer(GUEST, start))
        approvals.approve(1, "ana", LATER, 1)
        assert kinds(host.answer(GUEST, terms("c"))) == ["ApprovalGranted"]
        beyond = (
            replace(start, bins=9),
            replace(start, exclude=("host0_x",)),
            replace(start, hide_order=True),
            StartRanks("c", "global", "exponential", 0.32, 4, 2.0, 128, exclude=()),
            TakeSplit("c", 2, 0, "host0_x", b"", True, b""),
            KeepModel("c", "m", GUEST, ("host0",), ((), (), ()), 10, 1, 0, 0, ""),
        )
        for message in beyond:
            with raises(SecurityError, "beyond_the_training"):
                list(host.answer(GUEST, message))
        assert kinds(host.answer(GUEST, start)) == ["FeatureBins"]
        with raises(SecurityError, "approved_volume_reached"):  # one a day
            list(host.answer(GUEST, start))
        # one tree more is another request
        assert kinds(host.answer(GUEST, terms("c", trees=3))) == ["ApprovalPending"]
        assert approvals.book.all()[0].number == 2
        assert kinds(host.answer(GUEST, start)) == ["ApprovalPending"]
        approvals.withdraw(1, "ana", "no more")
        with pytest.raises(SecurityError, match="withdrawn"):
            list(host.answer(GUEST, terms("c")))


def test_the_guest_states_what_it_will_send():
    parameters = SecureBoostParameters(trees=7, depth=2, bins=9)
    with asking() as (guest, network, _, _, _, _):
        session = Session(network.end(GUEST), "c", WORLD.model.hosts)
        asked = training_terms(session, parameters, guest._federation, ("host0_x", "bank_y"))
        session.close()
    assert asked["host0"] == AskTraining(
        "c", algorithm="secureboost", trees=7, depth=2, bins=9, exclude=("host0_x",), hide_order=False
    )
    assert asked["host1"].exclude == ()


def test_a_sealed_model_is_opened_within_the_approval_of_its_own_training_and_asked_about_by_nobody_before():
    with asking() as (_, _, served, approvals, _, accountant):
        host, model = served.hosts["host0"], WORLD.hosts["host0"]
        layout = Layout(10, 1, 40, 0)
        host._partial_models.put(replace(model, layout=layout), MODEL_ID)
        host._partial_models.note_training(MODEL_ID, {})
        opening = ReleaseModel("c", MODEL_ID, MODEL_ID, 10, 1, 40, 0, "0" * 64, 0.04)
        list(host.answer(GUEST, OfferKey("c", "none", b"")))
        assert kinds(host.answer(GUEST, terms("c"))) == ["ApprovalPending"]
        approvals.approve(1, "ana", LATER, 1)
        list(host.answer(GUEST, terms("c")))
        host._partial_models.seal(MODEL_ID, Sealed(0.05, approvals.book.get(1).subject))

        # nothing is answered about it, and its operator is not even asked
        for question in (vectors(WORLD), AskApproval("c", MODEL_ID, "scoring", 3)):
            with raises(SecurityError, "model_sealed"):
                list(host.answer(GUEST, question))
        assert len(approvals.book.all()) == 1 and told(accountant) == 0

        # another training that was allowed opens nothing
        assert kinds(host.answer(GUEST, terms("c", trees=5))) == ["ApprovalPending"]
        approvals.approve(2, "ana", LATER, 1)
        list(host.answer(GUEST, terms("c", trees=5)))
        with raises(SecurityError, "release_of_another_training"):
            list(host.answer(GUEST, opening))

        # nor does its own beyond what it was allowed for, with finer scores, or once it was withdrawn
        list(host.answer(GUEST, terms("c")))
        for wrong, code in (
            (replace(opening, named=0.06), "release_names_too_many"),
            (replace(opening, score_bits=11), "release_of_finer_scores"),
        ):
            with raises(SecurityError, code):
                list(host.answer(GUEST, wrong))
        approvals.withdraw(1, "ana", "not any more")
        with pytest.raises(SecurityError, match="not any more"):
            list(host.answer(GUEST, opening))
        assert host._partial_models.sealed(MODEL_ID) is not None

        assert kinds(host.answer(GUEST, terms("c", trees=3))) == ["ApprovalPending"]
        approvals.approve(3, "ana", LATER, 1)
        list(host.answer(GUEST, terms("c", trees=3)))
        host._partial_models.seal(MODEL_ID, Sealed(0.05, approvals.book.get(3).subject))
        assert kinds(host.answer(GUEST, replace(opening, score_bits=8))) == ["ModelKept"]
        assert host._partial_models.sealed(MODEL_ID) is None
        assert host.registered(MODEL_ID).layout == replace(layout, score_bits=8)


def test_a_host_that_asks_nobody_allows_everything_and_signs_nothing():
    with running(WORLD) as (_, network, _):
        session = Session(network.end(GUEST), "c", WORLD.model.hosts, timeout=120)
        assert ask(session, GUEST, {"host0": AskApproval("c", MODEL_ID, "scoring", 1), "host1": terms("c")}) == ()
        session.close()


def test_a_real_host_asks_an_operator_unless_it_is_told_otherwise():
    with running(WORLD, simulated=False) as (_, _, served):
        assert served.hosts["host0"].approvals is not None
    with running(WORLD, simulated=False, options={"host0": {"approvals": "none"}}) as (_, _, served):
        assert served.hosts["host0"].approvals is None


def test_a_host_that_answers_about_something_else_is_not_believed():
    lie = ApprovalGranted("c", "host0", GUEST, 1, "reasons", MODEL_ID, "2099-01-01", 5, "then", KEY.public, "00" * 64)

    class Telling:
        def __init__(self, answer):
            self.answer = answer

        def send(self, host, message):
            pass

        def expect(self, kind):
            return "host0", self.answer

    question = {"host0": AskApproval("c", MODEL_ID, "scoring", 1)}
    with raises(SecurityError, "allowed_something_else"):
        ask(Telling(lie), GUEST, question)
    with raises(SecurityError, "approval_not_signed"):
        ask(Telling(replace(lie, purpose="scoring")), GUEST, question)


@pytest.mark.parametrize(
    ("past", "words"),
    [
        ({"seconds": -5}, "less than a minute"),
        ({"minutes": 7}, "7 minutes"),
        ({"hours": 2}, "2 hours"),
        ({"hours": 47}, "47 hours"),
        ({"days": 3}, "3 days"),
    ],
)
def test_since_when_it_waits_is_said_in_words(past, words):
    now = datetime(2026, 5, 4, tzinfo=UTC)
    assert f"asked {words} ago (request 4" in str(ApprovalPending("shop", 4, now - timedelta(**past), now))


@pytest.mark.parametrize("since", ["then", "2026-05-04T10:00:00"])
def test_a_time_that_is_none_stops_the_exchange(since):
    with running(WORLD) as (_, network, _):
        session = Session(network.end(GUEST), "c", WORLD.model.hosts, timeout=120)
        network.send("host0", GUEST, sent.ApprovalPending("c", 1, since))
        with pytest.raises(SecurityError, match="not a time in UTC"):
            session.expect(ApprovalGranted)
        session.close()


def kinds(answers):
    return [type(message).__name__ for _, message in answers]


def vectors(world, ids=slice(None), request=""):
    compiled, table = CompiledGuest(world.model), world.tables[GUEST]
    chosen = table.ids[ids]
    columns = {name: column[ids] for name, column in table.columns.items()}
    _, entries = compiled.encode(columns, len(chosen))
    blob = PlainKeySide().encrypt(entries)
    return DecisionVectors("c", MODEL_ID, chosen, entries.shape[1], 1, blob, request=request)


def test_errors_of_approvals_are_refusals():
    assert issubclass(ApprovalPending, HostRefused)


class Answers:
    """A conversation in which Hosts answer what stands here, one after the other."""

    def __init__(self, *answers):
        self.left, self.asked = list(answers), []

    def send(self, host, question):
        self.asked.append(host)

    def expect(self, kind):
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_every_host_is_heard_before_one_that_has_not_decided_or_is_against_it_ends_the_conversation():
    hosts = ("shop", "telecom", "platform")
    asked = {host: AskApproval("c", "m", "scoring", 1) for host in hosts}
    waits = {host: ApprovalPending(host, 1, datetime(2026, 1, 1, tzinfo=UTC)) for host in hosts}
    granted = ApprovalGranted("c", "shop", "bank", 0, "scoring", "m")
    both = Answers(waits["platform"], ("shop", granted), waits["telecom"])
    with pytest.raises(ApprovalPending) as raised:
        ask(both, "bank", asked)
    assert raised.value.host == "telecom" and both.asked == list(hosts) and not both.left
    against = Answers(waits["shop"], HostRefused("platform refused: no"), ("telecom", granted))
    with pytest.raises(HostRefused, match="platform refused"):
        ask(against, "bank", asked)
    assert not against.left
    with raises(SecurityError, "answered_out_of_turn"):
        ask(Answers(("shop", granted), ("shop", granted)), "bank", asked)
    assert ask(Answers(*((host, granted) for host in hosts)), "bank", asked) == ()  # a Host without an operator
