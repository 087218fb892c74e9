"""The demonstration's eight steps in words and numbers, for the one component that draws and moves them.

Everything that is shown comes from a run that has ended. The component asks for nothing, so that no step waits for the server.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files
from math import ceil
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import streamlit as st

from app.panels import palette
from app.texts import Texts, bare, number, percent, size
from app.view_models import View
from backend.errors import ApprovalPending
from backend.services.attack_runs import works
from backend.services.demonstration import needs_explanation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from backend.data.federation import Federation
    from backend.policy.bands import Policy
    from backend.protocols.transport.transcript import TranscriptEntry
    from backend.protocols.transport.wire import LinkState
    from backend.research.attacks.result import AttackResult
    from backend.results import Score, ScoreBatch
    from backend.services.demonstration import HostView, Shown
    from backend.services.protocol_comparison import Compared
    from backend.services.reasons import Reason

STEP_LINK = "step"  # what the address calls the step
DECK_STEPS = ("parties", "ask", "hosts", "sum", "answer", "attack", "race", "learned")
# Step → the piece of a run that it shows.
NEEDS = dict(zip(DECK_STEPS, ("", "score", "score", "score", "score", "attack", "race", "race"), strict=True))
MORE_ATTACKS = ("H4", "H5")  # a Host's, which the lab shows without and with the defence
CARD_COLUMNS = 3  # of a party that are named on its card
Json = dict[str, Any]

HTML = """
<div class="deck">
  <div class="top"><h2 tabindex="-1"></h2><span class="count"></span></div>
  <p class="words"></p>
  <div class="stage"></div>
  <nav></nav>
  <p class="keys"></p>
