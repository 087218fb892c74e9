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

QUESTION_KINDS = ("score", "reasons", "cohort")  # kinds of questions
EXACT_UP_TO = 10**6  # counts above are rounded to a power of ten
CURVE_DASHES = {"unique": "solid", "identified": "dot"}
QUALITY_FIGURES = ("auc", "ks", "accuracy", "rmse", "r2")
USUAL_DITHER = 2.0**-4  # width of dither, on a logit, that a model without any is compared with


def table_two(t: Texts, view: View, batch: ScoreBatch, rows: Sequence[LedgerRow], lines: Sequence[LedgerLine]) -> None:
    """Draw the paper's table for the last run; Hosts that have the same in every row share a column."""
    people = sum(score.scored for score in batch.scores)
    sealed = _encrypted(lines)
    hidden = sum(entry.kind in sealed for entry in batch.transcript)
    cipher = frame.cipher(t, batch.cipher, batch.key_bits)
    if batch.cipher == "none":
        st.markdown(t("privacy.plain"))
    elif hidden:
        words = t("privacy.sentence", n=people, cipher=cipher, hidden=hidden, all=len(batch.transcript))
        st.markdown(t.joined(words, _others(t, batch, lines)))
    elif not batch.recalled:
        st.markdown(t("privacy.nobody_asked"))
    if batch.recalled:
        counts = {"recalled": f"{batch.recalled:,}", "people": f"{people:,}"}
        st.markdown(t("privacy.recalled", n=batch.recalled, **counts))
    alike: dict[tuple[str, ...], list[str]] = {}
    for host in view.model.hosts:
        alike.setdefault(tuple(row.hosts[host] for row in rows), []).append(host)
    columns = {palette.plain(t, view.federation, view.model.guest): [_seen(t, row.guest) for row in rows]}
    for host_words, hosts in alike.items():
        title = t.listed([palette.plain(t, view.federation, host) for host in hosts])
        columns[title] = [_seen(t, word) for word in host_words]
    what = {t("privacy.information"): [t(f"privacy.what_{row.what}") for row in rows]}
    frame.table({markdown(head): cells for head, cells in (what | columns).items()}, t("privacy.ledger"))
    st.caption(t("privacy.paper"))


def _others(t: Texts, batch: ScoreBatch, lines: Sequence[LedgerLine]) -> str:
    """Return what the messages are in which nothing is encrypted."""
    sealed = _encrypted(lines)
    kinds = Counter(entry.kind for entry in batch.transcript if entry.kind not in sealed)
    listed = [t.noted(kind_in_words(t, kind), f"{n:,}") for kind, n in kinds.items()]
    if listed:
        return t("privacy.others", n=kinds.total(), listed=t.listed(listed))
    return ""


def kind_in_words(t: Texts, kind: str) -> str:
    """Return what a kind of message is called."""
    key = f"message.{kind}.title"
    return t(key) if t.has(key) else kind


def _encrypted(lines: Sequence[LedgerLine]) -> set[str]:
    """Kinds of messages with an encrypted field; the last of them, the sum, its receiver can decrypt."""
    return {line.kind for line in lines if line.encrypted}


def _seen(t: Texts, word: str) -> str:
    return t(f"privacy.saw_{word}")


def fields(t: Texts, view: View, lines: Sequence[LedgerLine]) -> None:
    """Draw every field of every message, by the party that got it."""
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


