"""A Guest that lies, its bytes at a real Host with its usual limits: what scores, cohorts and other values may not tell."""

import time
from dataclasses import replace

import numpy as np
import pytest
from actors import MODEL_ID, TappedNetwork, running, score
from worlds import GUEST, random_world, with_covers, with_medians

from backend.crypto.fixedpoint import hidden_above
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.crypto.rlwe.fresh import read_fresh
from backend.crypto.rlwe.parameters import parameters_for
from backend.crypto.rlwe.ring import ring
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.data.demo import write_demo
from backend.data.federation import MEASURES
from backend.errors import GlassleafError, SecurityError
from backend.protocols.explanations.guest import ReasonsClient
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.messages import AskCohort, ContributionSums
from backend.protocols.explanations.paillier_layout import PaillierLayout
from backend.protocols.purposes.messages import StatePurpose
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import BlankValues, DecisionVectors, EncryptedScores, PermuteValues
from backend.protocols.simulation.simulator import FederationRuntime
from backend.protocols.training.messages import KeepModel
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.channel import Session
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.messages import OfferKey

REAL = {"host0": {"approvals": "none", "measures": MEASURES}}


def everybody(seed=5, n=90, **more):
    """A world whose one Host has a record of everybody."""
    world = with_medians(with_covers(random_world(seed, 1, n=n, **more), seed))
    table = world.tables["host0"]
    rows = np.arange(n) % len(table.ids)
    columns = {name: column[rows] for name, column in table.columns.items()}
    table = replace(table, ids=world.tables[GUEST].ids, columns=columns)
    return replace(world, tables={**world.tables, "host0": table})


def driven(host, *messages):
    """Send the bytes of messages to a Host; return what it answers."""
    answers = []
    for message in messages:
        answers += [decode(encode(reply)) for _, reply in host.answer(GUEST, decode(encode(message)))]
    return answers


def refused(host, *messages):
    """Return the error of the last message."""
    driven(host, *messages[:-1])
    with pytest.raises(GlassleafError) as error:
        driven(host, messages[-1])
    return error.value


def asked_cohort(world, people, value_bits=0):
    compiled = CompiledTerms(world.model)
    shape = compiled.shape(1)
    ids = world.tables[GUEST].ids[:people]
    return AskCohort("c", MODEL_ID, ids, compiled.shares_of("host0"), shape.features, value_bits or shape.value_bits)


def test_a_cohort_of_numbers_longer_than_a_contribution_is_refused(secret_key):
    world, key = everybody(), PaillierKeySide(secret_key)
    with running(world, simulated=False, options=REAL) as (_, _, served):
        host = served.hosts["host0"]
        error = refused(host, OfferKey("c", key.scheme, key.offer()), asked_cohort(world, 90, 148))
        assert (error.code, error.values["bits"]) == ("values_too_long", 148)


def test_a_cohort_whose_sums_could_say_how_its_people_answer_is_refused_by_numbers_of_the_guest_alone(secret_key):
    world, key = everybody(0, n_trees=2, depth=2), PaillierKeySide(secret_key)
    with running(world, simulated=False, options=REAL) as (_, _, served):
        host = served.hosts["host0"]
        capacity = world.hosts["host0"].capacity
        bits = CompiledTerms(world.model).shape(1).sums_bits(50)
        least = int(np.ceil(bits / (0.5 * capacity)))
        assert 50 < least < 90, "the world has to have a cohort between"
        error = refused(host, OfferKey("c", key.scheme, key.offer()), asked_cohort(world, 50))
        assert (error.code, error.values["people"], error.values["wanted"]) == ("cohort_could_name", 50, least)
        driven(host, asked_cohort(world, 90))


