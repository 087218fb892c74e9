"""What does the model say about this person, and why?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from app import session, user_jobs, view_models
from app.panels import (
    attention,
    costs,
    frame,
    notice_details,
    palette,
    person,
    policies,
    reasons,
    result,
    run,
    standing,
)
from app.panels.scoring import ScoringPanel
from app.texts import markdown
from backend.errors import GlassleafError
from backend.results import ScoreBatch
from backend.services.reasons import ReasonsRequest
from backend.services.scoring import ScoringRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlit.delta_generator import DeltaGenerator

    from app.panels import engine
    from backend.data.table import SampleSheet
    from backend.services.leakage import AnswerCost

t = session.texts()
model_id = frame.model_or_stop(t, "score")

view = session.view(model_id)
backend = session.service()
people = session.samples(model_id)
panel = ScoringPanel(t, view, "score", people)
why = user_jobs.find("reasons")


class Question(NamedTuple):
    """Who is to be scored.

    Attributes
    ----------
    sheet : SampleSheet or None
        The person as the Guest knows, or assumes, them; None if no person is chosen.
    assumed : tuple of str
        Features of the Guest whose values are not those of its record: a what-if.
    under : (str, int)
        Cipher and bits of its key.
    ask : callable or None
        Asks for the score; None if it cannot be.
    """

    sheet: SampleSheet | None
    assumed: tuple[str, ...]
    under: tuple[engine.Engine, int]
    ask: Callable[[], None] | None


def chosen(way: str, menu: DeltaGenerator, card: DeltaGenerator) -> tuple[SampleSheet | None, tuple[str, ...]]:
    """Draw the menu of people and the person's card, or the form; return the person and the features that are assumed."""
    if way == "type":
        with card:
            last_id = session.kept("sample")
            start = person.row(people, last_id) if last_id in people.index else None
            return backend.samples.typed_in(model_id, *person.typed(t, view, start, session.empty)), ()
    with menu:
        sample = person.pick(t, view, people, session.kept("sample"), session.remember, session.draw)
    if not sample:
        return None, ()
    known_person = person.row(people, sample)
    with card:
        if not st.toggle(t("score.assume"), key="score_assume", help=t("score.assume_help")):
            person.card(t, view, known_person)
            return backend.samples.of_person(model_id, sample), ()
        values, changed = person.assumed(t, view, known_person)
    if not changed:
        return backend.samples.of_person(model_id, sample), ()
    return backend.samples.typed_in(model_id, sample, values), changed


def one_person(sheet: SampleSheet) -> bool:
    """Return whether one person's budget is used: not if the row cannot be used."""
    return sheet.usable == 1 and not sheet.hosts


def said_before(sheet: SampleSheet, *, explain: bool) -> tuple[AnswerCost, ...]:
    """Draw what the questions cost before they are asked, and whether the person was scored before; return the costs."""
    person_id = sheet.ids[0] if one_person(sheet) else ""
    answer_costs = backend.leakage.cost_of_answers(model_id, person_id)
    costs.line(t, view, answer_costs, reasons=explain)
    day = backend.reasons.day_of_score(model_id, person_id) if person_id else ""
    if day:
        costs.before(t, day, same=backend.reasons.scored_before(model_id, sheet) is not None)
    costs.spent(t, view, answer_costs)
    return answer_costs


def draw_question(card: DeltaGenerator, line: DeltaGenerator, bar: DeltaGenerator) -> Question:
    """Draw who is to be scored in `bar` and `card`, under which cipher in `line`, and the buttons."""
    with bar:
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="score_bar"):
            way = person.way(t)
            menu = st.container(horizontal=True, vertical_alignment="bottom", gap="small", width="content")
            buttons = st.container(horizontal=True, width="content", gap="small")
        price = st.container(gap="xxsmall")
    sheet = None
    assumed: tuple[str, ...] = ()
    try:
        sheet, assumed = chosen(way, menu, card)
    except GlassleafError as error:
        with card:
            frame.problem(t, error)
    usable = sheet is not None and sheet.usable == 1
    with line:
        cipher, bits = panel.cipher(1)
    explain = sheet is not None and one_person(sheet) and reasons.can_be_asked(view)
    asked_costs: tuple[AnswerCost, ...] = ()
    if sheet is not None and usable:
        with price:
            asked_costs = said_before(sheet, explain=explain)
    elif sheet is not None:
        with card:
            frame.problems(t, sheet.problems[0])
    off = not usable or panel.running is not None or any(cost.score_spent for cost in asked_costs)
    no_reasons = off or any(cost.reasons_spent for cost in asked_costs)
    both = explain and buttons.button(
        t("score.go_why"), type=frame.emphasis(), icon=":material/lock:", disabled=no_reasons, key="score_go_why"
    )
    alone = buttons.button(
        t("score.go_alone" if explain else "score.go"),
        type="secondary" if explain else frame.emphasis(),
        icon=None if explain else ":material/lock:",
        disabled=off,
        key="score_go",
    )

    def score() -> None:
        if sheet is not None:
            session.keep("typed", sheet if way == "type" or assumed else None)  # for the leak meter
            request = ScoringRequest(model_id, sheet, cipher=cipher, key_bits=bits, hold=True, assumed=bool(assumed))
            panel.begin(request, assumed)

    if both or alone:
        score()
        session.keep("with_reasons", id(panel.job) if both else None)
        session.rerun()
    return Question(sheet, assumed, (cipher, bits), score if usable else None)


def about_chosen(batch: ScoreBatch, question: Question) -> bool:
    """Return whether an answer is about the person who is chosen, with the values that are shown."""
    assumed = panel.about.assumed if panel.about is not None else ()
    return (
        question.sheet is not None
        and tuple(question.sheet.ids) == (batch.scores[0].id,)
        and assumed == question.assumed
    )


