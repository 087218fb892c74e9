"""A scoring told to an audience: one step at a time in large type, with the true bytes of this run, and an attack on the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import session, user_jobs
from app.panels import attack_lab, attention, frame, result, sight
from app.texts import Texts, markdown
from app.view_models import View, moments

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from backend.results import ScoreBatch

LINK, ATTACK = "presenter", "attack"  # what the address calls the step, and the switch that attacks it
ON = "on"
PARTIES, ANSWER = "parties", "answer"
# Kind of step → the attacks of the lab that go for it; a Host that passes numbers on to the next one is attacked otherwise.
ATTACKS = {
    "parties": ("H1", "H3", "H4"),
    "encrypt": ("A4",),
    "pass": ("A3",),
    "mask": ("A1",),
    "return": ("A7", "H5"),
    "answer": ("A5", "A6"),
}
# The page's title, still there for whoever listens, makes room for the step's, so that what the parties see ends on the screen.
LARGE = "<style>.st-key-presenter_words p {font-size: clamp(1.3rem, 2.2vw, 2rem) !important; line-height: 1.35}"
LARGE += ".st-key-presenter_words:focus {outline: none} [data-testid=stSidebar] {display: none}"
LARGE += ".st-key-question {display: none} [data-testid=stElementContainer]:has(> [data-testid=stHeading] h1) "
LARGE += "{position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)}"
# However far the page is scrolled: on a phone an attack and what the parties see are longer than the screen.
LARGE += " [data-testid=stLayoutWrapper]:has(> .st-key-presenter_bar) {position: sticky; top: 3.75rem; z-index: 2; "
LARGE += "padding-block: 0.5rem; background: light-dark(#ffffff, #0e1114)} :root {--glassleaf-above: 8rem} "
LARGE += "@media (max-width: 640px) {:root {--glassleaf-above: 11.5rem}}</style>"


def steps(view: View, done: ScoreBatch | None) -> tuple[str, ...]:
    """Who is there, encryption, a step for each Host that is asked, the way back, the answer."""
    asked = moments(done.transcript, view.model.guest, view.model.hosts) if done is not None else {}
    owners = {split.owner for tree in view.model.trees for split in tree.splits.values()}
    planned = ("encrypt", *(f"mask-{host}" for host in view.model.hosts if host in owners), "return")
    return (PARTIES, *(asked or planned), ANSWER)


def attacks_on(step: str, every: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of the attacks on a step; empty if there is nothing to attack yet."""
    last = [name for name in every if name.startswith("mask-")][-1:]
    kind = "pass" if _kind(step) == "mask" and [step] != last else _kind(step)
    return ATTACKS.get(kind, ())


def step_of(view: View, done: ScoreBatch | None) -> str:
    """The step that the address names; empty where nothing is presented."""
    return session.linked(LINK, steps(view, done)) or ""


def switch(t: Texts, view: View, done: ScoreBatch | None, step: str = "") -> None:
    """The switch that begins a presentation where the last one was left, and ends the one that is at `step`."""
    left = session.kept("presented", PARTIES)
    session.choose("presenting", bool(step))
    turn = partial(leave, step) if step else partial(go, left if done and left in steps(view, done) else PARTIES)
    st.toggle(t("presenter.switch"), key="presenting", on_change=turn, help=t("presenter.switch_help"))


def go(step: str) -> None:
    """Show a step, which nobody attacks yet, from a button's callback."""
    session.forget(ATTACK)
    session.announce(LINK, step)


def leave(step: str) -> None:
    """End the presentation at a step, from the switch's callback."""
    session.keep("presented", step)
    for name in (LINK, ATTACK):
        session.forget(name)


def draw(
    t: Texts,
    view: View,
    step: str,
    scene: sight.ScoringMoment,
    score: Callable[[], None] | None,
    restart: Callable[[], None],
    running: Callable[[], None] | None,
) -> DeltaGenerator:
    """One step; returns where the attack on it belongs, between its words and what the parties see.

    Parameters
    ----------
    score : callable or None
        Scores the chosen person, from a button's callback; None where nobody is chosen.
    restart : callable
        Puts the score aside, from a button's callback.
    running : callable or None
        Draws a scoring that is under way.
    """
    done, every = scene.done, steps(view, scene.done)
    st.html(LARGE)
    with st.container(key="presenter_bar", horizontal=True, vertical_alignment="center"):
        _buttons(t, every, step, score, restart, ready=done is not None, busy=running is not None)
        switch(t, view, done, step)
    with st.container(key="presenter_words"):
        st.header(f":gray[{every.index(step) + 1} / {len(every)}] {_title(t, view, step)}", anchor=False)
        if step == ANSWER and done is not None:
            st.markdown(result.said(t, view, done))
        else:
            st.markdown(t(f"presenter.step_{_kind(step)}", **_names(t, view, step), **_counts(view, done)))
    beside = st.container()
    # With the focus on a switch the arrow keys would be dead: its press moves it back to the words.
    token = f"{step}:{done is not None}:{attacked()}"
    attention.to("presenter_words", _title(t, view, step), token, _title(t, view, step))
    if running is not None:
        running()
    elif done is None and step != PARTIES:
        st.info(t("presenter.score_first"), icon=":material/lock:")
    else:
        if done is not None and done.recalled and not scene.carried:
            st.info(t("transcript.from_journal"), icon=":material/history:")
        shown = _at(view, scene, step)
        attention.order_on_a_phone(f"presented_{shown.turn or view.model.guest}")
        sight.draw(t, view, shown, "presented", columns=step == PARTIES)
    return beside


