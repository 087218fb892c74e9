"""Keys in one file under a passphrase: what was sealed comes back, and nothing else opens."""

import json

import pytest

from backend.errors import ParameterError, SecurityError
from backend.store import key_backup
from backend.store.key_backup import PASSPHRASE_MIN, N, R, seal, unseal

PASSPHRASE = "five words drawn at random"  # noqa: S105
BODY = b"the numbers of a key"

pytestmark = pytest.mark.usefixtures("quick_scrypt")


@pytest.fixture(scope="module")
def sealed(quick_scrypt):
    return seal(BODY, PASSPHRASE, "bank in demo")


def test_what_was_sealed_comes_back_and_is_not_in_the_file(sealed):
    assert unseal(sealed, PASSPHRASE) == ("bank in demo", BODY)
    assert BODY not in sealed and BODY.hex().encode() not in sealed


def test_a_guess_costs_a_hundred_megabytes_and_what_was_sealed_so_comes_back(monkeypatch):
    monkeypatch.setattr(key_backup, "N", N)  # as it is outside tests
    assert 128 * N * R >= 100_000_000  # bytes, RFC 7914 §2
    assert unseal(seal(BODY, PASSPHRASE, "x"), PASSPHRASE) == ("x", BODY)


def test_the_same_keys_sealed_twice_are_two_files(sealed):
    assert seal(BODY, PASSPHRASE, "bank in demo") != sealed


def test_another_passphrase_opens_nothing(sealed):
    for other in (PASSPHRASE + " ", PASSPHRASE.upper(), ""):
        with pytest.raises(SecurityError):
            unseal(sealed, other)


def test_the_same_letters_from_another_keyboard_open_it():
    composed, decomposed = "caf\u00e9 au lait, bitte", "cafe\u0301 au lait, bitte"
    assert unseal(seal(BODY, composed, "x"), decomposed) == ("x", BODY)


def test_a_short_passphrase_is_refused():
    with pytest.raises(ParameterError):
        seal(BODY, "p" * (PASSPHRASE_MIN - 1), "x")


def test_a_file_that_would_be_refused_is_not_written(sealed, monkeypatch):
    monkeypatch.setattr(key_backup, "MAX_BYTES", len(sealed))
    assert unseal(seal(BODY, PASSPHRASE, "bank in demo"), PASSPHRASE) == ("bank in demo", BODY)
    with pytest.raises(ParameterError) as caught:
        seal(BODY + b"!", PASSPHRASE, "bank in demo")
    assert caught.value.code == "keys_exceed_backup"


def test_a_cut_file_is_refused_before_any_work(sealed):
    for length in (0, 1, len(sealed) // 2, len(sealed) - 1):
        with pytest.raises(ParameterError):
            unseal(sealed[:length], PASSPHRASE)


@pytest.mark.parametrize("part", ["about", "salt", "nonce", "body"])
def test_a_changed_part_opens_nothing(sealed, part):
    parts = json.loads(sealed)
    first = "1" if parts[part][0] != "1" else "2"
    with pytest.raises(SecurityError):
        unseal(json.dumps({**parts, part: first + parts[part][1:]}).encode(), PASSPHRASE)


@pytest.mark.parametrize(
    "changed", [{"format": "other"}, {"salt": ""}, {"nonce": "00"}, {"body": "xx"}, {"body": 3}], ids=str
)
def test_another_form_is_no_backup(sealed, changed):
    with pytest.raises(ParameterError):
        unseal(json.dumps({**json.loads(sealed), **changed}).encode(), PASSPHRASE)


def test_a_body_without_its_tail_opens_nothing(sealed):
    parts = json.loads(sealed)
    for kept in (0, 2, len(parts["body"]) - 2):
        with pytest.raises(SecurityError):
            unseal(json.dumps({**parts, "body": parts["body"][:kept]}).encode(), PASSPHRASE)
