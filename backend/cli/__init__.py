"""The services' verbs for a shell: `glassleaf …` or `python -m backend …`, each with ``--json``."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from backend.errors import GlassleafError, StoreError
from backend.remark import Remark, one_line, reason_of

COMMANDS = {
    "run": "dashboard",
    "demo": "federations",
    "companies": "companies",
    "init": "federations",
    "credit-card": "federations",
    "screen": "screening",
    "train": "training",
    "import": "training",
    "retrain": "retraining",
    "alternatives": "alternatives",
    "federations": "federations",
    "models": "models",
    "policy": "policy",
    "compare-models": "retraining",
    "samples": "scoring",
    "score": "scoring",
    "serve": "server",
    "tokens": "tokens",
    "reasons": "reasons",
    "cohort": "reasons",
    "evaluate": "scoring",
    "compare": "comparison",
    "serve-forest": "comparison",
    "importance": "interpretation",
    "what-if": "interpretation",
    "model-card": "interpretation",
    "disparity": "evidence",
    "proxies": "evidence",
    "elderly": "evidence",
    "given-away": "evidence",
    "validate": "validation",
    "monitor": "monitoring",
    "report": "report",
    "report-details": "details",
    "notice-details": "details",
    "dossier": "dossier",
    "check": "check",
    "host": "host",
    "audit": "audit",
    "person": "person",
    "retention": "person",
    "agreement": "agreement",
    "keys": "keys",
    "backup": "backup",
    "restore": "backup",
    "rules": "rules",
    "attack": "attack",
    "bench": "bench",
}
"""Command → module of this package that holds it, loaded when the command is run or its help is shown."""


class Commands(typer.core.TyperGroup):
    """Loads a command's module when the command is asked for, so that none waits for what others need."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return every command, in the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return one command; None if the name is unknown."""
        if cmd_name not in COMMANDS:
            return None
        command = typer.main.get_command(import_module(f"backend.cli.{COMMANDS[cmd_name]}").app)
        return getattr(command, "commands", {}).get(cmd_name, command)


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Interpretable federated scoring: feature meanings open, decision paths encrypted, one round of messages.",
)


@app.callback(invoke_without_command=True)
def glassleaf(version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False) -> None:
    """Interpretable federated scoring: feature meanings open, decision paths encrypted, one round of messages."""
    if version:
        from backend import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line.

    A user's mistake, and a file or a store that cannot be used, give one sentence in the reader's language and exit status 1.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console without such letters shows question marks
    try:
        app(prog_name="glassleaf")
    except GlassleafError as error:
        _fail(error)
    except OSError as error:
        if error.filename:
            _fail(GlassleafError("file_not_usable", file=error.filename, why=reason_of(error)))
        _fail(GlassleafError("system_error", why=reason_of(error)))
    except _store_errors() as error:
        _fail(StoreError("store_not_usable", why=one_line(str(error.orig))))


def _store_errors() -> tuple[type[Any], ...]:
    """Return what a database raises; nothing if none was opened. Its own words hold no value, the statement may."""
    exceptions = sys.modules.get("sqlalchemy.exc")
    return () if exceptions is None else (exceptions.DBAPIError,)


def _fail(error: GlassleafError) -> NoReturn:
    language = language_of_shell()
    words = Remark("error_line", {"why": error.sentence(language)})
    print(words.sentence(language), file=sys.stderr)  # noqa: T201
    sys.exit(1)


def language_of_shell() -> str:
    """Return the language in which the shell prints errors.

    ``GLASSLEAF_LANGUAGE`` (en or zh) decides; without it the system's ``LC_ALL``, ``LC_MESSAGES`` or ``LANG``; else English.
    """
    for variable in ("GLASSLEAF_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        language = os.environ.get(variable, "")
        if language:
            return "zh" if language.lower().startswith("zh") else "en"
    return "en"
