"""The Guest: drives a training or a scoring with its labels, leaf weights and secret key. Holds nothing of a Host's."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import MAX_ROWS
from backend.crypto.interface import IntArray, KeySide, PairKeySide
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.crypto.registry import encrypt_task
from backend.crypto.workers import Workers
from backend.data.federation import Federation
from backend.data.table import PartyTable
from backend.errors import FederationError, ParameterError, SecurityError
from backend.protocols.alignment.exchange import Alignment, align
from backend.protocols.scoring.canaries import canaries
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores, HeldRecords, MoreVectors
from backend.protocols.scoring.packing import Packing
from backend.protocols.training.algorithms import Parameters, grow
from backend.protocols.training.joint import TEST, TRAINING, VALIDATION, Joint
from backend.protocols.training.messages import KeepModel, ModelKept
from backend.protocols.training.parameters import PARTS, SHARES, TreeProgress
from backend.protocols.transport.channel import Session, TranscriptEntry
from backend.protocols.transport.messages import OfferKey
from backend.protocols.transport.packing import chunks, from_bitmap
from backend.trees.ensemble import GuestModel
from backend.trees.metrics import Metrics, measure
from backend.trees.serialization import content_hash, dump_guest, dump_skeleton

SERIAL = Workers()
MIN_ROWS = 10  # joint records below which a 60/20/20 split means nothing


@dataclass(frozen=True)
class Trained:
    """What a training leaves at the Guest.

    Attributes
    ----------
    model_id : str
    model : GuestModel
    metrics : Metrics
        On the test rows, of the scores as they would be released (at the public scale).
    parts : dict of str to int
        Joint rows in each part.
    part_of : dict of str to str
        Id → part, for the joint records.
    host_hashes : dict of str to str
        Content hash of each Host's partial model.
    positive_rate : float
        Share of positive labels among the joint records, 0 … 1; NaN where there are more than two classes, or numbers.
    alignment : Alignment
    scores : dict of str to (ndarray, ndarray)
        Part → labels ``(n,)`` and margins ``(n, outputs.count)`` as they would be released; of the test rows alone where
        only scoring tells.
    """

    model_id: str
    model: GuestModel
    metrics: Metrics
    parts: dict[str, int]
    part_of: dict[str, str]
    host_hashes: dict[str, str]
    positive_rate: float
    alignment: Alignment
    scores: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]


@dataclass
class Timings:
    """Seconds spent, by (stage, party)."""

    seconds: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, stage: str, party: str, seconds: float) -> None:
        """Count `seconds` for a stage of a party."""
        self.seconds[stage, party] = self.seconds.get((stage, party), 0.0) + seconds


@dataclass(frozen=True)
class Scored:
    """Scores of some samples as integers at the model's scale.

    Attributes
    ----------
    units : list of int
        ``(n,)``.
    held : dict of str to ndarray of bool
        Host → ``(n,)``: whether it holds a record of the sample.
    entries : int
        Ciphertexts a sample.
    timings : Timings
    refused : dict of int to str
        Rows without a score, and why; their units mean nothing.
    dither : int
        Units by which the last Host may have moved a sum.
    canaries : int
        Rows whose score came back with the canary that it was sent with.
    """

    units: list[int]
    held: dict[str, NDArray[np.bool_]]
    entries: int
    timings: Timings
    refused: dict[int, str] = field(default_factory=dict)
    dither: int = 0
    canaries: int = 0


class GuestParty:
    """The Guest's side of every protocol.

    Parameters
    ----------
    federation : Federation
    table : PartyTable
        The Guest's own records.
    """

    def __init__(self, federation: Federation, table: PartyTable) -> None:
        self.name = federation.guest.name
        self._federation, self._table = federation, table

    def __repr__(self) -> str:
        return f"GuestParty({self.name})"

    def train(
        self,
        labels: NDArray[np.float64],
        parameters: Parameters,
        key: PairKeySide | None,
        conversation: Session,
        *,
        exclude: Sequence[str] = (),
        on_stage: Callable[[str], None] = lambda stage: None,
        on_tree: Callable[[TreeProgress], None] = lambda progress: None,
    ) -> Trained:
        """Align, grow, and have every Host keep its half.

        Parameters
        ----------
        labels : ndarray of float64
            ``(n,)``, in the table's order: 0/1, number of the class, or value.
        parameters : Parameters
            Of one of the algorithms.
        key : PairKeySide or None
            None for an algorithm that sends no ciphertexts.
        exclude : sequence of str
            Features that must not be used, of any party.
        """
        if key is not None:
            conversation.broadcast(OfferKey(conversation.name, key.scheme, key.offer()))
        on_stage("align")
        rows, alignment = align(conversation, self.name, self._table.ids, parameters.alignment)
        joint = self._joint(rows, labels[rows], parameters.seed, key or PlainKeySide(), conversation, exclude, on_tree)
        on_stage("tree")
        grown = grow(joint, parameters)
        on_stage("store")
        model = GuestModel(
            guest=self.name,
            hosts=conversation.hosts,
            trees=grown.trees,
            base_scores=grown.base_scores,
            score_bits=parameters.score_bits,
            dictionary=tuple((party, f) for party, features in joint.features.items() for f in features),
            rules=grown.rules,
            outputs=grown.outputs.for_labels(joint.labels[joint.training]),
            sides_hidden=grown.sides_hidden,
        )
        model_id = f"m{content_hash(self._federation.name + dump_guest(model))[:10]}"  # one id a federation and model
        hashes = self._have_kept(conversation, model_id, model)
        scores = {}
        if grown.units is not None:
            for part, name in enumerate(PARTS):
                rows = joint.parts == part
                scores[name] = joint.labels[rows], grown.units[rows] / float(1 << parameters.score_bits)
        else:
            test = joint.parts == TEST
            compiled = CompiledGuest(model)
            records = joint.table.take(np.flatnonzero(test))
            scored = self.score(model_id, compiled, records, PlainKeySide(), conversation)
            scores[PARTS[TEST]] = joint.labels[test], compiled.margins(scored.units)
        names = [PARTS[part] for part in joint.parts]
        return Trained(
            model_id=model_id,
            model=model,
            metrics=measure(*scores[PARTS[TEST]], "test", grown.outputs),
            parts={name: names.count(name) for name in PARTS},
            part_of=dict(zip(joint.table.ids, names, strict=True)),
            host_hashes=hashes,
            positive_rate=float(joint.labels.mean()) if joint.task == "binary" else float("nan"),
            alignment=alignment,
            scores=scores,
        )

    def _joint(
        self,
        rows: NDArray[np.intp],
        labels: NDArray[np.float64],
        seed: int,
        key: PairKeySide,
        conversation: Session,
        exclude: Sequence[str],
        on_tree: Callable[[TreeProgress], None],
    ) -> Joint:
        """The records that all parties hold, divided into training, validation and test rows.

        Raises
        ------
        FederationError
            Too few or too many of them, or training rows of one class only.
        """
        if not MIN_ROWS <= len(rows) <= MAX_ROWS:
            raise FederationError(
                f"{len(rows):,} ids are held by every party; from {MIN_ROWS} to {MAX_ROWS:,} can be trained on."
            )
        parts, label = draw_parts(len(rows), seed), self._federation.label
        if len(np.unique(labels[parts == TRAINING])) < 2:
            raise FederationError(
                f"The {int((parts == TRAINING).sum())} joint training rows hold one "
                f"{'value' if label.task == 'number' else 'class'} only; both are needed. Bring more records."
            )
        taking_part = [p for p in self._federation.parties if p.name in (self.name, *conversation.hosts)]
        return Joint(
            conversation=conversation,
            key=key,
            guest=self.name,
            features={p.name: tuple(f for f in p.features if f.name not in exclude) for p in taking_part},
            excluded={p.name: tuple(f.name for f in p.features if f.name in exclude) for p in taking_part},
            table=self._table.take(rows),
            labels=labels,
            task=label.task,
            classes=label.classes,
            parts=parts,
            on_tree=on_tree,
        )

    def _have_kept(self, conversation: Session, model_id: str, model: GuestModel) -> dict[str, str]:
        shapes = tuple(tuple((i, o, left, right) for i, o, left, right in dump_skeleton(s)) for s in model.skeletons)
        layout = Packing(model).layout
        told = (layout.score_bits, layout.slots, layout.slot_bits, layout.scale, content_hash(dump_guest(model)))
        conversation.broadcast(KeepModel(conversation.name, model_id, self.name, model.hosts, shapes, *told))
        kept = conversation.expect_each(ModelKept, conversation.hosts)
        return {h: kept[h].content_hash for h in conversation.hosts}

    def score(
        self,
        model_id: str,
        compiled: CompiledGuest,
        table: PartyTable,
        key: KeySide,
        conversation: Session,
        *,
        workers: Workers = SERIAL,
        canary: bool = False,
        on_stage: Callable[[str, str, int], None] = lambda stage, party, done: None,
    ) -> Scored:
        """Fed-EINI Algorithm 1 for every row of `table`, some samples to a message.

        Parameters
        ----------
        table : PartyTable
            ``n`` samples: ids and the Guest's columns.
        workers : Workers
            Who encrypts, where there is more than one message.
        canary : bool
            Whether every score carries a canary (:mod:`backend.protocols.scoring.canaries`); Paillier alone has room for one.
        on_stage : callable
            Told (stage, party at work, samples done).

        Raises
        ------
        ParameterError
            The model's scores do not fit the cipher.
        SecurityError
            A Host refused, or a score is none that the model can give.
        """
        timings = Timings()
        n = len(table.ids)
        on_stage("encode", self.name, 0)
        folding = compiled.folding
        if compiled.largest > key.limit:
            raise ParameterError(
                f"Scores of this model reach {compiled.largest:,} units of 2^-{compiled.score_bits}; the cipher {key.scheme} holds "
                f"{key.limit:,}. Train with fewer score bits, or score with paillier."
            )
        batches = [slice(r.start, r.stop) for r in chunks(n, key.rows_per_message(max(1, folding.n_entries)))]
        units: list[int] = []
        above = (
            canaries(key.seed, model_id, table.ids, compiled.trees)
            if canary and isinstance(key, PaillierKeySide) and compiled.largest + compiled.largest_canary <= key.limit
            else None
        )

        def encode() -> Iterator[IntArray]:
            for batch in batches:
                began = time.perf_counter()
                part = table.take(np.arange(batch.start, batch.stop))
                riding = None if above is None else above[:, batch]
                constant, entries = compiled.encode(part.columns, len(part.ids), riding)
                units.extend(constant)
                encoding = time.perf_counter() - began
                timings.add("encode", self.name, encoding)
                timings.add("encrypt", self.name, -encoding)  # which waits for it
                for piece in key.pieces(len(entries), folding.n_entries):
                    yield entries[:, piece.start : piece.stop]

        chain = [s.host for s in folding.steps]
        held = {h: np.ones(n, dtype=bool) for h in chain}
        refused, dither = dict[int, str](), 0
        if not chain:
            for _ in encode():
                pass
            return Scored(units if above is None else compiled.without_canaries(units, above), held, 0, timings)
        for host in chain:
            conversation.send(host, OfferKey(conversation.name, key.scheme, key.offer()))
        worker_payload = key.worker_payload()
        encrypted = (
            workers.map(encrypt_task, ((worker_payload, values) for values in encode()), conversation.check)
            if workers.parallel and key.should_parallelise(n, folding.n_entries)
            else (key.encrypt(values) for values in encode())
        )
        with closing(encrypted):
            for batch in batches:
                ids = table.ids[batch]
                pieces = len(key.pieces(len(ids), folding.n_entries))
                for i in range(pieces):
                    conversation.check()
                    on_stage("encrypt", self.name, batch.start + len(ids) * i // pieces)
                    began = time.perf_counter()
                    vectors = next(encrypted)
                    timings.add("encrypt", self.name, time.perf_counter() - began)
                    conversation.send(
                        chain[0],
                        DecisionVectors(conversation.name, model_id, ids, folding.n_entries, pieces, vectors)
                        if i == 0
                        else MoreVectors(conversation.name, vectors),
                    )
                for host in chain:  # each tells on arrival which ids it holds, and then works
                    answer = conversation.expect_each(HeldRecords, [host])[host]
                    on_stage("mask", host, batch.start)
                    held[host][batch] = from_bitmap(answer.held, len(ids))
                    refused = _refused(host, answer, batch) | refused
                scores = conversation.expect_each(EncryptedScores, chain[-1:])[chain[-1]]
                on_stage("decrypt", self.name, batch.start)
                began = time.perf_counter()
                _add_up(compiled, key.decrypt(scores.scores, len(ids)), units, batch, above)
                dither = max(dither, scores.dither)
                _check(compiled, units, table, batch, refused, chain, scores.dither)
                timings.add("decrypt", self.name, time.perf_counter() - began)
        for host, seconds in host_seconds(conversation.transcript()).items():
            timings.add("mask", host, seconds)
        on_stage("done", self.name, n)
        return Scored(
            units, held, folding.n_entries, timings, refused, dither, 0 if above is None else n - len(refused)
        )


def _add_up(
    compiled: CompiledGuest, decrypted: Sequence[int], units: list[int], batch: slice, above: NDArray[np.int64] | None
) -> None:
    """Add what was decrypted to the Guest's constants of a batch, and take the canaries off."""
    units[batch] = [own + theirs for own, theirs in zip(units[batch], decrypted, strict=True)]
    if above is not None:
        units[batch] = compiled.without_canaries(units[batch], above[:, batch])


