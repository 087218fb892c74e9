"""Facts that a Host's operator reads before deciding about a request: who asks, what for, columns, what it reveals, what can be narrowed.

The same facts in the console and in the shell, in the reader's language. Knows no label and no leaf weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from math import ceil

import numpy as np

from backend.data.dictionary import Feature
from backend.data.federation import Federation
from backend.data.table import PartyTable
from backend.i18n import Text
from backend.link.agreement import Agreement, Purpose
from backend.protocols.approvals.messages import IMPORT, REASONS, SCORING, SCREENING, TRAINING
from backend.protocols.explanations.messages import AskReasons
from backend.protocols.imports.messages import KeepImport
from backend.protocols.purposes.protocol import ADMITS
from backend.protocols.scoring.messages import DecisionVectors
from backend.protocols.terms.prices import training_bits
from backend.protocols.training.messages import StartRanks, StartTraining
from backend.remark import Remark
from backend.store.accountant import SCORE, Limits
from backend.store.approvals import Approval
from backend.trees.compiled import Conjunctions, own_conditions
from backend.trees.ensemble import HostModel

WHO = Text("Who asks", "请求方")
WHAT_FOR = Text("What for", "用途")
COLUMNS = Text("Our columns", "使用的我方列")
BITS = Text("Reveals about a person", "对一个人透露的信息")
SUM = Text("In sum", "合计")
GIVE_AWAY = Text("What answers give away", "回答透露的信息")
NARROW = Text("You can narrow", "可以收紧")
MEASURED = 20_000  # records on which it is measured what a model's own splits tell apart
# purpose of an approval → the messages that it is about
MESSAGES = {
    TRAINING: (StartTraining, StartRanks),
    SCORING: (DecisionVectors,),
    REASONS: (AskReasons,),
    IMPORT: (KeepImport,),
}


@dataclass(frozen=True)
class Fact:
    """One line of what the operator reads."""

    label: Text
    value: Text | Remark


@dataclass(frozen=True)
class Counterparts:
    """The terms agreed with the parties that ask a Host.

    Attributes
    ----------
    titles : mapping of str to Text
        Party → its title.
    purposes : tuple of Purpose, optional
        Of the agreement; None if there is no agreement.
    """

    titles: Mapping[str, Text] = field(default_factory=dict)
    purposes: tuple[Purpose, ...] | None = None

    @classmethod
    def of_agreement(cls, agreement: Agreement | None) -> Counterparts:
        """Return what an agreement says about the parties and purposes."""
        if agreement is None:
            return cls()
        titles = {party.name: party.title for party in agreement.parties}
        return cls(titles, agreement.purposes)

    @classmethod
    def of_federation(cls, federation: Federation) -> Counterparts:
        """Return what a simulation says about its parties."""
        return cls({party.name: party.title for party in federation.parties})

    def title(self, party: str) -> Text:
        """Return a party's title, or its name if it has none."""
        return self.titles.get(party) or Text(party)

    def purposes_of(self, approval: Approval) -> tuple[Purpose, ...]:
        """Return the purposes of the agreement under which a request may be made."""
        kinds = {message.__name__ for message in MESSAGES.get(approval.purpose, ())}
        for measure, admitted in ADMITS.items():
            if measure == approval.purpose:
                kinds = {message.__name__ for message in admitted} or {DecisionVectors.__name__}
        return tuple(purpose for purpose in self.purposes or () if kinds & set(purpose.kinds))


@dataclass(frozen=True)
class ToldApart:
    """How finely a model's own splits tell some of the Host's records apart.

    Attributes
    ----------
    records : int
        Records that were looked at.
    groups : int
        Groups of records that get the same answer in every tree.
    alone : float
        Share of the records whose group has no other record, 0 … 1.
    """

    records: int
    groups: int
    alone: float


