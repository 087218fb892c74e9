"""What operators ask a process on its own machine."""

import http.client
import socket

import pytest

from backend.errors import ParameterError
from backend.ops.health import OpsServer, serving

EVERY = "0.0.0.0"  # noqa: S104 (what is tested)


def ask(port, path, host="localhost", method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, headers={"Host": host})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.fixture
def problems():
    return []


@pytest.fixture
def port(problems):
    with serving(0, lambda: problems, lambda: b"glassleaf_people_total 1.0\n") as server:
        yield server.port


def test_it_lives_is_ready_and_shows_its_figures(port):
    assert ask(port, "/live") == (200, "live\n")
    assert ask(port, "/ready") == (200, "ready\n")
    assert ask(port, "/metrics") == (200, "glassleaf_people_total 1.0\n")


def test_what_is_not_ready_says_why_and_lives(port, problems):
    problems.append("The disk is full.")
    assert ask(port, "/ready") == (503, "The disk is full.\n") and ask(port, "/live")[0] == 200


def test_a_check_that_fails_is_not_ready_and_says_no_more_than_what_kind_of_error():
    def broken():
        raise ValueError("A152504")

    with serving(0, broken, bytes) as server:
        assert ask(server.port, "/ready") == (503, "ValueError\n")


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", ""])
def test_a_page_that_gives_its_own_name_this_address_gets_nothing(port, host):
    assert ask(port, "/metrics", host)[0] == 403


@pytest.mark.parametrize(
    ("host", "status"), [("10.0.0.5:9464", 200), ("[::1]:1", 200), ("evil.example", 403), ("", 403)]
)
def test_an_address_that_is_opened_is_asked_by_number_and_still_not_by_a_pages_name(host, status):
    with serving(0, tuple, bytes, EVERY) as server:
        assert ask(server.port, "/live", host)[0] == status


def test_there_is_nothing_else_and_nothing_can_be_sent(port):
    assert ask(port, "/")[0] == ask(port, "/../etc/passwd")[0] == 404
    assert ask(port, "/live", method="POST")[0] == 501


def test_other_machines_do_not_reach_it_and_a_taken_port_is_said(port):
    with socket.socket() as probe, pytest.raises(OSError):
        probe.bind(("127.0.0.1", port))
        probe.listen()
    with pytest.raises(ParameterError, match="cannot be used"):
        OpsServer(port, tuple, bytes)
