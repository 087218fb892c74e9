"""What a regulator asks the shell for: `report`, `audit`, `attack`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from backend.cli.output import AsJson, Bits, ModelId, open_glassleaf, print_result, save, say, watched
from backend.compliance.rule_pack import read_rule_pack
from backend.errors import ModelError, ParameterError
from backend.fairness.disparity import Rate
from backend.reports.document import schema
from backend.reports.files import check, language_of_pdf
from backend.services import DisparityRequest, Entry, Glassleaf, ProxyRequest, Verdict

Federation = Annotated[str, typer.Argument(help="A federation's name (default: every one that is known).")]
SHOWN = 50  # entries
auditing = typer.Typer(
    no_args_is_help=True, help="The audit log: verify, show, export; and replay, what the Guest really sent."
)


ruling = typer.Typer(no_args_is_help=True, help="The rule packs: list, check, add one's own.")


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(name="report")(report)
    app.command(name="attack")(attack)
    app.add_typer(auditing, name="audit")
    app.add_typer(ruling, name="rules")
    app.command(name="disparity")(disparity)
    app.command(name="proxies")(proxies)


def report(
    model: Annotated[str, typer.Argument(help="Model id, the beginning of one, or 'latest'.")] = "latest",
    form: Annotated[str, typer.Option("--format", help="json, html or pdf (default: what --out ends in).")] = "",
    out: Annotated[Path | None, typer.Option(help="File to write; JSON goes to standard output without one.")] = None,
    language: Annotated[str, typer.Option(help="en or zh; JSON holds both.")] = "en",
    check_file: Annotated[Path | None, typer.Option("--check", help="Check a report's hashes instead.")] = None,
    print_schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of a report instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the canonical report on a model, or check one."""
    if print_schema:
        sys.stdout.write(schema())
        return
    glassleaf = open_glassleaf()
    try:
        if check_file is not None:
            print_result(*_checked(glassleaf, check_file), as_json)
            return
        chosen = form or (out.suffix.lower().removeprefix(".") if out else "json")
        if out is None and chosen != "json":
            raise ParameterError(f"A report as {chosen} needs a file; add --out FILE.")
        written = glassleaf.export_report(model, chosen, language)
        if out is None:
            sys.stdout.write(written.decode())
            return
        if chosen == "pdf" and language_of_pdf(language) != language:
            say("Note: no font with Chinese letters was found here (docs/report.md), so the PDF is in English.")
        save(out, written)
        made = check(written).report
        body = {"file": str(out), "format": chosen, "sha256": made.sha256, "content_sha256": made.content_sha256}
        print_result(body, f"Report on {made.content.identity.model} written to {out}; SHA-256 {made.sha256}", as_json)
    finally:
        glassleaf.close()


DRAWN = {
    "json": "The report has its hash.",
    "yes": "The report inside has its hash, and what is drawn is what this version draws from it.",
    "other": "The report inside has its hash. The pages are not those that this machine draws from it: other fonts or another version "
    "drew them, or they were changed. Trust the JSON.",
}


def _checked(glassleaf: Glassleaf, file: Path) -> tuple[dict[str, Any], str]:
    try:
        blob = file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file} cannot be read ({error.strerror}).") from error
    found = glassleaf.check_report(blob)
    made, said = found.report, DRAWN[found.drawn]
    named = [{"federation": name, "entry": e.number, "time": e.time, "actor": e.actor} for name, e in found.named_by]
    logged = "; ".join(f"entry {n['entry']} of {n['federation']}, {n['time']}, {n['actor']}" for n in named)
    text = f"{said}\nModel {made.content.identity.model}, issued {made.issued.time}, SHA-256 {made.sha256}\n"
    text += f"Named by this home's audit log: {logged or 'no, so it was not issued from here'}"
    return {"drawn": found.drawn, "sha256": made.sha256, "named_by": named}, text


@auditing.command()
def verify(federation: Federation = "", as_json: AsJson = False) -> None:
    """Check the chain of every entry, and against what the Hosts were told; exit status 1 where something is wrong."""
    glassleaf = open_glassleaf()
    verdicts = {name: glassleaf.verify_audit(name) for name in _chosen(glassleaf, federation)}
    glassleaf.close()
    lines = [_verdict_text(name, verdict) for name, verdict in verdicts.items()]
    print_result(
        {name: _verdict_json(v) for name, v in verdicts.items()}, "\n".join(lines) or "No federation yet.", as_json
    )
    if not all(verdict.holds for verdict in verdicts.values()):
        raise typer.Exit(1)


