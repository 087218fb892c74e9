"""A bank and two Hosts of their own, in one process, on a wire that fails at one message: lost, twice, swapped, or a party killed.

Hosts keep what they keep in databases that outlive them, and start again as soon as they are killed, as a service manager has them.
"""

import threading
import time
from contextlib import contextmanager, suppress
from datetime import date

from sqlalchemy import delete, func, select

from backend.crypto.signing import SigningKey
from backend.data.table import read_table
from backend.errors import PartyUnreachable
from backend.link.inbox import AGAIN
from backend.link.node import STARTED_AGAIN
from backend.protocols.guest_runtime import GuestRuntime, HostsOperator
from backend.protocols.host import HostParty
from backend.protocols.terms.approvals import Approvals
from backend.protocols.terms.floors import Floors
from backend.protocols.transport.messages import EndConversation, Refusal
from backend.protocols.transport.network import LocalWire, Network
from backend.store.accountant import Accountant, Limits
from backend.store.database import Database
from backend.store.journal import Journal
from backend.store.party_store import PartyStore
from backend.store.schema import AnswerRow, Approval, ApprovalUseRow, QuestionRow

GUEST = "bank"
FAULTS = ("lost", "twice", "swapped", "host", "guest")
GRANTED = date(2100, 1, 1), 1_000_000


class Killed(BaseException):
    """The Guest's process ends here."""


class Process(LocalWire):
    """The wire of one start of a party's process: once it is killed it sends, takes and closes nothing."""

    dead = False

    def send(self, receiver, message):
        if self.dead:
            raise Killed
        return super().send(receiver, message)

    def receive(self, conversation="", timeout=None):
        if self.dead and self.party == GUEST:
            raise Killed
        return None if self.dead else super().receive(conversation, timeout)

    def close(self, conversation=""):
        if not self.dead:
            super().close(conversation)

    def is_up(self, party):
        if self.party == GUEST and self._network.is_cut(party):
            return False
        return not (self.dead and party == self.party) and super().is_up(party)


class FaultyNetwork(Network):
    """A network on which message `at` (from 1) suffers `fault`."""

    def __init__(self):
        super().__init__()
        self.fail("", 0)
        self.federation, self._held = None, None
        self._cut, self._gone = {}, {}
        self._counting = threading.Lock()
        self.starting = set()  # Hosts that were killed: up all the same, as a link that was cut and may come back

    def fail(self, fault, at):
        self.count, self.at, self.fault, self.struck, self.sent = 0, at, fault, "", []

    def conversations(self):
        """Those that the Guest has open."""
        return [conversation for party, conversation in list(self._boxes) if party == GUEST and conversation]

    def is_cut(self, host):
        """Whether the line to a Host is cut: until the conversation that lost a message has seen it, and for a few looks of others."""
        if any(host in self._gone.get(conversation, ()) for conversation in self.conversations()):
            return True
        left = self._cut.get(host, 0)
        self._cut[host] = max(0, left - 1)
        return left > 0

    def is_up(self, party):
        return party in self.starting or super().is_up(party)

    def send(self, sender, receiver, message):
        while receiver in self.starting:  # as a link's outbox keeps it
            time.sleep(0.001)
        with self._counting:
            self.count += 1
            struck = self.count == self.at
        self.sent.append(message)
        if not struck and {sender, receiver} & self._gone.get(message.conversation, set()):
            return 0  # behind a cut nothing more of the conversation passes
        if struck:
            self.struck = type(message).__name__
            return self._strike(sender, receiver, message)
        size = super().send(sender, receiver, message)
        held, self._held = self._held, None
        if held is not None:
            with suppress(PartyUnreachable):  # it is so late that nobody waits for it
                super().send(*held)
        return size

    def receive(self, party, conversation="", timeout=None):
        found = super().receive(party, conversation, timeout)
        # nothing more comes that it could be swapped with
        if found is None and self._held is not None and party == GUEST:
            held, self._held = self._held, None
            with suppress(PartyUnreachable):
                super().send(*held)
        return found

    def _strike(self, sender, receiver, message):
        host = next(party for party in (sender, receiver) if party != GUEST)
        if self.fault == "lost":
            self._cut[host] = 3
            self._gone[message.conversation] = {host}
        elif self.fault == "twice":
            super().send(sender, receiver, message)
            return super().send(sender, receiver, message)
        elif self.fault == "swapped":
            self._held = sender, receiver, message
        elif self.fault == "guest":
            self.federation.wires[GUEST].dead = True
            if GUEST not in (sender, receiver):
                return super().send(sender, receiver, message)
        elif self.fault == "host":
            self.federation.kill(host)
        if (self.fault == "guest" and sender == GUEST) or (self.fault == "host" and sender == host):
            raise Killed
        return 0