def test_above_and_below_what_a_cohorts_sums_announce_there_are_random_numbers(secret_key):
    """The honest client's own sums, over the wire; what it decrypts has filled the plaintext, and its last digits are drawn."""
    world, key, tap = everybody(), PaillierKeySide(secret_key), []
    compiled = CompiledTerms(world.model)
    shape = compiled.shape(1)
    with running(world, simulated=False, options=REAL, network=TappedNetwork(tap)) as (_, network, _):
        session = Session(network.end(GUEST), "c", ("host0",), timeout=120)
        client = ReasonsClient(session, GUEST, MODEL_ID, compiled, key)
        found = client.sums(world.tables[GUEST])
        session.close()
    (blob,) = [blob for _, _, kind, blob in tap if kind == ContributionSums.__name__]
    layout = PaillierLayout(shape, key.bits)
    numbers = key.decrypt(decode(blob).sums, len(layout.layout(1)))
    width = shape.sum_width(90)
    for number in layout.unpacked(numbers):
        assert number >> width > 0
    last = [number % (1 << shape.noise_bits) for number in layout.unpacked(numbers)]
    assert shape.noise_bits >= 32 and len(set(last)) == len(last)
    assert np.abs(found.sums).max() < 90 * 2 ** (shape.value_bits - shape.scale)
    assert found.error_bound >= 2.0**-8


@pytest.mark.parametrize("cipher", ["paillier", "rlwe"])
def test_weights_longer_than_a_score_announces_come_back_as_random_numbers(cipher, secret_key):
    world = everybody()
    compiled = CompiledGuest(world.model)
    m, announced = compiled.folding.n_entries, 8
    if cipher == "rlwe":
        key = RlweKeySide(RlweSecretKey.generate(parameters_for(1, m, compiled.largest)))
    else:
        key = PaillierKeySide(secret_key)
    hidden = key.room.bit_length() // 2
    weights = np.full((12, m), 1 << hidden, dtype=object)
    if cipher == "rlwe":
        weights = weights.astype(np.int64)
    vectors = DecisionVectors(
        "c", MODEL_ID, world.tables[GUEST].ids[:12], m, 1, key.encrypt(weights), sum_bits=announced
    )
    with running(world, simulated=False, options=REAL) as (_, _, served):
        answers = driven(served.hosts["host0"], OfferKey("c", key.scheme, key.offer()), vectors)
    (scores,) = [answer for answer in answers if isinstance(answer, EncryptedScores)]
    read = 0
    for number in key.decrypt(scores.scores, 12):
        kept = (number % key.room + (1 << (hidden - 1))) >> hidden
        read += 0 <= kept <= m  # by chance: one of some 50 under RLWE
    assert read < 6, "the number of entries kept is read above the width"


def test_a_layout_of_no_bits_is_not_kept(tmp_path):
    federation = write_demo(tmp_path, rows=200).model_copy(update={"synthetic": False})
    runtime = FederationRuntime(federation, tmp_path / "parties", key_floor=512, pools=False)
    session = runtime.open_session(runtime.hosts)

    class Lying:
        def __getattr__(self, name):
            return getattr(session, name)

        def broadcast(self, message):
            session.broadcast(replace(message, score_bits=0) if isinstance(message, KeepModel) else message)

    try:
        with pytest.raises(SecurityError) as error:
            parameters = SecureBoostParameters(trees=1, depth=1, cipher="none")
            runtime.guest.train(runtime.labels(), parameters, PlainKeySide(), Lying())
    finally:
        session.close()
        runtime.close()
    assert error.value.values["why"].code == "few_score_bits"


def test_one_feature_or_all_are_left_out_and_nothing_between(secret_key):
    world, key = everybody(), PaillierKeySide(secret_key)
    ids = world.tables[GUEST].ids
    with running(world, simulated=False, options=REAL) as (_, _, served):
        host = served.hosts["host0"]
        begin = OfferKey("c", key.scheme, key.offer()), StatePurpose("c", "validation")
        error = refused(host, *begin, BlankValues("c", ids, ("host0_x", "host0_y")))
        assert error.code == "blanked_some_features"
        driven(host, BlankValues("c", ids, ("host0_x",)), BlankValues("c", ids, ("host0_x", "host0_y", "host0_c")))


def test_whether_a_person_has_a_record_does_not_show_in_a_refusal(secret_key):
    world, key = random_world(5, 1, n=90), PaillierKeySide(secret_key)
    known = world.tables["host0"].ids[0]
    with running(world, simulated=False, options=REAL) as (_, _, served):
        host = served.hosts["host0"]
        driven(host, OfferKey("c", key.scheme, key.offer()), StatePurpose("c", "shuffles"))
        with_record = refused(host, PermuteValues("c", (known,), ("host0_x",)))
        without = refused(host, PermuteValues("c", ("nobody",), ("host0_x",)))
        assert with_record.code == "few_people_to_permute" and str(with_record) == str(without)