@auditing.command()
def replay(federation: Federation = "", as_json: AsJson = False) -> None:
    """Have the Guest open the requests that Hosts kept in secret, and check their weights; exit status 1 where one is wrong."""
    glassleaf = open_glassleaf()
    found = [(name, one) for name in _chosen(glassleaf, federation) for one in glassleaf.replay_requests(name)]
    glassleaf.close()
    lines = []
    for name, one in found:
        wrong = len(one.found.problems)
        said = f"{wrong} NOT what an honest Guest sends" if wrong else "all as an honest Guest sends them"
        lines += [f"{name}: {one.found.rows} requests about {one.model_id}, kept at {one.host}: {said}"]
        lines += [f"  request {number}: {problem}" for number, problem in one.found.problems]
    print_result(
        [{"federation": name, **asdict(one)} for name, one in found],
        "\n".join(lines) or "No Host has kept a request since the last replay.",
        as_json,
    )
    if any(one.found.problems for _, one in found):
        raise typer.Exit(1)


@auditing.command()
def show(
    federation: Federation = "",
    action: Annotated[str, typer.Option(help="Only these: train, score, override, report …")] = "",
    last: Annotated[int, typer.Option(help="How many, the newest.")] = SHOWN,
    as_json: AsJson = False,
) -> None:
    """Show entries of the log."""
    glassleaf = open_glassleaf()
    entries = [
        (name, entry)
        for name in _chosen(glassleaf, federation)
        for entry in glassleaf.audit_entries(name)
        if not action or entry.action == action
    ][-max(1, last) :]
    glassleaf.close()
    print_result(
        [{"federation": n, **asdict(e)} for n, e in entries], "\n".join(_entry_text(n, e) for n, e in entries), as_json
    )


@auditing.command()
def export(
    federation: Annotated[str, typer.Argument(help="A federation's name.")],
    out: Annotated[Path, typer.Option(help="File to write: a line of JSON an entry.")],
    as_json: AsJson = False,
) -> None:
    """Write the whole log; the export is an entry itself."""
    glassleaf = open_glassleaf()
    text = glassleaf.export_audit(federation)
    glassleaf.close()
    save(out, text.encode())
    print_result(
        {"file": str(out), "entries": text.count("\n")}, f"{text.count(chr(10))} entries written to {out}.", as_json
    )


