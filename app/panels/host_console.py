"""A Host's own console: what waits for its operator, what was decided, models with own splits, people, traffic and log.

Knows one Host, through :class:`backend.services.host_operator.HostOperator`; must not know the Guest's session, services or models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app.errors import worded
from app.texts import Texts, bare, markdown, number, size
from backend.errors import GlassleafError
from backend.i18n import Text
from backend.remark import Remark
from backend.services.host_live import WORK_KINDS
from backend.services.request_facts import NARROW

if TYPE_CHECKING:
    from backend.services.host_live import HostLive
    from backend.services.host_operator import HostOperator, OwnSplit, Request
    from backend.services.request_facts import Proposal
    from backend.store.accountant import GivenOnDay
    from backend.store.audit_log import Entry

REFRESH_SECONDS = 1.0  # seconds after which an open console sees what was asked or decided elsewhere, or runs
BAR_COLOUR = "#6B7C8C"
# Work → the kinds of messages that ask for it.
WORK_MESSAGES = {name: {kind.__name__ for kind in kinds} for name, kinds in WORK_KINDS.items()}
FACTS_AND_DECISION = (3, 2)  # width of what is read, and of the form next to it
# Pixels: two fields, or two buttons, next to each other in the form's column.
DATE_WIDTH = 150
COUNT_WIDTH = 190
BUTTON_WIDTH = 150
LOG_ROWS = 50  # entries of the log that are shown, the newest
STATE_ICONS = {
    "waiting": "hourglass_top",
    "granted": "verified",
    "denied": "block",
    "withdrawn": "undo",
    "expired": "event_busy",
}
ANSWER_COLUMNS = ("kind", "guest", "day", "times", "bits")  # of an answer about a person
EXPLAINED = {"answers", "questions", "requests", "artefacts"}  # tables of which a note is shown


def draw(t: Texts, operator: HostOperator, key: str) -> None:
    """Draw everything that a Host's operator sees, on one page that can be left open; `key` names the widgets."""
    _outcome(t, key)
    if operator.draining:
        st.info(t("host.draining"), icon=":material/pause_circle:")
    live = operator.live
    if live is not None:
        _links(t, operator, live)
    with st.container(key=f"{key}_running"):
        st.subheader(t("host.section_running"), anchor=False)
        _running(t, operator, live, key)
    waiting = operator.requests(waiting=True)
    with st.container(key=f"{key}_waiting"):
        st.subheader(t("host.section_waiting", n=len(waiting)), anchor=False)
        _waiting(t, operator, waiting, key)
    with st.container(key=f"{key}_given"):
        st.subheader(t("host.section_given"), anchor=False)
        _given(t, operator)
    st.subheader(t("host.section_models"), anchor=False)
    _models(t, operator, key)
    for name, icon, show in (
        ("decided", "rule", _decided),
        ("people", "person_search", _people),
        ("traffic", "swap_horiz", _traffic),
        ("log", "receipt_long", _log),
    ):
        with st.expander(t(f"host.section_{name}"), icon=f":material/{icon}:", key=f"{key}_{name}_box"):
            show(t, operator, key)


def _links(t: Texts, operator: HostOperator, live: HostLive) -> None:
    """Draw who is connected and since when."""
    words = []
    for peer, link in live.links.items():
        title = markdown(operator.title_of(peer).in_language(t.language))
        if link.up:
            words.append(f":green[●] **{title}** {t('host.connected', since=link.since)}")
        else:
            why = link.remark.values.get("why")
            if isinstance(why, Remark):
                cause = markdown(why.sentence(t.language))
            else:
                cause = ""
            words.append(f":gray[○] **{title}** {t('host.not_connected', since=link.since, why=cause)}")
    st.markdown(" · ".join(words))


