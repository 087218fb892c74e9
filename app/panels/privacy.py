"""Who learned what: Table II of a real run, field by field, and the leak meter's readings of one score and of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import ceil, floor, isfinite, ldexp
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.panels import charts, frame, lines, palette
from app.texts import Texts, bare, markdown, number, percent
from app.view_models import View

if TYPE_CHECKING:
    from backend.jobs import Job
    from backend.privacy.disclosure import DisclosedField as LedgerLine
    from backend.privacy.disclosure import PartyDisclosure as LedgerRow
    from backend.privacy.given_away import GivenAway
    from backend.privacy.leakage import LeakBound, LeakPoint, LeakReading
    from backend.privacy.tradeoff import TradeoffPoint
    from backend.results import Score, ScoreBatch

TOLD = ("score", "reasons", "cohort")  # kinds of questions
EXACT = 10**6  # counts above are rounded to a power of ten
LINES = {"unique": "solid", "named": "dot"}
FIGURES = ("auc", "ks", "accuracy", "rmse", "r2")
USUAL = 2.0**-4  # width of dither, on a logit, that a model without any is compared with


def table_two(t: Texts, view: View, done: ScoreBatch, rows: Sequence[LedgerRow], lines: Sequence[LedgerLine]) -> None:
    """The paper's table for the last run; Hosts that have the same in every row share a column."""
    people = sum(score.scored for score in done.scores)
    sealed = _encrypted(lines)
    hidden = sum(entry.kind in sealed for entry in done.transcript)
    cipher = frame.cipher(t, done.cipher, done.key_bits)
    if done.cipher == "none":
        st.markdown(t("privacy.plain"))
    elif hidden:
        words = t("privacy.sentence", n=people, cipher=cipher, hidden=hidden, all=len(done.transcript))
        st.markdown(t.joined(words, _others(t, done, lines)))
    elif not done.recalled:
        st.markdown(t("privacy.nobody_asked"))
    if done.recalled:
        counts = {"recalled": f"{done.recalled:,}", "people": f"{people:,}"}
        st.markdown(t("privacy.recalled", n=done.recalled, **counts))
    alike: dict[tuple[str, ...], list[str]] = {}
    for host in view.model.hosts:
        alike.setdefault(tuple(row.hosts[host] for row in rows), []).append(host)
    columns = {palette.plain(t, view.federation, view.model.guest): [_seen(t, row.guest) for row in rows]}
    for seen, hosts in alike.items():
        title = t.listed([palette.plain(t, view.federation, host) for host in hosts])
        columns[title] = [_seen(t, word) for word in seen]
    what = {t("privacy.information"): [t(f"privacy.what_{row.what}") for row in rows]}
    frame.table({markdown(head): cells for head, cells in (what | columns).items()}, t("privacy.ledger"))
    st.caption(t("privacy.paper"))


def _others(t: Texts, done: ScoreBatch, lines: Sequence[LedgerLine]) -> str:
    """What the messages are in which nothing is encrypted."""
    sealed = _encrypted(lines)
    kinds = Counter(entry.kind for entry in done.transcript if entry.kind not in sealed)
    listed = [t.noted(kind_in_words(t, kind), f"{n:,}") for kind, n in kinds.items()]
    if listed:
        return t("privacy.others", n=kinds.total(), listed=t.listed(listed))
    return ""


def kind_in_words(t: Texts, kind: str) -> str:
    """What a kind of message is called."""
    key = f"message.{kind}.title"
    return t(key) if t.has(key) else kind


def _encrypted(lines: Sequence[LedgerLine]) -> set[str]:
    """Kinds of messages with an encrypted field; the last of them, the sum, its receiver can decrypt."""
    return {line.kind for line in lines if line.encrypted}


def _seen(t: Texts, word: str) -> str:
    return t(f"privacy.saw_{word}")


