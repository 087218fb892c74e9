"""What a notice of adverse action states of one declined person, or why there is none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from backend.data.csv_file import shown
from backend.data.dictionary import Feature, Kind
from backend.data.federation import Federation
from backend.errors import ParameterError
from backend.i18n import Text
from backend.reports.adverse_action_notice import Notice, NoticeLine
from backend.reports.verdict.facts import Verdict
from backend.store.model_states import Standing
from backend.trees.ensemble import GuestModel

if TYPE_CHECKING:
    from backend.services.reasons import PersonReasons


def notice_of(
    person: PersonReasons,
    model: GuestModel,
    federation: Federation,
    standing: Standing,
    date: str,
    verdict: Verdict | None = None,
) -> Notice:
    """Return the notice for one person: 12 CFR 1002.9, 15 USC 1681m.

    Parameters
    ----------
    person : PersonReasons
        A declined person with the reasons found.
    model : GuestModel
        Whose splits say which Hosts were used.
    federation : Federation
        As its file states texts and addresses now.
    standing : Standing
        The model's state, which the notice shows.
    date : str
        Day of the notice, as it is printed.
    verdict : Verdict, optional
        What is true of the model; the notice names what is broken.

    Raises
    ------
    ParameterError
        The person was not declined, reasons were not found, or one has a column's name for its meaning.
    """
    if person.problems:
        raise ParameterError("no_notice_for_problem", why=person.problems)
    if person.score.decision != "decline":
        raise ParameterError("no_notice_for_accepted", id=person.score.id)
    refuse_without_meaning(model, [reason.feature for reason in person.reasons])
    lines = []
    for reason in person.reasons:
        party = federation.party(reason.party)
        lines.append(
            NoticeLine(
                feature=as_stated(model, federation, reason.feature),
                holder=party.title,
                of_guest=reason.party == model.guest,
                side=reason.side,
                blockers=reason.blockers,
            )
        )
    guest = federation.guest
    owners = {split.owner for tree in model.trees for split in tree.splits.values()}
    source_hosts = []
    for h in federation.hosts:
        if h.name in owners and h.name not in person.score.not_held_by:
            source_hosts.append(h)
    return Notice(
        creditor=guest.title,
        subject=person.score.id,
        date=date,
        model_id=standing.model.model_id,
        lines=tuple(lines),
        standing=standing,
        phone=guest.phone,
        address=guest.address,
        supervisor=guest.supervisor,
        sources=tuple(source_hosts),
        probability=person.score.probability,
        policy=person.score.policy,
        verdict=verdict,
    )


def as_stated(model: GuestModel, federation: Federation, name: str) -> Feature:
    """Return a feature with the reasons that the federation file states now: they need no training."""
    feature = model.feature(name)
    now = next((f for f in federation.party(model.owner_of(name)).features if f.name == name), feature)
    return feature.model_copy(update={"reason": now.reason or feature.reason})


def refuse_without_meaning(model: GuestModel, features: Collection[str]) -> None:
    """Raise ParameterError if a feature has a column's name for its meaning: no reader would understand it as a reason."""
    bare = [name for name in sorted(features) if not model.feature(name).described]
    if bare:
        raise ParameterError("notice_without_meaning", features=tuple(shown(name) for name in bare))


def _stated(feature: Feature, language: str) -> set[str]:
    """Return the sides for which the dictionary has a reason in a language."""
    return {side for side, text in feature.reason.items() if (text.zh if language == "zh" else text.en)}


def refuse_without_reason(features: Sequence[Feature], language: str, sides: Mapping[str, tuple[str, ...]]) -> None:
    """Raise ParameterError if the dictionary lacks a text that a notice may need; categories have no sides."""
    bare = []
    for feature in features:
        needed_sides = ("either",) if feature.kind is Kind.CATEGORICAL else sides[feature.name]
        if not set(needed_sides) <= _stated(feature, language):
            bare.append(feature.name)
    if bare:
        language_name = Text("English", "英文")
        if language == "zh":
            language_name = Text("Chinese", "中文")
        raise ParameterError(
            "notice_without_text", features=tuple(shown(name) for name in bare), language=language_name
        )
