"""What every page has: a title with its question, notices, a chart with its sentence and table, and empty states."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import quote

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import errors, session, user_jobs, view_models
from app.errors import Problem
from app.panels import attention, charts, links, palette, waits
from app.texts import Texts, amount, markdown, number, percent, wrap
from backend.jobs.eta import SOON, rounded
from backend.results import NOBODY, cell_text
from backend.services.roles import WHOSE
from backend.services.system_user import system_user

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from backend.data.federation import Federation
    from backend.jobs import Job
    from backend.remark import Remark
    from backend.results import ModelRecord, Score
    from backend.services.lifecycle import Standing
    from backend.trees.metrics import Metrics

TABLE_ROW_PIXELS = 35  # pixels of a table's row
WRAPPING = 65  # from this height on Streamlit breaks a cell's text into lines
SILENT_AFTER_SECONDS = 3.0  # seconds after which a job that cannot tell how long it will take says so
BOXES_OPEN = False  # whether boxes whose contents are made once they are opened stand open at first
ROWS_A_PAGE = 10  # of a table that is read a page at a time
TOAST_SECONDS = 10  # seconds that an outcome is shown in a corner
CARDS = 4  # on a page: more would be slow to draw, and no reader takes in so many at once
# state of a model: icon
STATE_ICONS = {
    "draft": "edit_note",
    "in_review": "rate_review",
    "approved": "verified",
    "in_use": "play_circle",
    "retired": "inventory_2",
}
T = TypeVar("T")
Columns = Mapping[str, Sequence[Any]]  # of a table: head → cells
CHART = {"displaylogo": False, "modeBarButtons": [["toImage"]], "scrollZoom": False, "doubleClick": "reset"}
SAVING = (files("assets") / "charts.js").read_text(encoding="utf-8")
DECISION_ICONS = {
    "accept": ":material/check_circle:",
    "refer": ":material/person_search:",
    "decline": ":material/do_not_disturb_on:",
    "refuse": ":material/block:",
}


def emphasis() -> Literal["primary", "secondary"]:
    """Return the type of a page's one main button: filled on the light page, outlined on the dark one, readable on both."""
    return "secondary" if charts.dark() else "primary"


def header(t: Texts, page: str, notices: Sequence[tuple[str, str]], federation: Federation | None = None) -> None:
    """Title, the question that the page answers, and what a followed link got wrong."""
    st.title(t(f"{page}.title"), anchor=False)
    with st.container(key="question"):
        st.markdown(f":gray[{t(f'{page}.question')}]")
    synthetic = federation is not None and federation.synthetic
    if synthetic:
        lines = [f":material/science: {t('frame.synthetic')}"]
    else:
        lines = []
    standing = session.standing()
    if standing is not None and standing.said not in ("approved", "in_use"):
        state_line = t(f"states.line_{standing.said}")
        if federation is None:  # the page is on no model, so that "this model" would be none
            state_line = t("states.line_of", model=markdown(_named(t, standing)), line=state_line)
        lines.append(f":material/{STATE_ICONS[standing.model.state]}: {state_line}")
    if lines:
        st.caption(" ".join(lines))
    for what, linked in notices:
        st.info(
            t("frame.unknown_link", what=t(f"frame.link_{what}"), linked=markdown(linked)), icon=":material/link_off:"
        )


def _named(t: Texts, standing: Standing) -> str:
    """Return what the chosen model is called."""
    backend = session.service()
    record = backend.models.get(standing.model.model_id)
    federations = {federation.name: federation for federation in backend.federations.all()}
    return model_name(t, record, federations.get(record.federation), standing.model.name)


def tab_title(t: Texts, page: str, records: Sequence[ModelRecord], federations: Mapping[str, Federation]) -> str:
    """Return what the browser's tab is called: the page, and the model that it shows."""
    records_open = [record for record in records if record.id == session.chosen_model()]
    standing = session.standing()
    name = standing.model.name if standing else ""
    names = [model_name(t, record, federations.get(record.federation), name) for record in records_open]
    return " · ".join([t(f"{page}.title"), *(names or ["Glassleaf"])])


