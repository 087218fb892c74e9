"""A Host's side of training: rules that the gate asks, handlers that answer. It ends with the Host's partial model in its store.

A rule reads a message against what was approved and how the trees have grown (:mod:`backend.protocols.training.host_history`); it sees no
value. If the gate refuses a message after its rule, what the rule has taken down stays: a node that was asked for is not asked for again.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import half_slot
from backend.crypto.interface import NodePublicSide, PairPublicSide
from backend.data.column_counts import reference_of
from backend.data.dictionary import Feature
from backend.errors import SecurityError
from backend.protocols.approvals.messages import NOT_MEASURED, AskTraining
from backend.protocols.host_state import HostModels, HostSession, Sealed
from backend.protocols.scoring.dither import check_layout
from backend.protocols.terms.approvals import training_request
from backend.protocols.terms.noise import Noise
from backend.protocols.terms.permit import Ask, Asked, Charge, Kind, Permit, Reply
from backend.protocols.terms.prices import approved_question, approved_structure, training_question
from backend.protocols.terms.records import Opened, Rows
from backend.protocols.training.binned import Shuffled
from backend.protocols.training.growth_record import PEOPLE, Terms
from backend.protocols.training.host_history import TrainingHistory
from backend.protocols.training.host_splits import HostTraining
from backend.protocols.training.messages import (
    AskBinSums,
    AskNodeSums,
    Gradients,
    KeepModel,
    ModelKept,
    MoreGradients,
    NodePairs,
    StartRanks,
    StartTraining,
    TakeRankSplits,
    TakeSplit,
)
from backend.protocols.training.opboost.host_side import HostRanks, NoisyColumns, noise_of
from backend.protocols.training.opboost.maps import Noise as RankNoise
from backend.protocols.training.parameters import BINS
from backend.protocols.training.row_sets import Flags
from backend.protocols.transport.codec import encode
from backend.protocols.transport.message import Message
from backend.store.accountant import Question
from backend.store.trainings import KeptModel, Note, Spending
from backend.trees.ensemble import HostModel, Layout, NodeKey, Skeleton
from backend.trees.serialization import dump_host, load_skeleton

NOISE = "noise of ranks"  # the secret that it follows from
ORDER = "order of bins"  # the secret that hidden orders follow from
MAX_EPSILON = 1.0  # a step of distance, all settings of the noise together; beyond it hardly anything is hidden
MAX_ANSWERS = 3  # to the sums of one node: a tree is grown again after each break

NO_TRAINING = "no_training"


# Rules: what the gate reads of a message. No value of a record is here.


def read_start(request: Asked) -> Ask:
    """Read the start of a training; all that its bins can reveal about each person is booked.

    Raises
    ------
    SecurityError
        If it differs from the approved terms, comes before a key or the joint records, or uses too few of them.
    """
    start: StartTraining = request.message
    session = request.session
    approval = training_request(request)
    approved = session.kept(AskTraining)
    if approval is not None and approved is not None:
        terms = (approved.bins, sorted(approved.exclude), approved.hide_order)
        _check_terms(request, (start.bins, sorted(start.exclude), start.hide_order) == terms)
    if session.cipher is None:
        raise SecurityError("no_key_before_training")
    if not isinstance(session.cipher, PairPublicSide | NodePublicSide):
        raise SecurityError("cipher_cannot_train", cipher=session.cipher.scheme)
    if session.rows is None:
        raise SecurityError("no_alignment_before_training")
    if not BINS[0] <= start.bins <= BINS[1]:
        raise SecurityError("bins_outside_limits", bins=start.bins, low=BINS[0], high=BINS[1])
    limited = not request.floors.synthetic
    if start.request:
        earlier_model = request.models.trainings.kept(request.sender, start.request)
    else:
        earlier_model = None
    history = TrainingHistory(
        start,
        len(session.rows),
        terms=None if approved is None else Terms(approved.trees, approved.depth),
        group_size=request.floors.people(PEOPLE) if limited else 1,
        named_share=request.floors.named if limited else 0.0,
        stores_nodes=bool(start.request) and limited,
        has_ended=earlier_model is not None and not earlier_model.sealed,
    )
    features = _features(request, start.exclude)
    columns = tuple(feature.name for feature in features)
    notes = _rows_notes(request, session.rows, history.training, approved)
    if start.request:
        # It may continue after a break, but only with the same terms and records.
        terms_and_records = sha256(encode(replace(start, conversation="")))
        terms_and_records.update(request.roster.digest(session.rows, columns).encode())
        notes.append(Note(start.request, terms_and_records.hexdigest(), "training_changed"))
    question = _question(request, start.request, features, f"bins {start.bins}", start.training)
    return Ask(
        opens={"joint": Rows(rows=session.rows, columns=columns)},
        approval=approval,
        amount=1,
        volume_of=start.request,
        charges=[Charge(question, all_or_none=True)],
        notes=notes,
        subject=_Beginning(history, features),
    )


@dataclass(frozen=True, repr=False)
class _Beginning:
    """A training as it begins."""

    history: TrainingHistory
    features: Sequence[Feature]


def _features(request: Asked, exclude: Collection[str]) -> list[Feature]:
    """Return the Host's features without those that are left out."""
    return [feature for feature in request.features.values() if feature.name not in exclude]


