"""Federations and models from a shell: `init`, `demo`, `credit-card`, `train`, `import`, `models`."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from backend.cli.options import DEFAULT, Algorithm, Coarser, Exclude, Federation, Hosts, MostNamed, choose, with_options
from backend.cli.output import (
    SHORT_TICK,
    AsJson,
    chosen_federation,
    open_glassleaf,
    print_result,
    quality_text,
    say,
    watched,
)
from backend.errors import ParameterError
from backend.jobs import Job
from backend.services import DEMO, RANKS, Division, ModelRecord, SecureBoostParameters, TrainingRequest

_D = SecureBoostParameters()


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(name="train")(with_options(train))
    app.command()(init)
    app.command()(demo)
    app.command()(credit_card)
    app.command(name="import")(import_file)
    app.command()(models)


def init(
    table: Annotated[Path, typer.Argument(help="One CSV with everything: ids, features, label.")],
    label: Annotated[str, typer.Option(help="Column to be predicted.")],
    guest: Annotated[str, typer.Option(help="The Guest's feature columns, separated by commas.")],
    host: Annotated[list[str], typer.Option(help="A Host and its feature columns: name=C,D. Repeat for more Hosts.")],
    out: Annotated[Path, typer.Option(help="Folder to write the federation to.")],
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column with each record's id (default: rows are numbered).")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="What the label is: binary, classes or number (default: read off its cells).")
    ] = None,
    positive: Annotated[str | None, typer.Option(help="Binary label's value that counts as 1, e.g. yes.")] = None,
    dictionary: Annotated[Path | None, typer.Option(help="CSV with name, meaning, unit, kind … per feature.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the federation (default: the table's).")] = None,
    label_meaning: Annotated[
        str | None, typer.Option(help="What the label (binary: the positive one) says about a person.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Split one table into the parties' files and a federation file."""
    hosts: dict[str, tuple[str, ...]] = {}
    for text in host:
        party, equals, columns = text.partition("=")
        if not equals or not columns:
            raise ParameterError(f"--host {text!r} was given; write it as name=COLUMN,COLUMN.")
        if party in hosts:
            raise ParameterError(f"--host {party} was given twice; give all its columns at once.")
        hosts[party] = _list(columns)
    division = Division(label, _list(guest), hosts, id_column, positive, task, dictionary, name, label_meaning)
    federation = open_glassleaf().init(table, division, out)
    parties = {p.name: [f.name for f in p.features] for p in federation.parties}
    text = "\n".join(f"  {party}: {len(features)} features" for party, features in parties.items())
    told = federation.label
    outcomes = told.positive or ", ".join(told.classes) or told.unit
    print_result(
        {"federation": federation.name, "folder": str(out), "task": told.task, "parties": parties},
        f"Federation {federation.name!r} written to {out}:\n{text}\n"
        f"  label {told.column}: {told.task}{f' ({outcomes})' if outcomes else ''}\nNext: python -m backend train {out}",
        as_json,
    )


def demo(as_json: AsJson = False) -> None:
    """Prepare the built-in demo federation and its first model (synthetic data)."""
    glassleaf = open_glassleaf()
    began = time.perf_counter()
    name = glassleaf.prepare_demo()
    record = glassleaf.models(name)[0]
    print_result(
        _model_json(record), f"Demo ready in {time.perf_counter() - began:.1f} s. {_model_text(record)}", as_json
    )
    glassleaf.close()


def credit_card(
    out: Annotated[Path, typer.Option(help="Folder to write the federation to.")], as_json: AsJson = False
) -> None:
    """Fetch the 'default of credit card clients' data from OpenML and write it as a federation."""
    federation = open_glassleaf().fetch_credit_card(out)
    print_result(
        {"federation": federation.name, "folder": str(out)},
        f"Federation {federation.name!r} written to {out}.\nNext: python -m backend train {out}",
        as_json,
    )


