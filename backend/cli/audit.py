"""The audit log from a shell: `audit verify`, `show`, `export`, `key`, `replay`, `reconcile`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.cli.output import AsJson, FederationName, open_glassleaf, print_result, save

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backend.services import Glassleaf
    from backend.store.audit_log import Entry, Verdict

Federation = Annotated[str, typer.Argument(help="A federation's name (default: every one that is known).")]
SHOWN = 50  # entries
app = typer.Typer(
    add_completion=False,
    name="audit",
    no_args_is_help=True,
    help="The audit log: verify, show, export; key, what signatures are checked with; replay, what the Guest really sent; "
    "reconcile, what two parties say.",
)


@app.command()
def verify(federation: Federation = "", as_json: AsJson = False) -> None:
    """Check the chain of every entry, and against what the Hosts were told; exit status 1 where something is wrong."""
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
    """Have the Guest open the requests that Hosts kept in secret, and check their weights; exit status 1 where one is wrong."""
    with open_glassleaf() as glassleaf:
        found = [(name, one) for name in _chosen(glassleaf, federation) for one in glassleaf.audit.replay(name)]
    lines = []
    for name, one in found:
        wrong = len(one.found.problems)
        verdict = f"{wrong} NOT what an honest Guest sends" if wrong else "all as an honest Guest sends them"
        lines += [f"{name}: {one.found.rows} requests about {one.model_id}, kept at {one.host}: {verdict}"]
        lines += [f"  request {number}: {problem}" for number, problem in one.found.problems]
    print_result(
        [{"federation": name, **asdict(one)} for name, one in found],
        lines or "No Host has kept a request since the last replay.",
        as_json,
        ok=not any(one.found.problems for _, one in found),
    )


@app.command()
def show(
    federation: Federation = "",
    action: Annotated[str, typer.Option(help="Only these: train, score, override, report …")] = "",
    last: Annotated[int, typer.Option(help="How many, the newest.")] = SHOWN,
    as_json: AsJson = False,
) -> None:
    """Show entries of the log."""
    with open_glassleaf() as glassleaf:
        entries = [
            (name, entry)
            for name in _chosen(glassleaf, federation)
            for entry in glassleaf.audit.entries(name)
            if not action or entry.action == action
        ][-max(1, last) :]
    print_result(
        [{"federation": n, **asdict(e)} for n, e in entries], "\n".join(_entry_text(n, e) for n, e in entries), as_json
    )


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
        public, pem = glassleaf.audit.public_key(name), glassleaf.audit.public_pem(name)
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
        {"file": str(out), "entries": text.count("\n")}, f"{text.count(chr(10))} entries written to {out}.", as_json
    )


@app.command("reconcile")
def reconcile_two(
    first: Annotated[Path, typer.Argument(help="A party's folder, or the file that it exported.")],
    second: Annotated[Path, typer.Argument(help="The other party's.")],
    as_json: AsJson = False,
) -> None:
    """Compare what two parties say about what passed between them and was approved; exit status 1 where they differ."""
    from backend.services.reconciliation import read_side, reconcile

    found = reconcile(read_side(first), read_side(second))
    outcome = f"{found.conversations} conversations and {found.approvals} approvals that both know"
    lines = [f"{' and '.join(found.parties)}: {outcome}; {len(found.differences) or 'no'} differences"]
    plain = {**asdict(found), "differences": [difference.plain() for difference in found.differences]}
    lines += [f"  {difference.sentence()}" for difference in found.differences]
    print_result(plain, lines, as_json, ok=not found.differences)


def _chosen(glassleaf: Glassleaf, federation: str) -> Sequence[str]:
    return [glassleaf.federations.get(federation).name] if federation else [f.name for f in glassleaf.federations.all()]


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {**asdict(verdict), "holds": verdict.holds}


def _verdict_text(name: str, verdict: Verdict) -> str:
    kept = ", ".join(verdict.witnesses) or "no Host, so that a cut or a new chain would not show"
    lines = [f"{name}: {verdict.entries} entries, {'the chain holds' if verdict.holds else 'SOMETHING IS WRONG'}"]
    lines += [f"  {problem}" for problem in verdict.problems]
    return "\n".join([*lines, f"  head {verdict.head.hash}", f"  compared with {verdict.heads} heads kept by: {kept}"])


def _entry_text(federation: str, entry: Entry) -> str:
    shown = ", ".join(f"{k} {v}" for k, v in entry.body.items() if isinstance(v, (str, int)) and k != "salt")
    return f"{federation} {entry.number}  {entry.time[:19]}  {entry.actor} ({entry.role})  {entry.action}: {shown}"