def model_name(t: Texts, record: ModelRecord, federation: Federation | None, name: str) -> str:
    """Return what a model is called: the name that it was given, else its federation and when it was made."""
    if federation:
        title = t.federation(federation)
    else:
        title = record.federation
    return t.model(name) or f"{re.split('[:：]', title)[0]} {session.made(record)}"


def model_names(t: Texts, records: Sequence[ModelRecord], federation: Federation) -> dict[str, str]:
    """Return a federation's models by id: what each is called."""
    states = session.service().models.states()
    return {
        record.id: model_name(t, record, federation, states[record.id].name)
        for record in records
        if record.federation == federation.name
    }


def problem(t: Texts, why: Problem) -> None:
    """Draw what went wrong, in the reader's language."""
    st.warning(explained(t, why), icon=":material/report:", title=t("frame.problem"))


def problems(t: Texts, remarks: Sequence[Remark]) -> None:
    """Draw several things that went wrong, a paragraph each."""
    words = "\n\n".join(explained(t, remark) for remark in remarks)
    st.warning(words, icon=":material/report:", title=t("frame.problem"))


def refused(t: Texts, name: str) -> bool:
    """Draw why the last start of the job `name` was refused; return False, and draw nothing, if it was not."""
    error = user_jobs.refused(name)
    if error is None:
        return False
    problem(t, error)
    return True


def explained(t: Texts, why: Problem) -> str:
    """Return an error or a remark as Markdown, a paragraph a line; Hosts are called by their titles."""
    sentence = errors.worded(t, why, partial(session.host_title, t))
    return "\n\n".join(markdown(line) for line in sentence.splitlines())


def broken(t: Texts, problems: Mapping[str, Problem]) -> None:
    """Draw Federations that cannot be used, each with the reason and what to do."""
    for name, why in problems.items():
        st.warning(
            f"{explained(t, why)}\n\n{t('frame.broken_hint')}",
            icon=":material/link_off:",
            title=t("frame.broken", name=markdown(name)),
        )


def actor(t: Texts, name: str) -> str:
    """Return whom the audit log names; who runs this computer is no person's name."""
    if name == NOBODY:
        return t("audit.nobody")
    if name == system_user():
        return t("audit.computer", name=name)
    return name


def outcome(t: Texts, attempt: tuple[bool, Problem] | None, *, far: bool = False) -> None:
    """Draw what became of the last attempt: a note that it succeeded, or why it did not.

    `far` = above the form that was sent, perhaps out of view: it is shown in a corner of the window, too.
    """
    if attempt is not None and far:
        succeeded, words = attempt
        if succeeded:
            icon = ":material/check:"
        else:
            icon = ":material/report:"
        st.toast(explained(t, words), icon=icon, duration=TOAST_SECONDS)
    if attempt is not None and attempt[0]:
        st.success(explained(t, attempt[1]), icon=":material/check:")
    elif attempt is not None:
        problem(t, attempt[1])


def section(t: Texts, key: str, term: str | None = None) -> None:
    """Draw a section's heading, with the glossary on hover."""
    st.header(t(key), anchor=False, help=t(f"glossary.{term}") if term else None)


def chart(
    t: Texts, figure: go.Figure | charts.Drawing | str, sentence: str, twin: Columns | Callable[[], Columns], key: str
) -> None:
    """Draw a chart, or a drawing, under the sentence that says what to see in it, with its numbers as a table below."""
    st.markdown(sentence)
    if isinstance(figure, charts.Drawing | str):
        drawing(figure, key)
    else:
        picture(figure, sentence, key)
    table_twin(t, twin, sentence, key)


def box(words: str, icon: str, key: str) -> DeltaGenerator | None:
    """A box under `words`; None while it is closed, for the content of a closed box is neither made nor sent."""
    expander = st.expander(words, BOXES_OPEN, icon=f":material/{icon}:", key=key, on_change="rerun")
    return expander if expander.open else None


def fold(words: str, icon: str, key: str, draw: Callable[[], object]) -> None:
    """Draw something under `words` once they are opened."""
    opened = box(words, icon, key)
    if opened is not None:
        with opened:
            draw()


