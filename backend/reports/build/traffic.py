"""Which messages passed between the parties, by the audit log: in a model's training, and in its use."""

from __future__ import annotations

from collections.abc import Iterable

from backend.protocols.transport.message import MESSAGES
from backend.reports import schema as report
from backend.reports.build.sources import Sources
from backend.store.audit_log import Entry


def training_traffic(sources: Sources) -> tuple[report.Traffic, ...] | None:
    """Of the model's training; None where it was not logged."""
    trained = [
        e for e in sources.entries if e.action == "train" and e.body.get("model_sha256") == sources.record.content_hash
    ]
    return _traffic(trained[-1:]) or None


def use(sources: Sources) -> report.Use:
    """How much the model was used."""
    own = [e for e in sources.entries if e.body.get("model_sha256") == sources.record.content_hash]
    scorings = [e for e in own if e.action == "score" and "cipher" in e.body]
    comparisons = [e for e in own if e.action == "compare" and not e.body.get("synthetic")]
    return report.Use(
        scorings=len(scorings),
        rows=sum(e.body["rows"] for e in scorings),
        failed=sum(e.body["failed"] for e in scorings),
        in_the_clear=sum(e.body["rows"] for e in scorings if e.body["cipher"] == "none"),
        comparisons=len(comparisons),
        traffic=_traffic([*scorings, *comparisons]),
    )


def _traffic(entries: Iterable[Entry]) -> tuple[report.Traffic, ...]:
    """Messages and bytes of all entries, by class, sender and receiver, in the order in which they first came."""
    counts: dict[tuple[str, str, str], list[int]] = {}
    for entry in entries:
        for kind, sender, receiver, messages, size in entry.body.get("traffic", ()):
            line = counts.setdefault((kind, sender, receiver), [0, 0])
            line[0] += messages
            line[1] += size
    return tuple(
        report.Traffic(
            kind=kind,
            sender=sender,
            receiver=receiver,
            messages=messages,
            bytes=size,
            holds=MESSAGES[kind].HOLDS,
            readable_by=MESSAGES[kind].READABLE_BY,
        )
        for (kind, sender, receiver), (messages, size) in counts.items()
        if kind in MESSAGES
    )
