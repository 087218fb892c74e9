"""Attacks to be run live: what each would do, what it comes to without the defence and with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import charts, frame, palette
from app.texts import Texts, number, percent
from backend.services.attack_runs import ALPHA, AttackResult
from backend.services.attack_runs import works as attack_works

if TYPE_CHECKING:
    from backend.jobs import Job
    from backend.services.attack_runs import Attack

SEVERITIES = ("critical", "high", "medium", "by design")
SEVERITY_ICONS = {"critical": "gpp_bad", "high": "priority_high", "medium": "drag_handle", "by design": "architecture"}

# state of a tile → how its words are drawn: colour and mark; an attack that was not run says nothing
STATE_MARKS = {
    "works": ":red[:material/gpp_bad: {}]",
    "blocked": ":green[:material/verified_user: {}]",
    "running": ":material/hourglass_top: {}",
}

Results = Mapping[str, AttackResult]


def chosen(t: Texts, attacks: Sequence[Attack]) -> list[Attack]:
    """The attacks of the severities that are asked for."""
    severities = [severity for severity in SEVERITIES if any(attack.severity == severity for attack in attacks)]
    picked = st.pills(
        t("attack_lab.severity"),
        severities,
        selection_mode="multi",
        default=severities,
        key="attack_lab_severity",
        format_func=lambda severity: _severity(t, severity),
        help=t("attack_lab.severity_help"),
        persist_state="session",
    )
    return [attack for attack in attacks if attack.severity in (picked or severities)]


def all_button(t: Texts, attacks: Sequence[Attack], running: bool) -> bool:
    """Whether all that are shown are to be run."""
    return st.button(
        t("attack_lab.all", n=len(attacks)),
        type=frame.emphasis(),
        icon=":material/bug_report:",
        disabled=running,
        key="attack_all",
        help=t("attack_lab.all_help"),
    )


@st.fragment(run_every=0.5)
def follow(
    t: Texts,
    job: Job[tuple[AttackResult, ...]],
    n_shown: int,
    redraw: Callable[[], None],
) -> None:
    """Draw which attack is running, and a way to stop; `redraw` draws the whole page once more attacks are through than `n_shown`."""
    text, separator, measured = job.stage.partition(":")
    if separator:
        words = t("attack_lab.running", name=t(f"attack.{text}_title"))
    else:
        words = t("attack_lab.starting")
    if measured in ("0", "1"):
        step = ("setting_up", "first")[int(measured)]
    else:
        step = "further"
    frame.working(t, job, words, "attacks", f"· {t(f'attack_lab.{step}', n=measured)}" if separator else "")
    if job.state != "running" or job.through > n_shown:
        redraw()


def summary(t: Texts, attacks: Sequence[Attack], results: Results) -> None:
    """Draw what the runs so far come to, in one sentence."""
    ran = [results[attack.id] for attack in attacks if attack.id in results]
    working = [result for result in ran if attack_works(result)]
    switched = [result for result in ran if result.outcome.optional]
    failing = len(ran) - len({result.id for result in (*working, *switched)})
    if not ran:
        return
    if working:
        st.markdown(t("attack_lab.some_work", n=len(working), ran=len(ran), names=_names(t, working)))
    elif failing:
        st.markdown(t("attack_lab.most_fail" if switched else "attack_lab.none_works", n=failing, ran=len(ran)))
    if switched:
        st.markdown(t("attack_lab.optional", names=_names(t, switched)))


def _names(t: Texts, results: Sequence[AttackResult]) -> str:
    return t("words.comma").join(f"{result.id} {t(f'attack.{result.text}_title')}" for result in results)


def _verdict(t: Texts, result: AttackResult) -> str:
    if attack_works(result):
        return t("attack_lab.works")
    return t("attack_lab.fails_optional" if result.outcome.optional else "attack_lab.fails")


def tiles(
    t: Texts, attacks: Sequence[Attack], results: Results, stage: str, open_: Callable[[str], None]
) -> Attack | None:
    """Draw a tile for each attack; return the attack whose run was asked for.

    Parameters
    ----------
    stage : str
        Of the running job; empty if no job runs.
    open_ : callable
        Called from a button's callback with the id of the attack whose run or details were asked for.
    """
    pressed = None
    with st.grid("auto", min_column_width=230):
        for attack in attacks:
            if _tile(t, attack, results.get(attack.id), stage, open_):
                pressed = attack
    return pressed


def _tile(t: Texts, attack: Attack, result: AttackResult | None, stage: str, open_: Callable[[str], None]) -> bool:
    """Draw what one attack comes to; return whether its run was asked for."""
    state = _state(attack, result, stage)
    figures = "" if result is None else _short_rates(t, result)
    if state in STATE_MARKS:
        state_line = f"  \n{STATE_MARKS[state].format(t(f'attack_lab.tile_{state}'))} {figures}"
    else:
        state_line = ""
    with st.container(border=True, key=f"attack_tile_{state}_{attack.id}"):
        st.markdown(f"**{t(f'attack.{attack.text}_title')}**{state_line}")
        with st.container(horizontal=True, gap="small"):
            pressed = st.button(
                t("attack_lab.again" if result else "attack_lab.run"),
                icon=":material/play_arrow:",
                disabled=bool(stage),
                key=f"attack_{attack.id}",
                on_click=open_,
                args=(attack.id,),
            )
            st.button(
                t("attack_lab.details"),
                type="tertiary",
                key=f"attack_open_{attack.id}",
                on_click=open_,
                args=(attack.id,),
            )
    return pressed


def _state(attack: Attack, result: AttackResult | None, stage: str) -> str:
    """Return how far an attack is, or what became of it."""
    if stage.partition(":")[0] == attack.text:
        return "running"
    if result is None:
        return "not_run"
    return "works" if attack_works(result) else "blocked"


def _short_rates(t: Texts, result: AttackResult) -> str:
    """Return the success rates without and with the defence: "100 % → 0.4 %"."""
    if result.defence_on is None:
        return percent(result.defence_off)
    return f"{percent(result.defence_off)} → {percent(result.defence_on)}"


def details(
    t: Texts, attack: Attack, result: AttackResult | None, stage: str, draw_progress: Callable[[], None] | None
) -> None:
    """Draw what an attack would do, what stops it, and what became of its run.

    `draw_progress` draws how far a run of this attack alone is, or how it ended.
    """
    badge = f":gray-badge[{_severity(t, attack.severity)}]"
    with st.container(border=True, key="attack_details"):
        st.markdown(f"**{attack.id} · {t(f'attack.{attack.text}_title')}** {badge}\n\n{_explained(t, attack)}")
        if draw_progress is not None:
            draw_progress()
        elif stage.partition(":")[0] == attack.text:
            st.caption(f":material/hourglass_top: {t('attack_lab.now')}")
        if result is not None and not (stage and draw_progress is not None):
            with st.container(key=result_key(attack.id)):
                _outcome(t, result)


def _explained(t: Texts, attack: Attack) -> str:
    """Return what an attack would do, and what stops it."""
    explained = t(f"attack.{attack.text}_explanation")
    defence = t(f"attack.{attack.text}_defence")
    return f"{explained}\n\n:material/shield: {defence}"


def result_key(attack: str) -> str:
    """Return the key of the container that holds an attack's result."""
    return f"attack_result_{attack}"


