"""The audit log from a shell: `audit verify`, `show`, `export`, `key`, `replay`, `reconcile`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.cli.output import AsJson, FederationName, check_out, in_utc, open_glassleaf, print_result, save, text_of
from backend.errors import ParameterError
from backend.i18n import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backend.services import Glassleaf
    from backend.services.re_performance import RePerformed
    from backend.store.audit_log import Entry, Verdict

Federation = Annotated[str, typer.Argument(help="A federation's name (default: every one that is known).")]
SHOWN_ENTRIES = 50  # entries
app = typer.Typer(
    add_completion=False,
    name="audit",
    no_args_is_help=True,
    help="The audit log: verify, show, export; key, what signatures are checked with; replay, what the Guest really sent; "
    "re-perform and half, answers recomputed; reconcile, what the parties say.",
)


@app.command()
def verify(federation: Federation = "", as_json: AsJson = False) -> None:
    """Check the chain of every entry, and against what the Hosts were told; exit status 1 if something is wrong."""
    with open_glassleaf() as glassleaf:
        verdicts = {name: glassleaf.audit.verify(name) for name in _chosen(glassleaf, federation)}
    lines = [_verdict_text(name, verdict) for name, verdict in verdicts.items()]
    print_result(
        {name: _verdict_json(v) for name, v in verdicts.items()},
        lines or "No federation yet.",
        as_json,
        ok=all(verdict.holds for verdict in verdicts.values()),
    )


@app.command()
def replay(federation: Federation = "", as_json: AsJson = False) -> None:
    """Have the Guest open the requests that Hosts kept in secret, and check their weights; exit status 1 if one is wrong."""
    with open_glassleaf() as glassleaf:
        replays = []
        for name in _chosen(glassleaf, federation):
            for host_replay in glassleaf.audit.replay(name):
                replays.append((name, host_replay))
    lines = []
    for name, host_replay in replays:
        wrong = len(host_replay.found.problems)
        if wrong:
            verdict = f"{wrong} NOT what an honest Guest sends"
        else:
            verdict = "all as an honest Guest sends them"
        lines += [
            f"{name}: {counted(host_replay.found.rows, 'requests')} about {host_replay.model_id}, kept at {host_replay.host}: {verdict}"
        ]
        lines += [f"  request {number}: {problem}" for number, problem in host_replay.found.problems]
    print_result(
        [{"federation": name, **asdict(host_replay)} for name, host_replay in replays],
        lines or "No Host has kept a request since the last replay.",
        as_json,
        ok=not any(host_replay.found.problems for _, host_replay in replays),
    )


@app.command("re-perform")
def re_perform(
    federation: Federation = "",
    half: Annotated[Path | None, typer.Option(help="The Guest's half, as `audit half` wrote it.")] = None,
    samples: Annotated[
        list[Path] | None, typer.Option("--sample", help="A Host's half, as `host sample` wrote it; one a Host.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute scores, reasons and sums in Hosts' samples from all halves; exit status 1 if one differs.

    In a simulation a federation is enough; otherwise the parties hand over their halves as files.
    """
    from backend.cli import language_of_shell
    from backend.services.re_performance import re_perform_files

    if bool(half) != bool(samples) or (half and federation):
        raise ParameterError("halves_or_federation")
    if half is not None:
        by_federation = {"": re_perform_files(text_of(half), [text_of(file) for file in samples or []])}
    else:
        with open_glassleaf() as glassleaf:
            by_federation = {name: glassleaf.audit.re_perform(name) for name in _chosen(glassleaf, federation)}
    language = language_of_shell()
    lines = []
    for name, performed in by_federation.items():
        lines += _performed_text(name, performed, language)
    print_result(
        [_performed_json(name, performed, language) for name, performed in by_federation.items()],
        lines or "No federation yet.",
        as_json,
        ok=not any(performed.differences for performed in by_federation.values()),
    )


@app.command()
def half(
    federation: FederationName,
    samples: Annotated[list[Path], typer.Argument(help="What Hosts handed over, as `host sample` wrote it.")],
    out: Annotated[
        Path, typer.Option(help="File to write: the Guest's half, with values of people, for the auditor alone.")
    ],
    as_json: AsJson = False,
) -> None:
    """Write the Guest's half of Hosts' samples, for `audit re-perform`; logged."""
    check_out(out)
    with open_glassleaf() as glassleaf:
        name = glassleaf.federations.get(federation).name
        text = glassleaf.audit.half(name, [text_of(file) for file in samples])
    save(out, text.encode())
    print_result({"file": str(out)}, f"The Guest's half is written to {out}.", as_json)


@app.command()
def show(
    federation: Federation = "",
    action: Annotated[str, typer.Option(help="Only these: train, score, override, report …")] = "",
    last: Annotated[int, typer.Option(help="How many, the newest.")] = SHOWN_ENTRIES,
    as_json: AsJson = False,
) -> None:
    """Show entries of the log."""
    with open_glassleaf() as glassleaf:
        entries = []
        for name in _chosen(glassleaf, federation):
            for entry in glassleaf.audit.entries(name):
                if not action or entry.action == action:
                    entries.append((name, entry))
    entries = entries[-max(1, last) :]
    documents = [{"federation": name, **asdict(entry)} for name, entry in entries]
    lines = [_entry_text(name, entry) for name, entry in entries]
    print_result(documents, "\n".join(lines), as_json)


