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


def read_start(asked: Asked) -> Ask:
    """Read what begins a training; what is booked is what its bins can tell about everybody.

    Raises
    ------
    SecurityError
        If it is not what was approved, comes before a key or the joint records, or takes too few of them.
    """
    start: StartTraining = asked.message
    session = asked.session
    approval = training_request(asked)
    approved = session.kept(AskTraining)
    if approval is not None and approved is not None:
        terms = (approved.bins, sorted(approved.exclude), approved.hide_order)
        _check_terms(asked, (start.bins, sorted(start.exclude), start.hide_order) == terms)
    if session.cipher is None:
        raise SecurityError("no_key_before_training")
    if not isinstance(session.cipher, PairPublicSide | NodePublicSide):
        raise SecurityError("cipher_cannot_train", cipher=session.cipher.scheme)
    if session.rows is None:
        raise SecurityError("no_alignment_before_training")
    if not BINS[0] <= start.bins <= BINS[1]:
        raise SecurityError("bins_outside_limits", bins=start.bins, low=BINS[0], high=BINS[1])
    limited = not asked.floors.synthetic
    if start.request:
        given = asked.models.trainings.kept(asked.sender, start.request)
    else:
        given = None
    history = TrainingHistory(
        start,
        len(session.rows),
        terms=None if approved is None else Terms(approved.trees, approved.depth),
        group_size=asked.floors.people(PEOPLE) if limited else 1,
        named=asked.floors.named if limited else 0.0,
        stores_nodes=bool(start.request) and limited,
        has_ended=given is not None and not given.sealed,
    )
    features = _features(asked, start.exclude)
    columns = tuple(feature.name for feature in features)
    notes = _rows_notes(asked, session.rows, history.training, approved)
    if start.request:
        # It may go on after a break: the same terms and records, or not at all.
        terms_and_records = sha256(encode(replace(start, conversation="")))
        terms_and_records.update(asked.roster.digest(session.rows, columns).encode())
        notes.append(Note(start.request, terms_and_records.hexdigest(), "training_changed"))
    question = _question(asked, start.request, features, f"bins {start.bins}", start.training)
    return Ask(
        opens={"joint": Rows(rows=session.rows, columns=columns)},
        approval=approval,
        amount=1,
        volume_of=start.request,
        charges=[Charge(question, whole=True)],
        notes=notes,
        subject=_Beginning(history, features),
    )


@dataclass(frozen=True, repr=False)
class _Beginning:
    """A training as it begins."""

    history: TrainingHistory
    features: Sequence[Feature]


def _features(asked: Asked, exclude: Collection[str]) -> list[Feature]:
    """Return the Host's features without those that are left out."""
    return [feature for feature in asked.features.values() if feature.name not in exclude]


def _rows_notes(asked: Asked, rows: NDArray[np.intp], training: Flags, approved: AskTraining | None) -> list[Note]:
    """Return the note that binds an approval to its training rows; the same bins with others would be a question about the difference.

    Raises
    ------
    SecurityError
        If too few of the joint records are training rows.
    """
    count = int(np.count_nonzero(training))
    least = ceil(asked.floors.joint_share * len(rows))
    if not asked.floors.synthetic and count < least:
        raise SecurityError("few_training_rows", rows=count, least=least)
    if approved is None:
        return []
    chosen = sha256(np.sort(rows[training]).astype("<i8").tobytes()).hexdigest()
    name = f"rows {approved_structure(asked.session.guest, approved, asked.facts)[:50]}"
    return [Note(name, chosen, "training_rows_changed", error=SecurityError)]


def _question(asked: Asked, request: str, features: Sequence[Feature], *how: bytes | str) -> Question:
    """Return what is booked for a training: what it can tell about each person. One that goes on is booked once.

    One that was approved was booked then, under what was approved. Otherwise `how` and the joint records are all that its bins follow
    from, besides the records.
    """
    guest = asked.session.guest
    approved = asked.session.kept(AskTraining)
    if approved is not None:
        structure = approved_structure(guest, approved, asked.facts)
        return approved_question(guest, request, structure, len(features), asked.records)
    rows = asked.session.rows
    joint = b"" if rows is None else rows.astype("<i8").tobytes()
    names = "\0".join(feature.name for feature in features)
    return training_question(guest, request, len(features), asked.records, joint, names, *how)


