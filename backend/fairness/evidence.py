"""A measured number and what it was measured on, as every claim about outcomes and proxies shows it."""

from __future__ import annotations

from dataclasses import dataclass

from backend.data.rounding import Rounded
from backend.i18n import Text


@dataclass(frozen=True)
class Measured:
    """A measured number.

    Attributes
    ----------
    value : float or None
        None if fewer than 20 records are behind it, so that it is not reported.
    low, high : float or None
        Its 95 % interval; None if it has none.
    n : int
        Records behind it; 0 if it is not reported, or about the model alone.
    """

    value: Rounded | None
    low: Rounded | None = None
    high: Rounded | None = None
    n: int = 0


@dataclass(frozen=True, kw_only=True)
class Evidence(Measured):
    """One measured number behind a finding, with how sure it is.

    Attributes
    ----------
    about : Text
        Proxy evidence: the other feature's name. Outcome disparity: the group.
    measure : str
        E.g. ``Cramér's V``, ``selection rate``.
    cutoff : float or None
        Of a figure that belongs to one cut-off of a range.
    """

    about: Text
    measure: str
    cutoff: Rounded | None = None


@dataclass(frozen=True)
class FeatureResult:
    """What a model was measured to do by the values of one feature, of `n` people; each measurement adds its figures."""

    party: str
    feature: str
    n: int


@dataclass(frozen=True, slots=True)
class Basis:
    """What a claim was measured on: records, and the cut-off of decisions where decisions were compared.

    Attributes
    ----------
    refused : str
        The Host without whose agreement nothing was measured; else empty.
    measured : str
        The day, UTC, of an answer that the Host gave before and that was taken again; else empty.
    policy : int or None
        Version of the policy whose line the cut-off is (:class:`backend.policy.bands.MeasuredLine`); None = another line, or none.
    """

    n: int
    cutoff: Rounded | None = None
    refused: str = ""
    measured: str = ""
    policy: int | None = None
