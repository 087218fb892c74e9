"""Measurements of this machine from a shell: `bench cipher`; they come with a clone, not with the installed package."""

from __future__ import annotations

from typing import Annotated

import typer

from backend.cli.output import AsJson, print_result
from backend.errors import ParameterError
from backend.services.training import KEY_SIZES

app = typer.Typer(add_completion=False, name="bench", no_args_is_help=True, help="Measure on this machine.")


@app.command()
def cipher(
    bits: Annotated[int, typer.Option(help="Paillier key size; 0 = 2048 and 3072.")] = 0,
    quick: Annotated[bool, typer.Option(help="A minute instead of some: fewer repetitions, a smaller model.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure every cipher here, and the peers that are installed, in one run."""
    if bits and bits not in KEY_SIZES:
        raise ParameterError("unknown_choice", option="--bits", value=bits, choices=KEY_SIZES)
    try:
        from bench import tables
        from bench.cipher import measure
    except ModuleNotFoundError as missing:
        raise ParameterError("benchmarks_not_installed") from missing
    measured = measure(bits=(bits,) if bits else (2048, 3072), quick=quick)
    print_result(measured, tables.cipher(measured), as_json)


@app.callback()
def bench() -> None:
    """Measure on this machine."""