</div>
"""
ASSETS = files("assets")
_COMPONENT = st.components.v2.component(
    "glassleaf_demonstration",
    html=HTML,
    css=(ASSETS / "demonstration.css").read_text(encoding="utf-8"),
    js=(ASSETS / "demonstration.js").read_text(encoding="utf-8"),
)
# The page's title, still there for screen readers, and all that surrounds a page make room. A step is never dimmed while the server
# works ahead: each says by itself for what it waits.
ROOM_STYLE = """<style>
[data-testid=stSidebar], [data-testid=stHeader], [data-testid=stSidebarCollapsedControl], .st-key-question {display: none}
[data-testid=stElementContainer]:has(> [data-testid=stHeading] h1), [data-testid=stCaptionContainer] {
position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)}
[data-testid=stElementContainer][data-stale=true] {opacity: 1; transition: none}
div[data-testid=stMainBlockContainer] {max-width: none; padding: 16px clamp(12px, 3vw, 44px) 8px}
</style>"""


@dataclass(frozen=True)
class Ahead:
    """What the first steps show of companies that are joined by links, and for what the others wait.

    Attributes
    ----------
    links : dict of str to (bool, str)
        Host → whether its link is up, and the state in words.
    waiting : str
        For what everything waits; empty = for the run itself.
    press : str
        Words of the button that asks the Hosts; empty = there is nothing to ask.
    decides : str
        Host whose operator decides now; empty = none does.
    """

    links: dict[str, tuple[bool, str]] = field(default_factory=dict)
    waiting: str = ""
    press: str = ""
    decides: str = ""


def links(t: Texts, states: Mapping[str, LinkState]) -> dict[str, tuple[bool, str]]:
    """Return of each Host whether its link is up, and the state in words."""
    by_host = {}
    for host, link in states.items():
        if link.up:
            words = t("demonstration.connected", since=link.since)
        else:
            words = t("demonstration.not_connected")
        by_host[host] = (link.up, words)
    return by_host


def make_room() -> None:
    """Have the page show nothing else."""
    st.html(ROOM_STYLE)


def draw(t: Texts, data: Json) -> bool:
    """Draw the component, with `data` as :func:`deck` makes it; return whether its button was pressed."""
    pressed = _COMPONENT(data=data, key=f"demonstration_{t.language}", on_asked_change=lambda: None)
    return bool(pressed.asked)


def deck(t: Texts, start: str, steps: Sequence[Json], parties: Sequence[Json], leave: Mapping[str, str]) -> Json:
    """Return all that the component is given: the parties, the steps, and the words around them.

    Parameters
    ----------
    start : str
        Step to begin with.
    leave : mapping of str to str
        What the address of the page after the demonstration names.
    """
    labels = {}
    for name in ("steps", "back", "next", "keys", "leave", "in_the_lab"):
        labels[name] = t(f"demonstration.{name}")
    labels["other"] = t("demonstration.in_other_language")
    if t.language == "zh":
        labels["other_language"] = "en"
    else:
        labels["other_language"] = "zh"
    labels["leave_to"] = f"overview?{urlencode(leave)}"
    lab = []
    for id_ in MORE_ATTACKS:
        address = urlencode({**leave, "attack": id_})
        lab.append({"title": t(f"attack.{id_.lower()}_title"), "to": f"attack_lab?{address}"})
    return {"start": start, "labels": labels, "parties": list(parties), "steps": list(steps), "lab": lab}


def parties_of(t: Texts, federation: Federation, names: Sequence[str] = ()) -> list[Json]:
    """Return name, title and mark of the parties called `names`, by default all of them, the Guest first."""
    parties = []
    for name in names or [party.name for party in federation.parties]:
        mark = palette.mark(federation, name)
        title = t.party(federation, name)
        parties.append({"name": name, "title": title, "glyph": mark.glyph, "colour": mark.colour})
    return parties


def steps(
    t: Texts,
    federation: Federation,
    view: View | None,
    run: Shown | None,
    look: Callable[[str], HostView] | None,
    ahead: Ahead | None = None,
) -> list[Json]:
    """Return the eight steps up to where the run has come.

    Parameters
    ----------
    view : View or None
        None as long as there is no model.
    look : callable or None
        Host → its own view of the person; synthetic people of simulated Hosts only.
    ahead : Ahead, optional
        What has to happen before anything can be run.
    """
    ahead = ahead or Ahead()
    step_list = []
    for step in DECK_STEPS:
        words: Json = {"id": step, "title": t(f"demonstration.title_{step}"), "words": "", "waiting": ""}
        why = _lacking(t, step, run)
        if step == "parties":
            words |= _parties(t, federation, ahead)
        elif why:
            words |= {"words": _said_ahead(t, step, federation), "waiting": ahead.waiting or why}
            if step == "ask":
                words |= {"press": ahead.press, "cards": _asked(t, federation, ahead)}
        elif run is not None and view is not None:
            words |= _shown(t, view, step, run, look)
        step_list.append(words)
    return step_list


def _said_ahead(t: Texts, step: str, federation: Federation) -> str:
    """Return what can be told of a step before it has run; empty if that needs figures."""
    if step == "hosts":
        return t(
            "demonstration.words_hosts", hosts=t.listed([t.party(federation, host.name) for host in federation.hosts])
        )
    if step in ("attack", "learned"):
        return t(f"demonstration.words_{step}")
    return ""


def _lacking(t: Texts, step: str, run: Shown | None) -> str:
    """Return why a step cannot be shown yet; empty if it can."""
    piece = NEEDS[step]
    if not piece:
        return ""
    if run is not None and piece in run.failed:
        return t("demonstration.failed")
    have = {"score": run and run.scored, "attack": run and run.attack, "race": run and run.race}
    if have[piece] is not None:
        return ""
    return t(f"demonstration.waits_{piece}")


def _shown(t: Texts, view: View, step: str, run: Shown, look: Callable[[str], HostView] | None) -> Json:
    """Return a step of which everything is there."""
    scored = run.scored
    attack = run.attack
    race = run.race
    content: Json = {}
    if step == "attack" and attack is not None:
        content = _attack(t, attack)
    elif step == "race" and race is not None:
        content = _race(t, race)
    elif step == "learned" and race is not None:
        content = _learned(t, view, race)
    elif step == "ask" and scored is not None:
        content = _ask(t, view, scored)
    elif step == "hosts" and scored is not None:
        content = _hosts(t, view, scored, run.numbers, look)
    elif step == "sum" and scored is not None:
        content = _sum(t, view, scored)
    elif scored is not None:
        content = _answer(t, view, run, scored)
    return content


def _parties(t: Texts, federation: Federation, ahead: Ahead) -> Json:
    guest = t.party(federation, federation.guest.name)
    hosts = t.listed([t.party(federation, host.name) for host in federation.hosts])
    cards = []
    for party in parties_of(t, federation):
        is_guest = party["name"] == federation.guest.name
        features = federation.party(party["name"]).features
        lines = [{"text": t("demonstration.knows", n=len(features))}]
        plain = sorted(features, key=needs_explanation)
        lines += [{"text": t.brief(feature), "kind": "quiet"} for feature in plain[:CARD_COLUMNS]]
        if is_guest:
            lines.append({"text": t("demonstration.holds_key"), "icon": "key"})
        else:
            lines.append({"text": t("demonstration.never_shows"), "icon": "lock"})
        if party["name"] in ahead.links:
            up, words = ahead.links[party["name"]]
            lines.insert(0, {"text": f"● {words}", "kind": "good" if up else "quiet"})
        cards.append({**party, "lines": lines})
    return {"words": t("demonstration.words_parties", guest=guest, hosts=hosts), "cards": cards}


def _asked(t: Texts, federation: Federation, ahead: Ahead) -> list[Json]:
    """Return the Hosts that are asked, each with its link and whether its operator decides now; none without links."""
    cards = []
    for party in parties_of(t, federation):
        if party["name"] not in ahead.links:
            continue
        up, words = ahead.links[party["name"]]
        lines = [{"text": f"● {words}", "kind": "good" if up else "quiet"}]
        if party["name"] == ahead.decides:
            lines.append({"text": t("demonstration.decides")})
        cards.append({**party, "lines": lines})
    return cards


def _box(t: Texts, entry: TranscriptEntry, sender: str) -> Json:
    """Return what is said of one of the boxes that a message held; the component fills in number and bytes."""
    each = entry.unreadable // max(entry.entries, 1)
    return {
        "group": t("demonstration.group", n=entry.entries, party=sender),
        "box": t("demonstration.box", i="{i}", n="{n}", party=sender, bytes="{bytes}", size=size(each)),
    }


def _hex(each: Sequence[bytes]) -> list[str]:
    return [part.hex(" ", 2) for part in each]


def _vectors(scored: ScoreBatch) -> list[TranscriptEntry]:
    """Return the messages in which a person's encrypted numbers travelled, in their order."""
    return [entry for entry in scored.transcript if entry.kind == "DecisionVectors"]