def _rows_notes(request: Asked, rows: NDArray[np.intp], training: Flags, approved: AskTraining | None) -> list[Note]:
    """Return the note that binds an approval to its training rows; the same bins of other rows would reveal the difference.

    Raises
    ------
    SecurityError
        If too few of the joint records are training rows.
    """
    count = int(np.count_nonzero(training))
    min_rows = ceil(request.floors.joint_share * len(rows))
    if not request.floors.synthetic and count < min_rows:
        raise SecurityError("few_training_rows", rows=count, least=min_rows)
    if approved is None:
        return []
    rows_digest = sha256(np.sort(rows[training]).astype("<i8").tobytes()).hexdigest()
    name = f"rows {approved_structure(request.session.guest, approved, request.facts)[:50]}"
    return [Note(name, rows_digest, "training_rows_changed", error=SecurityError)]


def _question(request: Asked, request_id: str, features: Sequence[Feature], *how: bytes | str) -> Question:
    """Return the booked question of a training: all that it can reveal about each person. A training that continues is booked once.

    An approved training was booked with its approval, under the approved terms. Otherwise its bins depend on `how`, the joint records
    and the Host's records alone.
    """
    guest = request.session.guest
    approved = request.session.kept(AskTraining)
    if approved is not None:
        structure = approved_structure(guest, approved, request.facts)
        return approved_question(guest, request_id, structure, len(features), request.records)
    rows = request.session.rows
    joint = b"" if rows is None else rows.astype("<i8").tobytes()
    names = "\0".join(feature.name for feature in features)
    return training_question(guest, request_id, len(features), request.records, joint, names, *how)


def _check_terms(request: Asked, fits: bool, trees: Collection[int] = ()) -> None:
    """Raise SecurityError if a training departs from the terms that the Host's operator has approved."""
    approved = request.session.kept(AskTraining)
    if not request.operator or approved is None:
        return
    if not fits or not all(0 <= tree < approved.trees for tree in trees):
        raise SecurityError("beyond_the_training", kind=type(request.message).__name__)


def _growing(request: Asked, trees: Collection[int] = ()) -> TrainingHistory:
    """Return the training that a message continues; raise SecurityError if there is none, or not of these trees."""
    _check_terms(request, True, trees)
    if request.session.kept(HostRanks) is not None:
        raise SecurityError("training_on_ranks")
    return request.session.need(TrainingHistory, NO_TRAINING)


def _growing_further(request: Asked, trees: Collection[int]) -> TrainingHistory:
    """Return the training as :func:`_growing`; raise SecurityError also if it has ended: its splits are repeated, but no sums answered."""
    history = _growing(request, trees)
    if history.has_ended:
        raise SecurityError("training_not_open")
    return history


def _pair_cipher(request: Asked, code: str) -> PairPublicSide:
    """Return the key under which pairs are encrypted; raise SecurityError(code) if it encrypts node by node."""
    cipher = request.session.cipher
    if not isinstance(cipher, PairPublicSide):
        raise SecurityError(code)
    return cipher


def read_gradients(request: Asked) -> Ask:
    """Read the rows of the numbers; raise SecurityError if one is not a training row."""
    message: Gradients = request.message
    approval = training_request(request)
    history = _growing(request, (message.tree,))
    _pair_cipher(request, "gradients_under_node_key")
    return Ask(approval=approval, subject=history.training_rows(message.rows))


