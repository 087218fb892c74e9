"""Who takes part in a model, what each holds, and what the three claims about it rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import view_models
from app.panels import charts, frame, palette
from app.texts import Texts, label, markdown, wrap
from app.view_models import View

if TYPE_CHECKING:
    from backend.data.federation import Federation
    from backend.protocols.alignment.outcome import Alignment

HOST_LANE_PIXELS = 64  # pixels of a Host to the right of the Guest
HOSTS_BELOW = 3  # Hosts that have room below the Guest
CLAIM_TILES = {  # claim: icon, page with the evidence
    "interpretability": ("visibility", "features"),
    "compliance": ("flag", "compliance"),
    "privacy": ("lock", "structure"),
}


def network(t: Texts, view: View) -> None:
    """Draw the parties as a picture: the Guest above, its Hosts below, ciphertexts between them."""
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
    frame.drawing(_network(t, view, sentence), "network")


def _network(t: Texts, view: View, sentence: str) -> str:
    """Return a picture: up to three Hosts are below the Guest; more are to its right, so that their names have room on a phone."""
    shares = view_models.shares(view)
    hosts = len(shares) - 1
    hosts_beside = hosts > HOSTS_BELOW
    if hosts_beside:
        spots = [(16.0, HOST_LANE_PIXELS * hosts / 2), *((50.0, HOST_LANE_PIXELS * (i + 0.5)) for i in range(hosts))]
        height = HOST_LANE_PIXELS * hosts
    else:
        spots = [(50.0, 84.0), *((100 * (i + 0.5) / hosts, 184.0) for i in range(hosts))]
        height = 272 if hosts else 120
    gx, gy = spots[0]
    parts = []
    for x, y in spots[1:]:
        parts.append(
            f'<line x1="{gx}%" y1="{gy}" x2="{x:.2f}%" y2="{y}" stroke="{palette.INK}" stroke-width="1.5" stroke-dasharray="2 3"/>'
        )
        halo = f'paint-order="stroke" stroke="{charts.background()}" stroke-width="8"'
        at = f'x="{gx + 0.6 * (x - gx):.2f}%" y="{gy + 0.6 * (y - gy) + 9:.0f}" font-family="{palette.ICONS}" font-size="18"'
        parts.append(f'<text {at} fill="{palette.INK}" {halo}>lock</text>')
    for share, (x, y) in zip(shares, spots, strict=True):
        sign = palette.mark(view.federation, share.party)
        guest = share.party == view.model.guest
        counts = {"features": share.features, "used": share.used, "splits": share.splits}
        hover = label(t("overview.guest_holds" if guest else "overview.host_holds", **counts))
        size = 40 if hosts_beside and not guest else 64
        at = f'x="{x:.2f}%" y="{y + size / 3:.0f}" font-size="{size}" fill="{sign.colour}"'
        mark = f"<text {at}>{sign.glyph}<title>{hover}</title></text>"
        if not hosts_beside and (guest or hosts < HOSTS_BELOW):
            room = 22
        else:
            room = 15
        name = wrap(t.party(view.federation, share.party), room, 2 if hosts_beside else 3)
        lines = [f'<tspan font-weight="600">{line}</tspan>' for line in name.split("<br>")]
        lines.append(t("overview.feature_count", n=share.features))
        tall = charts.LINE * (len(lines) - 1)
        top, place = (y - 26 - tall, "") if guest else (y + 40, "")
        if hosts_beside and not guest:
            top = y + 4 - tall / 2
            place = 'dx="22" text-anchor="start"'
        words = [
            f'<text x="{x:.2f}%" y="{top + charts.LINE * i:.0f}" {place}>{line}</text>' for i, line in enumerate(lines)
        ]
        parts += [mark, *words]
    return charts.svg(parts, height, sentence)


def holdings(t: Texts, view: View) -> None:
    """Draw a row for each party: what it holds, what it never sees, how many records it brought."""
    shares = view_models.shares(view)
    record = view.record
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


def aligned(t: Texts, federation: Federation, alignment: Alignment) -> str:
    """Return how many people all parties hold, how they were found, and how many each party brought."""
    brought = []
    for party, count in alignment.records.items():
        brought.append(f"{markdown(t.party(federation, party))} {count:,}")
    return t(
        "alignment.sentence",
        n=alignment.joint,
        people=f"{alignment.joint:,}",
        seconds=t.duration(alignment.seconds),
        method=t(f"alignment.by_{alignment.method}"),
        brought=t.listed(brought),
    )
