"""The Guest's side of training, with its labels and secret key: align, grow, have every Host keep its partial model, measure.

Holds nothing of a Host's.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import MAX_ROWS
from backend.crypto.interface import TrainingKeySide
from backend.crypto.plain import PlainKeySide
from backend.data.dictionary import Feature
from backend.data.federation import Federation
from backend.data.medians import medians
from backend.data.table import PartyTable
from backend.errors import FederationError, PartyUnreachable, WrongAnswer
from backend.jobs import work
from backend.protocols.alignment.exchange import align
from backend.protocols.alignment.outcome import Alignment
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.guest import ScoringClient
from backend.protocols.scoring.packing import Packing
from backend.protocols.training.algorithms import Parameters, grow
from backend.protocols.training.joint import TEST, TRAINING, VALIDATION, FromTheStart, Grown, Joint, Resumed
from backend.protocols.training.messages import KeepModel, ModelKept, ReportWrongAnswer
from backend.protocols.training.parameters import PARTS, SHARES, TreeProgress
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import OfferKey
from backend.trees.backgrounds import ScoreBands, score_bands
from backend.trees.ensemble import GuestModel
from backend.trees.metrics import Metrics, measure
from backend.trees.serialization import content_hash, dump_guest, dump_skeleton

_log = logging.getLogger("glassleaf")

ALIGNED = 0.1  # about the share of a training after which the records are aligned
GROWN_SHARE = 0.98  # and the trees have grown
OPEN = -1.0  # a model whose scores nobody can measure is not sealed
MIN_ROWS = 10  # joint records below which a 60/20/20 split means nothing

# part → labels, margins, and how much each record counts if there are sample weights
Scores = dict[str, tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]]


@dataclass(frozen=True)
class Trained:
    """What a training leaves at the Guest.

    Attributes
    ----------
    metrics : Metrics
        On the test rows, of the scores as they would be released (at the public scale).
    parts : dict of str to int
        Joint rows in each part.
    part_of : dict of str to str
        Id → part, for the joint records.
    host_hashes : dict of str to str
        Content hash of each Host's partial model.
    positive_rate : float
        Share of positive labels among the joint records, 0 … 1; NaN if there are more than two classes, or numbers.
    scores : dict of str to (ndarray, ndarray, ndarray or None)
        Part → labels ``(n,)``, margins ``(n, outputs.count)`` as they would be released, and sample weights ``(n,)``; the test rows
        alone where they had to be scored.
    label_bits : float or None
    choice_bits : float
        As of :class:`~backend.protocols.training.joint.Grown`.
    test_from : str
        First period of the test records, where these are the latest ones; empty if they were drawn.
    """

    model_id: str
    model: GuestModel
    metrics: Metrics
    parts: dict[str, int]
    part_of: dict[str, str]
    host_hashes: dict[str, str]
    positive_rate: float
    alignment: Alignment
    scores: Scores
    label_bits: float | None = None
    choice_bits: float = 0.0
    test_from: str = ""


@dataclass(frozen=True)
class TrainingClient:
    """One training.

    Parameters
    ----------
    exclude : sequence of str
        Features that must not be used, of any party.
    on_stage : callable
        Called with "align", "tree" and "store".
    times : ndarray of str or None
        ``(n,)``, in the table's order: when each record is from, as of :func:`backend.data.table.read_times`.
    resumed : Resumed
        Rounds of the same training that were finished before it was broken off.
    weights : ndarray of float64 or None
        ``(n,)``, in the table's order: how much each record counts, as of :func:`backend.data.table.read_weights`.
    sealed_at : float
        Hosts keep the model sealed until no larger share of its scores fits one path; :data:`OPEN` = nobody measures it.
    """

    federation: Federation
    table: PartyTable
    parameters: Parameters
    session: Session
    exclude: Sequence[str] = ()
    on_stage: Callable[[str], None] = lambda stage: None
    on_tree: Callable[[TreeProgress], None] = lambda progress: None
    times: NDArray[np.str_] | None = None
    resumed: Resumed = field(default_factory=FromTheStart)
    weights: NDArray[np.float64] | None = None
    sealed_at: float = OPEN

    def train(self, labels: NDArray[np.float64], key: TrainingKeySide | None) -> Trained:
        """Align, grow, have every Host keep its partial model, and measure the test rows.

        Parameters
        ----------
        labels : ndarray of float64
            ``(n,)``, in the table's order: 0/1, number of the class, or value.
        key : TrainingKeySide or None
            None for an algorithm that sends no ciphertexts.

        Raises
        ------
        FederationError
            Too few or too many joint records, or training rows of one class only.
        Cancelled, PartyUnreachable, SecurityError
            See :meth:`backend.protocols.transport.channel.Session.expect`.
        """
        guest = self.federation.guest.name
        session = self.session
        if key is not None:
            session.broadcast(OfferKey(session.name, key.scheme, key.offer()))
        self.on_stage("align")
        with work.part(0.0, ALIGNED):
            rows, alignment = align(session, guest, self.table.ids, self.parameters.alignment)
        joint = self._joint(rows, labels[rows], key or PlainKeySide())
        self.on_stage("tree")
        with work.part(ALIGNED, GROWN_SHARE):
            try:
                grown = grow(joint, self.parameters)
            except WrongAnswer as error:
                self._report_wrong_answer(error)
                raise
        self.on_stage("store")
        model = self._model(joint, grown)
        model_id = model_name(self.federation.name, model)
        hashes = self._have_kept(model_id, model)
        scores = self._scores(joint, grown, model_id, model)
        names = [PARTS[part] for part in joint.parts]
        labels, margins, weights = scores[PARTS[TEST]]
        if joint.task == "binary":
            positive_rate = float(joint.labels.mean())
        else:
            positive_rate = float("nan")
        test_from = ""
        if self.times is not None:
            times_of_test = self.times[rows][joint.parts == TEST]
            test_from = str(np.sort(times_of_test)[0])
        return Trained(
            model_id=model_id,
            model=model,
            metrics=measure(labels, margins, PARTS[TEST], grown.outputs, weights),
            parts={name: names.count(name) for name in PARTS},
            part_of=dict(zip(joint.table.ids, names, strict=True)),
            host_hashes=hashes,
            positive_rate=positive_rate,
            alignment=alignment,
            scores=scores,
            label_bits=grown.label_bits,
            choice_bits=grown.choice_bits,
            test_from=test_from,
        )

    def _report_wrong_answer(self, error: WrongAnswer) -> None:
        """Log that a Host's answer cannot be true, and tell the Host, whose operator finds it in the Host's log."""
        why = error.remarks[0]
        _log.warning("training %s: %s", self.session.name, why.loggable())
        for host in error.hosts:
            with suppress(PartyUnreachable):
                self.session.send(host, ReportWrongAnswer(self.session.name, why))

    def _joint(self, rows: NDArray[np.intp], labels: NDArray[np.float64], key: TrainingKeySide) -> Joint:
        """Return the records that all parties have, divided into training, validation and test rows."""
        if not MIN_ROWS <= len(rows) <= MAX_ROWS:
            raise FederationError("joint_records_outside_limits", least=MIN_ROWS, most=MAX_ROWS, n=len(rows))
        times = None if self.times is None else self.times[rows]
        parts = draw_parts(len(rows), self.parameters.seed, times)
        label = self.federation.label
        if len(np.unique(labels[parts == TRAINING])) < 2:
            n_training = int((parts == TRAINING).sum())
            if label.task == "number":
                raise FederationError("training_rows_of_one_value", rows=n_training)
            raise FederationError("training_rows_of_one_class", rows=n_training)
        guest = self.federation.guest.name
        features: dict[str, tuple[Feature, ...]] = {}
        excluded: dict[str, tuple[str, ...]] = {}
        for party in self.federation.parties:
            if party.name in (guest, *self.session.hosts):
                features[party.name] = tuple(f for f in party.features if f.name not in self.exclude)
                excluded[party.name] = tuple(f.name for f in party.features if f.name in self.exclude)
        return Joint(
            conversation=self.session,
            key=key,
            guest=guest,
            features=features,
            excluded=excluded,
            table=self.table.take(rows),
            labels=labels,
            task=label.task,
            classes=label.classes,
            parts=parts,
            on_tree=self.on_tree,
            resumed=self.resumed,
            weights=None if self.weights is None else self.weights[rows],
        )

    def _model(self, joint: Joint, grown: Grown) -> GuestModel:
        features_in_rules = {rule.feature for rule in grown.rules.values()}
        guest_features = [feature for feature in joint.features[joint.guest] if feature.name in features_in_rules]
        dictionary = []
        for party, features in joint.features.items():
            dictionary += [(party, feature) for feature in features]
        return GuestModel(
            guest=joint.guest,
            hosts=self.session.hosts,
            trees=grown.trees,
            base_scores=grown.base_scores,
            score_bits=self.parameters.score_bits,
            dictionary=tuple(dictionary),
            rules=grown.rules,
            outputs=grown.outputs.for_labels(joint.labels[joint.training]),
            sides_hidden=grown.sides_hidden,
            medians=medians(guest_features, joint.table.columns, joint.training),
            bands=_bands(joint, grown),
        )

    def _have_kept(self, model_id: str, model: GuestModel) -> dict[str, str]:
        """Have every Host store its partial model; return the models' content hashes by Host."""
        session = self.session
        layout = Packing(model).layout
        shapes = tuple(tuple((i, o, left, right) for i, o, left, right in dump_skeleton(s)) for s in model.skeletons)
        numbers = layout.score_bits, layout.slots, layout.slot_bits, layout.scale
        guest_hash = content_hash(dump_guest(model))
        about = model_id, model.guest, model.hosts, shapes, *numbers, guest_hash, self.sealed_at
        session.broadcast(KeepModel(session.name, *about))
        answers = session.expect_each(ModelKept, session.hosts)
        return {host: answers[host].content_hash for host in session.hosts}

    def _scores(self, joint: Joint, grown: Grown, model_id: str, model: GuestModel) -> Scores:
        """Released scores of every part where growing gave them; else the test rows are scored like anybody."""
        if grown.units is not None:
            released = grown.units / float(1 << self.parameters.score_bits)
            rows_of = {name: joint.parts == part for part, name in enumerate(PARTS)}
            return {
                name: (joint.labels[rows], released[rows], _of(joint.weights, rows)) for name, rows in rows_of.items()
            }
        test = joint.parts == TEST
        compiled = CompiledGuest(model)
        records = joint.table.take(np.flatnonzero(test))
        client = ScoringClient(joint.guest, model_id, compiled, records, PlainKeySide(), self.session)
        margins = compiled.margins(client.score().units)
        return {PARTS[TEST]: (joint.labels[test], margins, _of(joint.weights, test))}