def test_nor_in_the_refusal_of_a_small_cohort(secret_key):
    """A neighbour of the same kind: it said how many of the people have a record."""
    world, key = with_medians(with_covers(random_world(5, 1, n=90), 5)), PaillierKeySide(secret_key)
    known = world.tables["host0"].ids[0]
    with running(world, simulated=False, options=REAL) as (_, _, served):
        host = served.hosts["host0"]
        driven(host, OfferKey("c", key.scheme, key.offer()))
        cohort = asked_cohort(world, 1)
        with_record = refused(host, replace(cohort, ids=(known,)))
        without = refused(host, replace(cohort, ids=("nobody",)))
        assert with_record.code == "small_cohort" and str(with_record) == str(without)


def test_a_factor_of_zeros_takes_as_long_as_another():
    key = RlweKeySide(RlweSecretKey.generate(parameters_for(1, 6, 100)))
    of = ring(key.parameters.name)
    blob = key.encrypt(np.ones((4, 1), dtype=np.int64))

    def seconds(slots):
        ciphertext = read_fresh(of, blob)
        began = time.process_time()
        of.times(ciphertext, slots)
        return time.process_time() - began

    ones = np.ones(of.parameters.degree, dtype=np.int64)
    times = {"zeros": [], "ones": []}
    for _ in range(40):  # in turns, so that a busy machine slows both
        times["zeros"].append(seconds(0 * ones))
        times["ones"].append(seconds(ones))
    assert 0.8 < min(times["zeros"]) / min(times["ones"]) < 1.25


@pytest.mark.parametrize("cipher", ["paillier", "rlwe"])
def test_an_answer_that_a_host_gave_about_another_person_is_noticed(cipher, secret_key):
    """K4: the Host keeps one person's reply and returns it for each of the others, one a request."""
    world = everybody()
    compiled = CompiledGuest(world.model)
    key = PaillierKeySide(secret_key)
    if cipher == "rlwe":
        key = RlweKeySide(RlweSecretKey.generate(parameters_for(1, compiled.folding.n_entries, compiled.largest)))
    noticed = 0
    stored = []
    with running(world, simulated=False, options=REAL) as (guest, network, served):
        host = served.hosts["host0"]
        answer = host.answer

        def replaying(sender, message):
            for receiver, reply in answer(sender, message):
                if isinstance(reply, EncryptedScores):
                    stored.append(reply.scores)
                    yield receiver, replace(reply, scores=stored[0])
                else:
                    yield receiver, reply

        host.answer = replaying
        for i in range(20):
            person = replace(world, tables={**world.tables, GUEST: world.tables[GUEST].take(np.array([i]))})
            try:
                score(person, guest, network, key, name=f"c{i}")
            except SecurityError as error:
                assert error.code == "impossible_scores"
                noticed += 1
    assert len(stored) == 20 and noticed >= 15, "the first is its own; of the others few are read as a score by chance"


def test_a_score_is_exact_whatever_multiple_the_host_puts_above_it(monkeypatch):
    """K4: the number of the request leaves a sum within its width, so that the largest multiple stays below RLWE's modulus too."""
    world = everybody()
    compiled = CompiledGuest(world.model)
    key = RlweKeySide(RlweSecretKey.generate(parameters_for(1, compiled.folding.n_entries, compiled.largest << 9)))
    assert hidden_above(compiled.sum_bits(canary=False), key.room), "the Host puts something above"
    exact = {}
    for multiple in ("least", "most"):
        with running(world, simulated=False, options=REAL) as (guest, network, served):
            least = multiple == "least"
            monkeypatch.setattr(
                served.hosts["host0"]._gate.noise, "below", lambda limit, least=least: 0 if least else limit - 1
            )
            monkeypatch.setattr(
                "backend.protocols.scoring.guest.request_offsets",
                lambda seed, request, n, modulus, least=least, below=True: np.full(
                    n, (0 if least else modulus - 1) - 3 * modulus // 4
                ),
            )
            exact[multiple] = score(world, guest, network, key)[0].units
    with running(world) as (guest, network, _):
        plain = score(world, guest, network, PlainKeySide())[0].units
    assert exact == {"least": plain, "most": plain}
