"""What each feature added to the scores of a group of people, on average: sums of SHAP values that no party could read one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import charts, frame, palette
from app.panels.importance import FEATURES_DRAWN
from app.texts import Texts, markdown, signed
from app.view_models import View, scale

if TYPE_CHECKING:
    from backend.services.reasons import CohortImportance


def contributions(t: Texts, view: View, rows: Sequence[CohortImportance], everything: bool) -> None:
    """Draw bars to both sides of 0, the longest first; all features in the table."""
    bars_shown = rows if everything else rows[:FEATURES_DRAWN]
    bars = []
    for row in bars_shown:
        meaning = t.meaning(view.model.feature(row.feature))
        party = t.party(view.federation, row.party)
        hover = f"{meaning}\n{party}\n{signed(row.mean)}"
        mark = palette.mark(view.federation, row.party)
        bars.append(charts.Bar(meaning, signed(row.mean), row.mean, mark, hover))
    first = rows[0]
    sentence = t(
        "importance.shap_sentence",
        people=f"{first.people:,}",
        top=markdown(t.brief(view.model.feature(first.feature))),
        party=palette.name(t, view.federation, first.party),
        mean=signed(first.mean),
        cipher=frame.cipher(t, first.cipher, first.key_bits),
    )
    twin: frame.Columns = {
        t("features.meaning"): [t.meaning(view.model.feature(row.feature)) for row in rows],
        t("words.party"): [palette.plain(t, view.federation, row.party) for row in rows],
        t("importance.column_shap"): [signed(row.mean) for row in rows],
    }
    frame.chart(t, charts.bars(bars, sentence), sentence, twin, "importance_shap")
    st.caption(f":material/straighten: {t('importance.shap_unit', scale=t(f'score.axis_{scale(view)}'))}")
