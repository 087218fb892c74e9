"""`validate`: the suite on a model, with an exit status that a pipeline can stop at."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import (
    AccountFile,
    AsJson,
    Bits,
    ModelId,
    measured_at,
    open_glassleaf,
    print_result,
    save_account,
    watched,
)
from backend.i18n import Catalogue
from backend.services.scoring import cipher_named
from backend.services.validation import (
    OperatorConfig,
    ValidationRequest,
    about_in_words,
    by_day,
    limit_in_words,
    read_config,
    seen_in_words,
    value_in_words,
)

if TYPE_CHECKING:
    from backend.services.validation import Again, Tested, Validation

app = typer.Typer(add_completion=False)
STATUS = {
    "pass": 0,
    "undecided": 0,
    "warn": 0,
    "fail": 3,
    "incomplete": 4,
}  # exit status; 1 = an error, 2 = a wrong command line


@app.command()
def validate(
    model: ModelId,
    challenger: Annotated[str, typer.Option(help="Another model that was tested on the same people.")] = "",
    config: Annotated[
        Path | None, typer.Option(help="A TOML file that tightens the suite or adds to it (docs/validation.md).")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(help="Test records to score, and as many training records (default: all test records)."),
    ] = None,
    cipher: Annotated[
        str,
        typer.Option(help="Of scores and sums: paillier = the fastest that holds the scores; none protects nothing."),
    ] = ValidationRequest.cipher,
    bits: Bits = ValidationRequest.key_bits,
    account: AccountFile = None,
    as_json: AsJson = False,
) -> None:
    """Run 25 tests with thresholds set beforehand; exit status 3 where one fails, 4 where a floor could not be measured."""
    if config is None:
        operator_config = OperatorConfig()
    else:
        operator_config = read_config(config)
    with open_glassleaf() as glassleaf:
        model_ids = []
        for name in (model, challenger):
            model_ids.append(glassleaf.models.get(name).id if name else "")
        if account is not None:
            save_account(account, glassleaf.samples.account(model_ids[0]))
        request = ValidationRequest(
            model_ids[0], model_ids[1], operator_config, samples=samples, cipher=cipher_named(cipher), key_bits=bits
        )
        validation = watched(glassleaf.validation.start(request))
        headline = glassleaf.verdicts.of(validation.model).headline
    print_result(asdict(validation), _text(validation, headline.en), as_json)
    if STATUS[validation.verdict]:
        raise typer.Exit(STATUS[validation.verdict])


def _text(validation: Validation, headline: str) -> str:
    """Return the verdict on the model, then every test."""
    say = Catalogue("en")
    many = {
        "passed": validation.count("pass"),
        "undecided": validation.count("undecided"),
        "warned": validation.count("warn"),
        "failed": validation.count("fail"),
        "missing": validation.count("not_provided"),
        "off": validation.count("off"),
    }
    lines = [
        f"{validation.model}: {headline}",
        say(
            "validation.sentence",
            n=f"{validation.n:,}",
            cutoff=measured_at(validation.cutoff, validation.policy),
            **many,
        ),
    ]
    lines += [f"  {test.verdict.replace('_', ' '):12}  {test.id:17}  {worst(say, test)}" for test in validation.tests]
    lines += [say("validation.switched_off", test=test.id, because=test.because) for test in validation.off]
    if validation.tightened:
        lines.append(say("validation.tightened", listed=", ".join(validation.tightened)))
    if validation.unexamined:
        lines.append(say("validation.unexamined", listed=", ".join(f"{f} ({p})" for p, f in validation.unexamined)))
    lines += answered_before(say, validation.again)
    if validation.without_decisions:
        listed = ", ".join(f"{feature} ({party})" for party, feature in validation.without_decisions)
        lines.append(say("validation.without_decisions", listed=listed))
    return "\n".join(lines)


def answered_before(say: Catalogue, again: Again) -> list[str]:
    """Return a sentence a day on which Hosts gave answers that were taken again."""
    lines = []
    for day, keys in by_day(again).items():
        listed = ", ".join(f"{feature} ({party})" for party, feature in keys)
        lines.append(say("validation.answered", day=day, listed=listed))
    return lines


def worst(say: Catalogue, test: Tested) -> str:
    """Return a test's worst figure with its thresholds, or why there is none."""
    if test.verdict == "off":
        return test.because
    if test.missing:
        return say(f"validation.missing_{test.missing}")
    tested_figure = test.figures[0]
    about = about_in_words(say, tested_figure.figure, tested_figure.figure.feature, tested_figure.figure.party, {})
    value = value_in_words(say, tested_figure.figure, lambda number: f"{number:z.3f}")
    limits = limit_in_words(
        say, tested_figure.figure.measure, tested_figure.sense, tested_figure.warn, tested_figure.fail
    )
    return f"{about}: {value} ({limits}{seen_in_words(say, tested_figure.figure.measure, tested_figure.sense, tested_figure.shows_from)})"
