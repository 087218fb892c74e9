"""Parties' logs and receipts side by side, and where two of them differ. Needs what they hand over, and no key of any."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from backend.errors import ParameterError
from backend.link.config import load_config
from backend.protocols.transport.messages import ConversationReceipt
from backend.protocols.transport.receipts import MAX_STATED, is_genuine
from backend.remark import Remark
from backend.store.audit_log import AuditLog
from backend.store.database import FILE, Database
from backend.store.receipts import Receipt, Receipts

MAX_BYTES = 1 << 28  # of an export
SHORT = 12  # letters of a conversation's name in a sentence
TERMS = ("number", "purpose", "until", "per_day")  # of an approval, as both logs have them
_LINE = TypeAdapter(dict[str, Any])
_RECEIPT = TypeAdapter(Receipt)


@dataclass(frozen=True)
class HandedOver:
    """What one party hands over.

    Attributes
    ----------
    receipts : tuple of Receipt
        Its own, and those that it was sent.
    approvals : tuple of dict
        Bodies of its log's entries on approvals.
    """

    party: str
    receipts: tuple[Receipt, ...]
    approvals: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Reconciled:
    """What a comparison found.

    Attributes
    ----------
    parties : (str, str)
    conversations : int
        In which both say they took part.
    approvals : int
        That both logs hold.
    differences : tuple of Remark
        Empty if both say the same.
    """

    parties: tuple[str, str]
    conversations: int
    approvals: int
    differences: tuple[Remark, ...]


def read_side(path: Path) -> HandedOver:
    """A party's folder (with ``host.toml`` or a store), or the file that it exported.

    Raises
    ------
    ParameterError
        It is neither.
    """
    if path.is_dir():
        config = load_config(path / "host.toml") if (path / "host.toml").exists() else None
        if config is None and not (path / FILE).exists():
            raise ParameterError("not_a_party_folder", path=str(path), file=FILE)
        database = Database(path) if config is None else Database(config.store_url())
        try:
            receipts = tuple(Receipts(database).all())
            bodies = tuple(one.body for one in AuditLog(database).entries() if one.action == "approval")
        finally:
            database.close()
        return HandedOver(path.resolve().name if config is None else config.party, receipts, bodies)
    return _read_export(path)


def _read_export(path: Path) -> HandedOver:
    if path.stat().st_size > MAX_BYTES:
        raise ParameterError("export_too_long", path=str(path), most=MAX_BYTES)
    party = ""
    receipts = list[Receipt]()
    approvals = list[Mapping[str, Any]]()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            found = _LINE.validate_json(line)
            if set(found) == {"party"}:
                party = str(found["party"])
            elif set(found) == {"receipt"}:
                receipts.append(_RECEIPT.validate_python(found["receipt"]))
            elif found.get("action") == "approval":
                approvals.append(_LINE.validate_python(found["body"]))
        except (ValidationError, KeyError):
            raise ParameterError("not_a_log_line", path=str(path), line=number) from None
    if not party:
        raise ParameterError("export_without_party", path=str(path))
    return HandedOver(party, tuple(receipts), tuple(approvals))


def exported(party: str, log: str, receipts: list[Receipt]) -> str:
    """A party's log and receipts as lines of JSON, with its name in front."""
    lines = [{"party": party}, *({"receipt": vars(one)} for one in receipts)]
    first, *others = (json.dumps(line, sort_keys=True) + "\n" for line in lines)
    return first + log + "".join(others)


def reconcile_pairs(sides: Sequence[HandedOver]) -> list[Reconciled]:
    """Compare each two of several parties; raises ParameterError if there is one alone, or one twice."""
    if len(sides) < 2:
        raise ParameterError("reconcile_one_party")
    return [reconcile(first, second) for first, second in combinations(sides, 2)]