def _check_terms(asked: Asked, fits: bool, trees: Collection[int] = ()) -> None:
    """Raise SecurityError if a training departs from what the Host's operator has approved."""
    approved = asked.session.kept(AskTraining)
    if not asked.operator or approved is None:
        return
    if not fits or not all(0 <= tree < approved.trees for tree in trees):
        raise SecurityError("beyond_the_training", kind=type(asked.message).__name__)


def _growing(asked: Asked, trees: Collection[int] = ()) -> TrainingHistory:
    """Return the training that a message goes on with; raise SecurityError if there is none, or not of these trees."""
    _check_terms(asked, True, trees)
    if asked.session.kept(HostRanks) is not None:
        raise SecurityError("training_on_ranks")
    return asked.session.need(TrainingHistory, NO_TRAINING)


def _growing_further(asked: Asked, trees: Collection[int]) -> TrainingHistory:
    """Return the training as :func:`_growing`; raise SecurityError also if it has ended: its splits are named again, no sums answered."""
    history = _growing(asked, trees)
    if history.has_ended:
        raise SecurityError("training_not_open")
    return history


def _pair_cipher(asked: Asked, code: str) -> PairPublicSide:
    """Return the key under which pairs are encrypted; raise SecurityError(code) if it encrypts node by node."""
    cipher = asked.session.cipher
    if not isinstance(cipher, PairPublicSide):
        raise SecurityError(code)
    return cipher


def read_gradients(asked: Asked) -> Ask:
    """Read whose numbers come; raise SecurityError if one is no training row."""
    message: Gradients = asked.message
    approval = training_request(asked)
    history = _growing(asked, (message.tree,))
    _pair_cipher(asked, "gradients_under_node_key")
    return Ask(approval=approval, subject=history.training_rows(message.rows))


def read_more_gradients(asked: Asked) -> Ask:
    """Read the next piece of the numbers; raise SecurityError if none is expected."""
    approval = training_request(asked)
    if _growing(asked).pairs is None:
        raise SecurityError("piece_out_of_order")
    return Ask(approval=approval)


def read_bin_sums(asked: Asked) -> Ask:
    """Read of which nodes sums are asked for; raise SecurityError if the trees have not grown to them, or too few people are in one."""
    message: AskBinSums = asked.message
    approval = training_request(asked)
    history = _growing_further(asked, message.trees)
    _pair_cipher(asked, "sums_without_gradients")
    parts = (message.trees, message.nodes, message.rows, message.features, message.batches, message.parents)
    if history.pairs is None or len({len(part) for part in parts}) > 1:
        raise SecurityError("sums_without_gradients")
    batches = len(history.pairs.batches)
    if not all(0 <= batch < batches for wanted in message.batches for batch in wanted):
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


def read_node_sums(asked: Asked) -> Ask:
    """Read of which node sums are asked for, under a key that encrypts node by node; raises as :func:`read_bin_sums`."""
    message: AskNodeSums = asked.message
    approval = training_request(asked)
    history = _growing_further(asked, (message.tree,))
    cipher = asked.session.cipher
    if not isinstance(cipher, NodePublicSide):
        raise SecurityError("rows_under_pair_key")
    inside = history.training_rows(message.rows)
    least = history.least(cipher.number_bits * max(message.numbers, 0))
    history.growth.begin_sums(message.tree, message.node, message.parent, inside, least)
    about = (message.parent, message.rows, message.features, message.numbers)
    notes = _node_notes(history, f"{message.tree}.{message.node}.sums", repr(about).encode())
    return Ask(approval=approval, notes=notes, subject=inside)


def read_node_pairs(asked: Asked) -> Ask:
    """Read rows of the node that was begun."""
    approval = training_request(asked)
    _growing(asked)
    return Ask(approval=approval)


