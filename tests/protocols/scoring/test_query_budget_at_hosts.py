"""What a Host does when its budget for a person is spent: that row says nothing, the others are as ever."""

import numpy as np
import pytest
from actors import MODEL_ID, running, score
from worlds import GUEST, random_world

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.crypto.rlwe.parameters import parameters_for
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.data.demo import write_demo
from backend.data.federation import load_federation, write_federation
from backend.errors import ParameterError, SecurityError
from backend.protocols.host import HostParty
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.guest import refusals
from backend.protocols.scoring.messages import DecisionVectors
from backend.protocols.simulation.simulator import FederationRuntime
from backend.protocols.training.messages import KeepModel, ModelKept
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.messages import HeldRecords, OfferKey
from backend.remark import Remark
from backend.store.accountant import QUERIES_SYNTHETIC, Accountant, Limits
from backend.store.database import Database
from backend.store.party_store import memory_store
from backend.trees.serialization import dump_host, dump_skeleton


def counting(world, limits):
    """The world's parties; each Host counts with its own limit."""
    options = {
        h: {"accountant": Accountant(Database(), Limits(limit))} for h, limit in zip(world.hosts, limits, strict=True)
    }
    return running(world, options=options)


def key_of(cipher, world, secret_key):
    if cipher == "paillier":
        return PaillierKeySide(secret_key)
    if cipher == "none":
        return PlainKeySide()
    compiled = CompiledGuest(world.model)
    hosts = len(compiled.folding.steps)
    return RlweKeySide(RlweSecretKey.generate(parameters_for(hosts, compiled.folding.n_entries, compiled.largest)))


@pytest.mark.parametrize("cipher", ["none", "paillier", "rlwe"])
@pytest.mark.parametrize("limits", [(1, 9), (9, 1)])
def test_a_row_over_budget_comes_back_empty_wherever_in_the_chain_it_is_refused(cipher, limits, secret_key):
    world = random_world(3, 2, n=6)
    ids = world.tables[GUEST].ids
    counts = f"host{limits.index(1)}"
    with counting(world, limits) as (guest, network, _):
        key = key_of(cipher, world, secret_key)
        first, _ = score(world, guest, network, key, name="c")
        again, transcript = score(world, guest, network, key, name="d")
    assert first.refused == {} and first.units == [world.oracle(world.row(i)) for i in ids]
    held = [i for i, name in enumerate(ids) if name in world.tables[counts].row_of]
    assert 0 < len(held) < len(ids) and sorted(again.refused) == held
    spent = Remark("budget_spent_on_scores", {"host": counts, "n": 1, "days": 28})
    assert all(remark == spent for remark in again.refused.values())
    constant, _ = CompiledGuest(world.model).encode(world.tables[GUEST].columns, len(ids))
    for i, value in enumerate(again.units):
        assert value == (constant[i] if i in held else first.units[i])
    assert "EncryptedScores" in {e.kind for e in transcript}  # nobody was told less than in any other scoring


@pytest.mark.parametrize(("limits", "named"), [(Limits(9, total=1), "larger total"), (Limits(9, bits=0.5), "0.5 bits")])
def test_a_refused_row_names_the_limit_that_is_reached(limits, named):
    world = random_world(3, 1, n=6)
    with running(world, options={"host0": {"accountant": Accountant(Database(), limits)}}) as (guest, network, _):
        for name in ("c", "d"):
            refused = score(world, guest, network, PlainKeySide(), name=name)[0].refused
    held = [i for i, person in enumerate(world.tables[GUEST].ids) if person in world.tables["host0"].row_of]
    assert sorted(refused) == held and all(named in remark.sentence() for remark in refused.values())


def test_a_score_of_fewer_than_no_bits_is_refused_and_lowers_nobodys_account():
    world = random_world(3, 1, n=6)
    ids = world.tables[GUEST].ids
    _, entries = CompiledGuest(world.model).encode(world.tables[GUEST].columns, len(ids))
    asked = DecisionVectors("c", MODEL_ID, ids, entries.shape[1], 1, PlainKeySide().encrypt(entries), sum_bits=-1000)
    with counting(world, [9]) as (_, _, served):
        host = served.hosts["host0"]
        list(host.answer(GUEST, OfferKey("c", "none", b"")))
        with pytest.raises(SecurityError, match="-1,000 bits"):
            list(host.answer(GUEST, asked))
        assert host.accountant.largest_given_away() == (0, 0.0)


def test_people_refused_for_different_limits_are_each_told_theirs():
    answer = HeldRecords("c", b"", bytes([0, 1, 2, 3]), 4, 5, 6.5, 28)
    told = refusals("shop", answer, 4)
    assert sorted(told) == [1, 2, 3]
    codes = [told[row].code for row in (1, 2, 3)]
    assert codes == ["budget_spent_on_scores", "total_spent_on_scores", "bits_spent"]
    assert "4 times" in told[1].sentence() and "5 times" in told[2].sentence() and "6.5 bits" in told[3].sentence()


@pytest.mark.parametrize("spent", [bytes(3), bytes([0, 0, 0, 9])])
def test_limits_that_no_host_has_are_refused(spent):
    with pytest.raises(SecurityError):
        refusals("shop", HeldRecords("c", b"", spent, 1, 1, 0.0, 28), 4)