class Federation:
    """The Guest's runtime and the Hosts, killed and started again at will.

    Parameters
    ----------
    federation : backend.data.federation.Federation
        With the Hosts' tables beside it.
    folder : Path
        For the Guest's keys.
    keys : dict of str to SigningKey
        The Hosts'.
    budget : int
        Answers about a person.
    """

    def __init__(self, federation, folder, keys, budget=1):
        self.federation, self.folder, self.budget = federation, folder, budget
        self.network = FaultyNetwork()
        self.network.federation = self
        self.kept = {party.name: Database() for party in federation.parties}
        self._keys, self._threads = keys, []
        self.accountants, self.hosts, self.wires = {}, {}, {}
        for host in federation.hosts:
            self._start(host.name)
        self.options = {"key_floor": 512, "pools": False, "journal": Journal(self.kept[GUEST])}
        self.guest = self._guest()

    def _guest(self):
        wire = self.wires[GUEST] = Process(self.network, GUEST)
        return GuestRuntime(self.federation, self.folder, wire, HostsOperator(), **self.options)

    def _start(self, name):
        database, party = self.kept[name], self.federation.party(name)
        self.accountants[name] = Accountant(database, Limits(self.budget), "records")
        host = HostParty(
            name,
            read_table(self.federation, name),
            party.features,
            PartyStore(database),
            key_floor=512,
            accountant=self.accountants[name],
            approvals=Approvals(name, database, self._keys[name], agreed=lambda _: GRANTED),
            dither=0.0,
            floors=Floors(synthetic=True),  # sixty training rows: no floor that protects people leaves a split
        )
        wire = self.wires[name] = Process(self.network, name)
        self.hosts[name] = host
        wire.open()
        thread = threading.Thread(target=host.serve, args=(wire,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def kill(self, name):
        """A Host's process ends, and another begins: whoever waits for the one before is told, as a link does when it greets."""
        self.wires[name].dead = True
        self.network.starting.add(name)
        self.network.close(name)
        for conversation in self.network.conversations():
            with suppress(PartyUnreachable):
                Network.send(self.network, name, GUEST, Refusal(conversation, STARTED_AGAIN, wait=AGAIN))
        self._start(name)
        self.network.starting.discard(name)

    def with_options(self, options):
        """The Guest's runtime as services set it up; the Hosts are real ones, which answer no research."""
        self.guest.close()
        self.options = {name: value for name, value in options.items() if name != "kinds"}
        self.guest = self._guest()
        return self.guest

    def restart_hosts(self):
        """Each Host's process ends, and another begins."""
        for name in list(self.hosts):
            self.kill(name)

    def forget_answers(self, host):
        """As if four weeks had passed."""
        with self.kept[host].write() as session:
            for table in (AnswerRow, QuestionRow):
                session.execute(delete(table))

    def restart_guest(self):
        """Another process of the Guest; what the one before had begun is over at the Hosts."""
        for host in self.hosts.values():
            for _, conversation in list(host._sessions._open):
                Network.send(self.network, GUEST, host.name, EndConversation(conversation))
        self.guest.close()
        self.options["journal"] = Journal(self.kept[GUEST])
        self.guest = self._guest()

    def counted(self, kind="score"):
        """The most that any Host has counted about one person, or of everybody's records."""
        statement = select(func.max(AnswerRow.asked)).where(AnswerRow.kind == kind)
        return max(self._ask(name, statement) for name in self.hosts)

    def volume(self, purpose):
        """Host → people, or trainings, that were taken off an approval's volume."""
        of = ApprovalUseRow.number == Approval.number
        statement = select(func.sum(ApprovalUseRow.used)).join(Approval, of).where(Approval.purpose == purpose)
        return {name: self._ask(name, statement) for name in self.hosts}

    def _ask(self, name, statement):
        with self.kept[name].read() as session:
            return session.scalar(statement) or 0

    def close(self):
        self.network.fail("", 0)
        for name in self.hosts:
            self.network.close(name)
        for thread in self._threads:
            thread.join(30)
        self.guest.close()


def signing_keys(federation):
    return {host.name: SigningKey.generate() for host in federation.hosts}


@contextmanager
def running(federation, folder, keys, budget=1):
    made = Federation(federation, folder, keys, budget)
    try:
        yield made
    finally:
        made.close()
