"""What one Host sends another passes the Guest sealed: it is read there neither in memory nor on disk, nor changed or sent twice."""

import secrets
import subprocess
import sys
import time
from pathlib import Path

import msgpack
import pytest
from companies import IN_TIME, until

from backend.errors import SecurityError
from backend.link.envelope import Opener, Sealer, check_relay
from backend.link.frames import ENVELOPE
from backend.link.outbox import Outgoing
from backend.protocols.transport.messages import EndConversation, OfferKey
from backend.protocols.transport.wire import new_conversation

ROOT = Path(__file__).resolve().parents[2]
NOW = 1_790_000_000.0  # seconds since 1970; no envelope here is sealed or opened by the machine's clock
NAME = "a" * 32


@pytest.fixture
def sealed(companies):
    """An envelope of shop's to telecom, who opens it, and the parties."""
    agreement = companies.agreement
    shop, telecom = agreement.party("shop"), agreement.party("telecom")
    sealer = Sealer(agreement, shop, companies.identity("shop").signing)
    opener = Opener(agreement, telecom, companies.identity("telecom").sealing, NOW)
    return sealer, opener, shop, telecom, agreement


def test_the_other_host_opens_it_and_knows_by_signature_who_sent_it(sealed):
    sealer, opener, shop, telecom, agreement = sealed
    envelope = sealer.seal(telecom, NAME, b"which leaves are left", NOW)
    check_relay(agreement.hash, envelope, shop, telecom, NAME)
    assert b"leaves" not in envelope
    assert opener.open(envelope, NAME, NOW) == (shop, b"which leaves are left")


def test_nobody_else_opens_it(sealed, companies):
    sealer, _, _, telecom, agreement = sealed
    envelope = sealer.seal(telecom, NAME, b"x", NOW)
    for party in ("bank", "shop"):
        with pytest.raises(SecurityError):
            Opener(agreement, agreement.party(party), companies.identity(party).sealing, NOW).open(envelope, NAME, NOW)
        with pytest.raises(SecurityError, match="cannot be opened"):
            Opener(agreement, telecom, companies.identity(party).sealing, NOW).open(envelope, NAME, NOW)


def test_it_opens_once_and_in_order(sealed):
    sealer, opener, _, telecom, _ = sealed
    first, second, third = (sealer.seal(telecom, NAME, b"x", NOW) for _ in range(3))
    other = sealer.seal(telecom, "b" * 32, b"x", NOW)
    with pytest.raises(SecurityError, match="expected"):
        opener.open(second, NAME, NOW)
    opener.open(first, NAME, NOW)
    opener.open(other, "b" * 32, NOW)
    opener.open(second, NAME, NOW)
    for again in (first, second):
        with pytest.raises(SecurityError, match="expected"):
            opener.open(again, NAME, NOW)
    opener.open(third, NAME, NOW)


def test_what_was_sent_before_the_host_began_or_long_ago_is_refused(sealed, companies):
    sealer, _, _, telecom, agreement = sealed
    envelope = sealer.seal(telecom, NAME, b"x", NOW)
    later = Opener(agreement, telecom, companies.identity("telecom").sealing, NOW + 600)
    with pytest.raises(SecurityError):
        later.open(envelope, NAME, NOW + 600)


def test_what_has_been_forgotten_does_not_open_again(sealed, monkeypatch):
    sealer, opener, _, telecom, _ = sealed
    monkeypatch.setattr("backend.link.envelope.MAX_MARKS", 2)
    kept = [(f"{n:032x}", sealer.seal(telecom, f"{n:032x}", b"x", NOW + n)) for n in range(4)]
    for name, envelope in kept:
        opener.open(envelope, name, NOW + 4)
    for name, envelope in kept[:2]:
        with pytest.raises(SecurityError):
            opener.open(envelope, name, NOW + 4)