def test_people_of_whom_a_host_holds_no_record_are_not_counted():
    world = random_world(3, 1, n=6)
    with counting(world, [1]) as (guest, network, _):
        runs = [score(world, guest, network, PlainKeySide(), name=f"c{i}")[0] for i in range(3)]
    strangers = {i for i, held in enumerate(runs[0].has_record["host0"]) if not held}
    assert strangers and not strangers & set(runs[2].refused)


def test_played_records_and_measuring_conversations_are_not_counted():
    world = random_world(3, 1, n=6)
    with counting(world, [1]) as (guest, network, served):
        for i in range(2):
            served.hosts["host0"].play(f"played{i}", GUEST, world.tables["host0"])
            assert score(world, guest, network, PlainKeySide(), name=f"played{i}")[0].refused == {}
            served.hosts["host0"].leave_uncounted(f"measured{i}")
            assert score(world, guest, network, PlainKeySide(), name=f"measured{i}")[0].refused == {}
        assert score(world, guest, network, PlainKeySide(), name="c")[0].refused == {}
        assert score(world, guest, network, PlainKeySide(), name="d")[0].refused


def test_a_real_host_always_counts_and_answers_nothing_uncounted():
    world = random_world(3, 1, n=6)
    name, partial_model = next(iter(world.hosts.items()))
    store = memory_store({MODEL_ID: dump_host(partial_model)})
    host = HostParty(name, world.tables[name], (), store, key_floor=512)
    with pytest.raises(SecurityError, match="counts every question"):
        host.leave_uncounted("c")
    assert host.accountant is not None and host.accountant.limits.answers == 1


def test_a_runtime_takes_the_files_budget_then_the_usual_one(tmp_path, monkeypatch):
    monkeypatch.delenv("GLASSLEAF_BUDGET", raising=False)
    federation = write_demo(tmp_path, rows=100)
    own = federation.hosts[0].model_copy(update={"budget": 5})
    federation = federation.model_copy(update={"hosts": (own, *federation.hosts[1:])})

    def limits(given):
        runtime = FederationRuntime(given, tmp_path / "parties", key_floor=512, pools=False)
        runtime.close()
        return [runtime.operator.account(host).limits.answers for host in runtime.hosts]

    assert limits(federation)[:2] == [5, QUERIES_SYNTHETIC]
    assert limits(federation.model_copy(update={"synthetic": False}))[:2] == [5, 1]
    monkeypatch.setenv("GLASSLEAF_BUDGET", "8")
    assert limits(federation)[:2] == [5, 8]
    monkeypatch.setenv("GLASSLEAF_BUDGET", "-1")
    with pytest.raises(ParameterError, match="GLASSLEAF_BUDGET"):
        limits(federation)


def test_a_host_has_the_limits_that_its_operator_wrote_into_the_federation_file(tmp_path):
    federation = write_demo(tmp_path, rows=100)
    written = {"budget": 2, "budget_total": 3, "max_bits": 20.5}
    hosts = (federation.hosts[0].model_copy(update=written), *federation.hosts[1:])
    write_federation(federation.model_copy(update={"hosts": hosts}), tmp_path)
    runtime = FederationRuntime(load_federation(tmp_path), tmp_path / "parties", key_floor=512, pools=False)
    runtime.close()
    assert runtime.operator.account(runtime.hosts[0]).limits == Limits(2, 3, 20.5, synthetic=True)
    assert runtime.operator.account(runtime.hosts[1]).limits == Limits(QUERIES_SYNTHETIC, synthetic=True)


def test_what_a_host_folds_for_a_spent_person_is_no_number_of_the_guest(secret_key):
    """Not even entries that carry other Hosts' conditions alone go on to the next Host."""
    world = random_world(8, 2, n_trees=6, n=3)
    folded = {}
    with counting(world, (1, 9)) as (guest, network, served):
        second = served.hosts["host1"]
        answer = second.answer

        def watched(sender, message):
            if type(message).__name__ == "DecisionVectors":
                folded[message.conversation] = message
            return answer(sender, message)

        second.answer = watched
        key = PaillierKeySide(secret_key)
        score(world, guest, network, key, name="c")
        scored, _ = score(world, guest, network, key, name="d")
    side = key.public
    message = folded["d"]
    numbers = np.array(key.decrypt_numbers(side.load(message.vectors, 3 * message.entries))).reshape(3, -1)
    spent = sorted(scored.refused)
    assert spent and not numbers[spent].any()
    ciphertexts = side.load(message.vectors, 3 * message.entries)
    assert len(set(ciphertexts)) == len(ciphertexts) and 1 not in ciphertexts


def test_one_training_gives_one_model_so_that_fewer_of_its_trees_have_no_budget_of_their_own(tmp_path):
    runtime = FederationRuntime(write_demo(tmp_path, rows=200), tmp_path / "parties", key_floor=512, pools=False)
    session = runtime.open_session(runtime.hosts)
    try:
        parameters = SecureBoostParameters(trees=3, depth=2, bins=6, cipher="none")
        model = runtime.guest.train(runtime.labels(), parameters, PlainKeySide(), session).model
        shapes = tuple(tuple(tuple(fork) for fork in dump_skeleton(s)) for s in model.skeletons[:-1])
        session.broadcast(KeepModel(session.name, "m-shorter", "bank", model.hosts, shapes, 10, 1, 0, 0, ""))
        with pytest.raises(SecurityError, match="one training gives one model"):
            session.expect(ModelKept)
    finally:
        session.close()
        runtime.close()
