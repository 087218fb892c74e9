"""What does the model say about this person, and why?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from app import session, user_jobs, view_models
from app.panels import (
    attention,
    costs,
    engine,
    frame,
    notice_details,
    palette,
    person,
    policies,
    reasons,
    result,
    run,
    sight,
    standing,
    upload,
)
from app.texts import markdown
from backend.errors import GlassleafError
from backend.results import ScoreBatch
from backend.services.reasons import ReasonsRequest
from backend.services.scoring import ScoringRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlit.delta_generator import DeltaGenerator

    from backend.data.table import SampleSheet
    from backend.services.job_registry import Upload
    from backend.services.leakage import AnswerCost

t = session.texts()
model_id = frame.model_or_stop(t, "score")

view = session.view(model_id)
backend = session.service()
people = session.samples(model_id)
job = user_jobs.find("score")
why = user_jobs.find("reasons")
running = user_jobs.running(job)
held = user_jobs.upload("score")  # of a running job that was left
last: ScoreBatch | None = job.result if job is not None else None
if last is not None and last.model_id != model_id:
    last = None


def scene(asked: tuple[str, ...], done: ScoreBatch | None = None) -> sight.ScoringMoment:
    """What the parties see now; through a Host's eyes in the synthetic demo alone."""
    entries = done.transcript if done is not None else job.transcript if job is not None else ()
    shown = view.federation.synthetic and view.federation.link is None
    known = shown and done is not None and len(asked) == 1 and asked[0] in people.index
    look = partial(backend.demonstration.look_as, model_id, person=asked[0]) if known else None
    return sight.ScoringMoment(entries, asked, done, look, running.party if running else "")


def follow() -> None:
    """A scoring that is under way, and what the parties see of it."""
    if running:
        seen = lambda: sight.draw(t, view, scene(session.kept("asked", ())), "live")  # noqa: E731
        run.follow(t, view, running, lambda: user_jobs.progress("score"), session.rerun, seen)


def begin(request: ScoringRequest, given: Upload | None = None) -> None:
    """Start a scoring, of a file that is kept until it has ended."""
    sheet = request.samples
    session.keep("asked", tuple(name for row, name in enumerate(sheet.ids) if row not in sheet.problems))
    under = (request.cipher, request.key_bits)
    user_jobs.start("score", lambda: backend.scoring.start(request), about=under, upload=given)
    session.keep("followed", id(user_jobs.find("score")))


def received(done: ScoreBatch) -> None:
    """An answer is drawn for the first time: it need not be held for whoever asked, and the session remembers it."""
    if session.once("received", (done.run, done.seconds)):
        backend.scoring.handed_over(done)
        when = session.clock(user_jobs.since("score"), st.context.timezone)
        session.keep("scored", standing.noted(session.kept("scored", ()), done, when))


def chosen_sheet(way: str, whom: DeltaGenerator, form: DeltaGenerator) -> tuple[SampleSheet | None, Upload | None]:
    """Whoever is to be scored: picked in `whom`, or filled in in `form`; and the file that they came in."""
    given = None
    try:
        if way == "pick":
            with whom:
                chosen = person.pick(t, view, people, session.kept("sample"), session.remember, session.draw)
            return (backend.samples.of_person(model_id, chosen) if chosen else None), None
        with form:
            if way == "type":
                known = session.kept("sample")
                start = person.row(people, known) if known in people.index else None
                return backend.samples.typed_in(model_id, *person.typed(t, view, start, session.empty)), None
            given = person.upload(t, lambda: backend.samples.template(model_id)) or held
            if given is None:
                return None, None
            if given is held:
                st.caption(f":material/attach_file: {t('jobs.upload', name=markdown(given.name))}")
            take = partial(backend.samples.read, model_id, given.content, given.name)
            sheet = upload.read(t, "score", given.name, given.content, take)
            if sheet is not None:
                person.sheet(t, view, sheet)
            return sheet, given
    except GlassleafError as error:
        with form:
            frame.problem(t, error)
        return None, given


def ready(cipher: str, bits: int, people: int) -> tuple[Callable[[], None], Callable[[], int] | None]:
    """What draws the parties' pools, and how much they lack for so many people; None if nothing is kept ready."""
    taken: dict[str, int] = {}
    if cipher == "paillier":
        backend.federations.warm_up(view.record.federation, bits)
        taken = {party: people * count for party, count in backend.scoring.obfuscators(model_id).items()}
    read = partial(backend.federations.pools, view.record.federation)

    def lacking() -> int:
        return run.lacking(run.needed(view, read(), cipher), taken)

    pools = partial(run.pools, t, view, read, cipher, taken)
    return pools, lacking if run.needed(view, read(), cipher) else None