def _check(
    compiled: CompiledGuest,
    units: Sequence[int],
    table: PartyTable,
    batch: slice,
    refused: Collection[int],
    chain: Sequence[str],
    dither: int,
) -> None:
    """Raise SecurityError where a score is none that the model can give: a Host has tampered with what it returned."""
    if not 0 <= dither <= compiled.packing.headroom:
        raise SecurityError(
            f"{chain[-1]} says that it moved scores by up to {dither:,} units of 2^-{compiled.score_bits}; at most "
            f"{compiled.packing.headroom:,} are accepted, and nothing was decided. Ask its operator for a smaller dither."
        )
    columns = {name: column[batch] for name, column in table.columns.items()}
    bad = [
        int(i)
        for i in np.flatnonzero(compiled.impossible(units[batch], columns, dither))
        if batch.start + i not in refused
    ]
    if bad:
        raise SecurityError(
            f"{len(bad)} of {batch.stop - batch.start} scores that came back through {', '.join(chain)} are none that the model can "
            "give; they were thrown away and nothing was decided. A Host has returned something else than the sum it was asked for: "
            "do not repeat the request, ask these Hosts what they run, and keep the transcript."
        )


def _refused(host: str, answer: HeldRecords, batch: slice) -> dict[int, str]:
    """Rows about which the query budget of a Host is exhausted, each with the reason."""
    if not answer.spent:
        return {}
    reason = (
        f"The budget is spent at {host}, which answers {answer.budget} time(s) in {answer.days} days about one person and model. "
        f"Wait, or ask {host} for a larger budget."
    )
    spent = from_bitmap(answer.spent, batch.stop - batch.start)
    return {batch.start + int(i): reason for i in np.flatnonzero(spent)}


def host_seconds(transcript: Sequence[TranscriptEntry]) -> dict[str, float]:
    """Seconds each Host worked on decision vectors: from telling which ids it holds to passing its result on."""
    began: dict[str, float] = {}
    total: dict[str, float] = {}
    for entry in transcript:
        if entry.kind == HeldRecords.__name__:
            began[entry.sender] = entry.seconds
        elif entry.sender in began:
            total[entry.sender] = total.get(entry.sender, 0.0) + entry.seconds - began.pop(entry.sender)
    return total


def draw_parts(n: int, seed: int) -> NDArray[np.int8]:
    """0 = training, 1 = validation, 2 = test for ``n`` rows: 60/20/20 by a seeded shuffle (Fed-EINI §V-A)."""
    order = np.random.default_rng(seed).permutation(n)
    parts = np.full(n, TEST, dtype=np.int8)
    first, second = round(SHARES[0] * n), round((SHARES[0] + SHARES[1]) * n)
    parts[order[:first]], parts[order[first:second]] = TRAINING, VALIDATION
    return parts
