"""The service's verbs for a shell: `python -m backend …`, each with ``--json``."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from backend import __version__
from backend.cli import dashboard, evidence, governance, interpretation, models, reasons, retraining, scoring
from backend.cli.output import AsJson, print_result
from backend.errors import GlassleafError, ParameterError
from backend.protocols.training.parameters import KEY_SIZES

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Interpretable federated scoring: feature meanings open, decision paths encrypted, one round of messages.",
)
measuring = typer.Typer(no_args_is_help=True, help="Measure on this machine.")
app.command()(dashboard.run)
for commands in (models, scoring, interpretation, reasons, governance, evidence, retraining):
    commands.register(app)
app.add_typer(measuring, name="bench")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def version(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before every command."""


@measuring.command(name="cipher")
def bench_cipher(
    bits: Annotated[int, typer.Option(help="Paillier key size; 0 = 2048 and 3072.")] = 0,
    quick: Annotated[bool, typer.Option(help="A minute instead of some: fewer repetitions, a smaller model.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure every cipher here, and the peers that are installed, in one run."""
    if find_spec("bench") is None:
        raise ParameterError(
            "The measurements are not installed with the command. Clone the repository and run "
            "`python -m backend bench cipher` or `make bench` there."
        )
    from bench.cipher import describe, measure  # noqa: PLC0415 (needed by this command alone)

    if bits and bits not in KEY_SIZES:
        raise ParameterError(f"--bits is {bits}; choose one of {', '.join(map(str, KEY_SIZES))}.")
    found = measure(bits=(bits,) if bits else (2048, 3072), quick=quick)
    print_result(found, describe(found), as_json)


def main() -> None:
    """Run the command line; a user's mistake gives one clear sentence and exit status 1."""
    try:
        app(prog_name="glassleaf")
    except GlassleafError as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(1)