def _running(t: Texts, operator: HostOperator, live: HostLive | None, key: str) -> None:
    """Draw what is answered now, each with a button that stops it."""
    if live is None:
        st.markdown(t("host.not_serving" if operator.decides else "host.simulated_serving"))
        return
    running = _work(live)
    if not running:
        st.markdown(f":material/check: {t.joined(t('host.idle'), _last_work(t, operator))}")
    for id_, guest_name, work, stopped in running:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            guest = markdown(operator.title_of(guest_name).in_language(t.language))
            words = t("host.runs", guest=guest, work=t(f"host.work_{work}"))
            st.markdown(f":material/sync: **{words}**", width="stretch")
            st.button(
                t("host.stopped" if stopped else "host.stop"),
                icon=":material/stop_circle:",
                disabled=stopped,
                key=f"{key}_stop_{id_[:12]}",
                on_click=_decide,
                args=(key, t("host.done_stop"), partial(operator.stop, id_)),
            )


def _last_work(t: Texts, operator: HostOperator) -> str:
    """Return what this Host answered last, by its receipts, the newest of which is first; empty if it has answered nothing."""
    for receipt in operator.receipts():
        for kind in receipt.took():
            work = work_of(kind)
            if work and work != "alignment":
                guest = markdown(operator.title_of(receipt.peer).in_language(t.language))
                words = t("host.runs", guest=guest, work=t(f"host.work_{work}"))
                return t("host.last_work", work=words, time=receipt.created[:16].replace("T", " "))
    return ""


def _work(live: HostLive | None) -> list[tuple[str, str, str, bool]]:
    """Return id, Guest, kind of work and whether it is stopped of all that reads records now; asking for approval does not."""
    works = []
    for conversation in () if live is None else live.running:
        work = work_of(conversation.last)
        if work:
            works.append((conversation.id, conversation.guest, work, conversation.stopped))
    return works


def _given(t: Texts, operator: HostOperator) -> None:
    """Draw what was given in the last week, by day: people, and bits about any one of them."""
    days = operator.given_by_day()
    people = sum(day.people for day in days)
    bits = max((day.bits for day in days), default=0.0)
    st.markdown(t("host.given", n=people, bits=number(bits)) if people or bits else t("host.given_nothing"))
    bits_column, people_column = st.columns(2, gap="large")
    with bits_column:
        _bars(t, t("host.given_bits"), days, [day.bits for day in days])
    with people_column:
        _bars(t, t("host.given_people"), days, [float(day.people) for day in days])


def _bars(t: Texts, title: str, days: Sequence[GivenOnDay], values: list[float]) -> None:
    """Draw a bar for each day; nothing if all are empty."""
    if any(values):
        st.caption(title)
        names = [day.day.strftime("%m-%d") for day in days]
        table = pd.DataFrame({t("host.day"): names, title: values})
        st.bar_chart(table, x=t("host.day"), y=title, x_label="", y_label="", height=180, color=BAR_COLOUR, sort=False)


def work_of(kind: str) -> str:
    """Return what kind of work a message of this kind belongs to; empty if it reads no record."""
    return next((work for work, kinds in WORK_MESSAGES.items() if kind in kinds), "")


Standing = tuple[object, ...]


def standing(operator: HostOperator) -> Standing:
    """Return the state that an open console follows, for :func:`follow`: read it before the page is drawn."""
    requests = []
    for request in operator.requests():
        requests.append((request.approval.number, request.approval.state, request.used_today))
    live = operator.live
    links = None if live is None else live.links
    return requests, links, _work(live), operator.given_by_day()


def follow(state: Standing, opened: Callable[[], HostOperator]) -> None:
    """Draw the page again once anything was asked, decided or answered; `opened` opens the Host again, for it is closed by then."""

    @st.fragment(run_every=REFRESH_SECONDS)
    def look() -> None:
        try:
            with closing(opened()) as now:
                same = standing(now) == state
        except GlassleafError:  # a sign-in that has ended, say: the page says what it is
            same = False
        if not same:
            st.rerun()

    look()


