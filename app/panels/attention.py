"""Where the reader's attention goes: the focus follows what has just come, and a live region says it."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import streamlit as st

from app import session

ATTENTION_MARK = "<span class=glassleaf-attention></span>"
UNNAMED = re.compile(r"[^A-Za-z0-9_-]")  # what Streamlit leaves out of a class that it makes of a key
CODE = (files("assets") / "attention.js").read_text(encoding="utf-8")


def to(key: str, label: str, token: str, words: str) -> None:
    """Move the focus to the container `key` and say `words`, once for each new `token`."""
    if not session.once(f"attention:{key}", token):
        st.html(ATTENTION_MARK)  # keeps the place, so that what comes next is not drawn again
        return
    settings = {"key": UNNAMED.sub("-", key), "label": _plain(label), "words": _plain(words), "token": token}
    code = json.dumps(settings).replace("<", "\\u003c")
    st.html(f"{ATTENTION_MARK}<script>{CODE}({code})</script>", unsafe_allow_javascript=True)


def last_on_a_phone(key: str) -> None:
    """Let the column with the container `key` come last if columns are below each other."""
    st.html(f"<style>@media (max-width: 640px) {{[data-testid=stColumn]:has(.st-key-{key}) {{order: 1}}}}</style>")


def _plain(words: str) -> str:
    """Words without the marks of Markdown."""
    return words.replace("**", "").replace("*", "").replace("\\", "")