def read_more_gradients(request: Asked) -> Ask:
    """Read the next piece of the numbers; raise SecurityError if none is expected."""
    approval = training_request(request)
    if _growing(request).pairs is None:
        raise SecurityError("piece_out_of_order")
    return Ask(approval=approval)


def read_bin_sums(request: Asked) -> Ask:
    """Read the nodes whose sums are requested; raise SecurityError if the trees have not grown to them, or one has too few people."""
    message: AskBinSums = request.message
    approval = training_request(request)
    history = _growing_further(request, message.trees)
    _pair_cipher(request, "sums_without_gradients")
    parts = (message.trees, message.nodes, message.rows, message.features, message.batches, message.parents)
    if history.pairs is None or len({len(part) for part in parts}) > 1:
        raise SecurityError("sums_without_gradients")
    batches = len(history.pairs.batches)
    if not all(0 <= batch < batches for requested in message.batches for batch in requested):
        raise SecurityError("sums_without_gradients")
    half = half_slot(int(np.count_nonzero(history.sent)))
    rows = []
    notes: list[Note] = []
    for i, (tree, node, parent) in enumerate(zip(message.trees, message.nodes, message.parents, strict=True)):
        counted = history.sent_rows(message.rows[i])
        history.growth.begin_sums(tree, node, parent, counted, history.least(2 * half * len(message.batches[i])))
        rows.append(counted)
        about = [parent, message.rows[i], message.features[i], message.batches[i]]
        notes += _node_notes(history, f"{tree}.{node}.sums", repr(about).encode())
    return Ask(approval=approval, notes=notes, subject=rows)


def _node_notes(history: TrainingHistory, name: str, about: bytes) -> list[Note]:
    """Return what is stored about a node, so that a training that goes on after a break asks nothing else.

    About people who need no protection nothing is stored.
    """
    if not history.stores_nodes:
        return []
    return [Note(f"{history.request}.{name}", sha256(about).hexdigest(), "node_answered_otherwise", MAX_ANSWERS)]


def read_node_sums(request: Asked) -> Ask:
    """Read the node whose sums are requested, under a key that encrypts node by node; raises as :func:`read_bin_sums`."""
    message: AskNodeSums = request.message
    approval = training_request(request)
    history = _growing_further(request, (message.tree,))
    cipher = request.session.cipher
    if not isinstance(cipher, NodePublicSide):
        raise SecurityError("rows_under_pair_key")
    inside = history.training_rows(message.rows)
    min_people = history.least(cipher.number_bits * max(message.numbers, 0))
    history.growth.begin_sums(message.tree, message.node, message.parent, inside, min_people)
    about = (message.parent, message.rows, message.features, message.numbers)
    notes = _node_notes(history, f"{message.tree}.{message.node}.sums", repr(about).encode())
    return Ask(approval=approval, notes=notes, subject=inside)


def read_node_pairs(request: Asked) -> Ask:
    """Read rows of the node that was begun."""
    approval = training_request(request)
    _growing(request)
    return Ask(approval=approval)


def read_split(request: Asked) -> Ask:
    """Read which node is split; raise SecurityError if it was split before, or its rows differ from those of its sums."""
    message: TakeSplit = request.message
    approval = training_request(request)
    history = _growing(request, (message.tree,))
    inside = history.rows(message.rows)
    notes = _node_notes(history, f"{message.tree}.{message.node}.split", encode(replace(message, conversation="")))
    if history.request and not history.growth.awaits_split(message.tree, message.node):
        # It may be the same split as before a break: its sums are not requested again.
        trainings = request.models.trainings
        if all(trainings.noted(request.sender, note.name) == note.digest for note in notes):
            return Ask(approval=approval, subject=inside)
    history.growth.begin_split(message.tree, message.node, message.parent, inside, history.group_size)
    return Ask(approval=approval, notes=notes, subject=inside)