def told(t: Texts, view: View, hosts_told: Sequence[GivenAway], person: str) -> None:
    """Draw what the Hosts' answers have given away, and what more answers about the model would: upper bounds."""
    hosts = [palette.name(t, view.federation, host.host) for host in hosts_told]
    counted = [host for host in hosts_told if host.people is not None]
    largest = max(counted, key=lambda host: host.largest or 0.0, default=None)
    st.markdown(_told_sentence(t, view, largest))
    with st.container(horizontal=True):
        cells = (
            ("largest", _bits(t, None if largest is None else largest.largest)),
            ("score", _bits(t, max((host.costs.get("score", 0.0) for host in hosts_told), default=0.0))),
            ("capacity", _bits(t, max((host.capacity for host in hosts_told), default=0.0))),
        )
        for name, value in cells:
            st.metric(t(f"privacy.told_{name}"), value, help=t(f"privacy.told_{name}_help"), border=True)
    heads: frame.Columns = {
        t("privacy.told_host"): hosts,
        t("privacy.told_people"): [
            t("privacy.told_not_counted") if host.people is None else f"{host.people:,}" for host in hosts_told
        ],
        t("privacy.told_largest"): [_bits(t, host.largest) for host in hosts_told],
        **(
            {t("privacy.told_person", id=markdown(person)): [_bits(t, host.person) for host in hosts_told]}
            if person
            else {}
        ),
        t("privacy.told_limit"): [_limit(t, host) for host in hosts_told],
    }
    with st.container(key="cards_told"):  # on a phone a card each
        frame.table(heads, t("privacy.told"))
    box = frame.box(t("privacy.told_costs"), "table", "privacy_told_costs_box")
    if box is None:
        return
    kinds = [kind for kind in QUESTION_KINDS if any(kind in host.costs for host in hosts_told)]
    more: frame.Columns = {
        t("privacy.told_host"): hosts,
        **{t(f"privacy.told_{kind}"): [_bits(t, host.costs.get(kind)) for host in hosts_told] for kind in kinds},
        t("privacy.told_capacity"): [_bits(t, host.capacity) for host in hosts_told],
    }
    with box, st.container(key="cards_told_costs"):
        frame.table(more, t("privacy.told_costs"))
        st.caption(f":material/info: {t('privacy.told_note')}")


def _told_sentence(t: Texts, view: View, largest: GivenAway | None) -> str:
    if largest is None:
        return t("privacy.told_uncounted")
    if not largest.people:
        return t("privacy.told_nobody", days=largest.days)
    host = markdown(t.party(view.federation, largest.host))
    bits = _bits(t, largest.largest)
    return t(
        "privacy.told_sentence", n=largest.people, people=f"{largest.people:,}", days=largest.days, host=host, bits=bits
    )


def _bits(t: Texts, bits: float | None) -> str:
    """Return an upper bound, rounded up."""
    if bits is None:
        return "–"
    return t("privacy.bits", bits=bare(ceil(10 * bits) / 10)).replace(" ", "\u00a0")


def _limit(t: Texts, host: GivenAway) -> str:
    """Return what the Host's operator allows: answers, and bits where these are limited."""
    if host.people is None:
        return "–"
    if host.answers < host.total:
        words = "told_answers"
    else:
        words = "told_total"
    answers = t(f"privacy.{words}", answers=f"{host.answers:,}", total=f"{host.total:,}")
    if host.limit is None:
        return answers
    return t("privacy.told_limited", answers=answers, bits=_bits(t, host.limit))


def person(t: Texts, scores: Sequence[Score]) -> Score:
    """Whose score is read: the last one, or any other of the run."""
    if len(scores) == 1:
        return scores[0]
    last = len(scores) - 1
    ids = [score.id for score in scores]
    index = st.selectbox(t("score.person"), range(len(ids)), last, key="privacy_person", format_func=ids.__getitem__)
    return scores[index or 0]


def reading(t: Texts, score: Score, read: LeakReading) -> None:
    """Draw what one score leaves open, in words and numbers."""
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
        exact = t("privacy.bits", bits=number(read.disclosed_bits))
        st.metric(t("leak_bound.exact"), exact, help=t("leak_bound.exact_help"), border=True)
    st.caption(f":material/info: {t('privacy.upper_bound')}")


