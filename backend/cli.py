"""The service's verbs for a shell: `python -m backend …`, each with ``--json``."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from backend.cli_assurance import register
from backend.cli_training import DEFAULT, Algorithm, Exclude, Federation, Hosts, choose, with_options
from backend.crypto.engines import cipher_named
from backend.crypto.workers import Workers, cores
from backend.errors import GlassleafError, ParameterError
from backend.jobs import Job
from backend.protocols.training.parameters import KEY_SIZES
from backend.service import (
    DEMO,
    MADE_UP,
    NODE_BY_NODE_SAMPLES,
    PROTOCOLS,
    RANKS,
    Compared,
    ComparisonRequest,
    Glassleaf,
    Link,
    Metrics,
    ModelRecord,
    Row,
    Score,
    ScoreBatch,
    ScoringRequest,
    SecureBoostParameters,
    Shape,
    TrainingRequest,
    usual_protocols,
)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Interpretable federated scoring: feature meanings open, decision paths encrypted, one round of messages.",
)
measuring = typer.Typer(no_args_is_help=True, help="Measure on this machine.")
app.add_typer(measuring, name="bench")
register(app)
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
ModelId = Annotated[str, typer.Argument(help="Model id, the beginning of one, or 'latest'.")]
_D = SecureBoostParameters()


@app.command()
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
    federation = _door().init(
        table,
        id_column=id_column,
        label=label,
        positive=positive,
        task=task,
        guest=_list(guest),
        hosts=hosts,
        dictionary=dictionary,
        out=out,
        name=name,
        label_meaning=label_meaning,
    )
    parties = {p.name: [f.name for f in p.features] for p in federation.parties}
    text = "\n".join(f"  {party}: {len(features)} features" for party, features in parties.items())
    told = federation.label
    outcomes = told.positive or ", ".join(told.classes) or told.unit
    _print(
        {"federation": federation.name, "folder": str(out), "task": told.task, "parties": parties},
        f"Federation {federation.name!r} written to {out}:\n{text}\n"
        f"  label {told.column}: {told.task}{f' ({outcomes})' if outcomes else ''}\nNext: python -m backend train {out}",
        as_json,
    )


@app.command()
def demo(as_json: AsJson = False) -> None:
    """Prepare the built-in demo federation and its first model (synthetic data)."""
    door = _door()
    began = time.perf_counter()
    name = door.prepare_demo()
    record = door.models(name)[0]
    _print(_model_json(record), f"Demo ready in {time.perf_counter() - began:.1f} s. {_model_text(record)}", as_json)
    door.close()


@app.command()
def credit_card(
    out: Annotated[Path, typer.Option(help="Folder to write the federation to.")], as_json: AsJson = False
) -> None:
    """Fetch the 'default of credit card clients' data from OpenML and write it as a federation."""
    federation = _door().fetch_credit_card(out)
    _print(
        {"federation": federation.name, "folder": str(out)},
        f"Federation {federation.name!r} written to {out}.\nNext: python -m backend train {out}",
        as_json,
    )


def train(
    federation: Federation = DEMO,
    algorithm: Algorithm = DEFAULT,
    hosts: Hosts = None,
    exclude: Exclude = "",
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Grow a model and register each party's half."""
    parameters = choose(algorithm, given)
    door = _door()
    request = TrainingRequest(
        _federation_name(door, federation), parameters, _list(hosts) if hosts is not None else None, _list(exclude)
    )
    record = _watch_training(door.start_training(request))
    lines = [f"Trained in {record.seconds:.1f} s. {_model_text(record)}", *_alignment_text(record)]
    _print(_model_json(record), "\n".join(lines), as_json)
    door.close()


app.command(name="train")(with_options(train))


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
    score_bits: Annotated[int, typer.Option(help="Scores are multiples of 2**-score_bits.")] = _D.score_bits,
    as_json: AsJson = False,
) -> None:
    """Make a model that XGBoost, LightGBM or scikit-learn trained a federated one."""
    door = _door()
    record, notes = door.import_model(
        _federation_name(door, federation),
        file,
        features=_list(features) or None,
        categories=categories,
        score_bits=score_bits,
    )
    lines = [*(f"Note: {note}" for note in notes), _model_text(record)]
    lines.append("Metrics are on all joint records, which the model may have been trained on.")
    _print({**_model_json(record), "notes": notes}, "\n".join(lines), as_json)
    door.close()


@app.command()
def models(as_json: AsJson = False) -> None:
    """List the registered models, newest first."""
    records = _door().models()
    text = "\n".join(_model_text(r) for r in records) or "No model yet. Run `python -m backend demo` or `train`."
    _print([_model_json(r) for r in records], text, as_json)