def _outcome(t: Texts, result: AttackResult) -> None:
    works = attack_works(result)
    outcome = result.outcome
    icon = "report" if works else "check_circle"
    st.markdown(f":material/{icon}: {said(t, result)}")
    frame.drawing(_bars(t, result, works), f"attack_bars_{result.id}")
    box = frame.box(t("attack_lab.more"), "science", f"attack_more_{result.id}")
    if box is None:
        return
    text_key = f"attack.{result.text}_found"
    seconds = outcome.off.seconds + (outcome.on.seconds if outcome.on is not None else 0.0)
    with box:
        st.markdown(t(f"attack.{result.text}_setting", **_figures(result)))
        if t.has(text_key):
            st.markdown(t(text_key, **_figures(result)))
        off, on = (None if game is None else f"{game.right:,} / {game.trials:,}" for game in (outcome.off, outcome.on))
        if on is None:
            counted = "attack_lab.counted_alone"
        else:
            counted = "attack_lab.counted"
        st.markdown(t(counted, off=off, on=on, often=f"{1 / ALPHA:,.0f}"))
        st.caption(t("attack_lab.took", seconds=t.duration(seconds)))


def said(t: Texts, result: AttackResult) -> str:
    """Say whether an attack works, and how often."""
    return f"**{_verdict(t, result)}** {_rates(t, result)}"


def _rates(t: Texts, result: AttackResult) -> str:
    words = {"off": percent(result.defence_off), "chance": percent(result.chance)}
    if result.defence_on is None:
        return t("attack_lab.rates_alone", **words)
    return t("attack_lab.rates", **words, on=percent(result.defence_on))


def _figures(result: AttackResult) -> dict[str, str]:
    """Return what a sentence about a result may name, in words."""
    outcome = result.outcome
    return {
        **{name: f"{value:,}" for name, value in outcome.setting.items()},
        **{name: percent(value) for name, value in outcome.rates.items()},
        **{name: number(value) for name, value in outcome.numbers.items()},
        "off": percent(result.defence_off),
        "on": percent(result.defence_on) if result.defence_on is not None else "–",
        "chance": percent(result.chance),
    }


def _bars(t: Texts, result: AttackResult, works: bool) -> str:
    """Return a chart of two bars, without and with the defence, and a line where guessing is."""
    rows = [(t("attack_lab.without"), result.defence_off, palette.FINDING)]
    if result.defence_on is not None:
        words = t("attack_lab.with_optional" if result.outcome.optional else "attack_lab.with")
        rows.append((words, result.defence_on, palette.FINDING if works else palette.INK))
    bars = [(f"{name}  {percent(rate)}", rate, colour) for name, rate, colour in rows]
    guessed = result.chance, f"{t('attack_lab.guessing')}  {percent(result.chance)}"
    return charts.lying(bars, 1.0, _rates(t, result), guessed)


def table(t: Texts, attacks: Sequence[Attack], results: Results) -> None:
    """Draw the twin of all bars."""
    ran = [results[attack.id] for attack in attacks if attack.id in results]
    columns: frame.Columns = {
        t("attack_lab.attack"): [f"{result.id} {t(f'attack.{result.text}_title')}" for result in ran],
        t("attack_lab.severity"): [t(_severity_key(result.severity)) for result in ran],
        t("attack_lab.without"): [percent(result.defence_off) for result in ran],
        t("attack_lab.with"): [percent(result.defence_on) if result.defence_on is not None else "–" for result in ran],
        t("attack_lab.guessing"): [percent(result.chance) for result in ran],
        t("attack_lab.verdict"): [_verdict(t, result) for result in ran],
    }
    frame.table_twin(t, columns, t("attack_lab.title"), "attack")


def _severity(t: Texts, severity: str) -> str:
    return f":material/{SEVERITY_ICONS[severity]}: {t(_severity_key(severity))}"


def _severity_key(severity: str) -> str:
    return f"attack_lab.severity_{severity.replace(' ', '_')}"
