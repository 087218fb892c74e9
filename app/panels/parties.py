"""Who takes part in a model, what each holds, and what the three claims about it rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
import streamlit as st

from app import view_models
from app.panels import charts, frame, palette
from app.session import page
from app.texts import Texts, bare, label, markdown, number, percent, wrap
from app.view_models import View

if TYPE_CHECKING:
    from backend.data.federation import Federation
    from backend.protocols.alignment.exchange import Alignment
    from backend.results import ModelRecord

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
    brought = view.record.alignment.records if view.record.alignment else {}
    listed = t.listed([f"{markdown(t.party(view.federation, s.party))} {s.features}" for s in shares])
    sentence = t(
        "overview.network", n=len(shares), features=sum(s.features for s in shares), people=f"{people:,}", listed=listed
    )
    twin: frame.Columns = {
        t("words.party"): [palette.plain(t, view.federation, s.party) for s in shares],
        t("words.role"): [t("words.guest" if s.party == view.model.guest else "words.host") for s in shares],
        t("words.features"): [s.features for s in shares],
        t("words.used"): [s.used for s in shares],
        t("words.splits"): [s.splits for s in shares],
        t("overview.brought"): [f"{brought[s.party]:,}" if s.party in brought else "–" for s in shares],
        t("overview.records"): [f"{people:,}"] * len(shares),
    }
    frame.chart(t, _network(t, view, shares), sentence, twin, "network")


def _network(t: Texts, view: View, shares: tuple[view_models.Share, ...]) -> go.Figure:
    """Up to three Hosts stand below the Guest; more stand beside it, so that their names have room on a phone."""
    hosts = len(shares) - 1
    beside = hosts > BELOW
    if beside:
        spots = [(0.16, (hosts - 1) / 2)] + [(0.5, float(hosts - 1 - i)) for i in range(hosts)]
    else:
        spots = [(0.5, 1.0)] + [((i + 0.5) / hosts, 0.0) for i in range(hosts)]
    (gx, gy), figure = spots[0], charts.figure(64 * hosts if beside else 300 if hosts else 180, showlegend=False)
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
    """A card a party: what it holds and what it never sees."""
    shares = view_models.shares(view)
    with st.grid(min(len(shares), 3), min_column_width=220):
        for share in shares:
            guest = share.party == view.model.guest
            words = "guest" if guest else "host"
            with st.container(border=True, height="stretch"):
                st.markdown(f"**{palette.name(t, view.federation, share.party)}**")
                st.caption(t(f"words.{words}"), help=t(f"glossary.{words}"))
                counts = {"features": share.features, "used": share.used, "splits": share.splits}
                st.markdown(f":material/inventory_2: {t(f'overview.{words}_holds', **counts)}")
                never = "median" if guest and view_models.released(view) == "median" else words
                st.markdown(f":material/visibility_off: {t(f'overview.{never}_never')}")


def card(t: Texts, view: View) -> None:
    """The model card: how good, how large, how made."""
    record = view.record
    with st.grid(2, min_column_width=120):
        for name in view_models.FIGURES[view.task]:
            shown = frame.figure(t, record.metrics, name, t.unit(view.federation.label))
            st.metric(t(f"figure.{name}"), shown, help=frame.about(t, view.task, name), border=True)
        st.metric(t("words.trees"), f"{record.n_trees:,}", help=t("glossary.tree"), border=True)
        st.metric(t("overview.training_time"), t.duration(record.seconds), border=True)
    st.markdown(_quality(t, view))
    name = view_models.algorithm(record)
    st.markdown(
        f":material/account_tree: **{markdown(frame.algorithm(t, record))}**", help=t(f"algorithm.hover_{name}")
    )
    icon, grown = _grown(t, record)
    st.markdown(f":material/{icon}: {grown}")
    if record.alignment is not None and record.hosts:
        st.markdown(
            f":material/join_inner: {aligned(t, view.federation, record.alignment)}",
            help=t(f"alignment.what_{record.alignment.method}"),
        )
    with st.expander(t("overview.identity"), icon=":material/fingerprint:"):
        st.table(_identity(t, view), border="horizontal", alt=t("overview.identity"))


def _quality(t: Texts, view: View) -> str:
    """What is predicted and how well, in a sentence."""
    record, federation = view.record, view.federation
    metrics, known = (
        record.metrics,
        {name: frame.figure(t, record.metrics, name, t.unit(view.federation.label)) for name in ("rmse", "r2")},
    )
    return t(
        f"overview.quality_{view.task}",
        **known,
        auc=percent(metrics.auc),
        accuracy=percent(metrics.accuracy),
        classes=len(view.model.outputs.classes),
        listed=markdown(t.listed(list(view.model.outputs.classes))),
        people=f"{metrics.n:,}",
        where=t("overview.tested" if metrics.part == "test" else "overview.not_tested"),
        label=markdown(t.label(federation)),
        rate=percent(record.positive_rate),
    )


def _grown(t: Texts, record: ModelRecord) -> tuple[str, str]:
    """Icon and sentence: what could be read while the model was made."""
    name = view_models.algorithm(record)
    if name == view_models.IMPORTED:
        return "upload_file", t("overview.grown_elsewhere")
    if name == "opboost":
        return "blur_on", t("overview.grown_ranks", epsilon=bare(float(str(record.parameters["epsilon"]))))
    if record.cipher == "none":
        return "science", t("overview.grown_plain")
    words = frame.cipher(t, record.cipher, record.key_bits)
    return "lock", t("overview.grown_cipher", cipher=words, secret=t(f"algorithm.secret_{name}"))


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


def _identity(t: Texts, view: View) -> dict[str, str]:
    record = view.record
    facts = {
        t("overview.id"): f"`{record.id}`",
        t("overview.hash"): f"`{record.content_hash}`",
        t("overview.created"): record.created[:19].replace("T", " ") + " UTC",
        t("overview.algorithm"): markdown(frame.algorithm(t, record)),
        t("words.leaves"): f"{record.n_leaves:,}",
    }
    if len(record.parts) > 1:
        facts[t("overview.parts")] = " / ".join(f"{rows:,}" for rows in record.parts.values())
    if view.task != "number":
        facts[t("overview.log_loss")] = number(record.metrics.log_loss)
    if view.task == "binary":
        facts[t("overview.accuracy")] = percent(record.metrics.accuracy)
    for party, content in record.host_hashes.items():
        facts[t("overview.host_hash", party=markdown(t.party(view.federation, party)))] = f"`{content}`"
    for name, value in record.parameters.items():
        facts[t("overview.parameter", name=markdown(str(name)))] = markdown(str(value))
    return facts


def tiles(t: Texts, view: View) -> None:
    """Three verdicts, each with a way to its evidence."""
    meanings = sum(bool(feature.meaning) for _, feature in view.model.dictionary)
    used = view_models.used(view.importance)
    found = view_models.open_findings(view.compliance)
    shares = view_models.shares(view)
    hidden = sum(share.splits for share in shares[1:])
    if found:
        worst = markdown(t.brief(view.model.feature(found[0].feature)))
        verdict = t("overview.flagged", n=len({f.feature for f in found}), worst=worst)
    else:
        verdict = t("overview.unflagged", assessed=view.compliance.assessed)
    with st.grid("auto", min_column_width=260):
        _tile(
            t,
            "interpretability",
            t("overview.of", part=meanings, whole=len(view.model.dictionary)),
            t("overview.meanings", used=len(used), offered=len(view.importance)),
        )
        flagged = t("overview.flags", n=len({f.feature for f in found}))
        _tile(t, "compliance", f":red[{flagged}]" if found else flagged, verdict)
        _tile(
            t,
            "privacy",
            t("overview.hidden", part=hidden, whole=sum(share.splits for share in shares)),
            _private(t, view) if len(shares) > 1 else t("overview.alone"),
        )


def _private(t: Texts, view: View) -> str:
    """What the Guest learns of a person who is scored."""
    kind = view_models.released(view)
    numbers = {"classes": len(view.model.outputs.classes), "median": len(view.model.trees)}.get(kind, 1)
    return t(f"overview.private_{kind}", numbers=f"{numbers:,}")


def _tile(t: Texts, name: str, value: str, verdict: str) -> None:
    icon, target = TILES[name]
    with st.container(border=True, height="stretch"):
        st.markdown(f":material/{icon}: **{t(f'overview.{name}')}**", help=t(f"overview.{name}_help"))
        st.markdown(f"### {value}", anchors=False)
        st.markdown(verdict)
        st.page_link(
            page(target), label=t(f"overview.{name}_link"), icon=":material/arrow_forward:", icon_position="right"
        )
