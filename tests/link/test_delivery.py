"""Messages are lost, doubled, swapped and cut off, and the receiver starts again: each arrives once and in order."""

import hashlib
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from backend.link.frames import LANES, PROTOCOL, DeliveryReceipt, Memory
from backend.link.inbox import Inbox
from backend.link.outbox import Outbox, Outgoing, header_of

CONVERSATIONS = ("a", "b")
LATER = 1e11  # seconds since 1970: no deadline here


class Line(RuleBasedStateMachine):
    """What is on the line are copies of messages, and receipts, in any order; either may be lost."""

    @initialize()
    def begin(self):
        self.memory = Memory(1 << 20)
        self.refused = []
        self.outbox = Outbox(dict.fromkeys(LANES, 100), self.memory, lambda *told: self.refused.append(told))
        self.line, self.receipts, self.sent = [], [], 0
        self.expected = {name: [] for name in CONVERSATIONS}
        self.process()

    def process(self):
        """The receiver's process begins."""
        self.taken = {name: [] for name in CONVERSATIONS}
        self.inbox = Inbox(self.take, Memory(1 << 20))
        self.inbox.greet("sender")

    def take(self, peer, header, blob):
        self.taken[header.conversation].append(blob)
        return True

    @rule(name=st.sampled_from(CONVERSATIONS))
    def send(self, name):
        self.sent += 1
        blob = str(self.sent).encode()
        self.outbox.put(Outgoing(name, "OfferKey", "receiver", blob, "online", LATER))
        self.expected[name].append(blob)

    @rule()
    def leave(self):
        message = self.outbox.next("online")
        if message is not None:
            self.line.append(replace(message))

    @precondition(lambda self: self.line)
    @rule(data=st.data(), twice=st.booleans())
    def arrive(self, data, twice):
        message = self.line[data.draw(st.integers(0, len(self.line) - 1))]
        if not twice:
            self.line.remove(message)
        self.accept(message)

    def accept(self, message):
        digest = hashlib.sha256(message.blob).hexdigest()
        header = header_of(message, PROTOCOL, "0" * 64, "sender", digest, 1)
        receipt = self.inbox.accept(None, header, message.blob)
        # on a real line a gap waits a moment before it is tried again
        self.receipts.append(replace(receipt, after=0.0))

    @precondition(lambda self: self.receipts)
    @rule(data=st.data())
    def settle(self, data):
        self.outbox.settle(self.receipts.pop(data.draw(st.integers(0, len(self.receipts) - 1))))

    @precondition(lambda self: self.line)
    @rule(data=st.data())
    def lose(self, data):
        self.line.pop(data.draw(st.integers(0, len(self.line) - 1)))

    @rule()
    def cut(self):
        self.line.clear()
        self.receipts.clear()
        self.outbox.put_back()

    @rule()
    def start_again(self):
        """The receiver is killed and another process greets: of what it had taken a part of, the rest is not delivered."""
        self.line.clear()
        self.receipts.clear()
        self.process()
        forgotten = self.outbox.start_again()
        waiting = {one.blob for lane in LANES for one in self.outbox._waiting[lane]}
        for name in CONVERSATIONS:
            left = [blob for blob in self.expected[name] if blob in waiting]
            assert left == ([] if name in forgotten else self.expected[name])
            self.expected[name] = left

    @invariant()
    def what_was_taken_is_a_beginning_of_what_was_sent(self):
        if hasattr(self, "taken"):
            for name in CONVERSATIONS:
                assert self.taken[name] == self.expected[name][: len(self.taken[name])]

    def teardown(self):
        """Once the line holds, all that was sent arrives, and nothing twice."""
        if not hasattr(self, "taken"):
            return
        self.cut()
        while (message := self.outbox.next("online")) is not None:
            self.accept(message)
            self.outbox.settle(self.receipts.pop())
        assert self.taken == self.expected and not self.refused
        assert self.memory.used == 0


Line.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestDelivery = Line.TestCase


def test_a_receipt_of_nothing_that_is_on_its_way_changes_nothing():
    outbox = Outbox(dict.fromkeys(LANES, 1), Memory(100), lambda *told: None)
    outbox.settle(DeliveryReceipt("0" * 32, "taken"))
    assert outbox.depth() == dict.fromkeys(LANES, 0)
