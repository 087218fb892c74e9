"""The errors Glassleaf raises; each says what was found, what was expected and what to do.

GlassleafError
├── FederationError   a federation file, a dictionary or a party's table is not usable
│   └── Unclear          a file can be read in several ways, and whoever knows it has to say which
├── RulePackError     a rule pack does not parse
├── SampleError       a row to be scored is not usable (the other rows go on)
├── ModelError        a model is unknown, damaged or does not fit the federation
├── ParameterError    a training or scoring parameter is outside its range
│   ├── FewRecords       an answer could be about few people
│   └── ReleaseRefused   the scores of a new model would name more paths than was allowed
├── SecurityError     a key, ciphertext or message was refused
│   ├── HostRefused      a Host says that it will not or cannot answer
│   │   ├── HostBusy         it has more to do than it takes on at once, or starts again; the same question later is taken
│   │   ├── NotAgreed        it has not agreed to what a measurement is for
│   │   ├── ApprovalPending  its operator has not decided yet
│   │   └── ApprovalDenied   its operator has denied it, or withdrawn what was allowed
│   ├── QuestionRefused  a question will not be answered under its request id, however often it is repeated
│   └── SignInError      nobody is signed in, or not any more, or in no role
├── StoreError        a party's database cannot be opened, read or written
├── NotAvailable      only who operates a Host has it, and that is another company
├── PartyUnreachable  a party did not answer in time or stopped
└── Cancelled         the user stopped a long job
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta


class GlassleafError(Exception):
    """Base of every error whose text may be shown to a user as it stands."""


class FederationError(GlassleafError):
    """A federation file, a feature dictionary or a party's table is not usable.

    Parameters
    ----------
    problems : sequence of str
        One sentence each: file, field, what was found, what was expected.
    """

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class Unclear(FederationError):  # noqa: N818 - reads as what was found
    """A file can be read in several ways: a wrong guess would be worse than a question.

    Parameters
    ----------
    question : {"encoding", "decimal", "sheet"}
        The field of :class:`backend.data.table_file.Reading` that answers it.
    choices : dict of str to tuple of str
        Answer → what the file says if it is so: a few of its lines, or one of its cells.
    """

    def __init__(self, problem: str, question: str, choices: dict[str, tuple[str, ...]]) -> None:
        self.question, self.choices = question, choices
        super().__init__(problem)


class RulePackError(GlassleafError):
    """A rule pack does not parse; says file, line and reason."""


class SampleError(GlassleafError):
    """A row to be scored is not usable."""


class ModelError(GlassleafError):
    """A model is unknown, damaged or does not fit the federation."""


class ParameterError(GlassleafError):
    """A training or scoring parameter is outside its range."""


class FewRecords(ParameterError):  # noqa: N818 - reads as what was found
    """An answer could be about few people, so it is not asked for."""


class ReleaseRefused(ParameterError):  # noqa: N818 - reads as what happened
    """The scores of a new model would name more paths than was allowed, so it was not registered.

    Parameters
    ----------
    named, bound : float
        Share of scores that would identify their path, and the largest allowed.
    bits : int or None
        The finest resolution that would do; None where none does.
    """

    def __init__(self, words: str, named: float, bound: float, bits: int | None) -> None:
        self.named, self.bound, self.bits = named, bound, bits
        super().__init__(words)


class SecurityError(GlassleafError):
    """A key, a ciphertext or a message was refused."""


class HostRefused(SecurityError):  # noqa: N818 - reads as what happened
    """A Host says that it will not or cannot answer."""


class QuestionRefused(SecurityError):  # noqa: N818 - reads as what happened
    """A question will not be answered under its request id, however often it is repeated."""


class SignInError(SecurityError):
    """Nobody is signed in, or not any more, or in no role.

    Parameters
    ----------
    kind : {"signed_out", "expired", "old", "no_role", "unusable", "no_settings", "no_provider"}
    """

    def __init__(self, kind: str, words: str) -> None:
        self.kind = kind
        super().__init__(words)


class HostBusy(HostRefused):
    """A Host has more to do than it takes on at once, or has just started again; the same question is taken later, and counted once.

    Parameters
    ----------
    wait : float
        Seconds after which it is worth asking again.
    host : str
        Where it is known.
    """

    def __init__(self, words: str, wait: float, host: str = "") -> None:
        self.wait, self.host = wait, host
        super().__init__(words)


class NotAgreed(HostRefused):
    """A Host has not agreed to what a measurement is for, so nothing was measured.

    Parameters
    ----------
    purpose : str
        One of :data:`backend.data.federation.MEASURES`.
    """

    def __init__(self, host: str, purpose: str) -> None:
        self.host, self.purpose = host, purpose
        super().__init__(
            f"Not measured: the Host has not agreed. {host} does not allow the purpose '{purpose}'; ask its operator to (`measures`)."
        )


class ApprovalPending(HostRefused):
    """A Host's operator has not decided yet whether a training or a model is allowed; ask again later.

    Parameters
    ----------
    number : int
        Of the request at the Host.
    since : datetime
        When it was asked for first.
    """

    def __init__(self, host: str, number: int, since: datetime, now: datetime | None = None) -> None:
        self.host, self.number, self.since = host, number, since
        super().__init__(
            f"Waits for {host}'s approval, asked {_ago((now or datetime.now(UTC)) - since)} ago (request {number} there); nobody was asked "
            f"about. Ask again once the operator of {host} has approved it."
        )


class ApprovalDenied(HostRefused):
    """A Host's operator has denied a training or a model, or withdrawn its approval, and says why.

    Parameters
    ----------
    state : {"denied", "withdrawn"}
    day : str
        When it was decided, ISO 8601.
    reason : str
        The operator's.
    """

    _SAID = re.compile(r"Its operator has (denied|withdrawn) this on (\d{4}-\d\d-\d\d): (.*)", re.DOTALL)

    def __init__(self, host: str, state: str, day: str, reason: str) -> None:
        self.host, self.state, self.day, self.reason = host, state, day, reason
        super().__init__(f"{host} refused: {self.refusal(state, day, reason)}")

    @staticmethod
    def refusal(state: str, day: str, reason: str) -> str:
        """How a Host says it."""
        return f"Its operator has {state} this on {day}: {reason}"

    @classmethod
    def read(cls, host: str, refusal: str) -> ApprovalDenied | None:
        """What a Host said; None where it refused for something else."""
        match = cls._SAID.fullmatch(refusal)
        return None if match is None else cls(host, *match.groups())


def _ago(past: timedelta) -> str:
    """A time in its largest unit."""
    seconds = max(0, int(past.total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= (2 * size if unit == "d" else size):
            return f"{seconds // size} {unit}"
    return "less than a minute"


class StoreError(GlassleafError):
    """A party's database cannot be opened, read or written."""


class NotAvailable(GlassleafError):  # noqa: N818 - reads as what was found
    """Only who operates a Host has or can do it, and that is another company."""

    def __init__(self, host: str, what: str) -> None:
        self.host = host
        super().__init__(f"Not available: {host} runs at its own company. Ask its operator there ({what}).")


class PartyUnreachable(GlassleafError):  # noqa: N818 - reads as what happened
    """A party did not answer in time or has stopped."""


class Cancelled(GlassleafError):  # noqa: N818 - not a fault
    """The user stopped a long job; nothing half-done was kept."""


def plain(text: str) -> str:
    """What another party wrote, on one line and without what steers a terminal or turns the direction of letters."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