def fields(t: Texts, view: View, lines: Sequence[LedgerLine]) -> None:
    """Every field of every message, by the party that got it."""
    box = frame.box(t("privacy.fields"), "table", "privacy_fields_box")
    if box is None:
        return
    columns: frame.Columns = {
        t("privacy.party"): [palette.plain(t, view.federation, line.party) for line in lines],
        t("transcript.sender"): [palette.plain(t, view.federation, line.sender) for line in lines],
        t("transcript.kind"): [kind_in_words(t, line.kind) for line in lines],
        t("privacy.field"): [line.field for line in lines],
        t("privacy.times"): [line.messages for line in lines],
        t("privacy.form"): [t("privacy.encrypted" if line.encrypted else "privacy.clear") for line in lines],
        t("privacy.key"): [t.party(view.federation, line.key_of) if line.key_of else "–" for line in lines],
        t("privacy.readable"): [t("privacy.saw_yes" if line.readable else "privacy.saw_no") for line in lines],
    }
    with box:
        frame.data(columns, "privacy_fields", t("privacy.fields"))


def told(t: Texts, view: View, found: Sequence[GivenAway], person: str) -> None:
    """What the Hosts' answers have given away, and what more answers about the model would: upper bounds."""
    hosts = [palette.name(t, view.federation, one.host) for one in found]
    counted = [host for host in found if host.people is not None]
    most = max(counted, key=lambda host: host.largest or 0.0, default=None)
    st.markdown(_told_sentence(t, view, most))
    with st.container(horizontal=True):
        cells = (
            ("largest", _bits(t, None if most is None else most.largest)),
            ("score", _bits(t, max((host.costs.get("score", 0.0) for host in found), default=0.0))),
            ("capacity", _bits(t, max((host.capacity for host in found), default=0.0))),
        )
        for name, value in cells:
            st.metric(t(f"privacy.told_{name}"), value, help=t(f"privacy.told_{name}_help"), border=True)
    heads: frame.Columns = {
        t("privacy.told_host"): hosts,
        t("privacy.told_people"): [
            t("privacy.told_not_counted") if host.people is None else f"{host.people:,}" for host in found
        ],
        t("privacy.told_largest"): [_bits(t, host.largest) for host in found],
        **(
            {t("privacy.told_person", id=markdown(person)): [_bits(t, host.person) for host in found]} if person else {}
        ),
        t("privacy.told_limit"): [_limit(t, host) for host in found],
    }
    with st.container(key="cards_told"):  # on a phone a card each
        frame.table(heads, t("privacy.told"))
    box = frame.box(t("privacy.told_costs"), "table", "privacy_told_costs_box")
    if box is None:
        return
    kinds = [kind for kind in TOLD if any(kind in host.costs for host in found)]
    more: frame.Columns = {
        t("privacy.told_host"): hosts,
        **{t(f"privacy.told_{kind}"): [_bits(t, host.costs.get(kind)) for host in found] for kind in kinds},
        t("privacy.told_capacity"): [_bits(t, host.capacity) for host in found],
    }
    with box, st.container(key="cards_told_costs"):
        frame.table(more, t("privacy.told_costs"))
        st.caption(f":material/info: {t('privacy.told_note')}")


def _told_sentence(t: Texts, view: View, most: GivenAway | None) -> str:
    if most is None:
        return t("privacy.told_uncounted")
    if not most.people:
        return t("privacy.told_nobody", days=most.days)
    host = markdown(t.party(view.federation, most.host))
    bits = _bits(t, most.largest)
    return t("privacy.told_sentence", n=most.people, people=f"{most.people:,}", days=most.days, host=host, bits=bits)


def _bits(t: Texts, bits: float | None) -> str:
    """An upper bound, rounded up."""
    if bits is None:
        return "–"
    return t("privacy.bits", bits=bare(ceil(10 * bits) / 10)).replace(" ", "\u00a0")


def _limit(t: Texts, host: GivenAway) -> str:
    """What the Host's operator allows: answers, and bits where these are limited."""
    if host.people is None:
        return "–"
    words = "told_answers" if host.answers < host.total else "told_total"
    allowed = t(f"privacy.{words}", answers=f"{host.answers:,}", total=f"{host.total:,}")
    if host.limit is None:
        return allowed
    return t("privacy.told_limited", answers=allowed, bits=_bits(t, host.limit))


def person(t: Texts, scores: Sequence[Score]) -> Score:
    """Whose score is read: the last one, or any other of the run."""
    if len(scores) == 1:
        return scores[0]
    last = len(scores) - 1
    ids = [score.id for score in scores]
    chosen = st.selectbox(t("score.person"), range(len(ids)), last, key="privacy_person", format_func=ids.__getitem__)
    return scores[chosen or 0]


