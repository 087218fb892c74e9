"""What belongs to the day of a report: who asked, how much the model was used and what then travelled, who signed, the audit log."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import get_args

from backend import __version__
from backend.policy.bands import MARKS
from backend.protocols.transport.message import MESSAGES
from backend.reports import schema as report
from backend.reports.build.fill import fill
from backend.reports.build.sources import Sources
from backend.store.audit_log import Entry, Verdict
from backend.trees.backgrounds import Against

SOFTWARE = (
    "numpy",
    "scipy",
    "scikit-learn",
    "fairlearn",
    "gmpy2",
    "phe",
    "tenseal",
    "python-flint",
    "cryptography",
    "fpdf2",
)
CHANGES = {  # action of the audit log → the field of its entry that says more
    "train": "", "import": "", "describe": "changed", "details": "changed", "state": "step", "override": "verdict",
    "policy-proposal": "", "policy-approval": "",
    "sign-off": "", "dossier": "host",
}  # fmt: skip


def issued_of(sources: Sources, content_sha256: str, verdict: Verdict, now: str, by: tuple[str, str]) -> report.Issued:
    """Return what belongs to the day of the report on a content of this hash; `by` is actor and role."""
    actor, role = by
    return report.Issued(
        time=now,
        actor=actor,
        role=role,
        law_of=sources.compliance.on,
        standing=_standing(sources),
        verdict=sources.verdict,
        policy=_policy(sources),
        sign_offs=sign_offs_of(sources, content_sha256),
        use=_use(sources),
        given_away=sources.given_away,
        reasons=tuple(_reasons(sources)),
        audit=fill(report.AuditLine, verdict, head_sha256=verdict.head.hash),
        versions=dict(_versions()),
        changes=tuple(_changes(sources)),
        test_log=tuple(_test_log(sources)),
    )


def _reasons(sources: Sources) -> Iterable[report.ReasonsLine]:
    """By group compared with; before there was a choice it was the training records as the trees weigh them."""
    done_entries = [
        e
        for e in sources.entries
        if e.body.get("model_sha256") == sources.record.content_hash and e.body.get("outcome", "done") == "done"
    ]
    for against in get_args(Against):
        compared_entries = [e for e in done_entries if e.body.get("against", "covers") == against]
        people = sum(e.body["rows"] - e.body["failed"] for e in compared_entries if e.action == "reasons")
        notices = sum(e.action == "notice" and not e.body["blocked"] for e in compared_entries)
        if people or notices:
            yield report.ReasonsLine(against=against, people=people, notices=notices)


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    """Software that figures and ciphers come from; what is not installed here is left out."""
    versions = {"Glassleaf": __version__, "Python": platform.python_version()}
    for name in SOFTWARE:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return tuple(versions.items())


def _changes(sources: Sources) -> Iterable[report.ChangeLine]:
    """Return what the log says was done to the model, said of it or decided about it, and which dossiers came; oldest first."""
    digest = sources.record.content_hash
    for entry in sources.entries:
        if entry.action not in CHANGES or entry.body.get("outcome", "done") != "done":
            continue
        if entry.action != "dossier" and entry.body.get("model_sha256") != digest:
            continue
        value = entry.body.get(CHANGES[entry.action], "")
        detail = value if isinstance(value, str) else ", ".join(value)
        yield report.ChangeLine(time=entry.time, action=entry.action, detail=detail, actor=entry.actor)


def _test_log(sources: Sources) -> Iterable[report.MeasuredEntry]:
    """Return every measurement of the model that has ended, as the log has it; oldest first."""
    for entry in sources.entries:
        body = entry.body
        # such an entry alone counts the numbers that were kept
        if "numbers" not in body or body.get("model_sha256") != sources.record.content_hash:
            continue
        yield report.MeasuredEntry(
            number=entry.number,
            time=entry.time,
            action=entry.action,
            about=body.get("feature", ""),
            actor=entry.actor,
            entry_sha256=entry.hash,
        )


def _standing(sources: Sources) -> report.StandingLine:
    approval = sources.standing.approval
    return fill(
        report.StandingLine,
        sources.standing.model,
        approved_by=approval.person if approval else None,
        approved_at=approval.time if approval else None,
        approved_because=(approval.reason or None) if approval else None,
    )


def _policy(sources: Sources) -> report.PolicyLine:
    """Return the policy that holds, and who set it."""
    policy = sources.policy
    version = sources.policy_version
    scale = policy.points
    return report.PolicyLine(
        version=policy.version,
        decline_at=policy.decline_at,
        refer_at=policy.refer_at,
        points="" if scale is None else f"{scale.base_points}, {scale.base_odds:g}, {scale.double}",
        treatments={mark: policy.treatments.of(mark) for mark in MARKS},
        owner=version.owner if version else "",
        reason=version.reason if version else "",
        first_day=version.first_day if version else "",
        proposed_by=version.proposed_by if version else "",
        approved_by=version.approved_by if version else "",
    )


def sign_offs_of(sources: Sources, content_sha256: str) -> tuple[report.SignOffLine, ...]:
    """Return every sign-off, and whether it covers a content of this hash."""
    return tuple(
        fill(
            report.SignOffLine,
            s,
            report_sha256=s.report_hash,
            covers=s.report_hash == content_sha256,
            public_key=s.public_key or None,
            signature=s.signature or None,
        )
        for s in sources.sign_offs
    )


def _use(sources: Sources) -> report.Use:
    """Return how much the model was used; comparisons on a synthetic federation are not uses of it."""
    model_entries = [e for e in sources.entries if e.body.get("model_sha256") == sources.record.content_hash]
    scorings = [e for e in model_entries if e.action == "score" and "cipher" in e.body]
    comparisons = [e for e in model_entries if e.action == "compare" and not e.body.get("synthetic")]
    return report.Use(
        scorings=len(scorings),
        rows=sum(e.body["rows"] for e in scorings),
        failed=sum(e.body["failed"] for e in scorings),
        in_the_clear=sum(e.body["rows"] for e in scorings if e.body["cipher"] == "none"),
        comparisons=len(comparisons),
        traffic=traffic_of([*scorings, *comparisons]),
    )


def traffic_of(entries: Iterable[Entry]) -> tuple[report.Traffic, ...]:
    """Return messages and bytes of all entries, by class, sender and receiver, in the order of their first message."""
    n_messages: Counter[tuple[str, str, str]] = Counter()
    n_bytes: Counter[tuple[str, str, str]] = Counter()
    for entry in entries:
        for kind, sender, receiver, messages, size in entry.body.get("traffic", ()):
            n_messages[kind, sender, receiver] += messages
            n_bytes[kind, sender, receiver] += size
    traffic = []
    for way, messages in n_messages.items():
        kind, sender, receiver = way
        if kind in MESSAGES:
            line = report.Traffic(
                kind=kind,
                sender=sender,
                receiver=receiver,
                messages=messages,
                bytes=n_bytes[way],
                holds=MESSAGES[kind].HOLDS,
                readable_by=MESSAGES[kind].READABLE_BY,
            )
            traffic.append(line)
    return tuple(traffic)
