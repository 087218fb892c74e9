"""The Guest learns the names and nothing else, the Host not even those; what either sees is tried for more."""

import hashlib
from collections import Counter
from math import comb, prod
from types import SimpleNamespace

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rankings import top_names
from scipy.stats import kstest

from backend.crypto.garbling import LABEL, Evaluator, read_labels
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.rlwe.parameters import Load, residues_for
from backend.errors import ParameterError, SecurityError
from backend.protocols.alignment.oblivious_transfer import (
    COLUMNS,
    HASH_BITS,
    HASHES,
    REPLIES,
    TransferReceiver,
    TransferSender,
)
from backend.protocols.ranking import guest as guest_side
from backend.protocols.ranking import host as host_side
from backend.protocols.ranking import packing as packing_side
from backend.protocols.ranking.circuit import gates_needed, lengths, outputs
from backend.protocols.ranking.guest import RankingGuest
from backend.protocols.ranking.host import MarkedNumbers, RankingHost
from backend.protocols.ranking.packing import PackedBlinds, PackedOpener, RankingPacking
from backend.protocols.ranking.shape import MAX_BITS, MAX_NUMBERS, SLACK_BITS, RankingShape, cut

BITS = 20
BOUND = (1 << BITS) - 1
SMALL = [3, -8, 0, 1, 12, -2, 7, 5]
LARGE = [BOUND, -BOUND, BOUND - 1, 1 - BOUND, 2**19, -(2**19), 2**18, -(2**18)]


@pytest.fixture
def sides(key_side, public_side):
    """Both sides of a ranking of some numbers."""

    def made(values, k=3):
        shape = RankingShape(len(values), k, BITS)
        packing = RankingPacking(shape, key_side.bits)
        blinds = PackedBlinds(public_side, key_side.encrypt_numbers(values), packing)
        return RankingGuest(PackedOpener(key_side, packing).opened, shape), RankingHost(blinds.blinded, shape)

    return made


@pytest.fixture
def rank(sides):
    def run(values, k=3):
        guest, host = sides(values, k)
        return guest.names(host.garble(guest.choose(host.share(guest.open()))))

    return run


@pytest.fixture
def decrypted(sides, key_side, monkeypatch):
    """What the Guest decrypts in step 2, a plaintext a row; without the base transfers, which take the most time."""

    def seen(values, times):
        monkeypatch.setattr(host_side, "TransferSender", lambda _: SimpleNamespace(replies=bytes(REPLIES)))
        n, rows = int(key_side.public.n), []
        for _ in range(times):
            guest, host = sides(values)
            packing = RankingPacking(guest._shape, key_side.bits)
            blob = host.share(guest.open())[REPLIES:]
            rows.append([plain % n for plain in key_side.decrypt(blob, len(packing.slots))])
        return rows, packing

    return seen


@pytest.fixture
def blinded(decrypted):
    """The same, a number a value."""

    def seen(values, times):
        rows, packing = decrypted(values, times)
        return [packing.split(row) for row in rows]

    return seen


@st.composite
def rankings(draw):
    n = draw(st.integers(1, 12))
    bound = draw(st.sampled_from([1, 3, BOUND]))
    values = draw(st.lists(st.integers(-bound, bound), min_size=n, max_size=n))
    return values, draw(st.integers(1, 6)), draw(st.permutations(range(n)))


@pytest.mark.slow
@given(rankings())
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_names_are_those_of_plain_arithmetic(rank, ranking):
    values, k, order = ranking
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_side, "secret_order", lambda _: np.array(order))
        assert rank(values, k) == top_names(values, k, order)


def test_the_largest_and_smallest_numbers_that_are_allowed_keep_their_places(rank):
    assert rank([-BOUND, BOUND, 0, 1, -1, BOUND - 1], 3) == (1, 3, 5)
    assert rank([BOUND] * 4, 4) == (0, 1, 2, 3)
    assert rank([-BOUND] * 4, 2) == ()


def test_as_many_numbers_as_several_ciphertexts_hold_are_ranked(rank, key_side):
    values = [(-1) ** i * (i * 7919 % 1000) for i in range(40)]
    assert len(RankingPacking(RankingShape(40, 4, BITS), key_side.bits).slots) > 3
    assert rank(values, 4) == tuple(sorted(sorted(range(40), key=lambda i: values[i])[-4:]))


@pytest.mark.slow
def test_ties_are_broken_at_random(rank):
    runs, fewest = 40, 5
    found = Counter(rank([6, 9, 6], 2) for _ in range(runs))
    assert set(found) == {(0, 1), (1, 2)}
    assert min(found.values()) >= fewest
    assert 2 * sum(comb(runs, i) for i in range(fewest)) / 2**runs < 1e-6  # the chance that this test fails for nothing