def test_hosts_whose_clocks_are_each_as_far_from_the_guests_as_is_accepted_understand_each_other(sealed):
    sealer, opener, _, telecom, _ = sealed
    for number, (sent, now) in enumerate([(119, -119), (-119, 119)]):
        name = f"{number:032x}"
        opener.open(sealer.seal(telecom, name, b"x", NOW + sent), name, NOW + now)


def test_no_host_has_anothers_envelopes_refused_by_what_it_makes_the_receiver_remember(sealed, companies, monkeypatch):
    _, _, shop, telecom, agreement = sealed
    monkeypatch.setattr("backend.link.envelope.MAX_MARKS", 2)
    key = companies.identity("bank").signing
    third = shop.model_copy(
        update={"name": "third", "spiffe": "spiffe://third.example/glassleaf/host", "signing": key.public}
    )
    agreement = agreement.model_copy(update={"parties": (*agreement.parties, third)})
    of_third, of_shop = Sealer(agreement, third, key), Sealer(agreement, shop, companies.identity("shop").signing)
    opener = Opener(agreement, telecom, companies.identity("telecom").sealing, NOW)
    for n, name in enumerate(f"{n:032x}" for n in range(9)):
        opener.open(of_third.seal(telecom, name, b"x", NOW + 100 + n), name, NOW)
    assert opener.open(of_shop.seal(telecom, NAME, b"x", NOW), NAME, NOW)[0] == shop


@pytest.mark.parametrize("part", [0, 1, 2])
def test_one_changed_byte_is_refused_by_relay_and_receiver(sealed, part):
    sealer, opener, shop, telecom, agreement = sealed
    parts = list(msgpack.unpackb(sealer.seal(telecom, NAME, b"x" * 100, NOW)))
    value = parts[part]
    signature = part == 2
    parts[part] = f"{value[:-1]}{int(value[-1] == '0')}" if signature else bytes([*value[:-1], value[-1] ^ 1])
    forged = msgpack.packb(parts)
    with pytest.raises(SecurityError):
        check_relay(agreement.hash, forged, shop, telecom, NAME)
    with pytest.raises(SecurityError):
        opener.open(forged, NAME, NOW)


def test_a_guest_with_a_hosts_signature_missing_forges_nothing(sealed, companies):
    """The Guest seals something of its own under shop's name: it has telecom's public key, but not shop's signature."""
    _, opener, shop, telecom, agreement = sealed
    forger = Sealer(agreement, shop, companies.identity("bank").signing)
    forged = forger.seal(telecom, NAME, b"x", NOW)
    with pytest.raises(SecurityError, match="not signed"):
        opener.open(forged, NAME, NOW)
    own = Sealer(agreement, agreement.guest, companies.identity("bank").signing).seal(telecom, NAME, b"x", NOW)
    with pytest.raises(SecurityError, match="from another Host"):
        opener.open(own, NAME, NOW)


def test_an_envelope_of_another_conversation_or_agreement_is_refused(sealed, companies):
    sealer, opener, shop, telecom, agreement = sealed
    envelope = sealer.seal(telecom, NAME, b"x", NOW)
    with pytest.raises(SecurityError, match="another conversation"):
        opener.open(envelope, "b" * 32, NOW)
    with pytest.raises(SecurityError):
        check_relay(agreement.hash, envelope, shop, telecom, "b" * 32)
    with pytest.raises(SecurityError):
        check_relay(agreement.hash, envelope, telecom, shop, NAME)
    other = agreement.model_copy(update={"title": "Another"})
    with pytest.raises(SecurityError):
        Opener(other, telecom, companies.identity("telecom").sealing, NOW).open(envelope, NAME, NOW)


def test_hosts_talk_to_each_other_through_the_guest(links):
    links.bank()
    shop, telecom = links.host("shop"), links.host("telecom")
    links.up(shop, telecom)
    name = new_conversation()
    for n in range(6):
        shop.send("telecom", OfferKey(name, "rlwe", bytes([n]) * 400_000))
    came = [telecom.receive(timeout=IN_TIME) for _ in range(6)]
    assert [(one.sender, one.message.key[0]) for one in came] == [("shop", n) for n in range(6)]
    telecom.send("shop", EndConversation(name))
    assert shop.receive(timeout=IN_TIME).sender == "telecom"


