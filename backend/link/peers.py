"""One peer of this party: what waits for it, what came from it, and how its link is, in words."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from backend.link.agreement import AgreedParty
from backend.link.config import HostConfig, LinkOptions
from backend.link.frames import LANES, Lane, Memory
from backend.link.identity import is_ending, validity
from backend.link.inbox import Hand, Inbox
from backend.link.outbox import Outbox, Refused
from backend.protocols.transport.wire import LinkState, Quiet
from backend.remark import Remark

_log = logging.getLogger("glassleaf")
MAX_CALLS = 4  # calls of a peer next to its messages: greetings, and the attached stream with the one that it replaces
MIB = 1 << 20
_DAY = timedelta(days=1)
NOT_CALLED = Remark("link_not_called")  # this side listens
# until nobody needs an answer
LANE_SECONDS: dict[Lane, float] = {"online": 900.0, "bulk": 86_400.0, "training": 86_400.0}


@dataclass(frozen=True)
class LinkSettings:
    """How a party's links behave.

    Attributes
    ----------
    options : LinkOptions
        Of its configuration. A link is cut after three heartbeats without one, or without the peer taking any of a frame.
    grace : float
        Seconds for which a link that was cut counts as up: so long it has to come back.
    idle : float
        Seconds without a piece after which a message that comes in pieces is refused.
    handshake : float
        Seconds for a greeting.
    queue : dict of lane to int
        Messages that may wait, in each direction.
    message, memory : int
        Longest message, and all messages together, bytes.
    rpcs : int
        Messages that one peer may be sending at once, each in a call of its own.
    """

    options: LinkOptions = field(default_factory=LinkOptions)
    grace: float = 20.0
    idle: float = 60.0
    handshake: float = 10.0
    queue: dict[Lane, int] = field(default_factory=lambda: dict.fromkeys(LANES, 64))
    message: int = 1024 * MIB
    memory: int = 2048 * MIB
    rpcs: int = 12

    def listens_at(self, address: str) -> str:
        """Where a party listens that others reach at `address`: host:port."""
        return self.options.bind or f"[::]:{address.rsplit(':', 1)[1]}"

    @property
    def proxy_address(self) -> str:
        """Host and port of the proxy, without the password that its URL may have; empty if there is no proxy."""
        place = urlsplit(self.options.proxy or os.environ.get("https_proxy", "")).netloc.rpartition("@")[2]
        if not place or re.search(r":\d+$", place):
            return place
        return f"{place}:80"

    @classmethod
    def of(cls, config: HostConfig) -> LinkSettings:
        """As host.toml says."""
        return cls(
            options=config.link,
            queue={
                "online": config.lanes.online.queue,
                "bulk": config.lanes.bulk.queue,
                "training": config.lanes.training.queue,
            },
            message=config.limits.message_mib * MIB,
            memory=config.limits.memory_mib * MIB,
        )


class Peer:
    """One peer.

    Parameters
    ----------
    memory : Memory
        Shared by all peers.
    hand, refused
        As :class:`Inbox` and :class:`Outbox` call them.
    """

    def __init__(
        self, party: AgreedParty, settings: LinkSettings, memory: Memory, hand: Hand, refused: Refused
    ) -> None:
        self.party = party
        self.name = party.name
        self._settings = settings
        self.inbox = Inbox(hand, memory)
        self.outbox = Outbox(settings.queue, memory, refused)
        self.calls = threading.BoundedSemaphore(settings.rpcs)
        self.beside = threading.BoundedSemaphore(MAX_CALLS)
        self.expires: datetime | None = None
        self.instance = ""
        self.latency = float("nan")
        self._attached = 0
        self._ever = False
        self._left = False
        self._since = time.time()
        self._cut_at = 0.0
        self._heard = 0.0
        self._why: Remark | None = NOT_CALLED
        self._lock = threading.Lock()

    def greeted(self, instance: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Note the instance of the peer's process; if it is a new one, both sides' conversations begin again.

        Return this side's conversations that the previous process knew, and the conversations that it had begun and not ended.
        """
        self.instance = instance
        abandoned = self.inbox.greet(instance)
        if abandoned is None:
            return (), ()
        return self.outbox.start_again(), abandoned

    def came_up(self) -> None:
        """A link to it is there."""
        with self._lock:
            if not self._attached and time.monotonic() - self._cut_at > self._settings.grace:
                self._since = time.time()
            self._attached += 1
            is_first = self._attached == 1
            self._ever = True
            self._left = False
            self._why = None
            self._heard = time.monotonic()
        if is_first:
            _log.info("The link to %s stands.", self.name, extra={"party": self.name})

    def dialled(self) -> None:
        """Say that this side dials it, and has not reached it yet."""
        self._why = Remark("link_not_yet")

    def heard(self) -> None:
        """Something came from it."""
        self._heard = time.monotonic()

    def went_down(self, why: Remark, peer_stops: bool = False, *, here: bool = False) -> None:
        """Note that a link to the peer has ended.

        `peer_stops`: the peer has announced that it stops. `here`: this side stops, so that nothing is wrong.
        """
        with self._lock:
            self._attached -= 1
            is_last = not self._attached  # else another one has taken its place
            if is_last:
                self._cut_at = time.monotonic()
                self._since = time.time()
                self._why = why
                self._left = peer_stops
        if is_last:
            tell = _log.info if here else _log.warning
            tell("The link to %s has ended: %s", self.name, why, extra={"party": self.name})
        self.outbox.put_back()

    def failed(self, why: Remark) -> None:
        """It could not be reached, for this reason."""
        with self._lock:
            is_new = self._why is None or self._why.code != why.code  # tried again and again
            self._why = why
        if is_new:
            _log.warning("The link to %s cannot be made: %s", self.name, why, extra={"party": self.name})

    @property
    def cause(self) -> Remark:
        """Why there is no link, or was none last."""
        return self._why or Remark("link_cut")

    @property
    def silence_timeout(self) -> float:
        """Seconds in which three signs of life come."""
        return 3 * self._settings.options.heartbeat

    @property
    def is_silent(self) -> bool:
        """Whether three signs of life are missing."""
        return time.monotonic() - self._heard > self.silence_timeout

    @property
    def quiet(self) -> Quiet:
        """How long nothing has come from it, and how long it has owed a receipt meanwhile."""
        now = time.monotonic()
        oldest = self.outbox.oldest()
        return Quiet(now - self._heard, 0.0 if oldest is None else now - max(self._heard, oldest))

    @property
    def is_attached(self) -> bool:
        """Whether there is a link at this moment."""
        return self._attached > 0

    @property
    def is_up(self) -> bool:
        """Whether there is a link, or was one just now that may come back."""
        with self._lock:
            back = self._ever and not self._left and time.monotonic() - self._cut_at <= self._settings.grace
            return self._attached > 0 or back

    def link(self, now: datetime | None = None) -> LinkState:
        """Return whether the link is there, since when, and why not."""
        now = now or datetime.now(UTC)
        since = datetime.fromtimestamp(self._since, UTC).astimezone()
        recent = now - since.astimezone(UTC) < _DAY
        if recent:
            text = f"{since:%H:%M}"
        else:
            text = f"{since:%Y-%m-%d %H:%M}"
        return LinkState(self.is_attached, text, self._said(text, now))

    def state(self, now: datetime | None = None) -> Remark:
        """Return the link's state: `shop: down since 14:02, its certificate expired 3 days ago`."""
        return self.link(now).remark

    def _said(self, since: str, now: datetime) -> Remark:
        values: dict[str, object] = {"host": self.name, "since": since}
        ends = self.expires
        if self.is_attached:
            if ends is None or not is_ending(ends, now):
                return Remark("link_up", values)
            return Remark("link_up_ending", {**values, "validity": validity(ends, now)})
        return Remark("link_down", {**values, "why": self.cause})