def answered(question: Question, answer: DeltaGenerator, reason: DeltaGenerator) -> ScoreBatch | None:
    """Draw the answer, its place among others, and why; return the scores that are shown or remembered."""
    policy = session.policy(view)
    job = panel.job
    with answer:
        frame.section(t, "score.answer")
        frame.refused(t, "score")
        answer_place = st.container()
        among = st.container()
        what_if = run.what_if_box(t, policy)
        policies.line(t, policy)
    if panel.running is not None:
        with answer_place:
            attention.to("score_answer", t("score.answer"), f"running:{id(panel.running)}", t("score.started"))
            panel.follow()
        return None
    last = panel.last
    batch = view_models.with_what_if(last, what_if) if last is not None else None
    remembered = None
    if batch is None and question.sheet is not None and not question.assumed:
        remembered = backend.reasons.scored_before(model_id, question.sheet)
    explained_of = remembered if batch is None else batch
    with among:
        card = backend.model_cards.get(model_id)
        standing.among(t, view, card, explained_of, policy.cutoff if what_if is None else what_if)
    with answer_place:
        if remembered is not None and (job is None or job.result is not None):
            result.draw(t, view, remembered)
            st.caption(f":material/history: {policies.remembered(t, remembered)}")
        elif batch is not None:
            drawn(batch, question)
        elif job is None:
            st.info(t("score.not_yet"), icon=":material/lock:")
        elif job.result is None:
            run.ended(t, job, again=question.ask)
        else:
            st.info(t("score.other_model"), icon=":material/lock:")
    if batch is not None and not (panel.about is not None and panel.about.assumed):
        with answer:
            result.take_home(t, batch, partial(backend.scoring.csv, batch))
    with reason:
        frame.section(t, "reasons.why", "reasons")
        if explained_of is not None and result.usable(explained_of):
            explained(explained_of, question)
        else:
            st.caption(t("reasons.with_the_score" if reasons.can_be_asked(view) else "reasons.unfit"))
    return explained_of


def drawn(batch: ScoreBatch, question: Question) -> None:
    """Draw the answer about one person; a what-if says which values were assumed, and that it decides nothing."""
    assumed = panel.about.assumed if panel.about is not None else ()
    if assumed:
        names = t.listed([f"**{markdown(t.meaning(view.model.feature(name)))}**" for name in assumed])
        st.info(t("score.assumed", names=names, id=markdown(batch.scores[0].id)), icon=":material/experiment:")
    elif not about_chosen(batch, question):
        st.caption(f":material/history: {t('score.of_another', id=markdown(batch.scores[0].id))}")
    result.draw(t, view, batch)
    panel.received(batch)
    if panel.followed():
        token = f"done:{batch.run}:{batch.seconds}"
        attention.to("score_answer", t("score.answer"), token, result.said(t, view, batch))


def explained(batch: ScoreBatch, question: Question) -> None:
    """Draw what raised the score, or what asks for it."""
    cipher, bits = question.under
    sheet = question.sheet
    fits = reasons.fits(view, batch, sheet, why) and (batch.decided != "" or about_chosen(batch, question))
    request = reasons.form(t, view, batch, why, enabled=fits)

    def explain() -> None:
        if sheet is not None:
            scored = None if batch.decided else batch
            reasons_request = ReasonsRequest(
                model_id, sheet, cipher=cipher, key_bits=bits, scored=scored, against=request.against
            )
            user_jobs.start("reasons", lambda: backend.reasons.start(reasons_request))

    wished = fits and session.kept("with_reasons") == id(panel.job)
    if wished:
        session.keep("with_reasons", None)  # asked for by the same press as the score
    if request.pressed or wished:
        explain()
        session.rerun()
    is_sample = len(batch.scores) == 1 and batch.scores[0].id in people.index
    guest_values = person.row(people, batch.scores[0].id) if is_sample else None
    notice = None if panel.about is not None and panel.about.assumed else backend.reasons.notice
    with request.place:
        reasons.draw(t, view, batch, why, guest_values, notice, session.rerun, explain if fits else None)


def notices() -> None:
    """Draw what notices state of the parties."""
    provided = backend.notice_details
    name = view.federation.name
    details = notice_details.NoticeDetailsPanel(
        {party.name: palette.plain(t, view.federation, party.name) for party in view.federation.parties},
        partial(provided.keep, name),
        partial(provided.keep_toml, name),
        partial(provided.template, name, t.language),
        provided.of(name),
        provided.missing(name, t.language),
    )
    notice_details.panel(t, details, session.attempt)


def draw_page() -> None:
    """Draw the page: the person, the answer and why next to each other; below them, folded, how the values stayed hidden."""
    bar = st.container()
    person_column, answer_column, reasons_column = st.columns([9, 10, 11], gap="medium")
    with person_column:
        card = st.container(key="score_person")
        with card:
            frame.section(t, "score.person")
    answer = answer_column.container(key="score_answer")
    reason = reasons_column.container(key="score_why")
    line = st.container(horizontal=True, vertical_alignment="center")
    question = draw_question(card, line, bar)
    last = panel.last
    batch = answered(question, answer, reason)
    if panel.running is not None or (batch is not None and about_chosen(batch, question)):
        attention.last_on_a_phone("score_person")
    if batch is None:
        return
    if last is not None:
        standing.session(t, view, session.kept("scored", ()), people)
    if view.task == "binary" and result.usable(batch):
        notices()
    if last is not None:
        panel.how(last, partial(reasons.learned, t, view, last, why))


frame.header(t, "score", session.notices(), view.federation)
frame.outcome(t, session.outcome(), far=True)
draw_page()
