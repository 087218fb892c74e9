"""A Host's operator in a shell: `host inbox`, `show`, `approve`, `deny`, `withdraw`, `models`, `budget`, `left`, `log`, `drain`,
`disclose`, `run`; `models` lists, packs and unpacks.

On the Host's own folder; on a simulated Host's with `--federation` and `--host`.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.cli.check import print_steps
from backend.cli.dashboard import Address, check_installed, open_streamlit
from backend.cli.output import (
    AsJson,
    Log,
    PassphraseFile,
    check_link,
    check_out,
    check_port,
    day_of,
    in_json,
    open_glassleaf,
    print_result,
    save,
    say,
    text_of,
)
from backend.cli.packs import (
    PackFile,
    PackOut,
    Receiver,
    Sender,
    home_keys_text,
    pack_key,
    packed_text,
    read_pack_file,
)
from backend.errors import ParameterError
from backend.i18n import Catalogue, Text, counted
from backend.remark import Remark

if TYPE_CHECKING:
    from backend.services.host_operator import HostOperator, OwnSplit, Request
    from backend.services.request_facts import Fact

VARIABLE = "GLASSLEAF_HOST"
MOVED = "This model has moved to another home of this Host."
NOTHING_WAITS = Text("Nothing waits.", "没有待批的请求。")
STATES = {
    "waiting": Text("waiting", "待批"),
    "granted": Text("granted", "已批准"),
    "denied": Text("denied", "已拒绝"),
    "withdrawn": Text("withdrawn", "已撤回"),
    "expired": Text("expired", "已到期"),
}
TERMS = Text("structure or terms", "结构或条款")
MAIN = Path(__file__).resolve().parents[2] / "app" / "host.py"
Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        "--config",
        help=f"The Host's folder, or the host.toml in it (default: what {VARIABLE} names, else the current folder).",
    ),
]
Federation = Annotated[str, typer.Option(help="Of a simulated Host: its federation.")]
Host = Annotated[str, typer.Option(help="Of a simulated Host: its name.")]
Number = Annotated[int, typer.Argument(metavar="N", help="The request's number, as the inbox lists it.", min=1)]
Because = Annotated[str, typer.Option(help="Why; the Guest reads it.")]
Person = Annotated[str, typer.Option(metavar="ID", help="The person's id, as the Host's table holds it.")]
app = typer.Typer(
    add_completion=False,
    name="host",
    no_args_is_help=True,
    help="At a Host: check, serve; what waits for its operator, models with its own splits, budgets, what left about a person, its log.",
)
log = typer.Typer(no_args_is_help=True, help="The Host's own log: verify, export.")
app.add_typer(log, name="log")
models = typer.Typer(
    no_args_is_help=True,
    help="Models of which this Host keeps a part: list, and move one to another home of this Host.",
)
app.add_typer(models, name="models")


@contextmanager
def opened(folder: Folder = None, federation: Federation = "", host: Host = "") -> Iterator[HostOperator]:
    """The Host that the options name; raises ParameterError if they name both or half of one."""
    from backend.services.host_operator import own_host
    from backend.services.system_user import system_user

    if bool(federation) != bool(host) or (folder and federation):
        raise ParameterError("host_folder_or_federation")
    if federation:
        with open_glassleaf() as glassleaf:
            operator = glassleaf.host_operator(glassleaf.federations.get(federation).name, host)
            try:
                yield operator
            finally:
                operator.close()
    else:
        operator = own_host(_place(folder), system_user())
        try:
            yield operator
        finally:
            operator.close()


def _place(folder: Path | None) -> Path:
    return folder or Path(os.environ.get(VARIABLE, "").strip() or ".")


def _toml(folder: Path | None) -> Path:
    from backend.services.host_operator import host_files

    return host_files(_place(folder))[1]


def at_host(run: Callable[..., None]) -> Callable[..., None]:
    """Return the command `run(operator, …, as_json)`, with the options of :func:`opened` in the place of the operator."""
    unimported = {"HostOperator": Any}
    of_opened = inspect.signature(opened, eval_str=True, locals=unimported).parameters.values()
    _, *own_parameters, as_json = inspect.signature(run, eval_str=True, locals=unimported).parameters.values()
    parameters = [*own_parameters, *of_opened, as_json]

    @wraps(run)
    def command(folder: Path | None, federation: str, host: str, **arguments: Any) -> None:
        with opened(folder, federation, host) as operator:
            run(operator, **arguments)

    vars(command)["__signature__"] = inspect.Signature(parameters)  # PEP 362
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


@app.command()
@at_host
def inbox(
    operator: HostOperator,
    everything: Annotated[bool, typer.Option("--all", help="Also what was decided.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the requests that wait for a decision, newest first."""
    from backend.cli import language_of_shell

    requests = operator.requests(waiting=not everything)
    language = language_of_shell()
    lines = [_line(request, language) for request in requests]
    print_result(
        [_request_json(request) for request in requests], lines or NOTHING_WAITS.in_language(language), as_json
    )