def _outcome(t: Texts, key: str) -> None:
    """Draw what became of the last decision."""
    words, failed = st.session_state.pop(f"{key}_outcome", ("", False))
    if failed:
        st.warning(markdown(worded(t, words)), icon=":material/report:", title=t("host.failed"))
    elif words:
        st.success(words, icon=":material/check:")


def _decide(key: str, words: str, step: Callable[[], object]) -> None:
    """Take a step of the operator's, and say what became of it on the page that is drawn next."""
    try:
        step()
        st.session_state[f"{key}_outcome"] = words, False
    except GlassleafError as error:
        st.session_state[f"{key}_outcome"] = error, True


def _waiting(t: Texts, operator: HostOperator, waiting: tuple[Request, ...], key: str) -> None:
    if not waiting:
        st.markdown(t("host.nothing_waits") if operator.decides else t("waits.not_asked"))
    for request in waiting:
        number_ = request.approval.number
        with st.container(border=True, key=f"{key}_request_{number_}"):
            _heading(t, request)
            # Beside each other, so that what is read and what decides are on one screen.
            facts, decision = st.columns(FACTS_AND_DECISION, gap="medium")
            with facts:
                _facts(t, request)
            with decision:
                _decision(t, operator, request, key)
                _narrow(t, request)
            _terms(t, request, f"{key}_{number_}")
            _splits(t, request.splits, f"{key}_{number_}")


def _heading(t: Texts, request: Request) -> None:
    approval = request.approval
    state = "expired" if request.expired else approval.state
    if "trees" in approval.about:
        kind = _kind(approval.purpose)
    else:
        kind = "sums"
    if kind == "training":
        name = _algorithm(t, approval.name)
    else:
        name = markdown(approval.name)
    guest = markdown(request.guest.in_language(t.language))
    asks = t(f"host.asks_{kind}", guest=guest, name=name, purpose=_purpose(t, approval.purpose))
    st.markdown(f":material/{STATE_ICONS[state]}: **{asks}**")
    past = t.past((datetime.now(UTC) - approval.since).total_seconds())
    words = [t("host.request", number=approval.number), t("host.since", past=past)]
    if approval.decided:
        words.append(t(f"host.state_{state}", person=markdown(approval.person), day=approval.decided[:10]))
    st.caption(" · ".join(words))


def _kind(purpose: str) -> str:
    if purpose in ("training", "scoring", "reasons"):
        return purpose
    return "measuring"


def _algorithm(t: Texts, name: str) -> str:
    """As the Guest's pages call it; a Guest of a later version may ask for one that is not known here."""
    if t.has(f"algorithm.name_{name}"):
        return t(f"algorithm.name_{name}")
    return markdown(name)


def _purpose(t: Texts, purpose: str) -> str:
    return t(f"host.purpose_{purpose}")


def _facts(t: Texts, request: Request) -> None:
    """Draw what the operator reads before deciding; what can be narrowed has a place of its own."""
    table: dict[str, str] = {}
    for fact in request.facts:
        if fact.label == NARROW:
            continue
        label = fact.label.in_language(t.language)
        sentence = markdown(_worded(t, fact.value))
        if label in table:
            table[label] = f"{table[label]}  \n{sentence}"
        else:
            table[label] = sentence
    st.table(table, border="horizontal", alt=t("host.facts"))


def _narrow(t: Texts, request: Request) -> None:
    """Draw what the operator can narrow, below the form that narrows it."""
    for fact in request.facts:
        if fact.label == NARROW:
            label = fact.label.in_language(t.language)
            st.caption(t("words.about", what=label, said=markdown(_worded(t, fact.value))))


def _worded(t: Texts, value: Text | Remark) -> str:
    if isinstance(value, Text):
        return value.in_language(t.language)
    return value.sentence(t.language)