def reconcile(first: HandedOver, second: HandedOver) -> Reconciled:
    """Compare what two parties say about what passed between them, and about what one allows the other.

    Raises
    ------
    ParameterError
        Both are one party.
    """
    if first.party == second.party:
        raise ParameterError("same_party_twice", party=first.party)
    mine = _own(first, second.party)
    theirs = _own(second, first.party)
    differences = [*_unsigned(first, mine), *_unsigned(second, theirs)]
    for conversation in sorted(mine.keys() | theirs.keys()):
        here = mine.get(conversation)
        there = theirs.get(conversation)
        if here is None or there is None:
            (has, lacks), receipt = ((first, second), here) if here else ((second, first), there)
            values = {"party": has.party, "other": lacks.party, "conversation": conversation[:SHORT]}
            time = receipt.created[:16] if receipt else ""
            differences.append(Remark("receipt_of_one_side", {**values, "time": time}))
        elif max(len(here.entries), len(there.entries)) < MAX_STATED:  # of longer ones the end is not stated
            differences += [*_counts(here, there), *_counts(there, here)]
    differences += [*_other_copies(first, theirs), *_other_copies(second, mine)]
    shared, about = _approvals(first, second)
    both = mine.keys() & theirs.keys()
    return Reconciled((first.party, second.party), len(both), shared, (*differences, *about))


def _own(side: HandedOver, peer: str) -> dict[str, Receipt]:
    """Its own receipts of conversations in which it sent the other something, or took something of it."""
    own = [one for one in side.receipts if one.party == side.party]
    return {one.conversation: one for one in own if one.sent(peer) or one.took(peer)}


def _unsigned(side: HandedOver, own: Mapping[str, Receipt]) -> Iterator[Remark]:
    keys = {one.public_key for one in own.values()}
    if len(keys) > 1:
        yield Remark("several_signing_keys", {"party": side.party, "count": len(keys)})
    for one in own.values():
        stated = ConversationReceipt(one.conversation, one.entries, one.signature)
        if not is_genuine(stated, one.party, one.public_key):
            yield Remark("receipt_not_signed", {"party": side.party, "conversation": one.conversation[:SHORT]})


def _counts(sender: Receipt, taker: Receipt) -> Iterator[Remark]:
    """Where one side did not take what the other sent."""
    stated = sender.sent(taker.party)
    agreed = taker.took(sender.party)
    for kind in sorted(stated.keys() | agreed.keys()):
        sent = stated.get(kind, (0, 0))
        took = agreed.get(kind, (0, 0))
        if sent != took and kind != ConversationReceipt.__name__:  # it cannot state itself
            values = {
                "conversation": sender.conversation[:SHORT],
                "message": kind,
                "party": sender.party,
                "sent": sent[0],
                "sent_bytes": sent[1],
                "other": taker.party,
                "received": took[0],
                "received_bytes": took[1],
            }
            yield Remark("counts_differ", values)


def _other_copies(side: HandedOver, of_other: Mapping[str, Receipt]) -> Iterator[Remark]:
    """Receipts that a party shows now and that are not those that it sent to `side`."""
    kept = {(one.conversation, one.party): one for one in side.receipts}
    for one in of_other.values():
        copy = kept.get((one.conversation, one.party))
        if copy is not None and copy.entries != one.entries:
            values = {"party": one.party, "other": side.party, "conversation": one.conversation[:SHORT]}
            yield Remark("other_receipt_shown", values)


def _approvals(first: HandedOver, second: HandedOver) -> tuple[int, list[Remark]]:
    """How many approvals both logs hold, and where the Guest's log says what its Host's does not."""
    shared = 0
    differences = list[Remark]()
    for guest, host in ((first, second), (second, first)):
        reported = [one for one in guest.approvals if one.get("host") == host.party and one.get("state") == "granted"]
        given = [one for one in host.approvals if one.get("what") == "approved" and one.get("guest") == guest.party]
        known = {tuple(one.get(name) for name in TERMS) for one in given}
        # noted again after a restart
        for terms in dict.fromkeys(tuple(one.get(name) for name in TERMS) for one in reported):
            if terms in known:
                shared += 1
            else:
                values = dict(zip(TERMS, terms, strict=True))
                differences.append(
                    Remark("approval_of_one_side", {"party": guest.party, "other": host.party, **values})
                )
    return shared, differences
