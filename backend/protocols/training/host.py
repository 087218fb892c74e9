"""A Host's handler for training; ends with the Host's partial model in its store."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from backend.crypto.interface import NodePublicSide, PairPublicSide
from backend.data.column_counts import reference_of
from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.host_state import Answer, Answering, Handlers, HostSession
from backend.protocols.scoring.dither import check_layout
from backend.protocols.terms.prices import training_question
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
from backend.protocols.training.opboost.host_side import HostRanks, NoisyColumns
from backend.protocols.transport.codec import encode
from backend.protocols.transport.message import Message
from backend.store.audit_log import AuditLog
from backend.store.trainings import KeptModel
from backend.trees.ensemble import HostModel, Layout
from backend.trees.serialization import load_skeleton

_log = logging.getLogger("glassleaf")

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
        self._noisy = NoisyColumns(table, self._features)

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
        training = HostTraining(self._table, self._features, session.rows, start, session.cipher)
        if start.request:  # it may go on after a break: the same terms and records, or not at all
            self._partial_models.trainings.begin(sender, start.request, training.digest(start))
        self._count(session, start, (f"bins {start.bins}", start.training))
        session.drop(HostRanks)
        yield sender, session.keep(HostTraining, training).feature_bins(start.conversation)

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
        self._count(session, start, (f"ranks {start!r}",))
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
        yield sender, self._summing(asked).bin_sums(asked)

    def _start_node(self, sender: str, asked: AskNodeSums) -> None:
        self._summing(asked).start_node(asked)

    def _node_pairs(self, sender: str, pairs: NodePairs) -> Answer:
        sums = self._summing(pairs).take_node(pairs)
        if sums is not None:
            yield sender, sums

    def _take_split(self, sender: str, split: TakeSplit) -> Answer:
        yield sender, self._summing(split).take_split(split)

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
