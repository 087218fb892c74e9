"""What a question about a person costs, said before it is asked."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import palette
from app.texts import Texts, bare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.view_models import View
    from backend.services.leakage import AnswerCost


def line(t: Texts, view: View, costs: Sequence[AnswerCost], *, reasons: bool) -> None:
    """Draw what a score tells about a person at most, and with `reasons` what these tell in addition."""
    if not costs:
        return
    values = {"hosts": _hosts(t, view, [cost.host for cost in costs])}
    values["score"] = _bits(t, max(cost.score for cost in costs))
    reason_bits = [cost.reasons for cost in costs if cost.reasons is not None]
    both = reasons and bool(reason_bits)
    if both:
        values["reasons"] = _bits(t, max(reason_bits))
    st.caption(f":material/toll: {t('cost.both' if both else 'cost.score', **values)}")


def spent(t: Texts, view: View, costs: Sequence[AnswerCost]) -> None:
    """Draw at which Hosts a person's budget is spent."""
    hosts = [cost.host for cost in costs if cost.score_spent or cost.reasons_spent]
    if hosts:
        st.warning(t("cost.spent", hosts=_hosts(t, view, hosts), n=len(hosts)), icon=":material/block:")


def before(t: Texts, day: str, *, same: bool) -> None:
    """Draw that a person was scored before, with the same values or with others."""
    st.caption(f":material/history: {t('cost.same' if same else 'cost.again', day=day)}")


def _hosts(t: Texts, view: View, names: Sequence[str]) -> str:
    return t.listed([palette.name(t, view.federation, name) for name in names])


def _bits(t: Texts, bits: float) -> str:
    """Return an upper bound, rounded up."""
    return t("privacy.bits", bits=bare(ceil(bits)))