def read_split(asked: Asked) -> Ask:
    """Read which node is split; raise SecurityError if it was split before, or its rows are others than those of its sums."""
    message: TakeSplit = asked.message
    approval = training_request(asked)
    history = _growing(asked, (message.tree,))
    inside = history.rows(message.rows)
    notes = _node_notes(history, f"{message.tree}.{message.node}.split", encode(replace(message, conversation="")))
    if history.request and not history.growth.awaits_split(message.tree, message.node):
        # It may be the same split as before a break: its sums are not asked for again.
        trainings = asked.models.trainings
        if all(trainings.noted(asked.sender, note.name) == note.digest for note in notes):
            return Ask(approval=approval, subject=inside)
    history.growth.begin_split(message.tree, message.node, message.parent, inside, history.group_size)
    return Ask(approval=approval, notes=notes, subject=inside)


def read_ranks(asked: Asked) -> Ask:
    """Read how values are to be desensitised.

    Raises
    ------
    SecurityError
        If it is not what was approved, comes before the joint records, or all noise together would cost too much.
    """
    start: StartRanks = asked.message
    session = asked.session
    approval = training_request(asked)
    approved = session.kept(AskTraining)
    if approval is not None and approved is not None:
        wanted = (approved.map, approved.mechanism, approved.epsilon, approved.theta, approved.alpha, approved.levels)
        noise_asked = (start.map, start.mechanism, start.epsilon, start.theta, start.alpha, start.levels)
        same_features = sorted(approved.exclude) == sorted(start.exclude)
        _check_terms(asked, approved.bins == 0 and same_features and noise_asked == wanted)
    if session.rows is None:
        raise SecurityError("no_alignment_before_ranks")
    noise = noise_of(start)
    setting = repr(noise.canonical)
    features = _features(asked, start.exclude)
    question = _question(asked, "", features, f"ranks {setting}", *sorted(start.exclude))
    return Ask(
        opens={"all": Rows(columns=tuple(feature.name for feature in features))},
        approval=approval,
        amount=1,
        charges=[Charge(question, whole=True)],
        spends=None if asked.floors.synthetic else Spending(setting, noise.epsilon, MAX_EPSILON),
        subject=_Ranking(features, noise, session.rows),
    )


@dataclass(frozen=True, repr=False)
class _Ranking:
    """Ranks as they are asked for: of which features, with which noise, of which rows."""

    features: Sequence[Feature]
    noise: RankNoise
    rows: NDArray[np.intp]


def read_rank_splits(asked: Asked) -> Ask:
    """Read where ranks are split; raise SecurityError if none were sent."""
    message: TakeRankSplits = asked.message
    approval = training_request(asked)
    _check_terms(asked, True, message.trees)
    if asked.session.kept(TrainingHistory) is not None:
        raise SecurityError("training_not_on_ranks")
    asked.session.need(HostRanks, NO_TRAINING)
    return Ask(approval=approval)


def read_keep_model(asked: Asked) -> Ask:
    """Read the model that a training has given.

    Raises
    ------
    SecurityError
        If it is not the model that grew here, names other parties, or the training has given another one.
    """
    message: KeepModel = asked.message
    approval = training_request(asked)
    approved = asked.session.kept(AskTraining)
    if approved is not None:
        _check_terms(asked, len(message.skeletons) <= approved.trees)
    session = asked.session
    history = session.kept(TrainingHistory)
    if history is None:
        splits = set(session.need(HostRanks, NO_TRAINING).rules)
        request = ""
    else:
        splits = history.splits
        request = history.request
    # Otherwise fewer of the same trees under another name would get round the query budget.
    if session.kept(ModelKept) is not None:
        raise SecurityError("model_kept_already")
    digest = sha256(encode(replace(message, conversation=""))).hexdigest()
    if request:
        before = asked.models.trainings.kept(asked.sender, request)
    else:
        before = None
    if before is not None and before.digest == digest:
        # The answer was lost, or the Guest was killed before it had stored it.
        return Ask(approval=approval, subject=before)
    asked.models.check_owner(message.model_id, asked.sender)
    skeletons = tuple(load_skeleton(forks) for forks in message.skeletons)
    if before is not None:
        _check_more_trees(asked.models, before, skeletons)
    if approved is not None and message.most_named not in (approved.most_named, NOT_MEASURED[1]):
        raise SecurityError("beyond_the_training", kind=KeepModel.__name__)
    own = _own_splits(asked, skeletons)
    if own != {key for key in splits if key[0] < len(skeletons)}:
        raise SecurityError("model_of_other_splits")
    if history is not None:
        history.growth.check_model(skeletons)
    least = 0 if asked.floors.synthetic else asked.floors.score_bits
    layout = check_layout(Layout(message.score_bits, message.slots, message.slot_bits, message.scale), least)
    features = tuple(asked.features.values())
    return Ask(
        opens={"all": Rows(columns=tuple(feature.name for feature in features))},
        approval=approval,
        subject=_Keeping(digest, request, skeletons, layout, features, message.most_named, before),
    )


