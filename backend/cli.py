"""The service's verbs for a shell: `python -m backend …`, each with ``--json``."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from backend.crypto.engines import cipher_named
from backend.crypto.workers import Workers, cores
from backend.errors import GlassleafError, ParameterError
from backend.jobs import Job
from backend.protocols.training.parameters import KEY_SIZES
from backend.service import (
    DEMO,
    NODE_BY_NODE_SAMPLES,
    PROTOCOLS,
    Compared,
    ComparisonRequest,
    Glassleaf,
    Link,
    ModelRecord,
    Row,
    ScoreBatch,
    ScoringRequest,
    SecureBoostParameters,
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
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
ModelId = Annotated[str, typer.Argument(help="Model id, the beginning of one, or 'latest'.")]
_D = SecureBoostParameters()


@app.command()
def init(
    table: Annotated[Path, typer.Argument(help="One CSV with everything: ids, features, label.")],
    id_column: Annotated[str, typer.Option("--id", help="Column with each record's id.")],
    label: Annotated[str, typer.Option(help="Column to be predicted (two values).")],
    guest: Annotated[str, typer.Option(help="The Guest's feature columns, separated by commas.")],
    host: Annotated[list[str], typer.Option(help="A Host and its feature columns: name=C,D. Repeat for more Hosts.")],
    out: Annotated[Path, typer.Option(help="Folder to write the federation to.")],
    positive: Annotated[str | None, typer.Option(help="Label value that counts as 1, e.g. yes.")] = None,
    dictionary: Annotated[Path | None, typer.Option(help="CSV with name, meaning, unit, kind … per feature.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the federation (default: the table's).")] = None,
    label_meaning: Annotated[str | None, typer.Option(help="What the positive label says about a person.")] = None,
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
        guest=_list(guest),
        hosts=hosts,
        dictionary=dictionary,
        out=out,
        name=name,
        label_meaning=label_meaning,
    )
    parties = {p.name: [f.name for f in p.features] for p in federation.parties}
    text = "\n".join(f"  {party}: {len(features)} features" for party, features in parties.items())
    _print(
        {"federation": federation.name, "folder": str(out), "parties": parties},
        f"Federation {federation.name!r} written to {out}:\n{text}\nNext: python -m backend train {out}",
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


@app.command()
def train(
    federation: Annotated[str, typer.Argument(help="A federation's folder, file or name.")] = DEMO,
    trees: int = _D.trees,
    depth: int = _D.depth,
    learning_rate: float = _D.learning_rate,
    bins: int = _D.bins,
    reg_lambda: Annotated[float, typer.Option("--lambda")] = _D.reg_lambda,
    gamma: float = _D.gamma,
    min_child_weight: float = _D.min_child_weight,
    seed: int = _D.seed,
    early_stopping: Annotated[int, typer.Option(help="Rounds without improvement; 0 = off.")] = _D.early_stopping,
    cipher: Annotated[
        str, typer.Option(help="paillier; paillier-short; or none: plain numbers to simulated Hosts, protects nothing.")
    ] = _D.cipher,
    bits: Annotated[int, typer.Option(help="Paillier key size: 2048, 3072 or 4096.")] = _D.key_bits,
    score_bits: Annotated[int, typer.Option(help="Scores are multiples of 2**-score_bits.")] = _D.score_bits,
    alignment: Annotated[
        str, typer.Option(help="How ids are compared: dh, or bloom (docs/alignment.md).")
    ] = _D.alignment,
    hosts: Annotated[str | None, typer.Option(help="Hosts that take part, separated by commas (default: all).")] = None,
    exclude: Annotated[str, typer.Option(help="Features left out, separated by commas.")] = "",
    as_json: AsJson = False,
) -> None:
    """Grow a SecureBoost model and register each party's half."""
    parameters = SecureBoostParameters(
        trees=trees,
        depth=depth,
        learning_rate=learning_rate,
        bins=bins,
        reg_lambda=reg_lambda,
        gamma=gamma,
        min_child_weight=min_child_weight,
        seed=seed,
        early_stopping=early_stopping,
        cipher=cipher_named(cipher),
        key_bits=bits,
        score_bits=score_bits,
        alignment=alignment,
    )
    door = _door()
    request = TrainingRequest(
        _federation_name(door, federation), parameters, _list(hosts) if hosts is not None else None, _list(exclude)
    )
    record = _watch_training(door.start_training(request))
    lines = [f"Trained in {record.seconds:.1f} s. {_model_text(record)}", *_alignment_text(record)]
    _print(_model_json(record), "\n".join(lines), as_json)
    door.close()


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
    m = result.registered
    text = f"{record.id}: test n={m.n:,}  AUC {m.auc:.4f}  KS {m.ks:.4f}  log-loss {m.log_loss:.4f}  accuracy {m.accuracy:.4f}"
    if result.encrypted is not None:
        e = result.encrypted
        text += (
            f"\nscored anew under {bits}-bit encryption: n={e.n:,} in {result.seconds:.1f} s  "
            f"AUC {e.auc:.4f}  KS {e.ks:.4f}  log-loss {e.log_loss:.4f}  accuracy {e.accuracy:.4f}"
        )
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
    lines += [
        f"{s.id}: {s.problem}"
        if s.status == "failed"
        else _score_text(s.id, s.logit, s.probability, s.decision, s.not_held_by)
        for s in batch.scores[:20]
    ]
    lines += [f"… and {len(batch.scores) - 20:,} more"] if len(batch.scores) > 20 else []
    failed = sum(s.status == "failed" for s in batch.scores)
    lines.append(
        f"{len(batch.scores) - failed:,} scored, {failed:,} failed, in {batch.seconds:.2f} s: {batch.ciphertexts_per_sample} "
        f"ciphertexts a sample for {batch.leaves} leaves, {sum(m.bytes for m in batch.transcript):,} bytes in "
        f"{len(batch.transcript)} messages" + (f"; written to {out}" if out else "")
    )
    if check:
        plain = door.start_scoring(ScoringRequest(model, sheet, cutoff, "none")).get()
        document["equal_to_plain"] = [s.units for s in batch.scores] == [s.units for s in plain.scores]
        lines.append(f"Equal to the plain model's scores, integer for integer: {document['equal_to_plain']}")
    _print(document, "\n".join(lines), as_json)
    door.close()
    if document.get("equal_to_plain") is False:
        raise typer.Exit(1)


