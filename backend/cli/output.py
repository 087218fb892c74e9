"""Common parts of all commands: arguments, the services, watching work and printing results."""

from __future__ import annotations

import csv
import errno
import math
import os
import socket
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from backend.errors import GlassleafError, ParameterError, SecurityError
from backend.i18n import Catalogue, Text
from backend.jobs.eta import SOON, rounded
from backend.ops.atomic_file import write_whole
from backend.policy.bands import line_kind
from backend.remark import reason_of
from backend.results import DEMO
from backend.services import Glassleaf
from backend.services.json_text import json_text

if TYPE_CHECKING:
    from backend.crypto.workers import Workers
    from backend.jobs import Job
    from backend.trees.metrics import Metrics

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
FederationName = Annotated[str, typer.Argument(help="A federation's name.")]
Federation = Annotated[str, typer.Argument(help="A federation's folder, file or name.")]
ModelId = Annotated[str, typer.Argument(help="Model id, the beginning of one, or 'latest'.")]
Bits = Annotated[int, typer.Option(help="Paillier key size.")]
Cutoff = Annotated[
    float | None, typer.Option(help="Another line than the policy's: a what-if (default: the policy's line).")
]
WhatIf = Annotated[
    float | None, typer.Option(help="Say of each person what another cut-off would decide; it is no decision.")
]
Log = Annotated[str, typer.Option(help="How events are logged: text, or json (a line an event).")]
AccountFile = Annotated[
    Path | None,
    typer.Option(
        "--account",
        help="JSON file to write how the table was read to: values, ranges, codes and unread cells by column.",
    ),
]
Encoding = Annotated[str, typer.Option(help="Encoding of a CSV that is not UTF-8: utf-16, gbk or latin-1.")]
Decimal = Annotated[
    str, typer.Option(help="What decimals are written with, where the file leaves it open: point or comma.")
]
Ids = Annotated[
    str, typer.Option(help="as-written: ten or more people are scored whose ids the Hosts are not known to have.")
]
Sheet = Annotated[str, typer.Option(help="Which sheet of a workbook (default: the only one with cells).")]
Header = Annotated[
    str,
    typer.Option(help="Number of the row with the columns' names, if a title stands above it (default: the first)."),
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        help="File that holds the passphrase as its first line, readable by you alone (default: it is asked for)."
    ),
]
REFUSED = (errno.EADDRINUSE, errno.EACCES)
MAX_TEXT_FILE = 4 << 20  # bytes of a form that a user fills in
MAX_PASSPHRASE_FILE = 4096  # bytes
TICK_SECONDS = 2.0  # seconds between two lines of progress
SHORT_TICK = 0.2  # seconds between two looks at work whose every step is printed
T = TypeVar("T")


Jobs = Annotated[int, typer.Option(help="Tasks of long work at a time; 0 = one a core of this machine.")]
Backend = Annotated[
    str, typer.Option(help="joblib backend of the workers: loky, dask or ray. Simulated Hosts use them, too.")
]
Scheduler = Annotated[str, typer.Option(help="Address of the Dask scheduler, e.g. tcp://10.0.0.5:8786.")]


BACKENDS = ("loky", "dask", "ray")


def workers_of(jobs: int, backend: str, scheduler: str) -> Workers:
    """Return who does the long work of a command."""
    from backend.services.scoring import Workers, cores

    if jobs < 0 or (scheduler and backend != "dask"):
        raise ParameterError("workers_option_wrong")
    if backend not in BACKENDS:
        raise ParameterError("unknown_choice", option="--backend", value=backend, choices=BACKENDS)
    return Workers(jobs or cores(), backend, scheduler).connected()


def open_glassleaf(workers: Workers | None = None) -> Glassleaf:
    """Return the services, without obfuscators made in the background: they help a dashboard, not a single command."""
    return Glassleaf(pools=False, workers=workers)


def chosen_federation(glassleaf: Glassleaf, text: str) -> str:
    """Return the name of a federation that was given as a folder, as a name, or as the demo."""
    if Path(text).exists():
        return glassleaf.federations.add(Path(text)).name
    if text == DEMO:
        return glassleaf.training.prepare_demo()
    return glassleaf.federations.get(text).name


def quality_text(m: Metrics) -> str:
    """Return every figure that applies to the task."""
    figures = {"AUC": m.auc, "KS": m.ks, "log-loss": m.log_loss, "accuracy": m.accuracy, "RMSE": m.rmse, "R²": m.r2}
    figure_texts = ", ".join(f"{name} {value:.4f}" for name, value in figures.items() if not math.isnan(value))
    return f"{m.part} n={m.n:,} {figure_texts}"


def in_utc(time: str) -> str:
    """Return a stored time in whole seconds, with its zone."""
    return f"{time[:19]} UTC"