def _check_more_trees(models: HostModels, before: KeptModel, skeletons: Sequence[Skeleton]) -> None:
    """Raise SecurityError unless a model is the one that the training gave before, still sealed, with more trees."""
    if not before.sealed or models.sealed(before.model_id) is None:
        raise SecurityError("training_gave_another_model")
    first = models.half(before.model_id).skeletons
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
    before : KeptModel, optional
        The sealed one in whose place it is kept, which has fewer trees.
    """

    digest: str
    request: str
    skeletons: tuple[Skeleton, ...]
    layout: Layout
    features: tuple[Feature, ...]
    most_named: float
    before: KeptModel | None


def _own_splits(asked: Asked, skeletons: Sequence[Skeleton]) -> set[NodeKey]:
    """Return this Host's splits of a model; raise SecurityError if it names other parties than those of the training."""
    message: KeepModel = asked.message
    parties = (message.guest, *message.hosts)
    owners = {fork.owner for skeleton in skeletons for fork in skeleton.forks.values()}
    host = asked.models.host
    if message.guest != asked.sender or len(set(parties)) < len(parties) or not owners | {host} <= set(parties):
        raise SecurityError("model_of_other_parties")
    own: set[NodeKey] = set()
    for tree, skeleton in enumerate(skeletons):
        own |= {(tree, node) for node, fork in skeleton.forks.items() if fork.owner == host}
    return own


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
    """Make the Host's partial model of the splits that it took; answer its hash."""
    session = permit.session
    keeping: _Keeping | KeptModel = permit.ask.subject
    session.drop(TrainedModel)
    if isinstance(keeping, KeptModel):
        yield permit.guest, ModelKept(message.conversation, message.model_id, keeping.content_hash)
        return
    training = session.kept(HostTraining) or session.need(HostRanks, NO_TRAINING)
    count = len(keeping.skeletons)
    rules = {key: rule for key, rule in training.rules.items() if key[0] < count}  # early stopping drops trees
    used = {rule.feature for rule in rules.values()}
    model = HostModel(
        permit.asked.models.host,
        message.guest,
        message.hosts,
        keeping.skeletons,
        rules,
        noise.salt(),
        keeping.layout,
        message.guest_hash,
        {name: pair for name, pair in training.medians.items() if name in used},
    )
    columns = opened["all"].columns
    counts = {feature.name: reference_of(feature, columns[feature.name]) for feature in keeping.features}
    session.keep(TrainedModel, TrainedModel(model, counts))
    yield permit.guest, ModelKept(message.conversation, message.model_id, sha256(dump_host(model).encode()).hexdigest())


def store_model(models: HostModels, permit: Permit, reply: Message) -> None:
    """Store the model that a training has given; one that was stored before stays."""
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
            kept = KeptModel(keeping.digest, reply.content_hash, reply.model_id, sealed)
            models.trainings.keep(permit.guest, keeping.request, kept)
        if keeping.before is not None:
            models.discard(keeping.before.model_id)
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
