"""Fresh encryptions under the secret key: SEAL decrypts them, their noise is SEAL's, and a seed gives one uniform polynomial."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tenseal.sealapi as seal
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from backend.crypto.rlwe import fresh
from backend.crypto.rlwe.fresh import SymmetricEncryption, expanded, read_fresh
from backend.crypto.rlwe.parameters import FRESH_ERROR, PARAMETERS, residue_sets
from backend.crypto.rlwe.randomness import SEED_BYTES, random_bytes
from backend.crypto.rlwe.ring import _memory_file, read, ring, written
from backend.crypto.rlwe.scheme import RlweSecretKey
from backend.errors import Cancelled
from backend.jobs import work

SMALL = PARAMETERS["n8192-q120-t557057"]
LONG = residue_sets(8192, 2, 59)[0]  # t·e is beyond 64 bits
ALL = [*PARAMETERS.values(), residue_sets(8192, 3, 43)[0], LONG]


@cache
def keys(parameters):
    of, key, secret = ring(parameters.name), RlweSecretKey.generate(parameters), seal.SecretKey()
    read(secret, of.context, key.secret)
    return of, SymmetricEncryption(of, key.secret), seal.Decryptor(of.context, secret)


def ciphertexts(of, blob):
    return [read_fresh(of, blob[i : i + of.seeded_width]) for i in range(0, len(blob), of.seeded_width)]


def opened(parameters, decryptor, ciphertext):
    plain, t = seal.Plaintext(), parameters.plain_modulus
    decryptor.decrypt(ciphertext, plain)
    found = [int(plain[i]) if i < plain.coeff_count() else 0 for i in range(parameters.degree)]
    return [v if v <= parameters.limit else v - t for v in found]


@pytest.mark.parametrize("parameters", ALL, ids=lambda p: p.name)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_seal_decrypts_what_was_encrypted(parameters, count):
    of, encryption, decryptor = keys(parameters)
    draw = np.random.default_rng(count)
    messages = [draw.integers(-parameters.limit, parameters.limit + 1, of.parameters.degree) for _ in range(count)]
    messages[0][:2] = parameters.limit, -parameters.limit
    messages[-1] = messages[-1][:100]
    blob = encryption.encrypt(messages)
    assert len(blob) == count * of.seeded_width
    for message, ciphertext in zip(messages, ciphertexts(of, blob), strict=True):
        assert opened(parameters, decryptor, ciphertext) == message.tolist() + [0] * (
            of.parameters.degree - len(message)
        )


def test_nothing_to_encrypt_is_nothing_to_send():
    assert keys(SMALL)[1].encrypt([]) == b""


def test_a_job_is_stopped_between_two_ciphertexts():
    looks = []

    def check():
        looks.append(True)
        if len(looks) == 3:
            raise Cancelled("stopped")

    with work.watched(check, lambda share: None), pytest.raises(Cancelled):
        keys(SMALL)[1].encrypt([np.ones(9, dtype=np.int64)] * 20)
    assert len(looks) == 3


@pytest.mark.parametrize("parameters", [SMALL, LONG], ids=lambda p: p.name)
def test_the_noise_is_that_of_seal(parameters):
    of, encryption, decryptor = keys(parameters)
    secret, plain = seal.SecretKey(), of.plaintext(np.array([7]))
    read(secret, of.context, RlweSecretKey.generate(parameters).secret)
    theirs = seal.Ciphertext()
    encryptor, other = seal.Encryptor(of.context, secret), seal.Decryptor(of.context, secret)
    read(theirs, of.context, written(encryptor.encrypt_symmetric(plain)))
    [ours] = ciphertexts(of, encryption.encrypt([np.array([7])]))
    assert abs(decryptor.invariant_noise_budget(ours) - other.invariant_noise_budget(theirs)) <= 1
    assert decryptor.invariant_noise_budget(ours) > 0


def test_the_errors_of_both_polynomials_and_of_every_prime_are_one_short_integer_each(monkeypatch):
    _, encryption, _ = keys(SMALL)
    zeros, t, noisy = np.zeros(5, dtype=np.int64), SMALL.plain_modulus, fresh._noisy
    seen = []
    monkeypatch.setattr(fresh, "_noisy", lambda *given: seen.append(noisy(*given)) or seen[-1])
    encryption.encrypt([zeros, zeros])
    errors = []
    for blob in seen:
        by_prime = []
        for residues, modulus in zip(np.frombuffer(blob, dtype="<u8").reshape(2, -1), SMALL.moduli, strict=False):
            by_prime.append([(int(r) if int(r) < modulus // 2 else int(r) - modulus) for r in residues])
        assert by_prime[0] == by_prime[1] and all(v % t == 0 for v in by_prime[0])
        errors.append(np.array(by_prime[0]) // t)
    for one in errors:
        assert np.abs(one).max() <= FRESH_ERROR and abs((one**2).mean() - 10.5) < 1.5 and abs(one.mean()) < 0.3
    assert (errors[0] != errors[1]).mean() > 0.7


def test_equal_messages_give_ciphertexts_with_nothing_in_common():
    of, encryption, _ = keys(SMALL)
    one = np.array([1, 2, 3])
    blob = encryption.encrypt([one, one, one]) + encryption.encrypt([one])
    parts = [blob[i : i + of.seeded_width] for i in range(0, len(blob), of.seeded_width)]
    assert len({part[:SEED_BYTES] for part in parts}) == 4
    residues = [np.frombuffer(part[SEED_BYTES:], dtype="<u8") for part in parts]
    assert all((residues[i] != residues[j]).all() for i in range(4) for j in range(i))


@pytest.mark.parametrize("parameters", [SMALL, PARAMETERS["n16384-q300-t33292289"]], ids=lambda p: p.name)
def test_a_seed_gives_one_polynomial_uniform_modulo_every_prime(parameters):
    seed = random_bytes(SEED_BYTES)
    assert expanded(seed, parameters) == expanded(seed, parameters) != expanded(bytes(SEED_BYTES), parameters)
    rows = np.frombuffer(expanded(seed, parameters), dtype="<u8").reshape(-1, parameters.degree)
    assert len(rows) == len(parameters.data_bits)
    for row, modulus in zip(rows, parameters.moduli, strict=False):
        share = row / modulus
        assert int(row.max()) < modulus
        assert abs(share.mean() - 0.5) < 6 / np.sqrt(12 * len(share))
        assert abs(share.var() - 1 / 12) < 6 / np.sqrt(180 * len(share))


def test_words_beyond_a_prime_are_replaced_by_those_that_follow(monkeypatch):
    modulus = SMALL.moduli[0]
    words = [np.full(SMALL.degree, 5), np.array([modulus, modulus - 1]), np.array([3]), np.full(SMALL.degree, 6)]
    words[0][[1, 9]] = (1 << 60) - 1
    stream = iter([w.astype("<u8").tobytes() for w in words])
    monkeypatch.setattr(fresh, "stream_of", lambda seed: lambda count: next(stream))
    found = np.frombuffer(expanded(b"", SMALL), dtype="<u8")
    assert found[1] == 3 and found[9] == modulus - 1 and set(found[: SMALL.degree]) == {5, 3, modulus - 1}
    assert set(found[SMALL.degree :]) == {6}


def test_the_stream_is_aes_256_in_counter_mode_from_zero():
    seed = bytes(range(SEED_BYTES))
    block = Cipher(algorithms.AES256(seed), modes.ECB()).encryptor()  # noqa: S305 (the oracle of a counter)
    words = b"".join(block.update(i.to_bytes(16, "big")) for i in range(SMALL.degree // 2))
    wanted = np.frombuffer(words, dtype="<u8") & np.uint64((1 << 60) - 1)
    assert expanded(seed, SMALL)[: len(words)] == wanted.tobytes()


def test_its_repr_names_the_set_alone():
    assert repr(keys(SMALL)[1]) == "SymmetricEncryption(n8192-q120-t557057)"


def test_the_file_in_memory_keeps_nothing_of_a_key():
    of = ring(SMALL.name)
    held = _memory_file()
    if held is None:
        pytest.skip("this system has no files in memory")
    for key_read in (lambda: RlweSecretKey.generate(SMALL), lambda: SymmetricEncryption(of, keys_saved(SMALL))):
        written(of.plaintext(np.ones(9, dtype=np.int64)))
        assert Path(held.path).stat().st_size
        key_read()
        assert not Path(held.path).stat().st_size


@cache
def keys_saved(parameters):
    return RlweSecretKey.generate(parameters).secret