def told_apart(model: HostModel, table: PartyTable) -> ToldApart | None:
    """Measure what a model's own splits tell apart among the first :data:`MEASURED` records; None if there is nothing to measure."""
    n = min(len(table.ids), MEASURED)
    if not n or not model.rules:
        return None
    columns = table.take(np.arange(n, dtype=np.intp)).columns
    conditions = own_conditions(model.skeletons, model.rules)
    answers = np.packbits(Conjunctions(model.rules, conditions).matrix(columns, n), axis=1)
    _, sizes = np.unique(answers, axis=0, return_counts=True)
    return ToldApart(n, len(sizes), float(np.count_nonzero(sizes == 1)) / n)


def facts_of(
    approval: Approval,
    counterparts: Counterparts,
    features: Mapping[str, Feature],
    used_features: Sequence[str],
    limits: Limits,
    naming_share: float,
    measured: ToldApart | None,
    records: int = 0,
) -> tuple[Fact, ...]:
    """Return what the operator reads, in order: first what it reveals about a person.

    Parameters
    ----------
    features : mapping of str to Feature
        The Host's dictionary; empty if it is not stored here.
    used_features : sequence of str
        Names of the Host's features that the model's own splits use.
    naming_share : float
        Share of a group's people whom sums could name; 0 if the request is not about sums or the share is not limited.
    measured : ToldApart, optional
        What the model's own splits tell apart here.
    records : int
        How many the Host has; 0 if they are not here.
    """
    return (
        *_bits(approval, features, limits, records),
        *(Fact(GIVE_AWAY, remark) for remark in _give_away(approval, naming_share, measured)),
        Fact(WHO, counterparts.title(approval.guest)),
        *(Fact(WHAT_FOR, purpose) for purpose in _purposes(approval, counterparts)),
        Fact(COLUMNS, _columns(approval, features, used_features)),
        Fact(NARROW, _narrow(approval)),
    )


@dataclass(frozen=True)
class Proposal:
    """Terms that a request needs, as its form shows them first.

    Attributes
    ----------
    until, latest : date
        The last day that is proposed; the last one that can be chosen: the agreement's, or today if that is over; None if there is no
        agreement.
    per_day : int
        People, or trainings.
    """

    until: date
    latest: date | None
    per_day: int


def proposal_of(approval: Approval, counterparts: Counterparts, limits: Limits, today: date) -> Proposal:
    """Return terms no longer and no wider than the request needs.

    A training gets until tomorrow, since it may pass midnight; a question about people one window of the account.
    """
    training = approval.purpose == TRAINING
    days = 1 if training else limits.days
    until = today + timedelta(days=days)
    purposes = counterparts.purposes_of(approval)
    latest = max((purpose.valid_until for purpose in purposes), default=None)
    if latest is not None:
        latest = max(today, latest)
        until = min(until, latest)
    # A person counts once a feature.
    counted = int(approval.about.get("rows", 0)) * int(approval.about.get("features", 1))
    per_day = 1 if training else max(1, counted)
    return Proposal(until, latest, per_day)


def _purposes(approval: Approval, counterparts: Counterparts) -> list[Remark]:
    """Return the agreed purposes with their legal basis and retention."""
    if counterparts.purposes is None:
        return [Remark("request_purpose_unstated")]
    remarks = []
    for purpose in counterparts.purposes_of(approval):
        values = {
            "title": purpose.title,
            "basis": purpose.legal_basis,
            "days": purpose.retention_days,
            "until": purpose.valid_until,
        }
        remarks.append(Remark("request_purpose", values))
    return remarks or [Remark("request_purpose_not_agreed")]


def _columns(approval: Approval, features: Mapping[str, Feature], used_features: Sequence[str]) -> Remark:
    """Return which of the Host's columns the request is about."""
    about = approval.about
    if approval.purpose == TRAINING:
        left_out = set(about["exclude"])
        if features:
            names = [name for name in features if name not in left_out]
        elif left_out:
            return Remark("request_columns_except", {"names": tuple(sorted(left_out))})
        else:
            return Remark("request_columns_all")
    elif "trees" in about:
        names = list(dict.fromkeys(used_features))
    else:
        return Remark("request_columns_grouped")
    if not names:
        is_known = approval.purpose == TRAINING or not about["own_splits"]
        return Remark("request_columns_none" if is_known else "request_columns_unknown")
    titles = tuple(features[name].meaning if name in features else name for name in names)
    return Remark("request_columns", {"count": len(names), "total": max(len(features), len(names)), "names": titles})


