"""Which features meet on the trees' paths: where the effect of one can depend on the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import charts, frame, palette
from app.texts import Texts, cut, label, markdown, percent
from app.view_models import View
from backend.i18n import wide

if TYPE_CHECKING:
    from backend.explain.stability import Interaction

FEATURES_DRAWN = 10  # features of the picture
HEAD_LETTERS = 48  # letters of a feature, in one line: above the picture it is turned by 90 degrees
# pixels: of a square, of a letter above (saved, too), of the scale
SQUARE_PIXELS = 30
UPRIGHT_LETTER_PIXELS = 7.2
SCALE_PIXELS = 72


def pairs(t: Texts, view: View, interactions: Sequence[Interaction]) -> None:
    """Draw a square for each pair of features, darker the more gain lies where they meet; all pairs in the table."""
    if not interactions:
        st.info(t("importance.no_pairs"), icon=":material/grid_on:")
        return
    first = interactions[0]
    names = [t.brief(view.model.feature(name)) for _, name in first.features]
    sentence = t(
        "importance.pairs",
        one=markdown(names[0]),
        other=markdown(names[1]),
        share=percent(first.share),
        n=len(interactions),
        trees=first.trees,
        across=sum(pair.across for pair in interactions),
    )
    frame.chart(
        t, _squares(t, view, interactions, sentence), sentence, lambda: _twin(t, view, interactions), "importance_pairs"
    )
    st.caption(f":material/info: {t('importance.pairs_caption')}")


def _twin(t: Texts, view: View, interactions: Sequence[Interaction]) -> frame.Columns:
    """Return a table with a row for each pair: of 500 features there are tens of thousands."""
    return {
        t("importance.pair_one"): [_full(t, view, *pair.features[0]) for pair in interactions],
        t("importance.pair_other"): [_full(t, view, *pair.features[1]) for pair in interactions],
        t("words.gain"): [percent(pair.share) for pair in interactions],
        t("words.splits"): [pair.splits for pair in interactions],
        t("words.trees"): [pair.trees for pair in interactions],
    }


def _squares(t: Texts, view: View, interactions: Sequence[Interaction], sentence: str) -> str:
    """Return the features that meet most as an SVG, each a row and a column: the denser a square, the larger its gain."""
    met: dict[tuple[str, str], float] = {}
    for pair in interactions:
        for feature in pair.features:
            met[feature] = met.get(feature, 0.0) + pair.gain
    features = sorted(met, key=lambda feature: -met[feature])[:FEATURES_DRAWN]
    by_pair = {frozenset(pair.features): pair for pair in interactions}
    largest = max(pair.share for pair in interactions) or 1.0
    names = [t.brief(view.model.feature(name)) for _, name in features]
    above = 24 + UPRIGHT_LETTER_PIXELS * max(wide(cut(words, HEAD_LETTERS)) for words in names)
    width = 100 / len(features)
    parts = []
    for row, (feature_of_row, words) in enumerate(zip(features, names, strict=True)):
        sign = palette.mark(view.federation, feature_of_row[0])
        top = above + (SQUARE_PIXELS + charts.LINE + 8) * row
        glyph = f'<tspan fill="{sign.colour}">{sign.glyph}</tspan>'
        parts.append(
            f'<svg x="{width * (row + 0.5):.2f}%" y="{above - 8:.0f}" overflow="visible"><text transform="rotate(-90)" '
            f'text-anchor="start" dy="0.35em">{glyph} {label(cut(words, HEAD_LETTERS))}</text></svg>'
            f'<text x="0" y="{top + charts.TEXT:.0f}" text-anchor="start">{glyph} {label(cut(words, HEAD_LETTERS))}</text>'
        )
        for column, feature_of_column in enumerate(features):
            cell = by_pair.get(frozenset((feature_of_row, feature_of_column)))
            if cell is not None:
                parts.append(
                    f'<rect x="{width * column:.2f}%" y="{top + charts.LINE + 2:.0f}" width="{width - 0.4:.2f}%" height="{SQUARE_PIXELS}" '
                    f'fill-opacity="{_density(cell.share / largest):.2f}"><title>{_hover(t, view, cell)}</title></rect>'
                )
    below = above + (SQUARE_PIXELS + charts.LINE + 8) * len(features)
    return charts.svg([*parts, *_scale(t, largest, below + 8)], below + SCALE_PIXELS, sentence)


def _density(share: float) -> float:
    return 0.06 + 0.8 * share


def _scale(t: Texts, largest: float, top: float) -> list[str]:
    """Return the scale of densities: five of them, with the smallest and the largest share."""
    parts = []
    for at in range(5):
        parts.append(
            f'<rect x="{10 * at}%" y="{top:.0f}" width="10%" height="10" fill-opacity="{_density(at / 4):.2f}"/>'
        )
    parts += [
        f'<text x="{x}%" y="{top + 26:.0f}">{words}</text>' for x, words in ((5, percent(0.0)), (45, percent(largest)))
    ]
    return [*parts, f'<text x="0" y="{top + 46:.0f}" text-anchor="start">{label(t("importance.pairs_scale"))}</text>']


def _hover(t: Texts, view: View, pair: Interaction) -> str:
    names = [t.brief(view.model.feature(name)) for _, name in pair.features]
    usage = t("importance.hover", splits=pair.splits, trees=pair.trees, share=percent(pair.share))
    return label("\n".join([*names, usage.replace("<br>", "\n")]))


def _full(t: Texts, view: View, party: str, feature: str) -> str:
    return f"{palette.mark(view.federation, party).glyph} {t.meaning(view.model.feature(feature))}"
