"""Light obfuscators encrypt zero like any others, and none comes twice, whoever makes it."""

from light_obfuscators import light_obfuscators

from backend.crypto.paillier.obfuscators import OwnerMaker, PublicMaker


def test_each_encrypts_zero_and_none_comes_twice(secret_key, key_side):
    with light_obfuscators():
        owner, public = OwnerMaker(secret_key.p, secret_key.q), PublicMaker(secret_key.public.n)
        made = [*owner.make(300), *public.make(300), *owner.make_unlocked(300), *public.make_unlocked(300)]
    assert key_side.decrypt_numbers(made) == [0] * 1200 and len(set(made)) == 1200
    assert OwnerMaker(secret_key.p, secret_key.q).make(1) != made[:1]  # the true ones are back


def test_sums_of_what_is_encrypted_come_out(key_side, public_side):
    with light_obfuscators():
        n2 = public_side.key.n2
        one, other = key_side.encrypt_numbers([5, -7])
        assert key_side.decrypt_numbers([one * other % n2]) == [-2] and one != key_side.encrypt_numbers([5])[0]
