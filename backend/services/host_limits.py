"""A Host's limits as they are enforced, one remark each: how much, what a year adds, and whether a limit binds at all."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from backend.link.agreement import Agreement, asks_for_sums, floors_of
from backend.link.config import HostConfig
from backend.protocols.terms.prices import SCORE_BITS, training_bits
from backend.remark import Remark
from backend.services.host_operator import limits_of
from backend.services.host_service import dither_of, key_floor_of
from backend.store.accountant import Limits

YEAR = 365  # days


def limits_as_enforced(config: HostConfig, agreement: Agreement, records: int) -> Iterator[Remark]:
    """Yield each limit of a Host, strictest of host.toml and agreement.

    Parameters
    ----------
    records : int
        Of the Host's table.
    """
    limits = limits_of(config, agreement, records)
    floors = floors_of(agreement)
    # The last window may begin on the year's last day: of 28 days, 14 begin in 365.
    windows = ceil(YEAR / limits.days)
    if floors.synthetic:
        yield Remark("limit_synthetic")
    yield from _answers(limits, windows)
    if limits.bits:
        yield Remark("limit_bits", {"bits": limits.bits, "days": limits.days, "year": limits.bits * windows})
    else:
        yield Remark("limit_bits_none", {"year": _bits_of_a_year(config, limits, records, windows)})
    dither = dither_of(config, agreement)
    if dither:
        yield Remark("limit_dither", {"dither": dither})
    else:
        yield Remark("limit_dither_none")
    if floors.synthetic:
        yield Remark("limit_groups_none", {"size": floors.group_size})
    else:
        yield Remark("limit_groups", {"size": floors.group_size, "share": round(100 * floors.named)})
    yield Remark("limit_sums_asked" if asks_for_sums(agreement) else "limit_sums_free")
    for purpose in agreement.purposes:
        if purpose.rows_per_day:
            yield Remark("limit_volume", {"purpose": purpose.name, "rows": purpose.rows_per_day})
        else:
            yield Remark("limit_volume_none", {"purpose": purpose.name})
    yield Remark("limit_key", {"bits": key_floor_of(config, agreement)})
    measures = config.limits.measures or ()
    yield Remark("limit_measures", {"measures": tuple(measures)}) if measures else Remark("limit_measures_none")


def _answers(limits: Limits, windows: int) -> Iterator[Remark]:
    """Yield how often a person may be asked about."""
    days = limits.days
    if limits.answers:
        values = {"answers": limits.answers, "days": days, "year": limits.answers * windows}
        yield Remark("limit_answers", values)
    else:
        yield Remark("limit_answers_none")
    if limits.total is None:
        total = limits.answers
    else:
        total = limits.total
    if not total:
        yield Remark("limit_total_none")
    elif limits.total is not None and limits.answers and total > limits.answers:
        yield Remark("limit_total", {"answers": total, "days": days, "year": total * windows})


def _bits_of_a_year(config: HostConfig, limits: Limits, records: int, windows: int) -> float:
    """Return what a training and a person's scores of each window could tell in a year, bits, if nothing else limits them."""
    training = training_bits(len(config.features()), records)
    return windows * (training + max(1, limits.answers) * SCORE_BITS)
