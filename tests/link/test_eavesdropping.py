"""What somebody on the line between two companies reads: no id, no feature, no kind of message; also where an HTTP proxy stands there."""

import socket
import threading
from contextlib import suppress

import pytest
from companies import IN_TIME, Proxy, until

from backend.link.dialler import is_local
from backend.link.kinds import all_kinds
from backend.protocols.scoring.messages import DecisionVectors
from backend.protocols.training.messages import FeatureBins
from backend.protocols.transport.codec import encode
from backend.protocols.transport.message import MESSAGES
from backend.protocols.transport.wire import new_conversation

IDS = tuple(f"A15250{n:02}" for n in range(50))
FEATURES = ("orders_last_year", "returned_share")


def exchange(bank, shop, telecom):
    """Ids to a Host, features' names to the Guest, vectors from one Host to the next."""
    name = new_conversation()
    bank.open(name)
    vectors = DecisionVectors(name, "model", IDS, 1, 1, b"v" * 500)
    bank.send("shop", vectors)
    assert shop.receive(timeout=IN_TIME).message == vectors
    shop.send("bank", FeatureBins(name, FEATURES, (3, 4), (False, False)))
    assert bank.receive(name, timeout=IN_TIME).message.names == FEATURES
    shop.send("telecom", vectors)
    assert telecom.receive(timeout=IN_TIME).message == vectors
    return name, encode(vectors)


def readable(passed, name, written):
    """Which words of the exchange stand in what passed the line."""
    # five letters stand in random bytes by chance
    kinds = [kind for kind in {*all_kinds(), *MESSAGES} if len(kind) > 5]
    words = [*IDS, *FEATURES, *kinds, name, "conversation", "agreement", "glassleaf"]
    found = [word for word in words if word.encode() in passed]
    return found, all(word in written for word in (b"DecisionVectors", b"A1525007"))


def test_the_bytes_of_all_links_hold_no_id_no_feature_and_no_kind(links):
    with Proxy() as between:
        bank = links.bank()
        between.target = links.port
        shop, telecom = (links.host(party, port=between.port) for party in ("shop", "telecom"))
        links.up(shop, telecom)
        name, written = exchange(bank, shop, telecom)
        passed = bytes(between.passed)
    assert len(passed) > 10_000, "the line was listened to"
    found, would_be_found = readable(passed, name, written)
    assert would_be_found and found == ["glassleaf"] * ("glassleaf" in found)


class ConnectProxy(Proxy):
    """An HTTP proxy as stands at a company's edge: it knows CONNECT, and sees whom one talks to."""

    def __init__(self, passes=True):
        super().__init__()
        self.passes = passes
        self.asked = []

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._tunnel, args=(near,), daemon=True).start()

    def _tunnel(self, near):
        with suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += near.recv(1)
            self.asked.append(head.split(b"\r\n")[0].decode())
            if not self.passes:
                near.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")
                near.close()
                return
            far = socket.create_connection(("localhost", self.target))
            with self._lock:
                self._pairs.append((near, far))
            near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            threading.Thread(target=self._pump, args=(far, near), daemon=True).start()
            self._pump(near, far)


def test_a_host_dials_out_through_an_http_proxy(links):
    with ConnectProxy() as edge:
        bank = links.bank()
        edge.target = links.port
        there = {"connect": {"bank": f"bank.invalid:{links.port}"}}
        shop = links._wire("shop", **there, proxy=f"http://127.0.0.1:{edge.port}")
        telecom = links._wire("telecom", **there, proxy=f"http://127.0.0.1:{edge.port}")
        shop.open()
        telecom.open()
        links.up(shop, telecom)
        name, written = exchange(bank, shop, telecom)
        assert edge.asked[0].startswith(f"CONNECT bank.invalid:{links.port} ")
        assert readable(bytes(edge.passed), name, written)[0] in ([], ["glassleaf"])


def test_the_environments_proxy_is_used(links, monkeypatch):
    with ConnectProxy() as edge:
        bank = links.bank()
        edge.target = links.port
        for variable in ("no_proxy", "no_grpc_proxy", "grpc_proxy", "http_proxy"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{edge.port}")
        shop = links._wire("shop", connect={"bank": f"bank.invalid:{links.port}"})
        links.up(shop)
        assert edge.asked and bank.is_up("shop")


def named_proxy(monkeypatch, set_in, address):
    """Name a proxy in the environment; or return it as a setting of the link."""
    for variable in ("no_proxy", "no_grpc_proxy", "grpc_proxy", "http_proxy", "https_proxy"):
        monkeypatch.delenv(variable, raising=False)
    if set_in == "host.toml":
        return {"proxy": address}
    monkeypatch.setenv("https_proxy", address)
    return {}


@pytest.mark.parametrize("set_in", ["environment", "host.toml"])
def test_a_proxy_that_lets_nothing_through_is_named_without_its_password(links, monkeypatch, set_in):
    with ConnectProxy(passes=False) as edge:
        links.bank()
        more = named_proxy(monkeypatch, set_in, f"http://clerk:secret@127.0.0.1:{edge.port}")
        shop = links._wire("shop", connect={"bank": f"bank.invalid:{links.port}"}, **more)
        shop.open()
        until(lambda: shop.links()["bank"].remark.values["why"].code != "link_not_yet")
        why = shop.links()["bank"].remark.values["why"]
        assert (why.code, why.values) == ("proxy_refused", {"proxy": f"http://127.0.0.1:{edge.port}"})


@pytest.mark.parametrize("set_in", ["environment", "host.toml"])
def test_a_link_on_one_machine_goes_past_a_proxy(links, monkeypatch, set_in):
    with ConnectProxy() as edge:
        bank = links.bank()
        edge.target = links.port
        more = named_proxy(monkeypatch, set_in, f"http://127.0.0.1:{edge.port}")
        shop = links._wire("shop", connect={"bank": f"localhost:{links.port}"}, **more)
        links.up(shop)
        assert bank.is_up("shop") and not edge.asked
        assert bank.links()["shop"].up


@pytest.mark.parametrize(
    ("target", "local"),
    [
        ("localhost:7000", True),
        ("127.0.0.1:7000", True),
        ("[::1]:7000", True),
        ("10.0.0.8:7000", False),
        ("bank.example:7000", False),
        ("localhost.bank.example:7000", False),
    ],
)
def test_what_is_on_this_machine_is_told_by_its_address(target, local):
    assert is_local(target) is local