def _of(weights: NDArray[np.float64] | None, rows: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """Return the sample weights of some records, if there are any."""
    return None if weights is None else weights[rows]


def model_name(federation: str, model: GuestModel) -> str:
    """Return a model's id: one for a federation and model."""
    return f"m{content_hash(federation + dump_guest(model))[:10]}"


def _bands(joint: Joint, grown: Grown) -> ScoreBands | None:
    """Training records by leaf and score, where growing gave both and a score is one sum."""
    if not grown.leaves or grown.units is None or grown.outputs.count > 1 or grown.outputs.aggregation != "sum":
        return None
    rows = joint.training
    return score_bands(grown.trees, [leaf[rows] for leaf in grown.leaves], grown.units[rows, 0])


def draw_name(ids: Sequence[str], hosts: Sequence[str], seed: int, times: NDArray[np.str_] | None = None) -> str:
    """Return a name of how a Guest divides its records: SHA-256 of all that :func:`draw_parts` follows from, in hexadecimal.

    Parameters
    ----------
    hosts : sequence of str
        With whom it trains: joint records are those that all of them hold.
    """
    dated = [] if times is None else times.tolist()
    return sha256(repr((seed, list(hosts), list(ids), dated)).encode()).hexdigest()


def draw_parts(n: int, seed: int, times: NDArray[np.str_] | None = None) -> NDArray[np.int8]:
    """0 = training, 1 = validation, 2 = test for ``n`` rows: 60/20/20 by a seeded shuffle (Fed-EINI §V-A).

    With `times` the test rows are those of the latest periods that hold a fifth of the rows or more, and only the earlier ones are
    shuffled.

    Raises
    ------
    FederationError
        The latest period that completes a fifth makes it more than a third: too few earlier records are left.
    """
    order = np.random.default_rng(seed).permutation(n)
    if times is not None:
        latest = times >= np.sort(times)[::-1][max(0, math.ceil((1 - SHARES[0] - SHARES[1]) * n - 1e-9) - 1)]
        # Three quarters of the earlier records are trained on, and Hosts ask for half of all.
        if 3 * int(latest.sum()) > n:
            raise FederationError("latest_periods_too_large", latest=int(latest.sum()), rows=n)
        earlier = order[~latest[order]]
        cut = round(SHARES[0] / (SHARES[0] + SHARES[1]) * len(earlier))
        parts = np.full(n, TEST, dtype=np.int8)
        parts[earlier[:cut]], parts[earlier[cut:]] = TRAINING, VALIDATION
        return parts
    parts = np.full(n, TEST, dtype=np.int8)
    first = round(SHARES[0] * n)
    second = round((SHARES[0] + SHARES[1]) * n)
    parts[order[:first]], parts[order[first:second]] = TRAINING, VALIDATION
    return parts