def table_twin(
    t: Texts, twin: Columns | Callable[[], Columns], sentence: str, key: str, looks: Mapping[str, Any] | None = None
) -> None:
    """The numbers of a chart as a table, one press away: it is made and sent once it is opened; `looks` dress its columns."""
    opened = box(t("frame.as_table"), "table", f"{key}_twin")
    if opened is None:
        return
    columns = twin() if callable(twin) else twin
    with opened:
        data(columns, f"{key}_table", _words(sentence), column_config=looks, placeholder="–")
        st.download_button(
            t("frame.save_table"),
            lambda: csv_file(columns),
            f"glassleaf-{key}.csv",
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
            key=f"{key}_csv",
            type="tertiary",
        )


def csv_file(columns: Columns) -> bytes:
    """Return a table as a file; cells that a spreadsheet would run as a formula are neutralised, and it opens as UTF-8 there."""
    table = pd.DataFrame(columns)
    words = table.select_dtypes(exclude="number").columns
    table[words] = table[words].map(lambda cell: cell_text(cell) if isinstance(cell, str) else cell)
    text: str = table.rename(columns=cell_text).to_csv(index=False)
    return b"\xef\xbb\xbf" + text.encode()


def data(columns: Columns, key: str, alt: str, **settings: Any) -> Any:
    """A table to sort and search, from its columns; `settings` are those of ``st.dataframe``."""
    return st.dataframe(pd.DataFrame(columns), hide_index=True, key=key, alt=alt, **settings)


def dressed(columns: Mapping[str, tuple[Sequence[Any], Any]], key: str, alt: str, **settings: Any) -> Any:
    """As `data`, where each column brings its head, width and format along."""
    looks = {name: look for name, (_, look) in columns.items()}
    cells = {name: values for name, (values, _) in columns.items()}
    return data(cells, key, alt, column_config=looks, placeholder="–", **settings)


def table(columns: Columns, alt: str) -> None:
    """Draw a table to read, from its columns; Markdown in its cells is drawn."""
    st.table(pd.DataFrame(columns), hide_index=True, border="horizontal", alt=alt)


def rows(
    t: Texts,
    columns: Mapping[str, Sequence[str]],
    key: str,
    alt: str,
    twin: Columns | Callable[[], Columns] | None = None,
    looks: Mapping[str, Any] | None = None,
) -> None:
    """Draw rows to read, a few at a time, on a phone a card each (assets/page.css); all of them to sort, search and save one press away.

    Parameters
    ----------
    columns : mapping of str to sequence of str
        Plain text; the first column is what a row is about.
    twin : mapping of str to sequence, or callable, optional
        The columns of the table of all rows, if they differ; `looks` dress them.
    """
    cards(columns, key, alt)
    table_twin(t, twin or columns, alt, key, looks)