def read_ranks(request: Asked) -> Ask:
    """Read how values are to be desensitised.

    Raises
    ------
    SecurityError
        If it differs from the approved terms, comes before the joint records, or all noise together would cost too much.
    """
    start: StartRanks = request.message
    session = request.session
    approval = training_request(request)
    approved = session.kept(AskTraining)
    if approval is not None and approved is not None:
        same_noise = approved.noise_terms == start.noise_terms
        same_features = sorted(approved.exclude) == sorted(start.exclude)
        _check_terms(request, approved.bins == 0 and same_features and same_noise)
    if session.rows is None:
        raise SecurityError("no_alignment_before_ranks")
    noise = noise_of(start)
    setting = repr(noise.canonical)
    features = _features(request, start.exclude)
    question = _question(request, "", features, f"ranks {setting}", *sorted(start.exclude))
    return Ask(
        opens={"all": Rows(columns=tuple(feature.name for feature in features))},
        approval=approval,
        amount=1,
        charges=[Charge(question, all_or_none=True)],
        spends=None if request.floors.synthetic else Spending(setting, noise.epsilon, MAX_EPSILON),
        subject=_Ranking(features, noise, session.rows),
    )


@dataclass(frozen=True, repr=False)
class _Ranking:
    """Ranks as they are asked for: of which features, with which noise, of which rows."""

    features: Sequence[Feature]
    noise: RankNoise
    rows: NDArray[np.intp]


def read_rank_splits(request: Asked) -> Ask:
    """Read where ranks are split; raise SecurityError if no ranks were sent."""
    message: TakeRankSplits = request.message
    approval = training_request(request)
    _check_terms(request, True, message.trees)
    if request.session.kept(TrainingHistory) is not None:
        raise SecurityError("training_not_on_ranks")
    request.session.need(HostRanks, NO_TRAINING)
    return Ask(approval=approval)


def read_keep_model(request: Asked) -> Ask:
    """Read the model that a training made.

    Raises
    ------
    SecurityError
        If it is not the model that grew here, names other parties, or the training made another model before.
    """
    message: KeepModel = request.message
    approval = training_request(request)
    approved = request.session.kept(AskTraining)
    if approved is not None:
        _check_terms(request, len(message.skeletons) <= approved.trees)
    session = request.session
    history = session.kept(TrainingHistory)
    if history is None:
        splits = set(session.need(HostRanks, NO_TRAINING).rules)
        request_id = ""
    else:
        splits = history.splits
        request_id = history.request
    # Otherwise fewer of the same trees under another name would evade the query budget.
    if session.kept(ModelKept) is not None:
        raise SecurityError("model_kept_already")
    digest = sha256(encode(replace(message, conversation=""))).hexdigest()
    if request_id:
        earlier_model = request.models.trainings.kept(request.sender, request_id)
    else:
        earlier_model = None
    if earlier_model is not None and earlier_model.digest == digest:
        # The answer was lost, or the Guest was killed before it had stored it.
        return Ask(approval=approval, subject=earlier_model)
    request.models.check_owner(message.model_id, request.sender)
    skeletons = tuple(load_skeleton(forks) for forks in message.skeletons)
    if earlier_model is not None:
        _check_more_trees(request.models, earlier_model, skeletons)
    if approved is not None and message.most_named not in (approved.most_named, NOT_MEASURED[1]):
        raise SecurityError("beyond_the_training", kind=KeepModel.__name__)
    own_splits = _own_splits(request, skeletons)
    if own_splits != {key for key in splits if key[0] < len(skeletons)}:
        raise SecurityError("model_of_other_splits")
    if history is not None:
        history.growth.check_model(skeletons)
    min_digits = 0 if request.floors.synthetic else request.floors.score_bits
    layout = check_layout(Layout(message.score_bits, message.slots, message.slot_bits, message.scale), min_digits)
    features = tuple(request.features.values())
    return Ask(
        opens={"all": Rows(columns=tuple(feature.name for feature in features))},
        approval=approval,
        subject=_Keeping(digest, request_id, skeletons, layout, features, message.most_named, earlier_model),
    )


def _check_more_trees(models: HostModels, earlier_model: KeptModel, skeletons: Sequence[Skeleton]) -> None:
    """Raise SecurityError unless a model is the training's earlier one, which is still sealed, with more trees."""
    if not earlier_model.sealed or models.sealed(earlier_model.model_id) is None:
        raise SecurityError("training_gave_another_model")
    first = models.half(earlier_model.model_id).skeletons
    if len(skeletons) <= len(first) or tuple(skeletons[: len(first)]) != tuple(first):
        raise SecurityError("training_gave_another_model")