def bounded(t: Texts, score: Score, bound: LeakBound) -> bool:
    """Draw what one score tells at most, if counting takes longer than a page may; return whether to count all the same."""
    disclosed = _bits(t, bound.disclosed_bits)
    times = _many(ceil(2**bound.disclosed_bits))
    st.markdown(t("leak_bound.sentence", id=markdown(score.id), told=disclosed, times=times))
    min_bits = t("privacy.bits", bits=bare(floor(10 * bound.min_entropy) / 10))
    with st.container(horizontal=True):
        for name, value in (("told", disclosed), ("least", min_bits)):
            st.metric(t(f"leak_bound.{name}"), value, help=t(f"leak_bound.{name}_help"), border=True)
    st.caption(f":material/info: {t('leak_bound.hint')}")
    return st.button(t("leak_bound.count"), icon=":material/speed:", key="leak_count")


def _many(count: int) -> str:
    """1,290; from a million on as a power of ten: 3.1 × 10²⁴."""
    if count < EXACT_UP_TO:
        return f"{count:,}"
    power = len(str(count)) - 1
    return f"{count / 10**power:.1f} × 10{str(power).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def follow(
    t: Texts, job: Job[Any], points_drawn: Sequence[object], redraw: Callable[[], None], key: str = "privacy"
) -> None:
    """Draw how far the audit is, and a way to stop; `redraw` draws the page once there is more than is `points_drawn`."""
    frame.follow(
        t, job, lambda stage: t(f"stage.{stage}"), key, redraw, lambda: len(job.result or ()) > len(points_drawn)
    )


def curve(t: Texts, view: View, points: Sequence[LeakPoint]) -> None:
    """Draw how many people's scores are theirs alone, by the width of the score."""
    twin: frame.Columns = {
        t("privacy.width"): [point.score_bits for point in points],
        t("privacy.unique"): [percent(point.unique) for point in points],
        t("privacy.identified"): [percent(point.identified) for point in points],
        t("privacy.paths"): [bare(point.paths) for point in points],
        t("privacy.median_count"): [t("privacy.bits", bits=number(point.bits)) for point in points],
        t("privacy.median_entropy"): [t("privacy.bits", bits=number(point.entropy)) for point in points],
    }
    words = _verdict(t, view, points)
    frame.chart(t, _chart(t, view, points, words), words, twin, "privacy_curve")
    st.caption(t("privacy.audit"))


def _verdict(t: Texts, view: View, points: Sequence[LeakPoint]) -> str:
    model_point = min(points, key=lambda point: abs(point.score_bits - view.record.score_bits))
    return t(
        "privacy.verdict" if model_point.identified else "privacy.verdict_none_alone",
        bits=model_point.score_bits,
        unique=percent(model_point.unique),
        people=f"{model_point.people:,}",
        records=f"{model_point.records:,}",
        named=percent(model_point.identified),
    )


def _chart(t: Texts, view: View, points: Sequence[LeakPoint], sentence: str) -> charts.Drawing:
    widths = [float(point.score_bits) for point in points]
    shares = {name: [getattr(point, name) for point in points] for name in CURVE_DASHES}
    curves = [
        lines.Line(widths, row, t(f"privacy.{name}"), dash=CURVE_DASHES[name], dots=True)
        for name, row in shares.items()
    ]
    model_bits = float(view.record.score_bits)
    if model_bits in widths:
        curves.insert(0, lines.Line([model_bits, model_bits], [0, 1], t("privacy.this_model"), charts.theme().quiet, 4))
    texts = {t(f"privacy.{name}"): [percent(share) for share in row] for name, row in shares.items()}
    hover = lines.hover(widths, texts)
    across = lines.Axis(t("privacy.width"), min(widths) - 1, max(widths) + 1, {width: bare(width) for width in widths})
    return lines.drawing(curves, across, lines.between("", 0, 1, lines.share), sentence, hover)


