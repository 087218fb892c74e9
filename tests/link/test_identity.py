"""Keys of a party: what files there are, who can read them, what a certificate names, and that nobody vouches for another."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pytest
from cryptography import x509

from backend.errors import ParameterError, SecurityError
from backend.link.identity import (
    LEAF,
    check_chain,
    fingerprint,
    host_name,
    is_ending,
    load_identity,
    make_identity,
    party_toml,
    renew,
    spiffe_id,
    validity,
)


def now():
    return datetime.now(UTC)


def chain(identity):
    return x509.load_pem_x509_certificates(identity.chain)


def test_every_secret_file_is_its_owners_alone_and_none_is_replaced(tmp_path):
    made = make_identity(tmp_path / "keys", "shop.example", "host", tmp_path / "root")
    secret = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {file.name for file in secret} == {"leaf.pem", "root.pem", "root.key.pem", "signing.key", "sealing.key"}
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in secret)
    with pytest.raises(SecurityError):
        make_identity(tmp_path / "keys", "shop.example", "host", tmp_path / "elsewhere")
    assert load_identity(tmp_path / "keys").chain == made.chain


@contextmanager
def full_disk(monkeypatch, at):
    """The disk takes so many files less one, counted from 1, and then no more; yields how many were tried."""
    tried, sync = [], os.fsync

    def full(handle):
        tried.append(handle)
        if len(tried) >= at:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    with monkeypatch.context() as patch, suppress(OSError, SecurityError):
        patch.setattr(os, "fsync", full)
        yield tried


def test_keys_that_were_broken_off_at_any_write_are_gone_on_with_under_the_same_root(tmp_path, monkeypatch):
    with full_disk(monkeypatch, 99) as tried:
        make_identity(tmp_path / "whole", "shop.example", "host")
    for at in range(1, len(tried) + 1):
        folder = tmp_path / str(at)
        with full_disk(monkeypatch, at):
            make_identity(folder, "shop.example", "host")
        assert not list(folder.rglob("*.new"))
        before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        if folder / LEAF not in before:
            made = make_identity(folder, "shop.example", "host")
            check_chain(chain(made), made.bundle, made.spiffe, now())
        assert all(file.read_bytes() == content for file, content in before.items()), at


@pytest.mark.parametrize("number", range(4))  # which of two is first differs
def test_two_who_make_keys_at_once_have_one_root(tmp_path, monkeypatch, number):
    meet, sync = Barrier(2), os.fsync

    def at_once(handle):
        with suppress(BrokenBarrierError):
            meet.wait(0.1)
        sync(handle)

    monkeypatch.setattr(os, "fsync", at_once)
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: tried(tmp_path), range(2)))
    [bundle] = {one.bundle for one in made if one}
    check_chain(chain(renew(tmp_path)), bundle, load_identity(tmp_path).spiffe, now())


def tried(folder):
    try:
        return make_identity(folder, "shop.example", "host")
    except SecurityError:  # the other was through
        return None


def test_a_leaf_is_the_old_one_whole_where_the_disk_is_full(tmp_path, monkeypatch):
    made = make_identity(tmp_path, "shop.example", "host")
    files = sorted(tmp_path.rglob("*"))
    with full_disk(monkeypatch, 1):
        renew(tmp_path)
    assert load_identity(tmp_path).chain == made.chain and sorted(tmp_path.rglob("*")) == files


def test_a_key_that_others_can_read_is_refused(companies):
    (companies.keys("shop") / LEAF).chmod(0o640)
    with pytest.raises(SecurityError, match="chmod 600"):
        companies.identity("shop")


def test_a_leaf_that_a_companys_own_pki_replaces_while_it_is_read_ends_no_link(companies, monkeypatch):
    """Whoever keeps a link up tries again after what is said in words, and after nothing else."""
    leaf, stat = companies.keys("shop") / LEAF, Path.stat

    def gone(path, **options):
        if path == leaf:
            raise FileNotFoundError(leaf)
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", gone)
    assert companies.identity("shop").spiffe == "spiffe://shop.example/glassleaf/host"
    leaf.unlink()
    with pytest.raises(SecurityError, match="There is no file"):
        companies.identity("shop")


def test_no_secret_shows_in_a_repr_or_in_what_is_handed_out(companies):
    identity = companies.identity("shop")
    secrets = [identity.signing.to_numbers()["secret"], identity.sealing.private_bytes_raw().hex()]
    shown = repr(identity) + party_toml(identity, "shop", "Shop")
    assert "PRIVATE" not in shown and not any(secret in shown for secret in secrets)


def test_a_leaf_names_one_spiffe_id_for_thirty_days(companies):
    identity = companies.identity("shop")
    assert identity.spiffe == "spiffe://shop.example/glassleaf/host" == spiffe_id("shop.example", "host")
    assert timedelta(days=29) < identity.expires - now() <= timedelta(days=30, minutes=5)
    assert host_name(identity.spiffe) == "host.glassleaf.shop.example"
    check_chain(chain(identity), identity.bundle, identity.spiffe, now())


def test_a_root_vouches_for_its_own_party_alone(companies):
    shop, telecom = companies.identity("shop"), companies.identity("telecom")
    with pytest.raises(SecurityError, match="own root"):
        check_chain(chain(shop), telecom.bundle, shop.spiffe, now())
    with pytest.raises(SecurityError, match="does not name"):
        check_chain(chain(shop), shop.bundle, telecom.spiffe, now())


def test_a_leaf_does_not_vouch_for_another_certificate(companies):
    shop = companies.identity("shop")
    with pytest.raises(SecurityError, match="own root"):
        check_chain(chain(shop), shop.chain, shop.spiffe, now())


@pytest.mark.parametrize("days", [31, -1])
def test_a_leaf_outside_its_days_is_refused(companies, days):
    shop = companies.identity("shop")
    with pytest.raises(SecurityError) as refused:
        check_chain(chain(shop), shop.bundle, shop.spiffe, now() + timedelta(days=days))
    assert refused.value.code.startswith("certificate_not_valid")


def test_renewing_keeps_the_root_and_needs_its_key(companies):
    folder, before = companies.keys("shop"), companies.identity("shop")
    after = renew(folder)
    assert after.chain != before.chain and fingerprint(after.bundle) == fingerprint(before.bundle)
    assert after.signing.public == before.signing.public and after.sealing_public == before.sealing_public
    (folder / "root").rename(companies.folder / "offline")
    with pytest.raises(SecurityError):
        renew(folder)
    renew(folder, companies.folder / "offline")


def test_another_roots_key_renews_nothing(companies):
    with pytest.raises(SecurityError, match="not the key of the root"):
        renew(companies.keys("shop"), companies.keys("bank") / "root")


@pytest.mark.parametrize(
    ("left", "words", "ending"),
    [
        (timedelta(days=30), "valid until", False),
        (timedelta(days=9, hours=5), "expires in 9 days", True),
        (timedelta(hours=1, minutes=3), "expires in 1 hour", True),
        (-timedelta(days=3, hours=1), "expired 3 days ago", True),
    ],
)
def test_the_end_of_a_leaf_is_shown_ten_days_ahead(left, words, ending):
    moment = now()
    assert words in validity(moment + left, moment).sentence() and is_ending(moment + left, moment) is ending


@pytest.mark.parametrize("domain", ["", "Shop.example", "shop..example", "-shop", "shop.example/x", "a b"])
def test_a_domain_is_a_dns_name(domain):
    with pytest.raises(ParameterError):
        spiffe_id(domain, "host")