def _ask(t: Texts, view: View, scored: ScoreBatch) -> Json:
    sent = _vectors(scored)[0]
    guest = t.party(view.federation, sent.sender)
    words = {"guest": guest, "host": t.party(view.federation, sent.receiver), "id": scored.scores[0].id}
    return {
        "words": t("demonstration.words_ask", **words, leaves=scored.leaves, n=sent.entries),
        "count": sent.entries,
        "bytes": _hex(sent.each),
        "box": _box(t, sent, guest),
    }


def _hosts(
    t: Texts,
    view: View,
    scored: ScoreBatch,
    numbers: Mapping[str, int],
    look: Callable[[str], HostView] | None,
) -> Json:
    hosts: list[Json] = []
    names = []
    vectors = _vectors(scored)
    # What one Host sends another is sealed from the Guest; how many numbers it is follows from the model.
    passed_on = [numbers[entry.receiver] for entry in vectors[1:]] + [1]
    for entry, out in zip(vectors, passed_on, strict=True):
        host_view = look(entry.receiver) if look is not None else None
        names.append(t.party(view.federation, entry.receiver))
        hosts.append(
            {
                "name": entry.receiver,
                "count": numbers[entry.receiver],
                "bytes": _hex(entry.each),
                "box": _box(t, entry, t.party(view.federation, entry.sender)),
                "dropped": [branch is False for branch in host_view.entries] if host_view is not None else [],
                "said": t("demonstration.passes_on", n=out),
            }
        )
    words = t("demonstration.words_hosts", hosts=t.listed(names))
    return {
        "words": t.joined(words, t("demonstration.nobody_sees" if look is None else "demonstration.only_here")),
        "hosts": hosts,
    }


def _sum(t: Texts, view: View, scored: ScoreBatch) -> Json:
    back = [entry for entry in scored.transcript if entry.kind == "EncryptedScores"][-1]
    sent = _vectors(scored)[0].entries
    last = t.party(view.federation, back.sender)
    return {
        "words": t("demonstration.words_sum", host=last, guest=t.party(view.federation, back.receiver), n=sent),
        "last": back.sender,
        "bytes": back.sample[:8].hex(" ", 2),
        "big": t("demonstration.one_of", n=sent),
        "box": {
            "group": t("demonstration.group_sum", party=last),
            "box": t("demonstration.box_sum", bytes="{bytes}", size=size(back.unreadable)),
        },
    }


def _answer(t: Texts, view: View, run: Shown, scored: ScoreBatch) -> Json:
    score = scored.scores[0]
    binary = view.task == "binary"
    big = score.predicted or (number(score.margin) if view.task == "number" else percent(score.probability))
    words = {"guest": t.party(view.federation, view.model.guest), "units": f"{score.units:,}".replace("-", "−")}
    return {
        "words": t("demonstration.words_answer", **words),
        "big": big,
        "of": t("demonstration.probability", label=t.label(view.federation)) if binary else t.label(view.federation),
        "decision": t(f"score.{score.decision}") if score.decision else "",
        "decision_kind": score.decision,
        "points": t("demonstration.points", n=score.points) if score.points is not None else "",
        "at": score.probability if binary else 0.0,
        **(_bands(t, scored.policy) if binary else {"bands": None}),
        **_reasons(t, view, run, score),
    }


