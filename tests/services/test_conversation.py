"""A conversation that is kept open: Hosts are told what was handed over, each as soon as it can be reached."""

from types import SimpleNamespace

from backend.errors import PartyUnreachable
from backend.jobs import Job
from backend.protocols.transport.messages import Acknowledge
from backend.services.scoring import Conversation


class Session:
    """Takes what is sent to a Host that is up."""

    name = "conversation"

    def __init__(self):
        self.sent, self.down = [], set()

    def send(self, host, message):
        if host in self.down:
            raise PartyUnreachable(f"{host} is down.")
        self.sent.append((host, message))

    def transcript(self):
        return ()

    close = transcript


def test_a_host_that_is_down_when_answers_are_acknowledged_is_told_later_and_stops_nobody():
    opened, key = Session(), object()
    runtime = SimpleNamespace(open_session=lambda hosts, stopped, counted: opened)
    conversation = Conversation()

    def begin():
        return conversation.begin(runtime, ("a", "b"), key, Job(lambda _: None, 0))[1]

    assert not begin()
    for host, request in (("a", "r1"), ("b", "r2"), ("a", "r3")):
        conversation.owed(SimpleNamespace(name="run")).append((host, request))
    conversation.end(keep=True)
    assert begin() and opened.sent == []  # nobody has the scores yet
    conversation.end(keep=True)
    conversation.handed_over("run")
    opened.down = {"a"}
    assert begin() and opened.sent == [("b", Acknowledge("conversation", ("r2",)))]
    opened.down = set()
    conversation.close()
    assert opened.sent[1:] == [("a", Acknowledge("conversation", ("r1", "r3")))]