@dataclass(frozen=True, repr=False)
class _Keeping:
    """A model that is to be kept.

    Attributes
    ----------
    digest : str
        SHA-256 of the message.
    request : str
        The Guest's name for the training; empty = it does not go on.
    features : tuple of Feature
        All of the Host.
    most_named : float
        Share of scores that may fit one path before it is opened; -1 = it is open at once.
    earlier_model : KeptModel, optional
        The sealed one in whose place it is kept, which has fewer trees.
    """

    digest: str
    request: str
    skeletons: tuple[Skeleton, ...]
    layout: Layout
    features: tuple[Feature, ...]
    most_named: float
    earlier_model: KeptModel | None


def _own_splits(request: Asked, skeletons: Sequence[Skeleton]) -> set[NodeKey]:
    """Return this Host's splits of a model; raise SecurityError if it names other parties than those of the training."""
    message: KeepModel = request.message
    parties = (message.guest, *message.hosts)
    owners = {fork.owner for skeleton in skeletons for fork in skeleton.forks.values()}
    host = request.models.host
    if message.guest != request.sender or len(set(parties)) < len(parties) or not owners | {host} <= set(parties):
        raise SecurityError("model_of_other_parties")
    own_splits: set[NodeKey] = set()
    for tree, skeleton in enumerate(skeletons):
        own_splits |= {(tree, node) for node, fork in skeleton.forks.items() if fork.owner == host}
    return own_splits


# Handlers: what is answered to a message that has a permit.


def answer_start(permit: Permit, opened: Opened, message: StartTraining, noise: Noise) -> Reply:
    """Bin the joint records; answer how many bins each feature has."""
    beginning: _Beginning = permit.ask.subject
    session = permit.session
    if message.hide_order:
        shuffled = _shuffled(noise, message.request)
    else:
        shuffled = None
    training = HostTraining(beginning.features, opened["joint"].columns, message, beginning.history, shuffled=shuffled)
    session.drop(HostRanks)
    session.keep(TrainingHistory, beginning.history)
    session.keep(HostTraining, training)
    yield permit.guest, training.feature_bins(message.conversation)


def _shuffled(noise: Noise, request: str) -> Shuffled:
    """Return how bins are numbered if their order is hidden: at random, the same way in a training that goes on after a break."""
    key = hmac.digest(noise.secret(ORDER), (request or noise.salt()).encode(), "sha256")

    def shuffled(feature: str, numbers: Sequence[int]) -> list[int]:
        return sorted(numbers, key=lambda number: hmac.digest(key, f"{number} {feature}".encode(), "sha256"))

    return shuffled


def answer_gradients(permit: Permit, opened: Opened, message: Gradients, noise: Noise) -> Reply:
    """Take the first piece of the encrypted pairs."""
    _records(permit.session).take_gradients(_cipher(permit), permit.ask.subject, message.pairs)
    return iter(())


def _records(session: HostSession) -> HostTraining:
    """Return the records of a training that was begun."""
    return session.need(HostTraining, NO_TRAINING)


def _cipher(permit: Permit) -> Any:
    """Return the key that was offered; the rule has looked which kind it is."""
    return permit.session.cipher


def answer_more_gradients(permit: Permit, opened: Opened, message: MoreGradients, noise: Noise) -> Reply:
    """Take the next piece of the encrypted pairs."""
    history = permit.session.need(TrainingHistory, NO_TRAINING)
    if history.pairs is not None:
        history.pairs.add(message.pairs)
    return iter(())


def answer_bin_sums(permit: Permit, opened: Opened, message: AskBinSums, noise: Noise) -> Reply:
    """Add up ciphertexts by bin."""
    yield permit.guest, _records(permit.session).bin_sums(_cipher(permit), message, permit.ask.subject)


def answer_node_sums(permit: Permit, opened: Opened, message: AskNodeSums, noise: Noise) -> Reply:
    """Begin the sums of a node."""
    _records(permit.session).start_node(_cipher(permit), message, permit.ask.subject)
    return iter(())


def answer_node_pairs(permit: Permit, opened: Opened, message: NodePairs, noise: Noise) -> Reply:
    """Take rows of the node that was begun; send its sums once all have come."""
    sums = _records(permit.session).take_node(message)
    if sums is not None:
        yield permit.guest, sums


