"""`train`: one command for all algorithms, whose options are the fields of their parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_type_hints

import typer

from backend.errors import ParameterError
from backend.services.training import ALGORITHMS, Parameters

DEFAULT = "secureboost"
FLAGS = {"reg_lambda": "--lambda", "key_bits": "--bits"}
HELP = {
    "trees": "Trees, or rounds of one tree a class.",
    "depth": "Most splits on a path.",
    "learning_rate": "What a tree's leaves are multiplied by.",
    "bins": "Most bins a feature.",
    "reg_lambda": "Pulls leaf weights to 0.",
    "gamma": "Least gain of a split (half of XGBoost's).",
    "min_child_weight": "Least sum of hessians in a child.",
    "min_gain": "Least fall of the impurity by a split.",
    "min_samples_split": "Fewest training rows in a node that is split.",
    "min_samples_leaf": "Fewest training rows in a child.",
    "criterion": "Impurity: gini or entropy.",
    "aggregation": "Over the trees: mean, or median (decrypts every tree's value).",
    "shuffle_sides": "Hosts hide which side of a split holds the lower values; the direction of their features is then unknown.",
    "seed": "Draws the 60/20/20 split, rows and features.",
    "early_stopping": "Rounds without improvement; 0 = off.",
    "cipher": "rlwe (lattice); paillier; paillier-short; or none: plaintext to simulated Hosts, protects nothing.",
    "key_bits": "Paillier key size: 2048, 3072 or 4096; RLWE has its own.",
    "score_bits": "Scores are multiples of 2**-score_bits.",
    "alignment": "How ids are compared: dh, or bloom (docs/alignment.md).",
    "complete": "Grow the first tree from the Guest's features alone.",
    "label_bound": "Bits that a set of records shown to a Host may tell about labels at most; 0 = off.",
    "min_node": "Fewest training records in a node that Hosts are told of; each Host may insist on more.",
    "row_sample": "Share of the training rows a tree uses.",
    "column_sample": "Share of the features a tree uses; forest: a split, and 0 = the square root of their number.",
    "goss_top": "Gradient-based sampling: share of rows with the largest gradients that is kept.",
    "goss_other": "Gradient-based sampling: share drawn from the other rows.",
    "monotone": "Keep to the dictionary's expected directions.",
    "constraints": "Directions that predictions keep to, by feature of any party: limit=-1,delay=+1 (0 = free; XGBoost's meaning).",
    "class_weight": "none, or balanced: every class weighs the same.",
    "weights": "Column of the Guest's file with each record's weight, above 0; it leaves the Guest in encrypted sums alone.",
    "map": "How values are desensitised: global, adj or local (docs/opboost.md).",
    "mechanism": "exponential, or laplace (bounded, discrete).",
    "epsilon": "Privacy budget for a step of distance 1.",
    "theta": "Levels a partition.",
    "alpha": "How much larger the budget between partitions is.",
    "levels": "Levels that values are mapped to.",
}


def choose(algorithm: str, options: Mapping[str, Any]) -> Parameters:
    """Parameters of an algorithm from the options that were given (None = not given).

    Raises
    ------
    ParameterError
        The algorithm is unknown, it or its cipher does not have an option, or a value is out of range.
    """
    if algorithm not in ALGORITHMS:
        raise ParameterError("unknown_choice", option="--algorithm", value=algorithm, choices=tuple(ALGORITHMS))
    set_options = {name: value for name, value in options.items() if value is not None}
    parameter_names = {f.name for f in fields(ALGORITHMS[algorithm])}
    if algorithm == "opboost" and "constraints" in set_options:
        raise ParameterError("opboost_takes_no_constraints")
    strange = [_flag(name) for name in set_options if name not in parameter_names]
    if strange:
        raise ParameterError("options_of_other_algorithm", options=tuple(strange), algorithm=algorithm)
    parameters = ALGORITHMS[algorithm](**set_options)
    if "key_bits" in set_options and parameters.as_dict()["cipher"] == "rlwe":
        raise ParameterError("bits_of_paillier")
    return parameters


def with_options(run: Callable[..., None]) -> Callable[..., None]:
    """Return the command `run(federation, algorithm, hosts, exclude, as_json, **given)` with an option for every parameter."""
    options = []
    for name, annotation in _options().items():
        options.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation))

    def command(**arguments: Any) -> None:
        run(**arguments)

    run_parameters = list(inspect.signature(run, eval_str=True).parameters.values())
    fixed = [p for p in run_parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
    command.__doc__ = run.__doc__
    command.__name__ = run.__name__
    vars(command)["__signature__"] = inspect.Signature([*fixed, *options])  # PEP 362
    command.__annotations__ = {p.name: p.annotation for p in (*fixed, *options)}
    return command


def _options() -> dict[str, Any]:
    """Field → what typer needs to know of it."""
    owners: dict[str, dict[str, Any]] = {}
    kinds: dict[str, Any] = {}
    for algorithm, parameters in ALGORITHMS.items():
        hints = get_type_hints(parameters)
        for f in fields(parameters):
            owners.setdefault(f.name, {})[algorithm] = f.default
            if hints[f.name] in (int, float, bool):
                kinds[f.name] = hints[f.name]
            else:
                kinds[f.name] = str
    return {name: Annotated[kinds[name] | None, _option(name, owners[name])] for name in owners}


def _option(name: str, defaults: Mapping[str, Any]) -> Any:
    if len(defaults) == len(ALGORITHMS):
        whose = ""
    else:
        whose = f" Only {', '.join(defaults)}."
    values = list(dict.fromkeys(v for v in defaults.values() if v is not MISSING))
    if len(values) == 1:
        usual = str(values[0]) or "none"
    else:
        usual = ", ".join(f"{a} {v}" for a, v in defaults.items())
    flag = _flag(name)
    if isinstance(values[0], bool):
        flags = (f"{flag}/--no-{flag[2:]}",)
    else:
        flags = (flag,)
    return typer.Option(*flags, help=f"{HELP[name]}{whose} (default: {usual})", show_default=False)


def _flag(name: str) -> str:
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


Algorithm = Annotated[str, typer.Option(help=f"How the model is grown: {', '.join(ALGORITHMS)}.")]
Hosts = Annotated[str | None, typer.Option(help="Hosts that take part, separated by commas (default: all).")]
Exclude = Annotated[str, typer.Option(help="Features left out, separated by commas.")]
Coarser = Annotated[
    bool,
    typer.Option(help="Instead of keeping a model sealed, round its scores to the finest scale that names few enough."),
]
ApprovedTrees = Annotated[
    int,
    typer.Option(
        help="Ask the Hosts for so many trees (secureboost): more may be added to a model that is kept sealed.", min=0
    ),
]
MostNamed = Annotated[
    float | None,
    typer.Option(
        help="Keep a model sealed of whose scores a larger share identifies a path, 0 to 1 (default: 0.05, from 1,000 records on).",
        min=0.0,
        max=1.0,
    ),
]