@app.command()
@at_host
def show(operator: HostOperator, number: Number, as_json: AsJson = False) -> None:
    """Show one request: who asks for what, what it costs, and the Host's own splits with their thresholds."""
    from backend.cli import language_of_shell

    request = operator.request(number)
    print_result(_request_json(request), _details(request, language_of_shell()), as_json)


@app.command()
@at_host
def approve(
    operator: HostOperator,
    number: Number,
    until: Annotated[str, typer.Option(metavar="DATE", help="Last day on which it counts (UTC), e.g. 2027-06-30.")],
    per_day: Annotated[int, typer.Option(metavar="N", help="People, or trainings, a day (UTC).", min=1)],
    scores_until: Annotated[
        str, typer.Option(metavar="DATE", help="Of a training: also allow scores with its model, up to this day.")
    ] = "",
    scores_per_day: Annotated[int, typer.Option(metavar="N", help="People a day for these scores.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Allow a request, up to a day and a volume; signed with the Host's key."""
    from backend.cli import language_of_shell

    if bool(scores_until) != bool(scores_per_day):
        raise ParameterError("scores_need_both")
    if scores_until:
        scores = (day_of(scores_until), scores_per_day)
    else:
        scores = None
    request = operator.approve(number, day_of(until), per_day, scores)
    print_result(
        _request_json(request),
        f"Approved until {until}, {per_day:,} a day.\n{_line(request, language_of_shell())}",
        as_json,
    )


@app.command()
@at_host
def deny(operator: HostOperator, number: Number, because: Because, as_json: AsJson = False) -> None:
    """Refuse a request that waits."""
    from backend.cli import language_of_shell

    request = operator.deny(number, because)
    print_result(_request_json(request), f"Denied.\n{_line(request, language_of_shell())}", as_json)


@app.command()
@at_host
def withdraw(operator: HostOperator, number: Number, because: Because, as_json: AsJson = False) -> None:
    """End an approval at once, for work that is under way, too."""
    from backend.cli import language_of_shell

    request = operator.withdraw(number, because)
    print_result(_request_json(request), f"Withdrawn.\n{_line(request, language_of_shell())}", as_json)


@models.command("list")
@at_host
def list_models(operator: HostOperator, as_json: AsJson = False) -> None:
    """List the models of which this Host keeps a part, with its own splits."""
    from backend.cli import language_of_shell

    hosted = operator.models()
    lines: list[str] = []
    for model in hosted:
        purposes = ", ".join(model.purposes) or "nothing approved"
        lines.append(
            f"{model.id}  of {model.guest}, {counted(model.trees, 'trees')}, {model.capacity:.1f} bits at most: {purposes}"
        )
        if model.sealed is not None:
            lines.append(f"  {model.sealed.sentence(language_of_shell())}")
        lines.append(f"  in an agreement's `models`, to need no asking: {model.agreed_name}")
        lines += [f"  {_split(split)}" for split in model.splits]
    print_result([asdict(model) for model in hosted], lines or "No model yet.", as_json)


@models.command()
@at_host
def address(operator: HostOperator, as_json: AsJson = False) -> None:
    """Print this home's public keys: one that packs for it are sealed with, and one that its own packs are signed with."""
    keys = operator.home_keys()
    print_result(asdict(keys), home_keys_text(keys), as_json)


@models.command()
@at_host
def pack(
    operator: HostOperator,
    model: Annotated[str, typer.Argument(help="The model's id.")],
    out: PackOut,
    receiver: Receiver = "",
    passphrase_file: PassphraseFile = None,
    stay: Annotated[
        bool, typer.Option("--stay", help="Leave what is allowed about the model in force here, too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write this Host's half of a model with its approvals and accounts into one sealed file; then nothing is allowed about it here."""
    check_out(out)
    file = operator.pack(model, pack_key(receiver, passphrase_file))
    save(out, file)
    # Only once the file is on the disk.
    ended = 0 if stay else operator.end_approvals(model, MOVED)
    keys = operator.home_keys()
    lines = packed_text(out, keys)
    if ended:
        lines.append(f"Approvals that ended here: {ended}. They hold where the half is unpacked.")
    print_result({"model": model, "file": str(out), "sender": keys.signing, "ended": ended}, lines, as_json)


@models.command()
@at_host
def unpack(
    operator: HostOperator,
    file: PackFile,
    sender: Sender = "",
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Store this Host's half of a model that another home of this Host packed."""
    blob, passphrase = read_pack_file(file, passphrase_file)
    unpacked = operator.unpack(blob, passphrase, sender)
    lines = [f"{unpacked.model} of {unpacked.guest} is here; a Host that runs answers about it at once."]
    if unpacked.approved:
        lines.append(f"Approved as before: {', '.join(unpacked.approved)}.")
    if unpacked.to_be_asked_again:
        lines.append(
            f"{unpacked.to_be_asked_again} approvals were signed with another key: the Guest asks again, and you decide."
        )
    print_result(asdict(unpacked), lines, as_json)


@app.command()
@at_host
def budget(operator: HostOperator, person: Person, as_json: AsJson = False) -> None:
    """Show how often this Host has answered about a person, and how much more it may."""
    person_budget = operator.budget(person)
    lines = [
        f"{counted(sum(answer.times for answer in person_budget.answers), 'answers')} within {counted(person_budget.limits.days, 'days')}, "
        f"{person_budget.told:.1f} bits at most"
    ]
    lines += [
        f"  {answer.day}  {answer.kind} to {answer.guest}, {answer.times} times, {answer.bits:.1f} bits at most"
        for answer in person_budget.answers
    ]
    for kind, more in person_budget.left.items():
        allowance = "no limit" if more < 0 else f"{more} more"
        lines.append(f"  {kind}: {allowance}")
    print_result(asdict(person_budget), lines, as_json)


@app.command()
@at_host
def left(operator: HostOperator, person: Person, as_json: AsJson = False) -> None:
    """Show what left this Host about a person and what it keeps, for a request for access."""
    holdings = operator.left(person)
    lines = []
    for holding in holdings:
        lines.append(f"{holding.table}: {len(holding.about) or 'nothing'} ({holding.note})")
        lines += [f"  {', '.join(f'{name} {value}' for name, value in row.items())}" for row in holding.about]
    print_result([asdict(holding) for holding in holdings], lines, as_json)


@log.command()
@at_host
def verify(operator: HostOperator, as_json: AsJson = False) -> None:
    """Check the chain of the Host's own log; exit status 1 if something is wrong."""
    verdict = operator.verify_log()
    if verdict.holds:
        outcome = "the chain holds"
    else:
        outcome = "SOMETHING IS WRONG"
    lines = [f"{counted(verdict.entries, 'entries')}, {outcome}", *(f"  {problem}" for problem in verdict.problems)]
    lines.append("  nobody else keeps its heads, so that a cut would not show; keep an export elsewhere")
    print_result({**asdict(verdict), "holds": verdict.holds}, lines, as_json, ok=verdict.holds)


@log.command()
@at_host
def export(
    operator: HostOperator,
    out: Annotated[Path, typer.Option(help="File to write: a line of JSON an entry or receipt.")],
    as_json: AsJson = False,
) -> None:
    """Write the whole log with all receipts, for `glassleaf audit reconcile`; the export is an entry itself."""
    text = operator.export()
    save(out, text.encode())
    lines = text.count("\n")
    print_result({"file": str(out), "lines": lines}, f"{lines} lines written to {out}.", as_json)


@app.command()
@at_host
def sample(
    operator: HostOperator,
    out: Annotated[
        Path, typer.Option(help="File to write: this Host's half, with values of people, for the auditor alone.")
    ],
    others: Annotated[
        list[Path] | None,
        typer.Option("--also", help="The half of another Host of the chain: this Host's of the same people, too."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write this Host's half of its sample of answers, for `glassleaf audit re-perform`; logged."""
    text = operator.sample([text_of(file) for file in others or []])
    save(out, text.encode())
    rows = len(json.loads(text)["rows"])
    print_result(
        {"file": str(out), "rows": rows}, f"{counted(rows, 'people')} of the sample written to {out}.", as_json
    )


@app.command()
@at_host
def drain(
    operator: HostOperator,
    end: Annotated[bool, typer.Option("--end", help="Take on work again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Have the Host end what is open and take on nothing new, before it is stopped; holds over restarts until `--end`."""
    changed = operator.drain(end=end)
    draining = operator.draining
    if draining:
        outcome = "takes on nothing new; what is open goes on"
    else:
        outcome = "takes on work"
    print_result({"draining": draining, "changed": changed}, f"The Host {outcome}.", as_json)


@app.command()
def serve(
    folder: Folder = None,
    log: Log = "text",
) -> None:
    """Answer the Guest over the link until Ctrl-C or SIGTERM; then open work gets 30 s to end. Needs the extra `link`."""
    check_link()
    from backend.ops.logs import log_as_json
    from backend.services.host_service import host_service

    if json_logs := in_json(log):
        log_as_json()
    service = host_service(_toml(folder))
    service.stop_on_signals()
    with service.database.served_alone():
        if not json_logs:
            if service.operation.port:
                ports = f", /live, /ready and /metrics on port {service.operation.port}"
            else:
                ports = ""
            say(f"{service.config.party} answers over its link{ports} (Ctrl-C ends it).")
        service.serve()


@app.command()
def check(
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Check records, store, keys, agreement, way out, handshake, clock and speed, and say how to fix what is wrong; then exit status 1."""
    check_link()
    from backend.services.host_check import check_host

    print_steps(check_host(_toml(folder)), as_json)


@app.command()
def disclose(
    folder: Folder = None,
    out: Annotated[Path | None, typer.Option(help="File to write (default: PARTY.toml).")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the one file that this Host hands out: its public keys, names and meanings of its columns, no value."""
    from backend.link.config import load_config
    from backend.link.draft import disclosure

    config = load_config(_toml(folder))
    file = out or Path(f"{config.party}.toml")
    check_out(file)
    save(file, disclosure(config).encode())
    print_result(
        {"file": str(file)},
        f"Hand out {file}: public keys, and names and meanings of {counted(len(config.features()), 'features')}.",
        as_json,
    )


@app.command()
def run(
    folder: Folder = None,
    port: Annotated[int, typer.Option(help="Port of the console.", min=1, max=65535)] = 8601,
    address: Address = "localhost",
) -> None:
    """Open the Host's own console in the browser (needs Streamlit)."""
    with opened(folder, "", "") as operator:
        name = operator.name
    check_installed()
    check_port(address, port)
    os.environ[VARIABLE] = str(_place(folder).resolve())
    say(f"The console of {name} opens on http://{address}:{port} (Ctrl-C ends it).")
    open_streamlit(MAIN, address, port)


def _request_json(request: Request) -> dict[str, Any]:
    return {
        **asdict(request.approval),
        "expired": request.expired,
        "used_today": request.used_today,
        "splits": [asdict(s) for s in request.splits],
        "named": request.naming_share,
        "guest_title": asdict(request.guest),
        "facts": [_fact_json(fact) for fact in request.facts],
    }


def _fact_json(fact: Fact) -> dict[str, Any]:
    value = fact.value
    return {"label": asdict(fact.label), "value": asdict(value) if isinstance(value, Text) else value.plain()}


def _line(request: Request, language: str) -> str:
    """Return a request on one line: number, state, who asks for what."""
    approval = request.approval
    state = "expired" if request.expired else approval.state
    asks = Remark(
        "request_line",
        {
            "number": approval.number,
            "state": STATES[state],
            "guest": request.guest,
            "purpose": Catalogue(language).named("host.purpose_", approval.purpose),
            "name": approval.name,
            "since": approval.asked[:16].replace("T", " "),
        },
    )
    line = asks.sentence(language)
    if approval.until:
        values = {"until": approval.until, "used": request.used_today, "per_day": approval.per_day}
        line += Remark("request_used", values).sentence(language)
    return line


def _details(request: Request, language: str) -> list[str]:
    approval = request.approval
    about = request.approval.about
    lines = [_line(request, language)]
    if approval.decided:
        decided = {
            "person": approval.person,
            "time": approval.decided[:16].replace("T", " "),
            "reason": approval.reason,
        }
        line = Remark("request_decided", decided).sentence(language)
        lines.append(f"  {line}")
    lines += _facts(request, language)
    lines.append(f"  {TERMS.in_language(language)}: {approval.subject[:16]}…")
    # The half of an import is shown as its splits.
    for name, value in about.items():
        if name != "partial_model":
            if isinstance(value, list | tuple):
                text = ", ".join(map(str, value))
            else:
                text = value
            lines.append(f"    {name}: {'–' if text == '' else text}")
    lines += [f"  {_split(split)}" for split in request.splits]
    return lines


def _facts(request: Request, language: str) -> list[str]:
    """Return what the operator reads before deciding, a line a fact; the same as in the console."""
    lines = []
    for fact in request.facts:
        label = fact.label.in_language(language)
        value = fact.value
        if isinstance(value, Text):
            sentence = value.in_language(language)
        else:
            sentence = value.sentence(language)
        lines.append(f"  {label}: {sentence}")
    return lines


def _split(split: OwnSplit) -> str:
    rule = split.rule
    if split.feature:
        meaning = f" ({split.feature.meaning})"
    else:
        meaning = ""
    if rule.threshold is None:
        how = f"{', '.join(sorted(rule.left_categories))} | {', '.join(sorted(rule.right_categories))}"
    else:
        how = f"{'≥' if rule.above else '<'} {rule.threshold:.10g}"
    return f"tree {split.tree + 1}, node {split.node}: {split.name}{meaning} {how}"
