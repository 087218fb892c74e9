"""The errors Glassleaf raises: a class, a code and values. The sentence is made where somebody reads it, in their language.

A sentence says what was expected, what was found and what to do (assets/errors, both languages).

GlassleafError
├── FederationError   a federation file, a dictionary or a party's table is not usable
│   └── AmbiguousFile    a file can be read in several ways, and a person has to say which
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
│   ├── WrongAnswer      a Host's answer contradicts what the Guest holds
│   ├── QuestionRefused  a question will not be answered under its request id, however often it is repeated
│   └── SignInError      nobody is signed in, or no longer, or in no role
├── StoreError        a party's database cannot be opened, read or written
├── NotAvailable      only the operator of a Host has it, and that is another company
├── PartyUnreachable  a party did not answer in time or stopped
└── Cancelled         the user stopped a long job
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from backend.i18n import Text
from backend.remark import Remark, Title, known


class GlassleafError(Exception):
    """Base of every error that a user may read.

    Parameters
    ----------
    code : str
        A key of assets/errors.
    problems : iterable of Remark
        In place of code and values: several problems, each with its place.
    **values : object
        What the sentence names; see :class:`backend.remark.Remark`.

    Examples
    --------
    >>> GlassleafError("unknown_federation", federation="cards", known=("demo", "loans")).sentence("en")[:29]
    'There is no federation cards;'
    """

    def __init__(self, code: str = "", /, **values: Any) -> None:
        self._problems: tuple[Remark, ...] = tuple(values.pop("problems", ()))
        self.code = self._problems[0].code if self._problems else code
        if self._problems:
            self.values = dict(self._problems[0].values)
        else:
            self.values = values
        super().__init__(self.code)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Return what the error says, one remark a line."""
        return self._problems or (Remark(self.code, self.values),)

    @property
    def problems(self) -> tuple[str, ...]:
        """Return what the error says in English, one text a remark."""
        return tuple(self.sentence("en").split("\n"))

    def sentence(self, language: str = "en", title: Title = str) -> str:
        """Return the error's text in a language. `title` gives the title of a Host by its name.

        A code without a sentence is returned as it is: saying what went wrong never fails itself.
        """
        lines = []
        for remark in self.remarks:
            lines.append(remark.sentence(language, title) if known(remark.code) else remark.code)
        return "\n".join(lines)

    def __str__(self) -> str:
        """Return the English text."""
        return self.sentence("en")

    @classmethod
    def of(cls, remark: Remark) -> GlassleafError:
        """Return an error of this class that says a remark."""
        return cls(remark.code, **remark.values)


class FederationError(GlassleafError):
    """A federation file, a feature dictionary or a party's table is not usable."""


class AmbiguousFile(FederationError):  # noqa: N818 - reads as what was found
    """A file can be read in several ways: a wrong guess would be worse than a question.

    Parameters
    ----------
    question : {"encoding", "decimal", "sheet", "header", "ids"}
        The field of :class:`backend.data.table_file.Reading` that answers it.
    choices : dict of str to tuple of str
        Answer → what the file says if it is so: a few of its lines, or one of its cells.
    """

    def __init__(
        self, code: str = "", question: str = "", choices: dict[str, tuple[str, ...]] | None = None, **values: object
    ) -> None:
        self.question = question
        self.choices = choices or {}
        super().__init__(code, **values)


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
        The finest resolution that would do; None if there is none.

    Attributes
    ----------
    sealed_as : str
        The name under which it is kept sealed; empty if it is not kept.
    """

    def __init__(
        self, code: str = "", named: float = 0.0, bound: float = 0.0, bits: int | None = None, **values: object
    ) -> None:
        self.sealed_as = ""
        self.named = named
        self.bound = bound
        self.bits = bits
        super().__init__(code, problems=(), named=named, bound=bound, bits=bits, **values)


class SecurityError(GlassleafError):
    """A key, a ciphertext or a message was refused."""


class HostRefused(SecurityError):  # noqa: N818 - reads as what happened
    """A Host will not or cannot answer; at the Guest with code `host_refused`, and `why` is the Host's own remark."""


class WrongAnswer(SecurityError):  # noqa: N818 - reads as what was found
    """A Host's answer contradicts what the Guest itself holds: the exchange ends, and both sides log it.

    The values name the Host that answered as `host`, or several as `hosts`.
    """

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the names of the Hosts that answered."""
        hosts = self.values.get("hosts", (self.values.get("host", ""),))
        return tuple(hosts) if isinstance(hosts, tuple) else ()


class QuestionRefused(SecurityError):  # noqa: N818 - reads as what happened
    """A question will not be answered under its request id, however often it is repeated."""


class SignInError(SecurityError):
    """Nobody is signed in, the sign-in has ended or cannot be used, or the account has no role."""


class HostBusy(HostRefused):
    """A Host has more to do than it takes on at once, or has just restarted; it answers the same question later, and counts it once.

    Parameters
    ----------
    wait : float
        Seconds after which the Guest may ask again.
    host : str
        The Host's name; "" at the Host itself.
    """

    def __init__(self, code: str = "", wait: float = 0.0, host: str = "", **values: object) -> None:
        self.wait = wait
        self.host = host
        super().__init__(code, host=host, **values)


class NotAgreed(HostRefused):
    """A Host has not agreed to what a measurement is for, so nothing was measured.

    Parameters
    ----------
    purpose : str
        One of :data:`backend.data.federation.MEASURES`.
    """

    def __init__(self, host: str = "", purpose: str = "") -> None:
        self.host = host
        self.purpose = purpose
        super().__init__("not_agreed", host=host, purpose=purpose)


class ApprovalPending(HostRefused):
    """A Host's operator has not decided yet whether a training or a model is allowed; ask again later.

    Parameters
    ----------
    number : int
        Of the request at the Host.
    since : datetime
        When it was asked for first.
    now : datetime
        When the error is raised; the sentence says how long the request waits.
    """

    def __init__(
        self, host: str = "", number: int = 0, since: datetime | None = None, now: datetime | None = None
    ) -> None:
        self.host = host
        self.number = number
        self.since = since or datetime.now(UTC)
        waiting = (now or datetime.now(UTC)) - self.since
        super().__init__("waits_for_approval", host=host, number=number, waiting=waiting)


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

    def __init__(self, host: str = "", state: str = "denied", day: str = "", reason: str = "") -> None:
        self.host = host
        self.state = state
        self.day = day
        self.reason = reason
        super().__init__(f"approval_{state}", host=host, day=day, reason=reason)


class StoreError(GlassleafError):
    """A party's database cannot be opened, read or written."""


class NotAvailable(GlassleafError):  # noqa: N818 - reads as what was found
    """Only the operator of a Host has or can do it, and that is another company.

    Parameters
    ----------
    what : Text or Remark
        What was asked for; a code of assets/errors that begins with `its_`, or a text.
    """

    def __init__(self, host: str = "", what: Text | Remark = Remark("its_records")) -> None:  # noqa: B008 - frozen
        self.host = host
        super().__init__("not_available", host=host, what=what)


class PartyUnreachable(GlassleafError):  # noqa: N818 - reads as what happened
    """A party did not answer in time or has stopped."""


class Cancelled(GlassleafError):  # noqa: N818 - not a fault
    """The user stopped a long job; nothing half-done was kept."""