def _terms(t: Texts, request: Request, key: str) -> None:
    """Draw the terms of a training or the size of a model, one press away."""
    about = request.approval.about
    if request.approval.purpose == "training":
        terms = {
            t("host.algorithm"): _algorithm(t, str(about["algorithm"])),
            t("words.trees"): t("host.at_most", count=int(about["trees"])),
            t("host.depth"): str(about["depth"]),
            t("host.bins"): str(about["bins"] or "–"),
            t("host.left_out"): markdown(", ".join(about["exclude"]) or "–"),
            t("host.rows_training"): f"{about['rows']:,}",
        }
        if about["epsilon"]:
            terms[t("host.epsilon")] = bare(float(about["epsilon"]))
    elif "trees" in about:
        terms = {
            t("words.trees"): t("host.of_trees", own=int(about["own_trees"]), trees=int(about["trees"])),
            t("host.own_splits"): str(about["own_splits"]),
            t("host.structure"): request.approval.subject[:16],
            t("host.rows"): f"{about['rows']:,}" if about["rows"] else "–",
        }
    else:  # sums by group name no model
        terms = {t("host.rows"): f"{about['rows']:,}" if about["rows"] else "–"}
    with st.expander(t("host.terms"), icon=":material/list:", key=f"{key}_terms"):
        st.table(terms, border="horizontal", alt=t("host.terms"))
        learns = f"algorithm.guest_{about.get('algorithm')}"
        if t.has(learns):
            st.caption(t("words.about", what=t("host.guest_learns"), said=t(learns)))


def _splits(t: Texts, splits: tuple[OwnSplit, ...], key: str) -> None:
    """Draw the Host's own splits with their thresholds: on the Host's own page alone."""
    if not splits:
        return
    with st.expander(t("host.splits", count=len(splits)), icon=":material/account_tree:", key=f"{key}_splits"):
        st.caption(t("host.splits_note"))
        rows = {
            t("host.tree"): [split.tree + 1 for split in splits],
            t("host.node"): [split.node for split in splits],
            t("host.feature"): [t.meaning(split.feature) if split.feature else split.name for split in splits],
            t("host.rule"): [_rule(t, split) for split in splits],
        }
        st.dataframe(pd.DataFrame(rows), hide_index=True, key=f"{key}_table", alt=t("host.splits", count=len(splits)))


def _rule(t: Texts, split: OwnSplit) -> str:
    rule = split.rule
    if rule.threshold is None:
        return f"{', '.join(sorted(rule.left_categories))} | {', '.join(sorted(rule.right_categories))}"
    unit = t.after(split.feature) if split.feature else ""
    return f"{'≥' if rule.above else '<'} {rule.threshold:.10g}{unit}"


def _decision(t: Texts, operator: HostOperator, request: Request, key: str) -> None:
    """Draw last day and volume, and two buttons of equal weight: approve, and deny with the reason that the Guest reads."""
    approval = request.approval
    name = f"{key}_{approval.number}"
    proposal = request.proposal
    today = datetime.now(UTC).date()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        until = st.date_input(
            t("host.until"),
            proposal.until,
            min_value=today,
            max_value=proposal.latest or date.max,
            key=f"{name}_until",
            help=t("host.until_help"),
            width=DATE_WIDTH,
        )
        training = approval.purpose == "training"
        per_day = st.number_input(
            t("host.trainings_per_day" if training else "host.people_per_day"),
            1,
            10**9,
            proposal.per_day,
            key=f"{name}_per_day",
            help=t("host.trainings_help" if training else "host.people_help"),
            width=COUNT_WIDTH,
        )
    if request.scores is None:
        scores = None
    else:
        scores = _scores_too(t, request.scores, name)
    # On a phone these stay at the lower edge of the screen (assets/page.css).
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"{name}_buttons"):
        st.button(
            t("host.approve"),
            icon=":material/check:",
            key=f"{name}_approve",
            width=BUTTON_WIDTH,
            on_click=_decide,
            args=(
                key,
                t("host.approved", number=approval.number),
                lambda: operator.approve(approval.number, until, int(per_day), scores),
            ),
        )
        if approval.state == "waiting":
            _refuse(t, operator, approval.number, "deny", key)