def reading(t: Texts, score: Score, read: LeakReading) -> None:
    """What one score leaves open, in words and numbers."""
    st.markdown(
        t(
            "privacy.one_way" if read.count == 1 else "privacy.ways",
            id=markdown(score.id),
            count=_many(read.count),
            before=_many(read.combinations),
            sure=percent(2**-read.min_entropy),
        )
    )
    cells = (
        ("count", _many(read.count)),
        ("entropy", t("privacy.bits", bits=number(read.entropy))),
        ("least", t("privacy.bits", bits=number(read.min_entropy))),
        ("prior", t("privacy.bits", bits=number(read.prior))),
    )
    with st.container(horizontal=True):
        for name, value in cells:
            st.metric(t(f"privacy.{name}"), value, help=t(f"privacy.{name}_help"), border=True)
        exact = t("privacy.bits", bits=number(read.told))
        st.metric(t("leak_bound.exact"), exact, help=t("leak_bound.exact_help"), border=True)
    st.caption(f":material/info: {t('privacy.upper_bound')}")


def bounded(t: Texts, score: Score, bound: LeakBound) -> bool:
    """What one score tells at most, where counting takes longer than a page may; whether it is to be counted all the same."""
    disclosed = _bits(t, bound.told)
    times = _many(ceil(2**bound.told))
    st.markdown(t("leak_bound.sentence", id=markdown(score.id), told=disclosed, times=times))
    least = t("privacy.bits", bits=bare(floor(10 * bound.min_entropy) / 10))
    with st.container(horizontal=True):
        for name, value in (("told", disclosed), ("least", least)):
            st.metric(t(f"leak_bound.{name}"), value, help=t(f"leak_bound.{name}_help"), border=True)
    st.caption(f":material/info: {t('leak_bound.hint')}")
    return st.button(t("leak_bound.count"), icon=":material/speed:", key="leak_count")


def _many(count: int) -> str:
    """1,290; from a million on as a power of ten: 3.1 × 10²⁴."""
    if count < EXACT:
        return f"{count:,}"
    power = len(str(count)) - 1
    return f"{count / 10**power:.1f} × 10{str(power).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def follow(t: Texts, job: Job[Any], shown: Sequence[object], redraw: Callable[[], None], key: str = "privacy") -> None:
    """How far the audit is, and a way to stop; `redraw` draws the page once there is more than is `shown`."""
    frame.follow(t, job, lambda stage: t(f"stage.{stage}"), key, redraw, lambda: len(job.result or ()) > len(shown))


def curve(t: Texts, view: View, points: Sequence[LeakPoint]) -> None:
    """How many people's scores are theirs alone, by the width of the score."""
    twin: frame.Columns = {
        t("privacy.width"): [point.score_bits for point in points],
        t("privacy.unique"): [percent(point.unique) for point in points],
        t("privacy.named"): [percent(point.named) for point in points],
        t("privacy.paths"): [bare(point.paths) for point in points],
        t("privacy.median_count"): [t("privacy.bits", bits=number(point.bits)) for point in points],
        t("privacy.median_entropy"): [t("privacy.bits", bits=number(point.entropy)) for point in points],
    }
    words = _verdict(t, view, points)
    frame.chart(t, _chart(t, view, points, words), words, twin, "privacy_curve")
    st.caption(t("privacy.audit"))


def _verdict(t: Texts, view: View, points: Sequence[LeakPoint]) -> str:
    own = min(points, key=lambda point: abs(point.score_bits - view.record.score_bits))
    return t(
        "privacy.verdict" if own.named else "privacy.verdict_none_alone",
        bits=own.score_bits,
        unique=percent(own.unique),
        people=f"{own.people:,}",
        records=f"{own.records:,}",
        named=percent(own.named),
    )


def _chart(t: Texts, view: View, points: Sequence[LeakPoint], sentence: str) -> str:
    widths = [float(point.score_bits) for point in points]
    shares = {name: [getattr(point, name) for point in points] for name in LINES}
    drawn = [lines.Line(widths, row, t(f"privacy.{name}"), dash=LINES[name], dots=True) for name, row in shares.items()]
    own = float(view.record.score_bits)
    if own in widths:
        drawn.insert(0, lines.Line([own, own], [0, 1], t("privacy.this_model"), charts.theme().quiet, 4))
    hover = [
        (width, "\n".join(f"{t(f'privacy.{name}')}: {percent(row[i])}" for name, row in shares.items()))
        for i, width in enumerate(widths)
    ]
    across = lines.Axis(t("privacy.width"), min(widths) - 1, max(widths) + 1, {width: bare(width) for width in widths})
    return lines.drawing(drawn, across, lines.between("", 0, 1, lines.share), sentence, hover)


