"""A Host's handler for training; ends with the Host's partial model in its store."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from math import ceil

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import NodePublicSide, PairPublicSide
from backend.data.column_counts import reference_of
from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import QuestionRefused, SecurityError
from backend.protocols.approvals.messages import AskTraining
from backend.protocols.host_state import Answer, Answering, Handlers, HostSession
from backend.protocols.scoring.dither import check_layout
from backend.protocols.terms.prices import training_question
from backend.protocols.training.growth_record import PEOPLE, Terms
from backend.protocols.training.host_splits import HostTraining
from backend.protocols.training.messages import (
    AskBinSums,
    AskNodeSums,
    Gradients,
    KeepModel,
    ModelKept,
    MoreGradients,
    NodePairs,
    ReportWrongAnswer,
    StartRanks,
    StartTraining,
    TakeRankSplits,
    TakeSplit,
)
from backend.protocols.training.opboost.host_side import HostRanks, NoisyColumns, noise_of
from backend.protocols.training.row_sets import unpack_rows
from backend.protocols.transport.codec import encode
from backend.protocols.transport.message import Message
from backend.store.audit_log import AuditLog
from backend.store.trainings import KeptModel
from backend.trees.ensemble import HostModel, Layout
from backend.trees.serialization import load_skeleton

_log = logging.getLogger("glassleaf")

NOISE = "noise of ranks"  # the secret that it follows from
MAX_EPSILON = 1.0  # a step of distance, all settings of the noise together; beyond it hardly anything is hidden
MAX_ANSWERS = 3  # to the sums of one node: a tree is grown again after each break

NO_TRAINING = "no_training"
WRONG_ANSWERS = frozenset(
    {
        "bins_exceed_request",
        "host_reports_other_features",
        "rows_changed_after_break",
        "rows_do_not_fit_sums",
        "sums_do_not_add_up",
    }
)


class TrainingHandler:
    """Answers training."""

    def __init__(
        self,
        name: str,
        table: PartyTable,
        features: Sequence[Feature],
        answering: Answering,
        log: AuditLog | None = None,
    ) -> None:
        self._name = name
        self._table = table
        self._features = tuple(features)
        self._log = log
        self._answering, self._partial_models = answering, answering.partial_models
        self._sessions = answering.sessions
        self._noisy = NoisyColumns(table, self._features, self._partial_models.secret(NOISE))

    def handlers(self) -> Handlers:
        """Message class → answer."""
        return {
            StartTraining: self._start_training,
            Gradients: self._gradients,
            MoreGradients: self._more_gradients,
            AskBinSums: self._bin_sums,
            AskNodeSums: self._start_node,
            NodePairs: self._node_pairs,
            TakeSplit: self._take_split,
            StartRanks: self._start_ranks,
            TakeRankSplits: self._take_rank_splits,
            KeepModel: self._keep_model,
            ReportWrongAnswer: self._wrong_answer,
        }

    def _start_training(self, sender: str, start: StartTraining) -> Answer:
        session = self._sessions.of(start.conversation)
        if session.cipher is None:
            raise SecurityError("no_key_before_training")
        if not isinstance(session.cipher, PairPublicSide | NodePublicSide):
            raise SecurityError("cipher_cannot_train", cipher=session.cipher.scheme)
        if session.rows is None:
            raise SecurityError("no_alignment_before_training")
        asked = session.kept(AskTraining)
        limited = self._limited(start.conversation)
        floors = self._answering.floors
        self._check_training_rows(sender, start, session.rows, asked, limited)
        training = HostTraining(
            self._table,
            self._features,
            session.rows,
            start,
            session.cipher,
            group_size=floors.people(PEOPLE) if limited else 1,
            named=floors.named if limited else 0.0,
            terms=None if asked is None else Terms(asked.trees, asked.depth),
        )
        if start.request:  # it may go on after a break: the same terms and records, or not at all
            self._partial_models.trainings.begin(sender, start.request, training.digest(start))
        self._count(session, start, (f"bins {start.bins}", start.training))
        session.drop(HostRanks)
        yield sender, session.keep(HostTraining, training).feature_bins(start.conversation)

    def _limited(self, conversation: str) -> bool:
        """Return whether this Host's floors hold in a conversation: its people are no synthetic ones."""
        return self._answering.account(conversation) is not None and not self._answering.floors.synthetic

    def _check_training_rows(
        self, guest: str, start: StartTraining, rows: NDArray[np.intp], asked: AskTraining | None, limited: bool
    ) -> None:
        """Refuse too few training rows, and others than came first under the same approval.

        The same terms with other rows would be a question about the difference.
        """
        training = unpack_rows(start.training, len(rows))
        n = int(np.count_nonzero(training))
        least = ceil(self._answering.floors.joint_share * len(rows))
        if limited and n < least:
            raise SecurityError("few_training_rows", rows=n, least=least)
        if asked is None:
            return
        terms = sha256(encode(replace(asked, conversation="")))
        terms.update(repr(self._table.ids).encode())  # this Host's own records may change
        chosen = sha256(np.sort(rows[training]).astype("<i8").tobytes()).hexdigest()
        try:
            self._partial_models.trainings.begin(guest, f"rows {terms.hexdigest()[:50]}", chosen)
        except QuestionRefused as error:
            raise SecurityError("training_rows_changed") from error

    def _count(self, session: HostSession, start: StartTraining | StartRanks, how: tuple[bytes | str, ...]) -> None:
        """Book what a training can tell about each person, before its first answer. One that goes on is booked once.

        `how` and the joint records are all that its bins follow from, besides the records.
        """
        request = start.request if isinstance(start, StartTraining) else ""
        joint = b"" if session.rows is None else session.rows.astype("<i8").tobytes()
        used = [f.name for f in self._features if f.name not in start.exclude]
        question = training_question(
            session.guest, request, len(used), len(self._table.ids), joint, "\0".join(used), *how
        )
        self._answering.count_all(question, start.conversation)

    def _summing(self, message: Message) -> HostTraining:
        session = self._sessions.of(message.conversation)
        if session.kept(HostRanks) is not None:
            raise SecurityError("training_on_ranks")
        return session.need(HostTraining, NO_TRAINING)

    def _start_ranks(self, sender: str, start: StartRanks) -> Answer:
        session = self._sessions.of(start.conversation)
        if session.rows is None:
            raise SecurityError("no_alignment_before_ranks")
        noise = noise_of(start)
        if self._limited(start.conversation):
            self._partial_models.trainings.spend(sender, noise.canonical, noise.epsilon, MAX_EPSILON)
        self._count(session, start, (f"ranks {noise.canonical!r}", *sorted(start.exclude)))
        session.drop(HostTraining)
        ranks = session.keep(HostRanks, HostRanks(self._noisy, session.rows, start))
        yield sender, ranks.ranks(start.conversation)

    def _take_rank_splits(self, sender: str, splits: TakeRankSplits) -> None:
        session = self._sessions.of(splits.conversation)
        if session.kept(HostTraining) is not None:
            raise SecurityError("training_not_on_ranks")
        session.need(HostRanks, NO_TRAINING).take_splits(splits)

    def _gradients(self, sender: str, gradients: Gradients) -> None:
        self._summing(gradients).take_gradients(gradients)

    def _more_gradients(self, sender: str, more: MoreGradients) -> None:
        self._summing(more).take_more(more)

    def _bin_sums(self, sender: str, asked: AskBinSums) -> Answer:
        training = self._summing(asked)
        answer = training.bin_sums(asked)
        digests = {}
        for tree, node, *about in zip(
            asked.trees, asked.nodes, asked.parents, asked.rows, asked.features, asked.batches, strict=True
        ):
            digests[f"{tree}.{node}.sums"] = sha256(repr(about).encode()).hexdigest()
        self._note_nodes(sender, training, digests)
        yield sender, answer

    def _note_nodes(self, guest: str, training: HostTraining, digests: Mapping[str, str]) -> None:
        """Store what is answered about nodes, so that a training that goes on after a break asks nothing else."""
        if training.request:
            self._partial_models.trainings.note_nodes(guest, training.request, digests, MAX_ANSWERS)

    def _start_node(self, sender: str, asked: AskNodeSums) -> None:
        training = self._summing(asked)
        training.start_node(asked)
        about = asked.parent, asked.rows, asked.features, asked.numbers
        self._note_nodes(
            sender, training, {f"{asked.tree}.{asked.node}.sums": sha256(repr(about).encode()).hexdigest()}
        )

    def _node_pairs(self, sender: str, pairs: NodePairs) -> Answer:
        sums = self._summing(pairs).take_node(pairs)
        if sums is not None:
            yield sender, sums

    def _take_split(self, sender: str, split: TakeSplit) -> Answer:
        training = self._summing(split)
        name = f"{split.tree}.{split.node}.split"
        digest = sha256(encode(replace(split, conversation=""))).hexdigest()
        repeated = False
        if training.request:
            repeated = self._partial_models.trainings.node(sender, training.request, name) == digest
        answer = training.take_split(split, repeated=repeated)
        if not repeated:
            self._note_nodes(sender, training, {name: digest})
        yield sender, answer

    def _wrong_answer(self, sender: str, report: ReportWrongAnswer) -> None:
        """Log that the Guest found this Host's answers to be wrong: this process may not be the one that its operator started."""
        session = self._sessions.of(report.conversation)
        if session.kept(ReportWrongAnswer) is not None or report.why.code not in WRONG_ANSWERS:
            raise SecurityError("unexpected_report")
        session.keep(ReportWrongAnswer, report)
        session.drop(HostTraining)
        _log.warning("%s: %s reports a wrong answer: %s", self._name, sender, report.why.loggable())
        if self._log is not None:
            self._log.add(
                "wrong answer", {"guest": sender, **report.why.plain(), "salt": secrets.token_hex(16)}, sender, "guest"
            )

    def _keep_model(self, sender: str, keep: KeepModel) -> Answer:
        session = self._sessions.of(keep.conversation)
        training = session.kept(HostTraining) or session.need(HostRanks, NO_TRAINING)
        # otherwise fewer of the same trees under another name would get round the query budget
        if session.kept(ModelKept) is not None:
            raise SecurityError("model_kept_already")
        request = training.request if isinstance(training, HostTraining) else ""
        digest, trainings = sha256(encode(replace(keep, conversation=""))).hexdigest(), self._partial_models.trainings
        before = trainings.kept(sender, request) if request else None
        if before is not None:  # the answer was lost, or the Guest was killed before it had stored it
            if before.digest != digest:
                raise SecurityError("training_gave_another_model")
            yield sender, session.keep(ModelKept, ModelKept(keep.conversation, keep.model_id, before.content_hash))
            return
        skeletons = tuple(load_skeleton(forks) for forks in keep.skeletons)
        parties = (keep.guest, *keep.hosts)
        owners = {fork.owner for skeleton in skeletons for fork in skeleton.forks.values()}
        if keep.guest != sender or len(set(parties)) < len(parties) or not owners | {self._name} <= set(parties):
            raise SecurityError("model_of_other_parties")
        training.keep_trees(len(skeletons))
        own = {(t, i) for t, s in enumerate(skeletons) for i, fork in s.forks.items() if fork.owner == self._name}
        if own != set(training.rules):
            raise SecurityError("model_of_other_splits")
        if isinstance(training, HostTraining):
            training.growth.check_model(skeletons)
        floors = self._answering.floors
        least = 0 if floors.synthetic else floors.score_bits
        layout = check_layout(Layout(keep.score_bits, keep.slots, keep.slot_bits, keep.scale), least)
        salt, used = secrets.token_hex(16), {rule.feature for rule in training.rules.values()}
        middle = {name: pair for name, pair in training.medians.items() if name in used}
        shape = self._name, keep.guest, keep.hosts, skeletons
        model = HostModel(*shape, training.rules, salt, layout, keep.guest_hash, middle)
        kept = ModelKept(keep.conversation, keep.model_id, self._partial_models.put(model, keep.model_id))
        columns = {f.name: reference_of(f, self._table.columns[f.name]) for f in self._features}
        self._partial_models.note_training(keep.model_id, columns)
        if request:
            trainings.keep(sender, request, KeptModel(digest, kept.content_hash))
        yield sender, session.keep(ModelKept, kept)