def filling(draw: Callable[[], None], lacking: Callable[[], int]) -> None:
    """Draw how far the pools are, again every second while they lack something and no other clock ticks."""
    if user_jobs.busy() or not lacking():
        draw()
    else:
        run.pools_filling(draw, lambda: not lacking())


def on_line(people: int, cipher: str, bits: int) -> Callable[[str], None]:
    """Draw the pools; returns what draws the line on the cipher with how far they are."""
    pools, lacking = ready(cipher, bits, people)
    pools()

    def said(words: str) -> None:
        if lacking is None:
            st.caption(words)
        else:
            filling(partial(run.readiness, t, words, lacking), lacking)

    return said


def answers(sheet: SampleSheet | None) -> bool:
    """Whether what the page has to say is about the people of `sheet`; an answer about others comes after the form on a phone."""
    if last is None:
        return job is not None and job.result is None
    return sheet is not None and [score.id for score in last.scores] == list(sheet.ids)


class ScoringInput(NamedTuple):
    """How people were given, their sheet, the answer's place, the cipher with its key's bits, and what scores them again."""

    way: str
    sheet: SampleSheet | None
    answer: DeltaGenerator
    under: tuple[engine.Engine, int]
    again: Callable[[], None] | None


def kept_choice(people: int) -> None:
    """After a reload the cipher line says what the scoring at work runs under, not what would suit the next one."""
    under = user_jobs.about("score")
    if running and under is not None and session.kept("engine") is None:
        cipher, bits = under
        if cipher != backend.scoring.suited(model_id, people):
            session.choose("score_cipher", cipher)
        if cipher == "paillier":
            session.choose("score_key_bits", bits)


def one_person(sheet: SampleSheet | None) -> bool:
    """Return whether one person's budget is used: not if Hosts' values were typed in."""
    return sheet is not None and len(sheet.ids) == 1 and sheet.usable == 1 and not sheet.hosts


def said_before(sheet: SampleSheet, *, explain: bool) -> tuple[AnswerCost, ...]:
    """Draw what the questions cost before they are asked, and whether the person was scored before; return the costs."""
    person_id = sheet.ids[0] if one_person(sheet) else ""
    found = backend.leakage.cost_of_answers(model_id, person_id)
    costs.line(t, view, found, reasons=explain)
    day = backend.reasons.day_of_score(model_id, person_id) if person_id else ""
    if day:
        costs.before(t, day, same=backend.reasons.scored_before(model_id, sheet) is not None)
    costs.spent(t, view, found)
    return found


def ask() -> ScoringInput:
    """Whom to score, under which cipher, and the button."""
    if held is not None and session.once("held_upload", held.name):
        session.choose("score_way", "upload")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="score_bar"):
        way = person.way(t)
        whom = st.container(horizontal=True, vertical_alignment="bottom", gap="small", width="content")
        button = st.container(horizontal=True, width="content")
    above = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
    price = st.container()
    if way == "pick":
        answer = form = st.container(key="score_answer")
    elif running:  # what the parties see has its place beside the stages, and needs the whole width for it
        answer = st.container(key="score_answer")
        form = st.container()
    else:
        left, right = st.columns([5, 7], gap="large")
        form = left.container()
        answer = right.container(key="score_answer")
        order = st.empty()
    sheet, given = chosen_sheet(way, whom, form)
    if way != "pick" and not running and answers(sheet):
        with order:
            attention.order_on_a_phone("score_answer")
    usable = sheet.usable if sheet is not None else 0
    kept_choice(max(1, usable))
    with above:
        one_output = view.model.outputs.slots(view.record.n_trees) == 1
        speeds = user_jobs.speeds(model_id, view.model.guest)
        cipher, bits = engine.line(
            t,
            max(1, usable),
            speeds,
            one_output,
            partial(backend.scoring.suited, model_id),
            partial(on_line, max(1, usable)),
        )
        session.keep("engine", (cipher, bits))
    explain = one_person(sheet) and reasons.can_be_asked(view)
    with price:
        answers_cost = said_before(sheet, explain=explain) if sheet is not None and usable else ()
    off = not usable or bool(running) or any(cost.score_spent for cost in answers_cost)
    offered = sheet is None or bool(usable)  # of a file without a usable row there is nothing to send
    go = offered and button.button(
        t("score.go"), type=frame.emphasis(), icon=":material/lock:", disabled=off, key="score_go"
    )
    no_reasons = any(cost.reasons_spent for cost in answers_cost)
    both = explain and button.button(
        t("score.go_why"), icon=":material/help:", disabled=off or no_reasons, key="score_go_why"
    )

    def score() -> None:
        if sheet is not None:
            session.keep("typed", sheet if way == "type" else None)  # for the leak meter; uploads are not kept
            begin(ScoringRequest(model_id, sheet, None, cipher, bits, hold=True), given)

    if go or both:
        score()
        session.keep("with_reasons", id(user_jobs.find("score")) if both else None)
        session.rerun()
    return ScoringInput(way, sheet, answer, (cipher, bits), score if usable else None)