def _bands(t: Texts, policy: Policy) -> Json:
    """Return the policy's bands of the probability as shares of a line."""
    if policy.decline_at is None:
        return {"bands": None}
    if policy.refer_at is None:
        refer = policy.decline_at
    else:
        refer = policy.refer_at
    edges = [("accept", 0.0, refer), ("refer", refer, policy.decline_at), ("decline", policy.decline_at, 1.0)]
    if policy.declines == "below":
        edges = [("decline", 0.0, policy.decline_at), ("refer", policy.decline_at, refer), ("accept", refer, 1.0)]
    bands = []
    for kind, low, high in edges:
        if high > low:
            # The band of the referred is narrow, and its name short.
            title = t("demonstration.refer" if kind == "refer" else f"score.{kind}")
            bands.append({"kind": kind, "from": low, "to": high, "title": title})
    return {
        "bands": bands,
        "bands_said": t("demonstration.bands", refer=percent(refer), decline=percent(policy.decline_at)),
    }


def _reasons(t: Texts, view: View, run: Shown, score: Score) -> Json:
    if run.reasons is None:
        why = run.failed.get("reasons")
        explanation = t("demonstration.waits_reasons" if why is None else "demonstration.no_reasons")
        if isinstance(why, ApprovalPending):
            host = t.party(view.federation, why.host)
            explanation = t("demonstration.waits_reasons_approval", host=host, number=why.number)
        return {"why": t("demonstration.why"), "reasons": [], "reasons_said": explanation}
    merged_reasons = run.reasons.people[0].merged
    # A reason that must not count is what the bank has to see to, and no reason of the decision: it comes last.
    ordered = sorted(merged_reasons, key=lambda merged: any(reason.blockers for reason in merged))
    lines = [_reason(t, view, merged) for merged in ordered]
    return {
        "why": t("demonstration.why"),
        "reasons": lines,
        "reasons_said": "" if lines else t("reasons.none"),
    }


def _reason(t: Texts, view: View, merged: Sequence[Reason]) -> Json:
    from backend.services.reasons import said_at_once  # noqa: PLC0415 (protocols; the first step is drawn without them)

    party = merged[0].party
    mark = palette.mark(view.federation, party)
    words = said_at_once([t.brief(view.model.feature(reason.feature)) for reason in merged], t)
    text = t("demonstration.reason", meaning=words, party=t.party(view.federation, party))
    if any(reason.blockers for reason in merged):
        text = t("demonstration.reason_blocked", reason=text)
    return {"text": text, "glyph": mark.glyph, "colour": mark.colour}


def _attack(t: Texts, attack: AttackResult) -> Json:
    outcome = attack.outcome
    sides = []
    for name, count in (("with", outcome.on), ("without", outcome.off)):
        if count is None:
            continue
        rate = count.right / count.trials
        broken = name == "without" or works(attack)
        sides.append(
            {
                "kind": "works" if broken and rate > outcome.chance else "blocked",
                "title": t(f"demonstration.attack_{name}"),
                "big": percent(rate),
                "rate": rate,
                "counted": t("demonstration.attack_counted", right=count.right, trials=count.trials),
            }
        )
    return {
        "words": t("demonstration.words_attack"),
        "sides": sides,
        "chance": outcome.chance,
        "note": t("demonstration.attack_note", chance=percent(outcome.chance)),
    }


def _race(t: Texts, race: Compared) -> Json:
    lanes = []
    for row in race.runs.rows:
        directions = row.learned[0].directions or 0.0
        lanes.append(
            {
                "title": t(f"demonstration.lane_{row.protocol}"),
                "seconds": row.exchange.total,
                "time": t.duration(row.exchange.total),
                "read": t("demonstration.read", n=round(directions)),
                "ours": row.protocol == race.runs.rows[0].protocol,
            }
        )
    link = race.runs.link
    words = t("demonstration.race_note", latency=bare(link.latency * 1000), bandwidth=size(int(link.bandwidth)))
    if race.shape is not None:
        words = t.joined(words, t("demonstration.race_shape"))
    # The fastest of the old ways, measured in the same run.
    fastest = min(row.exchange.total for row in race.runs.rows[1:])
    faster = fastest < race.runs.rows[0].exchange.total
    sentence = t("demonstration.words_race_slower" if faster else "demonstration.words_race_faster")
    return {"words": sentence, "lanes": lanes, "note": words}


def _learned(t: Texts, view: View, race: Compared) -> Json:
    bits = race.runs.rows[0].learned[0].bits or 0.0
    cards = []
    for party in parties_of(t, view.federation, (view.model.guest, *view.model.hosts)):
        is_guest = party["name"] == view.model.guest
        kind = "guest" if is_guest else "host"
        lines = [{"text": t(f"demonstration.got_{kind}")}]
        if is_guest:
            # A bit is what one answer of yes or no can tell at most.
            lines.append({"text": t("demonstration.got_score", n=ceil(bits))})
        lines.append({"text": t(f"demonstration.never_{kind}"), "icon": "lock", "kind": "quiet"})
        cards.append({**party, "lines": lines})
    return {"words": t("demonstration.words_learned"), "cards": cards}
