"""When rules begin and end to apply: what is coming, what changed since a day, and what was last checked too long ago."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from backend.compliance.rule_pack import CitedRule, LegalRule, RulePack, cited

Change = Literal["starts", "ends", "checked"]
MAX_AGE = dt.timedelta(days=365)  # after which a rule has to be compared with its source again


@dataclass(frozen=True, kw_only=True)
class LawDate(CitedRule):
    """One day of one rule.

    Attributes
    ----------
    day : str
        ISO; from when the rule applies, through when it did, or when it was checked last.
    change : {"starts", "ends", "checked"}
    """

    day: str
    change: Change

    def change_on(self, on: str) -> Change | Literal["started"]:
        """Return what the date is as of an ISO day: whether the rule is yet to apply, or does since."""
        if self.change == "starts" and self.day <= on:
            return "started"
        return self.change


@dataclass(frozen=True, slots=True, kw_only=True)
class LawCalendar:
    """The dates of all rules as of one day.

    Attributes
    ----------
    on, since : str
        ISO days; `since` is empty if nothing is compared.
    in_force : int
        Rules in force.
    coming : tuple of LawDate
        The next first.
    changed : tuple of LawDate
        After `since`, up to `on`; the latest first.
    ended : tuple of LawDate
        Rules that ended, the latest first.
    stale : tuple of LawDate
        Rules that were last checked more than a year before; the day is that of the check.
    unchecked : tuple of LawDate
        Rules that were not compared with an official text, though a statute names what they say; the day is that of the check.
    quoted : int
        Rules with the official wording.
    """

    on: str
    since: str
    in_force: int
    coming: tuple[LawDate, ...]
    changed: tuple[LawDate, ...]
    ended: tuple[LawDate, ...]
    stale: tuple[LawDate, ...]
    unchecked: tuple[LawDate, ...]
    quoted: int


def law_calendar(packs: Sequence[RulePack], on: dt.date, since: dt.date | None = None) -> LawCalendar:
    """Return the calendar of these packs; with `since` also what changed after that day."""
    rules = [(pack, rule) for pack in packs for rule in pack.rules]
    dates = [date for pack, rule in rules for date in _dates(pack, rule)]
    today = on.isoformat()
    latest = sorted(dates, key=lambda date: date.day, reverse=True)
    return LawCalendar(
        on=today,
        since=since.isoformat() if since else "",
        in_force=sum(rule.force(on) == "in_force" for _, rule in rules),
        coming=tuple(
            date for date in reversed(latest) if date.day > today or (date.change, date.day) == ("ends", today)
        ),
        changed=tuple(date for date in latest if since and since.isoformat() < date.day <= today),
        ended=tuple(date for date in latest if date.change == "ends" and date.day < today),
        stale=stale_rules(packs, on),
        unchecked=_unchecked(rules),
        quoted=sum(bool(rule.quote) for _, rule in rules),
    )


def stale_rules(packs: Sequence[RulePack], on: dt.date) -> tuple[LawDate, ...]:
    """Rules that were last checked more than a year before `on`, the oldest first."""
    old = []
    for pack in packs:
        for rule in pack.rules:
            if on - (rule.as_of or pack.as_of) > MAX_AGE:
                old.append(_date(pack, rule, rule.as_of or pack.as_of, "checked"))
    return tuple(sorted(old, key=lambda date: date.day))


def _unchecked(rules: Sequence[tuple[RulePack, LegalRule]]) -> tuple[LawDate, ...]:
    checks = (_date(pack, rule, rule.as_of or pack.as_of, "checked") for pack, rule in rules)
    return tuple(check for check in checks if check.checked == "not")


def _dates(pack: RulePack, rule: LegalRule) -> Iterator[LawDate]:
    yield _date(pack, rule, rule.effective_from, "starts")
    if rule.effective_to is not None:
        yield _date(pack, rule, rule.effective_to, "ends")


def _date(pack: RulePack, rule: LegalRule, day: dt.date, change: Change) -> LawDate:
    return LawDate(day=day.isoformat(), change=change, **cited(pack, rule))
