"""The Guest's side of scoring: Fed-EINI Algorithm 1, step by step, with its leaf weights and secret key. Holds nothing of a Host's.

The paper scores one sample with one Host; here the samples of a batch go together, through the chain of Hosts of §III-B.

1. Guest: decision vectors of a batch, from its own columns                                      (Stage 1, eq. 8)
2. Guest → first Host: the vectors, encrypted. Hosts: :mod:`backend.protocols.scoring.host`      (Stage 2, eq. 9, 10, 13)
3. Each Host → Guest: whose records it holds, sent before it starts to work                      (ours)
4. Last Host → Guest: one ciphertext a sample                                                    (eq. 10 and 14)
5. Guest: decrypts the scores, and adds the leaves that no Host's condition decides              (Algorithm 1, last line)
6. Guest: refuses a score that no choice of leaves gives                                         (ours; Proposition 1)

With a journal, what step 2 sends is written down before and the scores of step 6 after, so that a Guest that was stopped in between
sends the same bytes again, and the Hosts give the same answer without counting it again.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import centred, hidden_above
from backend.crypto.interface import IntArray, KeySide
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.registry import encrypt_task
from backend.crypto.workers import Workers
from backend.data.table import PartyTable
from backend.errors import ParameterError, QuestionRefused, SecurityError
from backend.jobs import work
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores, MoreVectors
from backend.protocols.scoring.packing import canaries, request_offsets
from backend.protocols.scoring.statement import ScoreStatement
from backend.protocols.transport.channel import Session
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import Acknowledge, HeldRecords, OfferKey
from backend.protocols.transport.packing import chunks, from_bitmap, from_numbers, to_bitmap
from backend.protocols.transport.transcript import TranscriptEntry
from backend.remark import Remark, read_plain
from backend.store.accountant import LIMITS
from backend.store.journal import Batch, Run

SERIAL = Workers()
# about the work of a row at a stage beside the others: encrypting, each Host's masking, decrypting
WORK = {"encrypt": 1.0, "mask": 2.0, "decrypt": 0.2}
REPORTED = 256  # ciphertexts encrypted between two reports, a fraction of a second

OnStage = Callable[[str, str, int], None]  # stage, party at work, samples done


def ignore_stages(stage: str, party: str, n_done: int) -> None:
    """Follow no stages."""


@dataclass
class Timings:
    """Seconds spent, by (stage, party)."""

    seconds: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, stage: str, party: str, seconds: float) -> None:
        """Count `seconds` for a stage of a party."""
        self.seconds[stage, party] = self.seconds.get((stage, party), 0.0) + seconds

    @contextmanager
    def measured(self, stage: str, party: str) -> Iterator[None]:
        """Count the seconds of the ``with`` block."""
        began = time.perf_counter()
        yield
        self.add(stage, party, time.perf_counter() - began)


@dataclass(frozen=True)
class Scored:
    """Scores of some samples as integers at the model's scale.

    Attributes
    ----------
    units : list of int
        ``(n,)``.
    has_record : dict of str to ndarray of bool
        Host → ``(n,)``: whether the Host has a record of the sample.
    entries : int
        Ciphertexts a sample.
    refused : dict of int to str
        Rows without a score, and the reason; their units have no meaning.
    dither : int
        Units by which the last Host may have moved a sum.
    canaries : int
        Rows whose score came back with the canary that it was sent with.
    days : int
        The longest window of a Host whose limit was reached; 0 if none was.
    recalled : int
        Rows whose score was in the journal from an earlier attempt: nothing was sent for them.
    """

    units: list[int]
    has_record: dict[str, NDArray[np.bool_]]
    entries: int
    timings: Timings
    refused: dict[int, Remark] = field(default_factory=dict)
    dither: int = 0
    canaries: int = 0
    days: int = 0
    recalled: int = 0


@dataclass(repr=False, eq=False)
class ScoringClient:
    """One scoring of every row of a table; its steps are those at the top of this file.

    Parameters
    ----------
    table : PartyTable
        ``n`` samples: ids and the Guest's columns.
    workers : Workers
        Who encrypts, if there is more than one message.
    canary : bool
        Whether every score carries a canary (:func:`backend.protocols.scoring.packing.canaries`); Paillier alone has room for one.
    on_stage : callable
        Called with (stage, party at work, samples done).
    offered : bool
        Whether the Hosts have the key from an earlier scoring of the session.
    owed : list of (str, str), optional
        Takes Host and request of every answer, instead of the journal: what was sent stays there, and the Host keeps its answer, until
        whoever has the list acknowledges. For questions so short that to repeat one costs less than to write down its scores.

    Raises
    ------
    ParameterError
        The model's scores do not fit the cipher.
    """

    guest: str
    model_id: str
    compiled: CompiledGuest
    table: PartyTable
    key: KeySide
    session: Session
    workers: Workers = SERIAL
    canary: bool = False
    on_stage: OnStage = ignore_stages
    run: Run | None = None
    offered: bool = False
    owed: list[tuple[str, str]] | None = None

    def __post_init__(self) -> None:
        compiled = self.compiled
        key = self.key
        n = len(self.table.ids)
        if compiled.largest > key.limit:
            raise ParameterError(
                "scores_exceed_cipher",
                largest=compiled.largest,
                score_bits=compiled.score_bits,
                cipher=key.scheme,
                limit=key.limit,
            )
        self._entries = compiled.folding.n_entries
        self._chain = [step.host for step in compiled.folding.steps]
        rows = key.rows_per_message(max(1, self._entries))
        self._batches = [slice(part.start, part.stop) for part in chunks(n, rows)]
        self._canaries: NDArray[np.int64] | None = None
        room = compiled.largest + compiled.largest_canary <= key.limit
        if self.canary and self._chain and room and isinstance(key, PaillierKeySide):
            self._canaries = canaries(key.seed, self.model_id, self.table.ids, compiled.trees)
        self._sum_bits = compiled.sum_bits(canary=self._canaries is not None)
        hidden = hidden_above(self._sum_bits, key.room)
        self._hidden = hidden > 0
        self._modulus = 1 << self._sum_bits if hidden else key.room  # 0 = sums are read as they come
        self._offsets = np.zeros(n, dtype=np.int64)
        self._nonce = secrets.token_hex()
        self._units = [0] * n
        self._has_record = {host: np.ones(n, dtype=bool) for host in self._chain}
        self._refused: dict[int, Remark] = {}
        self._dither = 0
        self._days = 0
        self._recalled = 0
        self._timings = Timings()
        self._before = len(self.session.transcript())
        self._encrypted_pieces = 0.0
        self._work_done: dict[str, float] = {}  # stage → rows, weighed by WORK
        batches_to_begin = range(len(self._batches)) if self._chain else ()
        self._journal: dict[int, Batch] = {} if self.run is None else self.run.batches(batches_to_begin)
        unanswered = [
            b for i, b in enumerate(self._batches) if i not in self._journal or self._journal[i].answer is None
        ]
        self._rows = sum(b.stop - b.start for b in unanswered)
        self._pieces = sum(len(key.pieces(b.stop - b.start, self._entries)) for b in unanswered)

    def score(self) -> Scored:
        """Steps 1 to 6 for every batch.

        Raises
        ------
        SecurityError
            A Host refused, or a score is impossible for the model.
        Cancelled, PartyUnreachable
            See :meth:`backend.protocols.transport.channel.Session.expect`.
        """
        self.on_stage("encode", self.guest, 0)
        entries = self._decision_vectors()
        if not self._chain:
            # Without Hosts every leaf is among the constants: exhaust the iterator, which adds them to the scores.
            deque(entries, maxlen=0)
            return Scored(self._units, {}, 0, self._timings)
        if not self.offered:
            for host in self._chain:
                self.session.send(host, OfferKey(self.session.name, self.key.scheme, self.key.offer()))
        with closing(self._encrypted(entries)) as vectors_enc:
            self._report()
            for number, batch in enumerate(self._batches):
                if not self._from_journal(number, batch):
                    self._ask(number, batch, vectors_enc)
        for host, seconds in host_seconds(self.session.transcript()[self._before :]).items():
            self._timings.add("mask", host, seconds)
        n = len(self.table.ids)
        self.on_stage("done", self.guest, n)
        if self._canaries is None:
            intact = 0
        else:
            intact = n - len(self._refused)
        return Scored(
            self._units,
            self._has_record,
            self._entries,
            self._timings,
            self._refused,
            self._dither,
            intact,
            self._days,
            self._recalled,
        )

    def _ask(self, number: int, batch: slice, vectors_enc: Iterator[bytes]) -> None:
        """Steps 2 to 6 for one batch."""
        try:
            self._send(number, batch, vectors_enc)
            self._note_held(batch)
            scores = self.session.expect_each(EncryptedScores, self._chain[-1:])[self._chain[-1]]  # step 4
        except QuestionRefused:
            if self.run is not None:
                self.run.drop(number)
            raise
        self._report("mask", batch.stop - batch.start)
        self.on_stage("decrypt", self.guest, batch.start)
        with self._timings.measured("decrypt", self.guest):
            self._decrypt(batch, scores)
            self._check(batch, scores.dither)
        self._report("decrypt", batch.stop - batch.start)
        if self.run is None:
            return
        last = self._chain[-1]
        request = self._journal[number].request
        statement = self._statement(batch, scores.dither).dump()
        if self.owed is not None:
            self.run.state(request, statement, soon=True)
            self.owed.append((last, request))
            return
        self.run.answered(number, self._answer_bytes(batch, scores.dither), request=request, statement=statement)
        self.session.send(last, Acknowledge(self.session.name, (request,)))

    def _statement(self, batch: slice, dither: int) -> ScoreStatement:
        """Return the statement for an auditor about a batch that was answered."""
        refused = [i - batch.start for i in self._refused if batch.start <= i < batch.stop]
        columns = {name: self.table.columns[name][batch] for name in self.compiled.features}
        return ScoreStatement(
            self.model_id,
            tuple(self._units[batch]),
            tuple(refused),
            dither,
            self._canaries is not None,
            self._offsets[batch],
            columns,
            {host: flags[batch] for host, flags in self._has_record.items()},
        )

    def _answer_bytes(self, batch: slice, dither: int) -> bytes:
        """Return the journal's entry of a batch that was answered."""
        refused = {}
        for i, why in self._refused.items():
            if batch.start <= i < batch.stop:
                refused[i - batch.start] = why.plain()
        bitmaps = {host: to_bitmap(flags[batch]) for host, flags in self._has_record.items()}
        units = [str(unit) for unit in self._units[batch]]  # may be longer than msgpack's integers
        packed: bytes = msgpack.packb([units, bitmaps, refused, dither, self._days])
        return packed

    def _from_journal(self, number: int, batch: slice) -> bool:
        """Put a batch that was answered before in its place; False if it was not."""
        if number not in self._journal or (answer := self._journal[number].answer) is None:
            return False
        self._recalled += batch.stop - batch.start
        units, bitmaps, refused, dither, days = msgpack.unpackb(answer, strict_map_key=False)
        self._units[batch] = [int(unit) for unit in units]
        for host, bitmap in bitmaps.items():
            self._has_record[host][batch] = from_bitmap(bitmap, batch.stop - batch.start)
        self._refused |= {batch.start + i: read_plain(why) for i, why in refused.items()}
        self._dither = max(self._dither, dither)
        self._days = max(self._days, days)
        return True

    def _decision_vectors(self) -> Iterator[IntArray]:
        """Step 1, eq. 8: w_(j,k) for candidate leaves and 0 for the others, message by message; constants go to the scores."""
        for number, batch in enumerate(self._batches):
            if number in self._journal and self._journal[number].answer is not None:
                continue
            began = time.perf_counter()
            table = self.table.take(np.arange(batch.start, batch.stop))
            if self._canaries is None:
                above = None
            else:
                above = self._canaries[:, batch]
            offsets = self._draw_offsets(number, batch)
            constants, entries = self.compiled.encode(table.columns, len(table.ids), above, offsets)
            if offsets is not None:
                self._offsets[batch] = offsets
                self._centre(entries)
            self._units[batch] = constants
            seconds = time.perf_counter() - began
            self._timings.add("encode", self.guest, seconds)
            # step 2 draws these vectors while its own clock runs
            self._timings.add("encrypt", self.guest, -seconds)
            for piece in self.key.pieces(len(entries), self._entries):
                yield entries[:, piece.start : piece.stop]

    def _draw_offsets(self, number: int, batch: slice) -> NDArray[np.int64] | None:
        """Return the numbers that bind a batch's scores to its request; None without a cipher."""
        if not self._modulus:
            return None
        batch_in_journal = self._journal.get(number)
        if batch_in_journal is None:
            request = f"{self._nonce} {number}"
        else:
            request = batch_in_journal.request
        return request_offsets(self.key.seed, request, batch.stop - batch.start, self._modulus, below=self._hidden)

    def _centre(self, entries: NDArray[Any]) -> None:
        """Bring the entries that carry a number of the request to where the cipher takes them: from -t/2 to t/2 under RLWE."""
        if self.key.scheme != "rlwe":
            return
        for entry in set(self.compiled.bound_entries.tolist()):
            entries[:, entry] = (entries[:, entry] + self.key.limit) % self.key.room - self.key.limit

    def _encrypted(self, entries: Iterator[IntArray]) -> Generator[bytes, None, None]:
        """Step 2: ⟦W_Guest⟧, message by message; several workers run ahead of what is sent."""
        if self.workers.parallel and self.key.should_parallelise(len(self.table.ids), self._entries):
            payload = self.key.worker_payload()
            tasks = ((payload, values) for values in entries)
            return self.workers.map(encrypt_task, tasks, self.session.check, self._note_encrypted)
        return (self._encrypted_here(values) for values in entries)

    def _encrypted_here(self, values: IntArray) -> bytes:
        """One message; under Paillier, whose ciphertexts are a person's one after the other, in parts, each of which is reported."""
        if not isinstance(self.key, PaillierKeySide):
            rows = len(values)
        else:
            rows = -(-REPORTED // max(1, values.shape[1]))
        parts = []
        for part in chunks(len(values), rows):
            parts.append(self.key.encrypt(values[part.start : part.stop]))
            self._encrypted_pieces += len(part) / len(values)
            self._report()
        return b"".join(parts)

    def _note_encrypted(self) -> None:
        """One more piece is encrypted and may have to wait until it is sent; called in another thread."""
        self._encrypted_pieces += 1

    def _report(self, stage: str = "encrypt", rows: int = 0) -> None:
        """Report the share of the unanswered batches that is done, once `rows` more have passed a stage."""
        if stage == "encrypt" and self._pieces:
            rows_done = WORK["encrypt"] * self._rows * self._encrypted_pieces / self._pieces
        else:
            rows_done = self._work_done.get(stage, 0.0) + WORK[stage] * rows
        self._work_done[stage] = rows_done
        a_row = WORK["encrypt"] + WORK["mask"] * len(self._chain) + WORK["decrypt"]
        work.reached(sum(self._work_done.values()) / (a_row * max(self._rows, 1)))

    def _send(self, number: int, batch: slice, vectors_enc: Iterator[bytes]) -> None:
        """Step 2: push ⟦W_Guest⟧ to the first Host; pieces in the journal are sent again as they were encrypted."""
        ids = self.table.ids[batch]
        name = self.session.name
        pieces = len(self.key.pieces(len(ids), self._entries))
        batch_in_journal = self._journal.get(number)
        for i in range(pieces):
            self.session.check()
            self.on_stage("encrypt", self.guest, batch.start + len(ids) * i // pieces)
            with self._timings.measured("encrypt", self.guest):
                vectors = next(vectors_enc)
            self._report()
            if self.run is not None and batch_in_journal is not None:
                if i < len(batch_in_journal.sent):
                    vectors = batch_in_journal.sent[i]
                else:
                    vectors = self.run.sending(number, i, vectors)
            message: Message = MoreVectors(name, vectors)
            if i == 0:
                shape = ids, self._entries, pieces, vectors
                bits = self._sum_bits
                if batch_in_journal is None:
                    request = ""
                else:
                    request = batch_in_journal.request
                message = DecisionVectors(name, self.model_id, *shape, request=request, sum_bits=bits)
            self.session.send(self._chain[0], message)

    def _note_held(self, batch: slice) -> None:
        """Step 3: a Host without a record of a sample decides by default sides; one whose budget is exhausted decides nothing."""
        n = batch.stop - batch.start
        for i, host in enumerate(self._chain):
            at_work = self._chain[max(0, i - 1)]  # it answers before it works, and the one before it must be through
            answer = self.session.expect_each(HeldRecords, [host], [at_work])[host]
            if i:  # the Host before it is through
                self._report("mask", n)
            self.on_stage("mask", host, batch.start)
            self._has_record[host][batch] = from_bitmap(answer.held, n)
            exhausted = {batch.start + i: reason for i, reason in refusals(host, answer, n).items()}
            self._refused = exhausted | self._refused
            if exhausted:
                self._days = max(self._days, answer.days)

    def _decrypt(self, batch: slice, scores: EncryptedScores) -> None:
        """Step 5: ŷ = the constants of step 1 + Σ_k S_k, less the canaries that came back above it."""
        sums = self.key.decrypt(scores.scores, batch.stop - batch.start)
        if self._modulus:
            # modulo what is read: without the request's number, and without what the last Host has put above the width announced
            rows = range(batch.start, batch.stop)
            offsets = [0 if row in self._refused else int(self._offsets[row]) for row in rows]
            room = self.key.room
            modulus = self._modulus
            sums = [
                centred((total % room - offset) % modulus, modulus) for total, offset in zip(sums, offsets, strict=True)
            ]
        units = [constant + total for constant, total in zip(self._units[batch], sums, strict=True)]
        above = self._canaries
        if above is None:
            self._units[batch] = units
        else:
            self._units[batch] = self.compiled.without_canaries(units, above[:, batch])
        self._dither = max(self._dither, scores.dither)

    def _check(self, batch: slice, dither: int) -> None:
        """Step 6: raise SecurityError if a Host has returned something else than the sum it was asked for."""
        headroom = self.compiled.packing.headroom
        if not 0 <= dither <= headroom:
            raise SecurityError(
                "dither_exceeds_room",
                host=self._chain[-1],
                dither=dither,
                score_bits=self.compiled.score_bits,
                headroom=headroom,
            )
        columns = {name: column[batch] for name, column in self.table.columns.items()}
        impossible = np.flatnonzero(self.compiled.impossible(self._units[batch], columns, dither)).tolist()
        bad = sum(batch.start + i not in self._refused for i in impossible)
        if bad:
            raise SecurityError("impossible_scores", bad=bad, scores=batch.stop - batch.start, hosts=tuple(self._chain))


def refusals(host: str, answer: HeldRecords, n: int, reasons: bool = False) -> dict[int, Remark]:
    """Return the rows of `n` people about whom a Host gives no further answer, each with the limit that is reached.

    `reasons`: the answers are reasons, which have a budget of their own.
    """
    if not answer.spent:
        return {}
    reached = from_numbers(answer.spent, len(LIMITS))
    if len(reached) != n:
        raise SecurityError("limits_of_other_people", host=host, people=n, got=len(reached))
    kind = "reasons" if reasons else "scores"
    limits = {
        "budget": Remark(f"budget_spent_on_{kind}", {"host": host, "n": answer.budget, "days": answer.days}),
        "total": Remark(f"total_spent_on_{kind}", {"host": host, "n": answer.total, "days": answer.days}),
        "bits": Remark("bits_spent", {"host": host, "bits": answer.bits, "days": answer.days}),
        "changed": Remark("record_changed_since_score", {"host": host}),
    }
    return {i: limits[LIMITS[reached[i]]] for i in np.flatnonzero(reached).tolist()}


def host_seconds(transcript: Sequence[TranscriptEntry]) -> dict[str, float]:
    """Seconds each Host worked on decision vectors: from reporting which ids it holds to passing its result on."""
    began: dict[str, float] = {}
    total: dict[str, float] = {}
    for entry in transcript:
        if entry.kind == HeldRecords.__name__:
            began[entry.sender] = entry.seconds
        elif entry.sender in began:
            total[entry.sender] = total.get(entry.sender, 0.0) + entry.seconds - began.pop(entry.sender)
    return total
