"""How do I know it holds?"""

from functools import partial

import streamlit as st

from app import session, user_jobs
from app.panels import attack_lab, attention, frame, run

ATTACK_LINK = "attack"  # what the address calls the attack whose details are open

t = session.texts()
backend = session.service()
every = {attack.id: attack for attack in backend.attack_runs.all()}
opened = session.linked(ATTACK_LINK, every) or ""
frame.header(t, "attack_lab", session.notices())
st.markdown(t("attack_lab.intro"))
job = user_jobs.find("attacks")
running = user_jobs.running(job)
stage = running.stage if running else ""
n_shown = job.through if job is not None else 0
results = {result.id: result for result in (job.result if job is not None else None) or ()}
attacks = attack_lab.chosen(t, tuple(every.values()))


def begin(names: list[str]) -> None:
    """Start some attacks and draw the page again."""
    user_jobs.start(
        "attacks", lambda: backend.attack_runs.start(names, earlier_results=tuple(results.values())), about=names
    )
    session.rerun()


if attack_lab.all_button(t, attacks, bool(running)):
    begin([attack.id for attack in attacks])
frame.refused(t, "attacks")
draw_progress = None  # how far the last runs are, or what became of them
if running:
    draw_progress = partial(attack_lab.follow, t, running, n_shown, session.rerun)
elif job is not None:
    draw_progress = partial(run.ended, t, job, "attack_lab.cancelled")
started_ids: list[str] = user_jobs.about("attacks") or []
alone = started_ids[0] if len(started_ids) == 1 and started_ids[0] == opened else ""
if draw_progress and not alone:
    draw_progress()
if results:
    attack_lab.summary(t, attacks, results)
elif not draw_progress:
    st.caption(t("attack_lab.not_run"))
if opened:
    inside = draw_progress if opened == alone else None  # in the details of the attack that was started
    attack_lab.details(t, every[opened], results.get(opened), stage, inside)
    attention.to("attack_details", t(f"attack.{every[opened].text}_title"), opened, t("attack_lab.details"))
pressed = attack_lab.tiles(t, attacks, results, stage, partial(session.announce, ATTACK_LINK))
if pressed is not None:
    begin([pressed.id])
if results:
    attack_lab.table(t, attacks, results)