def _scores_too(t: Texts, proposal: Proposal, name: str) -> tuple[date, int] | None:
    """Draw the choice to allow scores with the model of a training, too; return their last day and people a day, None if not chosen."""
    if not st.checkbox(t("host.scores_too"), key=f"{name}_scores", help=t("host.scores_too_help")):
        return None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        until = st.date_input(
            t("host.scores_until"),
            proposal.until,
            min_value=datetime.now(UTC).date(),
            max_value=proposal.latest or date.max,
            key=f"{name}_scores_until",
            width=DATE_WIDTH,
        )
        people = proposal.per_day
        per_day = st.number_input(
            t("host.people_per_day"), 1, 10**9, people, key=f"{name}_scores_per_day", width=COUNT_WIDTH
        )
    return until, int(per_day)


def _refuse(t: Texts, operator: HostOperator, number_: int, step: str, key: str) -> None:
    """Draw the button to deny or withdraw; it opens a field for the reason, which the Guest reads."""
    name = f"{key}_{number_}_{step}"
    with st.popover(t(f"host.{step}"), icon=":material/block:", key=f"{name}_open", width=BUTTON_WIDTH):
        because = st.text_input(t("host.because"), key=f"{name}_because", max_chars=500, help=t("host.because_help"))
        act = operator.deny if step == "deny" else operator.withdraw
        st.button(
            t(f"host.{step}"),
            disabled=not because.strip(),
            key=name,
            on_click=_decide,
            args=(key, t(f"host.done_{step}", number=number_), lambda: act(number_, because)),
        )


def _decided(t: Texts, operator: HostOperator, key: str) -> None:
    requests = [request for request in operator.requests() if request.approval.state != "waiting"]
    if not requests:
        st.markdown(t("host.nothing_decided"))
    for request in requests:
        approval = request.approval
        with st.container(border=True, key=f"{key}_decided_{approval.number}"):
            _heading(t, request)
            if approval.reason:
                st.markdown(markdown(approval.reason))
            if approval.until:
                volume = f"{request.used_today:,} / {approval.per_day:,}"
                st.caption(t("host.counts_until", day=approval.until, volume=volume))
            if approval.scores_per_day:
                words = {"day": approval.scores_until, "people": f"{approval.scores_per_day:,}"}
                st.caption(t("host.scores_allowed", **words))
            if approval.state == "granted" and not request.expired:
                _refuse(t, operator, approval.number, "withdraw", key)
            elif approval.state != "granted":
                _decision(t, operator, request, key)


def _models(t: Texts, operator: HostOperator, key: str) -> None:
    models = operator.models()
    if not models:
        st.markdown(t("host.no_model"))
    for model in models:
        with st.container(border=True, key=f"{key}_model_{model.id}"):
            guest = markdown(operator.title_of(model.guest).in_language(t.language))
            st.markdown(f"**{markdown(model.id)}** · {t('host.of_guest', guest=guest, trees=model.trees)}")
            purposes = t.listed([_purpose(t, purpose) for purpose in model.purposes])
            if purposes:
                words = t("host.allowed", purposes=purposes)
            else:
                words = t("host.nothing_allowed")
            text = t("waits.model_bits", bits=number(model.capacity))
            st.caption(t.joined(words if operator.decides else "", text))
            if model.sealed is not None:
                st.markdown(f":material/lock: {_worded(t, model.sealed)}")
            _splits(t, model.splits, f"{key}_{model.id}")


