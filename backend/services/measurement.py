"""What measurements of a model share: what is measured and with whom, and the conversations of one measurement.

As the Guest sees it: scores, labels and its own columns. What comes back from a Host is encrypted sums or scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import KeySide
from backend.crypto.paillier.keys import KEY_BITS
from backend.crypto.registry import Cipher
from backend.crypto.workers import Workers
from backend.data.table import PartyTable
from backend.errors import ParameterError
from backend.jobs import Job
from backend.protocols.alignment.exchange import align
from backend.protocols.group_sums.guest import GroupQuestions
from backend.protocols.simulation.simulator import Room
from backend.protocols.transport.channel import Conversation, TranscriptEntry
from backend.protocols.transport.messages import OfferKey
from backend.results import Compiled, ModelRecord
from backend.trees.ensemble import GuestModel

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Ground:
    """What is measured, and with whom.

    Attributes
    ----------
    model : GuestModel
    compiled : Compiled
        Of the same model.
    test_ids : sequence of str
        Records that the model was not trained on; any joint ones of an imported model.
    workers : Workers
        Who encrypts when records are scored.
    """

    room: Room
    record: ModelRecord
    model: GuestModel
    compiled: Compiled
    test_ids: Sequence[str]
    workers: Workers


class Talks:
    """The conversations of one job, their transcripts one after the other."""

    def __init__(self, room: Room, job: Job[Any]) -> None:
        self._room, self.job = room, job
        self._said: tuple[TranscriptEntry, ...] = ()

    @contextmanager
    def begin(self, hosts: tuple[str, ...], *, counted: bool = True) -> Iterator[Conversation]:
        """One conversation, closed at the end."""
        talk = self._room.converse(hosts, self.job.cancelled, counted=counted)
        before = self._said
        self.job.read_transcript = lambda: (*before, *talk.transcript())
        try:
            yield talk
        finally:
            self._said = (*before, *talk.close())
            self.job.read_transcript = lambda: self._said

    def ask(
        self, talk: Conversation, cipher: Cipher, bits: int, choose: Callable[[Rows], NDArray[np.bool_]]
    ) -> tuple[GroupQuestions, Rows]:
        """Offer a key and align ids; `choose` tells which of the joint rows count. Returns these rows of the Guest's table."""
        guest = self._room.guest.name
        self.job.at("key", guest, 0)
        key = self._room.pair_key(cipher, bits)
        talk.broadcast(OfferKey(talk.name, key.scheme, key.offer()))
        self.job.at("align", guest)
        joint, _ = align(talk, guest, self._room.table.ids, "dh")
        counted = choose(joint)
        return GroupQuestions(talk, guest, key, counted), joint[counted]

    def score(
        self,
        ground: Ground,
        table: PartyTable,
        cipher: Cipher,
        first: Callable[[Conversation, KeySide], None] = lambda talk, key: None,
        at: tuple[int, int] | None = None,
    ) -> tuple[Rows, NDArray[np.float64]]:
        """Rows of `table` that no Host refused, and their margins ``(rows, outputs.count)``; measuring leaves budgets alone.

        Parameters
        ----------
        first : callable, optional
            What a Host is asked in the same conversation before: to deal values out anew, say.
        at : (int, int), optional
            Records scored before these, and all that will be: where this is one scoring of several.
        """
        room, job, compiled = self._room, self.job, ground.compiled.guest
        before, job.total = at or (0, len(table.ids))
        job.at("key", room.guest.name, before)
        key = room.key(cipher, 0, compiled) if cipher == "none" else room.bulk_key(KEY_BITS, compiled)
        with self.begin(ground.record.hosts, counted=False) as talk:
            first(talk, key)
            scored = room.guest.score(
                ground.record.id,
                compiled,
                table,
                key,
                talk,
                workers=ground.workers,
                on_stage=lambda stage, party, done: job.at(stage, party, before + done),
            )
        kept = np.array([i for i in range(len(table.ids)) if i not in scored.refused], dtype=np.intp)
        return kept, compiled.margins([scored.units[i] for i in kept])

    def progress(self, done: int, total: int) -> None:
        """Ciphertexts made."""
        self.job.total = total
        self.job.at("marks", self._room.guest.name, done)


def drawn(ground: Ground, samples: int | None, seed: int) -> Rows:
    """Rows of some test records in the Guest's table, or of all."""
    ids, row_of = ground.test_ids, ground.room.table.row_of
    count = len(ids) if samples is None else samples
    if not 1 <= count <= len(ids):
        raise ParameterError(f"{count} test records were asked for; the model has {len(ids):,}.")
    chosen = np.random.default_rng(seed).choice(len(ids), size=count, replace=False)
    return np.array([row_of[ids[i]] for i in chosen], dtype=np.intp)
