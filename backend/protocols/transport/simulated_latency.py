"""What an exchange would have taken over a real link, worked out from its transcript: simulated time, nobody waits.

Knows sizes, order and working times of messages, never their content. Everything is a pure function of the transcript, so that a
slider for latency or bandwidth answers at once.

The model: a message leaves once its sender has done the work that went before it, on messages that have arrived by then, and once
the sender's earlier messages are on their way (one uplink a party, first come first served; downlinks are not a bottleneck). It takes
bytes / bandwidth to leave and `latency` to travel. In which order the parties took their messages is kept as it was in the run. The
Guest's goodbye is not counted: the scores are there before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend.errors import ParameterError
from backend.protocols.transport.messages import ConversationReceipt, EndConversation
from backend.protocols.transport.transcript import TranscriptEntry

LATENCY = 0.05  # seconds one way: "a 50ms delay in cross-party communication", Yao et al. §3.2; also §5.1
GOODBYE = (EndConversation.__name__, ConversationReceipt.__name__)
BANDWIDTH = 300_000.0  # bytes a second: "a speed of 300kB/s", Yao et al. §5.1


@dataclass(frozen=True)
class Link:
    """What lies between any two parties.

    Attributes
    ----------
    latency : float
        Seconds one way, 0 or more.
    bandwidth : float
        Bytes a second of each party's uplink, more than 0; infinity is allowed.

    Raises
    ------
    ParameterError
        A figure is out of its range.
    """

    latency: float = LATENCY
    bandwidth: float = BANDWIDTH

    def __post_init__(self) -> None:
        if not 0 <= self.latency < float("inf"):
            raise ParameterError("latency_outside_range", seconds=self.latency)
        if not self.bandwidth > 0:
            raise ParameterError("bandwidth_outside_range", bytes=self.bandwidth)


INSTANT = Link(0.0, float("inf"))


@dataclass(frozen=True)
class Exchange:
    """One run over a link.

    Attributes
    ----------
    rounds : int
        How often the Guest had to wait for an answer before it could go on.
    hops : int
        Longest chain of messages each of which waited for the one before (Yao et al. call these rounds).
    messages, bytes : int
        All parties', without the Guest's goodbye.
    compute : float
        Seconds from start to scores over a link without delay: work that parties do at the same time counts once.
    network : float
        Seconds that the link adds.
    work : dict of str to float
        Party → seconds it worked.
    """

    rounds: int
    hops: int
    messages: int
    bytes: int
    compute: float
    network: float
    work: dict[str, float]

    @property
    def total(self) -> float:
        """Seconds from start to scores."""
        return self.compute + self.network


def simulate(transcript: Sequence[TranscriptEntry], link: Link) -> Exchange:
    """Let an exchange run over `link`.

    Parameters
    ----------
    transcript : sequence of TranscriptEntry
        One whole conversation, closed or not; its first sender is the Guest.
    """
    sent = [entry for entry in transcript if entry.kind not in GOODBYE]
    rounds, hops = _chains(sent)
    compute = _run(transcript, INSTANT)
    total = _run(transcript, link)
    work: dict[str, float] = {}
    for entry in transcript:
        work[entry.sender] = work.get(entry.sender, 0.0) + sum(seconds for _, seconds in entry.work)
    size = sum(entry.bytes for entry in sent)
    return Exchange(rounds, hops, len(sent), size, compute, total - compute, work)


@dataclass
class _Party:
    """A party in simulated time."""

    free: float = 0.0  # when it is done with its work so far
    uplink: float = 0.0  # when its earlier messages are on their way


def _run(transcript: Sequence[TranscriptEntry], link: Link) -> float:
    """When the scores are there, or the last message so far."""
    parties: dict[str, _Party] = {}
    arrived = {0: 0.0}
    end = 0.0
    for entry in transcript:
        sender = parties.setdefault(entry.sender, _Party())
        for number, seconds in entry.work:
            sender.free = max(sender.free, arrived[number]) + seconds
        if entry.kind == EndConversation.__name__:
            return max(end, sender.free)
        sender.uplink = max(sender.free, sender.uplink) + entry.bytes / link.bandwidth
        arrived[entry.number] = sender.uplink + link.latency
        end = max(end, arrived[entry.number])
    return end


def _chains(sent: Sequence[TranscriptEntry]) -> tuple[int, int]:
    """Return the length of the longest causal chain: in messages that reach the Guest, and in messages."""
    guest = sent[0].sender if sent else ""
    # by message
    rounds = {0: 0}
    hops = {0: 0}
    behind: dict[str, tuple[int, int]] = {}  # party → rounds and hops behind what it has taken in
    for entry in sent:
        answered = [number for number, _ in entry.work]
        depth_of_sender = behind.get(entry.sender, (0, 0))
        r = max([depth_of_sender[0], *(rounds[number] for number in answered)])
        h = max([depth_of_sender[1], *(hops[number] for number in answered)])
        behind[entry.sender] = (r, h)
        rounds[entry.number] = r + (entry.receiver == guest)
        hops[entry.number] = h + 1
    return max(rounds.values()), max(hops.values())
