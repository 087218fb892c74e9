"""What went wrong, in the reader's language. An error is a code with values wherever it is raised; its sentence is made here."""

from __future__ import annotations

from collections.abc import Callable

from app.texts import Texts
from backend.errors import GlassleafError
from backend.remark import Remark

Problem = GlassleafError | Remark | str  # what a page explains; a text is in the reader's language already


def worded(t: Texts, why: Problem, title: Callable[[str], str] = str) -> str:
    """Return what an error or a remark says in the language of `t`; `title` gives the title of a Host by its name."""
    if isinstance(why, str):
        return why
    return why.sentence(t.language, title)