def _people(t: Texts, operator: HostOperator, key: str) -> None:
    """Budgets, and what left about a person, for a request for access."""
    people, bits = operator.answered()
    days = operator.limits.days
    st.markdown(t("waits.answered", n=people, bits=number(bits), days=days))
    max_bits = operator.max_bits
    if max_bits:
        st.markdown(t("waits.max_bits", bits=number(max_bits), days=days, used=number(bits)))
    else:
        st.markdown(t("waits.max_bits_none"))
    person = st.text_input(t("host.person"), key=f"{key}_person", help=t("host.person_help"), width=320).strip()
    if not person:
        return
    try:
        budget = operator.budget(person)
        pressed = st.button(t("host.left"), icon=":material/badge:", key=f"{key}_left", help=t("host.left_help"))
        holdings = operator.left(person) if pressed else ()
    except GlassleafError as error:
        st.warning(markdown(worded(t, error)), icon=":material/report:", title=t("host.failed"))
        return
    budget_left = {}
    for kind, more in budget.left.items():
        if more < 0:
            budget_left[t(f"host.kind_{kind}")] = t("host.no_limit")
        else:
            budget_left[t(f"host.kind_{kind}")] = f"{more:,}"
    st.table(budget_left, border="horizontal", alt=t("host.budget"))
    st.caption(t("host.budget_note", bits=number(budget.told), days=budget.limits.days))
    answers = {}
    for name in ANSWER_COLUMNS:
        answers[t(f"host.answer_{name}")] = [getattr(holding, name) for holding in budget.answers]
    if budget.answers:
        st.dataframe(pd.DataFrame(answers), hide_index=True, key=f"{key}_answers", alt=t("host.answers"))
    for holding in holdings:
        if holding.table in EXPLAINED:
            st.markdown(t("host.held", what=t(f"host.table_{holding.table}"), rows=len(holding.about)))
            if holding.about:
                st.dataframe(pd.DataFrame(list(holding.about)), hide_index=True, alt=t(f"host.table_{holding.table}"))


def _traffic(t: Texts, operator: HostOperator, key: str) -> None:
    receipts = operator.receipts()
    if not receipts:
        st.markdown(t("host.no_traffic") if operator.decides else t("waits.no_receipts"))
        return
    sent = [sum(size_ for _, size_ in receipt.sent().values()) for receipt in receipts]
    took = [sum(size_ for _, size_ in receipt.took().values()) for receipt in receipts]
    st.markdown(t("host.traffic", sent=size(sum(sent)), took=size(sum(took)), count=len(receipts)))
    rows = {
        t("host.conversation"): [receipt.conversation[:12] for receipt in receipts],
        t("host.peer"): [receipt.peer for receipt in receipts],
        t("host.ended"): [receipt.created[:16].replace("T", " ") + " UTC" for receipt in receipts],
        t("host.sent"): sent,
        t("host.took"): took,
    }
    st.dataframe(pd.DataFrame(rows), hide_index=True, key=f"{key}_receipts", alt=t("host.receipts"))


def _log(t: Texts, operator: HostOperator, key: str) -> None:
    verdict = operator.verify_log()
    if verdict.holds:
        st.markdown(f":material/check: {t('host.log_holds', n=verdict.entries)}")
    else:
        problems = "\n\n".join(markdown(problem) for problem in verdict.problems)
        st.warning(problems, icon=":material/report:", title=t("host.log_broken"))
    st.caption(t("host.log_note"))
    entries = operator.entries()[-LOG_ROWS:][::-1]
    if entries:
        rows = {
            t("host.entry"): [entry.number for entry in entries],
            t("host.time"): [entry.time[:19].replace("T", " ") for entry in entries],
            t("host.actor"): [entry.actor for entry in entries],
            t("host.action"): [_action(entry) for entry in entries],
        }
        st.dataframe(pd.DataFrame(rows), hide_index=True, key=f"{key}_log", alt=t("host.section_log"))
    st.download_button(
        t("host.export"),
        operator.export,
        f"glassleaf-{operator.name}-log.jsonl",
        "application/jsonl",
        icon=":material/download:",
        on_click="ignore",
        key=f"{key}_export",
    )


def _action(entry: Entry) -> str:
    about = []
    for name in ("what", "number", "purpose", "name"):
        if entry.body.get(name):
            about.append(str(entry.body[name]))
    return " ".join([entry.action, *about])