def test_what_the_guest_decrypts_is_uniform_modulo_n_whatever_it_sent(decrypted, key_side):
    n = int(key_side.public.n)
    for values in (SMALL, LARGE, [n // 3] * 8, [n // 2 - 2, *[0] * 7]):  # the last two no honest Guest sends
        rows, packing = decrypted(values, 60)
        assert kstest([plain / n for row in rows for plain in row], "uniform").pvalue > 1e-6
        for column in np.array([packing.split(row) for row in rows], dtype=object).T:
            low = [x % (1 << packing.shape.width) / (1 << packing.shape.width) for x in column]
            assert kstest(low, "uniform").pvalue > 1e-6


@pytest.mark.parametrize(("n", "bits"), [(MAX_NUMBERS, 1), (MAX_NUMBERS, MAX_BITS), (24, 48), (1, MAX_BITS)])
def test_of_2_to_the_65_blinds_one_at_most_spoils_a_share(n, bits):
    """It has to lie closer to the modulus, or to the next digit, than what it hides is large."""
    shape = RankingShape(n, 1, bits)
    packing, largest = RankingPacking(shape, 2048), (1 << shape.width) - 1
    assert all(plain << (SLACK_BITS + 1) < 1 << (packing.key_bits - 1) for plain in packing.join([largest] * n))
    assert largest << (SLACK_BITS + 1) < 1 << shape.slot
    assert prod(p.plain_modulus for p in residues_for(Load(1, 100, min(n, 100), 1, 1 << shape.slot))) >> shape.slot


def test_whatever_the_blind_is_short_of_those_the_shares_add_up(sides, key_side, monkeypatch):
    for blind in (0, 1, (1 << 300) + 12345, int(key_side.public.n) // 2):
        monkeypatch.setattr(packing_side.secrets, "randbelow", lambda _, blind=blind: blind)
        guest, host = sides(SMALL)
        assert guest.names(host.garble(guest.choose(host.share(guest.open())))) == (4, 6, 7)


def test_without_blinds_the_guest_would_read_every_value(blinded, sides, monkeypatch):
    shape = sides(SMALL)[0]._shape
    monkeypatch.setattr(packing_side.secrets, "randbelow", lambda _: 0)
    (seen,) = blinded(SMALL, 1)
    assert [((x - (1 << (shape.width - 1))) >> shape.tie_bits) + 1 for x in seen] == SMALL
    assert kstest([x / (1 << shape.width) for x in seen], "uniform").pvalue < 0.05


def test_differences_of_what_the_guest_decrypts_do_not_order_the_values(blinded):
    """The best that two blinded numbers offer: is the larger one blinded larger? As often as not."""
    seen = blinded([BOUND, -BOUND], 400)
    width = RankingShape(2, 3, BITS).width
    larger = sum(a % (1 << width) > b % (1 << width) for a, b in seen)
    assert 140 <= larger <= 260  # 200, give or take 6 standard deviations


def test_the_guest_cannot_strip_its_own_obfuscators_from_the_reply(sides, key_side, public_side, monkeypatch):
    """A1: it knows the obfuscator of every ciphertext that the numbers were computed from."""
    known, make = [], key_side.obfuscators.take
    monkeypatch.setattr(key_side.obfuscators, "take", lambda count: known.extend(make(count)) or known[-count:])

    def left_over():
        """The reply's obfuscator over that of the Guest's own ciphertexts: 1 where nothing was refreshed."""
        known.clear()
        guest, host = sides([5, -7])
        shape, n, n2 = guest._shape, key_side.public.n, key_side.public.n2
        (reply,) = key_side.public.load(host.share(guest.open())[REPLIES:], 1)
        (plain,) = key_side.decrypt_numbers([reply])
        own = gmpy2.powmod(known[0] * gmpy2.powmod(known[1], mpz(1) << shape.slot, n2), 1 << shape.tie_bits, n2)
        return reply * (1 - n * plain) * gmpy2.invert(own, n2) % n2

    assert left_over() != 1
    monkeypatch.setattr(public_side.obfuscators, "take", lambda count: [mpz(1)] * count)
    assert left_over() == 1


def test_the_labels_that_the_guest_evaluates_tell_nothing_of_the_values(sides, monkeypatch):
    seen = []

    class Watched(Evaluator):
        def both(self, left, right):
            out = super().both(left, right)
            seen.append(out.reshape(-1, 2).copy())
            return out

    monkeypatch.setattr(guest_side, "Evaluator", Watched)
    for values in (SMALL, LARGE, [0] * 8, [BOUND] * 8):
        seen.clear()
        guest, host = sides(values)
        guest.names(host.garble(guest.choose(host.share(guest.open()))))
        labels = np.concatenate(seen)
        assert abs(np.unpackbits(labels.view(np.uint8)).mean() - 0.5) < 0.02
        assert abs((labels[:, 0] & np.uint64(1)).mean() - 0.5) < 0.1


def test_the_guest_gets_one_label_of_each_of_its_wires(sides, monkeypatch):
    garblers, made = [], host_side.Garbler
    monkeypatch.setattr(host_side, "Garbler", lambda: garblers.append(made()) or garblers[-1])
    guest, host = sides(SMALL)
    message = host.garble(guest.choose(host.share(guest.open())))
    delta, transferred = garblers[0]._delta.tobytes(), cut(message, lengths(guest._shape))[0]
    own = guest._transfer.receive_either(0, 0, guest._choices, transferred, LABEL)
    assert delta not in message
    for label in own[:50]:
        other = bytes(a ^ b for a, b in zip(label.tobytes(), delta, strict=True))
        assert other not in message and label.tobytes() not in message  # both lie there blinded


def test_messages_have_the_same_lengths_whatever_the_values_are(sides):
    sizes = set()
    for values in (SMALL, LARGE, [0] * 8):
        guest, host = sides(values)
        first = guest.open()
        second = host.share(first)
        third = guest.choose(second)
        sizes.add((len(first), len(second), len(third), len(host.garble(third))))
    assert len(sizes) == 1


def test_what_the_host_gets_looks_random_whatever_the_guest_holds(sides):
    before = None
    for values in (SMALL, SMALL, LARGE):
        guest, host = sides(values)
        choices = guest.choose(host.share(guest.open()))
        bits = np.unpackbits(np.frombuffer(choices, dtype=np.uint8))
        assert len(bits) == COLUMNS * (guest._shape.inputs[0] + HASH_BITS) + 8 * HASHES
        assert abs(bits.mean() - 0.5) < 0.02
        assert before is None or abs((bits ^ before).mean() - 0.5) < 0.02
        before = bits


def test_the_host_holds_no_number_and_no_factor_of_the_key(sides, secret_key):
    values = [104729, -99991, 86453]
    guest, host = sides(values)
    host.garble(guest.choose(host.share(guest.open())))
    held, stack = set(), [host]
    while stack:
        thing = stack.pop()
        if isinstance(thing, (int, type(mpz(1)))):
            held.add(int(thing))
        elif isinstance(thing, (list, tuple)):
            stack += thing
        elif isinstance(getattr(thing, "__self__", None), PackedBlinds):
            stack.append(thing.__self__)
        elif hasattr(thing, "__dict__"):
            assert not isinstance(thing, PaillierKeySide)
            stack += vars(thing).values()
    assert int(secret_key.public.n) in held
    assert not held & {*values, *map(abs, values), int(secret_key.p), int(secret_key.q)}


def test_a_step_out_of_turn_or_taken_twice_is_refused(sides):
    guest, host = sides(SMALL)
    for early in (guest.choose, guest.names, host.garble):
        with pytest.raises(SecurityError, match="out of turn"):
            early(b"")
    offer = guest.open()
    shares = host.share(offer)
    choices = guest.choose(shares)
    circuit = host.garble(choices)
    guest.names(circuit)
    for step, message in ((host.share, offer), (guest.choose, shares), (host.garble, choices), (guest.names, circuit)):
        with pytest.raises(SecurityError, match="twice"):
            step(message)


@pytest.mark.parametrize("change", [lambda blob: blob[:-1], lambda blob: blob + b"\x00", lambda _: b""])
def test_a_message_of_a_wrong_length_is_refused(sides, change):
    guest, host = sides(SMALL)
    with pytest.raises(SecurityError):
        sides(SMALL)[1].share(change(guest.open()))
    guest, host = sides(SMALL)
    shares = host.share(guest.open())
    with pytest.raises(SecurityError, match="expected"):
        guest.choose(change(shares))
    guest, host = sides(SMALL)
    choices = guest.choose(host.share(guest.open()))
    with pytest.raises(SecurityError, match="expected"):
        host.garble(change(choices))
    guest, host = sides(SMALL)
    circuit = host.garble(guest.choose(host.share(guest.open())))
    with pytest.raises(SecurityError, match="expected"):
        guest.names(change(circuit))


def test_ciphertexts_outside_the_group_are_refused(sides, key_side, secret_key):
    for bad in (mpz(0), key_side.public.n2, secret_key.p):
        guest, host = sides(SMALL)
        shares = host.share(guest.open())
        rest = shares[REPLIES + key_side.public.width :]
        with pytest.raises(SecurityError, match="ciphertext"):
            guest.choose(shares[:REPLIES] + int(bad).to_bytes(key_side.public.width, "big") + rest)


def test_elements_that_are_none_are_refused(sides):
    for offer in (bytes(32), b"\xff" * 32):
        with pytest.raises(SecurityError, match="ristretto255"):
            sides(SMALL)[1].share(offer)
    guest, host = sides(SMALL)
    shares = host.share(guest.open())
    with pytest.raises(SecurityError, match="ristretto255"):
        guest.choose(b"\xff" * 32 + shares[32:])


def test_a_damaged_circuit_is_refused(sides):
    guest, host = sides(SMALL)
    circuit = bytearray(host.garble(guest.choose(host.share(guest.open()))))
    start, count, *_ = lengths(guest._shape)
    circuit[start : start + count] = bytes(count)  # the Host's labels
    with pytest.raises(SecurityError, match="damaged"):
        guest.names(bytes(circuit))


def test_ciphertexts_or_a_key_that_do_not_fit_the_shape_are_refused(public_side, key_side):
    values_enc = key_side.encrypt_numbers([1, 2])
    with pytest.raises(ParameterError, match="do not fit"):
        PackedBlinds(public_side, values_enc, RankingPacking(RankingShape(3, 1, BITS), key_side.bits))
    with pytest.raises(ParameterError, match="do not fit"):
        PackedBlinds(public_side, values_enc, RankingPacking(RankingShape(2, 1, BITS), 2048))
    with pytest.raises(ParameterError, match="does not fit"):
        PackedOpener(key_side, RankingPacking(RankingShape(2, 1, BITS), 2048))


class BendingGuest(TransferReceiver):
    """Bends 2 columns in the wire that says which side is asked about, of each of 64 features: 128 bits of the Host's, 2 a feature.

    A feature's bit comes out of the circuit readable where these 2 were guessed, whatever was guessed of the others.
    """

    SHAPE = RankingShape(
        64, 64, 3, marked=True
    )  # as many names as features: what comes out of each says nothing of others
    WIRES = 2 * SHAPE.width * 64 + 2 * 64 + np.arange(64)

    def __init__(self, opened, asked):
        super().__init__()
        self._opened, self._asked, self.numbers = opened, asked, []
        self.honest = RankingGuest(self.open, self.SHAPE, asked)
        self.honest._transfer = self

    def open(self, blob):
        self.numbers.append(self._opened(blob))
        return self.numbers[-1]

    def choose(self, number, choices):
        self.choices = choices[: self.SHAPE.inputs[0]].astype(int)
        columns = np.frombuffer(super().choose(number, choices), dtype=np.uint8).reshape(COLUMNS, -1)
        bits = np.unpackbits(columns, axis=1)
        bits[np.arange(COLUMNS), np.repeat(self.WIRES, 2)] ^= 1
        return np.packbits(bits, axis=1).tobytes()

    def take(self, message):
        transferred, *self.rest = cut(message, lengths(self.SHAPE))
        self.masked = np.frombuffer(transferred, dtype=np.uint8).reshape(-1, 2, LABEL)
        streams = [hashlib.shake_128(zero + bytes(8)).digest(-(-len(self.choices) // 8)) for zero, _ in self._seeds]
        self.rows = np.unpackbits(np.array([list(s) for s in streams], dtype=np.uint8), axis=1).T[: len(self.choices)]

    def labels(self, secret, inputs):
        """Of each wire the label of an input, as far as `secret` is the Host's choices."""
        rows = self.rows ^ np.outer(self.choices ^ inputs, secret).astype(np.uint8)
        rows[np.repeat(self.WIRES, 2), np.arange(COLUMNS)] ^= secret
        hashed = [hashlib.sha256(i.to_bytes(8) + np.packbits(row).tobytes()).digest() for i, row in enumerate(rows)]
        pads = np.array([list(one[:LABEL]) for one in hashed], dtype=np.uint8)
        return (self.masked[np.arange(len(rows)), inputs] ^ pads).tobytes()

    def evaluated(self, labels):
        """What comes out: 0, 1, or None where it is neither."""
        theirs, tables, decoding = self.rest
        left, right = (read_labels(b, n) for b, n in zip((labels, theirs), self.SHAPE.inputs, strict=True))
        out, first = outputs(Evaluator(tables), left, right, self.SHAPE), 2 * gates_needed(self.SHAPE)
        numbered = [np.array([first + j, *label], dtype="<u8").tobytes() for j, label in enumerate(out)]
        known = [decoding[start : start + LABEL] for start in range(0, len(decoding), LABEL)]
        found = [hashlib.sha256(one).digest()[:LABEL] for one in numbered]
        return [{a: 0, b: 1}.get(f) for f, a, b in zip(found, known[::2], known[1::2], strict=True)]

    def secret(self):
        """The Host's choices, 2 bits a feature, by 4 evaluations."""
        found = np.zeros((64, 2), dtype=np.uint8)
        for guess in range(4):
            bits = np.array([guess >> i & 1 for i in range(2)], dtype=np.uint8)
            named = self.evaluated(self.labels(np.tile(bits, 64), self.choices))
            found[[one is not None for one in named]] = bits
        return found.ravel()

    def names_if_lower(self, by, secret):
        """The names of the same people's ranking, had every number been smaller."""
        numbers = [number - (by << self.SHAPE.tie_bits) for number in self.numbers[0]]
        shares = [self.SHAPE.bits(numbers), self.SHAPE.bits(self.numbers[1]), self._asked]
        inputs = np.concatenate([one.ravel() for one in shares]).astype(int)
        return {i for i, bit in enumerate(self.evaluated(self.labels(secret, inputs))) if bit}


@pytest.fixture
def bending(key_side, public_side):
    """A Guest that bends columns, the values that it is after, and the Host that answers."""
    shape, values = BendingGuest.SHAPE, [6 if i in (5, 40) else i % 5 for i in range(64)]
    packing = RankingPacking(shape, key_side.bits)
    blinded = PackedBlinds(public_side, key_side.encrypt_numbers(values), packing).blinded
    drops = PackedBlinds(public_side, key_side.encrypt_numbers([1] * 64), packing).blinded
    asked = np.zeros((4, 64), dtype=bool)
    asked[3] = True
    guest = BendingGuest(PackedOpener(key_side, packing).opened, asked)
    host = RankingHost(blinded, shape, MarkedNumbers(drops, asked[:2]))
    return guest, values, host, guest.honest.choose(host.share(guest.honest.open()))


def test_a_guest_that_bends_columns_is_refused(bending):
    *_, host, choices = bending
    with pytest.raises(SecurityError, match="hold different choices"):
        host.garble(choices)


@pytest.mark.slow
def test_unchecked_bent_columns_would_read_how_large_contributions_are_from_one_ranking(bending, monkeypatch):
    guest, values, host, choices = bending
    monkeypatch.setattr(TransferSender, "_check", lambda *_: None)  # patched: the attack without its defence
    guest.take(host.garble(choices))
    secret = guest.secret()
    for lower in (4, 5, 6):  # from when on nobody is named is how large the largest is
        assert guest.names_if_lower(lower, secret) == {i for i, value in enumerate(values) if value > lower}


def inverted(circuit, shape):
    """A circuit whose every bit means the opposite: what decodes it is exchanged."""
    *head, decoding = cut(circuit, lengths(shape))
    exchanged = np.frombuffer(decoding, dtype="<u8").reshape(-1, 2, 2)[:, ::-1]
    return b"".join([*head, exchanged.tobytes()])


def test_what_a_lying_host_makes_of_names(sides, monkeypatch):
    """A Host that inverts the circuit names too many and is noticed; one that ranks other numbers is not: nobody else knows them."""
    guest, host = sides(SMALL)
    circuit = inverted(host.garble(guest.choose(host.share(guest.open()))), guest._shape)
    with pytest.raises(SecurityError) as refusal:
        guest.names(circuit)
    assert refusal.value.code == "impossible_names"

    guest, host = sides(SMALL)
    circuit = inverted(host.garble(guest.choose(host.share(guest.open()))), guest._shape)
    # patched: the one check removed, so that the lie is seen to need it
    monkeypatch.setattr(RankingShape, "possible", lambda *arguments: True)
    assert guest.names(circuit) == (0, 1, 2, 3, 5)  # all but the three largest
    monkeypatch.undo()

    guest, _ = sides(SMALL)
    _, lying = sides(SMALL[::-1])
    assert guest.names(lying.garble(guest.choose(lying.share(guest.open())))) == (0, 1, 3)


def test_names_that_a_ranking_can_give():
    plain, grouped = RankingShape(6, 2, BITS), RankingShape(6, 2, BITS, True, 4, (0, 0, 1, 1, 2, 2))
    assert plain.possible((1, 4)) and plain.possible(()) and not plain.possible((1, 2, 4))
    assert grouped.possible((0, 1, 2, 3)) and not grouped.possible((0, 2, 4))
