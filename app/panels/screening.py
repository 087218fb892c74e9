"""A screening on a page: what is asked and what it costs, features by what they are worth, and what each adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import charts, frame, palette
from app.texts import Texts, markdown, number, percent

if TYPE_CHECKING:
    from backend.data.dictionary import Feature
    from backend.data.federation import Federation
    from backend.services.screening import ScreenedFeature, Screening


def federation(t: Texts, federations: Sequence[Federation], key: str) -> None:
    """Draw the choice of the federation whose data is used."""
    titles = t.federations(federations)
    st.selectbox(
        t("train.federation"), list(titles), key=key, format_func=titles.__getitem__, help=t("glossary.federation")
    )


def dates(t: Texts, federation: Federation) -> tuple[str, str]:
    """Between which two dates drift is measured; both empty if it is not."""
    if not federation.time:
        st.caption(f":material/event_busy: {t('screen.no_time')}")
        return "", ""
    before_column, since_column = st.columns(2)
    with before_column:
        before_date = st.text_input(
            t("screen.before"), key=f"screen_before_{federation.name}", help=t("screen.dates_help")
        )
    with since_column:
        since_date = st.text_input(t("screen.since"), key=f"screen_since_{federation.name}")
    return before_date.strip(), since_date.strip()


def cost(t: Texts, federation: Federation, price: Mapping[str, float]) -> None:
    """Draw what each Host books about each person, before anything is asked."""
    st.markdown(t("screen.gives_away"))
    for host, bits in price.items():
        words = t("screen.price", host=palette.name(t, federation, host), bits=f"{bits:.1f}")
        st.markdown(f":material/toll: {words}")


def result(t: Texts, federation: Federation, screening: Screening) -> None:
    """Draw bars by feature, the highest first, in the colours of the parties; a table of all figures; what was left out."""
    features = {(party, feature.name): feature for party, feature in federation.features()}
    rows = [row for row in screening.features if (row.party, row.feature) in features]
    sentence = _sentence(t, federation, screening, rows, features)
    bars = [_bar(t, federation, row, features[row.party, row.feature]) for row in rows]
    frame.chart(t, charts.bars(bars, sentence), sentence, lambda: _table(t, federation, rows, features), "screening")
    st.caption(_basis(t, screening))
    days = sorted({row.measured for row in rows if row.measured})
    if days:
        st.caption(f":material/history: {t('screen.answered', day=t.listed(days))}")
    for row in screening.left_out:
        if (row.party, row.feature) in features:
            what = markdown(t.meaning(features[row.party, row.feature]))
            words = t("words.about", what=what, said=markdown(row.reason.sentence(t.language)))
            st.caption(f":material/visibility_off: {words}")


def _sentence(
    t: Texts,
    federation: Federation,
    screening: Screening,
    rows: Sequence[ScreenedFeature],
    features: Mapping[tuple[str, str], Feature],
) -> str:
    """Return which feature is worth most, and how many of the Hosts' add something."""
    if not rows:
        return t("screen.none_shown")
    best = rows[0]
    words = t(
        "screen.best",
        feature=markdown(t.meaning(features[best.party, best.feature])),
        party=palette.name(t, federation, best.party),
        iv=number(best.iv),
    )
    of_hosts = [row for row in rows if row.adds is not None]
    if not of_hosts:
        return t.joined(words, t("screen.not_known_what_adds"))
    adding = sum(row.adds != "nothing" for row in of_hosts)
    return t.joined(words, t("screen.adding", n=adding, total=len(of_hosts)))


def _bar(t: Texts, federation: Federation, row: ScreenedFeature, feature: Feature) -> charts.Bar:
    worth = t(f"screen.worth_{row.worth}")
    figures = f"{number(row.iv)} · {worth}"
    warning = ""
    if row.adds == "nothing":
        warning = t("screen.bar_adds_nothing")
    elif row.worth == "suspicious":
        figures = number(row.iv)
        warning = worth  # said once
    hover = t("screen.hover", missing=_missing(t, row), distinct=_distinct(t, row))
    return charts.Bar(t.meaning(feature), figures, row.iv, palette.mark(federation, row.party), hover, warning=warning)


def _table(
    t: Texts,
    federation: Federation,
    rows: Sequence[ScreenedFeature],
    features: Mapping[tuple[str, str], Feature],
) -> frame.Columns:
    return {
        t("screen.feature"): [t.meaning(features[row.party, row.feature]) for row in rows],
        t("screen.party"): [palette.plain(t, federation, row.party) for row in rows],
        t("screen.iv"): [number(row.iv) for row in rows],
        t("screen.iv_chance"): [number(row.iv_chance) for row in rows],
        t("screen.worth"): [t(f"screen.worth_{row.worth}") for row in rows],
        t("screen.direction"): [t(f"screen.direction_{row.direction}") for row in rows],
        t("screen.added"): [_figure(row.added) for row in rows],
        t("screen.added_chance"): [_figure(row.added_chance) for row in rows],
        t("screen.adds"): ["–" if row.adds is None else t(f"screen.adds_{row.adds}") for row in rows],
        t("screen.missing"): [_missing(t, row) for row in rows],
        t("screen.distinct"): [_distinct(t, row) for row in rows],
        t("screen.psi"): [_figure(row.psi) for row in rows],
        t("screen.psi_chance"): [_figure(row.psi_chance) for row in rows],
        t("screen.groups"): [_groups(row) for row in rows],
    }


def _figure(value: float | None) -> str:
    return "–" if value is None else number(value)


def _missing(t: Texts, row: ScreenedFeature) -> str:
    if row.missing == row.missing_most:
        return percent(row.missing)
    return t("screen.at_most", share=percent(row.missing_most))


def _distinct(t: Texts, row: ScreenedFeature) -> str:
    if row.most is None:
        return t("screen.or_more", n=f"{row.fewest:,}")
    if row.fewest == row.most:
        return f"{row.fewest:,}"
    return f"{row.fewest:,}–{row.most:,}"


def _groups(row: ScreenedFeature) -> str:
    """Return the share of the positive outcome in each group, in the groups' order."""
    return " ".join(f"{group.name or group.kind}:{percent(group.positives / group.n)}" for group in row.groups)


def _basis(t: Texts, screening: Screening) -> str:
    words = t("screen.basis", records=f"{screening.records:,}", positives=f"{screening.positives:,}")
    if screening.bands > 1:
        words = t.joined(words, t("screen.bands", n=screening.bands))
    if screening.periods is not None:
        words = t.joined(
            words, t("screen.periods", first=f"{screening.periods[0]:,}", second=f"{screening.periods[1]:,}")
        )
    return words
