"""Controls that several pages have: one choice of a few, and filters that narrow nothing until something is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import streamlit as st

from app.texts import Texts

T = TypeVar("T")


def choice(label: str, options: Sequence[T], key: str, words: Callable[[T], str], **settings: Any) -> T:
    """One of a few, the first unless `settings` name another default; remembered while the session lasts."""
    shared: dict[str, Any] = {"default": options[0], "required": True, "persist_state": "session"} | settings
    option: T = st.segmented_control(label, options, key=key, format_func=words, **shared)
    return option


def narrow(
    t: Texts, label: str, options: Sequence[T], key: str, words: Callable[[T], str], **settings: Any
) -> tuple[T, ...]:
    """A filter; nothing chosen narrows nothing."""
    placeholder = t("audit.all")
    return tuple(st.multiselect(label, options, key=key, format_func=words, placeholder=placeholder, **settings))


def passes(filter_values: Sequence[T], value: T) -> bool:
    """Return whether a value passes one filter."""
    return not filter_values or value in filter_values