@app.command()
def compare(
    model: ModelId,
    samples: Annotated[int, typer.Option(help="Random test records to score by every protocol.")] = 1,
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
    door = _door()
    request = ComparisonRequest(door.model(model).id, samples, cipher_named(cipher), bits, names)
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
                _say(
                    f"tree {p.tree}/{p.trees}  log-loss {p.log_loss_training:.4f} / {p.log_loss_validation:.4f}  "
                    f"AUC {p.auc_training:.4f} / {p.auc_validation:.4f} (training / validation)  {p.seconds:.1f} s"
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
    lines = [
        f"{done.model_id}: {people}, {runs.link.latency * 1000:g} ms and {runs.link.bandwidth / 1000:g} kB/s; "
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


def _score_text(sample: str, logit: float, probability: float, decision: str, not_held_by: tuple[str, ...]) -> str:
    absent = f"  (no record at {', '.join(not_held_by)}: its features count as missing)" if not_held_by else ""
    return f"{sample}: score {logit:+.4f}  probability {probability:.1%}  {decision}{absent}"


def _model_json(record: ModelRecord) -> dict[str, Any]:
    return asdict(record)


def _model_text(r: ModelRecord) -> str:
    how = "grown on plain numbers (simulation)" if r.cipher == "none" else f"grown on Paillier, {r.key_bits} bits"
    how = r.algorithm if r.algorithm.startswith("imported") else how
    return (
        f"{r.id}  {r.federation}  {r.created[:19]}  {r.n_trees} trees, {r.n_leaves} leaves  {how}  "
        f"{r.metrics.part} AUC {r.metrics.auc:.4f}, KS {r.metrics.ks:.4f}"
    )


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
