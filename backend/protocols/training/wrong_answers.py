"""A Host logs that a Guest found its answers to be wrong: this process may not be the one that its operator started."""

from __future__ import annotations

import logging
import secrets

from backend.errors import SecurityError
from backend.protocols.host_state import Handlers, HostSessions
from backend.protocols.training.host_history import TrainingHistory
from backend.protocols.training.host_splits import HostTraining
from backend.protocols.training.messages import ReportWrongAnswer
from backend.store.audit_log import AuditLog

_log = logging.getLogger("glassleaf")

WRONG_ANSWERS = frozenset(
    {
        "bins_exceed_request",
        "fewer_values_than_groups",
        "group_sums_do_not_add_up",
        "groups_not_as_asked",
        "host_reports_other_features",
        "rows_changed_after_break",
        "rows_do_not_fit_sums",
        "sums_do_not_add_up",
    }
)


class WrongAnswerHandler:
    """Takes reports of wrong answers. It reads no record.

    Parameters
    ----------
    name : str
        The Host's.
    log : AuditLog, optional
        What its operator reads.
    """

    def __init__(self, name: str, sessions: HostSessions, log: AuditLog | None) -> None:
        self._name = name
        self._sessions = sessions
        self._log = log

    def handlers(self) -> Handlers:
        """Message class → answer."""
        return {ReportWrongAnswer: self._wrong_answer}

    def _wrong_answer(self, sender: str, report: ReportWrongAnswer) -> None:
        session = self._sessions.of(report.conversation)
        if session.kept(ReportWrongAnswer) is not None or report.why.code not in WRONG_ANSWERS:
            raise SecurityError("unexpected_report")
        session.keep(ReportWrongAnswer, report)
        session.drop(TrainingHistory)
        session.drop(HostTraining)
        _log.warning("%s: %s reports a wrong answer: %s", self._name, sender, report.why.loggable())
        if self._log is not None:
            self._log.add(
                "wrong answer", {"guest": sender, **report.why.plain(), "salt": secrets.token_hex(16)}, sender, "guest"
            )