def train(
    federation: Federation = DEMO,
    algorithm: Algorithm = DEFAULT,
    hosts: Hosts = None,
    exclude: Exclude = "",
    most_named: MostNamed = None,
    coarser: Coarser = False,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Grow a model and register each party's partial model."""
    parameters = choose(algorithm, given)
    glassleaf = open_glassleaf()
    request = TrainingRequest(
        chosen_federation(glassleaf, federation),
        parameters,
        _list(hosts) if hosts is not None else None,
        _list(exclude),
        most_named,
        coarser,
    )
    record = _watch_training(glassleaf.start_training(request))
    lines = [
        f"Trained in {record.seconds:.1f} s. {_model_text(record)}",
        *_alignment_text(record),
        *_release_text(record),
    ]
    print_result(_model_json(record), "\n".join(lines), as_json)
    glassleaf.close()


def import_file(
    file: Annotated[
        Path, typer.Argument(help="XGBoost JSON or UBJ, LightGBM text, or scikit-learn JSON (docs/import.md).")
    ],
    federation: Annotated[str, typer.Option(help="A federation's folder, file or name.")] = DEMO,
    features: Annotated[
        str, typer.Option(help="Names for the model's columns in its order, separated by commas.")
    ] = "",
    categories: Annotated[Path | None, typer.Option(help="JSON: feature → text of each category code.")] = None,
    score_bits: Annotated[int, typer.Option(help="Scores are multiples of 2**-score_bits.")] = _D.score_bits,
    as_json: AsJson = False,
) -> None:
    """Make a model that XGBoost, LightGBM or scikit-learn trained a federated one."""
    glassleaf = open_glassleaf()
    record, notes = glassleaf.import_model(
        chosen_federation(glassleaf, federation),
        file,
        features=_list(features) or None,
        categories=categories,
        score_bits=score_bits,
    )
    lines = [*(f"Note: {note}" for note in notes), _model_text(record)]
    lines += ["Metrics are on all joint records, which the model may have been trained on.", *_release_text(record)]
    print_result({**_model_json(record), "notes": notes}, "\n".join(lines), as_json)
    glassleaf.close()


def models(as_json: AsJson = False) -> None:
    """List the registered models, newest first."""
    records = open_glassleaf().models()
    text = "\n".join(_model_text(r) for r in records) or "No model yet. Run `python -m backend demo` or `train`."
    print_result([_model_json(r) for r in records], text, as_json)


def _list(text: str) -> tuple[str, ...]:  # columns never hold a comma: they are CSV headers written by hand
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _watch_training(job: Job[ModelRecord]) -> ModelRecord:
    shown = 0

    def tell(job: Job[ModelRecord]) -> None:
        nonlocal shown
        for p in job.points[shown:]:
            auc = "" if math.isnan(p.auc_training) else f"AUC {p.auc_training:.4f} / {p.auc_validation:.4f} "
            say(
                f"tree {p.tree}/{p.trees}  loss {p.log_loss_training:.4f} / {p.log_loss_validation:.4f}  "
                f"{auc}(training / validation)  {p.seconds:.1f} s"
            )
            shown += 1

    return watched(job, tell, SHORT_TICK)


def _model_json(record: ModelRecord) -> dict[str, Any]:
    return asdict(record)


def _model_text(r: ModelRecord) -> str:
    on = {"none": "plaintext (simulation)", RANKS: "noisy ranks"}.get(r.cipher, f"Paillier, {r.key_bits} bits")
    how = r.algorithm if r.algorithm.startswith("imported") else f"{r.algorithm} on {on}"
    return (
        f"{r.id}  {r.federation}  {r.created[:19]}  {r.n_trees} trees, {r.n_leaves} leaves  {how}  "
        f"{quality_text(r.metrics)}"
    )


def _release_text(r: ModelRecord) -> list[str]:
    if r.release is None:
        return []
    at, coarser = f"{r.score_bits} bits", [f"{share:.1%} at {bits}" for bits, share in r.release.unique[1:]]
    dither = f" and dither {r.release.dither:g} wide" if r.release.dither else " and no dither"
    asked = r.release.asked_bits
    taken = [
        f"Scores are multiples of 2^-{r.score_bits}, not 2^-{asked} as asked: these would have named too many paths."
    ]
    return (taken if asked else []) + [
        f"{r.release.named:.1%} of {r.release.people} scores fit one path only among {r.release.records:,} records at {at}{dither}"
        + (f" (coarser: {', '.join(coarser)})." if coarser else ".")
    ]


def _alignment_text(r: ModelRecord) -> list[str]:
    a = r.alignment
    if a is None:
        return []
    brought = ", ".join(f"{party} {count:,}" for party, count in a.records.items())
    return [f"Aligned by {a.method} in {a.seconds:.1f} s: {a.joint:,} joint records ({brought})."]
