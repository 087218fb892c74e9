"""One's own data, step by step: what is predicted, whose column is whose, what each one means. Its owner alone sees values of the table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from app import session, user_jobs
from app.panels import attention, controls, frame, links, run, upload
from app.texts import Texts, bare, markdown, percent
from backend.errors import GlassleafError
from backend.i18n import Text
from backend.remark import Remark
from backend.services.own_data import DIRECTIONS, KINDS, UPLOAD, Draft, OwnData, OwnHost

if TYPE_CHECKING:
    from backend.data.federation import Federation
    from backend.jobs import Job
    from backend.services.federations import ColumnReading, Overview
    from backend.services.own_data import Column, Mend, Oddity, Outcomes

JOB = "federation"
READY = ("credit_card", "files")  # ways to a federation that need no draft
STEPS = ("table", "outcome", "columns", "create")
MAX_HOSTS = 6  # as many as there are marks for
SHOWN_CODES = 4  # of a column
PAGE = 12  # columns at once
EDITED = (
    "unit",
    "categories",
    "missing",
    "expected_direction",
    "sensitivity",
    "unit_zh",
    "categories_zh",
)
NAME = 145  # pixels
OTHER = 150
WIDTHS = (2.0, 1.7, 1.5, 2.6, 3.6)  # of the table's columns
HEAD = ("column", "party", "read_as", "meaning_head", "odd")
# problems that a row words itself: about the controls next to it, not about a file or a command
PROBLEMS = frozenset(
    f"own_data.problem_{code}"
    for code in ("cells_unreadable", "cells_look_missing", "too_many_codes", "texts_look_like_dates", "cells_no_dates")
)
ROWS = ""  # in place of an id column: rows are numbered


def note(t: Texts) -> None:
    """Draw what this is, and what it is not."""
    st.info(t("own_data.simulated"), icon=":material/science:")


def table(t: Texts, service: OwnData) -> None:
    """From an upload to a federation."""
    if _making(t):
        return
    opened = session.kept("own_draft", "")
    draft = service.draft(opened)
    _made(t, opened)
    if draft is None:
        _begin(t, service)
        return
    step = STEPS[draft.step - 1]
    _stepper(t, draft)
    frame.section(t, f"own_data.step_{step}")
    ready = False
    if step == "outcome":
        draft, ready = _outcome(t, service, draft)
    elif step == "columns":
        draft, ready = _columns_step(t, service, draft)
    else:
        draft, ready = _create(t, service, draft)
    _moves(t, service, draft, ready)


def _making(t: Texts) -> bool:
    """A federation that is being made, in whatever way, with a way to stop it; whether there is one."""
    job: Job[Federation] | None = user_jobs.running(user_jobs.find(JOB))
    if job is not None:
        words = {"start": "own_data.making"}
        frame.follow(t, job, lambda stage: t(words.get(stage, f"own_data.stage_{stage}")), JOB, session.rerun)
    return job is not None


def _made(t: Texts, *begun_by: str) -> None:
    """Draw what became of the federation that was begun last, if it was begun so, and what to do with it."""
    job: Job[Federation] | None = user_jobs.find(JOB)
    if frame.refused(t, JOB):
        return
    if job is None or job.state == "running" or user_jobs.about(JOB) not in begun_by:
        return
    if job.result is None:
        with st.container(key="own_ended"):  # on a phone far above the button
            run.ended(t, job)
        if user_jobs.begun_here(job):
            attention.to(
                "own_ended",
                t("own_data.step_create"),
                f"ended:{id(job)}",
                frame.explained(t, job.failure or ""),
            )
    else:
        if session.once("own_made", job.result.name):
            session.keep("train_federation", job.result.name)
            session.choose("train_federation", job.result.name)
        with st.container(border=True):
            st.markdown(f":material/check_circle: {t('own_data.made', name=markdown(t.federation(job.result)))}")
            links.page("train", t("own_data.to_train"), "model_training")


def _begin(t: Texts, service: OwnData) -> None:
    """Draw the first step: a table, or what was begun before."""
    _stepper(t, None)
    frame.section(t, "own_data.step_table")
    st.markdown(t("own_data.table_hint", megabytes=UPLOAD.max_bytes // 1_000_000))
    file = upload.file(t, t("upload.file"), "own_upload", UPLOAD.max_bytes // 1_000_000)
    if file is not None:
        data = file.getvalue()
        draft = upload.read(t, "own", file.name, data, partial(_begun, service, file.file_id, file.name, data))
        if draft is not None:
            session.drop_upload("own_upload", file)
            session.keep("own_draft", draft.id)
            session.rerun()
    drafts = service.drafts()
    if drafts:
        frame.section(t, "own_data.unfinished")
        st.caption(t("own_data.unfinished_hint"))
    for unfinished in drafts:
        with st.container(horizontal=True, vertical_alignment="center"):
            words = t(
                "own_data.unfinished_one",
                file=markdown(unfinished.file),
                step=t(f"own_data.step_{STEPS[unfinished.step - 1]}"),
            )
            st.markdown(words)
            st.button(
                t("own_data.go_on"),
                on_click=session.keep,
                args=("own_draft", unfinished.id),
                key=f"own_open_{unfinished.id}",
            )
            _discard(t, service, unfinished)


def _begun(service: OwnData, file_id: str, name: str, data: bytes, how: Any) -> Draft:
    """Return the draft of an upload, made once."""
    existing = service.draft(session.kept(f"own_of_{file_id}", ""))
    draft = existing or service.begin(name, data, how)
    session.keep(f"own_of_{file_id}", draft.id)
    return draft


def _stepper(t: Texts, draft: Draft | None) -> None:
    """Draw where one is: what is done, what is next."""
    now = 1 if draft is None else draft.step
    parts = []
    for place, step in enumerate(STEPS, start=1):
        words = f"{place} {t(f'own_data.step_{step}')}"
        if place < now:
            parts.append(f":material/check: {words}")
        elif place == now:
            parts.append(f"**{words}**")
        else:
            parts.append(f":gray[{words}]")
    st.markdown("  ›  ".join(parts))
    if draft is not None:
        st.caption(f":material/save: {t('own_data.kept', file=markdown(draft.file))}")


def _moves(t: Texts, service: OwnData, draft: Draft, ready: bool) -> None:
    """Keeps what was said, and goes back, on, or away."""
    if draft != service.draft(draft.id):
        service.save(draft)

    def go(step: int) -> None:
        service.save(draft.model_copy(update={"step": step}))

    with st.container(horizontal=True):
        if draft.step > 2:
            st.button(
                t("own_data.back"), icon=":material/arrow_back:", on_click=go, args=(draft.step - 1,), key="own_back"
            )
        if draft.step < len(STEPS):
            st.button(
                t("own_data.next"),
                type=frame.emphasis(),
                icon=":material/arrow_forward:",
                disabled=not ready,
                on_click=go,
                args=(draft.step + 1,),
                key="own_next",
            )
        else:
            pressed = st.button(
                t("own_data.make"), type=frame.emphasis(), icon=":material/check:", disabled=not ready, key="own_make"
            )
            if pressed:
                user_jobs.start(JOB, partial(service.start, draft), about=draft.id)
                session.rerun()
        st.button(t("own_data.later"), on_click=session.keep, args=("own_draft", ""), key="own_later")
        _discard(t, service, draft)


def _discard(t: Texts, service: OwnData, draft: Draft) -> None:
    """Deletes a draft, once that was said twice."""
    with st.popover(t("own_data.discard"), icon=":material/delete:", key=f"own_drop_{draft.id}"):
        st.markdown(t("own_data.discard_sure", file=markdown(draft.file)))
        st.button(t("own_data.discard_yes"), on_click=service.discard, args=(draft,), key=f"own_drop_{draft.id}_yes")


# -- what is predicted ----------------------------------------


def _field(draft: Draft, name: str, value: Any) -> str:
    """The key of a widget that begins with what the draft says."""
    key = f"own_{draft.id}_{name}"
    st.session_state.setdefault(key, value)
    return key


def _outcome(t: Texts, service: OwnData, draft: Draft) -> tuple[Draft, bool]:
    columns = service.columns(draft)
    names = [column.name for column in columns]
    st.caption(t("own_data.table_read", file=markdown(draft.file), rows=f"{service.rows(draft):,}", n=len(columns)))
    _columns_table(t, columns)
    columns_side, outcome_side = st.columns(2, gap="large")
    with columns_side:
        id_column = st.selectbox(
            t("own_data.id_column"),
            [ROWS, *names],
            key=_field(draft, "id", draft.id_column),
            format_func=lambda name: name or t("own_data.rows_numbered"),
            help=t("own_data.id_help"),
        )
        label = st.selectbox(
            t("own_data.label"),
            [name for name in names if name != id_column],
            key=_field(draft, "label", draft.label or None),
            placeholder=t("own_data.choose"),
            help=t("own_data.label_help"),
        )
    draft = _updated(draft, id_column=id_column)
    if not label:
        return draft, False
    if label != draft.label:
        draft = _updated(draft, label=label, task="", positive="", label_meaning=Text())
    with columns_side:
        draft, mended = _rows_to_mend(t, service, draft)
    outcomes = service.outcomes(draft, label)
    with outcome_side:
        if outcomes.alike or label in draft.one_spelling:
            draft = _spellings(t, draft, label, outcomes.alike)
            outcomes = service.outcomes(draft, label)
        draft, ready = _asked_outcome(t, draft, outcomes)
        ready = ready and mended
        english = st.text_input(
            t("own_data.label_meaning"),
            key=_field(draft, f"meaning_{label}", draft.label_meaning.en),
            placeholder=t("own_data.label_meaning_hint"),
            max_chars=500,
        )
        chinese = st.text_input(
            t("own_data.label_meaning_zh"),
            key=_field(draft, f"zh_{label}", draft.label_meaning.zh),
            max_chars=500,
        )
        draft = _updated(draft, label_meaning=Text(english.strip(), chinese.strip()))
    return draft, ready


def _rows_to_mend(t: Texts, service: OwnData, draft: Draft) -> tuple[Draft, bool]:
    """Rows without an id or an outcome, or with a repeated id: one press leaves them out. Whether none is left."""
    odd = service.odd_rows(draft)
    left_out = []
    for reason, (_, sentence) in odd.items():
        left_out_now = st.checkbox(
            markdown(sentence.sentence(t.language)),
            key=_field(draft, f"leave_out_{reason}", reason in draft.leave_out),
        )
        if left_out_now:
            left_out.append(reason)
    remaining = [reason for reason in odd if reason not in left_out]
    if remaining:
        st.caption(f":material/info: {t('own_data.rows_to_mend')}")
    return _updated(draft, leave_out=tuple(left_out)), not remaining


def _spellings(t: Texts, draft: Draft, column: str, alike: Sequence[Sequence[str]]) -> Draft:
    """Texts of a column that differ in case or spaces alone: one press takes them as one."""
    spellings = t("words.comma").join(" = ".join(map(repr, texts)) for texts in alike)
    if alike:
        words = t("own_data.one_spelling", column=column, texts=spellings)
    else:
        words = t("own_data.spelled_alike", column=column)
    as_one = st.checkbox(markdown(words), key=_field(draft, f"one_spelling_{column}", column in draft.one_spelling))
    others = tuple(name for name in draft.one_spelling if name != column)
    return _updated(draft, one_spelling=(*others, column) if as_one else others)


def _asked_outcome(t: Texts, draft: Draft, outcomes: Outcomes) -> tuple[Draft, bool]:
    """What the label is and, of two outcomes, which one happened."""
    if not outcomes.tasks:
        st.warning(t("own_data.no_outcome", column=markdown(draft.label)), icon=":material/report:")
        return draft, False
    if outcomes.empty:
        words = t("own_data.label_gaps", column=markdown(draft.label), n=outcomes.empty)
        st.warning(words, icon=":material/report:")
        return draft, False
    if draft.task in outcomes.tasks:
        task = draft.task
    else:
        task = outcomes.tasks[0]
    if len(outcomes.tasks) > 1:
        task = st.radio(
            t("own_data.task"),
            outcomes.tasks,
            key=_field(draft, f"task_{draft.label}", task),
            format_func=lambda name: t(f"own_data.task_{name}"),
        )
    draft = _updated(draft, task=task)
    if task != "binary":
        st.caption(t(f"own_data.about_{task}"))
        return _updated(draft, positive=""), True
    people = sum(outcomes.counts.values())
    positive = st.radio(
        t("own_data.positive", column=markdown(draft.label)),
        list(outcomes.counts),
        key=_field(draft, f"positive_{draft.label}", draft.positive or None),
        format_func=lambda value: f"**{markdown(value)}**",
        captions=[
            t("own_data.counted", count=f"{count:,}", people=f"{people:,}", share=percent(count / people))
            for count in outcomes.counts.values()
        ],
    )
    if positive is None:
        return draft, False
    st.caption(f":material/gavel: {t('own_data.declined', column=markdown(draft.label), value=markdown(positive))}")
    return _updated(draft, positive=positive), True


def _columns_table(t: Texts, columns: Sequence[Column]) -> None:
    with st.expander(t("own_data.columns"), icon=":material/table:", key="own_columns"):
        rows: frame.Columns = {
            t("own_data.column"): [column.name for column in columns],
            t("own_data.read_as"): [t(f"own_data.kind_{column.kind}") for column in columns],
            t("own_data.distinct"): [column.distinct for column in columns],
            t("own_data.examples"): [t("words.comma").join(column.values) for column in columns],
        }
        frame.data(rows, "own_columns_table", t("own_data.columns"))


def _updated(draft: Draft, **changes: Any) -> Draft:
    return draft.model_copy(update=changes)


# -- whose column is whose, what it means, and what is odd about it ----------------------------------------


def _columns_step(t: Texts, service: OwnData, draft: Draft) -> tuple[Draft, bool]:
    columns = [c for c in service.columns(draft) if c.name not in (draft.id_column, draft.label)]
    names = [column.name for column in columns]
    st.markdown(t("own_data.columns_hint"))
    draft = _parties(t, draft, names)
    _several(t, service, draft, names)
    status = st.container()
    table = st.container()
    draft = _dictionary(t, service, draft)
    draft = _more_fields(t, draft, columns)
    incomplete = {c.name for c in columns if draft.holder(c.name) is not None and _blocking(draft, c)}
    problems: dict[str, list[Remark]] = {}
    read: tuple[Federation, Overview] | None = None
    with status:
        ready = _parties_ready(t, draft)
        if ready and not incomplete:
            try:
                read = service.overview(draft)
            except GlassleafError as error:
                problems = _by_column(error, names)
        if problems.get(""):
            frame.problems(t, problems[""])
        incomplete |= set(filter(None, problems))
        if incomplete:
            st.warning(t("own_data.need_you", n=len(incomplete)), icon=":material/report:")
    with table:
        _rows(t, service, draft, columns, incomplete, problems)
    if read is not None:
        _readings(t, *read)
    return draft, read is not None


def _parties(t: Texts, draft: Draft, names: Sequence[str]) -> Draft:
    """The parties' names; columns of a Host that is taken away belong to no party."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        count = st.number_input(
            t("own_data.hosts"), 1, MAX_HOSTS, key=_field(draft, "hosts", max(1, len(draft.hosts))), width=150
        )
        hosts = [*draft.hosts, *(OwnHost(title="") for _ in range(count))][:count]
        titles = [draft.guest_title, *(host.title for host in hosts)]
        for place, title in enumerate(titles):
            if place == 0:
                usual = t("own_data.guest_usual")
            else:
                usual = t("own_data.host_usual", n=place)
            entered = st.text_input(
                t("own_data.guest_name") if place == 0 else t("own_data.host_name", n=place),
                key=_field(draft, f"title_{place}", title or usual),
                max_chars=60,
                width=190,
            )
            titles[place] = entered.strip() or usual
    columns_kept = [tuple(name for name in host.columns if name in names) for host in hosts]
    return _updated(
        draft,
        guest_title=titles[0],
        guest=tuple(name for name in draft.guest if name in names),
        hosts=tuple(
            OwnHost(title=title, columns=host_columns)
            for title, host_columns in zip(titles[1:], columns_kept, strict=True)
        ),
    )