def frontier(t: Texts, view: View, points: Sequence[TradeoffPoint], dither: float) -> None:
    """Draw privacy–utility trade-off: how many scores identify a path and how good scores are, by resolution and dither;
    `dither` is the Hosts'.
    """
    figures = [name for name in QUALITY_FIGURES if any(isfinite(getattr(point.metrics, name)) for point in points)]
    model_point = min(points, key=lambda p: (abs(p.score_bits - view.record.score_bits), abs(p.dither - dither)))
    twin: frame.Columns = {
        t("privacy.width"): [point.score_bits for point in points],
        t("privacy.dither"): [_amplitude(t, point) for point in points],
        t("privacy.unique"): [percent(point.unique) for point in points],
        t("privacy.paths"): [bare(point.paths) for point in points],
        **{t(f"figure.{name}"): [f"{getattr(p.metrics, name):.4f}" for p in points] for name in figures},
        t("privacy.chosen"): [t("privacy.this_model") if point is model_point else "" for point in points],
    }
    sentence = _frontier_verdict(t, points, model_point, figures[0], ldexp(USUAL_DITHER, view.model.outputs.scale))
    frame.chart(t, _frontier_chart(t, points, model_point, sentence), sentence, twin, "privacy_frontier")
    st.caption(t("privacy.frontier_audit", people=f"{model_point.people:,}", records=f"{model_point.records:,}"))


def _frontier_verdict(
    t: Texts, points: Sequence[TradeoffPoint], model_point: TradeoffPoint, name: str, usual: float
) -> str:
    """Compare the model's own point with the one without dither or, if it has none, with one of usual dither."""
    same = [point for point in points if point.score_bits == model_point.score_bits and point is not model_point]
    wanted_dither = 0.0 if model_point.dither else usual
    counterpart = min(same, key=lambda point: abs(point.dither - wanted_dither), default=model_point)
    return t(
        "privacy.frontier_verdict" if model_point.dither else "privacy.frontier_verdict_none",
        bits=model_point.score_bits,
        dither=_amplitude(t, model_point if model_point.dither else counterpart),
        unique=percent(model_point.unique),
        other=percent(counterpart.unique),
        figure=t(f"figure.{name}"),
        value=f"{getattr(model_point.metrics, name):.4f}",
        before=f"{getattr(counterpart.metrics, name):.4f}",
    )


def _amplitude(t: Texts, point: TradeoffPoint) -> str:
    if point.dither:
        return f"±{point.dither / 2:.4f}"
    return t("privacy.no_dither")


def _frontier_chart(
    t: Texts, points: Sequence[TradeoffPoint], model_point: TradeoffPoint, sentence: str
) -> charts.Drawing:
    """Return a chart with a line for each resolution: share of scores that identify a path, by the width of dither."""
    widths = sorted({point.dither for point in points})
    names = {}
    for at, width in enumerate(widths):
        point_of_width = next(point for point in points if point.dither == width)
        names[at] = _amplitude(t, point_of_width)
    curves = []
    texts = {at: [name] for at, name in names.items()}
    for i, bits in enumerate(sorted({point.score_bits for point in points}, reverse=True)):
        by_width = {widths.index(p.dither): p.unique for p in points if p.score_bits == bits}
        x = sorted(by_width)
        name = t("privacy.bits", bits=bits)
        dash = tuple(lines.DASHES)[i % len(lines.DASHES)]
        curves.append(lines.Line(x, [by_width[at] for at in x], name, dash=dash, dots=True))
        for at in x:
            texts[at].append(f"{name}: {percent(by_width[at])}")
    place = widths.index(model_point.dither)
    mark = palette.GUEST.colour
    curves.append(lines.Line([place], [model_point.unique], t("privacy.this_model"), mark, 9, dots=True))
    across = lines.Axis(t("privacy.dither"), -0.5, len(widths) - 0.5, names)
    hover = [(at, "\n".join(words)) for at, words in texts.items()]
    return lines.drawing(curves, across, lines.between(t("privacy.unique"), 0, 1, lines.share), sentence, hover)
