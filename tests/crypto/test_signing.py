"""Signatures: a fixed vector, what they bind, and that the secret half stays where it is."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from backend.crypto.signing import SigningKey, is_signed, public_pem, read_public, statement
from backend.errors import ParameterError, SecurityError

# RFC 8032, section 7.1, test 1
SECRET = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"  # noqa: S105
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
KEY = SigningKey.from_numbers({"secret": SECRET, "public": PUBLIC})


def test_a_key_of_the_standard_is_read_and_its_statement_is_what_the_page_says():
    assert KEY.public == PUBLIC
    said = b'["glassleaf sign-off","m","R\\u00e9my \\"R\\"","a\\nb",3]'
    assert statement("sign-off", "m", 'Rémy "R"', "a\nb", 3) == said
    by_hand = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(SECRET)).sign(said).hex()
    assert KEY.sign("sign-off", "m", 'Rémy "R"', "a\nb", 3) == by_hand


def test_a_signature_binds_the_kind_every_field_and_where_one_ends():
    signature = KEY.sign("sign-off", "ab", "c", 1)
    assert is_signed(PUBLIC, signature, "sign-off", "ab", "c", 1)
    for other in (
        ("report", "ab", "c", 1),
        ("sign-off", "a", "bc", 1),
        ("sign-off", "ab", "c"),
        ("sign-off", "ab", "c", "1"),
    ):
        assert not is_signed(PUBLIC, signature, *other)
    assert not is_signed(SigningKey.generate().public, signature, "sign-off", "ab", "c", 1)


@pytest.mark.parametrize("public", ["", "0" * 64, "f" * 64, PUBLIC[:-1], PUBLIC.upper(), "zz" * 32])
@pytest.mark.parametrize("signature", ["", "0" * 128, "f" * 128, "é" * 128])
def test_what_is_no_key_or_no_signature_signs_nothing(public, signature):
    assert not is_signed(public, signature, "report", "x")


def test_a_public_key_is_read_from_both_forms_and_nothing_else():
    assert read_public(f" {PUBLIC.upper()}\n") == read_public(public_pem(PUBLIC)) == PUBLIC
    for text in ("", PUBLIC[:-2], "-----BEGIN PUBLIC KEY-----", public_pem(PUBLIC)[:-40], "\x00" * 64):
        with pytest.raises(ParameterError):
            read_public(text)


def test_a_stored_key_comes_back_and_a_damaged_one_is_refused():
    made = SigningKey.generate()
    assert SigningKey.from_numbers(made.to_numbers()).public == made.public
    for numbers in (
        {},
        {"secret": SECRET},
        {"secret": "00", "public": PUBLIC},
        {"secret": "11" * 32, "public": PUBLIC},
    ):
        with pytest.raises(SecurityError):
            SigningKey.from_numbers(numbers)


def test_neither_its_text_nor_its_attributes_show_the_secret_half():
    assert SECRET not in f"{KEY!r} {KEY} {vars(KEY)}"