def _titles(draft: Draft) -> list[str]:
    return [draft.guest_title, *(host.title for host in draft.hosts)]


def _parties_ready(t: Texts, draft: Draft) -> bool:
    """Whether every party has a column and a name of its own; says so if not."""
    titles = _titles(draft)
    columns_by_party = (draft.guest, *(host.columns for host in draft.hosts))
    ready = all(columns_by_party) and len(set(titles)) == len(titles)
    if not ready:
        st.caption(f":material/info: {t('own_data.parties_need')}")
    return ready


def _several(t: Texts, service: OwnData, draft: Draft, names: Sequence[str]) -> None:
    """Give several columns to a party at once: the chosen ones, or all that no party has."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        picked = st.multiselect(
            t("own_data.several"),
            names,
            key=_field(draft, "several", []),
            placeholder=t("own_data.choose"),
            width=430,
        )
        columns_given = tuple(picked or [name for name in names if draft.holder(name) is None])
        for place, title in enumerate(_titles(draft) if columns_given else ()):
            words = t("own_data.give" if picked else "own_data.give_rest", n=len(columns_given), party=markdown(title))
            st.button(
                words,
                key=f"own_give_{place}",
                on_click=_change,
                args=(service, draft.id, partial(_given, columns_given, place)),
            )


def _given(columns: Sequence[str], place: int, draft: Draft) -> Draft:
    return draft.given(columns, place)


def _change(service: OwnData, draft_id: str, changed: Callable[[Draft], Draft]) -> None:
    """Change a draft by a press; fields of the table then show what the draft says."""
    draft = service.draft(draft_id)
    if draft is None:
        return
    service.save(changed(draft))
    for field in ("party", "kind", "several"):
        for key in [key for key in st.session_state if str(key).startswith(f"own_{draft_id}_{field}")]:
            del st.session_state[key]
    session.keep(f"own_base_{draft_id}", None)


def _blocking(draft: Draft, column: Column) -> bool:
    """Return whether something has to be mended before a federation can be made of a column."""
    kind = draft.entries.get(column.name, {}).get("kind", "")
    if kind and kind != column.kind:
        return False  # what is odd about the other kind is not odd about this one
    return any(oddity.blocks and draft.mended(column.name, oddity) is None for oddity in column.odd)


def _odd(draft: Draft, column: Column) -> bool:
    return any(draft.mended(column.name, oddity) is None for oddity in column.odd)


def _rows(
    t: Texts,
    service: OwnData,
    draft: Draft,
    columns: Sequence[Column],
    incomplete: Collection[str],
    problems: Mapping[str, Sequence[Remark]],
) -> None:
    """Draw the table: a row a column, with its party, kind, meaning, and what is odd about it."""
    filters = {
        "all": list(columns),
        "needed": [column for column in columns if column.name in incomplete],
        "odd": [column for column in columns if _odd(draft, column)],
        "free": [column for column in columns if draft.holder(column.name) is None],
    }
    filter_name = controls.choice(
        t("own_data.show"),
        tuple(filters),
        f"own_{draft.id}_show",
        lambda name: t(f"own_data.show_{name}", n=len(filters[name])),
    )
    pages = -(-len(filters[filter_name]) // PAGE)
    rows = st.container(border=True, key="own_rows")
    if pages > 1:
        at = min(st.pagination(pages, key="own_rows_page"), pages)
    else:
        at = 1
    with rows:
        with st.container(key="own_rows_head"):
            for cell, words in zip(st.columns(WIDTHS), HEAD, strict=True):
                cell.caption(t(f"own_data.{words}"))
        for column in filters[filter_name][(at - 1) * PAGE : at * PAGE]:
            _row(t, service, draft, column, problems.get(column.name, []))


def _row(t: Texts, service: OwnData, draft: Draft, column: Column, problems: Sequence[Remark]) -> None:
    name = column.name
    titles = _titles(draft)
    language = "meaning_zh" if t.language == "zh" else "meaning"
    about, party, kind, meaning, odd = st.columns(WIDTHS)
    examples = t("words.comma").join(column.values[:2])
    about.markdown(f"**{markdown(name)}**  \n:gray[:small[{markdown(examples)}]]")
    key = _field(draft, f"party_{name}", draft.holder(name))
    party.selectbox(
        t("own_data.party_of", column=name),
        range(len(titles)),
        index=None,  # so that it can be cleared
        key=key,
        format_func=lambda place: titles[place],
        placeholder=t("own_data.nobody"),
        label_visibility="collapsed",
        on_change=_said,
        args=(service, draft.id, key, lambda draft, place: draft.given((name,), place)),
    )
    key = _field(draft, f"kind_{name}", draft.kind(column))
    kind.selectbox(
        t("own_data.kind_of", column=name),
        KINDS,
        key=key,
        format_func=lambda kind: t(f"own_data.kind_{kind}"),
        label_visibility="collapsed",
        disabled=name in draft.days,
        on_change=_said,
        args=(service, draft.id, key, lambda draft, kind: draft.saying(name, kind=kind)),
    )
    key = _field(draft, f"{language}_{name}", draft.entries.get(name, {}).get(language, ""))
    meaning.text_input(
        t("own_data.meaning_of", column=name),
        key=key,
        placeholder=t("own_data.meaning_hint"),
        label_visibility="collapsed",
        max_chars=500,
        on_change=_said,
        args=(service, draft.id, key, lambda draft, words: draft.saying(name, **{language: words.strip()})),
    )
    with odd:
        for problem in problems:
            st.markdown(f":red[:material/error:] {_problem(t, problem)}")
        for number, oddity in enumerate(column.odd):
            _oddity(t, service, draft, column, number, oddity)
        if column.read:
            words = t(
                "own_data.read_as_numbers", n=column.read, count=f"{column.read:,}", cell=markdown(column.values[0])
            )
            st.markdown(f":green[:material/check:] {words}")


def _said(service: OwnData, draft_id: str, key: str, change: Callable[[Draft, Any], Draft]) -> None:
    """Keep what a field of the table says, before anything is drawn from the draft."""
    draft = service.draft(draft_id)
    if draft is not None:
        service.save(change(draft, st.session_state[key]))


def _oddity(t: Texts, service: OwnData, draft: Draft, column: Column, number: int, oddity: Oddity) -> None:
    """Something odd, with a press for each way to mend it; once it is mended, how, and a press that undoes it."""
    name = column.name
    some = [f"`{text}` {count:,}×" for text, count in list(oddity.cells.items())[:SHOWN_CODES]]
    more = len(oddity.cells) - len(some)
    texts = t("words.comma").join(some) + (t("own_data.more_codes", n=more) if more > 0 else "")
    mended = draft.mended(name, oddity)
    key = f"own_{draft.id}_mend_{name}_{number}"
    if mended is not None:
        words = t("own_data.mended_days" if mended.startswith("days") else f"own_data.mended_{mended}", cells=texts)
        st.markdown(f":green[:material/check:] {words}")
        st.button(
            t("own_data.undo"),
            key=f"{key}_undo",
            type="tertiary",
            on_click=_change,
            args=(service, draft.id, partial(_unmended, name, oddity)),
        )
        return
    blocks = oddity.blocks and _blocking(draft, column)
    if blocks:
        mark = ":red[:material/error:]"
    else:
        mark = ":orange[:material/warning:]"
    st.markdown(
        f"{mark} {t(f'own_data.odd_{oddity.code}', cells=texts, n=column.distinct, count=f'{column.distinct:,}')}"
    )
    orders = [mend for mend in oddity.mends if mend.startswith("days")]
    with st.container(horizontal=True, gap="small"):
        for mend in oddity.mends:
            if [mend] == orders:
                words = "own_data.mend_days"
            else:
                words = f"own_data.mend_{mend}"
            st.button(
                t(words),
                key=f"{key}_{mend}",
                on_click=_change,
                args=(service, draft.id, partial(_mended, name, oddity, mend)),
            )


def _mended(column: str, oddity: Oddity, mend: Mend, draft: Draft) -> Draft:
    return draft.mend(column, oddity, mend)


def _unmended(column: str, oddity: Oddity, draft: Draft) -> Draft:
    return draft.unmend(column, oddity)


def _by_column(error: GlassleafError, names: Sequence[str]) -> dict[str, list[Remark]]:
    """Return the problems of an error by the column that they are about; those of no column, or of several, under an empty name."""
    quoted = {repr(name): name for name in names}
    by_column: dict[str, list[Remark]] = {}
    for remark in error.remarks:
        feature = str(remark.values.get("feature", ""))
        column = remark.column or (feature if feature in names else quoted.get(feature, ""))
        by_column.setdefault(column if column in names else "", []).append(remark)
    return by_column


def _problem(t: Texts, remark: Remark) -> str:
    """Return a problem of a column as its row says it: in words about the controls next to it."""
    key = f"own_data.problem_{remark.code}"
    if key not in PROBLEMS:
        return frame.explained(t, remark)
    cells = remark.values.get("cells", "")
    text = cells.sentence(t.language) if isinstance(cells, Remark) else cells
    if isinstance(cells, tuple):
        text = t("words.comma").join(
            cell.sentence(t.language) if isinstance(cell, Remark) else str(cell) for cell in cells[:SHOWN_CODES]
        )
    return t(key, cells=markdown(str(text)))


def _dictionary(t: Texts, service: OwnData, draft: Draft) -> Draft:
    """Meanings from a file, as the command takes them."""
    with st.expander(t("own_data.dictionary"), icon=":material/upload_file:", key="own_dictionary_box"):
        st.caption(t("own_data.dictionary_hint"))
        file = upload.file(t, t("own_data.dictionary_file"), f"own_dictionary_{draft.id}", 5)
        if file is None or not session.once("own_dictionary", file.file_id):
            return draft
        try:
            draft = service.save(service.with_dictionary(draft, file.name, file.getvalue()))
        except GlassleafError as error:
            frame.problem(t, error)
            return draft
        session.drop_upload(f"own_dictionary_{draft.id}", file)
    session.keep(f"own_base_{draft.id}", None)
    session.rerun()
    return draft


def _more_fields(t: Texts, draft: Draft, columns: Sequence[Column]) -> Draft:
    """What else a dictionary says of each column, as a table to fill in; an untouched cell stays as it was read."""
    columns_held = [column for column in columns if draft.holder(column.name) is not None]
    with st.expander(t("own_data.more_fields"), icon=":material/table:", key="own_more_fields"):
        if not columns_held:
            st.caption(t("own_data.parties_need"))
            return draft
        return _edited(t, draft, columns_held)


def _edited(t: Texts, draft: Draft, columns: Sequence[Column]) -> Draft:
    base_key = f"own_base_{draft.id}"
    fields = ("meaning" if t.language == "zh" else "meaning_zh", *EDITED)
    blank = dict.fromkeys(fields, "") | {"expected_direction": "none"}
    first_values = {}
    for column in columns:
        entries = draft.entries.get(column.name, {})
        first_values[column.name] = {field: entries.get(field) or blank[field] for field in fields}
    base = session.kept(base_key)
    if base is None or list(base) != list(first_values):  # what the editor shows must not change while a user types
        base = first_values
        session.keep(base_key, base)
        session.keep(f"{base_key}_turn", session.kept(f"{base_key}_turn", 0) + 1)
    looks = {
        "name": st.column_config.TextColumn(t("own_data.column"), disabled=True, pinned=True, width=NAME),
        "expected_direction": st.column_config.SelectboxColumn(
            t("own_data.expected_direction"),
            options=list(DIRECTIONS),
            required=True,
            format_func=lambda direction: t(f"own_data.direction_{direction}"),
        ),
    }
    for field in fields:
        if field not in looks:
            looks[field] = st.column_config.TextColumn(
                t(f"own_data.field_{field}"), help=t(f"own_data.field_{field}_help"), width=OTHER
            )
    edited = st.data_editor(
        pd.DataFrame([{"name": name, **cells} for name, cells in base.items()]),
        hide_index=True,
        column_config=looks,
        key=f"own_editor_{draft.id}_{session.kept(f'{base_key}_turn')}",
    )
    for cells in edited.fillna("").to_dict("records"):
        name = str(cells["name"])
        entries = {field: str(cells[field]).strip() for field in fields}
        changed = {field: value for field, value in entries.items() if value != base[name][field]}
        if changed:
            draft = draft.saying(name, **changed)
    return draft


def _readings(t: Texts, federation: Federation, read: Overview) -> None:
    """Draw what every column was taken for, and what was read otherwise than it is written."""
    bare_meanings = sum(not column.described for column in read.columns)
    if bare_meanings:
        st.caption(f":material/info: {t('own_data.no_meaning_yet', n=bare_meanings, all=len(read.columns))}")
    with st.expander(t("own_data.readings"), icon=":material/fact_check:", key="own_readings_box"):
        for remark in read.notes:
            st.caption(f":material/info: {markdown(remark.sentence(t.language))}")
        pages = -(-len(read.columns) // PAGE)
        box = st.container(key="cards_own_readings")  # on a phone a card each
        if pages > 1:
            at = min(st.pagination(pages, key="own_readings"), pages)
        else:
            at = 1
        columns = read.columns[(at - 1) * PAGE : at * PAGE]
        with box:
            frame.table(
                {
                    t("own_data.column"): [f"**{markdown(column.name)}**" for column in columns],
                    t("own_data.party"): [markdown(t.party(federation, column.party)) for column in columns],
                    t("own_data.read_as"): [
                        t.noted(t(f"own_data.kind_{column.kind}"), markdown(t.text(column.unit))) for column in columns
                    ],
                    t("own_data.holds"): [markdown(_holds(t, column)) for column in columns],
                    t("own_data.missing"): [markdown(_missing(t, column)) for column in columns],
                },
                t("own_data.readings"),
            )
        upload.account(t, "own_account", read.document)


def _holds(t: Texts, column: ColumnReading) -> str:
    if column.empty:
        return t("own_data.holds_nothing")
    if column.codes:
        codes = []
        for text, count in list(column.codes.items())[:SHOWN_CODES]:
            codes.append(t.noted(text, f"{count:,}"))
        more = len(column.codes) - len(codes)
        return t("words.comma").join(codes) + (t("own_data.more_codes", n=more) if more > 0 else "")
    return t("own_data.holds_range", low=bare(column.low), high=bare(column.high))


def _missing(t: Texts, column: ColumnReading) -> str:
    markers = []
    for text, count in column.missing.items():
        markers.append(t.noted(text or t("own_data.empty_cell"), f"{count:,}"))
    return t("words.comma").join(markers) or t("own_data.none_missing")


# -- the last look ----------------------------------------


def _create(t: Texts, service: OwnData, draft: Draft) -> tuple[Draft, bool]:
    draft = _updated(
        draft,
        title=st.text_input(t("own_data.title_field"), key=_field(draft, "title", draft.title), max_chars=200).strip(),
        name=st.text_input(
            t("own_data.name_field"), key=_field(draft, "name", draft.name), help=t("own_data.name_help"), max_chars=31
        ).strip(),
    )
    try:
        federation, read = service.overview(draft)
    except GlassleafError as error:
        frame.problem(t, error)
        return draft, False
    for party in federation.parties:
        features = t.listed([feature.name for feature in party.features])
        count = t("own_data.features", n=len(party.features))
        st.markdown(f"**{markdown(t.party(federation, party.name))}** · {count}  \n:gray[{markdown(features)}]")
    st.markdown(t(f"train.label_{read.task}", label=markdown(t.label(federation)), classes=len(read.outcomes)))
    if read.task == "binary":
        happened = read.outcomes[read.positive]
        people = sum(read.outcomes.values())
        words = {"column": markdown(read.label), "value": markdown(read.positive)}
        shares = {"count": f"{happened:,}", "people": f"{people:,}", "share": percent(happened / people)}
        st.caption(f":material/gavel: {t('own_data.counted', **shares)}  \n{t('own_data.declined', **words)}")
    return draft, True


# -- made elsewhere ----------------------------------------


def ready_made(
    t: Texts,
    demo: Callable[[], Job[str]],
    credit_card: Callable[[], Job[Federation]],
    add: Callable[[dict[str, bytes]], Job[Federation]],
) -> None:
    """Draw the demo, public data, and a federation whose files exist."""
    idle = not _making(t)
    _made(t, *READY)
    if not session.service().federations.others_than():
        with st.container(border=True):
            st.markdown(f"**{t('own_data.demo')}**  \n{t('own_data.demo_about')}")
            if not frame.demo_preparing(t):
                st.button(t("own_data.go_demo"), key="own_go_demo", on_click=user_jobs.start, args=("demo", demo))
            demo_job = user_jobs.find("demo")
            frame.outcome(t, (True, t("own_data.added")) if demo_job is not None and demo_job.state == "done" else None)
            frame.demo_ended(t)
    with st.container(border=True):
        st.markdown(f"**{t('own_data.credit_card')}**  \n{t('own_data.credit_card_about')}")
        _offer(t, "credit_card", credit_card, ready=idle)
    with st.container(border=True):
        st.markdown(f"**{t('own_data.files')}**  \n{t('own_data.files_about')}")
        files = upload.files(t, t("own_data.files_field"), "own_files", UPLOAD.max_bytes // 1_000_000, ["toml", "csv"])
        begin = partial(add, {file.name: file.getvalue() for file in files})
        _offer(t, "files", begin, ready=bool(files) and idle)


def _offer(t: Texts, name: str, begin: Callable[[], Job[Federation]], *, ready: bool) -> None:
    if st.button(t(f"own_data.go_{name}"), key=f"own_go_{name}", disabled=not ready):
        user_jobs.start(JOB, begin, about=name)
        session.rerun()


def known(t: Texts, federations: Sequence[Federation], models: Callable[[str], Sequence[object]]) -> None:
    """Draw the federations of this home."""
    frame.section(t, "own_data.known", "federation")
    frame.table(
        {
            t("own_data.federation"): [markdown(title) for title in t.federations(federations).values()],
            t("own_data.party"): [
                markdown(t.listed([t.party(federation, p.name) for p in federation.parties]))
                for federation in federations
            ],
            t("own_data.features_head"): [
                sum(len(p.features) for p in federation.parties) for federation in federations
            ],
            t("own_data.models_head"): [len(models(federation.name)) for federation in federations],
            t("own_data.folder"): [markdown(Path(federation.folder).name) for federation in federations],
        },
        t("own_data.known"),
    )