def answer_split(permit: Permit, opened: Opened, message: TakeSplit, noise: Noise) -> Reply:
    """Store a split; answer which joint records go left."""
    yield permit.guest, _records(permit.session).take_split(message, permit.ask.subject)


def answer_ranks(permit: Permit, opened: Opened, message: StartRanks, noise: Noise) -> Reply:
    """Send the ranks of desensitised values."""
    ranking: _Ranking = permit.ask.subject
    session = permit.session
    columns = NoisyColumns(opened["all"], ranking.features, noise.secret(NOISE))
    session.drop(TrainingHistory)
    session.drop(HostTraining)
    ranks = session.keep(HostRanks, HostRanks(columns, ranking.rows, message))
    yield permit.guest, ranks.ranks(message.conversation)


def answer_rank_splits(permit: Permit, opened: Opened, message: TakeRankSplits, noise: Noise) -> Reply:
    """Store splits of ranks."""
    permit.session.need(HostRanks, NO_TRAINING).take_splits(message)
    return iter(())


@dataclass(frozen=True, repr=False)
class TrainedModel:
    """A model that a training has given, until it is stored."""

    model: HostModel
    columns: dict[str, Any]


def answer_keep_model(permit: Permit, opened: Opened, message: KeepModel, noise: Noise) -> Reply:
    """Make the Host's partial model from the splits that it stored; answer its hash."""
    session = permit.session
    keeping: _Keeping | KeptModel = permit.ask.subject
    session.drop(TrainedModel)
    if isinstance(keeping, KeptModel):
        yield permit.guest, ModelKept(message.conversation, message.model_id, keeping.content_hash)
        return
    training = session.kept(HostTraining) or session.need(HostRanks, NO_TRAINING)
    count = len(keeping.skeletons)
    rules = {key: rule for key, rule in training.rules.items() if key[0] < count}  # early stopping drops trees
    features_in_rules = {rule.feature for rule in rules.values()}
    model = HostModel(
        permit.request.models.host,
        message.guest,
        message.hosts,
        keeping.skeletons,
        rules,
        noise.salt(),
        keeping.layout,
        message.guest_hash,
        {name: pair for name, pair in training.medians.items() if name in features_in_rules},
    )
    columns = opened["all"].columns
    counts = {}
    for feature in keeping.features:
        counts[feature.name] = reference_of(feature, columns[feature.name])
    session.keep(TrainedModel, TrainedModel(model, counts))
    yield permit.guest, ModelKept(message.conversation, message.model_id, sha256(dump_host(model).encode()).hexdigest())


def store_model(models: HostModels, permit: Permit, reply: Message) -> None:
    """Store the model that a training made; a model that was stored before stays."""
    session = permit.session
    keeping: _Keeping | KeptModel = permit.ask.subject
    trained = session.kept(TrainedModel)
    if not isinstance(reply, ModelKept):
        return
    if trained is not None and isinstance(keeping, _Keeping):
        # The same model may be trained again after it was opened.
        sealed = keeping.most_named != NOT_MEASURED[1] and not models.is_open(reply.model_id)
        if sealed:
            approval = permit.ask.approval
            training = "" if approval is None else approval.subject
            models.seal(reply.model_id, Sealed(keeping.most_named, training))
        models.put(trained.model, reply.model_id)
        models.note_training(reply.model_id, trained.columns)
        if keeping.request:
            kept_model = KeptModel(keeping.digest, reply.content_hash, reply.model_id, sealed)
            models.trainings.keep(permit.guest, keeping.request, kept_model)
        if keeping.earlier_model is not None:
            models.discard(keeping.earlier_model.model_id)
    session.drop(TrainedModel)
    session.keep(ModelKept, reply)


TRAINING_KINDS = {
    StartTraining: Kind(read_start, answer_start),
    Gradients: Kind(read_gradients, answer_gradients),
    MoreGradients: Kind(read_more_gradients, answer_more_gradients),
    AskBinSums: Kind(read_bin_sums, answer_bin_sums),
    AskNodeSums: Kind(read_node_sums, answer_node_sums),
    NodePairs: Kind(read_node_pairs, answer_node_pairs),
    TakeSplit: Kind(read_split, answer_split),
    StartRanks: Kind(read_ranks, answer_ranks),
    TakeRankSplits: Kind(read_rank_splits, answer_rank_splits),
    KeepModel: Kind(read_keep_model, answer_keep_model, store=store_model),
}