def analyse() -> None:
    """The page as an analyst uses it: the question, the answer first, then how it came about."""
    way, sheet, answer, under, again = ask()
    own = person.row(people, sheet.ids[0]) if way == "pick" and sheet is not None else None
    with answer:
        frame.refused(t, "score")
        if running:
            session.keep("followed", id(running))
            attention.to("score_answer", t("score.answer"), f"running:{id(running)}", t("score.started"))
            follow()
            if own is not None:
                person.card(t, view, own)
            return
        one, other = st.columns([6, 5], gap="large") if way == "pick" else (st.container(), st.container())
    with other:
        among = st.container()
        policy = session.policy(view)
        what_if = run.what_if(t, policy)
        policies.line(t, policy)
    done = view_models.with_what_if(last, what_if) if last is not None else None
    with among:
        line = policy.cutoff if what_if is None else what_if
        standing.among(t, view, backend.model_cards.get(model_id), done, line)
    with one:
        answered(done, sheet, under, again)
    if done is not None:
        seen_by_all(done)
        result.many(t, view, done)
    left, right = st.columns([5, 7], gap="large") if own is not None else (st.container(), st.container())
    if own is not None:
        with left:
            person.card(t, view, own)
    if done is not None:
        with right:
            result.learned(t, view, done)
            result.take_home(t, view, done, partial(backend.scoring.csv, done))
        standing.session(t, view, session.kept("scored", ()), people)
        bits = engine.textbook_bits(done)
        result.computed(t, view, done, partial(backend.models.textbook_seconds, model_id, bits), bits)


def answered(
    done: ScoreBatch | None,
    sheet: SampleSheet | None,
    under: tuple[engine.Engine, int],
    again: Callable[[], None] | None,
) -> None:
    """The answer, and the reasons where they are asked for."""
    before = None
    if done is None and sheet is not None and len(sheet.ids) == 1:
        before = backend.reasons.scored_before(model_id, sheet)
    if before is not None and (job is None or job.result is not None):
        policies.remembered(t, before.scores[0], before.decided[:10])
        explained(before, sheet, under)
    elif done is None and job is None:
        st.info(t("score.not_yet"), icon=":material/lock:")
    elif job is not None and job.result is None:
        run.ended(t, job, again=again)
    elif done is None:
        st.info(t("score.other_model"), icon=":material/lock:")
    else:
        result.draw(t, view, done)
        received(done)
        # whoever opens the page and finds an answer of before has not asked for it
        if session.kept("followed") == id(job):
            attention.to(
                "score_answer", t("score.answer"), f"done:{done.run}:{done.seconds}", result.said(t, view, done)
            )
        if result.usable(done):
            explained(done, sheet, under)


def explained(done: ScoreBatch, sheet: SampleSheet | None, under: tuple[engine.Engine, int]) -> None:
    """What raised the score."""
    cipher, bits = under
    against, go = reasons.asked(t, view, done, sheet, why)

    def explain() -> None:
        if sheet is not None and against is not None:
            scored = None if done.decided else done
            wanted = ReasonsRequest(model_id, sheet, cipher=cipher, key_bits=bits, scored=scored, against=against)
            user_jobs.start("reasons", lambda: backend.reasons.start(wanted))

    wished = session.kept("with_reasons") == id(job) and against is not None
    if wished:
        session.keep("with_reasons", None)  # asked for by the same press as the score
    if go or wished:
        explain()
        session.rerun()
    known = len(done.scores) == 1 and done.scores[0].id in people.index
    own = person.row(people, done.scores[0].id) if known else None
    reasons.draw(t, view, done, why, own, backend.reasons.notice, session.rerun, explain if against else None)
    if view.task == "binary":
        provided = backend.notice_details
        name = view.federation.name
        stands = notice_details.NoticeDetailsPanel(
            provided.of(name),
            provided.missing(name, t.language),
            {p.name: palette.plain(t, view.federation, p.name) for p in view.federation.parties},
            partial(provided.keep, name),
            partial(provided.keep_toml, name),
            partial(provided.template, name, t.language),
        )
        notice_details.panel(t, stands, session.attempt)


def seen_by_all(done: ScoreBatch) -> None:
    """What each party saw of a scoring that has ended."""
    if not result.usable(done):
        return
    frame.section(t, "transcript.sight")
    seen = scene(tuple(score.id for score in done.scores if score.scored), done)
    if done.recalled and not seen.carried:
        st.caption(f":material/history: {t('transcript.from_journal')}")
    sight.draw(t, view, seen, "seen")


frame.header(t, "score", session.notices(), view.federation)
frame.outcome(t, session.outcome(), far=True)
analyse()
