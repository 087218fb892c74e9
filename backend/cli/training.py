"""Models from a shell: `train` and `import`."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.cli.model_text import model_text, release_text, watch_training
from backend.cli.options import (
    DEFAULT,
    Algorithm,
    ApprovedTrees,
    Coarser,
    Exclude,
    Hosts,
    MostNamed,
    choose,
    with_options,
)
from backend.cli.output import (
    AsJson,
    Backend,
    Federation,
    Jobs,
    Scheduler,
    chosen_federation,
    open_glassleaf,
    print_result,
    say,
    split_list,
    workers_of,
)
from backend.i18n import counted
from backend.results import DEMO
from backend.services.training import SecureBoostParameters, TrainingRequest

if TYPE_CHECKING:
    from backend.results import ModelRecord
    from backend.services.model_import import Proof

app = typer.Typer(add_completion=False)


@app.command()
@with_options
def train(
    federation: Federation = DEMO,
    algorithm: Algorithm = DEFAULT,
    hosts: Hosts = None,
    exclude: Exclude = "",
    most_named: MostNamed = None,
    coarser: Coarser = False,
    approved_trees: ApprovedTrees = 0,
    jobs: Jobs = 0,
    backend: Backend = "loky",
    scheduler: Scheduler = "",
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Grow a model and register each party's partial model."""
    parameters = choose(algorithm, options)
    with open_glassleaf(workers_of(jobs, backend, scheduler)) as glassleaf:
        request = TrainingRequest(
            chosen_federation(glassleaf, federation),
            parameters,
            split_list(hosts) if hosts is not None else None,
            split_list(exclude),
            most_named,
            coarser,
            approved_trees,
        )
        foretold = glassleaf.training.foretell(request)
        if foretold is not None:
            say(foretold.sentence())
        record = watch_training(glassleaf.training.start(request))
    lines = [
        f"Trained in {record.seconds:.1f} s. {model_text(record)}",
        *_alignment_text(record),
        *_weights_text(record),
        *_leak_text(record),
        *release_text(record),
    ]
    print_result(asdict(record), lines, as_json)


@app.command(name="import")
def import_file(
    file: Annotated[
        Path, typer.Argument(help="XGBoost JSON or UBJ, LightGBM text, or scikit-learn JSON (docs/import.md).")
    ],
    federation: Annotated[str, typer.Option(help="A federation's folder, file or name.")] = DEMO,
    features: Annotated[
        str, typer.Option(help="Names for the model's columns in its order, separated by commas.")
    ] = "",
    categories: Annotated[Path | None, typer.Option(help="JSON: feature → text of each category code.")] = None,
    score_bits: Annotated[
        int, typer.Option(help="Scores are multiples of 2**-score_bits.")
    ] = SecureBoostParameters.score_bits,
    label_is: Annotated[
        str | None,
        typer.Option(
            help="The label's text that the model's positive class means; scores are turned round where needed."
        ),
    ] = None,
    most_named: MostNamed = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only prove it on the federation's records; keep nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a model that XGBoost, LightGBM or scikit-learn trained a federated one, proved on the federation's records."""
    meanings: dict[str, Any] = {"features": split_list(features) or None, "categories": categories}
    meanings |= {"score_bits": score_bits, "label_is": label_is}
    with open_glassleaf() as glassleaf:
        name = chosen_federation(glassleaf, federation)
        if check:
            proof = glassleaf.model_import.check(name, file, **meanings)
            print_result(_proof_document(proof), _proof_text(proof), as_json)
            return
        record, proof = glassleaf.model_import.import_file(name, file, most_named=most_named, **meanings)
    lines = [*_proof_text(proof), model_text(record)]
    lines += ["Metrics are on all joint records, which the model may have been trained on.", *release_text(record)]
    print_result(asdict(record) | _proof_document(proof), lines, as_json)


def _proof_document(proof: Proof) -> dict[str, Any]:
    notes = [note.sentence() for note in proof.notes]
    return {"proof": asdict(proof) | {"notes": notes}, "notes": notes}


def _proof_text(proof: Proof) -> list[str]:
    if proof.against:
        against = f"by {proof.against}"
    else:
        against = "by the undivided model (its library is not installed or cannot be asked)"
    if math.isnan(proof.auc):
        auc = ""
    else:
        auc = f" AUC {proof.auc:.4f}."
    return [
        *(f"Note: {note.sentence()}" for note in proof.notes),
        f"{counted(proof.rows, 'records')} score as {against}: at most {proof.difference:.2g} apart, {proof.bound:.2g} is allowed.{auc}",
    ]


def _leak_text(r: ModelRecord) -> list[str]:
    lines = []
    if r.label_bits:
        lines.append(
            f"A set of records that a Host was told of tells up to {r.label_bits:.3f} bits about labels (--label-bound limits it)."
        )
    if r.choice_bits:
        lines.append(
            f"The choice of splits tells a Host that bins its records as it likes up to {r.choice_bits:,.0f} bits about labels."
        )
    return lines


def _weights_text(r: ModelRecord) -> list[str]:
    if not r.weights:
        return []
    return [
        f"Records were weighed by the column {r.weights}, in training and in the figures above; Hosts were not told the weights."
    ]


def _alignment_text(r: ModelRecord) -> list[str]:
    a = r.alignment
    if a is None:
        return []
    brought = ", ".join(f"{party} {count:,}" for party, count in a.records.items())
    return [f"Aligned by {a.method} in {a.seconds:.1f} s: {a.joint:,} joint records ({brought})."]
