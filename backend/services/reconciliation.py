"""Parties' logs and receipts side by side, and where two of them differ. Needs what they hand over, and no key of any."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from backend.errors import ParameterError
from backend.link.config import load_config
from backend.protocols.transport.messages import ConversationReceipt, EndConversation
from backend.protocols.transport.receipts import MAX_STATED, is_genuine
from backend.remark import Remark
from backend.store.audit_log import LINKS, AuditLog
from backend.store.database import FILE, Database
from backend.store.receipts import Receipt, Receipts

MAX_BYTES = 1 << 28  # of an export
SHORT = 12  # letters of a conversation's name in a sentence
CLOCKS = timedelta(minutes=2)  # two parties' clocks may be apart
NOTICED = timedelta(hours=1)  # after a party began again, the other has noticed
TERMS = ("number", "purpose", "until", "per_day")  # of an approval, as both logs have them
_LINE = TypeAdapter(dict[str, Any])
_RECEIPT = TypeAdapter(Receipt)
_BOOKED = TypeAdapter(dict[str, int])


@dataclass(frozen=True)
class HandedOver:
    """The receipts and log entries that one party delivers.

    Attributes
    ----------
    receipts : tuple of Receipt
        Its own, and those that it was sent.
    approvals : tuple of dict
        Bodies of its log's entries on approvals.
    starts : tuple of str
        When a process of it began to have the links, as its log has it (UTC, ISO 8601), upwards.
    left_open : mapping of str to str
        Conversation that a process of it had open when it ended → when that was noticed, as its log has it.
    booked : mapping of str to int
        Conversation without a receipt of its → questions in it that its account has, each from the moment when it was answered.
    """

    party: str
    receipts: tuple[Receipt, ...]
    approvals: tuple[Mapping[str, Any], ...]
    starts: tuple[str, ...] = ()
    left_open: Mapping[str, str] = field(default_factory=dict)
    booked: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Reconciled:
    """The result of a comparison.

    Attributes
    ----------
    parties : (str, str)
    conversations : int
        In which both say they took part.
    approvals : int
        That both logs hold.
    differences : tuple of Remark
        What no start of a party explains; empty if both say the same.
    broken_off : tuple of Remark
        Conversations in the midst of which a party's process ended, and when it began again: it cannot know how they ended.
    """

    parties: tuple[str, str]
    conversations: int
    approvals: int
    differences: tuple[Remark, ...]
    broken_off: tuple[Remark, ...] = ()


def read_side(path: Path) -> HandedOver:
    """Return a party's folder (with ``host.toml`` or a store), or the file that it exported.

    Raises
    ------
    ParameterError
        It is neither.
    """
    if path.is_dir():
        if (path / "host.toml").exists():
            config = load_config(path / "host.toml")
        else:
            config = None
        if config is None and not (path / FILE).exists():
            raise ParameterError("not_a_party_folder", path=str(path), file=FILE)
        if config is None:
            party = path.resolve().name
        else:
            party = config.party
        if config is None:
            database = Database(path)
        else:
            database = Database(config.store_url())
        try:
            receipts = tuple(Receipts(database).all())
            booked = Receipts(database).booked(party)
            entries = AuditLog(database).entries()
        finally:
            database.close()
        bodies = tuple(entry.body for entry in entries if entry.action == "approval")
        links = [(entry.time, entry.body) for entry in entries if entry.action == LINKS]
        return HandedOver(party, receipts, bodies, *_of_links(links), booked)
    return _read_export(path)


def _read_export(path: Path) -> HandedOver:
    if path.stat().st_size > MAX_BYTES:
        raise ParameterError("export_too_long", path=str(path), most=MAX_BYTES)
    party = ""
    receipts = list[Receipt]()
    approvals = list[Mapping[str, Any]]()
    links = list[tuple[str, Mapping[str, Any]]]()
    booked: Mapping[str, int] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            record = _LINE.validate_json(line)
            if set(record) == {"party"}:
                party = str(record["party"])
            elif set(record) == {"receipt"}:
                receipts.append(_RECEIPT.validate_python(record["receipt"]))
            elif set(record) == {"booked"}:
                booked = _BOOKED.validate_python(record["booked"])
            elif record.get("action") == "approval":
                approvals.append(_LINE.validate_python(record["body"]))
            elif record.get("action") == LINKS:
                links.append((str(record["time"]), _LINE.validate_python(record["body"])))
        except (ValidationError, KeyError):
            raise ParameterError("not_a_log_line", path=str(path), line=number) from None
    if not party:
        raise ParameterError("export_without_party", path=str(path))
    return HandedOver(party, tuple(receipts), tuple(approvals), *_of_links(links), booked)


def _of_links(entries: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[tuple[str, ...], dict[str, str]]:
    """From a log's entries on links: when processes began to have them, and which conversations others had left open when they ended."""
    starts = []
    left_open = dict[str, str]()
    for time, body in entries:
        conversations = body.get("broken_off")
        if isinstance(conversations, list):
            left_open |= {str(conversation): time for conversation in conversations}
        else:
            starts.append(time)
    return tuple(starts), left_open


def exported(party: str, log: str, receipts: Receipts) -> str:
    """Return a party's log and receipts as lines of JSON, with its name in front."""
    lines: list[dict[str, Any]] = [{"party": party}, {"booked": receipts.booked(party)}]
    lines += [{"receipt": vars(receipt)} for receipt in receipts.all()]
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
    broken_off = list[Remark]()
    for conversation in sorted(mine.keys() | theirs.keys()):
        first_receipt = mine.get(conversation)
        second_receipt = theirs.get(conversation)
        remarks = _of_conversation(first, second, first_receipt, second_receipt)
        restart = _restart(first, first_receipt, second_receipt) or _restart(second, second_receipt, first_receipt)
        if remarks and restart is not None:
            broken_off.append(restart)
        else:
            differences += remarks
    differences += [*_other_copies(first, theirs), *_other_copies(second, mine)]
    shared, about = _approvals(first, second)
    both = len(mine.keys() & theirs.keys())
    parties = first.party, second.party
    return Reconciled(parties, both, shared, (*differences, *about), tuple(broken_off))


