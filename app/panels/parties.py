"""Who takes part in a model, what each holds, and what the three claims about it rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
import streamlit as st

from app import view_models
from app.panels import charts, frame, palette
from app.texts import Texts, label, markdown, wrap
from app.view_models import View

if TYPE_CHECKING:
    from backend.data.federation import Federation
    from backend.protocols.alignment.outcome import Alignment

BELOW = 3  # Hosts that have room below the Guest
TILES = {  # claim: icon, page with the evidence
    "interpretability": ("visibility", "features"),
    "compliance": ("flag", "compliance"),
    "privacy": ("lock", "structure"),
}


def network(t: Texts, view: View) -> None:
    """The parties as a picture: the Guest above, its Hosts below, ciphertexts between them."""
    shares = view_models.shares(view)
    people = sum(view.record.parts.values())
    names = [markdown(t.party(view.federation, share.party)) for share in shares]
    listed = t.listed(
        [t("overview.network_each", party=name, n=s.features) for name, s in zip(names, shares, strict=True)]
    )
    sentence = t(
        "overview.network", n=len(shares), features=sum(s.features for s in shares), people=f"{people:,}", listed=listed
    )
    st.markdown(sentence)
    frame.picture(_network(t, view), sentence, "network")


@charts.cached
def _network(t: Texts, view: View) -> go.Figure:
    """Up to three Hosts stand below the Guest; more stand beside it, so that their names have room on a phone."""
    shares = view_models.shares(view)
    hosts = len(shares) - 1
    beside = hosts > BELOW
    if beside:
        spots = [(0.16, (hosts - 1) / 2)] + [(0.5, float(hosts - 1 - i)) for i in range(hosts)]
    else:
        spots = [(0.5, 1.0)] + [((i + 0.5) / hosts, 0.0) for i in range(hosts)]
    (gx, gy), figure = spots[0], charts.figure(64 * hosts if beside else 250 if hosts else 180, showlegend=False)
    figure.add_scatter(
        x=[value for x, _ in spots[1:] for value in (gx, x, None)],
        y=[value for _, y in spots[1:] for value in (gy, y, None)],
        mode="lines",
        line={"color": palette.INK, "width": 1.5, "dash": "dot"},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=[gx + 0.6 * (x - gx) + (0 if beside else 0.03) for x, _ in spots[1:]],
        y=[gy + 0.6 * (y - gy) + (0.16 if beside else 0) for _, y in spots[1:]],
        mode="text",
        text=["lock"] * hosts,
        textfont={"family": palette.ICONS, "size": 18, "color": palette.INK},
        hoverinfo="skip",
    )
    for share, (x, y) in zip(shares, spots, strict=True):
        sign = palette.mark(view.federation, share.party)
        guest = share.party == view.model.guest
        title = label(t.party(view.federation, share.party))
        held = {"features": share.features, "used": share.used, "splits": share.splits}
        hover = wrap(t("overview.guest_holds" if guest else "overview.host_holds", **held), 40, 4)
        name = wrap(t.party(view.federation, share.party), 22 if guest or hosts < BELOW or beside else 14, 3)
        figure.add_scatter(
            x=[x],
            y=[y],
            mode="markers+text",
            marker={"size": 32 if beside and not guest else 46, "symbol": sign.symbol, "color": sign.colour},
            text=[
                f"{' ' * 2 * (beside and not guest)}<b>{name}</b><br>{t('overview.feature_count', n=share.features)}"
            ],
            textposition="top center" if guest else "middle right" if beside else "bottom center",
            textfont={"size": 13},
            hovertemplate=f"<b>{title}</b><br>{hover}<extra></extra>",
            cliponaxis=False,
        )
    figure.update_xaxes(visible=False, range=[-0.02, 1.02])
    rows = [-0.6, hosts - 0.4] if beside else [-0.75, 1.75] if hosts else [0.4, 1.75]
    return figure.update_yaxes(visible=False, range=rows)


def holdings(t: Texts, view: View) -> None:
    """A row a party: what it holds, what it never sees, how many records it brought."""
    shares, record = view_models.shares(view), view.record
    brought = record.alignment.records if record.alignment else {}
    words = ["guest" if share.party == view.model.guest else "host" for share in shares]
    median = view_models.released(view) == "median"
    never = ["median" if word == "guest" and median else word for word in words]
    table: frame.Columns = {
        t("words.party"): [
            t.noted(f"**{palette.name(t, view.federation, share.party)}**", t(f"words.{word}"))
            for share, word in zip(shares, words, strict=True)
        ],
        t("overview.holds"): [
            t(f"overview.{word}_holds", features=share.features, used=share.used, splits=share.splits)
            for share, word in zip(shares, words, strict=True)
        ],
        t("overview.never"): [t(f"overview.{word}_never") for word in never],
        t("overview.brought"): [f"{brought[s.party]:,}" if s.party in brought else "–" for s in shares],
    }
    with st.container(key="cards_holdings"):
        frame.table(table, t("overview.who_holds"))


def aligned(t: Texts, federation: Federation, found: Alignment) -> str:
    """How many people all parties hold, how they were found, and how many each party brought."""
    brought = [f"{markdown(t.party(federation, party))} {count:,}" for party, count in found.records.items()]
    return t(
        "alignment.sentence",
        n=found.joint,
        people=f"{found.joint:,}",
        seconds=t.duration(found.seconds),
        method=t(f"alignment.by_{found.method}"),
        brought=t.listed(brought),
    )