@app.command()
def key(
    federation: FederationName,
    out: Annotated[
        Path | None, typer.Option(help="File to write the key to, as PEM; it goes to standard output without one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the Guest's public key, with which anybody checks what it signed: reports, sign-offs, heads of the log."""
    with open_glassleaf() as glassleaf:
        name = glassleaf.federations.get(federation).name
        public = glassleaf.audit.public_key(name)
        pem = glassleaf.audit.public_pem(name)
    if out is not None:
        save(out, pem.encode())
    print_result(
        {"federation": name, "algorithm": "Ed25519", "public_key": public, "pem": pem},
        f"{public}\n{pem.strip()}",
        as_json,
    )


@app.command()
def export(
    federation: FederationName,
    out: Annotated[Path, typer.Option(help="File to write: a line of JSON an entry.")],
    receipts: Annotated[
        bool, typer.Option("--receipts", help="Add the party's name and its receipts, for `audit reconcile`.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the whole log; the export is an entry itself."""
    with open_glassleaf() as glassleaf:
        text = glassleaf.audit.export(federation, receipts=receipts)
    save(out, text.encode())
    print_result(
        {"file": str(out), "entries": text.count("\n")},
        f"{counted(text.count(chr(10)), 'entries')} written to {out}.",
        as_json,
    )


@app.command("reconcile")
def reconcile_all(
    parties: Annotated[
        list[Path], typer.Argument(help="Two parties or more: the folder of each, or the file that it exported.")
    ],
    as_json: AsJson = False,
) -> None:
    """Compare what each two of several parties say about what passed between them and was approved; exit status 1 if any differ."""
    from backend.cli import language_of_shell
    from backend.services.reconciliation import read_side, reconcile_pairs

    language = language_of_shell()
    pairs = reconcile_pairs([read_side(path) for path in parties])
    lines = []
    for reconciled in pairs:
        outcome = (
            f"{counted(reconciled.conversations, 'conversations')} and {reconciled.approvals} approvals that both know"
        )
        lines.append(
            f"{' and '.join(reconciled.parties)}: {outcome}; {len(reconciled.differences) or 'no'} differences"
        )
        lines += [f"  {difference.sentence(language)}" for difference in reconciled.differences]
        if reconciled.broken_off:
            lines.append(
                f"  {counted(len(reconciled.broken_off), 'conversations')} broken off, which is no difference:"
            )
        lines += [f"  {remark.sentence(language)}" for remark in reconciled.broken_off]
    plain = []
    for pair in pairs:
        differences = [remark.plain() for remark in pair.differences]
        broken_off = [remark.plain() for remark in pair.broken_off]
        plain.append({**asdict(pair), "differences": differences, "broken_off": broken_off})
    print_result(plain, lines, as_json, ok=not any(reconciled.differences for reconciled in pairs))


def _chosen(glassleaf: Glassleaf, federation: str) -> Sequence[str]:
    if federation:
        return [glassleaf.federations.get(federation).name]
    return [f.name for f in glassleaf.federations.all()]


def _performed_text(name: str, performed: RePerformed, language: str) -> list[str]:
    """Return what was recomputed, and what differs: whose, how often and by how much."""
    wrong = len({(difference.kind, difference.request, difference.place) for difference in performed.differences})
    head = f"{name}: " if name else ""
    scores = counted(performed.scores, "scores")
    reasons = counted(performed.reasons, "people")
    recomputed = f"{scores}, reasons of {reasons} and {counted(performed.sums, 'sums')} recomputed"
    lines = [f"{head}{recomputed}, {counted(performed.opened, 'steps')} opened: {wrong or 'none'} differ"]
    counts: Counter[tuple[str, str, str]] = Counter()
    for difference in performed.differences:
        counts[
            difference.model_id or "sums by group", " or ".join(difference.parties), difference.why.sentence(language)
        ] += 1
    lines += [f"  {n} × {parties} ({model}): {why}" for (model, parties, why), n in counts.most_common()]
    lines += [f"  not covered: {n} × {why.sentence(language)}" for why, n in performed.not_covered]
    return lines


def _performed_json(name: str, performed: RePerformed, language: str) -> dict[str, Any]:
    differences = []
    for difference in performed.differences:
        differences.append(
            {
                "model": difference.model_id,
                "kind": difference.kind,
                "request": difference.request,
                "place": difference.place,
                "parties": list(difference.parties),
                "code": difference.why.code,
                "words": difference.why.sentence(language),
                "by": list(difference.by),
            }
        )
    return {
        "federation": name,
        "scores": performed.scores,
        "reasons": performed.reasons,
        "sums": performed.sums,
        "opened": performed.opened,
        "differences": differences,
        "not_covered": {why.code: n for why, n in performed.not_covered},
    }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {**asdict(verdict), "holds": verdict.holds}


def _verdict_text(name: str, verdict: Verdict) -> str:
    witnesses = ", ".join(verdict.witnesses) or "no Host, so that a cut or a new chain would not show"
    lines = [
        f"{name}: {counted(verdict.entries, 'entries')}, {'the chain holds' if verdict.holds else 'SOMETHING IS WRONG'}"
    ]
    lines += [f"  {problem}" for problem in verdict.problems]
    return "\n".join(
        [*lines, f"  head {verdict.head.hash}", f"  compared with {verdict.heads} heads kept by: {witnesses}"]
    )


def _entry_text(federation: str, entry: Entry) -> str:
    details = ", ".join(f"{k} {v}" for k, v in entry.body.items() if isinstance(v, (str, int)) and k != "salt")
    return f"{federation} {entry.number}  {in_utc(entry.time)}  {entry.actor} ({entry.role})  {entry.action}: {details}"
