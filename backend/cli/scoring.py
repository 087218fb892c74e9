"""People scored from a shell, and the ways of scoring compared: `score`, `evaluate`, `compare`, `serve-forest`."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from backend.cli.output import (
    SHORT_TICK,
    AsJson,
    ModelId,
    open_glassleaf,
    print_result,
    quality_text,
    save,
    say,
    watched,
)
from backend.crypto.registry import cipher_named
from backend.crypto.workers import Workers, cores
from backend.errors import ParameterError
from backend.jobs import Job
from backend.services import (
    NODE_BY_NODE_SAMPLES,
    PROTOCOLS,
    SYNTHETIC,
    Compared,
    ComparisonRequest,
    Link,
    ProtocolResult,
    Score,
    ScoringRequest,
    SecureBoostParameters,
    ServingRequest,
    ServingTrial,
    Shape,
    usual_protocols,
)

_D = SecureBoostParameters()


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(evaluate)
    app.command()(score)
    app.command()(compare)
    app.command(name="serve-forest")(serve_forest)


def evaluate(
    model: ModelId = "latest",
    samples: Annotated[int, typer.Option(help="Test records to score again under encryption; 0 = none.")] = 50,
    bits: Annotated[int, typer.Option(help="Paillier key size.")] = _D.key_bits,
    as_json: AsJson = False,
) -> None:
    """Metrics on all test records, and on a sample of them scored under encryption."""
    glassleaf = open_glassleaf()
    record = glassleaf.model(model)
    result = glassleaf.evaluate(record.id, min(samples, record.metrics.n), bits, watch=watched)
    text = f"{record.id}: {quality_text(result.registered)}"
    if result.encrypted is not None:
        text += (
            f"\nscored again under {bits}-bit encryption in {result.seconds:.1f} s: {quality_text(result.encrypted)}"
        )
    print_result({"model": record.id, **asdict(result)}, text, as_json)
    glassleaf.close()


def score(
    model: ModelId,
    samples: Annotated[Path, typer.Argument(help="CSV with the id column and the Guest's features (or ids alone).")],
    out: Annotated[Path | None, typer.Option(help="CSV to write the scores to.")] = None,
    cutoff: Annotated[float, typer.Option(help="Decline at or above this probability.")] = 0.5,
    bits: Annotated[int, typer.Option(help="Paillier key size.")] = _D.key_bits,
    cipher: Annotated[
        str,
        typer.Option(help="paillier; rlwe (lattice, for bulk); paillier-short; none: plaintext, protects nothing."),
    ] = "paillier",
    jobs: Annotated[int, typer.Option(help="Worker processes for bulk uploads; 0 = one a core.")] = 0,
    backend: Annotated[str, typer.Option(help="joblib backend of the workers: loky, dask or ray.")] = "loky",
    scheduler: Annotated[str, typer.Option(help="Address of the Dask scheduler, e.g. tcp://10.0.0.5:8786.")] = "",
    check: Annotated[bool, typer.Option(help="Score once more on plaintext and compare (simulated Hosts).")] = False,
    as_json: AsJson = False,
) -> None:
    """Score samples with encrypted inference (Fed-EINI)."""
    if jobs < 0 or (scheduler and backend != "dask"):
        raise ParameterError("--jobs must be 0 or more, and --scheduler goes with --backend dask.")
    chosen = cipher_named(cipher)
    glassleaf = open_glassleaf(Workers(jobs or cores(), backend, scheduler))
    sheet = glassleaf.read_samples(model, samples)
    request = ScoringRequest(model, sheet, cutoff, chosen, bits)
    batch = watched(glassleaf.start_scoring(request))
    if out is not None:
        save(out, glassleaf.scores_csv(batch))
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
    lines += [f"Margins are within ±{batch.dither:g} of the model's: the last Host has added dither."] * (
        batch.dither > 0
    )
    lines += [f"{batch.canaries:,} canaries, all well: no Host has tampered with these scores."] * (batch.canaries > 0)
    if check:
        plain = glassleaf.start_scoring(ScoringRequest(model, sheet, cutoff, "none"), counted=False).get()
        document["equal_to_plain"] = all(
            s.status == "failed" or abs(s.margin - p.margin) <= batch.dither
            for s, p in zip(batch.scores, plain.scores, strict=True)
        )
        exactly = f"within dither's ±{batch.dither:g}" if batch.dither else "integer for integer"
        lines.append(f"Equal to the plain model's scores, {exactly}: {document['equal_to_plain']}")
    print_result(document, "\n".join(lines), as_json)
    glassleaf.close()
    if document.get("equal_to_plain") is False:
        raise typer.Exit(1)


def compare(
    model: Annotated[str, typer.Argument(help="Model id, the beginning of one, 'latest', or 'synthetic'.")],
    samples: Annotated[int, typer.Option(help="Random test records to score by every protocol.")] = 1,
    trees: Annotated[int | None, typer.Option(help="Of a synthetic model: 1 to 200.")] = None,
    depth: Annotated[int | None, typer.Option(help="Of a synthetic model: 2 to 8 splits on every path.")] = None,
    features: Annotated[int | None, typer.Option(help="Of a synthetic model: 4 to 100, half of them a Host's.")] = None,
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
    shape = _synthetic_shape(model, trees=trees, depth=depth, features=features)
    glassleaf = open_glassleaf()
    if shape is not None and not glassleaf.models():
        glassleaf.prepare_demo()  # whose key is used
    whose = glassleaf.model(model if shape is None else "latest").id
    request = ComparisonRequest(whose, samples, cipher_named(cipher), bits, names, shape=shape)
    done = _watch_comparison(glassleaf.start_comparison(request)).over(link)
    left_out = [name for name in PROTOCOLS if name not in names]
    print_result({**done.as_dict(), "left_out": left_out}, _comparison_text(done, left_out), as_json)
    glassleaf.close()
    if not all(row.equal for row in done.runs.rows):
        raise typer.Exit(1)


def serve_forest(
    model: Annotated[str, typer.Argument(help="A forest: model id, the beginning of one, or 'latest'.")] = "latest",
    samples: Annotated[int, typer.Option(help="Test records in every batch.")] = ServingRequest.samples,
    batches: Annotated[int, typer.Option(help="Batches, ten a second.")] = ServingRequest.batches,
    workers: Annotated[int, typer.Option(help="Processes that hold the trees.")] = ServingRequest.workers,
    lost_at: Annotated[int, typer.Option(help="Batch before which a worker is killed.")] = ServingRequest.lost_at,
    as_json: AsJson = False,
) -> None:
    """Serve a forest in one round, in the clear (simulation), while one of its workers is lost."""
    glassleaf = open_glassleaf()
    done = watched(
        glassleaf.start_serving(ServingRequest(glassleaf.model(model).id, samples, batches, workers, lost_at))
    )
    print_result(done.as_dict(), _serving_text(done), as_json)
    glassleaf.close()


def _serving_text(done: ServingTrial) -> str:
    lost = done.without
    lines = [
        f"{len(done.batches)} batches of {done.samples} people, {done.trees} trees on {done.request.workers} workers; all answered."
    ]
    if lost:
        first = lost[0]
        back = f"batch {done.whole_again}" if done.whole_again else "not within the trial"
        lines += [
            f"Worker 1 was killed before batch {done.request.lost_at}; {len(lost)} batches went on without its {len(first.missing)} trees.",
            f"A prediction moved by at most {max(batch.shift for batch in lost):.3f}; all trees answered again: {back}.",
        ]
    slowest = max(done.batches, key=lambda batch: batch.seconds)
    lines.append(f"The slowest batch took {slowest.seconds:.2f} s (number {slowest.number}).")
    return "\n".join(lines)


def _synthetic_shape(model: str, **given: int | None) -> Shape | None:
    """The shape of `compare synthetic`; None where an own model is compared on."""
    asked = {name: value for name, value in given.items() if value is not None}
    if model == SYNTHETIC:
        return Shape(**asked)
    if asked:
        raise ParameterError(
            f"--{next(iter(asked))} describes a synthetic model, {model} is an own one; run `compare {SYNTHETIC}` for the first."
        )
    return None


def _watch_comparison(job: Job[Compared]) -> Compared:
    told = ""

    def tell(job: Job[Compared]) -> None:
        nonlocal told
        if job.stage != told and job.stage in PROTOCOLS:
            told = job.stage
            say(f"{told}: protocol {job.done + 1} of {job.total}, {job.seconds:.0f} s")

    return watched(job, tell, SHORT_TICK)


def _comparison_text(done: Compared, left_out: list[str]) -> str:
    runs = done.runs
    key = {"paillier": f"Paillier, {runs.key_bits} bits", "rlwe": f"RLWE, degree {runs.key_bits}"}.get(
        runs.cipher, "plaintext"
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
    synthetic = "" if shape is None else f", {shape.trees} trees of depth {shape.depth}, {shape.features} features"
    lines = [
        f"{done.model_id}{synthetic}: {people}, {runs.link.latency * 1000:g} ms and {runs.link.bandwidth / 1000:g} kB/s; "
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


def _comparison_cells(row: ProtocolResult) -> tuple[str, ...]:
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
