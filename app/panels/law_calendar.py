"""When the law changes: rules in force, coming and ended, and what changed since the model's last report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import frame
from app.panels.findings import cited
from app.texts import Texts, markdown

if TYPE_CHECKING:
    from backend.compliance.calendar import LawDate
    from backend.services.compliance import LawCalendar


def panel(t: Texts, calendar: LawCalendar) -> None:
    """Draw one line that says what is in force and what has changed since the last report; opened, the dates."""
    if calendar.changed:
        changes = t("law.line_changed", n=len(calendar.changed))
    else:
        changes = ""
    counts = t("law.line", in_force=calendar.in_force, n=len(calendar.coming))
    line = t("words.about", what=t("law.title"), said=counts)
    box = frame.box(t.joined(line, changes), "calendar_month", "law_calendar")
    if box is not None:
        with box:
            _opened(t, calendar)


def _opened(t: Texts, calendar: LawCalendar) -> None:
    """Draw what changed since the last report, and the dates to come or past."""
    in_force = t("law.sentence", in_force=calendar.in_force, on=calendar.on, n=len(calendar.coming))
    st.markdown(t.joined(in_force, t("law.checked", quoted=calendar.quoted, unchecked=len(calendar.unchecked))))
    if not calendar.since:
        st.caption(t("law.no_report"))
    elif not calendar.changed:
        st.caption(t("law.unchanged", since=calendar.since))
    else:
        st.markdown(t("law.changed", since=calendar.since, n=len(calendar.changed)))
        _dates(t, calendar.changed, "law.table_changed", calendar.on)
    icons = {"coming": "event_upcoming", "ended": "event_busy", "stale": "history", "unchecked": "unpublished"}
    kinds = [kind for kind in icons if getattr(calendar, kind)]
    kind_chosen = st.pills(
        t("law.dates"),
        kinds,
        key="law_dates",
        format_func=lambda kind: f":material/{icons[kind]}: {t(f'law.dates_{kind}', n=len(getattr(calendar, kind)))}",
        label_visibility="collapsed",
    )
    if kind_chosen is not None:
        _dates(t, getattr(calendar, kind_chosen), f"law.table_{kind_chosen}", calendar.on)


def _dates(t: Texts, dates: Sequence[LawDate], alt: str, on: str) -> None:
    addressees = []
    for date in dates:
        addressees.append(", ".join(t(f"law.whom_{whom}") for whom in date.whom))
    columns = {
        "law.day": [t(f"law.change_{date.change_on(on)}", day=date.day) for date in dates],
        "law.rule": [f"{markdown(t.text(date.title))} · {cited(t, date)}" for date in dates],
        "law.pack": [markdown(t.text(date.pack)) for date in dates],
        "law.whom": addressees,
        "law.as_of": [t(f"law.as_of_{date.checked}", day=date.as_of) for date in dates],
    }
    frame.table({t(key): values for key, values in columns.items()}, t(alt))