@app.command()
def evaluate(
    model: ModelId = "latest",
    samples: Annotated[int, typer.Option(help="Test records to score anew under encryption; 0 = none.")] = 50,
    bits: Annotated[int, typer.Option(help="Paillier key size.")] = _D.key_bits,
    as_json: AsJson = False,
) -> None:
    """Metrics on all test records, and on a sample of them scored under encryption."""
    door = _door()
    record = door.model(model)
    result = door.evaluate(record.id, min(samples, record.metrics.n), bits, watch=_watch_scoring)
    text = f"{record.id}: {_quality(result.registered)}"
    if result.encrypted is not None:
        text += f"\nscored anew under {bits}-bit encryption in {result.seconds:.1f} s: {_quality(result.encrypted)}"
    _print({"model": record.id, **asdict(result)}, text, as_json)
    door.close()


@app.command()
def score(
    model: ModelId,
    samples: Annotated[Path, typer.Argument(help="CSV with the id column and the Guest's features (or ids alone).")],
    out: Annotated[Path | None, typer.Option(help="CSV to write the scores to.")] = None,
    cutoff: Annotated[float, typer.Option(help="Decline at or above this probability.")] = 0.5,
    bits: Annotated[int, typer.Option(help="Paillier key size.")] = _D.key_bits,
    cipher: Annotated[
        str,
        typer.Option(help="paillier; rlwe (lattice, for bulk); paillier-short; none: plain numbers, protects nothing."),
    ] = "paillier",
    jobs: Annotated[int, typer.Option(help="Worker processes for bulk uploads; 0 = one a core.")] = 0,
    backend: Annotated[str, typer.Option(help="joblib backend of the workers: loky, dask or ray.")] = "loky",
    scheduler: Annotated[str, typer.Option(help="Address of the Dask scheduler, e.g. tcp://10.0.0.5:8786.")] = "",
    check: Annotated[
        bool, typer.Option(help="Score once more on plain numbers and compare (simulated Hosts).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Score samples with encrypted inference (Fed-EINI)."""
    if jobs < 0 or (scheduler and backend != "dask"):
        raise ParameterError("--jobs must be 0 or more, and --scheduler goes with --backend dask.")
    chosen = cipher_named(cipher)
    door = _door(Workers(jobs or cores(), backend, scheduler))
    sheet = door.read_samples(model, samples)
    request = ScoringRequest(model, sheet, cutoff, chosen, bits)
    batch = _watch_scoring(door.start_scoring(request))
    if out is not None:
        out.write_bytes(door.scores_csv(batch))
    document: dict[str, Any] = asdict(batch)
    lines = [f"Note: {note}" for note in sheet.notes]
    lines += [f"{s.id}: {s.problem}" if s.status == "failed" else _score_text(s) for s in batch.scores[:20]]
    lines += [f"… and {len(batch.scores) - 20:,} more"] if len(batch.scores) > 20 else []
    failed = sum(s.status == "failed" for s in batch.scores)
    lines.append(
        f"{len(batch.scores) - failed:,} scored, {failed:,} failed, in {batch.seconds:.2f} s: {batch.ciphertexts_per_sample} "
        f"ciphertexts a sample for {batch.leaves} leaves, {sum(m.bytes for m in batch.transcript):,} bytes in "
        f"{len(batch.transcript)} messages" + (f"; written to {out}" if out else "")
    )
    if check:
        plain = door.start_scoring(ScoringRequest(model, sheet, cutoff, "none"), counted=False).get()
        document["equal_to_plain"] = all(
            s.status == "failed" or s.units == p.units for s, p in zip(batch.scores, plain.scores, strict=True)
        )
        lines.append(f"Equal to the plain model's scores, integer for integer: {document['equal_to_plain']}")
    _print(document, "\n".join(lines), as_json)
    door.close()
    if document.get("equal_to_plain") is False:
        raise typer.Exit(1)


@app.command()
def compare(
    model: Annotated[str, typer.Argument(help="Model id, the beginning of one, 'latest', or 'made-up'.")],
    samples: Annotated[int, typer.Option(help="Random test records to score by every protocol.")] = 1,
    trees: Annotated[int | None, typer.Option(help="Of a made-up model: 1 to 200.")] = None,
    depth: Annotated[int | None, typer.Option(help="Of a made-up model: 2 to 8 splits on every path.")] = None,
    features: Annotated[int | None, typer.Option(help="Of a made-up model: 4 to 100, half of them a Host's.")] = None,
    latency: Annotated[float, typer.Option(help="Milliseconds that a message travels.")] = 50.0,
    bandwidth: Annotated[float, typer.Option(help="Kilobytes a second that a party can send.")] = 300.0,
    cipher: Annotated[str, typer.Option(help="Fed-EINI's: paillier; rlwe; paillier-short; none.")] = "paillier",
    bits: Annotated[int, typer.Option(help="Paillier key size.")] = _D.key_bits,
    every: Annotated[bool, typer.Option("--all", help="Node by node too, for any number of samples.")] = False,
    as_json: AsJson = False,
) -> None:
    """Every way of scoring side by side, over a simulated network: rounds, bytes, time, who learned what."""
    link = Link(latency / 1000, bandwidth * 1000)
    names = PROTOCOLS if every else usual_protocols(samples)
    shape = _made_up_shape(model, trees=trees, depth=depth, features=features)
    door = _door()
    if shape is not None and not door.models():
        door.prepare_demo()  # whose key is used
    whose = door.model(model if shape is None else "latest").id
    request = ComparisonRequest(whose, samples, cipher_named(cipher), bits, names, shape=shape)
    done = _watch_comparison(door.start_comparison(request)).over(link)
    left_out = [name for name in PROTOCOLS if name not in names]
    _print({**done.as_dict(), "left_out": left_out}, _comparison_text(done, left_out), as_json)
    door.close()
    if not all(row.equal for row in done.runs.rows):
        raise typer.Exit(1)


@measuring.command(name="cipher")
def bench_cipher(
    bits: Annotated[int, typer.Option(help="Paillier key size; 0 = 2048 and 3072.")] = 0,
    quick: Annotated[bool, typer.Option(help="A minute instead of some: fewer repetitions, a smaller model.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure every cipher here, and the peers that are installed, in one run."""
    from bench.cipher import describe, measure  # noqa: PLC0415 (needed by this command alone)

    if bits and bits not in KEY_SIZES:
        raise ParameterError(f"--bits is {bits}; choose one of {', '.join(map(str, KEY_SIZES))}.")
    found = measure(bits=(bits,) if bits else (2048, 3072), quick=quick)
    _print(found, describe(found), as_json)


def main() -> None:
    """Run the command line; a user's mistake gives one clear sentence and exit status 1."""
    try:
        app(prog_name="python -m backend")
    except GlassleafError as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(1)


def _door(workers: Workers | None = None) -> Glassleaf:
    return Glassleaf(pools=False, workers=workers)  # obfuscators made in advance help a dashboard, not a single command


def _list(text: str) -> tuple[str, ...]:  # columns never hold a comma: they are CSV headers written by hand
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _federation_name(door: Glassleaf, text: str) -> str:
    if Path(text).exists():
        return door.add_federation(Path(text)).name
    if text == DEMO:
        return door.prepare_demo()
    return door.federation(text).name


def _watch_training(job: Job[ModelRecord]) -> ModelRecord:
    shown = 0
    try:
        while job.state == "running":
            job.wait(0.2)
            for p in job.points[shown:]:
                auc = "" if math.isnan(p.auc_training) else f"AUC {p.auc_training:.4f} / {p.auc_validation:.4f} "
                _say(
                    f"tree {p.tree}/{p.trees}  loss {p.log_loss_training:.4f} / {p.log_loss_validation:.4f}  "
                    f"{auc}(training / validation)  {p.seconds:.1f} s"
                )
                shown += 1
    except KeyboardInterrupt:
        job.cancel()
    return job.get()


def _watch_scoring(job: Job[ScoreBatch]) -> ScoreBatch:
    try:
        while job.state == "running":
            job.wait(2.0)
            if job.state == "running":
                _say(f"{job.stage} at {job.party}: {job.done:,} of {job.total:,} samples, {job.seconds:.0f} s")
    except KeyboardInterrupt:
        job.cancel()
    return job.get()


def _made_up_shape(model: str, **given: int | None) -> Shape | None:
    """The shape of `compare made-up`; None where an own model is compared on."""
    asked = {name: value for name, value in given.items() if value is not None}
    if model == MADE_UP:
        return Shape(**asked)
    if asked:
        raise ParameterError(
            f"--{next(iter(asked))} describes a made-up model, {model} is an own one; run `compare {MADE_UP}` for the first."
        )
    return None


def _watch_comparison(job: Job[Compared]) -> Compared:
    stage = ""
    try:
        while job.state == "running":
            job.wait(0.2)
            if job.stage != stage and job.stage in PROTOCOLS:
                stage = job.stage
                _say(f"{stage}: protocol {job.done + 1} of {job.total}, {job.seconds:.0f} s")
    except KeyboardInterrupt:
        job.cancel()
    return job.get()


def _comparison_text(done: Compared, left_out: list[str]) -> str:
    runs = done.runs
    key = {"paillier": f"Paillier, {runs.key_bits} bits", "rlwe": f"RLWE, degree {runs.key_bits}"}.get(
        runs.cipher, "plain numbers"
    )
    people = "1 sample" if runs.samples == 1 else f"{runs.samples:,} samples"
    pools = {"warm": ", obfuscators made before", "cold": ", obfuscators made while scoring"}.get(done.pools, "")
    head = (
        "protocol",
        "rounds",
        "hops",
        "bytes",
        "compute s",
        "network s",
        "total s",
        "Guest learned",
        "Hosts learned",
        "equal",
    )
    table = [head, *(_comparison_cells(row) for row in runs.rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    shape = done.shape
    made_up = "" if shape is None else f", {shape.trees} trees of depth {shape.depth}, {shape.features} features"
    lines = [
        f"{done.model_id}{made_up}: {people}, {runs.link.latency * 1000:g} ms and {runs.link.bandwidth / 1000:g} kB/s; "
        f"Fed-EINI under {key}{pools}"
    ]
    for line in table:
        cells = (c.rjust(w) if 0 < i < 7 else c.ljust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        lines.append("  ".join(cells).rstrip())
    lines.append(
        "Learned: bits a sample about other parties' records, at most; the Guest's as path + score + held. Compute is measured, "
        "network simulated. All but fed-eini are for comparison only: simulated Hosts alone answer them."
    )
    if left_out:
        lines.append(
            f"Left out for more than {NODE_BY_NODE_SAMPLES} samples: {', '.join(left_out)}; --all runs it too."
        )
    return "\n".join(lines)


def _comparison_cells(row: Row) -> tuple[str, ...]:
    e, (guest, *hosts) = row.exchange, row.learned
    seconds = (f"{v:.3f}" for v in (e.compute, e.network, e.total))
    told = " + ".join((_bits(guest.directions), _bits(guest.score), str(guest.held)))
    others = ", ".join(f"{h.party} {_bits(h.bits)}" for h in hosts)
    return (
        row.protocol,
        str(e.rounds),
        str(e.hops),
        f"{e.bytes:,}",
        *seconds,
        told,
        others,
        "yes" if row.equal else "NO",
    )


def _bits(count: float | None) -> str:
    return "not counted" if count is None else f"{count:.1f}"


def _score_text(s: Score) -> str:
    absent = f"  (no record at {', '.join(s.not_held_by)}: its features count as missing)" if s.not_held_by else ""
    probability = "" if math.isnan(s.probability) else f"  probability {s.probability:.1%}"
    said = f"  {s.predicted or s.decision}" if s.predicted or s.decision else ""
    return f"{s.id}: score {s.margin:+.4f}{probability}{said}{absent}"


def _model_json(record: ModelRecord) -> dict[str, Any]:
    return asdict(record)


def _model_text(r: ModelRecord) -> str:
    on = {"none": "plain numbers (simulation)", RANKS: "noisy ranks"}.get(r.cipher, f"Paillier, {r.key_bits} bits")
    how = r.algorithm if r.algorithm.startswith("imported") else f"{r.algorithm} on {on}"
    return (
        f"{r.id}  {r.federation}  {r.created[:19]}  {r.n_trees} trees, {r.n_leaves} leaves  {how}  "
        f"{_quality(r.metrics)}"
    )


def _quality(m: Metrics) -> str:
    """Every figure that applies to the task."""
    figures = {"AUC": m.auc, "KS": m.ks, "log-loss": m.log_loss, "accuracy": m.accuracy, "RMSE": m.rmse, "R²": m.r2}
    told = ", ".join(f"{name} {value:.4f}" for name, value in figures.items() if not math.isnan(value))
    return f"{m.part} n={m.n:,} {told}"


def _alignment_text(r: ModelRecord) -> list[str]:
    a = r.alignment
    if a is None:
        return []
    brought = ", ".join(f"{party} {count:,}" for party, count in a.records.items())
    return [f"Aligned by {a.method} in {a.seconds:.1f} s: {a.joint:,} joint records ({brought})."]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def _print(document: Any, text: str, as_json: bool) -> None:
    print(json.dumps(document, indent=1, default=str) if as_json else text)  # noqa: T201