def test_the_guest_refuses_to_pass_on_what_is_not_sealed(links):
    bank = links.bank()
    shop, telecom = links.host("shop"), links.host("telecom")
    links.up(shop, telecom)
    name = new_conversation()
    bank.open(name)
    to = links.companies.agreement.party("telecom").spiffe
    for kind in ("OfferKey", ENVELOPE):
        open_letter = Outgoing(name, kind, to, b"in the clear", "online", time.time() + 60)
        shop._node.peers["bank"].outbox.put(open_letter)
    shop.send("bank", EndConversation(name))  # comes after both
    kinds = [bank.receive(name, timeout=IN_TIME) for _ in range(2)]
    assert kinds[-1].message == EndConversation(name) or kinds[0].message == EndConversation(name)
    assert telecom.receive(timeout=0.2) is None


def test_a_host_is_told_when_the_other_one_cannot_be_reached_and_tells_the_guest(links):
    bank, shop = links.pair()
    name = new_conversation()
    bank.open(name)
    shop.send("telecom", EndConversation(name))
    told = bank.receive(name, timeout=IN_TIME)
    assert told.sender == "shop" and "telecom: down since" in told.message.why.sentence()


def test_an_envelope_from_a_host_itself_is_refused(links):
    """Only the Guest passes envelopes on; to the Guest they mean nothing."""
    bank, shop = links.pair()
    name = new_conversation()
    bank.open(name)
    node = shop._node
    envelope = node._sealer.seal(links.companies.agreement.guest, name, b"x", time.time())
    node.peers["bank"].outbox.put(
        Outgoing(name, ENVELOPE, bank._node.party.spiffe, envelope, "online", time.time() + 60)
    )
    told = bank.receive(name, timeout=IN_TIME)
    assert told.message.why.values["why"].code == "envelope_not_relayed"


@pytest.mark.skipif(sys.platform != "linux", reason="a process's memory is read from /proc")
def test_neither_the_guests_memory_nor_its_disk_holds_what_it_passes_on(links):
    """Read from outside: every writable page of the Guest's process, and every file in its folder."""
    companies = links.companies
    secret, known = secrets.token_bytes(32), secrets.token_bytes(32)
    with subprocess.Popen(
        [sys.executable, "tests/link/relaying.py", str(companies.path), str(companies.keys("bank"))],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin", "TMPDIR": str(companies.folder / "bank")},
        stdout=subprocess.PIPE,
        text=True,
    ) as guest:
        try:
            links.port = int(guest.stdout.readline())
            shop, telecom = links.host("shop"), links.host("telecom")
            until(lambda: shop.peer("bank").is_attached and telecom.peer("bank").is_attached)
            name = new_conversation()
            shop.send("bank", OfferKey(name, "rlwe", known * 2000))
            assert guest.stdout.readline().split() == ["shop", "64000"]
            for _ in range(3):
                shop.send("telecom", OfferKey(name, "rlwe", secret * 2000))
                assert telecom.receive(timeout=IN_TIME).message.key == secret * 2000
            memory = memory_of(guest.pid)
            assert memory.count(known) > 1000, "what it was sent itself is found, so the search can find"
            assert secret not in memory
        finally:
            guest.kill()
    files = [file for file in (companies.folder / "bank").rglob("*") if file.is_file()]
    assert files and not any(secret in file.read_bytes() for file in files)


def memory_of(pid: int) -> bytes:
    pages = []
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", 0) as mem:
        for line in maps:
            where, rights = line.split()[:2]
            if rights.startswith("rw"):
                start, end = (int(part, 16) for part in where.split("-"))
                try:
                    mem.seek(start)
                    pages.append(mem.read(end - start))
                except (OSError, ValueError, OverflowError):
                    continue
    return b"".join(pages)