def say(text: str) -> None:
    """Print a text that is not part of the result."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def print_progress(job: Job[Any]) -> None:
    """Print how far a job is, if it counts its steps."""
    if job.state == "running" and job.total:
        whose = f" at {job.party}" if job.party else ""
        seconds_left = job.eta.left()
        if seconds_left is None:
            estimate = ""
        else:
            estimate = f", {'less than' if seconds_left < SOON else 'about'} {rounded(seconds_left):.0f} s left"
        say(f"{job.stage}{whose}: {job.done:,} of {job.total:,}, {job.seconds:.0f} s{estimate}")


def watched(job: Job[T], on_tick: Callable[[Job[T]], None] = print_progress, tick: float = TICK_SECONDS) -> T:
    """Return a job's result, once it has ended; meanwhile `on_tick` is called every `tick` seconds, and Ctrl-C cancels the job.

    Raises
    ------
    GlassleafError
        What stopped the job; Cancelled after Ctrl-C.
    """
    from backend.cli import language_of_shell

    announced = None
    try:
        while job.state == "running":
            job.wait(tick)
            if job.waits is None:
                on_tick(job)
            elif job.waits != announced:
                say(job.waits.why.sentence(language_of_shell()))
            announced = job.waits
    except KeyboardInterrupt:
        job.cancel()
    return job.get()


def measured_at(cutoff: float, version: int | None) -> str:
    """Return a cut-off that something was measured at, and whose line it is."""
    return Catalogue("en")(f"policy.at_{line_kind(version)}", cutoff=f"{cutoff:.1%}", version=version)


def print_result(document: Any, text: str | Iterable[str], as_json: bool, *, ok: bool = True) -> None:
    """Print a result in the form that was asked for, as text or its lines; end with status 1 if it is not `ok`.

    In JSON a figure that does not apply is null (RFC 8259 knows no NaN).
    """
    output = text if isinstance(text, str) else "\n".join(text)
    print(json_text(document, indent=1, ascii_only=True) if as_json else output)  # noqa: T201
    if not ok:
        raise typer.Exit(1)


def check_out(out: Path) -> None:
    """Raise GlassleafError if a file cannot be written; called before anything is asked that is counted."""
    folder = out.parent
    if out.is_dir() or not folder.is_dir() or not os.access(out if out.exists() else folder, os.W_OK):
        raise GlassleafError("output_not_writable", file=out)


def save_account(file: Path, account: dict[str, Any]) -> None:
    """Write how a table was read."""
    save(file, json_text(account).encode())


def day_of(day_text: str) -> date:
    """Return a day from an option; raise ParameterError if it is not a day."""
    try:
        return date.fromisoformat(day_text)
    except ValueError:
        raise ParameterError("not_a_date", text=day_text) from None


def save(out: Path, blob: bytes) -> None:
    """Write a file; raises GlassleafError if that cannot be done."""
    check_out(out)
    try:
        if out.exists() and not out.is_file():  # a pipe
            out.write_bytes(blob)
        else:
            write_whole(out, blob)
    except OSError as error:
        raise GlassleafError("file_not_written", file=out, why=reason_of(error)) from error


def in_json(log: str) -> bool:
    """Return whether events are logged as JSON; raises ParameterError if `--log` is neither text nor json."""
    if log not in ("text", "json"):
        raise ParameterError("unknown_choice", option="--log", value=log, choices=("text", "json"))
    return log == "json"


def check_extra(what: Text, extra: str, names: Sequence[str]) -> None:
    """Raise GlassleafError with what to install if packages of an extra are missing."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise GlassleafError("extra_not_installed", what=what, packages=tuple(missing), extra=extra)


def check_link() -> None:
    """Raise GlassleafError if the packages of links between companies are not here."""
    check_extra(
        Text("Links between companies need", "公司之间的连接需要"),
        "link",
        ("grpc", "joserfc", "prometheus_client", "tenacity"),
    )


def check_port(address: str, port: int) -> None:
    """Raise ParameterError if a server could not listen there now."""
    try:
        places = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        failed = [error for family, *_, place in places if (error := _bound(family, place))]
    except OSError as error:
        places = []
        failed = [error]
    # of localhost, a machine may have one address of two
    if refused := [error for error in failed if len(failed) >= len(places) or error.errno in REFUSED]:
        raise ParameterError("port_not_free", port=port, address=address, why=reason_of(refused[0]))


def _bound(family: int, place: Any) -> OSError | None:
    """Return what a server would meet that listens there; None if nothing."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if os.name == "posix":  # as servers do: a connection that has just ended does not count
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        return error
    return None


def text_of(file: Path) -> str:
    """Return a file's text; raises ParameterError if it cannot be read, or is too long."""
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_TEXT_FILE + 1)
        if len(data) > MAX_TEXT_FILE:
            raise ParameterError("text_file_too_large", file=file, limit=MAX_TEXT_FILE)
        return data.decode("utf-8")
    except OSError as error:
        raise ParameterError("file_not_read", file=file, why=reason_of(error)) from None
    except UnicodeDecodeError as error:
        raise ParameterError("file_not_utf8", file=file, byte=error.start) from None


def split_list(text: str) -> tuple[str, ...]:
    """Return the parts of a list that is written as a line of CSV; a part with a comma is quoted.

    Raises
    ------
    ParameterError
        A quotation mark that never closes.
    """
    try:
        parts = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise ParameterError("not_a_list", text=text, why=str(error)) from None
    return tuple(part.strip() for part in parts if part.strip())


def read_passphrase(file: Path | None, new: bool) -> str:
    """Return a passphrase from a file that its owner alone can read, or typed in: an argument could be read in the list of processes."""
    if file is None:
        return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=new, err=True))
    if os.name == "posix" and stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise SecurityError("passphrase_file_open", file=file)
    with file.open("rb") as opened:
        lines = opened.read(MAX_PASSPHRASE_FILE).splitlines()
    try:
        return lines[0].decode() if lines else ""
    except UnicodeDecodeError:
        raise ParameterError("passphrase_not_utf8", file=file) from None