def _of_conversation(
    first: HandedOver, second: HandedOver, first_receipt: Receipt | None, second_receipt: Receipt | None
) -> list[Remark]:
    """Return the differences between two parties' receipts of one conversation."""
    if first_receipt is not None and second_receipt is not None:
        if (
            max(len(first_receipt.entries), len(second_receipt.entries)) >= MAX_STATED
        ):  # of longer ones the end is not stated
            return []
        return [*_counts(first_receipt, second_receipt), *_counts(second_receipt, first_receipt)]
    has, lacks, receipt = (
        (first, second, first_receipt) if first_receipt is not None else (second, first, second_receipt)
    )
    if receipt is None:
        return []
    values = {"party": has.party, "other": lacks.party, "conversation": receipt.conversation[:SHORT]}
    return [Remark("receipt_of_one_side", {**values, "time": receipt.created[:16]})]


def _restart(side: HandedOver, receipt: Receipt | None, of_other: Receipt | None) -> Remark | None:
    """When a party's process began again that had ended in the midst of a conversation; None if it did not.

    A receipt without the conversation's end was signed when the process stopped; one that was killed signed none. The party itself says
    when it began: who finds many of these asks it why. A party that had ended the conversation itself was not in the midst of it, even
    if its own receipt is missing.
    """
    if of_other is None or (receipt is not None and _has_ended(receipt)):
        return None
    values: dict[str, object] = {"party": side.party, "conversation": of_other.conversation[:SHORT]}
    values |= {"other": of_other.party}
    noticed = _time(side.left_open.get(of_other.conversation, ""))
    if noticed is not None:
        return Remark("process_ended", {**values, "time": _minute(noticed)})
    if receipt is None and _has_ended(of_other, by=side.party):
        return None
    began = [time for text in side.starts if (time := _time(text)) is not None]
    ended = _time(of_other.created)
    stopped = None if receipt is None else _time(receipt.created)
    if stopped is not None:
        later = [time for time in began if time >= stopped]
    elif ended is not None:
        # If the other party does not state an end either, it may have stopped before this one began again.
        if _has_ended(of_other):
            latest = ended + CLOCKS
        else:
            latest = datetime.max.replace(tzinfo=UTC)
        later = [time for time in began if ended - NOTICED <= time <= latest]
    else:
        later = []
    if not later:
        return None
    values["time"] = _minute(min(later))
    booked = side.booked.get(of_other.conversation, 0)
    if booked:
        return Remark("broken_off_booked", {**values, "n": booked})
    return Remark("broken_off", values)


def _time(text: str) -> datetime | None:
    """Return a time from another company's export; None if it is not a time, or has no zone."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else None


def _minute(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


def _has_ended(receipt: Receipt, by: str = "") -> bool:
    """Return whether a receipt states the end of its conversation, sent `by` a party if one is named."""
    end = EndConversation.__name__
    return any(kind == end and by in ("", sender) for sender, _, kind, _, _ in receipt.entries)


def _terms(approval: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(approval.get(name) for name in TERMS)


def _own(side: HandedOver, peer: str) -> dict[str, Receipt]:
    """Its own receipts of conversations in which it sent the other something, or took something of it."""
    receipts = [receipt for receipt in side.receipts if receipt.party == side.party]
    return {receipt.conversation: receipt for receipt in receipts if receipt.sent(peer) or receipt.took(peer)}


def _unsigned(side: HandedOver, receipts: Mapping[str, Receipt]) -> Iterator[Remark]:
    keys = {receipt.public_key for receipt in receipts.values()}
    if len(keys) > 1:
        yield Remark("several_signing_keys", {"party": side.party, "count": len(keys)})
    for receipt in receipts.values():
        stated = ConversationReceipt(receipt.conversation, receipt.entries, receipt.signature)
        if not is_genuine(stated, receipt.party, receipt.public_key):
            yield Remark("receipt_not_signed", {"party": side.party, "conversation": receipt.conversation[:SHORT]})


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
    copies = {(receipt.conversation, receipt.party): receipt for receipt in side.receipts}
    for receipt in of_other.values():
        copy = copies.get((receipt.conversation, receipt.party))
        if copy is not None and copy.entries != receipt.entries:
            values = {"party": receipt.party, "other": side.party, "conversation": receipt.conversation[:SHORT]}
            yield Remark("other_receipt_shown", values)


def _approvals(first: HandedOver, second: HandedOver) -> tuple[int, list[Remark]]:
    """Return the number of approvals in both logs, and those in the Guest's log that are not in its Host's."""
    shared = 0
    differences = list[Remark]()
    for guest, host in ((first, second), (second, first)):
        # A Guest's log may have an approval twice: it is noted again after a restart.
        reported_terms = []
        for approval in guest.approvals:
            if approval.get("host") == host.party and approval.get("state") == "granted":
                reported_terms.append(_terms(approval))
        approved_terms = set()
        for approval in host.approvals:
            if approval.get("what") == "approved" and approval.get("guest") == guest.party:
                approved_terms.add(_terms(approval))
        for terms in dict.fromkeys(reported_terms):
            if terms in approved_terms:
                shared += 1
            else:
                values = dict(zip(TERMS, terms, strict=True))
                differences.append(
                    Remark("approval_of_one_side", {"party": guest.party, "other": host.party, **values})
                )
    return shared, differences