def _kind(step: str) -> str:
    return step.partition("-")[0]


def _title(t: Texts, view: View, step: str) -> str:
    return t(f"presenter.title_{_kind(step)}", **_names(t, view, step))


def _names(t: Texts, view: View, step: str) -> dict[str, str]:
    host = step.partition("-")[2]
    return {
        "guest": markdown(t.party(view.federation, view.model.guest)),
        "host": markdown(t.party(view.federation, host)) if host else "",
        "hosts": t.listed([markdown(t.party(view.federation, name)) for name in view.model.hosts]),
    }


def _counts(view: View, done: ScoreBatch | None) -> dict[str, str]:
    entries = "–" if done is None else f"{done.ciphertexts_per_sample:,}"
    return {"entries": entries, "leaves": f"{view.record.n_leaves:,}"}


def _at(view: View, scene: sight.ScoringMoment, step: str) -> sight.ScoringMoment:
    """The scoring as it stood at the end of a step."""
    if step == ANSWER:
        return scene
    until = moments(scene.entries, view.model.guest, view.model.hosts).get(step, 0)
    turn = step.partition("-")[2] or ("" if step == PARTIES else view.model.guest)
    so_far = [entry for entry in scene.entries if entry.number <= until]
    return replace(scene, entries=so_far, done=None, turn=turn, look=scene.look if _kind(step) == "mask" else None)


def _buttons(
    t: Texts,
    every: Sequence[str],
    step: str,
    score: Callable[[], None] | None,
    restart: Callable[[], None],
    *,
    ready: bool,
    busy: bool,
) -> None:
    at = every.index(step)
    st.button(
        t("presenter.back"),
        icon=":material/arrow_back:",
        shortcut="Left",
        disabled=at == 0 or busy,
        on_click=go,
        args=(every[max(at - 1, 0)],),
        key="presenter_back",
    )
    following = every[min(at + 1, len(every) - 1)]
    act = partial(go, following) if ready else score
    words, icon = (t("presenter.next"), "arrow_forward") if ready else (t("presenter.start"), "lock")
    off = busy or act is None or (ready and step == following)
    st.button(
        words,
        type=frame.emphasis(),
        icon=f":material/{icon}:",
        shortcut="Right",
        disabled=off,
        on_click=act,
        key="presenter_next",
    )
    st.button(
        t("presenter.reset"),
        icon=":material/restart_alt:",
        disabled=busy,
        on_click=restart,
        key="presenter_reset",
    )


def attacked() -> str:
    """Return what the address asks for: an attack's id, :data:`ON` for the first one on the step, or "" for none."""
    ids = {attack.id for attack in session.service().attack_runs.all()}
    return session.linked(ATTACK, {ON, *ids}) or ""


def attack(t: Texts, offered: Sequence[str]) -> None:
    """Draw the switch that replays a step in the lab, without its defence and with it: no Host is asked and nothing is counted.

    If there are several attacks on the step, a second control chooses between them.
    """
    if not offered:
        return
    asked = attacked()
    session.choose("presenter_attack", bool(asked))
    turn = partial(session.forget, ATTACK) if asked else partial(session.announce, ATTACK, ON)
    if not st.toggle(t("presenter.attack"), key="presenter_attack", help=t("presenter.attack_help"), on_change=turn):
        return
    wanted = _choice(t, offered, asked)
    lab, job = session.service().attack_runs, user_jobs.find("attacks")
    done = (job.result if job is not None else None) or ()
    results = {one.id: one for one in done}
    running = user_jobs.running(job)
    if running is not None:
        attack_lab.follow(t, running, running.through, session.rerun)
    row = next(row for row in lab.all() if row.id == wanted)
    pressed = attack_lab.card(t, row, results.get(wanted), running.stage if running is not None else "")
    if wanted in results:
        attack_lab.side(t, results[wanted])
    if wanted in results and running is None:
        user_jobs.note_seen("attacks")
        words = attack_lab.said(t, results[wanted])
        attention.to(attack_lab.result_key(wanted), t("presenter.attack"), f"{wanted}:{id(job)}", words)
    st.caption(f":material/science: {t('presenter.attack_note')}")
    # Switched on, it starts by itself once; one that was stopped or failed waits for its button.
    if running is None and (pressed or (session.once("attacked", wanted) and wanted not in results)):
        user_jobs.start("attacks", lambda: lab.start([wanted], before=done))
        session.rerun()


def _choice(t: Texts, offered: Sequence[str], asked: str) -> str:
    """Return the attack that is shown, with a control to choose another one on the step."""
    chosen = asked if asked in offered else offered[0]
    if len(offered) == 1:
        return chosen
    session.choose("presenter_attack_choice", chosen)
    titles = {row.id: t(f"attack.{row.text}_title") for row in session.service().attack_runs.all()}
    st.segmented_control(
        t("presenter.attack_choice"),
        offered,
        format_func=titles.__getitem__,
        key="presenter_attack_choice",
        required=True,
        on_change=_turn_to_choice,
    )
    return chosen


def _turn_to_choice() -> None:
    """Name the chosen attack in the address, from the control's callback."""
    session.announce(ATTACK, st.session_state["presenter_attack_choice"])
