"""The policy of a model: bands by cut-offs, points, and what happens to the unusual."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from backend.errors import ParameterError
from backend.policy.points import PointScale
from backend.remark import Remark

Band = Literal["accept", "refer", "decline", ""]
Decision = Literal["accept", "refer", "decline", "refuse", ""]
Treatment = Literal["score", "refer", "refuse"]
Mark = Literal["no_host", "some_hosts", "unseen_category", "out_of_range", "missing_value"]
Task = Literal["binary", "classes", "number"]
Side = Literal["above", "below"]
TREATMENTS: tuple[Treatment, ...] = get_args(Treatment)
MARKS: tuple[Mark, ...] = get_args(Mark)
NOBODY_SET = 0  # version of the policy that holds until somebody sets a line


@dataclass(frozen=True)
class Treatments:
    """What happens to an unusual person: scored as all others, referred to a person, or refused.

    Attributes
    ----------
    no_host : Treatment
        No Host of the model has a record of the person.
    some_hosts : Treatment
        Some Hosts of the model have no record of the person.
    unseen_category : Treatment
        One of the Guest's values is a category that nobody trained on.
    out_of_range : Treatment
        One of the Guest's values is outside the range that was trained on.
    missing_value : Treatment
        One of the Guest's values is missing.
    """

    no_host: Treatment = "refer"
    some_hosts: Treatment = "score"
    unseen_category: Treatment = "refer"
    out_of_range: Treatment = "score"
    missing_value: Treatment = "score"

    def of(self, mark: Mark) -> Treatment:
        """Return what happens to a person with a mark."""
        treatment: Treatment = getattr(self, mark)
        return treatment

    def check(self) -> None:
        """Raise ParameterError if a treatment is unknown."""
        for mark in MARKS:
            if self.of(mark) not in TREATMENTS:
                raise ParameterError("unknown_treatment", mark=mark, treatment=self.of(mark), known=TREATMENTS)


@dataclass(frozen=True)
class Verdict:
    """What a policy says about one person.

    Attributes
    ----------
    decision : Decision
        "refuse" if the policy lets such a person have no decision; "" if the policy draws no line.
    band : Band
        By the score alone.
    deciding_marks : tuple of Mark
        Why the decision differs from the band.
    points : int or None
        None if the policy has no points.
    """

    decision: Decision
    band: Band
    deciding_marks: tuple[Mark, ...] = ()
    points: int | None = None


@dataclass(frozen=True)
class Policy:
    """How the scores of one model become decisions.

    Attributes
    ----------
    task : {"binary", "classes", "number"}
        Of the model.
    decline_at : float or None
        Two outcomes: probability of the positive label at or above which a person is declined. A number: its value. Classes: None.
    refer_at : float or None
        A person from here up to `decline_at` is referred to a person; None = nobody is. Classes: whoever's most probable class is less
        probable than this is referred.
    declines : {"above", "below"}
        Of a number: which side of the line is declined.
    points : PointScale or None
        Two outcomes only.
    version : int
        Grows by 1 with each proposal of a model; :data:`NOBODY_SET` if nobody has set a line.
    """

    task: Task = "binary"
    decline_at: float | None = 0.5
    refer_at: float | None = None
    declines: Side = "above"
    points: PointScale | None = None
    treatments: Treatments = field(default_factory=Treatments)
    version: int = NOBODY_SET

    @property
    def is_set(self) -> bool:
        """Return whether somebody has set this line."""
        return self.version != NOBODY_SET

    @property
    def cutoff(self) -> float:
        """Return the line at which people are declined; NaN if there is none."""
        if self.decline_at is None:
            return math.nan
        return self.decline_at

    def check(self) -> None:
        """Raise ParameterError if the cut-offs do not fit the task or each other."""
        self.treatments.check()
        if self.points is not None:
            if self.task != "binary":
                raise ParameterError("points_need_two_outcomes", task=self.task)
            self.points.check()
        if self.task == "classes":
            if self.decline_at is not None:
                raise ParameterError("classes_have_no_cutoff")
            _check_share(self.refer_at)
            return
        if self.decline_at is None or not math.isfinite(self.decline_at):
            raise ParameterError("policy_without_cutoff")
        if self.task == "binary":
            _check_share(self.decline_at)
            _check_share(self.refer_at)
        if self.refer_at is None:
            return
        if not math.isfinite(self.refer_at):
            raise ParameterError("policy_without_cutoff")
        if self.declines == "above":
            wrong = self.refer_at > self.decline_at
        else:
            wrong = self.refer_at < self.decline_at
        if wrong:
            raise ParameterError("bands_in_wrong_order", refer=self.refer_at, decline=self.decline_at)

    def band(self, value: float) -> Band:
        """Return the band of a score: a probability, or the value of a number."""
        if math.isnan(value):
            return ""
        if self.task == "classes":
            return "" if self.refer_at is None else "refer" if value < self.refer_at else "accept"
        if self.decline_at is None:
            return ""
        if _reaches(value, self.decline_at, self.declines):
            return "decline"
        if self.refer_at is not None and _reaches(value, self.refer_at, self.declines):
            return "refer"
        return "accept"

    def judge(self, value: float, marks: Collection[Mark] = ()) -> Verdict:
        """Return the decision about a person by the score as released and what was unusual.

        Refusing goes before referring. A referral never becomes a decline or an acceptance: it takes the place of either.
        """
        band = self.band(value)
        points = None
        if self.points is not None and not math.isnan(value):
            points = self.points.points(value)
        refused = self._treated(marks, "refuse")
        if refused:
            return Verdict("refuse", band, refused, None)
        referred = self._treated(marks, "refer")
        if referred and band:
            return Verdict("refer", band, referred, points)
        return Verdict(band, band, (), points)

    def refuses(self, marks: Collection[Mark]) -> tuple[Mark, ...]:
        """Return the marks for which a person is refused; asked before any Host is."""
        return self._treated(marks, "refuse")

    def _treated(self, marks: Collection[Mark], treatment: Treatment) -> tuple[Mark, ...]:
        if not marks:
            return ()
        return tuple(mark for mark in MARKS if mark in marks and self.treatments.of(mark) == treatment)

    def warnings(self, dither: float, *, logit: bool) -> tuple[Remark, ...]:
        """Return what speaks against the policy although it can be used.

        Parameters
        ----------
        dither : float
            By how much a Host moves each margin at most, either way.
        logit : bool
            Whether margins are logits of probabilities; else they are the values that the cut-offs are compared with.
        """
        if self.refer_at is None or self.decline_at is None or dither <= 0.0:
            return ()
        lines = (self.refer_at, self.decline_at)
        if logit:
            lines = (_logit(self.refer_at), _logit(self.decline_at))
        width = abs(lines[1] - lines[0])
        # A score may be moved up or down, so the same person may lie anywhere within twice the dither.
        if width >= 2.0 * dither:
            return ()
        return (Remark("refer_band_narrower_than_dither", {"width": width, "dither": 2.0 * dither}),)

    def plain(self) -> dict[str, Any]:
        """Return the policy as a table for a database, a log or JSON."""
        return asdict(self)


@dataclass(frozen=True)
class MeasuredLine:
    """The cut-off that something is measured at, and whose it is.

    Attributes
    ----------
    version : int or None
        Of the policy that draws this line; :data:`NOBODY_SET` for the base rate; None = another line, a what-if.
    """

    cutoff: float
    version: int | None = None


def line_kind(version: int | None) -> Literal["version", "base_rate", "other"]:
    """Return whose line a :class:`MeasuredLine` is: the text is ``policy.at_{kind}``, of `cutoff` and `version`."""
    if version is None:
        return "other"
    return "version" if version != NOBODY_SET else "base_rate"


def read_policy(plain: dict[str, Any]) -> Policy:
    """Return the policy that :meth:`Policy.plain` made."""
    scale = plain["points"]
    return Policy(
        task=plain["task"],
        decline_at=plain["decline_at"],
        refer_at=plain["refer_at"],
        declines=plain["declines"],
        points=None if scale is None else PointScale(**scale),
        treatments=Treatments(**plain["treatments"]),
        version=plain["version"],
    )


def usual_policy(task: Task, base_rate: float) -> Policy:
    """Return the policy that holds until somebody sets a line: the base rate of the training records, without bands or points."""
    if task == "binary":
        return Policy(task, decline_at=base_rate)
    return Policy(task, decline_at=None)


def _reaches(value: float, line: float, side: Side) -> bool:
    return value >= line if side == "above" else value <= line


def _check_share(share: float | None) -> None:
    if share is not None and not 0.0 <= share <= 1.0:
        raise ParameterError("cutoff_not_probability", cutoff=share)


def _logit(share: float) -> float:
    if share <= 0.0:
        return -math.inf
    if share >= 1.0:
        return math.inf
    return math.log(share / (1.0 - share))