def attack(
    names: Annotated[list[str] | None, typer.Argument(help="Attacks by their id, e.g. A1 T2.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them (minutes).")] = False,
    only_list: Annotated[bool, typer.Option("--list", help="List them instead.")] = False,
    seed: Annotated[int, typer.Option(help="Draws data and what an attacker chooses.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Run attacks without and with the defence; exit status 1 where one works against what is shipped."""
    from backend.attacks.lab import ATTACKS, run_all  # noqa: PLC0415 (needed by this command alone)
    from backend.attacks.result import works  # noqa: PLC0415

    if only_list:
        listed = [{"id": a.id, "name": a.name, "severity": a.severity} for a in ATTACKS.values()]
        print_result(listed, "\n".join(f"{a['id']:8} {a['severity']:10} {a['name']}" for a in listed), as_json)
        return
    if not names and not every:
        raise ParameterError(f"Name attacks, or ask for all with --all; there are {', '.join(ATTACKS)}.")
    results = run_all([] if every else names or [], seed, lambda a: say(f"{a.id} {a.name} …"))
    lines = []
    for result in results:
        off, on = (
            f"{result.defence_off:.1%}",
            "not shipped" if result.defence_on is None else f"{result.defence_on:.1%}",
        )
        verdict = "WORKS" if works(result) else "fails"
        lines.append(
            f"{result.id:8} without {off:>7}  with {on:>11}  guessing {result.chance:.1%}  {verdict}: {result.name}"
        )
    print_result([result.as_dict() for result in results], "\n".join(lines), as_json)
    if any(works(result) for result in results):
        raise typer.Exit(1)


def _chosen(glassleaf: Glassleaf, federation: str) -> Sequence[str]:
    return [glassleaf.federation(federation).name] if federation else [f.name for f in glassleaf.federations()]


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {**asdict(verdict), "holds": verdict.holds}


def _verdict_text(name: str, verdict: Verdict) -> str:
    kept = ", ".join(verdict.witnesses) or "no Host, so that a cut at the end would not show"
    lines = [f"{name}: {verdict.entries} entries, {'the chain holds' if verdict.holds else 'SOMETHING IS WRONG'}"]
    lines += [f"  {problem}" for problem in verdict.problems]
    return "\n".join([*lines, f"  head {verdict.head.hash}", f"  compared with what was told to: {kept}"])


def _entry_text(federation: str, entry: Entry) -> str:
    told = ", ".join(f"{k} {v}" for k, v in entry.body.items() if isinstance(v, (str, int)) and k != "salt")
    return f"{federation} {entry.number}  {entry.time[:19]}  {entry.actor} ({entry.role})  {entry.action}: {told}"


@ruling.command(name="list")
def list_rules(as_json: AsJson = False) -> None:
    """Name every pack with its version and day, and what is wrong with those that cannot be used."""
    packs, problems = open_glassleaf().rule_packs()
    rows = [{"name": p.name, "version": p.version, "as_of": str(p.as_of), "rules": len(p.rules)} for p in packs]
    lines = [f"{p['name']} {p['version']}, as of {p['as_of']}: {p['rules']} rules" for p in rows]
    print_result(
        {"packs": rows, "problems": problems}, "\n".join([*lines, *(f"Problem: {p}" for p in problems)]), as_json
    )


@ruling.command(name="check")
def check_rules(
    file: Annotated[Path, typer.Argument(help="A rule pack (docs/rules.md).")], as_json: AsJson = False
) -> None:
    """Say whether a pack can be used; every problem with its line."""
    pack = read_rule_pack(file)
    print_result(
        {"name": pack.name, "rules": len(pack.rules)}, f"{file}: {pack.name}, {len(pack.rules)} rules, usable.", as_json
    )


@ruling.command(name="add")
def add_rules(
    file: Annotated[Path, typer.Argument(help="A rule pack (docs/rules.md).")], as_json: AsJson = False
) -> None:
    """Apply a pack of one's own from now on."""
    pack = open_glassleaf().add_rule_pack(file)
    print_result({"name": pack.name, "rules": len(pack.rules)}, f"{pack.name} applies from now on.", as_json)


def disparity(
    model: ModelId,
    feature: Annotated[str, typer.Argument(help="A feature of any party.")],
    cutoff: Annotated[float, typer.Option(help="Decline at or above this probability.")] = 0.5,
    bits: Bits = DisparityRequest.key_bits,
    as_json: AsJson = False,
) -> None:
    """Measure decisions by the groups of a feature, encrypted where a Host holds it; kept for findings and reports."""
    glassleaf = open_glassleaf()
    done = watched(
        glassleaf.start_disparity(DisparityRequest(glassleaf.model(model).id, feature, cutoff, key_bits=bits))
    )
    lines = [f"{feature} ({done.party}), {done.n:,} records, cut-off {cutoff:.0%}:"]
    for outcome in done.groups:
        rates = "  ".join(f"{name} {_share(rate)}" for name, rate in outcome.rates.items())
        lines.append(f"  {outcome.group.kind} {outcome.group.name}, n={outcome.group.n:,}: {rates}")
    lines += [f"  {gap.measure}: ratio {_share(gap.ratio)}, difference {_share(gap.difference)}" for gap in done.gaps]
    print_result(asdict(done), "\n".join(lines if done.groups else [*lines, "  no two groups of 20 records"]), as_json)
    glassleaf.close()


def proxies(
    model: ModelId,
    attribute: Annotated[str, typer.Argument(help="The protected attribute, of any party.")],
    bits: Bits = ProxyRequest.key_bits,
    as_json: AsJson = False,
) -> None:
    """Measure which features go with an attribute, without moving data; kept for findings and reports."""
    glassleaf = open_glassleaf()
    done = watched(glassleaf.start_proxies(ProxyRequest(glassleaf.model(model).id, attribute, key_bits=bits)))
    lines = [f"{attribute} ({done.party}), {done.n:,} records:"]
    lines += [
        f"  {'found' if a.found else '  –  '}  {a.feature}: Cramér's V {a.v:.3f} [{a.v_low:.3f}, {a.v_high:.3f}]"
        for a in done.features
    ]
    print_result(asdict(done), "\n".join(lines), as_json)
    glassleaf.close()


def _share(rate: Rate) -> str:
    if rate.value is None:
        return "not told"
    return f"{rate.value:.3f}" if rate.low is None else f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]"
