"""A file that is handed in; of a table what only its owner can say about it, and what is wrong with which row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from app import session
from app.panels import frame
from app.texts import Texts, markdown, size
from backend.errors import AmbiguousFile
from backend.services.json_text import json_text
from backend.services.samples import SUFFIXES, Reading

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from backend.data.table import SampleSheet

PROBLEMS_A_PAGE = 8  # problems at once
T = TypeVar("T")


def file(t: Texts, label: str, key: str, megabytes: int, types: Sequence[str] = tuple(SUFFIXES)) -> UploadedFile | None:
    """The field that takes a file, by default a table, and what it took: also after another page was looked at meanwhile."""
    upload = st.file_uploader(
        label, type=types, key=key, max_upload_size=megabytes, on_change=session.take_uploads, args=(key,)
    )
    earlier = session.upload_shown(key, () if upload is None else (upload,))
    _earlier(t, key, earlier)
    if upload is not None:
        return upload
    return next(iter(earlier), None)


def files(t: Texts, label: str, key: str, megabytes: int, types: Sequence[str]) -> list[UploadedFile]:
    """As :func:`file`, of several."""
    uploads = st.file_uploader(
        label,
        type=types,
        accept_multiple_files=True,
        key=key,
        max_upload_size=megabytes,
        on_change=session.take_uploads,
        args=(key,),
    )
    earlier = session.upload_shown(key, uploads)
    _earlier(t, key, earlier)
    return [*earlier, *uploads]


def _earlier(t: Texts, key: str, files: Sequence[UploadedFile]) -> None:
    """Draw files that are there since before the page was left, for Streamlit's field begins empty; each can be removed."""
    for place, file in enumerate(files):
        with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_earlier_{place}"):
            words = t("upload.stays", name=markdown(file.name), size=size(file.size))
            st.markdown(f":material/attach_file: {words}", width="stretch")
            st.button(
                t("upload.remove"),
                key=f"{key}_remove_{place}",
                icon=":material/close:",
                on_click=session.drop_upload,
                args=(key, file),
            )


def read(t: Texts, key: str, name: str, data: bytes, take: Callable[[Reading], T]) -> T | None:
    """Return what `take` makes of a file, once its owner has said what the file leaves open; None until then."""
    key = f"{key}_{sha256(data).hexdigest()[:12]}"  # what was said of one file is not said of the next
    how = Reading()
    for _ in fields(Reading):
        try:
            return take(how)
        except AmbiguousFile as file:
            answer = _ask(t, key, name, file)
            if answer is None:
                return None
            how = replace(how, **{file.question: answer})
    return take(how)


def _ask(t: Texts, key: str, name: str, file: AmbiguousFile) -> str | None:
    """Return the answer to what a file leaves open, next to what it says in each case; None until one is chosen."""
    question = file.question
    choices = list(file.choices)
    with st.container(border=True):
        st.markdown(f":material/help: {t(f'upload.why_{question}', file=markdown(name))}")
        if question == "ids":
            st.caption(markdown(file.sentence(t.language)))
        words: dict[str, Callable[[str], str]] = {
            "encoding": lambda choice: t(f"upload.encoding_{choice}"),
            "decimal": lambda choice: t(f"upload.decimal_{choice}"),
            "sheet": markdown,
            "header": lambda choice: t("upload.header_row", row=choice),
            "ids": lambda choice: t("upload.ids_as_written"),
        }
        answer: str | None = st.radio(
            t(f"upload.ask_{question}"),
            choices,
            index=None,
            key=f"{key}_{question}",
            format_func=words[question],
            captions=["  \n".join(markdown(line) for line in file.choices[choice]) for choice in choices],
            persist_state="session",
        )
    return answer


def account(t: Texts, key: str, document: Callable[[], dict[str, Any]]) -> None:
    """Draw how a table was read, as a file for a machine."""
    st.download_button(
        t("upload.account"),
        lambda: json_text(document()).encode(),
        "glassleaf-reading.json",
        "application/json",
        icon=":material/download:",
        on_click="ignore",
        key=key,
        help=t("upload.account_help"),
    )


def sheet(t: Texts, samples: SampleSheet) -> None:
    """Draw how many rows of a sheet can be used, and what is wrong with the others."""
    rows = len(samples.ids)
    bad = len(samples.problems)
    st.markdown(t("upload.rows", n=rows, rows=f"{rows:,}", usable=f"{samples.usable:,}", bad=f"{bad:,}"))
    if not samples.usable:
        st.warning(t("upload.none_usable"), icon=":material/block:")
    for note in samples.notes:
        st.caption(f":material/info: {markdown(note.sentence(t.language))}")
    if samples.problems:
        problems(t, samples)


def problems(t: Texts, samples: SampleSheet) -> None:
    """Draw every row that cannot be used, with the whole reason; a few at once, and all as a file."""
    texts = {row: samples.problem(row, t.language) for row in samples.problems}
    rows = list(texts)
    pages = -(-len(rows) // PROBLEMS_A_PAGE)
    with st.container(border=True):
        lines = st.container()
        if pages > 1:
            at = min(st.pagination(pages, key="upload_problems"), pages)
        else:
            at = 1
        rows_of_page = rows[(at - 1) * PROBLEMS_A_PAGE : at * PROBLEMS_A_PAGE]
        lines.markdown("\n".join(f"- {markdown(texts[row])}" for row in rows_of_page))
        if pages > 1:
            columns = {t("score.id"): [samples.ids[row] for row in rows], t("upload.problem"): list(texts.values())}
            st.download_button(
                t("upload.problems_file"),
                frame.csv_file(columns),
                "glassleaf-problems.csv",
                "text/csv",
                icon=":material/download:",
                on_click="ignore",
                key="upload_problems_file",
            )