def cards(columns: Mapping[str, Sequence[str]], key: str, alt: str) -> None:
    """Draw rows of plain text, a few at a time, on a phone a card each; the first column is what a row is about."""
    pages = -(-len(next(iter(columns.values()))) // ROWS_A_PAGE)
    read = st.container(key=f"cards_{key}")
    if pages > 1:
        at = min(st.pagination(pages, key=f"{key}_page"), pages)
    else:
        at = 1
    page = slice((at - 1) * ROWS_A_PAGE, at * ROWS_A_PAGE)
    with read:
        table(
            {markdown(head): [palette.coloured(cell) for cell in column[page]] for head, column in columns.items()}, alt
        )


def row_height(texts: Iterable[str], letters: int) -> int:
    """Pixels that a table's rows need so that no text is cut in a column of `letters` a line."""
    lines = max((wrap(text, letters, 5).count("<br>") + 1 for text in texts), default=1)
    if lines == 1:
        return TABLE_ROW_PIXELS
    return max(WRAPPING, 18 + 17 * lines)


def paged(items: Sequence[T], key: str, many: int = CARDS) -> Iterator[tuple[int, T]]:
    """Yield a few of many, each with its position, to be drawn above the numbers of the pages: all at once would be slow."""
    pages = -(-len(items) // many)
    cards = st.container(gap="xsmall")
    if pages > 1:
        at = min(st.pagination(pages, key=key), pages)
    else:
        at = 1
    with cards:
        yield from enumerate(items[(at - 1) * many : at * many], start=(at - 1) * many)


def picture(figure: go.Figure, sentence: str, key: str) -> None:
    """Draw a chart alone; `sentence` is its text alternative."""
    saved = {"toImageButtonOptions": {"filename": f"glassleaf-{key}", "scale": 2}}
    st.plotly_chart(figure, key=key, config=CHART | saved, theme=None, alt=_words(sentence))


def drawing(chart: charts.Drawing | str, key: str) -> None:
    """Draw lines and bars by Vega-Lite, or a drawing as SVG, each with its text alternative; neither needs Plotly.

    Streamlit takes SVG out of what it is handed; assets/charts.js puts it in, with the buttons that save it.
    """
    if isinstance(chart, charts.Drawing):
        st.vega_lite_chart(chart.spec, theme=None, key=f"{key}_drawing", alt=_words(chart.sentence))
        return
    svg = chart
    st.html(f'<div class="glassleaf-drawing" data-name="glassleaf-{key}" data-svg="{quote(svg)}"></div>')


def let_save(t: Texts) -> None:
    """Every chart of the page can be saved as a picture, PNG or SVG, in the browser (assets/charts.js)."""
    words = {kind: t(f"frame.save_{kind}") for kind in ("png", "svg")}
    st.html(
        f"<span class=glassleaf-charts></span><script>{SAVING}({json.dumps(words)})</script>",
        unsafe_allow_javascript=True,
    )


def _words(sentence: str) -> str:
    return sentence.replace("**", "").replace("\\", "")


def working(t: Texts, job: Job[Any], words: str, key: str, who: str = "") -> None:
    """Draw a job at work: what it does, at whom, how far it is, how long it will take, and a way to stop it."""
    with st.container(border=True, key=f"working_{key}"):
        st.markdown(f":material/arrow_right_alt: **{words}** {who}")
        progress(t, job, job.through / job.total if job.total else 0.0, job.through)
        stop(t, job, key)
        if user_jobs.begun_here(job):  # a button at the end of a form is pressed far from what it starts
            attention.to(f"working_{key}", words, f"working:{id(job)}", words)


@st.fragment(run_every=0.4)
def follow(
    t: Texts,
    job: Job[Any],
    words: Callable[[str], str],
    key: str,
    redraw: Callable[[], None],
    more: Callable[[], bool] = lambda: False,
) -> None:
    """Draw a running job and its stage in `words`, again and again; `redraw` draws the page once it has ended or has `more` to show."""
    working(t, job, words(job.stage), key)
    if job.state != "running" or more():
        redraw()


def progress(t: Texts, job: Job[Any], share: float, n_done: int) -> None:
    """Draw a bar with what is done, the seconds so far and those still to go; `share` where the work is not weighed."""
    user_jobs.tick()
    waits.pause(t, job.waits)
    waits.silence(t, job.silence)
    # What comes before the first one or after the last one is not counted.
    counts = n_done < job.total and job.total > 1 and job.stage not in ("start", "key")
    if counts:
        parts = [t("stage.count", done=f"{n_done:,}", total=f"{job.total:,}")]
    else:
        parts = []
    parts.append(t("stage.elapsed", seconds=t.duration(job.seconds)))
    seconds_left = job.eta.left()
    if job.cancelled():
        parts.append(t("stage.stopping"))
    elif seconds_left is not None and job.silence is None:  # how long a silent Host takes is not known
        parts.append(time_left(t, seconds_left))
    elif job.seconds > SILENT_AFTER_SECONDS:
        parts.append(t("stage.no_left"))
    st.progress(min(job.eta.share or share, 1.0), text=" · ".join(parts))


def time_left(t: Texts, seconds: float) -> str:
    """Seconds to go in words, as coarsely as they are known."""
    return t("stage.soon" if seconds < SOON else "stage.left", seconds=t.about(rounded(seconds)))


def stop(t: Texts, job: Job[Any], key: str) -> None:
    """Draw the button that stops a job."""
    words = t("stage.cancelling" if job.cancelled() else "stage.cancel")
    icon = ":material/stop_circle:"
    st.button(words, icon=icon, key=f"cancel_{key}", disabled=job.cancelled(), on_click=job.cancel)


def model_or_stop(t: Texts, page: str) -> str:
    """Id of the model chosen in the sidebar; if there is none, the page says what to do and ends here."""
    model_id = session.chosen_model()
    if model_id is None:
        header(t, page, session.notices())
        empty(t, session.service().training.start_demo)
        st.stop()
    return model_id


def empty(t: Texts, start: Callable[[], Job[str]]) -> None:
    """Draw no model yet: say what the demo is and offer to make it, or how far it is."""
    federations = session.service().federations.others_than()
    with st.container(border=True):
        st.markdown(f"## {t('empty.title')}")
        st.markdown(t("empty.train_first", n=len(federations)) if federations else t("empty.text"))
        role = session.role()
        if role not in WHOSE["train"]:
            roles = t.listed([t(f"sidebar.role_{role_name}") for role_name in WHOSE["train"]])
            st.info(t("empty.not_for", role=t(f"sidebar.role_{role}"), roles=roles), icon=":material/badge:")
        elif federations:
            links.page("train", t("train.title"), "model_training")
        elif not demo_preparing(t):
            with st.container(horizontal=True, vertical_alignment="center"):
                icon = ":material/play_arrow:"
                words = t("empty.prepare")
                begin = partial(user_jobs.start, "demo", start)
                st.button(words, type=emphasis(), icon=icon, key="prepare_demo", on_click=begin)
                links.page("own_data", t("empty.own"), "upload_file")
    demo_ended(t)


def demo_preparing(t: Texts) -> bool:
    """Draw how far the demo is, with a way to stop it; return whether it is being made."""
    running = user_jobs.running(user_jobs.find("demo"))
    if running is not None:
        words = {"start": "empty.preparing"}
        follow(t, running, lambda stage: t(words.get(stage, f"stage.{stage}")), "demo", session.rerun)
    return running is not None


def demo_ended(t: Texts) -> None:
    """Why the demo that was begun was not made."""
    job = user_jobs.find("demo")
    if job is not None and job.state == "cancelled":
        st.info(t("empty.cancelled"), icon=":material/stop_circle:")
    elif job is not None and job.state == "failed":
        problem(t, job.failure or "")


def cipher(t: Texts, scheme: str, bits: int) -> str:
    """Return a cipher with the size of its key in words: "Paillier, 3,072 bits"."""
    return t(f"engine.label_{scheme}", bits=f"{bits:,}")


def algorithm(t: Texts, record: ModelRecord) -> str:
    """Return what grew a model, in words; of an imported one, what trained it."""
    name = view_models.algorithm(record)
    if name == view_models.IMPORTED:
        return t("algorithm.name_imported", source=record.algorithm.partition(":")[2].strip())
    return t(f"algorithm.name_{name}")


def figure(metrics: Metrics, name: str, unit: str = "") -> str:
    """Return one figure of quality: a share in percent, an error in the label's unit, else a number; a dash if it does not apply."""
    value = getattr(metrics, name)
    if name == "accuracy":
        return percent(value)
    if name == "rmse":
        return amount(value, unit)
    return number(value)


def about(t: Texts, task: str, name: str) -> str:
    """Return what a figure is, from the glossary."""
    return t("glossary.auc_classes" if name == "auc" and task == "classes" else f"glossary.{name}")


def quality(t: Texts, record: ModelRecord, unit: str = "") -> str:
    """Return the one figure that decides between models of a task, with its name: "AUC 0.783", "RMSE 12.3 €"."""
    name = view_models.FIGURES[record.task][0]
    return f"{t(f'figure.{name}')} {figure(record.metrics, name, unit)}"


def direction(t: Texts, task: str, word: str) -> str:
    """Return a direction in words; if a number is predicted there is no risk."""
    return t(f"direction.{word}_number" if task == "number" and word in ("up", "down") else f"direction.{word}")


def decision(t: Texts, score: Score) -> str:
    """Return the decision in words, with its icon."""
    icon = DECISION_ICONS.get(score.decision, "")
    if score.decision:
        return f"{icon} {t(f'score.{score.decision}')}"
    return t("score.failed")