def frontier(t: Texts, view: View, points: Sequence[TradeoffPoint], dither: float) -> None:
    """Privacy–utility trade-off: how many scores identify a path and how good scores are, by resolution and dither;
    `dither` is the Hosts'.
    """
    known = [name for name in FIGURES if any(isfinite(getattr(point.metrics, name)) for point in points)]
    chosen = min(points, key=lambda p: (abs(p.score_bits - view.record.score_bits), abs(p.dither - dither)))
    twin: frame.Columns = {
        t("privacy.width"): [point.score_bits for point in points],
        t("privacy.dither"): [_amplitude(t, point) for point in points],
        t("privacy.unique"): [percent(point.unique) for point in points],
        t("privacy.paths"): [bare(point.paths) for point in points],
        **{t(f"figure.{name}"): [f"{getattr(p.metrics, name):.4f}" for p in points] for name in known},
        t("privacy.chosen"): [t("privacy.this_model") if point is chosen else "" for point in points],
    }
    sentence = _frontier_verdict(t, points, chosen, known[0], ldexp(USUAL, view.model.outputs.scale))
    frame.chart(t, _frontier_chart(t, points, chosen, sentence), sentence, twin, "privacy_frontier")
    st.caption(t("privacy.frontier_audit", people=f"{chosen.people:,}", records=f"{chosen.records:,}"))


def _frontier_verdict(t: Texts, points: Sequence[TradeoffPoint], chosen: TradeoffPoint, name: str, usual: float) -> str:
    """The model's own point beside that without dither, or, where it has none, beside one with some."""
    same = [point for point in points if point.score_bits == chosen.score_bits and point is not chosen]
    other = min(
        same, key=lambda point: abs(point.dither - usual) if not chosen.dither else point.dither, default=chosen
    )
    return t(
        "privacy.frontier_verdict" if chosen.dither else "privacy.frontier_verdict_none",
        bits=chosen.score_bits,
        dither=_amplitude(t, chosen if chosen.dither else other),
        unique=percent(chosen.unique),
        other=percent(other.unique),
        figure=t(f"figure.{name}"),
        value=f"{getattr(chosen.metrics, name):.4f}",
        before=f"{getattr(other.metrics, name):.4f}",
    )


def _amplitude(t: Texts, point: TradeoffPoint) -> str:
    if point.dither:
        return f"±{point.dither / 2:.4f}"
    return t("privacy.no_dither")


def _frontier_chart(t: Texts, points: Sequence[TradeoffPoint], chosen: TradeoffPoint, sentence: str) -> str:
    """A line a resolution: share of scores that identify a path, by the width of dither."""
    widths = sorted({point.dither for point in points})
    names = {at: _amplitude(t, next(p for p in points if p.dither == width)) for at, width in enumerate(widths)}
    drawn = []
    said = {at: [name] for at, name in names.items()}
    for i, bits in enumerate(sorted({point.score_bits for point in points}, reverse=True)):
        own = {widths.index(p.dither): p.unique for p in points if p.score_bits == bits}
        x = sorted(own)
        name = t("privacy.bits", bits=bits)
        dash = tuple(lines.DASHES)[i % len(lines.DASHES)]
        drawn.append(lines.Line(x, [own[at] for at in x], name, dash=dash, dots=True))
        for at in x:
            said[at].append(f"{name}: {percent(own[at])}")
    place = widths.index(chosen.dither)
    mark = palette.GUEST.colour
    drawn.append(lines.Line([place], [chosen.unique], t("privacy.this_model"), mark, 9, dots=True))
    across = lines.Axis(t("privacy.dither"), -0.5, len(widths) - 0.5, names)
    hover = [(at, "\n".join(words)) for at, words in said.items()]
    return lines.drawing(drawn, across, lines.between(t("privacy.unique"), 0, 1, lines.share), sentence, hover)
