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
    """Whose data."""
    titles = t.federations(federations)
    st.selectbox(
        t("train.federation"), list(titles), key=key, format_func=titles.__getitem__, help=t("glossary.federation")
    )


def dates(t: Texts, chosen: Federation) -> tuple[str, str]:
    """Between which two dates drift is measured; both empty if it is not."""
    if not chosen.time:
        st.caption(f":material/event_busy: {t('screen.no_time')}")
        return "", ""
    left, right = st.columns(2)
    with left:
        before = st.text_input(t("screen.before"), key=f"screen_before_{chosen.name}", help=t("screen.dates_help"))
    with right:
        since = st.text_input(t("screen.since"), key=f"screen_since_{chosen.name}")
    return before.strip(), since.strip()


def cost(t: Texts, chosen: Federation, price: Mapping[str, float]) -> None:
    """What each Host books about each person, before anything is asked."""
    st.markdown(t("screen.gives_away"))
    for host, bits in price.items():
        words = t("screen.price", host=palette.name(t, chosen, host), bits=f"{bits:.1f}")
        st.markdown(f":material/toll: {words}")


def result(t: Texts, chosen: Federation, done: Screening) -> None:
    """Bars by feature, the highest first, in the colours of the parties; a table of all figures; what was left out."""
    known = {(party, feature.name): feature for party, feature in chosen.features()}
    shown = [one for one in done.features if (one.party, one.feature) in known]
    sentence = _sentence(t, chosen, done, shown, known)
    bars = [_bar(t, chosen, one, known[one.party, one.feature]) for one in shown]
    frame.chart(t, charts.bars(bars, sentence), sentence, lambda: _table(t, chosen, shown, known), "screening")
    st.caption(_basis(t, done))
    days = sorted({one.measured for one in shown if one.measured})
    if days:
        st.caption(f":material/history: {t('screen.answered', day=t.listed(days))}")
    for one in done.left_out:
        if (one.party, one.feature) in known:
            what = markdown(t.meaning(known[one.party, one.feature]))
            words = t("words.about", what=what, said=markdown(one.reason.sentence(t.language)))
            st.caption(f":material/visibility_off: {words}")


def _sentence(
    t: Texts,
    chosen: Federation,
    done: Screening,
    shown: Sequence[ScreenedFeature],
    known: Mapping[tuple[str, str], Feature],
) -> str:
    """Which feature is worth most, and how many of the Hosts' add something."""
    if not shown:
        return t("screen.none_shown")
    best = shown[0]
    words = t(
        "screen.best",
        feature=markdown(t.meaning(known[best.party, best.feature])),
        party=palette.name(t, chosen, best.party),
        iv=number(best.iv),
    )
    of_hosts = [one for one in shown if one.adds is not None]
    if not of_hosts:
        return t.joined(words, t("screen.not_known_what_adds"))
    adding = sum(one.adds != "nothing" for one in of_hosts)
    return t.joined(words, t("screen.adding", n=adding, total=len(of_hosts)))


def _bar(t: Texts, chosen: Federation, one: ScreenedFeature, feature: Feature) -> charts.Bar:
    worth = t(f"screen.worth_{one.worth}")
    figures = f"{number(one.iv)} · {worth}"
    warning = ""
    if one.adds == "nothing":
        warning = t("screen.bar_adds_nothing")
    elif one.worth == "suspicious":
        figures = number(one.iv)
        warning = worth  # said once
    hover = t("screen.hover", missing=_missing(t, one), distinct=_distinct(t, one))
    return charts.Bar(t.meaning(feature), figures, one.iv, palette.mark(chosen, one.party), hover, warning=warning)


def _table(
    t: Texts,
    chosen: Federation,
    shown: Sequence[ScreenedFeature],
    known: Mapping[tuple[str, str], Feature],
) -> frame.Columns:
    return {
        t("screen.feature"): [t.meaning(known[one.party, one.feature]) for one in shown],
        t("screen.party"): [palette.plain(t, chosen, one.party) for one in shown],
        t("screen.iv"): [number(one.iv) for one in shown],
        t("screen.iv_chance"): [number(one.iv_chance) for one in shown],
        t("screen.worth"): [t(f"screen.worth_{one.worth}") for one in shown],
        t("screen.direction"): [t(f"screen.direction_{one.direction}") for one in shown],
        t("screen.added"): [_figure(one.added) for one in shown],
        t("screen.added_chance"): [_figure(one.added_chance) for one in shown],
        t("screen.adds"): ["–" if one.adds is None else t(f"screen.adds_{one.adds}") for one in shown],
        t("screen.missing"): [_missing(t, one) for one in shown],
        t("screen.distinct"): [_distinct(t, one) for one in shown],
        t("screen.psi"): [_figure(one.psi) for one in shown],
        t("screen.psi_chance"): [_figure(one.psi_chance) for one in shown],
        t("screen.groups"): [_groups(one) for one in shown],
    }


def _figure(value: float | None) -> str:
    return "–" if value is None else number(value)


def _missing(t: Texts, one: ScreenedFeature) -> str:
    if one.missing == one.missing_most:
        return percent(one.missing)
    return t("screen.at_most", share=percent(one.missing_most))


def _distinct(t: Texts, one: ScreenedFeature) -> str:
    if one.most is None:
        return t("screen.or_more", n=f"{one.fewest:,}")
    if one.fewest == one.most:
        return f"{one.fewest:,}"
    return f"{one.fewest:,}–{one.most:,}"


def _groups(one: ScreenedFeature) -> str:
    """The share of the positive outcome in each group, in the groups' order."""
    return " ".join(f"{group.name or group.kind}:{percent(group.positives / group.n)}" for group in one.groups)


def _basis(t: Texts, done: Screening) -> str:
    words = t("screen.basis", records=f"{done.records:,}", positives=f"{done.positives:,}")
    if done.bands > 1:
        words = t.joined(words, t("screen.bands", n=done.bands))
    if done.periods is not None:
        words = t.joined(words, t("screen.periods", first=f"{done.periods[0]:,}", second=f"{done.periods[1]:,}"))
    return words