def _training_facts(approval: Approval, features: Mapping[str, Feature]) -> list[Fact]:
    """Return what a training can reveal of a person at most, and of all records; nothing if the Host's dictionary is not here."""
    records = int(approval.about["rows"])
    used_features = [name for name in features if name not in approval.about["exclude"]]
    if not used_features:
        return []
    bits = training_bits(len(used_features), records)
    values = {
        "answers": ceil(bits),
        "bits": bits,
        "features": len(used_features),
        "total": len(features),
        "people": records,
    }
    facts = [Fact(BITS, Remark("request_training_bits", values))]
    facts.append(Fact(SUM, Remark("request_training_sum", {"bits": bits * records, "people": records})))
    return facts


def _bits(approval: Approval, features: Mapping[str, Feature], limits: Limits, records: int) -> list[Fact]:
    """Return what answers about a model reveal of a person at most, and of all people of the first request."""
    about = approval.about
    if approval.purpose == TRAINING:
        return _training_facts(approval, features)
    if approval.purpose == SCREENING:
        bits = float(about["bits"])
        values = {"answers": ceil(bits), "bits": bits, "features": about["features"]}
        return [Fact(BITS, Remark("request_screening_bits", values))]
    if "capacity" not in about:
        return []
    bits = float(about["capacity"])
    people = int(about["rows"])
    facts = [Fact(BITS, Remark("request_bits", {"answers": ceil(bits), "bits": bits}))]
    # A measure to hold it against: what a training on all of the Host's columns would tell at most.
    training_bound = training_bits(len(features), records)
    if records and bits < training_bound:
        facts.append(
            Fact(BITS, Remark("request_bits_whole", {"answers": ceil(training_bound), "total": len(features)}))
        )
    if limits.counted:
        facts.append(Fact(BITS, Remark("request_limit", {"limit": limits.of(SCORE)[1], "days": limits.days})))
    else:
        facts.append(Fact(BITS, Remark("request_no_limit")))
    if people:
        facts.append(Fact(SUM, Remark("request_sum", {"bits": bits * people, "people": people})))
    return facts


def _give_away(approval: Approval, naming_share: float, measured: ToldApart | None) -> list[Remark]:
    """Return how many people scores or sums could name."""
    about = approval.about
    remarks = []
    if approval.purpose == SCREENING:
        remarks.append(Remark("request_screening", {"least": about["least"]}))
    if approval.purpose == TRAINING and "most_named" in about:
        max_share = float(about["most_named"])
        if not 0.0 <= max_share <= 1.0:
            max_share = 1.0  # a word that means nothing bounds nothing
        remarks.append(Remark("request_most_named", {"bound": _percent(max_share)}))
    if about.get("imported"):
        remarks.append(Remark("request_imported"))
    if "trees" in about and approval.purpose != TRAINING:
        if about.get("named") is None:
            remarks.append(Remark("request_named_unmeasured"))
        else:
            values = {"share": _percent(about["named"]), "bound": _percent(about["most_named"])}
            remarks.append(Remark("request_named", values))
        if measured is not None:
            apart: dict[str, object] = {
                "splits": about["own_splits"],
                "groups": measured.groups,
                "people": measured.records,
                "share": _percent(measured.alone),
            }
            remarks.append(Remark("request_alone", apart))
    if naming_share:
        remarks.append(Remark("request_sums_named", {"share": _percent(naming_share)}))
    return remarks


def _narrow(approval: Approval) -> Remark:
    """Return what the operator can narrow."""
    if approval.purpose == TRAINING:
        return Remark("request_narrow_training")
    if "trees" in approval.about:
        return Remark("request_narrow_model")
    return Remark("request_narrow_sums")


def sealed_fact(most_named: float) -> Remark:
    """Return that a half is kept sealed, until at most this share of scores fit one path."""
    return Remark("half_sealed", {"bound": _percent(most_named)})


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
