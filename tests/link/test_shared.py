"""Several processes of a bank on one home: one has the links, the others speak through it, and when it ends another one has them."""

import pytest
from companies import IN_TIME, PATIENT, changed, free_port, until

from backend.errors import PartyUnreachable, SecurityError
from backend.link.shared import SOCKET, LinksElsewhere, SharedLinks
from backend.protocols.transport.messages import EndConversation, OfferKey, Refusal
from backend.protocols.transport.wire import new_conversation
from backend.remark import Remark
from backend.services.linked import ASK, VARIABLE, GuestWire

LONG = bytes(range(256)) * 4096 * 3  # 3 MiB


@pytest.fixture
def bank(companies, links, monkeypatch):
    """Makes a process's end of the bank's links, as `serve`, the pages and each command have one."""
    monkeypatch.setattr("backend.link.shared.LEAVE", 0.0)
    links.port = free_port()
    made = []

    def begun():
        settings = changed(PATIENT, bind=f"localhost:{links.port}")
        made.append(GuestWire("bank", companies.path, companies.keys("bank"), settings))
        return made[-1]

    yield begun
    for one in reversed(made):
        one.shut_down()


def up(wire):
    def reached():
        try:
            return wire.links()["shop"].up
        except PartyUnreachable:  # while the links go from one process to another
            return False

    until(reached)


def asked(wire, host, key=LONG):
    """A conversation that a process of the bank has begun with a Host, which has its first message."""
    name = new_conversation()
    wire.open(name)
    wire.send("shop", OfferKey(name, "rlwe", key))
    assert host.receive(timeout=IN_TIME).message == OfferKey(name, "rlwe", key)
    return name


def test_two_processes_of_a_bank_ask_a_host_at_once_over_one_link(bank, links, companies):
    serve = bank()
    pages = bank()
    shop = links.host("shop")
    up(pages)
    assert (companies.keys("bank") / SOCKET).stat().st_mode & 0o777 == 0o600
    names = [asked(wire, shop) for wire in (serve, pages)]
    for name in names:
        shop.send("bank", Refusal(name, Remark("host_stops")))
    for wire, name in zip((serve, pages), names, strict=True):
        came = wire.receive(name, timeout=IN_TIME)
        assert (came.sender, came.message) == ("shop", Refusal(name, Remark("host_stops")))
    assert pages.receive(names[1], timeout=0.01) is None
    assert pages.links() == serve.links() and pages.quiet("shop").owing == 0.0
    with pytest.raises(SecurityError) as refused:
        pages.send("nobody", OfferKey(names[1], "rlwe", b"1"))
    assert refused.value.code == "not_a_party"


def test_a_process_that_is_killed_leaves_no_conversation_open_at_a_host(bank, links):
    serve = bank()
    pages = bank()
    shop = links.host("shop")
    up(pages)
    killed = asked(pages, shop)
    goes_on = asked(serve, shop)
    pages.shut_down()
    assert shop.receive(timeout=IN_TIME).message == EndConversation(killed, broken_off=True)
    shop.send("bank", Refusal(goes_on, Remark("host_stops")))
    assert serve.receive(goes_on, timeout=IN_TIME).message.conversation == goes_on


def test_when_the_process_with_the_links_ends_another_one_has_them(bank, links):
    serve = bank()
    pages = bank()
    shop = links.host("shop")
    up(pages)
    name = asked(pages, shop)
    before = shop.peer("bank").instance
    serve.shut_down()
    with pytest.raises(PartyUnreachable) as lost:
        while True:
            pages.receive(name, timeout=0.01)
    assert lost.value.code == "links_lost"
    assert shop.receive(timeout=IN_TIME).message == EndConversation(name, broken_off=True)
    pages.close(name)
    until(lambda: shop.peer("bank").instance != before)  # without being asked
    up(pages)
    asked(bank(), shop)


def test_who_is_to_ask_never_has_the_links_and_says_that_nobody_has_them(bank, links, monkeypatch):
    monkeypatch.setenv(VARIABLE, ASK)
    pages = bank()
    with pytest.raises(PartyUnreachable) as nobody:
        pages.links()
    assert nobody.value.code == "links_not_answered"
    monkeypatch.delenv(VARIABLE)
    bank()
    shop = links.host("shop")
    up(pages)
    asked(pages, shop)


def test_a_process_of_another_version_is_not_answered(bank, companies):
    bank()
    with pytest.raises(PartyUnreachable) as refused:
        LinksElsewhere("bank", companies.keys("bank"), lambda: None, version="0.0.0")
    assert refused.value.code == "links_not_answered"


def test_a_folder_with_a_long_path_has_its_links_shared_too(companies, links, tmp_path):
    wire = links.bank()
    folder = tmp_path / ("long" * 20) / ("path" * 20)
    folder.mkdir(parents=True)
    shared = SharedLinks(wire, folder)
    other = LinksElsewhere("bank", folder, lambda: None)
    assert other.links()["shop"].remark.code == "link_down"
    other.shut_down()
    shared.close()
