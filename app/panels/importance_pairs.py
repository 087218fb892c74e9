"""Which features meet on the trees' paths: where the effect of one can depend on the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go
import streamlit as st

from app.panels import charts, frame, palette
from app.texts import Texts, cut, label, markdown, percent, wrap
from app.view_models import View
from backend.i18n import wide

if TYPE_CHECKING:
    from backend.explain.stability import Interaction

SHOWN = 10  # features of the picture
LETTERS = 22  # a line of a feature beside the picture, so that a phone has room for the squares
ABOVE = (
    48  # letters of a feature above the picture, where it stands on end: in one line, for a phone has no room for two
)
SQUARE, LETTER, SCALE = 48, 6.2, 72  # pixels: of a row, of a letter above, of the colour scale below


def pairs(t: Texts, view: View, found: Sequence[Interaction]) -> None:
    """A square for each pair of features, darker the more gain lies where they meet; all pairs in the table."""
    if not found:
        st.info(t("importance.no_pairs"), icon=":material/grid_on:")
        return
    first = found[0]
    names = [t.brief(view.model.feature(name)) for _, name in first.features]
    sentence = t(
        "importance.pairs",
        one=markdown(names[0]),
        other=markdown(names[1]),
        share=percent(first.share),
        n=len(found),
        trees=first.trees,
        across=sum(pair.across for pair in found),
    )
    frame.chart(t, _squares(t, view, found), sentence, lambda: _twin(t, view, found), "importance_pairs")
    st.caption(f":material/info: {t('importance.pairs_caption')}")


def _twin(t: Texts, view: View, found: Sequence[Interaction]) -> frame.Columns:
    """A row a pair: of 500 features there are tens of thousands."""
    return {
        t("importance.pair_one"): [_full(t, view, *pair.features[0]) for pair in found],
        t("importance.pair_other"): [_full(t, view, *pair.features[1]) for pair in found],
        t("words.gain"): [percent(pair.share) for pair in found],
        t("words.splits"): [pair.splits for pair in found],
        t("words.trees"): [pair.trees for pair in found],
    }


@charts.cached
def _squares(t: Texts, view: View, found: Sequence[Interaction]) -> go.Figure:
    """The features that meet most, each a row and a column; a number joins the two."""
    met: dict[tuple[str, str], float] = {}
    for pair in found:
        for feature in pair.features:
            met[feature] = met.get(feature, 0.0) + pair.gain
    shown = sorted(met, key=lambda feature: -met[feature])[:SHOWN]
    by_pair = {frozenset(pair.features): pair for pair in found}
    rows, hovers = [], []
    for one in shown:
        cells = [by_pair.get(frozenset((one, other))) for other in shown]
        rows.append([pair.share if pair else None for pair in cells])
        hovers.append([_hover(t, view, pair) if pair else "" for pair in cells])
    named = [t.brief(view.model.feature(name)) for _, name in shown]
    marks = [palette.mark(view.federation, party) for party, _ in shown]
    signs = [f"<span style='color:{sign.colour}'>{sign.glyph}</span>" for sign in marks]
    places = list(range(len(shown)))
    scale = {"orientation": "h", "thickness": 10, "len": 0.6, "x": 0, "xanchor": "left", "y": 0, "yanchor": "top"}
    scale |= {"outlinewidth": 0}
    title = {"text": wrap(t("importance.pairs_scale"), 30, 2), "side": "top"}  # in two lines for a phone
    scale |= {"tickformat": ".2~%", "nticks": 4, "title": title}
    hover = {"hovertext": hovers, "hovertemplate": "%{hovertext}<extra></extra>", "hoverongaps": False}
    columns = [f"{label(cut(words, ABOVE))} {sign}" for words, sign in zip(named, signs, strict=True)]
    above = 20 + LETTER * max(wide(cut(words, ABOVE)) for words in named)
    figure = charts.figure(SQUARE * len(shown) + above + SCALE, margin_t=above)
    figure.add_trace(charts.squares(rows, places, places, **hover, showscale=True, colorbar=scale))
    beside = [f"{wrap(words, LETTERS, 3)} {sign}" for words, sign in zip(named, signs, strict=True)]
    charts.margins(figure, [f"{wrap(words, LETTERS, 3)} ●" for words in named], SCALE)
    figure.update_xaxes(side="top", tickvals=places, ticktext=columns, tickangle=-90)
    return figure.update_yaxes(autorange="reversed", showgrid=False, tickvals=places, ticktext=beside)


def _hover(t: Texts, view: View, pair: Interaction) -> str:
    names = "<br>".join(f"<b>{wrap(t.brief(view.model.feature(name)), 44, 2)}</b>" for _, name in pair.features)
    return f"{names}<br>{t('importance.hover', splits=pair.splits, trees=pair.trees, share=percent(pair.share))}"


def _full(t: Texts, view: View, party: str, feature: str) -> str:
    return f"{palette.mark(view.federation, party).glyph} {t.meaning(view.model.feature(feature))}"
